"""MCP: every operation that an audience may call is a tool with an input and an output schema."""

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
from backsight.audience import Audience
from backsight.core.errors import BacksightError
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Operation

INSTRUCTIONS = (
    "The memory of a trading agent. Before a decision, call recall_memories. After a trade is closed, call "
    "remember_trade. When you considered a trade and decided against it, call remember_inaction. Times are ISO 8601 "
    "with a time zone, like 2026-06-04T10:00:00Z."
)


def tools_for(audience: Audience) -> dict[str, Operation]:
    """The operations an audience may call."""
    return {name: operation for name, operation in OPERATIONS.items() if audience in operation.audience}


def server(memory: Memory, audience: Audience) -> Server[dict[str, Any]]:
    """An MCP server over an open memory, for one audience."""
    tools = tools_for(audience)

    async def list_tools(_context: object, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[tool_of(operation) for operation in tools.values()])

    async def call_tool(_context: object, params: CallToolRequestParams) -> CallToolResult:
        operation = tools.get(params.name)
        if operation is None:
            raise MCPError(code=INVALID_PARAMS, message=f"No tool {params.name!r}; known: {', '.join(tools)}")
        return await run_sync(answer, memory, operation, params.arguments or {})

    return Server(
        "backsight",
        version=__version__,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: tool_of(tools[name]).input_schema if name in tools else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def answer(memory: Memory, operation: Operation, arguments: dict[str, Any]) -> CallToolResult:
    """The result of an operation, or its error as JSON, from which a model can correct its call."""
    try:
        result = operation.as_json(memory.run(operation, arguments))
    except BacksightError as error:
        message = json.dumps(error.as_json(), ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
    text = json.dumps(result, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=result)


@cache
def tool_of(operation: Operation) -> Tool:
    """The tool of an operation; cached, since schemas are slow to build and every client asks for them."""
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
    """Serve one client over standard input and output until it disconnects."""

    async def serve() -> None:
        mcp_server = server(memory, audience)
        async with stdio_server() as (read, write):
            await mcp_server.run(read, write, mcp_server.create_initialization_options())

    anyio.run(serve)
