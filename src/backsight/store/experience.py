"""Experience in the store: stated and retired beliefs, and the rows that are derived from episodes."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    not_,
    or_,
    select,
    tuple_,
    union_all,
)

from backsight.core.audit import Cell, Finding, FindingKind
from backsight.core.instants import Horizon
from backsight.core.memory.affective import AccountMood, StrategyMood
from backsight.core.memory.belief_induction import JudgedTrade, PastEvidence, with_evidence
from backsight.core.memory.cells import DayCount, day_count
from backsight.core.memory.checkpoints import INTERVAL, Place
from backsight.core.memory.daily_moments import DailyMoments
from backsight.core.memory.episodic import Episode
from backsight.core.memory.estimates import Estimate
from backsight.core.memory.experience import (
    BeliefCheckpoint,
    BeliefRecord,
    CellCheckpoint,
    CellDayRecord,
    CellRecord,
    EvidenceRecord,
    HabitCheckpoint,
    HabitsRecord,
    PractisedTrade,
    Retirement,
    StatedBelief,
    StrategyDriftRecord,
    standing_at,
)
from backsight.core.memory.mood_series import MoodRow
from backsight.core.memory.procedural import LONGEST_WINDOW, Habits, PastClose, Record, TradeFigures
from backsight.core.memory.semantic import (
    DIMENSIONS,
    Belief,
    BeliefEvidence,
    Domain,
    EvidenceTally,
    Posterior,
    Standing,
)
from backsight.core.portfolio import Mode
from backsight.core.trades.trade import Outcome
from backsight.store.codecs import CONDITION
from backsight.store.mapping import OWNER, Noun, noun
from backsight.store.memories import EPISODES, ends_of_episodes
from backsight.store.reading import (
    AS_OF,
    OWNED,
    fetch,
    fetch_one,
    in_batches,
    matching,
    owned,
    parameters,
    within,
)
from backsight.store.unchanged import get, put, put_written, unchanged
from backsight.store.view import EVERYTHING, View

if TYPE_CHECKING:  # the transaction imports the list of tables, which imports this module
    from backsight.store.transaction import Transaction

T = TypeVar("T")
BEGINNING = datetime.min.replace(tzinfo=UTC)


def _field_columns(path: str, of: type[Any], prefix: str = "") -> dict[str, str]:
    """Column names for the fields of a nested dataclass: the field names, after a prefix."""
    return {f"{path}.{field.name}": f"{prefix}{field.name}" for field in fields(of)}


def _figure_columns(path: str, of: type[Any]) -> dict[str, str]:
    """Column names for figures: `name` holds the value, `name_n` the sample size, `name_low` the end of an interval."""
    return {f"{path}.{field.name}.value": field.name for field in fields(of)} | {
        f"{path}.{field.name}.{part.name}": f"{field.name}_{part.name}"
        for field in fields(of)
        for part in fields(Estimate)
        if part.name != "value"
    }


STATED = noun(
    StatedBelief,
    "stated_beliefs",
    names=_field_columns("domain", Domain),
    codecs={"conditions": CONDITION},
    indexes=[("mode", "known_at"), ("known_at",)],
)
RETIREMENTS = noun(Retirement, "belief_retirements", key=("belief_id",), indexes=[("known_at",)])

BELIEFS = noun(
    BeliefRecord,
    "semantic_memory",
    names={
        **_field_columns("standing.belief", Belief),
        **_field_columns("standing.belief.domain", Domain),
        **_field_columns("standing.founding", EvidenceTally, "founding_"),
        **_field_columns("standing.tested", EvidenceTally, "tested_"),
        "standing.days": "first_days",
        **_field_columns("standing.wins", DailyMoments, "wins_"),
        "standing.established": "established",
        **_field_columns("posterior", Posterior),
    },
    codecs={"standing.belief.conditions": CONDITION},
    indexes=[("mode", "strategy")],
)
EVIDENCE = noun(
    EvidenceRecord,
    "belief_evidence",
    key=("belief_id", "known_at", "episode_id"),
    names=_field_columns("evidence", BeliefEvidence),
    indexes=[("episode_id",)],
    clustered=True,
)
BELIEF_CHECKPOINTS = noun(
    BeliefCheckpoint,
    "semantic_checkpoints",
    key=("belief_id", "known_at", "sequence", "episode_id"),
    names=_field_columns("tested", EvidenceTally, "tested_") | _field_columns("wins", DailyMoments, "wins_"),
    clustered=True,
)
CELLS = noun(
    CellRecord, "semantic_cells", key=("mode", "domain"), names=_field_columns("tally", EvidenceTally), clustered=True
)
CELL_CHECKPOINTS = noun(
    CellCheckpoint,
    "semantic_cell_checkpoints",
    key=("mode", "number", "domain"),
    names=_field_columns("tally", EvidenceTally),
    clustered=True,
)
DAYS = noun(
    CellDayRecord,
    "semantic_days",
    key=("mode", "domain", "day"),
    names=_field_columns("count", DayCount),
    clustered=True,
)
PRACTISED = noun(
    PractisedTrade,
    "practised_trades",
    key=("mode", "strategy_name", "symbol", "known_at", "sequence", "episode_id"),
    names={
        **_field_columns("trade", TradeFigures),
        **_field_columns("trade.outcome", Outcome, "outcome_"),
        **_field_columns("trade.previous_outcome", Outcome, "previous_outcome_"),
        **_field_columns("earlier", Record, "earlier_"),
    },
    indexes=[("mode", "strategy_name", "known_at", "sequence")],
    clustered=True,
)
HABITS = noun(
    HabitsRecord,
    "procedural_memory",
    key=("mode", "strategy_name", "symbol"),
    names={**_field_columns("habits", Habits), **_figure_columns("habits", Habits), "habits.window": "window_size"},
)
HABIT_CHECKPOINTS = noun(
    HabitCheckpoint,
    "procedural_checkpoints",
    key=("mode", "strategy_name", "symbol", "known_at", "sequence", "episode_id"),
    clustered=True,
)
STRATEGY_DRIFT = noun(StrategyDriftRecord, "strategy_drift", key=("mode", "strategy_name"))
MOODS = noun(
    MoodRow,
    "affective_state",
    key=("account_id", "strategy_name", "known_at", "sequence", "id"),
    names={**_field_columns("account", AccountMood), **_field_columns("strategy", StrategyMood)},
    indexed_where={("account_id", "strategy_name", "cause"): "cause = 'correction'"},
    clustered=True,
)
DERIVED: tuple[Noun[Any], ...] = (
    BELIEFS,
    EVIDENCE,
    BELIEF_CHECKPOINTS,
    CELLS,
    CELL_CHECKPOINTS,
    DAYS,
    PRACTISED,
    HABITS,
    STRATEGY_DRIFT,
    HABIT_CHECKPOINTS,
    MOODS,
)
"""The tables that are derived from facts, and therefore not in the audit chain."""


def clear(connection: Connection, noun: Noun[Any], owner: str, **equal: object) -> None:
    """Delete an owner's derived rows that have these values."""
    connection.execute(delete(noun.table).where(noun.table.c[OWNER] == owner, *matching(noun, **equal)))


def clear_evidence(connection: Connection, owner: str, mode: Mode) -> None:
    """Delete all evidence of one mode, and the checkpoints of its beliefs."""
    beliefs = BELIEFS.table.c
    of_mode = select(beliefs.id).where(beliefs.owner_id == owner, beliefs.mode == mode)
    for table in (EVIDENCE.table, BELIEF_CHECKPOINTS.table):
        connection.execute(delete(table).where(table.c.owner_id == owner, table.c.belief_id.in_(of_mode)))


def stated_beliefs(view: View, mode: Mode) -> list[StatedBelief]:
    """The beliefs that somebody stated, oldest first."""
    c = STATED.table.c
    statement = owned(STATED, view.owner, c.mode == mode, *within(STATED, view.horizon))
    return fetch(view.connection, STATED, statement.order_by(c.known_at, c.id))


def stated_belief(connection: Connection, owner: str, belief_id: str) -> StatedBelief | None:
    """The stated belief with this id."""
    return fetch_one(connection, STATED, owned(STATED, owner, STATED.table.c.id == belief_id))


_RETIRED = select(RETIREMENTS.table).where(RETIREMENTS.table.c.owner_id == OWNED)


def retirements(view: View) -> dict[str, datetime]:
    """When the owner retired which belief, by the belief's id."""
    rows = unchanged(
        view.connection,
        view.owner,
        "retirements",
        (RETIREMENTS,),
        lambda: fetch(view.connection, RETIREMENTS, _RETIRED, parameters(view.owner)),
    )
    return {row.belief_id: row.known_at for row in rows if view.horizon.holds(row.known_at, row.recorded_at)}


def beliefs(connection: Connection, owner: str, mode: Mode) -> list[BeliefRecord]:
    """The current beliefs of one mode, oldest first."""
    c = BELIEFS.table.c
    return fetch(connection, BELIEFS, owned(BELIEFS, owner, c.mode == mode).order_by(c.known_at, c.id))


_BELIEF = select(BELIEFS.table).where(BELIEFS.table.c.owner_id == OWNED, BELIEFS.table.c.id == bindparam("id"))
_OF_EPISODE = select(EVIDENCE.table).where(
    EVIDENCE.table.c.owner_id == OWNED, EVIDENCE.table.c.episode_id == bindparam("episode")
)


def belief(connection: Connection, owner: str, belief_id: str) -> BeliefRecord | None:
    """The current belief with this id."""
    return fetch_one(connection, BELIEFS, _BELIEF, parameters(owner, id=belief_id))


_K = BELIEF_CHECKPOINTS.table.c
_BELIEF_CHECKPOINT = (
    select(BELIEF_CHECKPOINTS.table)
    .where(_K.owner_id == OWNED, _K.belief_id == bindparam("id"), _K.known_at <= AS_OF)
    .order_by(_K.known_at.desc(), _K.sequence.desc(), _K.episode_id.desc())
    .limit(1)
)
_V, _E = EVIDENCE.table.c, EPISODES.table.c
_EVIDENCE_BETWEEN = (
    select(_E.first_known_at, _E.sequence, _E.id, _E.ended_at, _V.confirms, _E.outcome_value, _E.outcome_unit)
    .join_from(EVIDENCE.table, EPISODES.table, and_(_E.owner_id == _V.owner_id, _E.id == _V.episode_id))
    .where(_V.owner_id == OWNED, _V.belief_id == bindparam("id"), _V.founding.is_(False))
    .where(_V.known_at >= bindparam("since", type_=_V.known_at.type), _V.known_at <= AS_OF)
    .order_by(_E.first_known_at, _E.sequence, _E.id)
)


def standing_as_of(connection: Connection, standing: Standing, as_of: datetime) -> Standing:
    """The current evidence of a belief up to an instant: the last checkpoint by then, and the episodes since."""
    belief = standing.belief
    values = parameters(belief.owner_id, as_of=as_of, id=belief.id)
    checkpoint = fetch_one(connection, BELIEF_CHECKPOINTS, _BELIEF_CHECKPOINT, values)
    since = belief.known_at if checkpoint is None else checkpoint.known_at
    evidence = [
        PastEvidence(
            place=(known_at, sequence, episode_id),
            day=ended_at.astimezone(UTC).date(),
            win=confirms == (belief.claims == "above"),
            outcome=None if value is None else Outcome(value=value, unit=unit),
        )
        for known_at, sequence, episode_id, ended_at, confirms, value, unit in connection.execute(
            _EVIDENCE_BETWEEN, {**values, "since": since}
        )
        if checkpoint is None or (known_at, sequence, episode_id) > checkpoint.place
    ]
    return with_evidence(standing_at(checkpoint, standing), evidence)


_L = CELL_CHECKPOINTS.table.c


def cell_checkpoints(connection: Connection, owner: str, mode: Mode) -> dict[int, Place]:
    """The places of the checkpoints of cells, by number."""
    statement = select(_L.number, _L.known_at, _L.sequence, _L.episode_id).distinct()
    rows = connection.execute(statement.where(_L.owner_id == owner, _L.mode == mode).order_by(_L.number))
    return {number: (known_at, sequence, episode_id) for number, known_at, sequence, episode_id in rows}


_LAST_CELLS = (
    select(_L.number, _L.known_at)
    .where(_L.owner_id == OWNED, _L.mode == bindparam("mode"))
    .order_by(_L.number.desc())
    .limit(1)
)


def last_cell_checkpoint(connection: Connection, owner: str, mode: Mode) -> tuple[int, datetime]:
    """The number and the instant of the last checkpoint of cells; 0 and the beginning of time without one."""
    row = connection.execute(_LAST_CELLS, parameters(owner, mode=mode)).first()
    return (0, BEGINNING) if row is None else (row[0], row[1])


def keep_cells(connection: Connection, owner: str, mode: Mode, number: int, place: Place) -> None:
    """Copy the cells of a mode into a checkpoint."""
    known_at, sequence, episode_id = place
    own = {"number": number, "known_at": known_at, "sequence": sequence, "episode_id": episode_id}
    columns = [
        literal(own[column.name], column.type).label(column.name) if column.name in own else _C[column.name]
        for column in _L
    ]
    copy = select(*columns).where(_C.owner_id == owner, _C.mode == mode)
    connection.execute(insert(CELL_CHECKPOINTS.table).from_select([column.name for column in _L], copy))


def restore_cells(connection: Connection, owner: str, mode: Mode, number: int) -> None:
    """Replace the cells of a mode by those of a checkpoint, and delete later checkpoints."""
    clear(connection, CELLS, owner, mode=mode)
    copy = select(*(_L[column.name] for column in _C)).where(_L.owner_id == owner, _L.mode == mode, _L.number == number)
    connection.execute(insert(CELLS.table).from_select([column.name for column in _C], copy))
    later = delete(CELL_CHECKPOINTS.table).where(_L.owner_id == owner, _L.mode == mode, _L.number > number)
    connection.execute(later)


def forget_cells(connection: Connection, owner: str, mode: Mode, numbers: Collection[int]) -> None:
    """Delete some checkpoints of cells."""
    if numbers:
        of_mode = (_L.owner_id == owner, _L.mode == mode, _L.number.in_(list(numbers)))
        connection.execute(delete(CELL_CHECKPOINTS.table).where(*of_mode))


def forget_evidence(connection: Connection, owner: str, episode_ids: Collection[str]) -> None:
    """Delete the evidence that some episodes are."""
    for batch in in_batches(episode_ids):
        connection.execute(delete(EVIDENCE.table).where(_V.owner_id == owner, _V.episode_id.in_(batch)))


def forget_belief(connection: Connection, owner: str, belief_id: str) -> None:
    """Delete a belief, with its evidence and its checkpoints."""
    clear(connection, BELIEFS, owner, id=belief_id)
    clear(connection, EVIDENCE, owner, belief_id=belief_id)
    clear(connection, BELIEF_CHECKPOINTS, owner, belief_id=belief_id)


def forget_checkpoints_after(connection: Connection, owner: str, beliefs: Collection[str], place: Place) -> set[str]:
    """Delete the checkpoints of some beliefs after a place, and return the beliefs that have others left."""
    key, left = (_K.known_at, _K.sequence, _K.episode_id), set[str]()
    for batch in in_batches(beliefs):
        own = (_K.owner_id == owner, _K.belief_id.in_(batch))
        later = (_K.known_at >= place[0], _is_after(key, place))  # the first condition is for the index
        connection.execute(delete(BELIEF_CHECKPOINTS.table).where(*own, *later))
        left.update(connection.execute(select(_K.belief_id).distinct().where(*own)).scalars())
    return left


def _is_before(key: Sequence[Any], place: Sequence[Any]) -> ColumnElement[bool]:
    values = [literal(value, column.type) for column, value in zip(key, place, strict=True)]
    return tuple_(*key) < tuple_(*values)


def _is_after(key: Sequence[Any], place: Sequence[Any]) -> ColumnElement[bool]:
    values = [literal(value, column.type) for column, value in zip(key, place, strict=True)]
    return tuple_(*key) > tuple_(*values)


def trades_of_belief(view: View, belief_id: str) -> list[str]:
    """Ids of the trades that are evidence for or against a belief and were known in a view."""
    episodes = EPISODES.table.c
    joined = EVIDENCE.table.join(EPISODES.table, (episodes.owner_id == _V.owner_id) & (episodes.id == _V.episode_id))
    known_then = _V.owner_id == view.owner, _V.belief_id == belief_id, _V.known_at <= view.as_of
    statement = select(episodes.trade_id).select_from(joined).where(*known_then, episodes.trade_id.is_not(None))
    return list(view.connection.execute(statement).scalars())


def beliefs_with_evidence_from(
    connection: Connection, owner: str, episode_id: str
) -> list[tuple[EvidenceRecord, BeliefRecord]]:
    """The evidence that an episode is, each piece with its current belief."""
    evidence = fetch(connection, EVIDENCE, _OF_EPISODE, parameters(owner, episode=episode_id))
    evidence.sort(key=lambda row: row.evidence.belief_id)  # ORDER BY would make the database read all evidence
    pairs = ((row, belief(connection, owner, row.evidence.belief_id)) for row in evidence)
    return [(row, record) for row, record in pairs if record is not None]


_C, _D, _B = CELLS.table.c, DAYS.table.c, BELIEFS.table.c
_DOMAINS: BindParameter[list[str]] = bindparam("domains", expanding=True)
_CELLS = select(CELLS.table).where(_C.owner_id == OWNED, _C.mode == bindparam("mode"), _C.domain.in_(_DOMAINS))
_DAYS = (
    select(_D.domain, _D.day, _D.n, _D.wins)
    .where(_D.owner_id == OWNED, _D.mode == bindparam("mode"), _D.domain.in_(_DOMAINS))
    .where(_D.day >= bindparam("first"), _D.day <= bindparam("last"))
)
ALL_DAYS = ("", "9999-12-31")
_ABOUT_STRATEGY = (
    select(BELIEFS.table)
    .where(_B.owner_id == OWNED, _B.mode == bindparam("mode"))
    .where(or_(_B.strategy == bindparam("strategy"), _B.strategy.is_(None)))
    .order_by(_B.known_at, _B.id)
)
_ABOUT_EPISODE = _ABOUT_STRATEGY.where(*(or_(_B[name] == bindparam(name), _B[name].is_(None)) for name in DIMENSIONS))


def beliefs_about_strategy(connection: Connection, owner: str, mode: Mode, strategy: str) -> list[BeliefRecord]:
    """The beliefs of one mode whose domain names this strategy or none, oldest first."""
    return fetch(connection, BELIEFS, _ABOUT_STRATEGY, parameters(owner, mode=mode, strategy=strategy))


def beliefs_about_episode(connection: Connection, episode: Episode) -> list[BeliefRecord]:
    """The beliefs whose domain contains an episode, oldest first."""
    context = episode.context
    values = parameters(
        episode.owner_id,
        mode=episode.mode,
        strategy=episode.strategy_name,
        symbol=episode.symbol,
        direction=episode.direction,
        session=context.session,
        regime=context.regime,
        volatility_regime=context.volatility_regime,
    )
    return fetch(connection, BELIEFS, _ABOUT_EPISODE, values)


def cells(connection: Connection, owner: str, mode: Mode, domains: Sequence[str]) -> dict[str, CellRecord]:
    """The cells of these domains that have trades, by domain."""
    rows: dict[str, CellRecord] = {}
    for batch in in_batches(domains):
        cells = fetch(connection, CELLS, _CELLS, parameters(owner, mode=mode, domains=batch))
        rows |= {cell.domain: cell for cell in cells}
    return rows


def count_cells_by_width(connection: Connection, owner: str, mode: Mode) -> dict[int, int]:
    """How many cells have trades, by width."""
    c = CELLS.table.c
    counted = select(c.width, func.count().label("cells")).where(c.owner_id == owner, c.mode == mode).group_by(c.width)
    return {row.width: row.cells for row in connection.execute(counted)}


def days(
    connection: Connection, owner: str, mode: Mode, domains: Sequence[str], *, between: tuple[str, str] = ALL_DAYS
) -> dict[str, dict[str, DayCount]]:
    """The counts of some cells on the days between two, both included, by domain and day."""
    first, last = between
    counts: dict[str, dict[str, DayCount]] = {domain: {} for domain in domains}
    for batch in in_batches(domains):
        values = parameters(owner, mode=mode, domains=batch, first=first, last=last)
        for domain, day, n, wins in connection.execute(_DAYS, values):
            counts[domain][day] = day_count(n, wins)
    return counts


def forget_days(connection: Connection, owner: str, mode: Mode, keys: Sequence[tuple[str, str]]) -> None:
    """Delete days of cells, given by domain and day."""
    if keys:
        of_day = delete(DAYS.table).where(
            _D.owner_id == owner, _D.mode == mode, _D.domain == bindparam("of_domain"), _D.day == bindparam("on_day")
        )
        connection.execute(of_day, [{"of_domain": domain, "on_day": day} for domain, day in keys])


def founding_trades(connection: Connection, standing: Standing) -> Iterator[JudgedTrade]:
    """The trades that a belief was induced from, in teaching order.

    They may be thousands, so that only what evidence has of them is read.
    """
    belief, c = standing.belief, EPISODES.table.c
    domain = belief.domain
    where = matching(
        EPISODES,
        mode=belief.mode,
        kind="trade",
        strategy_name=domain.strategy,
        symbol=domain.symbol,
        direction=domain.direction,
        context_regime=domain.regime,
        context_volatility_regime=domain.volatility_regime,
        context_session=domain.session,
    )
    net = func.coalesce(c.pnl, c.outcome_value)
    columns = select(c.id, c.first_known_at, net).where(c[OWNER] == belief.owner_id, net.is_not(None), *where)
    first = columns.order_by(c.first_known_at, c.sequence, c.id).limit(standing.founding.n)
    for episode_id, known_at, result in connection.execute(first):
        yield JudgedTrade(episode_id, known_at, result > 0)


_P = PRACTISED.table.c
_NEWEST = (_P.known_at.desc(), _P.sequence.desc())
_OF_STRATEGY = (_P.owner_id == OWNED, _P.mode == bindparam("mode"), _P.strategy_name == bindparam("strategy"))
_WHOLE = (
    select(PRACTISED.table)
    .where(*_OF_STRATEGY, _P.symbol == bindparam("symbol"))
    .order_by(*_NEWEST)
    .limit(bindparam("most"))
)
_FIGURES = [field.name for field in fields(TradeFigures) if field.name not in ("outcome", "previous_outcome")]
_RECENT = _WHOLE.with_only_columns(
    *(_P[name] for name in _FIGURES),
    *(_P.outcome_value, _P.outcome_unit, _P.previous_outcome_value, _P.previous_outcome_unit),
)
_EARLIER = (
    select(PRACTISED.table)
    .where(*_OF_STRATEGY, _P.symbol == bindparam("symbol"))
    .order_by(*_NEWEST)
    .limit(1)
    .offset(bindparam("back"))
)
_LAST = select(PRACTISED.table).where(*_OF_STRATEGY).order_by(*_NEWEST).limit(1)


def recent_trades(
    connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str, *, most: int
) -> list[TradeFigures]:
    """The last trades of a strategy in a symbol, at most `most` of them, oldest first."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, most=most)
    return [_trade_figures(cells) for cells in connection.execute(_RECENT, values)][::-1]


def _trade_figures(cells: Sequence[Any]) -> TradeFigures:
    """The figures of a row of `_RECENT`."""
    *figures, value, unit, previous_value, previous_unit = cells
    outcome = None if value is None else Outcome(value=value, unit=unit)
    previous = None if previous_value is None else Outcome(value=previous_value, unit=previous_unit)
    known = dict(zip(_FIGURES, figures, strict=True))
    return TradeFigures(**known, outcome=outcome, previous_outcome=previous)


_CLOSES = (
    select(_P.known_at, _P.win, _P.outcome_value, _P.outcome_unit)
    .where(*_OF_STRATEGY, _P.deployment_id == bindparam("deployment"))
    .order_by(*_NEWEST)
)
_LAST_CLOSE = _CLOSES.where(_P.known_at <= bindparam("at")).limit(1)
_LATER_CLOSES = _CLOSES.where(_P.known_at > bindparam("at"))


def closes_from(
    connection: Connection,
    owner: str,
    mode: Mode,
    strategy: str,
    *,
    deployment_id: str,
    at: datetime,
    with_later: bool,
) -> tuple[PastClose, ...]:
    """The last close of a deployment that was known at an instant, and later ones if asked for, oldest first."""
    values = parameters(owner, mode=mode, strategy=strategy, deployment=deployment_id, at=at)
    statements = (_LATER_CLOSES, _LAST_CLOSE) if with_later else (_LAST_CLOSE,)
    rows = [row for statement in statements for row in connection.execute(statement, values)]
    return tuple(
        PastClose(known_at=known_at, win=win, outcome=None if value is None else Outcome(value=value, unit=unit))
        for known_at, win, value, unit in reversed(rows)
    )


def recent_trades_with_records(
    connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str
) -> list[PractisedTrade]:
    """The last hundred trades of a strategy in a symbol, each with the strategy's record before it, oldest first."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, most=LONGEST_WINDOW)
    return fetch(connection, PRACTISED, _WHOLE, values)[::-1]


def record_before_trade(
    connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str, *, back: int
) -> Record:
    """The strategy's record before a trade in a symbol: `back` 0 is the last trade, 1 the one before it."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, back=back)
    row = fetch_one(connection, PRACTISED, _EARLIER, values)
    return Record() if row is None else row.earlier


def strategy_record(connection: Connection, owner: str, mode: Mode, strategy: str) -> Record:
    """The record of a strategy after its last trade."""
    last = unchanged(
        connection,
        owner,
        ("last practised", mode, strategy),
        (PRACTISED,),
        lambda: fetch_one(connection, PRACTISED, _LAST, parameters(owner, mode=mode, strategy=strategy)),
    )
    return Record() if last is None else last.earlier.add(last.trade)


def forget_trades_from(connection: Connection, owner: str, mode: Mode, strategy: str, place: Place) -> list[str]:
    """Delete the practised trades and the checkpoints of a strategy from a place on; the symbols of these trades."""
    symbols: set[str] = set()
    for table in (PRACTISED.table, HABIT_CHECKPOINTS.table):
        c = table.c
        key = (c.known_at, c.sequence, c.episode_id)
        # The first condition is for the index, which does not compare whole places.
        from_place = (c.known_at >= place[0], not_(_is_before(key, place)))
        later = (c.owner_id == owner, c.mode == mode, c.strategy_name == strategy, *from_place)
        symbols.update(connection.execute(select(c.symbol).distinct().where(*later)).scalars())
        connection.execute(delete(table).where(*later))
    return sorted(symbols - {""})


_RECENT_AS_OF = (
    _RECENT.add_columns(_P.sequence).where(_P.known_at <= AS_OF).order_by(None).order_by(*_NEWEST, _P.episode_id.desc())
)
_OUTCOMES = (
    select(_P.known_at, _P.sequence, _P.episode_id, _P.outcome_value, _P.outcome_unit)
    .where(*_OF_STRATEGY, _P.known_at >= bindparam("since", type_=_P.known_at.type), _P.known_at <= AS_OF)
    .order_by(_P.known_at, _P.sequence, _P.episode_id)
)
_OUTCOMES_IN_SYMBOL = _OUTCOMES.where(_P.symbol == bindparam("symbol"))
_EARLIER_AS_OF = _EARLIER.where(_P.known_at <= AS_OF)
_LAST_AS_OF = _LAST.where(_P.known_at <= AS_OF)
_Q = HABIT_CHECKPOINTS.table.c
_HABIT_CHECKPOINT = (
    select(HABIT_CHECKPOINTS.table)
    .where(_Q.owner_id == OWNED, _Q.mode == bindparam("mode"), _Q.strategy_name == bindparam("strategy"))
    .where(_Q.symbol == bindparam("symbol"), _Q.known_at <= AS_OF)
    .order_by(_Q.known_at.desc(), _Q.sequence.desc(), _Q.episode_id.desc())
    .limit(1)
)


def habit_checkpoint(
    connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str, *, as_of: datetime
) -> HabitCheckpoint | None:
    """The last checkpoint by an instant of a strategy in a symbol; with an empty symbol, of the strategy as a whole."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, as_of=as_of)
    return fetch_one(connection, HABIT_CHECKPOINTS, _HABIT_CHECKPOINT, values)


def recent_trades_as_of(
    connection: Connection,
    owner: str,
    mode: Mode,
    strategy: str,
    symbol: str,
    *,
    after: HabitCheckpoint | None,
    as_of: datetime,
    before: int,
) -> list[tuple[Place, TradeFigures]]:
    """The trades of a strategy in a symbol after a checkpoint that were known at an instant, and some `before` it.

    They come with their places, oldest first.
    """
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, as_of=as_of, most=before + INTERVAL)
    newest_first: list[tuple[Place, TradeFigures]] = []
    for *cells, sequence in connection.execute(_RECENT_AS_OF, values):
        trade = _trade_figures(cells)
        place = (trade.known_at, sequence, trade.episode_id)
        newest_first.append((place, trade))
        before -= after is not None and place <= after.place
        if not before:
            break
    return newest_first[::-1]


def outcomes_between(
    connection: Connection,
    owner: str,
    mode: Mode,
    strategy: str,
    symbol: str,
    *,
    after: HabitCheckpoint | None,
    as_of: datetime,
) -> list[tuple[datetime, Outcome | None]]:
    """The outcomes of a strategy after a checkpoint and up to an instant; with an empty symbol, in all symbols."""
    since = BEGINNING if after is None else after.known_at
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, since=since, as_of=as_of)
    statement = _OUTCOMES_IN_SYMBOL if symbol else _OUTCOMES
    return [
        (known_at, None if value is None else Outcome(value=value, unit=unit))
        for known_at, sequence, episode_id, value, unit in connection.execute(statement, values)
        if after is None or (known_at, sequence, episode_id) > after.place
    ]


def record_before_trade_as_of(
    connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str, *, back: int, as_of: datetime
) -> Record:
    """The strategy's record before a trade in a symbol: `back` 0 is the last trade known at an instant."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, back=back, as_of=as_of)
    row = fetch_one(connection, PRACTISED, _EARLIER_AS_OF, values)
    return Record() if row is None else row.earlier


def strategy_record_as_of(connection: Connection, owner: str, mode: Mode, strategy: str, as_of: datetime) -> Record:
    """The record of a strategy after its last trade that was known at an instant."""
    values = parameters(owner, mode=mode, strategy=strategy, as_of=as_of)
    last = fetch_one(connection, PRACTISED, _LAST_AS_OF, values)
    return Record() if last is None else last.earlier.add(last.trade)


_H = HABITS.table.c


def habits_of(connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str) -> HabitsRecord | None:
    """The current habits of a strategy in a symbol."""
    rows = unchanged(
        connection,
        owner,
        ("habits", mode, strategy, symbol),
        (HABITS,),
        lambda: habits(connection, owner, mode, strategy_name=strategy, symbol=symbol),
    )
    return rows[0] if rows else None


def habits(connection: Connection, owner: str, mode: Mode, **equal: str | None) -> list[HabitsRecord]:
    """The current habits, ordered by strategy and symbol; None matches every strategy or symbol."""
    given = {name: value for name, value in equal.items() if value is not None}
    return fetch(connection, HABITS, _habits(frozenset(given)), {**parameters(owner, mode=mode), **given})


def habit_keys(connection: Connection, owner: str, mode: Mode, **equal: str | None) -> list[tuple[str, str]]:
    """The strategies and symbols that have habits, in order; None matches every strategy or symbol."""
    where = (_H.owner_id == owner, _H.mode == mode, *matching(HABITS, **equal))
    statement = select(_H.strategy_name, _H.symbol).where(*where).order_by(_H.strategy_name, _H.symbol)
    return [(row[0], row[1]) for row in connection.execute(statement)]


@cache
def _habits(names: frozenset[str]) -> Select[Any]:
    equal = (_H[name] == bindparam(name) for name in ("mode", *sorted(names)))
    return select(HABITS.table).where(_H.owner_id == OWNED, *equal).order_by(_H.strategy_name, _H.symbol)


_S = STRATEGY_DRIFT.table.c
_STRATEGY_DRIFT = select(STRATEGY_DRIFT.table).where(
    _S.owner_id == OWNED, _S.mode == bindparam("mode"), _S.strategy_name == bindparam("strategy")
)


def strategy_drift(connection: Connection, owner: str, mode: Mode, strategy: str) -> StrategyDriftRecord | None:
    """The current drift tests of a strategy as a whole."""
    values = parameters(owner, mode=mode, strategy=strategy)
    return unchanged(
        connection,
        owner,
        ("drift", mode, strategy),
        (STRATEGY_DRIFT,),
        lambda: fetch_one(connection, STRATEGY_DRIFT, _STRATEGY_DRIFT, values),
    )


_M = MOODS.table.c


def _last_mood(strategy: ColumnElement[str]) -> Select[Any]:
    return (
        select(MOODS.table)
        .where(_M.owner_id == OWNED, _M.account_id == bindparam("account"), _M.strategy_name == strategy)
        .where(_M.known_at <= AS_OF)
        .order_by(_M.known_at.desc(), _M.sequence.desc(), _M.id.desc())
        .limit(1)
    )


_MOOD = _last_mood(bindparam("strategy"))
_MOOD_PAIR = union_all(*(_last_mood(each).subquery().select() for each in (literal(""), bindparam("strategy"))))


def mood_row(view: View, account_id: str, strategy: str) -> MoodRow | None:
    """The last row of a strategy on an account that is known in a view; with an empty strategy, the account's own."""
    current = _last_moods(view.connection, view.owner, account_id).get(strategy)
    if current is not None and current.known_at <= view.as_of:
        return current
    values = parameters(view.owner, as_of=view.as_of, account=account_id, strategy=strategy)
    return fetch_one(view.connection, MOODS, _MOOD, values)


def mood_pair(view: View, account_id: str, strategy: str) -> tuple[MoodRow | None, MoodRow | None]:
    """The last row of an account and the last row of a strategy on it that are known in a view."""

    def read(as_of: datetime) -> LastMoods:
        values = parameters(view.owner, as_of=as_of, account=account_id, strategy=strategy)
        rows = fetch(view.connection, MOODS, _MOOD_PAIR, values)
        return {"": None, strategy: None, **{row.strategy_name: row for row in rows}}

    rows = _last_moods(view.connection, view.owner, account_id)
    if not rows.keys() >= {"", strategy}:
        rows = {**rows, **read(EVERYTHING.as_of)}
        put(view.connection, view.owner, ("moods", account_id), (MOODS,), rows)
    pair = rows[""], rows[strategy]
    if any(row is not None and row.known_at > view.as_of for row in pair):
        rows = read(view.as_of)
    return rows[""], rows[strategy]


LastMoods = Mapping[str, MoodRow | None]
"""By strategy, the last row on an account; None if it has none. The account's own row is under the empty name."""


def _last_moods(connection: Connection, owner: str, account_id: str) -> LastMoods:
    """The last rows on an account that were read since a command last changed any."""
    rows: LastMoods | None = get(connection, owner, ("moods", account_id), (MOODS,))
    return rows or {}


def add_account_mood(transaction: "Transaction", row: MoodRow) -> None:
    """Append a row to the account's own series; the last rows of the strategies on it stay the same."""
    connection = transaction.connection
    rows = _last_moods(connection, row.owner_id, row.account_id)
    transaction.derive_new(MOODS, [row])
    if rows:
        put_written(connection, row.owner_id, ("moods", row.account_id), (MOODS,), {**rows, "": row})


def corrections(connection: Connection, owner: str, account_id: str, strategy: str) -> list[MoodRow]:
    """The rows of a strategy on an account that corrections made."""
    own = owned(MOODS, owner, _M.account_id == account_id, _M.strategy_name == strategy)
    return fetch(connection, MOODS, own.where(_M.cause == literal_column("'correction'")))


def last_mood_before(
    connection: Connection, owner: str, account_id: str, strategy: str, place: Place
) -> MoodRow | None:
    """The last row of a strategy on an account before a place."""
    own = owned(MOODS, owner, _M.account_id == account_id, _M.strategy_name == strategy)
    key = (_M.known_at, _M.sequence, _M.id)
    newest_first = own.where(_M.known_at <= place[0], _is_before(key, place)).order_by(*(c.desc() for c in key))
    return fetch_one(connection, MOODS, newest_first)


def truncate_moods(connection: Connection, owner: str, account_id: str, strategy: str, place: Place) -> MoodRow | None:
    """Delete the rows of a strategy on an account from a place on, and return the last row that is left."""
    own = (_M.owner_id == owner, _M.account_id == account_id, _M.strategy_name == strategy)
    key = (_M.known_at, _M.sequence, _M.id)
    connection.execute(delete(MOODS.table).where(*own, _M.known_at >= place[0], not_(_is_before(key, place))))
    return mood_row(View(connection, owner, EVERYTHING), account_id, strategy)


def mood_rows_between(
    connection: Connection, owner: str, account_id: str, strategy: str, *, since: datetime, until: datetime
) -> list[MoodRow]:
    """The last row of a strategy on an account known at `since`, then each one known up to `until`.

    With an empty strategy, the account's own rows.
    """
    before = mood_row(View(connection, owner, Horizon(as_of=since)), account_id, strategy)
    series = matching(MOODS, account_id=account_id, strategy_name=strategy)
    statement = owned(MOODS, owner, *series, _M.known_at > since, _M.known_at <= until)
    later = fetch(connection, MOODS, statement.order_by(_M.known_at, _M.sequence, _M.id))
    return [*([] if before is None else [before]), *later]


def thinned_moods(view: View, account_id: str, strategy: str, *, since: datetime | None, step: int) -> list[MoodRow]:
    """Every `step`-th row of a strategy on an account that is known in a view, the last one included, oldest first."""
    last = mood_row(view, account_id, strategy)
    if last is None:
        return []
    series = matching(MOODS, account_id=account_id, strategy_name=strategy)
    known_then = [_M.known_at <= view.as_of, *([] if since is None else [_M.known_at >= since])]
    statement = owned(MOODS, view.owner, *series, *known_then, _M.n % step == last.n % step)
    return fetch(view.connection, MOODS, statement.order_by(_M.known_at, _M.sequence, _M.id))


def was_below_drawdown_state(
    connection: Connection, owner: str, account_id: str, *, since: datetime, below: float
) -> bool:
    """Whether an account's drawdown state was below a level at any time after `since`."""
    of_account = (_M.account_id == account_id, _M.strategy_name == "")
    rows = owned(MOODS, owner, *of_account, _M.known_at > since, _M.drawdown_state < below)
    return connection.execute(rows.limit(1)).first() is not None


_STATED_BY_OWNER: tuple[Noun[Any], ...] = (STATED, RETIREMENTS)
_LATEST = select(
    *(
        select(func.max(noun.table.c.known_at, type_=noun.table.c.known_at.type))
        .where(noun.table.c.owner_id == OWNED)
        .scalar_subquery()
        for noun in _STATED_BY_OWNER
    )
)


def retirements_hidden_from(view: View) -> bool:
    """Whether a retirement that was known at the view's instant was recorded after it (`seen_at`)."""
    if view.seen_at is None:
        return False
    c = RETIREMENTS.table.c
    hidden = owned(RETIREMENTS, view.owner, c.known_at <= view.as_of, c.recorded_at > view.seen_at)
    return view.connection.execute(hidden.limit(1)).first() is not None


def is_current(view: View) -> bool:
    """Whether the stored rows of beliefs and habits are those of a view: nothing that teaches became known after it."""
    if view.seen_at is not None:
        return False
    latest = unchanged(
        view.connection,
        view.owner,
        "latest belief of the owner",
        _STATED_BY_OWNER,
        lambda: view.connection.execute(_LATEST, parameters(view.owner)).one(),
    )
    instants = (*latest, ends_of_episodes(view.connection, view.owner).last_known)
    return all(each is None or each <= view.as_of for each in instants)


def modes(connection: Connection, owner: str) -> list[Mode]:
    """The modes that have episodes or stated beliefs."""
    statements = [select(c.mode).where(c.owner_id == owner).distinct() for c in (EPISODES.table.c, STATED.table.c)]
    return sorted({mode for statement in statements for (mode,) in connection.execute(statement)})


def count(connection: Connection, noun: Noun[Any], owner: str) -> int:
    """How many rows of a table an owner has."""
    statement = select(func.count()).select_from(noun.table).where(noun.table.c[OWNER] == owner)
    return connection.execute(statement).scalar_one()


def compare(connection: Connection, noun: Noun[T], owner: str, derived: Iterable[T]) -> list[Finding]:
    """Where the stored rows of a table differ from the rows that were derived again."""
    expected = {noun.key_of_values(values): values for values in map(noun.to_values, derived)}
    findings: list[Finding] = []

    def report(kind: FindingKind, key: tuple[Cell, ...], detail: str) -> None:
        findings.append(Finding(kind=kind, table=noun.table.name, key=", ".join(map(str, key)), detail=detail))

    statement = select(*noun.stored_columns).where(noun.table.c[OWNER] == owner)
    for row in connection.execute(statement):
        key = noun.key_of_values(row)
        wanted = expected.pop(key, None)
        if wanted is None:
            report("added", key, "does not follow from what is remembered")
        elif tuple(row) != tuple(wanted):
            cells = zip(noun.columns, row, wanted, strict=True)
            differing = [(name, cell, other) for name, cell, other in cells if cell != other]
            details = (f"{name} is {cell}, should be {other}"[:200] for name, cell, other in differing)
            report("changed", key, "; ".join(details))
    for key in expected:
        report("removed", key, "follows from what is remembered, and is not there")
    return findings
