"""An open trade as a tick saw it: the broker's position, and how far the trade has gone by then."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.market import Bar
from backsight.core.portfolio import Position
from backsight.core.trades.excursion import Excursions, Seen, excursions, risk_of
from backsight.core.trades.fold import RoundTrip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a trade has gone, and what it has put at stake."""

    excursions: Excursions | None = None
    first_stop: float | None = None
    initial_risk: float | None = None
    risk: float | None = None


Look = Literal["before", "after"]
"""Which of a tick's two looks at the broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionMark:
    """A position at the end of a tick, or at its beginning where the tick closed it, and the reach of its trade."""

    owner_id: str
    account_id: str
    position: Position
    at: datetime
    sequence: int
    """Of the tick."""
    trade_id: str
    decision_id: str
    look: Look
    """`before` only where the tick closed it."""
    nth: int
    """How many ticks saw the trade before."""
    reach: Reach
    known_at: datetime
    recorded_at: datetime


NOTHING = Reach()
STOP_SEEN_BY = 1
"""A first stop is one that was seen by the tick after the entry's at the latest."""


def reached(
    trip: RoundTrip,
    before: Reach,
    *,
    nth: int,
    stops: Sequence[Seen],
    bars: Sequence[Bar] = (),
    marks: Sequence[Seen] = (),
) -> Reach:
    """The reach after a tick: what it was, and what the tick adds.

    `stops` are those in force at the last tick and at this one; `bars` closed since the last tick, or since the entry
    where the reach so far rests on marks; `marks` were seen at this tick.
    """
    stakes = risk_of(trip, stops)
    first_stop, initial = before.first_stop, before.initial_risk
    told = [stop.price for stop in stops if stop.price is not None]
    if first_stop is None and told and nth <= STOP_SEEN_BY:
        first_stop, initial = told[0], stakes.initial
    return Reach(
        excursions=_to_the_exit(trip, _farther(before.excursions, excursions(trip, bars=bars, marks=marks))),
        first_stop=first_stop,
        initial_risk=initial,
        risk=max((stake for stake in (before.risk, stakes.largest) if stake is not None), default=None),
    )


def _farther(one: Excursions | None, other: Excursions | None) -> Excursions | None:
    """The extremes of both; bars know more than marks."""
    if one is None or other is None:
        return one or other
    if one.source != other.source:
        return one if one.source == "bars" else other
    return Excursions(
        mfe=max(one.mfe, other.mfe),
        mae=min(one.mae, other.mae),
        mfe_at=other.mfe_at if other.mfe > one.mfe else one.mfe_at,
        mae_at=other.mae_at if other.mae < one.mae else one.mae_at,
        source=one.source,
        interval_seconds=one.interval_seconds,
    )


def _to_the_exit(trip: RoundTrip, gone: Excursions | None) -> Excursions | None:
    """The extremes with what was realised at the end among them, also where no bar and no mark told of it."""
    if gone is None or trip.closed_at is None:
        return gone
    best, worst = trip.realized_pnl > gone.mfe, trip.realized_pnl < gone.mae
    return replace(
        gone,
        mfe=trip.realized_pnl if best else gone.mfe,
        mae=trip.realized_pnl if worst else gone.mae,
        mfe_at=trip.closed_at if best else gone.mfe_at,
        mae_at=trip.closed_at if worst else gone.mae_at,
    )
