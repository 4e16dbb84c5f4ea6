"""The one materialiser: fills in, round trips out, for live ticks, simulations and every importer.

Average cost. A position that changes its side is two round trips, its fee shared by quantity.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.fills import Fill
from backsight.core.portfolio import Direction
from backsight.core.trades.trade import TradeStatus

FLAT_SHARE = 1e-9
"""Below this share of its peak size a position is flat, where no lot step is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A round trip after one of its fills."""

    at: datetime
    size: float
    average_cost: float
    realized_pnl: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """What the fills of one position say, from flat to flat or until now. Money is gross; fees stand beside it."""

    position_key: str
    symbol: str
    direction: Direction
    first_fill_id: str
    opened_at: datetime
    closed_at: datetime | None
    size: float
    """What is still held."""
    peak_size: float
    peak_notional: float
    average_cost: float
    entry_price: float
    """Average over everything that was added."""
    exit_price: float | None
    """Average over everything that was taken off."""
    entered: float
    left: float
    realized_pnl: float
    fees: float
    funding: float
    broker_pnl: float | None
    """What the broker says was realised, where it says so for every exit."""
    inferred: bool
    """Whether any price in it is an inference."""
    entry_reason: str | None
    exit_reason: str | None
    entry_decision_id: str | None
    exit_decision_id: str | None
    group_id: str | None
    steps: tuple[Step, ...]
    known_at: datetime
    """When the latest fact in it became known."""

    @property
    def status(self) -> TradeStatus:
        return "open" if self.closed_at is None else "closed"

    @property
    def net(self) -> float:
        """Realised + funding − fees: a win is net > 0."""
        return self.realized_pnl + self.funding - self.fees

    @property
    def signed_size(self) -> float:
        return self.size if self.direction == "long" else -self.size

    def unrealized(self, mark: float) -> float:
        """What closing at the mark would realise."""
        return self.signed_size * (mark - self.average_cost)


def fold(fills: Iterable[Fill], *, lot_step: float | None = None) -> list[RoundTrip]:
    """The round trips of one account's fills, in the order in which they were opened.

    Fills count in (time, sequence, id) order, whatever order they come in. Fees and funding belong to the round trip
    that is open in their position, else to the last one that was: late ones correct it.
    """
    last: dict[str, int] = {}
    trips: list[RoundTrip] = []
    for fill in sorted(fills, key=lambda each: each.order):
        if fill.kind == "transfer":
            continue
        place = last.get(fill.position_key)
        held = None if place is None else trips[place]
        for trip in _after(held, fill, lot_step):
            if held is not None and trip.first_fill_id == held.first_fill_id and place is not None:
                trips[place] = trip
            else:
                last[fill.position_key] = len(trips)
                trips.append(trip)
    return trips


def _after(held: RoundTrip | None, fill: Fill, lot_step: float | None) -> Sequence[RoundTrip]:
    """The round trip after a fill; two where the fill took it through flat to the other side."""
    if not fill.executed:
        return [] if held is None else [_charged(held, fill)]
    price = fill.price
    if price is None or fill.quantity == 0:
        return [] if held is None else [_charged(held, fill)]
    if held is None or held.status == "closed":
        return [_opened(fill, fill.quantity, price, fill.fee)]
    if (fill.quantity > 0) == (held.direction == "long"):
        return [_added(held, fill, abs(fill.quantity), price)]
    size = abs(fill.quantity)
    beyond = size - held.size
    if beyond <= _flat_below(max(held.peak_size, size), lot_step):
        return [_reduced(held, fill, min(size, held.size), price, fill.fee, lot_step)]
    opening = fill.fee * (beyond / size)
    closed = _reduced(held, fill, held.size, price, fill.fee - opening, lot_step)
    turned = beyond if fill.quantity > 0 else -beyond
    return [closed, _opened(fill, turned, price, opening)]


def _flat_below(peak: float, lot_step: float | None) -> float:
    return lot_step * (1 - FLAT_SHARE) if lot_step else FLAT_SHARE * peak


def _opened(fill: Fill, quantity: float, price: float, fee: float) -> RoundTrip:
    size = abs(quantity)
    return RoundTrip(
        position_key=fill.position_key,
        symbol=fill.symbol,
        direction="long" if quantity > 0 else "short",
        first_fill_id=fill.name,
        opened_at=fill.at,
        closed_at=None,
        size=size,
        peak_size=size,
        peak_notional=size * abs(price),
        average_cost=price,
        entry_price=price,
        exit_price=None,
        entered=size,
        left=0.0,
        realized_pnl=0.0,
        fees=fee,
        funding=0.0,
        broker_pnl=None,
        inferred=fill.kind == "inferred",
        entry_reason=fill.reason,
        exit_reason=None,
        entry_decision_id=fill.decision_id,
        exit_decision_id=None,
        group_id=fill.group_id,
        steps=(Step(at=fill.at, size=size, average_cost=price, realized_pnl=0.0),),
        known_at=fill.known_at,
    )


def _added(held: RoundTrip, fill: Fill, size: float, price: float) -> RoundTrip:
    total = held.size + size
    cost = (held.average_cost * held.size + price * size) / total
    return replace(
        held,
        size=total,
        peak_size=max(held.peak_size, total),
        peak_notional=max(held.peak_notional, total * abs(cost)),
        average_cost=cost,
        entry_price=(held.entry_price * held.entered + price * size) / (held.entered + size),
        entered=held.entered + size,
        fees=held.fees + fill.fee,
        inferred=held.inferred or fill.kind == "inferred",
        steps=(*held.steps, Step(at=fill.at, size=total, average_cost=cost, realized_pnl=held.realized_pnl)),
        known_at=max(held.known_at, fill.known_at),
    )


def _reduced(held: RoundTrip, fill: Fill, size: float, price: float, fee: float, lot_step: float | None) -> RoundTrip:
    way = 1.0 if held.direction == "long" else -1.0
    realized = held.realized_pnl + way * (price - held.average_cost) * size
    rest = held.size - size
    flat = rest <= _flat_below(held.peak_size, lot_step)
    left = held.left + size
    return replace(
        held,
        size=0.0 if flat else rest,
        closed_at=fill.at if flat else None,
        exit_price=((held.exit_price or 0.0) * held.left + price * size) / left,
        left=left,
        realized_pnl=realized,
        fees=held.fees + fee,
        broker_pnl=_broker_word(held, fill),
        inferred=held.inferred or fill.kind == "inferred",
        exit_reason=fill.reason if flat else held.exit_reason,
        exit_decision_id=fill.decision_id if flat else held.exit_decision_id,
        steps=(
            *held.steps,
            Step(at=fill.at, size=0.0 if flat else rest, average_cost=held.average_cost, realized_pnl=realized),
        ),
        known_at=max(held.known_at, fill.known_at),
    )


def _broker_word(held: RoundTrip, fill: Fill) -> float | None:
    """The sum of what the broker said of every exit; one exit without its word and there is none."""
    if fill.realized_pnl is None or (held.left > 0 and held.broker_pnl is None):
        return None
    return (held.broker_pnl or 0.0) + fill.realized_pnl


def _charged(held: RoundTrip, fill: Fill) -> RoundTrip:
    """Fees and funding; after the close they are corrections, known from when they arrived."""
    return replace(
        held,
        fees=held.fees + fill.fee,
        funding=held.funding + (fill.amount if fill.kind == "funding" else 0.0),
        known_at=max(held.known_at, fill.known_at),
    )


def open_trips(trips: Iterable[RoundTrip]) -> dict[str, RoundTrip]:
    """The round trips that are still open, by position."""
    return {trip.position_key: trip for trip in trips if trip.status == "open"}
