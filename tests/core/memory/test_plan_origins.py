"""Plans that a credible belief suggests, and the plan that a deep drawdown makes."""

from typing import Any

import pytest

from backsight.core.memory.advice import Advice, DomainOutcome
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import evaluate_condition, parse_condition
from backsight.core.memory.plan_origins import advised_plan, condition_of_belief, may_suggest_plan, plan_from_mood
from backsight.core.memory.planned_action import action_json
from backsight.core.memory.semantic import Belief, Domain, EvidenceTally, Standing
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


def a_standing(n: int, *, established: bool = True, founding: int = 0, **changes: Any) -> Standing:
    return Standing(
        belief=a_belief(**changes),
        founding=EvidenceTally(wins=founding),
        tested=EvidenceTally(losses=n),
        established=established,
    )


@pytest.mark.parametrize(
    ("standing", "credibility"),
    [
        (a_standing(50), 0.89),
        (a_standing(19, founding=40), 0.95),
        (a_standing(50, retired_at=T0), 0.95),
        (a_standing(50, established=False), 0.99),
    ],
)
def test_only_an_established_and_credible_belief_in_force_may_suggest_a_plan(
    standing: Standing, credibility: float
) -> None:
    assert may_suggest_plan(a_standing(20), credibility=0.9)
    assert not may_suggest_plan(standing, credibility=credibility)


def test_the_plan_of_a_belief_applies_in_its_domain_and_under_its_conditions() -> None:
    belief = a_belief(conditions=parse_condition({"field": "atr_d1", "op": ">", "value": 100.0}))
    condition = condition_of_belief(belief)
    assert condition is not None
    for atr, holds in ((120, True), (90, False)):
        assert evaluate_condition(condition, {"regime": "ranging", "atr_d1": atr}).holds is holds
    assert condition_of_belief(a_belief(domain=Domain(strategy="IM"))) is None


@pytest.mark.parametrize(
    ("advice", "action"),
    [("trade_less", {"type": "skip_trade"}), ("trade_more", adjust("confidence", 1.2))],
)
def test_the_plan_of_a_belief_says_what_trades_earn(advice: Advice, action: dict[str, Any]) -> None:
    outcome = DomainOutcome(unit="R", n=24, mean=-0.5, interval=(-0.8, -0.2), elsewhere=0.1)
    condition = parse_condition({"regime": "ranging"})
    content = advised_plan(a_belief(), condition, advice, outcome, deployment_id="d")
    assert content["planned_action"] == action
    mean = "-0.50R (90%: -0.80 to -0.20R, n=24)"
    assert content["reasoning"] == f"Trades there earn {mean} against +0.10R elsewhere. Belief: IM loses when it ranges"


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
    assert condition_of_belief(a_belief(conditions=parse_condition(deep))) is None
