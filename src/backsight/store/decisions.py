"""Decisions at rest, and what was shown for them."""

from collections.abc import Collection
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, or_, select

from backsight.core.decision import Decision, LastTick, Segment, ShownSegment
from backsight.core.instants import Horizon
from backsight.core.risk_state import Attempt
from backsight.store.mapping import noun
from backsight.store.reading import (
    OWNED,
    fetch,
    fetch_one,
    in_batches,
    matching,
    owned,
    parameters,
    prepared_within,
    within,
)

DECISIONS = noun(
    Decision,
    "decision_snapshots",
    names={"strategy_id": "skill_id", "strategy_version": "version"},
    within={"deployments": ("deployment_id",)},
    indexes=[("account_id", "at", "sequence"), ("deployment_id", "at", "sequence")],
)
SEGMENTS = noun(ShownSegment, "shown_segments", key=("hash",))


_C = DECISIONS.table.c
_DECISION = select(DECISIONS.table).where(_C.owner_id == OWNED, _C.id == bindparam("id"))
_NEWEST_FIRST = _C.at.desc(), _C.sequence.desc()
_LAST = select(*(_C[field.name] for field in fields(LastTick)))
_LAST_OF_ACCOUNT = (
    _LAST.where(_C.owner_id == OWNED, _C.account_id == bindparam("account")).order_by(*_NEWEST_FIRST).limit(1)
)
_LAST_OF_DEPLOYMENT = (
    _LAST.where(_C.owner_id == OWNED, _C.deployment_id == bindparam("deployment"), *prepared_within(DECISIONS))
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_ATTEMPTS = (
    select(_C.at, _C.verdict_kind, _C.verdict_rule)
    .where(_C.owner_id == OWNED, _C.deployment_id == bindparam("deployment"), _C.at >= bindparam("since"))
    .where(_C.verdict_kind != "noop", *prepared_within(DECISIONS))
    .order_by(_C.at, _C.sequence)
)

_SEGMENT = select(SEGMENTS.table.c.hash).where(
    SEGMENTS.table.c.owner_id == OWNED, SEGMENTS.table.c.hash == bindparam("hash")
)


def decision(connection: Connection, owner: str, decision_id: str) -> Decision | None:
    """The decision of this id."""
    return fetch_one(connection, DECISIONS, _DECISION, parameters(owner, id=decision_id))


def last_of_account(connection: Connection, owner: str, account_id: str) -> LastTick | None:
    """The last tick that an account has seen."""
    return _last(connection.execute(_LAST_OF_ACCOUNT, parameters(owner, account=account_id)).first())


def last_of_deployment(connection: Connection, owner: str, deployment_id: str, horizon: Horizon) -> LastTick | None:
    """The last tick of a deployment that was known then."""
    return _last(connection.execute(_LAST_OF_DEPLOYMENT, parameters(owner, horizon, deployment=deployment_id)).first())


def _last(row: Row[Any] | None) -> LastTick | None:
    return None if row is None else LastTick(**row._mapping)


def attempts_since(
    connection: Connection, owner: str, deployment_id: str, horizon: Horizon, *, since: datetime
) -> list[Attempt]:
    """What came of the ticks of a deployment from an instant on at which something was proposed, oldest first."""
    rows = connection.execute(_ATTEMPTS, parameters(owner, horizon, deployment=deployment_id, since=since))
    return [Attempt(at=at, kind=kind, rule=rule) for at, kind, rule in rows]


def decisions(
    connection: Connection,
    owner: str,
    horizon: Horizon,
    *,
    deployment_id: str,
    kind: str | None,
    since: datetime | None,
    until: datetime | None,
    before: tuple[datetime, int] | None,
    limit: int,
) -> list[Decision]:
    """The decisions of a deployment, newest first; `before` continues after a page's last (at, sequence)."""
    where = [*within(DECISIONS, horizon), *matching(DECISIONS, deployment_id=deployment_id, verdict_kind=kind)]
    if since is not None:
        where.append(_C.at >= since)
    if until is not None:
        where.append(_C.at < until)
    if before is not None:
        at, sequence = before
        where.append(or_(_C.at < at, and_(_C.at == at, _C.sequence < sequence)))
    return fetch(connection, DECISIONS, owned(DECISIONS, owner, *where).order_by(*_NEWEST_FIRST).limit(limit))


def marks(connection: Connection, owner: str) -> list[tuple[str, datetime, datetime]]:
    """Of every decision its deployment, its instant and when it was recorded, oldest first."""
    statement = select(_C.deployment_id, _C.at, _C.recorded_at).where(_C.owner_id == owner)
    return [(row[0], row[1], row[2]) for row in connection.execute(statement.order_by(_C.at, _C.sequence))]


def decisions_between(
    connection: Connection, owner: str, deployment_id: str, since: datetime, until: datetime
) -> list[Decision]:
    """The decisions of a deployment from an instant on and before another, oldest first."""
    mine = (_C.deployment_id == deployment_id, _C.at >= since, _C.at < until)
    return fetch(connection, DECISIONS, owned(DECISIONS, owner, *mine).order_by(_C.at, _C.sequence))


def segments(connection: Connection, owner: str, hashes: Collection[str]) -> dict[str, Segment]:
    """Segments that were shown, by hash."""
    c = SEGMENTS.table.c
    found: dict[str, Segment] = {}
    for some in in_batches(hashes):
        rows = connection.execute(select(c.hash, c.name, c.text).where(c.owner_id == owner, c.hash.in_(some)))
        found |= {row[0]: Segment(name=row[1], text=row[2]) for row in rows}
    return found


def decisions_of_account(connection: Connection, owner: str, account_id: str) -> list[Decision]:
    """Every tick of an account, oldest first."""
    c = DECISIONS.table.c
    return fetch(connection, DECISIONS, owned(DECISIONS, owner, c.account_id == account_id).order_by(c.at, c.sequence))


def has_segment(connection: Connection, owner: str, segment_hash: str) -> bool:
    """Whether a segment is stored."""
    return connection.execute(_SEGMENT, parameters(owner, hash=segment_hash)).first() is not None
