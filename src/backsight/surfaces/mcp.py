"""MCP: every operation of an audience is a tool, with schemas in and out."""

import json
from functools import cache
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from backsight import __version__
from backsight.core.errors import BacksightError
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Audience, Operation

INSTRUCTIONS = (
    "The memory of a trading agent. Before a decision, call recall_memories; after every close, call "
    "remember_trade; when you looked and chose not to trade, call remember_inaction. Times are ISO 8601 with a zone."
)


def tools_for(audience: Audience) -> dict[str, Operation]:
    """The operations an audience may call."""
    return {name: operation for name, operation in OPERATIONS.items() if audience in operation.audience}


def server(memory: Memory, audience: Audience) -> Server[dict[str, Any]]:
    """An MCP server over an open memory, for one audience."""
    offered = tools_for(audience)

    async def list_tools(_context: object, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[described(operation) for operation in offered.values()])

    async def call_tool(_context: object, params: CallToolRequestParams) -> CallToolResult:
        operation = offered.get(params.name)
        if operation is None:
            raise MCPError(code=INVALID_PARAMS, message=f"No tool {params.name!r}; known: {', '.join(offered)}")
        return await run_sync(answer, memory, operation, params.arguments or {})

    return Server(
        "backsight",
        version=__version__,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: described(offered[name]).input_schema if name in offered else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def answer(memory: Memory, operation: Operation, arguments: dict[str, Any]) -> CallToolResult:
    """The result of an operation, or the error that tells a model how to correct itself."""
    try:
        result = operation.as_json(memory.run(operation, arguments))
    except BacksightError as error:
        told = json.dumps(error.as_json(), ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=told)], is_error=True)
    text = json.dumps(result, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=result)


@cache
def described(operation: Operation) -> Tool:
    """The tool of an operation; made once, since its schemas take a while and every client asks for them."""
    reads = operation.kind == "query"
    return Tool(
        name=operation.name,
        title=operation.name.replace("_", " ").capitalize(),
        description=operation.description,
        input_schema=operation.input_schema(),
        output_schema=operation.output_schema(),
        annotations=ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=False,
            idempotent_hint=operation.idempotent,
            open_world_hint=False,
        ),
    )


def serve_stdio(memory: Memory, audience: Audience) -> None:
    """Serve one client over standard input and output until it goes."""

    async def serve() -> None:
        made = server(memory, audience)
        async with stdio_server() as (read, write):
            await made.run(read, write, made.create_initialization_options())

    anyio.run(serve)
