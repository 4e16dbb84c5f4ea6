"""Is the strongest of many patterns more than chance, where payoffs are skewed and markets stay as they are for days?

The statistic of a group is the difference between its mean and that of the rest over the pooled deviation, which is √n
times the correlation of membership and outcome. Both are residuals after the constant and the patterns found earlier:

    T = √(n − 1) · Σ x̃_i e_i / (|x̃| |e|)

**Skew and copies.** Labels are dealt anew: each day is given the labels of another day at random, as one block.
Outcomes stay as they are, so the few large winners of a skewed strategy and the copies of one signal within a day are
the same in every deal. The largest T of all groups under each deal is the null distribution (max statistic: Westfall &
Young 1993), which corrects for the number of comparisons.

**Persistence.** Dealing breaks up regimes that last. So each T is divided by the deviation that it has when labels are
shifted against outcomes by 1, 2, … days, around the circle of all days: a shift keeps both series as they are, and the
variance over all shifts is the sum of the products of their autocorrelations (Bartlett 1935). The group's own effect is
removed from the outcomes before, or labels that alternate, such as sessions, would meet their own effect again under
every second shift. Few separate runs of a label estimate that deviation badly, so its excess over 1 is enlarged by
1 + 2/√runs, and fewer than ten runs prove nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from backsight.core.reflection.day_clusters import Codes, Floats

DEALS = 2047
SEED = 20_240_101
"""Of the deals, which are the same for all strategies with as many days."""
AT_ONCE = 512
"""Deals computed at once, which bounds the memory used."""
MIN_RUNS = 10
"""Separate runs of the label inside and outside the group."""
NO_VARIATION = 1e-9
ROUNDING = 1e-4
"""Deals are computed in single precision: a statistic this close counts as reached."""


@dataclass(frozen=True, slots=True, eq=False)
class TradingDays:
    """The days of trades that are in the order of their closes."""

    starts: Codes
    """The index of the first trade of each day."""
    sizes: Codes
    """The number of trades of each day."""
    day: Codes
    """The day of each trade, from 0 without gaps."""
    place: Codes
    """The place of each trade within its day, from 0."""

    @classmethod
    def of(cls, codes: Codes) -> "TradingDays":
        """The days of trades with these day codes, in rising order.

        >>> days = TradingDays.of(np.array([3, 3, 7]))
        >>> days.sizes.tolist(), days.day.tolist(), days.place.tolist()
        ([2, 1], [0, 0, 1], [0, 1, 0])
        """
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        sizes = np.diff(np.append(starts, len(codes)))
        day = np.repeat(np.arange(len(starts)), sizes)
        return cls(starts=starts, sizes=sizes, day=day, place=np.arange(len(codes)) - starts[day])

    def by_place(self, columns: Floats) -> Floats:
        """The columns by place in the day, day and column; 0 where a day has fewer trades."""
        planes = np.zeros((int(self.sizes.max(initial=1)), len(self.starts), columns.shape[1]))
        planes[self.place, self.day] = columns
        return planes

    def labels_of(self, other: Codes, turn: Codes | int = 0) -> Codes:
        """The trade of day `other` whose label each trade is given; `turn` places later, around the end of the day."""
        return self.starts[other] + (self.place + turn) % self.sizes[other]


def unexplained(values: Floats, members: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Outcomes and memberships after the constant and the known patterns, each of length 1; 0 if nothing is left.

    `members` has one column a group, `known` one column a pattern found earlier.

    >>> outcome, labels = unexplained(np.array([1.0, 1.0, -1.0, -1.0]), np.eye(4)[:, :2], np.empty((4, 0)))
    >>> outcome.round(2).tolist(), (outcome @ labels).round(2).tolist()
    ([0.5, 0.5, -0.5, -0.5], [0.58, 0.58])
    """
    regressors = np.column_stack((np.ones(len(values)), known))
    columns = np.column_stack((values, members))
    residuals = columns - regressors @ np.linalg.lstsq(regressors, columns, rcond=None)[0]
    length, whole = (np.sqrt(np.square(each).sum(axis=0)) for each in (residuals, columns))
    scaled = np.divide(residuals, length, out=np.zeros_like(residuals), where=length > NO_VARIATION * whole)
    return scaled[:, 0], scaled[:, 1:]


def persistence(outcome: Floats, labels: Floats, days: TradingDays, runs: Floats) -> Floats:
    """The deviation of each group's T over all circular shifts by days, at least 1, with its excess enlarged.

    Trades meet those of the other day at the same place in the day. A shift under which fewer trades meet, since days
    differ in size, counts as if all did.
    """
    # All shifts at once, by the Fourier transform over days; one plane for each place in the day.
    outcomes, columns, trades = (days.by_place(each) for each in (outcome[:, None], labels, np.ones((len(outcome), 1))))
    meetings = np.maximum(_shifted_products(trades, trades), 1.0)
    correlation = outcome @ labels
    # The correlation with the shifted label, without what the group's own effect adds to it.
    shifted = _shifted_products(columns, outcomes) - correlation * _shifted_products(columns, columns)
    squares = np.square(shifted) * len(outcome) / meetings
    variance = len(outcome) * squares.mean(axis=0, where=np.arange(len(squares))[:, None] > 0)
    excess = np.maximum(variance / np.maximum(1.0 - np.square(correlation), NO_VARIATION) - 1.0, 0.0)
    return np.asarray(np.sqrt(1.0 + excess * (1.0 + 2.0 / np.sqrt(np.maximum(runs, 1.0)))), dtype=np.float64)


def _shifted_products(planes: Floats, others: Floats) -> Floats:
    """Σ over places and days of one day's value times the other's so many days later: one row a shift, from 0."""
    days = planes.shape[1]
    transforms = (np.fft.rfft(each, axis=1) for each in (planes, others))
    first, second = transforms
    return np.asarray(np.fft.irfft((first * second.conj()).sum(axis=0), days, axis=0), dtype=np.float64)


@lru_cache(maxsize=2)
def _deals(days: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each deal the day whose labels each day is given, and the turn of the labels within that day.

    A seed gives the same deals in every NumPy version.
    """
    raw = np.asarray(np.random.PCG64(SEED).random_raw(2 * DEALS * days), dtype=np.uint64).reshape(2, DEALS, days)
    return np.argsort(raw[0], axis=1), (raw[1] >> np.uint64(40)).astype(np.int64)


def dealt_statistics(outcome: Floats, labels: Floats, days: TradingDays) -> Floats:
    """|T| of every group, one column each, under every deal of labels."""
    n, groups = labels.shape
    orders, turns = _deals(len(days.starts))
    outcomes, columns = outcome.astype(np.float32), labels.astype(np.float32)
    statistics = np.empty((DEALS, groups))
    for first in range(0, DEALS, AT_ONCE):
        order, turn = (each[first : first + AT_ONCE, days.day] for each in (orders, turns))
        # The sum of the outcomes that each label is given to, for one product with all groups.
        cells = days.labels_of(order, turn) + n * np.arange(len(order))[:, None]
        sums = np.zeros(order.size, dtype=np.float32)
        np.add.at(sums, cells.ravel(), np.tile(outcomes, len(order)))
        statistics[first : first + AT_ONCE] = np.abs(sums.reshape(order.shape) @ columns)
    return statistics * math.sqrt(max(n - 1, 0))


def p_value(statistic: float, null: Floats) -> float:
    """The share of deals whose largest T reaches the statistic; the data count as one more deal.

    >>> p_value(2.5, np.array([1.0, 2.0, 3.0])), p_value(9.0, np.array([1.0, 2.0, 3.0]))
    (0.5, 0.25)
    """
    return float(1 + np.count_nonzero(null >= statistic - ROUNDING)) / (1 + len(null))


def separate_runs(members: Floats) -> Floats:
    """The number of separate runs of each label, inside or outside the group, whichever is smaller.

    >>> separate_runs(np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])).tolist()
    [2.0, 1.0]
    """
    if not len(members):
        return np.zeros(members.shape[1])
    changes = np.diff(members, axis=0)
    inside = members[0] + (changes > 0.0).sum(axis=0)
    outside = (1.0 - members[0]) + (changes < 0.0).sum(axis=0)
    return np.asarray(np.minimum(inside, outside), dtype=np.float64)


def first_of_ties(statistics: Floats, strongest: int, tie_break: Sequence[tuple[float | int | str, ...]]) -> int:
    """The first by `tie_break` of the groups whose statistic is that of the strongest: other names of the same trades.

    >>> first_of_ties(np.array([1.0, 3.0, 3.0]), 1, [(0,), (2,), (1,)])
    2
    """
    tied = np.flatnonzero(np.abs(statistics - statistics[strongest]) <= NO_VARIATION * statistics[strongest])
    return min((int(index) for index in tied), key=lambda index: tie_break[index])
