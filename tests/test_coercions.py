"""A call with one meaning is carried out however sloppily it is written; one with two meanings, or none, is refused."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args
from uuid import UUID

import anyio
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from mcp import Client

from backsight import notes_of
from backsight.coercions import MOST_NOTES, WORDS, CallNotes, choice_of, read_value
from backsight.core.errors import BacksightError, Invalid
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.surfaces.main import program
from backsight.surfaces.mcp import server
from backsight.surfaces.rest import application, path_of
from backsight.testing import T0, FakeClock, a_trade_call

TRADE, RECALL, SIZE, LIST = "remember_trade", "recall_memories", "position_size", "list_trades"
DAY = "2026-01-01"
MIDNIGHT = "'2026-01-01T00:00:00Z'"

SLOPPY: list[tuple[str, dict[str, Any], str]] = [
    # closed choices: case, blanks, separators, common words
    (TRADE, {"direction": "LONG"}, "direction: 'LONG' read as 'long'"),
    (TRADE, {"direction": "Buy"}, "direction: 'Buy' read as 'long'"),
    (TRADE, {"direction": "sell"}, "direction: 'sell' read as 'short'"),
    (TRADE, {"direction": " bullish "}, "direction: ' bullish ' read as 'long'"),
    (TRADE, {"context_regime": "Trending_Up"}, "context_regime: 'Trending_Up' read as 'trending_up'"),
    (TRADE, {"context_regime": "TRENDING UP"}, "context_regime: 'TRENDING UP' read as 'trending_up'"),
    (TRADE, {"context_regime": "bull"}, "context_regime: 'bull' read as 'trending_up'"),
    (TRADE, {"context_regime": "sideways"}, "context_regime: 'sideways' read as 'ranging'"),
    (TRADE, {"mode": "LIVE"}, "mode: 'LIVE' read as 'live'"),
    (TRADE, {"mode": "paper trading"}, "mode: 'paper trading' read as 'paper'"),
    (TRADE, {"mode": "real"}, "mode: 'real' read as 'live'"),
    (RECALL, {"mode": "All"}, "mode: 'All' read as 'all'"),
    (RECALL, {"direction": "SHORT"}, "direction: 'SHORT' read as 'short'"),
    (LIST, {"order": "Latest"}, "order: 'Latest' read as 'newest'"),
    (LIST, {"result": "losers"}, "result: 'losers' read as 'lost'"),
    (TRADE, {"context": {"session": "New York"}}, "context.session: 'New York' read as 'newyork'"),
    (TRADE, {"context": {"volatility_regime": "HIGH"}}, "context.volatility_regime: 'HIGH' read as 'high'"),
    # numbers as text, whole floats, percent
    (RECALL, {"limit": "5"}, "limit: '5' read as 5"),
    (RECALL, {"limit": 5.0}, "limit: 5.0 read as 5"),
    (RECALL, {"limit": "5.0"}, "limit: '5.0' read as 5"),
    (TRADE, {"entry_price": "5175"}, "entry_price: '5175' read as 5175"),
    (TRADE, {"entry_price": " 5175.5 "}, "entry_price: ' 5175.5 ' read as 5175.5"),
    (TRADE, {"entry_price": "5,175.50"}, "entry_price: '5,175.50' read as 5175.5"),
    (TRADE, {"pnl": "+1.175e3"}, "pnl: '+1.175e3' read as 1175.0"),
    (TRADE, {"pnl": "\N{MINUS SIGN}5", "pnl_r": -0.1}, "pnl: '\N{MINUS SIGN}5' read as -5"),
    (TRADE, {"confidence": "80%"}, "confidence: '80%' read as 0.8"),
    (TRADE, {"context": {"hour_utc": "7"}}, "context.hour_utc: '7' read as 7"),
    (RECALL, {"context": {"atr_d1": "50"}}, "context.atr_d1: '50' read as 50"),
    (RECALL, {"period_weight": "yes"}, "period_weight: 'yes' read as True"),
    # JSON as text, a single value for a list
    (TRADE, {"context": '{"hour_utc": 7}'}, "context: '{\"hour_utc\": 7}' read as an object"),
    (TRADE, {"tags": '["london", "news"]'}, "tags: '[\"london\", \"news\"]' read as ['london', 'news']"),
    (TRADE, {"tags": "london"}, "tags: 'london' read as ['london']"),
    (RECALL, {"memory_types": "episodic"}, "memory_types: 'episodic' read as ['episodic']"),
    (
        RECALL,
        {"memory_types": "Episodic, beliefs"},
        "memory_types: 'Episodic, beliefs' read as ['episodic', 'semantic']",
    ),
    (RECALL, {"memory_types": ["EPISODIC"]}, "memory_types.0: 'EPISODIC' read as 'episodic'"),
    # left out
    (TRADE, {"pnl_r": ""}, "pnl_r: '' read as left out"),
    (TRADE, {"context_regime": " "}, "context_regime: ' ' read as left out"),
    (TRADE, {"stop_price": "null"}, "stop_price: 'null' read as left out"),
    (TRADE, {"context": ""}, "context: '' read as left out"),
    (TRADE, {"tags": ""}, "tags: '' read as left out"),
    (RECALL, {"strategy_name": ""}, "strategy_name: '' read as left out"),
    (RECALL, {"as_of": "None"}, "as_of: 'None' read as left out"),
    # instants
    (RECALL, {"since": DAY}, f"since: '{DAY}' read as {MIDNIGHT}"),
    (TRADE, {"opened_at": DAY}, f"opened_at: '{DAY}' read as {MIDNIGHT}"),
    (LIST, {"until": f"{DAY} 00:00:00 UTC"}, f"until: '{DAY} 00:00:00 UTC' read as '{DAY} 00:00:00Z'"),
    # names
    (TRADE, {"symbol": " XAUUSD "}, "symbol: ' XAUUSD ' read as 'XAUUSD'"),
    (TRADE, {"strategy_name": "VolBreakout\n"}, r"strategy_name: 'VolBreakout\n' read as 'VolBreakout'"),
    (TRADE, {"position_key": 4711}, "position_key: 4711 read as '4711'"),
    (TRADE, {"stopPrice": 5100.0}, "stop_price: 'stopPrice' read as the name 'stop_price'"),
    (RECALL, {"Limit": 3}, "limit: 'Limit' read as the name 'limit'"),
]
"""Calls as models write them: the operation, the arguments that are written sloppily, and the note on them."""

SENSELESS: list[tuple[str, dict[str, Any], str]] = [
    (TRADE, {"direction": "both"}, "direction: 'both' is not known"),
    (TRADE, {"direction": 1}, "direction: 1 is not known"),
    (TRADE, {"context_regime": "trending"}, "context_regime: 'trending' is not known"),
    (TRADE, {"context_regime": "choppy"}, "context_regime: 'choppy' is not known"),
    (TRADE, {"pnl": "abc"}, "pnl: 'abc' is text; give a number"),
    (TRADE, {"pnl": "NaN"}, "pnl: 'NaN' is text; give a number"),
    (TRADE, {"pnl": "1,234"}, "pnl: '1,234' is text; give a number"),
    (TRADE, {"pnl": "$5"}, "pnl: '$5' is text; give a number"),
    (TRADE, {"pnl": ""}, "pnl: '' is text; give a number"),
    (TRADE, {"pnl": True}, "pnl: True is true or false; give a number"),
    (TRADE, {"pnl": [5]}, "pnl: this is a list; give a number"),
    (TRADE, {"size": "5%"}, "size: '5%' is text; give a number"),
    (RECALL, {"limit": "5.5"}, "limit: 5.5 is a number; give a whole number"),
    (RECALL, {"limit": True}, "limit: True is true or false; give a whole number"),
    (TRADE, {"closed_at": "2026-01-01T10:00:00"}, "closed_at: 2026-01-01T10:00:00 has no time zone"),
    (TRADE, {"closed_at": "01/02/2026"}, "closed_at: '01/02/2026' is not an ISO 8601 time"),
    (TRADE, {"closed_at": 1767225600}, "closed_at: 1767225600 is not a time"),
    (TRADE, {"tags": "london, news"}, "tags: 'london, news' is text; give a list"),
    (TRADE, {"tags": "[london"}, "tags: '[london' is text; give a list"),
    (TRADE, {"context": '{"hour_utc": NaN}'}, "context: '{\"hour_utc\": NaN}' is text; give an object"),
    (TRADE, {"context": "London"}, "context: 'London' is text; give an object"),
    (TRADE, {"symbol": ""}, "symbol: is empty"),
    (TRADE, {"symbol": "XAU\0USD"}, "symbol: contains a NUL character"),
    (TRADE, {"pnl_R": 3.0, "pnl_r": 3.0}, "pnl_R: unknown argument; did you mean 'pnl_r'?"),
]


def call_of(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    return a_trade_call(**changes) if name == TRADE else {"symbol": "XAUUSD"} | changes


def tool_answers(memory: Memory, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The answers to a real client of the trader's tools."""

    async def talk() -> list[Any]:
        async with Client(server(memory, "trader")) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(talk)


@pytest.mark.parametrize(("name", "changes", "note"), SLOPPY, ids=[note[:50] for _, _, note in SLOPPY])
def test_a_sloppy_call_with_one_meaning_is_carried_out_and_says_so(
    memory: Memory, name: str, changes: dict[str, Any], note: str
) -> None:
    answer = memory.run(OPERATIONS[name], call_of(name, changes))
    assert notes_of(answer)[0] == note
    assert OPERATIONS[name].as_json(answer)["call_notes"][0] == note


@pytest.mark.parametrize(("name", "changes", "message"), SENSELESS, ids=[text[:50] for _, _, text in SENSELESS])
def test_a_senseless_call_is_refused_and_nothing_is_written(
    memory: Memory, name: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BacksightError) as caught:
        memory.run(OPERATIONS[name], call_of(name, changes))
    assert caught.value.message.startswith(message)
    assert memory.verify_audit().rows == 0


def test_a_real_client_of_mcp_gets_the_same_answers() -> None:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        answers = tool_answers(memory, [(name, call_of(name, changes)) for name, changes, _ in SLOPPY])
        for (name, changes, note), answer in zip(SLOPPY, answers, strict=True):
            assert not answer.is_error, (name, changes, answer.content[0].text)
            assert note in answer.structured_content["notes"][0]
            assert answer.content[0].text.split("\n")[1] == answer.structured_content["notes"][0]
        wrong = tool_answers(memory, [(name, call_of(name, changes)) for name, changes, _ in SENSELESS])
        assert all(answer.is_error for answer in wrong)


def test_an_exact_call_has_no_notes_and_its_values_stay() -> None:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        answer = memory.remember_trade(**a_trade_call(market_context=" as it is ", reflection=""))
        assert notes_of(answer) == ()
        assert type(answer) is OPERATIONS[TRADE].returns
        assert "call_notes" not in OPERATIONS[TRADE].as_json(answer)
        assert OPERATIONS[TRADE].check(a_trade_call(market_context=" as it is "))["market_context"] == " as it is "


def test_a_sloppy_call_is_the_same_request_as_the_exact_one(memory: Memory) -> None:
    sloppy = a_trade_call(direction="BUY", pnl="1,175.0", closed_at="2026-06-04", idempotency_key=" k ")
    first = memory.run(OPERATIONS[TRADE], sloppy)
    exact = a_trade_call(closed_at=datetime(2026, 6, 4, tzinfo=UTC), idempotency_key="k")
    assert memory.remember_trade(**exact).trade.id == first.trade.id
    assert memory.list_trades().total in (None, 1)


class Side(Enum):
    LONG = 1
    BUY = "buy"


class Hour(IntEnum):
    OPEN = 7


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"direction": Side.LONG}, "direction", "long"),
        ({"direction": Side.BUY}, "direction", "long"),
        ({"direction": np.str_("SHORT")}, "direction", "short"),
        ({"pnl": np.int64(1175)}, "pnl", 1175.0),
        ({"pnl": np.float32(1175)}, "pnl", 1175.0),
        ({"pnl": np.array(1175.0)}, "pnl", 1175.0),
        ({"pnl": Decimal("1175.0")}, "pnl", 1175.0),
        ({"pnl": Fraction(2350, 2)}, "pnl", 1175.0),
        ({"context": {"hour_utc": Hour.OPEN}}, "context", 7),
        ({"context": {"hour_utc": np.int64(7)}}, "context", 7),
        ({"closed_at": date(2026, 6, 4)}, "closed_at", datetime(2026, 6, 4, tzinfo=UTC)),
        (
            {"closed_at": pd.Timestamp("2026-06-04 02:00", tz="Europe/Berlin")},
            "closed_at",
            datetime(2026, 6, 4, tzinfo=UTC),
        ),
        ({"tags": np.array(["london"])}, "tags", ["london"]),
        ({"position_key": UUID(int=7)}, "position_key", str(UUID(int=7))),
    ],
)
def test_values_of_python_are_read_by_their_kind(changes: dict[str, Any], name: str, value: Any) -> None:
    checked = OPERATIONS[TRADE].check(a_trade_call(**changes))
    read = checked["context"].hour_utc if name == "context" else checked[name]
    assert read == value
    assert type(read) in (type(value), float)


def test_a_whole_number_of_numpy_is_a_limit_and_a_flag_of_numpy_is_a_flag() -> None:
    assert OPERATIONS[RECALL].check({"symbol": "X", "limit": np.int64(5)}).notes == ("limit: np.int64(5) read as 5",)
    checked = OPERATIONS["doctor"].check({"repair": np.True_})
    assert checked["repair"] is True
    assert [OPERATIONS["doctor"].check({"repair": text})["repair"] for text in ("Yes", "false", 1, "0")] == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"pnl": np.float64("nan")},
        {"pnl": np.True_},
        {"pnl": Decimal("Infinity")},
        {"closed_at": pd.NaT},
        {"closed_at": pd.Timestamp("2026-06-04")},
        {"closed_at": np.datetime64("2026-06-04T10:00")},
        {"direction": Hour.OPEN},
    ],
)
def test_senseless_values_of_python_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        OPERATIONS[TRADE].check(a_trade_call(**changes))


def test_a_path_is_a_file_argument() -> None:
    checked = OPERATIONS["backup"].check({"path": Path("a.db")})
    assert (checked["path"], checked.notes[0][:6]) == ("a.db", "path: ")


def test_objects_are_read_at_any_depth() -> None:
    position = {"position_key": "k", "symbol": "BTC ", "direction": "BUY", "size": "1.5", "mark": "100"}
    portfolio = {"at": "2026-06-04", "equity": "1,000.0", "cash": 500, "positions": position}
    snapshot = {"portfolio": portfolio, "marks": {"BTC": "100"}}
    checked = OPERATIONS["open_tick"].check({"deployment": "d", "at": T0, "before": snapshot})
    (read,) = checked["before"].portfolio.positions
    assert (read.symbol, read.direction, read.size) == ("BTC", "long", 1.5)
    assert checked["before"].marks == {"BTC": 100.0}
    assert "before.portfolio.equity: '1,000.0' read as 1000.0" in checked.notes


def test_a_misspelt_field_of_an_object_is_named_with_its_remedy() -> None:
    position = {"position_key": "k", "symbol": "BTC", "side": "long", "size": 1.0, "mark": 100.0}
    snapshot = {"portfolio": {"at": T0, "equity": 1.0, "cash": 1.0, "positions": [position]}, "marks": {}}
    expected = r"before\.portfolio\.positions\.0\.side: unknown argument; did you mean 'direction'\?"
    with pytest.raises(Invalid, match=expected):
        OPERATIONS["open_tick"].check({"deployment": "d", "at": T0, "before": snapshot})


@pytest.mark.parametrize(
    ("word", "argument"),
    [
        ("quantity", "size"),
        ("qty", "size"),
        ("side", "direction"),
        ("ticker", "symbol"),
        ("stop_loss", "stop_price"),
        ("profit", "pnl"),
        ("strategy", "strategy_name"),
        ("regime", "context_regime"),
        ("notes", "reflection"),
        ("exit", "exit_price"),
        ("commission", "fees"),
        ("balance", "equity"),
    ],
)
def test_a_common_word_for_an_argument_names_it(word: str, argument: str) -> None:
    with pytest.raises(Invalid, match=f"^{word}: unknown argument; did you mean '{argument}'"):
        OPERATIONS[TRADE].check(a_trade_call(**{word: 1.0}))


def test_an_error_says_which_tools_the_caller_does_not_have() -> None:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        call = a_trade_call(deployment="nothing")
        (refused,) = tool_answers(memory, [(TRADE, call)])
        text = refused.content[0].text
        assert "get_my_deployments" not in text or "is not one of your tools: ask the owner" in text
        (tool,) = [tool for tool in memory.agent_tools(None) if tool.name == TRADE]
        assert tool.call(call) == text


def test_the_notes_are_the_same_on_rest_and_the_command_line(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    note = f"since: '{DAY}' read as {MIDNIGHT}"
    with open_memory(store, clock=FakeClock(T0)) as memory:
        memory.remember_trade(**a_trade_call())
        with TestClient(application(memory)) as client:
            path = path_of(OPERATIONS[LIST])
            posted = client.post(path, json={"since": DAY, "limit": 5.0}).json()
            assert posted["call_notes"] == [note, "limit: 5.0 read as 5"]
            assert client.get(path, params={"since": DAY}).json()["call_notes"] == [note]
            brief = client.post(path, params={"detail": "brief"}, json={"since": DAY}).text
            assert brief.split("\n")[1] == f"{note}."
            schemas = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
            assert "call_notes" in schemas["TradePage"]["properties"]
            assert "call_notes" not in schemas["TradePage"]["required"]
    ran = CliRunner().invoke(program, ["--url", store, "trades", "list", "--since", DAY])
    assert note in ran.stdout
    ran = CliRunner().invoke(program, ["--url", store, "recall", "XAUUSD", "--direction", "LONG", "--json"])
    assert "\"direction: 'LONG' read as 'long'\"" in ran.stdout


def test_many_notes_are_counted() -> None:
    notes = CallNotes()
    read_value([" a"] * 30, list[Direction], "x", notes)
    for number in range(MOST_NOTES + 5):
        notes.add("limit", str(number), str(number))
    assert len(notes.shown()) == MOST_NOTES + 1
    assert notes.shown()[-1] == "and 5 more values"


def test_every_word_means_one_label_of_its_choice() -> None:
    for choice, words in WORDS.items():
        for word, label in words.items():
            assert label in get_args(choice)
            assert choice_of(word.upper(), choice) == label
            assert word not in get_args(choice)


def test_labels_that_differ_in_case_or_separators_only_are_not_guessed() -> None:
    twins = Literal["a_b", "ab", "c"]
    assert (choice_of("A-B", twins), choice_of("C", twins), choice_of("Bear", Regime)) == ("A-B", "c", "trending_down")


def test_a_time_of_another_zone_keeps_its_instant() -> None:
    at = datetime(2026, 6, 4, 12, tzinfo=timezone(timedelta(hours=2)))
    assert OPERATIONS[TRADE].check(a_trade_call(closed_at=at))["closed_at"] == datetime(2026, 6, 4, 10, tzinfo=UTC)
