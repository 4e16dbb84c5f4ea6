"""Stored runs of agents and the types of their result cards."""

from collections.abc import Collection
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    and_,
    bindparam,
    desc,
    exists,
    literal,
    or_,
    select,
    union_all,
)

from backsight.core.agents.card import CardType, shipped_types
from backsight.core.agents.run import AgentRun
from backsight.store.decisions import DECISIONS
from backsight.store.mapping import noun
from backsight.store.reading import (
    OWNED,
    Columns,
    fetch,
    fetch_one,
    in_batches,
    known,
    matching,
    owned,
    parameters,
    prepared_known,
    prepared_within,
)
from backsight.store.unchanged import unchanged
from backsight.store.view import View

RUNS = noun(
    AgentRun,
    "agent_runs",
    compressed=("prompt", "output", "transcript"),
    within={"deployments": ("deployment_id",)},
    indexes=[("deployment_id", "started_at", "id"), ("parent_id", "started_at"), ("status",)],
    only_one={("deployment_id",): "status = 'running'"},
    revised=True,
)
CARD_TYPES = noun(CardType, "card_types", key=("name",), as_json=("fields",), revised=True)

_R = RUNS.table.c
_D = DECISIONS.table.c


class RunPlace(NamedTuple):
    """The place of a run or a tick in a list."""

    id: str
    at: datetime
    is_tick: bool


def run(connection: Connection, owner: str, run_id: str) -> AgentRun | None:
    """The current version of a run."""
    return fetch_one(connection, RUNS, owned(RUNS, owner, _R.id == run_id))


def run_then(view: View, run_id: str) -> AgentRun | None:
    """A run as it was known then; one that was interrupted is failed."""
    row = fetch_one(view.connection, RUNS, known(RUNS, view.owner, view.horizon, lambda c: [c.id == run_id]))
    return None if row is None else row.at(view.as_of)


def running(connection: Connection, owner: str, deployment_id: str) -> AgentRun | None:
    """The run of a deployment that is running, or that was interrupted and not released yet."""
    where = (_R.deployment_id == deployment_id, _R.status == "running")
    return fetch_one(connection, RUNS, owned(RUNS, owner, *where))


def runs_left_running(connection: Connection, owner: str) -> list[AgentRun]:
    """All runs that say that they are running."""
    return fetch(connection, RUNS, owned(RUNS, owner, _R.status == "running").order_by(_R.started_at, _R.id))


def children(view: View, parent_id: str) -> list[AgentRun]:
    """The runs that re-examine a run, oldest first."""
    statement = known(RUNS, view.owner, view.horizon, lambda c: [c.parent_id == parent_id])
    rows = fetch(view.connection, RUNS, statement)
    return sorted((each.at(view.as_of) for each in rows), key=lambda each: (each.started_at, each.id))


def children_by_parent(view: View, parent_ids: Collection[str]) -> dict[str, list[AgentRun]]:
    """The runs that re-examine some runs, oldest first, by the id of the run that they examine."""
    by_parent: dict[str, list[AgentRun]] = {}
    for batch in in_batches(parent_ids):
        for row in fetch(view.connection, RUNS, known(RUNS, view.owner, view.horizon, partial(_has_parent, batch))):
            by_parent.setdefault(row.parent_id or "", []).append(row.at(view.as_of))
    for rows in by_parent.values():
        rows.sort(key=lambda each: (each.started_at, each.id))
    return by_parent


def _has_parent(ids: list[str], c: Columns) -> list[ColumnElement[bool]]:
    return [c.parent_id.in_(ids)]


def cards(view: View, deployment_id: str, *, limit: int, before: tuple[datetime, str] | None = None) -> list[AgentRun]:
    """The last runs of a deployment that succeeded with a result card, newest first, without re-examinations."""

    def has_card(c: Columns) -> list[ColumnElement[bool]]:
        where: list[ColumnElement[bool]] = [
            c.deployment_id == deployment_id,
            c.kind != "re_examination",
            c.status == "succeeded",
            c.card_type.is_not(None),
            c.result.is_not(None),
        ]
        if before is not None:
            at, last_id = before
            where.append(or_(c.started_at < at, and_(c.started_at == at, c.id < last_id)))
        return where

    statement = known(RUNS, view.owner, view.horizon, has_card)
    return fetch(view.connection, RUNS, statement.order_by(desc("started_at"), desc("id")).limit(limit))


def runs_by_id(view: View, ids: Collection[str]) -> dict[str, AgentRun]:
    """Runs by id, as they were known then."""
    by_id: dict[str, AgentRun] = {}
    for batch in in_batches(ids):
        statement = known(RUNS, view.owner, view.horizon, partial(_has_id, batch))
        by_id |= {row.id: row.at(view.as_of) for row in fetch(view.connection, RUNS, statement)}
    return by_id


def _has_id(ids: list[str], c: Columns) -> list[ColumnElement[bool]]:
    return [c.id.in_(ids)]


def listed_runs(
    view: View,
    *,
    deployment_id: str | None,
    kind: str | None,
    before: tuple[datetime, str] | None,
    limit: int,
) -> list[RunPlace]:
    """Runs and ticks as one list, newest first; `before` continues after a page's last (at, id)."""
    values = parameters(view.owner, view.horizon)
    runs = prepared_known(
        RUNS, ("id", "started_at"), lambda c: matching(c, deployment_id=deployment_id, kind=kind)
    ).subquery()
    parts = []
    if kind != "tick":
        parts.append(select(runs.c.id, runs.c.started_at.label("at"), literal(0).label("is_tick")))
    if kind in (None, "tick"):
        ticks = select(_D.id, _D.at, literal(1).label("is_tick"))
        parts.append(
            ticks.where(_D.owner_id == OWNED, *prepared_within(DECISIONS), *matching(_D, deployment_id=deployment_id))
        )
    every = union_all(*parts).subquery()
    statement = select(every.c.id, every.c.at, every.c.is_tick)
    if before is not None:
        at: BindParameter[datetime] = bindparam("before_at", type_=_D.at.type)
        last_id: BindParameter[str] = bindparam("before_id")
        statement = statement.where(or_(every.c.at < at, and_(every.c.at == at, every.c.id < last_id)))
        values |= {"before_at": before[0], "before_id": before[1]}
    newest_first = statement.order_by(every.c.at.desc(), every.c.id.desc()).limit(limit)
    return [RunPlace(row[0], row[1], bool(row[2])) for row in view.connection.execute(newest_first, values)]


def run_marks(connection: Connection, owner: str) -> list[tuple[str, datetime, datetime]]:
    """Deployment id, start and recording instant of every run that ended."""
    statement = select(_R.deployment_id, _R.started_at, _R.recorded_at).where(
        _R.owner_id == owner, _R.status != "running"
    )
    return [(row[0], row[1], row[2]) for row in connection.execute(statement)]


def runs_between(
    connection: Connection, owner: str, deployment_id: str, since: datetime, until: datetime
) -> list[AgentRun]:
    """The runs of a deployment that started from `since` on and before `until` and have ended, oldest first."""
    where = (
        _R.deployment_id == deployment_id,
        _R.status != "running",
        _R.started_at >= since,
        _R.started_at < until,
    )
    return fetch(connection, RUNS, owned(RUNS, owner, *where).order_by(_R.started_at, _R.id))


def runs_with(connection: Connection, owner: str, texts: Collection[str]) -> int:
    """How many runs contain one of the texts in what was asked, answered or concluded."""
    columns = (_R.prompt, _R.output, _R.transcript, _R.result)
    rows = connection.execute(select(*columns).where(_R.owner_id == owner).execution_options(yield_per=100))
    return sum(any(text in (cell or "") for cell in row for text in texts) for row in rows)


def card_types(view: View) -> list[CardType]:
    """The card types of an owner: the shipped ones, then those that were saved, by name."""
    statement = known(CARD_TYPES, view.owner, view.horizon, lambda _c: [])
    rows = fetch(view.connection, CARD_TYPES, statement)
    return [*shipped_types(view.owner), *sorted(rows, key=lambda each: each.name)]


def card_type(connection: Connection, owner: str, name: str) -> CardType | None:
    """The current version of a card type that was saved."""
    return fetch_one(connection, CARD_TYPES, owned(CARD_TYPES, owner, CARD_TYPES.table.c.name == name))


def has_cards(connection: Connection, owner: str) -> bool:
    """Whether any run has a card."""
    return unchanged(
        connection,
        owner,
        "has cards",
        (RUNS,),
        lambda: bool(connection.execute(select(exists().where(_R.owner_id == owner, _R.result.is_not(None)))).scalar()),
    )


def is_used(connection: Connection, owner: str, card_type_name: str) -> bool:
    """Whether a run has a card of a type."""
    return bool(
        connection.execute(select(exists().where(_R.owner_id == owner, _R.card_type == card_type_name))).scalar()
    )
