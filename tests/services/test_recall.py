"""Recall tokens: a recall is explained, recorded with the decision based on it, and recomputed from its token."""

import base64
import json
import zlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backsight.answers.brief import Table
from backsight.answers.layouts import brief_of
from backsight.core.context import ContextVector
from backsight.core.decision import Verdict
from backsight.core.errors import BacksightError, Invalid, NotFound
from backsight.memory import Memory, open_memory
from backsight.services.recall import decode_recall, encode_recall
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import deployed

DEPLOYMENT = "VolBreakout@main"
CALL: dict[str, Any] = {
    "symbol": "XAUUSD",
    "direction": "long",
    "strategy_name": "VolBreakout",
    "horizon_hours": 4.0,
    "reasoning": "would buy, may not",
}


def remember(memory: Memory, days: float, r: float = 3.0, **changes: Any) -> str:
    call = a_trade_call(closed_at=T0 - timedelta(days=days), pnl=r * 100.0, pnl_r=r, **changes)
    return str(memory.remember_trade(**call).episode_id)


def test_a_recall_is_recorded_with_the_decision_based_on_it(memory: Memory, clock: FakeClock) -> None:
    won, lost = remember(memory, 2), remember(memory, 3, -1.0)
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up", direction="long", limit=5)
    clock.advance(minutes=5)
    call = memory.record_decision(**CALL, recalls=[answer.recall, answer.recall]).episode
    listed = memory.list_recalls(decision_id=call.id)
    assert [(each.id, each.symbol, each.pnl) for each in listed.episodes] == [
        (won, "XAUUSD", 300.0),
        (lost, "XAUUSD", -100.0),
    ]
    [record] = listed.recalls
    assert record.result.candidates == 2
    assert {part: [each.id for each in matches] for part, matches in record.result.found.items()} == {
        "nearest": [won, lost],
        "warnings": [lost],
        "memories": [won, lost],
    }
    assert [each.factors for each in record.result.found["memories"]] == [each.factors for each in answer.memories]
    assert (record.result.asked.symbol, record.result.asked.as_of, record.result.asked.seen_at) == ("XAUUSD", T0, T0)
    assert record.result.asked.context.regime == "trending_up"
    assert record.recall == answer.recall
    assert memory.verify_audit().intact


def test_trades_recorded_after_a_recall_are_not_part_of_it(memory: Memory, clock: FakeClock) -> None:
    first = remember(memory, 2)
    answer = memory.recall_memories(symbol="XAUUSD")
    clock.advance(minutes=5)
    remember(memory, 1)
    call = memory.record_decision(**CALL, recalls=[answer.recall]).episode
    [record] = memory.list_recalls(decision_id=call.id).recalls
    assert [each.id for each in record.result.found["memories"]] == [first]


def test_a_tick_records_its_recalls_and_counts_them_as_retrieved(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    trade = memory.remember_trade(**a_trade_call(closed_at=T0 - timedelta(days=30)))
    strength = [each.strength for each in memory.recall_memories(symbol="XAUUSD").nearest]
    for _ in range(2):
        recall = memory.recall_memories(symbol="XAUUSD", deployment=DEPLOYMENT, mode="all").recall
        other = memory.recall_memories(symbol="XAUUSD").recall
        clock.advance(hours=1)
        call: dict[str, Any] = {"deployment": DEPLOYMENT, "verdict": Verdict(kind="noop")}
        call |= {"at": clock.now(), "before": a_snapshot(at=clock.now()), "recalls": [recall, other]}
        decision = memory.close_tick(**call).decision
        assert memory.close_tick(**call).replayed
        assert [each.result.asked.mode for each in memory.list_recalls(decision_id=decision.id).recalls] == [
            "all",
            "live",
        ]
    assert memory.get_trade_reflection(trade_id=trade.trade.id).retrieved == 2
    then = memory.recall_memories(symbol="XAUUSD", as_of=T0).nearest
    assert [each.strength for each in then] == strength
    assert memory.recall_memories(symbol="XAUUSD", as_of=T0).nearest[0].factors == then[0].factors


def test_reading_writes_nothing(memory: Memory) -> None:
    remember(memory, 2)
    links = memory.verify_audit().links
    answer = memory.recall_memories(symbol="XAUUSD")
    memory.explain_recall(memory_id=answer.memories[0].id, recall=answer.recall)
    assert memory.verify_audit().links == links


def test_a_recall_later_than_the_decision_is_refused(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    recall = memory.recall_memories(symbol="XAUUSD").recall
    call: dict[str, Any] = {"deployment": DEPLOYMENT, "verdict": Verdict(kind="noop"), "at": T0 - timedelta(hours=1)}
    with pytest.raises(Invalid, match=r"recalls\.0: is as of 2026-06-04T10:00:00.000000Z, after the decision"):
        memory.close_tick(**call, before=a_snapshot(at=T0 - timedelta(hours=1)), recalls=[recall])


def altered(recall: str, **changes: Any) -> str:
    query = json.loads(zlib.decompress(base64.urlsafe_b64decode(recall + "=" * (-len(recall) % 4))))
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(query | changes).encode())).decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"limit": 10_000},
        {"limit": 0},
        {"as_of": "2026-06-04T10:00:00"},
        {"symbol": None},
        {"context": {"sesion": "london"}},
        {"context": {"atr_d1": float("nan")}},
        {"seen_at": None},
        {"mode": "dream"},
    ],
)
def test_an_invalid_recall_token_is_refused(memory: Memory, changes: dict[str, Any]) -> None:
    recall = memory.recall_memories(symbol="XAUUSD").recall
    for each in (altered(recall, **changes), recall[:-5], "nonsense", "é", "A" * 100):
        with pytest.raises(Invalid, match="recall: not a recall"):
            memory.explain_recall(memory_id="x", recall=each)
        with pytest.raises(Invalid, match=r"recalls\.0: not a recall"):
            memory.record_decision(**CALL, recalls=[each])
    assert memory.verify_audit().links == 0


@pytest.mark.parametrize("named", [True, False], ids=["filter", "mood"])
def test_a_recall_about_the_deployment_of_another_owner_is_refused(url: str, clock: FakeClock, named: bool) -> None:
    with open_memory(url, owner="ana", clock=clock) as ana:
        deployed(ana)
        recall = ana.recall_memories(symbol="XAUUSD", deployment=DEPLOYMENT if named else None).recall
        query = decode_recall(recall, field="recall")
        assert (query.deployment_id is None, query.mood_of is None) == (not named, named)
        assert ana.record_decision(**CALL, recalls=[recall]).episode
    with open_memory(url, owner="bob", clock=clock) as bob:
        with pytest.raises(NotFound, match=r"^recalls\.0: .* not in this store"):
            bob.record_decision(**CALL, recalls=[recall])
        with pytest.raises(NotFound, match=r"^recall: .* not in this store"):
            bob.explain_recall(memory_id="x", recall=recall)
        assert bob.verify_audit().links == 0


def test_a_compression_bomb_is_refused(memory: Memory) -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 50_000_000 + b"{}", 9)).decode()
    with pytest.raises(BacksightError):
        memory.explain_recall(memory_id="x", recall=bomb[:20_000])


def test_a_token_contains_the_whole_query(memory: Memory) -> None:
    deployed(memory)
    answer = memory.recall_memories(
        symbol="XAUUSD",
        market_context="London, open",
        direction="short",
        context=ContextVector(regime="ranging", atr_d1=50.0, drawdown_pct=0.0),
        deployment=DEPLOYMENT,
        tags=["a"],
        since=T0 - timedelta(days=9),
        until=T0,
        limit=7,
        period_weight=True,
        memory_types=["episodic"],
    )
    query = decode_recall(answer.recall, field="recall")
    assert (query.limit, query.tags, query.period_weight, query.seen_at) == (7, ("a",), True, T0)
    assert encode_recall(query, now=T0) == answer.recall
    assert encode_recall(replace(query, direction="long"), now=T0) != answer.recall
    assert len(answer.recall) < 400


def test_a_decision_without_recalls_lists_none_and_an_unknown_decision_is_not_found(memory: Memory) -> None:
    call = memory.record_decision(**CALL).episode
    assert memory.list_recalls(decision_id=call.id).recalls == ()
    with pytest.raises(NotFound, match="decision_id: no decision 'nothing'"):
        memory.list_recalls(decision_id="nothing")


# Explanations


def test_an_explanation_gives_the_rank_of_a_memory_and_what_would_raise_it(memory: Memory) -> None:
    old = remember(memory, 300)
    for number in range(4):
        remember(memory, 1 + number, context_regime="ranging")
    answer = memory.recall_memories(symbol="XAUUSD", context_regime="trending_up", limit=2)
    explained = memory.explain_recall(memory_id=old, recall=answer.recall)
    explanation = explained.explanation
    assert {each.id for each in explained.episodes} == {old, *(each.id for each in explanation.ahead)}
    (fields,) = (part for part in brief_of(explained).parts if isinstance(part, Table))
    assert [cell.text for cell in fields.rows[0]].count("trending_up") == 2, "the query's value and the memory's"
    assert (explanation.rank, explanation.candidates, explanation.nearest_rank) == (1, 5, 1)
    assert {field.name: field.closeness for field in explanation.fields} == {"regime": 1.0}
    other = memory.explain_recall(memory_id=answer.memories[1].id, recall=answer.recall).explanation
    assert (other.rank, other.score) == (2, answer.memories[1].score)
    assert other.higher[0].factor == "Sim"
    assert other.higher[0].rank == 1


def test_an_explanation_says_why_a_memory_was_no_candidate(memory: Memory, clock: FakeClock) -> None:
    away, gold = remember(memory, 2), remember(memory, 3, symbol="EURUSD")
    memory.archive_episode(episode_id=away)
    waiting = memory.record_decision(**CALL).episode.id
    answer = memory.recall_memories(symbol="XAUUSD")
    clock.advance(hours=1)
    late = str(memory.remember_trade(**a_trade_call(closed_at=clock.now())).episode_id)
    reasons = [
        memory.explain_recall(memory_id=each, recall=answer.recall).explanation.excluded
        for each in (away, gold, waiting, late)
    ]
    assert reasons[:3] == ["it is archived", "its symbol is EURUSD, not XAUUSD", "it has no outcome"]
    assert str(reasons[3]).startswith(
        "it became known at 2026-06-04T11:00:00.000000Z, after 2026-06-04T10:00:00.000000Z"
    )
    with pytest.raises(NotFound, match="memory_id: no memory 'nothing'"):
        memory.explain_recall(memory_id="nothing", recall=answer.recall)
