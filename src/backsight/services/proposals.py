"""Proposals: plans and beliefs that lessons and credible beliefs suggest, in force only once they are accepted.

A plan is proposed only where the outcomes of trades and the recommended sizes support its advice (`AdviceTrades`).
They are looked at again as trades close: an open proposal that they no longer support is withdrawn, and a plan that was
made from it ends. There is one proposal for each deployment, condition and action, however often it is made.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from backsight.core.errors import Conflict
from backsight.core.ids import canonical_json, derive_id
from backsight.core.instants import Horizon, format_instant
from backsight.core.memory.advice import Advice
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.experience import BeliefRecord
from backsight.core.memory.plan_origins import ADVISED_ACTIONS, advised_plan, condition_of_belief, may_suggest_plan
from backsight.core.memory.prospective import (
    PlanDraft,
    PlanSource,
    PlanState,
    make_cancelled_event,
    make_plan,
    number_event,
    plan_state,
)
from backsight.core.memory.semantic import DIMENSIONS, Domain, Standing, main_outcome
from backsight.core.reflection.notes import Proposal, Reflection, plan_subject, proposal_id
from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.proposals import Suggestion, suggest
from backsight.core.reflection.wording import bullet_text
from backsight.core.strategies import Deployment
from backsight.services.advice import AdviceTrades, is_due
from backsight.services.beliefs import make_stated_belief, state_belief
from backsight.services.context import Context
from backsight.store import experience as stored_experience
from backsight.store import notes as stored
from backsight.store import plans as stored_plans
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING, View

AUTOMATIC = "accepted automatically: the deployment has automatic_plans"


# Making proposals.


def propose_from_patterns(
    transaction: Transaction, ctx: Context, deployment: Deployment, reflection: Reflection
) -> tuple[Proposal, ...]:
    """Store the new proposals of a reflection's patterns, and accept them if the deployment has automatic plans."""
    proposals: list[Proposal] = []
    for proposal in _proposals_of_patterns(transaction, deployment, reflection):
        transaction.revise(stored.PROPOSALS, proposal)
        if deployment.memory.automatic_plans:
            proposal = enact_proposal(transaction, ctx, proposal, reason=AUTOMATIC)
        proposals.append(proposal)
    return tuple(proposals)


def propose_from_beliefs(
    transaction: Transaction,
    deployment: Deployment,
    records: Iterable[BeliefRecord],
    *,
    now: datetime,
    only_if_due: bool = True,
) -> tuple[Proposal, ...]:
    """Store the plans that credible beliefs propose, and accept them if the deployment has automatic plans.

    With `only_if_due`, a belief proposes nothing until `is_due` says that its evidence has grown enough.
    """
    proposals: list[Proposal] = []
    view = View(transaction.connection, deployment.owner_id, Horizon(as_of=now))
    trades = AdviceTrades(view, deployment)
    for record in records:
        if only_if_due and not is_due(record.posterior.n):
            continue
        proposal = _proposal_of_belief(view, deployment, record, trades, now=now)
        if proposal is not None:
            transaction.revise(stored.PROPOSALS, proposal)
            if deployment.memory.automatic_plans:
                proposal = _enact_plan(transaction, proposal, reason=AUTOMATIC, now=now)
            proposals.append(proposal)
    return tuple(proposals)


def _proposals_of_patterns(
    transaction: Transaction, deployment: Deployment, reflection: Reflection
) -> Iterator[Proposal]:
    """What the patterns suggest, as far as it is new and its advice is supported."""
    view = View(transaction.connection, deployment.owner_id, Horizon(as_of=reflection.known_at))
    trades = AdviceTrades(view, deployment)
    for pattern in reflection.evidence:
        for suggestion in suggest(
            pattern, strategy_name=deployment.strategy_name, deployment_id=deployment.id, mode=deployment.mode
        ):
            proposal = Proposal(
                owner_id=deployment.owner_id,
                id=suggestion.id,
                kind=suggestion.kind,
                deployment_id=deployment.id,
                strategy_name=deployment.strategy_name,
                mode=deployment.mode,
                reflection_id=reflection.id,
                evidence=pattern.key,
                statement=bullet_text(pattern),
                trade_ids=pattern.trade_ids,
                content=canonical_json(suggestion.content),
                status="proposed",
                known_at=reflection.known_at,
                recorded_at=reflection.recorded_at,
            )
            if suggestion.kind == "belief":
                if not _is_belief_known(transaction, deployment, pattern, suggestion):
                    yield proposal
            elif _may_propose_plan(view, proposal.id) and objection_to(trades, proposal) is None:
                yield proposal


def _proposal_of_belief(
    view: View, deployment: Deployment, record: BeliefRecord, trades: AdviceTrades, *, now: datetime
) -> Proposal | None:
    """The plan that a belief proposes to a deployment; None if it may not, or if the outcomes support no advice."""
    belief, posterior = record.standing.belief, record.posterior
    if not may_suggest_plan(record.standing, credibility=posterior.credibility):
        return None
    condition = condition_of_belief(belief)
    if condition is None or not _is_decisive(record.standing):
        return None
    ids = {
        advice: proposal_id(deployment.id, "plan", plan_subject(condition, action))
        for advice, action in ADVISED_ACTIONS.items()
    }
    possible = {advice: each for advice, each in ids.items() if _may_propose_plan(view, each)}
    if not possible:
        return None  # without reading the trades
    evidence = trades.evidence(condition)
    if evidence.advice not in possible:
        return None
    content = advised_plan(belief, condition, evidence.advice, evidence.outcome, deployment_id=deployment.id)
    return Proposal(
        owner_id=deployment.owner_id,
        id=possible[evidence.advice],
        kind="plan",
        deployment_id=deployment.id,
        strategy_name=deployment.strategy_name,
        mode=deployment.mode,
        reflection_id=None,
        belief_id=belief.id,
        evidence=f"belief {belief.id}",
        statement=str(content["reasoning"]),
        trade_ids=(),
        content=canonical_json(content),
        status="proposed",
        known_at=now,
        recorded_at=now,
    )


def _is_decisive(standing: Standing) -> bool:
    """Whether the interval of a belief's own mean outcome excludes 0, without which its domain is not looked at."""
    _, moments = main_outcome(standing.outcomes)
    low, high = moments.interval() or (0.0, 0.0)
    return high < 0.0 or low > 0.0


def _may_propose_plan(view: View, proposal_id: str) -> bool:
    """Whether a plan may be proposed: never before, withdrawn since, or accepted and its plan past its expiry."""
    former = stored.proposal(view.connection, view.owner, proposal_id)
    if former is None or former.status == "withdrawn":
        return True
    if former.status != "accepted" or former.made_id is None:
        return False
    plan = stored_plans.plan(view.connection, view.owner, former.made_id)
    return plan is not None and plan.expires_at is not None and plan.expires_at <= view.as_of


def _is_belief_known(
    transaction: Transaction, deployment: Deployment, pattern: Pattern, suggestion: Suggestion
) -> bool:
    """Whether a belief was proposed before, or is believed already, by any deployment."""
    connection, owner = transaction.connection, deployment.owner_id
    if stored.proposal(connection, owner, suggestion.id) is not None:
        return True
    earlier = stored.proposals(
        View(connection, owner, EVERYTHING),
        strategy_name=deployment.strategy_name,
        mode=deployment.mode,
        kind="belief",
    )
    if any(proposal.evidence == pattern.key for proposal in earlier):
        return True
    domain: Mapping[str, Any] = pattern.domain
    claim = (Domain(strategy=deployment.strategy_name, **domain), suggestion.content["claims"], None, None)
    records = stored_experience.beliefs(connection, owner, deployment.mode)
    beliefs = (record.standing.belief for record in records)
    return any((each.domain, each.claims, each.conditions, each.retired_at) == claim for each in beliefs)


# Deciding on proposals.


def enact_proposal(transaction: Transaction, ctx: Context, proposal: Proposal, *, reason: str | None) -> Proposal:
    """Accept a proposal: create its plan or its belief."""
    if proposal.kind == "plan":
        return _enact_plan(transaction, proposal, reason=reason, now=ctx.now)
    made_id = _store_belief(transaction, ctx, stored.proposal_arguments(proposal))
    accepted = replace(proposal, status="accepted", decided_reason=reason, made_id=made_id)
    return _decide(transaction, accepted, now=ctx.now)


def decline_proposal(transaction: Transaction, proposal: Proposal, *, reason: str | None, now: datetime) -> Proposal:
    """Reject a proposal: it is not made again."""
    return _decide(transaction, replace(proposal, status="rejected", decided_reason=reason), now=now)


def check_supported(view: View, deployment: Deployment, proposal: Proposal) -> None:
    """Refuse a plan whose advice the outcomes of trades do not support now."""
    objection = objection_to(AdviceTrades(view, deployment), proposal)
    if objection is not None:
        remedy = "create the plan with create_trading_plan if you want it all the same"
        raise Conflict(f"the advice is not supported any more: {objection}; {remedy}", field="proposal_id")


def objection_to(trades: AdviceTrades, proposal: Proposal) -> str | None:
    """Why the outcomes of trades do not support the advice of a proposed plan; None if they do."""
    arguments = stored.proposal_arguments(proposal)
    evidence = trades.evidence(parse_condition(arguments["trigger_condition"]))
    if evidence.advice is None:
        return evidence.objection
    return None if evidence.advice == _advice_of(arguments) else "the outcomes there now support the opposite"


def _advice_of(arguments: Mapping[str, Any]) -> Advice:
    return "trade_less" if arguments["planned_action"] == ADVISED_ACTIONS["trade_less"] else "trade_more"


def _enact_plan(transaction: Transaction, proposal: Proposal, *, reason: str | None, now: datetime) -> Proposal:
    """Accept a proposed plan; each time that it is proposed again, it is another plan."""
    arguments = stored.proposal_arguments(proposal)
    draft = PlanDraft(
        condition=arguments["trigger_condition"],
        action=arguments["planned_action"],
        reasoning=arguments["reasoning"],
        deployment_id=proposal.deployment_id,
        sources=() if proposal.belief_id is None else (PlanSource(kind="semantic", id=proposal.belief_id),),
    )
    key = derive_id("proposed plan", proposal.id, format_instant(proposal.known_at))
    plan = make_plan(draft, owner_id=proposal.owner_id, now=now, key=key)
    transaction.add(stored_plans.PLANS, plan)
    return _decide(transaction, replace(proposal, status="accepted", decided_reason=reason, made_id=plan.id), now=now)


def _decide(transaction: Transaction, proposal: Proposal, *, now: datetime) -> Proposal:
    """Store a decision on a proposal, known from now on."""
    decided = replace(proposal, known_at=max(now, proposal.known_at), recorded_at=now)
    transaction.revise(stored.PROPOSALS, decided)
    return decided


def _store_belief(transaction: Transaction, ctx: Context, content: dict[str, Any]) -> str:
    """Store the proposed belief unless it is there already, whatever its reference; return its id."""
    dimensions = {name: value for name, value in content.items() if name in DIMENSIONS}
    claim = {name: value for name, value in content.items() if name not in (*DIMENSIONS, "strategy_name")}
    belief = make_stated_belief(ctx, domain=Domain(strategy=content["strategy_name"], **dimensions), **claim)
    if stored_experience.stated_belief(transaction.connection, ctx.owner, belief.id) is None:
        state_belief(transaction, belief, recorded_at=ctx.now)
    return belief.id


# Ending advice that is no longer supported.


def review_advice(
    transaction: Transaction, deployment: Deployment, *, now: datetime, only_if_due: bool = False
) -> None:
    """Withdraw the open proposals of a deployment that outcomes no longer support, and end the plans made from them.

    With `only_if_due`, nothing is read until `is_due` says that the strategy has enough more trades.
    """
    view = View(transaction.connection, deployment.owner_id, Horizon(as_of=now))
    undecided = stored.plan_proposals(view, deployment.id)
    if not undecided or (only_if_due and not is_due(_count_trades(view, deployment))):
        return
    trades = AdviceTrades(view, deployment)
    for proposal in undecided:
        state = _plan_in_force(view, proposal)
        if proposal.status == "proposed" or state is not None:
            objection = objection_to(trades, proposal)
            if objection is not None:
                _end(transaction, view, proposal, state, reason=f"no longer supported: {objection}")


def end_advice_of_beliefs(transaction: Transaction, owner: str, belief_ids: Collection[str], *, now: datetime) -> None:
    """Withdraw the proposals, and end the plans, of all deployments that come from these beliefs, which are retired."""
    if not belief_ids:
        return
    view = View(transaction.connection, owner, Horizon(as_of=now))
    for proposal in stored.plan_proposals(view):
        if proposal.belief_id in belief_ids:
            _end(transaction, view, proposal, _plan_in_force(view, proposal), reason="its belief was retired")


def _end(transaction: Transaction, view: View, proposal: Proposal, state: PlanState | None, *, reason: str) -> None:
    """Withdraw a proposal that is not decided yet, or cancel the plan that was made from it."""
    if proposal.status == "proposed":
        _decide(transaction, replace(proposal, status="withdrawn", decided_reason=reason), now=view.as_of)
    elif state is not None:
        events = stored_plans.events_of(view, [state.plan.id])
        event = make_cancelled_event(state, now=view.as_of, note=reason)
        transaction.add(stored_plans.PLAN_EVENTS, number_event(event, sequence=len(events)))


def _plan_in_force(view: View, proposal: Proposal) -> PlanState | None:
    """The plan that was made from a proposal, if it is still in force."""
    plan = None if proposal.made_id is None else stored_plans.plan(view.connection, view.owner, proposal.made_id)
    if plan is None or plan.known_at > view.as_of:
        return None
    state = plan_state(plan, stored_plans.events_of(view, [plan.id]), now=view.as_of)
    return state if state.status == "active" else None


def _count_trades(view: View, deployment: Deployment) -> int:
    """How many trades of its strategy a deployment learns from."""
    domain = Domain(strategy=deployment.strategy_name).text()
    cell = stored_experience.cells(view.connection, view.owner, deployment.mode, [domain]).get(domain)
    return 0 if cell is None else cell.tally.n
