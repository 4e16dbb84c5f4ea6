"""A recall is found by its hash where it was answered, and everywhere once a decision was recorded with it."""

from pathlib import Path
from typing import Any

import pytest

from backsight import brief
from backsight.core.errors import NotFound
from backsight.memory import Memory, open_memory
from backsight.ops.recall import Recall
from backsight.services.recall_hashes import HASH
from backsight.testing import T0, FakeClock, a_trade_call

CALL: dict[str, Any] = {
    "symbol": "XAUUSD",
    "direction": "long",
    "strategy_name": "VolBreakout",
    "horizon_hours": 4.0,
    "reasoning": "The range broke.",
    "price": 5_175.0,
}


def recall_of(memory: Memory, clock: FakeClock) -> Recall:
    """A recall that found something, made a moment ago."""
    for number in range(3):
        memory.remember_trade(**a_trade_call(idempotency_key=f"k{number}"))
    clock.advance(hours=1)
    recall = memory.recall_memories(symbol="XAUUSD", strategy_name="VolBreakout")
    assert len(recall.memories) == 3
    clock.advance(minutes=1)
    return recall


def test_a_brief_recall_shows_the_hash_and_a_full_one_the_handle(memory: Memory, clock: FakeClock) -> None:
    recall = recall_of(memory, clock)
    assert HASH.fullmatch(recall.recall_hash)
    assert len(recall.recall_hash) <= 20
    assert f"recall={recall.recall_hash}" in brief(recall).splitlines()
    assert recall.recall not in brief(recall)


def test_the_hash_is_of_the_query_the_instants_and_the_ids(memory: Memory, clock: FakeClock) -> None:
    recall = recall_of(memory, clock)
    query: dict[str, Any] = {"symbol": "XAUUSD", "strategy_name": "VolBreakout"}
    at_that_time: dict[str, Any] = {"as_of": recall.as_of, "seen_at": recall.as_of}
    assert memory.recall_memories(**query, **at_that_time).recall_hash == recall.recall_hash
    others = [memory.recall_memories(**query), memory.recall_memories(**query, **at_that_time, limit=2)]
    assert len({recall.recall_hash, *(other.recall_hash for other in others)}) == 3


def test_every_page_of_a_recall_has_its_hash(memory: Memory, clock: FakeClock) -> None:
    recall_of(memory, clock)
    query: dict[str, Any] = {"symbol": "XAUUSD", "strategy_name": "VolBreakout", "limit": 1}
    first = memory.recall_memories(**query, seen_at=clock.now())
    second = memory.recall_memories(**query, seen_at=clock.now(), cursor=first.next_cursor)
    assert first.memories != second.memories
    assert first.recall_hash == second.recall_hash


def test_explain_recall_takes_the_hash(memory: Memory, clock: FakeClock) -> None:
    recall = recall_of(memory, clock)
    memory_id = recall.memories[0].id
    by_hash = memory.explain_recall(memory_id=memory_id, recall=recall.recall_hash)
    assert by_hash == memory.explain_recall(memory_id=memory_id, recall=recall.recall)
    with pytest.raises(NotFound, match="recall: no recall r000000000000000000 is known here; call recall_memories"):
        memory.explain_recall(memory_id=memory_id, recall="r" + 18 * "0")


def test_a_decision_takes_the_hash_and_makes_it_known_to_every_process(url: str, clock: FakeClock) -> None:
    with open_memory(url, clock=clock) as memory:
        recall = recall_of(memory, clock)
        decision = memory.record_decision(**CALL, recalls=[recall.recall_hash])
        assert "Recorded without" not in decision.message
        (recorded,) = memory.list_recalls(decision_id=decision.episode.id).recalls
        assert recorded.recall == recall.recall
    clock.advance(hours=1)
    with open_memory(url, clock=clock) as other:
        explained = other.explain_recall(memory_id=recall.memories[0].id, recall=recall.recall_hash)
        assert explained.explanation.rank == 1
        second = other.record_decision(**CALL, recalls=[recall.recall_hash], idempotency_key="second")
        assert len(other.list_recalls(decision_id=second.episode.id).recalls) == 1


def test_a_decision_with_an_unknown_hash_is_recorded_with_a_note(url: str, clock: FakeClock) -> None:
    with open_memory(url, clock=clock) as memory, open_memory(url, clock=clock) as other:
        recall = recall_of(memory, clock)
        decision = other.record_decision(**CALL, recalls=[recall.recall_hash])
        assert f"Recorded without the recall {recall.recall_hash}" in decision.message
        assert other.list_recalls(decision_id=decision.episode.id).recalls == ()
        whole = other.record_decision(**CALL, recalls=[recall.recall], idempotency_key="whole")
        assert len(other.list_recalls(decision_id=whole.episode.id).recalls) == 1


def test_a_restarted_process_does_not_know_a_recall_that_was_not_recorded(tmp_path: Path) -> None:
    clock, url = FakeClock(T0), f"sqlite:///{tmp_path}/store.db"
    with open_memory(url, clock=clock) as memory:
        recall = recall_of(memory, clock)
    with open_memory(url, clock=clock) as restarted, pytest.raises(NotFound, match="is known here"):
        restarted.explain_recall(memory_id=recall.memories[0].id, recall=recall.recall_hash)
