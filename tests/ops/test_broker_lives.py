"""Random lives of an account at the simulated broker: when every fill is known, the ledger has the broker's trades."""

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.decision import Verdict
from backsight.core.orders import Order, ReportedFill
from backsight.core.trades.trade import Trade
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.store.instruments import INSTRUMENTS as INSTRUMENT_TABLE
from backsight.store.memories import EPISODES
from backsight.store.reading import fetch, owned
from backsight.store.trades import TRADES
from backsight.testing import T0, FakeClock
from backsight.testing.broker import BrokerSimulator, ReportTerms, SimulatedInstrument, SimulatedTrade
from ops.test_tick_laws import a_store, copy_decisions, derived_rows, law, signed

CASH = 100_000.0
SPOT = "BTC/USDT"
INVERSE = "XBTUSD"
LOT = 0.01
INSTRUMENTS = (
    SimulatedInstrument(symbol=SPOT, lot_step=LOT, fee_rate=0.001, fee_coin="BTC"),
    SimulatedInstrument(symbol="ETH-PERP", fee_rate=-0.0001),
    SimulatedInstrument(symbol="ES", multiplier=50.0, fee_rate=0.00002),
    SimulatedInstrument(symbol="AAPL"),
    SimulatedInstrument(symbol="FB", fee_rate=0.0001),
    SimulatedInstrument(symbol="USDJPY", currency="JPY", fee_rate=0.00005),
    SimulatedInstrument(symbol="CL-JUN", multiplier=10.0),
    SimulatedInstrument(symbol=INVERSE, multiplier=100.0, inverse=True, currency="BTC", fee_rate=0.0005),
)
PRICES = {
    SPOT: 100.0,
    "ETH-PERP": 20.0,
    "ES": 50.0,
    "AAPL": 80.0,
    "FB": 90.0,
    "USDJPY": 150.0,
    "CL-JUN": 70.0,
    INVERSE: 100.0,
}
RENAMED = {"FB": "META"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How an account lives, and what its broker tells."""

    symbols: tuple[str, ...]
    hedging: bool
    averages: bool
    results: bool
    order_ids: bool
    late: float
    """Share of the fills that are reported one to four snapshots late."""
    kept_back: float
    """Share of the fills that are reported at the end, or never."""
    exact_instants: bool
    """Whether fills may be at the very instant of a snapshot."""
    underlyings: bool
    """Whether the underlying of renamed symbols is known."""
    ticks: int
    lot_steps: bool = True
    """Whether lot steps are saved before the first tick."""


def random_habits(rng: random.Random, **given_habits: Any) -> Habits:
    """Habits drawn at random, except those that are given."""
    drawn: dict[str, Any] = {
        "symbols": tuple(rng.sample(sorted(PRICES), rng.choice([1, 1, 2, 3]))),
        "hedging": rng.random() < 0.25,
        "averages": rng.random() < 0.7,
        "results": rng.random() < 0.3,
        "order_ids": rng.random() < 0.7,
        "late": rng.choice([0.0, 0.2, 0.4, 0.8]),
        "kept_back": rng.choice([0.0, 0.0, 0.2]),
        "exact_instants": rng.random() < 0.3,
        "underlyings": rng.random() < 0.5,
        "ticks": rng.randint(3, 10),
    }
    return Habits(**(drawn | given_habits))


class Life:
    """An account on which a person and an agent trade, and the ticks that record it."""

    def __init__(self, memory: Memory, clock: FakeClock, rng: random.Random, habits: Habits) -> None:
        self.memory, self.clock, self.rng, self.habits = memory, clock, rng, habits
        reports = ReportTerms(
            averages=habits.averages,
            results=habits.results,
            order_ids=habits.order_ids,
            delay=self._delay,
            repeated=lambda _: rng.random() < 0.1,
        )
        self.broker = BrokerSimulator(INSTRUMENTS, at=T0, cash=CASH, hedging=habits.hedging, reports=reports)
        self.broker.set_rate("JPY", 0.0066)
        for symbol, price in PRICES.items():
            self._move(symbol, price)
        clock.at = T0
        mode: Any = "hedging" if habits.hedging else "netting"
        memory.open_account(venue="x", name="main", currency="USD", mode="paper", position_mode=mode)
        for each in INSTRUMENTS:
            terms: dict[str, Any] = {"currency": each.currency, "inverse": each.inverse}
            lot_step = each.lot_step if habits.lot_steps else None
            memory.save_instrument(symbol=each.symbol, multiplier=each.multiplier, lot_step=lot_step, **terms)
        if habits.underlyings:
            for symbol in ("FB", "META"):
                memory.save_instrument(symbol=symbol, underlying="Meta Platforms")
        memory.save_strategy(name="S")
        memory.deploy(strategy_name="S", account="main")
        self.decisions: dict[str | None, str] = {}
        """Ids of decisions by the names that the broker has of them."""
        self.answers: list[ClosedTick] = []

    def live(self) -> None:
        for _ in range(self.habits.ticks):
            for _ in range(self.rng.choice([0, 0, 1, 1, 2, 3])):
                self.broker.wait(self.rng.randint(1, 15))
                self._event()
            if not self.habits.exact_instants or self.rng.random() < 0.6:
                self.broker.wait(self.rng.randint(1, 15))
            self.tick(self._order() if self.rng.random() < 0.7 else None)

    def report_everything(self) -> None:
        """Tick until nothing is left to report."""
        self.broker.cancel_orders()
        for _ in range(3):
            self.broker.release()
            self.broker.wait(30)
            self.tick(None)

    def tick(self, order: Order | None) -> None:
        """Close a tick in which the agent places an order, or none."""
        broker, name = self.broker, f"tick {len(self.answers)}"
        at, before = broker.at, broker.snapshot()
        if order is not None:
            self._pass_a_second()
            order = replace(order, order_id=self._place(order, name))
            self._pass_a_second()
        after = broker.snapshot()
        self.clock.at = broker.at
        last = self.answers[-1].decision if self.answers else None
        answer = self.memory.close_tick(
            deployment="S@main",
            at=at,
            before=before,
            after=after,
            verdict=Verdict(kind="noop" if order is None else "executed"),
            proposal=order,
            sequence=last.sequence + 1 if last is not None and last.at == at else 0,
        )
        self.decisions[name] = answer.decision.id
        self.answers.append(answer)

    def _pass_a_second(self) -> None:
        if not self.habits.exact_instants or self.rng.random() < 0.5:
            self.broker.wait(1 / 60)

    def _delay(self, _: ReportedFill) -> int | None:
        if self.rng.random() < self.habits.kept_back:
            return None
        return self.rng.randint(1, 4) if self.rng.random() < self.habits.late else 0

    def _quoted(self) -> list[str]:
        names = (each for symbol in self.habits.symbols for each in (symbol, RENAMED.get(symbol)))
        return [symbol for symbol in names if symbol is not None and symbol in self.broker.marks]

    def _order(self) -> Order | None:
        """An order that enters, adds, reduces, closes or reverses; nothing is sold short for cash."""
        if not self._quoted():
            return None
        symbol = self.rng.choice(self._quoted())
        sizes = {key: size for key, size in self.broker.sizes().items() if self.broker.symbol_of(key) == symbol}
        key = None
        if self.habits.hedging and sizes and self.rng.random() < 0.7:
            key = self.rng.choice(sorted(sizes))
        size = sizes.get(key or symbol, 0.0)
        quantity = self.rng.choice([1, -1]) * self.rng.choice([0.5, 1.0, 2.0, 3.0])
        if size and self.rng.random() < 0.5:
            quantity = -size
        if symbol == SPOT and quantity < 0:  # coins of a waiting sale cannot be sold again
            free = size + sum(each for each in self.broker.waiting(key or symbol) if each < 0)
            quantity = round(-max(0, math.floor(min(-quantity, free) / LOT + 1e-6)) * LOT, 6)
        return Order(symbol=symbol, quantity=quantity, position_key=key, reason="because") if quantity else None

    def _place(self, order: Order, name: str | None) -> str:
        """Place an order at the mark, or with a limit near it, in one part or several."""
        parts = self.rng.choice([1, 1, 1, 2, 3])
        terms: dict[str, Any] = {"position_key": order.position_key, "decision": name, "parts": parts}
        if self.rng.random() < 0.3:
            limit = self.broker.marks[order.symbol] * (0.99 if order.quantity > 0 else 1.01)
            return self.broker.limit_order(order.symbol, order.quantity, round(limit, 4), **terms)
        return self.broker.market_order(order.symbol, order.quantity, **terms)

    def _move(self, symbol: str, price: float) -> None:
        if symbol == INVERSE:
            self.broker.set_rate("BTC", price)
        if symbol == "USDJPY":
            self.broker.set_rate("JPY", self.rng.choice([0.0064, 0.0066, 0.007]))
        self.broker.move(symbol, price)

    def _event(self) -> None:
        """Something that happens between ticks."""
        if not self._quoted():
            return
        symbol, chance = self.rng.choice(self._quoted()), self.rng.random()
        if chance < 0.4:
            self._move(symbol, round(self.broker.marks[symbol] * self.rng.choice([0.97, 0.99, 1.005, 1.03]), 4))
        elif chance < 0.75:
            order = self._order()
            if order is not None:
                self._place(order, None)
        elif chance < 0.8:
            self.broker.deposit(self.rng.choice([500.0, -250.0]))
        else:
            self._special_event(symbol)

    def _special_event(self, symbol: str) -> None:
        if symbol == "ETH-PERP":
            self.broker.pay_funding(symbol, self.rng.choice([0.001, -0.002]))
        elif symbol == "FB":
            self.broker.rename(symbol, RENAMED[symbol])
        elif symbol == "AAPL" and self.rng.random() < 0.5:
            self.broker.pay_dividend(symbol, 0.25)
        elif symbol == "AAPL":
            self.broker.split(symbol, self.rng.choice([2.0, 10.0, 0.5]))
        elif symbol == "CL-JUN" and self.rng.random() < 0.3:
            self.broker.expire(symbol, self.broker.marks[symbol])
        elif symbol == SPOT:
            large = [
                key for key, size in self.broker.sizes().items() if self.broker.symbol_of(key) == SPOT and size > 1
            ]
            for key in large:
                self.broker.withdraw_units(key, 0.25)

    def trades(self) -> list[Trade]:
        with self.memory.reading() as connection:
            return fetch(connection, TRADES, owned(TRADES, self.memory.owner))


class Row(NamedTuple):
    """A trade, as far as ledger and broker must agree on it."""

    opened_at: datetime | None
    symbol: str
    direction: str
    closed_at: datetime | None
    numbers: tuple[float, ...]
    """Size, open size, rest, realised PnL, fees and funding."""
    decisions: tuple[str | None, ...]
    """That of the entry and that of the exit; empty if fills do not name their orders."""


def row_of(trade: Trade | SimulatedTrade, decisions: tuple[str | None, ...]) -> Row:
    numbers = trade.size or 0.0, trade.open_size, trade.rest, trade.realized_pnl or 0.0, trade.fees, trade.funding
    rounded = tuple(round(each, 6) + 0.0 for each in numbers)
    return Row(trade.opened_at, trade.symbol, trade.direction, trade.closed_at, rounded, decisions)


def check_trades(life: Life) -> None:
    """The ledger has the trades of the broker, to a millionth, and each belongs to the same decisions."""
    named = life.habits.order_ids
    ours = [row_of(each, (each.entry.snapshot_id, each.exit_snapshot_id) if named else ()) for each in life.trades()]
    ids = life.decisions.get
    theirs = [
        row_of(each, (ids(each.entry_decision), ids(each.exit_decision)) if named else ())
        for each in life.broker.trades()
    ]
    by_time = sorted(ours, key=repr), sorted(theirs, key=repr)
    for mine, its in zip(*by_time, strict=True):
        assert mine[:4] == its[:4]
        assert mine.numbers == pytest.approx(its.numbers, rel=1e-9, abs=2e-6)
        assert mine.decisions == its.decisions


def check_sizes(life: Life) -> None:
    """The ledger's open positions are the broker's; a rest is none."""
    hedging = life.habits.hedging  # else the broker names a position by its symbol, also by a new one
    ours = {
        (each.position_key if hedging else each.symbol): signed(each) for each in life.trades() if each.status == "open"
    }
    theirs = life.broker.sizes()
    for key in {*ours, *theirs}:
        step = LOT if life.broker.symbol_of(key) == SPOT else 1e-9
        assert ours.get(key, 0.0) == pytest.approx(theirs.get(key, 0.0), abs=step)


@contextmanager
def a_life(rng: random.Random, **habits: Any) -> Iterator[Life]:
    with a_store() as (memory, clock):
        yield Life(memory, clock, rng, random_habits(rng, **habits))


def check_life(rng: random.Random, **habits: Any) -> None:
    """After every tick the sizes agree; when every fill is known, so do the trades."""
    with a_life(rng, **habits) as life:
        life.live()
        check_sizes(life)
        life.report_everything()
        check_sizes(life)
        check_trades(life)
        assert life.memory.verify_audit().intact


SEEDS = st.integers(0, 2**32).map(random.Random)


@pytest.mark.parametrize("seed", range(12))
def test_when_every_fill_is_known_the_ledger_has_the_trades_of_the_broker(seed: int) -> None:
    check_life(random.Random(seed))  # the same lives in every run; the slow test draws new ones


@pytest.mark.parametrize(
    ("seed", "habits"),
    [
        (7234, {}),  # coins are withdrawn from a position whose entry is reported later
        (7485, {}),  # sales without their entry seem to be a short position; what the broker shows is a rest
        (119, {"symbols": (SPOT,), "late": 0.8}),  # a late withdrawal from a position of which no fill is read
    ],
)
def test_rests_and_withdrawals_of_coins_beside_late_entries(seed: int, habits: dict[str, Any]) -> None:
    check_life(random.Random(seed), **habits)


@pytest.mark.parametrize(("seed", "late"), [(1, 0.0), (10, 0.0), (209, 0.4)])
def test_a_lot_step_that_is_saved_late_gives_the_trades_of_the_broker(seed: int, late: float) -> None:
    spot: dict[str, Any] = {"symbols": (SPOT,), "lot_steps": False, "hedging": False, "kept_back": 0.0}
    with a_life(random.Random(seed), late=late, **spot) as life:
        life.live()
        before = len(life.trades())
        life.clock.at = life.broker.at
        life.memory.save_instrument(symbol=SPOT, lot_step=LOT)
        life.report_everything()
        assert len(life.trades()) > before, "rests joined trades"
        check_sizes(life)
        check_trades(life)
        assert life.memory.verify_audit().intact


@pytest.mark.parametrize(
    ("seed", "habits"),
    [
        (20068, {}),  # a short position that was reversed under the old name, seen under the new one
        (20111, {}),  # an entry under the old name, first seen under the new one
        (60002, {"symbols": ("AAPL",)}),  # an exit and an entry in parts, without order ids
    ],
)
def test_what_happens_at_the_very_instant_of_a_snapshot(seed: int, habits: dict[str, Any]) -> None:
    check_life(random.Random(seed), **habits)


def test_a_split_at_the_instant_of_the_close_that_follows_it() -> None:
    check_life(random.Random(1131))


@pytest.mark.parametrize("seed", [29, 33, 109, 182, 202])
def test_late_splits_with_any_trade_in_their_interval(seed: int) -> None:
    check_life(random.Random(seed), symbols=("AAPL",))


@pytest.mark.parametrize("seed", [5, 8, 54, 90])
def test_late_renames_with_any_trade_in_their_interval(seed: int) -> None:
    check_life(random.Random(seed), symbols=("FB",))


@pytest.mark.parametrize(("seed", "symbol"), [(29, "AAPL"), (182, "AAPL"), (8, "FB"), (54, "FB")])
def test_backfill_of_a_life_with_late_splits_and_renames_gives_the_same_ledger(seed: int, symbol: str) -> None:
    with a_life(random.Random(seed), symbols=(symbol,)) as life, a_store() as (other, later):
        life.live()
        life.report_everything()
        copy_decisions(life.memory, other, INSTRUMENT_TABLE)
        later.at = life.clock.at
        filled = other.backfill(deployment="S@main")
        assert not filled.replayed
        for table, rows in derived_rows(other).items():
            assert rows == derived_rows(life.memory)[table], table


@pytest.mark.slow
@law(400)
@given(SEEDS)
def test_when_every_fill_is_known_for_many_lives(rng: random.Random) -> None:
    check_life(rng)


def named_meanwhile(life: Life, trade: Trade) -> bool:
    """Whether the answer of a tick named something between the entry of a trade and the tick that recorded its exit."""
    assert trade.opened_at is not None
    assert trade.closed_at is not None
    decisions = [answer.decision for answer in life.answers]
    first = next(number for number, each in enumerate(decisions) if each.broker_at >= trade.opened_at)
    last = next(number for number, each in enumerate(decisions) if each.broker_at >= trade.closed_at)
    return any(contradictions_named(answer) for answer in life.answers[first : last + 1])


def contradictions_named(answer: ClosedTick) -> list[str]:
    """The notes of a tick, without those on rests."""
    return [note for note in answer.notes if "save_instrument with lot_step" not in note]


def contradiction(life: Life, trade: Trade) -> float:
    """By how much a trade differs from what the broker earned in its time, as a share of its notional."""
    assert trade.opened_at is not None
    assert trade.closed_at is not None
    earned = math.fsum(
        each.realized_pnl + each.funding - each.fees
        for each in life.broker.trades()
        if each.closed_at is not None and trade.opened_at <= each.opened_at and each.closed_at <= trade.closed_at
    )
    return abs((trade.pnl or 0.0) - earned) / (trade.notional(trade.size) or 1.0)


def check_unreported(rng: random.Random) -> int:
    """What is learned while fills are missing agrees with equity, or is known to be inferred, or is named.

    Returns the number of results that contradict equity and are named.
    """
    with a_life(rng, kept_back=0.4, late=0.0, hedging=False, symbols=("ETH-PERP",), ticks=8) as life:
        life.live()
        check_sizes(life)
        with life.memory.reading() as connection:
            learned = {each.trade_id for each in fetch(connection, EPISODES, owned(EPISODES, life.memory.owner))}
        wrong = [
            trade
            for trade in life.trades()
            if trade.id in learned and not trade.inferred and contradiction(life, trade) > 0.01
        ]
        assert all(named_meanwhile(life, trade) for trade in wrong)
        return len(wrong)


@law(10)
@given(SEEDS)
def test_no_result_that_contradicts_equity_is_learned_without_being_named(rng: random.Random) -> None:
    check_unreported(rng)


@law(6)
@given(SEEDS)
def test_where_every_fill_is_reported_in_time_no_answer_names_a_contradiction(rng: random.Random) -> None:
    in_dollars = tuple(each.symbol for each in INSTRUMENTS if each.currency is None)
    with a_life(rng, late=0.0, kept_back=0.0, symbols=in_dollars) as life:
        life.live()
        assert [note for answer in life.answers for note in contradictions_named(answer)] == []


@pytest.mark.slow
def test_no_result_that_contradicts_equity_is_learned_unnamed_in_many_lives() -> None:
    assert sum(check_unreported(random.Random(seed)) for seed in range(400)) > 0
