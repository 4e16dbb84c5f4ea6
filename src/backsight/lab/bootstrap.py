"""Intervals by a bootstrap of blocks of days, and the test that calls an arm better.

Blocks of days are drawn in a circle (Politis & Romano 1992), of n^(1/3) days each. All arms are resampled with the same
days, so that differences between arms are paired. The test compares Sharpe ratios: each difference is divided by its
standard error (Ledoit & Wolf 2008), and the critical value is that of the largest statistic of all arms (Romano & Wolf
2005), so that with many arms the chance of a false call does not grow.
"""

import math
from dataclasses import dataclass

import numpy as np

from backsight.lab.equity import DailyResults, Floats
from backsight.lab.metrics import DAYS_A_YEAR, sharpe
from backsight.lab.split import Integers

RESAMPLES = 1_000
LEVEL = 0.9
"""The level of an interval of one metric."""
CALL_LEVEL = 0.95
"""The level of the intervals of all differences together: half of the rest is the chance of a false "better"."""


def block_length(days: int) -> int:
    """The length of a block: the cube root of the number of days (Hall, Horowitz & Jing 1995).

    >>> [block_length(days) for days in (1, 30, 365)]
    [1, 3, 7]
    """
    return max(1, round(math.cbrt(days)))


def resampled_days(days: int, rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Integers:
    """The days of each resample: one row a resample, as many days as there are."""
    length = block_length(days)
    blocks = math.ceil(days / length)
    starts = rng.integers(0, days, size=(resamples, blocks))
    places = (starts[:, :, None] + np.arange(length)) % days
    return np.asarray(places.reshape(resamples, -1)[:, :days], np.int64)


def resampled(daily: DailyResults, row: int, days: Integers) -> DailyResults:
    """The resamples of one arm: each row of `days` is a resample."""
    return DailyResults(
        returns=daily.returns[row][days],
        wins=daily.wins[row][days],
        losses=daily.losses[row][days],
        trades=daily.trades[row][days],
    )


def day_counts(days: Integers, count: int) -> Floats:
    """How often each day is in each resample."""
    rows = np.arange(len(days))[:, None] * count
    return np.bincount((rows + days).ravel(), minlength=len(days) * count).reshape(-1, count).astype(np.float64)


def interval(values: Floats, *, level: float = LEVEL) -> tuple[float, float] | None:
    """The percentile interval of resampled values; None where more than a tenth of them have no value."""
    known = values[np.isfinite(values)]
    if len(known) < 0.9 * len(values):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def sharpe_influence(returns: Floats) -> Floats:
    """How much each day moves the yearly Sharpe ratio: its influence function, one row a row of returns."""
    mean = returns.mean(axis=-1, keepdims=True)
    deviation = returns.std(axis=-1, keepdims=True)
    usable = deviation > 1e-12 * np.abs(returns).max(axis=-1, keepdims=True, initial=0.0)
    z = np.where(usable, (returns - mean) / np.where(usable, deviation, 1.0), 0.0)
    ratio = np.where(usable, mean / np.where(usable, deviation, 1.0), 0.0)
    return np.asarray(math.sqrt(DAYS_A_YEAR) * (z - 0.5 * ratio * (np.square(z) - 1.0)), np.float64)


def difference_error(first: Floats, second: Floats) -> Floats:
    """The standard error of the difference of two Sharpe ratios of the same days, by sums over blocks of days."""
    influence = sharpe_influence(first) - sharpe_influence(second)
    days = influence.shape[-1]
    length = block_length(days)
    blocks = days // length
    if blocks < 2:
        return np.full(influence.shape[:-1], np.inf)
    used = influence[..., : blocks * length].reshape(*influence.shape[:-1], blocks, length).sum(axis=-1)
    centred = used - used.mean(axis=-1, keepdims=True)
    return np.asarray(np.sqrt(np.square(centred).sum(axis=-1) * blocks / (blocks - 1)) / (blocks * length), np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharpeComparison:
    """The differences of the Sharpe ratios of arms to a baseline, with simultaneous intervals."""

    difference: Floats
    low: Floats
    high: Floats
    critical: float
    """How many standard errors half of an interval is wide."""


def compare_sharpe(arms: Floats, baseline: Floats, days: Integers) -> SharpeComparison:
    """Compare each row of returns with the baseline; all intervals hold together with a probability of 95%."""
    difference = sharpe(arms) - float(sharpe(baseline))
    error = difference_error(arms, baseline[None, :])
    usable = np.isfinite(error) & (error > 0.0)
    if not usable.any():
        return SharpeComparison(difference=difference, low=difference, high=difference, critical=math.inf)
    base = baseline[days]
    base_sharpe = sharpe(base)
    largest = np.zeros(len(days))
    for row in np.flatnonzero(usable):
        drawn = arms[row][days]
        spread = difference_error(drawn, base)
        deviation = sharpe(drawn) - base_sharpe - difference[row]
        statistic = np.where(spread > 0.0, np.abs(deviation) / np.where(spread > 0.0, spread, 1.0), 0.0)
        largest = np.maximum(largest, statistic)
    critical = float(np.quantile(largest, CALL_LEVEL))
    half = np.where(usable, critical * np.where(usable, error, 0.0), np.where(difference == 0.0, 0.0, np.inf))
    return SharpeComparison(difference=difference, low=difference - half, high=difference + half, critical=critical)
