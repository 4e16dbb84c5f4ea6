"""An open trade as a tick saw it: the broker's position, and how far the trade has gone by then."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

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


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionMark:
    """A position at the end of a tick, and the reach of its trade up to then."""

    owner_id: str
    account_id: str
    position: Position
    at: datetime
    sequence: int
    """Of the tick."""
    trade_id: str
    decision_id: str
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
    if first_stop is None and stops and nth <= STOP_SEEN_BY:
        first_stop, initial = stops[0].price, stakes.initial
    return Reach(
        excursions=_farther(before.excursions, excursions(trip, bars=bars, marks=marks)),
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
