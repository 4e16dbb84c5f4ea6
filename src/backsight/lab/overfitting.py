"""How much of the best Sharpe ratio is luck: the probabilistic and deflated Sharpe ratio, and PBO.

Sharpe ratios here are by day, not by year.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np

from backsight.lab.equity import Floats
from backsight.lab.metrics import DAYS_A_YEAR, mean_ranks, sharpe

EULER = 0.5772156649015329
NORMAL = NormalDist()


def daily_sharpe(returns: Floats) -> float:
    """The Sharpe ratio by day; 0 without variance."""
    return float(sharpe(returns)) / math.sqrt(DAYS_A_YEAR)


def probabilistic_sharpe(returns: Floats, *, benchmark: float = 0.0) -> float | None:
    """The probability that the true Sharpe ratio by day is above a benchmark (Bailey & López de Prado 2012).

    None without variance. The skewness and kurtosis of the returns widen the error.

    >>> returns = np.array([0.01, -0.005, 0.012, 0.003, -0.002, 0.008, 0.001, -0.004, 0.006, 0.002])
    >>> round(probabilistic_sharpe(returns), 3)
    0.953
    """
    n = len(returns)
    deviation = float(returns.std()) if n else 0.0
    ratio = daily_sharpe(returns)
    if n < 3 or ratio == 0.0 or deviation == 0.0:
        return None
    z = (returns - returns.mean()) / deviation
    skewness, kurtosis = float((z**3).mean()), float((z**4).mean())
    return sharpe_probability(ratio, skewness, kurtosis, n=n, benchmark=benchmark)


def sharpe_probability(
    ratio: float, skewness: float, kurtosis: float, *, n: int, benchmark: float = 0.0
) -> float | None:
    """The same from the moments of n returns; the kurtosis of a normal distribution is 3. None without an error.

    >>> round(sharpe_probability(0.1, 0.0, 3.0, n=101), 3)
    0.841
    """
    variance = 1.0 - skewness * ratio + 0.25 * (kurtosis - 1.0) * ratio * ratio
    if variance <= 0.0:
        return None
    return NORMAL.cdf((ratio - benchmark) * math.sqrt(n - 1) / math.sqrt(variance))


def expected_maximum(ratios: Sequence[float]) -> float:
    """The largest Sharpe ratio by day that so many arms without skill would show (Bailey & López de Prado 2014).

    >>> round(expected_maximum([0.1, 0.0, -0.1, 0.05]), 4)
    0.0894
    """
    trials = len(ratios)
    if trials < 2:
        return 0.0
    deviation = float(np.std(np.array(ratios), ddof=1))
    first, second = NORMAL.inv_cdf(1.0 - 1.0 / trials), NORMAL.inv_cdf(1.0 - 1.0 / (trials * math.e))
    return deviation * ((1.0 - EULER) * first + EULER * second)


def deflated_sharpe(returns: Floats, *, tried: Sequence[float]) -> float | None:
    """The probability that the true Sharpe ratio exceeds the best of so many tries without skill.

    `tried` are the Sharpe ratios by day of all arms that were tried, this one included.
    """
    return probabilistic_sharpe(returns, benchmark=expected_maximum(tried))


def overfitting_probability(blocks: Sequence[Floats]) -> float | None:
    """PBO: how often the arm that is best in half of the blocks is in the worse half of the arms in the other blocks.

    Each block has one row an arm and one column a day. Every choice of half of the blocks is tried: combinatorially
    symmetric cross-validation (Bailey, Borwein, López de Prado & Zhu 2017). None for fewer than 2 arms or 4 blocks.
    """
    usable = list(blocks[: len(blocks) // 2 * 2])
    if len(usable) < 4 or len(usable[0]) < 2:
        return None
    logits = []
    for chosen in combinations(range(len(usable)), len(usable) // 2):
        inside = np.concatenate([usable[place] for place in chosen], axis=1)
        outside = np.concatenate([block for place, block in enumerate(usable) if place not in chosen], axis=1)
        if not inside.shape[1] or not outside.shape[1]:
            return None
        best = int(np.argmax(sharpe(inside)))
        relative_rank = mean_ranks(sharpe(outside))[best] / (len(inside) + 1)
        logits.append(math.log(relative_rank / (1.0 - relative_rank)))
    return float(np.mean(np.array(logits) <= 0.0))
