"""Recorded trades for the lab: R and sizes follow from the past alone."""

from datetime import timedelta
from typing import Any

import pytest

from backsight.core.trades.trade import Trade
from backsight.lab.trades import FIRST_SCALE, lab_trades
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call, open_memory


def stored(memory: Memory, clock: FakeClock, number: int, **changes: Any) -> Trade:
    """A trade of a hundred units at 100, opened and closed on the day of its number."""
    opened = T0 + timedelta(days=number)
    clock.at = changes.get("closed_at", opened + timedelta(hours=2))
    call = {
        "entry_price": 100.0, "exit_price": 101.0, "size": 100.0, "pnl": 100.0, "pnl_r": None,
        "opened_at": opened, "closed_at": clock.at, "idempotency_key": str(number),
    }  # fmt: skip
    return memory.remember_trade(**a_trade_call(**(call | changes))).trade


@pytest.fixture
def trades() -> list[Trade]:
    """Thirty trades without a stop, with results of 1% of the notional, the last of them of 5%."""
    clock = FakeClock(T0)
    with open_memory("sqlite://", clock=clock) as memory:
        small = [stored(memory, clock, number) for number in range(29)]
        return [*small, stored(memory, clock, 29, exit_price=95.0, pnl=-500.0)]


def test_without_a_stop_1r_is_the_median_result_of_earlier_trades(trades: list[Trade]) -> None:
    outcomes = [trade.outcome_r for trade in lab_trades(trades).trades]
    assert outcomes[0] == pytest.approx(0.01 / FIRST_SCALE)
    assert outcomes[15] == pytest.approx(1.0)
    assert outcomes[-1] == pytest.approx(-5.0)


def test_what_comes_later_changes_nothing_earlier(trades: list[Trade]) -> None:
    assert lab_trades(trades).trades[:20] == lab_trades(trades[:20]).trades


def test_a_stated_result_in_r_is_used_and_unknown_equity_is_the_largest_notional_so_far() -> None:
    clock = FakeClock(T0)
    with open_memory("sqlite://", clock=clock) as memory:
        small = stored(memory, clock, 0, pnl_r=0.5)
        double = stored(memory, clock, 1, size=200.0, pnl=200.0, pnl_r=0.5)
    made = lab_trades([double, small])
    assert [trade.outcome_r for trade in made.trades] == [0.5, 0.5]
    assert [trade.entry.recorded_share for trade in made.trades] == pytest.approx([0.02, 0.02])
    assert made.notes[0].startswith("The account's equity is not known for 2 of 2 trades")
    known = lab_trades([double, small], start_equity=10_000.0)
    assert [trade.entry.recorded_share for trade in known.trades] == pytest.approx([0.02, 400.0 / 10_100.0])


def test_trades_that_are_open_at_a_time_count_together() -> None:
    clock = FakeClock(T0)
    with open_memory("sqlite://", clock=clock) as memory:
        long_open = stored(memory, clock, 0, pnl_r=0.5, closed_at=T0 + timedelta(days=3))
        beside = stored(memory, clock, 1, pnl_r=0.5)
        later = stored(memory, clock, 4, pnl_r=0.5)
    shares = [trade.entry.recorded_share for trade in lab_trades([long_open, beside, later]).trades]
    assert shares == pytest.approx([0.02, 0.02, 0.01])  # 1R is 2% of 10,000; 20,000 were open on the second day
