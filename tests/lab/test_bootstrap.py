"""Intervals and the test: they cover, and more arms do not mean more false calls."""

import numpy as np
import pytest

from backsight.lab.bootstrap import compare_sharpe, day_counts, difference_error, interval, resampled_days
from backsight.lab.metrics import sharpe


def test_resamples_are_blocks_of_days_in_a_circle() -> None:
    days = resampled_days(100, np.random.default_rng(1), resamples=50)
    assert days.shape == (50, 100)
    steps = np.diff(days[:, :5], axis=1) % 100
    assert (steps == 1).all()  # the first block of each is five days in a row
    assert (day_counts(days, 100).sum(axis=1) == 100).all()


def test_the_error_of_a_difference_is_that_of_many_worlds() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(0.0005, 0.01, size=(2000, 250))
    other = 0.5 * base + rng.normal(0.0005, 0.01, size=(2000, 250))
    errors, differences = difference_error(other, base), sharpe(other) - sharpe(base)
    assert float(errors.mean()) == pytest.approx(float(differences.std()), rel=0.06)


def test_an_arm_equal_to_the_baseline_differs_by_nothing() -> None:
    returns = np.random.default_rng(1).normal(size=(1, 100)) * 0.01
    comparison = compare_sharpe(returns, returns[0], resampled_days(100, np.random.default_rng(1)))
    assert (comparison.difference[0], comparison.low[0], comparison.high[0]) == (0.0, 0.0, 0.0)


def test_on_noise_hardly_any_of_five_arms_is_called_better() -> None:
    calls = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        base = rng.normal(size=120) * 0.01
        arms = base * rng.choice([0.0, 1.0, 2.0], size=(5, 120))
        days = resampled_days(120, rng, resamples=200)
        calls += bool((compare_sharpe(arms, base, days).low > 0.0).any())
    assert calls <= 9  # 2.5% expected; more than 9 of 150 has a probability of 1%


def test_an_interval_needs_values() -> None:
    values = np.where(np.arange(100) < 20, np.nan, 1.0)
    assert interval(values) is None
    assert interval(np.linspace(0.0, 1.0, 101)) == pytest.approx((0.05, 0.95))
