"""Plans at work: which apply at a tick, which are made of what was learned, and what followed them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from backsight.core.instants import Horizon
from backsight.core.memory.affective import Mood
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import KeptBelief
from backsight.core.memory.prospective import (
    BELIEF_CREDIBILITY,
    MOOD_BEGINS,
    MOOD_ENDS,
    Checked,
    Plan,
    PlanEvent,
    Source,
    cancel,
    check,
    event_of,
    holding_of,
    in_scope,
    is_of_mood,
    joined,
    kept,
    numbered,
    plan_at,
    plan_from_belief,
    plan_from_mood,
    plans_at,
    read_plan,
)
from backsight.core.strategies import Deployment
from backsight.store import experience as stored_experience
from backsight.store import plans as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction

ONCE = timedelta(minutes=5)
"""How long after a plan fired once a trade is still made under it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What the plans of a deployment say, and all that was ever told of them."""

    plans: tuple[Plan, ...]
    found: Checked
    events: tuple[PlanEvent, ...]


def open_plans(connection: Connection, home: Deployment, horizon: Horizon) -> tuple[list[Plan], list[PlanEvent]]:
    """The plans that bear on a deployment and are not over, with what became of them so far."""
    rows = stored.unended(connection, home.owner_id, horizon)
    here = [row for row in rows if in_scope(row, deployment_id=home.id, strategy_name=home.strategy_name)]
    events = stored.events_of(connection, home.owner_id, horizon, [row.id for row in here])
    return plans_at(here, events), events


def every_open_plan(connection: Connection, owner: str, horizon: Horizon) -> list[Plan]:
    """All plans of an owner that are not over."""
    rows = stored.unended(connection, owner, horizon)
    return plans_at(rows, stored.events_of(connection, owner, horizon, [row.id for row in rows]))


def plans_held(
    connection: Connection, home: Deployment, symbol: str, at: datetime, *, seen_at: datetime | None = None
) -> list[Plan]:
    """The plans of a deployment that held in a symbol at an instant, as its looks until then told."""
    plans, events = open_plans(connection, home, Horizon(as_of=at, seen_at=seen_at))
    by_symbol = holding_of(events, symbol=symbol, deployment_id=home.id)
    without = holding_of(events, symbol=None, deployment_id=home.id)
    looked_at = {event.plan_id for event in events if event.symbol == symbol and event.deployment_id == home.id}
    return [
        plan
        for plan in plans
        if plan.id in (by_symbol if plan.id in looked_at else without)
        if plan.expires_at is None or at < plan.expires_at
        if plan.mode == "while_true" or (plan.fired_at is not None and at - plan.fired_at <= ONCE)
    ]


def look(
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
) -> Looked:
    """Say which plans apply, and record what began, ended and expired: once, however often one looks at an instant."""
    general = [plan for plan in plans if not plan.is_of_market]
    say = partial(check, now=now, former_values=former_values, recorded_at=recorded_at)
    unnamed = {name: value for name, value in values.items() if name != "symbol"}
    found = joined(
        say(general, unnamed, holding=holding_of(events, symbol=None, deployment_id=home.id)),
        say(
            [plan for plan in plans if plan.is_of_market],
            values,
            holding=holding_of(events, symbol=symbol, deployment_id=home.id),
        ),
    )
    new = [
        numbered(event, sequence=count_of(events, event.plan_id), deployment_id=home.id)
        for event in (*found.rising, *found.falling, *found.expired)
    ]
    for event in new:
        transaction.add(stored.PLAN_EVENTS, event)
    told = (*events, *new)
    return Looked(plans=tuple(plan_at(plan, new) for plan in plans), found=found, events=told)


def count_of(events: Iterable[PlanEvent], plan_id: str) -> int:
    """How many events were told of a plan: the next one's number."""
    return sum(event.plan_id == plan_id for event in events)


def plan_for(
    transaction: Transaction, home: Deployment, beliefs: Iterable[KeptBelief], mood: Mood, *, now: datetime
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
        transaction.add(stored.PLANS, kept(plan))
    return tuple(plan.id for plan in new)


def _with_sources(connection: Connection, home: Deployment, now: datetime) -> list[Plan]:
    """The plans of a deployment that were made of a memory and have not expired: they may bar others of the same."""
    found = stored.unexpired(
        connection, home.owner_id, deployment_id=home.id, strategy_name=home.strategy_name, now=now
    )
    return [read_plan(row) for row in found if row.sources]


def _felt(connection: Connection, home: Deployment, plans: Iterable[Plan], now: datetime) -> list[Plan]:
    """The plans from a deployment's mood that are still at work, or were put away before the account recovered."""
    own = [plan for plan in plans if is_of_mood(plan, home.id)]
    events = stored.events_of(connection, home.owner_id, Horizon(as_of=now), [plan.id for plan in own])
    standing = [plan_at(plan, events) for plan in own]
    return [plan for plan in standing if plan.status == "active" or not _recovered(connection, home, plan)]


def _recovered(connection: Connection, home: Deployment, plan: Plan) -> bool:
    """Whether the account has come out of the drawdown in which a plan was made and put away."""
    return stored_experience.was_above_water(
        connection, home.owner_id, home.account_id, since=plan.known_at, below=MOOD_ENDS
    )


def drop_plans(transaction: Transaction, owner: str, beliefs: Collection[str], *, now: datetime) -> None:
    """Cancel the plans of any deployment that came from these beliefs, since they are retired."""
    if not beliefs:
        return
    gone = {Source(kind="semantic", id=belief_id) for belief_id in beliefs}
    for plan in every_open_plan(transaction.connection, owner, Horizon(as_of=now)):
        in_force = plan.status == "active" and (plan.expires_at is None or now < plan.expires_at)
        if in_force and not gone.isdisjoint(plan.sources):
            told = stored.events_of(transaction.connection, owner, Horizon(as_of=now), [plan.id])
            event = cancel(plan, now=now, note="its belief was retired")
            transaction.add(stored.PLAN_EVENTS, numbered(event, sequence=len(told)))


def note_outcomes(transaction: Transaction, home: Deployment, episode: Episode, *, recorded_at: datetime) -> None:
    """Tell the plans that held when a trade or a call began how it ended; calls are what a skip left out."""
    connection, began = transaction.connection, episode.opened_at
    if began is None:
        return
    for plan in plans_held(connection, home, episode.symbol, began):
        skipped = plan.action.kind == "skip_trade"
        if episode.kind == "call" and not skipped:
            continue
        told = stored.events_of(connection, home.owner_id, Horizon(as_of=episode.known_at), [plan.id])
        if any(event.kind == "outcome" and event.episode_id == episode.id for event in told):
            continue
        event = event_of(
            plan,
            "outcome",
            now=episode.known_at,
            recorded_at=recorded_at,
            episode_id=episode.id,
            outcome=episode.outcome,
            followed=episode.kind == "call" if skipped else None,
        )
        transaction.add(stored.PLAN_EVENTS, numbered(event, sequence=len(told), deployment_id=home.id))


def note_many_outcomes(transaction: Transaction, homes: Mapping[str, Deployment], episodes: Sequence[Episode]) -> None:
    """Tell plans how many trades ended; `homes` are their deployments, by id."""
    if not episodes:
        return
    first = stored.first_known(transaction.connection, episodes[0].owner_id)
    for episode in episodes:
        if first is not None and episode.opened_at is not None and episode.opened_at >= first:
            note_outcomes(transaction, homes[episode.deployment_id], episode, recorded_at=episode.recorded_at)
