"""Stored settings of agents, and the events of the sessions that their chats and heartbeats share."""

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from backsight.core.agents.agent_settings import AgentSettings
from backsight.core.agents.schedule_lease import ScheduleLease
from backsight.core.agents.session import SessionEvent
from backsight.store.mapping import noun
from backsight.store.reading import OWNED, fetch, fetch_one, known, owned, parameters, within
from backsight.store.unchanged import has_no_later_correction, unchanged
from backsight.store.view import View

SESSION_EVENTS = noun(
    SessionEvent,
    "session_events",
    key=("deployment_id", "sequence"),
    within={"deployments": ("deployment_id",)},
)
AGENT_SETTINGS = noun(
    AgentSettings,
    "agent_settings",
    key=("deployment_id",),
    within={"deployments": ("deployment_id",)},
    revised=True,
)
_E = SESSION_EVENTS.table.c
_SETTINGS = select(AGENT_SETTINGS.table).where(
    AGENT_SETTINGS.table.c.owner_id == OWNED, AGENT_SETTINGS.table.c.deployment_id == bindparam("deployment")
)


def session_events(view: View, deployment_id: str) -> list[SessionEvent]:
    """The events of a deployment's session, in their order."""
    where = (_E.deployment_id == deployment_id, *within(SESSION_EVENTS, view.horizon))
    return fetch(view.connection, SESSION_EVENTS, owned(SESSION_EVENTS, view.owner, *where).order_by(_E.sequence))


def next_sequence(connection: Connection, owner: str, deployment_id: str) -> int:
    """The number of the next event of a deployment's session."""
    last = select(func.max(_E.sequence)).where(_E.owner_id == owner, _E.deployment_id == deployment_id)
    number = connection.execute(last).scalar()
    return 0 if number is None else number + 1


def agent_settings(view: View, deployment_id: str) -> AgentSettings | None:
    """The settings of a deployment's agent; None if they were never changed."""
    if not has_no_later_correction(view, AGENT_SETTINGS):
        statement = known(AGENT_SETTINGS, view.owner, view.horizon, lambda c: [c.deployment_id == deployment_id])
        return fetch_one(view.connection, AGENT_SETTINGS, statement)
    current = unchanged(
        view.connection,
        view.owner,
        ("agent settings", deployment_id),
        (AGENT_SETTINGS,),
        lambda: fetch_one(view.connection, AGENT_SETTINGS, _SETTINGS, parameters(view.owner, deployment=deployment_id)),
    )
    return current if current is not None and view.horizon.holds(current.known_at, current.recorded_at) else None


def scheduled_agents(view: View) -> list[AgentSettings]:
    """The settings of all agents that have a schedule and are not stopped, by deployment."""
    statement = known(
        AGENT_SETTINGS, view.owner, view.horizon, lambda c: [c.schedule.is_not(None), c.stopped_at.is_(None)]
    )
    return sorted(fetch(view.connection, AGENT_SETTINGS, statement), key=lambda each: each.deployment_id)


SCHEDULE_LEASES = noun(ScheduleLease, "schedule_leases", key=("name",))
"""Working state, like a lock, that the audit chain does not record."""
_L = SCHEDULE_LEASES.table.c


def schedule_lease(connection: Connection, owner: str, name: str) -> ScheduleLease | None:
    """The lease with a name, expired or not."""
    return fetch_one(connection, SCHEDULE_LEASES, owned(SCHEDULE_LEASES, owner, _L.name == name))


def save_schedule_lease(connection: Connection, lease: ScheduleLease) -> None:
    """Write a lease; it replaces the one before."""
    delete_schedule_lease(connection, lease.owner_id, lease.name)
    connection.execute(insert(SCHEDULE_LEASES.table), SCHEDULE_LEASES.to_row(lease))


def delete_schedule_lease(connection: Connection, owner: str, name: str) -> None:
    """Delete a lease."""
    connection.execute(delete(SCHEDULE_LEASES.table).where(_L.owner_id == owner, _L.name == name))
