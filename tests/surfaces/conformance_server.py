"""What the official conformance suite of MCP expects a server to offer, added to a server of Backsight.

Text, errors, progress, headers, plain prompts and a text resource go through the surface, as operations, prompts and
resources of an offer. Pictures, sounds, forms, questions to the client and the rest, which Backsight has no use for,
are answered by handlers in front of the surface's own, which pass other requests on. The application of `backsight mcp
--http` serves both.
"""

import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    ContentBlock,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequest,
    InputRequiredResult,
    JSONRPCMessage,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListRootsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SamplingCapability,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    Tool,
    UnsubscribeRequestParams,
)
from pydantic import Field

from backsight.core.errors import Refused
from backsight.memory import Memory, open_memory
from backsight.operation import Operation, operation_of, query
from backsight.ports import Clock
from backsight.surfaces.http_server import HttpOptions, base_url, http_server, listen, mcp_application
from backsight.surfaces.instructions import PromptText
from backsight.surfaces.mcp import Offer, server_of
from backsight.surfaces.mcp_resources import ResourceText, arguments_in

Context = ServerRequestContext[Any, Any]
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
TEMPLATE = "test://template/{id}/data"
RETRY_MILLISECONDS = 500


# Through the surface


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a fixture."""

    message: str


@query(audience=("trader",))
def test_simple_text(context: Memory) -> Reply:
    """Answer with a text."""
    return Reply("This is a simple text response for testing.")


@query(audience=("trader",))
def test_error_handling(context: Memory) -> Reply:
    """Fail."""
    raise Refused("This tool intentionally returns an error for testing", field="tool")


@query(audience=("trader",))
def test_tool_with_progress(context: Memory) -> Reply:
    """Report progress three times."""
    for done in (0, 50, 100):
        context.progress("testing", done, 100)
    return Reply("Progress was reported three times.")


@query(audience=("trader",))
def test_header(
    context: Memory, *, region: Annotated[str, "A region.", Field(json_schema_extra={"x-mcp-header": "Region"})]
) -> Reply:
    """Answer with an argument that the client sends as a header too."""
    return Reply(f"The region is {region}.")


def _operations() -> dict[str, Operation]:
    operations = map(operation_of, (test_simple_text, test_error_handling, test_tool_with_progress, test_header))
    return {operation.name: operation for operation in operations if operation is not None}


class FixtureOffer(Offer):
    """The fixtures that the surface can offer as it offers the tools, prompts and resources of a trader."""

    def __init__(self) -> None:
        super().__init__("trader", _operations())
        arguments = {"arg1": "First test argument.", "arg2": "Second test argument."}
        self.prompts = {
            "test_simple_prompt": PromptText(("trader",), "A prompt.", {}, "This is a simple prompt for testing."),
            "test_prompt_with_arguments": PromptText(
                ("trader",), "A prompt with arguments.", arguments, "Prompt with arguments: arg1={arg1}, arg2={arg2}"
            ),
        }

    @cached_property
    def resources(self) -> dict[str, ResourceText]:
        text = "This is the content of the static text resource."
        return {"test://static-text": ResourceText("text", "A text.", "status", read=lambda _memory: text)}


# In front of the surface


def _text(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=contents)


def _picture() -> ImageContent:
    return ImageContent(type="image", data=PICTURE, mime_type="image/png")


CONTENTS: Mapping[str, list[ContentBlock]] = {
    "test_image_content": [_picture()],
    "test_audio_content": [AudioContent(type="audio", data=SOUND, mime_type="audio/wav")],
    "test_embedded_resource": [_embedded("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        TextContent(type="text", text="Multiple content types test:"),
        _picture(),
        _embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
}


async def _log(context: Context, _arguments: Mapping[str, Any]) -> CallToolResult:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", text, related_request_id=context.request_id)
    return _text("Three messages were logged.")


async def _sample(context: Context, arguments: Mapping[str, Any]) -> CallToolResult:
    request = _sampling_request(arguments["prompt"])
    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    result = await context.session.send_request(request, CreateMessageResult, metadata=metadata)
    return _text(f"LLM response: {result.content}")


def _form(properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> Callable[..., Awaitable[CallToolResult]]:
    """A tool that asks the user to fill in a form."""
    schema = {"type": "object", "properties": dict(properties), "required": list(required)}

    async def ask(context: Context, arguments: Mapping[str, Any]) -> CallToolResult:
        message = arguments.get("message", "Please fill in the form.")
        result = await context.session.elicit_form(message, schema, context.request_id)
        return _text(f"Elicitation completed: action={result.action}, content={json.dumps(result.content)}")

    return ask


async def _need_sampling(context: Context, _arguments: Mapping[str, Any]) -> CallToolResult:
    if not context.session.check_client_capability(ClientCapabilities(sampling=SamplingCapability())):
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="this tool needs a client that offers sampling",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return _text("The client offers sampling.")


def _form_request(message: str, field: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sampling_request(text: str) -> CreateMessageRequest:
    question = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[question], max_tokens=100))


ASKING = "test_input_required_result_"
_NAME, _CONFIRMATION = _form_request("What is your name?", "name"), _form_request("Please confirm", "ok", "boolean")
ROUNDS: Mapping[str, Sequence[Mapping[str, InputRequest]]] = {
    "test_streaming_elicitation": [{"name": _NAME}],
    f"{ASKING}elicitation": [{"user_name": _NAME}],
    f"{ASKING}sampling": [{"capital_question": _sampling_request("What is the capital of France?")}],
    f"{ASKING}list_roots": [{"client_roots": ListRootsRequest()}],
    f"{ASKING}request_state": [{"confirm": _CONFIRMATION}],
    f"{ASKING}tampered_state": [{"confirm": _CONFIRMATION}],
    f"{ASKING}multiple_inputs": [
        {"user_name": _NAME, "greeting": _sampling_request("Generate a greeting"), "client_roots": ListRootsRequest()}
    ],
    f"{ASKING}multi_round": [
        {"step1": _form_request("Step 1: What is your name?", "name")},
        {"step2": _form_request("Step 2: What is your favorite color?", "color")},
    ],
    f"{ASKING}capabilities": [{"name": _NAME, "greeting": _sampling_request("Generate a greeting")}],
    f"{ASKING}prompt": [{"user_context": _form_request("What context should the prompt use?", "context")}],
}
"""Tools, and one prompt, that ask the client for something: the requests of each round, by a name for each request."""
ASKING_PROMPT = f"{ASKING}prompt"
NEEDED = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
"""The capability that a client needs for a request."""


def _still_asked(
    context: Context, params: CallToolRequestParams | GetPromptRequestParams
) -> InputRequiredResult | None:
    """The requests of the first round that is not answered, as far as the client can answer them; None at the end.

    The state that the client sends back is the number of answered rounds; `RequestStateBoundary` seals it.
    """
    rounds, answered = ROUNDS[params.name], int(params.request_state or 0)
    capabilities = context.session.client_capabilities or ClientCapabilities()
    if rounds[answered].keys() <= (params.input_responses or {}).keys():
        answered += 1
    if answered == len(rounds):
        return None
    requests = rounds[answered].items()
    possible = {name: each for name, each in requests if getattr(capabilities, NEEDED[each.method]) is not None}
    return InputRequiredResult(input_requests=possible, request_state=str(answered))


async def _reconnect(context: Context, _arguments: Mapping[str, Any]) -> CallToolResult:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await anyio.sleep(0.1)  # the client reconnects while the tool works
    return _text("Reconnection test completed successfully")


CHOICES = ("option1", "option2", "option3")
TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
CALLS: Mapping[str, Callable[..., Awaitable[CallToolResult]]] = {
    "test_tool_with_logging": _log,
    "test_sampling": _sample,
    "test_elicitation": _form({"username": {"type": "string"}, "email": {"type": "string"}}, ("username", "email")),
    "test_elicitation_sep1034_defaults": _form(
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        }
    ),
    "test_elicitation_sep1330_enums": _form(
        {
            "untitledSingle": {"type": "string", "enum": CHOICES},
            "titledSingle": {"type": "string", "oneOf": TITLED},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": CHOICES}},
            "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
        }
    ),
    "test_reconnection": _reconnect,
    "test_missing_capability": _need_sampling,
    "test_logging_tool": _log,
}
NAMED = {"test_sampling": "prompt", "test_elicitation": "message"}
"""The argument of a tool, where it has one."""
SCHEMA_TOOL = Tool(
    name="json_schema_2020_12_tool",
    description="Tool with JSON Schema 2020-12 features",
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "phone": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["name"]}]}],
        "if": {"required": ["address"]},
        "then": {"required": ["name"]},
        "else": {"required": ["phone"]},
        "additionalProperties": False,
    },
)
EMBEDDING, PICTURED = "test_prompt_with_embedded_resource", "test_prompt_with_image"


def _tool(name: str) -> Tool:
    properties = {NAMED[name]: {"type": "string"}} if name in NAMED else {}
    return Tool(name=name, description="A fixture.", input_schema={"type": "object", "properties": properties})


def _message(content: ContentBlock) -> PromptMessage:
    return PromptMessage(role="user", content=content)


class FixtureHandlers:
    """Handlers of the fixtures that the surface cannot offer; other requests go on to the surface."""

    def __init__(self, surface: Server[Any]) -> None:
        self._surface = surface
        for method, params_type, handler in (
            ("tools/list", PaginatedRequestParams, self.list_tools),
            ("tools/call", CallToolRequestParams, self.call_tool),
            ("prompts/list", PaginatedRequestParams, self.list_prompts),
            ("prompts/get", GetPromptRequestParams, self.get_prompt),
            ("resources/list", PaginatedRequestParams, self.list_resources),
            ("resources/templates/list", PaginatedRequestParams, self.list_templates),
            ("resources/read", ReadResourceRequestParams, self.read_resource),
            ("resources/subscribe", SubscribeRequestParams, self.accept),
            ("resources/unsubscribe", UnsubscribeRequestParams, self.accept),
            ("logging/setLevel", SetLevelRequestParams, self.accept),
            ("completion/complete", CompleteRequestParams, self.complete),
        ):
            go_on = surface.get_request_handler(method)
            surface.add_request_handler(method, params_type, self._before(handler, go_on.handler if go_on else None))

    @staticmethod
    def _before(handler: Any, go_on: Any) -> Any:
        """A handler that can pass a request on to the surface's own."""

        async def handle(context: Context, params: Any) -> Any:
            return await handler(context, params, go_on)

        return handle

    async def list_tools(self, context: Context, params: Any, go_on: Any) -> ListToolsResult:
        listed: ListToolsResult = await go_on(context, params)
        asking = [name for name in ROUNDS if name != ASKING_PROMPT]
        return ListToolsResult(tools=[*listed.tools, SCHEMA_TOOL, *map(_tool, (*CONTENTS, *CALLS, *asking))])

    async def call_tool(
        self, context: Context, params: CallToolRequestParams, go_on: Any
    ) -> CallToolResult | InputRequiredResult:
        if params.name in CONTENTS:
            return CallToolResult(content=CONTENTS[params.name])
        if params.name in CALLS:
            return await CALLS[params.name](context, params.arguments or {})
        if params.name in ROUNDS:
            return _still_asked(context, params) or _text("Everything was answered: state-ok.")
        result: CallToolResult = await go_on(context, params)
        return result

    async def list_prompts(self, context: Context, params: Any, go_on: Any) -> ListPromptsResult:
        listed: ListPromptsResult = await go_on(context, params)
        uri = PromptArgument(name="resourceUri", description="Address of the resource.", required=True)
        embedding = Prompt(name=EMBEDDING, description="A prompt with a resource.", arguments=[uri])
        pictured = Prompt(name=PICTURED, description="A prompt with a picture.")
        asking = Prompt(name=ASKING_PROMPT, description="A prompt that asks for its context.")
        return ListPromptsResult(prompts=[*listed.prompts, embedding, pictured, asking])

    async def get_prompt(
        self, context: Context, params: GetPromptRequestParams, go_on: Any
    ) -> GetPromptResult | InputRequiredResult:
        if params.name == ASKING_PROMPT:
            text = TextContent(type="text", text="Use the context that was given.")
            return _still_asked(context, params) or GetPromptResult(messages=[_message(text)])
        if params.name == EMBEDDING:
            resource = _embedded((params.arguments or {})["resourceUri"], "Embedded resource content for testing.")
            request = TextContent(type="text", text="Please process the embedded resource above.")
            return GetPromptResult(messages=[_message(resource), _message(request)])
        if params.name == PICTURED:
            request = TextContent(type="text", text="Please analyze the image above.")
            return GetPromptResult(messages=[_message(_picture()), _message(request)])
        result: GetPromptResult = await go_on(context, params)
        return result

    async def list_resources(self, context: Context, params: Any, go_on: Any) -> ListResourcesResult:
        listed: ListResourcesResult = await go_on(context, params)
        binary = Resource(uri="test://static-binary", name="binary", description="A picture.", mime_type="image/png")
        return ListResourcesResult(resources=[*listed.resources, binary])

    async def list_templates(self, context: Context, params: Any, go_on: Any) -> ListResourceTemplatesResult:
        listed: ListResourceTemplatesResult = await go_on(context, params)
        template = ResourceTemplate(uri_template=TEMPLATE, name="data", description="Data of an id.")
        return ListResourceTemplatesResult(resource_templates=[*listed.resource_templates, template])

    async def read_resource(
        self, context: Context, params: ReadResourceRequestParams, go_on: Any
    ) -> ReadResourceResult:
        uri = str(params.uri)
        if uri == "test://static-binary":
            return ReadResourceResult(contents=[BlobResourceContents(uri=uri, mime_type="image/png", blob=PICTURE)])
        arguments = arguments_in(uri, TEMPLATE)
        if arguments is not None:
            text = json.dumps({**arguments, "templateTest": True})
            contents = TextResourceContents(uri=uri, mime_type="application/json", text=text)
            return ReadResourceResult(contents=[contents])
        result: ReadResourceResult = await go_on(context, params)
        return result

    async def accept(self, _context: Context, _params: Any, _go_on: Any) -> EmptyResult:
        return EmptyResult()

    async def complete(self, _context: Context, _params: CompleteRequestParams, _go_on: Any) -> CompleteResult:
        return CompleteResult(completion=Completion(values=["paris", "park", "party"], total=3, has_more=False))


class EventsInMemory(EventStore):
    """The events of all streams, so that a client which was cut off can ask for those that it missed."""

    def __init__(self) -> None:
        self._events: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._events.append((stream_id, message))
        return str(len(self._events))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        first_missed = int(last_event_id)
        stream = self._events[first_missed - 1][0]
        for number, (stream_id, message) in enumerate(self._events[first_missed:], start=first_missed + 1):
            if stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


@contextmanager
def served_fixtures(url: str, clock: Clock) -> Iterator[str]:
    """A real server on loopback with all fixtures; its address."""
    listener = listen("127.0.0.1", 0)
    with open_memory(url, clock=clock) as memory:
        mcp_server = server_of(memory, FixtureOffer())
        FixtureHandlers(mcp_server)
        mcp_server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=None))
        app = mcp_application(memory, HttpOptions(), mcp_server=mcp_server)
        mcp_server.session_manager.event_store = EventsInMemory()
        mcp_server.session_manager.retry_interval = RETRY_MILLISECONDS
        server = http_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield base_url(listener)
        finally:
            server.should_exit = True
            thread.join()
