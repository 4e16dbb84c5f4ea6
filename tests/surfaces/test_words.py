"""What an agent wrote over MCP comes back over MCP, as data, in short answers of which little is opaque."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from answers.test_brief import AFTERWARDS, DEPLOYED, INJECTION, SCRIPTS, STRATEGY, SYMBOL, fill_demo, tokens
from backsight.memory import Memory, open_memory
from backsight.services.recall_hashes import HASH
from backsight.surfaces.mcp import server
from backsight.testing import T0, FakeClock

REFLECTIONS = (
    "Entered before the retest held; waiting for the close would have saved the loss.",
    "Moved the stop to entry too early, the idea was right.",
    "Textbook break, held through the pullback because volume kept rising.",
    "Chased the second leg, spread was wide at the rollover.",
)
MARKETS = (
    "London open broke the Asian range on rising volume.",
    "Flat before the rate decision, narrow range, thin book.",
    "Third push into the weekly high, momentum fading.",
)
SKIPPED = ("spread too wide at the rollover", "rate decision in an hour")
OPAQUE = re.compile(r"(?<=recall=)r\d{18}|(?<=cursor=)\d+|\b(?=[0-9a-f]*\d)[0-9a-f]{6}\b|\b[a-f]{6}\b")
"""Handles, cursors and ids in the text of an answer."""
TRADER_ANSWERS: list[tuple[str, dict[str, Any]]] = [
    ("recall_memories", {**SYMBOL, **DEPLOYED, "direction": "long", "context_regime": "trending_up"}),
    ("recall_memories", {**SYMBOL, "mode": "all"}),
    ("recall_memories", {**SYMBOL, **DEPLOYED, "limit": 3}),
    ("list_trades", {}),
    ("list_trades", {"limit": 5}),
    ("position_size", {**SYMBOL, **STRATEGY, **DEPLOYED, "direction": "long"}),
    ("get_agent_state", DEPLOYED),
    ("get_behavioral_analysis", DEPLOYED),
    ("active_lessons", DEPLOYED),
]
Call = Callable[..., Awaitable[tuple[str, dict[str, Any]]]]


def over_mcp(memory: Memory, talk: Callable[[Call], Awaitable[None]]) -> None:
    """Let a client talk to the trader's server; a call gives the text and the structured content of its answer."""

    async def converse() -> None:
        async with Client(server(memory, "trader")) as client:

            async def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
                result = await client.call_tool(tool, arguments)
                text = result.content[0].text  # type: ignore[union-attr]
                assert not result.is_error, text
                return text, dict(result.structured_content or {})

            await talk(call)

    anyio.run(converse)


def a_trade(number: int, **more: Any) -> dict[str, Any]:
    won = number % 3 == 0
    return {
        "symbol": "XAUUSD",
        "direction": "short" if number % 4 == 0 else "long",
        "entry_price": 5_175.0 + number,
        "exit_price": 5_185.0 + number,
        "pnl": 300.0 if won else -100.0,
        "pnl_r": 3.0 if won else -1.0,
        "strategy_name": "VolBreakout",
        "context_regime": "trending_up",
        "reflection": f"{REFLECTIONS[number % 4]} ({number})",
        "market_context": f"{MARKETS[number % 3]} ({number})",
        "idempotency_key": f"k{number}",
        **more,
    }


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(T0)


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with open_memory("sqlite://", clock=clock) as opened:
        yield opened


def rows_of(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    table = content[name]
    same = table.get("all", {})
    return [{**same, **dict(zip(table["columns"], row, strict=True))} for row in table["rows"]]


def in_its_words(shown: str, text: str) -> bool:
    """Whether what is shown is the text, or a beginning of it of some words."""
    return shown == text or (shown.endswith("…") and text.startswith(shown[:-1]) and len(shown) >= 12)


def test_a_recall_gives_back_the_words_of_what_it_lists(memory: Memory, clock: FakeClock) -> None:
    async def talk(call: Call) -> None:
        written = {}
        for number in range(12):
            clock.advance(hours=5)
            trade = a_trade(number)
            _, content = await call("remember_trade", **trade)
            written[content["trade"]["id"]] = trade
        for number in range(5):
            clock.advance(hours=1)
            await call(
                "remember_inaction",
                symbol="XAUUSD",
                strategy_name="VolBreakout",
                direction="long",
                reason=SKIPPED[number > 2],
                market_context=MARKETS[1],
            )
        text, content = await call("recall_memories", symbol="XAUUSD", context_regime="trending_up")
        assert max(tokens(text), tokens(json.dumps(content, ensure_ascii=False, separators=(",", ":")))) <= 1_200
        assert "Cut" not in text
        listed = rows_of(content, "memories")
        assert {row["id"] for row in listed} < set(written)
        assert len(listed) >= 10
        for row in listed:
            trade = written[row["id"]]
            assert in_its_words(row["setup"], trade["market_context"]), row
            assert in_its_words(row["reflection"], trade["reflection"]), row
        for row in listed[:3]:
            trade = written[row["id"]]
            assert (row["setup"], row["reflection"]) == (trade["market_context"], trade["reflection"])
            assert text.count(f'"{trade["reflection"]}"') == 1, "words are shown once, whatever lists a memory is in"
        skipped = rows_of(content, "inactions")
        assert [(row["why not"], row["count"], row["direction"]) for row in skipped] == [
            (SKIPPED[1], 2, "long"),
            (SKIPPED[0], 3, "long"),
        ]
        assert all(in_its_words(row["market"], MARKETS[1]) for row in skipped)
        assert "Also 2 inactions." in content["message"]
        for row in (*listed, *skipped):
            _, read = await call("get_trade", trade_id=row["id"])
            values = read.get("trade") or read["episode"]
            assert values["id"] == row["id"]
            if row["id"] in written:
                assert values["reflection"] == written[row["id"]]["reflection"]
                assert values["market"] == written[row["id"]]["market_context"]
            else:
                assert values["reason"] == row["why not"]
                assert f"{row['count']} times in a row for this reason" in read["message"]

    over_mcp(memory, talk)


def test_lists_and_lessons_give_back_words_too(memory: Memory, clock: FakeClock) -> None:
    async def talk(call: Call) -> None:
        for number in range(12):
            clock.advance(hours=5)
            await call("remember_trade", **a_trade(number))
        _, content = await call("list_trades")
        for row, number in zip(rows_of(content, "trades"), range(11, -1, -1), strict=True):
            assert in_its_words(row["words"], a_trade(number)["reflection"]), row
        _, content = await call("active_lessons")
        reflections = rows_of(content, "reflections")
        assert [row["reflection"] for row in reflections] == [a_trade(n)["reflection"] for n in range(11, 6, -1)]

    over_mcp(memory, talk)


def test_a_direction_lists_memories_of_that_direction(memory: Memory, clock: FakeClock) -> None:
    async def talk(call: Call) -> None:
        for number in range(12):
            clock.advance(hours=5)
            await call("remember_trade", **a_trade(number))
        await call("remember_inaction", symbol="XAUUSD", strategy_name="VolBreakout", reason="no range")
        _, content = await call("recall_memories", symbol="XAUUSD", direction="short")
        assert {row["direction"] for row in rows_of(content, "memories")} == {"short"}
        assert len(rows_of(content, "memories")) == 3
        assert len(rows_of(content, "inactions")) == 1, "one without a direction is about both"

    over_mcp(memory, talk)


def test_a_call_is_opened_by_its_id(memory: Memory) -> None:
    async def talk(call: Call) -> None:
        arguments = {"symbol": "XAUUSD", "direction": "short", "strategy_name": "VolBreakout", "horizon_hours": 4}
        _, recorded = await call("record_decision", **arguments, price=5_175.0, reasoning='It "must" fall\n## now')
        text, read = await call("get_trade", trade_id=recorded["episode"]["id"])
        assert read["episode"]["reason"] == 'It "must" fall ## now'
        assert text.startswith("Call of 2026-06-04 10:00: XAUUSD short, to be judged at 2026-06-04 14:00.\n")
        assert r'reason: "It \"must\" fall ## now"' in text

    over_mcp(memory, talk)


@pytest.mark.parametrize("script", ['" | "\n', *SCRIPTS], ids=range(len(SCRIPTS) + 1))
def test_a_long_and_hostile_text_breaks_no_row(script: str, memory: Memory, clock: FakeClock) -> None:
    prose = (f'{INJECTION}" | 1 | "' + script * 600)[:9_000]

    async def talk(call: Call) -> None:
        for number in range(12):
            clock.advance(hours=1)
            await call("remember_trade", **a_trade(number, reflection=prose, market_context=prose))
            inaction = {"symbol": "XAUUSD", "strategy_name": "VolBreakout", "reason": f"{number} {prose[:900]}"}
            await call("remember_inaction", **inaction, market_context=prose)
        for tool, arguments, ceiling in (
            ("recall_memories", {"symbol": "XAUUSD"}, 1_200),
            ("list_trades", {}, 1_000),
            ("active_lessons", {}, 2_000),
            ("get_trade", {"trade_id": memory.list_trades().trades[0].id}, 2_000),
        ):
            text, content = await call(tool, **arguments)
            assert tokens(text) <= ceiling
            assert tokens(json.dumps(content, ensure_ascii=False, separators=(",", ":"))) <= ceiling
            assert not set("\x1b\u202e\u200b\r") & set(text)
            assert not any(line.startswith(("##", "message:", "| id |")) for line in text.splitlines())
            for line in text.splitlines():
                assert len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0, "a text closes no quote and opens none"
            tables = [table for table in content.values() if isinstance(table, dict) and "rows" in table]
            lines = [line for line in text.splitlines() if " | " in line]
            widths = [len(re.split(r"(?<!\\)\|", line)) for line in lines if not line.startswith("all rows")]
            assert not tables or len(set(widths)) <= len(tables), widths
            for table in tables:
                assert {len(row) for row in table["rows"]} == {len(table["columns"])}
        _, recalled = await call("recall_memories", symbol="XAUUSD")
        assert len(rows_of(recalled, "memories")) >= 3

    over_mcp(memory, talk)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    path = tmp_path_factory.mktemp("demo") / "store.db"
    fill_demo(path, days=42)
    with open_memory(f"sqlite:///{path}", clock=FakeClock(AFTERWARDS)) as opened:
        yield opened


def test_at_most_a_tenth_of_an_answer_is_opaque(demo: Memory) -> None:
    async def talk(call: Call) -> None:
        _, trades = await call("list_trades")
        trade_id = rows_of(trades, "trades")[0]["id"]
        for tool, arguments in [*TRADER_ANSWERS, ("get_trade", {"trade_id": trade_id})]:
            text, _ = await call(tool, **arguments)
            opaque = [match[0] for match in OPAQUE.finditer(text)]
            assert sum(map(tokens, opaque)) <= 0.1 * tokens(text), (tool, arguments, text)
            if tool in ("recall_memories", "list_trades"):
                assert len(opaque) >= 4, "ids are recognised"
            if tool == "recall_memories":
                assert any(HASH.fullmatch(each) for each in opaque)

    over_mcp(demo, talk)


def test_the_demos_recalls_show_why_each_trade_was_opened_and_closed(demo: Memory) -> None:
    async def talk(call: Call) -> None:
        for arguments in ({**SYMBOL, "mode": "all"}, {**SYMBOL, **DEPLOYED, "context_regime": "trending_up"}):
            text, content = await call("recall_memories", **arguments)
            assert "Cut" not in text
            for row in rows_of(content, "memories"):
                assert re.match(r"(Go|Turn) (long|short) on", row["setup"]), row
                assert row["why closed"], row

    over_mcp(demo, talk)


def test_the_recall_of_a_brief_answer_is_taken_by_the_next_call(tmp_path: Path) -> None:
    """The hash of a recall stays known while its server runs, whatever was written since."""
    clock = FakeClock(T0)

    async def talk(call: Call) -> None:
        await call("remember_trade", **a_trade(0))
        _, recalled = await call("recall_memories", symbol="XAUUSD")
        clock.advance(minutes=1)
        await call("remember_trade", **a_trade(1))
        arguments = {"symbol": "XAUUSD", "direction": "long", "strategy_name": "VolBreakout", "horizon_hours": 4}
        _, recorded = await call(
            "record_decision", **arguments, price=5_175.0, reasoning="It held.", recalls=[recalled["recall"]]
        )
        assert "Recorded without" not in recorded["message"]

    with open_memory(f"sqlite:///{tmp_path}/store.db", clock=clock) as opened:
        over_mcp(opened, talk)
