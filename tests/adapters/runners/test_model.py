"""The model runner: its transcript is in the store, its tools are a trader's, and a long transcript is compacted."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import TextContent

from backsight.adapters.runners.conversation import history_messages
from backsight.adapters.runners.model import ModelRunner
from backsight.core.agents.request import Exchange
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.settings import Settings
from backsight.surfaces.mcp import answer
from backsight.testing import FakeClock, a_trade_call
from backsight.testing.models import ModelServer, Reply, chat_reply, error_reply
from support import deployed

AGENT: dict[str, Any] = {"deployment": "VolBreakout@main"}


def a_memory(url: str, clock: FakeClock, base_url: str, **settings: Any) -> Memory:
    """A memory with a deployment whose agent is a model at an address."""
    memory = open_memory(settings=Settings(url=url, owner="ana", model_url=base_url), clock=clock)
    deployed(memory)
    memory.configure_deployment(**AGENT, runner="model", model="openai:stand-in", default_prompt="Look.", **settings)
    return memory


def asked(server: ModelServer, number: int) -> str:
    """The messages of a request to the model, as JSON."""
    return json.dumps(server.requests[number]["messages"])


def test_chats_and_heartbeats_share_a_transcript(url: str, clock: FakeClock) -> None:
    with ModelServer(chat_reply("one"), chat_reply("two"), chat_reply("three")) as server:
        with a_memory(url, clock, server.base_url, tools=["none"]) as memory:
            memory.share_session(**AGENT)
            for text in ("first", "second"):
                clock.advance(seconds=1)
                memory.chat_with_agent(**AGENT, text=text, wait_seconds=30.0)
            clock.advance(seconds=1)
            memory.reset_session(**AGENT)
            clock.advance(seconds=1)
            run = memory.run_agent(**AGENT, wait_seconds=30.0).run
        assert (run.status, run.output, run.model) == ("succeeded", "three", "openai:stand-in")
        assert "first" in asked(server, 1)
        assert "one" in asked(server, 1)
        assert "second" not in asked(server, 2)


def tool_reply(name: str, arguments: dict[str, Any]) -> Reply:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return chat_reply(None, tool_calls=[{"id": "1", "type": "function", "function": function}])


def test_a_model_calls_the_tools_of_a_trader(url: str, clock: FakeClock) -> None:
    replies = (tool_reply("list_trades", {}), tool_reply("list_trades", {"limit": 0}), chat_reply("done"))
    with ModelServer(*replies) as server:
        with a_memory(url, clock, server.base_url, tools=["list_trades"]) as memory:
            memory.remember_trade(**a_trade_call(**AGENT))
            run = memory.run_agent(**AGENT, wait_seconds=30.0).run
        assert (run.status, run.output) == ("succeeded", "done")
        assert "XAUUSD" in asked(server, 1)
        assert "out of range" in asked(server, 2)
        assert "list_trades" in str(run.transcript)


def test_a_tool_answers_a_model_as_it_does_over_mcp(url: str, clock: FakeClock) -> None:
    calls: tuple[dict[str, Any], ...] = ({}, {"limit": 40}, {"limit": 0}, {"colour": "red"})
    replies = [tool_reply("list_trades", arguments) for arguments in calls]
    with (
        ModelServer(*replies, chat_reply("done")) as server,
        a_memory(url, clock, server.base_url, tools=["list_trades"]) as memory,
    ):
        for number in range(40):
            clock.advance(seconds=1)
            memory.remember_trade(**a_trade_call(**AGENT, symbol=f"X{number}"))
        assert memory.run_agent(**AGENT, wait_seconds=60.0).run.output == "done"
        contents = [each["content"] for each in server.requests[-1]["messages"] if each["role"] == "tool"]
        over_mcp = [answer(memory, OPERATIONS["list_trades"], arguments).content[0] for arguments in calls]
        assert contents == [each.text for each in over_mcp if isinstance(each, TextContent)]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [(error_reply(401, "bad key"), "API key"), (chat_reply(""), ""), (Reply(body="garbage"), "")],
)
def test_a_model_that_fails_fails_the_run(url: str, clock: FakeClock, reply: Reply, reason: str) -> None:
    with ModelServer(reply) as server, a_memory(url, clock, server.base_url, tools=["none"]) as memory:
        run = memory.run_agent(**AGENT, wait_seconds=60.0).run
        assert run.status == "failed"
        assert reason in str(run.error)


def test_a_long_transcript_is_compacted() -> None:
    history = [Exchange(prompt=f"question {n} " * 50, output=f"answer {n} " * 50, transcript=None) for n in range(80)]
    messages = history_messages(history, most_tokens=2_000)
    text = str(messages)
    assert "Earlier in this conversation, shortened" in text
    assert "answer 79 answer 79" in text
    assert len(text) < 60_000
    assert len(history_messages(history[:2], most_tokens=2_000)) == 4


def test_a_runner_names_itself() -> None:
    runner = ModelRunner(model="openai:x", api_key="secret-key")
    assert (runner.name, runner.keeps_sessions) == ("model", False)
    assert "secret" not in repr(runner)


@pytest.fixture
def local_agent(local_model: str, clock: FakeClock) -> Iterator[Memory]:
    with a_memory("sqlite://", clock, local_model, tools=["none"], timeout_seconds=120) as memory:
        memory.runners = lambda _settings: ModelRunner(model="openai:local", base_url=local_model, max_tokens=40)
        yield memory


@pytest.mark.slow
def test_a_small_model_chats_beats_and_is_reset(local_agent: Memory, clock: FakeClock) -> None:
    memory = local_agent
    memory.share_session(**AGENT)
    for text in ("Say one.", "Say two.", "Say three."):
        clock.advance(seconds=1)
        run = memory.chat_with_agent(**AGENT, text=text, wait_seconds=240.0).run
        assert (run.status, run.error) == ("succeeded", None)
    for _ in range(2):
        clock.advance(seconds=1)
        assert memory.run_agent(**AGENT, heartbeat=True, wait_seconds=240.0).run.status == "succeeded"
    assert memory.session_status(**AGENT).runs_since_reset == 5
    clock.advance(seconds=1)
    assert memory.reset_session(**AGENT).context == "fresh"
    card = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}
    parent = memory.record_run(**AGENT, prompt="p", card_type="trade_decision", result=card).run
    clock.advance(seconds=1)
    child = memory.re_examine(run=parent.id, wait_seconds=240.0).run
    assert child.status in ("failed", "succeeded")
    if child.status == "failed":
        assert "malformed" in str(child.error)
    assert memory.get_run(run=parent.id).run == parent
