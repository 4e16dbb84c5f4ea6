"""Matching a report with the ledger: the tolerances of time and result."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.trades.matching import CLOSE_TOLERANCE, matches, matching_trade
from backsight.core.trades.trade import Trade
from core.trades.test_report import CLOSED, a_report, a_trade


def a_ledger_trade(**changes: Any) -> Trade:
    return replace(a_trade(), first_fill_id="f1", **changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"first_fill_id": None}, False),
        ({"pnl": None}, False),
        ({"closed_at": None}, False),
        ({"closed_at": CLOSED - CLOSE_TOLERANCE}, True),
        ({"closed_at": CLOSED - CLOSE_TOLERANCE - timedelta(seconds=1)}, False),
        ({"pnl": 20.9}, True),
        ({"pnl": 22.0}, False),
        ({"pnl": 22.0, "fees": 40.0}, True),
        ({"pnl": -20.0}, False),
    ],
)
def test_a_trade_matches_within_the_tolerances(changes: Any, expected: bool) -> None:
    assert matches(a_report(), replace(a_ledger_trade(), **changes)) is expected


def test_a_report_without_a_close_or_a_position_matches_any() -> None:
    trade = a_ledger_trade(closed_at=CLOSED - timedelta(days=3), position_key="p7")
    assert matches(a_report(closed_at=None), trade)
    assert matches(a_report(closed_at=None, position_key="p7"), trade)
    assert not matches(a_report(closed_at=None, position_key="p8"), trade)


def test_the_first_match_counts() -> None:
    trades = [a_ledger_trade(pnl=50.0), replace(a_ledger_trade(), id="second"), replace(a_ledger_trade(), id="third")]
    match = matching_trade(a_report(), trades)
    assert match is not None
    assert match.id == "second"
    assert matching_trade(a_report(pnl=-1.0), trades) is None
