"""Packages that are installed only with an extra: whether they are there, and how to get them."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from backsight.core.errors import Unavailable

INSTALL_MCP = "pip install 'backsight[mcp]'"
MCP_SDK = 2
"""The major version of the MCP SDK that the surface is written for."""


def has_mcp() -> bool:
    """Whether the MCP SDK is installed, in a version that can be used."""
    return not missing_mcp()


def missing_mcp() -> str:
    """Why MCP cannot be served, and the remedy; empty if it can.

    An environment may have an older SDK, because agent frameworks need it: installing ours there would break them.
    """
    if find_spec("mcp") is None:
        return f"MCP needs a package that is not installed; {INSTALL_MCP}"
    installed = _installed_version()
    if int(installed.partition(".")[0]) < MCP_SDK:
        return (
            f"MCP needs version {MCP_SDK} of the package mcp, and {installed} is installed; "
            f"{INSTALL_MCP} in an environment of its own"
        )
    return ""


def require_mcp() -> None:
    """Raise `Unavailable` with the remedy if the MCP SDK is not installed."""
    if reason := missing_mcp():
        raise Unavailable(reason, field="mcp")


def _installed_version() -> str:
    try:
        return version("mcp")
    except PackageNotFoundError:  # a copy of the sources, without the facts of an installation
        return str(MCP_SDK)
