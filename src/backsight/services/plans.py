"""Plans at work: which apply at a tick, which are made of what was learned, and what followed them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from backsight.core.decision import Decision, LastTick
from backsight.core.errors import Conflict, Invalid
from backsight.core.instants import JUST_BEFORE, Horizon
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import Scalar, TriggerType, condition_values
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import BeliefRecord
from backsight.core.memory.prospective import (
    BELIEF_CREDIBILITY,
    MARKET_FIELDS,
    MOOD_BEGINS,
    MOOD_ENDS,
    Plan,
    PlanCheck,
    PlanEvent,
    PlanMode,
    PlanRecord,
    PlanSource,
    PlanStatus,
    apply_events,
    check_plans,
    comes_from_mood,
    is_in_scope,
    join_checks,
    make_cancelled_event,
    make_event,
    make_plan,
    number_event,
    plan_from_belief,
    plan_from_mood,
    plan_from_record,
    plan_record,
    plans_after_events,
    plans_holding,
)
from backsight.core.orders import BrokerSnapshot, Order, entry_direction
from backsight.core.portfolio import Direction
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.services.market import context_at, recent_bars
from backsight.services.mood import mood_at
from backsight.store import experience as stored_experience
from backsight.store import plans as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """A plan as it was made, and what has become of it."""

    plan: PlanRecord
    status: PlanStatus
    times_fired: int
    """How often its condition began to hold."""
    fired_at: datetime | None
    last_fired_at: datetime | None
    ended_at: datetime | None
    """When it expired or was cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedPlan:
    """The plan, and whether it was there before."""

    plan: PlanRecord
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingFields:
    """What a plan asks about that is not known now."""

    plan_id: str
    fields: tuple[str, ...]


ONCE = timedelta(minutes=5)
"""How long after a plan fired once a trade is still made under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlanCheck:
    """What the plans of a deployment say, and all that was ever told of them."""

    plans: tuple[Plan, ...]
    found: PlanCheck
    events: tuple[PlanEvent, ...]


def open_plans(connection: Connection, home: Deployment, horizon: Horizon) -> tuple[list[Plan], list[PlanEvent]]:
    """The plans that bear on a deployment and are not over, with what became of them so far."""
    rows = stored.unended(connection, home.owner_id, horizon)
    here = [row for row in rows if is_in_scope(row, deployment_id=home.id, strategy_name=home.strategy_name)]
    events = stored.events_of(connection, home.owner_id, horizon, [row.id for row in here])
    return plans_after_events(here, events), events


def all_open_plans(connection: Connection, owner: str, horizon: Horizon) -> list[Plan]:
    """All plans of an owner that are not over."""
    rows = stored.unended(connection, owner, horizon)
    return plans_after_events(rows, stored.events_of(connection, owner, horizon, [row.id for row in rows]))


def plans_holding_at(
    connection: Connection, home: Deployment, symbol: str, at: datetime, *, seen_at: datetime | None = None
) -> list[Plan]:
    """The plans of a deployment that held in a symbol at an instant, as its looks until then told."""
    plans, events = open_plans(connection, home, Horizon(as_of=at, seen_at=seen_at))
    by_symbol = plans_holding(events, symbol=symbol, deployment_id=home.id)
    without = plans_holding(events, symbol=None, deployment_id=home.id)
    looked_at = {event.plan_id for event in events if event.symbol == symbol and event.deployment_id == home.id}
    return [
        plan
        for plan in plans
        if plan.id in (by_symbol if plan.id in looked_at else without)
        if plan.expires_at is None or at < plan.expires_at
        if plan.mode == "while_true" or (plan.fired_at is not None and at - plan.fired_at <= ONCE)
    ]


def record_plan_check(
    transaction: Transaction,
    home: Deployment,
    plans: Sequence[Plan],
    events: Sequence[PlanEvent],
    values: Mapping[str, object],
    *,
    former_values: Mapping[str, object] | None,
    symbol: str | None,
    now: datetime,
    recorded_at: datetime,
) -> RecordedPlanCheck:
    """Say which plans apply, and record what began, ended and expired: once, however often one looks at an instant."""
    general = [plan for plan in plans if not plan.is_of_market]
    say = partial(check_plans, now=now, former_values=former_values, recorded_at=recorded_at)
    unnamed = {name: value for name, value in values.items() if name != "symbol"}
    found = join_checks(
        say(general, unnamed, holding=plans_holding(events, symbol=None, deployment_id=home.id)),
        say(
            [plan for plan in plans if plan.is_of_market],
            values,
            holding=plans_holding(events, symbol=symbol, deployment_id=home.id),
        ),
    )
    new = [
        number_event(event, sequence=count_events(events, event.plan_id), deployment_id=home.id)
        for event in (*found.rising, *found.falling, *found.expired)
    ]
    for event in new:
        transaction.add(stored.PLAN_EVENTS, event)
    told = (*events, *new)
    return RecordedPlanCheck(plans=tuple(apply_events(plan, new) for plan in plans), found=found, events=told)


def count_events(events: Iterable[PlanEvent], plan_id: str) -> int:
    """How many events were told of a plan: the next one's number."""
    return sum(event.plan_id == plan_id for event in events)


def make_plans(
    transaction: Transaction, home: Deployment, beliefs: Iterable[BeliefRecord], mood: Mood, *, now: datetime
) -> tuple[str, ...]:
    """Make the plans that beliefs and the mood of a deployment call for, where none bars them."""
    connection = transaction.connection
    credible = [each for each in beliefs if each.posterior.credibility >= BELIEF_CREDIBILITY]
    low = mood.drawdown_state >= MOOD_BEGINS
    if not credible and not low:
        return ()
    bars = _with_sources(connection, home, now)
    made: list[Plan | None] = [
        plan_from_belief(
            each.standing.belief,
            credibility=each.posterior.credibility,
            n=each.posterior.n,
            now=now,
            deployment_id=home.id,
            existing=bars,
        )
        for each in credible
    ]
    if low:
        felt = _felt(connection, home, bars, now)
        made.append(plan_from_mood(mood, owner_id=home.owner_id, deployment_id=home.id, now=now, existing=felt))
    new = [each for each in made if each is not None and stored.plan(connection, home.owner_id, each.id) is None]
    for plan in new:
        transaction.add(stored.PLANS, plan_record(plan))
    return tuple(plan.id for plan in new)


def _with_sources(connection: Connection, home: Deployment, now: datetime) -> list[Plan]:
    """The plans of a deployment that were made of a memory and have not expired: they may bar others of the same."""
    found = stored.unexpired(
        connection, home.owner_id, deployment_id=home.id, strategy_name=home.strategy_name, now=now
    )
    return [plan_from_record(row) for row in found if row.sources]


def _felt(connection: Connection, home: Deployment, plans: Iterable[Plan], now: datetime) -> list[Plan]:
    """The plans from a deployment's mood that are still at work, or were put away before the account recovered."""
    own = [plan for plan in plans if comes_from_mood(plan, home.id)]
    events = stored.events_of(connection, home.owner_id, Horizon(as_of=now), [plan.id for plan in own])
    standing = [apply_events(plan, events) for plan in own]
    return [plan for plan in standing if plan.status == "active" or not _recovered(connection, home, plan)]


def _recovered(connection: Connection, home: Deployment, plan: Plan) -> bool:
    """Whether the account has come out of the drawdown in which a plan was made and put away."""
    return stored_experience.was_below_drawdown_state(
        connection, home.owner_id, home.account_id, since=plan.known_at, below=MOOD_ENDS
    )


def cancel_plans_from_beliefs(transaction: Transaction, owner: str, beliefs: Collection[str], *, now: datetime) -> None:
    """Cancel the plans of any deployment that came from these beliefs, since they are retired."""
    if not beliefs:
        return
    gone = {PlanSource(kind="semantic", id=belief_id) for belief_id in beliefs}
    for plan in all_open_plans(transaction.connection, owner, Horizon(as_of=now)):
        in_force = plan.status == "active" and (plan.expires_at is None or now < plan.expires_at)
        if in_force and not gone.isdisjoint(plan.sources):
            told = stored.events_of(transaction.connection, owner, Horizon(as_of=now), [plan.id])
            event = make_cancelled_event(plan, now=now, note="its belief was retired")
            transaction.add(stored.PLAN_EVENTS, number_event(event, sequence=len(told)))


def record_outcome(transaction: Transaction, home: Deployment, episode: Episode, *, recorded_at: datetime) -> None:
    """Tell the plans that held when a trade or a call began how it ended; calls are what a skip left out."""
    connection, began = transaction.connection, episode.opened_at
    if began is None:
        return
    for plan in plans_holding_at(connection, home, episode.symbol, began):
        skipped = plan.action.kind == "skip_trade"
        if episode.kind == "call" and not skipped:
            continue
        told = stored.events_of(connection, home.owner_id, Horizon(as_of=episode.known_at), [plan.id])
        if any(event.kind == "outcome" and event.episode_id == episode.id for event in told):
            continue
        event = make_event(
            plan,
            "outcome",
            now=episode.known_at,
            recorded_at=recorded_at,
            episode_id=episode.id,
            outcome=episode.outcome,
            followed=episode.kind == "call" if skipped else None,
        )
        transaction.add(stored.PLAN_EVENTS, number_event(event, sequence=len(told), deployment_id=home.id))


def record_outcomes(transaction: Transaction, homes: Mapping[str, Deployment], episodes: Sequence[Episode]) -> None:
    """Tell plans how many trades ended; `homes` are their deployments, by id."""
    if not episodes:
        return
    first = stored.first_known(transaction.connection, episodes[0].owner_id)
    for episode in episodes:
        if first is not None and episode.opened_at is not None and episode.opened_at >= first:
            record_outcome(transaction, homes[episode.deployment_id], episode, recorded_at=episode.recorded_at)


def store_plan(
    transaction: Transaction,
    ctx: Context,
    *,
    trigger_condition: Mapping[str, Any],
    planned_action: Mapping[str, Any],
    reasoning: str,
    expiry_days: float | None = None,
    deployment: str | None = None,
    strategy_name: str | None = None,
    trigger_type: TriggerType | None = None,
    priority: float = 0.5,
    expires_at: datetime | None = None,
    expires_when: Mapping[str, Any] | None = None,
    mode: PlanMode = "while_true",
    idempotency_key: str | None = None,
) -> CreatedPlan:
    """The plan as it is kept, and whether it was there before."""
    home = None if deployment is None else deployment_named(transaction.connection, ctx.owner, deployment)
    made = make_plan(
        owner_id=ctx.owner,
        condition=trigger_condition,
        action=planned_action,
        reasoning=reasoning,
        now=ctx.now,
        deployment_id=None if home is None else home.id,
        strategy_name=strategy_name,
        trigger_type=trigger_type,
        priority=priority,
        expires_at=_ends_at(ctx.now, expiry_days, expires_at),
        expires_when=expires_when,
        mode=mode,
        key=idempotency_key,
    )
    row = plan_record(made)
    former = stored.plan(transaction.connection, ctx.owner, row.id)
    if former is None:
        transaction.add(stored.PLANS, row)
        return CreatedPlan(plan=row, replayed=False)
    dated = replace(row, known_at=former.known_at, recorded_at=former.recorded_at)
    if expires_at is None:
        dated = replace(dated, expires_at=former.expires_at)  # some days from when it was made
    if dated != former:
        raise Conflict("already used for another plan; use a new key for a new one", field="idempotency_key")
    return CreatedPlan(plan=former, replayed=True)


def check_plans_at_tick(
    transaction: Transaction,
    home: Deployment,
    decision: Decision,
    proposal: Order | None,
    before: BrokerSnapshot,
    last: LastTick | None,
) -> list[PlanCheck]:
    """What the plans of a deployment said at a tick, in every symbol that it held or decided on."""
    plans, events = open_plans(transaction.connection, home, Horizon(as_of=decision.at))
    if not plans:
        return []
    symbols: list[str | None] = [] if proposal is None else [proposal.symbol]
    symbols += [position.symbol for position in before.portfolio.positions]
    market = any(not MARKET_FIELDS.isdisjoint(plan.asks) for plan in plans)
    crossing = any(plan.crosses for plan in plans)
    about = partial(_values, transaction.connection, home, market=market)
    found: list[PlanCheck] = []
    for symbol in dict.fromkeys(symbols or [None]):
        direction = None if proposal is None or proposal.symbol != symbol else entry_direction(proposal, before)
        looked = record_plan_check(
            transaction,
            home,
            plans,
            events,
            about(symbol, direction, at=decision.at),
            former_values=about(symbol, None, at=last.at) if crossing and last is not None else None,
            symbol=symbol,
            now=decision.at,
            recorded_at=decision.recorded_at,
        )
        plans, events = list(looked.plans), list(looked.events)
        found.append(looked.found)
    return found


def _values(
    connection: Connection,
    home: Deployment,
    symbol: str | None,
    direction: Direction | None,
    *,
    at: datetime,
    market: bool,
) -> dict[str, Scalar]:
    """What conditions can ask about at a tick: the market by its bars, where that is asked, and the mood before it."""
    context = None
    if market and symbol is not None:
        context = context_at(symbol, at, recent_bars(connection, home.owner_id, symbol, Horizon(as_of=at)))
    return condition_values(
        now=at,
        context=context,
        mood=mood_at(connection, home, at - JUST_BEFORE),
        strategy=home.strategy_name,
        symbol=symbol,
        direction=direction,
    )


def _ends_at(now: datetime, expiry_days: float | None, expires_at: datetime | None) -> datetime | None:
    if expiry_days is None:
        return expires_at
    if expires_at is not None:
        raise Invalid("is given beside expires_at; give one of them", field="expiry_days")
    try:
        return now + timedelta(days=expiry_days)
    except OverflowError:
        raise Invalid(f"{expiry_days} days is too far off; give fewer", field="expiry_days") from None


def plan_view(row: PlanRecord, events: list[PlanEvent], *, now: datetime | None = None) -> PlanView:
    """What has become of a plan; one whose instant has come is over, also if nobody looked."""
    plan: Plan = apply_events(plan_from_record(row), events)
    over = plan.status == "active" and now is not None and plan.expires_at is not None and now >= plan.expires_at
    return PlanView(
        plan=row,
        status="expired" if over else plan.status,
        times_fired=plan.times_fired,
        fired_at=plan.fired_at,
        last_fired_at=plan.last_fired_at,
        ended_at=plan.expires_at if over else _ended_at(plan),
    )


def _ended_at(plan: Plan) -> datetime | None:
    """When a plan ended: at its instant, whenever somebody noticed."""
    if plan.expired_at is not None and plan.expires_at is not None:
        return min(plan.expired_at, plan.expires_at)
    return plan.expired_at or plan.cancelled_at or plan.settled_at
