"""Bad input is refused in one line that names the field and the remedy, and nothing is written."""

import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight import ContextVector
from backsight.core.errors import BacksightError, Invalid
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.testing import T0, FakeClock, a_trade_call

DEEP: Any = json.loads("[" * 500 + "]" * 500)

CASES: list[tuple[dict[str, Any], str]] = [
    ({"pnl": math.nan}, "pnl: nan is not a finite number; give one, or leave it out"),
    ({"entry_price": math.inf}, "entry_price: inf is not a finite number"),
    ({"exit_price": -math.inf}, "exit_price: -inf is not a finite number"),
    ({"pnl": 10**400}, f"pnl: 1{'0' * 38}… is too large; give a number"),
    ({"pnl": "much"}, "pnl: 'much' is text; give a number"),
    ({"pnl": "nan"}, "pnl: 'nan' is text; give a number"),
    ({"pnl": "Infinity"}, "pnl: 'Infinity' is text; give a number"),
    ({"pnl": "1e400"}, "pnl: inf is not a finite number"),
    ({"pnl": "1,234"}, "pnl: '1,234' is text; give a number"),
    ({"pnl": np.float64("nan")}, "pnl: np.float64(nan) is not a finite number"),
    ({"pnl": np.True_}, "pnl: True is true or false; give a number"),
    ({"pnl": Decimal("NaN")}, "pnl: nan is not a finite number; give one"),
    ({"confidence": "101%"}, "confidence: 1.01 is out of range; give 1 or less"),
    ({"pnl": True}, "pnl: True is true or false; give a number"),
    ({"pnl": None}, "pnl: None is null; give a number"),
    ({"closed_at": "2026-06-04T09:00:00"}, "closed_at: 2026-06-04T09:00:00 has no time zone; add one"),
    ({"closed_at": T0.replace(tzinfo=None)}, "closed_at: 2026-06-04T10:00:00 has no time zone; add one"),
    ({"closed_at": 1780567200}, "closed_at: 1780567200 is not a time; give an instant like"),
    ({"closed_at": "0001-01-01T00:00:00+14:00"}, "closed_at: 0001-01-01T00:00:00+14:00 is out of range"),
    ({"closed_at": "2026-06-05T10:00:00Z"}, "closed_at: 2026-06-05T10:00:00.000000Z is in the future"),
    (
        {"opened_at": "2026-06-04T09:30:00Z", "closed_at": "2026-06-04T09:00:00Z"},
        "opened_at: 2026-06-04T09:30:00.000000Z is after the close; give a time before the close",
    ),
    ({"direction": "lnog"}, "direction: 'lnog' is not known; did you mean 'long'? Known: long, short"),
    ({"direction": "both"}, "direction: 'both' is not known; known: long, short"),
    ({"direction": True}, "direction: True is not known; known: long, short"),
    ({"context_regime": "trending"}, "context_regime: 'trending' is not known; did you mean 'trending_up'?"),
    ({"context": {"session": "new yrok"}}, "context.session: 'new yrok' is not known; did you mean 'newyork'?"),
    (
        {"context": {"volatility_regime": "hgih"}},
        "context.volatility_regime: 'hgih' is not known; did you mean 'high'?",
    ),
    ({"context": {"drawdown_pct": 15}}, "context.drawdown_pct: 15 is out of range; give 1 or less"),
    ({"context": {"hour_utc": 24}}, "context.hour_utc: 24 is out of range; give 23 or less"),
    ({"context": {"hour_utc": 7.5}}, "context.hour_utc: 7.5 is a number; give a whole number"),
    ({"context": {"atr_h1": -1.0}}, "context.atr_h1: -1.0 is out of range; give 0 or more"),
    ({"context": {"rgime": "ranging"}}, "context.rgime: unknown argument; did you mean 'regime'?"),
    ({"context": ContextVector(price=math.nan)}, "context.price: nan is not a finite number"),
    ({"context": {"regime": "ranging"}}, "context_regime: 'trending_up' contradicts context.regime 'ranging'"),
    ({"context": {"symbol": "EURUSD"}}, "symbol: 'XAUUSD' contradicts context.symbol 'EURUSD'; give one of them"),
    ({"context": DEEP}, "context: this is a list; give an object with named fields"),
    ({"context": {"price": DEEP}}, "context.price: this is a list; give a number"),
    ({"confidence": 1.01}, "confidence: 1.01 is out of range; give 1 or less"),
    ({"confidence": -0.1}, "confidence: -0.1 is out of range; give 0 or more"),
    ({"size": -1.0}, "size: -1.0 is out of range; give a value above 0"),
    ({"size": 0.0}, "size: 0.0 is out of range; give a value above 0"),
    ({"risk": 0}, "risk: 0 is out of range; give a value above 0"),
    ({"pnl": -1175.0}, "pnl_r: 3.0 and pnl -1175.0 have different signs; both are net"),
    ({"pnl": 0.0}, "pnl_r: 3.0 and pnl 0.0 have different signs"),
    ({"risk": 100.0}, "pnl_r: 3.0 is not pnl / risk = 11.75; give either pnl_r or risk"),
    ({"risk": 1e-320, "pnl_r": None}, "pnl: too large or too small beside the other numbers"),
    ({"size": 1e308, "stop_price": -1e308, "pnl_r": None}, "stop_price: too large or too small beside the other"),
    ({"symbol": ""}, "symbol: is empty; give some text"),
    ({"symbol": "XAU\0USD"}, "symbol: contains a NUL character; remove it"),
    ({"symbol": " "}, "symbol: is empty; give some text"),
    ({"symbol": "XAU\nUSD"}, "symbol: has spaces around it or control characters; give one clean line"),
    ({"symbol": "X" * 65}, "symbol: is longer than 64 characters; shorten it"),
    ({"symbol": "\ud800"}, "symbol: contains half a surrogate pair; give valid Unicode"),
    ({"market_context": "x" * 10_001}, "market_context: is longer than 10000 characters; shorten it"),
    ({"reflection": "a\0b"}, "reflection: contains a NUL character; remove it"),
    ({"reflection": 5}, "reflection: 5 is a number; give text"),
    ({"tags": ["x"] * 33}, "tags: has more than 32 items; give fewer"),
    ({"tags": "london, news"}, "tags: 'london, news' is text; give a list"),
    ({"tags": 5}, "tags: 5 is a number; give a list"),
    ({"tags": ["a\nb"]}, "tags.0: has spaces around it or control characters; give one clean line"),
    ({"pnl_rr": 3.0}, "pnl_rr: unknown argument; did you mean 'pnl_r'?"),
    ({"zzz": 3.0}, "zzz: unknown argument; known: symbol, direction,"),
    ({"deployment": "nothing"}, "deployment: no deployment 'nothing'; get_my_deployments lists them"),
]


@pytest.mark.parametrize(("wrong", "expected"), CASES, ids=[str(expected)[:40] for _, expected in CASES])
def test_a_bad_trade_is_refused_by_name_and_nothing_is_written(
    memory: Memory, wrong: dict[str, Any], expected: str
) -> None:
    with pytest.raises(BacksightError) as caught:
        memory.remember_trade(**a_trade_call(**wrong))
    message = str(caught.value)
    assert message.startswith(expected)
    assert "\n" not in message
    assert len(message) < 500
    verified = memory.verify_audit()
    assert (verified.links, verified.rows) == (0, 0)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limit": 0}, "limit: 0 is out of range; give 1 or more"),
        ({"limit": 10_000}, "limit: 10000 is out of range; give 100 or less"),
        ({"limit": "many"}, "limit: 'many' is text; give a whole number"),
        ({"limit": "1000"}, "limit: 1000 is out of range; give 100 or less"),
        ({"limit": True}, "limit: True is true or false; give a whole number"),
        ({"limit": 2.5}, "limit: 2.5 is a number; give a whole number"),
        ({"memory_types": ["episodics"]}, "memory_types.0: 'episodics' is not known; did you mean 'episodic'?"),
        ({"memory_types": []}, "memory_types: is empty; give at least one"),
        ({"as_of": "2026-06-04 10:00"}, "as_of: 2026-06-04T10:00:00 has no time zone"),
        ({"as_of": "2026-02-30"}, "as_of: '2026-02-30' is not an ISO 8601 time"),
        ({"as_of": "20260604"}, "as_of: 2026-06-04T00:00:00 has no time zone"),
        ({"mode": "demo"}, "mode: 'demo' is not known; known: live, paper, sim, all"),
    ],
)
def test_a_bad_query_is_refused_by_name(memory: Memory, query: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        memory.recall_memories(symbol="XAUUSD", **query)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("head", ["", "1", "1:xyz", ":" + "0" * 64, "-1:" + "0" * 64, "²:" + "0" * 64])
def test_a_bad_head_is_refused(memory: Memory, head: str) -> None:
    with pytest.raises(Invalid, match="head: "):
        memory.verify_audit(head=head)


def test_minus_zero_becomes_zero_at_the_door(memory: Memory) -> None:
    trade = memory.remember_trade(**a_trade_call(pnl=-0.0, pnl_r=-0.0, max_adverse_excursion=0.0)).trade
    assert [math.copysign(1, x) for x in (trade.pnl, trade.mae, trade.outcome.value)] == [1, 1, 1]  # type: ignore[union-attr,arg-type]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
LIKELY = JSON | st.sampled_from(["XAUUSD", "long", "live", 1.0, 0, [], {}, "2026-06-04T10:00:00Z", "VolBreakout"])


def test_a_field_whose_name_has_control_characters_is_named_on_one_line() -> None:
    operation = OPERATIONS["check_active_plans"]
    with pytest.raises(Invalid, match=re.escape(r"current_context.\n\x1b[2J: unknown argument")):
        operation.check({"current_context": {"\n\x1b[2J": None}})


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_input_causes_a_traceback(
    name: str, data: st.DataObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a backup is written to any path
    operation = OPERATIONS[name]
    arguments = {field: data.draw(LIKELY) for field in operation.arguments.model_fields if data.draw(st.booleans())}
    base = a_trade_call() if name == "remember_trade" else {}
    try:
        checked = operation.check(base | arguments)
    except BacksightError as error:
        assert "\n" not in error.message  # noqa: PT017
        return
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        try:
            json.dumps(operation.as_json(memory.carry_out(operation, checked)), allow_nan=False)
        except BacksightError as error:
            assert "\n" not in error.message  # noqa: PT017
            assert memory.verify_audit().rows == 0
        else:
            assert memory.verify_audit().intact
