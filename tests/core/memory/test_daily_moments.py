"""Mean outcomes with errors by day and by blocks of days."""

import math
import random
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.memory.daily_moments import DailyMoments
from backsight.core.statistics import t_cdf

DAYS = st.lists(st.lists(st.floats(-20, 20), min_size=1, max_size=4), min_size=2, max_size=12)


def moments_of(days: list[list[float]], *, apart: int = 1) -> DailyMoments:
    moments = DailyMoments()
    for number, outcomes in enumerate(days):
        for outcome in outcomes:
            moments = moments.add(outcome, day=day_text(number, apart))
    return moments


def day_text(number: int, apart: int = 1) -> str:
    return (date(2026, 1, 1) + timedelta(days=number * apart)).isoformat()


@given(DAYS)
def test_the_error_is_that_of_whole_days_and_never_below_that_of_independent_trades(days: list[list[float]]) -> None:
    """Of days a year apart, which are independent."""
    moments, values = moments_of(days, apart=365), [value for day in days for value in day]
    n, mean = len(values), sum(values) / len(values)
    scores = [sum(value - mean for value in day) / n for day in days]
    clustered = sum(score * score for score in scores) * len(days) / (len(days) - 1)
    independent = sum((value - mean) ** 2 for value in values) / (n - 1) / n
    assert moments.error is not None
    assert moments.error**2 == pytest.approx(max(clustered, independent), rel=1e-6, abs=1e-9)
    assert (moments.n, moments.days) == (n, len(days))
    assert moments.mean == pytest.approx(mean, abs=1e-9)


@given(DAYS)
def test_the_error_by_blocks_is_that_of_all_pairs_of_days(days: list[list[float]]) -> None:
    moments, values = moments_of(days), [value for day in days for value in day]
    n, mean, count = len(values), sum(values) / len(values), len(days)
    scores = [sum(value - mean for value in day) / n for day in days]
    by_day = sum(score * score for score in scores) * count / (count - 1)
    pairs = [(g, h, 0.9 ** (h - g - 1)) for h in range(count) for g in range(h)]
    covariances = sum(w * (scores[g] * scores[h] + len(days[g]) * len(days[h]) / n**2 * by_day) for g, h, w in pairs)
    independent = sum((value - mean) ** 2 for value in values) / (n - 1) / n
    expected = max(by_day + 3.8 * max(0.0, covariances), independent)
    assert moments.error is not None
    assert moments.error**2 == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(DAYS, DAYS)
def test_joining_two_histories_equals_one_history(earlier: list[list[float]], later: list[list[float]]) -> None:
    """Of histories years apart, since days of the one do not pair with days of the other."""
    following, whole = DailyMoments(), moments_of(earlier)
    for number, outcomes in enumerate(later):
        for outcome in outcomes:
            following = following.add(outcome, day=day_text(2000 + number))
            whole = whole.add(outcome, day=day_text(2000 + number))
    joined = moments_of(earlier).joined(following)
    assert (joined.n, joined.days) == (whole.n, whole.days)
    assert joined.interval() == pytest.approx(whole.interval(), rel=1e-6, abs=1e-6)


def test_days_that_resemble_each_other_have_larger_errors() -> None:
    level, alternating = [[1.0]] * 20 + [[-1.0]] * 20, [[1.0], [-1.0]] * 20
    persistent, independent = moments_of(level), moments_of(alternating)
    assert persistent.error is not None
    assert independent.error is not None
    assert persistent.error > 3 * independent.error
    assert persistent.effective_n() < 8 < 38 < independent.effective_n() <= 40
    assert moments_of(level, apart=365).error == pytest.approx(independent.error)


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
