"""The progress of a trade, updated tick by tick, equals the progress computed all at once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.fills import Fill
from backsight.core.market import Bar
from backsight.core.trades.excursion import Excursions, ObservedPrice, excursions, risk_of
from backsight.core.trades.fold import RoundTrip, fold
from backsight.core.trades.mark import NO_PROGRESS, TradeProgress, progress_after
from backsight.testing import T0, a_fill

HOUR = timedelta(hours=1)


def a_trip(*fills: Fill) -> RoundTrip:
    (trip,) = fold(fills)
    return trip


LONG = a_trip(a_fill(0, quantity=2.0))


def a_bar(hour: int, low: float, high: float) -> Bar:
    price = min(max(100.0, low), high)
    at = T0 + hour * HOUR
    return Bar(symbol="BTC", interval_seconds=3600, opened_at=at, open=price, high=high, low=low, close=price)


def observed_price(hour: float, price: float) -> ObservedPrice:
    return ObservedPrice(at=T0 + hour * HOUR, price=price)


def test_without_prices_there_is_no_progress() -> None:
    assert progress_after(LONG, NO_PROGRESS, nth=0, stops=[]) == NO_PROGRESS


def test_marks_give_the_extremes_and_the_instants_of_each() -> None:
    first = progress_after(LONG, NO_PROGRESS, nth=0, stops=[], marks=[observed_price(1, 110.0)])
    second = progress_after(LONG, first, nth=1, stops=[], marks=[observed_price(2, 95.0), observed_price(2, 108.0)])
    extremes = second.excursions
    assert extremes is not None
    assert (extremes.mfe, extremes.mfe_at, extremes.mae, extremes.mae_at) == (20.0, T0 + HOUR, -10.0, T0 + 2 * HOUR)


def test_an_equal_extreme_later_keeps_the_first_instant() -> None:
    first = progress_after(LONG, NO_PROGRESS, nth=0, stops=[], marks=[observed_price(1, 110.0)])
    again = progress_after(LONG, first, nth=1, stops=[], marks=[observed_price(2, 110.0)]).excursions
    assert again is not None
    assert again.mfe_at == T0 + HOUR


def test_bars_replace_marks_and_marks_never_replace_bars() -> None:
    marks = progress_after(LONG, NO_PROGRESS, nth=0, stops=[], marks=[observed_price(1, 150.0)])
    bars = progress_after(LONG, marks, nth=1, stops=[], bars=[a_bar(0, 99.0, 104.0)], marks=[observed_price(2, 150.0)])
    assert bars.excursions is not None
    assert (bars.excursions.mfe, bars.excursions.source) == (8.0, "bars")
    assert progress_after(LONG, bars, nth=2, stops=[], marks=[observed_price(3, 150.0)]).excursions == bars.excursions


@pytest.mark.parametrize(("nth", "first"), [(0, 95.0), (1, 95.0), (2, None)])
def test_the_first_stop_is_seen_by_the_tick_after_the_entry_or_not_at_all(nth: int, first: float | None) -> None:
    progress = progress_after(LONG, NO_PROGRESS, nth=nth, stops=[observed_price(nth, 95.0)])
    assert (progress.first_stop, progress.initial_risk) == (first, None if first is None else 10.0)
    assert progress.risk == 10.0


def test_a_first_stop_stays_the_first_and_the_risk_the_largest() -> None:
    progress = progress_after(LONG, NO_PROGRESS, nth=0, stops=[observed_price(0, 95.0)])
    for hour, stop in ((1, 90.0), (2, 98.0), (3, 120.0)):
        progress = progress_after(LONG, progress, nth=hour, stops=[observed_price(hour, stop)])
    assert (progress.first_stop, progress.initial_risk, progress.risk) == (95.0, 10.0, 20.0)


def test_a_first_stop_beyond_the_entry_is_a_stop_without_a_risk() -> None:
    progress = progress_after(LONG, NO_PROGRESS, nth=0, stops=[observed_price(0, 101.0)])
    assert (progress.first_stop, progress.initial_risk, progress.risk) == (101.0, None, None)


def test_the_exit_is_within_the_extremes_also_where_no_bar_closed_since_the_last_tick() -> None:
    opened, closed = a_fill(0, quantity=2.0), a_fill(90, quantity=-2.0, price=120.0)
    before = progress_after(a_trip(opened), NO_PROGRESS, nth=0, stops=[], bars=[a_bar(0, 99.0, 104.0)])
    extremes = progress_after(a_trip(opened, closed), before, nth=1, stops=[]).excursions
    assert extremes == excursions(a_trip(opened, closed), bars=[a_bar(0, 99.0, 104.0)])
    assert extremes is not None
    assert extremes.mfe == 40.0


def test_a_mark_at_the_instant_of_the_exit_precedes_it() -> None:
    trip = a_trip(a_fill(0, quantity=2.0), a_fill(60, quantity=-2.0, price=118.0))
    extremes = excursions(trip, marks=[observed_price(1, 120.0)])
    assert extremes is not None
    assert extremes.mfe == 40.0


STEPS = st.lists(st.tuples(st.sampled_from([-0.5, 0.5, 1.0]), st.floats(90.0, 110.0)), max_size=5)
RANGES = st.lists(st.tuples(st.floats(60.0, 100.0), st.floats(100.0, 140.0)), min_size=7, max_size=7)
STOPS = st.lists(st.floats(80.0, 99.0), min_size=7, max_size=7)


def path(steps: Sequence[tuple[float, float]], *, closed: bool) -> list[Fill]:
    """The fills of a long trade that opens at T0, changes every hour, and closes at the last if `closed`."""
    fills = [a_fill(0, quantity=5.0)]
    fills += [a_fill(60 * n, quantity=q, price=p, sequence=0) for n, (q, p) in enumerate(steps, start=1)]
    left = sum(fill.quantity for fill in fills)
    return [*fills, a_fill(60 * (len(steps) + 1), quantity=-left, price=101.0)] if closed else fills


@settings(max_examples=100)
@given(STEPS, RANGES, STOPS, st.booleans())
def test_progress_tick_by_tick_equals_progress_all_at_once(
    steps: list[tuple[float, float]], ranges: list[tuple[float, float]], levels: list[float], closed: bool
) -> None:
    fills = path(steps, closed=closed)
    bars = [a_bar(hour, low, high) for hour, (low, high) in enumerate(ranges[: len(fills)])]
    stops = [observed_price(hour, level) for hour, level in enumerate(levels[: len(fills)])]
    progress = NO_PROGRESS
    for hour in range(len(fills)):
        trip = a_trip(*fills[: hour + 1])
        known = [stop for stop in stops if hour - 1 <= (stop.at - T0) / HOUR <= hour]
        progress = progress_after(trip, progress, nth=hour, stops=known, bars=bars[hour - 1 : hour] if hour else [])
    trip = a_trip(*fills)
    assert progress.excursions == excursions(trip, bars=bars[: len(fills) - 1])
    assert progress.risk == pytest.approx(risk_of(trip, stops).largest)


def test_the_parts_of_a_progress_are_independent() -> None:
    extremes = Excursions(mfe=1.0, mae=-1.0, mfe_at=T0, mae_at=T0, source="marks", interval_seconds=None)
    progress = TradeProgress(excursions=extremes, first_stop=95.0, initial_risk=10.0, risk=12.0)
    assert progress_after(LONG, progress, nth=3, stops=[]) == progress
    assert progress_after(LONG, replace(progress, risk=None), nth=3, stops=[observed_price(3, 99.0)]).risk == 2.0
