"""Patterns propose beliefs and plans; a proposal is in force only after it is accepted."""

import json
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, NotFound
from backsight.core.reflection.notes import Proposal
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call
from support import dump, lost_in_ranges

DEPLOYMENT = "Fade@main"
RANGES = "regime_fit/regime=ranging"


def proposed(memory: Memory, clock: FakeClock, **settings: Any) -> dict[str, Proposal]:
    """The proposals, by kind, that Fade makes an hour after T0 after losses in ranging markets."""
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="Fade", thesis="What fell comes back.")
    memory.deploy(strategy_name="Fade", account="main", memory=MemoryOverrides(**settings))
    lost_in_ranges(memory, until=T0, deployment=DEPLOYMENT)
    clock.advance(hours=1)
    done = memory.reflect(deployment=DEPLOYMENT)
    assert {each.proposal.id for each in memory.list_proposals().proposals} == {each.id for each in done.proposals}
    return {each.kind: each for each in done.proposals}


def in_force(memory: Memory) -> tuple[int, int]:
    """The numbers of plans and of beliefs."""
    return len(memory.list_plans().plans), len(memory.list_beliefs().beliefs)


def test_a_losing_pattern_proposes_a_belief_and_a_plan_with_their_evidence(memory: Memory, clock: FakeClock) -> None:
    proposals = proposed(memory, clock)
    assert set(proposals) == {"belief", "plan"}
    assert json.loads(proposals["belief"].content) == {
        "proposition": "Fade earns less in ranging markets than elsewhere: -1.11R against +0.94R",
        "strategy_name": "Fade",
        "regime": "ranging",
        "about": "mean_outcome",
        "claims": "below",
        "reference": 0.945,
        "mode": "live",
    }
    plan = json.loads(proposals["plan"].content)
    assert plan["trigger_condition"] == {"field": "regime", "op": "==", "value": "ranging"}
    assert plan["planned_action"] == {"type": "skip_trade"}
    (attempt,) = memory.list_lessons(deployment=DEPLOYMENT).attempts
    for each in proposals.values():
        assert (each.status, each.evidence, each.reflection_id) == ("proposed", RANGES, attempt.id)
        assert len(each.trade_ids) == 12
        assert each.statement.startswith("ranging markets: -1.11 ± 0.59R over 12 trades")


def test_no_proposal_is_in_force_before_it_is_accepted(memory: Memory, clock: FakeClock) -> None:
    proposed(memory, clock)
    assert in_force(memory) == (0, 0)


def test_an_accepted_plan_is_a_plan_like_any_other(memory: Memory, clock: FakeClock) -> None:
    proposal = proposed(memory, clock)["plan"]
    clock.advance(hours=1)
    accepted = memory.accept_proposal(proposal_id=proposal.id, reason="seen it myself")
    assert (accepted.proposal.status, accepted.proposal.decided_reason) == ("accepted", "seen it myself")
    (plan,) = memory.list_plans().plans
    assert (plan.plan.id, plan.plan.reasoning) == (accepted.proposal.made_id, proposal.statement)
    assert plan.plan.expires_at == clock.now() + timedelta(days=30)
    checked = memory.check_active_plans(deployment=DEPLOYMENT, current_context=ContextVector(regime="ranging"))
    assert [each.plan.id for each in checked.applying] == [accepted.proposal.made_id]
    assert memory.verify_audit().intact


def test_an_accepted_belief_is_tested_by_every_trade_from_then_on(memory: Memory, clock: FakeClock) -> None:
    proposal = proposed(memory, clock)["belief"]
    clock.advance(hours=1)
    accepted = memory.accept_proposal(proposal_id=proposal.id).proposal
    (belief,) = memory.list_beliefs().beliefs
    assert (belief.belief.id, belief.belief.claims, belief.posterior.n) == (accepted.made_id, "below", 0)
    clock.advance(hours=1)
    memory.remember_trade(**a_trade_call(strategy_name="Fade", context_regime="ranging", pnl=-5.0, pnl_r=-1.0))
    assert memory.list_beliefs().beliefs[0].posterior.n == 1


def test_accepting_again_changes_nothing(memory: Memory, clock: FakeClock) -> None:
    proposal = proposed(memory, clock)["plan"]
    first = memory.accept_proposal(proposal_id=proposal.id)
    before = dump(memory)
    clock.advance(hours=1)
    again = memory.accept_proposal(proposal_id=proposal.id, reason="again")
    assert (first.replayed, again.replayed, again.proposal) == (False, True, first.proposal)
    assert dump(memory) == before


def test_a_rejected_proposal_stays_rejected_and_is_not_made_again(memory: Memory, clock: FakeClock) -> None:
    proposals = proposed(memory, clock)
    clock.advance(hours=1)
    for each in proposals.values():
        rejected = memory.reject_proposal(proposal_id=each.id, reason="too few")
        assert (rejected.proposal.status, rejected.replayed) == ("rejected", False)
        assert memory.reject_proposal(proposal_id=each.id).replayed
        with pytest.raises(Conflict, match="proposal_id: the proposal was rejected, which is final; create the plan"):
            memory.accept_proposal(proposal_id=each.id)
    clock.advance(hours=1)
    assert memory.reflect(deployment=DEPLOYMENT).proposals == ()
    assert {each.proposal.status for each in memory.list_proposals().proposals} == {"rejected"}
    assert in_force(memory) == (0, 0)


@pytest.mark.parametrize(("kind", "remedy"), [("plan", "cancel_plan"), ("belief", "retire_belief")])
def test_an_accepted_proposal_is_ended_through_its_plan_or_belief(
    memory: Memory, clock: FakeClock, kind: str, remedy: str
) -> None:
    proposal = proposed(memory, clock)[kind]
    memory.accept_proposal(proposal_id=proposal.id)
    with pytest.raises(Conflict, match=f"proposal_id: the proposal was accepted; end its {kind} with {remedy}"):
        memory.reject_proposal(proposal_id=proposal.id)


def test_a_deployment_may_accept_proposals_automatically(memory: Memory, clock: FakeClock) -> None:
    proposals = proposed(memory, clock, automatic_plans=True)
    assert {each.status for each in proposals.values()} == {"accepted"}
    assert proposals["plan"].decided_reason == "accepted automatically: the deployment has automatic_plans"
    assert in_force(memory) == (1, 1)
    assert memory.verify_audit().intact


def test_another_deployment_proposes_its_own_plan_and_not_the_same_belief(memory: Memory, clock: FakeClock) -> None:
    proposed(memory, clock)
    memory.deploy(strategy_name="Fade", account="main", name="second")
    assert [each.kind for each in memory.reflect(deployment="second").proposals] == ["plan"]


def test_an_existing_belief_is_not_proposed(memory: Memory, clock: FakeClock) -> None:
    memory.add_belief(proposition="ranges eat it", strategy_name="Fade", regime="ranging", claims="below")
    assert set(proposed(memory, clock)) == {"plan"}


def test_accepting_a_proposal_reuses_a_belief_with_the_same_proposition(memory: Memory, clock: FakeClock) -> None:
    proposal = proposed(memory, clock)["belief"]
    belief = json.loads(proposal.content) | {"reference": 0.5}
    stated = memory.add_belief(**belief).belief.belief
    clock.advance(hours=1)
    assert memory.accept_proposal(proposal_id=proposal.id).proposal.made_id == stated.id
    assert [each.belief.reference for each in memory.list_beliefs().beliefs] == [0.5]


def test_proposals_are_listed_with_their_status_as_of_an_instant(memory: Memory, clock: FakeClock) -> None:
    proposal = proposed(memory, clock)["plan"]
    clock.advance(hours=1)
    memory.accept_proposal(proposal_id=proposal.id)
    for as_of, statuses in (
        (T0, []),
        (T0 + timedelta(hours=1), ["proposed", "proposed"]),
        (clock.now(), ["proposed", "accepted"]),
    ):
        assert [each.proposal.status for each in memory.list_proposals(as_of=as_of).proposals] == statuses
    assert [each.proposal.id for each in memory.list_proposals(status="accepted").proposals] == [proposal.id]
    assert memory.list_proposals(deployment=DEPLOYMENT).proposals == memory.list_proposals().proposals
    assert all(each.still_holds for each in memory.list_proposals().proposals)


def test_a_proposal_says_when_its_pattern_no_longer_holds(memory: Memory, clock: FakeClock) -> None:
    proposed(memory, clock)
    for _ in range(8):
        clock.advance(days=1)
        times = {"closed_at": clock.now() - timedelta(hours=1), "opened_at": clock.now() - timedelta(minutes=90)}
        won = a_trade_call(strategy_name="Fade", symbol="BTC", context_regime="ranging", pnl=400.0, pnl_r=4.0)
        memory.remember_trade(**won | times, deployment=DEPLOYMENT)
    memory.reflect(deployment=DEPLOYMENT)
    assert not any(each.still_holds for each in memory.list_proposals().proposals)


@pytest.mark.parametrize("name", ["accept_proposal", "reject_proposal"])
def test_an_unknown_proposal_is_named(memory: Memory, clock: FakeClock, name: str) -> None:
    with pytest.raises(NotFound, match="proposal_id: no proposal 'nothing'; list_proposals lists them"):
        getattr(memory, name)(proposal_id="nothing")
    proposal = proposed(memory, clock)["plan"]
    clock.at = T0
    with pytest.raises(NotFound, match="proposal_id: no proposal "):
        getattr(memory, name)(proposal_id=proposal.id)
