"""The sign-flip test over days: exact p-values, and what known patterns explain."""

import math

import numpy as np
import pytest

from backsight.core.reflection.sign_flip_test import (
    day_contributions,
    exclude_earlier_rejections,
    max_statistics,
    p_value,
    random_signs,
)


def test_the_p_value_of_a_few_days_is_exact() -> None:
    """Ten days of the same sign: 2 of the 1,024 sign flips are as extreme."""
    parts = np.full((10, 1), 1 / math.sqrt(10))
    by_chance = max_statistics(parts, random_signs(10, seed=5, flips=200_000))
    assert p_value(math.sqrt(10), by_chance) == pytest.approx(2 / 1024, rel=0.2)


def test_a_known_pattern_explains_its_complement() -> None:
    rng = np.random.default_rng(1)
    x = (rng.random(60) < 0.4).astype(float)[:, None]
    values = -2.0 * x[:, 0] + rng.normal(size=60)
    days = np.arange(60)
    assert abs(day_contributions(values, 1.0 - x, np.empty((60, 0)), days, 60).sum()) > 3.0
    assert day_contributions(values, 1.0 - x, x, days, 60) == pytest.approx(np.zeros((60, 1)))


def test_a_level_is_not_spent_twice_on_one_flip() -> None:
    parts = np.random.default_rng(2).normal(size=(50, 12))
    parts /= np.sqrt(np.square(parts).sum(axis=0))
    flipped = random_signs(50, seed=3)
    by_chance = max_statistics(parts, flipped)
    same = exclude_earlier_rejections(by_chance, parts, flipped, [(50, 0.01)])
    assert np.count_nonzero(np.isneginf(same)) == 40
    assert same.max() <= np.sort(by_chance)[-40]
    before = exclude_earlier_rejections(by_chance, parts, flipped, [(25, 0.01), (40, 0.01)])
    assert np.count_nonzero(np.isneginf(before)) == 80
