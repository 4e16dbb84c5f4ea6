"""Retrievals: which episodes were recalled for which decisions, stored by set."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import func, select

from backsight.core.decision import Decision, Verdict
from backsight.core.memory.episodic import retrieved_set
from backsight.core.recall.record import RankedId, RecallQuery, RecallResult
from backsight.core.recall.score import ScoreFactors
from backsight.memory import Memory
from backsight.store.mapping import Noun
from backsight.store.memories import RETRIEVALS, RETRIEVED_EPISODES
from backsight.store.recalls import retrieval_counts, store_recalls
from backsight.testing import T0, FakeClock, a_snapshot
from support import deployed

DEPLOYMENT = "VolBreakout@main"
FACTORS = ScoreFactors(Q=0.5, Sim=1.0, Rec=1.0, Conf=0.5, Aff=1.0)


def recall_of(*ids: str) -> RecallResult:
    """A recall that ranked these episodes, in two rankings."""
    ranked = tuple(RankedId(id=each, value=0.5, factors=FACTORS) for each in ids)
    found: dict[Any, Any] = {"nearest": ranked, "warnings": ranked[:1]}
    return RecallResult(asked=RecallQuery(symbol="BTC", as_of=T0), candidates=len(ids), found=found)


def stored(memory: Memory, decision_id: str, recalls: Sequence[RecallResult], recalled: Sequence[str] = ()) -> None:
    with memory.writing() as transaction:
        store_recalls(transaction, memory.owner, decision_id, recalls, recalled, known_at=T0, recorded_at=T0)


def counts(memory: Memory, *ids: str) -> dict[str, int]:
    with memory.reading() as connection:
        found = retrieval_counts(memory.view(connection), ids)
    return {each: found[each] for each in ids}


def rows(memory: Memory, noun: Noun[Any]) -> int:
    with memory.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(noun.table)).scalar_one())


def tick(memory: Memory, clock: FakeClock, *recalled: str) -> Decision:
    clock.advance(minutes=1)
    at = clock.now()
    return memory.close_tick(
        deployment=DEPLOYMENT, at=at, before=a_snapshot(at=at), verdict=Verdict(kind="noop"), recalled=list(recalled)
    ).decision


def test_a_set_of_episodes_is_stored_once_however_many_decisions_recall_it(memory: Memory) -> None:
    for number in range(3):
        stored(memory, f"decision {number}", [recall_of("a", "b")])
    stored(memory, "decision 3", [recall_of("b", "a")])  # in another order
    assert (rows(memory, RETRIEVALS), rows(memory, RETRIEVED_EPISODES)) == (4, 2)
    assert counts(memory, "a", "b", "c") == {"a": 4, "b": 4, "c": 0}
    assert memory.verify_audit().intact


def test_the_decisions_that_recalled_an_episode_are_counted_not_the_recalls(memory: Memory) -> None:
    stored(memory, "first", [recall_of("a", "b"), recall_of("b", "c")], ["c", "d"])
    stored(memory, "second", [], ["b"])
    stored(memory, "third", [])
    assert counts(memory, "a", "b", "c", "d") == {"a": 1, "b": 2, "c": 1, "d": 1}
    assert memory.verify_audit().intact


def test_a_set_has_the_same_hash_whatever_the_order_of_its_ids() -> None:
    assert retrieved_set("ana", ["b", "a", "b"]) == retrieved_set("ana", ["a", "b"])
    assert retrieved_set("ana", ["ab"]) != retrieved_set("ana", ["a", "b"])


@pytest.mark.parametrize("checkpointed", [False, True])
def test_voiding_a_tick_removes_the_sets_that_no_other_decision_recalled(
    memory: Memory, clock: FakeClock, checkpointed: bool
) -> None:
    deployed(memory)
    tick(memory, clock, "a", "b")
    since = memory.verify_audit().checkpoint if checkpointed else None
    for recalled, left in ((("a", "b"), {"a": 1, "b": 1}), (("b", "c"), {"b": 1, "c": 0})):
        memory.void_tick(decision_id=tick(memory, clock, *recalled).id)
        assert counts(memory, *left) == left
        assert rows(memory, RETRIEVED_EPISODES) == 2
    clock.advance(minutes=-1)
    tick(memory, clock, "b", "c")  # the same tick again, with a set that this process remembers to have stored
    assert counts(memory, "b", "c") == {"b": 2, "c": 1}
    assert memory.verify_audit(since=since).findings == ()
