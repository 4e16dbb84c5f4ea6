"""A live session, its backtest and its replay show the same prompts, byte for byte."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.decision import AgentDecision, AgentInput, Decision, OpenedTick
from backsight.core.market import Bar, aggregate, with_longer_intervals
from backsight.core.orders import Order
from backsight.core.simulated_market import simulated_bars
from backsight.memory import Memory, PaperBroker, PaperTerms, open_memory
from backsight.runtime.backtest import record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.live import LiveSettings, run_live
from backsight.runtime.replay import recorded_session, replay
from backsight.store.bars import BARS
from backsight.store.reading import fetch, owned
from backsight.testing import T0

START = T0.replace(hour=0) - timedelta(days=30)
DAYS, EVERY = 22, timedelta(hours=6)
TERMS = PaperTerms(fee_rate=0.0005, slippage=0.0002)
SYMBOLS = ("BTC", "XAUUSD")
MARKET = {
    symbol: aggregate(
        simulated_bars(
            random.Random(seed),
            symbol=symbol,
            start=START,
            days=DAYS,
            price=100.0,
            daily_atr=4.0,
            rests=symbol == "XAUUSD",
        ),
        interval_seconds=1800,
    )
    for seed, symbol in enumerate(SYMBOLS)
}
LAST = max(series[-1].closes_at for series in MARKET.values())
SHOWN = ("volatility_regime", "atr_d1", "atr_h1", "regime")


class Gambler:
    """Enters whenever it is flat, with a stop and a target near enough to be reached between two ticks."""

    def __init__(self) -> None:
        self.rng = random.Random(5)

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        flat = [symbol for symbol in SYMBOLS if symbol not in {each.symbol for each in agent_input.portfolio.positions}]
        if not flat or self.rng.random() < 0.3:
            return AgentDecision(reason="waiting")
        symbol, way = self.rng.choice(flat), self.rng.choice([-1.0, 1.0])
        mark = agent_input.marks[symbol]
        stop, target = mark * (1 - 0.008 * way), mark * (1 + 0.012 * way)
        order = Order(symbol=symbol, quantity=2.0 * way, reason="a coin", stop_price=stop, target_price=target)
        return AgentDecision(order=order)


class Recording(Memory):
    """The memory of another one's store, which keeps every tick that it opens."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(database=memory.database, clock=memory.clock, owner=memory.owner, actor=memory.actor)
        self.opened: list[OpenedTick] = []

    def open_tick(self, **arguments: Any) -> OpenedTick:
        self.opened.append(super().open_tick(**arguments))
        return self.opened[-1]

    def ended(self) -> "Session":
        """Everything about the session; closes the store."""
        with self:
            with self.reading() as connection:
                bars = {fact.bar for fact in fetch(connection, BARS, owned(BARS, self.owner))}
            return Session(
                prompts=[[segment.text for segment in (*each.system, *each.segments)] for each in self.opened],
                bars=bars,
                decisions=recorded_session(self, "Gambler@main"),
                exits={trade.exit_reason for trade in self.list_trades(limit=100).trades},
                contexts=self.opened[-1].contexts,
            )


@dataclass(frozen=True, kw_only=True)
class Session:
    """What was shown, decided and stored in a session."""

    prompts: list[list[str]]
    bars: set[Bar]
    decisions: list[Decision]
    exits: set[str | None]
    contexts: tuple[ContextVector, ...]
    """Of the last tick."""


class Window:
    """A feed that gives the last bars only."""

    def __init__(self, most: int) -> None:
        self.most = most

    def closed_bars(self, symbol: str, *, until: datetime) -> Sequence[Bar]:
        return [bar for bar in MARKET[symbol] if bar.closes_at <= until][-self.most :]


def a_memory(clock: SimulatedClock, url: str = "sqlite://") -> Recording:
    memory = Recording(open_memory(url, owner="ana", actor="test", clock=clock))
    memory.open_account(venue="paper", name="main", mode="paper", currency="USD")
    memory.save_strategy(name="Gambler", risk_per_trade=0.01)
    memory.deploy(strategy_name="Gambler", account="main")
    return memory


def a_broker() -> PaperBroker:
    return PaperBroker("main", at=START, cash=10_000.0, terms=TERMS)


def live(url: str = "sqlite://", *, most: int = 10**6, restart_after: int | None = None) -> Session:
    """A live session over the whole market, also of a loop that is started again after some ticks."""
    clock = SimulatedClock(START)
    memory, broker, agent, ticks = a_memory(clock, url), a_broker(), Gambler(), [0]
    settings = LiveSettings(deployment="Gambler@main", symbols=list(SYMBOLS), every=EVERY, holder="loop")

    def wait_until(at: datetime) -> bool:
        if at > LAST or ticks[0] == restart_after:
            ticks[0] += 1
            return False
        new = (bar for series in MARKET.values() for bar in series if clock.now() < bar.closes_at <= at)
        broker.advance(sorted(new, key=lambda bar: bar.closes_at))
        clock.at, ticks[0] = at, ticks[0] + 1
        return True

    for _ in range(1 if restart_after is None else 2):
        run_live(memory, broker, agent, Window(most), settings, clock=clock, wait_until=wait_until)
    return memory.ended()


@cache
def backtest() -> Session:
    clock = SimulatedClock(START)
    memory = a_memory(clock)
    record_history(memory, clock, MARKET)
    clock.at = START
    run_backtest(memory, clock, Gambler(), a_broker(), deployment="Gambler@main", bars=MARKET, every=EVERY)
    return memory.ended()


def replayed(session: Session) -> Session:
    clock = SimulatedClock(START)
    memory = a_memory(clock)
    replay(memory, clock, session.decisions, deployment="Gambler@main", bars=MARKET)
    return memory.ended()


def test_live_backtest_and_replay_show_the_same_prompts(url: str) -> None:
    session, simulated = live(url), backtest()
    again = replayed(session)
    assert session.prompts == simulated.prompts == again.prompts
    assert session.bars == simulated.bars == again.bars
    # The session is long enough to mean something.
    assert len(session.prompts) == DAYS * 4
    assert {"stop_loss", "take_profit"} <= session.exits
    assert all(getattr(context, name) is not None for context in session.contexts for name in SHOWN)


@pytest.mark.parametrize("most", [40, 400])
def test_a_feed_that_gives_the_last_bars_only_and_a_restart_change_no_prompt(most: int) -> None:
    session = live(most=most, restart_after=40)
    assert session.prompts == backtest().prompts
    whole = {bar for series in MARKET.values() for bar in with_longer_intervals(series)}
    assert session.bars == whole
