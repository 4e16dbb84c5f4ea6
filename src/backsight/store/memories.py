"""Episodes in the store, and the recalls that used them."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, literal_column, select

from backsight.core.memory.episodic import Episode, Retrieval
from backsight.core.portfolio import Mode
from backsight.core.recall.record import RecallRecord
from backsight.store.mapping import REPLACED_KNOWN, REPLACED_RECORDED, noun
from backsight.store.reading import OWNED, fetch, fetch_one, known, matching, owned, parameters, prepared_within
from backsight.store.view import View

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


def retrieval_counts(view: View, ids: Collection[str]) -> Counter[str]:
    """How often each of these episodes was recalled for a decision."""
    if not ids:
        return Counter()
    rows = view.connection.execute(_RETRIEVED, parameters(view.owner, view.horizon, ids=list(ids)))
    return Counter({row[0]: row[1] for row in rows})


_DUE = (
    select(EPISODES.table)
    .where(EPISODES.table.c.owner_id == OWNED)
    .where(EPISODES.table.c.due_at >= bindparam("since", type_=EPISODES.table.c.due_at.type))
    .where(EPISODES.table.c.due_at <= bindparam("by", type_=EPISODES.table.c.due_at.type))
    .order_by(EPISODES.table.c.due_at, EPISODES.table.c.id)
)


def calls_due(connection: Connection, owner: str, *, since: datetime, by: datetime) -> list[Episode]:
    """The calls whose horizon ended between two instants and whose outcome is not known yet."""
    return fetch(connection, EPISODES, _DUE, parameters(owner, since=since, by=by))


def call_marks(connection: Connection, owner: str) -> list[tuple[str, datetime, datetime]]:
    """For every call: the id of its deployment, its instant, and when its current version was recorded."""
    c = EPISODES.table.c
    statement = select(c.deployment_id, c.opened_at, c.recorded_at).where(c.owner_id == owner, c.kind == "call")
    return [(row[0], row[1], row[2]) for row in connection.execute(statement)]


def calls_between(
    connection: Connection, owner: str, deployment_id: str, since: datetime, until: datetime
) -> list[Episode]:
    """The calls that a deployment made from `since` on and before `until`, oldest first."""
    c = EPISODES.table.c
    where = (c.deployment_id == deployment_id, c.kind == "call", c.opened_at >= since, c.opened_at < until)
    return fetch(connection, EPISODES, owned(EPISODES, owner, *where).order_by(c.opened_at, c.id))


def episodes(view: View, **equal: str | None) -> list[Episode]:
    """All episodes, in the order in which they ended."""
    statement = known(EPISODES, view.owner, view.horizon, lambda c: matching(c, **equal))
    return fetch(view.connection, EPISODES, statement.order_by("ended_at", "id"))


_ONE = select(EPISODES.table).where(EPISODES.table.c.owner_id == OWNED, EPISODES.table.c.id == bindparam("id"))


def current_episode(connection: Connection, owner: str, episode_id: str) -> Episode | None:
    """The current version of the episode with this id."""
    return fetch_one(connection, EPISODES, _ONE, parameters(owner, id=episode_id))


def episode(view: View, episode_id: str) -> Episode | None:
    """The episode with this id."""
    return fetch_one(
        view.connection, EPISODES, known(EPISODES, view.owner, view.horizon, lambda c: [c.id == episode_id])
    )


_BY_ID = select(EPISODES.table).where(
    EPISODES.table.c.owner_id == OWNED, EPISODES.table.c.id.in_(bindparam("ids", expanding=True))
)


def episodes_by_id(view: View, ids: Collection[str]) -> dict[str, Episode]:
    """The episodes with these ids, by id; ids of no episode are left out.

    Current versions are read in one statement. It does not ask for instants, since the database would then read all
    episodes. Former versions are read one by one.
    """
    current = fetch(view.connection, EPISODES, _BY_ID, parameters(view.owner, ids=list(ids)))
    matches = {each.id: each for each in current if view.horizon.holds(each.known_at, each.recorded_at)}
    former = (episode(view, episode_id) for episode_id in ids if episode_id not in matches)
    return matches | {each.id: each for each in former if each is not None}


def latest_episode(connection: Connection, owner: str, deployment_id: str, symbol: str) -> Episode | None:
    """The newest episode of a deployment in a symbol, by teaching order."""
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
    """The place of the last trade of a mode in the teaching order."""
    row = connection.execute(_LAST_TAUGHT, parameters(owner, mode=mode)).first()
    return None if row is None else (row[0], row[1], row[2])


def next_sequence(connection: Connection, owner: str, mode: Mode, at: datetime) -> int:
    """The number of the next episode of an instant."""
    last = connection.execute(_LAST_OF_INSTANT, parameters(owner, mode=mode, at=at)).scalar()
    return 0 if last is None else last + 1


def teaching_trades(view: View, **equal: str | None) -> list[Episode]:
    """The episodes of closed trades, in teaching order."""
    statement = known(EPISODES, view.owner, view.horizon, lambda c: matching(c, kind="trade", **equal))
    return sorted(fetch(view.connection, EPISODES, statement), key=lambda episode: episode.place)


def trades_in_r(view: View, mode: Mode) -> Counter[str]:
    """How many closed trades with an outcome in R each strategy has in a mode."""
    rows = known(EPISODES, view.owner, view.horizon, lambda c: matching(c, kind="trade", mode=mode, outcome_unit="R"))
    c = rows.subquery().c
    statement = select(c.strategy_name, func.count()).group_by(c.strategy_name)
    return Counter({row[0]: row[1] for row in view.connection.execute(statement)})


def current_teaching_trades(connection: Connection, owner: str, **equal: str | None) -> list[Episode]:
    """The current versions of the episodes of closed trades, in teaching order."""
    statement = owned(EPISODES, owner, *matching(EPISODES, kind="trade", **equal))
    return sorted(fetch(connection, EPISODES, statement), key=lambda episode: episode.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeVersion:
    """A version of an episode."""

    episode: Episode
    until: datetime | None
    """When the next version replaced it; None for the current version."""


def episode_versions(
    connection: Connection, owner: str, deployments: Sequence[str], *, seen_at: datetime | None = None
) -> list[EpisodeVersion]:
    """Every version of the closed trades of some deployments that was recorded by `seen_at`."""
    current = owned(EPISODES, owner, _E.deployment_id.in_(deployments), _E.kind == "trade")
    versions = [EpisodeVersion(episode=each, until=None) for each in fetch(connection, EPISODES, current)]
    if EPISODES.former is not None:
        c = EPISODES.former.table.c
        columns = [*(c[column.name] for column in EPISODES.table.c), c[REPLACED_KNOWN], c[REPLACED_RECORDED]]
        former = select(*columns).where(c.owner_id == owner, c.deployment_id.in_(deployments), c.kind == "trade")
        for *cells, until, recorded_at in connection.execute(former):
            is_current = seen_at is not None and recorded_at > seen_at  # its replacement was recorded later
            versions.append(EpisodeVersion(episode=EPISODES.from_row(cells), until=None if is_current else until))
    return [
        version
        for version in versions
        if seen_at is None or version.episode.recorded_at <= seen_at
        if version.until is None or version.episode.known_at < version.until
    ]
