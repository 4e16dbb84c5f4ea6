"""Lessons in the store: notes, the reflections that wrote them, and proposals."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal_column, select

from backsight.core.portfolio import Mode
from backsight.core.reflection.notes import (
    Proposal,
    ProposalKind,
    ProposalStatus,
    Reflection,
    ReflectionNote,
    ReflectionOutcome,
)
from backsight.core.reflection.patterns import WatchedPattern
from backsight.core.strategies import Deployment
from backsight.store.mapping import noun
from backsight.store.memories import EPISODES
from backsight.store.reading import (
    OWNED,
    Columns,
    fetch,
    fetch_one,
    known,
    matching,
    owned,
    parameters,
    prepared_known,
    within,
)
from backsight.store.unchanged import has_no_later_correction, unchanged
from backsight.store.view import View

NOTES = noun(
    ReflectionNote,
    "reflection_notes",
    names={"strategy_id": "skill_id", "strategy_version": "version"},
    as_json=["bullets", "adopted"],
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
    as_json=["evidence", "dropped", "watched", "carried"],
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


@dataclass(frozen=True, slots=True)
class LessonsText:
    """The part of a note that a prompt needs."""

    lessons_text: str
    content_hash: str


def _is_active(c: Columns) -> list[Any]:
    return [c.deployment_id == bindparam("deployment"), c.status == literal_column("'active'")]


_ACTIVE = prepared_known(NOTES, NOTES.columns, _is_active).limit(1)
_ACTIVE_TEXT = prepared_known(NOTES, ("lessons_text", "content_hash"), _is_active).limit(1)
_N = NOTES.table.c
_ACTIVE_NOW = select(_N.lessons_text, _N.content_hash, _N.known_at, _N.recorded_at).where(
    _N.owner_id == OWNED, *_is_active(_N)
)


def active_note(view: View, deployment_id: str) -> ReflectionNote | None:
    """The note in force for a deployment."""
    return fetch_one(view.connection, NOTES, _ACTIVE, parameters(view.owner, view.horizon, deployment=deployment_id))


def active_text(view: View, deployment_id: str) -> LessonsText | None:
    """The text and hash of the note in force for a deployment; cheaper than the whole note, for every tick."""
    values = parameters(view.owner, view.horizon, deployment=deployment_id)
    if has_no_later_correction(view, NOTES):
        current = unchanged(
            view.connection,
            view.owner,
            ("lessons", deployment_id),
            (NOTES,),
            lambda: view.connection.execute(_ACTIVE_NOW, values).first(),
        )
        if current is None or not view.horizon.holds(current.known_at, current.recorded_at):
            return None
        return LessonsText(current.lessons_text, current.content_hash)
    row = view.connection.execute(_ACTIVE_TEXT, values).first()
    return None if row is None else LessonsText(*row)


def strategy_note(view: View, strategy_id: str, mode: Mode) -> ReflectionNote | None:
    """The note that new deployments of a strategy start with."""
    statement = known(
        NOTES,
        view.owner,
        view.horizon,
        lambda c: [c.skill_id == strategy_id, c.mode == mode, c.deployment_id.is_(None), c.status == "active"],
    )
    return fetch_one(view.connection, NOTES, statement)


def note(connection: Connection, owner: str, note_id: str) -> ReflectionNote | None:
    """The current version of a note by its id."""
    return fetch_one(connection, NOTES, owned(NOTES, owner, NOTES.table.c.id == note_id))


def notes(view: View, *, strategy_id: str, deployment_id: str | None = None) -> list[ReflectionNote]:
    """The notes of a strategy, or of one of its deployments, newest first."""
    statement = known(
        NOTES,
        view.owner,
        view.horizon,
        lambda c: [c.skill_id == strategy_id, *matching(c, deployment_id=deployment_id)],
    )
    rows = fetch(view.connection, NOTES, statement)
    return sorted(rows, key=lambda each: (each.generated_at, each.id), reverse=True)


_R = REFLECTIONS.table.c


def last_reflection(view: View, *, strategy_id: str, mode: Mode) -> Reflection | None:
    """The last reflection of a strategy in a mode, by any of its deployments."""
    where = matching(REFLECTIONS, strategy_id=strategy_id, mode=mode)
    statement = owned(REFLECTIONS, view.owner, *within(REFLECTIONS, view.horizon), *where)
    return fetch_one(view.connection, REFLECTIONS, statement.order_by(_R.known_at.desc(), _R.id))


def watched_patterns(view: View, deployment: Deployment) -> tuple[WatchedPattern, ...]:
    """The watch list of the strategy and mode of a deployment, as the last reflection recorded it."""
    last = last_reflection(view, strategy_id=deployment.strategy_id, mode=deployment.mode)
    return () if last is None else last.watched


def last_reflection_at(view: View, deployment_id: str, *, outcome: ReflectionOutcome | None = None) -> datetime | None:
    """When a deployment last reflected, or last reflected with an outcome."""
    where = [_R.owner_id == view.owner, *matching(REFLECTIONS, deployment_id=deployment_id, came=outcome)]
    statement = select(_R.at).where(*where, *within(REFLECTIONS, view.horizon))
    return view.connection.execute(statement.order_by(_R.known_at.desc(), _R.id).limit(1)).scalar()


def reflections(
    view: View,
    *,
    limit: int,
    deployment_id: str | None = None,
    strategy_id: str | None = None,
    since: datetime | None = None,
) -> list[Reflection]:
    """The last reflections of a deployment, or of all deployments of a strategy, newest first."""
    where = matching(REFLECTIONS, deployment_id=deployment_id, strategy_id=strategy_id)
    if since is not None:
        where.append(_R.known_at >= since)
    statement = owned(REFLECTIONS, view.owner, *within(REFLECTIONS, view.horizon), *where)
    return fetch(view.connection, REFLECTIONS, statement.order_by(_R.known_at.desc(), _R.id).limit(limit))


def reflection(connection: Connection, owner: str, reflection_id: str) -> Reflection | None:
    """A reflection by its id."""
    return fetch_one(connection, REFLECTIONS, owned(REFLECTIONS, owner, _R.id == reflection_id))


def count_reflections(connection: Connection, owner: str, deployment_id: str) -> int:
    """How many reflections of a deployment are recorded, at any instant."""
    statement = select(func.count()).where(_R.owner_id == owner, _R.deployment_id == deployment_id)
    return connection.execute(statement).scalar_one()


def closed_since(view: View, deployment: Deployment, since: datetime | None) -> int:
    """How many trades of a deployment became known as closed after an instant."""
    c = EPISODES.table.c
    where = [
        c.owner_id == view.owner,
        c.mode == deployment.mode,
        c.strategy_name == deployment.strategy_name,
        c.deployment_id == deployment.id,
        c.kind == "trade",
        c.first_known_at <= view.as_of,
    ]
    if since is not None:
        where.append(c.first_known_at > since)
    return view.connection.execute(select(func.count()).where(*where)).scalar_one()


def proposal(connection: Connection, owner: str, proposal_id: str) -> Proposal | None:
    """The current version of a proposal by its id."""
    return fetch_one(connection, PROPOSALS, owned(PROPOSALS, owner, PROPOSALS.table.c.id == proposal_id))


def proposals(
    view: View,
    *,
    deployment_id: str | None = None,
    strategy_name: str | None = None,
    mode: Mode | None = None,
    kind: ProposalKind | None = None,
    status: ProposalStatus | None = None,
) -> list[Proposal]:
    """Proposals in the order in which they got their status."""
    values = {
        "deployment_id": deployment_id,
        "strategy_name": strategy_name,
        "mode": mode,
        "kind": kind,
        "status": status,
    }
    statement = known(PROPOSALS, view.owner, view.horizon, lambda c: matching(c, **values))
    return sorted(fetch(view.connection, PROPOSALS, statement), key=lambda each: (each.known_at, each.id))


_P = PROPOSALS.table.c
_PLAN_PROPOSALS = (
    select(PROPOSALS.table)
    .where(_P.owner_id == OWNED, _P.kind == "plan", _P.status.in_(("proposed", "accepted")))
    .order_by(_P.known_at, _P.id)
)


def plan_proposals(view: View, deployment_id: str | None = None) -> list[Proposal]:
    """The proposals of plans that are not decided yet, or accepted, in the order in which they got their status."""
    proposals = unchanged(
        view.connection,
        view.owner,
        "plan proposals",
        (PROPOSALS,),
        lambda: fetch(view.connection, PROPOSALS, _PLAN_PROPOSALS, parameters(view.owner)),
    )
    known = (each for each in proposals if each.known_at <= view.as_of)
    return [each for each in known if deployment_id in (None, each.deployment_id)]


def proposal_arguments(proposal: Proposal) -> dict[str, Any]:
    """The arguments of `create_trading_plan` or `add_belief` in a proposal."""
    arguments: dict[str, Any] = json.loads(proposal.content)
    return arguments
