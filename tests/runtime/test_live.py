"""A deployment run by the clock, and the replay of its recorded session."""

import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.decision import AgentDecision, AgentInput, Decision
from backsight.core.errors import Conflict, Invalid, Unavailable
from backsight.core.market import Bar
from backsight.core.orders import BEGINNING, BrokerSnapshot, FillMark, Order, OrderResult, Rejected
from backsight.core.simulated_market import simulated_bars
from backsight.core.strategies import MemoryOverrides
from backsight.core.trades.trade import Trade
from backsight.memory import Memory, PaperBroker, PaperTerms, open_memory
from backsight.ops.claims import RecordedIntent
from backsight.ops.ticks import ClosedTick
from backsight.runtime.live import LiveLoop, LiveSettings, run_live
from backsight.runtime.recovery import NOT_CONFIRMED, RECOGNISED
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


class Interruption(BaseException):
    """Ends a loop as a killed process ends: nothing after it runs."""


class FailingMemory(Memory):
    """The memory of another one's store, which fails in chosen calls of close_tick or record_intent."""

    def __init__(
        self, memory: Memory, error: BaseException, *, closes: Sequence[int] = (), intents: Sequence[int] = ()
    ):
        super().__init__(database=memory.database, clock=memory.clock, owner=memory.owner, actor=memory.actor)
        self.error, self.fails = error, {"close": closes, "intent": intents}
        self.calls = {"close": 0, "intent": 0}

    def _count(self, name: str) -> None:
        self.calls[name] += 1
        if self.calls[name] in self.fails[name]:
            raise self.error

    def close_tick(self, **arguments: Any) -> ClosedTick:
        self._count("close")
        return super().close_tick(**arguments)

    def record_intent(self, **arguments: Any) -> RecordedIntent:
        self._count("intent")
        return super().record_intent(**arguments)


class DyingBroker(PaperBroker):
    """Executes an order, and interrupts the loop before it can answer, or does not answer in time."""

    deaths = 0
    silence: Sequence[str] = ()
    """The reasons of orders that are not answered."""

    def submit(self, order: Order) -> OrderResult:
        result = super().submit(order)
        if self.deaths > 0:
            self.deaths -= 1
            raise Interruption
        if order.reason in self.silence:
            raise Unavailable("no answer within 10 s")
        return result


class Desk:
    """A deployment with a broker whose account outlives the loops that trade it."""

    def __init__(self, memory: Memory, clock: FakeClock) -> None:
        self.memory, self.clock = memory, clock
        clock.at = START
        self.broker = DyingBroker(deployed(memory), at=START, cash=1_000.0, terms=TERMS)
        self.agent: Turning | Once = Turning()

    def loop(self, memory: Memory | None = None, *, holder: str = "first") -> LiveLoop:
        settings = LiveSettings(deployment="Turning@live", symbols=["BTC"], every=timedelta(hours=1), holder=holder)
        return LiveLoop(memory or self.memory, self.broker, self.agent, Bars(), settings)

    def run(self, loop: LiveLoop, ticks: int) -> None:
        """Run hourly ticks; the store may be away at some."""
        for _ in range(ticks):
            at = self.clock.at + timedelta(hours=1)
            self.broker.advance([bar for bar in BARS if self.clock.at < bar.closes_at <= at])
            self.clock.at = at
            try:
                loop.run(at)
            except Unavailable:
                continue

    def trades(self) -> list[Trade]:
        return list(reversed(self.memory.list_trades(deployment="Turning@live", status="closed").trades))

    def decisions(self) -> list[Decision]:
        return recorded_session(self.memory, "Turning@live")


@pytest.fixture
def desk(memory: Memory, clock: FakeClock) -> Desk:
    return Desk(memory, clock)


@pytest.mark.parametrize("closes", [[8], [2, 3, 12]])
def test_a_tick_that_the_store_could_not_record_is_recorded_before_the_next_look(
    desk: Desk, closes: Sequence[int]
) -> None:
    flaky = FailingMemory(desk.memory, Unavailable("the store is away"), closes=closes)
    desk.run(desk.loop(flaky), 16)
    executed = [each for each in desk.decisions() if each.verdict.kind == "executed"]
    assert [each.reason for each in executed] == ["call 2", "call 5", "call 8", "call 12"]
    assert [trade.exit_reason for trade in desk.trades()] == ["call 8", "call 12"]
    fills = [fill for fill in desk.broker.snapshot(since=BEGINNING).fills if fill.realized_pnl is not None]
    assert [trade.realized_pnl for trade in desk.trades()] == pytest.approx([fill.realized_pnl for fill in fills])
    assert desk.memory.verify_audit().intact


@pytest.mark.parametrize("answered", [True, False])
def test_after_a_crash_the_next_loop_records_the_orders_of_the_interrupted_tick(desk: Desk, answered: bool) -> None:
    dying = FailingMemory(desk.memory, Interruption(), closes=[8] if answered else [])
    first = desk.loop(dying)
    desk.run(first, 7)
    desk.broker.deaths = 0 if answered else 1
    with pytest.raises(Interruption):
        desk.run(first, 1)
    desk.run(desk.loop(holder="second"), 4)
    interrupted = desk.decisions()[7]
    assert (interrupted.reason, interrupted.verdict.kind) == ("call 8", "executed")
    assert [(trade.exit_reason, trade.entry.reason) for trade in desk.trades()] == [
        ("call 8", "call 2"),
        ("call 12", "call 8"),
    ]
    assert desk.memory.verify_audit().intact


def test_without_a_recorded_intent_no_order_is_submitted(desk: Desk) -> None:
    flaky = FailingMemory(desk.memory, Unavailable("the store is away"), intents=[1])
    desk.run(desk.loop(flaky), 3)
    assert desk.broker.snapshot(since=BEGINNING).fills == ()
    assert [each.at - START for each in desk.decisions()] == [timedelta(hours=1), timedelta(hours=3)]


def test_an_interrupted_order_that_left_no_trace_is_not_confirmed(desk: Desk) -> None:
    dying = FailingMemory(desk.memory, Interruption(), intents=[])
    desk.broker.submit = interrupted_submit  # type: ignore[method-assign]
    with pytest.raises(Interruption):
        desk.run(desk.loop(dying), 2)
    del desk.broker.submit
    desk.run(desk.loop(holder="second"), 1)
    interrupted = desk.decisions()[1]
    assert (interrupted.verdict.kind, interrupted.verdict.rule) == ("rejected", NOT_CONFIRMED)


def test_an_order_that_the_broker_took_without_an_answer_is_executed(desk: Desk) -> None:
    desk.broker.silence = ("call 2", "call 8")
    desk.run(desk.loop(), 16)
    executed = {each.reason: each.verdict.detail for each in desk.decisions() if each.verdict.kind == "executed"}
    assert executed == {"call 2": RECOGNISED, "call 5": None, "call 8": RECOGNISED, "call 12": None}
    assert [(trade.exit_reason, trade.entry.reason) for trade in desk.trades()] == [
        ("call 8", "call 2"),
        ("call 12", "call 8"),
    ]


def test_an_order_that_the_broker_did_not_take_nor_answer_is_not_confirmed(desk: Desk) -> None:
    desk.broker.submit = unanswered_submit  # type: ignore[method-assign]
    desk.run(desk.loop(), 2)
    verdict = desk.decisions()[1].verdict
    assert (verdict.kind, verdict.rule) == ("rejected", NOT_CONFIRMED)


class Once:
    """Gives one decision at the second call."""

    def __init__(self, decision: AgentDecision) -> None:
        self.calls, self.decision = 0, decision

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        self.calls += 1
        return self.decision if self.calls == 2 else AgentDecision()


@pytest.fixture
def simulated_desk(clock: FakeClock) -> Iterator[Desk]:
    with open_memory("sqlite://", clock=clock) as memory:
        yield Desk(memory, clock)


ORDER = Order(symbol="BTC", quantity=10.0, reason="it breaks")


@pytest.mark.parametrize(
    ("field", "value"),
    [("confidence", 1.5), ("cost", float("nan")), ("citations", ("two\nlines",)), ("recalls", ("no recall",))],
)
def test_a_decision_that_cannot_be_recorded_is_refused_before_its_order_goes_out(
    simulated_desk: Desk, field: str, value: Any
) -> None:
    desk = simulated_desk
    desk.agent = Once(AgentDecision(order=ORDER, **{field: value}))
    with pytest.raises(Invalid, match=field):
        desk.run(desk.loop(), 2)
    assert desk.broker.snapshot(since=BEGINNING).fills == ()


def test_an_order_is_recorded_however_long_or_odd_its_reason_is(simulated_desk: Desk) -> None:
    desk = simulated_desk
    desk.agent = Once(AgentDecision(order=replace(ORDER, reason="why\0" + "x" * 5_000)))
    desk.run(desk.loop(), 2)
    decision = desk.decisions()[1]
    assert (decision.verdict.kind, len(decision.reason or "")) == ("executed", 1_000)


def test_a_rejection_is_recorded_however_odd_its_words_are(simulated_desk: Desk) -> None:
    desk = simulated_desk
    desk.agent = Once(AgentDecision(order=ORDER))
    words = iter([("", "no\0reason"), ("not\nenough " + "x" * 500, "")])

    def reject(order: Order) -> Rejected:
        rule, detail = next(words)
        return Rejected(order=order, rule=rule, detail=detail)

    desk.broker.submit = reject  # type: ignore[method-assign]
    for number, rule in ((1, "BROKER_REJECTED"), (3, "not enough xx")):
        desk.agent.calls = 0
        desk.run(desk.loop(), 2)
        verdict = desk.decisions()[number].verdict
        assert (verdict.kind, (verdict.rule or "")[: len(rule)]) == ("rejected", rule)


@pytest.mark.parametrize("spoilt", [{"equity": float("nan")}, {"account": "another"}])
def test_a_state_after_the_orders_that_cannot_be_recorded_is_asked_for_again(
    simulated_desk: Desk, spoilt: dict[str, Any]
) -> None:
    desk = simulated_desk
    desk.agent = Once(AgentDecision(order=ORDER))
    desk.run(desk.loop(), 1)
    states, snapshot = iter([{}, spoilt]), desk.broker.snapshot

    def spoilt_snapshot(*, since: FillMark | None = None) -> BrokerSnapshot:
        state = snapshot(since=since)
        return replace(state, portfolio=replace(state.portfolio, **next(states, {})))

    desk.broker.snapshot = spoilt_snapshot  # type: ignore[method-assign]
    with pytest.raises(Invalid, match="after"):
        desk.run(desk.loop(), 1)
    desk.run(desk.loop(), 2)
    assert [each.verdict.kind for each in desk.decisions()] == ["noop", "executed", "noop", "noop"]
    (trade,) = desk.memory.list_trades(deployment="Turning@live", status="open").trades
    assert trade.entry.reason == "it breaks"


def unanswered_submit(order: Order) -> OrderResult:
    raise Unavailable("no connection")


def interrupted_submit(order: Order) -> OrderResult:
    raise Interruption


def test_a_second_loop_on_an_account_is_refused_and_submits_nothing(desk: Desk) -> None:
    first, second = desk.loop(), desk.loop(holder="second")
    desk.run(first, 1)
    fills = desk.broker.snapshot(since=BEGINNING).fills
    desk.clock.advance(seconds=60)
    with pytest.raises(Conflict, match=r"the account 'live' is run by 'first' until .*; stop that loop, or wait"):
        second.run(desk.clock.at)
    assert desk.broker.snapshot(since=BEGINNING).fills == fills
    first.release()
    assert second.run(desk.clock.at).decision.sequence == 0


def test_two_loops_of_one_account_in_turn_keep_every_decision(desk: Desk) -> None:
    loops = [desk.loop(), desk.loop(holder="second")]
    for number in range(12):
        desk.run(loops[number % 2], 1)  # an hour later: the other's lease has expired
    assert len(desk.decisions()) == 12
    assert [trade.exit_reason for trade in desk.trades()] == ["call 8", "call 12"]
