"""Experience: what closed trades teach beliefs and habits, as rows that are kept and can be derived again.

A row is never a fact: all of them follow from the episodes (and from what the owner said of beliefs), in the order in
which these first became known. Learning one more episode and learning all of them again end in equal rows.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from backsight.core.memory import procedural, semantic
from backsight.core.memory.conditions import evaluate, from_text, values_of
from backsight.core.memory.drift import Detector
from backsight.core.memory.episodic import Episode
from backsight.core.memory.procedural import Drifted, Habits, Kept, Practice, Record, Skill, TradeFigures
from backsight.core.memory.semantic import (
    Belief,
    BeliefSource,
    Cell,
    Claim,
    DayCount,
    Domain,
    Evidence,
    Knowledge,
    Posterior,
    Standing,
    Tally,
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
class KeptBelief:
    """A belief with its evidence, and what that makes of it."""

    standing: Standing
    posterior: Posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEvidence:
    """Evidence, and whose it is."""

    owner_id: str
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCell:
    """A cell of a strategy's trades, without its days."""

    owner_id: str
    mode: Mode
    domain: str
    width: int
    tally: Tally
    traded_days: int
    trades_squared: int
    trades_by_wins: int
    wins_squared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptDay:
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
class KeptHabits:
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
class Beliefs:
    """All that is kept of beliefs, for one owner and mode."""

    beliefs: tuple[KeptBelief, ...]
    evidence: tuple[KeptEvidence, ...]
    cells: tuple[KeptCell, ...]
    days: tuple[KeptDay, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCells:
    """Cells as some episodes left them, and of their days those that changed."""

    cells: tuple[KeptCell, ...]
    new_days: tuple[KeptDay, ...]
    days: tuple[KeptDay, ...]
    """Those that were kept before, with other counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Practices:
    """What trades of one owner, mode and strategy make of its habits."""

    trades: tuple[PractisedTrade, ...]
    habits: tuple[KeptHabits, ...]
    alarms: tuple[Drifted, ...]


def belief_of(stated: StatedBelief, *, retired_at: datetime | None = None) -> Belief:
    """The belief that somebody stated, before any evidence."""
    names = (name for name in StatedBelief.__dataclass_fields__ if name != "recorded_at")
    return Belief(**{name: getattr(stated, name) for name in names}, retired_at=retired_at)


def stated_of(belief: Belief, *, recorded_at: datetime) -> StatedBelief:
    """A stated belief as it is kept."""
    names = (name for name in StatedBelief.__dataclass_fields__ if name != "recorded_at")
    return StatedBelief(**{name: getattr(belief, name) for name in names}, recorded_at=recorded_at)


def holds(conditions: str, episode: Episode) -> bool:
    """Whether conditions held when an episode began, as far as its context tells."""
    values = values_of(
        now=episode.opened_at,
        context=episode.context,
        strategy=episode.strategy_name,
        symbol=episode.symbol,
        direction=episode.direction,
    )
    return evaluate(from_text(conditions), values).holds


def domain_of(text: str) -> Domain:
    """The domain that a canonical text names: `domain_of(domain.text()) == domain`.

    >>> domain_of('{"regime":"ranging","strategy":"IM"}')
    Domain(strategy='IM', symbol=None, direction=None, regime='ranging', volatility_regime=None, session=None)
    """
    return Domain(**json.loads(text))


def kept_belief(standing: Standing) -> KeptBelief:
    """A belief as it is kept."""
    return KeptBelief(standing=standing, posterior=posterior(standing))


def kept_cell(domain: Domain, cell: Cell, *, owner_id: str, mode: Mode) -> KeptCell:
    """A cell as it is kept."""
    trades_squared, trades_by_wins, wins_squared = cell.squares
    return KeptCell(
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
    cells, new_days, days = list[KeptCell](), list[KeptDay](), list[KeptDay]()
    changed = [domain for domain, cell in after.cells.items() if cell is not before.cells.get(domain)]
    for domain in sorted(changed, key=Domain.text):
        cell, held = after.cells[domain], before.cells.get(domain)
        kept = kept_cell(domain, cell, owner_id=owner, mode=mode)
        cells.append(kept)
        known: Mapping[date, DayCount] = {} if held is None else held.days
        for day, count in cell.days.items():
            was = known.get(day)
            if was != count:
                row = KeptDay(owner_id=owner, mode=mode, domain=kept.domain, day=day.isoformat(), count=count)
                (new_days if was is None else days).append(row)
    return ChangedCells(cells=tuple(cells), new_days=tuple(new_days), days=tuple(days))


def cell_of(row: KeptCell, days: Mapping[str, DayCount]) -> Cell:
    """The cell that was kept, with those of its days that are at hand."""
    return Cell(
        tally=row.tally,
        days={date.fromisoformat(day): count for day, count in days.items()},
        traded_days=row.traded_days,
        squares=(row.trades_squared, row.trades_by_wins, row.wins_squared),
    )


def figures_of(episode: Episode) -> TradeFigures:
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


def kept_habits(practice: Practice, trade: TradeFigures, *, owner_id: str, mode: Mode) -> KeptHabits:
    """The habits after a trade, as they are kept."""
    drift: dict[str, Detector] = {SIZE: practice.size_drift}
    drift.update(practice.outcome_drift.items())
    return KeptHabits(
        owner_id=owner_id,
        mode=mode,
        strategy_name=trade.strategy_name,
        symbol=trade.symbol,
        known_at=trade.known_at,
        habits=practice.habits,
        previous_stability=practice.previous_stability,
        drift=drift,
    )


def practice_of(row: KeptHabits, recent: Iterable[Kept]) -> Practice:
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
) -> Beliefs:
    """All beliefs from all episodes of one mode, whatever order they come in."""
    given, gone = in_place(episodes), retired or {}
    knowledge = Knowledge(owner_id=owner_id, mode=mode, weighting=weighting)
    for each in stated:
        knowledge = semantic.with_belief(knowledge, belief_of(each, retired_at=gone.get(each.id)))
    learned = semantic.learn_all(given, knowledge=knowledge, holds=holds, retirements=gone)
    held = learned.knowledge
    founding = [
        evidence
        for standing in held.standings.values()
        if standing.founding.n
        for evidence in semantic.founding_evidence(standing, given, weighting=weighting)
    ]
    made = changed_cells(knowledge, held)
    return Beliefs(
        beliefs=tuple(kept_belief(standing) for standing in held.standings.values()),
        evidence=tuple(KeptEvidence(owner_id=owner_id, evidence=each) for each in (*founding, *learned.evidence)),
        cells=made.cells,
        days=made.new_days,
    )


def learn_habits(
    episodes: Iterable[Episode], *, owner_id: str, mode: Mode, strategy_name: str, skill: Skill | None = None
) -> Practices:
    """The habits that episodes of one strategy and mode lead to, in any order: all of them, or those after a skill."""
    taught = in_place(episodes)
    figures = [figures_of(episode) for episode in taught]
    learned = procedural.learn_all(figures, skill=skill or Skill(strategy_name=strategy_name))
    last = {trade.symbol: trade for trade in figures}
    return Practices(
        trades=tuple(
            PractisedTrade(owner_id=owner_id, mode=mode, sequence=episode.sequence, trade=trade, earlier=earlier)
            for episode, trade, earlier in zip(taught, figures, learned.earlier, strict=True)
        ),
        habits=tuple(
            kept_habits(learned.skill.symbols[symbol], trade, owner_id=owner_id, mode=mode)
            for symbol, trade in last.items()
        ),
        alarms=learned.alarms,
    )


def in_place(episodes: Iterable[Episode]) -> list[Episode]:
    """The trades among episodes in the order in which they teach, each as it teaches."""
    trades = (_as_it_teaches(episode) for episode in episodes if episode.kind == "trade")
    return sorted(trades, key=lambda episode: episode.place)


def _as_it_teaches(episode: Episode) -> Episode:
    """The episode at its first place; one that was never corrected stands there already."""
    return episode if episode.known_at == episode.first_known_at else episode.teaching
