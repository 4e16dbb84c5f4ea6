"""Exit timing: 0 where prices walk at random, whatever the rule of the exit, and never before the time is over."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from backsight.core.memory.estimates import mean_estimate
from backsight.core.memory.exit_timing import PriceRange, Stretch, exit_timing, stretch_after
from backsight.core.statistics import rate_bounds

NOON = datetime(2026, 6, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_the_time_after_an_exit_is_as_long_as_the_trade_and_must_be_over() -> None:
    assert stretch_after(NOON, NOON + HOUR, now=NOON + 2 * HOUR) == Stretch(since=NOON + HOUR, until=NOON + 2 * HOUR)
    assert stretch_after(NOON, NOON + HOUR, now=NOON + 1.9 * HOUR) is None
    assert stretch_after(None, NOON, now=NOON + HOUR) is None
    assert stretch_after(NOON, NOON, now=NOON + HOUR) is None


@pytest.mark.parametrize(("high", "low", "timing"), [(110.0, 101.0, -1.0), (99.0, 90.0, 1.0), (102.0, 98.0, 0.0)])
def test_a_price_that_went_on_is_early_and_one_that_turned_is_not(high: float, low: float, timing: float) -> None:
    hour = Stretch(since=NOON, until=NOON + HOUR)
    after = PriceRange(high=high, low=low, bars=12)
    assert exit_timing("long", 100.0, after, stretch=hour, interval=300) == timing
    assert exit_timing("short", 100.0, after, stretch=hour, interval=300) == -timing


def test_a_price_that_did_not_move_and_missing_bars_say_nothing() -> None:
    hour = Stretch(since=NOON, until=NOON + HOUR)
    assert exit_timing("long", 1.0, PriceRange(high=1.0, low=1.0, bars=12), stretch=hour, interval=300) is None
    assert exit_timing("long", 1.0, PriceRange(high=0.0, low=0.0, bars=0), stretch=hour, interval=300) is None


def a_trader_with_a_stop_and_a_target(rng: random.Random, trades: int) -> list[float]:
    """Exit timings in a random walk of 50 steps at most, with a target at +10 and a stop at −5."""
    timings = []
    for _ in range(trades):
        price, steps = 0.0, 0
        while -5.0 < price < 10.0 and steps < 50:
            price, steps = price + rng.gauss(0, 1), steps + 1
        path = [price]
        for _ in range(steps):
            path.append(path[-1] + rng.gauss(0, 1))
        after = PriceRange(high=max(path[1:]), low=min(path[1:]), bars=steps)
        stretch = Stretch(since=NOON, until=NOON + steps * HOUR)
        timing = exit_timing("long", price, after, stretch=stretch, interval=3600)
        assert timing is not None
        timings.append(timing)
    return timings


def test_an_exit_at_a_target_or_a_stop_is_neither_early_nor_late_in_a_random_walk() -> None:
    timings = a_trader_with_a_stop_and_a_target(random.Random(5), 2_000)
    assert abs(sum(timings) / len(timings)) < 3 * 0.75 / math.sqrt(len(timings))


def test_such_a_trader_is_seldom_told_anything_about_exits() -> None:
    estimates = [mean_estimate(a_trader_with_a_stop_and_a_target(random.Random(n), 60), neutral=0.0) for n in range(60)]
    told_falsely = sum(each.p_value is not None and each.p_value < 0.1 for each in estimates)
    assert rate_bounds(told_falsely, 60)[0] <= 0.1
