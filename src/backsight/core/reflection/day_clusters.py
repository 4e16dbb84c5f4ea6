"""Means of groups of trades and of the rest, and how far they may be off when days are the units."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsight.core.quantiles import t_95

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def sum_by_day(amounts: Floats, codes: Codes, days: int) -> Floats:
    """The sums of rows of one day, a row a day; `codes` are the days of the rows, in rising order.

    >>> sum_by_day(np.array([[1.0], [2.0], [4.0]]), np.array([0, 0, 2]), 3).tolist()
    [[3.0], [0.0], [4.0]]
    """
    summed = np.zeros((days, amounts.shape[1]))
    if len(codes):
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        summed[codes[starts]] = np.add.reduceat(amounts, starts, axis=0)
    return summed


class GroupStatistics(NamedTuple):
    """A figure for each group, and for the rest of the trades."""

    n: Floats
    days: Floats
    mean: Floats
    reach: Floats
    """Half of the 90 % interval of the mean; NaN on one day."""
    rest_n: Floats
    rest_days: Floats
    rest_mean: Floats
    difference_reach: Floats


def compare_with_rest(values: Floats, members: Floats, codes: Codes, days: int) -> GroupStatistics:
    """The mean of each group beside that of the rest, with errors by days.

        m = Σ y / n,   u_g = Σ_{i on g} (y_i − m) / n,   V = G/(G − 1) · Σ_g u_g²,   reach = t · √V

    (Liang & Zeger 1986), t the 95 % quantile at G − 1; for the difference u_g is the group's less the rest's, and G
    the smaller number of days. A group whose trades are all alike varies as all trades do.
    """
    count, total = sum_by_day(members, codes, days), sum_by_day(members * values[:, None], codes, days)
    all_count, all_total = sum_by_day(np.column_stack((np.ones_like(values), values)), codes, days).T
    rest_count, rest_total = all_count[:, None] - count, all_total[:, None] - total
    with np.errstate(all="ignore"):
        n, mean, off = _day_scores(count, total)
        rest_n, rest_mean, rest_off = _day_scores(rest_count, rest_total)
        traded, rest_traded = (count > 0).sum(axis=0), (rest_count > 0).sum(axis=0)
        spread = values.var(ddof=1) if len(values) > 1 else np.nan
        own = np.square(off).sum(axis=0)
        reach = _half_width(np.where(own > 0.0, own, spread / n), traded)
        apart = np.square(off - rest_off).sum(axis=0)
        apart = np.where(own > 0.0, apart, apart + spread / n)
        difference_reach = _half_width(apart, np.minimum(traded, rest_traded))
    return GroupStatistics(n, traded, mean, reach, rest_n, rest_traded, rest_mean, difference_reach)


def _day_scores(count: Floats, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Trades, their mean, and each day's part in how far that is off."""
    n = count.sum(axis=0)
    mean = total.sum(axis=0) / n
    off = (total - mean * count) / n
    off[np.abs(off) < 1e-12 * np.abs(total).max(initial=0.0)] = 0.0
    return n, mean, off


def _half_width(squares: Floats, days: Floats) -> Floats:
    quantile = np.array([t_95(int(each) - 1) if each > 1 else np.nan for each in days])
    return quantile * np.sqrt(squares * days / (days - 1.0))


def group_means(values: Floats, members: Floats) -> tuple[Floats, Floats]:
    """The mean of each group's values and of the rest's, NaN in the values being not known; NaN without any.

    >>> means = group_means(np.array([1.0, np.nan, 3.0]), np.array([[1.0], [1.0], [0.0]]))
    >>> [each.tolist() for each in means]
    [[1.0], [3.0]]
    """
    known = ~np.isnan(values)
    held = np.where(known, values, 0.0)
    n, total = known @ members, held @ members
    with np.errstate(all="ignore"):
        return total / n, (held.sum() - total) / (known.sum() - n)
