"""Reads are reused only while no command of any process has changed what they read."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.audit import EMPTY, ChainHead
from backsight.core.decision import ShownSegment, Verdict
from backsight.core.orders import Order
from backsight.memory import Memory, open_memory
from backsight.services.deployments import deployment_named
from backsight.services.recall import repeat_recalls
from backsight.store import decisions as stored_decisions
from backsight.store import trades as stored_trades
from backsight.store.agent_sessions import agent_settings
from backsight.store.experience import mood_pair
from backsight.store.recalls import recalls_of
from backsight.store.trades import TRADES
from backsight.store.transaction_state import MOST_OWNERS, UnchangedValues
from backsight.store.unchanged import get, put, unchanged
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call

DEPLOYMENT = "VolBreakout@desk"


@pytest.fixture
def processes(url: str, clock: FakeClock) -> Iterator[tuple[Memory, Memory]]:
    """Two processes that share one store, with a deployment."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(open_memory(url, owner="ana", clock=clock)) for _ in range(2))
        one.open_account(venue="x", name="desk", mode="sim")
        one.save_strategy(name="VolBreakout")
        one.deploy(strategy_name="VolBreakout", account="desk")
        yield one, other


def tick(memory: Memory, clock: FakeClock, *, long: bool = False) -> str:
    """Open and close a tick; the answer is the whole prompt."""
    clock.advance(hours=1)
    at = clock.now()
    before = a_snapshot(a_position(), at=at) if long else a_snapshot(at=at)
    opened = memory.open_tick(deployment=DEPLOYMENT, at=at, before=before, symbols=["BTC"])
    memory.close_tick(
        deployment=DEPLOYMENT,
        at=at,
        before=before,
        verdict=Verdict(kind="noop"),
        shown=list(opened.memory),
        recalls=list(opened.recalls),
    )
    return opened.text


def test_a_process_sees_what_another_one_wrote(processes: tuple[Memory, Memory], url: str, clock: FakeClock) -> None:
    for number, long in enumerate((False, True, True, False, True, False, False)):
        tick(processes[number % 3 == 1], clock, long=long)
        if number == 3:
            processes[1].create_trading_plan(
                trigger_condition={"field": "symbol", "op": "==", "value": "BTC"},
                planned_action={"type": "skip_trade"},
                reasoning="one at a time",
            )
        clock.advance(minutes=1)
        with open_memory(url, owner="ana", clock=clock) as fresh:
            prompt = fresh.preview_context(deployment=DEPLOYMENT, symbols=["BTC"])
        for memory in processes:
            assert memory.preview_context(deployment=DEPLOYMENT, symbols=["BTC"]) == prompt
    assert processes[0].verify_audit().intact


EXECUTED, REJECTED, NOTHING = (
    Verdict(kind="executed"),
    Verdict(kind="rejected", rule="max_exposure"),
    Verdict(kind="noop"),
)
FLAT, LONG = (), (a_position(),)
ENTRY, STOP, EXIT = (Order(symbol="BTC", quantity=each, stop_price=90.0 if each >= 0 else None) for each in (1, 0, -1))
TICKS = (
    (FLAT, FLAT, ENTRY, REJECTED),
    (FLAT, LONG, ENTRY, EXECUTED),
    (LONG, LONG, STOP, REJECTED),
    (LONG, LONG, STOP, EXECUTED),
    (LONG, FLAT, EXIT, EXECUTED),
    (FLAT, FLAT, None, NOTHING),
)
"""The positions before and after the decision, what is proposed, and the verdict."""


def read_by_ticks(memory: Memory, as_of: datetime) -> dict[str, Any]:
    """What a tick reads that the tick before wrote or left unchanged."""
    with memory.reading() as connection:
        view = memory.view(connection, as_of)
        deployment = deployment_named(connection, memory.owner, DEPLOYMENT)
        last = stored_decisions.last_decision_of_account(view, deployment.account_id)
        since = [as_of - timedelta(hours=hours) for hours in (2, 9, 1)]
        return {
            "attempts": [stored_decisions.attempts_since(view, deployment, since=at) for at in since],
            "closes": [stored_trades.closes(view, deployment.id, since=at) for at in since],
            "moods": mood_pair(view, deployment.account_id, "VolBreakout"),
            "marks": last and stored_trades.marks_of_decision(connection, memory.owner, last.id),
            "settings": agent_settings(view, deployment.id),
        }


def test_a_process_reads_what_it_wrote_as_another_process_reads_it(
    processes: tuple[Memory, Memory], url: str, clock: FakeClock
) -> None:
    for number, (positions, left, order, verdict) in enumerate(TICKS * 2):
        memory = processes[number // 4 % 2]
        clock.advance(hours=1)
        at = clock.now()
        read_by_ticks(memory, at)
        memory.close_tick(
            deployment=DEPLOYMENT,
            at=at,
            before=a_snapshot(*positions, at=at),
            after=a_snapshot(*left, at=at),
            proposal=order,
            verdict=verdict,
        )
        if number % 7 == 6:
            memory.configure_deployment(deployment=DEPLOYMENT, review_decisions=True)
        with open_memory(url, owner="ana", clock=clock) as fresh:
            for as_of in (clock.now() - timedelta(hours=3), clock.now()):
                assert read_by_ticks(memory, as_of) == read_by_ticks(fresh, as_of)
    assert len(read_by_ticks(memory, clock.now())["attempts"][1]) == 8
    assert memory.verify_audit().intact


def test_a_losing_streak_of_any_length_is_read(memory: Memory, clock: FakeClock) -> None:
    for losses in (1, 13, 1):
        for pnl in (5.0, *[-5.0] * losses):
            clock.advance(hours=1)
            trade = memory.remember_trade(**a_trade_call(pnl=pnl, pnl_r=pnl)).trade
        with memory.reading() as connection:
            view = memory.view(connection)
            assert len(stored_trades.closes(view, trade.deployment_id, since=clock.now())) == losses


def test_a_recall_that_open_tick_made_is_stored_as_it_is_computed_again(
    processes: tuple[Memory, Memory], url: str, clock: FakeClock
) -> None:
    one, _ = processes
    for long in (True, False, True, False):
        tick(one, clock, long=long)
    clock.advance(hours=1)
    at, before = clock.now(), a_snapshot(at=clock.now())
    handles = list(one.open_tick(deployment=DEPLOYMENT, at=at, before=before, symbols=["BTC"]).recalls)
    decision = one.close_tick(
        deployment=DEPLOYMENT, at=at, before=before, verdict=Verdict(kind="noop"), recalls=handles
    ).decision
    with open_memory(url, owner="ana", clock=clock) as fresh, fresh.reading() as connection:
        repeated = repeat_recalls(fresh, connection, handles, at=at, field="recalls")
        assert [result for result, _ in recalls_of(fresh.view(connection), decision.id)] == repeated
    assert repeated[0].candidates == 2


def test_values_survive_commands_on_other_tables_and_no_rollback(memory: Memory) -> None:
    with memory.reading() as connection:
        put(connection, memory.owner, "key", (TRADES,), "value")
    memory.open_account(venue="x", name="y", mode="sim")
    with memory.reading() as connection:
        assert get(connection, memory.owner, "key", (TRADES,)) == "value"
    with suppress(ZeroDivisionError), memory.writing() as transaction:
        transaction.connection.execute(TRADES.table.delete())
        assert get(transaction.connection, memory.owner, "key", (TRADES,)) is None
        assert unchanged(transaction.connection, memory.owner, "key", (TRADES,), lambda: "read") == "read"
        raise ZeroDivisionError
    with memory.reading() as connection:
        assert get(connection, memory.owner, "key", (TRADES,)) == "value"
    memory.remember_trade(**a_trade_call())
    with memory.reading() as connection:
        assert get(connection, memory.owner, "key", (TRADES,)) is None
        assert stored_trades.open_trades(connection, memory.owner, "none") == []


def test_a_reader_of_an_earlier_snapshot_does_not_replace_the_values_of_a_later_head() -> None:
    later = ChainHead(sequence=2, hash="b" * 64)
    values = UnchangedValues()
    values.at("ana", later).values["key"] = frozenset(), "value"
    assert values.at("ana", ChainHead(sequence=1, hash="a" * 64)).values == {}
    assert values.last("ana", "key") == "value"


def test_the_values_of_few_owners_are_kept() -> None:
    values = UnchangedValues()
    for number in range(MOST_OWNERS + 1):
        values.at(str(number), EMPTY).values["key"] = frozenset(), number
    assert values.last("0", "key") is None
    assert values.last("1", "key") == 1


def test_a_text_whose_row_was_removed_is_stored_again(memory: Memory) -> None:
    shown = ShownSegment(owner_id="ana", hash="a" * 64, name="rules", text="Wait.", known_at=T0, recorded_at=T0)
    for removing in (False, True, False):
        with memory.writing() as transaction:
            if removing:
                transaction.remove_old(stored_decisions.SEGMENTS, "ana", [shown.hash], before=T0)
            else:
                stored_decisions.add_segments(transaction, "ana", [shown])
    with memory.reading() as connection:
        assert stored_decisions.segments(connection, "ana", [shown.hash]).keys() == {shown.hash}
