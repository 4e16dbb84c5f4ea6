"""The record of a recall that was made for a decision: the query, its instants and the ranked episodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.instants import Horizon
from backsight.core.memory.kind import MemoryKind
from backsight.core.portfolio import Direction, Mode, ModeChoice
from backsight.core.recall.score import ScoreFactors

RankingName = Literal["nearest", "warnings", "memories"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """Everything, except the store, that determines the answer of a recall.

    The same query over the same store has the same answer.
    """

    symbol: str
    context: ContextVector = field(default_factory=ContextVector)
    market_context: str | None = None
    direction: Direction | None = None
    strategy_name: str | None = None
    deployment_id: str | None = None
    """The named deployment: only its episodes are searched, and its mood counts."""
    mood_of: str | None = None
    """The deployment whose mood counts where none is named."""
    mode: ModeChoice = "live"
    memory_types: tuple[MemoryKind, ...] = ("episodic", "semantic")
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 10
    period_weight: bool = False
    with_calls: bool = False
    """Whether the base rate counts calls and cards with an outcome too."""
    as_of: datetime
    seen_at: datetime | None = None

    @property
    def horizon(self) -> Horizon:
        return Horizon(as_of=self.as_of, seen_at=self.seen_at)

    @property
    def mode_filter(self) -> Mode | None:
        """The mode whose evidence counts; None for all modes."""
        return None if self.mode == "all" else self.mode


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedId:
    """An episode in a ranking of an answer, with its factors."""

    id: str
    value: float
    """The value that the ranking is sorted by."""
    factors: ScoreFactors


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """A recall query and the episodes that it returned, as stored with a decision."""

    asked: RecallQuery
    candidates: int
    found: Mapping[RankingName, tuple[RankedId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRecord:
    """A row of the table `recalls`: one recall that a decision was based on."""

    owner_id: str
    decision_id: str
    nth: int
    """The place of the recall among those of the decision, from 0."""
    made: str
    """The `RecallResult` as JSON, with its query."""
    known_at: datetime
    recorded_at: datetime
