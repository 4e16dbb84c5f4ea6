"""Whether a pattern is more than chance: signs of days flipped, the largest of all patterns taken.

The maximum over patterns is that of Westfall & Young (1993).
A pattern's difference from the rest is a sum over days: s_g = Σ_{i on g} x̃_i · e_i, x̃ the membership and e the outcome,
both less what the constant and the patterns already found say of them. Without a pattern each day's contribution is as
likely of either sign, all patterns' of that day together; so flipping whole days tells how large the largest of

    T = |Σ_g s_g| / √(Σ_g s_g²)

is by chance. Days, not trades, are flipped: trades of one day win and lose together. The divisor is the same under
every flip (wild bootstrap of scores, null imposed: Kline & Santos 2012).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from backsight.core.reflection.day_clusters import Codes, Floats, sum_by_day

FLIPS = 4095
NO_CONTRIBUTION = 1e-9
ROUNDING = 1e-4
"""By which single precision may put a flip off: what is that near counts as reached."""

Signs = NDArray[np.float32]


def day_contributions(values: Floats, members: Floats, known: Floats, codes: Codes, days: int) -> Floats:
    """Each day's part in each pattern's T, over its divisor; zero for what known patterns explain.

    `members` has a column a pattern, `known` one for each pattern already found; `codes` are the trades' days.

    >>> trades = np.array([1.0, 2.0, -1.0, -2.0])
    >>> long = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> day_contributions(trades, long, np.empty((4, 0)), np.arange(4), 4).sum(axis=0).round(3).tolist()
    [1.897]
    """
    explained = np.column_stack((np.ones(len(values)), known))
    both = np.column_stack((values, members))
    left = both - explained @ np.linalg.lstsq(explained, both, rcond=None)[0]
    parts = sum_by_day(left[:, 1:] * left[:, :1], codes, days)
    size = np.sqrt(np.square(parts).sum(axis=0))
    least = NO_CONTRIBUTION * np.sqrt(np.square(members).sum(axis=0) * np.square(values).sum())
    told = (size > least) & (np.square(left[:, 1:]).sum(axis=0) > NO_CONTRIBUTION)
    scaled: Floats = np.divide(parts, size, out=np.zeros_like(parts), where=told)
    return scaled


def random_signs(days: int, *, seed: int, flips: int = FLIPS) -> Signs:
    """So many random rows of +1 and −1, a column a day; the same for the same seed, whatever the version of NumPy.

    >>> random_signs(5, seed=1).shape, sorted(set(random_signs(5, seed=1).ravel().tolist()))
    ((4095, 5), [-1.0, 1.0])
    """
    count = flips * days
    raw = np.asarray(np.random.PCG64(seed).random_raw((count + 63) // 64), dtype="<u8")
    bits = np.unpackbits(raw.view(np.uint8))[:count].reshape(flips, days)
    return bits.astype(np.float32) * np.float32(2.0) - np.float32(1.0)


def max_statistics(parts: Floats, flipped: Signs) -> Floats:
    """The largest T of all patterns under each flip."""
    largest: Floats = np.abs(flipped @ parts.astype(np.float32)).max(axis=1).astype(np.float64)
    return largest


def p_value(statistic: float, by_chance: Floats) -> float:
    """How often chance alone reaches a statistic, itself counted among the flips.

    >>> p_value(2.5, np.array([1.0, 2.0, 3.0])), p_value(9.0, np.array([1.0, 2.0, 3.0]))
    (0.5, 0.25)
    """
    return float(1 + np.count_nonzero(by_chance >= statistic - ROUNDING)) / (1 + len(by_chance))


def exclude_earlier_rejections(
    by_chance: Floats, parts: Floats, flipped: Signs, earlier: Sequence[tuple[int, float]]
) -> Floats:
    """The largest T under each flip; −∞ where an earlier test would have found something under that flip.

    `earlier` are the days that each earlier test saw, of those in `parts`, and its level. A level that an earlier test
    has spent on a flip is not spent on it again: tests that share most of their days cost less than their sum (group
    sequential tests: Lan & DeMets 1983).
    """
    left, weights = by_chance.copy(), np.sqrt(np.square(parts).sum(axis=0))
    for days, level in earlier:
        spent = int(level * (1 + len(left)))
        seen = parts[:days]
        size = np.sqrt(np.square(seen).sum(axis=0))
        scaled = np.divide(seen * weights, size, out=np.zeros_like(seen), where=size > NO_CONTRIBUTION)
        then = np.where(np.isneginf(left), -np.inf, max_statistics(scaled, flipped[:, :days]))
        left[np.argsort(-then, kind="stable")[:spent]] = -np.inf
    return left


def strongest_pattern(statistics: Floats, tie_break: Sequence[tuple[float | int | str, ...]]) -> int:
    """Which pattern is the strongest; of those that say the same, the first by `tie_break`.

    >>> strongest_pattern(np.array([1.0, 3.0, 3.0]), [(0,), (2,), (1,)])
    2
    """
    near = np.flatnonzero(statistics >= statistics.max() * (1.0 - NO_CONTRIBUTION))
    return min((int(place) for place in near), key=lambda place: tie_break[place])
