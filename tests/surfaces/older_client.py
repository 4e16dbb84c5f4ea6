"""A client of an older MCP SDK, run by its own Python; it prints what it saw as JSON."""

import asyncio
import json
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

CALL = {
    "symbol": "XAUUSD",
    "direction": "long",
    "entry_price": 2650.0,
    "exit_price": 2670.0,
    "pnl": 190.0,
    "strategy_name": "VolBreakout",
}


async def talk(command: str, arguments: list[str]) -> dict[str, object]:
    server = StdioServerParameters(command=command, args=arguments)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        return await look_around(session)


async def look_around(session: Any) -> dict[str, object]:
    """What a client sees; older SDKs spell some names in camel case."""
    greeting = await session.initialize()
    tools = await session.list_tools()
    remembered = await session.call_tool("remember_trade", CALL)
    refused = await session.call_tool("remember_trade", {**CALL, "direction": "up"})
    resources = await session.list_resources()
    prompts = await session.list_prompts()
    return {
        "version": str(greeting.protocolVersion),
        "tools": [tool.name for tool in tools.tools],
        "remembered": remembered.content[0].text,
        "refused": refused.isError,
        "resources": [str(resource.uri) for resource in resources.resources],
        "prompts": [prompt.name for prompt in prompts.prompts],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(talk(sys.argv[1], sys.argv[2:]))))
