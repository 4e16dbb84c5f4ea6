"""A backtest with reflections writes the same lessons every time; without a cadence it writes none."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backsight.core.decision import AgentDecision, AgentInput
from backsight.core.market import Bar
from backsight.core.orders import Order
from backsight.core.strategies import CadenceKind, MemoryOverrides
from backsight.memory import FREE, Memory, PaperBroker, open_simulation
from backsight.runtime.backtest import record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from support import dump

START = datetime(2025, 1, 6, tzinfo=UTC)
STEP = timedelta(hours=4)
MOVES = {8: 0.01, 16: -0.01}
"""The relative price change in the four hours from an hour on."""


class TwiceADay:
    """Buys at eight and at sixteen, and sells four hours later."""

    name, thesis, rules, avoid = "TwiceADay", "What opens, moves.", ("in at 8 and 16",), ()

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        if agent_input.portfolio.positions:
            return AgentDecision(
                order=Order(symbol="X", quantity=-agent_input.portfolio.positions[0].size, reason="out")
            )
        if agent_input.opened.at.hour in MOVES:
            price = agent_input.marks["X"]
            return AgentDecision(order=Order(symbol="X", quantity=1.0, stop_price=0.5 * price, reason="in"))
        return AgentDecision(reason="Not now.")


def market(days: int) -> dict[str, list[Bar]]:
    bars, price = [], 100.0
    for number in range(6 * days):
        opened = START + number * STEP
        close = price * (1.0 + MOVES.get(opened.hour, 0.0) * (1.0 + number % 7 / 10))
        prices: Any = {"open": price, "close": close, "high": max(price, close), "low": min(price, close)}
        bars.append(Bar(symbol="X", interval_seconds=14_400, opened_at=opened, **prices))
        price = close
    return {"X": bars}


def run(memory: Memory, clock: SimulatedClock, cadence: CadenceKind, *, days: int = 22) -> None:
    """Run some days of a market that falls in the afternoon."""
    agent, bars = TwiceADay(), market(days)
    record_history(memory, clock, bars)
    clock.at = START
    account = memory.open_account(venue="simulated", name="paper", mode="sim").account
    memory.save_strategy(name=agent.name, thesis=agent.thesis)
    learning = MemoryOverrides(cadence=cadence, every_n_trades=10)
    deployment = memory.deploy(strategy_name=agent.name, account="paper", memory=learning).deployment
    broker = PaperBroker(account.id, at=START, cash=10_000.0, terms=FREE)
    run_backtest(memory, clock, agent, broker, deployment=deployment.id, bars=bars, every=STEP)


@pytest.mark.parametrize(("cadence", "attempts"), [("per_n_trades", 4), ("daily", 23)])
def test_a_run_that_learns_leaves_the_same_rows_twice(cadence: CadenceKind, attempts: int) -> None:
    dumps = []
    for _ in range(2):
        clock = SimulatedClock(START)
        with open_simulation(clock) as memory:
            run(memory, clock, cadence)
            assert memory.verify_audit().intact
            listed = memory.list_lessons(strategy_name="TwiceADay", limit=100)
            trades = memory.list_trades(strategy_name="TwiceADay", limit=100).trades
            dumps.append(dump(memory))
    assert dumps[0] == dumps[1]
    assert len(listed.attempts) == attempts
    assert len(listed.notes) >= 1
    first, hashes = min(note.generated_at for note in listed.notes), {note.content_hash for note in listed.notes}
    assert {trade.entry.lessons_hash for trade in trades if trade.opened_at and trade.opened_at <= first} == {None}
    assert {trade.entry.lessons_hash for trade in trades if trade.opened_at and trade.opened_at > first} <= hashes
    assert any(trade.entry.lessons_hash for trade in trades)
    assert "16:00 UTC" in listed.notes[0].lessons_text or "session" in listed.notes[0].lessons_text


def test_by_default_a_run_learns_nothing() -> None:
    clock = SimulatedClock(START)
    with open_simulation(clock) as memory:
        run(memory, clock, "off", days=6)
        assert memory.list_lessons(strategy_name="TwiceADay").attempts == ()
