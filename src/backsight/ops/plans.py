"""Plans: what to do if something comes to hold, and until when."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated

from backsight.arguments import (
    AsOf,
    ContextArgument,
    Flag,
    Instant,
    JsonObject,
    Key,
    Name,
    NotNegative,
    Positive,
    Reason,
    SeenAt,
    Share,
    Symbol,
)
from backsight.core.errors import Conflict, NotFound
from backsight.core.instants import Horizon
from backsight.core.memory.conditions import TriggerType, condition_values
from backsight.core.memory.prospective import (
    Contradiction,
    PlanEvent,
    PlanMode,
    PlanRecord,
    PlanStatus,
    Settlement,
    apply_events,
    compute_settlement,
    is_in_scope,
    make_cancelled_event,
    make_settled_event,
    number_event,
    plan_from_record,
    plan_record,
)
from backsight.core.portfolio import Direction
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Outcome
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.deployments import deployment_named, the_deployment
from backsight.services.mood import mood_at
from backsight.services.plans import (
    CreatedPlan,
    MissingFields,
    PlanView,
    count_events,
    open_plans,
    plan_view,
    record_plan_check,
    store_plan,
)
from backsight.store import memories as stored_memories
from backsight.store import plans as stored
from backsight.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlans:
    """The plans that apply now, the most urgent first, and what changed since the last look."""

    applying: tuple[PlanView, ...]
    rising: tuple[str, ...]
    """Plans whose condition has just begun to hold."""
    expired: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]
    missing: tuple[MissingFields, ...]
    """A comparison with a field that is not known does not hold."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanList:
    """Plans, oldest first."""

    plans: tuple[PlanView, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPlan:
    """The plan as it stands, what followed it and whether that helped, and whether it was settled before."""

    plan: PlanView
    settlement: Settlement
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledPlan:
    """The plan as it stands, and whether it was cancelled before."""

    plan: PlanView
    replayed: bool


@command(audience=("trader",))
def create_trading_plan(
    ctx: Context,
    *,
    trigger_condition: Annotated[
        JsonObject, 'When it applies, like {"regime": "ranging"} or {"field", "op", "value"}.'
    ],
    planned_action: Annotated[JsonObject, 'What to do then, like {"type": "skip_trade"}.'],
    reasoning: Annotated[Reason, "Why, in your words."],
    expiry_days: Annotated[Positive | None, "After how many days it ends; 30 if nothing else ends it."] = None,
    deployment: Annotated[Key | None, "Only for this deployment, by name or id."] = None,
    strategy_name: Annotated[Name | None, "Only for this strategy."] = None,
    trigger_type: Annotated[TriggerType | None, "What kind of condition it is; read from it if left out."] = None,
    priority: Annotated[Share, "0 to 1; the larger comes first."] = 0.5,
    expires_at: Annotated[Instant | None, "When it ends, instead of expiry_days."] = None,
    expires_when: Annotated[JsonObject | None, "Ends it when this holds, in the words of a condition."] = None,
    mode: Annotated[PlanMode, "Applies while the condition holds, or once when it begins to."] = "while_true",
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless: the same key is the same plan."] = None,
) -> CreatedPlan:
    """Create a plan: if a condition holds, then an action, until it expires.

    A condition that names an unknown field or compares it with the wrong kind of value is refused now, not when it is
    needed.
    """
    with ctx.writing() as transaction:
        return store_plan(
            transaction,
            ctx,
            trigger_condition=trigger_condition,
            planned_action=planned_action,
            reasoning=reasoning,
            expiry_days=expiry_days,
            deployment=deployment,
            strategy_name=strategy_name,
            trigger_type=trigger_type,
            priority=priority,
            expires_at=expires_at,
            expires_when=expires_when,
            mode=mode,
            idempotency_key=idempotency_key,
        )


@command(audience=("trader",))
def check_active_plans(
    ctx: Context,
    *,
    current_context: Annotated[ContextArgument | None, "The context now, as far as it is known."] = None,
    deployment: Annotated[Key | None, "Whose plans, by name or id; the only deployment's if left out."] = None,
    symbol: Annotated[Symbol | None, "The instrument you are about to decide on."] = None,
    direction: Annotated[Direction | None, "The way you would trade."] = None,
    former_context: Annotated[ContextArgument | None, "The context at the last look, for crossings."] = None,
    event_kind: Annotated[Name | None, "The market event that is next, like 'FOMC'."] = None,
    hours_to_event: Annotated[NotNegative | None, "How far it is off."] = None,
) -> CheckedPlans:
    """Check which plans apply now, and record which have just begun to and which are over.

    Call it before you decide. The mood and the time of day are known to it; give the context.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        home = the_deployment(connection, ctx, deployment, Horizon(as_of=ctx.now))
        if home is None:
            raise NotFound("nothing is deployed yet; deploy a strategy first", field="deployment")
        plans, told = open_plans(connection, home, Horizon(as_of=ctx.now))
        mood = mood_at(connection, home, ctx.now)
        about_symbol = symbol or (None if current_context is None else current_context.symbol)
        about = partial(
            condition_values, mood=mood, strategy=home.strategy_name, symbol=about_symbol, direction=direction
        )
        looked = record_plan_check(
            transaction,
            home,
            plans,
            told,
            about(now=ctx.now, context=current_context, event_kind=event_kind, hours_to_event=hours_to_event),
            former_values=None if former_context is None else about(context=former_context),
            symbol=about_symbol,
            now=ctx.now,
            recorded_at=ctx.now,
        )
    found, events = looked.found, list(looked.events)
    seen = tuple(plan_view(plan_record(plan), events) for plan in found.applying)
    return CheckedPlans(
        applying=seen,
        rising=tuple(event.plan_id for event in found.rising),
        expired=tuple(event.plan_id for event in found.expired),
        contradictions=found.contradictions,
        missing=tuple(MissingFields(plan_id=plan_id, fields=names) for plan_id, names in found.missing.items()),
        message=_message(home, len(plans), len(seen), len(found.contradictions)),
    )


@query(audience=("trader", "coach"))
def list_plans(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only those that bear on this deployment, by name or id."] = None,
    status: Annotated[PlanStatus | None, "Only those of this status."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> PlanList:
    """List plans and what has become of them, oldest first."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        rows = stored.plans(connection, ctx.owner, horizon)
        events = stored.events(connection, ctx.owner, horizon)
    if home is not None:
        plans = {row.id: plan_from_record(row) for row in rows}
        name = home.strategy_name
        rows = [row for row in rows if is_in_scope(plans[row.id], deployment_id=home.id, strategy_name=name)]
    seen = [plan_view(row, events, now=horizon.as_of) for row in rows]
    return PlanList(plans=tuple(each for each in seen if status in (None, each.status)), as_of=horizon.as_of)


@command(audience=("trader",))
def cancel_plan(
    ctx: Context,
    *,
    plan_id: Annotated[Key, "The plan, as create_trading_plan or list_plans named it."],
    reason: Annotated[Reason | None, "Why it is no longer wanted."] = None,
) -> CancelledPlan:
    """Cancel a plan before its time."""
    with ctx.writing() as transaction:
        row = _kept(transaction.connection, ctx, plan_id)
        events = stored.events(transaction.connection, ctx.owner, Horizon(as_of=ctx.now))
        plan = apply_events(plan_from_record(row), events)
        if plan.status == "cancelled":
            return CancelledPlan(plan=plan_view(row, events), replayed=True)
        if plan.status != "active":
            raise Conflict(f"it is {plan.status} already; only an active plan can be cancelled", field="plan_id")
        event = number_event(
            make_cancelled_event(plan, now=ctx.now, note=reason), sequence=count_events(events, plan_id)
        )
        transaction.add(stored.PLAN_EVENTS, event)
    return CancelledPlan(plan=plan_view(row, [*events, event]), replayed=False)


@command(audience=("trader",))
def settle_plan(
    ctx: Context,
    *,
    plan_id: Annotated[Key, "The plan, as create_trading_plan or list_plans named it."],
    followed: Annotated[Flag, "Whether you did what it said."],
    note: Annotated[Reason | None, "What you make of it."] = None,
) -> SettledPlan:
    """Settle a plan: what followed it, and whether following it helped.

    What followed are the outcomes of trades made while it held or, for a skip, of the calls that were not traded.
    Whether it helped is said only where ten outcomes and their interval tell.
    """
    with ctx.writing() as transaction:
        row = _kept(transaction.connection, ctx, plan_id)
        events = stored.events_of(transaction.connection, ctx.owner, Horizon(as_of=ctx.now), [plan_id])
        plan = apply_events(plan_from_record(row), events)
        told = next((event for event in events if event.kind == "settled"), None)
        if told is None:
            event = number_event(
                make_settled_event(plan, followed=followed, now=ctx.now, note=note), sequence=len(events)
            )
            transaction.add(stored.PLAN_EVENTS, event)
            events.append(event)
        elif told.followed != followed:
            raise Conflict("it is settled the other way already; a plan is settled once", field="followed")
        outcomes = _outcomes(transaction.connection, ctx, events)
    settlement = compute_settlement(plan, events, outcomes, followed=followed)
    return SettledPlan(plan=plan_view(row, events), settlement=settlement, replayed=told is not None)


def _outcomes(connection: Connection, ctx: Context, events: list[PlanEvent]) -> dict[str, Outcome | None]:
    """The outcomes, as they stand, of the episodes that events tell of."""
    named = {event.episode_id for event in events if event.kind == "outcome" and event.episode_id is not None}
    now = Horizon(as_of=ctx.now)
    found = (stored_memories.episode(connection, ctx.owner, each, now) for each in sorted(named))
    return {episode.id: episode.outcome for episode in found if episode is not None}


def _kept(connection: Connection, ctx: Context, plan_id: str) -> PlanRecord:
    row = stored.plan(connection, ctx.owner, plan_id)
    if row is None:
        raise NotFound(f"no plan {plan_id!r}; list_plans shows them", field="plan_id")
    return row


def _message(home: Deployment, plans: int, applying: int, contradictions: int) -> str:
    told = f"{applying} of {plans} plans of {home.name} apply now."
    return told if not contradictions else f"{told} {contradictions} contradict each other: choose, and say why."
