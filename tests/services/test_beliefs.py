"""Beliefs that concern a decision: by domain, by condition, and only while they are not retired."""

from datetime import timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict
from backsight.core.memory.semantic import Domain
from backsight.memory import Memory
from backsight.services.beliefs import DecisionSubject, beliefs_about, make_stated_belief, state_belief
from backsight.testing import FakeClock, a_trade_call

BTC_RANGING = DecisionSubject(
    symbol="BTC", direction="long", strategy_name="IM", context=ContextVector(regime="ranging", atr_d1=120.0)
)


def concerned(memory: Memory, subject: DecisionSubject) -> set[str]:
    with memory.reading() as connection:
        return {view.belief.proposition for view in beliefs_about(memory.view(connection), "live", subject)}


def test_a_belief_concerns_decisions_in_its_domain_and_under_its_condition(memory: Memory) -> None:
    atr: dict[str, Any] = {"field": "atr_d1", "op": ">", "value": 100}
    memory.add_belief(proposition="in ranges", regime="ranging")
    memory.add_belief(proposition="in trends", regime="trending_up")
    memory.add_belief(proposition="in wide ranges", regime="ranging", conditions=atr)
    memory.add_belief(proposition="in narrow ranges", regime="ranging", conditions={"not": atr})
    assert concerned(memory, BTC_RANGING) == {"in ranges", "in wide ranges"}


def test_a_dimension_that_a_decision_leaves_open_matches_no_domain(memory: Memory) -> None:
    memory.add_belief(proposition="for shorts", direction="short")
    memory.add_belief(proposition="for bitcoin", symbol="BTC")
    open_subject = DecisionSubject(symbol="BTC", direction=None, strategy_name=None, context=ContextVector())
    assert concerned(memory, open_subject) == {"for bitcoin"}


def test_a_retired_belief_concerns_nothing_from_then_on(memory: Memory, clock: FakeClock) -> None:
    belief = memory.add_belief(proposition="in ranges", regime="ranging").belief.belief
    clock.advance(hours=1)
    memory.retire_belief(belief_id=belief.id)
    assert concerned(memory, BTC_RANGING) == set()
    with memory.reading() as connection:
        before = memory.view(connection, memory.now - timedelta(minutes=1))
        assert len(beliefs_about(before, "live", BTC_RANGING)) == 1


def test_the_same_statement_is_stored_once_and_keeps_its_reference(memory: Memory) -> None:
    domain = Domain(regime="ranging")
    first = make_stated_belief(memory, proposition=" in ranges ", domain=domain, about="win_rate", reference=0.4)
    again = make_stated_belief(memory, proposition="in ranges", domain=domain, about="win_rate", reference=0.6)
    assert first.id == again.id
    with memory.writing() as transaction:
        assert not state_belief(transaction, first, recorded_at=memory.now)
        assert state_belief(transaction, first, recorded_at=memory.now)
        with pytest.raises(Conflict, match=r"^reference: .* 0\.4 since "):
            state_belief(transaction, again, recorded_at=memory.now)


def test_a_belief_says_for_how_many_trades_its_mean_is_known(memory: Memory, clock: FakeClock) -> None:
    memory.add_belief(proposition="in trends", regime="trending_up")
    for number in range(5):
        clock.advance(hours=30)
        memory.remember_trade(**a_trade_call(pnl_r=None if number == 4 else 1.0))
    (view,) = memory.list_beliefs().beliefs
    known = next(each for each in view.outcomes if each.unit == "R")
    assert (view.posterior.n, known.n, known.unknown) == (5, 4, 1)
