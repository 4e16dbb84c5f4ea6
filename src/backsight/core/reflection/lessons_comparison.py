"""Lessons compared: how trades went under each revision of the note, and under none."""

from dataclasses import dataclass
from datetime import date

from backsight.core.trades.trade import Outcome, OutcomeUnit

CAUTION = (
    "This compares times, not arms: revisions were active one after the other, in different markets. "
    "Whether memory helps is told by days on which it was withheld: does_memory_help."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeUnderLessons:
    """A closed trade, and the lessons that were shown when it was opened."""

    lessons_hash: str | None
    """None where none were shown."""
    day: date
    """The UTC day on which it closed."""
    outcome: Outcome | None
    pnl: float | None
    pnl_usd: float | None = None
    """Gross, in dollars."""
    won: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsRevision:
    """The trades under one revision of the lessons, or under none."""

    lessons_hash: str | None
    trades: int
    days: int
    mean: float | None
    """Outcome, in the unit of the comparison; None where no trade has one."""
    mean_pnl: float | None
    mean_pnl_usd: float | None
    """Of `realized_pnl_usd`, over the trades that have one."""
    win_rate: float | None
    difference: float | None
    """Its mean less that under none; None for none itself."""
    interval: tuple[float, float] | None
    """Holds the true difference with 90 %, if times were alike; None before five days on either side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsComparison:
    """Every revision beside none."""

    unit: OutcomeUnit | None
    revisions: tuple[LessonsRevision, ...]
    """None first, then in the order of their first day."""
    caution: str = CAUTION
