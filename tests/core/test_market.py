"""Laws of bars."""

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.market import Bar, aggregate, bars_closed_by, check_bars

MIDNIGHT = datetime(2026, 6, 1, tzinfo=UTC)
PRICES = st.floats(-1e6, 1e6)


def a_bar(minute: int = 0, **changes: Any) -> Bar:
    made: dict[str, Any] = {
        "symbol": "XAUUSD",
        "interval_seconds": 60,
        "opened_at": MIDNIGHT + timedelta(minutes=minute),
        "open": 100.0,
        "high": 102.0,
        "low": 99.0,
        "close": 101.0,
        "volume": 10.0,
    }
    return Bar(**(made | changes))


@st.composite
def series(draw: st.DrawFn, *, fewest: int = 1) -> list[Bar]:
    """Sound one-minute bars of up to an hour, some minutes missing."""
    made = []
    for minute in sorted(draw(st.sets(st.integers(0, 59), min_size=fewest))):
        low, first, last, high = sorted(draw(st.tuples(PRICES, PRICES, PRICES, PRICES)))
        volume = draw(st.none() | st.floats(0, 1e9))
        made.append(a_bar(minute, open=first, high=high, low=low, close=last, volume=volume))
    return made


def test_a_bar_closes_one_interval_after_it_opened() -> None:
    assert a_bar(7).closes_at == MIDNIGHT + timedelta(minutes=8)


@given(series())
def test_sound_bars_pass(bars: list[Bar]) -> None:
    check_bars(bars)


def test_gaps_negative_prices_and_no_trade_at_all_are_sound() -> None:
    check_bars([])
    check_bars([a_bar(0, open=-37.0, high=10.0, low=-40.0, close=-37.63), a_bar(9, volume=0.0), a_bar(10, volume=None)])


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"close": math.nan}, "bars[1].close", "nan is not a price; correct the bar or leave it out"),
        ({"open": math.inf}, "bars[1].open", "inf is not a price"),
        ({"high": 98.0}, "bars[1].high", "98.0 is below low 99.0"),
        ({"open": 98.9}, "bars[1].open", "98.9 is outside low 99.0 to high 102.0"),
        ({"close": 102.1}, "bars[1].close", "102.1 is outside low 99.0 to high 102.0"),
        ({"volume": -1.0}, "bars[1].volume", "-1.0 is not a volume; give zero or more, or none"),
        ({"volume": math.nan}, "bars[1].volume", "nan is not a volume"),
        ({"symbol": "BTC"}, "bars[1].symbol", "'BTC' follows 'XAUUSD'; give one symbol at a time"),
        ({"interval_seconds": 300}, "bars[1].interval_seconds", "300 follows 60; give one interval at a time"),
        ({"interval_seconds": 0}, "bars[1].interval_seconds", "0 is not a length; give whole seconds"),
        ({"opened_at": MIDNIGHT}, "bars[1].opened_at", "sort the bars and give each once"),
        ({"opened_at": MIDNIGHT + timedelta(seconds=59)}, "bars[1].opened_at", "the close of the previous bar"),
        ({"opened_at": MIDNIGHT - timedelta(minutes=5)}, "bars[1].opened_at", "sort the bars"),
        ({"opened_at": MIDNIGHT.replace(tzinfo=None)}, "bars[1].opened_at", "2026-06-01T00:00:00 is not in UTC"),
        (
            {"opened_at": MIDNIGHT.astimezone(timezone(timedelta(hours=2)))},
            "bars[1].opened_at",
            "2026-06-01T02:00:00+02:00 is not in UTC; convert it",
        ),
    ],
)
def test_a_bad_bar_is_refused_with_its_field_and_a_remedy(changes: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_bars([a_bar(0), a_bar(1, **changes)])
    assert refused.value.field == field
    assert message in refused.value.message


def test_a_bar_that_never_ends_is_refused() -> None:
    with pytest.raises(Invalid, match="out of range; give fewer seconds"):
        bars_closed_by([a_bar(interval_seconds=10**12)], at=MIDNIGHT)


def test_a_bar_is_known_from_the_instant_of_its_close() -> None:
    bar = a_bar()
    assert bars_closed_by([bar], at=bar.closes_at) == [bar]
    assert bars_closed_by([bar], at=bar.closes_at - timedelta(microseconds=1)) == []


def test_a_bar_in_local_time_closes_when_it_really_does() -> None:
    bar = a_bar(opened_at=MIDNIGHT.astimezone(timezone(timedelta(hours=2))))
    assert bars_closed_by([bar], at=MIDNIGHT + timedelta(seconds=60)) == [bar]


def test_no_order_of_the_bars_lets_an_open_one_through() -> None:
    bars = [a_bar(3), a_bar(0), a_bar(2), a_bar(1)]
    assert bars_closed_by(bars, at=MIDNIGHT + timedelta(minutes=2)) == [bars[1], bars[3]]


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(Invalid, match="at: 2026-06-01T00:00:00 has no time zone"):
        bars_closed_by([a_bar()], at=MIDNIGHT.replace(tzinfo=None))


@given(series(), st.sampled_from([120, 300, 900]))
def test_a_longer_bar_keeps_first_open_last_close_extremes_and_volume(bars: list[Bar], seconds: int) -> None:
    longer = aggregate(bars, interval_seconds=seconds)
    check_bars(longer)
    for bar in longer:
        parts = [part for part in bars if bar.opened_at <= part.opened_at < bar.closes_at]
        assert (bar.open, bar.close) == (parts[0].open, parts[-1].close)
        assert (bar.low, bar.high) == (min(part.low for part in parts), max(part.high for part in parts))
        volumes = [part.volume for part in parts if part.volume is not None]
        assert bar.volume == (pytest.approx(sum(volumes)) if len(volumes) == len(parts) else None)


@given(series(), st.sampled_from([120, 300, 900]))
def test_longer_bars_end_where_the_bars_do(bars: list[Bar], seconds: int) -> None:
    for bar in aggregate(bars, interval_seconds=seconds):
        assert bars[0].opened_at <= bar.opened_at
        assert bar.closes_at <= bars[-1].closes_at
        assert (bar.opened_at - MIDNIGHT) % timedelta(seconds=seconds) == timedelta(0)


@given(series(), st.integers(0, 60))
def test_a_longer_bar_never_changes_once_it_is_there(bars: list[Bar], minute: int) -> None:
    then = aggregate(bars_closed_by(bars, at=MIDNIGHT + timedelta(minutes=minute)), interval_seconds=300)
    assert aggregate(bars, interval_seconds=300)[: len(then)] == then


@settings(max_examples=10)
@given(series(fewest=60))
def test_in_two_steps_as_in_one_where_no_minute_is_missing(bars: list[Bar]) -> None:
    fives = aggregate(bars, interval_seconds=300)
    in_two, in_one = aggregate(fives, interval_seconds=1800), aggregate(bars, interval_seconds=1800)
    assert (len(fives), len(in_one)) == (12, 2)
    assert [(bar.opened_at, *bar.prices) for bar in in_two] == [(bar.opened_at, *bar.prices) for bar in in_one]


def test_the_days_that_the_bars_only_touch_are_left_out() -> None:
    hours = [
        a_bar(interval_seconds=3600, opened_at=MIDNIGHT + timedelta(hours=hour), close=100.0 + hour / 100)
        for hour in range(-3, 24 * 2 + 5)
    ]
    days = aggregate(hours, interval_seconds=86400)
    assert [bar.opened_at.day for bar in days] == [1, 2]
    assert [bar.close for bar in days] == [100.23, 100.47]


def test_hours_without_trade_do_not_spoil_a_day() -> None:
    open_hours = [hour for hour in range(24 * 3) if 14 <= hour % 24 < 20]
    hours = [a_bar(interval_seconds=3600, opened_at=MIDNIGHT + timedelta(hours=hour)) for hour in open_hours]
    days = aggregate(hours, interval_seconds=86400)
    assert [(bar.opened_at.day, bar.volume) for bar in days] == [(2, 60.0)]


def test_a_bar_across_midnight_spoils_both_days() -> None:
    length = 4 * 3600
    shifted = [
        a_bar(interval_seconds=length, opened_at=MIDNIGHT + timedelta(hours=2 + 4 * number)) for number in range(30)
    ]
    assert aggregate(shifted, interval_seconds=86400) == []
    assert aggregate([bar for bar in shifted if bar.opened_at.hour != 22], interval_seconds=86400) != []


def test_the_same_interval_gives_the_same_bars() -> None:
    broker_days = [a_bar(interval_seconds=86400, opened_at=MIDNIGHT + timedelta(hours=22))]
    assert aggregate(broker_days, interval_seconds=86400) == broker_days
    assert aggregate([], interval_seconds=86400) == []


@pytest.mark.parametrize("seconds", [90, 30, 0, -60])
def test_only_multiples_of_the_interval_can_be_made(seconds: int) -> None:
    with pytest.raises(Invalid, match=f"interval_seconds: {seconds} is not a multiple of the 60 seconds"):
        aggregate([a_bar()], interval_seconds=seconds)
