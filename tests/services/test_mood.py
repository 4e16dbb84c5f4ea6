"""The mood of a deployment: stored rows, and the same rows derived from what was recorded by an instant."""

from datetime import timedelta

import pytest

from backsight.memory import Memory
from backsight.services.mood import mood_in, mood_rows, rebuild_account_moods, rebuild_strategy_moods
from backsight.store import experience as stored
from backsight.store.reading import fetch, owned
from backsight.testing import FakeClock
from support import lived_in


@pytest.fixture
def lived(memory: Memory, clock: FakeClock) -> Memory:
    lived_in(memory, clock)
    return memory


def test_stored_rows_equal_rows_derived_from_everything_recorded(lived: Memory) -> None:
    deployments = [row.deployment for row in lived.get_my_deployments().deployments]
    with lived.reading() as connection:
        for deployment in deployments:
            for days in (0, 1, 5, 400):
                as_of = lived.now - timedelta(days=days)
                stored_rows = mood_rows(lived.view(connection, as_of), deployment)
                derived_rows = mood_rows(lived.view(connection, as_of, lived.now), deployment)
                assert [None if row is None else row.known_at for row in stored_rows] == [
                    None if row is None else row.known_at for row in derived_rows
                ]
                view, again = lived.view(connection, as_of), lived.view(connection, as_of, lived.now)
                assert mood_in(view, deployment) == mood_in(again, deployment)
    assert deployments


def test_rebuilding_writes_the_rows_that_are_there(lived: Memory) -> None:
    statement = owned(stored.MOODS, lived.owner).order_by(stored.MOODS.table.c.known_at, stored.MOODS.table.c.id)
    with lived.writing() as transaction:
        before = fetch(transaction.connection, stored.MOODS, statement)
        for row in lived.get_my_deployments().deployments:
            rebuild_strategy_moods(transaction, row.deployment)
            rebuild_account_moods(transaction, lived.owner, row.deployment.account_id)
        assert fetch(transaction.connection, stored.MOODS, statement) == before
    assert before
