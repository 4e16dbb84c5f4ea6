"""Experience: the rows of beliefs and habits that the store keeps, and how they are learned from episodes.

Except stated beliefs and retirements, these rows are not facts. They follow from the episodes in teaching order.
Learning one more episode and learning all episodes again end in equal rows.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from typing import Any

from backsight.core.memory import belief_induction, procedural
from backsight.core.memory.belief_induction import BeliefUpdate, Knowledge, StandingCheckpoint
from backsight.core.memory.cells import Cell, DayCount
from backsight.core.memory.checkpoints import Place
from backsight.core.memory.conditions import Condition, condition_values, evaluate_condition, fields_in
from backsight.core.memory.daily_moments import DailyMoments
from backsight.core.memory.drift import Detector
from backsight.core.memory.drift_report import SIZE
from backsight.core.memory.episodic import Episode
from backsight.core.memory.procedural import (
    DriftAlarm,
    Habits,
    Practice,
    Record,
    Skill,
    SkillCheckpoint,
    TradeFigures,
    WindowTrade,
)
from backsight.core.memory.semantic import (
    DIMENSIONS,
    Belief,
    BeliefEvidence,
    BeliefTerms,
    Domain,
    EpisodePlace,
    EvidenceTally,
    Posterior,
    Standing,
    Weighting,
    place_of,
    posterior,
    won,
)
from backsight.core.portfolio import Mode
from backsight.core.quick_init import quick_init
from backsight.core.regime import Session, session_of
from backsight.core.trades.trade import OutcomeUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBelief(BeliefTerms):
    """A belief as somebody stated it; evidence does not change this fact."""

    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """The fact that the owner retired a belief."""

    owner_id: str
    belief_id: str
    reason: str | None
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefRecord:
    """The row of a belief: its evidence, and the posterior that follows."""

    standing: Standing
    posterior: Posterior


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """The row of a piece of evidence."""

    owner_id: str
    evidence: BeliefEvidence


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """The row of a cell, without its days."""

    owner_id: str
    mode: Mode
    domain: str
    width: int
    tally: EvidenceTally
    traded_days: int
    trades_squared: int
    trades_by_wins: int
    wins_squared: int


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class CellDayRecord:
    """The row of one UTC day of a cell."""

    owner_id: str
    mode: Mode
    domain: str
    day: str
    count: DayCount


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class PractisedTrade:
    """The row of a trade that habits are computed from, with the strategy's record before the trade."""

    owner_id: str
    mode: Mode
    sequence: int
    trade: TradeFigures
    earlier: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitsRecord:
    """The row of the habits of one strategy in one symbol, with the state of the drift tests."""

    owner_id: str
    mode: Mode
    strategy_name: str
    symbol: str
    known_at: datetime
    """When the last trade became known."""
    trades: int
    """How many trades there were in all."""
    habits: Habits
    previous_stability: float
    drift: Mapping[str, Detector]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyDriftRecord:
    """The row of the drift tests of one strategy as a whole, over its outcomes in all symbols."""

    owner_id: str
    mode: Mode
    strategy_name: str
    known_at: datetime
    """When the last trade became known."""
    trades: int
    """How many trades there were in all."""
    drift: Mapping[str, Detector]
    """By unit of the outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCheckpoint:
    """The row of one cell in a checkpoint of all cells of a mode, right after the episode at a place."""

    owner_id: str
    mode: Mode
    number: int
    """Checkpoints of a mode are numbered in their order."""
    known_at: datetime
    sequence: int
    episode_id: str
    domain: str
    width: int
    tally: EvidenceTally
    traded_days: int
    trades_squared: int
    trades_by_wins: int
    wins_squared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefCheckpoint:
    """The row of a checkpoint of a belief: the evidence that tested it, up to the episode at a place."""

    owner_id: str
    belief_id: str
    known_at: datetime
    sequence: int
    episode_id: str
    tested: EvidenceTally
    days: tuple[str, ...]
    wins: DailyMoments
    established: bool

    @property
    def place(self) -> Place:
        return self.known_at, self.sequence, self.episode_id


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitCheckpoint:
    """The row of a checkpoint of the habits of a strategy in one symbol, or of its drift as a whole."""

    owner_id: str
    mode: Mode
    strategy_name: str
    symbol: str
    """Empty for the strategy as a whole."""
    known_at: datetime
    sequence: int
    episode_id: str
    trades: int
    stability: float
    previous_stability: float
    drift: Mapping[str, Detector]

    @property
    def place(self) -> Place:
        return self.known_at, self.sequence, self.episode_id


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefRecords:
    """All rows of beliefs of one owner and mode."""

    beliefs: tuple[BeliefRecord, ...]
    evidence: tuple[EvidenceRecord, ...]
    cells: tuple[CellRecord, ...]
    days: tuple[CellDayRecord, ...]
    checkpoints: tuple[BeliefCheckpoint, ...]
    cell_checkpoints: tuple[CellCheckpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCells:
    """The rows of cells and days that some episodes changed."""

    cells: tuple[CellRecord, ...]
    new_days: tuple[CellDayRecord, ...]
    days: tuple[CellDayRecord, ...]
    """Days that had trades before, with their new counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitRecords:
    """The rows of habits of one owner, mode and strategy, and the alarms that its trades raised."""

    trades: tuple[PractisedTrade, ...]
    habits: tuple[HabitsRecord, ...]
    strategies: tuple[StrategyDriftRecord, ...]
    """The row of the strategy as a whole; none without trades."""
    alarms: tuple[DriftAlarm, ...]
    checkpoints: tuple[HabitCheckpoint, ...]


def belief_from_statement(stated: StatedBelief, *, retired_at: datetime | None = None) -> Belief:
    """A stated belief as a belief without evidence."""
    return Belief(**_terms(stated), retired_at=retired_at)


def statement_of(belief: Belief, *, recorded_at: datetime) -> StatedBelief:
    """The row of a stated belief."""
    return StatedBelief(**_terms(belief), recorded_at=recorded_at)


def _terms(belief: BeliefTerms) -> dict[str, Any]:
    return {field.name: getattr(belief, field.name) for field in fields(BeliefTerms)}


def conditions_held(conditions: Condition, episode: Episode) -> bool:
    """Whether conditions held when an episode began, by its context at entry."""
    values = condition_values(
        now=episode.opened_at,
        context=episode.context,
        strategy=episode.strategy_name,
        symbol=episode.symbol,
        direction=episode.direction,
    )
    return evaluate_condition(conditions, values).holds


_OF_PLACE = frozenset(("strategy", *DIMENSIONS))


def episodes_where(conditions: Condition, episodes: Iterable[Episode]) -> list[Episode]:
    """The episodes at whose beginning conditions held.

    Conditions that name nothing but the place of an episode are judged once for each place: there are few.
    """
    if not _OF_PLACE.issuperset(fields_in(conditions)):
        return [each for each in episodes if conditions_held(conditions, each)]
    truth: dict[tuple[EpisodePlace, Session | None], bool] = {}
    inside: list[Episode] = []
    for each in episodes:
        began = each.opened_at if each.context.session is None else None
        key = place_of(each), None if began is None else session_of(began)
        if key not in truth:
            truth[key] = conditions_held(conditions, each)
        if truth[key]:
            inside.append(each)
    return inside


def belief_record(standing: Standing) -> BeliefRecord:
    """The row of a belief."""
    return BeliefRecord(standing=standing, posterior=posterior(standing))


def belief_checkpoint(checkpoint: StandingCheckpoint, *, owner_id: str) -> BeliefCheckpoint:
    """The row of a checkpoint of a belief."""
    (known_at, sequence, episode_id), standing = checkpoint.place, checkpoint.standing
    return BeliefCheckpoint(
        owner_id=owner_id,
        belief_id=standing.belief.id,
        known_at=known_at,
        sequence=sequence,
        episode_id=episode_id,
        tested=standing.tested,
        days=standing.days,
        wins=standing.wins,
        established=standing.established,
    )


def standing_at(checkpoint: BeliefCheckpoint | None, standing: Standing) -> Standing:
    """A belief as it was at a checkpoint, or, without one, before any evidence tested it."""
    if checkpoint is None:
        return Standing(belief=standing.belief)
    return replace(
        standing,
        tested=checkpoint.tested,
        days=checkpoint.days,
        wins=checkpoint.wins,
        established=checkpoint.established,
    )


def cell_record(domain: Domain, cell: Cell, *, owner_id: str, mode: Mode) -> CellRecord:
    """The row of a cell."""
    trades_squared, trades_by_wins, wins_squared = cell.squares
    return CellRecord(
        owner_id=owner_id,
        mode=mode,
        domain=domain.text(),
        width=domain.width,
        tally=cell.tally,
        traded_days=cell.traded_days,
        trades_squared=trades_squared,
        trades_by_wins=trades_by_wins,
        wins_squared=wins_squared,
    )


def changed_cells(before: Knowledge, after: Knowledge) -> ChangedCells:
    """The rows of cells that differ between two states; `before` may have only some cells, and some of their days.

    The rows are in the order of their keys, in which the database writes them fastest.
    """
    owner, mode = after.owner_id, after.mode
    cells, new_days, days = list[CellRecord](), list[CellDayRecord](), list[CellDayRecord]()
    changed = [domain for domain, cell in after.cells.items() if cell is not before.cells.get(domain)]
    for domain in sorted(changed, key=Domain.text):
        cell, former = after.cells[domain], before.cells.get(domain)
        record = cell_record(domain, cell, owner_id=owner, mode=mode)
        cells.append(record)
        former_days: Mapping[date, DayCount] = {} if former is None else former.days
        for day, count in cell.days.items():
            former_count = former_days.get(day)
            if former_count != count:
                row = CellDayRecord(owner_id=owner, mode=mode, domain=record.domain, day=day.isoformat(), count=count)
                (new_days if former_count is None else days).append(row)
    return ChangedCells(cells=tuple(cells), new_days=tuple(new_days), days=tuple(days))


def cell_from_record(row: CellRecord, days: Mapping[str, DayCount]) -> Cell:
    """The cell of a row, with the days that were read."""
    return Cell(
        tally=row.tally,
        days=days_from_rows(days),
        traded_days=row.traded_days,
        squares=(row.trades_squared, row.trades_by_wins, row.wins_squared),
    )


def days_from_rows(days: Mapping[str, DayCount]) -> dict[date, DayCount]:
    """The days of a cell by date."""
    return {date.fromisoformat(day): count for day, count in days.items()}


def trade_figures(episode: Episode) -> TradeFigures:
    """The figures of an episode that habits are computed from."""
    return TradeFigures(
        episode_id=episode.id,
        strategy_name=episode.strategy_name,
        symbol=episode.symbol,
        known_at=episode.first_known_at,
        deployment_id=episode.deployment_id,
        opened_at=episode.opened_at,
        win=won(episode),
        outcome=episode.outcome,
        gain=episode.pnl if episode.gross is None else episode.gross,
        hold_seconds=episode.hold_seconds,
        size_share=episode.size_share,
        risk_share=episode.risk_share,
        recommended_share=episode.recommended_share,
        confidence=episode.confidence,
        mfe=episode.mfe,
        mae=episode.mae,
        mfe_at=episode.mfe_at,
        mae_at=episode.mae_at,
    )


def habits_record(practice: Practice, trade: TradeFigures, *, owner_id: str, mode: Mode) -> HabitsRecord:
    """The row of the habits after a trade."""
    return HabitsRecord(
        owner_id=owner_id,
        mode=mode,
        strategy_name=trade.strategy_name,
        symbol=trade.symbol,
        known_at=trade.known_at,
        trades=practice.trades,
        habits=practice.habits,
        previous_stability=practice.previous_stability,
        drift=_detectors(practice),
    )


def _detectors(practice: Practice) -> dict[str, Detector]:
    drift: dict[str, Detector] = {SIZE: practice.size_drift}
    drift.update(practice.outcome_drift.items())
    return drift


def practice_at(checkpoint: HabitCheckpoint | None, recent: Iterable[TradeFigures]) -> Practice:
    """The practice as it was at a checkpoint, or before any trade; `recent` are the last trades up to it."""
    if checkpoint is None:
        return Practice()
    return Practice(
        recent=tuple(WindowTrade(trade=trade, earlier=Record()) for trade in recent),
        stability=checkpoint.stability,
        previous_stability=checkpoint.previous_stability,
        outcome_drift=outcome_detectors(checkpoint.drift),
        size_drift=checkpoint.drift[SIZE],
        trades=checkpoint.trades,
    )


def _habit_checkpoint(checkpoint: SkillCheckpoint, sequence: int, *, owner_id: str, mode: Mode) -> HabitCheckpoint:
    trade, practice = checkpoint.trade, checkpoint.practice
    return HabitCheckpoint(
        owner_id=owner_id,
        mode=mode,
        strategy_name=trade.strategy_name,
        symbol=checkpoint.symbol or "",
        known_at=trade.known_at,
        sequence=sequence,
        episode_id=trade.episode_id,
        trades=practice.trades,
        stability=practice.stability,
        previous_stability=practice.previous_stability,
        drift=dict(practice.outcome_drift.items()) if checkpoint.symbol is None else _detectors(practice),
    )


def practice_from_record(row: HabitsRecord, recent: Iterable[WindowTrade]) -> Practice:
    """The practice of a row, with its last trades; only the record before the next window must be right."""
    return Practice(
        recent=tuple(recent),
        stability=row.habits.stability,
        previous_stability=row.previous_stability,
        outcome_drift=outcome_detectors(row.drift),
        size_drift=row.drift[SIZE],
        trades=row.trades,
    )


def outcome_detectors(drift: Mapping[str, Detector]) -> dict[OutcomeUnit, Detector]:
    """The detectors of outcomes among those of a row, by unit."""
    return {unit: drift[unit] for unit in procedural.UNITS if unit in drift}


def learn_beliefs(
    episodes: Iterable[Episode],
    *,
    owner_id: str,
    mode: Mode,
    stated: Iterable[StatedBelief] = (),
    retired: Mapping[str, datetime] | None = None,
    weighting: Weighting = "count",
    keep_cells: Mapping[int, Place] | None = None,
) -> BeliefRecords:
    """Learn all beliefs of one mode from all its episodes, given in any order.

    `keep_cells` maps the numbers of checkpoints of cells to their places.
    """
    trades, retirements = in_teaching_order(episodes), retired or {}
    knowledge = Knowledge(owner_id=owner_id, mode=mode, weighting=weighting)
    for each in stated:
        knowledge = belief_induction.with_belief(
            knowledge, belief_from_statement(each, retired_at=retirements.get(each.id))
        )
    update, copies = BeliefUpdate(knowledge=knowledge), list[CellCheckpoint]()
    for number, place, part in _parts(trades, keep_cells or {}):
        learned = belief_induction.learn_all(
            part, knowledge=update.knowledge, holds=conditions_held, retirements=retirements
        )
        update = BeliefUpdate(
            knowledge=learned.knowledge,
            evidence=update.evidence + learned.evidence,
            checkpoints=update.checkpoints + learned.checkpoints,
        )
        if place is not None:
            copies += _cell_checkpoints(learned.knowledge, number, place)
    standings = update.knowledge.standings.values()
    founding: list[BeliefEvidence] = []
    for standing in standings:
        if standing.founding.n:
            own = belief_induction.judged_trades(standing.belief.domain, trades, weighting=weighting)
            founding += belief_induction.founding_evidence(standing, own)
    changed = changed_cells(knowledge, update.knowledge)
    return BeliefRecords(
        beliefs=tuple(belief_record(standing) for standing in standings),
        evidence=tuple(EvidenceRecord(owner_id=owner_id, evidence=each) for each in (*founding, *update.evidence)),
        cells=changed.cells,
        days=changed.new_days,
        checkpoints=tuple(belief_checkpoint(each, owner_id=owner_id) for each in update.checkpoints),
        cell_checkpoints=tuple(copies),
    )


def _parts(
    trades: Sequence[Episode], keep_cells: Mapping[int, Place]
) -> Iterator[tuple[int, Place | None, Sequence[Episode]]]:
    """Trades in teaching order, cut after the places of checkpoints; the last part ends without one."""
    first = 0
    for number, place in sorted(keep_cells.items()):
        end = bisect_right(trades, place, key=lambda episode: episode.place)
        yield number, place, trades[first:end]
        first = end
    yield 0, None, trades[first:]


def _cell_checkpoints(knowledge: Knowledge, number: int, place: Place) -> Iterator[CellCheckpoint]:
    known_at, sequence, episode_id = place
    for domain, cell in knowledge.cells.items():
        record = cell_record(domain, cell, owner_id=knowledge.owner_id, mode=knowledge.mode)
        values = {field.name: getattr(record, field.name) for field in fields(CellRecord)}
        yield CellCheckpoint(**values, number=number, known_at=known_at, sequence=sequence, episode_id=episode_id)


def learn_habits(
    episodes: Iterable[Episode], *, owner_id: str, mode: Mode, strategy_name: str, skill: Skill | None = None
) -> HabitRecords:
    """Learn the habits of one strategy and mode from episodes in any order; `skill` is the state before them."""
    trades = in_teaching_order(episodes)
    figures = [trade_figures(episode) for episode in trades]
    update = procedural.learn_all(figures, skill=skill or Skill(strategy_name=strategy_name))
    last = {trade.symbol: trade for trade in figures}
    sequences = {episode.id: episode.sequence for episode in trades}
    return HabitRecords(
        trades=tuple(
            PractisedTrade(owner_id=owner_id, mode=mode, sequence=episode.sequence, trade=trade, earlier=earlier)
            for episode, trade, earlier in zip(trades, update.trades, update.earlier, strict=True)
        ),
        habits=tuple(
            habits_record(update.skill.symbols[symbol], trade, owner_id=owner_id, mode=mode)
            for symbol, trade in last.items()
        ),
        strategies=tuple(
            StrategyDriftRecord(
                owner_id=owner_id,
                mode=mode,
                strategy_name=strategy_name,
                known_at=trade.known_at,
                trades=update.skill.trades,
                drift=dict(update.skill.outcome_drift.items()),
            )
            for trade in figures[-1:]
        ),
        alarms=update.alarms,
        checkpoints=tuple(
            _habit_checkpoint(each, sequences[each.trade.episode_id], owner_id=owner_id, mode=mode)
            for each in update.checkpoints
        ),
    )


def in_teaching_order(episodes: Iterable[Episode]) -> list[Episode]:
    """The trades among episodes in teaching order; a corrected trade teaches as if first known in its current form."""
    trades = (
        episode if episode.known_at == episode.first_known_at else episode.teaching
        for episode in episodes
        if episode.kind == "trade"
    )
    return sorted(trades, key=lambda episode: episode.place)
