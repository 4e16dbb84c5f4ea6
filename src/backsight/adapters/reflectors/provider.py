"""Sends one question to a language model of any provider, and returns its bullets.

It imports pydantic-ai, which needs the extra `models`.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypedDict

from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    RunTimedOut,
    UnexpectedModelBehavior,
    UserError,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.output import OutputSpec
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.gateway import gateway_provider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from backsight.core.errors import Invalid
from backsight.core.reflection.citation_check import ProposedBullet
from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorUnavailable
from backsight.core.strategies import SLOTS
from backsight.core.text.untrusted_text import flat, shorten
from backsight.language_models import GATEWAY, checked_base_url

ATTEMPTS = 2
"""An answer that does not fit the schema is requested once more. No other error is retried."""
SHAPE = (
    'Answer with one JSON object and nothing else: {"bullets": [{"slot": "…", "text": "…", "cites": ["…"]}]}. A slot is'
    f" one of {', '.join(SLOTS)}."
)
"""Added to the instructions for servers that ignore a JSON schema."""
DEFAULT_REASON = ("gave no answer", "try later")
REASONS: tuple[tuple[type[Exception], str, str], ...] = (
    (RunTimedOut, "did not answer in time", "try later, allow more time, or use a faster model"),
    (ModelTimeoutError, "did not answer in time", "try later, allow more time, or use a faster model"),
    (ModelRequestTimeout, "did not answer in time", "try later, allow more time, or use a faster model"),
    (ModelRateLimitError, "takes no more requests for now", "try later, or reflect less often"),
    (ModelQuotaExceededError, "says that the quota is used up", "ask the provider for more"),
    (ModelAuthenticationError, "does not take the API key", "give a valid one"),
    (ModelNotFoundError, "is not there", "check the model's name and the base URL"),
    (ModelConnectionError, "cannot be reached", "check the base URL, and that the server runs"),
    (ModelUnavailableError, "is away", "try later"),
    (ModelServerError, "failed", "try later"),
    (ModelRequestRejectedError, "did not take the request", "check the model's name and what it can do"),
    (ModelAPIError, "gave no answer that can be read", "check the base URL, or try later"),
    (ContentFilterError, "refused to answer", "use another model"),
    (UnexpectedModelBehavior, "did not answer with the JSON asked for", "try again, or use another model"),
    (UserError, "cannot be used as it is set up", "check its name, its key and what it can do"),
    (ImportError, "needs a library that is not installed", "install it"),
)
"""The reason and the remedy of an error, by the first class in this list that it is an instance of."""
ERRORS_WITH_DETAILS = (ModelAPIError, UserError, ImportError)
"""Errors whose own message is added to the reason."""
MAX_DETAILS = 200
SHORTEST_SECRET = 8
"""Characters of an API key; a shorter key is taken for a placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address and the name of a model."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLessons:
    """Lessons, each with the keys of the evidence that it rests on."""

    bullets: tuple[ProposedBullet, ...]


def ask(question: str, *, instructions: str, endpoint: Endpoint, timeout: float, max_tokens: int) -> ReflectorAnswer:
    """The bullets of a model with tokens and cost; `ReflectorUnavailable` if it gives none."""
    system = instructions if endpoint.base_url is None else f"{instructions}\n\n{SHAPE}"
    usage, began = RunUsage(), time.perf_counter()
    settings = ModelSettings(max_tokens=max_tokens, timeout=timeout, max_retries=0)

    async def call_model() -> WrittenLessons:
        model = language_model(endpoint)
        agent = Agent(model, output_type=_shape(endpoint), instructions=system, retries=ATTEMPTS - 1)
        limits = UsageLimits(request_limit=ATTEMPTS)
        async with model:
            run = await agent.run(question, model_settings=settings, usage=usage, usage_limits=limits, timeout=timeout)
        return run.output

    try:
        written = _run(call_model)
    except (AgentRunError, UserError, ImportError) as error:
        figures = _usage_figures(usage, endpoint, seconds=time.perf_counter() - began)
        raise ReflectorUnavailable(reason_of(error, endpoint), **figures) from error
    figures = _usage_figures(usage, endpoint, seconds=time.perf_counter() - began)
    return ReflectorAnswer(bullets=written.bullets, model=endpoint.model, **figures)


class _UsageFigures(TypedDict):
    """Tokens, cost and duration of a call; None if unknown."""

    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float


def _run(run: Callable[[], Coroutine[Any, Any, WrittenLessons]]) -> WrittenLessons:
    """The result of a coroutine; run in another thread if this one has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(lambda: asyncio.run(run())).result()


def language_model(endpoint: Endpoint) -> Model[Any]:
    """The model of an OpenAI-compatible server, or of a provider."""
    provider, _, name = endpoint.model.partition(":")
    if endpoint.base_url is not None:
        return OpenAIChatModel(name, provider=_server(provider, endpoint.base_url, endpoint.api_key))
    key = endpoint.api_key
    return infer_model(endpoint.model) if key is None else infer_model(endpoint.model, lambda by: _with_key(by, key))


def _server(provider: str, base_url: str, api_key: str | None) -> OpenAICompatibleProvider:
    try:
        return OpenAICompatibleProvider(provider, base_url=checked_base_url(base_url), api_key=api_key)
    except Invalid as refused:
        raise UserError(refused.message) from refused


def _with_key(provider: str, api_key: str) -> Provider[Any]:
    """A provider with the given key instead of the one in its environment variable."""
    if provider.startswith(GATEWAY):
        return gateway_provider(provider.removeprefix(GATEWAY), api_key=api_key)
    try:
        return infer_provider_class(provider)(api_key=api_key)  # type: ignore[call-arg]
    except ValueError as unknown:
        raise UserError(str(unknown)) from unknown
    except TypeError as keyless:
        raise UserError(f"{provider} takes no API key; leave it out") from keyless


def _shape(endpoint: Endpoint) -> OutputSpec[WrittenLessons]:
    """The output type, in the provider's preferred mode; as a JSON schema for an OpenAI-compatible server."""
    return WrittenLessons if endpoint.base_url is None else NativeOutput(WrittenLessons, template=False)


def _usage_figures(usage: RunUsage, endpoint: Endpoint, *, seconds: float) -> _UsageFigures:
    """Tokens as counted by the provider, and cost by its list price; None for a server without a price."""
    is_counted = usage.input_tokens + usage.output_tokens > 0 and not usage.unmeasured_requests
    priced = is_counted and endpoint.base_url is None and usage.cost is not None
    return {
        "input_tokens": usage.input_tokens if is_counted else None,
        "output_tokens": usage.output_tokens if is_counted else None,
        "cost_usd": float(usage.cost) if priced and usage.cost is not None else None,
        "seconds": seconds,
    }


def reason_of(error: Exception, endpoint: Endpoint) -> str:
    """Why there is no answer and what to do, without the API key."""
    why, remedy = next(((why, remedy) for kind, why, remedy in REASONS if isinstance(error, kind)), DEFAULT_REASON)
    at = f" at {endpoint.base_url}" if endpoint.base_url and "@" not in endpoint.base_url else ""
    status = str(error.status_code) if isinstance(error, ModelHTTPError) else ""
    details = ": ".join(filter(None, [status, _details(error, endpoint)]))
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    when = "" if wait is None else f"; it may be asked again in {wait:.0f} s"
    return flat(f"{endpoint.model}{at} {why}{f' ({details})' if details else ''}; {remedy}{when}")


def _details(error: Exception, endpoint: Endpoint) -> str:
    """The message of the provider or the library, without the API key; empty if it would not help."""
    if not isinstance(error, ERRORS_WITH_DETAILS):
        return ""
    message = _message(error.body) if isinstance(error, ModelAPIError) else None
    text, key = str(message or error), endpoint.api_key or ""
    if len(key) >= SHORTEST_SECRET:
        text = text.replace(key, "…")
    return shorten(text, most=MAX_DETAILS, tokens=MAX_DETAILS)


def _message(body: object) -> object:
    """The message in the body of an error, however deeply nested; the body itself if it has none."""
    while isinstance(body, dict) and "message" not in body and "error" in body:
        body = body["error"]
    return body.get("message", body) if isinstance(body, dict) else body
