"""Mean outcomes with errors by day."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.memory.daily_moments import DailyMoments
from backsight.core.statistics import t_cdf

DAYS = st.lists(st.lists(st.floats(-20, 20), min_size=1, max_size=4), min_size=2, max_size=12)


def moments_of(days: list[list[float]]) -> DailyMoments:
    moments = DailyMoments()
    for number, outcomes in enumerate(days):
        for outcome in outcomes:
            moments = moments.add(outcome, day=f"2026-01-{number + 1:02}")
    return moments


@given(DAYS)
def test_the_error_is_that_of_whole_days_and_never_below_that_of_independent_trades(days: list[list[float]]) -> None:
    moments, values = moments_of(days), [value for day in days for value in day]
    n, mean = len(values), sum(values) / len(values)
    scores = [sum(value - mean for value in day) / n for day in days]
    clustered = sum(score * score for score in scores) * len(days) / (len(days) - 1)
    independent = sum((value - mean) ** 2 for value in values) / (n - 1) / n
    assert moments.error is not None
    assert moments.error**2 == pytest.approx(max(clustered, independent), rel=1e-6, abs=1e-9)
    assert (moments.n, moments.days) == (n, len(days))
    assert moments.mean == pytest.approx(mean, abs=1e-9)


@given(DAYS, DAYS)
def test_joining_two_histories_equals_one_history(earlier: list[list[float]], later: list[list[float]]) -> None:
    whole, joined = moments_of([*earlier, *later]), moments_of(earlier).joined(moments_of(later))
    assert (joined.n, joined.days) == (whole.n, whole.days)
    assert joined.interval() == pytest.approx(whole.interval(), rel=1e-6, abs=1e-6)


def test_outcomes_of_one_day_have_no_interval_and_decide_nothing() -> None:
    moments = moments_of([[1.0, 2.0, 3.0]])
    assert (moments.error, moments.interval(), moments.probability_above(0.0)) == (None, None, 0.5)
    assert DailyMoments().probability_above(0.0) == 0.5


def test_nine_of_ten_intervals_hold_the_true_mean_where_days_move_together() -> None:
    """Five trades a day that share half of their variance: errors that took them as independent would be too small."""
    rng, hits, runs = random.Random(5), 0, 400
    for _ in range(runs):
        days = [[rng.gauss(0, 1) for _ in range(5)] for _ in range(25)]
        shared = [rng.gauss(0, 1) for _ in days]
        low, high = moments_of(
            [[x + common for x in day] for day, common in zip(days, shared, strict=True)]
        ).interval() or (0, 0)
        hits += low < 0.0 < high
    assert 0.86 <= hits / runs <= 0.94


def test_the_prior_is_ten_trades_at_the_reference() -> None:
    """Twenty days of ±1R around +.5R: shrunk by 20/30, with the variance 1/30."""
    moments = moments_of([[value] for value in [1.0, 1.0, 1.0, -1.0] * 5])
    expected = t_cdf(0.5 * 20 / 30 / math.sqrt(1 / 30), freedom=19)
    assert moments.probability_above(0.0) == pytest.approx(expected)
    assert moments.probability_above(1.0) < 0.05
    assert moments.probability_above(0.5) == pytest.approx(0.5)
