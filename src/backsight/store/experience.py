"""What experience has made of the episodes, at rest: rows that can be derived again, and what was said of beliefs."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import BindParameter, Connection, bindparam, delete, func, or_, select

from backsight.core.audit import Cell, Finding, FindingKind
from backsight.core.instants import Horizon
from backsight.core.memory.affective import AccountMood, MoodRow, StrategyMood
from backsight.core.memory.episodic import Episode
from backsight.core.memory.experience import (
    BeliefRecord,
    CellDayRecord,
    CellRecord,
    EvidenceRecord,
    HabitsRecord,
    PractisedTrade,
    Retirement,
    StatedBelief,
)
from backsight.core.memory.procedural import LONGEST_WINDOW, Habits, Record, TradeFigures
from backsight.core.memory.semantic import (
    DIMENSIONS,
    Belief,
    BeliefEvidence,
    DayCount,
    Domain,
    EvidenceTally,
    Posterior,
    Standing,
)
from backsight.core.portfolio import Mode
from backsight.core.trades.trade import Outcome
from backsight.store.mapping import OWNER, Noun, noun
from backsight.store.memories import EPISODES
from backsight.store.reading import (
    AS_OF,
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

T = TypeVar("T")


def _field_columns(path: str, of: type[Any], prefix: str = "") -> dict[str, str]:
    """Column names of a part's fields: those of the fields, perhaps after a prefix."""
    return {f"{path}.{field.name}": f"{prefix}{field.name}" for field in fields(of)}


def _figure_columns(path: str, of: type[Any]) -> dict[str, str]:
    """Column names of figures: the value has the figure's, its sample size the same with an n."""
    return {f"{path}.{field.name}.value": field.name for field in fields(of)} | {
        f"{path}.{field.name}.n": f"{field.name}_n" for field in fields(of)
    }


STATED = noun(
    StatedBelief,
    "stated_beliefs",
    names=_field_columns("domain", Domain),
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
        **_field_columns("posterior", Posterior),
    },
    indexes=[("mode", "strategy")],
)
EVIDENCE = noun(
    EvidenceRecord,
    "belief_evidence",
    key=("belief_id", "episode_id"),
    names=_field_columns("evidence", BeliefEvidence),
    indexes=[("episode_id",)],
)
CELLS = noun(
    CellRecord, "semantic_cells", key=("mode", "domain"), names=_field_columns("tally", EvidenceTally), clustered=True
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
MOODS = noun(
    MoodRow,
    "affective_state",
    key=("account_id", "strategy_name", "known_at", "sequence", "id"),
    names={**_field_columns("account", AccountMood), **_field_columns("strategy", StrategyMood)},
    clustered=True,
)
DERIVED: tuple[Noun[Any], ...] = (BELIEFS, EVIDENCE, CELLS, DAYS, PRACTISED, HABITS, MOODS)
"""What can be derived again from facts, and so is not in the audit chain."""


def clear(connection: Connection, noun: Noun[Any], owner: str, **equal: object) -> None:
    """Take away an owner's derived rows that have these values."""
    connection.execute(delete(noun.table).where(noun.table.c[OWNER] == owner, *matching(noun, **equal)))


def clear_evidence(connection: Connection, owner: str, mode: Mode) -> None:
    """Take away all evidence of one mode."""
    c, beliefs = EVIDENCE.table.c, BELIEFS.table.c
    of_mode = select(beliefs.id).where(beliefs.owner_id == owner, beliefs.mode == mode)
    connection.execute(delete(EVIDENCE.table).where(c.owner_id == owner, c.belief_id.in_(of_mode)))


def stated(connection: Connection, owner: str, mode: Mode, horizon: Horizon) -> list[StatedBelief]:
    """The beliefs that were stated by then, oldest first."""
    c = STATED.table.c
    statement = owned(STATED, owner, c.mode == mode, *within(STATED, horizon))
    return fetch(connection, STATED, statement.order_by(c.known_at, c.id))


def stated_belief(connection: Connection, owner: str, belief_id: str) -> StatedBelief | None:
    """The stated belief of this id."""
    return fetch_one(connection, STATED, owned(STATED, owner, STATED.table.c.id == belief_id))


_RETIRED = select(RETIREMENTS.table).where(RETIREMENTS.table.c.owner_id == OWNED, *prepared_within(RETIREMENTS))


def retirements(connection: Connection, owner: str, horizon: Horizon) -> dict[str, datetime]:
    """When the owner retired which beliefs, as far as the horizon goes."""
    found = fetch(connection, RETIREMENTS, _RETIRED, parameters(owner, horizon))
    return {each.belief_id: each.known_at for each in found}


def beliefs(connection: Connection, owner: str, mode: Mode) -> list[BeliefRecord]:
    """The beliefs of one mode as they stand, oldest first."""
    c = BELIEFS.table.c
    return fetch(connection, BELIEFS, owned(BELIEFS, owner, c.mode == mode).order_by(c.known_at, c.id))


_BELIEF = select(BELIEFS.table).where(BELIEFS.table.c.owner_id == OWNED, BELIEFS.table.c.id == bindparam("id"))
_FED = select(EVIDENCE.table).where(
    EVIDENCE.table.c.owner_id == OWNED, EVIDENCE.table.c.episode_id == bindparam("episode")
)


def belief(connection: Connection, owner: str, belief_id: str) -> BeliefRecord | None:
    """The belief of this id as it stands."""
    return fetch_one(connection, BELIEFS, _BELIEF, parameters(owner, id=belief_id))


def beliefs_with_evidence_from(
    connection: Connection, owner: str, episode_id: str
) -> list[tuple[EvidenceRecord, BeliefRecord]]:
    """What an episode is evidence of, and those beliefs as they stand."""
    found = fetch(connection, EVIDENCE, _FED, parameters(owner, episode=episode_id))
    found.sort(key=lambda each: each.evidence.belief_id)  # in SQL, all evidence would be read in this order
    held = ((each, belief(connection, owner, each.evidence.belief_id)) for each in found)
    return [(each, of) for each, of in held if of is not None]


_C, _D, _B = CELLS.table.c, DAYS.table.c, BELIEFS.table.c
_DOMAINS: BindParameter[list[str]] = bindparam("domains", expanding=True)
_CELLS = select(CELLS.table).where(_C.owner_id == OWNED, _C.mode == bindparam("mode"), _C.domain.in_(_DOMAINS))
_DAYS = (
    select(_D.domain, _D.day, _D.n, _D.wins)
    .where(_D.owner_id == OWNED, _D.mode == bindparam("mode"), _D.domain.in_(_DOMAINS))
    .where(_D.day >= bindparam("first"), _D.day <= bindparam("last"))
)
ALL_DAYS = ("", "9999-12-31")
_SPOKEN = (
    select(BELIEFS.table)
    .where(_B.owner_id == OWNED, _B.mode == bindparam("mode"))
    .where(or_(_B.strategy == bindparam("strategy"), _B.strategy.is_(None)))
    .order_by(_B.known_at, _B.id)
)
_SPOKEN_OF_ONE = _SPOKEN.where(*(or_(_B[name] == bindparam(name), _B[name].is_(None)) for name in DIMENSIONS))


def beliefs_about_strategy(connection: Connection, owner: str, mode: Mode, strategy: str) -> list[BeliefRecord]:
    """The beliefs of one mode that may speak of a strategy, oldest first."""
    return fetch(connection, BELIEFS, _SPOKEN, parameters(owner, mode=mode, strategy=strategy))


def beliefs_about_episode(connection: Connection, episode: Episode) -> list[BeliefRecord]:
    """The beliefs whose domain holds an episode, oldest first."""
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
    return fetch(connection, BELIEFS, _SPOKEN_OF_ONE, values)


def cells(connection: Connection, owner: str, mode: Mode, domains: Sequence[str]) -> dict[str, CellRecord]:
    """Those of these cells that were seen, by their domains."""
    found: dict[str, CellRecord] = {}
    for some in in_batches(domains):
        rows = fetch(connection, CELLS, _CELLS, parameters(owner, mode=mode, domains=some))
        found |= {row.domain: row for row in rows}
    return found


def count_cells_by_width(connection: Connection, owner: str, mode: Mode) -> dict[int, int]:
    """How many cells of each width were seen."""
    c = CELLS.table.c
    counted = select(c.width, func.count().label("cells")).where(c.owner_id == owner, c.mode == mode).group_by(c.width)
    return {row.width: row.cells for row in connection.execute(counted)}


def days(
    connection: Connection, owner: str, mode: Mode, domains: Sequence[str], *, between: tuple[str, str] = ALL_DAYS
) -> dict[str, dict[str, DayCount]]:
    """The days of some cells, from one to another of them, by domain."""
    first, last = between
    found: dict[str, dict[str, DayCount]] = {domain: {} for domain in domains}
    for some in in_batches(domains):
        values = parameters(owner, mode=mode, domains=some, first=first, last=last)
        for domain, day, n, wins in connection.execute(_DAYS, values):
            found[domain][day] = DayCount(n=n, wins=wins)
    return found


def founding_episodes(connection: Connection, standing: Standing) -> list[Episode]:
    """The episodes that an induced belief was induced from, in the order in which they teach."""
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
    judged = or_(c.pnl.is_not(None), c.outcome_value.is_not(None))
    first = owned(EPISODES, belief.owner_id, *where, judged).order_by(c.first_known_at, c.sequence, c.id)
    return fetch(connection, EPISODES, first.limit(standing.founding.n))


_P = PRACTISED.table.c
_NEWEST = (_P.known_at.desc(), _P.sequence.desc())
_OF_STRATEGY = (_P.owner_id == OWNED, _P.mode == bindparam("mode"), _P.strategy_name == bindparam("strategy"))
_WHOLE = (
    select(PRACTISED.table)
    .where(*_OF_STRATEGY, _P.symbol == bindparam("symbol"))
    .order_by(*_NEWEST)
    .limit(bindparam("most"))
)
_FIGURES = [field.name for field in fields(TradeFigures) if field.name != "outcome"]
_RECENT = _WHOLE.with_only_columns(*(_P[name] for name in _FIGURES), _P.outcome_value, _P.outcome_unit)
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
    """The last trades of a strategy in a symbol, so many of them at most, oldest first."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, most=most)
    found = []
    for *figures, value, unit in connection.execute(_RECENT, values):
        outcome = None if value is None else Outcome(value=value, unit=unit)
        found.append(TradeFigures(**dict(zip(_FIGURES, figures, strict=True)), outcome=outcome))
    return found[::-1]


def recent_trades_with_records(
    connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str
) -> list[PractisedTrade]:
    """The last hundred trades of a strategy in a symbol, each with the strategy's record before it, oldest first."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, most=LONGEST_WINDOW)
    return fetch(connection, PRACTISED, _WHOLE, values)[::-1]


def record_before_trade(
    connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str, *, back: int
) -> Record:
    """The strategy's record before one of its trades in a symbol: the last, or so many further back."""
    values = parameters(owner, mode=mode, strategy=strategy, symbol=symbol, back=back)
    found = fetch_one(connection, PRACTISED, _EARLIER, values)
    return Record() if found is None else found.earlier


def strategy_record(connection: Connection, owner: str, mode: Mode, strategy: str) -> Record:
    """The record of a strategy after its last trade."""
    last = fetch_one(connection, PRACTISED, _LAST, parameters(owner, mode=mode, strategy=strategy))
    return Record() if last is None else last.earlier.add(last.trade)


_H = HABITS.table.c
_HABITS = (
    select(HABITS.table)
    .where(_H.owner_id == OWNED, _H.mode == bindparam("mode"), _H.strategy_name == bindparam("strategy"))
    .where(_H.symbol == bindparam("symbol"))
)


def habits_of(connection: Connection, owner: str, mode: Mode, strategy: str, symbol: str) -> HabitsRecord | None:
    """The habits of a strategy in a symbol as they stand."""
    return fetch_one(connection, HABITS, _HABITS, parameters(owner, mode=mode, strategy=strategy, symbol=symbol))


def habits(connection: Connection, owner: str, mode: Mode, **equal: str | None) -> list[HabitsRecord]:
    """Habits as they stand, by strategy and symbol."""
    c = HABITS.table.c
    statement = owned(HABITS, owner, c.mode == mode, *matching(HABITS, **equal))
    return fetch(connection, HABITS, statement.order_by(c.strategy_name, c.symbol))


_M = MOODS.table.c
_MOOD = (
    select(MOODS.table)
    .where(_M.owner_id == OWNED, _M.account_id == bindparam("account"), _M.strategy_name == bindparam("strategy"))
    .where(_M.known_at <= bindparam("as_of", type_=_M.known_at.type))
    .order_by(_M.known_at.desc(), _M.sequence.desc(), _M.id.desc())
    .limit(1)
)


def mood_row(connection: Connection, owner: str, account_id: str, strategy: str, as_of: datetime) -> MoodRow | None:
    """The last row of an account's (or of a strategy's on it) that was known by an instant."""
    return fetch_one(connection, MOODS, _MOOD, parameters(owner, account=account_id, strategy=strategy, as_of=as_of))


def equity_series(
    connection: Connection, owner: str, account_id: str, *, since: datetime, until: datetime
) -> list[tuple[datetime, float | None]]:
    """When an account was seen to be worth what, from the last look by one instant to the last by another, in order."""
    before = mood_row(connection, owner, account_id, "", since)
    seen = select(_M.known_at, _M.equity).where(
        _M.owner_id == owner, _M.account_id == account_id, _M.strategy_name == "", _M.known_at > since
    )
    later = connection.execute(seen.where(_M.known_at <= until).order_by(_M.known_at, _M.sequence, _M.id))
    first = [] if before is None or before.account is None else [(before.known_at, before.account.equity)]
    return [*first, *((row.known_at, row.equity) for row in later)]


def was_below_drawdown_state(
    connection: Connection, owner: str, account_id: str, *, since: datetime, below: float
) -> bool:
    """Whether an account's drawdown state was below a level at some look after an instant."""
    c = MOODS.table.c
    looks = owned(MOODS, owner, c.account_id == account_id, c.strategy_name == "", c.known_at > since)
    return connection.execute(looks.where(c.drawdown_state < below).limit(1)).first() is not None


_TEACHING: tuple[Noun[Any], ...] = (EPISODES, STATED, RETIREMENTS)
_LATER = [
    select(noun.table.c.known_at).where(noun.table.c.owner_id == OWNED, noun.table.c.known_at > AS_OF).limit(1)
    for noun in _TEACHING
]


def known_after(connection: Connection, owner: str, at: datetime) -> bool:
    """Whether anything that teaches became known after an instant."""
    values = parameters(owner, as_of=at)
    return any(connection.execute(statement, values).first() is not None for statement in _LATER)


def modes(connection: Connection, owner: str) -> list[Mode]:
    """The modes of which there are episodes or stated beliefs."""
    of_each = [select(c.mode).where(c.owner_id == owner).distinct() for c in (EPISODES.table.c, STATED.table.c)]
    return sorted({mode for statement in of_each for (mode,) in connection.execute(statement)})


def count(connection: Connection, noun: Noun[Any], owner: str) -> int:
    """How many rows an owner has."""
    mine = select(func.count()).select_from(noun.table).where(noun.table.c[OWNER] == owner)
    return connection.execute(mine).scalar_one()


def compare(connection: Connection, noun: Noun[T], owner: str, made: Iterable[T]) -> list[Finding]:
    """Where the stored rows of a derived noun are not these."""
    expected = {noun.key_of(row): row for row in map(noun.to_row, made)}
    found: list[Finding] = []

    def find(kind: FindingKind, key: tuple[Cell, ...], detail: str) -> None:
        found.append(Finding(kind=kind, table=noun.table.name, key=", ".join(map(str, key)), detail=detail))

    for stored in connection.execute(owned(noun, owner)):
        row = noun.to_row(noun.from_row(stored))
        key = noun.key_of(row)
        wanted = expected.pop(key, None)
        if wanted is None:
            find("added", key, "does not follow from what is remembered")
        elif differing := [name for name in row if row[name] != wanted[name]]:
            told = "; ".join(f"{name} is {row[name]}, should be {wanted[name]}"[:200] for name in differing)
            find("changed", key, told)
    for key in expected:
        find("removed", key, "follows from what is remembered, and is not there")
    return found
