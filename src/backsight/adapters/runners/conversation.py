"""A conversation with a language model: the transcript, the tools, and the answer. Needs the extra `models`."""

import asyncio
from collections.abc import AsyncIterable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from backsight.adapters.reflectors.provider import Endpoint, language_model, reason_of
from backsight.core.agents.request import AgentAnswer, AgentFailed, AgentRequest, AgentTool, Exchange, RunCancelled
from backsight.core.text.tokens import estimate
from backsight.core.text.untrusted_text import shorten

if TYPE_CHECKING:
    from backsight.adapters.runners.model import ModelRunner

MOST_REQUESTS = 30
"""Requests to the model in one run: each round of tool calls takes one."""
PAUSE = 0.1
SUMMARY = 160
"""Characters of an exchange that was compacted."""
SUMMARIES = 50


def converse(runner: "ModelRunner", request: AgentRequest, *, session: str) -> AgentAnswer:
    """The model's answer, with the messages of this run as its transcript."""
    endpoint = Endpoint(model=runner.model, base_url=runner.base_url, api_key=runner.api_key)
    usage = RunUsage()
    try:
        messages = history_messages(request.history, most_tokens=runner.history_tokens)
        with ThreadPoolExecutor(max_workers=1) as executor:  # the caller's thread may have a running event loop
            answer = executor.submit(lambda: asyncio.run(_ask(runner, request, endpoint, usage, messages))).result()
    except TimeoutError:
        message = f"{endpoint.model} did not answer within {request.timeout:g} s; allow more time"
        raise AgentFailed(message) from None
    except (AgentRunError, UserError, ImportError) as error:
        raise AgentFailed(reason_of(error, endpoint)) from error
    text, transcript = answer
    if not text.strip():
        raise AgentFailed(f"{endpoint.model} answered nothing")
    is_counted = usage.input_tokens + usage.output_tokens > 0
    return AgentAnswer(
        text=text,
        session=session,
        model=endpoint.model,
        input_tokens=usage.input_tokens if is_counted else None,
        output_tokens=usage.output_tokens if is_counted else None,
        cost=float(usage.cost) if runner.base_url is None and usage.cost is not None else None,
        transcript=transcript,
    )


async def _ask(
    runner: "ModelRunner", request: AgentRequest, endpoint: Endpoint, usage: RunUsage, messages: Sequence[ModelMessage]
) -> tuple[str, str]:
    model = language_model(endpoint)
    tools = [Tool.from_schema(_caller(tool), tool.name, tool.description, dict(tool.schema)) for tool in request.tools]
    agent = Agent(model, instructions=request.system, tools=tools)

    async def hand_on(_context: Any, events: AsyncIterable[Any]) -> None:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
                request.on_text(event.part.content)
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                request.on_text(event.delta.content_delta)

    settings = ModelSettings(max_tokens=runner.max_tokens, timeout=request.timeout)
    async with model:
        task = asyncio.ensure_future(
            agent.run(
                request.prompt,
                message_history=list(messages),
                model_settings=settings,
                usage=usage,
                usage_limits=UsageLimits(request_limit=MOST_REQUESTS),
                event_stream_handler=hand_on if request.streams else None,
            )
        )
        deadline = asyncio.get_running_loop().time() + request.timeout
        while not task.done():
            await asyncio.wait({task}, timeout=PAUSE)
            if task.done():
                break
            is_late = asyncio.get_running_loop().time() > deadline
            if is_late or request.is_cancelled():
                task.cancel()
                await asyncio.wait({task}, timeout=1.0)
                raise TimeoutError if is_late else RunCancelled("the run was cancelled")
        result = task.result()
    return str(result.output), result.new_messages_json().decode()


def _caller(tool: AgentTool) -> Callable[..., Any]:
    async def call(**arguments: Any) -> str:
        return await asyncio.to_thread(tool.call, arguments)

    return call


def history_messages(history: Sequence[Exchange], *, most_tokens: int) -> list[ModelMessage]:
    """The messages of earlier runs; the oldest exchanges of a long transcript are one line each."""
    sizes = [estimate(each.transcript or each.prompt + each.output) for each in history]
    first = len(history)
    while first > 0 and sum(sizes[first - 1 :]) <= most_tokens:
        first -= 1
    messages: list[ModelMessage] = []
    if first:
        messages += _compacted(history[:first])
    for exchange in history[first:]:
        messages += _messages_of(exchange)
    return messages


def _messages_of(exchange: Exchange) -> list[ModelMessage]:
    if exchange.transcript is not None:
        try:
            return list(ModelMessagesTypeAdapter.validate_json(exchange.transcript))
        except ValidationError:  # another runner, or another version of the library, wrote it
            pass
    return [
        ModelRequest(parts=[UserPromptPart(content=exchange.prompt)]),
        ModelResponse(parts=[TextPart(content=exchange.output)]),
    ]


def _compacted(history: Sequence[Exchange]) -> list[ModelMessage]:
    """Exchanges that are too old to be repeated whole, one line each."""
    lines = [
        f"- {shorten(each.prompt, most=SUMMARY, tokens=SUMMARY)} → {shorten(each.output, most=SUMMARY, tokens=SUMMARY)}"
        for each in history[-SUMMARIES:]
    ]
    left_out = f" ({len(history) - len(lines)} before them left out)" if len(history) > len(lines) else ""
    text = f"Earlier in this conversation, shortened{left_out}:\n" + "\n".join(lines)
    return [
        ModelRequest(parts=[UserPromptPart(content=text)]),
        ModelResponse(parts=[TextPart(content="I remember.")]),
    ]
