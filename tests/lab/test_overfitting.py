"""The probabilistic and deflated Sharpe ratio and PBO, against brute force and against purgedcv."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from backsight.lab.equity import Floats
from backsight.lab.overfitting import (
    daily_sharpe,
    deflated_sharpe,
    expected_maximum,
    overfitting_probability,
    probabilistic_sharpe,
    sharpe_probability,
)


def some_returns(seed: int, days: int = 300, mean: float = 0.0005) -> Floats:
    return np.random.default_rng(seed).standard_t(5, days) * 0.01 + mean


def test_a_probabilistic_sharpe_ratio_is_the_normal_probability_of_its_statistic() -> None:
    returns = some_returns(1)
    ratio = returns.mean() / returns.std(ddof=1)
    z = (returns - returns.mean()) / returns.std()
    error = math.sqrt(1 - (z**3).mean() * ratio + ((z**4).mean() - 1) / 4 * ratio**2)
    statistic = ratio * math.sqrt(len(returns) - 1) / error
    assert probabilistic_sharpe(returns) == pytest.approx(0.5 * math.erfc(-statistic / math.sqrt(2)), abs=1e-12)


def test_more_tries_deflate_more() -> None:
    returns = some_returns(2, mean=0.001)
    tried = [daily_sharpe(some_returns(seed)) for seed in range(10)]
    few, many = deflated_sharpe(returns, tried=tried[:3]), deflated_sharpe(returns, tried=tried)
    alone = probabilistic_sharpe(returns)
    assert alone is not None
    assert few is not None
    assert many is not None
    assert many < alone


def test_returns_without_variance_have_no_probability() -> None:
    assert probabilistic_sharpe(np.zeros(50)) is None
    assert expected_maximum([0.3]) == 0.0


def test_an_arm_that_is_always_best_is_not_overfitted_and_noise_is_about_half_the_time() -> None:
    noise = [np.random.default_rng(seed).normal(size=(6, 40)) * 0.01 for seed in range(8)]
    skilled = [np.concatenate([block[:5], block[5:] + 0.02]) for block in noise]
    assert overfitting_probability(skilled) == 0.0
    assert overfitting_probability(noise) == pytest.approx(brute_force_pbo(noise))
    assert overfitting_probability(noise[:3]) is None


def brute_force_pbo(blocks: list[Floats]) -> float:
    """The share of splits in which the best arm inside is at or below the median of the arms outside."""
    below = []
    for chosen in combinations(range(len(blocks)), len(blocks) // 2):
        inside = np.concatenate([blocks[place] for place in chosen], axis=1)
        outside = np.concatenate([blocks[place] for place in range(len(blocks)) if place not in chosen], axis=1)
        best = max(range(len(inside)), key=lambda arm: inside[arm].mean() / inside[arm].std(ddof=1))
        ratios = [row.mean() / row.std(ddof=1) for row in outside]
        below.append(sorted(ratios).index(ratios[best]) + 1 <= (len(ratios) + 1) / 2)
    return sum(below) / len(below)


@pytest.mark.slow
def test_the_ratios_agree_with_purgedcv() -> None:
    """The formulas agree. Ratios differ by the divisor, n there and n − 1 here as in every other Sharpe ratio of the
    report, and there skewness and kurtosis are corrected for bias. PBO is compared on blocks of equal length.
    """
    purgedcv: Any = pytest.importorskip("purgedcv")
    returns, tried = some_returns(3, mean=0.001), [daily_sharpe(some_returns(seed)) for seed in range(6)]
    stats: Any = pytest.importorskip("scipy.stats")
    ratio = float(returns.mean() / returns.std())
    shape = float(stats.skew(returns, bias=False)), float(stats.kurtosis(returns, bias=False, fisher=False))
    psr = purgedcv.probabilistic_sharpe_ratio(returns, 0.0)
    assert sharpe_probability(ratio, *shape, n=300) == pytest.approx(psr, abs=1e-9)
    assert probabilistic_sharpe(returns) == pytest.approx(psr, abs=1e-3)
    dsr = purgedcv.deflated_sharpe_ratio(returns, n_trials=6, var_sharpe=float(np.var(tried, ddof=1)))
    benchmark = expected_maximum(tried)
    assert sharpe_probability(ratio, *shape, n=300, benchmark=benchmark) == pytest.approx(dsr, abs=1e-9)
    assert deflated_sharpe(returns, tried=tried) == pytest.approx(dsr, abs=1e-3)
    noise = [np.random.default_rng(seed).normal(size=(6, 40)) * 0.01 for seed in range(8)]
    other = purgedcv.probability_of_backtest_overfitting(np.concatenate(noise, axis=1), n_splits=8)
    assert overfitting_probability(noise) == pytest.approx(other.pbo, abs=1e-9)
