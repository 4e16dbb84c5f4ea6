"""How far a trade has gone, tick by tick, is how far it went at all."""

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


def seen(hour: float, price: float) -> ObservedPrice:
    return ObservedPrice(at=T0 + hour * HOUR, price=price)


def test_nothing_seen_is_nothing_known() -> None:
    assert progress_after(LONG, NO_PROGRESS, nth=0, stops=[]) == NO_PROGRESS


def test_marks_give_the_extremes_and_the_instants_of_each() -> None:
    first = progress_after(LONG, NO_PROGRESS, nth=0, stops=[], marks=[seen(1, 110.0)])
    second = progress_after(LONG, first, nth=1, stops=[], marks=[seen(2, 95.0), seen(2, 108.0)])
    gone = second.excursions
    assert gone is not None
    assert (gone.mfe, gone.mfe_at, gone.mae, gone.mae_at) == (20.0, T0 + HOUR, -10.0, T0 + 2 * HOUR)


def test_an_equal_extreme_later_keeps_the_first_instant() -> None:
    first = progress_after(LONG, NO_PROGRESS, nth=0, stops=[], marks=[seen(1, 110.0)])
    again = progress_after(LONG, first, nth=1, stops=[], marks=[seen(2, 110.0)]).excursions
    assert again is not None
    assert again.mfe_at == T0 + HOUR


def test_bars_take_the_place_of_marks_and_marks_never_that_of_bars() -> None:
    marks = progress_after(LONG, NO_PROGRESS, nth=0, stops=[], marks=[seen(1, 150.0)])
    bars = progress_after(LONG, marks, nth=1, stops=[], bars=[a_bar(0, 99.0, 104.0)], marks=[seen(2, 150.0)])
    assert bars.excursions is not None
    assert (bars.excursions.mfe, bars.excursions.source) == (8.0, "bars")
    assert progress_after(LONG, bars, nth=2, stops=[], marks=[seen(3, 150.0)]).excursions == bars.excursions


@pytest.mark.parametrize(("nth", "first"), [(0, 95.0), (1, 95.0), (2, None)])
def test_the_first_stop_is_seen_by_the_tick_after_the_entry_or_not_at_all(nth: int, first: float | None) -> None:
    gone = progress_after(LONG, NO_PROGRESS, nth=nth, stops=[seen(nth, 95.0)])
    assert (gone.first_stop, gone.initial_risk) == (first, None if first is None else 10.0)
    assert gone.risk == 10.0


def test_a_first_stop_stays_the_first_and_the_risk_the_largest() -> None:
    gone = progress_after(LONG, NO_PROGRESS, nth=0, stops=[seen(0, 95.0)])
    for hour, stop in ((1, 90.0), (2, 98.0), (3, 120.0)):
        gone = progress_after(LONG, gone, nth=hour, stops=[seen(hour, stop)])
    assert (gone.first_stop, gone.initial_risk, gone.risk) == (95.0, 10.0, 20.0)


def test_a_first_stop_beyond_the_entry_is_a_stop_without_a_risk() -> None:
    gone = progress_after(LONG, NO_PROGRESS, nth=0, stops=[seen(0, 101.0)])
    assert (gone.first_stop, gone.initial_risk, gone.risk) == (101.0, None, None)


def test_the_exit_is_within_the_extremes_also_where_no_bar_closed_since_the_last_tick() -> None:
    opened, closed = a_fill(0, quantity=2.0), a_fill(90, quantity=-2.0, price=120.0)
    before = progress_after(a_trip(opened), NO_PROGRESS, nth=0, stops=[], bars=[a_bar(0, 99.0, 104.0)])
    gone = progress_after(a_trip(opened, closed), before, nth=1, stops=[]).excursions
    assert gone == excursions(a_trip(opened, closed), bars=[a_bar(0, 99.0, 104.0)])
    assert gone is not None
    assert gone.mfe == 40.0


def test_the_look_at_the_instant_of_the_exit_was_before_it() -> None:
    trip = a_trip(a_fill(0, quantity=2.0), a_fill(60, quantity=-2.0, price=118.0))
    gone = excursions(trip, marks=[seen(1, 120.0)])
    assert gone is not None
    assert gone.mfe == 40.0


STEPS = st.lists(st.tuples(st.sampled_from([-0.5, 0.5, 1.0]), st.floats(90.0, 110.0)), max_size=5)
RANGES = st.lists(st.tuples(st.floats(60.0, 100.0), st.floats(100.0, 140.0)), min_size=7, max_size=7)
STOPS = st.lists(st.floats(80.0, 99.0), min_size=7, max_size=7)


def path(steps: Sequence[tuple[float, float]], *, ended: bool) -> list[Fill]:
    """A long trade that opens at T0 and changes at every hour, and may end at the last."""
    fills = [a_fill(0, quantity=5.0)]
    fills += [a_fill(60 * n, quantity=q, price=p, sequence=0) for n, (q, p) in enumerate(steps, start=1)]
    left = sum(fill.quantity for fill in fills)
    return [*fills, a_fill(60 * (len(steps) + 1), quantity=-left, price=101.0)] if ended else fills


@settings(max_examples=100)
@given(STEPS, RANGES, STOPS, st.booleans())
def test_tick_by_tick_it_is_what_it_is_all_at_once(
    steps: list[tuple[float, float]], ranges: list[tuple[float, float]], levels: list[float], ended: bool
) -> None:
    fills = path(steps, ended=ended)
    bars = [a_bar(hour, low, high) for hour, (low, high) in enumerate(ranges[: len(fills)])]
    stops = [seen(hour, level) for hour, level in enumerate(levels[: len(fills)])]
    reach = NO_PROGRESS
    for hour in range(len(fills)):
        trip = a_trip(*fills[: hour + 1])
        known = [stop for stop in stops if hour - 1 <= (stop.at - T0) / HOUR <= hour]
        reach = progress_after(trip, reach, nth=hour, stops=known, bars=bars[hour - 1 : hour] if hour else [])
    trip = a_trip(*fills)
    assert reach.excursions == excursions(trip, bars=bars[: len(fills) - 1])
    assert reach.risk == pytest.approx(risk_of(trip, stops).largest)


def test_the_parts_of_a_reach_are_independent() -> None:
    gone = Excursions(mfe=1.0, mae=-1.0, mfe_at=T0, mae_at=T0, source="marks", interval_seconds=None)
    reach = TradeProgress(excursions=gone, first_stop=95.0, initial_risk=10.0, risk=12.0)
    assert progress_after(LONG, reach, nth=3, stops=[]) == reach
    assert progress_after(LONG, replace(reach, risk=None), nth=3, stops=[seen(3, 99.0)]).risk == 2.0
