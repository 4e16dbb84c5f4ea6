"""Stored beliefs equal those that are learned again from the same episodes."""

from backsight.memory import Memory
from backsight.services.belief_learning import beliefs_at, beliefs_changed_by, current_beliefs, rebuild_beliefs
from backsight.store import memories as stored_memories
from backsight.testing import FakeClock
from support import lived_in


def test_stored_beliefs_are_those_that_are_learned_again(memory: Memory, clock: FakeClock) -> None:
    lived_in(memory, clock)
    with memory.writing() as transaction:
        view = memory.view(transaction.connection)
        before = current_beliefs(view, "live")
        learned = sorted(beliefs_at(view, "live").beliefs, key=lambda record: record.standing.belief.id)
        assert before
        assert sorted(before, key=lambda record: record.standing.belief.id) == learned
        rebuild_beliefs(transaction, memory.owner, "live")
        assert current_beliefs(view, "live") == before


def test_an_episode_changed_the_same_beliefs_however_they_are_read(memory: Memory, clock: FakeClock) -> None:
    lived_in(memory, clock)
    with memory.reading() as connection:
        now, again = memory.view(connection), memory.view(connection, seen_at=memory.now)
        episodes = stored_memories.teaching_trades(now, mode="live")
        changes = [beliefs_changed_by(now, "live", episode.id) for episode in episodes]
        assert changes == [beliefs_changed_by(again, "live", episode.id) for episode in episodes]
    assert any(changes)
