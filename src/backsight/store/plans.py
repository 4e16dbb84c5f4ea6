"""Plans at rest, and what became of them."""

from sqlalchemy import Connection

from backsight.core.instants import Horizon
from backsight.core.memory.prospective import KeptPlan, PlanEvent
from backsight.store.mapping import noun
from backsight.store.reading import fetch, fetch_one, owned, within

PLANS = noun(KeptPlan, "prospective_memory", indexes=[("known_at", "id")])
PLAN_EVENTS = noun(
    PlanEvent,
    "plan_events",
    within={"prospective_memory": ("plan_id",)},
    indexes=[("plan_id", "known_at"), ("known_at", "id")],
)


def plan(connection: Connection, owner: str, plan_id: str) -> KeptPlan | None:
    """The plan of this id."""
    return fetch_one(connection, PLANS, owned(PLANS, owner, PLANS.table.c.id == plan_id))


def plans(connection: Connection, owner: str, horizon: Horizon) -> list[KeptPlan]:
    """All plans known then, oldest first."""
    c = PLANS.table.c
    return fetch(connection, PLANS, owned(PLANS, owner, *within(PLANS, horizon)).order_by(c.known_at, c.id))


def events(connection: Connection, owner: str, horizon: Horizon) -> list[PlanEvent]:
    """What became of plans by then, in order."""
    c = PLAN_EVENTS.table.c
    statement = owned(PLAN_EVENTS, owner, *within(PLAN_EVENTS, horizon))
    return fetch(connection, PLAN_EVENTS, statement.order_by(c.known_at, c.recorded_at, c.id))
