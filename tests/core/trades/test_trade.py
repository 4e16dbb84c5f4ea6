"""Trades: the unit of an outcome, the risk to a stop, and what is not known."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.trades.trade import (
    Outcome,
    dollars_for_one,
    in_dollars,
    minutes_between,
    outcome_of,
    risk_to_stop,
    unit_suffix,
)
from backsight.testing import T0

AMOUNTS = st.floats(0.01, 1e6)


def test_r_comes_before_the_daily_range_and_the_share() -> None:
    assert outcome_of(50.0, pnl_r=2.0, risk=10.0, notional=1000.0, atr_share=0.01) == Outcome(value=2.0, unit="R")
    assert outcome_of(50.0, risk=10.0, notional=1000.0, atr_share=0.01) == Outcome(value=5.0, unit="R")
    assert outcome_of(50.0, risk=0.0, notional=1000.0, atr_share=0.01) == Outcome(value=5.0, unit="vol")
    assert outcome_of(50.0, risk=None, notional=1000.0, atr_share=0.0) == Outcome(value=0.05, unit="pct")
    assert outcome_of(50.0, notional=0.0) is None


@given(AMOUNTS, AMOUNTS, AMOUNTS)
def test_a_stop_is_a_risk_on_one_side_only(entry: float, stop: float, size: float) -> None:
    risks = [risk_to_stop(side, entry_price=entry, stop_price=stop, size=size) for side in ("long", "short")]
    assert sum(risk is not None for risk in risks) == (entry != stop)
    assert all(risk is None or risk > 0 for risk in risks)


def test_every_unit_has_its_suffix() -> None:
    assert [unit_suffix(unit) for unit in ("R", "vol", "pct")] == ["R", " daily ATR", "%"]


def test_an_amount_without_a_rate_is_not_known_in_dollars() -> None:
    assert in_dollars(10.0, dollars_for_one("EUR", 1.1)) == pytest.approx(11.0)
    assert in_dollars(10.0, dollars_for_one("USDT")) is None
    assert in_dollars(None, 1.0) is None


def test_a_holding_time_needs_both_ends() -> None:
    assert minutes_between(T0, T0 + timedelta(hours=2)) == 120.0
    assert minutes_between(None, T0) is None
