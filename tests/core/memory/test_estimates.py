"""Intervals of habits: they contain the truth as often as they say, also where trades in a row resemble each other."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.memory.estimates import Estimate, correlation_estimate, mean_estimate, ratio_estimate
from backsight.core.statistics import rate_bounds

TRADES = 75


def persistent(rng: random.Random, n: int, following: float) -> list[float]:
    """Normal values of which each follows the one before."""
    values = [rng.gauss(0, 1)]
    while len(values) < n:
        values.append(following * values[-1] + math.sqrt(1 - following**2) * rng.gauss(0, 1))
    return values


def an_unrelated_ratio(rng: random.Random, *, spread: float, share: float, following: float) -> Estimate:
    """The ratio of two groups of holding times that have nothing to do with the groups."""
    limit = sorted(persistent(random.Random(1), 10_000, 0.0))[int(10_000 * share)]
    holds = [math.exp(spread * z) for z in persistent(rng, TRADES, following)]
    return ratio_estimate(holds, [z < limit for z in persistent(rng, TRADES, following)])


def false_share(runs: int, estimate: Callable[[random.Random], Estimate]) -> tuple[float, float]:
    """95% bounds of the share of runs in which chance makes a habit at the level .1."""
    estimates = [estimate(random.Random(f"estimate {seed}")) for seed in range(runs)]
    false = sum(each.p_value is not None and each.p_value < 0.1 for each in estimates)
    return rate_bounds(false, runs, confidence=0.975)


@pytest.mark.parametrize(("spread", "share"), [(0.5, 0.5), (1.5, 0.5), (1.0, 0.08)])
def test_unrelated_groups_seldom_differ(spread: float, share: float) -> None:
    bounds = false_share(100, lambda rng: an_unrelated_ratio(rng, spread=spread, share=share, following=0.0))
    assert bounds[0] <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("following", [0.0, 0.6])
@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("share", [0.5, 0.25, 0.08])
def test_unrelated_groups_differ_in_at_most_about_a_tenth_of_the_lives(
    spread: float, share: float, following: float
) -> None:
    """600 lives of 75 trades: .04 to .08 of independent trades, up to .13 where both series follow themselves by .6."""
    bounds = false_share(600, lambda rng: an_unrelated_ratio(rng, spread=spread, share=share, following=following))
    assert bounds[0] <= (0.1 if following else 0.08)
    assert bounds[1] <= (0.16 if following else 0.11)


def test_the_interval_of_a_ratio_contains_the_ratio_and_excludes_0_only_where_chance_does_not_explain_it() -> None:
    rng = random.Random(3)
    for _ in range(50):
        shift = rng.choice((0.0, 0.5, 1.0))
        is_first = [rng.random() < 0.5 for _ in range(40)]
        estimate = ratio_estimate([math.exp(rng.gauss(shift * mine, 0.5)) for mine in is_first], is_first)
        assert estimate.value is not None
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.p_value is not None
        assert estimate.low <= estimate.value <= estimate.high
        assert (estimate.low > 0 or estimate.high < 0) == (estimate.p_value < 0.1)


def test_a_rule_without_any_noise_is_found_and_equal_values_tell_nothing() -> None:
    """Twice the size in every case: the error is that of groups that differ by chance."""
    doubled = ratio_estimate([2.0, 1.0] * 10, [True, False] * 10)
    assert (doubled.value, doubled.n) == (1.0, 20)
    assert (doubled.low or 0.0) > 0.3
    assert ratio_estimate([1.0] * 20, [True, False] * 10) == Estimate(value=0.0, n=20)


@pytest.mark.parametrize(
    ("values", "is_first"),
    [([1.0] * 9, [True] * 4 + [False] * 5), ([1.0] * 12, [True] * 12), ([0.0] * 12, [False] * 12)],
)
def test_without_two_groups_of_enough_trades_there_is_no_ratio(values: list[float], is_first: list[bool]) -> None:
    assert ratio_estimate(values, is_first) == Estimate(value=None, n=len(values))


def test_a_group_of_two_has_a_ratio_and_no_interval() -> None:
    estimate = ratio_estimate([1.0, 3.0] + [1.0] * 10, [True, True] + [False] * 10)
    assert estimate == Estimate(value=1.0, n=12)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.booleans()), max_size=60))
def test_zeros_and_any_spread_make_no_error(pairs: list[tuple[float, bool]]) -> None:
    estimate = ratio_estimate([value for value, _ in pairs], [mine for _, mine in pairs])
    assert (estimate.low is None) == (estimate.high is None) == (estimate.p_value is None)
    if estimate.p_value is not None:
        assert 0.0 <= estimate.p_value <= 1.0


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), max_size=60))
def test_a_correlation_is_within_its_interval(points: list[tuple[float, float]]) -> None:
    estimate = correlation_estimate(points)
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        assert -1.0 <= estimate.low <= estimate.value + 1e-9
        assert estimate.value - 1e-9 <= estimate.high <= 1.0


def test_a_mean_has_students_interval_where_values_are_independent() -> None:
    values = [1.0, 3.0] * 10
    estimate = mean_estimate(values, neutral=2.0)
    assert (estimate.value, estimate.p_value) == (2.0, 1.0)
    # t at 19 degrees of freedom, and s/√n: alternating values are not wider than independent ones.
    margin = 1.729133 * math.sqrt(20 / 19) / math.sqrt(20)
    assert [estimate.low, estimate.high] == pytest.approx([2.0 - margin, 2.0 + margin])
    assert mean_estimate([1.0] * 20, neutral=0.0) == Estimate(value=1.0, n=20)
