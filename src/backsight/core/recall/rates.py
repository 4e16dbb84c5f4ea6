"""What a base rate says: levels from broad to narrow, each with its sample and its doubt."""

from dataclasses import dataclass
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.portfolio import Direction
from backsight.core.trades.trade import Outcome, OutcomeUnit

LevelName = Literal["strategy", "direction", "symbol", "regime", "volatility_regime", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTrade:
    """A trade that is still open, at its last mark known by the instant asked."""

    id: str
    symbol: str
    direction: Direction | None
    context: ContextVector
    outcome: Outcome | None
    """None where no mark is known: it is named and counts in no mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOutcome:
    """How much the trades of a level brought, in one unit: closed ones, and open ones at their last mark."""

    unit: OutcomeUnit
    n: int
    open: int
    mean: float
    interval: tuple[float, float] | None
    """Holds the true mean with 90 %; None where all of it is of one day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The trades that match all categories up to one, and what became of them."""

    name: LevelName
    value: str | None
    """What was asked for in the category; None for the strategy."""
    n: int
    days: int
    """UTC days on which trades of any weight were closed."""
    effective_n: float
    """How many independent trades would say as much."""
    win_rate: float | None
    win_rate_interval: tuple[float, float] | None
    """Holds the true win rate with 90 %."""
    outcomes: tuple[MeanOutcome, ...]
    open: int
    open_ids: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRate:
    """What usually happens here, from broad to narrow, and the level that says it best."""

    levels: tuple[Level, ...]
    headline: Level
    """The narrowest level with an effective n of 20, else the broadest."""
    too_little: bool
    """Whether even the headline has an effective n under 5."""
    sentence: str
