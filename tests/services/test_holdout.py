"""The days and trades that the holdout test compares: days without trades, open trades at their marks, no recalls."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.decision import Segment, Verdict
from backsight.core.errors import Refused
from backsight.core.holdout import MemoryArm, memory_arm
from backsight.core.orders import Order
from backsight.core.strategies import Deployment, MemoryOverrides
from backsight.memory import Memory
from backsight.services.holdout import HoldoutRecord, holdout_record
from backsight.services.withheld_memory import ENDED_AFTER
from backsight.testing import T0, FakeClock, a_position, a_snapshot
from support import LESSONS, deployed

SHOWN = [Segment(name="recent_activity", text="## Recent activity (this session)")]
MIDNIGHT = T0.replace(hour=0)
DAY = timedelta(days=1)


@pytest.fixture
def deployment(memory: Memory) -> Deployment:
    """A deployment whose memory is withheld on half of the days."""
    deployed(memory)
    memory.open_account(venue="binance", name="coin", currency="EUR")
    overrides = MemoryOverrides(holdout=0.5)
    return memory.deploy(strategy_name="VolBreakout", account="coin", memory=overrides).deployment


def days_of(deployment: Deployment, arm: MemoryArm) -> Iterator[datetime]:
    """The midnights of the days to come on which memory is shown or withheld."""
    for number in range(1, 60):
        midnight = MIDNIGHT + number * DAY
        if memory_arm(deployment.id, midnight, holdout=0.5) == arm:
            yield midnight


def tick(
    memory: Memory,
    clock: FakeClock,
    deployment: Deployment,
    at: datetime,
    *,
    quantity: float = 0.0,
    mark: float,
    is_open: bool = True,
    **more: Any,
) -> None:
    """A tick that buys (above zero), sells all (below zero) or does nothing; one BTC is open unless it buys."""
    clock.at = at
    position = [replace(a_position(1.0), mark=mark)]
    before = [] if quantity > 0 or not is_open else position
    after = [] if quantity < 0 or not is_open else position
    seen: dict[str, Any] = {"at": at, "marks": {"BTC": mark}}
    order = Order(symbol="BTC", quantity=quantity, reason="in or out") if quantity else None
    memory.close_tick(
        deployment=deployment.id,
        at=at,
        before=a_snapshot(*before, **seen),
        after=a_snapshot(*after, **seen),
        proposal=order,
        verdict=Verdict(kind="executed" if quantity else "noop"),
        shown=SHOWN,
        **more,
    )


def record(memory: Memory, *, as_of: datetime) -> HoldoutRecord:
    with memory.reading() as connection:
        view = memory.view(connection, as_of)
        strategy = memory.get_my_deployments().deployments[0].deployment
        columns = memory.database.trade_images.at(view)
        subject: dict[str, Any] = {"strategy_id": strategy.strategy_id, "strategy_name": "VolBreakout", "mode": "live"}
        return holdout_record(view, columns, **subject)


def test_days_without_a_trade_are_in_the_record_once_they_are_over(
    memory: Memory, clock: FakeClock, deployment: Deployment
) -> None:
    midnight = next(days_of(deployment, "withheld"))
    tick(memory, clock, deployment, midnight + timedelta(hours=9), mark=100.0, is_open=False)
    tick(memory, clock, deployment, midnight + timedelta(hours=15), mark=100.0, is_open=False)
    assert record(memory, as_of=midnight + timedelta(hours=23)).days == ()
    (day,) = record(memory, as_of=midnight + DAY).days
    assert (day.arm, day.day, day.deployment_id) == ("withheld", midnight.date(), deployment.id)


def test_an_open_trade_counts_at_its_mark_and_stays_as_it_stood_after_two_days(
    memory: Memory, clock: FakeClock, deployment: Deployment
) -> None:
    midnight = next(days_of(deployment, "shown"))
    tick(memory, clock, deployment, midnight + timedelta(hours=9), quantity=1.0, mark=100.0)
    for days, mark in ((1, 90.0), (2, 80.0), (4, 130.0)):
        tick(memory, clock, deployment, midnight + days * DAY + timedelta(hours=9), mark=mark)

    def counted(days: float) -> tuple[float | None, bool]:
        (trade,) = record(memory, as_of=midnight + days * DAY).trades
        return trade.pnl, trade.is_open

    assert [counted(days) for days in (1, 2, 4.5, 7)] == [(0.0, True), (-10.0, True), (-20.0, True), (-20.0, True)]
    tick(memory, clock, deployment, midnight + 6 * DAY, quantity=-1.0, mark=140.0)
    assert counted(7) == (-20.0, True)
    assert record(memory, as_of=midnight + 7 * DAY).currency == "EUR"


def test_a_trade_closed_within_two_days_counts_with_its_result(
    memory: Memory, clock: FakeClock, deployment: Deployment
) -> None:
    midnight = next(days_of(deployment, "shown"))
    tick(memory, clock, deployment, midnight + timedelta(hours=9), quantity=1.0, mark=100.0)
    tick(memory, clock, deployment, midnight + 1.5 * DAY, quantity=-1.0, mark=140.0)
    (trade,) = record(memory, as_of=midnight + 3 * DAY).trades
    assert (trade.pnl, trade.is_open, trade.day, trade.arm) == (40.0, False, midnight.date(), "shown")


def test_a_withheld_day_with_a_decision_that_rests_on_a_recall_is_not_counted(
    memory: Memory, clock: FakeClock, deployment: Deployment
) -> None:
    first, second = list(days_of(deployment, "withheld"))[:2]
    clock.at = first + timedelta(hours=8)
    handle = memory.recall_memories(symbol="BTC", deployment=deployment.id, as_of=clock.at).recall
    tick(memory, clock, deployment, first + timedelta(hours=9), quantity=1.0, mark=100.0, recalls=[handle])
    tick(memory, clock, deployment, first + timedelta(hours=10), quantity=-1.0, mark=110.0)
    tick(memory, clock, deployment, second + timedelta(hours=9), mark=100.0, is_open=False)
    compared = record(memory, as_of=second + DAY)
    assert (compared.recalled_days, compared.trades) == (1, ())
    assert [day.day for day in compared.days] == [second.date()]
    answer = memory.does_memory_help(strategy_name="VolBreakout", as_of=second + DAY)
    assert "1 withheld day not counted: a decision rests on a recall" in answer.message


def test_recall_memories_withholds_on_a_withheld_day_and_its_handle_spoils_no_day(
    memory: Memory, clock: FakeClock, deployment: Deployment
) -> None:
    shown, withheld = (next(days_of(deployment, arm)) for arm in ("shown", "withheld"))
    tick(memory, clock, deployment, shown + timedelta(hours=9), quantity=1.0, mark=100.0)
    tick(memory, clock, deployment, shown + timedelta(hours=10), quantity=-1.0, mark=110.0)
    clock.at = max(shown, withheld) + timedelta(days=20, hours=8)
    while memory_arm(deployment.id, clock.at, holdout=0.5) != "withheld":
        clock.advance(days=1)
    answer = memory.recall_memories(symbol="BTC", deployment=deployment.id)
    assert (answer.memories, answer.nearest, answer.base_rate, answer.beliefs) == ((), (), None, ())
    assert answer.message.startswith("Memory is withheld today")
    assert memory.recall_memories(symbol="BTC", deployment=deployment.id, as_of=clock.at).candidates == 1
    at = clock.at
    tick(memory, clock, deployment, at + timedelta(hours=1), mark=100.0, is_open=False, recalls=[answer.recall])
    assert record(memory, as_of=at + DAY).recalled_days == 0
    while memory_arm(deployment.id, clock.at, holdout=0.5) != "shown":
        clock.advance(days=1)
    assert memory.recall_memories(symbol="BTC", deployment=deployment.id).candidates == 1


def test_sizes_and_lessons_are_withheld_on_a_withheld_day(
    memory: Memory, clock: FakeClock, deployment: Deployment
) -> None:
    memory.promote_lessons(deployment=deployment.id, lessons=LESSONS)
    memory.open_account(venue="binance", name="second", currency="EUR")
    overrides = MemoryOverrides(holdout=0.5)
    deployment = memory.deploy(strategy_name="VolBreakout", account="second", memory=overrides).deployment
    clock.at = next(days_of(deployment, "withheld")) + timedelta(hours=8)
    sized: dict[str, Any] = {"symbol": "BTC", "direction": "long", "strategy_name": "VolBreakout"}
    with pytest.raises(Refused, match=r"^Memory is withheld today.* Size the trade by the strategy's own rules"):
        memory.position_size(**sized, deployment=deployment.id)
    assert memory.position_size(**sized, deployment=deployment.id, as_of=clock.at).size.recommended is None
    withheld = memory.active_lessons(deployment=deployment.id)
    assert (withheld.note, withheld.text, withheld.hash) == (None, None, None)
    assert withheld.message.startswith("Memory is withheld today")
    assert memory.active_lessons(deployment=deployment.id, as_of=clock.at).note is not None
    clock.at = next(day for day in days_of(deployment, "shown") if day > clock.at)
    assert memory.active_lessons(deployment=deployment.id).note is not None
    assert memory.position_size(**sized, deployment=deployment.id).size.recommended is None


def test_memory_is_withheld_from_queries_until_the_agent_has_not_ticked_for_a_month(
    memory: Memory, clock: FakeClock, deployment: Deployment
) -> None:
    first, *others = days_of(deployment, "withheld")
    tick(memory, clock, deployment, first, quantity=1.0, mark=100.0)
    tick(memory, clock, deployment, first + timedelta(hours=1), quantity=-1.0, mark=110.0)
    clock.at = others[0]
    assert memory.recall_memories(symbol="BTC", deployment=deployment.id).memories == ()
    assert memory.active_lessons(deployment=deployment.id).message.startswith("Memory is withheld today")
    clock.at = next(day for day in others if day > first + ENDED_AFTER + DAY)
    assert memory.recall_memories(symbol="BTC", deployment=deployment.id).memories
    assert "has no lessons" in memory.active_lessons(deployment=deployment.id).message
    assert memory.preview_context(deployment=deployment.id).memory_arm == "withheld"
