"""The five memories at rest."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, literal_column, select

from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode, Retrieval
from backsight.core.portfolio import Mode
from backsight.core.recall.record import RecallRecord
from backsight.store.mapping import REPLACED_KNOWN, REPLACED_RECORDED, noun
from backsight.store.reading import OWNED, fetch, fetch_one, known, matching, owned, parameters, prepared_within

EPISODES = noun(
    Episode,
    "episodic_memory",
    within={"deployments": ("deployment_id",), "trade_history": ("trade_id",)},
    indexes=[
        ("known_at", "id"),
        ("deployment_id", "symbol", "first_known_at"),
        ("mode", "first_known_at", "sequence", "id"),
        ("mode", "strategy_name", "first_known_at", "sequence"),
        ("due_at",),
    ],
    revised=True,
)
RECALLS = noun(RecallRecord, "recalls", indexes=[("decision_id",), ("known_at", "id")])
RETRIEVALS = noun(Retrieval, "retrievals", key=("episode_id", "known_at", "decision_id"), clustered=True)


_T = RETRIEVALS.table.c
_RETRIEVED = (
    select(_T.episode_id, func.count())
    .where(_T.owner_id == OWNED, _T.episode_id.in_(bindparam("ids", expanding=True)), *prepared_within(RETRIEVALS))
    .group_by(_T.episode_id)
)


def retrieval_counts(connection: Connection, owner: str, ids: Collection[str], horizon: Horizon) -> Counter[str]:
    """How often episodes were recalled for a decision, as far as the horizon goes."""
    if not ids:
        return Counter()
    rows = connection.execute(_RETRIEVED, parameters(owner, horizon, ids=list(ids)))
    return Counter({row[0]: row[1] for row in rows})


_DUE = (
    select(EPISODES.table)
    .where(EPISODES.table.c.owner_id == OWNED)
    .where(EPISODES.table.c.due_at >= bindparam("since", type_=EPISODES.table.c.due_at.type))
    .where(EPISODES.table.c.due_at <= bindparam("by", type_=EPISODES.table.c.due_at.type))
    .order_by(EPISODES.table.c.due_at, EPISODES.table.c.id)
)


def calls_due(connection: Connection, owner: str, *, since: datetime, by: datetime) -> list[Episode]:
    """The calls whose horizon ended between two instants and whose outcome is not known."""
    return fetch(connection, EPISODES, _DUE, parameters(owner, since=since, by=by))


def call_marks(connection: Connection, owner: str) -> list[tuple[str, datetime, datetime]]:
    """Of every call its deployment, its instant and when it was last recorded."""
    c = EPISODES.table.c
    statement = select(c.deployment_id, c.opened_at, c.recorded_at).where(c.owner_id == owner, c.kind == "call")
    return [(row[0], row[1], row[2]) for row in connection.execute(statement)]


def calls_between(
    connection: Connection, owner: str, deployment_id: str, since: datetime, until: datetime
) -> list[Episode]:
    """The calls of a deployment from an instant on and before another, oldest first."""
    c = EPISODES.table.c
    mine = (c.deployment_id == deployment_id, c.kind == "call", c.opened_at >= since, c.opened_at < until)
    return fetch(connection, EPISODES, owned(EPISODES, owner, *mine).order_by(c.opened_at, c.id))


def episodes(connection: Connection, owner: str, horizon: Horizon, **equal: str | None) -> list[Episode]:
    """All episodes as they stood at a horizon, by when they ended."""
    statement = known(EPISODES, owner, horizon, lambda c: matching(c, **equal))
    return fetch(connection, EPISODES, statement.order_by("ended_at", "id"))


_ONE = select(EPISODES.table).where(EPISODES.table.c.owner_id == OWNED, EPISODES.table.c.id == bindparam("id"))


def episode(connection: Connection, owner: str, episode_id: str, horizon: Horizon | None = None) -> Episode | None:
    """The episode of this id, as it stood then."""
    if horizon is None:
        return fetch_one(connection, EPISODES, _ONE, parameters(owner, id=episode_id))
    return fetch_one(connection, EPISODES, known(EPISODES, owner, horizon, lambda c: [c.id == episode_id]))


_BY_ID = select(EPISODES.table).where(
    EPISODES.table.c.owner_id == OWNED, EPISODES.table.c.id.in_(bindparam("ids", expanding=True))
)


def episodes_by_id(connection: Connection, owner: str, ids: Collection[str], horizon: Horizon) -> dict[str, Episode]:
    """Those of these episodes that there are, by id, as they stood then."""
    current = fetch(
        connection, EPISODES, _BY_ID, parameters(owner, ids=list(ids))
    )  # asked for instants too, all are read
    found = {each.id: each for each in current if horizon.holds(each.known_at, each.recorded_at)}
    former = (episode(connection, owner, each, horizon) for each in ids if each not in found)
    return found | {each.id: each for each in former if each is not None}


def latest_episode(connection: Connection, owner: str, deployment_id: str, symbol: str) -> Episode | None:
    """The newest episode of a deployment in a symbol."""
    c = EPISODES.table.c
    statement = owned(EPISODES, owner, c.deployment_id == deployment_id, c.symbol == symbol)
    newest_first = statement.order_by(c.first_known_at.desc(), c.sequence.desc(), c.recorded_at.desc(), c.id)
    return fetch_one(connection, EPISODES, newest_first)


_E = EPISODES.table.c
_TAUGHT = select(_E.first_known_at, _E.sequence, _E.id).where(
    _E.owner_id == OWNED, _E.mode == bindparam("mode"), _E.kind == literal_column("'trade'")
)
_LAST_TAUGHT = _TAUGHT.order_by(_E.first_known_at.desc(), _E.sequence.desc(), _E.id.desc()).limit(1)
_LAST_OF_INSTANT = (
    select(func.max(_E.sequence))
    .where(_E.owner_id == OWNED, _E.mode == bindparam("mode"))
    .where(_E.first_known_at == bindparam("at", type_=_E.first_known_at.type))
)


def last_teaching_place(connection: Connection, owner: str, mode: Mode) -> tuple[datetime, int, str] | None:
    """The place of the last trade of a mode in the order in which episodes teach."""
    row = connection.execute(_LAST_TAUGHT, parameters(owner, mode=mode)).first()
    return None if row is None else (row[0], row[1], row[2])


def next_sequence(connection: Connection, owner: str, mode: Mode, at: datetime) -> int:
    """The next number among the episodes of an instant."""
    last = connection.execute(_LAST_OF_INSTANT, parameters(owner, mode=mode, at=at)).scalar()
    return 0 if last is None else last + 1


def teaching_trades(
    connection: Connection, owner: str, horizon: Horizon | None = None, **equal: str | None
) -> list[Episode]:
    """The closed trades among the episodes, as they stood then or as they stand, in the order in which they teach."""
    if horizon is None:
        found = fetch(connection, EPISODES, owned(EPISODES, owner, *matching(EPISODES, kind="trade", **equal)))
    else:
        asked_for = known(EPISODES, owner, horizon, lambda c: matching(c, kind="trade", **equal))
        found = fetch(connection, EPISODES, asked_for)
    return sorted(found, key=lambda episode: episode.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeVersion:
    """An episode as it stood for a while."""

    episode: Episode
    until: datetime | None
    """None where it still stands."""


def episode_versions(
    connection: Connection, owner: str, deployments: Sequence[str], *, seen_at: datetime | None = None
) -> list[EpisodeVersion]:
    """Every version of the closed trades of some deployments that ever stood, of what was recorded by an instant."""
    current = owned(EPISODES, owner, _E.deployment_id.in_(deployments), _E.kind == "trade")
    found = [EpisodeVersion(episode=each, until=None) for each in fetch(connection, EPISODES, current)]
    if EPISODES.former is not None:
        c = EPISODES.former.table.c
        columns = [*(c[column.name] for column in EPISODES.table.c), c[REPLACED_KNOWN], c[REPLACED_RECORDED]]
        former = select(*columns).where(c.owner_id == owner, c.deployment_id.in_(deployments), c.kind == "trade")
        for *cells, until, recorded_at in connection.execute(former):
            still = seen_at is not None and recorded_at > seen_at
            found.append(EpisodeVersion(episode=EPISODES.from_row(cells), until=None if still else until))
    return [
        each
        for each in found
        if seen_at is None or each.episode.recorded_at <= seen_at
        if each.until is None or each.episode.known_at < each.until
    ]
