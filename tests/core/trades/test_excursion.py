"""Excursions and risk over the life of a trade."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.market import Bar
from backsight.core.trades.excursion import ObservedPrice, excursions, risk_of
from backsight.core.trades.fold import RoundTrip, fold
from backsight.testing import T0, a_fill


def minute(number: float) -> timedelta:
    return timedelta(minutes=number)


def a_bar(number: int, low: float, high: float) -> Bar:
    return Bar(
        symbol="BTC",
        interval_seconds=60,
        opened_at=T0 + minute(number),
        open=low,
        high=high,
        low=low,
        close=high,
        volume=None,
    )


def a_trip(*executions: tuple[float, float, float]) -> RoundTrip:
    """The round trip of (minute, quantity, price) executions."""
    fills = [a_fill(number, quantity=q, price=p, at=T0 + minute(at)) for number, (at, q, p) in enumerate(executions)]
    (trip,) = fold(fills)
    return trip


TRIP = a_trip((0.5, 2, 100.0), (3.5, -2, 101.0))


def test_the_bars_of_the_entry_and_the_exit_count_in_full() -> None:
    bars = [
        a_bar(-1, 1, 999),
        a_bar(0, 98, 103),
        a_bar(1, 97, 102),
        a_bar(2, 99, 106),
        a_bar(3, 100, 104),
        a_bar(4, 1, 999),
    ]
    extremes = excursions(TRIP, bars=bars)
    assert extremes is not None
    assert (extremes.mfe, extremes.mae) == (12.0, -6.0)
    assert (extremes.mfe_at, extremes.mae_at) == (T0 + minute(3), T0 + minute(2))
    assert (extremes.source, extremes.interval_seconds) == ("bars", 60)


def test_a_bar_that_opens_as_the_trade_closes_is_not_part_of_it() -> None:
    extremes = excursions(a_trip((0, 1, 100.0), (1, -1, 101.0)), bars=[a_bar(0, 99, 102), a_bar(1, 1, 999)])
    assert extremes is not None
    assert (extremes.mfe, extremes.mae) == (2.0, -1.0)


def test_without_bars_excursions_come_from_marks() -> None:
    marks = [ObservedPrice(at=T0 + minute(m), price=p) for m, p in ((0.6, 101.0), (2.0, 95.0), (9.0, 500.0))]
    extremes = excursions(TRIP, marks=marks)
    assert extremes is not None
    assert (extremes.mfe, extremes.mae, extremes.source, extremes.interval_seconds) == (2.0, -10.0, "marks", None)


def test_without_bars_and_marks_only_the_exit_is_known() -> None:
    extremes = excursions(TRIP)
    assert extremes is not None
    assert (extremes.mfe, extremes.mae, extremes.source) == (
        max(0.0, TRIP.realized_pnl),
        min(0.0, TRIP.realized_pnl),
        "marks",
    )
    assert excursions(a_trip((0, 2, 100.0))) is None


def test_realised_and_open_profit_count_together() -> None:
    partly = a_trip((0, 2, 100.0), (1, -1, 110.0), (3, -1, 100.0))
    extremes = excursions(partly, bars=[a_bar(0, 100, 110), a_bar(1, 90, 110), a_bar(2, 100, 100)])
    assert extremes is not None
    assert (extremes.mfe, extremes.mae) == (20.0, 0.0)


def test_a_short_is_hurt_by_the_highs() -> None:
    short = a_trip((0, -1, 100.0), (2, 1, 100.0))
    extremes = excursions(short, bars=[a_bar(0, 95, 108), a_bar(1, 95, 101)])
    assert extremes is not None
    assert (extremes.mfe, extremes.mae) == (5.0, -8.0)


@given(st.lists(st.tuples(st.floats(50, 150), st.floats(0, 50)), min_size=4, max_size=4))
def test_the_result_lies_between_the_excursions(spans: list[tuple[float, float]]) -> None:
    extremes = excursions(TRIP, bars=[a_bar(n, low, low + more) for n, (low, more) in enumerate(spans)])
    assert extremes is not None
    assert extremes.mae <= min(0.0, TRIP.realized_pnl) <= max(0.0, TRIP.realized_pnl) <= extremes.mfe


def test_risk_is_the_distance_to_the_stop_times_the_size() -> None:
    risk = risk_of(TRIP, [ObservedPrice(at=T0 + minute(1), price=95.0)])
    assert (risk.initial, risk.largest) == (10.0, 10.0)


def test_trailing_a_stop_never_lowers_the_risk() -> None:
    stops = [ObservedPrice(at=T0 + minute(m), price=p) for m, p in ((0.5, 95.0), (1, 98.0), (2, 101.0))]
    assert risk_of(TRIP, stops).largest == 10.0


def test_widening_a_stop_or_adding_raises_the_risk() -> None:
    grown = a_trip((0, 1, 100.0), (2, 1, 104.0), (3, -2, 100.0))
    assert risk_of(grown, [ObservedPrice(at=T0, price=95.0)]).largest == 14.0
    assert (
        risk_of(
            TRIP, [ObservedPrice(at=T0 + minute(1), price=95.0), ObservedPrice(at=T0 + minute(2), price=90.0)]
        ).largest
        == 20.0
    )


def test_a_stop_beyond_the_entry_gives_no_risk() -> None:
    assert risk_of(TRIP, [ObservedPrice(at=T0 + minute(1), price=100.5)]).largest is None
    assert risk_of(TRIP, []).initial is None
