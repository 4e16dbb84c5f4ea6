"""The mood of a deployment: stored rows, and the same rows derived from what was recorded by an instant."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backsight.core.memory.mood_series import MoodRow
from backsight.memory import Memory, open_memory
from backsight.services import mood
from backsight.services.learning import learn_trades
from backsight.services.mood import mood_in, mood_rows, rebuild_account_moods, rebuild_strategy_moods
from backsight.services.trade_reports import revise_trade
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store import trades as stored_trades
from backsight.store.reading import fetch, owned
from backsight.testing import T0, FakeClock, a_trade_call
from support import lived_in


@pytest.fixture
def lived(memory: Memory, clock: FakeClock) -> Memory:
    lived_in(memory, clock)
    return memory


def test_stored_rows_equal_rows_derived_from_everything_recorded(
    lived: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployments = [row.deployment for row in lived.get_my_deployments().deployments]
    with lived.reading() as connection:
        for deployment in deployments:
            for days in (0, 1, 5, 400):
                as_of = lived.now - timedelta(days=days)
                stored_rows = mood_rows(lived.view(connection, as_of), deployment)
                monkeypatch.setattr(stored_memories, "are_all_recorded", lambda view: False)
                derived_rows = mood_rows(lived.view(connection, as_of, lived.now), deployment)
                monkeypatch.undo()
                assert [None if row is None else row.known_at for row in stored_rows] == [
                    None if row is None else row.known_at for row in derived_rows
                ]
                view, again = lived.view(connection, as_of), lived.view(connection, as_of, lived.now)
                assert mood_in(view, deployment) == mood_in(again, deployment)
    assert deployments


def test_a_close_recorded_after_the_view_is_left_out(memory: Memory, clock: FakeClock) -> None:
    remember(memory, 1)
    seen_at = clock.at
    clock.at += timedelta(hours=1)
    memory.remember_trade(**a_trade_call(closed_at=seen_at - timedelta(hours=1)))
    (deployment,) = (row.deployment for row in memory.get_my_deployments().deployments)
    with memory.reading() as connection:
        counts = [mood_rows(memory.view(connection, None, at), deployment)[1] for at in (seen_at, clock.at)]
    assert [None if row is None else row.n for row in counts] == [1, 2]


def test_rebuilding_writes_the_rows_that_are_there(lived: Memory) -> None:
    statement = owned(stored.MOODS, lived.owner).order_by(stored.MOODS.table.c.known_at, stored.MOODS.table.c.id)
    with lived.writing() as transaction:
        before = fetch(transaction.connection, stored.MOODS, statement)
        for row in lived.get_my_deployments().deployments:
            rebuild_strategy_moods(transaction, row.deployment)
            rebuild_account_moods(transaction, lived.owner, row.deployment.account_id)
        assert fetch(transaction.connection, stored.MOODS, statement) == before
    assert before


COUNT = itertools.count()


def remember(memory: Memory, number: int) -> str:
    """Remember a trade that closes now, and return its id."""
    pnl = (-1.0) ** number * (number % 7 + 1)
    call = a_trade_call(closed_at=memory.now, pnl=100.0 * pnl, pnl_r=pnl, exit_price=5175.0 + pnl)
    return memory.remember_trade(**call).trade.id


def correct(memory: Memory, trade_id: str, change: float) -> None:
    with memory.writing() as transaction:
        trade = stored_trades.trade(transaction.connection, memory.owner, trade_id)
        assert trade is not None
        assert trade.pnl is not None
        assert trade.outcome is not None
        outcome = replace(trade.outcome, value=trade.outcome.value + change)
        revised = replace(trade, pnl=trade.pnl + 100.0 * change, outcome=outcome)
        revise_trade(transaction, replace(revised, known_at=memory.now, recorded_at=memory.now))


def withdraw(memory: Memory, number: int) -> None:
    """Withdraw the episode of a trade, as if the trade were no longer closed."""
    with memory.writing() as transaction:
        own = [
            each
            for each in stored_memories.current_teaching_trades(transaction.connection, memory.owner)
            if each.pnl is not None
        ]
        if own:
            episode = own[number % len(own)]
            transaction.withdraw(stored_memories.EPISODES, episode, known_at=memory.now, recorded_at=memory.now)
            learn_trades(transaction, [], withdrawn=[episode])


def rows_and_rows_derived_again(memory: Memory) -> tuple[list[MoodRow], list[MoodRow]]:
    (deployment,) = (row.deployment for row in memory.get_my_deployments().deployments)
    c = stored.MOODS.table.c
    statement = owned(stored.MOODS, memory.owner, c.strategy_name == deployment.strategy_name)
    with memory.reading() as connection:
        rows = fetch(connection, stored.MOODS, statement.order_by(c.known_at, c.sequence, c.id))
        return rows, mood.strategy_moods(connection, deployment)


STEP = st.tuples(st.sampled_from(("remember", "correct", "correct", "withdraw")), st.integers(0, 40), st.integers(0, 2))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=3, max_size=20))
def test_corrections_and_withdrawals_add_the_rows_that_all_closes_make(
    url: str, steps: list[tuple[str, int, int]]
) -> None:
    clock = FakeClock(T0)
    with open_memory(url, owner=f"owner {next(COUNT)}", clock=clock) as memory:
        ids = []
        for number in range(12):
            clock.at += timedelta(hours=1)
            ids.append(remember(memory, number))
        for name, number, change in steps:
            clock.at += timedelta(hours=1)
            if name == "remember":
                ids.append(remember(memory, number))
            elif name == "correct":
                correct(memory, ids[number % len(ids)], change)
            else:
                withdraw(memory, number)
        rows, derived = rows_and_rows_derived_again(memory)
        assert rows == derived


def test_a_correction_does_not_rebuild_the_series(
    memory: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = []
    for number in range(5):
        clock.at += timedelta(hours=1)
        ids.append(remember(memory, number))
    monkeypatch.delattr(mood, "rebuild_strategy_moods")
    for number in (3, 1, 3):
        clock.at += timedelta(hours=1)
        correct(memory, ids[number], 0.5)
    rows, derived = rows_and_rows_derived_again(memory)
    assert rows == derived
    assert [row.cause for row in rows] == ["close"] * 5 + ["correction"] * 3
