"""One question to a language model of any provider: its answer in bullets, or why there is none.

The only file that knows pydantic-ai; whoever imports it needs the extra `models`.
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
"""An answer in another shape than the one asked for is asked for once more; nothing else is."""
SHAPE = (
    'Answer with one JSON object and nothing else: {"bullets": [{"slot": "…", "text": "…", "cites": ["…"]}]}. A slot is'
    f" one of {', '.join(SLOTS)}."
)
"""For servers that leave a schema out of account."""
OTHERWISE = ("gave no answer", "try later")
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
"""What is said of an error and what to do, by the first of its kinds."""
TELLS = (ModelAPIError, UserError, ImportError)
"""Errors whose own words help."""
MOST_WORDS = 200
SHORTEST_SECRET = 8
"""Characters of a key; a shorter one is a placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is."""

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLessons:
    """Lessons, each with the keys of the evidence that it rests on."""

    bullets: tuple[ProposedBullet, ...]


def ask(question: str, *, instructions: str, endpoint: Endpoint, timeout: float, most_tokens: int) -> ReflectorAnswer:
    """The bullets of a model, and what they took; `Unanswered` where there are none to be had."""
    told = instructions if endpoint.base_url is None else f"{instructions}\n\n{SHAPE}"
    usage, began = RunUsage(), time.perf_counter()
    settings = ModelSettings(max_tokens=most_tokens, timeout=timeout, max_retries=0)

    async def run() -> WrittenLessons:
        model = _model(endpoint)
        agent = Agent(model, output_type=_shape(endpoint), instructions=told, retries=ATTEMPTS - 1)
        limits = UsageLimits(request_limit=ATTEMPTS)
        async with model:
            ran = await agent.run(question, model_settings=settings, usage=usage, usage_limits=limits, timeout=timeout)
        return ran.output

    try:
        written = _finished(run)
    except (AgentRunError, UserError, ImportError) as error:
        took = _usage(usage, endpoint, seconds=time.perf_counter() - began)
        raise ReflectorUnavailable(_reason(error, endpoint), **took) from error
    took = _usage(usage, endpoint, seconds=time.perf_counter() - began)
    return ReflectorAnswer(bullets=written.bullets, model=endpoint.model, **took)


class _Usage(TypedDict):
    """What a question took; None of what is not known."""

    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float


def _finished(run: Callable[[], Coroutine[Any, Any, WrittenLessons]]) -> WrittenLessons:
    """What a coroutine returns, also where this thread is in the middle of another: then in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run())
    with ThreadPoolExecutor(max_workers=1) as other:
        return other.submit(lambda: asyncio.run(run())).result()


def _model(endpoint: Endpoint) -> Model[Any]:
    """The model behind an address, or of a provider by its name."""
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
    """A provider with a key that is handed in instead of the one in its environment variable."""
    if provider.startswith(GATEWAY):
        return gateway_provider(provider.removeprefix(GATEWAY), api_key=api_key)
    try:
        return infer_provider_class(provider)(api_key=api_key)  # type: ignore[call-arg]
    except ValueError as unknown:
        raise UserError(str(unknown)) from unknown
    except TypeError as keyless:
        raise UserError(f"{provider} takes no API key; leave it out") from keyless


def _shape(endpoint: Endpoint) -> OutputSpec[WrittenLessons]:
    """How the answer's shape is asked for: as the provider does it best; of a server, by its JSON schema."""
    return WrittenLessons if endpoint.base_url is None else NativeOutput(WrittenLessons, template=False)


def _usage(usage: RunUsage, endpoint: Endpoint, *, seconds: float) -> _Usage:
    """Tokens as counted by the provider; the price is its list price, so a server of one's own has none."""
    told = usage.input_tokens + usage.output_tokens > 0 and not usage.unmeasured_requests
    priced = told and endpoint.base_url is None and usage.cost is not None
    return {
        "input_tokens": usage.input_tokens if told else None,
        "output_tokens": usage.output_tokens if told else None,
        "cost_usd": float(usage.cost) if priced and usage.cost is not None else None,
        "seconds": seconds,
    }


def _reason(error: Exception, endpoint: Endpoint) -> str:
    """Why there is no answer, and what to do; never with the key in it."""
    why, remedy = next(((why, remedy) for kind, why, remedy in REASONS if isinstance(error, kind)), OTHERWISE)
    at = f" at {endpoint.base_url}" if endpoint.base_url and "@" not in endpoint.base_url else ""
    status = str(error.status_code) if isinstance(error, ModelHTTPError) else ""
    told = ": ".join(filter(None, [status, _words(error, endpoint)]))
    wait = error.retry_after if isinstance(error, ModelAPIError) else None
    when = "" if wait is None else f"; it may be asked again in {wait:.0f} s"
    return flat(f"{endpoint.model}{at} {why}{f' ({told})' if told else ''}; {remedy}{when}")


def _words(error: Exception, endpoint: Endpoint) -> str:
    """What the provider or the library says of an error, where that helps."""
    if not isinstance(error, TELLS):
        return ""
    said = _message(error.body) if isinstance(error, ModelAPIError) else None
    text, key = str(said or error), endpoint.api_key or ""
    return shorten(text.replace(key, "…") if len(key) >= SHORTEST_SECRET else text, most=MOST_WORDS, tokens=MOST_WORDS)


def _message(body: object) -> object:
    """The message within an error's body, however deep it is wrapped; the body where it has none."""
    while isinstance(body, dict) and "message" not in body and "error" in body:
        body = body["error"]
    return body.get("message", body) if isinstance(body, dict) else body
