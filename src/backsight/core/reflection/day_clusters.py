"""Group means with cluster-robust standard errors: trades of one day form a cluster, since they are not independent."""

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
    """Of the 90 % confidence interval of the mean; NaN where all trades are of one day."""
    rest_n: Floats
    rest_days: Floats
    rest_mean: Floats
    difference_half_width: Floats


def compare_with_rest(values: Floats, members: Floats, codes: Codes, days: int) -> GroupStatistics:
    """The mean of each group and of the rest, with confidence intervals from cluster-robust errors by day.

        m = Σ y / n,   u_g = Σ_{i on g} (y_i − m) / n,   V = G/(G − 1) · Σ_g u_g²,   half width = t · √V

    (Liang & Zeger 1986), t the 95 % quantile with G − 1 degrees of freedom. For the difference, u_g is the group's
    score minus the rest's, and G the smaller number of days. A group without any variation is given the variance of
    all trades. `members` has one column a group, 1 for its trades and 0 for the others.
    """
    count, total = sum_by_day(members, codes, days), sum_by_day(members * values[:, None], codes, days)
    all_count, all_total = sum_by_day(np.column_stack((np.ones_like(values), values)), codes, days).T
    rest_count, rest_total = all_count[:, None] - count, all_total[:, None] - total
    with np.errstate(all="ignore"):
        n, mean, scores = _day_scores(count, total)
        rest_n, rest_mean, rest_scores = _day_scores(rest_count, rest_total)
        traded, rest_traded = (count > 0).sum(axis=0), (rest_count > 0).sum(axis=0)
        # The variance of the group mean; of all trades over n where the group does not vary.
        variance = values.var(ddof=1) if len(values) > 1 else np.nan
        squares = np.square(scores).sum(axis=0)
        half_width = _half_width(np.where(squares > 0.0, squares, variance / n), traded)
        # The variance of the difference, from the scores of both sides: a day on which both traded counts once.
        difference_squares = np.square(scores - rest_scores).sum(axis=0)
        difference_squares = np.where(squares > 0.0, difference_squares, difference_squares + variance / n)
        difference_half_width = _half_width(difference_squares, np.minimum(traded, rest_traded))
    return GroupStatistics(n, traded, mean, half_width, rest_n, rest_traded, rest_mean, difference_half_width)


def _day_scores(count: Floats, total: Floats) -> tuple[Floats, Floats, Floats]:
    """The number of trades, their mean, and each day's score u_g."""
    n = count.sum(axis=0)
    mean = total.sum(axis=0) / n
    scores = (total - mean * count) / n
    scores[np.abs(scores) < ROUNDING * np.abs(total).max(initial=0.0)] = 0.0
    return n, mean, scores


def _half_width(squares: Floats, days: Floats) -> Floats:
    quantile = np.array([t_95(int(each) - 1) if each > 1 else np.nan for each in days])
    return quantile * np.sqrt(squares * days / (days - 1.0))


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
