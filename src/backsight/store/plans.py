"""Plans at rest, and what became of them."""

from collections.abc import Sequence

from sqlalchemy import Connection, exists, select

from backsight.core.instants import Horizon
from backsight.core.memory.prospective import KeptPlan, PlanEvent
from backsight.store.mapping import noun
from backsight.store.reading import fetch, fetch_one, owned, within

PLANS = noun(KeptPlan, "prospective_memory", indexes=[("known_at", "id")])
PLAN_EVENTS = noun(
    PlanEvent,
    "plan_events",
    within={"prospective_memory": ("plan_id",)},
    indexes=[("plan_id", "known_at"), ("known_at", "id"), ("episode_id",)],
)


def plan(connection: Connection, owner: str, plan_id: str) -> KeptPlan | None:
    """The plan of this id."""
    return fetch_one(connection, PLANS, owned(PLANS, owner, PLANS.table.c.id == plan_id))


def plans(connection: Connection, owner: str, horizon: Horizon) -> list[KeptPlan]:
    """All plans known then, oldest first."""
    c = PLANS.table.c
    return fetch(connection, PLANS, owned(PLANS, owner, *within(PLANS, horizon)).order_by(c.known_at, c.id))


ENDED = ("expired", "cancelled", "settled")


def unended(connection: Connection, owner: str, horizon: Horizon) -> list[KeptPlan]:
    """The plans known then of which no end was recorded by then, oldest first."""
    c, e = PLANS.table.c, PLAN_EVENTS.table.c
    ended = select(e.id).where(
        e.owner_id == c.owner_id, e.plan_id == c.id, e.kind.in_(ENDED), *within(PLAN_EVENTS, horizon)
    )
    left = owned(PLANS, owner, *within(PLANS, horizon), ~exists(ended))
    return fetch(connection, PLANS, left.order_by(c.known_at, c.id))


def events_of(connection: Connection, owner: str, horizon: Horizon, plans: Sequence[str]) -> list[PlanEvent]:
    """What became of some plans by then, in order."""
    if not plans:
        return []
    c = PLAN_EVENTS.table.c
    statement = owned(PLAN_EVENTS, owner, c.plan_id.in_(plans), *within(PLAN_EVENTS, horizon))
    return fetch(connection, PLAN_EVENTS, statement.order_by(c.known_at, c.recorded_at, c.id))


def events_about(connection: Connection, owner: str, horizon: Horizon, episode_id: str) -> list[PlanEvent]:
    """What was told of plans after an episode, in order."""
    c = PLAN_EVENTS.table.c
    statement = owned(PLAN_EVENTS, owner, c.episode_id == episode_id, *within(PLAN_EVENTS, horizon))
    return fetch(connection, PLAN_EVENTS, statement.order_by(c.known_at, c.id))


def events(connection: Connection, owner: str, horizon: Horizon) -> list[PlanEvent]:
    """What became of plans by then, in order."""
    c = PLAN_EVENTS.table.c
    statement = owned(PLAN_EVENTS, owner, *within(PLAN_EVENTS, horizon))
    return fetch(connection, PLAN_EVENTS, statement.order_by(c.known_at, c.recorded_at, c.id))
