"""Backtests are reproducible to the byte, show agents no future data, and pause while markets are closed."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from backsight.core.decision import AgentDecision, AgentInput
from backsight.core.errors import Invalid
from backsight.core.market import Bar
from backsight.core.orders import Order
from backsight.core.simulated_market import simulated_bars
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory, PaperBroker, PaperTerms, open_memory, open_simulation
from backsight.runtime.backtest import BacktestResult, record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.load import CodedStrategy, example, load_agent, memory_for
from support import dump

START = datetime(2025, 1, 6, tzinfo=UTC)
EXAMPLES = {
    "volatility_breakout.py": "VolatilityBreakout",
    "intraday_momentum.py": "IntradayMomentum",
    "mean_reversion.py": "MeanReversion",
}
TERMS = PaperTerms(fee_rate=0.0005, slippage=0.0002, funding_rate=0.0001)


def market(days: int = 9, *, seed: int = 7, rests: bool = False) -> dict[str, list[Bar]]:
    rng = random.Random(seed)
    bars = simulated_bars(
        rng, symbol="BTC/USDT", start=START, days=days, price=98_000.0, daily_atr=3_100.0, rests=rests
    )
    return {"BTC/USDT": bars}


def run(
    memory: Memory,
    clock: SimulatedClock,
    agent: CodedStrategy,
    bars: dict[str, list[Bar]],
    *,
    terms: PaperTerms = TERMS,
    every: timedelta = timedelta(hours=1),
    overrides: MemoryOverrides | None = None,
) -> BacktestResult:
    clock.at = START
    record_history(memory, clock, bars)
    clock.at = START
    account = memory.open_account(venue="simulated", name="paper", mode="sim").account
    memory.save_strategy(name=agent.name, thesis=agent.thesis)
    deployment = memory.deploy(
        strategy_name=agent.name, account="paper", memory=overrides or memory_for(agent)
    ).deployment
    broker = PaperBroker(account.id, at=START, cash=10_000.0, terms=terms)
    return run_backtest(memory, clock, agent, broker, deployment=deployment.id, bars=bars, every=every)


@contextmanager
def simulation() -> Iterator[tuple[Memory, SimulatedClock]]:
    clock = SimulatedClock(START)
    with open_simulation(clock) as memory:
        yield memory, clock


def load_example(file: str) -> CodedStrategy:
    return load_agent(f"{example(file)}:{EXAMPLES[file]}")


@pytest.mark.parametrize("file", EXAMPLES)
def test_an_example_run_twice_leaves_the_same_rows(file: str) -> None:
    dumps = []
    for _ in range(2):
        with simulation() as (memory, clock):
            assert run(memory, clock, load_example(file), market()).closed >= 1
            assert memory.verify_audit().intact
            dumps.append(dump(memory))
    assert dumps[0] == dumps[1]


@pytest.mark.parametrize("reports_fills", [True, False])
def test_a_backtest_leaves_the_same_rows_on_every_database(url: str, reports_fills: bool) -> None:
    bars, terms = market(days=3), replace(TERMS, reports_fills=reports_fills)
    overrides = MemoryOverrides(enabled=reports_fills)
    with simulation() as (memory, clock):
        run(memory, clock, load_example("mean_reversion.py"), bars, terms=terms, overrides=overrides)
        expected = dump(memory)
    clock = SimulatedClock(START)
    with open_memory(url, owner="me", actor="simulation", clock=clock) as memory:
        run(memory, clock, load_example("mean_reversion.py"), bars, terms=terms, overrides=overrides)
        assert dump(memory) == expected


class Recorder:
    """Records its inputs, and buys once."""

    name, thesis = "Recorder", "None."
    rules: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.inputs: list[AgentInput] = []

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        self.inputs.append(agent_input)
        order = Order(symbol="BTC/USDT", quantity=0.01, reason="once") if len(self.inputs) == 3 else None
        return AgentDecision(order=order, reason="waiting")


def test_an_agent_sees_only_closed_bars() -> None:
    agent = Recorder()
    with simulation() as (memory, clock):
        run(memory, clock, agent, market(days=2))
    for agent_input in agent.inputs:
        assert max(bar.closes_at for bar in agent_input.bars["BTC/USDT"]) <= agent_input.opened.at
        (context,) = agent_input.opened.contexts
        assert context.price == agent_input.bars["BTC/USDT"][-1].close == agent_input.marks["BTC/USDT"]


def test_later_bars_do_not_change_earlier_inputs() -> None:
    """The store has the future bars; changing the bars after an instant changes no input up to that instant."""
    bars, agents = market(days=3), (Recorder(), Recorder())
    until = START + timedelta(days=1)
    changed = [
        bar if bar.closes_at <= until else replace(bar, open=1.0, high=2.0, low=0.5, close=1.5)
        for bar in bars["BTC/USDT"]
    ]
    for agent, series in zip(agents, (bars["BTC/USDT"], changed), strict=True):
        with simulation() as (memory, clock):
            run(memory, clock, agent, {"BTC/USDT": series})
    openings = [
        [agent_input.opened for agent_input in agent.inputs if agent_input.opened.at <= until] for agent in agents
    ]
    assert openings[0] == openings[1]
    assert len(openings[0]) == 24


def test_there_are_no_ticks_while_the_market_is_closed() -> None:
    agent = Recorder()
    with simulation() as (memory, clock):
        ran = run(memory, clock, agent, market(days=14, rests=True))
    instants = [agent_input.opened.at for agent_input in agent.inputs]
    assert ran.ticks == len(instants) < 14 * 24
    assert not [at for at in instants if at.isoweekday() == 6 and at.hour > 0]


def test_a_position_is_carried_over_a_market_close() -> None:
    with simulation() as (memory, clock):
        ran = run(memory, clock, Recorder(), market(days=14, rests=True))
        assert (ran.opened, ran.closed) == (1, 0)
        page = memory.list_decisions(deployment="Recorder@paper", kind="executed")
        (decision,) = page.decisions
        assert decision.reason == "once"
        answer = memory.get_trade(trade_id=decision.opened[0])
        assert answer.mark is not None
        assert answer.mark.at == ran.last_at
        assert answer.trade.funding < 0  # type: ignore[union-attr]


def test_too_few_bars_for_one_decision_are_refused() -> None:
    with simulation() as (memory, clock), pytest.raises(Invalid, match="bars: no interval is complete"):
        run(memory, clock, Recorder(), {"BTC/USDT": market()["BTC/USDT"][:5]})


def test_the_drawdown_is_from_the_peak() -> None:
    with simulation() as (memory, clock):
        ran = run(memory, clock, Recorder(), market(days=2))
    assert replace(ran, equity=(100.0, 120.0, 90.0, 130.0)).drawdown == 0.25
