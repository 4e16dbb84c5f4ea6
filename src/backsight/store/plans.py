"""Plans and their events in the store."""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, bindparam, exists, func, literal_column, or_, select

from backsight.core.memory.prospective import Plan, PlanEvent
from backsight.store.codecs import CONDITION, PLAN_SOURCES
from backsight.store.mapping import noun
from backsight.store.reading import AS_OF, OWNED, fetch, fetch_one, owned, parameters, prepared_within, within
from backsight.store.unchanged import unchanged
from backsight.store.view import View

T = TypeVar("T")
PLANS = noun(
    Plan,
    "prospective_memory",
    codecs={"condition": CONDITION, "expires_when": CONDITION, "sources": PLAN_SOURCES},
    indexes=[("known_at", "id")],
)
PLAN_EVENTS = noun(
    PlanEvent,
    "plan_events",
    within={"prospective_memory": ("plan_id",)},
    indexes=[("plan_id", "known_at"), ("known_at", "id")],
)


def plan(connection: Connection, owner: str, plan_id: str) -> Plan | None:
    """The plan with this id."""
    return fetch_one(connection, PLANS, owned(PLANS, owner, PLANS.table.c.id == plan_id))


def plans(view: View) -> list[Plan]:
    """All plans, oldest first."""
    c = PLANS.table.c
    statement = owned(PLANS, view.owner, *within(PLANS, view.horizon)).order_by(c.known_at, c.id)
    return fetch(view.connection, PLANS, statement)


def first_plan_known_at(connection: Connection, owner: str) -> datetime | None:
    """When the first plan became known; None where there is no plan."""
    c = PLANS.table.c
    return connection.execute(select(func.min(c.known_at, type_=c.known_at.type)).where(c.owner_id == owner)).scalar()


ENDS = ("expired", "cancelled", "settled")
"""The kinds of events after which a plan no longer applies."""

_P, _E = PLANS.table.c, PLAN_EVENTS.table.c
_END = select(_E.id).where(
    _E.owner_id == _P.owner_id, _E.plan_id == _P.id, _E.kind.in_(ENDS), *prepared_within(PLAN_EVENTS)
)
_LATEST = select(
    *(
        select(func.max(c.known_at, type_=c.known_at.type)).where(c.owner_id == OWNED).scalar_subquery()
        for c in (_P, _E)
    )
)
_WITHOUT_END = (
    select(PLANS.table).where(_P.owner_id == OWNED, *prepared_within(PLANS), ~exists(_END)).order_by(_P.known_at, _P.id)
)


def plans_without_end(view: View) -> list[Plan]:
    """The plans that have no event that ends them, oldest first."""
    return _reused(
        view,
        "plans without end",
        lambda: fetch(view.connection, PLANS, _WITHOUT_END, parameters(view.owner, view.horizon)),
    )


def _reused(view: View, key: Hashable, read: Callable[[], list[T]]) -> list[T]:
    """The result of `read`; it is reused between views that see every plan and event."""
    connection, nouns = view.connection, (PLANS, PLAN_EVENTS)
    latest = unchanged(
        connection,
        view.owner,
        "latest plan or event",
        nouns,
        lambda: max(filter(None, connection.execute(_LATEST, parameters(view.owner)).one()), default=None),
    )
    if latest is None:
        return []
    if view.seen_at is not None or latest > view.as_of:
        return read()
    return unchanged(connection, view.owner, key, nouns, read)


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


def unexpired_plans(view: View, *, deployment_id: str, strategy_name: str) -> list[Plan]:
    """The plans in the scope of a deployment that have not expired, cancelled and settled ones too, oldest first."""
    values = parameters(view.owner, view.horizon, deployment=deployment_id, strategy=strategy_name)
    return fetch(view.connection, PLANS, _UNEXPIRED, values)


_EVENTS = (
    select(PLAN_EVENTS.table)
    .where(_E.owner_id == OWNED, _E.plan_id.in_(bindparam("plans", expanding=True)), *prepared_within(PLAN_EVENTS))
    .order_by(_E.known_at, _E.sequence, _E.recorded_at, _E.id)
)


def events_of(view: View, plan_ids: Sequence[str]) -> list[PlanEvent]:
    """The events of some plans, in order."""
    if not plan_ids:
        return []
    values = parameters(view.owner, view.horizon, plans=list(plan_ids))
    return _reused(view, ("plan events", *plan_ids), lambda: fetch(view.connection, PLAN_EVENTS, _EVENTS, values))


def events(view: View) -> list[PlanEvent]:
    """The events of all plans, in order."""
    c = PLAN_EVENTS.table.c
    statement = owned(PLAN_EVENTS, view.owner, *within(PLAN_EVENTS, view.horizon))
    return fetch(view.connection, PLAN_EVENTS, statement.order_by(c.known_at, c.sequence, c.recorded_at, c.id))
