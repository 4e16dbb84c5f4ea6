"""The ledger after a tick: reads what it holds of the positions concerned, settles, and writes what changed."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.decision import Decision, LastTick
from backsight.core.errors import Conflict, Invalid
from backsight.core.fills import Fill
from backsight.core.instants import JUST_BEFORE, Horizon, format_instant
from backsight.core.market import Bar
from backsight.core.memory.affective import equity_fact
from backsight.core.memory.episodic import Episode, episode_id_of, episode_of_trade
from backsight.core.orders import ReportedFill, as_fill
from backsight.core.portfolio import Account, Position
from backsight.core.strategies import Deployment
from backsight.core.trades.excursion import Seen
from backsight.core.trades.fold import RoundTrip
from backsight.core.trades.infer import Stamp
from backsight.core.trades.mark import NOTHING, Look, PositionMark, Reach, reached
from backsight.core.trades.materialise import (
    USD,
    Stamped,
    check_finite,
    exit_reason_of,
    materialised,
    opened_trade,
    reach_of,
    trade_id_of,
)
from backsight.core.trades.settle import Phase, Settled, from_first, settle
from backsight.core.trades.trade import Entry, Trade
from backsight.services.learning import LearningReport, learn_equity, learn_trades
from backsight.services.market import context_at, recent_bars, regime_at
from backsight.services.mood import mood_at
from backsight.store import bars as stored_bars
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored_memories
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """What a tick brings to the ledger."""

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
    def usd_rate(self) -> float | None:
        """What the account's currency is worth in dollars, where that is known."""
        return 1.0 if self.account.currency == USD else self.decision.usd_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedTick:
    """The decision with the trades that the tick opened and closed, and what the memories learned from them."""

    decision: Decision
    opened: tuple[Trade, ...]
    closed: tuple[Trade, ...]
    learned: tuple[LearningReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the ledger holds of the positions that a tick concerns."""

    fills: tuple[Fill, ...]
    trades: Mapping[str, Trade]
    marks: Mapping[str, PositionMark]
    """As the last tick left them, by position."""
    beside: tuple[Fill, ...]
    """Of this instant, in positions that an earlier tick of it closed."""
    late: frozenset[str]
    """Positions of which something is told that happened before the last tick."""


def post(transaction: Transaction, tick: Tick) -> PostedTick:
    """Bring the ledger to where the broker is, and say what that opened and closed."""
    connection = transaction.connection
    since, now = _phases(connection, tick)
    held = _held(connection, tick, (*since.reported, *now.reported))
    last_seen = {key: mark.position for key, mark in held.marks.items()}
    market = _Market(connection, tick)
    bars = _touching(market, tick, held)
    settled = settle(held.fills, since, now, last_seen=last_seen, bars=bars, beside=held.beside)
    rows = _trades(market, tick, held, settled)
    _write_fills(transaction, tick, settled)
    learned = _write_trades(transaction, tick, held, settled, [row for row, _ in rows])
    _write_marks(transaction, tick, held, rows)
    _write_equity(transaction, tick, settled)
    return _posted(tick, held, [row for row, _ in rows], learned)


class _Market:
    """The bars that a tick looks at, each stretch read once."""

    def __init__(self, connection: Connection, tick: Tick) -> None:
        self.connection = connection
        self.owner = tick.decision.owner_id
        self.until = tick.at
        self._read: dict[tuple[str, datetime, int | None], list[Bar]] = {}

    def since(self, symbol: str, after: datetime, seconds: int | None = None) -> list[Bar]:
        """The bars that closed after an instant, of one length or the shortest there is."""
        asked = symbol, after, seconds
        if asked not in self._read:
            self._read[asked] = self._closed(symbol, after, seconds)
        return self._read[asked]

    def _closed(self, symbol: str, after: datetime, seconds: int | None) -> list[Bar]:
        length = seconds or stored_bars.finest_interval(self.connection, self.owner, symbol)
        if length is None:
            return []
        return stored_bars.bars_closed(
            self.connection, self.owner, symbol=symbol, interval_seconds=length, after=after, until=self.until
        )


def _phases(connection: Connection, tick: Tick) -> tuple[Phase, Phase]:
    decision = tick.decision
    since = Stamp(
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
        proposal_symbol=decision.symbol if decision.verdict.kind == "executed" else None,
        proposal_reason=decision.reason,
    )
    before, after = decision.before, decision.last_snapshot
    first = _reported(tick, before.fills, known={})
    second = _reported(tick, after.fills, known=first, decided=True)
    stored_fills = stored.fills_by_id(connection, decision.owner_id, decision.account_id, [*first, *second])
    return (
        Phase(stamp=since, snapshot=before, reported=_new(first, stored_fills)),
        Phase(stamp=now, snapshot=after, reported=_new(second, {**stored_fills, **first})),
    )


def _reported(
    tick: Tick, fills: Iterable[ReportedFill], *, known: Mapping[str, Fill], decided: bool = False
) -> dict[str, Fill]:
    """The facts that a snapshot reports, by id; one id twice must say the same."""
    found: dict[str, Fill] = {}
    for fill in fills:
        proposed = decided and fill.symbol == tick.decision.symbol and tick.decision.verdict.kind == "executed"
        fact = as_fill(
            fill,
            owner_id=tick.decision.owner_id,
            account_id=tick.decision.account_id,
            decision_id=tick.decision.id if proposed or (decided and tick.decision.flatten) else None,
            known_at=tick.at,
            recorded_at=tick.decision.recorded_at,
            reason=tick.decision.reason if proposed else None,
        )
        if fact.at > tick.decision.broker_at:
            told = f"fill {fill.id!r} is of {format_instant(fact.at)}, after the snapshot that reports it"
            raise Invalid(f"{told}; give the instant of the snapshot as portfolio.at", field="fills")
        _check_same(fact, {**known, **found}.get(fact.id))
        found.setdefault(fact.id, fact)
    return found


def _new(reported: Mapping[str, Fill], known: Mapping[str, Fill]) -> tuple[Fill, ...]:
    for fill_id, fill in reported.items():
        _check_same(fill, known.get(fill_id))
    return tuple(fill for fill_id, fill in reported.items() if fill_id not in known)


def _check_same(fill: Fill, known: Fill | None) -> None:
    if known is not None and fill.told != known.told:
        told = f"fill {fill.id!r} is known with other content ({known.quantity} {known.symbol} at {known.price})"
        raise Conflict(f"{told}; a fill does not change: report a correction under its own id", field="fills")


def _held(connection: Connection, tick: Tick, reported: Sequence[Fill]) -> _Held:
    """Of every position concerned, the trades and fills from the first one on that the tick may change."""
    owner, account = tick.decision.owner_id, tick.decision.account_id
    open_trades = stored.open_trades(connection, owner, account)
    told: dict[str, list[Fill]] = {}
    for fill in reported:
        if fill.kind != "transfer":
            told.setdefault(fill.position_key, []).append(fill)
    trades: list[Trade] = []
    fills: list[Fill] = []
    for trade in open_trades:
        if trade.position_key not in told:
            trades.append(trade)
            fills += _fills_from(connection, trade)
    for key, news in told.items():
        first = min(fill.at for fill in news)
        guesses = stored.inferred_by(connection, owner, account, key, first)
        start = min([first, *(guess.at for guess in guesses)])
        found = stored.trades_of_position(connection, owner, account, key, before=start)
        trades += found
        if found:
            fills += _fills_from(connection, *found)
        elif guesses:
            fills += stored.fills_of_position(connection, owner, account, key, since=None)
    marks = stored.marks_of_decision(connection, owner, tick.last.id) if tick.last and open_trades else []
    late = {
        key
        for key, news in told.items()
        if tick.last is not None and any(fill.executed and fill.at <= tick.last.broker_at for fill in news)
    }
    closed = {*tick.positions_before, *tick.positions_after} - {trade.position_key for trade in trades}
    return _Held(
        fills=tuple(fills),
        beside=tuple(_of_this_instant(connection, tick, sorted(closed))),
        trades={trade.id: trade for trade in trades},
        marks={mark.position.position_key: mark for mark in marks},
        late=frozenset(late),
    )


def _of_this_instant(connection: Connection, tick: Tick, keys: Iterable[str]) -> Iterator[Fill]:
    """The fills of some positions at the tick's instant, where it is not the first tick of it."""
    if tick.last is None or tick.last.broker_at < tick.at:
        return
    for key in keys:
        owner, account = tick.decision.owner_id, tick.decision.account_id
        yield from stored.fills_of_position(connection, owner, account, key, since=tick.at)


def _fills_from(connection: Connection, *trades: Trade) -> list[Fill]:
    """The fills of a position from the one on that opened the first of its trades, by the order of the fills."""
    first = trades[0]
    found = stored.fills_of_position(
        connection, first.owner_id, first.account_id, first.position_key, since=first.opened_at
    )
    by_opener = {trade.first_fill_id: trade for trade in trades}
    opener = next(fill.name for fill in found if fill.name in by_opener)
    return from_first(found, first_fill_id=opener, size=by_opener[opener].entry.size or 0.0)


def _touching(market: _Market, tick: Tick, held: _Held) -> dict[str, list[Bar]]:
    """The bars closed since the last tick of every symbol that has a stop, a target or a liquidation price."""
    if tick.last is None:
        return {}
    symbols = {mark.position.symbol for mark in held.marks.values() if _levels(mark.position)}
    return {symbol: market.since(symbol, tick.last.at) for symbol in sorted(symbols)}


def _levels(position: Position) -> bool:
    levels = position.stop_price, position.target_price, position.liquidation_price
    return any(level is not None for level in levels)


def _write_fills(transaction: Transaction, tick: Tick, settled: Settled) -> None:
    known_at, recorded_at = tick.decision.known_at, tick.decision.recorded_at
    for fill in (*settled.restated, *settled.added):
        check_finite(fill, symbol=fill.symbol)
    for fill in settled.withdrawn:
        transaction.withdraw(stored.FILLS, fill, known_at=known_at, recorded_at=recorded_at)
    for fill in settled.restated:
        transaction.revise(stored.FILLS, replace(fill, known_at=known_at, recorded_at=recorded_at))
    for fill in settled.added:
        transaction.add(stored.FILLS, fill)


def _trades(market: _Market, tick: Tick, held: _Held, settled: Settled) -> list[tuple[Trade, Reach]]:
    """The row and the reach of every trade that is open or that the tick changed."""
    rows: list[tuple[Trade, Reach]] = []
    for trip in settled.trips:
        trade_id = trade_id_of(tick.decision.account_id, trip)
        former = held.trades.get(trade_id)
        if former is not None and _says_the_same(former, trip):
            if trip.status == "open":
                rows.append((former, _reach(market, tick, held, trip, trade_id)))
            continue
        recorded_at = tick.decision.recorded_at
        if former is not None and former.status == "closed" and trip.position_key not in held.late:
            reach = reach_of(former)  # a fee or funding that came after the close
        else:
            reach = _reach(market, tick, held, trip, trade_id)
        row = former or opened_trade(trip, _stamped(market.connection, tick, trip), recorded_at=recorded_at)
        made = materialised(row, trip, reach, usd_rate=_rate(tick, former), known_at=tick.at, recorded_at=recorded_at)
        rows.append((made, reach))
    return rows


def _says_the_same(former: Trade, trip: RoundTrip) -> bool:
    """Whether the fills of a trade tell nothing that its row does not."""
    told = (former.status, former.opened_at, former.closed_at, former.realized_pnl, former.fees, former.funding)
    now = (trip.status, trip.opened_at, trip.closed_at, trip.realized_pnl, trip.fees, trip.funding)
    said = (former.exit_reason, former.exit_snapshot_id, former.broker_pnl)
    if said != (exit_reason_of(trip), trip.exit_decision_id, trip.broker_pnl):
        return False
    held = (former.open_size, former.average_cost, former.entry_price, former.exit_price, former.inferred)
    return told == now and held == (trip.size, trip.average_cost, trip.entry_price, trip.exit_price, trip.inferred)


def _rate(tick: Tick, former: Trade | None) -> float | None:
    """Dollars for a unit of the account's currency; of a trade that was closed before, as it was then."""
    return former.usd_rate if former is not None and former.status == "closed" else tick.usd_rate


def _reach(market: _Market, tick: Tick, held: _Held, trip: RoundTrip, trade_id: str) -> Reach:
    """How far a trade has gone: from the last tick on, or all anew where its past was corrected."""
    mark = held.marks.get(trip.position_key)
    if trip.position_key in held.late:
        return _reach_anew(market, tick, trip, held.trades.get(trade_id))
    if mark is not None and mark.trade_id != trade_id:
        mark = None
    former = NOTHING if mark is None else mark.reach
    seen = _seen(tick, trip)
    stops = [] if mark is None else _stops([(mark.at, mark.position)])
    gone = former.excursions
    bars_known = gone is not None and gone.source == "bars"
    after = tick.last.at if bars_known and tick.last is not None else trip.opened_at
    bars = market.since(trip.symbol, after, gone.interval_seconds if gone else None)
    return reached(
        trip,
        former,
        nth=0 if mark is None else mark.nth + 1,
        stops=[*stops, *_stops(seen)],
        bars=bars,
        marks=[Seen(at=at, price=position.mark) for at, position in seen],
    )


def _reach_anew(market: _Market, tick: Tick, trip: RoundTrip, former: Trade | None) -> Reach:
    """The reach from every look that was taken at a trade, and from every bar."""
    opened_at = trip.opened_at if former is None else min(trip.opened_at, former.opened_at or trip.opened_at)
    decision = tick.decision
    found = stored.marks_of_position(
        market.connection, decision.owner_id, decision.account_id, trip.position_key, since=opened_at
    )
    own = [mark for mark in found if mark.look == "after" or (former is not None and mark.trade_id == former.id)]
    marks = [(mark.at, mark.position) for mark in own if _within(trip, mark.at, mark.position)]
    now = _seen(tick, trip)
    looks = [*enumerate(marks), *((len(marks), each) for each in now)]
    first = next((number for number, (_, position) in looks if position.stop_price is not None), 0)
    seen = [*marks, *now]
    return reached(
        trip,
        NOTHING,
        nth=first,
        stops=_stops(seen),
        bars=market.since(trip.symbol, trip.opened_at),
        marks=[Seen(at=at, price=position.mark) for at, position in seen],
    )


def _seen(tick: Tick, trip: RoundTrip) -> list[tuple[datetime, Position]]:
    """What the tick saw of a trade's position, before and after."""
    looks = [tick.positions_before.get(trip.position_key)] if trip.opened_at < tick.at else []
    if trip.status == "open":
        looks.append(tick.positions_after.get(trip.position_key))
    return [(tick.at, each) for each in looks if each is not None and _within(trip, tick.at, each)]


def _within(trip: RoundTrip, at: datetime, position: Position) -> bool:
    return position.direction == trip.direction and (trip.closed_at is None or at <= trip.closed_at)


def _stops(seen: Iterable[tuple[datetime, Position]]) -> list[Seen]:
    return [Seen(at=at, price=position.stop_price) for at, position in seen]


def _stamped(connection: Connection, tick: Tick, trip: RoundTrip) -> Stamped:
    """What a new trade carries from its entry: the decision that opened it, and the market as it was then."""
    decision = _entry_decision(connection, tick, trip)
    at = min(trip.opened_at, tick.at) if decision is None else decision.at
    series = recent_bars(connection, tick.decision.owner_id, trip.symbol, Horizon(as_of=at))
    regime = regime_at(series)
    position = tick.positions_after.get(trip.position_key) or tick.positions_before.get(trip.position_key)
    first = trip.steps[0]
    entry = Entry(
        size=first.size,
        size_usd=None if tick.usd_rate is None else abs(first.size * first.average_cost) * tick.usd_rate,
        leverage=None if position is None else position.leverage,
        reason=trip.entry_reason,
        snapshot_id=None if decision is None else decision.id,
        lessons_hash=None if decision is None else decision.lessons_hash,
        shown_hash=None if decision is None else decision.shown_hash,
        regime_tag=None if regime is None else regime.tag,
        regime_interval_seconds=None if regime is None else regime.interval_seconds,
        regime_preset=None if regime is None else regime.preset,
        equity=tick.decision.before.portfolio.equity,
        configured_risk=_configured_risk(connection, tick),
        model=None if decision is None else decision.model,
    )
    confidence = None if decision is None else decision.confidence
    mood = mood_at(connection, tick.deployment, at - JUST_BEFORE)
    context = replace(
        context_at(trip.symbol, at, series),
        drawdown_pct=None if mood.equity is None else mood.drawdown,
        consecutive_losses=mood.consecutive_losses,
        confidence=confidence,
    )
    return Stamped(
        home=tick.deployment,
        entry=entry,
        context=context,
        memory_arm="off" if decision is None else decision.memory_arm,
        confidence=confidence,
    )


def _entry_decision(connection: Connection, tick: Tick, trip: RoundTrip) -> Decision | None:
    if trip.entry_decision_id is None or trip.entry_decision_id == tick.decision.id:
        return None if trip.entry_decision_id is None else tick.decision
    return stored_decisions.decision(connection, tick.decision.owner_id, trip.entry_decision_id)


def _configured_risk(connection: Connection, tick: Tick) -> float | None:
    strategy = stored_strategies.strategy(
        connection, tick.deployment.owner_id, tick.deployment.strategy_name, tick.deployment.strategy_version
    )
    equity = tick.decision.before.portfolio.equity
    if strategy is None or not strategy.risk_per_trade or equity <= 0:
        return None
    return strategy.risk_per_trade * equity


def _write_trades(
    transaction: Transaction, tick: Tick, held: _Held, settled: Settled, rows: Sequence[Trade]
) -> tuple[LearningReport, ...]:
    """Closed trades first, since a position has one open trade at a time; what no longer stands is taken back."""
    taken_back: list[Episode] = []
    standing = {trade_id_of(tick.decision.account_id, trip) for trip in settled.trips}
    known_at, recorded_at = tick.decision.known_at, tick.decision.recorded_at
    for former in held.trades.values():
        reopened = any(row.id == former.id and row.status == "open" for row in rows)
        if former.status == "closed" and (former.id not in standing or reopened):
            episode = stored_memories.current_episode(transaction.connection, former.owner_id, episode_id_of(former.id))
            if episode is not None:
                transaction.withdraw(stored_memories.EPISODES, episode, known_at=known_at, recorded_at=recorded_at)
                taken_back.append(episode)
        if former.id not in standing:
            transaction.withdraw(stored.TRADES, former, known_at=known_at, recorded_at=recorded_at)
    for row in sorted(rows, key=lambda each: (each.status, each.opened_at or each.known_at, each.id)):
        if held.trades.get(row.id) is row:
            continue
        transaction.revise(stored.TRADES, row)
    closed = [episode_of_trade(row) for row in rows if row.status == "closed" and held.trades.get(row.id) is not row]
    return learn_trades(transaction, closed, withdrawn=taken_back)


def _write_equity(transaction: Transaction, tick: Tick, settled: Settled) -> None:
    """What the account was seen to be worth, and what was paid in or out since the last tick."""
    decision = tick.decision
    moved = math.fsum(fill.amount for fill in settled.added if fill.kind == "transfer")
    fact = equity_fact(decision.id, decision.at, decision.sequence, decision.equity, moved)
    learn_equity(transaction, decision.owner_id, decision.account_id, fact, recorded_at=decision.recorded_at)


def _write_marks(transaction: Transaction, tick: Tick, held: _Held, rows: Iterable[tuple[Trade, Reach]]) -> None:
    """What the tick left open, and what it closed that was open when it began."""
    before, after = tick.positions_before, tick.positions_after
    marks: list[PositionMark] = []
    for row, reach in rows:
        if row.status == "open":
            marks.append(_mark(tick, held, row, reach, after[row.position_key], look="after"))
        elif row.closed_at is not None and row.closed_at >= tick.at and row.position_key in before:
            marks.append(_mark(tick, held, row, reach, before[row.position_key], look="before"))
    for mark in marks:
        check_finite(mark, symbol=mark.position.symbol)
    transaction.add_all(stored.MARKS, marks)


def _mark(tick: Tick, held: _Held, row: Trade, reach: Reach, position: Position, *, look: Look) -> PositionMark:
    former = held.marks.get(row.position_key)
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
        reach=reach,
        known_at=tick.decision.known_at,
        recorded_at=tick.decision.recorded_at,
    )


def _posted(tick: Tick, held: _Held, rows: Sequence[Trade], learned: tuple[LearningReport, ...]) -> PostedTick:
    """The trades that are new, and those that were not closed before; a trade may be both."""
    closed_before = {trade.id for trade in held.trades.values() if trade.status == "closed"}
    opened = tuple(row for row in rows if row.id not in held.trades)
    closed = tuple(row for row in rows if row.status == "closed" and row.id not in closed_before)
    decision = replace(
        tick.decision, opened=tuple(trade.id for trade in opened), closed=tuple(trade.id for trade in closed)
    )
    return PostedTick(decision=decision, opened=opened, closed=closed, learned=learned)
