"""Proposals at work: made of patterns that lessons rest on, turned into plans and beliefs when they are accepted."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from backsight.core.ids import canonical_json
from backsight.core.memory.semantic import Domain
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
from backsight.store.view import EVERYTHING

BY_ITSELF = "accepted by itself, as the deployment has it"


def propose(
    transaction: Transaction, ctx: Context, home: Deployment, reflection: Reflection, patterns: Iterable[Pattern]
) -> tuple[Proposal, ...]:
    """What these patterns propose that was never proposed before, accepted where the deployment has it so."""
    made: list[Proposal] = []
    for pattern in patterns:
        about = {"strategy_name": home.strategy_name, "deployment_id": home.id, "mode": home.mode}
        for each in suggest(pattern, **about):  # type: ignore[arg-type]
            if _is_known(transaction, home, pattern, each):
                continue
            proposal = Proposal(
                owner_id=home.owner_id,
                id=each.id,
                kind=each.kind,
                deployment_id=home.id,
                strategy_name=home.strategy_name,
                mode=home.mode,
                reflection_id=reflection.id,
                evidence=pattern.key,
                statement=bullet_text(pattern),
                trade_ids=pattern.trade_ids,
                content=canonical_json(each.content),
                status="proposed",
                known_at=reflection.known_at,
                recorded_at=reflection.recorded_at,
            )
            transaction.add(stored.PROPOSALS, proposal)
            by_itself = home.memory.proposals == "accept"
            made.append(enact_proposal(transaction, ctx, proposal, reason=BY_ITSELF) if by_itself else proposal)
    return tuple(made)


def enact_proposal(transaction: Transaction, ctx: Context, proposal: Proposal, *, reason: str | None) -> Proposal:
    """The proposal as accepted, and the plan or the belief that it is from now on."""
    content: dict[str, Any] = json.loads(proposal.content)
    if proposal.kind == "plan":
        made_id = store_plan(transaction, ctx, PlanRequest(**content)).plan.id
    else:
        made_id = _believed(transaction, ctx, content)
    return _decided(transaction, ctx, replace(proposal, status="accepted", decided_reason=reason, made_id=made_id))


def decline_proposal(transaction: Transaction, ctx: Context, proposal: Proposal, *, reason: str | None) -> Proposal:
    """The proposal as rejected: it is not made again."""
    return _decided(transaction, ctx, replace(proposal, status="rejected", decided_reason=reason))


def _decided(transaction: Transaction, ctx: Context, proposal: Proposal) -> Proposal:
    decided = replace(proposal, known_at=max(ctx.now, proposal.known_at), recorded_at=ctx.now)
    transaction.revise(stored.PROPOSALS, decided)
    return decided


def _believed(transaction: Transaction, ctx: Context, content: dict[str, Any]) -> str:
    """The belief that was proposed; one that says the same, against whatever rate, is that belief."""
    stated = make_stated_belief(ctx, **content)
    if stored_experience.stated_belief(transaction.connection, ctx.owner, stated.id) is None:
        state_belief(transaction, stated, recorded_at=ctx.now)
    return stated.id


def _is_known(transaction: Transaction, home: Deployment, pattern: Pattern, suggestion: Suggestion) -> bool:
    """Whether it was proposed before, or is believed already: beliefs are of a strategy, whatever the deployment."""
    connection, owner = transaction.connection, home.owner_id
    if stored.proposal(connection, owner, suggestion.id) is not None:
        return True
    if suggestion.kind == "plan":
        return False
    others = stored.proposals(
        connection, owner, EVERYTHING, strategy_name=home.strategy_name, mode=home.mode, kind="belief"
    )
    if any(each.evidence == pattern.key for each in others):
        return True
    told = {pattern.dimension: pattern.value}
    domain, claims = Domain(strategy=home.strategy_name, **told), suggestion.content["claims"]  # type: ignore[arg-type]
    held = (each.standing.belief for each in stored_experience.beliefs(connection, owner, home.mode))
    told_before = (domain, claims, None, None)
    return any((each.domain, each.claims, each.conditions, each.retired_at) == told_before for each in held)
