"""The model reflector with a server on this machine: its requests, its answers, and every failure."""

import asyncio
import json
import socket
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from backsight.adapters.reflectors.model import ModelReflector
from backsight.core.errors import Unavailable
from backsight.core.reflection.citation_check import ProposedBullet, check_bullets
from backsight.core.reflection.lessons import accept_lessons, note_from_bullets
from backsight.core.reflection.reflector_request import (
    INSTRUCTIONS,
    ReflectorAnswer,
    ReflectorUnavailable,
    write_question,
)
from backsight.core.text.tokens import estimate
from backsight.ports import Reflector
from backsight.testing.models import SILENCE, ModelServer, Reply, bullets_reply, chat_reply, error_reply
from backsight.testing.reflection import a_pattern, a_request

CHOP = a_pattern()
REQUEST = a_request(CHOP)
GOOD = ProposedBullet(slot="regime_fit", text="Trade chop_hivol small: -0.70R over 67 trades", cites=(CHOP.key,))
INVENTED = ProposedBullet(slot="regime_fit", text="chop_hivol loses 99% of the time", cites=(CHOP.key,))
KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def reflector(server: ModelServer, **changes: Any) -> ModelReflector:
    made: dict[str, Any] = {"model": "openai:stand-in", "base_url": server.base_url, "timeout": 20.0}
    return ModelReflector(**made | changes)


def answered(*replies: Reply, **changes: Any) -> ReflectorAnswer:
    with ModelServer(*replies) as server:
        return reflector(server, **changes).reflect(REQUEST)


def test_a_good_answer_is_accepted_with_its_token_counts() -> None:
    answer = answered(bullets_reply(GOOD))
    assert answer.bullets == (GOOD,)
    assert (answer.model, answer.input_tokens, answer.output_tokens) == ("openai:stand-in", 700, 50)
    assert answer.cost_usd is None
    assert answer.seconds > 0.0


def test_a_request_has_the_question_and_the_schema_of_the_answer() -> None:
    with ModelServer(bullets_reply(GOOD)) as server:
        asking: Reflector = reflector(server, max_tokens=900)
        asking.reflect(REQUEST)
    (sent,) = server.requests
    system, user = (message["content"] for message in sent["messages"])
    assert system.startswith(INSTRUCTIONS)
    assert '{"bullets": [{"slot"' in system
    assert user == write_question(REQUEST)
    assert sent["model"] == "stand-in"
    assert sent["max_completion_tokens"] == 900
    assert sent["response_format"]["json_schema"]["schema"]["required"] == ["bullets"]


def test_an_invented_number_is_accepted_and_dropped_by_the_citation_check() -> None:
    answer = answered(bullets_reply(GOOD, INVENTED))
    checked = check_bullets(answer.bullets, patterns=REQUEST.evidence.patterns)
    assert [each.text for each in checked.bullets] == [GOOD.text]
    assert checked.dropped[0].reason == "its number 99 is none of the evidence's"
    assert GOOD.text in accept_lessons(note_from_bullets(checked.bullets), avoid=REQUEST.avoid, count=estimate).text


def test_without_a_pattern_nothing_is_sent() -> None:
    with ModelServer(bullets_reply(GOOD)) as server:
        answer = reflector(server).reflect(a_request())
    assert (answer.bullets, answer.input_tokens, answer.cost_usd) == ((), 0, 0.0)
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "why", "requests"),
    [
        (
            error_reply(429, "slow down", retry_after="7"),
            r"no more requests for now \(429: slow down\); try later.*in 7 s",
            1,
        ),
        (error_reply(500, "oops"), r"failed \(500: oops\); try later", 1),
        (error_reply(503), r"is away \(503: no\); try later", 1),
        (error_reply(401, f"bad key {KEY}"), r"does not take the API key \(401: bad key …\); give a valid one", 1),
        (error_reply(404), r"is not there \(404: no\); check the model's name and the base URL", 1),
        (error_reply(400, "no such schema"), r"did not take the request \(400: no such schema\)", 1),
        (chat_reply('{"bullets": [{"slot": "sizing", "te'), "did not answer with the JSON asked for; try again", 2),
        (chat_reply("I would rather talk about the weather."), "did not answer with the JSON asked for", 2),
        (chat_reply('{"bullets": [{"slot": "mood", "text": "x", "cites": []}]}'), "did not answer with the JSON", 2),
        (chat_reply(""), "did not answer with the JSON asked for", 2),
        (chat_reply(None), "did not answer with the JSON asked for", 2),
        (chat_reply(None, refusal="I cannot help with that"), "refused to answer; use another model", 1),
        (Reply(body='{"choices": []}'), "did not answer with the JSON asked for", 1),
        (Reply(body='{"choices": [{"mess'), "gave no answer that can be read", 1),
        (Reply(body=""), "gave no answer that can be read", 1),
        (Reply(body="<html>", headers={"content-type": "text/html"}), "did not answer with the JSON asked for", 1),
    ],
)
def test_a_model_that_does_not_answer_is_unavailable(reply: Reply, why: str, requests: int) -> None:
    with ModelServer(reply) as server, pytest.raises(Unavailable, match=why) as error:
        reflector(server, api_key=KEY).reflect(REQUEST)
    assert len(server.requests) == requests
    assert error.value.message.startswith("openai:stand-in at http://127.0.0.1")
    assert KEY not in error.value.message
    assert "\n" not in error.value.message


def test_a_slow_model_is_unavailable_in_time() -> None:
    with (
        ModelServer(SILENCE) as server,
        pytest.raises(ReflectorUnavailable, match="did not answer in time; try later") as error,
    ):
        reflector(server, timeout=0.3).reflect(REQUEST)
    assert error.value.input_tokens is None
    assert error.value.seconds >= 0.3


def test_a_model_that_answers_a_byte_at_a_time_times_out() -> None:
    dripping = replace(bullets_reply(GOOD), pause=0.1)
    with ModelServer(dripping) as server, pytest.raises(Unavailable, match="did not answer in time"):
        reflector(server, timeout=0.5).reflect(REQUEST)


def test_a_server_that_does_not_listen_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(Unavailable, match=r"cannot be reached \(Connection error.\); check the base URL"):
            ModelReflector(model="openai:x", base_url=url).reflect(REQUEST)


def test_an_answer_in_another_schema_is_requested_once_more() -> None:
    with ModelServer(chat_reply("let me think"), bullets_reply(GOOD)) as server:
        answer = reflector(server).reflect(REQUEST)
    assert answer.bullets == (GOOD,)
    assert (answer.input_tokens, answer.output_tokens) == (1400, 100)
    assert len(server.requests) == 2


def test_an_invalid_answer_reports_its_tokens() -> None:
    with pytest.raises(ReflectorUnavailable) as error:
        answered(chat_reply("nonsense"))
    assert (error.value.input_tokens, error.value.output_tokens) == (1400, 100)


def test_tokens_that_the_server_did_not_count_are_unknown() -> None:
    arguments = json.dumps({"bullets": []})
    answer = answered(chat_reply(arguments, tokens=None))
    assert (answer.input_tokens, answer.output_tokens) == (None, None)


def test_no_key_of_the_environment_is_sent_to_a_self_hosted_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer(bullets_reply(GOOD)) as server:
        reflector(server).reflect(REQUEST)
        reflector(server, api_key="mine").reflect(REQUEST)
    assert KEY not in str(server.headers)
    assert "mine" in str(server.headers[1])


def test_a_reflector_can_be_called_again_and_from_within_an_event_loop() -> None:
    async def within() -> ReflectorAnswer:
        return asking.reflect(REQUEST)

    with ModelServer(bullets_reply(GOOD)) as server:
        asking = reflector(server)
        assert asking.reflect(REQUEST).bullets == asking.reflect(REQUEST).bullets == asyncio.run(within()).bullets


# Providers by name


def a_response(text: str) -> Reply:
    """A response in the format of OpenAI's server."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "final_result", "arguments": text}
    usage = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    made = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-5", "status": "completed"}
    rest = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    output = [call] if text.startswith("{") else [message]
    return Reply(body=json.dumps({**made, **rest, "output": output, "usage": usage | details}))


def a_message(given: dict[str, Any]) -> Reply:
    """A response in the format of Anthropic's server."""
    content = [{"type": "tool_use", "id": "t", "name": "final_result", "input": given}]
    made = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6", "stop_reason": "tool_use"}
    usage = {"input_tokens": 1000, "output_tokens": 100}
    return Reply(body=json.dumps({**made, "stop_sequence": None, "content": content, "usage": usage}))


BULLETS = {"bullets": [{"slot": GOOD.slot, "text": GOOD.text, "cites": list(GOOD.cites)}]}


@pytest.mark.parametrize(
    ("model", "reply", "variable", "suffix"),
    [
        ("openai:gpt-5", a_response(json.dumps(BULLETS)), "OPENAI_BASE_URL", ""),
        ("anthropic:claude-sonnet-4-6", a_message(BULLETS), "ANTHROPIC_BASE_URL", "/v1"),
    ],
)
def test_a_provider_is_selected_by_name_and_its_price_is_known(
    model: str, reply: Reply, variable: str, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(reply) as server:
        monkeypatch.setenv(variable, server.base_url.removesuffix(suffix))
        answer = ModelReflector(model=model, api_key=KEY).reflect(REQUEST)
    assert answer.bullets == (GOOD,)
    assert (answer.model, answer.input_tokens, answer.output_tokens) == (model, 1000, 100)
    assert answer.cost_usd is None or 0.0 < answer.cost_usd < 1.0
    assert KEY in str(server.headers)


def test_an_overloaded_provider_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(error_reply(529)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url.removesuffix("/v1"))
        with pytest.raises(Unavailable, match=r"is away \(529: no\); try later"):
            ModelReflector(model="anthropic:claude-sonnet-4-6", api_key=KEY).reflect(REQUEST)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
        ("groq:x", r"pydantic-ai-slim\[groq\]"),
        ("nobody:x", "Unknown model"),
        ("gpt-5", "Unknown model"),
    ],
)
def test_a_model_that_is_not_set_up_names_the_missing_setting(model: str, why: str) -> None:
    with pytest.raises(Unavailable, match=why):
        ModelReflector(model=model).reflect(REQUEST)


@pytest.mark.parametrize("model", ["nobody:x", "elevenlabs:x", "openai-codex:x", "gateway/nobody:x"])
def test_a_key_does_not_make_a_provider(model: str) -> None:
    with pytest.raises(Unavailable, match="cannot be used as it is set up"):
        ModelReflector(model=model, api_key=KEY).reflect(REQUEST)


@pytest.mark.parametrize("url", ["", "http://[::1", "http://127.0.0.1:99999/v1", "http://h\x00/"])
def test_an_invalid_address_is_unavailable(url: str) -> None:
    with pytest.raises(Unavailable, match="is not an HTTP address"):
        ModelReflector(model="openai:x", base_url=url).reflect(REQUEST)


def test_a_password_in_an_address_is_not_in_the_message() -> None:
    with pytest.raises(Unavailable, match="give the key separately") as error:
        ModelReflector(model="openai:x", base_url=f"https://ana:{KEY}@example.com").reflect(REQUEST)
    assert KEY not in error.value.message


def test_a_key_is_never_shown() -> None:
    assert KEY not in repr(ModelReflector(model="openai:x", api_key=KEY))


# What it needs


def test_no_provider_library_is_imported_before_a_model_is_called() -> None:
    program = "import sys, backsight.adapters.reflectors.model; print(*{n.partition('.')[0] for n in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & {"pydantic", "pydantic_ai", "openai", "anthropic", "httpx"} == set()


def test_without_the_extra_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "backsight.adapters.reflectors.provider", raising=False)
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    with pytest.raises(Unavailable, match=r"pip install 'backsight\[models\]'"):
        ModelReflector(model="openai:gpt-5").reflect(REQUEST)


# A real model


def outcome(asking: ModelReflector) -> ReflectorAnswer | ReflectorUnavailable:
    """The answer, or the error if the model is unavailable; any other error is raised."""
    try:
        return asking.reflect(REQUEST)
    except ReflectorUnavailable as error:
        return error


@pytest.mark.slow
def test_a_real_model_is_called_and_its_accepted_bullets_cite_the_evidence(local_model: str) -> None:
    asking = ModelReflector(model="openai:smollm2", base_url=local_model, timeout=900.0, max_tokens=150)
    chat_reply = outcome(asking)
    assert (chat_reply.input_tokens or 0) > 300
    assert (chat_reply.output_tokens or 0) > 0
    if isinstance(chat_reply, ReflectorAnswer):
        checked = check_bullets(chat_reply.bullets, patterns=REQUEST.evidence.patterns)
        note = accept_lessons(note_from_bullets(checked.bullets), avoid=REQUEST.avoid, count=estimate)
        assert {key for bullet in note.bullets for key in bullet.evidence} <= {CHOP.key}


@pytest.mark.slow
def test_a_real_model_that_takes_too_long_times_out(local_model: str) -> None:
    with pytest.raises(Unavailable, match="did not answer in time"):
        ModelReflector(model="openai:smollm2", base_url=local_model, timeout=0.2).reflect(REQUEST)
