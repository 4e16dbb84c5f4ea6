"""Inferred fills: they lead the ledger from its open positions to those that the broker shows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.fills import Fill, PriceSource
from backsight.core.ids import derive_id
from backsight.core.instants import JUST_BEFORE
from backsight.core.instruments import FLAT_SHARE, PLAIN, SymbolRules, UnitWorth, price_at, valued
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order, PlacedOrder, in_money, order_behind, waiting_order_behind
from backsight.core.portfolio import Portfolio, Position
from backsight.core.trades.fold import RoundTrip

SAME_PRICE = 1e-6
"""Two average prices that differ by less than this share count as equal."""

ROUNDING = 1e-12
"""Doubles round: a price one tick from a level is within a tick of it."""

SMALLEST_SPLIT = 3
"""In halves: one unit became at least one and a half, or the other way round."""
SPLIT_ROUNDING = 1e-4
"""Brokers round the average price after a split."""

NEAR_LEVEL = 0.0002
"""Of a symbol without a tick size, a price within this share of a stop or target counts as at it."""

PhaseName = Literal["since", "now"]
"""`since`: between the last tick and the snapshot before the decision; `now`: from there to the snapshot after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillStamp:
    """The fields that all fills inferred in one phase of a tick share."""

    owner_id: str
    account_id: str
    tick_id: str
    phase: PhaseName
    at: datetime
    sequence: int = 0
    """Order of the tick among the ticks of one instant."""
    since: datetime | None = None
    """The instant of the broker's previous snapshot."""
    snapshots: tuple[datetime, ...] = ()
    """Instants of the broker's snapshots before that, oldest first, from before the first late report."""
    recorded_at: datetime
    decision_id: str | None = None
    flattened: bool = False
    """A flatten command was in force."""
    proposals: tuple[Order, ...] = ()
    """The orders of the decision that were executed."""
    waiting: tuple[PlacedOrder, ...] = ()
    """Orders of earlier decisions that were waiting at the broker at the last snapshot and may have been executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """A stop, target or liquidation price that the bars reached between two snapshots."""

    source: PriceSource
    price: float
    at: datetime

    @property
    def reason(self) -> str:
        return {"stop": "stop_loss", "target": "take_profit"}.get(self.source, "liquidated")


def infer_fills(
    ledger: Mapping[str, RoundTrip],
    snapshot: BrokerSnapshot,
    *,
    stamp: FillStamp,
    last_seen: Mapping[str, Position],
    bars: Mapping[str, Sequence[Bar]],
    known: Iterable[Fill] = (),
    uncounted: Iterable[Fill] = (),
    rules: SymbolRules = PLAIN,
) -> list[Fill]:
    """The fills that lead from the ledger's open positions to those of the broker's snapshot.

    `last_seen` has the stops and targets that were in force, `bars` the bars since then by symbol. An entry is at the
    broker's average price, else at the mark; an exit at the level that the bars touched, else at the mark. The exit of
    a symbol that has no mark any more, because it was delisted, is at the last price known. `known` are the fills of
    the ledger: an inferred fill comes after those of its instant. `uncounted` are reported transfers of
    positions that the ledger did not have at their instant: if units were moved out, the entry came before and was
    larger by these units. What is below the flatness of `rules` is no position.
    """
    portfolio, marks = snapshot.portfolio, snapshot.marks
    shown = portfolio.by_key()
    rests = {key for key, position in shown.items() if _is_dust(position, portfolio, rules)}
    positions = {key: position for key, position in shown.items() if key in ledger or key not in rests}
    moved: dict[str, list[Fill]] = {}
    for fill in uncounted:
        if stamp.since is None or fill.at > stamp.since:
            moved.setdefault(fill.position_key, []).append(fill)
    by_key: dict[str, list[Fill]] = {}
    for fill in known:
        by_key.setdefault(fill.position_key, []).append(fill)
    inferred: list[Fill] = []
    for key in sorted({*ledger, *positions}):
        trip, position = ledger.get(key), positions.get(key)
        before = by_key.get(key, [])
        closing = None
        if trip is not None:
            series = bars.get(trip.symbol, ())
            touch = first_touch(trip, last_seen.get(key), series)
            last_price = _last_price(before, last_seen.get(key), series, at=stamp.at, otherwise=trip.average_cost)
            closing = _Closing(
                trip=trip,
                touch=touch,
                mark=marks.get(trip.symbol),
                last_price=last_price,
                last_seen=last_seen.get(key),
                tick_size=rules.tick_sizes.get(trip.symbol),
            )
        for leg in _legs(closing, position, rules):
            if leg.step == "open" and key in rests:
                continue
            if leg.step == "open" and trip is None:
                leg = _with_units_moved_out(leg, moved.get(key, ()))
            fill = _fill(leg, stamp, key=key, before=before, seen_at=portfolio.at)
            continues = trip is not None and trip.symbol == leg.symbol
            fill = _in_money(fill, rules.worth(leg.symbol), trip if continues else None)
            before = [*before, fill]
            inferred.append(fill)
    return inferred


def first_touch(trip: RoundTrip, position: Position | None, bars: Iterable[Bar]) -> Touch | None:
    """The first level that a bar reached after the last fill.

    If one bar reached several, the stop comes first, then the liquidation, then the target. A bar that opened beyond
    the level fills at its open.
    """
    if position is None:
        return None
    way = 1.0 if trip.direction == "long" else -1.0
    against: list[tuple[PriceSource, float | None]] = [
        ("stop", position.stop_price),
        ("liquidation", position.liquidation_price),
    ]
    for bar in (bar for bar in bars if bar.closes_at > trip.steps[-1].at):
        worst, best = (bar.low, bar.high) if way > 0 else (bar.high, bar.low)
        for source, level in against:
            if level is not None and way * (worst - level) <= 0:
                return Touch(source=source, price=_gapped(bar.open, level, -way), at=bar.closes_at)
        if position.target_price is not None and way * (best - position.target_price) >= 0:
            return Touch(source="target", price=_gapped(bar.open, position.target_price, way), at=bar.closes_at)
    return None


def level_reason(
    trip: RoundTrip, position: Position | None, price: float, *, tick_size: float | None = None
) -> str | None:
    """The reason of an exit at a price, by the stop and the target that were in force; None if it is at neither.

    A price beyond a level counts as at it: the position would not have lived to see it. The stop comes first.

    >>> from backsight.core.trades.fold import fold
    >>> from backsight.testing import a_fill, a_position
    >>> (trip,), position = fold([a_fill()]), a_position(stop_price=95.0, target_price=110.0)
    >>> [level_reason(trip, position, price) for price in (94.0, 95.01, 95.1, 109.99, 112.0)]
    ['stop_loss', 'stop_loss', None, 'take_profit', 'take_profit']
    """
    if position is None or position.direction != trip.direction:
        return None
    way = 1.0 if trip.direction == "long" else -1.0
    levels = (position.stop_price, -way, "stop_loss"), (position.target_price, way, "take_profit")
    for level, beyond, reason in levels:
        if level is not None and beyond * (price - level) >= -(tick_size or NEAR_LEVEL * abs(level)) - ROUNDING * abs(
            level
        ):
            return reason
    return None


def _gapped(opened: float, level: float, way: float) -> float:
    return opened if way * (opened - level) > 0 else level


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leg:
    step: Literal["close", "open", "reduce", "add", "split", "rename"]
    symbol: str
    quantity: float
    price: float
    source: PriceSource
    touch: Touch | None = None
    at_level: str | None = None
    """The reason of an exit whose price is at a stop or target, also where no bars say so."""
    ratio: float | None = None
    """Of a split."""
    moved_out: tuple[Fill, ...] = ()
    """Transfers of units that an entry must have come before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closing:
    """An open round trip, and the prices at which it may have been closed."""

    trip: RoundTrip
    touch: Touch | None
    mark: float | None
    """The snapshot's mark of its symbol."""
    last_price: float
    """The last price known of its symbol."""
    last_seen: Position | None = None
    """The position with the levels that were in force."""
    tick_size: float | None = None

    def level_reason(self, price: float) -> str | None:
        return level_reason(self.trip, self.last_seen, price, tick_size=self.tick_size)


def _legs(closing: _Closing | None, position: Position | None, rules: SymbolRules) -> list[_Leg]:
    if closing is None:
        return _opening(position)
    trip, touch = closing.trip, closing.touch
    if position is None:
        return [_close(closing)]
    have, want = trip.signed_size, position.signed_size
    if trip.symbol != position.symbol and rules.share_underlying(trip.symbol, position.symbol):
        rename = _Leg(step="rename", symbol=position.symbol, quantity=0.0, price=position.mark, source="mark")
        renamed = replace(closing, trip=replace(trip, symbol=position.symbol))
        return [rename, *_legs(renamed, position, rules)]
    if trip.symbol != position.symbol:
        return [_close(closing), *_opening(position)]
    if (ratio := split_ratio(trip, position)) is not None:
        split = _Leg(step="split", symbol=trip.symbol, quantity=0.0, price=position.mark, source="average", ratio=ratio)
        return [split]
    same = _same_size_within(trip, position, rules)
    if have * want < 0 or not continued(trip, position, same_within=same, touched=touch is not None):
        return [_close(replace(closing, mark=position.mark)), *_opening(position)]
    change = want - have
    if abs(change) <= same:
        return []
    leg = _Leg(step="add", symbol=trip.symbol, quantity=change, price=position.mark, source="mark")
    if abs(want) < abs(have):
        exit_ = touch or Touch(source="mark", price=position.mark, at=trip.opened_at)
        reason = closing.level_reason(exit_.price)
        return [replace(leg, step="reduce", price=exit_.price, source=exit_.source, touch=touch, at_level=reason)]
    if position.average_price is None:
        return [leg]
    return [replace(leg, price=_price_of_addition(trip, position, position.average_price), source="average")]


def continued(trip: RoundTrip, position: Position, *, same_within: float = 0.0, touched: bool = False) -> bool:
    """Whether a position of the same side can be the one in the ledger.

    If not, the ledger's position was closed and another one entered. That is so if the size grew and no addition at a
    price above zero explains the broker's average price. A changed average alone proves nothing: a broker may round
    it, compute it first in, first out, or divide it by a split. It counts only if fills are missing and bars `touched`
    a level at which the position was closed.
    """
    average = position.average_price
    if average is None or math.isclose(average, trip.average_cost, rel_tol=SAME_PRICE, abs_tol=1e-12):
        return True
    if position.size <= trip.size + same_within:
        return not (trip.inferred and touched)
    return (trip.inferred and average <= 0) or _price_of_addition(trip, position, average) > 0


def split_ratio(trip: RoundTrip, position: Position) -> float | None:
    """How many units one became, if the broker's size and average price can only come from a split; else None.

    Their product is unchanged, and the larger size is a whole multiple of the smaller one, or half of one: 3:2 exists.
    """
    average = position.average_price
    if trip.inverse or average is None or average * trip.average_cost <= 0:
        return None
    if position.direction != trip.direction or not position.size:
        return None
    ratio = position.size / trip.size
    half_units = 2.0 * max(ratio, 1.0 / ratio)
    is_split = half_units >= SMALLEST_SPLIT and math.isclose(half_units, round(half_units), rel_tol=SAME_PRICE)
    worth, cost = average * position.size, trip.average_cost * trip.size
    return ratio if is_split and math.isclose(worth, cost, rel_tol=SPLIT_ROUNDING) else None


def _close(closing: _Closing) -> _Leg:
    """The exit of a round trip: at the level that was touched, else at the mark, else at the last price known."""
    touch, mark = closing.touch, closing.mark
    leg = _Leg(
        step="close",
        symbol=closing.trip.symbol,
        quantity=-closing.trip.signed_size,
        price=closing.last_price,
        source="last_known",
    )
    if touch is not None:
        return replace(leg, price=touch.price, source=touch.source, touch=touch)
    leg = leg if mark is None else replace(leg, price=mark, source="mark")
    return replace(leg, at_level=closing.level_reason(leg.price))


def _last_price(
    fills: Iterable[Fill], position: Position | None, bars: Sequence[Bar], *, at: datetime, otherwise: float
) -> float:
    """The last price known of a symbol: of its last bar, else its last mark, else its last execution."""
    closed = [bar for bar in bars if bar.closes_at <= at]
    if closed:
        return closed[-1].close
    if position is not None:
        return position.mark
    executed = [fill for fill in fills if fill.executed and fill.price is not None]
    last = max(executed, key=lambda fill: fill.order, default=None)
    return otherwise if last is None or last.price is None else last.price


def _opening(position: Position | None) -> list[_Leg]:
    if position is None:
        return []
    average = position.average_price
    source: PriceSource = "mark" if average is None else "average"
    price = position.mark if average is None else average
    return [_Leg(step="open", symbol=position.symbol, quantity=position.signed_size, price=price, source=source)]


def _with_units_moved_out(entry: _Leg, transfers: Iterable[Fill]) -> _Leg:
    """An entry with the units that moved out of its position before the snapshot: they left at their cost."""
    moved_out = tuple(fill for fill in transfers if fill.quantity * entry.quantity < 0)
    quantity = entry.quantity - math.fsum(fill.quantity for fill in moved_out)
    return replace(entry, quantity=quantity, moved_out=moved_out)


def _price_of_addition(trip: RoundTrip, position: Position, average: float) -> float:
    """The price at which an addition moves the ledger's average cost to the broker's."""
    value = trip.valued(average) * position.size - trip.valued(trip.average_cost) * trip.size
    return price_at(value / (position.size - trip.size), inverse=trip.inverse)


def _in_money(fill: Fill, worth: UnitWorth, trip: RoundTrip | None) -> Fill:
    """A fill with the worth of its symbol at this tick; of a symbol in the account's currency that of its position."""
    if trip is not None and worth.currency is None:
        return replace(fill, point_value=trip.point_value, inverse=trip.inverse)
    return in_money(fill, worth)


def _is_dust(position: Position, portfolio: Portfolio, rules: SymbolRules) -> bool:
    """Whether a position that is not in the ledger is a rest: below a lot step, dust or a billionth of the equity."""
    worth = rules.worth(position.symbol)
    prices = position.mark, position.mark if position.average_price is None else position.average_price
    price = max(abs(valued(each, inverse=worth.inverse)) for each in prices) * worth.point_value
    if position.size * price <= FLAT_SHARE * max(0.0, portfolio.equity):
        return True
    return position.size <= rules.flatness.below(position.symbol, peak=position.size, point_price=price)


def _same_size_within(trip: RoundTrip, position: Position, rules: SymbolRules) -> float:
    """By how much the sizes of ledger and broker may differ without a fill between them."""
    peak, price = max(trip.peak_size, position.size), trip.valued(position.mark) * trip.point_value
    return rules.flatness.below(trip.symbol, peak=peak, point_price=price)


def _fill(leg: _Leg, stamp: FillStamp, *, key: str, before: Sequence[Fill], seen_at: datetime) -> Fill:
    at, sequence = _moment(leg, stamp, before)
    id_parts = (stamp.account_id, stamp.tick_id, stamp.phase, key, leg.step)
    return Fill(
        owner_id=stamp.owner_id,
        account_id=stamp.account_id,
        id=derive_id("fill", *id_parts),
        kind=leg.step if leg.step in ("split", "rename") else "inferred",
        ratio=leg.ratio,
        at=at,
        sequence=sequence,
        position_key=key,
        symbol=leg.symbol,
        quantity=leg.quantity,
        price=leg.price,
        price_source=leg.source,
        fee=0.0,
        amount=0.0,
        realized_pnl=None,
        reason=_reason(leg, stamp, key),
        decision_id=_deciding(leg, stamp, key),
        order_id=_order_id(leg, stamp, key),
        group_id=None,
        earliest_at=stamp.since,
        latest_at=max(at, seen_at),
        replaces=None,
        known_at=stamp.at,
        recorded_at=stamp.recorded_at,
    )


def _moment(leg: _Leg, stamp: FillStamp, before: Sequence[Fill]) -> tuple[datetime, int]:
    """The instant of an inferred fill, and its sequence among the fills of that instant.

    Fills since the last tick come before those of this tick, and after the known executions of the position. An entry
    comes before the funding that was paid on it, and before the units that moved out of it.
    """
    latest = stamp.at
    if stamp.phase == "since" and stamp.sequence == 0:
        latest -= JUST_BEFORE
    at = min(latest, leg.touch.at) if leg.touch else latest
    executed = [fill.at for fill in before if fill.changes_size and fill not in leg.moved_out]
    at = min([at, *(fill.at - JUST_BEFORE for fill in leg.moved_out)])
    if leg.step == "open" and stamp.phase == "since":
        since = max(executed, default=stamp.since)
        paid = [fill.at for fill in before if fill.kind == "funding" and (since is None or fill.at > since)]
        at = min([at, *(each - JUST_BEFORE for each in paid)])
    at = max([at, *executed])
    return at, 1 + max((fill.sequence for fill in before if fill.at == at), default=-1)


def _deciding(leg: _Leg, stamp: FillStamp, key: str) -> str | None:
    """The decision that a fill belongs to: its order may have made it, or a flatten command closed it."""
    flattened = stamp.phase == "now" and stamp.flattened and leg.step in ("close", "reduce")
    if flattened or _proposed(leg, stamp, key) is not None:
        return stamp.decision_id
    order = _waiting(leg, stamp)
    return None if order is None else order.decision_id


def _order_id(leg: _Leg, stamp: FillStamp, key: str) -> str | None:
    """The id of the order that may have made a fill."""
    order = _proposed(leg, stamp, key) or _waiting(leg, stamp)
    return None if order is None else order.order_id


def _waiting(leg: _Leg, stamp: FillStamp) -> PlacedOrder | None:
    """The waiting order that may have made a fill since the last snapshot; a touched level explains it first."""
    if stamp.phase == "now" or leg.touch is not None:
        return None
    return waiting_order_behind(stamp.waiting, symbol=leg.symbol, quantity=leg.quantity)


def _proposed(leg: _Leg, stamp: FillStamp, key: str) -> Order | None:
    """The order that may have made a fill. An order to add explains no exit, and one to sell no addition."""
    orders = stamp.proposals if stamp.phase == "now" else ()
    return order_behind(orders, symbol=leg.symbol, position_key=key, quantity=leg.quantity)


def _reason(leg: _Leg, stamp: FillStamp, key: str) -> str | None:
    """The reason of a fill: a level that bars touched, the order, the flatten command, else a level at its price."""
    if leg.touch is not None:
        return leg.touch.reason
    order = _proposed(leg, stamp, key) or _waiting(leg, stamp)
    if order is not None:
        return order.reason
    if leg.step in ("open", "add", "split", "rename"):
        return None
    return "external_flatten" if stamp.flattened else leg.at_level or "unexplained"
