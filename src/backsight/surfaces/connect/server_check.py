"""Start an MCP server once, as a client would, and report what it answers."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from backsight.core.errors import Unavailable

LONGEST_START = 60.0
"""Seconds after which a server that says nothing counts as one that does not start; clients wait 10 to 60."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswer:
    """What a server answered to a client."""

    name: str
    version: str
    tools: tuple[str, ...]
    instructions: str
    seconds: float
    """From its start to its first answer."""


def ask_server(command: str, args: Sequence[str], env: Mapping[str, str]) -> ServerAnswer:
    """The answer of a server that is started in a folder of its own; `Unavailable` with its last words if it has none.

    It gets the few variables that clients pass on, and those of its entry.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        parameters = StdioServerParameters(command=command, args=list(args), env=dict(env), cwd=folder)

        async def ask() -> ServerAnswer:
            start = time.perf_counter()
            with anyio.fail_after(LONGEST_START):
                async with Client(stdio_client(parameters, errlog=log)) as client:
                    seconds = time.perf_counter() - start
                    tools = (await client.list_tools()).tools
                    server = client.server_info
                    return ServerAnswer(
                        name=server.name if server else "",
                        version=server.version if server else "",
                        tools=tuple(tool.name for tool in tools),
                        instructions=client.instructions or "",
                        seconds=seconds,
                    )

        try:
            return anyio.run(ask)
        except Exception as error:  # noqa: BLE001 (whatever keeps a server from answering is reported, with its log)
            log.seek(0)
            words = log.read().strip().splitlines()
            reason = words[-1] if words else f"{type(error).__name__}: {error}"
            raise Unavailable(f"the server does not start: {reason[:400]}", field="server") from None
