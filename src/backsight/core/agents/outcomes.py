"""The outcomes of decisions as they are stored: states in their order, and revisions that late bars made of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.agents.card import CardType, direction_of, share_of
from backsight.core.agents.resolution import (
    ExitKind,
    Levels,
    Resolution,
    ResolutionStatus,
    levels_of,
)
from backsight.core.agents.run import AgentRun
from backsight.core.context import ContextVector
from backsight.core.ids import derive_id
from backsight.core.memory.episodic import Episode
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Outcome

OutcomeSource = Literal["bars", "owner", "card"]
"""Who decided a state: stored bars, the owner, or the card itself, whose levels cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOutcome:
    """One state of the decision of a run. States are appended; a revision holds all states anew."""

    owner_id: str
    run_id: str
    revision: int
    """0 first; one more each time that late bars or the owner change an earlier state."""
    step: int
    """The order of the states within a revision."""
    source: OutcomeSource
    status: ResolutionStatus
    reason: str | None
    entry_at: datetime | None
    fill: float | None
    exit_at: datetime | None
    exit_price: float | None
    exit_kind: ExitKind | None
    outcome_r: float | None
    known_at: datetime
    recorded_at: datetime

    @property
    def state(self) -> tuple[object, ...]:
        """What the state says, apart from its place and when it was recorded."""
        return (
            self.status,
            self.reason,
            self.entry_at,
            self.fill,
            self.exit_at,
            self.exit_price,
            self.exit_kind,
            self.outcome_r,
            self.known_at,
        )


def current_revision(rows: Sequence[DecisionOutcome]) -> list[DecisionOutcome]:
    """The states of the newest revision among some rows, in their order."""
    newest = max((row.revision for row in rows), default=0)
    return sorted((row for row in rows if row.revision == newest), key=lambda row: row.step)


def state_at(rows: Sequence[DecisionOutcome], as_of: datetime) -> DecisionOutcome | None:
    """The state of a decision at an instant, by the newest revision; None while it is pending."""
    known = [row for row in current_revision(rows) if row.known_at <= as_of]
    return known[-1] if known else None


def new_rows(
    former: Sequence[DecisionOutcome],
    states: Sequence[Resolution],
    run: AgentRun,
    *,
    source: OutcomeSource,
    recorded_at: datetime,
) -> list[DecisionOutcome]:
    """The rows to append so that the newest revision has these states; none if it has them already.

    States that only continue the newest revision are added to it. Any other difference makes a revision.
    """
    newest = current_revision(former)
    revision = newest[0].revision if newest else 0
    rows = [
        DecisionOutcome(
            owner_id=run.owner_id,
            run_id=run.id,
            revision=revision,
            step=step,
            source=source,
            status=state.status,
            reason=state.reason,
            entry_at=state.entry_at,
            fill=state.fill,
            exit_at=state.exit_at,
            exit_price=state.exit_price,
            exit_kind=state.exit_kind,
            outcome_r=state.outcome_r,
            known_at=max(state.known_at, run.known_at),
            recorded_at=recorded_at,
        )
        for step, state in enumerate(states)
    ]
    same = min(len(newest), len(rows))
    if [row.state for row in newest[:same]] == [row.state for row in rows[:same]] and len(rows) >= len(newest):
        return rows[same:]
    return [_in_revision(row, revision + 1) for row in rows]


def _in_revision(row: DecisionOutcome, revision: int) -> DecisionOutcome:
    return replace(row, revision=revision)


def settled_rows(
    former: Sequence[DecisionOutcome], run: AgentRun, settled: Resolution, *, recorded_at: datetime
) -> list[DecisionOutcome]:
    """The rows of a settlement by the owner: a revision that repeats the states before it, and ends with it."""
    newest = [row for row in current_revision(former) if row.known_at <= settled.known_at]
    revision = max((row.revision for row in former), default=-1) + 1
    rows = [replace(row, revision=revision, step=step, recorded_at=recorded_at) for step, row in enumerate(newest)]
    last = DecisionOutcome(
        owner_id=run.owner_id,
        run_id=run.id,
        revision=revision,
        step=len(rows),
        source="owner",
        status=settled.status,
        reason=settled.reason,
        entry_at=settled.entry_at,
        fill=settled.fill,
        exit_at=settled.exit_at,
        exit_price=settled.exit_price,
        exit_kind=settled.exit_kind,
        outcome_r=settled.outcome_r,
        known_at=settled.known_at,
        recorded_at=recorded_at,
    )
    return [*rows, last]


def is_settled(rows: Sequence[DecisionOutcome]) -> bool:
    """Whether the owner settled a decision: bars do not change it any more."""
    return any(row.source == "owner" for row in current_revision(rows))


def card_levels(card_type: CardType, run: AgentRun) -> Levels | str:
    """The levels of a card, or the reason why it has none that could be reached."""
    card = run.card
    if card_type.field_of("direction") is None:
        return f"a {card_type.name} has no direction"
    direction = direction_of(card_type.value_of(card, "direction"))
    symbol = card_type.value_of(card, "symbol")
    if direction is not None and not (isinstance(symbol, str) and symbol.strip()):
        return "the symbol is missing"
    entry, target, stop = (card_type.value_of(card, role) for role in ("entry", "target", "stop"))
    return levels_of(direction, entry, target, stop)


def card_episode_id(run_id: str) -> str:
    """The id of the episode of a resolved card."""
    return derive_id("episode", run_id)


def card_episode(
    run: AgentRun, card_type: CardType, levels: Levels, outcome: DecisionOutcome, deployment: Deployment
) -> Episode:
    """The episode of a resolved card: a call with levels, whose outcome is in R."""
    card = run.card
    episode_id = card_episode_id(run.id)
    summary = card_type.value_of(card, "summary")
    symbol = str(card_type.value_of(card, "symbol")).strip()
    held_from = outcome.entry_at or run.started_at
    ended_at = outcome.exit_at or outcome.known_at
    return Episode(
        owner_id=run.owner_id,
        id=episode_id,
        kind="call",
        deployment_id=deployment.id,
        strategy_name=deployment.strategy_name,
        mode=deployment.mode,
        symbol=symbol,
        direction=levels.direction,
        reason=str(summary) if summary else None,
        series_id=episode_id,
        context=ContextVector(symbol=symbol, price=outcome.fill).completed(
            symbol=symbol, price=outcome.fill, at=run.started_at
        ),
        entry_price=outcome.fill,
        exit_price=outcome.exit_price,
        outcome=None if outcome.outcome_r is None else Outcome(value=outcome.outcome_r, unit="R"),
        hold_seconds=max(0.0, (ended_at - held_from).total_seconds()),
        confidence=share_of(card_type.value_of(card, "confidence")),
        opened_at=run.started_at,
        ended_at=outcome.known_at,
        first_known_at=outcome.known_at,
        known_at=outcome.known_at,
        recorded_at=outcome.recorded_at,
    )
