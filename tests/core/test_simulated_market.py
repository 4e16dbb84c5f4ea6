"""Laws of the seeded market."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from itertools import pairwise
from statistics import mean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.market import Bar, aggregate, check_bars
from backsight.core.regime import Session, classify_regime, session_of, true_ranges
from backsight.core.simulated_market import simulated_bars

MONDAY = datetime(2025, 1, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
GOLD = (2650.0, 32.0)
BITCOIN = (98_000.0, 3_100.0)
EURO = (1.03, 0.0075)


def market(*, seed: int = 7, days: int = 7, of: tuple[float, float] = GOLD, **changes: Any) -> list[Bar]:
    defaults: dict[str, Any] = {"symbol": "X", "start": MONDAY, "days": days, "price": of[0], "daily_atr": of[1]}
    return simulated_bars(random.Random(seed), **(defaults | changes))


@cache
def a_year(of: tuple[float, float], *, rests: bool) -> Sequence[Bar]:
    return market(days=364, of=of, rests=rests)


def pauses(bars: Sequence[Bar]) -> list[tuple[Bar, Bar]]:
    """The bars before and after every gap."""
    return [(before, after) for before, after in pairwise(bars) if after.opened_at > before.closes_at]


def test_the_same_seed_is_the_same_market_and_another_is_another() -> None:
    assert market(seed=1) == market(seed=1)
    assert market(seed=1) != market(seed=2)


def test_a_day_has_288_bars_from_the_first_price_on() -> None:
    bars = market(days=1)
    assert (len(bars), bars[0].open, bars[0].opened_at) == (288, 2650.0, MONDAY)
    assert {(bar.symbol, bar.interval_seconds, bar.opened_at.tzinfo) for bar in bars} == {("X", 300, UTC)}
    assert all(before.close == after.open for before, after in pairwise(bars))
    assert market(days=0) == []


@pytest.mark.parametrize(("of", "rests"), [(GOLD, True), (BITCOIN, False), (EURO, True)])
def test_a_year_is_sound_positive_compact_and_as_wide_as_its_atr(of: tuple[float, float], rests: bool) -> None:
    bars = a_year(of, rests=rests)
    check_bars(bars)
    assert all(bar.volume for bar in bars)
    assert all(price > 0 and price == float(f"{price:.7g}") for bar in bars for price in bar.prices)
    assert 0.5 < mean(true_ranges(aggregate(bars, interval_seconds=86_400))) / of[1] < 2.0


@settings(max_examples=25)
@given(st.integers(), st.floats(1e-6, 1e9), st.floats(1e-4, 0.5), st.booleans())
def test_every_market_is_sound_and_positive(seed: int, price: float, share: float, rests: bool) -> None:
    bars = market(seed=seed, days=9, of=(price, price * share), rests=rests)
    check_bars(bars)
    assert all(bar.low > 0 for bar in bars)


@pytest.mark.parametrize(("of", "rests"), [(GOLD, True), (BITCOIN, False), (EURO, True)])
def test_a_market_trends_both_ways_and_ranges(of: tuple[float, float], rests: bool) -> None:
    bars = a_year(of, rests=rests)
    tags = [classify_regime(bars[end - 100 : end]).tag for end in range(100, len(bars), 100)]
    counts = Counter(tag.rsplit("_", 1)[0] for tag in tags)
    assert counts.keys() == {"trend_up", "trend_down", "chop"}
    assert min(counts.values()) > 0.03 * len(tags)


def test_some_days_are_much_wilder_than_others() -> None:
    ranges = sorted(true_ranges(aggregate(a_year(BITCOIN, rests=False), interval_seconds=86_400)))
    assert ranges[len(ranges) * 9 // 10] > 2.5 * ranges[len(ranges) // 10]


def test_shocks_are_rare_and_several_hourly_ranges_within_two_bars() -> None:
    bars = a_year(BITCOIN, rests=False)
    usual = mean(true_ranges(aggregate(bars, interval_seconds=3600)))
    moves = [abs(second.close - first.open) / usual for first, second in pairwise(bars)]
    assert max(moves) > 4
    assert 4 <= sum(move > 3 for move in moves) <= 60


def test_outages_are_rare_and_last_some_hours() -> None:
    lengths = [after.opened_at - before.closes_at for before, after in pauses(a_year(BITCOIN, rests=False))]
    assert 3 <= len(lengths) <= 20
    assert all(HOUR <= length <= 8 * HOUR for length in lengths)


def test_a_market_that_rests_is_closed_from_friday_to_sunday_and_opens_elsewhere() -> None:
    bars = a_year(GOLD, rests=True)
    assert not [bar for bar in bars if bar.opened_at.isoweekday() == 6]
    assert {bar.opened_at.hour for bar in bars if bar.opened_at.isoweekday() == 7} == {22, 23}
    assert max(bar.opened_at.hour for bar in bars if bar.opened_at.isoweekday() == 5) == 21
    weekends = [pair for pair in pauses(bars) if pair[1].opened_at - pair[0].closes_at >= 48 * HOUR]
    assert len(weekends) == 52
    assert mean(abs(after.open - before.close) for before, after in weekends) > 0.1 * GOLD[1]


def test_a_market_that_does_not_rest_trades_at_weekends() -> None:
    assert {bar.opened_at.isoweekday() for bar in market(days=7)} == set(range(1, 8))


def test_the_overlap_is_busiest_and_asia_is_quiet() -> None:
    sessions: tuple[Session, ...] = ("asia", "newyork", "london", "overlap")
    bars_by_session = [
        [bar for bar in a_year(BITCOIN, rests=False) if session_of(bar.opened_at) == session] for session in sessions
    ]
    ranges = [mean(bar.high - bar.low for bar in bars) for bars in bars_by_session]
    volumes = [mean(bar.volume or 0.0 for bar in bars) for bars in bars_by_session]
    assert (ranges, volumes) == (sorted(ranges), sorted(volumes))


def test_a_start_in_local_time_is_the_same_instant() -> None:
    assert market(start=MONDAY.astimezone(timezone(2 * HOUR))) == market()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"start": MONDAY + timedelta(minutes=5)}, "start"),
        ({"start": MONDAY.replace(tzinfo=None)}, "start"),
        ({"days": -1}, "days"),
        ({"price": 0.0}, "price"),
        ({"price": math.nan}, "price"),
        ({"daily_atr": 0.0}, "daily_atr"),
        ({"daily_atr": 1400.0}, "daily_atr"),
    ],
)
def test_an_impossible_market_is_refused_with_the_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        market(**changes)
    assert refused.value.field == field
