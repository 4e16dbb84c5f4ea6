"""A recall that was made for a decision: what was asked, when, and what came to mind, with every factor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.instants import Horizon
from backsight.core.memory.kind import MemoryKind
from backsight.core.portfolio import Direction, Mode
from backsight.core.recall.score import Factors

ModeAsked = Literal["live", "paper", "sim", "all"]
Part = Literal["nearest", "warnings", "memories"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallAsked:
    """All that an answer depends on but the store: asked again, it is answered alike."""

    symbol: str
    context: ContextVector = field(default_factory=ContextVector)
    market_context: str | None = None
    direction: Direction | None = None
    strategy_name: str | None = None
    deployment_id: str | None = None
    mode: ModeAsked = "live"
    memory_types: tuple[MemoryKind, ...] = ("episodic", "semantic")
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int = 10
    period_weight: bool = False
    as_of: datetime
    seen_at: datetime | None = None

    @property
    def horizon(self) -> Horizon:
        return Horizon(as_of=self.as_of, seen_at=self.seen_at)

    @property
    def one_mode(self) -> Mode | None:
        """The mode whose evidence counts; None where all do."""
        return None if self.mode == "all" else self.mode


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedId:
    """An episode in a part of an answer, with what it was ranked by."""

    id: str
    value: float
    factors: Factors


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallMade:
    """What came to mind for a decision."""

    asked: RecallAsked
    candidates: int
    found: Mapping[Part, tuple[RankedId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRecall:
    """A recall as it is kept with its decision."""

    owner_id: str
    id: str
    decision_id: str
    symbol: str
    as_of: datetime
    seen_at: datetime | None
    made: str
    """What was asked and what came to mind, as JSON."""
    known_at: datetime
    recorded_at: datetime
