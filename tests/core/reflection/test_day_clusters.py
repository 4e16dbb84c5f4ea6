"""Means with errors that know days, persistence and winners that have not come yet."""

import math

import numpy as np
import pytest

from backsight.core.reflection.day_clusters import compare_with_rest, pooled_variance


def test_days_that_both_share_do_not_widen_the_difference() -> None:
    """A good day for all trades is no difference: the difference varies as two independent means do, not more."""
    days = np.repeat([3.0, -3.0, 3.0, 3.0, -3.0, -3.0, 3.0, -3.0], 4)
    values = days + np.tile([1.0, 0.0, -1.0, 0.0], 8)
    members = np.tile([[1.0], [0.0]], (16, 1))
    figures = compare_with_rest(values, members, np.repeat(np.arange(8), 4), 8)
    independent = 1.8945786 * math.sqrt(values.var(ddof=1) * (1 / 16 + 1 / 16))
    assert figures.difference_half_width[0] == pytest.approx(independent)
    assert figures.half_width[0] > independent


def test_without_persistence_the_pooled_variance_is_that_of_independent_trades() -> None:
    values = np.tile([1.0, -1.0], 20)
    weights = np.full((40, 1), 1 / 40)
    assert pooled_variance(values, weights)[0] == pytest.approx(values.var(ddof=1) / 40)


def test_values_in_spells_make_a_mean_as_uncertain_as_few_spells_do() -> None:
    rng = np.random.default_rng(1)
    values = np.repeat(rng.normal(size=50), 10)
    variance = float(pooled_variance(values, np.full((500, 1), 1 / 500))[0])
    assert 0.5 < variance / (values.var() / 50) < 2.0


def test_values_that_do_not_vary_have_no_interval() -> None:
    members = np.tile([[1.0], [0.0]], (16, 1))
    figures = compare_with_rest(np.full(32, -1.0), members, np.arange(32), 32)
    assert np.isnan(figures.half_width[0])
    assert np.isnan(figures.difference_half_width[0])
