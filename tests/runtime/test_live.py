"""A deployment run by the clock, and the replay of its recorded session."""

import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from backsight.core.decision import AgentDecision, AgentInput
from backsight.core.market import Bar
from backsight.core.orders import Order
from backsight.core.simulated_market import simulated_bars
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory, PaperBroker, PaperTerms
from backsight.runtime.live import LiveSettings, run_live
from backsight.runtime.replay import recorded_session
from backsight.testing import T0, FakeClock

START = T0 - timedelta(days=1)
TERMS = PaperTerms(fee_rate=0.0005, slippage=0.0002)
BARS = simulated_bars(random.Random(3), symbol="BTC", start=START, days=2, price=100.0, daily_atr=4.0)


class Bars:
    """A feed of bars computed in advance."""

    def closed_bars(self, symbol: str, *, until: datetime) -> Sequence[Bar]:
        return [bar for bar in BARS if bar.closes_at <= until]


class Turning:
    """Buys, buys more, turns short, and closes; raises once, at the call `fails_at`."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.calls = 0
        self.fails_at = fails_at

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        self.calls += 1
        if self.calls == self.fails_at:
            raise RuntimeError("the model is away")
        quantity = {2: 10.0, 5: 5.0, 8: -30.0, 12: 15.0}.get(self.calls)
        if quantity is None:
            return AgentDecision(reason="nothing to do")
        order = Order(symbol="BTC", quantity=quantity, reason=f"call {self.calls}")
        return AgentDecision(
            order=order, confidence=0.6, model="m-1", input_tokens=100, cost=0.01, citations=("rule 3",)
        )


class Doubling(Turning):
    """Gives its orders twice, the second one far too large for the account, and an answer too odd to be stored."""

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        decision = super().decide(agent_input)
        further = [replace(order, quantity=1e6 * order.quantity, reason="all in") for order in decision.orders]
        return replace(decision, further_orders=tuple(further), response=f"\0 call {self.calls} " + "x" * 100_000)


def deployed(memory: Memory) -> str:
    account = memory.open_account(venue="paper", name="live", mode="paper", currency="EUR").account
    memory.save_strategy(name="Turning")
    memory.deploy(strategy_name="Turning", account="live", memory=MemoryOverrides(holdout=0.2))
    return account.id


def run_session(memory: Memory, clock: FakeClock, agent: Turning, *, ticks: int = 16) -> int:
    """Run an hourly session in which the market advances while the loop waits."""
    broker = PaperBroker(deployed(memory), at=START, cash=1_000.0, terms=TERMS)
    left = [ticks]

    def wait_until(at: datetime) -> bool:
        broker.advance([bar for bar in BARS if clock.now() < bar.closes_at <= at])
        clock.at, left[0] = at, left[0] - 1
        return left[0] >= 0

    clock.at = START
    return run_live(
        memory,
        broker,
        agent,
        Bars(),
        LiveSettings(deployment="Turning@live", symbols=["BTC"], every=timedelta(hours=1), usd_rate=lambda: 1.1),
        clock=clock,
        wait_until=wait_until,
    )


def test_a_live_run_ticks_at_every_whole_hour_until_stopped(memory: Memory, clock: FakeClock) -> None:
    assert run_session(memory, clock, Turning()) == 16
    decisions = recorded_session(memory, "Turning@live")
    assert [each.at - START for each in decisions] == [timedelta(hours=n) for n in range(1, 17)]
    long, short = reversed(memory.list_trades(deployment="Turning@live").trades)
    assert [(each.direction, each.size, each.exit_reason) for each in (long, short)] == [
        ("long", 15.0, "call 8"),
        ("short", 15.0, "call 12"),
    ]
    assert long.realized_pnl_usd == pytest.approx((long.realized_pnl or 0.0) * 1.1)
    assert memory.verify_audit().intact


def test_a_failed_tick_is_logged_and_the_next_tick_catches_up(
    memory: Memory, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="backsight"):
        assert run_session(memory, clock, Turning(fails_at=4)) == 15
    assert "failed and is skipped" in caplog.text
    assert "the model is away" in caplog.text
    assert len(memory.list_trades(deployment="Turning@live").trades) == 2


def test_several_orders_of_a_tick_have_a_verdict_each_and_the_answer_is_recorded(
    memory: Memory, clock: FakeClock
) -> None:
    assert run_session(memory, clock, Doubling(), ticks=4) == 4
    decision = recorded_session(memory, "Turning@live")[1]
    assert [(each.order.reason, each.verdict.kind) for each in decision.proposals] == [
        ("call 2", "executed"),
        ("all in", "rejected"),
    ]
    response = memory.get_decision(decision_id=decision.id).response or ""
    assert response.startswith("\ufffd call 2 x")
    assert response.endswith("x [cut: 100009 characters]")
    (trade,) = memory.list_trades(deployment="Turning@live", status="open").trades
    assert (trade.entry.reason, trade.entry.snapshot_id) == ("call 2", decision.id)
