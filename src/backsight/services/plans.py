"""Plans: creating one, and reading those that are open, with what became of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from backsight.core.errors import Conflict, Invalid
from backsight.core.instants import Horizon
from backsight.core.memory.conditions import TriggerType
from backsight.core.memory.loose_actions import loosen_action
from backsight.core.memory.loose_conditions import loosen_condition
from backsight.core.memory.plan_check import plans_holding
from backsight.core.memory.plan_words import plan_in_words
from backsight.core.memory.prospective import (
    Plan,
    PlanDraft,
    PlanEvent,
    PlanMode,
    PlanState,
    apply_events,
    is_in_scope,
    make_plan,
    plans_after_events,
)
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.store import plans as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View

ONCE = timedelta(minutes=5)
"""For how long after a `once` plan fired a trade still counts as made under the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedPlan:
    """The plan, how its condition and action were read, and whether an earlier call created it."""

    plan: Plan
    notes: tuple[str, ...]
    """What was written in other words than the grammar's, and what it was taken for."""
    replayed: bool
    message: str
    """The plan in plain English."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """A plan that somebody asks for, in the words of `create_trading_plan`."""

    trigger_condition: Mapping[str, Any]
    planned_action: Mapping[str, Any]
    reasoning: str
    expiry_days: float | None = None
    deployment: str | None = None
    strategy_name: str | None = None
    trigger_type: TriggerType | None = None
    priority: float = 0.5
    expires_at: datetime | None = None
    expires_when: Mapping[str, Any] | None = None
    mode: PlanMode = "while_true"
    idempotency_key: str | None = None


def store_plan(transaction: Transaction, ctx: Context, request: PlanRequest) -> CreatedPlan:
    """Check and store a plan; a repeated request returns the plan that is already stored."""
    connection, name = transaction.connection, request.deployment
    deployment = None if name is None else deployment_named(connection, ctx.owner, name)
    condition, notes = loosen_condition(request.trigger_condition, field="trigger_condition")
    action, notes_on_action = loosen_action(request.planned_action, field="planned_action")
    ends, notes_on_end = loosen_condition(request.expires_when, field="expires_when")
    notes += notes_on_action + notes_on_end
    draft = PlanDraft(
        condition=condition,
        action=action,
        reasoning=request.reasoning,
        deployment_id=None if deployment is None else deployment.id,
        strategy_name=request.strategy_name,
        trigger_type=request.trigger_type,
        priority=request.priority,
        expires_at=_expires_at(ctx.now, request),
        expires_when=ends,
        mode=request.mode,
    )
    plan = make_plan(draft, owner_id=ctx.owner, now=ctx.now, key=request.idempotency_key)
    former = stored.plan(connection, ctx.owner, plan.id)
    if former is None:
        transaction.add(stored.PLANS, plan)
        return _created(plan, notes, now=ctx.now, replayed=False)
    repeated = replace(plan, known_at=former.known_at, recorded_at=former.recorded_at)
    if request.expires_at is None:
        repeated = replace(repeated, expires_at=former.expires_at)  # it was counted in days from the first call
    if repeated != former:
        raise Conflict("this key already belongs to another plan; use a new key", field="idempotency_key")
    return _created(former, notes, now=ctx.now, replayed=True)


def _created(plan: Plan, notes: tuple[str, ...], *, now: datetime, replayed: bool) -> CreatedPlan:
    return CreatedPlan(plan=plan, notes=notes, replayed=replayed, message=f"{plan_in_words(plan, now=now)}.")


def _expires_at(now: datetime, request: PlanRequest) -> datetime | None:
    if request.expiry_days is None:
        return request.expires_at
    if request.expires_at is not None:
        raise Invalid("expires_at is given too; give one of the two", field="expiry_days")
    try:
        return now + timedelta(days=request.expiry_days)
    except OverflowError:
        raise Invalid(f"{request.expiry_days} days is too far off; give fewer", field="expiry_days") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPlans:
    """The plans in the scope of a deployment that have not ended, and all events of these plans."""

    plans: tuple[PlanState, ...]
    events: tuple[PlanEvent, ...]

    def after(self, events: Sequence[PlanEvent]) -> "OpenPlans":
        """These plans after more events."""
        plans = tuple(apply_events(state, events) for state in self.plans)
        return OpenPlans(plans=plans, events=(*self.events, *events))


def open_plans(view: View, deployment: Deployment | None, *, strategy_name: str | None = None) -> OpenPlans:
    """Read the plans in the scope of a deployment that have not ended.

    Without a deployment: the plans for every deployment, or for every deployment of the strategy.
    """
    scope: dict[str, str | None] = {"deployment_id": None, "strategy_name": strategy_name}
    if deployment is not None:
        scope = {"deployment_id": deployment.id, "strategy_name": deployment.strategy_name}
    plans = [plan for plan in stored.plans_without_end(view) if is_in_scope(plan, **scope)]
    events = stored.events_of(view, [plan.id for plan in plans])
    return OpenPlans(plans=tuple(plans_after_events(plans, events)), events=tuple(events))


def plans_holding_at(
    connection: Connection, deployment: Deployment, symbol: str, at: datetime, *, seen_at: datetime | None = None
) -> list[Plan]:
    """The plans of a deployment that held in a symbol at an instant, by the checks recorded until then."""
    view = View(connection, deployment.owner_id, Horizon(as_of=at, seen_at=seen_at))
    candidates = open_plans(view, deployment)
    in_symbol = plans_holding(candidates.events, symbol=symbol, deployment_id=deployment.id)
    in_general = plans_holding(candidates.events, symbol=None, deployment_id=deployment.id)
    checked = {
        event.plan_id for event in candidates.events if event.symbol == symbol and event.deployment_id == deployment.id
    }
    return [
        state.plan
        for state in candidates.plans
        if state.plan.id in (in_symbol if state.plan.id in checked else in_general)
        if state.plan.expires_at is None or at < state.plan.expires_at
        if state.plan.mode == "while_true" or (state.fired_at is not None and at - state.fired_at <= ONCE)
    ]


def count_events(events: Iterable[PlanEvent], plan_id: str) -> int:
    """How many events a plan has: the number of its next event."""
    return sum(event.plan_id == plan_id for event in events)
