"""Standard errors of a mean whose days are not independent: how much more the mean varies than its days suggest.

Days that resemble the days before them leave long waves in the residuals. The mean of the squares of the longest ν
cosine waves estimates the variance of the mean with ν degrees of freedom, whatever the days have in common, as long as
they resemble each other for a shorter time than the shortest of these waves (Müller 2007; Lazarus, Lewis, Stock &
Watson 2018). Three lengths are tried, and the one that gives the largest error counts: the length of the dependence
need not be known.

Few waves are a noisy estimate. Their ratio r to the variance by days is shrunk towards 1, by James & Stein's (1961)
rule for the variance 2 / ν of the ratio of independent days, so that independent days keep their narrow intervals.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WAVES = (4, 8, 16)
"""The numbers of waves that are tried. Four waves span half of the history each: nothing that lasts longer is seen."""
DAYS_A_WAVE = 4
"""The fewest days for each wave."""
BINS = 64
"""The history is cut into this many parts of equal weight, so that a wave is the same few numbers for every history."""
NUDGE = 1e-6
"""Added to the place of a day in bins, so that rounding does not decide about a day on the border of two bins."""
COSINES: Floats = np.sqrt(2.0) * np.cos(np.pi * np.outer((np.arange(BINS) + 0.5) / BINS, np.arange(1, WAVES[-1] + 1)))
FREEDOM: Floats = np.array(WAVES, np.float64)


def wave_variances(residuals: Floats, weights: Floats) -> Floats:
    """The variance of a mean by its longest 4, 8 and 16 waves, in the last axis; the axis of days is the last one.

    `residuals` are the sums by day of weight × (outcome − mean); the variance is that of their total, so that it
    compares with the sum of their squares. Days are in order, and a day's place is its place in the total weight.

    >>> alternating, slow = np.tile([1.0, -1.0], 50), np.repeat([1.0, -1.0], 50)
    >>> wave_variances(np.stack([alternating, slow]), np.ones((2, 100))).round().tolist()
    [[1.0, 1.0, 2.0], [2248.0, 1183.0, 604.0]]
    """
    rows, days = residuals.reshape(-1, residuals.shape[-1]), weights.reshape(-1, weights.shape[-1])
    place = np.cumsum(days, axis=1)
    total = place[:, -1:].copy()
    place -= 0.5 * days
    place *= BINS / np.where(total > 0.0, total, 1.0)
    place += NUDGE
    bins = np.minimum(place.astype(np.intp), BINS - 1)
    bins += BINS * np.arange(len(rows))[:, None]
    sums = np.bincount(bins.ravel(), rows.ravel(), minlength=BINS * len(rows)).reshape(-1, BINS)
    squares = np.cumsum(np.square(sums @ COSINES), axis=1)
    variances = squares[:, np.array(WAVES) - 1] / FREEDOM
    return np.asarray(variances.reshape(*residuals.shape[:-1], len(WAVES)), np.float64)


def widening(ratios: Floats, days: Floats | int, quantile: Callable[[int], float]) -> Floats:
    """The largest shrunk ratio × (quantile of Student's t)² over the numbers of waves; 0 where no ratio is above 1.

    `ratios` are variances by waves over the variance by days, in the last axis. A squared t statistic of the mean is
    to be compared with this, or with the squared quantile at days − 1, whichever is larger.

    >>> from backsight.core.quantiles import t_95
    >>> [round(float(widening(np.array([r, 1.0, 1.0]), 100, t_95)), 2) for r in (0.8, 1.7, 2.0, 9.0)]
    [0.0, 0.0, 6.82, 40.62]
    """
    excess = np.maximum(ratios - 1.0, 1e-9)
    shrunk = excess - (2.0 / FREEDOM) / excess
    squares = np.array([quantile(waves) ** 2 for waves in WAVES])
    enough = np.asarray(days)[..., None] >= DAYS_A_WAVE * FREEDOM
    counted = (shrunk > 0.0) & enough
    return np.asarray(np.where(counted, (1.0 + shrunk) * squares, 0.0).max(axis=-1), np.float64)
