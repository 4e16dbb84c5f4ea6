"""Laws of the tick for any orders, bars and reports, on both databases, also for interrupted ticks."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, select

from backsight.adapters.brokers.paper import PaperBroker, PaperTerms
from backsight.core.decision import Verdict
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order, ReportedFill
from backsight.core.portfolio import Position
from backsight.core.trades.excursion import ObservedPrice, excursions, risk_of
from backsight.core.trades.fold import RoundTrip, fold
from backsight.core.trades.materialise import trade_id_of
from backsight.core.trades.trade import Trade
from backsight.memory import Memory, open_memory
from backsight.store.bars import BARS
from backsight.store.decisions import DECISIONS
from backsight.store.mapping import Noun
from backsight.store.memories import EPISODES
from backsight.store.reading import fetch, owned
from backsight.store.strategies import ACCOUNTS, DEPLOYMENTS, STRATEGIES
from backsight.store.trades import FILLS, MARKS, TRADES
from backsight.testing import T0, FakeClock, a_position
from ops.test_ticks import DEPLOYMENT, Desk, Dump, a_bar, a_report, an_order, at, dump
from support import fresh_postgres

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CASH = 10_000.0
SYMBOLS = ("BTC", "ETH")
FLAT = (1.0, 1.0, 1.0, 1.0)

Reporting = Literal["in time", "late", "never", "some"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An order; its levels are shares of the mark away from it."""

    symbol: str = "BTC"
    quantity: float = 1.0
    stop: float | None = None
    target: float | None = None
    key: str = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """An hour: the manual orders in it, the moves of the market, and the agent's order at its end."""

    by_hand: tuple[Ask, ...] = ()
    apart: int = 10
    """Minutes between manual orders; 0: all at the instant of the last tick."""
    btc: tuple[float, ...] = FLAT
    eth: tuple[float, ...] = FLAT
    deposit: float = 0.0
    ask: Ask | None = None
    ticked: bool = True


MOVES = st.tuples(*[st.floats(0.85, 1.18)] * 4)
LEVELS = st.sampled_from([None, None, 0.02, 0.1])
ASKS = st.builds(
    Ask,
    symbol=st.sampled_from(SYMBOLS),
    quantity=st.sampled_from([-30.0, -10.0, -7.3, -1.0, 1.0, 7.3, 10.0, 30.0]),
    stop=LEVELS,
    target=LEVELS,
    key=st.sampled_from(["1", "2"]),
)
HOURS = st.builds(
    Hour,
    by_hand=st.lists(ASKS, max_size=2).map(tuple),
    apart=st.sampled_from([0, 10]),
    btc=MOVES,
    eth=MOVES,
    deposit=st.sampled_from([0.0, 0.0, 0.0, 500.0]),
    ask=st.none() | ASKS,
    ticked=st.sampled_from([True, True, True, False]),
)
PATHS = st.lists(HOURS, min_size=2, max_size=9).map(tuple)
TERMS = st.builds(
    PaperTerms,
    position_mode=st.sampled_from(["netting", "hedging"]),
    fee_rate=st.sampled_from([0.0, 0.001]),
    slippage=st.sampled_from([0.0, 0.002]),
    funding_rate=st.sampled_from([0.0, 0.001, -0.002]),
    funding_interval_seconds=st.sampled_from([3600, 28_800]),
)


def law(examples: int) -> Callable[[Any], Any]:
    """Settings without shrinking, which is slow and hardly helps: a failing path is printed as generated."""
    return settings(max_examples=examples, phases=(Phase.explicit, Phase.generate))


class Desk24:
    """A paper account on which a person and an agent trade, and the ticks that record it."""

    def __init__(
        self,
        memory: Memory,
        clock: FakeClock,
        *,
        terms: PaperTerms,
        reporting: Reporting = "in time",
        with_bars: bool = True,
        seed: int = 0,
    ) -> None:
        self.memory, self.clock, self.terms = memory, clock, terms
        self.reporting, self.with_bars, self.rng = reporting, with_bars, random.Random(seed)
        clock.at = T0
        mode: Any = terms.position_mode
        account = memory.open_account(venue="x", name="main", currency="EUR", mode="paper", position_mode=mode)
        self.account_id = account.account.id
        memory.save_strategy(name="S")
        memory.deploy(strategy_name="S", account="main")
        self.broker = PaperBroker("paper", at=T0 - HOUR, cash=CASH, terms=replace(terms, reports_fills=True))
        self.marks = {"BTC": 100.0, "ETH": 10.0}
        self.new_bars: list[Bar] = []
        self.waiting: list[tuple[int, ReportedFill]] = []
        self.number = 0
        self.looks: list[tuple[datetime, BrokerSnapshot, BrokerSnapshot]] = []
        self.reported_fills: list[ReportedFill] = []
        self.advance(Hour())

    @property
    def now(self) -> datetime:
        return T0 + (self.number - 1) * HOUR

    def live(self, hours: Sequence[Hour], *, after: Callable[[], None] = lambda: None) -> None:
        """Live through the hours, and call `after` after each tick."""
        for hour in hours:
            for number, ask in enumerate(hour.by_hand, start=1):
                self.broker.deposit(1.0, at=self.now + hour.apart * number * MINUTE)
                self.broker.submit(self.order(ask))
            self.advance(hour)
            if hour.deposit:
                self.broker.deposit(hour.deposit, at=self.now)
            if hour.ticked:
                self.tick(hour.ask)
                after()

    def advance(self, hour: Hour) -> None:
        bars = []
        for symbol, move in zip(SYMBOLS, (hour.btc, hour.eth), strict=True):
            prices = [self.marks[symbol] * each for each in move]
            bars.append(
                a_bar(self.number - 1, prices[0], max(prices), min(prices), prices[3], symbol=symbol),
            )
            self.marks[symbol] = prices[3]
        self.broker.advance(bars)
        self.new_bars += bars
        self.number += 1

    def tick(self, ask: Ask | None) -> None:
        self.clock.at = self.now + MINUTE
        before = self.broker.snapshot()
        order, verdict = None, Verdict(kind="noop")
        if ask is not None:
            order = replace(self.order(ask), reason=f"asked at {self.number}")
            result = self.broker.submit(order)
            rule = getattr(result, "rule", None)
            verdict = Verdict(kind="executed") if rule is None else Verdict(kind="rejected", rule=rule)
        after = self.broker.snapshot()
        before, after = self.reported(before, after)
        opened = self.memory.open_tick(deployment=DEPLOYMENT, at=self.now, before=before, symbols=list(SYMBOLS))
        self.memory.close_tick(
            deployment=DEPLOYMENT,
            at=self.now,
            before=before,
            after=after,
            verdict=verdict,
            proposal=order,
            bars=self.new_bars if self.with_bars else [],
            shown=list(opened.segments),
            seen_at=opened.seen_at,
        )
        self.new_bars = []
        self.looks.append((self.now, before, after))

    def reported(self, before: BrokerSnapshot, after: BrokerSnapshot) -> tuple[BrokerSnapshot, BrokerSnapshot]:
        """The two snapshots with the fills that the broker reports at this tick."""
        happened = (*before.fills, *after.fills)
        if self.reporting == "in time":
            self.reported_fills += happened
            return before, after
        due = {"late": (1,), "never": (0,), "some": (0, 1, 1, 2, 3)}[self.reporting]
        self.waiting = [(ticks - 1, fill) for ticks, fill in self.waiting]
        arrived = [fill for ticks, fill in self.waiting if ticks == 0]
        self.waiting += [(self.rng.choice(due), fill) for fill in happened]
        self.reported_fills += arrived
        return replace(before, fills=tuple(arrived)), replace(after, fills=())

    def order(self, ask: Ask) -> Order:
        mark, way = self.marks[ask.symbol], math.copysign(1.0, ask.quantity)
        return Order(
            symbol=ask.symbol,
            quantity=ask.quantity,
            stop_price=None if ask.stop is None else mark * (1 - way * ask.stop),
            target_price=None if ask.target is None else mark * (1 + way * ask.target),
            position_key=f"{ask.symbol}-{ask.key}" if self.terms.position_mode == "hedging" else None,
        )

    def rows(self, noun: Noun[Any]) -> list[Any]:
        with self.memory.reading() as connection:
            return fetch(connection, noun, owned(noun, self.memory.owner))

    def trades(self) -> list[Trade]:
        return sorted(self.rows(TRADES), key=lambda trade: (trade.opened_at, trade.closed_at or T0 + 9999 * HOUR))

    def positions(self) -> dict[str, Position]:
        return self.looks[-1][2].portfolio.by_key()


@contextmanager
def a_store(url: str = "sqlite://") -> Iterator[tuple[Memory, FakeClock]]:
    clock = FakeClock(T0)
    with open_memory(url, owner="ana", actor="test", clock=clock) as memory:
        yield memory, clock


# Money, positions, and refolding.


def check_money(desk: Desk24) -> None:
    trades, snapshot = desk.trades(), desk.looks[-1][2]
    worth = math.fsum(
        (trade.realized_pnl or 0.0)
        + (1 if trade.direction == "long" else -1)
        * trade.open_size
        * (snapshot.marks[trade.symbol] - (trade.average_cost or 0))
        for trade in trades
    )
    moved = math.fsum(fill.amount for fill in desk.reported_fills if fill.kind == "transfer")
    beside = math.fsum(trade.funding - trade.fees for trade in trades) + moved
    assert worth == pytest.approx(snapshot.portfolio.equity - CASH - beside, rel=0, abs=1e-6)


def check_positions(desk: Desk24) -> None:
    open_trades = {trade.position_key: trade for trade in desk.trades() if trade.status == "open"}
    assert open_trades.keys() == desk.positions().keys()
    for key, position in desk.positions().items():
        assert open_trades[key].direction == position.direction
        assert open_trades[key].open_size == pytest.approx(position.size, rel=1e-9)
        assert open_trades[key].average_cost == pytest.approx(position.average_price, rel=1e-6)


def check_sizes(desk: Desk24) -> None:
    sizes = {trade.position_key: signed(trade) for trade in desk.trades() if trade.status == "open"}
    assert sizes == pytest.approx({key: each.signed_size for key, each in desk.positions().items()})


def check_refolded(desk: Desk24) -> None:
    """Check that rows equal a new fold of all stored fills, and that excursions equal those of bars and snapshots."""
    trips = {trade_id_of(desk.account_id, trip): trip for trip in fold(desk.rows(FILLS))}
    trades = {trade.id: trade for trade in desk.trades()}
    assert trips.keys() == trades.keys()
    for name, trip in trips.items():
        assert fields_of_row(trades[name]) == fields_of_trip(trip)
        if trip.status == "closed":
            check_reach(desk, trades[name], trip)
    for episode in desk.rows(EPISODES):
        assert episode.pnl == trades[episode.trade_id].pnl
    assert len(desk.rows(EPISODES)) == len([trip for trip in trips.values() if trip.status == "closed"])


def fields_of_row(row: Trade) -> tuple[Any, ...]:
    when = row.status, row.direction, row.opened_at, row.closed_at, row.inferred
    sizes = row.size, row.open_size, row.average_cost, row.entry_price, row.exit_price
    return *when, *sizes, row.realized_pnl, row.fees, row.funding, row.broker_pnl, row.exit_reason


def fields_of_trip(trip: RoundTrip) -> tuple[Any, ...]:
    when = trip.status, trip.direction, trip.opened_at, trip.closed_at, trip.inferred
    sizes = trip.peak_size, trip.size, trip.average_cost, trip.entry_price, trip.exit_price
    why = None if trip.status == "open" else trip.exit_reason or "unexplained"
    return *when, *sizes, trip.realized_pnl, trip.fees, trip.funding, trip.broker_pnl, why


def check_reach(desk: Desk24, row: Trade, trip: RoundTrip) -> None:
    bars = [
        fact.bar for fact in desk.rows(BARS) if fact.bar.symbol == trip.symbol and fact.bar.closes_at <= row.known_at
    ]
    looks = list(looks_at(desk, trip))
    marks = [ObservedPrice(at=at, price=position.mark) for at, position in looks]
    stops = [
        ObservedPrice(at=at, price=position.stop_price) for at, position in looks if position.stop_price is not None
    ]
    gone = excursions(trip, bars=sorted(bars, key=lambda bar: bar.opened_at), marks=marks)
    assert row.risk == pytest.approx(risk_of(trip, stops).largest)
    source = (None, None) if gone is None else (gone.source, gone.interval_seconds)
    assert (row.excursion_source, row.excursion_interval_seconds) == source
    if gone is not None:
        assert (row.mfe, row.mae) == pytest.approx((gone.mfe, gone.mae))
        assert (row.mfe_at, row.mae_at) == (gone.mfe_at, gone.mae_at)
        assert gone.mae - 1e-9 <= trip.realized_pnl <= gone.mfe + 1e-9


def looks_at(desk: Desk24, trip: RoundTrip) -> Iterator[tuple[datetime, Position]]:
    """Every snapshot of the position while it belonged to this trade."""
    later = trip.opened_at + timedelta(
        microseconds=1
    )  # a trade that ended at the instant of its entry was observed there
    for when, before, after in desk.looks:
        for snapshot, is_of in (
            (before, trip.opened_at < when and (trip.closed_at is None or when <= trip.closed_at)),
            (after, trip.opened_at <= when and (trip.closed_at is None or when < max(trip.closed_at, later))),
        ):
            position = snapshot.portfolio.by_key().get(trip.position_key)
            if position is None or position.direction != trip.direction:
                continue
            if is_of or (snapshot is after and when == trip.closed_at and is_step(position, trip)):
                yield when, position


def is_step(position: Position, trip: RoundTrip) -> bool:
    """Whether a position has the size and the average price of a trade at some time, as one that ends after a tick, at
    its instant, had."""
    held = [(step.size, step.average_cost) for step in trip.steps]
    return any((position.size, position.average_price) == pytest.approx(each) for each in held)


FALLING = (1.0, 1.0, 0.9, 0.9)
ENDS_AT_A_TICK = (
    Hour(ask=Ask(symbol="ETH", quantity=7.3)),
    Hour(eth=FALLING, ask=Ask(symbol="ETH", quantity=10.0, stop=0.02)),
    Hour(by_hand=(Ask(symbol="ETH", quantity=10.0), Ask(symbol="ETH", quantity=-30.0)), apart=0),
)
"""A trade that grows again, and ends, at the instant of the tick that observed its only stop."""


def check_with_all_fills(terms: PaperTerms, path: Sequence[Hour], *, with_bars: bool) -> None:
    """With every fill reported, realised and unrealised equal the broker's equity, and refolding changes nothing."""
    with a_store() as (memory, clock):
        desk = Desk24(memory, clock, terms=terms, with_bars=with_bars)

        def check() -> None:
            check_money(desk)
            check_positions(desk)

        desk.live((*path, Hour()), after=check)
        check_refolded(desk)
        assert memory.verify_audit().intact


@law(12)
@given(TERMS, PATHS, st.booleans())
@example(PaperTerms(), ENDS_AT_A_TICK, False)
def test_with_every_fill_reported_the_money_is_the_brokers_and_refolding_changes_nothing(
    terms: PaperTerms, path: tuple[Hour, ...], with_bars: bool
) -> None:
    check_with_all_fills(terms, path, with_bars=with_bars)


@pytest.mark.slow
@law(300)
@given(TERMS, PATHS, st.booleans())
def test_with_every_fill_reported_for_many_paths(terms: PaperTerms, path: tuple[Hour, ...], with_bars: bool) -> None:
    check_with_all_fills(terms, path, with_bars=with_bars)


def check_without_fills(terms: PaperTerms, path: Sequence[Hour], *, with_bars: bool) -> None:
    """With no fill reported, the open trades have the sizes of the broker's positions after every tick.

    Their average costs may differ: an exit and an entry between two ticks change the average, which proves nothing.
    """
    with a_store() as (memory, clock):
        desk = Desk24(memory, clock, terms=terms, reporting="never", with_bars=with_bars)
        desk.live((*path, Hour()), after=lambda: check_sizes(desk))
        check_refolded(desk)
        assert memory.verify_audit().intact


@law(8)
@given(TERMS, PATHS, st.booleans())
def test_with_no_fill_reported_the_ledger_has_the_brokers_positions_after_every_tick(
    terms: PaperTerms, path: tuple[Hour, ...], with_bars: bool
) -> None:
    check_without_fills(terms, path, with_bars=with_bars)


@pytest.mark.slow
@law(300)
@given(TERMS, PATHS, st.booleans())
def test_with_no_fill_reported_for_many_paths(terms: PaperTerms, path: tuple[Hour, ...], with_bars: bool) -> None:
    check_without_fills(terms, path, with_bars=with_bars)


def check_with_random_fills(terms: PaperTerms, path: Sequence[Hour], *, seed: int) -> None:
    """With fills one to three ticks late or never, the sizes equal the broker's after every tick."""
    with a_store() as (memory, clock):
        desk = Desk24(memory, clock, terms=terms, reporting="some", seed=seed)

        desk.live((*path, Hour(), Hour(), Hour()), after=lambda: check_sizes(desk))
        assert memory.verify_audit().intact


@law(8)
@given(TERMS, PATHS, st.integers(0, 2**16))
def test_with_fills_reported_at_random_the_sizes_are_the_brokers_after_every_tick(
    terms: PaperTerms, path: tuple[Hour, ...], seed: int
) -> None:
    check_with_random_fills(terms, path, seed=seed)


@pytest.mark.slow
@law(300)
@given(TERMS, PATHS, st.integers(0, 2**16))
def test_with_fills_reported_at_random_for_many_paths(terms: PaperTerms, path: tuple[Hour, ...], seed: int) -> None:
    check_with_random_fills(terms, path, seed=seed)


def signed(trade: Trade) -> float:
    return trade.open_size if trade.direction == "long" else -trade.open_size


AGENTS_PATHS = st.lists(st.builds(Hour, btc=MOVES, eth=MOVES, ask=st.none() | ASKS), min_size=2, max_size=8).map(tuple)
FREE_OF_FUNDING = TERMS.map(lambda terms: replace(terms, funding_rate=0.0))


def trades_of_session(path: Sequence[Hour], *, terms: PaperTerms, reporting: Reporting) -> list[Trade]:
    with a_store() as (memory, clock):
        desk = Desk24(memory, clock, terms=terms, reporting=reporting)
        desk.live((*path, Hour(), Hour()))
        assert memory.verify_audit().intact
        return desk.trades()


def money(trade: Trade) -> tuple[Any, ...]:
    when = trade.symbol, trade.direction, trade.status, trade.opened_at, trade.closed_at, trade.inferred
    return *when, trade.entry.reason, trade.entry.snapshot_id, trade.exit_reason, trade.exit_snapshot_id


def numbers(trade: Trade) -> list[float]:
    values = trade.entry_price, trade.exit_price, trade.size, trade.open_size, trade.realized_pnl, trade.fees, trade.pnl
    return [math.nan if each is None else each for each in values]


def check_late_equals_timely(path: Sequence[Hour], terms: PaperTerms) -> None:
    timely, late = (trades_of_session(path, terms=terms, reporting=each) for each in ("in time", "late"))
    assert [money(trade) for trade in late] == [money(trade) for trade in timely]
    for ours, theirs in zip(late, timely, strict=True):
        assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-9, abs=1e-9, nan_ok=True)


@law(6)
@given(FREE_OF_FUNDING, AGENTS_PATHS)
def test_a_broker_that_reports_one_tick_late_ends_with_the_trades_of_one_that_reports_in_time(
    terms: PaperTerms, path: tuple[Hour, ...]
) -> None:
    check_late_equals_timely(path, terms)


@pytest.mark.slow
@law(200)
@given(FREE_OF_FUNDING, AGENTS_PATHS)
def test_a_broker_that_reports_one_tick_late_for_many_paths(terms: PaperTerms, path: tuple[Hour, ...]) -> None:
    check_late_equals_timely(path, terms)


# Two databases.


def session(url: str, path: Sequence[Hour], *, terms: PaperTerms, reporting: Reporting) -> Dump:
    with a_store(url) as (memory, clock):
        desk = Desk24(memory, clock, terms=terms, reporting=reporting, seed=7)
        desk.live((*path, Hour(), Hour()))
        assert memory.verify_audit().intact
        return dump(memory)


@law(2)
@given(TERMS, PATHS, st.sampled_from(["in time", "never", "some"]))
def test_both_databases_hold_the_same_rows_after_the_same_session(
    terms: PaperTerms, path: tuple[Hour, ...], reporting: Reporting
) -> None:
    ours = session("sqlite://", path, terms=terms, reporting=reporting)
    theirs = session(fresh_postgres(), path, terms=terms, reporting=reporting)
    for table, rows in ours.items():
        assert rows == theirs[table], table


@pytest.mark.slow
@law(60)
@given(TERMS, PATHS, st.sampled_from(["in time", "never", "some"]))
def test_both_databases_hold_the_same_rows_after_many_sessions(
    terms: PaperTerms, path: tuple[Hour, ...], reporting: Reporting
) -> None:
    ours = session("sqlite://", path, terms=terms, reporting=reporting)
    assert ours == session(fresh_postgres(), path, terms=terms, reporting=reporting)


# Interrupted ticks.


class Cut(Exception):
    """The power fails."""


@contextmanager
def cut_at(memory: Memory, number: int) -> Iterator[None]:
    """Raise `Cut` at the n-th statement from here on."""
    engine: Any = memory.database._engine
    statements = 0

    def count(*_: object) -> None:
        nonlocal statements
        statements += 1
        if statements == number:
            raise Cut

    event.listen(engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", count)


def some_ticks(desk: Desk) -> list[Callable[[], object]]:
    """Ticks that open a trade, get a late fill, flip, close, and get a late fee."""
    long, short = a_position(2.0, stop_price=95.0), a_position(-1.0, average_price=104.0, mark=104.0)
    turn = a_report("turn", at(2), -3.0, 104.0, fee=3.0)
    return [
        lambda: desk.tick(0, [], [long], order=an_order(2.0), bars=[a_bar(-1, 100.0)], shown=[]),
        lambda: desk.tick(1, [long], fills=[a_report("in", at(0), 1.0, 99.0)], bars=[a_bar(0, 100.0)]),
        lambda: desk.tick(2, [replace(long, mark=104.0)], [short], done=[turn], mark=104.0, order=an_order(-3.0)),
        lambda: desk.tick(3, [short], [], mark=103.0, order=an_order(1.0)),
        lambda: desk.tick(4, fills=[a_report("fee", at(3.5), kind="fee", fee=1.0)]),
    ]


def test_a_tick_interrupted_at_any_statement_writes_nothing_and_repeated_writes_all(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock)
    cuts = 0
    for tick in some_ticks(desk):
        before = dump(memory)
        for number in range(1, 1000):
            try:
                with cut_at(memory, number):
                    tick()
            except Cut:
                cuts += 1
                assert dump(memory) == before
            else:
                break
        tick()
    assert cuts > 40
    assert memory.verify_audit().intact
    with a_store() as (whole, its_clock):
        for tick in some_ticks(Desk(whole, its_clock)):
            tick()
        assert dump(memory) == dump(whole)


# Backfill from decisions alone.

COPIED = (ACCOUNTS, STRATEGIES, DEPLOYMENTS, DECISIONS, BARS)
DERIVED = (FILLS, TRADES, MARKS, EPISODES)


def copy_decisions(memory: Memory, other: Memory, *more: Noun[Any]) -> None:
    """Copy only the tables from which backfill derives the ledger."""
    with memory.reading() as connection, other.database.writing(other.owner) as writing:
        nouns: tuple[Noun[Any], ...] = (*COPIED, *more)
        for noun in nouns:
            rows = [dict(row) for row in connection.execute(select(noun.table)).mappings()]
            if rows:
                writing.execute(noun.table.insert(), rows)


def derived_rows(memory: Memory) -> Dump:
    """The rows that a ledger derives from decisions, without the times at which they were recorded."""
    with memory.reading() as connection:
        return {
            noun.table.name: sorted(
                (tuple(row) for row in connection.execute(select(*(c for c in noun.table.c if c.name not in WHEN)))),
                key=repr,
            )
            for noun in DERIVED
        }


WHEN = ("recorded_at", "created_at")


def test_backfill_rebuilds_the_ledger_from_the_decisions(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    for tick in some_ticks(desk):
        tick()
    with a_store() as (other, later):
        copy_decisions(memory, other)
        later.at = at(100)
        filled = other.backfill(deployment=DEPLOYMENT)
        assert (filled.decisions, filled.opened, filled.closed, filled.replayed) == (5, 2, 2, False)
        assert derived_rows(other) == derived_rows(memory)
        assert other.backfill(deployment=DEPLOYMENT).replayed


@law(4)
@given(TERMS, PATHS, st.sampled_from(["in time", "never", "some"]))
def test_backfill_of_any_session_gives_the_rows_of_the_session(
    terms: PaperTerms, path: tuple[Hour, ...], reporting: Reporting
) -> None:
    with a_store() as (memory, clock), a_store() as (other, later):
        Desk24(memory, clock, terms=terms, reporting=reporting, seed=3).live((*path, Hour(), Hour()))
        copy_decisions(memory, other)
        later.at = clock.at + HOUR
        other.backfill(deployment=DEPLOYMENT)
        for table, rows in derived_rows(other).items():
            assert rows == derived_rows(memory)[table], table


def test_backfill_of_an_account_that_never_traded_is_done_once(memory: Memory, clock: FakeClock) -> None:
    Desk(memory, clock).tick(0)
    memory.backfill(deployment=DEPLOYMENT)
    assert memory.backfill(deployment=DEPLOYMENT).replayed
    assert memory.doctor().healthy
