"""Equity against the ledger: what fills, marks and transfers do not explain."""

from typing import Any

import pytest

from backsight.core.trades.equity_check import TradeWorth, equity_gap
from backsight.core.trades.settle import LedgerChange
from backsight.testing import a_fill


def a_change(*added: Any) -> LedgerChange:
    return LedgerChange(added=added, restated=(), withdrawn=(), trips=())


def a_worth(before: float, after: float, *, notional: float = 1_000.0, fees: float = 0.0) -> TradeWorth:
    return TradeWorth(before=before, after=after, notional=notional, fees=fees)


@pytest.mark.parametrize(("equity_change", "gap"), [(10.0, None), (15.0, None), (15.1, 5.1), (4.0, -6.0), (None, None)])
def test_a_gap_is_more_than_half_a_percent_of_the_notional(equity_change: float | None, gap: float | None) -> None:
    assert equity_gap(equity_change, a_change(), [a_worth(2.0, 12.0)]) == pytest.approx(gap)


def test_fees_of_the_tick_and_transfers_explain_a_change() -> None:
    paid_in = a_fill(0, kind="transfer", quantity=0.0, price=None, amount=100.0)
    assert equity_gap(107.0, a_change(paid_in), [a_worth(0.0, 0.0, fees=3.0)]) is None
    assert equity_gap(109.0, a_change(paid_in), [a_worth(0.0, 0.0, fees=3.0)]) == 9.0


def test_nothing_is_claimed_without_trades_or_with_inferred_fills() -> None:
    assert equity_gap(500.0, a_change(), []) is None
    assert equity_gap(500.0, a_change(a_fill(0, kind="inferred")), [a_worth(0.0, 0.0)]) is None
