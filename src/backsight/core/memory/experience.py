"""Experience: what closed trades teach beliefs and habits, as rows that are kept and can be derived again.

A row is never a fact: all of them follow from the episodes (and from what the owner said of beliefs), in the order in
which these first became known. Learning one more episode and learning all of them again end in equal rows.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from backsight.core.memory import procedural, semantic
from backsight.core.memory.conditions import condition_from_text, condition_values, evaluate_condition
from backsight.core.memory.drift import Detector
from backsight.core.memory.episodic import Episode
from backsight.core.memory.procedural import DriftAlarm, Habits, Practice, Record, Skill, TradeFigures, WindowTrade
from backsight.core.memory.semantic import (
    Belief,
    BeliefEvidence,
    BeliefSource,
    Cell,
    Claim,
    DayCount,
    Domain,
    EvidenceTally,
    Knowledge,
    Posterior,
    Standing,
    Weighting,
    posterior,
)
from backsight.core.portfolio import Mode
from backsight.core.trades.trade import OutcomeUnit

SIZE = "size"
"""The series of sizes among the detectors of drift; the others are called by the unit of their outcomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBelief:
    """A belief as somebody stated it: a fact, which evidence does not change."""

    owner_id: str
    id: str
    mode: Mode
    proposition: str
    domain: Domain
    conditions: str | None
    claims: Claim
    reference: float
    source: BeliefSource
    prior_alpha: float
    prior_beta: float
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """That the owner retired a belief."""

    owner_id: str
    belief_id: str
    reason: str | None
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefRecord:
    """A belief with its evidence, and what that makes of it."""

    standing: Standing
    posterior: Posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """Evidence, and whose it is."""

    owner_id: str
    evidence: BeliefEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRecord:
    """A cell of a strategy's trades, without its days."""

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
    """One UTC day of a cell."""

    owner_id: str
    mode: Mode
    domain: str
    day: str
    count: DayCount


@dataclass(frozen=True, slots=True, kw_only=True)
class PractisedTrade:
    """A trade as habits are read from it, with the strategy's record before it."""

    owner_id: str
    mode: Mode
    sequence: int
    trade: TradeFigures
    earlier: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitsRecord:
    """The habits of one strategy in one symbol, and where the tests for drift stand."""

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
class BeliefRecords:
    """All that is kept of beliefs, for one owner and mode."""

    beliefs: tuple[BeliefRecord, ...]
    evidence: tuple[EvidenceRecord, ...]
    cells: tuple[CellRecord, ...]
    days: tuple[CellDayRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCells:
    """Cells as some episodes left them, and of their days those that changed."""

    cells: tuple[CellRecord, ...]
    new_days: tuple[CellDayRecord, ...]
    days: tuple[CellDayRecord, ...]
    """Those that were kept before, with other counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitRecords:
    """What trades of one owner, mode and strategy make of its habits."""

    trades: tuple[PractisedTrade, ...]
    habits: tuple[HabitsRecord, ...]
    alarms: tuple[DriftAlarm, ...]


def belief_from_statement(stated: StatedBelief, *, retired_at: datetime | None = None) -> Belief:
    """The belief that somebody stated, before any evidence."""
    names = (name for name in StatedBelief.__dataclass_fields__ if name != "recorded_at")
    return Belief(**{name: getattr(stated, name) for name in names}, retired_at=retired_at)


def statement_of(belief: Belief, *, recorded_at: datetime) -> StatedBelief:
    """A stated belief as it is kept."""
    names = (name for name in StatedBelief.__dataclass_fields__ if name != "recorded_at")
    return StatedBelief(**{name: getattr(belief, name) for name in names}, recorded_at=recorded_at)


def conditions_held(conditions: str, episode: Episode) -> bool:
    """Whether conditions held when an episode began, as far as its context tells."""
    values = condition_values(
        now=episode.opened_at,
        context=episode.context,
        strategy=episode.strategy_name,
        symbol=episode.symbol,
        direction=episode.direction,
    )
    return evaluate_condition(condition_from_text(conditions), values).holds


def domain_of(text: str) -> Domain:
    """The domain that a canonical text names: `domain_of(domain.text()) == domain`.

    >>> domain_of('{"regime":"ranging","strategy":"IM"}')
    Domain(strategy='IM', symbol=None, direction=None, regime='ranging', volatility_regime=None, session=None)
    """
    return Domain(**json.loads(text))


def belief_record(standing: Standing) -> BeliefRecord:
    """A belief as it is kept."""
    return BeliefRecord(standing=standing, posterior=posterior(standing))


def cell_record(domain: Domain, cell: Cell, *, owner_id: str, mode: Mode) -> CellRecord:
    """A cell as it is kept."""
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
    """What is to be kept of cells after some episodes; `before` may know a part of them, with a part of their days.

    They come in the order of their keys, in which they are written fastest.
    """
    owner, mode = after.owner_id, after.mode
    cells, new_days, days = list[CellRecord](), list[CellDayRecord](), list[CellDayRecord]()
    changed = [domain for domain, cell in after.cells.items() if cell is not before.cells.get(domain)]
    for domain in sorted(changed, key=Domain.text):
        cell, held = after.cells[domain], before.cells.get(domain)
        kept = cell_record(domain, cell, owner_id=owner, mode=mode)
        cells.append(kept)
        known: Mapping[date, DayCount] = {} if held is None else held.days
        for day, count in cell.days.items():
            was = known.get(day)
            if was != count:
                row = CellDayRecord(owner_id=owner, mode=mode, domain=kept.domain, day=day.isoformat(), count=count)
                (new_days if was is None else days).append(row)
    return ChangedCells(cells=tuple(cells), new_days=tuple(new_days), days=tuple(days))


def cell_from_record(row: CellRecord, days: Mapping[str, DayCount]) -> Cell:
    """The cell that was kept, with those of its days that are at hand."""
    return Cell(
        tally=row.tally,
        days={date.fromisoformat(day): count for day, count in days.items()},
        traded_days=row.traded_days,
        squares=(row.trades_squared, row.trades_by_wins, row.wins_squared),
    )


def trade_figures(episode: Episode) -> TradeFigures:
    """What habits are read from, of an episode."""
    return TradeFigures(
        episode_id=episode.id,
        strategy_name=episode.strategy_name,
        symbol=episode.symbol,
        known_at=episode.first_known_at,
        opened_at=episode.opened_at,
        win=semantic.won(episode),
        outcome=episode.outcome,
        gain=episode.pnl if episode.gross is None else episode.gross,
        hold_seconds=episode.hold_seconds,
        size_share=episode.size_share,
        recommended_share=episode.recommended_share,
        confidence=episode.confidence,
        mfe=episode.mfe,
        mae=episode.mae,
        mfe_at=episode.mfe_at,
        mae_at=episode.mae_at,
    )


def habits_record(practice: Practice, trade: TradeFigures, *, owner_id: str, mode: Mode) -> HabitsRecord:
    """The habits after a trade, as they are kept."""
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
    """The practice that was kept, with its last trades; of their records that before the next window is enough."""
    outcome_drift: dict[OutcomeUnit, Detector] = {
        unit: row.drift[unit] for unit in procedural.UNITS if unit in row.drift
    }
    return Practice(
        recent=tuple(recent),
        stability=row.habits.stability,
        previous_stability=row.previous_stability,
        outcome_drift=outcome_drift,
        size_drift=row.drift[SIZE],
    )


def learn_beliefs(
    episodes: Iterable[Episode],
    *,
    owner_id: str,
    mode: Mode,
    stated: Iterable[StatedBelief] = (),
    retired: Mapping[str, datetime] | None = None,
    weighting: Weighting = "count",
) -> BeliefRecords:
    """All beliefs from all episodes of one mode, whatever order they come in."""
    given, gone = in_teaching_order(episodes), retired or {}
    knowledge = Knowledge(owner_id=owner_id, mode=mode, weighting=weighting)
    for each in stated:
        knowledge = semantic.with_belief(knowledge, belief_from_statement(each, retired_at=gone.get(each.id)))
    learned = semantic.learn_all(given, knowledge=knowledge, holds=conditions_held, retirements=gone)
    held = learned.knowledge
    founding = [
        evidence
        for standing in held.standings.values()
        if standing.founding.n
        for evidence in semantic.founding_evidence(standing, given, weighting=weighting)
    ]
    made = changed_cells(knowledge, held)
    return BeliefRecords(
        beliefs=tuple(belief_record(standing) for standing in held.standings.values()),
        evidence=tuple(EvidenceRecord(owner_id=owner_id, evidence=each) for each in (*founding, *learned.evidence)),
        cells=made.cells,
        days=made.new_days,
    )


def learn_habits(
    episodes: Iterable[Episode], *, owner_id: str, mode: Mode, strategy_name: str, skill: Skill | None = None
) -> HabitRecords:
    """The habits that episodes of one strategy and mode lead to, in any order: all of them, or those after a skill."""
    taught = in_teaching_order(episodes)
    figures = [trade_figures(episode) for episode in taught]
    learned = procedural.learn_all(figures, skill=skill or Skill(strategy_name=strategy_name))
    last = {trade.symbol: trade for trade in figures}
    return HabitRecords(
        trades=tuple(
            PractisedTrade(owner_id=owner_id, mode=mode, sequence=episode.sequence, trade=trade, earlier=earlier)
            for episode, trade, earlier in zip(taught, figures, learned.earlier, strict=True)
        ),
        habits=tuple(
            habits_record(learned.skill.symbols[symbol], trade, owner_id=owner_id, mode=mode)
            for symbol, trade in last.items()
        ),
        alarms=learned.alarms,
    )


def in_teaching_order(episodes: Iterable[Episode]) -> list[Episode]:
    """The trades among episodes in the order in which they teach, each as it teaches."""
    trades = (_as_it_teaches(episode) for episode in episodes if episode.kind == "trade")
    return sorted(trades, key=lambda episode: episode.place)


def _as_it_teaches(episode: Episode) -> Episode:
    """The episode at its first place; one that was never corrected stands there already."""
    return episode if episode.known_at == episode.first_known_at else episode.teaching
