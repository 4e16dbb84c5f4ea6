"""Excursions (MFE and MAE) and the risk of a trade."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.market import Bar
from backsight.core.trades.fold import RoundTrip, Step
from backsight.core.trades.trade import ExcursionSource, risk_to_stop


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPrice:
    """A mark or a stop price that a snapshot showed."""

    at: datetime
    price: float | None
    """None if there was no stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excursions:
    """The extremes of realised plus unrealised PnL over the life of a trade, in money."""

    mfe: float
    """Most favourable: 0 or more."""
    mae: float
    """Most adverse: 0 or less."""
    mfe_at: datetime
    mae_at: datetime
    source: ExcursionSource
    interval_seconds: int | None
    """Length of the bars, if they come from bars."""


def excursions(trip: RoundTrip, *, bars: Sequence[Bar] = (), marks: Sequence[ObservedPrice] = ()) -> Excursions | None:
    """The excursions of a round trip from bars if there are any, else from marks; None if there is neither.

    Bars count as a whole, from the bar of the entry to that of the exit, or to the last one given.
    """
    during = [bar for bar in bars if _overlaps(trip, bar)]
    values = list(_of_bars(trip, during)) if during else list(_of_marks(trip, marks))
    values += [(step.at, step.realized_pnl) for step in trip.steps if step.size == 0]
    if not values:
        return None
    best, worst = max(values, key=lambda each: each[1]), min(values, key=lambda each: each[1])
    return Excursions(
        mfe=max(0.0, best[1]),
        mae=min(0.0, worst[1]),
        mfe_at=best[0] if best[1] > 0 else trip.opened_at,
        mae_at=worst[0] if worst[1] < 0 else trip.opened_at,
        source="bars" if during else "marks",
        interval_seconds=during[0].interval_seconds if during else None,
    )


def _overlaps(trip: RoundTrip, bar: Bar) -> bool:
    """Whether a bar overlaps the trade; an exit at the instant a bar opens belongs to the bar before."""
    if trip.closed_at is None or trip.closed_at == trip.opened_at:
        return bar.closes_at > trip.opened_at and _until(trip, bar.opened_at)
    return bar.closes_at > trip.opened_at and bar.opened_at < trip.closed_at


def _until(trip: RoundTrip, at: datetime) -> bool:
    return trip.closed_at is None or at <= trip.closed_at


def _of_bars(trip: RoundTrip, bars: Iterable[Bar]) -> Iterator[tuple[datetime, float]]:
    for bar in bars:
        for step in _in_force(trip.steps, bar.opened_at, bar.closes_at):
            for price in (bar.high, bar.low):
                yield bar.closes_at, _value(trip, step, price)


def _of_marks(trip: RoundTrip, marks: Iterable[ObservedPrice]) -> Iterator[tuple[datetime, float]]:
    open_steps = [step for step in trip.steps if step.size > 0]  # a mark at the instant of the exit is of before it
    for mark in marks:
        if mark.price is not None and mark.at >= trip.opened_at and _until(trip, mark.at):
            *_, step = _in_force(open_steps, mark.at, mark.at)
            yield mark.at, _value(trip, step, mark.price)


def _in_force(steps: Sequence[Step], start: datetime, end: datetime) -> list[Step]:
    """The steps in force between two instants: the last one before, and those inside."""
    before = [step for step in steps if step.at <= start][-1:]
    return before + [step for step in steps if start < step.at < end]


def _value(trip: RoundTrip, step: Step, price: float) -> float:
    way = 1.0 if trip.direction == "long" else -1.0
    points = trip.valued(price) - trip.valued(step.average_cost)
    return step.realized_pnl + way * step.size * points * trip.point_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """The risk of a trade, in money."""

    initial: float | None
    """At the first stop."""
    largest: float | None
    """The largest over time: trailing a stop never lowers it."""


def risk_of(trip: RoundTrip, stops: Sequence[ObservedPrice]) -> Risk:
    """Size times the distance from average cost to the stop in force; a stop at or beyond the entry gives no risk."""
    ordered = sorted((stop for stop in stops if _until(trip, stop.at)), key=lambda stop: stop.at)
    first = next((stop.price for stop in ordered if stop.price is not None), None)
    if first is None:
        return Risk(initial=None, largest=None)
    moments = sorted({*(step.at for step in trip.steps), *(stop.at for stop in ordered)})
    risks = [risk for at in moments if (risk := _risk_at(trip, ordered, at)) is not None]
    return Risk(initial=_risk_of_step(trip, trip.steps[0], first), largest=max(risks, default=None))


def _risk_at(trip: RoundTrip, stops: Sequence[ObservedPrice], at: datetime) -> float | None:
    step = [each for each in trip.steps if each.at <= at and each.size > 0][-1:]  # open until the exit
    stop = [each for each in stops if each.at <= at][-1:]
    return _risk_of_step(trip, step[0], stop[0].price) if step and stop else None


def _risk_of_step(trip: RoundTrip, step: Step, stop: float | None) -> float | None:
    if stop is None:
        return None
    size = step.size * trip.point_value
    entry, exit_ = trip.valued(step.average_cost), trip.valued(stop)
    risk = risk_to_stop(trip.direction, entry_price=entry, stop_price=exit_, size=size)
    return risk or None  # an empty position has no risk
