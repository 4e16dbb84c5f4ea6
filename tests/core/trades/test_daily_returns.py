"""Daily returns and their ratios equal those of empyrical, and the equity by day equals a plain loop."""

from datetime import date
from random import Random

import empyrical
import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.trades.daily_returns import (
    AccountEquity,
    DailyReturns,
    MoneyFlow,
    daily_returns,
    day_number,
    deflated_sharpe,
    equity_curve,
    sum_by_day,
)
from backsight.core.trades.figures import DAY

MONDAY = day_number(date(2026, 6, 1))


def flow(*amounts: tuple[int, float]) -> MoneyFlow:
    """Amounts at noon of days, as (day, amount)."""
    at = np.array([(MONDAY + day) * DAY + DAY // 2 for day, _ in amounts], np.int64)
    return MoneyFlow(at=at, amount=np.array([amount for _, amount in amounts], np.float64))


def account(closes: MoneyFlow, transfers: MoneyFlow | None = None, *, equity: float = 1_000.0) -> AccountEquity:
    return AccountEquity(at=MONDAY * DAY, equity=equity, closes=closes, transfers=transfers or flow())


@settings(max_examples=60)
@given(st.lists(st.floats(-0.4, 0.4).map(lambda value: round(value, 4)), min_size=20, max_size=300))
def test_ratios_equal_those_of_empyrical(returns: list[float]) -> None:
    series = DailyReturns(days=np.arange(MONDAY, MONDAY + len(returns)), returns=np.array(returns), days_per_year=365)
    # empyrical divides by zero where returns are equal, or where none is a loss; there is no ratio then.
    if series.sharpe is not None and np.ptp(returns) > 1e-9:
        assert series.sharpe == pytest.approx(empyrical.sharpe_ratio(series.returns, annualization=365), rel=1e-9)
    if series.sortino is not None:
        expected = empyrical.sortino_ratio(pandas.Series(series.returns), annualization=365)
        assert series.sortino == pytest.approx(float(expected), rel=1e-9)
    worst = float(empyrical.max_drawdown(pandas.Series(series.returns)))
    assert (0.0 if series.drawdown is None else series.drawdown.share) == pytest.approx(-worst, abs=1e-12)


AMOUNTS = st.tuples(st.sampled_from((-90_000, 0, 1, 2, 90_000)), st.sampled_from((1e16, 1.0, 0.1, -0.3, -1e16)))


@settings(max_examples=60)
@given(st.lists(AMOUNTS, max_size=30), st.randoms(use_true_random=False))
def test_sums_by_day_do_not_depend_on_the_order_of_the_amounts(amounts: list[tuple[int, float]], rng: Random) -> None:
    by_day = {day: np.array(sorted(amount for on, amount in amounts if on == day)) for day, _ in sorted(amounts)}
    expected = [(MONDAY + day, float(np.add.reduceat(each, [0])[0])) for day, each in by_day.items()]
    rng.shuffle(amounts)
    days, sums = sum_by_day(flow(*amounts).at, flow(*amounts).amount)
    assert list(zip(days.tolist(), sums.tolist(), strict=True)) == expected


def test_a_drawdown_has_the_dates_of_its_peak_trough_and_recovery() -> None:
    series = DailyReturns(
        days=np.arange(MONDAY, MONDAY + 5), returns=np.array([0.1, -0.2, -0.1, 0.5, 0.0]), days_per_year=365
    )
    assert series.drawdown is not None
    assert series.drawdown.share == pytest.approx(0.28)
    assert (series.drawdown.peak_on, series.drawdown.trough_on) == (date(2026, 6, 1), date(2026, 6, 3))
    assert series.drawdown.recovered_on == date(2026, 6, 4)
    assert series.sharpe is series.sortino is None  # five days


def test_days_without_trades_return_zero_and_weekends_count_only_where_they_are_traded() -> None:
    weekdays = flow((0, 10.0), (4, 20.0), (7, 30.0))
    returns = daily_returns([account(weekdays)], weekdays)
    assert isinstance(returns, DailyReturns)
    assert returns.days_per_year == 252
    np.testing.assert_allclose(returns.returns, [0.01, 0, 0, 0, 20 / 1010, 30 / 1030])
    weekend = flow((0, 10.0), (5, 20.0), (7, 30.0))
    returns = daily_returns([account(weekend)], weekend)
    assert isinstance(returns, DailyReturns)
    assert (returns.days_per_year, len(returns.returns)) == (365, 8)


def test_a_strategy_returns_its_share_of_the_equity_that_it_has_with_others() -> None:
    own, everything = flow((1, 50.0)), flow((0, 1_000.0), (1, 50.0))
    returns = daily_returns([account(everything), account(flow())], own)
    assert isinstance(returns, DailyReturns)
    np.testing.assert_allclose(returns.returns, [50.0 / 3_000.0])


def test_a_deposit_counts_from_the_start_of_its_day_and_a_withdrawal_from_the_end() -> None:
    closes, moved = flow((0, 10.0), (1, 10.0), (2, 10.0)), flow((1, 1_000.0), (2, -500.0))
    days = equity_curve([account(closes, moved)], MONDAY, MONDAY + 2)
    assert [(day.start, day.net, day.transfers, day.end) for day in days] == [
        (1_000.0, 10.0, 0.0, 1_010.0),
        (2_010.0, 10.0, 1_000.0, 2_020.0),
        (2_020.0, 10.0, -500.0, 1_530.0),
    ]


def test_an_equity_that_is_not_positive_gives_a_reason() -> None:
    closes = flow((0, -1_500.0), (1, 10.0))
    reason = daily_returns([account(closes)], closes)
    assert reason == "the equity that is known is not positive on 2026-06-02; record_equity records it"
    assert daily_returns([account(flow())], flow()) == "no trade is closed yet"


def test_the_deflated_sharpe_ratio_falls_with_the_spread_of_the_trials() -> None:
    returns = np.tile([0.02, -0.01, 0.005, 0.0], 30)
    series = DailyReturns(days=np.arange(120), returns=returns, days_per_year=365)
    own = series.sharpe_of_a_day
    assert own is not None
    alike, wide = deflated_sharpe(series, [own, own]), deflated_sharpe(series, [own, own - 0.5, own - 0.3])
    assert alike is not None
    assert wide is not None
    assert alike > 0.99 > wide
    assert deflated_sharpe(series, [own]) is None
