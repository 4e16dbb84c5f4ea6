"""MCP: the operations of an audience as tools, whose answers are brief unless a caller wants every field; resources and
prompts beside them.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import Any

import anyio
from anyio import from_thread
from anyio.to_thread import run_sync
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
)

from backsight import __version__
from backsight.answers.detail import brief_answer, split_detail
from backsight.audience import Audience, with_missing_tools
from backsight.core.audit import EMPTY
from backsight.core.errors import BacksightError, Refused
from backsight.core.keys import Authority
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Operation
from backsight.services.keys import key_of_token
from backsight.settings import without_driver
from backsight.store import audit
from backsight.surfaces.access import CALLER
from backsight.surfaces.instructions import empty_memory, filled_prompt, instructions_for, prompts_for
from backsight.surfaces.mcp_resources import TEXT, ResourceText, is_template, read_resource, resources_for
from backsight.surfaces.mcp_tools import tool_list, tools_for


class Offer:
    """What a server offers one audience: its tools, instructions, prompts and resources."""

    def __init__(self, audience: Audience, tools: Mapping[str, Operation]) -> None:
        self.audience = audience
        self.tools = tools
        self.instructions = instructions_for(audience, offered=tools, operations=OPERATIONS)
        self.prompts = prompts_for(audience, offered=tools, operations=OPERATIONS)

    @cached_property
    def resources(self) -> dict[str, ResourceText]:
        """The resources; looked up at the first request, because their queries are slow to import."""
        return resources_for(self.audience)

    @cached_property
    def listed(self) -> dict[str, Tool]:
        """The tools with their schemas; made at the first request, since they are slow to build."""
        return {tool.name: tool for tool in tool_list(self.tools, self.audience)}


def server(memory: Memory, audience: Audience, *, tools: Iterable[str] | None = None) -> Server[dict[str, Any]]:
    """An MCP server over an open memory, for one audience; `tools` chooses others than those it is usually offered."""
    workspace = memory.library is not None and memory.library.folder is not None
    return server_of(memory, Offer(audience, tools_for(audience, workspace=workspace, chosen=tools)))


def server_of(memory: Memory, offer: Offer) -> Server[dict[str, Any]]:
    """An MCP server over an open memory that answers to the tools, prompts and resources of an offer."""

    def caller_of(context: ServerRequestContext[Any, Any]) -> Memory:
        caller: Memory = memory if context.request is None else context.request.scope.get(CALLER, memory)
        return caller

    async def list_tools(_context: object, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(offer.listed.values()))

    async def call_tool(context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        operation = offer.tools.get(params.name)
        if operation is None:
            known = ", ".join(offer.tools)
            raise MCPError(code=INVALID_PARAMS, message=f"No tool {params.name[:80]!r}; known: {known}")
        caller = _reporting(caller_of(context), context)
        return await run_sync(answer, caller, operation, params.arguments or {}, offer.tools)

    async def list_prompts(_context: object, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[_prompt(offer, name) for name in offer.prompts])

    async def get_prompt(context: ServerRequestContext[Any, Any], params: GetPromptRequestParams) -> GetPromptResult:
        text = await run_sync(_prompt_text, caller_of(context), offer, params)
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(description=offer.prompts[params.name].description, messages=[message])

    async def list_resources(_context: object, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        fixed = {uri: each for uri, each in offer.resources.items() if not is_template(uri)}
        return ListResourcesResult(
            resources=[
                Resource(uri=uri, name=each.name, description=each.description, mime_type=TEXT)
                for uri, each in fixed.items()
            ]
        )

    async def list_templates(_context: object, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        templates = {uri: each for uri, each in offer.resources.items() if is_template(uri)}
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(uri_template=uri, name=each.name, description=each.description, mime_type=TEXT)
                for uri, each in templates.items()
            ]
        )

    async def read(context: ServerRequestContext[Any, Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await run_sync(read_resource, caller_of(context), uri, offer.resources)
        except BacksightError as error:
            raise MCPError(code=INVALID_PARAMS, message=error.message, data={"uri": uri}) from None
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=TEXT, text=text)])

    return Server(
        "backsight",
        version=__version__,
        instructions=offer.instructions,
        get_tool_input_schema=lambda name: offer.listed[name].input_schema if name in offer.tools else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
    )


def _reporting(memory: Memory, context: ServerRequestContext[Any, Any]) -> Memory:
    """A copy of a memory that reports the progress of long work to its client, if the client wants to know."""
    reporting = copy(memory)

    def report(part: str, done: int, total: int) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the client went away
            from_thread.run(context.session.report_progress, float(done), float(total), part)

    reporting.progress = report
    return reporting


def _prompt_text(memory: Memory, offer: Offer, params: GetPromptRequestParams) -> str:
    """The text of a prompt; a coach's begins with what the owner told it before."""
    try:
        text = filled_prompt(params.name, offer.prompts, params.arguments or {})
    except BacksightError as error:
        raise MCPError(code=INVALID_PARAMS, message=error.message) from None
    if params.name != "coach":
        return text
    from backsight.surfaces.mcp_profile import coach_preamble  # its services are slow to import

    return f"{coach_preamble(memory)}\n\n{text}"


def answer(
    memory: Memory, operation: Operation, arguments: dict[str, Any], offered: Collection[str] = OPERATIONS
) -> CallToolResult:
    """The result of an operation, brief or in full, or its error as JSON, from which a model can correct its call.

    `offered` are the tools of the caller; an error says which of the operations that it names are not among them.
    """
    try:
        detail, own_arguments = split_detail(operation, arguments, default="brief")
        result = memory.run(operation, own_arguments)
    except BacksightError as error:
        message = with_missing_tools(error.message, operations=OPERATIONS, offered=offered)
        return CallToolResult(content=[_text(_json({**error.as_json(), "message": message}))], is_error=True)
    if detail == "full":
        full = operation.as_json(result)
        return CallToolResult(content=[_text(_json(full))], structured_content=full)
    brief = brief_answer(operation, own_arguments, result)
    return CallToolResult(content=[_text(brief.text())], structured_content=brief.as_json())


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _prompt(offer: Offer, name: str) -> Prompt:
    prompt = offer.prompts[name]
    arguments = [PromptArgument(name=each, description=text, required=True) for each, text in prompt.arguments.items()]
    return Prompt(name=name, description=prompt.description, arguments=arguments)


def caller_over_stdio(memory: Memory, audience: Audience, *, key: str | None) -> Memory:
    """The memory for the client that started this process; the owner's tools need the owner's key."""
    if key is None and audience == "owner":
        raise Refused(
            "the owner's tools approve what agents propose; set BACKSIGHT_KEY to a key that `backsight keys create"
            " --audience owner` makes, or offer the tools of the trader or the coach",
            field="audience",
        )
    if key is None:
        return memory.for_caller(Authority(audience=audience, may_write=True), actor=memory.actor)
    caller = key_of_token(memory, key)
    if caller.audience not in (audience, "owner"):
        raise Refused(f"BACKSIGHT_KEY is a key of the {caller.audience}; use one of the {audience}", field="audience")
    authority = Authority(audience=caller.audience, may_write=caller.scope == "write")
    return memory.for_caller(authority, actor=caller.actor, owner=caller.owner_id)


def serve_stdio(memory: Memory, audience: Audience, *, tools: Iterable[str] | None = None) -> None:
    """Serve one client over standard input and output until it disconnects.

    A model whose memory is empty is told which store was opened: a client may have been given the wrong one.
    """
    mcp_server = server(memory, audience, tools=tools)
    with memory.reading() as connection:
        if audit.head(connection, memory.owner) == EMPTY:
            note = empty_memory(without_driver(memory.database.name), memory.owner)
            mcp_server.instructions = f"{mcp_server.instructions} {note}"

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await mcp_server.run(read, write, mcp_server.create_initialization_options())

    anyio.run(serve)
