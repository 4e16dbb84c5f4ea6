"""Plans at rest, and what became of them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, exists, func, literal_column, or_, select

from backsight.core.instants import Horizon
from backsight.core.memory.prospective import PlanEvent, PlanRecord
from backsight.store.mapping import noun
from backsight.store.reading import AS_OF, OWNED, fetch, fetch_one, owned, parameters, prepared_within, within

PLANS = noun(PlanRecord, "prospective_memory", indexes=[("known_at", "id")])
PLAN_EVENTS = noun(
    PlanEvent,
    "plan_events",
    within={"prospective_memory": ("plan_id",)},
    indexes=[("plan_id", "known_at"), ("known_at", "id")],
)


def plan(connection: Connection, owner: str, plan_id: str) -> PlanRecord | None:
    """The plan of this id."""
    return fetch_one(connection, PLANS, owned(PLANS, owner, PLANS.table.c.id == plan_id))


def plans(connection: Connection, owner: str, horizon: Horizon) -> list[PlanRecord]:
    """All plans known then, oldest first."""
    c = PLANS.table.c
    return fetch(connection, PLANS, owned(PLANS, owner, *within(PLANS, horizon)).order_by(c.known_at, c.id))


def first_known(connection: Connection, owner: str) -> datetime | None:
    """When the first plan became known; None where there is none."""
    c = PLANS.table.c
    return connection.execute(select(func.min(c.known_at, type_=c.known_at.type)).where(c.owner_id == owner)).scalar()


ENDED = ("expired", "cancelled", "settled")


_P, _E = PLANS.table.c, PLAN_EVENTS.table.c
_END = select(_E.id).where(
    _E.owner_id == _P.owner_id, _E.plan_id == _P.id, _E.kind.in_(ENDED), *prepared_within(PLAN_EVENTS)
)
_UNENDED = (
    select(PLANS.table).where(_P.owner_id == OWNED, *prepared_within(PLANS), ~exists(_END)).order_by(_P.known_at, _P.id)
)


def unended(connection: Connection, owner: str, horizon: Horizon) -> list[PlanRecord]:
    """The plans known then of which no end was recorded by then, oldest first."""
    return fetch(connection, PLANS, _UNENDED, parameters(owner, horizon))


_EXPIRED = select(_E.id).where(
    _E.owner_id == _P.owner_id, _E.plan_id == _P.id, _E.kind == literal_column("'expired'"), _E.known_at <= AS_OF
)
_UNEXPIRED = (
    select(PLANS.table)
    .where(_P.owner_id == OWNED, _P.known_at <= AS_OF, or_(_P.expires_at.is_(None), _P.expires_at > AS_OF))
    .where(or_(_P.deployment_id.is_(None), _P.deployment_id == bindparam("deployment")))
    .where(or_(_P.strategy_name.is_(None), _P.strategy_name == bindparam("strategy")))
    .where(~exists(_EXPIRED))
    .order_by(_P.known_at, _P.id)
)


def unexpired(
    connection: Connection, owner: str, *, deployment_id: str, strategy_name: str, now: datetime
) -> list[PlanRecord]:
    """The plans that bear on a deployment and have not expired, whatever else became of them, oldest first."""
    values = parameters(owner, Horizon(as_of=now), deployment=deployment_id, strategy=strategy_name)
    return fetch(connection, PLANS, _UNEXPIRED, values)


_EVENTS = (
    select(PLAN_EVENTS.table)
    .where(_E.owner_id == OWNED, _E.plan_id.in_(bindparam("plans", expanding=True)), *prepared_within(PLAN_EVENTS))
    .order_by(_E.known_at, _E.sequence, _E.recorded_at, _E.id)
)


def events_of(connection: Connection, owner: str, horizon: Horizon, plans: Sequence[str]) -> list[PlanEvent]:
    """What became of some plans by then, in order."""
    if not plans:
        return []
    return fetch(connection, PLAN_EVENTS, _EVENTS, parameters(owner, horizon, plans=list(plans)))


def events(connection: Connection, owner: str, horizon: Horizon) -> list[PlanEvent]:
    """What became of plans by then, in order."""
    c = PLAN_EVENTS.table.c
    statement = owned(PLAN_EVENTS, owner, *within(PLAN_EVENTS, horizon))
    return fetch(connection, PLAN_EVENTS, statement.order_by(c.known_at, c.sequence, c.recorded_at, c.id))
