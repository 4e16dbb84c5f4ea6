"""Group means with errors that know days that hang together, and winners that a group has not had yet.

A few dozen trades of a strategy that wins one in twelve may all be losers of the same size. Their own deviation is then
near 0 and says nothing about the mean. So a group varies at least as much as all trades of the strategy do, in runs
as long as theirs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsight.core.quantiles import t_95

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
"""The day of each trade, as its number among the days, in rising order."""
ROUNDING = 1e-12
"""Day scores below this share of the largest daily total are rounding errors of zero."""


def sum_by_day(amounts: Floats, codes: Codes, days: int) -> Floats:
    """The sums of the rows of each day, one row a day.

    >>> sum_by_day(np.array([[1.0], [2.0], [4.0]]), np.array([0, 0, 2]), 3).tolist()
    [[3.0], [0.0], [4.0]]
    """
    sums = np.zeros((days, amounts.shape[1]))
    if len(codes):
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        sums[codes[starts]] = np.add.reduceat(amounts, starts, axis=0)
    return sums


class GroupStatistics(NamedTuple):
    """Arrays with one figure for each group, and for the trades outside that group (the rest)."""

    n: Floats
    days: Floats
    mean: Floats
    half_width: Floats
    """Of the 90% confidence interval of the mean; NaN if all trades are of one day, or none differs from another."""
    rest_n: Floats
    rest_days: Floats
    rest_mean: Floats
    difference_half_width: Floats


def compare_with_rest(values: Floats, members: Floats, codes: Codes, days: int) -> GroupStatistics:
    """The mean of each group and of the rest, with 90% confidence intervals.

    The variance is the larger of two. The first is the group's own, clustered by day (Liang & Zeger 1986):

        m = Σ y / n,   u_g = Σ_{i on g} (y_i − m) / n,   V = G/(G − 1) · Σ_g u_g²

    For the difference, u_g is the group's score minus the rest's, and G the smaller number of days. The second is that
    of a mean of as many of all trades, as far apart in time (`pooled_variance`). The half width is t · √V, t the 95%
    quantile with G − 1 degrees of freedom. `members` has one column a group, 1 for its trades and 0 for the others.
    """
    count, total = sum_by_day(members, codes, days), sum_by_day(members * values[:, None], codes, days)
    all_count, all_total = sum_by_day(np.column_stack((np.ones_like(values), values)), codes, days).T
    rest_count, rest_total = all_count[:, None] - count, all_total[:, None] - total
    with np.errstate(all="ignore"):
        n, mean, scores = _day_scores(count, total)
        rest_n, rest_mean, rest_scores = _day_scores(rest_count, rest_total)
        traded, rest_traded = (count > 0).sum(axis=0), (rest_count > 0).sum(axis=0)
        in_mean, in_rest = members / n, (1.0 - members) / rest_n
        own = np.square(scores).sum(axis=0) * traded / (traded - 1.0)
        half_width = _half_width(np.maximum(own, pooled_variance(values, in_mean)), traded)
        # A day on which both sides traded counts once in the difference.
        fewer = np.minimum(traded, rest_traded)
        own = np.square(scores - rest_scores).sum(axis=0) * fewer / (fewer - 1.0)
        difference_half_width = _half_width(np.maximum(own, pooled_variance(values, in_mean - in_rest)), fewer)
    return GroupStatistics(n, traded, mean, half_width, rest_n, rest_traded, rest_mean, difference_half_width)


def pooled_variance(values: Floats, weights: Floats) -> Floats:
    """The variance of sums of the values with these weights, one column a sum, if all values vary alike.

        V = σ² · max(Σ_i w_i², Σ_k ρ_k Σ_i w_i w_{i+k})

    σ² and the autocorrelations ρ_k are those of all values in their order. Lags are added up for as long as pairs of
    neighbouring autocorrelations are positive (initial positive sequence: Geyer 1992).

    >>> pooled_variance(np.array([1.0, -1.0, -1.0, 1.0]), np.full((4, 1), 0.25)).round(3).tolist()
    [0.333]
    """
    n = len(values)
    if n < 2:
        return np.full(weights.shape[1], np.nan)
    size, centered = 2 * n, values - values.mean()
    autocovariance = np.fft.irfft(np.square(np.abs(np.fft.rfft(centered, size))), size)[:n] / (n - 1)
    lags = _positive_lags(autocovariance)
    overlaps = np.fft.irfft(np.square(np.abs(np.fft.rfft(weights, size, axis=0))), size, axis=0)[:lags]
    both_sides = np.where(np.arange(lags) == 0, 1.0, 2.0) * autocovariance[:lags]
    return np.asarray(np.maximum(overlaps[0] * autocovariance[0], both_sides @ overlaps), dtype=np.float64)


def _positive_lags(autocovariance: Floats) -> int:
    """The number of lags up to the first pair of neighbours whose sum is not positive, lag 0 included."""
    pairs = autocovariance[1 : 1 + (len(autocovariance) - 1) // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0.0)
    return 1 + 2 * (int(ends[0]) if len(ends) else len(pairs))


def _day_scores(count: Floats, total: Floats) -> tuple[Floats, Floats, Floats]:
    """The number of trades, their mean, and each day's score u_g."""
    n = count.sum(axis=0)
    mean = total.sum(axis=0) / n
    scores = (total - mean * count) / n
    scores[np.abs(scores) < ROUNDING * np.abs(total).max(initial=0.0)] = 0.0
    return n, mean, scores


def _half_width(variance: Floats, days: Floats) -> Floats:
    """The half width of the interval; NaN for a single day, and where nothing has varied yet."""
    quantile = np.array([t_95(int(each) - 1) if each > 1 else np.nan for each in days])
    return np.where(variance > 0.0, quantile * np.sqrt(variance), np.nan)


def group_means(values: Floats, members: Floats) -> tuple[Floats, Floats]:
    """The mean of each group and of its rest; NaN in `values` is unknown and left out, NaN is returned for no value.

    >>> means = group_means(np.array([1.0, np.nan, 3.0]), np.array([[1.0], [1.0], [0.0]]))
    >>> [each.tolist() for each in means]
    [[1.0], [3.0]]
    """
    is_known = ~np.isnan(values)
    known_values = np.where(is_known, values, 0.0)
    n, total = is_known @ members, known_values @ members
    with np.errstate(all="ignore"):
        return total / n, (known_values.sum() - total) / (is_known.sum() - n)
