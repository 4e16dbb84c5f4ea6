"""Ids are accepted by their beginning, as answers show them."""

from typing import Any

import pytest

from backsight.core.errors import Invalid, NotFound
from backsight.memory import Memory
from backsight.services import id_prefixes
from backsight.services.id_prefixes import whole_id
from backsight.store.trades import TRADES
from backsight.testing import a_trade_call

PLAN: dict[str, Any] = {
    "trigger_condition": {"regime": "ranging"},
    "planned_action": {"type": "skip_trade"},
    "reasoning": "it ranges",
}


def test_an_operation_accepts_the_beginning_of_an_id(memory: Memory) -> None:
    remembered = memory.remember_trade(**a_trade_call())
    trade = remembered.trade
    assert memory.get_trade(trade_id=trade.id[:8]).trade == trade
    assert memory.get_trade_reflection(trade_id=trade.id[:13]).trade == trade
    assert memory.annotate_trade(trade_id=trade.id[:8], reflection="too early").trade.reflection == "too early"
    plan = memory.create_trading_plan(**PLAN).plan
    assert memory.cancel_plan(plan_id=plan.id[:8]).plan.plan.id == plan.id
    belief = memory.add_belief(proposition="it works", symbol="XAUUSD").belief.belief
    assert memory.retire_belief(belief_id=belief.id[:8]).belief.belief.id == belief.id
    deployment = memory.get_my_deployments().deployments[0].deployment
    assert memory.get_agent_state(deployment=deployment.id[:8]).deployment == deployment


def test_an_episode_is_named_by_its_trade_too(memory: Memory) -> None:
    remembered = memory.remember_trade(**a_trade_call())
    recall = memory.recall_memories(symbol="XAUUSD")
    for key in (remembered.episode_id[:8], remembered.trade.id[:8], remembered.episode_id):
        explained = memory.explain_recall(memory_id=key, recall=recall.recall)
        assert explained.explanation.id == remembered.episode_id
    archived = memory.archive_episode(episode_id=remembered.trade.id[:8])
    assert archived.episode.id == remembered.episode_id


def test_too_short_or_unknown_beginnings_are_not_found(memory: Memory) -> None:
    trade = memory.remember_trade(**a_trade_call()).trade
    for key in (trade.id[:5], trade.id[:8].upper() + "x", "00000000"):
        with pytest.raises(NotFound, match="trade_id: no trade"):
            memory.get_trade(trade_id=key)


def test_a_beginning_of_several_ids_is_an_error_that_names_them(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = ["0123456789-a", "0123456789-b"]
    monkeypatch.setattr(id_prefixes, "ids_beginning_with", lambda *_: ids)
    with (
        memory.reading() as connection,
        pytest.raises(Invalid, match="trade_id: '01234567' begins several ids: ") as error,
    ):
        whole_id(connection, memory.owner, TRADES, "01234567", field="trade_id")
    assert all(each in error.value.message for each in ids)


def test_another_owners_ids_are_not_found(memory: Memory) -> None:
    trade = memory.remember_trade(**a_trade_call()).trade
    with memory.reading() as connection:
        assert whole_id(connection, "somebody else", TRADES, trade.id[:8], field="trade_id") == trade.id[:8]
