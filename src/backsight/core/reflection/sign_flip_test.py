"""Sign-flip (randomisation) test with the max statistic: is the strongest of many patterns more than chance?

The difference of a pattern from the rest is a sum over days, s_g = Σ_{i on g} x̃_i · e_i. x̃ is the membership and e the
outcome, both as residuals after the constant and the patterns found earlier. Without a real pattern the contribution
of a day is as likely positive as negative, for all patterns of that day together. Flipping the signs of whole days at
random therefore gives the null distribution of the largest statistic

    T = |Σ_g s_g| / √(Σ_g s_g²)

over all patterns (max statistic: Westfall & Young 1993), which corrects for the number of comparisons. Days are
flipped, not trades: trades of one day win and lose together. The divisor is the same under every flip (wild bootstrap
of scores, null imposed: Kline & Santos 2012).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backsight.core.reflection.day_clusters import Codes, Floats, sum_by_day

FLIPS = 4095
NO_CONTRIBUTION = 1e-9
ROUNDING = 1e-4
"""The flips are computed in single precision: a statistic this close counts as reached."""

Signs = NDArray[np.float32]


def day_contributions(values: Floats, members: Floats, known: Floats, codes: Codes, days: int) -> Floats:
    """Each day's contribution to each pattern's T, already divided; zero for patterns that `known` explains.

    `members` has one column a pattern, `known` one column a pattern found earlier; `codes` are the days of the trades.

    >>> outcomes = np.array([1.0, 2.0, -1.0, -2.0])
    >>> long = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> day_contributions(outcomes, long, np.empty((4, 0)), np.arange(4), 4).sum(axis=0).round(3).tolist()
    [1.897]
    """
    # Residuals of outcomes and memberships, after regression on the constant and the known patterns.
    regressors = np.column_stack((np.ones(len(values)), known))
    outcomes_and_members = np.column_stack((values, members))
    residuals = outcomes_and_members - regressors @ np.linalg.lstsq(regressors, outcomes_and_members, rcond=None)[0]
    # Sum their products by day, and divide by the norm over days.
    sums = sum_by_day(residuals[:, 1:] * residuals[:, :1], codes, days)
    norm = np.sqrt(np.square(sums).sum(axis=0))
    # A pattern without residual variation is explained by the known ones: its rounding errors must not be scaled up.
    least = NO_CONTRIBUTION * np.sqrt(np.square(members).sum(axis=0) * np.square(values).sum())
    is_unexplained = (norm > least) & (np.square(residuals[:, 1:]).sum(axis=0) > NO_CONTRIBUTION)
    scaled: Floats = np.divide(sums, norm, out=np.zeros_like(sums), where=is_unexplained)
    return scaled


def random_signs(days: int, *, seed: int, flips: int = FLIPS) -> Signs:
    """Random +1 and −1, one row a flip and one column a day; a seed gives the same signs in every NumPy version.

    >>> random_signs(5, seed=1).shape, sorted(set(random_signs(5, seed=1).ravel().tolist()))
    ((4095, 5), [-1.0, 1.0])
    """
    count = flips * days
    raw = np.asarray(np.random.PCG64(seed).random_raw((count + 63) // 64), dtype="<u8")
    bits = np.unpackbits(raw.view(np.uint8))[:count].reshape(flips, days)
    return bits.astype(np.float32) * np.float32(2.0) - np.float32(1.0)


def max_statistics(contributions: Floats, signs: Signs) -> Floats:
    """The largest T of all patterns under each flip: the null distribution."""
    largest: Floats = np.abs(signs @ contributions.astype(np.float32)).max(axis=1).astype(np.float64)
    return largest


def p_value(statistic: float, null: Floats) -> float:
    """The share of flips whose largest T reaches the statistic; the data count as one more flip.

    >>> p_value(2.5, np.array([1.0, 2.0, 3.0])), p_value(9.0, np.array([1.0, 2.0, 3.0]))
    (0.5, 0.25)
    """
    return float(1 + np.count_nonzero(null >= statistic - ROUNDING)) / (1 + len(null))


def exclude_earlier_rejections(
    null: Floats, contributions: Floats, signs: Signs, earlier: Sequence[tuple[int, float]]
) -> Floats:
    """The null distribution with −∞ for each flip under which an earlier test would already have rejected.

    `earlier` has the number of days and the level of each earlier test; its days are the first rows of `contributions`.
    A flip on which an earlier test spent its level is not paid for again, so tests that share most of their days cost
    less than the sum of their levels (group sequential tests: Lan & DeMets 1983).
    """
    remaining, weights = null.copy(), np.sqrt(np.square(contributions).sum(axis=0))
    for days, level in earlier:
        # The statistics that the earlier test would have had under each flip, from the days it had.
        earlier_days = contributions[:days]
        norm = np.sqrt(np.square(earlier_days).sum(axis=0))
        scaled = np.divide(earlier_days * weights, norm, out=np.zeros_like(earlier_days), where=norm > NO_CONTRIBUTION)
        statistics = np.where(np.isneginf(remaining), -np.inf, max_statistics(scaled, signs[:, :days]))
        # It rejects under its level's share of the flips, those with the largest statistics.
        rejections = int(level * (1 + len(remaining)))
        remaining[np.argsort(-statistics, kind="stable")[:rejections]] = -np.inf
    return remaining


def strongest_pattern(statistics: Floats, tie_break: Sequence[tuple[float | int | str, ...]]) -> int:
    """The index of the largest statistic; of patterns with the same statistic, the first by `tie_break`.

    >>> strongest_pattern(np.array([1.0, 3.0, 3.0]), [(0,), (2,), (1,)])
    2
    """
    tied = np.flatnonzero(statistics >= statistics.max() * (1.0 - NO_CONTRIBUTION))
    return min((int(index) for index in tied), key=lambda index: tie_break[index])
