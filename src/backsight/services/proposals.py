"""Proposals: made from the patterns of a reflection; accepting one creates its plan or its belief."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from backsight.core.ids import canonical_json
from backsight.core.memory.semantic import DIMENSIONS, Domain
from backsight.core.reflection.notes import Proposal, Reflection
from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.proposals import Suggestion, suggest
from backsight.core.reflection.wording import bullet_text
from backsight.core.strategies import Deployment
from backsight.services.beliefs import make_stated_belief, state_belief
from backsight.services.context import Context
from backsight.services.plans import PlanRequest, store_plan
from backsight.store import experience as stored_experience
from backsight.store import notes as stored
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING, View

BY_ITSELF = "accepted by itself, as the deployment has it"


def propose(
    transaction: Transaction, ctx: Context, deployment: Deployment, reflection: Reflection
) -> tuple[Proposal, ...]:
    """Store the new proposals of a reflection's patterns, and accept them if the deployment is set to do so."""
    proposals: list[Proposal] = []
    for proposal in _new_proposals(transaction, deployment, reflection):
        transaction.add(stored.PROPOSALS, proposal)
        if deployment.memory.proposals == "accept":
            proposal = enact_proposal(transaction, ctx, proposal, reason=BY_ITSELF)
        proposals.append(proposal)
    return tuple(proposals)


def enact_proposal(transaction: Transaction, ctx: Context, proposal: Proposal, *, reason: str | None) -> Proposal:
    """Accept a proposal: create its plan or its belief."""
    arguments = stored.proposal_arguments(proposal)
    if proposal.kind == "plan":
        made_id = store_plan(transaction, ctx, PlanRequest(**arguments)).plan.id
    else:
        made_id = _store_belief(transaction, ctx, arguments)
    return _decide(transaction, ctx, replace(proposal, status="accepted", decided_reason=reason, made_id=made_id))


def decline_proposal(transaction: Transaction, ctx: Context, proposal: Proposal, *, reason: str | None) -> Proposal:
    """Reject a proposal: it is not made again."""
    return _decide(transaction, ctx, replace(proposal, status="rejected", decided_reason=reason))


def _new_proposals(transaction: Transaction, deployment: Deployment, reflection: Reflection) -> Iterator[Proposal]:
    """What the patterns suggest and was not proposed before."""
    for pattern in reflection.evidence:
        for suggestion in suggest(
            pattern, strategy_name=deployment.strategy_name, deployment_id=deployment.id, mode=deployment.mode
        ):
            if _is_known(transaction, deployment, pattern, suggestion):
                continue
            yield Proposal(
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


def _decide(transaction: Transaction, ctx: Context, proposal: Proposal) -> Proposal:
    """Store a decision on a proposal, known from now on."""
    decided = replace(proposal, known_at=max(ctx.now, proposal.known_at), recorded_at=ctx.now)
    transaction.revise(stored.PROPOSALS, decided)
    return decided


def _store_belief(transaction: Transaction, ctx: Context, content: dict[str, Any]) -> str:
    """Store the proposed belief unless it is there already, whatever its reference rate; return its id."""
    dimensions = {name: value for name, value in content.items() if name in DIMENSIONS}
    claim = {name: value for name, value in content.items() if name not in (*DIMENSIONS, "strategy_name")}
    belief = make_stated_belief(ctx, domain=Domain(strategy=content["strategy_name"], **dimensions), **claim)
    if stored_experience.stated_belief(transaction.connection, ctx.owner, belief.id) is None:
        state_belief(transaction, belief, recorded_at=ctx.now)
    return belief.id


def _is_known(transaction: Transaction, deployment: Deployment, pattern: Pattern, suggestion: Suggestion) -> bool:
    """Whether a suggestion was proposed before, or is believed already; a belief counts for all deployments."""
    connection, owner = transaction.connection, deployment.owner_id
    if stored.proposal(connection, owner, suggestion.id) is not None:
        return True
    if suggestion.kind == "plan":
        return False
    earlier = stored.proposals(
        View(connection, owner, EVERYTHING),
        strategy_name=deployment.strategy_name,
        mode=deployment.mode,
        kind="belief",
    )
    if any(proposal.evidence == pattern.key for proposal in earlier):
        return True
    dimension: dict[str, Any] = {pattern.dimension: pattern.value}
    claim = (Domain(strategy=deployment.strategy_name, **dimension), suggestion.content["claims"], None, None)
    records = stored_experience.beliefs(connection, owner, deployment.mode)
    beliefs = (record.standing.belief for record in records)
    return any((each.domain, each.claims, each.conditions, each.retired_at) == claim for each in beliefs)
