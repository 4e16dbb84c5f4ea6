"""What the reported fills do not explain: inferred, so that the ledger ends where the broker says it is."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import JUST_BEFORE
from backsight.core.market import Bar
from backsight.core.portfolio import Portfolio, Position
from backsight.core.trades.fill import Fill, PriceSource
from backsight.core.trades.fold import FLAT_SHARE, RoundTrip

SAME_PRICE = 1e-6
"""Two average prices that differ by less than this share are one."""
AFTER_REPORTED = 1_000_000
"""Inferred fills come after the reported ones of their instant, and a later phase after an earlier one."""

Phase = Literal["since", "now"]
"""What happened since the last tick, or in this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What every fill inferred in one phase of one tick has in common."""

    owner_id: str
    account_id: str
    tick_id: str
    phase: Phase
    at: datetime
    sequence: int = 0
    """Of the tick, among those of its instant."""
    since: datetime | None = None
    """When the broker was asked before."""
    recorded_at: datetime
    decision_id: str | None = None
    flattened: bool = False
    """A flatten command was in force."""
    proposal_symbol: str | None = None
    proposal_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A level that the bars reached while nobody looked."""

    source: PriceSource
    price: float
    at: datetime

    @property
    def reason(self) -> str:
        return {"stop": "stop_loss", "target": "take_profit"}.get(self.source, "liquidated")


def infer_fills(
    ledger: Mapping[str, RoundTrip],
    portfolio: Portfolio,
    *,
    stamp: Stamp,
    last_seen: Mapping[str, Position],
    bars: Mapping[str, Sequence[Bar]],
    marks: Mapping[str, float],
    lot_step: float | None = None,
) -> list[Fill]:
    """The fills that take the ledger's open positions to the broker's.

    `last_seen` has the stops and targets in force before, `bars` what closed since then by symbol. An entry is at the
    average price that the broker tells, else at the mark; an exit at the level that the bars touched, else at the mark.
    """
    held = portfolio.by_key()
    made: list[Fill] = []
    for key in sorted({*ledger, *held}):
        trip, position = ledger.get(key), held.get(key)
        symbol = trip.symbol if position is None and trip is not None else position.symbol if position else ""
        touch = None if trip is None else first_touch(trip, last_seen.get(key), bars.get(symbol, ()))
        for leg in _legs(trip, position, touch, mark=_mark(position, symbol, marks), lot_step=lot_step):
            made.append(_fill(leg, stamp, key=key, symbol=symbol, place=len(made), seen_at=portfolio.at))
    return made


def first_touch(trip: RoundTrip, seen: Position | None, bars: Iterable[Bar]) -> Touch | None:
    """The first level that a bar reached after the entry; of several in one bar the stop, then a liquidation.

    A bar that opened beyond the level filled at its open.
    """
    if seen is None:
        return None
    way = 1.0 if trip.direction == "long" else -1.0
    against: list[tuple[PriceSource, float | None]] = [
        ("stop", seen.stop_price),
        ("liquidation", seen.liquidation_price),
    ]
    for bar in (bar for bar in bars if bar.closes_at > trip.opened_at):
        worst, best = (bar.low, bar.high) if way > 0 else (bar.high, bar.low)
        for source, level in against:
            if level is not None and way * (worst - level) <= 0:
                return Touch(source=source, price=_gapped(bar.open, level, -way), at=bar.closes_at)
        if seen.target_price is not None and way * (best - seen.target_price) >= 0:
            return Touch(source="target", price=_gapped(bar.open, seen.target_price, way), at=bar.closes_at)
    return None


def _gapped(opened: float, level: float, way: float) -> float:
    return opened if way * (opened - level) > 0 else level


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leg:
    step: Literal["close", "open", "reduce", "add"]
    quantity: float
    price: float
    source: PriceSource
    touch: Touch | None = None


def _legs(
    trip: RoundTrip | None, position: Position | None, touch: Touch | None, *, mark: float, lot_step: float | None
) -> list[_Leg]:
    have = 0.0 if trip is None else trip.signed_size
    want = 0.0 if position is None else position.signed_size
    if trip is None or position is None or have * want < 0 or not continued(trip, position):
        return [*_closing(have, touch, mark), *_opening(position, mark)]
    change = want - have
    if abs(change) <= _tolerance(trip, position, lot_step):
        return []
    if abs(want) < abs(have):
        exit_ = touch or Touch(source="mark", price=mark, at=trip.opened_at)
        return [_Leg(step="reduce", quantity=change, price=exit_.price, source=exit_.source, touch=touch)]
    if position.average_price is None:
        return [_Leg(step="add", quantity=change, price=mark, source="mark")]
    price = _price_of_addition(trip, position, position.average_price)
    return [_Leg(step="add", quantity=change, price=price, source="average")]


def continued(trip: RoundTrip, position: Position) -> bool:
    """Whether a position of the same side can be the one the ledger knows.

    Not if it is no larger and yet at another average price, nor if no addition at a price above zero explains its
    average: then it was closed and entered again.
    """
    told = position.average_price
    if told is None or math.isclose(told, trip.average_cost, rel_tol=SAME_PRICE, abs_tol=1e-12):
        return True
    if position.size <= trip.size * (1 + FLAT_SHARE):
        return False
    return told <= 0 or _price_of_addition(trip, position, told) > 0


def _closing(have: float, touch: Touch | None, mark: float) -> list[_Leg]:
    if have == 0:
        return []
    if touch is None:
        return [_Leg(step="close", quantity=-have, price=mark, source="mark")]
    return [_Leg(step="close", quantity=-have, price=touch.price, source=touch.source, touch=touch)]


def _opening(position: Position | None, mark: float) -> list[_Leg]:
    if position is None:
        return []
    told = position.average_price
    source: PriceSource = "mark" if told is None else "average"
    price = mark if told is None else told
    return [_Leg(step="open", quantity=position.signed_size, price=price, source=source)]


def _price_of_addition(trip: RoundTrip, position: Position, average: float) -> float:
    """The price at which an addition moves the ledger's average cost to the broker's."""
    return (average * position.size - trip.average_cost * trip.size) / (position.size - trip.size)


def _tolerance(trip: RoundTrip, position: Position, lot_step: float | None) -> float:
    return lot_step / 2 if lot_step else FLAT_SHARE * max(trip.peak_size, position.size)


def _mark(position: Position | None, symbol: str, marks: Mapping[str, float]) -> float:
    if position is not None:
        return position.mark
    if symbol not in marks:
        raise Invalid(
            f"no mark of {symbol!r}, which the ledger still holds; give one for every position", field="marks"
        )
    return marks[symbol]


def _fill(leg: _Leg, stamp: Stamp, *, key: str, symbol: str, place: int, seen_at: datetime) -> Fill:
    at, sequence = _moment(leg, stamp, place)
    named = (stamp.account_id, stamp.tick_id, stamp.phase, key, leg.step)
    return Fill(
        owner_id=stamp.owner_id,
        account_id=stamp.account_id,
        id=derive_id("fill", *named),
        kind="inferred",
        at=at,
        sequence=sequence,
        position_key=key,
        symbol=symbol,
        quantity=leg.quantity,
        price=leg.price,
        price_source=leg.source,
        fee=0.0,
        amount=0.0,
        realized_pnl=None,
        reason=_reason(leg, stamp, symbol),
        decision_id=stamp.decision_id if stamp.phase == "now" else None,
        group_id=None,
        earliest_at=stamp.since,
        latest_at=max(at, seen_at),
        replaces=None,
        known_at=stamp.at,
        recorded_at=stamp.recorded_at,
    )


def _moment(leg: _Leg, stamp: Stamp, place: int) -> tuple[datetime, int]:
    """When a fill took place, and its order there: what happened since the last tick comes before what this one did."""
    latest = stamp.at
    if stamp.phase == "since" and stamp.sequence == 0:
        latest -= JUST_BEFORE
    phase = 2 * stamp.sequence + (stamp.phase == "now")
    return min(latest, leg.touch.at) if leg.touch else latest, AFTER_REPORTED * (1 + phase) + place


def _reason(leg: _Leg, stamp: Stamp, symbol: str) -> str | None:
    """Why, as far as anybody's word goes: the level touched, the flatten command, the agent's proposal."""
    if leg.touch is not None:
        return leg.touch.reason
    if stamp.phase == "now" and stamp.proposal_symbol == symbol:
        return stamp.proposal_reason
    if leg.step in ("open", "add"):
        return None
    return "external_flatten" if stamp.flattened else "unexplained"
