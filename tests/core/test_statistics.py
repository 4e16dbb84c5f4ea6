"""Distributions against published and computed values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.statistics import (
    Moments,
    beta_cdf,
    beta_quantile,
    beta_tail,
    moments_of,
    rate_bounds,
    t_cdf,
    t_quantile,
    t_two_sided,
)

SHAPES = st.floats(0.1, 1e6)
SHARES = st.floats(0.001, 0.999)
VALUES = st.lists(st.floats(-1e6, 1e6), max_size=40)


@pytest.mark.parametrize(
    ("x", "alpha", "beta", "expected"),
    [  # from scipy.special.betainc 1.17, the second also (2/π)·asin(√x)
        (0.5, 8.0, 4.0, 0.11328125),
        (0.3, 0.5, 0.5, 0.36901011956554536),
        (0.99, 30.0, 0.7, 0.579573670241318),
        (0.334, 1e5, 2e5, 0.7807618138321535),
    ],
)
def test_the_incomplete_beta_function_is_exact(x: float, alpha: float, beta: float, expected: float) -> None:
    assert beta_cdf(x, alpha=alpha, beta=beta) == pytest.approx(expected, abs=1e-9)


def test_a_beta_of_whole_numbers_is_a_binomial_sum() -> None:
    for wins, losses, x in ((3, 7, 0.2), (40, 60, 0.45), (120, 5, 0.97)):
        n = wins + losses - 1
        total = math.fsum(math.comb(n, k) * x**k * (1 - x) ** (n - k) for k in range(wins, n + 1))
        assert beta_cdf(x, alpha=wins, beta=losses) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize(
    ("p", "freedom", "expected"),
    [  # from scipy.stats.t.ppf 1.17
        (0.9995, 79, 3.417985096707893),
        (0.975, 3.5, 2.9400886379827282),
        (0.95, 1, 6.313751514675043),
        (0.975, 2, 4.302652729749464),
    ],
)
def test_quantiles_of_students_t_are_exact(p: float, freedom: float, expected: float) -> None:
    assert t_quantile(p, freedom=freedom) == pytest.approx(expected, abs=1e-9)
    assert t_cdf(-expected, freedom=freedom) == pytest.approx(1 - p, abs=1e-9)


def test_a_far_tail_keeps_its_digits() -> None:
    assert t_two_sided(5.5, freedom=7) == pytest.approx(0.0009065375873198457, rel=1e-9)
    assert t_two_sided(1e6, freedom=1) == pytest.approx(2 / math.pi * math.atan(1e-6), rel=1e-9)
    assert t_two_sided(1e200, freedom=3) == t_two_sided(math.inf, freedom=3) == 0.0


@given(x=SHARES, alpha=SHAPES, beta=SHAPES)
def test_both_tails_make_one_and_the_mirror_agrees(x: float, alpha: float, beta: float) -> None:
    lower = beta_cdf(x, alpha=alpha, beta=beta)
    assert lower + beta_tail(x, alpha=alpha, beta=beta) == pytest.approx(1.0, abs=1e-12)
    assert beta_tail(1.0 - x, alpha=beta, beta=alpha) == pytest.approx(lower, abs=1e-9)


@given(p=SHARES, alpha=st.floats(0.5, 1e4), beta=st.floats(0.5, 1e4))
def test_a_quantile_undoes_the_distribution(p: float, alpha: float, beta: float) -> None:
    assert beta_cdf(beta_quantile(p, alpha=alpha, beta=beta), alpha=alpha, beta=beta) == pytest.approx(p, abs=1e-9)


def test_the_ends_of_a_beta_are_its_ends() -> None:
    assert [beta_cdf(x, alpha=2.0, beta=3.0) for x in (-1.0, 0.0, 1.0, 2.0)] == [0.0, 0.0, 1.0, 1.0]
    assert [beta_tail(x, alpha=2.0, beta=3.0) for x in (0.0, 1.0)] == [1.0, 0.0]
    assert [beta_quantile(p, alpha=2.0, beta=3.0) for p in (0.0, 1.0)] == [0.0, 1.0]


def test_bounds_of_a_rate_are_those_of_clopper_and_pearson() -> None:
    lower, upper = rate_bounds(8, 300)
    assert math.fsum(math.comb(300, k) * upper**k * (1 - upper) ** (300 - k) for k in range(9)) == pytest.approx(0.05)
    assert math.fsum(math.comb(300, k) * lower**k * (1 - lower) ** (300 - k) for k in range(8)) == pytest.approx(0.95)


@given(VALUES, VALUES)
def test_moments_of_two_parts_are_those_of_the_whole(first: list[float], second: list[float]) -> None:
    whole, joined = moments_of(first + second), moments_of(first).joined(moments_of(second))
    assert joined.n == whole.n
    assert joined.mean == pytest.approx(whole.mean, rel=1e-9, abs=1e-6)
    assert joined.squares == pytest.approx(whole.squares, rel=1e-6, abs=1e-2)


def test_one_value_has_neither_deviation_nor_interval() -> None:
    alone = Moments().add(3.0)
    assert (alone.deviation, alone.interval()) == (None, None)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: beta_cdf(0.5, alpha=0.0, beta=1.0),
        lambda: beta_quantile(1.5, alpha=1.0, beta=1.0),
        lambda: beta_quantile(math.nan, alpha=1.0, beta=1.0),
        lambda: t_two_sided(1.0, freedom=0),
        lambda: t_quantile(1.0, freedom=3),
        lambda: rate_bounds(4, 3),
    ],
)
def test_arguments_outside_the_domain_are_refused(ask: object) -> None:
    with pytest.raises(Invalid):
        ask()  # type: ignore[operator]
