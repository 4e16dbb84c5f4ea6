"""Estimates of habits: a figure with its 90% interval, and how often chance alone makes it so large.

Trades in a row resemble each other: sizes and holding times persist, and so do outcomes. The standard errors therefore
count the autocorrelation of the contributions (Newey & West 1987), and are never below those of independent trades.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from backsight.core.statistics import moments_of, t_quantile, t_two_sided

FEWEST = 10
"""How many trades a figure needs."""
FEWEST_IN_GROUP = 3
"""How many trades each of two groups needs before their ratio has an interval."""
LEVEL = 0.9
FLOOR = 0.01
"""Share of the mean that is added before a logarithm is taken, since a holding time may be 0."""
NO_VARIATION = 1e-18
"""A variance, in shares of the mean, that is nothing but rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value, the number of trades behind it, and its 90% interval; the value is None for fewer than ten."""

    value: float | None
    n: int
    low: float | None = None
    """The lower end of the interval; None where the trades do not tell how far the value may be off."""
    high: float | None = None
    p_value: float | None = None
    """The two-sided probability of a value so far from the neutral one, if there is no such habit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contrast:
    """A difference, its standard error and its degrees of freedom."""

    value: float
    error: float
    freedom: int

    @property
    def interval(self) -> tuple[float, float]:
        margin = _t_quantile(self.freedom) * self.error
        return self.value - margin, self.value + margin

    @property
    def p_value(self) -> float:
        return t_two_sided(self.value / self.error, freedom=self.freedom)


def mean_estimate(values: Sequence[float], *, neutral: float) -> Estimate:
    """The mean of values in trading order, against the value that would mean no habit.

    >>> estimate = mean_estimate([1.0, 2.0, 3.0, 2.0] * 5, neutral=1.0)
    >>> estimate.value, round(estimate.low, 2), round(estimate.high, 2), round(estimate.p_value, 4)
    (2.0, 1.72, 2.28, 0.0)
    """
    moments = moments_of(values)
    n, mean = moments.n, moments.mean
    if n < FEWEST:
        return Estimate(value=None, n=n)
    error = _error([(value - mean) / n for value in values], correction=n / (n - 1))
    if not error > 0.0:
        return Estimate(value=mean, n=n)
    contrast = _Contrast(value=mean - neutral, error=error, freedom=n - 1)
    low, high = contrast.interval
    return Estimate(value=mean, n=n, low=neutral + low, high=neutral + high, p_value=contrast.p_value)


def ratio_estimate(values: Sequence[float], is_first: Sequence[bool]) -> Estimate:
    """mean(first group) / mean(second group) − 1, of values in trading order.

    None if a group is empty or the divisor is not above zero. The interval contains two: that of the ratio of means,
    and that of the ratio of geometric means. The first alone is too narrow where a few values are very large, as
    holding times are.

    >>> estimate = ratio_estimate([3.0, 2.0, 4.0, 1.0] * 5, [True, False] * 10)
    >>> round(estimate.value, 2), round(estimate.low, 2), round(estimate.high, 2), estimate.n
    (1.33, 0.88, 2.02, 20)
    """
    first = [value for value, mine in zip(values, is_first, strict=True) if mine]
    second = [value for value, mine in zip(values, is_first, strict=True) if not mine]
    n = len(values)
    if n < FEWEST or not first or not second or not math.fsum(second) > 0.0:
        return Estimate(value=None, n=n)
    means = math.fsum(first) / len(first), math.fsum(second) / len(second)
    value = means[0] / means[1] - 1.0
    if min(len(first), len(second)) < FEWEST_IN_GROUP or not means[0] > 0.0:
        return Estimate(value=value, n=n)
    # The delta method: the logarithm of a ratio moves by each value's deviation as a share of its group's mean.
    scaled = [each / means[0 if mine else 1] for each, mine in zip(values, is_first, strict=True)]
    of_means = _contrast(scaled, is_first, difference=math.log1p(value))
    floor = FLOOR * math.fsum(values) / n
    of_logarithms = _contrast([math.log(max(0.0, each) + floor) for each in values], is_first)
    contrasts = [each for each in (of_means, of_logarithms) if each is not None]
    if len(contrasts) < 2:
        return Estimate(value=value, n=n)
    lows, highs = zip(*(each.interval for each in contrasts), strict=True)
    same_side = of_means is not None and of_logarithms is not None and of_means.value * of_logarithms.value > 0.0
    return Estimate(
        value=value,
        n=n,
        low=math.expm1(min(lows)),
        high=math.expm1(max(highs)),
        p_value=max(each.p_value for each in contrasts) if same_side else 1.0,
    )


def correlation_estimate(points: Sequence[tuple[float, float]]) -> Estimate:
    """Pearson's r of points in trading order, with Fisher's interval; None where either variable is constant.

    >>> estimate = correlation_estimate([(0.0, 2.0), (2.0, 4.0), (1.0, 2.0), (2.0, 3.0)] * 5)
    >>> round(estimate.value, 2), round(estimate.low, 2), round(estimate.high, 2)
    (0.82, 0.62, 0.92)
    """
    n = len(points)
    value = correlation(points) if n >= FEWEST else None
    if value is None:
        return Estimate(value=None, n=n)
    xs, ys = moments_of([x for x, _ in points]), moments_of([y for _, y in points])
    scale_x, scale_y = math.sqrt(xs.squares / n), math.sqrt(ys.squares / n)
    standardised = [((x - xs.mean) / scale_x, (y - ys.mean) / scale_y) for x, y in points]
    # The influence of each point on r, and the error of Fisher's z = artanh r, at least 1/√(n − 3).
    influence = [(x * y - value * (x * x + y * y) / 2.0) / n for x, y in standardised]
    r = max(-1.0 + 1e-12, min(1.0 - 1e-12, value))
    error = max(_error(influence, correction=n / (n - 2)) / (1.0 - r * r), 1.0 / math.sqrt(n - 3))
    contrast = _Contrast(value=math.atanh(r), error=error, freedom=n - 2)
    low, high = contrast.interval
    return Estimate(value=value, n=n, low=math.tanh(low), high=math.tanh(high), p_value=contrast.p_value)


def correlation(points: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's r; None where either variable is constant.

    >>> correlation([(0.0, 2.0), (2.0, 4.0), (0.0, 2.0), (2.0, 4.0)]), correlation([(1.0, 2.0), (2.0, 2.0)])
    (1.0, None)
    """
    xs, ys = moments_of([x for x, _ in points]), moments_of([y for _, y in points])
    if not (xs.squares > 0 and ys.squares > 0):
        return None
    mean_x, mean_y = xs.mean, ys.mean
    products = math.fsum([(x - mean_x) * (y - mean_y) for x, y in points])
    return max(-1.0, min(1.0, products / math.sqrt(xs.squares) / math.sqrt(ys.squares)))


def _contrast(
    values: Sequence[float], is_first: Sequence[bool], *, difference: float | None = None
) -> _Contrast | None:
    """The difference of the means of two groups (Welch 1947); None if the values do not vary at all.

    Where they vary between the groups but not within, the error is that under the hypothesis of no difference.
    """
    groups = {
        wanted: moments_of([value for value, mine in zip(values, is_first, strict=True) if mine is wanted])
        for wanted in (True, False)
    }
    contributions = [
        (value - groups[mine].mean) * (1.0 if mine else -1.0) / math.sqrt(groups[mine].n * (groups[mine].n - 1.0))
        for value, mine in zip(values, is_first, strict=True)
    ]
    value = groups[True].mean - groups[False].mean if difference is None else difference
    variances = [group.squares / (group.n * (group.n - 1.0)) for group in groups.values()]
    total, n = sum(variances), len(values)
    if total > NO_VARIATION:
        # Welch-Satterthwaite degrees of freedom: (Σ v)² / Σ v²/(n − 1).
        spread = sum(v * v / (group.n - 1.0) for v, group in zip(variances, groups.values(), strict=True))
        return _Contrast(value=value, error=_error(contributions), freedom=max(1, math.floor(total * total / spread)))
    if abs(value) > NO_VARIATION:
        return _Contrast(value=value, error=abs(value) / math.sqrt(n - 1.0), freedom=n - 2)
    return None


def _error(contributions: Sequence[float], *, correction: float = 1.0) -> float:
    """The standard error of a sum of contributions with mean 0, in trading order.

    The larger of that of independent contributions and that of Newey & West (1987) with Bartlett's weights over √n
    lags. The latter is widened for its own uncertainty as the 95% quantile of Kiefer & Vogelsang (2005) is, by
    (1.6449 + 2.1859·b) / 1.6449 for lags of a share b of the trades.
    """
    independent = math.fsum(map(mul, contributions, contributions))
    lags = round(math.sqrt(len(contributions)))
    products = [
        (1.0 - lag / (lags + 1.0)) * math.fsum(map(mul, contributions[lag:], contributions))
        for lag in range(1, lags + 1)
    ]
    dependent = max(0.0, independent + 2.0 * math.fsum(products))
    widened = 1.0 + 2.1859 / 1.6449 * lags / len(contributions)
    return max(math.sqrt(independent), widened * math.sqrt(dependent)) * math.sqrt(correction)


@lru_cache(maxsize=256)
def _t_quantile(freedom: int) -> float:
    return t_quantile(0.5 + LEVEL / 2.0, freedom=freedom)
