"""Lessons at rest: notes, the attempts that led to them, and what they propose."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, func, literal_column, select

from backsight.core.instants import Horizon
from backsight.core.portfolio import Mode
from backsight.core.reflection.notes import Proposal, ProposalKind, ProposalStatus, Reflection, ReflectionNote
from backsight.core.strategies import Deployment
from backsight.store.mapping import noun
from backsight.store.memories import EPISODES
from backsight.store.reading import fetch, fetch_one, known, matching, owned, parameters, prepared_known, within

NOTES = noun(
    ReflectionNote,
    "reflection_notes",
    names={"strategy_id": "skill_id", "strategy_version": "version"},
    indexes=[("deployment_id", "status"), ("skill_id", "generated_at")],
    only_one={
        ("deployment_id",): "status = 'active'",
        ("skill_id", "mode"): "status = 'active' AND deployment_id IS NULL",
    },
    revised=True,
)
REFLECTIONS = noun(
    Reflection,
    "reflections",
    within={"deployments": ("deployment_id",)},
    indexes=[("deployment_id", "known_at"), ("strategy_id", "known_at")],
)
PROPOSALS = noun(
    Proposal,
    "proposals",
    within={"deployments": ("deployment_id",)},
    indexes=[("deployment_id", "status")],
    revised=True,
)


_ACTIVE = prepared_known(
    NOTES, NOTES.columns, lambda c: [c.deployment_id == bindparam("deployment"), c.status == literal_column("'active'")]
).limit(1)


def active_note(connection: Connection, owner: str, deployment_id: str, horizon: Horizon) -> ReflectionNote | None:
    """The lessons in force for a deployment at a horizon."""
    return fetch_one(connection, NOTES, _ACTIVE, parameters(owner, horizon, deployment=deployment_id))


def strategy_note(
    connection: Connection, owner: str, strategy_id: str, mode: Mode, horizon: Horizon
) -> ReflectionNote | None:
    """The lessons that new deployments of a strategy start with."""
    return fetch_one(
        connection,
        NOTES,
        known(
            NOTES,
            owner,
            horizon,
            lambda c: [
                c.skill_id == strategy_id,
                c.mode == mode,
                c.deployment_id.is_(None),
                c.status == "active",
            ],
        ),
    )


def note(connection: Connection, owner: str, note_id: str) -> ReflectionNote | None:
    """The note of this id as it stands."""
    return fetch_one(connection, NOTES, owned(NOTES, owner, NOTES.table.c.id == note_id))


def notes(
    connection: Connection, owner: str, horizon: Horizon, *, strategy_id: str, deployment_id: str | None = None
) -> list[ReflectionNote]:
    """The notes of a strategy, or of one of its deployments, as they stood then, newest first."""
    found = fetch(
        connection,
        NOTES,
        known(
            NOTES,
            owner,
            horizon,
            lambda c: [c.skill_id == strategy_id, *matching(c, deployment_id=deployment_id)],
        ),
    )
    return sorted(found, key=lambda each: (each.generated_at, each.id), reverse=True)


_R = REFLECTIONS.table.c


def last_reflection(
    connection: Connection,
    owner: str,
    horizon: Horizon,
    *,
    deployment_id: str | None = None,
    strategy_id: str | None = None,
    mode: Mode | None = None,
    came: str | None = None,
) -> Reflection | None:
    """The last attempt of a deployment, or of all of a strategy in a mode; of those that came to this, where asked."""
    where = matching(REFLECTIONS, deployment_id=deployment_id, strategy_id=strategy_id, mode=mode, came=came)
    statement = owned(REFLECTIONS, owner, *within(REFLECTIONS, horizon), *where)
    return fetch_one(connection, REFLECTIONS, statement.order_by(_R.known_at.desc(), _R.id))


def reflections(
    connection: Connection,
    owner: str,
    horizon: Horizon,
    *,
    limit: int,
    deployment_id: str | None = None,
    strategy_id: str | None = None,
    since: datetime | None = None,
) -> list[Reflection]:
    """The last attempts of a deployment, or of all of a strategy, newest first."""
    where = matching(REFLECTIONS, deployment_id=deployment_id, strategy_id=strategy_id)
    if since is not None:
        where.append(_R.known_at >= since)
    statement = owned(REFLECTIONS, owner, *within(REFLECTIONS, horizon), *where)
    return fetch(connection, REFLECTIONS, statement.order_by(_R.known_at.desc(), _R.id).limit(limit))


def reflection(connection: Connection, owner: str, reflection_id: str) -> Reflection | None:
    """The attempt of this id."""
    return fetch_one(connection, REFLECTIONS, owned(REFLECTIONS, owner, _R.id == reflection_id))


def count_reflections(connection: Connection, owner: str, deployment_id: str) -> int:
    """How many attempts of a deployment are recorded, whatever the clock says."""
    counted = select(func.count()).where(_R.owner_id == owner, _R.deployment_id == deployment_id)
    return connection.execute(counted).scalar_one()


def closed_since(connection: Connection, home: Deployment, since: datetime | None, horizon: Horizon) -> int:
    """How many trades of a deployment became known as closed after an instant, up to a horizon."""
    c = EPISODES.table.c
    where = [
        c.owner_id == home.owner_id,
        c.mode == home.mode,
        c.strategy_name == home.strategy_name,
        c.deployment_id == home.id,
        c.kind == "trade",
        c.first_known_at <= horizon.as_of,
    ]
    if since is not None:
        where.append(c.first_known_at > since)
    return connection.execute(select(func.count()).where(*where)).scalar_one()


def proposal(connection: Connection, owner: str, proposal_id: str) -> Proposal | None:
    """The proposal of this id as it stands."""
    return fetch_one(connection, PROPOSALS, owned(PROPOSALS, owner, PROPOSALS.table.c.id == proposal_id))


def proposals(
    connection: Connection,
    owner: str,
    horizon: Horizon,
    *,
    deployment_id: str | None = None,
    strategy_name: str | None = None,
    mode: Mode | None = None,
    kind: ProposalKind | None = None,
    status: ProposalStatus | None = None,
) -> list[Proposal]:
    """Proposals as they stood then, in the order in which they came to stand so."""
    asked = {
        "deployment_id": deployment_id,
        "strategy_name": strategy_name,
        "mode": mode,
        "kind": kind,
        "status": status,
    }
    found = fetch(connection, PROPOSALS, known(PROPOSALS, owner, horizon, lambda c: matching(c, **asked)))
    return sorted(found, key=lambda each: (each.known_at, each.id))
