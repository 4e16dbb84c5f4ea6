"""A context vector uses only bars that are closed at its instant."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.market import Bar, aggregate
from backsight.core.observation import context_from_bars
from backsight.core.regime import atr, classify_regime, regime_of, volatility_regime

START = datetime(2026, 6, 1, tzinfo=UTC)
DAY, HOUR, FIVE, MINUTE = 86_400, 3_600, 300, 60


def walk(interval: int, number: int, *, start: datetime = START) -> list[Bar]:
    """The bars of a market that oscillates, the same bars at every call."""
    closes = [2400.0 + 20 * math.sin(step / 9) + step % 7 for step in range(number + 1)]
    return [
        Bar(
            symbol="XAUUSD",
            interval_seconds=interval,
            opened_at=start + step * timedelta(seconds=interval),
            open=first,
            high=max(first, last) + 1.0 + step % 3,
            low=min(first, last) - 1.0,
            close=last,
        )
        for step, (first, last) in enumerate(pairwise(closes))
    ]


def closing_at(bars: list[Bar], closes: list[float]) -> list[Bar]:
    return [
        replace(bar, open=close, high=close, low=close, close=close) for bar, close in zip(bars, closes, strict=True)
    ]


def context_of(*series: list[Bar], at: datetime, spread: float | None = None) -> ContextVector:
    bars = {bars[0].interval_seconds: bars for bars in series}
    return context_from_bars("XAUUSD", at=at, bars=bars, spread=spread)


def test_every_field_is_known_where_the_bars_reach() -> None:
    days, hours, fives = walk(DAY, 40), walk(HOUR, 24 * 40), walk(FIVE, 288 * 40)
    context = context_from_bars(
        "XAUUSD",
        at=START + timedelta(days=40),
        bars={DAY: days, HOUR: hours, FIVE: fives},
        spread=0.3,
        drawdown_pct=0.02,
        consecutive_losses=1,
        confidence=0.7,
    )
    day, hour, five = atr(days), atr(hours), atr(fives)
    assert day
    assert hour
    assert five
    assert context == ContextVector(
        symbol="XAUUSD",
        price=fives[-1].close,
        atr_d1=day,
        atr_h1=hour,
        atr_m5=five,
        atr_ratio_h1_d1=hour / day,
        regime=regime_of(classify_regime(fives).tag),
        volatility_regime=volatility_regime(days),
        session="asia",
        hour_utc=0,
        day_of_week=5,
        spread_points=0.3,
        spread_as_atr_pct=0.3 / five,
        drawdown_pct=0.02,
        consecutive_losses=1,
        confidence=0.7,
    )


def test_without_bars_only_the_instant_is_known() -> None:
    context = context_from_bars("XAUUSD", at=START + timedelta(hours=13), bars={}, spread=0.3)
    assert context.known == ("symbol", "session", "hour_utc", "day_of_week", "spread_points")
    assert context_from_bars("XAUUSD", at=START, bars={FIVE: [], DAY: walk(DAY, 3)}).price is None


HOURS = walk(HOUR, 24 * 40)


@given(st.integers(0, 24 * 40 * 60), st.integers(0, 24 * 40))
def test_bars_that_close_later_change_nothing(minutes: int, later: int) -> None:
    at = START + timedelta(minutes=minutes)
    closed = minutes // 60
    assert context_of(HOURS, at=at) == context_from_bars("XAUUSD", at=at, bars={HOUR: HOURS[:closed]})
    assert context_of(HOURS, at=at) == context_from_bars("XAUUSD", at=at, bars={HOUR: HOURS[: closed + later]})


def test_a_broken_bar_that_closes_later_is_not_read() -> None:
    at = START + timedelta(hours=24 * 39)
    broken = replace(HOURS[-1], close=math.nan)
    assert context_of([*HOURS[:-1], broken], at=at) == context_of(HOURS, at=at)


def test_a_bar_counts_from_the_instant_of_its_close() -> None:
    at = HOURS[20].closes_at
    assert context_of(HOURS, at=at).price == HOURS[20].close
    assert context_of(HOURS, at=at - timedelta(microseconds=1)).price == HOURS[19].close


def test_an_instant_of_another_zone_is_the_same_instant() -> None:
    at = START + timedelta(days=20, hours=23)
    assert context_of(HOURS, at=at.astimezone(timezone(timedelta(hours=9)))) == context_of(HOURS, at=at)


def test_missing_days_and_hours_are_aggregated_from_five_minutes() -> None:
    fives = walk(FIVE, 288 * 30 + 100)
    context = context_of(fives, at=fives[-1].closes_at)
    days, hours = aggregate(fives, interval_seconds=DAY), aggregate(fives, interval_seconds=HOUR)
    assert (len(days), len(hours)) == (30, 24 * 30 + 8)
    assert (context.atr_d1, context.atr_h1) == (atr(days), atr(hours))
    assert context.volatility_regime == volatility_regime(days)


def test_too_few_days_are_replaced_by_days_aggregated_from_hours() -> None:
    days = [replace(day, high=day.high + 500) for day in walk(DAY, 40)]
    at = START + timedelta(days=40)
    from_hours = atr(aggregate(HOURS, interval_seconds=DAY))
    assert context_of(days[-13:], HOURS, at=at).atr_d1 == from_hours
    assert context_of(days[-14:], HOURS, at=at).atr_d1 == atr(days[-14:])


def test_five_minutes_are_never_derived_from_hours() -> None:
    context = context_of(HOURS, at=HOURS[-1].closes_at, spread=0.3)
    assert context.atr_m5 is None
    assert (context.spread_points, context.spread_as_atr_pct) == (0.3, None)


def test_a_spread_in_a_market_that_does_not_move_has_no_share() -> None:
    flat = closing_at(walk(FIVE, 20), [1.0] * 20)
    assert context_of(flat, at=flat[-1].closes_at, spread=0.3).spread_as_atr_pct is None


def test_the_price_is_the_close_of_the_finest_bar() -> None:
    at = START + timedelta(days=2)
    minutes = [replace(bar, close=bar.high) for bar in walk(MINUTE, 60 * 48)]
    assert context_of(walk(DAY, 2), HOURS, minutes, at=at).price == minutes[-1].close


def test_a_series_that_ended_long_ago_does_not_give_the_price() -> None:
    assert context_of(walk(MINUTE, 30), HOURS, at=HOURS[-1].closes_at).price == HOURS[-1].close


def test_the_regime_is_that_of_the_finest_interval_with_twelve_bars() -> None:
    at = HOURS[199].closes_at
    falling = closing_at(HOURS[:200], [1000.0 - step for step in range(200)])
    fives = closing_at(walk(FIVE, 12, start=at - timedelta(hours=1)), [2400.0 + 3 * step for step in range(12)])
    assert context_of(falling, fives[1:], at=at).regime == "trending_down"
    assert context_of(falling, fives, at=at).regime == "trending_up"


def test_negative_prices_have_an_atr_and_no_regime() -> None:
    below = [replace(bar, **{n: getattr(bar, n) - 5000 for n in ("open", "high", "low", "close")}) for bar in HOURS]
    context = context_of(below, at=HOURS[-1].closes_at)
    assert context.regime is None
    assert context.atr_h1 == pytest.approx(atr(HOURS))
    assert context.price == below[-1].close


def test_the_volatility_regime_is_that_of_the_hours_where_there_are_too_few_days() -> None:
    at = HOURS[24 * 10 - 1].closes_at
    assert context_of(HOURS, at=at).atr_d1 is None
    assert context_of(HOURS, at=at).volatility_regime == volatility_regime(HOURS[: 24 * 10])


def test_bars_of_another_symbol_or_interval_are_refused() -> None:
    with pytest.raises(Invalid, match=r"bars\[3600\]: holds bars of 'XAUUSD' by 3600 seconds; give bars of 'BTC'"):
        context_from_bars("BTC", at=START + timedelta(days=2), bars={HOUR: HOURS})
    with pytest.raises(Invalid, match=r"give bars of 'XAUUSD' by 86400 seconds"):
        context_from_bars("XAUUSD", at=START + timedelta(days=2), bars={DAY: HOURS})


def test_broken_input_is_refused_at_the_door() -> None:
    at = START + timedelta(days=2)
    with pytest.raises(Invalid, match=r"bars\[3600\]\[1\].opened_at: .* sort the bars"):
        context_of([HOURS[1], HOURS[0]], at=at)
    with pytest.raises(Invalid, match=r"at: .* has no time zone"):
        context_of(HOURS, at=at.replace(tzinfo=None))
    with pytest.raises(Invalid, match="spread: nan is not a spread"):
        context_of(HOURS, at=at, spread=math.nan)
