"""Conversion of stored trades into the closed trades of a reflection."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from backsight.core.reflection.closed_trades import closed_trade, holdout_trade
from backsight.core.trades.summary import ClosedTradeRow
from backsight.core.trades.trade import Entry, Outcome, Trade
from backsight.testing import T0, FakeClock, a_trade_call, open_memory


def a_trade(**changes: Any) -> Trade:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        values = {"opened_at": "2026-06-04T07:30:00Z", "closed_at": "2026-06-04T09:00:00Z"}
        return replace(memory.remember_trade(**a_trade_call(**values)).trade, **changes)


def test_a_closed_trade_has_the_context_of_its_entry_and_its_result() -> None:
    entry = Entry(size=2.0, equity=10_000.0, regime_tag="chop_hivol")
    converted = closed_trade(a_trade(entry=entry, size=5.0, entry_price=100.0, mfe=2_350.0, realized_pnl=1_175.0))
    assert (converted.regime, converted.regime_tag, converted.session, converted.hour) == (
        "trending_up",
        "chop_hivol",
        "london",
        7,
    )
    assert (converted.size_share, converted.captured, converted.hold_seconds, converted.won) == (
        0.02,
        0.5,
        5_400.0,
        True,
    )
    assert converted.ended_at == datetime(2026, 6, 4, 9, tzinfo=UTC)
    assert (converted.opened_at, converted.weekday) == (datetime(2026, 6, 4, 7, 30, tzinfo=UTC), 3)
    assert converted.deployment_id is not None


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"mfe": None}, "captured"),
        ({"mfe": 0.0}, "captured"),
        ({"entry": Entry(size=2.0)}, "size_share"),
        ({"entry": Entry(equity=1e4), "size": None}, "size_share"),
        ({"holding_minutes": None}, "hold_seconds"),
        ({"pnl": None}, "won"),
    ],
)
def test_an_unknown_value_is_none(changes: dict[str, Any], name: str) -> None:
    assert getattr(closed_trade(a_trade(**changes)), name) is None


def test_a_trade_without_an_entry_size_counts_with_its_largest_size() -> None:
    assert closed_trade(a_trade(entry=Entry(equity=1e4), size=1.0, entry_price=100.0)).size_share == 0.01


@pytest.mark.parametrize(("gross", "captured"), [(300.0, 1.0), (-50.0, 0.0), (50.0, 0.5)])
def test_the_captured_share_lies_between_0_and_1(gross: float, captured: float) -> None:
    assert closed_trade(a_trade(mfe=100.0, realized_pnl=gross)).captured == captured


ROW = ClosedTradeRow(
    id="t",
    deployment_id="d",
    opened_at=datetime(2026, 6, 3, 23, 59, tzinfo=UTC),
    closed_at=T0,
    outcome=Outcome(value=1.0, unit="R"),
    pnl=5.0,
    memory_arm="shown",
)


def test_the_coin_is_of_the_day_of_entry() -> None:
    armed = holdout_trade(ROW)
    assert armed is not None
    assert armed.day.day == 3


@pytest.mark.parametrize("changes", [{"memory_arm": None}, {"opened_at": None}, {"outcome": None}])
def test_a_trade_without_an_arm_an_entry_or_an_outcome_is_not_in_the_holdout_test(changes: dict[str, Any]) -> None:
    assert holdout_trade(replace(ROW, **changes)) is None
