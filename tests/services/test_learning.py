"""Memory is the same if trades are learned one by one, all again, or read as of any instant."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.decision import Verdict
from backsight.core.memory import checkpoints
from backsight.core.orders import Order, ReportedFill
from backsight.core.portfolio import Mode
from backsight.memory import Memory, open_memory
from backsight.services.derivation import find_differences
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call
from support import empty_postgres_store

DEPLOYMENTS = ("A@main", "B@main", "A@paper")
TICKED = "A@ticks"


def settle_in(memory: Memory) -> Memory:
    """Two strategies on a live account; one of them also on a paper account and on an account with ticks."""
    accounts: dict[str, Mode] = {"main": "live", "paper": "paper", "ticks": "live"}
    for name, mode in accounts.items():
        memory.open_account(venue="v", name=name, mode=mode)
    for strategy in ("A", "B"):
        memory.save_strategy(name=strategy)
    for deployment in (*DEPLOYMENTS, TICKED):
        strategy, _, account = deployment.partition("@")
        memory.deploy(strategy_name=strategy, account=account)
    return memory


def trade_call(
    number: int, at: datetime, *, deployment: str = "A@main", r: float = 1.0, **changes: Any
) -> dict[str, Any]:
    """Arguments that record a trade of two hours which closed at `at`."""
    strategy = deployment.partition("@")[0]
    call = {
        "deployment": deployment,
        "strategy_name": strategy,
        "pnl": 100 * r,
        "pnl_r": r,
        "closed_at": at,
        "size": 1.0,
    }
    return a_trade_call(**call, opened_at=at - timedelta(hours=2), idempotency_key=f"{number}", **changes)


def healthy(memory: Memory) -> bool:
    with memory.reading() as connection:
        return find_differences(connection, memory.owner) == []


def answers(memory: Memory, **options: Any) -> list[Any]:
    """Every answer about beliefs, habits and mood."""
    replies: list[Any] = [
        memory.get_agent_state(deployment=deployment, **options) for deployment in (*DEPLOYMENTS, TICKED)
    ]
    modes: list[Mode] = ["live", "paper"]
    for mode in modes:
        replies.append(memory.list_beliefs(mode=mode, retired=True, **options))
        replies.append(memory.get_behavioral_analysis(mode=mode, **options))
    return replies


@dataclass
class Life:
    """Runs steps on a memory."""

    memory: Memory
    clock: FakeClock
    number: int = 0
    size: float = 0.0

    def act(self, kind: str, hours: int, late: int, pick: int) -> None:
        self.clock.advance(hours=hours)
        self.number += 1
        at = self.clock.now() - timedelta(hours=late)
        getattr(self, kind)(at, pick)

    def trade(self, at: datetime, pick: int) -> None:
        rng = random.Random(pick)
        call = trade_call(
            self.number,
            at,
            deployment=rng.choice(DEPLOYMENTS),
            r=rng.choice([2.0, -1.0, 0.0]),
            symbol=rng.choice(["BTC", "ETH"]),
            context_regime=rng.choice(["ranging", "trending_up"]),
        )
        self.memory.remember_trade(**call)

    def equity(self, at: datetime, pick: int) -> None:
        account = ("main", "paper")[pick % 2]
        paid_in = 500.0 if pick % 5 == 0 else None
        seen_at = at - timedelta(microseconds=self.number)  # one look an instant
        self.memory.record_equity(account=account, equity=9_000.0 + 10 * (pick % 300), at=seen_at, transfer=paid_in)

    def annotate(self, at: datetime, pick: int) -> None:
        page = self.memory.list_trades(limit=5).trades
        if page:
            trade = page[pick % len(page)]
            self.memory.annotate_trade(trade_id=trade.id, confidence=(pick % 10) / 10, tags=[f"t{pick}"])

    def believe(self, at: datetime, pick: int) -> None:
        domains: list[dict[str, Any]] = [{"regime": "ranging"}, {"symbol": "BTC"}, {"direction": "long"}]
        where = domains[pick % 3]
        self.memory.add_belief(proposition=f"it holds {pick}", **where)

    def retire(self, at: datetime, pick: int) -> None:
        beliefs = self.memory.list_beliefs().beliefs
        if beliefs:
            self.memory.retire_belief(belief_id=beliefs[pick % len(beliefs)].belief.id)

    def tick(self, at: datetime, pick: int) -> None:
        """Open or close a position; some ticks report a fee of a closed trade."""
        now, before = self.clock.now() + timedelta(microseconds=self.number), self.size
        self.size = 0.0 if before else float(1 + pick % 2)
        position, next_ = (a_position(size) if size else None for size in (before, self.size))
        fee = ReportedFill(id=f"fee{self.number}", at=now, sequence=0, kind="fee", symbol="BTC", fee=1.0)
        self.memory.close_tick(
            deployment=TICKED,
            at=now,
            before=a_snapshot(*([position] if position else []), at=now, fills=[fee] if pick % 3 == 0 else []),
            after=a_snapshot(*([next_] if next_ else []), at=now, equity=10_000.0 - pick),
            proposal=Order(symbol="BTC", quantity=self.size - before, reason="turn"),
            verdict=Verdict(kind="executed"),
        )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["trade", "trade", "trade", "equity", "annotate", "believe", "retire", "tick", "tick"]),
        st.integers(0, 30),
        st.sampled_from([0, 0, 0, 1, 20]),
        st.integers(0, 1000),
    ),
    max_size=14,
)


@given(steps=STEPS)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_learning_one_by_one_equals_learning_again_and_reading_as_of_any_instant(steps: list[Any]) -> None:
    learn_one_by_one("sqlite://", steps)


@given(steps=STEPS)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_learning_one_by_one_equals_learning_again_on_postgresql(steps: list[Any]) -> None:
    with empty_postgres_store() as url:
        learn_one_by_one(url, steps)


def learn_one_by_one(url: str, steps: list[Any]) -> None:
    clock = FakeClock(T0)
    with pytest.MonkeyPatch.context() as patch, open_memory(url, clock=clock) as memory:
        patch.setattr(checkpoints, "INTERVAL", 2)
        life, answers_at = Life(settle_in(memory), clock), dict[datetime, list[Any]]()
        for step in steps:
            life.act(*step)
            answers_at[clock.now()] = answers(memory)
            assert healthy(memory), step
        clock.advance(days=1)
        for at, answer in answers_at.items():
            assert answers(memory, as_of=at, seen_at=at) == answer
        assert memory.verify_audit().intact


def test_a_trade_reports_its_changes_to_each_memory(memory: Memory, clock: FakeClock) -> None:
    settle_in(memory)
    belief = memory.add_belief(proposition="BTC trends", symbol="BTC").belief.belief
    clock.advance(hours=1)
    memory.record_equity(account="main", equity=10_000.0)
    learned = memory.remember_trade(**trade_call(1, clock.now(), r=-1.0, symbol="BTC")).learned
    assert learned is not None
    (change,) = learned.evidence
    assert (change.belief_id, change.confirms, change.founding, change.n) == (belief.id, False, False, 1)
    assert learned.habits == 1
    assert (learned.mood.consecutive_losses, learned.mood.equity) == (1, 10_000.0)
    assert memory.remember_trade(**trade_call(1, clock.now(), r=-1.0, symbol="BTC")).learned is None
    state = memory.get_agent_state(deployment="A@main")
    assert (state.closes, state.mood) == (1, learned.mood)


def test_a_correction_changes_answers_only_from_then_on(memory: Memory, clock: FakeClock) -> None:
    life = Life(settle_in(memory), clock)
    for pick in (1, 1):
        life.act("tick", 1, 0, pick)
    then = clock.now()
    before = answers(memory, as_of=then)
    fee = ReportedFill(id="late", at=then, sequence=9, kind="fee", symbol="BTC", fee=500.0)
    clock.advance(hours=1)
    now = clock.now()
    memory.close_tick(deployment=TICKED, at=now, before=a_snapshot(at=now, fills=[fee]), verdict=Verdict(kind="noop"))
    (trade,) = memory.list_trades(deployment=TICKED).trades
    assert trade.pnl is not None
    assert trade.pnl <= -500.0
    assert healthy(memory)
    assert answers(memory, as_of=then) == before
    assert memory.get_agent_state(deployment=TICKED).mood.cause in ("correction", "equity")
