"""Operations on plans: if a condition holds, then an action, until the plan expires."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.arguments import (
    AsOf,
    Flag,
    Instant,
    JsonObject,
    Key,
    Name,
    NotNegative,
    PlanContextArgument,
    Positive,
    Reason,
    SeenAt,
    Share,
    Symbol,
    as_context,
)
from backsight.core.context import PlanContext
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.memory.conditions import TriggerType
from backsight.core.memory.mood_series import mood_from
from backsight.core.memory.plan_check import Contradiction, join_deployments
from backsight.core.memory.plan_settlement import Settlement, compute_settlement
from backsight.core.memory.plan_words import values_in_words
from backsight.core.memory.prospective import (
    Plan,
    PlanEvent,
    PlanMode,
    PlanState,
    PlanStatus,
    is_in_scope,
    make_cancelled_event,
    make_settled_event,
    number_event,
    plan_state,
)
from backsight.core.portfolio import Direction
from backsight.core.scope import AnswerScope
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import Outcome
from backsight.operation import command, query
from backsight.services.context import Context, refuse_past
from backsight.services.deployments import deployment_at, resolve_scope
from backsight.services.id_prefixes import whole_id
from backsight.services.mood import manual_account_row, mood_in
from backsight.services.plan_checks import CheckInputs, PlanCheckResult, check_open_plans
from backsight.services.plan_evidence import present_evidence
from backsight.services.plan_values import PlanSubject, fields_of, plan_values
from backsight.services.plans import CreatedPlan, PlanRequest, count_events, open_plans, store_plan
from backsight.store import memories as stored_memories
from backsight.store import plans as stored
from backsight.store.database import Connection
from backsight.store.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFields:
    """The fields of a plan's conditions whose values are not known now."""

    plan_id: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFigures:
    """The figures of a plan as they are now, in words: of the agent's state, or of the belief that made the plan."""

    plan_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentPlans:
    """The plans that apply to one deployment now, by id, highest priority first."""

    deployment: str
    applying: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlans:
    """The plans that apply now, highest priority first, and what changed since the last check."""

    applying: tuple[PlanState, ...]
    rising: tuple[str, ...]
    """The ids of the plans whose condition has just begun to hold."""
    expired: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]
    missing: tuple[MissingFields, ...]
    """A comparison with a field whose value is not known does not hold."""
    figures: tuple[PlanFigures, ...]
    """The present figures of the plans that apply; the figures in a reason are those of the day it was given."""
    each: tuple[DeploymentPlans, ...]
    """The deployments whose plans were checked; empty before the first deployment."""
    dry_run: bool
    """Whether nothing was recorded."""
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanList:
    """Plans, oldest first."""

    plans: tuple[PlanState, ...]
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledPlan:
    """The plan, the outcomes that followed it, whether it helped, and whether it was already settled."""

    plan: PlanState
    settlement: Settlement
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledPlan:
    """The plan, and whether it was already cancelled."""

    plan: PlanState
    replayed: bool


@command(audience=("trader",))
def create_trading_plan(
    ctx: Context,
    *,
    trigger_condition: Annotated[
        JsonObject, 'When the plan applies, like {"regime": "ranging"} or {"field", "op", "value"}.'
    ],
    planned_action: Annotated[JsonObject, 'What to do then, like {"type": "skip_trade"}.'],
    reasoning: Annotated[Reason, "Why, in your words."],
    expiry_days: Annotated[
        Positive | None, "Days until the plan ends; 30 unless expires_at or expires_when is given."
    ] = None,
    deployment: Annotated[Key | None, "Only for this deployment, by name or id."] = None,
    strategy_name: Annotated[Name | None, "Only for this strategy."] = None,
    trigger_type: Annotated[TriggerType | None, "The kind of condition; derived from it if left out."] = None,
    priority: Annotated[Share, "The largest comes first."] = 0.5,
    expires_at: Annotated[Instant | None, "When the plan ends, instead of expiry_days."] = None,
    expires_when: Annotated[
        JsonObject | None, "A condition that ends the plan, written like trigger_condition."
    ] = None,
    mode: Annotated[
        PlanMode, "`while_true`: applies while the condition holds. `once`: applies once, when it begins to hold."
    ] = "while_true",
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless."] = None,
) -> CreatedPlan:
    """Create a plan: if a condition holds, then an action, until the plan expires.

    What has one meaning is read, and named in `notes`; the rest is refused with what to write instead.
    """
    request = PlanRequest(
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
    with ctx.writing() as transaction:
        return store_plan(transaction, ctx, request)


@command(audience=("trader",))
def check_active_plans(
    ctx: Context,
    *,
    current_context: Annotated[PlanContextArgument | None, "The context now; it may name the strategy too."] = None,
    deployment: Annotated[Key | None, "The deployment, by name or id; every one if left out."] = None,
    symbol: Annotated[Symbol | None, "The instrument you are about to decide on."] = None,
    direction: Annotated[Direction | None, "The direction you would trade."] = None,
    former_context: Annotated[PlanContextArgument | None, "The context at the last check, for crossings."] = None,
    event_kind: Annotated[Name | None, "The next event, like 'fomc'; else the calendar's."] = None,
    hours_to_event: Annotated[NotNegative | None, "How many hours remain until that event."] = None,
    dry_run: Annotated[Flag, "Record nothing; needed for as_of and seen_at."] = False,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> CheckedPlans:
    """Check which plans apply now, and record which of them have just begun to apply and which have expired.

    Call it before you decide. The mood and the time of day are read from memory; give the context.
    """
    refuse_past(as_of, seen_at, dry_run=dry_run)
    context = as_context(current_context)
    now = PlanSubject(
        context=context,
        symbol=symbol or (None if context is None else context.symbol),
        direction=direction,
        strategy=context.strategy if isinstance(context, PlanContext) else None,
        event_kind=event_kind,
        hours_to_event=hours_to_event,
    )
    former = None
    if former_context is not None:
        former = replace(now, context=as_context(former_context), event_kind=None, hours_to_event=None)
    if dry_run:
        with ctx.reading() as connection:
            view = ctx.view(connection, as_of, seen_at)
            scope, results = _check_deployments(view, deployment, now, former)
            return _checked_plans(view, scope, results, dry_run=True)
    with ctx.writing() as transaction:
        view = ctx.view(transaction.connection)
        scope, results = _check_deployments(view, deployment, now, former)
        for result in results:
            result.record(transaction)
        return _checked_plans(view, scope, results, dry_run=False)


def _check_deployments(
    view: View, deployment: str | None, now: PlanSubject, former: PlanSubject | None
) -> tuple[AnswerScope, list[PlanCheckResult]]:
    """Check the plans of the named deployment, or of every one; an event of one check counts in the next."""
    scope = resolve_scope(view, deployment=deployment, strategy_name=now.strategy)
    if now.strategy is not None and scope.strategy_name not in (None, now.strategy):
        runs = f"deployment {deployment!r} runs {scope.strategy_name!r}, not {now.strategy!r}"
        raise Invalid(f"{runs}; leave one of them out", field="current_context.strategy")
    results: list[PlanCheckResult] = []
    for target in scope.deployments or (None,):
        mood = mood_from(manual_account_row(view), None) if target is None else mood_in(view, target)
        earlier = [event for result in results for event in result.new_events]
        candidates = open_plans(view, target).after(earlier)
        fields = fields_of(candidates.plans)
        inputs = CheckInputs(
            values=plan_values(view, target, now, mood=mood, fields=fields, now=view.as_of),
            former_values=None if former is None else plan_values(view, target, former, mood=mood, fields=(), now=None),
            symbol=now.symbol,
            now=view.as_of,
            recorded_at=view.as_of,
        )
        results.append(check_open_plans(target, candidates, inputs))
    return scope, results


def _checked_plans(
    view: View, scope: AnswerScope, results: Sequence[PlanCheckResult], *, dry_run: bool
) -> CheckedPlans:
    """The answer over all deployments that were checked."""
    check = join_deployments(result.check for result in results)
    count = len({state.plan.id for result in results for state in result.open.plans})
    events = {event.id: event for result in results for event in result.open.events}.values()
    each = tuple(
        DeploymentPlans(deployment=target.name, applying=tuple(plan.id for plan in result.check.applying))
        for target, result in zip(scope.deployments, results, strict=False)
    )
    message = f"{len(check.applying)} of {count_of(count, 'open plan')} apply{_when(dry_run)}."
    if not count:
        message = f"No plan is open{_when(dry_run)}; create_trading_plan makes one, and so does an accepted proposal."
    elif len(each) > 1:
        message += f" By deployment: {', '.join(f'{len(one.applying)} to {one.deployment!r}' for one in each)}."
    if check.contradictions:
        message += f" {len(check.contradictions)} contradict each other: choose, and say why."
    return CheckedPlans(
        applying=tuple(plan_state(plan, events) for plan in check.applying),
        rising=tuple(dict.fromkeys(event.plan_id for event in check.rising)),
        expired=tuple(dict.fromkeys(event.plan_id for event in check.expired)),
        contradictions=check.contradictions,
        missing=tuple(MissingFields(plan_id=plan_id, fields=names) for plan_id, names in check.missing.items()),
        figures=_figures(view, scope, results),
        each=each,
        dry_run=dry_run,
        message=" ".join([*scope.notes, message]),
        as_of=view.as_of,
    )


def _figures(view: View, scope: AnswerScope, results: Sequence[PlanCheckResult]) -> tuple[PlanFigures, ...]:
    """Present figures by plan; of a plan that applies to several deployments, those of the first."""
    texts: dict[str, str] = {}
    for target, result in zip(scope.deployments or (None,), results, strict=True):
        for plan in result.check.applying:
            if plan.id not in texts:
                evidence = None if target is None else present_evidence(view, plan, target.mode)
                figures = [*values_in_words(plan.condition, result.values), evidence]
                texts[plan.id] = ", ".join(filter(None, figures))
    return tuple(PlanFigures(plan_id=plan_id, text=text) for plan_id, text in texts.items() if text)


def _when(dry_run: bool) -> str:
    return " then; a dry run, so nothing was recorded" if dry_run else " now"


@query(audience=("trader", "coach"))
def list_plans(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only plans in the scope of this deployment, by name or id."] = None,
    status: Annotated[PlanStatus | None, "Only plans with this status."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> PlanList:
    """List plans and what has become of them, oldest first."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target = None if deployment is None else deployment_at(view, deployment)
        plans, events = stored.plans(view), stored.events(view)
    if target is not None:
        scope = {"deployment_id": target.id, "strategy_name": target.strategy_name}
        plans = [plan for plan in plans if is_in_scope(plan, **scope)]
    states = [plan_state(plan, events, now=view.as_of) for plan in plans]
    listed = tuple(state for state in states if status in (None, state.status))
    return PlanList(plans=listed, message=_list_message(listed, states), as_of=view.as_of)


def _list_message(listed: Sequence[PlanState], states: Sequence[PlanState]) -> str:
    """How many plans are listed or, if none is, where there are any."""
    if listed:
        return f"{count_of(len(listed), 'plan')}, oldest first."
    if states:
        counts = sorted(Counter(state.status for state in states).items())
        return f"No plan has this status; there are {', '.join(f'{count} {status}' for status, count in counts)}."
    return "No plans; create_trading_plan makes one."


@command(audience=("trader",))
def cancel_plan(
    ctx: Context,
    *,
    plan_id: Annotated[Key, "The id of the plan, from create_trading_plan or list_plans."],
    reason: Annotated[Reason | None, "Why the plan is cancelled."] = None,
) -> CancelledPlan:
    """Cancel a plan before it expires."""
    with ctx.writing() as transaction:
        plan = _read_plan(transaction.connection, ctx.owner, plan_id)
        events = stored.events(ctx.view(transaction.connection))
        state = plan_state(plan, events)
        if state.status == "cancelled":
            return CancelledPlan(plan=state, replayed=True)
        if state.status != "active":
            raise Conflict(f"the plan is {state.status}; only an active plan can be cancelled", field="plan_id")
        cancelled = make_cancelled_event(state, now=ctx.now, note=reason)
        event = number_event(cancelled, sequence=count_events(events, plan_id))
        transaction.add(stored.PLAN_EVENTS, event)
    return CancelledPlan(plan=plan_state(plan, [*events, event]), replayed=False)


@command(audience=("trader",))
def settle_plan(
    ctx: Context,
    *,
    plan_id: Annotated[Key, "The id of the plan, from create_trading_plan or list_plans."],
    followed: Annotated[Flag, "Whether you did what the plan said."],
    note: Annotated[Reason | None, "Your comment on the plan."] = None,
) -> SettledPlan:
    """Settle a plan: which outcomes followed it, and whether following it helped.

    The outcomes are those of trades made while the plan held or, for a plan to skip trades, of the calls that were not
    traded. Whether the plan helped is stated only where ten outcomes and their confidence interval show it.
    """
    with ctx.writing() as transaction:
        view = ctx.view(transaction.connection)
        plan = _read_plan(transaction.connection, ctx.owner, plan_id)
        events = stored.events_of(view, [plan_id])
        former = next((event for event in events if event.kind == "settled"), None)
        if former is None:
            settled = make_settled_event(plan_state(plan, events), followed=followed, now=ctx.now, note=note)
            event = number_event(settled, sequence=len(events))
            transaction.add(stored.PLAN_EVENTS, event)
            events.append(event)
        elif former.followed != followed:
            answer = "followed" if former.followed else "not followed"
            raise Conflict(f"the plan is already settled as {answer}; a plan is settled once", field="followed")
        outcomes = _read_outcomes(view, events)
    settlement = compute_settlement(plan, events, outcomes, followed=followed)
    return SettledPlan(plan=plan_state(plan, events), settlement=settlement, replayed=former is not None)


def _read_outcomes(view: View, events: list[PlanEvent]) -> dict[str, Outcome | None]:
    """The current outcomes of the episodes that outcome events name, by episode id."""
    ids = {event.episode_id for event in events if event.kind == "outcome" and event.episode_id is not None}
    episodes = (stored_memories.episode(view, episode_id) for episode_id in sorted(ids))
    return {episode.id: episode.outcome for episode in episodes if episode is not None}


def _read_plan(connection: Connection, owner: str, plan_id: str) -> Plan:
    plan_id = whole_id(connection, owner, stored.PLANS, plan_id, field="plan_id")
    plan = stored.plan(connection, owner, plan_id)
    if plan is None:
        raise NotFound(f"no plan {plan_id!r}; list_plans lists them", field="plan_id")
    return plan
