"""Equity curves against an account that is kept trade by trade."""

import numpy as np
import pytest

from backsight.lab.equity import daily_results, trade_times
from lab_samples import overlapping_trades


def test_overlapping_trades_risk_a_share_of_the_equity_at_their_entry() -> None:
    trades = overlapping_trades(60)
    times = trade_times(trades)
    shares = np.random.default_rng(1).random((3, 60)) * 0.05
    daily = daily_results(shares, times)
    for row in range(3):
        equity, stakes = 1.0, dict[int, float]()
        moments = sorted(
            [(trade.entry.at, 0, place) for place, trade in enumerate(trades)]
            + [(trade.closed_at, 1, place) for place, trade in enumerate(trades)]
        )
        for _, is_close, place in moments:
            if is_close:
                equity += stakes.pop(place) * trades[place].outcome_r
            else:
                stakes[place] = shares[row, place] * equity
        assert float(np.prod(1.0 + daily.returns[row])) == pytest.approx(equity, rel=1e-12)
        assert daily.trades[row].sum() == 60


def test_an_account_cannot_lose_more_than_it_has() -> None:
    times = trade_times(overlapping_trades(30))
    daily = daily_results(np.ones((1, 30)), times)
    assert float(np.prod(1.0 + daily.returns[0])) == 0.0
    assert (daily.returns >= -1.0).all()


def test_many_rows_give_what_each_gives_alone() -> None:
    times = trade_times(overlapping_trades(20))
    shares = np.random.default_rng(2).random((300, 20)) * 0.02
    together = daily_results(shares, times)
    assert np.array_equal(together.returns[299], daily_results(shares[299:], times).returns[0])
