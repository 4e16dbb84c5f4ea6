"""Patterns: their keys, and whether they stand out from the other trades."""

from datetime import timedelta, timezone

import pytest

from backsight.core.reflection.patterns import ClosedTrade, most_common_unit
from backsight.core.trades.trade import Outcome
from backsight.testing import T0
from backsight.testing.reflection import a_pattern


@pytest.mark.parametrize(("rest_mean", "stands_out"), [(-0.9, True), (-0.8, False), (-0.6, False), (-0.5, True)])
def test_a_pattern_stands_out_if_its_interval_excludes_the_rest(rest_mean: float, stands_out: bool) -> None:
    pattern = a_pattern(mean=-0.7, interval=(-0.8, -0.6), rest_mean=rest_mean)
    assert pattern.stands_out is stands_out
    assert pattern.half_width == pytest.approx(0.1)


def test_trades_of_one_day_have_no_interval_and_do_not_stand_out() -> None:
    pattern = a_pattern(interval=None)
    assert (pattern.half_width, pattern.stands_out) == (None, False)


def test_a_key_names_slot_dimension_and_value() -> None:
    assert a_pattern(slot="regime_fit", dimension="regime", value="ranging").key == "regime_fit/regime=ranging"


def test_the_day_of_a_trade_is_utc() -> None:
    late = T0.replace(hour=23).astimezone(timezone(timedelta(hours=9)))
    trade = ClosedTrade(id="t", ended_at=late, known_at=late, symbol="BTC")
    assert late.date() != T0.date()
    assert trade.day == T0.date()


def test_the_unit_of_most_outcomes_counts_and_r_wins_a_tie() -> None:
    r, share = Outcome(value=1.0, unit="R"), Outcome(value=0.01, unit="pct")
    assert most_common_unit([share, share, r, None]) == "pct"
    assert most_common_unit([share, r]) == "R"
    assert most_common_unit([None]) is None
