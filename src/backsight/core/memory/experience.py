"""Experience: the rows of beliefs and habits that the store keeps, and how they are learned from episodes.

Except stated beliefs and retirements, these rows are not facts. They follow from the episodes in teaching order.
Learning one more episode and learning all episodes again end in equal rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any

from backsight.core.memory import belief_induction, procedural
from backsight.core.memory.belief_induction import Knowledge
from backsight.core.memory.cells import Cell, DayCount
from backsight.core.memory.conditions import Condition, condition_values, evaluate_condition
from backsight.core.memory.drift import Detector
from backsight.core.memory.drift_report import SIZE
from backsight.core.memory.episodic import Episode
from backsight.core.memory.procedural import DriftAlarm, Habits, Practice, Record, Skill, TradeFigures, WindowTrade
from backsight.core.memory.semantic import (
    Belief,
    BeliefEvidence,
    BeliefTerms,
    Domain,
    EvidenceTally,
    Posterior,
    Standing,
    Weighting,
    posterior,
    won,
)
from backsight.core.portfolio import Mode
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """The row of a piece of evidence."""

    owner_id: str
    evidence: BeliefEvidence


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CellDayRecord:
    """The row of one UTC day of a cell."""

    owner_id: str
    mode: Mode
    domain: str
    day: str
    count: DayCount


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
    drift: Mapping[str, Detector]
    """By unit of the outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefRecords:
    """All rows of beliefs of one owner and mode."""

    beliefs: tuple[BeliefRecord, ...]
    evidence: tuple[EvidenceRecord, ...]
    cells: tuple[CellRecord, ...]
    days: tuple[CellDayRecord, ...]


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


def belief_record(standing: Standing) -> BeliefRecord:
    """The row of a belief."""
    return BeliefRecord(standing=standing, posterior=posterior(standing))


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
        days={date.fromisoformat(day): count for day, count in days.items()},
        traded_days=row.traded_days,
        squares=(row.trades_squared, row.trades_by_wins, row.wins_squared),
    )


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
    drift: dict[str, Detector] = {SIZE: practice.size_drift}
    drift.update(practice.outcome_drift.items())
    return HabitsRecord(
        owner_id=owner_id,
        mode=mode,
        strategy_name=trade.strategy_name,
        symbol=trade.symbol,
        known_at=trade.known_at,
        habits=practice.habits,
        previous_stability=practice.previous_stability,
        drift=drift,
    )


def practice_from_record(row: HabitsRecord, recent: Iterable[WindowTrade]) -> Practice:
    """The practice of a row, with its last trades; only the record before the next window must be right."""
    return Practice(
        recent=tuple(recent),
        stability=row.habits.stability,
        previous_stability=row.previous_stability,
        outcome_drift=outcome_detectors(row.drift),
        size_drift=row.drift[SIZE],
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
) -> BeliefRecords:
    """Learn all beliefs of one mode from all its episodes, given in any order."""
    trades, retirements = in_teaching_order(episodes), retired or {}
    knowledge = Knowledge(owner_id=owner_id, mode=mode, weighting=weighting)
    for each in stated:
        knowledge = belief_induction.with_belief(
            knowledge, belief_from_statement(each, retired_at=retirements.get(each.id))
        )
    update = belief_induction.learn_all(trades, knowledge=knowledge, holds=conditions_held, retirements=retirements)
    standings = update.knowledge.standings.values()
    founding = [
        evidence
        for standing in standings
        if standing.founding.n
        for evidence in belief_induction.founding_evidence(standing, trades, weighting=weighting)
    ]
    changed = changed_cells(knowledge, update.knowledge)
    return BeliefRecords(
        beliefs=tuple(belief_record(standing) for standing in standings),
        evidence=tuple(EvidenceRecord(owner_id=owner_id, evidence=each) for each in (*founding, *update.evidence)),
        cells=changed.cells,
        days=changed.new_days,
    )


def learn_habits(
    episodes: Iterable[Episode], *, owner_id: str, mode: Mode, strategy_name: str, skill: Skill | None = None
) -> HabitRecords:
    """Learn the habits of one strategy and mode from episodes in any order; `skill` is the state before them."""
    trades = in_teaching_order(episodes)
    figures = [trade_figures(episode) for episode in trades]
    update = procedural.learn_all(figures, skill=skill or Skill(strategy_name=strategy_name))
    last = {trade.symbol: trade for trade in figures}
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
                drift=dict(update.skill.outcome_drift.items()),
            )
            for trade in figures[-1:]
        ),
        alarms=update.alarms,
    )


def in_teaching_order(episodes: Iterable[Episode]) -> list[Episode]:
    """The trades among episodes in teaching order; a corrected trade teaches as if first known in its current form."""
    trades = (
        episode if episode.known_at == episode.first_known_at else episode.teaching
        for episode in episodes
        if episode.kind == "trade"
    )
    return sorted(trades, key=lambda episode: episode.place)
