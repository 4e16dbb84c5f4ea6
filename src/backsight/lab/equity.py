"""Equity curves: what a share of equity on each trade would have made of an account, day by day.

A trade risks a share of the equity at its entry, which earns its outcome in R at the close. Only closed trades change
the equity. Days are UTC days from the first entry to the last close, with and without trades.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from backsight.lab.split import Integers
from backsight.lab.trades import LabTrade

Floats = NDArray[np.float64]
ROWS_AT_A_TIME = 250
"""Rows of shares that are simulated at a time; each needs memory for its open stakes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeTimes:
    """The outcomes of trades, the day on which each closed, and the order of entries and closes."""

    outcome_r: Floats
    day: Integers
    """The day of the close, from 0."""
    days: int
    first_day: datetime
    events: Integers
    """Entries and closes in their order: a trade's place for its entry, and −1 − place for its close."""

    @property
    def count(self) -> int:
        return len(self.outcome_r)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DailyResults:
    """Results by day: one row for each row of shares, one column for each day."""

    returns: Floats
    """The change of equity, as a share of the equity at the start of the day."""
    wins: Floats
    """The sum of the gains of the day, as a share of the equity at its start; `losses` likewise, without the sign."""
    losses: Floats
    trades: Floats
    """The number of trades with a share above 0 that closed on the day."""


def trade_times(trades: Sequence[LabTrade]) -> TradeTimes:
    """The times of trades that are in the order of their entries; an entry comes before a close of the same instant.

    >>> from backsight.lab.planted import planted_trades
    >>> times = trade_times(planted_trades("no_edge", trades=3, seed=1).trades)
    >>> times.events.tolist(), times.days
    ([0, -1, 1, -2, 2, -3], 241)
    """
    entries = [(trade.entry.at, 0, place) for place, trade in enumerate(trades)]
    closes = [(trade.closed_at, 1, place) for place, trade in enumerate(trades)]
    events = [-1 - place if is_close else place for _, is_close, place in sorted(entries + closes)]
    first = min((_day(trade.entry.at) for trade in trades), default=0)
    day = np.array([_day(trade.closed_at) - first for trade in trades], dtype=np.int64)
    return TradeTimes(
        outcome_r=np.array([trade.outcome_r for trade in trades], dtype=np.float64),
        day=day,
        days=int(day.max()) + 1 if len(day) else 0,
        first_day=datetime.fromtimestamp(first * 86_400, tz=UTC),
        events=np.array(events, dtype=np.int64),
    )


def _day(at: datetime) -> int:
    return int(at.timestamp() // 86_400)


def daily_results(shares: Floats, times: TradeTimes) -> DailyResults:
    """The results of rows of shares: one row an arm or a draw, one column a trade.

    Two trades, of which the first wins 2R at 10% of equity and the second loses 1R at 50%:

    >>> day = np.array([0, 1])
    >>> times = TradeTimes(outcome_r=np.array([2.0, -1.0]), day=day, days=2, first_day=datetime(2026, 1, 1, tzinfo=UTC),
    ...                    events=np.array([0, -1, 1, -2]))
    >>> daily_results(np.array([[0.1, 0.5]]), times).returns.round(9).tolist()
    [[0.2, -0.5]]
    """
    parts = [_daily_results(shares[at : at + ROWS_AT_A_TIME], times) for at in range(0, len(shares), ROWS_AT_A_TIME)]
    returns, wins, losses = (np.concatenate([part[which] for part in parts]) for which in range(3))
    taken = np.zeros((len(shares), times.days))
    for place, day in enumerate(times.day.tolist()):
        taken[:, day] += shares[:, place] > 0.0
    return DailyResults(returns=returns, wins=wins, losses=losses, trades=taken)


def _daily_results(shares: Floats, times: TradeTimes) -> tuple[Floats, Floats, Floats]:
    rows, outcome, days = len(shares), times.outcome_r.tolist(), times.day.tolist()
    by_trade = np.ascontiguousarray(shares.T)
    stakes: dict[int, Floats] = {}
    returns, wins, losses = (np.zeros((times.days, rows)) for _ in range(3))
    equity = np.ones(rows)
    today, at_start = -1, equity
    for event in times.events.tolist():
        if event >= 0:
            stakes[event] = by_trade[event] * equity
            continue
        place = -1 - event
        if days[place] != today:
            _end_day(returns, today, equity, at_start)
            today, at_start = days[place], equity
        gain = np.maximum(stakes.pop(place) * outcome[place], -equity)  # an account cannot lose more than it has
        share = np.divide(gain, at_start, out=np.zeros(rows), where=at_start > 0.0)
        (wins if outcome[place] > 0 else losses)[today] += np.abs(share)
        equity = equity + gain
    _end_day(returns, today, equity, at_start)
    return returns.T.copy(), wins.T.copy(), losses.T.copy()


def _end_day(returns: Floats, day: int, equity: Floats, at_start: Floats) -> None:
    if day >= 0:
        ratio = np.divide(equity, at_start, out=np.ones(len(equity)), where=at_start > 0.0)
        returns[day] = ratio - 1.0
