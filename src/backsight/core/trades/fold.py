"""Round trips from fills, for live ticks, simulations and every importer alike.

Positions are valued at average cost, of an inverse contract the harmonic one. A fill that reverses a position ends one
round trip and opens another; its fee is split by quantity. The money of a round trip is in the currency of its last
fill: the account's, or the instrument's if no rate was known.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.fills import Fill
from backsight.core.instruments import EXACT, FLAT_SHARE, Flatness, average_price, valued
from backsight.core.portfolio import Direction
from backsight.core.trades.trade import EXPLAINED_SHARE, TradeStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The state of a round trip after one of its fills."""

    at: datetime
    size: float
    average_cost: float
    realized_pnl: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """The fills of one position from flat to flat, or until now. PnL is gross; fees and funding are separate."""

    position_key: str
    symbol: str
    direction: Direction
    first_fill_id: str
    opened_at: datetime
    closed_at: datetime | None
    size: float
    """The open size; 0 once closed."""
    rest: float = 0.0
    """The size that was left at the close, too small to count as a position."""
    point_value: float = 1.0
    """Money that one unit of size earns for one point of price, at the last fill."""
    inverse: bool = False
    """Whether its points are those of −1/price: an inverse contract."""
    currency: str | None = None
    """The currency of its money, if no rate to the account's was known at its last fill; None for the account's."""
    rate: float | None = None
    """The last rate known: units of the account's currency for one unit of the instrument's."""
    peak_size: float
    peak_notional: float
    average_cost: float
    entry_price: float
    """Average price of all entries."""
    exit_price: float | None
    """Average price of all exits."""
    entry_size: float
    """The size of the first fill."""
    entered: float
    left: float
    realized_pnl: float
    fees: float
    funding: float
    broker_pnl: float | None
    """Realised PnL as the broker reports it; None unless it does so for every exit."""
    inferred: bool
    """Whether any of its fills is inferred."""
    entry_reason: str | None
    exit_reason: str | None
    entry_decision_id: str | None
    exit_decision_id: str | None
    group_id: str | None
    steps: tuple[Step, ...]
    """From its first fill on; of a round trip that is continued, from the last fill before."""
    known_at: datetime
    """When the latest of its fills became known."""

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
        """The PnL that closing at the mark would realise."""
        return self.point_value * self.signed_size * (self.valued(mark) - self.valued(self.average_cost))

    def valued(self, price: float) -> float:
        """A price on the scale whose points are money."""
        return valued(price, inverse=self.inverse)


def fold(fills: Iterable[Fill], *, continued: Iterable[RoundTrip] = (), flatness: Flatness = EXACT) -> list[RoundTrip]:
    """The round trips of one account's fills, in the order in which they were opened.

    Fills are applied in the order of (time, sequence, id), whatever order they come in. Fees and funding go to the open
    round trip of their position, else to the last closed one. `continued` are the open round trips that earlier fills
    led to, at most one for a position. What is left below `flatness` closes the round trip, as its `rest`.
    """
    fills = list(fills)
    trips = list(continued)
    steps = [list(trip.steps) for trip in trips]
    last = {trip.position_key: place for place, trip in enumerate(trips)}
    for fill in sorted(fills, key=lambda each: each.order):
        if fill.kind == "transfer":
            continue
        place = last.get(fill.position_key)
        former = None if place is None else trips[place]
        if place is not None and former is not None and (factor := currency_factor(former, fill)) is not None:
            former = trips[place] = _converted(former, factor, fill)
            steps[place] = [replace(step, realized_pnl=step.realized_pnl * factor) for step in steps[place]]
        for trip in _after(former, fill, flatness):
            if former is not None and trip.first_fill_id == former.first_fill_id and place is not None:
                trips[place] = trip
                if trip.steps is not former.steps:
                    steps[place] += trip.steps
            else:
                last[fill.position_key] = len(trips)
                trips.append(trip)
                steps.append(list(trip.steps))
    guesses: dict[str, list[Fill]] = {}
    for fill in fills:
        if fill.kind == "inferred" and fill.latest_at is not None:
            guesses.setdefault(fill.position_key, []).append(fill)
    return [
        replace(
            trip,
            steps=tuple(own),
            inferred=trip.inferred or _is_doubtful(trip, guesses.get(trip.position_key, ())),
        )
        for trip, own in zip(trips, steps, strict=True)
    ]


def _is_doubtful(trip: RoundTrip, guesses: Iterable[Fill]) -> bool:
    """Whether a round trip began or ended between two snapshots while a fill of its position was missing there.

    Had the missing fill been known, the reported ones might have made other round trips.
    """
    ends = [at for at in (trip.opened_at, trip.closed_at) if at is not None]
    return any(
        (guess.earliest_at is None or at > guess.earliest_at) and at <= guess.at for guess in guesses for at in ends
    )


def _after(trip: RoundTrip | None, fill: Fill, flatness: Flatness) -> Sequence[RoundTrip]:
    """The round trip after a fill; two if the fill reversed the position. Its only step is the last one."""
    is_open = trip is not None and trip.status == "open"
    if fill.kind == "split":
        return [_split(trip, fill.ratio or 1.0, fill)] if trip is not None and is_open else []
    if fill.kind == "asset_transfer":
        return _moved(trip if is_open else None, fill, flatness)
    if fill.kind == "rename":
        return [_renamed(trip, fill)] if trip is not None and is_open else []
    if fill.kind == "holding":
        return _of_size(trip if is_open else None, fill, flatness)
    if not fill.executed:
        return [] if trip is None else [_charged(trip, fill)]
    price = fill.price
    if price is None or fill.quantity == 0:
        return [] if trip is None else [_charged(trip, fill)]
    size, unmatched = abs(fill.quantity), unmatched_size(trip, fill, flatness)
    if unmatched == size:
        return []
    if trip is None or trip.status == "closed":
        return [_opened(fill, fill.quantity, price, fill.fee)]
    if (fill.quantity > 0) == (trip.direction == "long"):
        return [_added(trip, fill, size, price)]
    beyond, flat = size - trip.size, _flat_size(trip, fill, price, flatness)
    if beyond <= flat:
        return [_reduced(trip, fill, min(size, trip.size), price, fill.fee, flat)]
    opening_fee = fill.fee * (beyond / size)
    closed = _reduced(trip, fill, trip.size, price, fill.fee - opening_fee, flat)
    quantity = beyond if fill.quantity > 0 else -beyond
    return [closed] if unmatched else [closed, _opened(fill, quantity, price, opening_fee)]


def unmatched_size(trip: RoundTrip | None, fill: Fill, flatness: Flatness) -> float:
    """How much of a fill closes a position that was entered before all known fills; it is part of no round trip.

    `trip` is the last round trip of its position.
    """
    price, size = fill.price, abs(fill.quantity)
    if fill.closes is None or not fill.executed or price is None:
        return 0.0
    if trip is None or trip.status == "closed" or (fill.quantity > 0) == (trip.direction == "long"):
        return size
    if fill.closes == "some":
        return 0.0
    beyond = size - trip.size
    if beyond <= _flat_size(trip, fill, price, flatness):
        return 0.0
    return 0.0 if fill.closes == "measured" and _closes_just(trip, fill, price) else beyond


def _closes_just(trip: RoundTrip, fill: Fill, price: float) -> bool:
    """Whether the realised PnL of a fill is that of closing the whole round trip, as far as fees and rounding allow."""
    way = 1.0 if trip.direction == "long" else -1.0
    ours = way * (trip.valued(price) - trip.valued(trip.average_cost)) * trip.size * fill.point_value
    explained = EXPLAINED_SHARE * trip.size * abs(trip.valued(trip.average_cost)) * fill.point_value + abs(fill.fee)
    return abs(ours - (fill.realized_pnl or 0.0)) <= explained


def _flat_size(trip: RoundTrip, fill: Fill, price: float, flatness: Flatness) -> float:
    """The largest size that is flat after a fill that reduces a round trip."""
    worth = abs(trip.valued(price)) * fill.point_value
    return flatness.below(fill.symbol, peak=max(trip.peak_size, abs(fill.quantity)), point_price=worth)


def after_fill(trip: RoundTrip | None, fill: Fill, flatness: Flatness) -> Sequence[RoundTrip]:
    """The round trip of a position after one more fill; two if the fill reversed it. Its only step is the last one.

    Fills that come one by one make the same round trips as `fold` makes of all of them.
    """
    factor = None if trip is None else currency_factor(trip, fill)
    return _after(trip if trip is None or factor is None else _converted(trip, factor, fill), fill, flatness)


def currency_factor(trip: RoundTrip, fill: Fill) -> float | None:
    """What one unit of a round trip's money is in the currency of its next fill; None if it is the same currency."""
    if trip.status == "closed" or not fill.changes_size or fill.money_currency == trip.currency:
        return None
    return (fill.rate if trip.currency is not None else 1.0 / (trip.rate or 1.0)) or 1.0


def _converted(trip: RoundTrip, factor: float, fill: Fill) -> RoundTrip:
    """The round trip with its money in the currency of a fill."""
    return replace(
        trip,
        currency=fill.money_currency,
        rate=fill.rate or trip.rate,
        point_value=trip.point_value * factor,
        peak_notional=trip.peak_notional * factor,
        realized_pnl=trip.realized_pnl * factor,
        fees=trip.fees * factor,
        funding=trip.funding * factor,
    )


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
        point_value=fill.point_value,
        inverse=fill.inverse,
        currency=fill.money_currency,
        rate=fill.rate,
        peak_size=size,
        peak_notional=size * abs(valued(price, inverse=fill.inverse)) * fill.point_value,
        average_cost=price,
        entry_price=price,
        exit_price=None,
        entry_size=size,
        entered=size,
        left=0.0,
        realized_pnl=0.0,
        fees=fee,
        funding=0.0,
        broker_pnl=None,
        inferred=fill.kind in ("inferred", "holding"),
        entry_reason=fill.reason,
        exit_reason=None,
        entry_decision_id=fill.decision_id,
        exit_decision_id=None,
        group_id=fill.group_id,
        steps=(Step(at=fill.at, size=size, average_cost=price, realized_pnl=0.0),),
        known_at=fill.known_at,
    )


def _added(trip: RoundTrip, fill: Fill, size: float, price: float) -> RoundTrip:
    total = trip.size + size
    cost = average_price(trip.average_cost, trip.size, price, size, inverse=trip.inverse)
    return replace(
        trip,
        size=total,
        point_value=fill.point_value,
        currency=fill.money_currency,
        rate=fill.rate or trip.rate,
        peak_size=max(trip.peak_size, total),
        peak_notional=max(trip.peak_notional, total * abs(trip.valued(cost)) * fill.point_value),
        average_cost=cost,
        entry_price=average_price(trip.entry_price, trip.entered, price, size, inverse=trip.inverse),
        entered=trip.entered + size,
        fees=trip.fees + fill.fee,
        inferred=trip.inferred or fill.kind in ("inferred", "holding"),
        steps=(Step(at=fill.at, size=total, average_cost=cost, realized_pnl=trip.realized_pnl),),
        known_at=max(trip.known_at, fill.known_at),
    )


def _reduced(trip: RoundTrip, fill: Fill, size: float, price: float, fee: float, flat_below: float) -> RoundTrip:
    way = 1.0 if trip.direction == "long" else -1.0
    points = trip.valued(price) - trip.valued(trip.average_cost)
    realized = trip.realized_pnl + way * points * size * fill.point_value
    rest = trip.size - size
    flat = rest <= flat_below
    left = trip.left + size
    return replace(
        trip,
        size=0.0 if flat else rest,
        rest=rest if flat and rest > FLAT_SHARE * trip.peak_size else 0.0,
        point_value=fill.point_value,
        currency=fill.money_currency,
        rate=fill.rate or trip.rate,
        closed_at=fill.at if flat else None,
        exit_price=price
        if trip.exit_price is None
        else average_price(trip.exit_price, trip.left, price, size, inverse=trip.inverse),
        left=left,
        realized_pnl=realized,
        fees=trip.fees + fee,
        broker_pnl=_broker_pnl(trip, fill),
        inferred=trip.inferred or fill.kind in ("inferred", "holding"),
        exit_reason=fill.reason if flat else trip.exit_reason,
        exit_decision_id=fill.decision_id if flat else trip.exit_decision_id,
        steps=(Step(at=fill.at, size=0.0 if flat else rest, average_cost=trip.average_cost, realized_pnl=realized),),
        known_at=max(trip.known_at, fill.known_at),
    )


def _split(trip: RoundTrip, ratio: float, fill: Fill) -> RoundTrip:
    """The round trip after a split: more units at a lower price, worth the same."""
    step = Step(
        at=fill.at,
        size=trip.size * ratio,
        average_cost=trip.average_cost / ratio,
        realized_pnl=trip.realized_pnl,
    )
    return replace(
        trip,
        size=step.size,
        peak_size=trip.peak_size * ratio,
        average_cost=step.average_cost,
        entry_price=trip.entry_price / ratio,
        exit_price=None if trip.exit_price is None else trip.exit_price / ratio,
        entry_size=trip.entry_size * ratio,
        entered=trip.entered * ratio,
        left=trip.left * ratio,
        fees=trip.fees + fill.fee,
        steps=(step,),
        known_at=max(trip.known_at, fill.known_at),
    )


def _renamed(trip: RoundTrip, fill: Fill) -> RoundTrip:
    """The round trip under the new symbol; nothing is realised."""
    return replace(trip, symbol=fill.symbol, fees=trip.fees + fill.fee, known_at=max(trip.known_at, fill.known_at))


def _moved(trip: RoundTrip | None, fill: Fill, flatness: Flatness) -> Sequence[RoundTrip]:
    """The round trip after units were moved in or out: out at their cost, so that nothing is realised.

    Units that are moved in without a cost count at the average of the position; without a position they are no trade.
    """
    if trip is None:
        return [] if fill.price is None else [_opened(fill, fill.quantity, fill.price, fill.fee)]
    if fill.quantity * trip.signed_size > 0:
        return [_added(trip, fill, abs(fill.quantity), trip.average_cost if fill.price is None else fill.price)]
    cost = trip.average_cost
    flat = flatness.below(fill.symbol, peak=trip.peak_size, point_price=trip.valued(cost) * trip.point_value)
    return [_reduced(trip, fill, min(abs(fill.quantity), trip.size), cost, fill.fee, flat)]


def _of_size(trip: RoundTrip | None, fill: Fill, flatness: Flatness) -> Sequence[RoundTrip]:
    """The round trip once its position has the size that the broker tells, at the average cost that it tells.

    Missing units move in at the price that leads to that cost, and units too many move out at cost.
    """
    size = 0.0 if trip is None else trip.signed_size
    change = fill.quantity - size
    if abs(change) <= FLAT_SHARE * max(abs(fill.quantity), abs(size)):
        return []
    if fill.quantity * size < 0:
        closed = _moved(trip, replace(fill, quantity=-size), flatness)
        return [*closed, *_moved(None, fill, flatness)]
    price = fill.price
    if trip is not None and price is not None and change * size > 0:
        missing = (price * fill.quantity - trip.average_cost * size) / change
        price = missing if missing > 0 and not trip.inverse else price
    return _moved(trip, replace(fill, quantity=change, price=price), flatness)


def _broker_pnl(trip: RoundTrip, fill: Fill) -> float | None:
    """The sum of the broker's realised PnL over all exits; None if one exit has none."""
    if fill.realized_pnl is None or (trip.left > 0 and trip.broker_pnl is None):
        return None
    return (trip.broker_pnl or 0.0) + fill.realized_pnl


def _charged(trip: RoundTrip, fill: Fill) -> RoundTrip:
    """The round trip with a fee or a funding payment; after the close it is a correction, known when it arrived.

    A payment that cannot be converted into the currency of the round trip is left out (`is_uncounted`).
    """
    share = 1.0
    if trip.currency != fill.money_currency:
        share = 0.0 if trip.rate is None else 1.0 / trip.rate
    return replace(
        trip,
        fees=trip.fees + fill.fee * share,
        funding=trip.funding + (fill.amount * share if fill.kind in ("funding", "dividend") else 0.0),
        known_at=max(trip.known_at, fill.known_at),
    )


def is_uncounted(trip: RoundTrip, fill: Fill) -> bool:
    """Whether a payment or fee is left out of a round trip, because its money is in another currency without a rate."""
    is_payment = not fill.changes_size and fill.kind != "transfer" and bool(fill.fee or fill.amount)
    return is_payment and trip.currency != fill.money_currency and trip.rate is None


def uncounted_transfers(fills: Iterable[Fill], trips: Sequence[RoundTrip]) -> list[Fill]:
    """The transfers of units into or out of positions that the ledger did not have at their instant."""
    return [
        fill
        for fill in fills
        if fill.kind == "asset_transfer"
        if not any(
            trip.position_key == fill.position_key
            and trip.opened_at <= fill.at
            and (trip.closed_at is None or fill.at <= trip.closed_at)
            for trip in trips
        )
    ]


def open_trips(trips: Iterable[RoundTrip]) -> dict[str, RoundTrip]:
    """The round trips that are still open, by position."""
    return {trip.position_key: trip for trip in trips if trip.status == "open"}
