"""Plans that memory makes: from a credible belief, and from a deep drawdown."""

from typing import Any

import pytest

from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.plan_origins import plan_from_belief, plan_from_mood
from backsight.core.memory.planned_action import PlannedAction, action_json
from backsight.core.memory.prospective import (
    PlanSource,
)
from backsight.core.memory.semantic import Belief, Domain
from backsight.testing import T0
from core.memory.test_prospective import HOUR, adjust, check


def a_belief(**changes: Any) -> Belief:
    defaults: dict[str, Any] = {
        "owner_id": "ana",
        "id": "belief",
        "mode": "live",
        "proposition": "IM loses when it ranges",
        "domain": Domain(strategy="IM", regime="ranging"),
        "conditions": None,
        "about": "win_rate",
        "claims": "below",
        "reference": 0.5,
        "source": "induced",
        "prior_alpha": 1.0,
        "prior_beta": 1.0,
        "known_at": T0,
    }
    return Belief(**(defaults | changes))


def test_a_credible_belief_that_its_domain_is_worse_skips_it() -> None:
    plan = plan_from_belief(a_belief(), credibility=0.93, n=24, now=T0)
    assert plan is not None
    assert plan.condition == parse_condition({"regime": "ranging", "strategy": "IM"})
    assert (plan.action.kind, plan.strategy_name, plan.priority) == ("skip_trade", "IM", 0.93)
    assert plan.reasoning == "IM loses when it ranges (credibility .93, 24 episodes)"
    assert plan.sources == (PlanSource(kind="semantic", id="belief"),)


def test_a_credible_belief_that_its_domain_is_better_raises_confidence_there() -> None:
    belief = a_belief(claims="above", conditions=parse_condition({"field": "atr_d1", "op": ">", "value": 100.0}))
    plan = plan_from_belief(belief, credibility=0.93, n=24, now=T0)
    assert plan is not None
    assert plan.action == PlannedAction(kind="adjust_param", parameter="confidence", magnitude=1.2)
    assert check([plan], {"strategy": "IM", "regime": "ranging", "atr_d1": 120}, now=T0).applying == (plan,)
    assert check([plan], {"strategy": "IM", "regime": "ranging", "atr_d1": 90}, now=T0).applying == ()


@pytest.mark.parametrize(
    ("changes", "credibility", "n"),
    [
        ({}, 0.89, 50),
        ({}, 0.95, 19),
        ({"retired_at": T0}, 0.95, 50),
        ({"domain": Domain()}, 0.95, 50),
    ],
)
def test_other_beliefs_make_no_plan(changes: dict[str, Any], credibility: float, n: int) -> None:
    assert plan_from_belief(a_belief(**changes), credibility=credibility, n=n, now=T0) is None


def test_a_plan_from_a_belief_bars_another_one() -> None:
    first = plan_from_belief(a_belief(), credibility=0.95, n=20, now=T0)
    assert first is not None
    assert plan_from_belief(a_belief(), credibility=0.95, n=20, now=T0 + HOUR, existing=[first]) is None
    assert plan_from_belief(a_belief(), credibility=0.95, n=20, now=T0 + HOUR, existing=[]) is not None


def test_a_deep_drawdown_halves_the_size_until_half_of_it_is_regained() -> None:
    plan = plan_from_mood(Mood(drawdown_state=0.8), owner_id="ana", deployment_id="d", now=T0)
    assert plan is not None
    states = {state: check([plan], {"drawdown_state": state}, now=T0) for state in (0.8, 0.6, 0.5, 0.49)}
    assert [bool(checked.applying) for checked in states.values()] == [True, True, True, False]
    assert len(states[0.49].expired) == 1
    assert (plan.trigger_type, action_json(plan.action)) == ("state", adjust("size", 0.5))


def test_a_deployment_has_one_plan_from_its_mood() -> None:
    deep = Mood(drawdown_state=1.0)
    plan = plan_from_mood(deep, owner_id="ana", deployment_id="d", now=T0)
    assert plan is not None
    assert plan_from_mood(deep, owner_id="ana", deployment_id="d", now=T0 + HOUR, existing=[plan]) is None
    assert plan_from_mood(deep, owner_id="ana", deployment_id="e", now=T0 + HOUR, existing=[plan]) is not None


def test_a_belief_whose_conditions_cannot_be_joined_with_its_domain_makes_no_plan() -> None:
    deep: dict[str, Any] = {"hour": 9}
    for _ in range(7):
        deep = {"not": deep}
    belief = a_belief(conditions=parse_condition(deep))
    assert plan_from_belief(belief, credibility=0.95, n=20, now=T0) is None
