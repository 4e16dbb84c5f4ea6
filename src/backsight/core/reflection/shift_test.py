"""Is the strongest of many patterns more than chance, where payoffs are skewed and markets stay as they are for days?

The statistic of a group is the difference between its mean and that of the rest over the pooled deviation, which is √n
times the correlation of membership and outcome. Both are residuals after the constant and the patterns found earlier:

    T = √(n − 1) · Σ x̃_i e_i / (|x̃| |e|)

**Skew and copies.** Labels are dealt anew: each day is given the labels of another day at random, as one block.
Outcomes stay as they are, so the few large winners of a skewed strategy and the copies of one signal within a day are
the same in every deal. The largest T of all groups under each deal is the null distribution (max statistic: Westfall &
Young 1993), which corrects for the number of comparisons.

**Persistence.** Dealing breaks up regimes that last. So each T is divided by the deviation that it has where outcomes
and labels both resemble those before them: the variance is the sum of the products of their autocorrelations (Bartlett
1935), over lags for as long as pairs of neighbouring autocorrelations of the outcomes are positive (initial positive
sequence: Geyer 1992). Lags are counted in trades and in days, and the larger variance counts: spells within a day show
in the first, days with several trades in the second. The group's own effect is removed from the outcomes before. Few
separate runs of a label say little about the next, so the excess over 1 is enlarged by 1 + 3/√runs, and fewer than ten
runs prove nothing.
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

    def sums(self, columns: Floats) -> Floats:
        """The sum of each column over the trades of each day, one row a day."""
        return np.asarray(np.add.reduceat(columns, self.starts, axis=0), dtype=np.float64)

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
    """The deviation of each group's T where outcomes persist as they do, at least 1, with its excess enlarged."""
    correlation = outcome @ labels
    # Outcomes without the group's own effect, one column a group, again of length 1.
    others = (outcome[:, None] - labels * correlation) / np.sqrt(np.maximum(1.0 - np.square(correlation), NO_VARIATION))
    excess = np.maximum(_excess_by_trades(others, labels), _excess_by_days(others, labels, days))
    enlarged = np.maximum(excess, 0.0) * (1.0 + 3.0 / np.sqrt(np.maximum(runs, 1.0)))
    return np.asarray(np.sqrt(1.0 + enlarged), dtype=np.float64)


def _excess_by_trades(outcomes: Floats, labels: Floats) -> Floats:
    """2 Σ ρ_k(outcome) ρ_k(label) over lags of k trades: what persistence adds to the variance of T."""
    n = len(outcomes)
    pairs = np.arange(n, 0.0, -1.0)[1:, None]
    likeness = n * _lagged_products(outcomes)[1:] / pairs
    return 2.0 * _sum_of_first_positive(likeness, likeness * _lagged_products(labels)[1:])


def _excess_by_days(outcomes: Floats, labels: Floats, days: TradingDays) -> Floats:
    """The same over lags of days: all trades of one day resemble all trades of another alike, and each other."""
    n, sizes = len(outcomes), days.sizes.astype(np.float64)[:, None]
    pairs, products, together = (_lagged_products(each) for each in (sizes, days.sums(outcomes), days.sums(labels)))
    # Pairs of different trades of the same day, then pairs of trades of two days.
    within = n * (products[0] - 1.0) / np.maximum(pairs[0] - n, 1.0) * (together[0] - np.square(labels).sum(axis=0))
    likeness = n * products[1:] / np.maximum(pairs[1:], 1.0)
    across = 2.0 * _sum_of_first_positive(likeness, likeness * together[1:])
    return np.asarray(within + across, dtype=np.float64)


def _lagged_products(columns: Floats) -> Floats:
    """Σ_i x_i x_{i+k} of each column, one row a lag k, from 0."""
    size = 2 * len(columns)
    spectrum = np.square(np.abs(np.fft.rfft(columns, size, axis=0)))
    return np.asarray(np.fft.irfft(spectrum, size, axis=0)[: len(columns)], dtype=np.float64)


def _sum_of_first_positive(likeness: Floats, terms: Floats) -> Floats:
    """The sum of the terms of each column up to the first pair of lags whose likeness is not positive.

    >>> _sum_of_first_positive(np.array([[0.5], [-0.1], [-0.3], [0.1], [0.9]]), np.ones((5, 1))).tolist()
    [2.0]
    """
    pairs, groups = len(likeness) // 2, likeness.shape[1]
    is_positive = likeness[: 2 * pairs].reshape(pairs, 2, groups).sum(axis=1) > 0.0
    counted = np.logical_and.accumulate(is_positive, axis=0)
    return np.asarray((terms[: 2 * pairs] * np.repeat(counted, 2, axis=0)).sum(axis=0), dtype=np.float64)


def _deals(days: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each deal the day whose labels each day is given, and the turn of the labels within that day.

    A seed gives the same deals in every NumPy version.
    """
    raw = np.asarray(np.random.PCG64(SEED).random_raw(2 * DEALS * days), dtype=np.uint64).reshape(2, DEALS, days)
    return np.argsort(raw[0], axis=1), (raw[1] >> np.uint64(40)).astype(np.int64)


@lru_cache(maxsize=2)
def _dealt_trades(sizes: bytes) -> NDArray[np.int32]:
    """For each deal the trade whose label each trade is given, from the number of trades of each day.

    All measures of a search share their days, and so does the next search over the same trades.
    """
    days = TradingDays.of(np.repeat(np.arange(len(counts := np.frombuffer(sizes, dtype=np.int64))), counts))
    orders, turns = _deals(len(counts))
    dealt = np.empty((DEALS, len(days.day)), dtype=np.int32)
    for first in range(0, DEALS, AT_ONCE):
        order, turn = (each[first : first + AT_ONCE, days.day] for each in (orders, turns))
        dealt[first : first + AT_ONCE] = days.labels_of(order, turn)
    return dealt


def dealt_statistics(outcome: Floats, labels: Floats, days: TradingDays) -> Floats:
    """|T| of every group, one column each, under every deal of labels."""
    n, groups = labels.shape
    dealt = _dealt_trades(days.sizes.astype(np.int64).tobytes())
    outcomes, columns = outcome.astype(np.float32), labels.astype(np.float32)
    statistics = np.empty((DEALS, groups))
    for first in range(0, DEALS, AT_ONCE):
        trades = dealt[first : first + AT_ONCE]
        # The sum of the outcomes that each label is given to, for one product with all groups.
        cells = trades + n * np.arange(len(trades), dtype=np.int32)[:, None]
        sums = np.zeros(trades.size, dtype=np.float32)
        np.add.at(sums, cells.ravel(), np.tile(outcomes, len(trades)))
        statistics[first : first + AT_ONCE] = np.abs(sums.reshape(trades.shape) @ columns)
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
