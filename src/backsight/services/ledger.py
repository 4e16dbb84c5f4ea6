"""Settling a tick: read the positions concerned, infer missing fills, and compute the fills, trades and marks.

`settle_tick` reads and computes; `post` also writes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import get_args

from backsight.core.decision import Decision, LastTick, placed_orders
from backsight.core.errors import Conflict, Invalid
from backsight.core.fills import Fill
from backsight.core.instants import JUST_BEFORE, Horizon, format_instant
from backsight.core.instruments import Instrument, SymbolRules, lacks_lot_step
from backsight.core.market import Bar
from backsight.core.memory.affective import EquityFact, TransferFact, equity_fact, with_agent_state
from backsight.core.memory.episodic import Episode, episode_id_of, episode_of_trade
from backsight.core.orders import (
    BrokerReason,
    BrokerSnapshot,
    PlacedOrder,
    as_fill,
    order_behind,
    waiting_order_behind,
)
from backsight.core.portfolio import Account, Portfolio, Position
from backsight.core.strategies import Deployment
from backsight.core.trades.equity_check import TradeWorth, equity_gap
from backsight.core.trades.excursion import ObservedPrice
from backsight.core.trades.fold import RoundTrip, is_uncounted
from backsight.core.trades.infer import FillStamp
from backsight.core.trades.mark import (
    NO_PROGRESS,
    PositionMark,
    SnapshotSide,
    TradeProgress,
    continued_trip,
    converted,
    fold_state,
    progress_after,
)
from backsight.core.trades.materialise import (
    EntryRecord,
    check_finite,
    entered_by,
    exit_reason_of,
    opened_trade,
    progress_of,
    trade_id_of,
    updated_trade,
)
from backsight.core.trades.rename import ledger_keys, under_keys
from backsight.core.trades.settle import LedgerChange, Phase, from_first, settle
from backsight.core.trades.trade import Entry, Trade, dollars_for_one, in_dollars
from backsight.services.learning import BulkLearning, LearningReport, learn_equity, learn_trades
from backsight.services.ledger_rows import LedgerRows, RowChanges
from backsight.services.market import Series, context_at, recent_bars, regime_at
from backsight.services.mood import mood_at
from backsight.services.rates import Rates
from backsight.store import bars as stored_bars
from backsight.store import decisions as stored_decisions
from backsight.store import instruments as stored_instruments
from backsight.store import memories as stored_memories
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING, View, everything


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A tick to be posted to the ledger."""

    deployment: Deployment
    account: Account
    decision: Decision
    last: LastTick | None
    """The account's tick before this one."""

    @property
    def at(self) -> datetime:
        return self.decision.at

    @property
    def positions_before(self) -> dict[str, Position]:
        """The positions before the decision, by key."""
        return self.decision.before.portfolio.by_key()

    @property
    def positions_after(self) -> dict[str, Position]:
        """The positions at the end of the tick, by key."""
        return (self.decision.after or self.decision.before).portfolio.by_key()

    @property
    def equity_change(self) -> float | None:
        """By how much equity changed since the account's last tick; None at its first."""
        return None if self.last is None else self.decision.equity - self.last.equity

    @property
    def usd_rate(self) -> float | None:
        """Dollars for one unit of the account's currency; None if that is not known."""
        return dollars_for_one(self.account.currency, self.decision.usd_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedTick:
    """The decision with the trades that the tick opened and closed, and what the memories learned from them."""

    decision: Decision
    opened: tuple[Trade, ...]
    closed: tuple[Trade, ...]
    learned: tuple[LearningReport, ...]
    incomplete: tuple[Fill, ...]
    """The new fills of which a price or a fee in money is not known."""
    uncounted: tuple[Fill, ...]
    """New payments that are not counted, because their trade is in a currency of unknown rate."""
    rests: tuple[Trade, ...] = ()
    """The trades that the tick left almost closed, where no lot step tells whether what is left is a position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LedgerState:
    """The part of the ledger that a tick may change, as it was before the tick."""

    fills: tuple[Fill, ...]
    """Of the positions whose past may change."""
    continued: tuple[RoundTrip, ...]
    """The open round trips of the other positions."""
    trades: Mapping[str, Trade]
    marks: Mapping[str, PositionMark]
    """The marks of the last tick, by position."""
    same_instant: tuple[Fill, ...]
    """Fills at this tick's instant of positions that an earlier tick of the same instant closed."""
    corrected: frozenset[str]
    """Positions whose past changes: a new execution of before the last tick, revalued fills, or a new lot step."""
    snapshots: tuple[datetime, ...]
    """When the broker was asked, from before the first of those executions."""
    restated: tuple[Fill, ...]
    """Fills whose fees were reported anew, with these fees."""
    joined: tuple[Fill, ...]
    """Fills that were stored for a new symbol before its rename was reported, now of the position that was renamed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TradeAfter:
    """A trade after a tick, with its round trip and its progress."""

    trade: Trade
    trip: RoundTrip
    progress: TradeProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledTick:
    """What a tick makes of the ledger: computed, and not written."""

    tick: Tick
    """With the positions and fills of renamed symbols under the keys that the ledger has for them."""
    inherited: Sequence[Instrument]
    """New instruments, of renamed symbols."""
    instruments: Mapping[str, Instrument]
    state: _LedgerState
    change: LedgerChange
    trades: Sequence[_TradeAfter]
    """Every trade that is open or that the tick changed."""
    marks: Sequence[PositionMark]

    @property
    def rows(self) -> list[Trade]:
        return [each.trade for each in self.trades]

    @property
    def changed(self) -> list[Trade]:
        """The trades that are new or changed."""
        return [row for row in self.rows if self.state.trades.get(row.id) is not row]

    @property
    def withdrawn(self) -> list[Trade]:
        """The trades that no longer follow from the fills."""
        current = {trade_id_of(self.tick.decision.account_id, trip) for trip in self.change.trips}
        return [former for former in self.state.trades.values() if former.id not in current]

    @property
    def unlearned(self) -> list[Trade]:
        """The trades whose episodes are withdrawn: they were closed, and no longer follow or teach."""
        withdrawn = {trade.id for trade in self.withdrawn}
        withdrawn |= {row.id for row in self.rows if not teaches(row)}
        return [former for former in self.state.trades.values() if former.status == "closed" and former.id in withdrawn]

    @property
    def restated(self) -> list[Fill]:
        """The stored fills that change, as they are afterwards."""
        changed = {fill.key for fill in (*self.change.restated, *self.change.withdrawn)}
        joined = (fill for fill in self.state.joined if fill.key not in changed)
        return [*self.state.restated, *self.change.restated, *joined]

    @property
    def added(self) -> list[Fill]:
        """The new fills; of two ticks of one instant, a transfer says which one reported it."""
        decision_id = self.tick.decision.id
        return [
            replace(fill, decision_id=decision_id) if fill.kind == "transfer" else fill for fill in self.change.added
        ]

    @property
    def opened(self) -> tuple[Trade, ...]:
        return tuple(row for row in self.rows if row.id not in self.state.trades)

    @property
    def closed(self) -> tuple[Trade, ...]:
        """The trades that were not closed before; a new trade may be both opened and closed."""
        closed_before = {trade.id for trade in self.state.trades.values() if trade.status == "closed"}
        return tuple(row for row in self.rows if row.status == "closed" and row.id not in closed_before)

    @property
    def equity_fact(self) -> EquityFact | TransferFact:
        """The account's equity as the mood learns it, without what was paid in or out since the last tick."""
        decision = self.tick.decision
        moved = math.fsum(fill.amount for fill in self.change.added if fill.kind == "transfer")
        return equity_fact(decision.id, decision.at, decision.sequence, decision.equity, moved)

    @property
    def row_changes(self) -> RowChanges:
        """The changed rows, for a later tick that is settled before this one is stored."""
        fills: dict[tuple[str, str], Fill | None] = {fill.key: fill for fill in (*self.restated, *self.added)}
        trades: dict[str, Trade | None] = {trade.id: trade for trade in self.changed}
        return RowChanges(
            decision=self.tick.decision,
            fills=fills | dict.fromkeys((fill.key for fill in self.change.withdrawn), None),
            trades=trades | dict.fromkeys((trade.id for trade in self.withdrawn), None),
            marks=self.marks,
            orders=placed_orders(self.tick.decision),
        )


def settle_tick(rows: LedgerRows, tick: Tick, *, unstored: Sequence[Sequence[Bar]] = ()) -> SettledTick:
    """Lead the ledger to the broker's state. `unstored` are series of closed bars that count as if they were stored."""
    # Read: the two snapshots with their new fills, and the rows of the positions that they concern.
    open_trades = rows.open_trades(tick.decision.account_id)
    symbols = _Symbols(rows.view, tick, open_trades, unstored)
    tick = _under_ledger_keys(rows, tick, open_trades, symbols.rules)
    since, now, restated = _phases(rows, tick, symbols)
    market = MarketBars(rows, until=tick.at, unstored=unstored)
    reported = *since.reported, *now.reported
    state = _ledger_state(market, tick, reported, restated, open_trades, symbols.instruments)
    since = replace(since, stamp=replace(since.stamp, snapshots=state.snapshots))
    since, now = _linked(rows, tick, state, since, now)
    last_seen = {key: mark.position for key, mark in state.marks.items()}
    bars = _bars_since_last(market, tick, state)
    # Compute: infer the fills that were not reported, and the trades that follow from all fills.
    change = settle(
        state.fills,
        since,
        now,
        last_seen=last_seen,
        bars=bars,
        continued=state.continued,
        same_instant=state.same_instant,
        rules=symbols.rules,
    )
    trades = _trades(market, tick, state, change)
    return SettledTick(
        tick=tick,
        inherited=symbols.inherited,
        instruments=symbols.instruments,
        state=state,
        change=change,
        trades=trades,
        marks=_marks(tick, state, trades),
    )


def post(transaction: Transaction, tick: Tick, *, learning: BulkLearning | None = None) -> PostedTick:
    """Bring the ledger to the broker's state, and return the trades that were opened and closed.

    If many ticks are posted one after the other, `learning` collects what they teach, and its caller finishes it.
    """
    settled = settle_tick(LedgerRows(everything(transaction.connection, tick.decision.owner_id)), tick)
    # Write: facts first, then what is derived from them.
    for instrument in settled.inherited:
        transaction.revise(stored_instruments.INSTRUMENTS, instrument)
    _write_fills(transaction, settled)
    _write_orders(transaction, tick)
    learned = _write_trades(transaction, settled, learning)
    stored.add_marks(transaction, tick.decision.owner_id, tick.decision.id, settled.marks)
    learn_equity(
        transaction,
        tick.decision.owner_id,
        tick.decision.account_id,
        settled.equity_fact,
        recorded_at=tick.decision.recorded_at,
    )
    gap, state, change = None, settled.state, settled.change
    if not any(trade.currency for trade in settled.rows):
        gap = equity_gap(tick.equity_change, change, [_worth(settled.tick, state, each) for each in settled.trades])
    opened, closed = settled.opened, settled.closed
    return PostedTick(
        decision=replace(
            tick.decision,
            equity_gap=gap,
            opened=tuple(trade.id for trade in opened),
            closed=tuple(trade.id for trade in closed),
        ),
        opened=opened,
        closed=closed,
        learned=learned,
        incomplete=tuple(fill for fill in change.added if fill.price_source == "last_known" or fill.fee_is_missing),
        uncounted=tuple(_uncounted(change)),
        rests=tuple(possible_rests(settled.rows, tick.at, settled.instruments)),
    )


def _under_ledger_keys(rows: LedgerRows, tick: Tick, open_trades: Sequence[Trade], rules: SymbolRules) -> Tick:
    """The tick with the positions and fills of renamed symbols under the keys that the ledger has for them."""
    decision = tick.decision
    snapshots = decision.before, decision.last_snapshot
    reported = {fill.position_key or fill.symbol for each in snapshots for fill in each.fills if fill.symbol}
    new_keys = {*tick.positions_before, *tick.positions_after, *reported} - {each.position_key for each in open_trades}
    renames = rows.renames(decision.account_id) if new_keys else {}
    keys = ledger_keys(open_trades, snapshots, rules, renames)
    if not keys:
        return tick
    after = None if decision.after is None else under_keys(decision.after, keys)
    return replace(tick, decision=replace(decision, before=under_keys(decision.before, keys), after=after))


def _worth(tick: Tick, state: _LedgerState, each: _TradeAfter) -> TradeWorth:
    """What a trade added to equity before the tick, and after it."""
    former, trip = state.trades.get(each.trade.id), each.trip
    mark, position = state.marks.get(trip.position_key), tick.positions_after.get(trip.position_key)
    before = 0.0
    if former is not None:
        before = (former.realized_pnl or 0.0) + former.funding - former.fees
        if former.status == "open" and mark is not None:
            before += former.unrealized(mark.position.mark, mark.position.signed_size) or 0.0
    after = trip.net + (trip.unrealized(position.mark) if trip.status == "open" and position is not None else 0.0)
    fees = trip.fees - (0.0 if former is None else former.fees)
    return TradeWorth(before=before, after=after, notional=trip.peak_notional, fees=abs(fees))


class MarketBars:
    """The bars that were closed at an instant, stored ones and those that are not stored yet; each query runs once."""

    def __init__(self, rows: LedgerRows, *, until: datetime, unstored: Sequence[Sequence[Bar]] = ()) -> None:
        self.rows = rows
        self.until = until
        self.unstored = [series for series in unstored if series]
        self._read: dict[tuple[str, datetime, int | None], list[Bar]] = {}

    def since(self, symbol: str, after: datetime, seconds: int | None = None) -> list[Bar]:
        """The bars that closed after an instant, of the given length or of the shortest that there is."""
        key = symbol, after, seconds
        if key not in self._read:
            self._read[key] = self._closed(symbol, after, seconds)
        return self._read[key]

    def recent(self, symbol: str, at: datetime) -> Series:
        """The last bars of a symbol that were closed at an instant, in each interval."""
        view = View(self.rows.view.connection, self.rows.view.owner, Horizon(as_of=at))
        return recent_bars(
            view, symbol, unstored=[[bar for bar in each if bar.closes_at <= at] for each in self.unstored]
        )

    def _closed(self, symbol: str, after: datetime, seconds: int | None) -> list[Bar]:
        connection, owner = self.rows.view.connection, self.rows.view.owner
        new = {each[0].interval_seconds: each for each in self.unstored if each[0].symbol == symbol}
        lengths = [*new, *filter(None, [stored_bars.finest_interval(connection, owner, symbol)])]
        length = seconds or min(lengths, default=None)
        if length is None:
            return []
        bars = stored_bars.bars_closed(
            connection, owner, symbol=symbol, interval_seconds=length, after=after, until=self.until
        )
        if length not in new:
            return bars
        by_opening = {bar.opened_at: bar for bar in (*new[length], *bars) if after < bar.closes_at <= self.until}
        return [by_opening[at] for at in sorted(by_opening)]


class _Symbols:
    """What is known of the symbols of a tick: their instruments, and the rates of their currencies."""

    def __init__(self, view: View, tick: Tick, open_trades: Sequence[Trade], unstored: Sequence[Sequence[Bar]]) -> None:
        snapshots = tick.decision.before, tick.decision.last_snapshot
        symbols = {symbol for each in snapshots for symbol in (*each.marks, *(fill.symbol for fill in each.fills))}
        symbols |= {trade.symbol for trade in open_trades}
        # What is said of an instrument at the instant of a tick counts for it.
        horizon = view.horizon if view.horizon is EVERYTHING else replace(view.horizon, as_of=tick.at)
        then = View(view.connection, view.owner, horizon)
        instruments = stored_instruments.instruments_then(then, sorted(symbols))
        self.instruments = {each.symbol: each for each in instruments}
        by_key = {trade.position_key: self.instruments.get(trade.symbol) for trade in open_trades}
        self.inherited = [
            replace(instrument, symbol=fill.symbol, known_at=tick.at, recorded_at=tick.decision.recorded_at)
            for snapshot in snapshots
            for fill in snapshot.fills
            if fill.kind == "rename" and fill.symbol not in self.instruments
            if (instrument := by_key.get(fill.position_key)) is not None
        ]
        """The instruments of renamed symbols, for those new symbols that have none."""
        self.instruments |= {each.symbol: each for each in self.inherited}
        self.rates = Rates(view.connection, tick.account, unstored=unstored)
        self.rules = self.rates.rules(self.instruments.values(), tick.at, tick.decision.last_snapshot.marks)


_ByKey = dict[tuple[str, str], Fill]
"""Fills by symbol and id."""


def _phases(rows: LedgerRows, tick: Tick, symbols: _Symbols) -> tuple[Phase, Phase, _ByKey]:
    """The two phases of a tick: from the last tick to `before`, and from `before` to `after`.

    Also the stored fills whose fees are reported anew, with these fees.
    """
    decision = tick.decision
    since = FillStamp(
        owner_id=decision.owner_id,
        account_id=decision.account_id,
        tick_id=decision.id,
        phase="since",
        at=tick.at,
        sequence=decision.sequence,
        since=None if tick.last is None else tick.last.broker_at,
        recorded_at=decision.recorded_at,
        decision_id=decision.id,
        flattened=decision.flatten,
    )
    now = replace(
        since,
        phase="now",
        since=decision.before.portfolio.at,
        proposals=decision.executed,
    )
    before, after = decision.before, decision.last_snapshot
    first = _reported(tick, before, symbols)
    second = _reported(tick, after, symbols, decided=True)
    # The keys of both snapshots are those of after a rename, whichever of them reports it.
    first |= {key: fill for key, fill in second.items() if fill.kind == "rename" and fill.at <= before.portfolio.at}
    for key in first.keys() & second.keys():
        _check_same(second[key], first[key])
        first[key] = first[key].with_fee_of(second[key])
    known = rows.fills_by_key(decision.account_id, [*first, *second])
    restated: _ByKey = {}
    for key, fill in known.items():
        latest = second.get(key) or first[key]
        _check_same(latest, fill)
        if latest.fee_taken(tick.account.currency) != fill.fee_taken(tick.account.currency):
            restated[key] = fill.with_fee_of(latest)
    return (
        Phase(stamp=since, snapshot=before, reported=_without(first, known)),
        Phase(stamp=now, snapshot=after, reported=_without(second, {**known, **first})),
        restated,
    )


def _reported(tick: Tick, snapshot: BrokerSnapshot, symbols: _Symbols, *, decided: bool = False) -> _ByKey:
    """The reported fills of a snapshot; an id that occurs twice for a symbol must have the same content but the fee.

    `decided` fills came with the snapshot after the decision: those that its orders may have made are attributed to it.
    """
    orders = tick.decision.executed if decided else ()
    by_key: _ByKey = {}
    for reported in snapshot.fills:
        order = order_behind(
            orders,
            symbol=reported.symbol,
            position_key=reported.position_key or reported.symbol,
            quantity=reported.quantity,
            order_id=reported.order_id,
        )
        fill = as_fill(
            reported,
            tick.account,
            worth=symbols.rates.worth_of(reported, symbols.instruments.get(reported.symbol), snapshot.marks),
            fee_rate=symbols.rates.fee_rate(reported, snapshot.marks),
            decision_id=tick.decision.id if order is not None or (decided and tick.decision.flatten) else None,
            known_at=tick.at,
            recorded_at=tick.decision.recorded_at,
            reason=None if order is None else order.reason,
        )
        if fill.at > tick.decision.broker_at:
            message = f"fill {fill.id!r} is of {format_instant(fill.at)}, after the snapshot that reports it"
            raise Invalid(f"{message}; give the instant of the snapshot as portfolio.at", field="fills")
        if fill.key in by_key:
            _check_same(fill, by_key[fill.key])
        by_key[fill.key] = fill
    return by_key


def _linked(rows: LedgerRows, tick: Tick, state: _LedgerState, since: Phase, now: Phase) -> tuple[Phase, Phase]:
    """The phases, with fills of orders that earlier decisions placed given to those decisions.

    A fill that reports an order id belongs to the decision that placed the order. Any other belongs to the decision
    whose order for its symbol and side was waiting at the last snapshot, and has gone or is smaller now if any is.
    """
    reported = (*since.reported, *now.reported)
    if tick.last is None or not (reported or _has_moved(tick, state)):
        return since, now
    last = rows.decision(tick.last.id)
    waiting_ids = [] if last is None else _ids_of_executed(last.last_snapshot.portfolio, tick.decision.before.portfolio)
    ids = {*waiting_ids, *(fill.order_id for fill in reported if fill.order_id is not None)}
    placed = rows.orders_placed(tick.decision.account_id, ids)
    waiting = tuple(placed[order_id] for order_id in waiting_ids if order_id in placed)
    first, second = (
        tuple(_of_placed_order(fill, placed, waiting if phase is since else ()) for fill in phase.reported)
        for phase in (since, now)
    )
    stamp = replace(since.stamp, waiting=waiting)
    return replace(since, stamp=stamp, reported=first), replace(now, reported=second)


def _ids_of_executed(last: Portfolio, now: Portfolio) -> list[str]:
    """The ids of waiting orders that may have been executed: of a symbol and side those that have gone or are smaller.

    If none has, any of them may: the broker may be late to say so.
    """
    sizes = {order.id: abs(order.quantity) for order in now.open_orders}
    moved = [order for order in last.open_orders if sizes.get(order.id, 0.0) < abs(order.quantity)]
    sides = {(order.symbol, order.quantity > 0) for order in moved}
    others = (order for order in last.open_orders if (order.symbol, order.quantity > 0) not in sides)
    return [order.id for order in (*moved, *others)]


def _has_moved(tick: Tick, state: _LedgerState) -> bool:
    """Whether the broker's positions before the decision differ from the ledger's."""
    sizes = {trade.position_key: trade.open_size for trade in state.trades.values() if trade.status == "open"}
    return sizes != {key: position.size for key, position in tick.positions_before.items()}


def _of_placed_order(fill: Fill, placed: Mapping[str, PlacedOrder], waiting: Sequence[PlacedOrder]) -> Fill:
    """A fill with the decision and the reason of the order that made it, if an earlier decision placed it."""
    order = placed.get(fill.order_id or "")
    if order is None and fill.order_id is None and fill.decision_id is None and fill.kind == "trade":
        order = waiting_order_behind(waiting, symbol=fill.symbol, quantity=fill.quantity)
    if order is None:
        return fill
    broker_reason = fill.reason if fill.reason in get_args(BrokerReason) else None
    return replace(fill, decision_id=order.decision_id, reason=broker_reason or order.reason)


def _without(reported: _ByKey, known: _ByKey) -> tuple[Fill, ...]:
    """The reported fills that are not known yet."""
    return tuple(fill for key, fill in reported.items() if key not in known)


def _check_same(fill: Fill, known: Fill) -> None:
    """Refuse a fill that is known with another price, size or time; only its fee may be restated.

    A position that is named by its symbol may have got the key of before a rename meanwhile.
    """
    renamed = replace(known, position_key=fill.position_key) if known.position_key == known.symbol else known
    if fill.content != renamed.content:
        message = f"fill {fill.id!r} is known with other content ({known.quantity} {known.symbol} at {known.price})"
        raise Conflict(f"{message}; a fill does not change: report a correction under its own id", field="fills")


def _ledger_state(
    market: MarketBars,
    tick: Tick,
    reported: Sequence[Fill],
    restated: _ByKey,
    open_trades: Sequence[Trade],
    instruments: Mapping[str, Instrument],
) -> _LedgerState:
    """The trades and fills of every position concerned, from the first one that the tick may change.

    `restated` are stored fills with a new fee; the fills of their positions have it.
    """
    rows, account = market.rows, tick.decision.account_id
    reports: dict[str, list[Fill]] = {}
    for fill in (*reported, *restated.values()):
        if fill.kind != "transfer":
            reports.setdefault(fill.position_key, []).append(fill)
    stored_marks = rows.marks_left(tick.last.id) if tick.last and open_trades else []
    marks = {mark.position.position_key: mark for mark in stored_marks}
    resized = {
        trade.position_key
        for trade in open_trades
        if _is_resized(instruments.get(trade.symbol), marks.get(trade.position_key))
    }
    joined, withdrawn = _renamed_late(rows, tick, reported)
    corrected = _corrected(reports, restated, tick.last) | {
        key: min(each.at for each in reports[key]) for key in joined
    }
    snapshots: list[datetime] = []
    if corrected and tick.last is not None:
        since = min(corrected.values())
        snapshots = rows.snapshot_instants(account, since=since, last=tick.last)
    trades: list[Trade] = []
    fills: list[Fill] = []
    # Of a position whose new reports are all of after the last tick, only the new fills are folded.
    continued: dict[str, RoundTrip] = {}
    renamed = {trade.id for own in withdrawn.values() for trade in own}
    for trade in (each for each in open_trades if each.id not in renamed):
        key = trade.position_key
        mark = None if key in resized else marks.get(key)
        trip = _continued(market, tick, trade, mark, reports.get(key, ()))
        if trip is not None:
            continued[key] = trip
            trades.append(trade)
        elif key not in reports:
            trades.append(trade)
            fills += _fills_from(rows, restated, trade)
    # Any other position changes from the earliest of its reports, or of the inferred fills that they may explain.
    for key, new_fills in reports.items():
        if key in continued:
            continue
        first = min(fill.at for fill in new_fills)
        first = max((each for each in snapshots if each < first), default=first)
        inferred = rows.inferred_by(account, key, first)
        start = min([first, *(fill.at for fill in inferred)])
        position_trades = rows.trades_of_position(account, key, before=start)
        trades += position_trades
        fills += _fills_since(rows, restated, tick, key, position_trades, start)
        fills += joined.get(key, ())
        trades += withdrawn.get(key, ())
    revalued = {trade.position_key for trade in open_trades if _is_revalued(trade, marks.get(trade.position_key))}
    closed = {*tick.positions_before, *tick.positions_after} - {trade.position_key for trade in trades}
    return _LedgerState(
        fills=tuple(fills),
        continued=tuple(continued.values()),
        same_instant=tuple(_fills_of_this_instant(rows, tick, sorted(closed))),
        trades={trade.id: trade for trade in trades},
        marks=marks,
        corrected=frozenset({*corrected, *revalued, *resized}),
        snapshots=tuple(snapshots),
        restated=tuple(restated.values()),
        joined=tuple(fill for own in joined.values() for fill in own),
    )


def _renamed_late(
    rows: LedgerRows, tick: Tick, reported: Iterable[Fill]
) -> tuple[dict[str, list[Fill]], dict[str, list[Trade]]]:
    """The fills and trades that the new symbol of a late rename had meanwhile, by the key of the renamed position.

    A rename at the very instant of a snapshot may have been in it: then an inferred fill of before it is one of these.
    """
    account = tick.decision.account_id
    fills: dict[str, list[Fill]] = {}
    trades: dict[str, list[Trade]] = {}
    for rename in (fill for fill in reported if fill.kind == "rename" and fill.symbol != fill.position_key):
        since, key = rename.at, rename.position_key
        inferred = rows.inferred_by(account, rename.symbol, since)
        shown = [each.at for each in inferred if each.earliest_at is None or each.earliest_at <= since]
        since = min([since, *shown])
        own = rows.trades_of_position(account, rename.symbol, before=since)
        meanwhile = rows.fills_of_position(account, rename.symbol, since=since)
        if meanwhile and all(each.opened_at is not None and each.opened_at >= since for each in own):
            fills[key] = [replace(fill, position_key=key) for fill in meanwhile]
            trades[key] = own
    return fills, trades


def _corrected(reports: Mapping[str, Sequence[Fill]], restated: _ByKey, last: LastTick | None) -> dict[str, datetime]:
    """The first report of each position with a new execution of the last tick or before; a new fee moves no size."""
    corrected: dict[str, datetime] = {}
    for key, new_fills in reports.items():
        moves = [fill.at for fill in new_fills if fill.changes_size and fill.key not in restated]
        if last is not None and any(at <= last.broker_at for at in moves):
            corrected[key] = min(fill.at for fill in new_fills)
    return corrected


def _is_revalued(trade: Trade, mark: PositionMark | None) -> bool:
    """Whether the fills of an open trade were revalued since its last mark, so that its progress is in other money."""
    return mark is not None and mark.trade_id == trade.id and not mark.fold.is_of(trade)


def _is_resized(instrument: Instrument | None, mark: PositionMark | None) -> bool:
    """Whether a lot step was saved since the last mark of a position: earlier sales may have closed it then."""
    if instrument is None or instrument.lot_step is None or mark is None:
        return False
    return instrument.recorded_at >= mark.recorded_at


def _continued(
    market: MarketBars, tick: Tick, trade: Trade, mark: PositionMark | None, reported: Sequence[Fill]
) -> RoundTrip | None:
    """The round trip of an open trade if this tick cannot change its past; None if its fills must be read.

    The past may change if a report is of the last tick or before, or if bars came that replace excursions from marks.
    """
    if tick.last is None or mark is None or mark.trade_id != trade.id or trade.opened_at is None:
        return None
    trip = continued_trip(trade, mark)
    if trip is None or mark.fold.last_fill_at >= tick.at - JUST_BEFORE or tick.last.broker_at >= tick.at:
        return None
    if any(fill.at <= max(tick.last.at, tick.last.broker_at) for fill in reported):
        return None
    extremes = mark.reach.excursions
    from_bars = extremes is not None and extremes.source == "bars"
    return trip if from_bars or not market.since(trade.symbol, trade.opened_at) else None


def _fills_of_this_instant(rows: LedgerRows, tick: Tick, keys: Iterable[str]) -> Iterator[Fill]:
    """The fills of some positions at the tick's instant; none if this is the first tick of the instant."""
    if tick.last is None or tick.last.broker_at < tick.at:
        return
    for key in keys:
        yield from rows.fills_of_position(tick.decision.account_id, key, since=tick.at)


def _fills_since(
    rows: LedgerRows, restated: _ByKey, tick: Tick, key: str, trades: Sequence[Trade], start: datetime
) -> list[Fill]:
    """The fills of a position from the first of its trades on, or all if it had none before the start.

    A split of before the first trade changed nothing then, but does so once an earlier entry is reported.
    """
    if trades and trades[0].opened_at is not None and trades[0].opened_at < start:
        return _fills_from(rows, restated, *trades)
    fills = rows.fills_of_position(tick.decision.account_id, key, since=None)
    return [restated.get(fill.key, fill) for fill in fills]


def _fills_from(rows: LedgerRows, restated: _ByKey, *trades: Trade) -> list[Fill]:
    """The fills of a position from the fill that opened the first of its trades, in ledger order, with new fees."""
    first = trades[0]
    fills = rows.fills_of_position(first.account_id, first.position_key, since=first.opened_at)
    fills = [restated.get(fill.key, fill) for fill in fills]
    by_opener = {trade.first_fill_id: trade for trade in trades}
    opener = next(fill.name for fill in fills if fill.name in by_opener)
    opened = by_opener[opener]
    return from_first(fills, first_fill_id=opener, size=opened.entry.size or 0.0, closed_at=opened.closed_at)


def _bars_since_last(market: MarketBars, tick: Tick, state: _LedgerState) -> dict[str, list[Bar]]:
    """The bars since the last tick of every symbol whose position has a level, or that has no mark any more."""
    if tick.last is None:
        return {}
    symbols = {mark.position.symbol for mark in state.marks.values() if _has_level(mark.position)}
    symbols |= {trade.symbol for trade in state.trades.values()} - tick.decision.before.marks.keys()
    return {symbol: market.since(symbol, tick.last.at) for symbol in sorted(symbols)}


def _has_level(position: Position) -> bool:
    levels = position.stop_price, position.target_price, position.liquidation_price
    return any(level is not None for level in levels)


def _write_orders(transaction: Transaction, tick: Tick) -> None:
    """Store which orders the decision placed; a broker that uses an order id again leaves it to the first decision."""
    orders = placed_orders(tick.decision)
    if orders:
        owner, account = tick.decision.owner_id, tick.decision.account_id
        known = stored_decisions.orders_placed(
            transaction.connection, owner, account, [order.order_id for order in orders]
        )
        for order in orders:
            if order.order_id not in known:
                transaction.add(stored_decisions.PLACED_ORDERS, order)


def _write_fills(transaction: Transaction, settled: SettledTick) -> None:
    decision = settled.tick.decision
    known_at, recorded_at = decision.known_at, decision.recorded_at
    restated, added = settled.restated, settled.added
    for fill in (*restated, *added):
        check_finite(fill, symbol=fill.symbol)
    for fill in settled.change.withdrawn:
        transaction.withdraw(stored.FILLS, fill, known_at=known_at, recorded_at=recorded_at)
    for fill in restated:
        transaction.revise(stored.FILLS, replace(fill, known_at=known_at, recorded_at=recorded_at))
    for fill in added:
        transaction.add(stored.FILLS, fill)


def _trades(market: MarketBars, tick: Tick, state: _LedgerState, change: LedgerChange) -> list[_TradeAfter]:
    """Every trade that is open or that the tick changed."""
    trades: list[_TradeAfter] = []
    for trip in change.trips:
        trade_id = trade_id_of(tick.decision.account_id, trip)
        former = state.trades.get(trade_id)
        restamped = former is not None and trip.position_key in state.corrected and _other_entry(former, trip)
        if former is not None and not restamped and is_unchanged(former, trip):
            if trip.status == "open":
                progress = _progress(market, tick, state, trip, trade_id)
                trades.append(_TradeAfter(trade=former, trip=trip, progress=progress))
            continue
        recorded_at = tick.decision.recorded_at
        if former is not None and former.status == "closed" and trip.position_key not in state.corrected:
            progress = progress_of(former)  # a fee or funding that came after the close
        else:
            progress = _progress(market, tick, state, trip, trade_id)
        if former is None:
            row = opened_trade(trip, _entry_record(market, tick, trip), recorded_at=recorded_at)
        else:
            row = entered_by(former, _entry_record(market, tick, trip)) if restamped else former
        trade = updated_trade(
            row, trip, progress, usd_rate=_rate(tick, former), known_at=tick.at, recorded_at=recorded_at
        )
        trades.append(_TradeAfter(trade=trade, trip=trip, progress=progress))
    return trades


def _other_entry(former: Trade, trip: RoundTrip) -> bool:
    """Whether a late report says that another decision opened the trade than was inferred."""
    return former.entry.snapshot_id != trip.entry_decision_id


def is_unchanged(former: Trade, trip: RoundTrip) -> bool:
    """Whether a trade already has everything that its fills say."""
    return (
        (former.status, former.opened_at, former.closed_at) == (trip.status, trip.opened_at, trip.closed_at)
        and (former.realized_pnl, former.fees, former.funding) == (trip.realized_pnl, trip.fees, trip.funding)
        and (former.exit_reason, former.exit_snapshot_id) == (exit_reason_of(trip), trip.exit_decision_id)
        and (former.open_size, former.average_cost, former.rest) == (trip.size, trip.average_cost, trip.rest)
        and (former.entry_price, former.exit_price) == (trip.entry_price, trip.exit_price)
        and (former.entry.size, former.size) == (trip.entry_size, trip.peak_size)
        and (former.broker_pnl, former.inferred) == (trip.broker_pnl, trip.inferred)
        and former.symbol == trip.symbol
        and (former.point_value, former.inverse, former.currency) == (trip.point_value, trip.inverse, trip.currency)
    )


def _rate(tick: Tick, former: Trade | None) -> float | None:
    """Dollars for one unit of the account's currency; a trade that was closed before keeps its rate."""
    return former.usd_rate if former is not None and former.status == "closed" else tick.usd_rate


def _progress(market: MarketBars, tick: Tick, state: _LedgerState, trip: RoundTrip, trade_id: str) -> TradeProgress:
    """The progress of a trade: continued from the last tick, or computed anew if its past was corrected."""
    mark = state.marks.get(trip.position_key)
    if trip.position_key in state.corrected:
        return progress_anew(
            market, tick.decision.account_id, trip, state.trades.get(trade_id), current=_observed_positions(tick, trip)
        )
    if mark is not None and mark.trade_id != trade_id:
        mark = None
    former = NO_PROGRESS if mark is None else _in_currency_of(trip, state.trades.get(trade_id), mark)
    positions = _observed_positions(tick, trip)
    stops = [] if mark is None else _stops([(mark.at, mark.position)])
    # Excursions that rest on bars need only the new bars; excursions that rest on marks need all bars of the trade.
    excursions = former.excursions
    from_bars = excursions is not None and excursions.source == "bars"
    after = tick.last.at if from_bars and tick.last is not None else trip.opened_at
    bars = market.since(trip.symbol, after, excursions.interval_seconds if excursions else None)
    return progress_after(
        trip,
        former,
        nth=0 if mark is None else mark.nth + 1,
        stops=[*stops, *_stops(positions)],
        bars=bars,
        marks=[ObservedPrice(at=at, price=position.mark) for at, position in positions],
    )


def _in_currency_of(trip: RoundTrip, former: Trade | None, mark: PositionMark) -> TradeProgress:
    """The progress that a mark keeps, in the currency of the round trip's money."""
    if former is None or former.currency == trip.currency:
        return mark.reach
    factor = trip.rate if trip.currency is None else 1.0 / (mark.fold.rate or 1.0)
    return converted(mark.reach, factor or 1.0)


def progress_anew(
    market: MarketBars,
    account_id: str,
    trip: RoundTrip,
    former: Trade | None,
    *,
    current: Sequence[tuple[datetime, Position]] = (),
) -> TradeProgress:
    """The progress of a trade from all its marks and bars; `current` are its positions in a tick without marks yet."""
    opened_at = trip.opened_at if former is None else min(trip.opened_at, former.opened_at or trip.opened_at)
    marks = market.rows.marks_of_position(account_id, trip.position_key or "", since=opened_at)
    own = [mark for mark in marks if mark.look == "after" or (former is not None and mark.trade_id == former.id)]
    past = [(mark.at, mark.position) for mark in own if _within(trip, mark.at, mark.position)]
    # The number of the tick that first saw a stop: both snapshots of this tick count as one.
    numbered = [*enumerate(past), *((len(past), observed) for observed in current)]
    first = next((number for number, (_, position) in numbered if position.stop_price is not None), 0)
    positions = [*past, *current]
    return progress_after(
        trip,
        NO_PROGRESS,
        nth=first,
        stops=_stops(positions),
        bars=market.since(trip.symbol, trip.opened_at),
        marks=[ObservedPrice(at=at, price=position.mark) for at, position in positions],
    )


def _observed_positions(tick: Tick, trip: RoundTrip) -> list[tuple[datetime, Position]]:
    """A trade's position in the tick's two snapshots, as far as it is there."""
    positions = [tick.positions_before.get(trip.position_key)] if trip.opened_at < tick.at else []
    if trip.status == "open":
        positions.append(tick.positions_after.get(trip.position_key))
    return [(tick.at, each) for each in positions if each is not None and _within(trip, tick.at, each)]


def _within(trip: RoundTrip, at: datetime, position: Position) -> bool:
    return position.direction == trip.direction and (trip.closed_at is None or at <= trip.closed_at)


def _stops(positions: Iterable[tuple[datetime, Position]]) -> list[ObservedPrice]:
    return [ObservedPrice(at=at, price=position.stop_price) for at, position in positions]


def _entry_record(market: MarketBars, tick: Tick, trip: RoundTrip) -> EntryRecord:
    """What a new trade records of its entry: the decision that opened it, and the market at that time."""
    decision, connection = _entry_decision(market.rows, tick, trip), market.rows.view.connection
    at = min(trip.opened_at, tick.at) if decision is None else decision.at
    series = market.recent(trip.symbol, at)
    regime = regime_at(series)
    position = tick.positions_after.get(trip.position_key) or tick.positions_before.get(trip.position_key)
    first = trip.steps[0]
    entry = Entry(
        size=first.size,
        size_usd=in_dollars(
            abs(first.size * trip.valued(first.average_cost)) * trip.point_value,
            tick.usd_rate if trip.currency is None else dollars_for_one(trip.currency),
        ),
        leverage=None if position is None else position.leverage,
        reason=trip.entry_reason,
        snapshot_id=None if decision is None else decision.id,
        lessons_hash=None if decision is None else decision.lessons_hash,
        shown_hash=None if decision is None else decision.shown_hash,
        regime_tag=None if regime is None else regime.tag,
        regime_interval_seconds=None if regime is None else regime.interval_seconds,
        regime_preset=None if regime is None else regime.preset,
        equity=tick.decision.before.portfolio.equity,
        recommended_share=None if decision is None else decision.share_recommended_for(trip.symbol, trip.direction),
        configured_risk=_configured_risk(connection, tick),
        model=None if decision is None else decision.model,
    )
    mood = mood_at(connection, tick.deployment, at - JUST_BEFORE)
    return EntryRecord(
        deployment=tick.deployment,
        entry=entry,
        context=with_agent_state(context_at(trip.symbol, at, series), mood),
        memory_arm="off" if decision is None else decision.memory_arm,
        confidence=None if decision is None else decision.confidence,
    )


def _entry_decision(rows: LedgerRows, tick: Tick, trip: RoundTrip) -> Decision | None:
    if trip.entry_decision_id is None:
        return None
    if trip.entry_decision_id == tick.decision.id:
        return tick.decision
    return rows.decision(trip.entry_decision_id)


def _configured_risk(connection: Connection, tick: Tick) -> float | None:
    """The strategy's risk per trade, in money; None if it has none."""
    strategy = stored_strategies.strategy(
        connection, tick.deployment.owner_id, tick.deployment.strategy_name, tick.deployment.strategy_version
    )
    equity = tick.decision.before.portfolio.equity
    if strategy is None or not strategy.risk_per_trade or equity <= 0:
        return None
    return strategy.risk_per_trade * equity


def _write_trades(
    transaction: Transaction, settled: SettledTick, learning: BulkLearning | None
) -> tuple[LearningReport, ...]:
    """Write the trades, and let the memories learn from those that were closed.

    Closed trades are written before open ones, because a position has at most one open trade. Trades that no longer
    follow from the fills are withdrawn, with their episodes. A trade whose result the broker contradicts teaches
    nothing.
    """
    withdrawn: list[Episode] = []
    known_at, recorded_at = settled.tick.decision.known_at, settled.tick.decision.recorded_at
    for former in settled.unlearned:
        episode = stored_memories.current_episode(transaction.connection, former.owner_id, episode_id_of(former.id))
        if episode is not None:
            transaction.withdraw(stored_memories.EPISODES, episode, known_at=known_at, recorded_at=recorded_at)
            withdrawn.append(episode)
    for former in settled.withdrawn:
        transaction.withdraw(stored.TRADES, former, known_at=known_at, recorded_at=recorded_at)
    changed = settled.changed
    for row in sorted(changed, key=lambda each: (each.status, each.opened_at or each.known_at, each.id)):
        transaction.revise(stored.TRADES, row)
    closed = [episode_of_trade(row) for row in changed if teaches(row)]
    if learning is not None:
        learning.add_of_tick(closed, withdrawn=withdrawn)
        return ()
    return learn_trades(transaction, closed, withdrawn=withdrawn)


def teaches(trade: Trade) -> bool:
    """Whether memory learns from a trade: it is closed, and the broker does not contradict its result."""
    return trade.status == "closed" and trade.contradiction is None


def _marks(tick: Tick, state: _LedgerState, trades: Iterable[_TradeAfter]) -> list[PositionMark]:
    """A mark for each position that the tick left open, and for each that it closed.

    Of several trades that the tick closed in one position, the first is the one in the snapshot before the decision.
    """
    before, after = tick.positions_before, tick.positions_after
    marks: dict[tuple[str, SnapshotSide], PositionMark] = {}
    for each in sorted(trades, key=lambda each: each.trip.opened_at):
        key, closed_at = each.trip.position_key, each.trip.closed_at
        if closed_at is None:
            marks[key, "after"] = _mark(tick, state, each, after[key], look="after")
        elif closed_at >= tick.at and key in before:
            marks.setdefault((key, "before"), _mark(tick, state, each, before[key], look="before"))
    for mark in marks.values():
        check_finite(mark, symbol=mark.position.symbol)
    return list(marks.values())


def _mark(
    tick: Tick, state: _LedgerState, trade_after: _TradeAfter, position: Position, *, look: SnapshotSide
) -> PositionMark:
    row = trade_after.trade
    former = state.marks.get(row.position_key)
    return PositionMark(
        owner_id=row.owner_id,
        account_id=row.account_id,
        position=position,
        at=tick.at,
        sequence=tick.decision.sequence,
        trade_id=row.id,
        decision_id=tick.decision.id,
        look=look,
        nth=former.nth + 1 if former is not None and former.trade_id == row.id else 0,
        reach=trade_after.progress,
        fold=fold_state(trade_after.trip),
        known_at=tick.decision.known_at,
        recorded_at=tick.decision.recorded_at,
    )


def possible_rests(trades: Iterable[Trade], at: datetime, instruments: Mapping[str, Instrument]) -> Iterator[Trade]:
    """The trades that a tick left almost closed, where no lot step tells whether what is left is a position."""
    return (
        trade
        for trade in trades
        if trade.known_at == at and trade.is_almost_closed and lacks_lot_step(instruments.get(trade.symbol))
    )


def _uncounted(change: LedgerChange) -> Iterator[Fill]:
    """The new payments that their round trip does not count."""
    for fill in change.added:
        trips = [trip for trip in change.trips if trip.position_key == fill.position_key and trip.opened_at <= fill.at]
        if trips and is_uncounted(trips[-1], fill):
            yield fill
