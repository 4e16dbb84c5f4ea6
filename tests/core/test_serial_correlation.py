"""Serial correlation: waves by their definition, what they leave of independent days, and how they widen errors."""

import math

import numpy as np
import pytest

from backsight.core.quantiles import t_95
from backsight.core.serial_correlation import BINS, DAYS_A_WAVE, WAVES, Floats, wave_variances, widening


def by_definition(residuals: Floats, weights: Floats, waves: int) -> float:
    """The mean of the squared cosine coefficients, in plain Python."""
    total, before, squares = math.fsum(weights), 0.0, [0.0] * waves
    coefficients = [0.0] * waves
    for residual, weight in zip(residuals, weights, strict=True):
        place = (min(BINS - 1, int((before + weight / 2) / total * BINS + 1e-6)) + 0.5) / BINS
        before += weight
        for j in range(waves):
            coefficients[j] += residual * math.sqrt(2) * math.cos(math.pi * (j + 1) * place)
    squares = [each * each for each in coefficients]
    return math.fsum(squares) / waves


def test_waves_are_their_definition() -> None:
    rng = np.random.default_rng(3)
    weights = rng.random((2, 3, 117))
    residuals = rng.normal(size=(2, 3, 117)) * weights
    variances = wave_variances(residuals, weights)
    assert variances.shape == (2, 3, len(WAVES))
    for row in np.ndindex(2, 3):
        expected = [by_definition(residuals[row], weights[row], waves) for waves in WAVES]
        assert variances[row].tolist() == pytest.approx(expected)


def test_a_day_without_weight_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    weights = rng.random(90)
    residuals = rng.normal(size=90) * weights
    gaps = [np.insert(each, [10, 10, 50, 90], 0.0) for each in (residuals, weights)]
    assert wave_variances(*gaps).tolist() == pytest.approx(wave_variances(residuals, weights).tolist())
    assert wave_variances(np.zeros(90), np.zeros(90)).tolist() == [0.0, 0.0, 0.0]


def test_the_direction_of_time_does_not_matter() -> None:
    rng = np.random.default_rng(5)
    weights = rng.random(100)
    residuals = rng.normal(size=100) * weights
    back = wave_variances(residuals[::-1], weights[::-1])
    assert back.tolist() == pytest.approx(wave_variances(residuals, weights).tolist(), rel=1e-9)


def persistent_days(rng: np.random.Generator, days: int, following: float) -> Floats:
    """Days whose level follows the day before (an autoregression), with variance 1."""
    shocks, level = rng.normal(size=days) * math.sqrt(1 - following**2), float(rng.normal())
    levels = []
    for shock in shocks:
        level = following * level + float(shock)
        levels.append(level)
    return np.array(levels)


def coverage(following: float, *, runs: int, days: int = 200) -> float:
    """The share of runs in which the 90% interval of the mean covers 0."""
    covered = 0
    for seed in range(runs):
        values = persistent_days(np.random.default_rng(seed), days, following)
        residuals = values - values.mean()
        squares = float(residuals @ residuals)
        ratios = wave_variances(residuals, np.ones(days)) / squares
        reach = max(t_95(days - 1) ** 2, float(widening(ratios, days, t_95))) * squares * days / (days - 1)
        covered += float(values.sum()) ** 2 <= reach
    return covered / runs


@pytest.mark.parametrize("following", [0.0, 0.6])
def test_intervals_cover_with_and_without_serial_correlation(following: float) -> None:
    assert 0.83 <= coverage(following, runs=200) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("following", [0.0, 0.3, 0.6, 0.8, 0.9])
def test_nine_of_ten_intervals_cover_the_mean_of_days_that_resemble_each_other(following: float) -> None:
    covered = coverage(following, runs=2000)
    print(f"following {following}: {covered:.3f} of 2000")  # noqa: T201
    assert 0.85 <= covered <= 0.95


def test_too_few_days_for_waves_are_not_widened() -> None:
    ratios = np.array([9.0, 9.0, 9.0])
    assert float(widening(ratios, DAYS_A_WAVE * WAVES[0] - 1, t_95)) == 0.0
    assert float(widening(ratios, DAYS_A_WAVE * WAVES[0], t_95)) > 9.0 * t_95(100) ** 2


def test_a_ratio_that_is_not_known_is_not_widened() -> None:
    assert float(widening(np.array([np.nan, np.nan, np.nan]), 100, t_95)) == 0.0
