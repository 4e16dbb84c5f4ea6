"""Episodes in the store, and the recalls that used them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    bindparam,
    exists,
    func,
    literal,
    literal_column,
    not_,
    or_,
    select,
    tuple_,
)

from backsight.core.memory.checkpoints import Place
from backsight.core.memory.episodic import Episode, Retrieval, RetrievedEpisode
from backsight.core.portfolio import Mode
from backsight.core.recall.record import RecallRecord
from backsight.core.trades.trade import OutcomeUnit
from backsight.store.mapping import REPLACED_KNOWN, REPLACED_RECORDED, noun
from backsight.store.reading import (
    AS_OF,
    OWNED,
    SEEN_AT,
    Columns,
    fetch,
    fetch_one,
    in_batches,
    known,
    matching,
    owned,
    parameters,
    prepared_within,
)
from backsight.store.unchanged import has_no_later_correction, unchanged
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
    indexed_where={("mode", "known_at", "first_known_at", "id"): "known_at > first_known_at"},
    revised=True,
)
RECALLS = noun(RecallRecord, "recalls", key=("decision_id", "nth"), compressed=("made",))
RETRIEVALS = noun(Retrieval, "retrievals", key=("episodes_hash", "known_at", "decision_id"), clustered=True)
RETRIEVED_EPISODES = noun(RetrievedEpisode, "retrieved_episodes", key=("episode_id", "episodes_hash"), clustered=True)


MOST_EPISODES = 256
"""Recalled episodes that are kept between reads."""
_ENDS = select(
    *(
        select(function(column, type_=column.type)).where(EPISODES.table.c.owner_id == OWNED).scalar_subquery()
        for function, column in ((func.max, EPISODES.table.c.known_at), (func.min, EPISODES.table.c.due_at))
    )
)


class EpisodeEnds(NamedTuple):
    """When the latest episode became known, and when the first call is due; None if there is none."""

    last_known: datetime | None
    first_due: datetime | None


def ends_of_episodes(connection: Connection, owner: str) -> EpisodeEnds:
    """The latest episode and the first call that waits for its outcome, by one index step each."""
    return unchanged(
        connection,
        owner,
        "ends of episodes",
        (EPISODES,),
        lambda: EpisodeEnds(*connection.execute(_ENDS, parameters(owner)).one()),
    )


_LAST_RECORDED = select(func.max(EPISODES.table.c.recorded_at, type_=EPISODES.table.c.recorded_at.type)).where(
    EPISODES.table.c.owner_id == OWNED
)


def are_all_recorded(view: View) -> bool:
    """Whether every episode, every correction and every withdrawal was recorded by the view's `seen_at`.

    The latest recording is found by reading every episode, and reused until an episode changes.
    """
    if view.seen_at is None:
        return True
    if not has_no_later_correction(view, EPISODES):
        return False
    last: datetime | None = unchanged(
        view.connection,
        view.owner,
        "last recorded episode",
        (EPISODES,),
        lambda: view.connection.execute(_LAST_RECORDED, parameters(view.owner)).scalar(),
    )
    return last is None or last <= view.seen_at


_DUE = (
    select(EPISODES.table)
    .where(EPISODES.table.c.owner_id == OWNED)
    .where(EPISODES.table.c.due_at >= bindparam("since", type_=EPISODES.table.c.due_at.type))
    .where(EPISODES.table.c.due_at <= bindparam("by", type_=EPISODES.table.c.due_at.type))
    .order_by(EPISODES.table.c.due_at, EPISODES.table.c.id)
)


def calls_due(connection: Connection, owner: str, *, since: datetime, by: datetime) -> list[Episode]:
    """The calls whose horizon ended between two instants and whose outcome is not known yet."""
    first_due = ends_of_episodes(connection, owner).first_due
    if first_due is None or first_due > by:
        return []
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


def _current_by_id(connection: Connection, owner: str, ids: Collection[str]) -> list[Episode]:
    """The current versions of some episodes; those of the last answers are not read again."""
    cached: dict[str, Episode] = unchanged(connection, owner, "episodes", (EPISODES,), dict)
    if len(cached) > MOST_EPISODES:
        cached.clear()
    missing = [each for each in ids if each not in cached]
    if missing:
        rows = fetch(connection, EPISODES, _BY_ID, parameters(owner, ids=missing))
        cached.update((each.id, each) for each in rows)
    return [cached[each] for each in ids if each in cached]


def episodes_by_id(view: View, ids: Collection[str]) -> dict[str, Episode]:
    """The episodes with these ids, by id; ids of no episode are left out.

    Current versions are read in one statement. It does not ask for instants, since the database would then read all
    episodes. Former versions are read one by one.
    """
    current = _current_by_id(view.connection, view.owner, ids)
    matches = {each.id: each for each in current if view.horizon.holds(each.known_at, each.recorded_at)}
    former = (episode(view, episode_id) for episode_id in ids if episode_id not in matches)
    return matches | {each.id: each for each in former if each is not None}


def latest_episode(connection: Connection, owner: str, deployment_id: str, symbol: str) -> Episode | None:
    """The newest episode of a deployment in a symbol, by teaching order."""
    c = EPISODES.table.c
    statement = owned(EPISODES, owner, c.deployment_id == deployment_id, c.symbol == symbol)
    newest_first = statement.order_by(c.first_known_at.desc(), c.sequence.desc(), c.recorded_at.desc(), c.id)
    return fetch_one(connection, EPISODES, newest_first)


LAST_EPISODES = 500
"""Episodes of a deployment in a symbol among which inactions are looked for, the latest: an index has them in order."""


def last_inactions(
    view: View, deployments: Iterable[str], symbols: Iterable[str], matches: Callable[[Episode], bool], *, most: int
) -> tuple[Episode, ...]:
    """The last inactions of some deployments in some symbols, newest first; of a series with one reason, the last."""
    places = product(deployments, symbols)
    ids = [each for deployment, symbol in places for each in _last_inaction_ids(view, deployment, symbol)]
    last_of_series: dict[str, Episode] = {}
    inactions = episodes_by_id(view, ids).values()
    for inaction in sorted(inactions, key=lambda each: (each.ended_at, each.count, each.id), reverse=True):
        if inaction.archived_at is None and matches(inaction):
            last_of_series.setdefault(inaction.series_id, inaction)
    return tuple(last_of_series.values())[:most]


def _last_inaction_ids(view: View, deployment: str, symbol: str) -> Sequence[str]:
    """The ids of the last inactions of a deployment in a symbol; with all episodes in view, they are read once."""
    connection, owner = view.connection, view.owner

    def read() -> Sequence[str]:
        values = parameters(owner, view.horizon, deployment=deployment, symbol=symbol)
        return connection.execute(_LAST_INACTIONS, values).scalars().all()

    last_known = ends_of_episodes(connection, owner).last_known
    if last_known is not None and last_known > view.as_of:
        return read()
    return unchanged(connection, owner, ("inactions", deployment, symbol), (EPISODES,), read)


def last_of_series(view: View, inaction: Episode) -> Episode:
    """The last inaction of the series that one belongs to."""
    own = matching(_E, deployment_id=inaction.deployment_id, symbol=inaction.symbol, series_id=inaction.series_id)
    later = select(_E.id).where(_E.owner_id == view.owner, _E.first_known_at >= inaction.first_known_at, *own)
    series = episodes_by_id(view, view.connection.execute(later).scalars().all()).values()
    return max((inaction, *series), key=lambda each: (each.ended_at, each.count))


_E = EPISODES.table.c
_LAST = (
    select(_E.id, _E.kind)
    .where(_E.owner_id == OWNED, _E.deployment_id == bindparam("deployment"), _E.symbol == bindparam("symbol"))
    .where(_E.first_known_at <= AS_OF)
    .order_by(_E.first_known_at.desc())
    .limit(LAST_EPISODES)
).subquery()
_LAST_INACTIONS = select(_LAST.c.id).where(_LAST.c.kind == "inaction")
_TAUGHT = select(_E.first_known_at, _E.sequence, _E.id).where(
    _E.owner_id == OWNED, _E.mode == bindparam("mode"), _E.kind == literal_column("'trade'")
)
_LAST_TAUGHT = _TAUGHT.order_by(_E.first_known_at.desc(), _E.sequence.desc(), _E.id.desc()).limit(1)
_LAST_OF_INSTANTS = (
    select(_E.first_known_at, func.max(_E.sequence))
    .where(_E.owner_id == OWNED, _E.mode == bindparam("mode"))
    .where(_E.first_known_at.in_(bindparam("instants", expanding=True)))
    .group_by(_E.first_known_at)
)


def last_teaching_place(connection: Connection, owner: str, mode: Mode) -> tuple[datetime, int, str] | None:
    """The place of the last trade of a mode in the teaching order."""
    row = connection.execute(_LAST_TAUGHT, parameters(owner, mode=mode)).first()
    return None if row is None else (row[0], row[1], row[2])


_AFTER = (
    select(EPISODES.table)
    .where(_E.owner_id == OWNED, _E.mode == bindparam("mode"), _E.kind == literal_column("'trade'"))
    .where(_E.first_known_at >= bindparam("since", type_=_E.first_known_at.type))
)
_COUNT_AFTER = _AFTER.with_only_columns(_E.id).limit(bindparam("most"))


def teaching_trades_after(
    connection: Connection, owner: str, mode: Mode, place: Place, **equal: str | None
) -> list[Episode]:
    """The current versions of the closed trades of a mode after a place, in teaching order."""
    statement = _AFTER.where(*matching(EPISODES, **equal))
    trades = fetch(connection, EPISODES, statement, parameters(owner, mode=mode, since=place[0]))
    return sorted((each for each in trades if each.place > place), key=lambda episode: episode.place)


def outcomes_before(
    connection: Connection,
    owner: str,
    mode: Mode,
    deployments: Sequence[str],
    place: Place,
    *,
    units: Iterable[OutcomeUnit],
    most: int,
) -> dict[OutcomeUnit, tuple[float, ...]]:
    """The last outcomes of closes of some deployments before a place by unit, at most `most` each, oldest first."""
    own = (_E.owner_id == owner, _E.mode == mode, _E.deployment_id.in_(deployments), _E.kind == "trade")
    key = (_E.first_known_at, _E.sequence, _E.id)
    before = tuple_(*key) < tuple_(*(literal(value, c.type) for value, c in zip(place, key, strict=True)))
    closes = select(_E.outcome_value).where(*own, _E.pnl.is_not(None), _E.first_known_at <= place[0], before)
    newest_first = closes.order_by(*(c.desc() for c in key)).limit(most)
    outcomes: dict[OutcomeUnit, tuple[float, ...]] = {}
    for unit in units:
        values = connection.execute(newest_first.where(_E.outcome_unit == unit)).scalars().all()
        if values:
            outcomes[unit] = tuple(reversed(values))
    return outcomes


def first_places(connection: Connection, owner: str, ids: Collection[str]) -> dict[str, Place]:
    """The places of episodes in the teaching order by id, withdrawn ones included.

    A correction changes no place. An episode that was withdrawn and came back has the earlier place.
    """
    tables = [EPISODES.table, *([] if EPISODES.former is None else [EPISODES.former.table])]
    places: dict[str, Place] = {}
    for table, batch in product(tables, in_batches(ids)):
        c = table.c
        rows = select(c.first_known_at, c.sequence, c.id).where(c.owner_id == owner, c.id.in_(batch))
        for row in connection.execute(rows):
            place = (row.first_known_at, row.sequence, row.id)
            places[row.id] = min(place, places.get(row.id, place))
    return places


def has_trades_since(connection: Connection, owner: str, mode: Mode, since: datetime, *, at_least: int) -> bool:
    """Whether a mode has at least so many trades that became known at or after an instant."""
    values = parameters(owner, mode=mode, since=since, most=at_least)
    return len(connection.execute(_COUNT_AFTER, values).all()) == at_least


def next_sequences(
    connection: Connection, owner: str, mode: Mode, instants: Collection[datetime]
) -> dict[datetime, int]:
    """The numbers of the next episodes of some instants, where there are episodes already."""
    numbers: dict[datetime, int] = {}
    for batch in in_batches(instants):
        for at, last in connection.execute(_LAST_OF_INSTANTS, parameters(owner, mode=mode, instants=batch)):
            numbers[at] = last + 1
    return numbers


def teaching_trades(view: View, **equal: str | None) -> list[Episode]:
    """The episodes of closed trades, in teaching order."""
    statement = known(EPISODES, view.owner, view.horizon, lambda c: matching(c, kind="trade", **equal))
    return sorted(fetch(view.connection, EPISODES, statement), key=lambda episode: episode.place)


_NOT_TAUGHT = {"market_context", "reflection", "tags", "citations", "archived_at", "known_at", "recorded_at"}
"""The columns that no other memory depends on: see `Episode.teaching`."""


_LATER_VERSIONS = select(_E.id, _E.first_known_at).where(
    _E.owner_id == OWNED, _E.mode == bindparam("mode"), _E.known_at > _E.first_known_at, _E.known_at > AS_OF
)
_LATER_RECORDS = select(_E.id, _E.first_known_at).where(
    _E.owner_id == OWNED,
    _E.mode == bindparam("mode"),
    _E.first_known_at <= AS_OF,
    or_(_E.known_at > AS_OF, _E.recorded_at > SEEN_AT),
)


def _differences() -> tuple[Any, Any]:
    """Two statements: of some trades the first that a horizon does not show as they are now; and the first trade that a
    horizon shows and that was withdrawn since."""
    if EPISODES.former is None:
        raise TypeError("the table of episodes has no former versions")
    c, former = EPISODES.table.c, EPISODES.former.table.c
    replaced_later = or_(former[REPLACED_KNOWN] > AS_OF, former[REPLACED_RECORDED] > SEEN_AT)
    shown = and_(former.owner_id == OWNED, *prepared_within(EPISODES.former), replaced_later)
    taught = [column.name for column in c if column.name not in _NOT_TAUGHT]
    same = and_(former.id == c.id, *(former[name].is_not_distinct_from(c[name]) for name in taught))
    trade: ColumnElement[str] = literal_column("'trade'")
    changed = select(func.min(c.first_known_at)).where(
        c.owner_id == OWNED,
        c.id.in_(bindparam("ids", expanding=True)),
        c.kind == trade,
        not_(exists(select(former.id).where(shown, same))),
    )
    current = exists(select(c.id).where(c.owner_id == OWNED, c.id == former.id))
    withdrawn = select(func.min(former.first_known_at)).where(
        shown, former.mode == bindparam("mode"), former.kind == trade, not_(current)
    )
    return changed, withdrawn


_CHANGED, _WITHDRAWN = _differences()


def first_difference(view: View, mode: Mode) -> datetime | None:
    """When the first trade became known that a view shows otherwise than the current rows do; None without any.

    Trades that became known after the view do not count. Neither does a version that teaches the same as the current
    one. With `seen_at` all trades of the mode are read, unless no episode was recorded after it.
    """
    if are_all_recorded(view):
        view = replace(view, horizon=replace(view.horizon, seen_at=None))
    key = "first difference", mode, view.as_of, view.seen_at
    return unchanged(view.connection, view.owner, key, (EPISODES,), lambda: _first_difference(view, mode))


def _first_difference(view: View, mode: Mode) -> datetime | None:
    connection, values = view.connection, parameters(view.owner, view.horizon, mode=mode)
    later = connection.execute(_LATER_VERSIONS if view.seen_at is None else _LATER_RECORDS, values)
    ids = [episode_id for episode_id, first_known_at in later if first_known_at <= view.as_of]
    instants = [connection.execute(_CHANGED, {**values, "ids": batch}).scalar() for batch in in_batches(ids)]
    instants.append(connection.execute(_WITHDRAWN, values).scalar())
    return min((instant for instant in instants if instant is not None), default=None)


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
    connection: Connection,
    owner: str,
    deployments: Sequence[str],
    *,
    seen_at: datetime | None = None,
    episode_id: str | None = None,
) -> list[EpisodeVersion]:
    """Every version of the closed trades of some deployments, or of one of them, that was recorded by `seen_at`."""
    current = owned(
        EPISODES, owner, _E.deployment_id.in_(deployments), _E.kind == "trade", *matching(_E, id=episode_id)
    )
    versions = [EpisodeVersion(episode=each, until=None) for each in fetch(connection, EPISODES, current)]
    if EPISODES.former is not None:
        c = EPISODES.former.table.c
        columns = [*(c[column.name] for column in EPISODES.table.c), c[REPLACED_KNOWN], c[REPLACED_RECORDED]]
        own = (c.owner_id == owner, c.deployment_id.in_(deployments), c.kind == "trade", *matching(c, id=episode_id))
        former = select(*columns).where(*own)
        for *cells, until, recorded_at in connection.execute(former):
            is_current = seen_at is not None and recorded_at > seen_at  # its replacement was recorded later
            versions.append(EpisodeVersion(episode=EPISODES.from_row(cells), until=None if is_current else until))
    return [
        version
        for version in versions
        if seen_at is None or version.episode.recorded_at <= seen_at
        if version.until is None or version.episode.known_at < version.until
    ]


def outcomes_by_mode(view: View, deployment_ids: Sequence[str], symbols: Collection[str]) -> dict[Mode, int]:
    """The number of episodes with an outcome in some symbols by mode, over some deployments."""

    def where(c: Columns) -> list[ColumnElement[bool]]:
        return [c.deployment_id.in_(deployment_ids), c.symbol.in_(symbols), c.outcome_unit.is_not(None)]

    rows = known(EPISODES, view.owner, view.horizon, where).subquery()
    statement = select(rows.c.mode, func.count()).group_by(rows.c.mode)
    return {row[0]: row[1] for row in view.connection.execute(statement)}
