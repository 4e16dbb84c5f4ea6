"""Packages that are installed only with an extra: whether they are there, and how to get them."""

from importlib.util import find_spec

from backsight.core.errors import Unavailable

INSTALL_MCP = "pip install 'backsight[mcp]'"


def has_mcp() -> bool:
    """Whether the MCP SDK is installed."""
    return find_spec("mcp") is not None


def require_mcp() -> None:
    """Raise `Unavailable` with the remedy if the MCP SDK is not installed."""
    if not has_mcp():
        raise Unavailable(f"MCP needs a package that is not installed; {INSTALL_MCP}", field="mcp")
