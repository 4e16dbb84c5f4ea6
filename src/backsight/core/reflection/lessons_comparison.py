"""The comparison of lessons: the results of trades under each revision of the note, and under no lessons."""

from dataclasses import dataclass

from backsight.core.trades.trade import OutcomeUnit

CAUTION = (
    "This compares periods of time, not random arms: revisions were active one after the other, in different markets. "
    "To test whether memory helps, use does_memory_help: it compares with days on which memory was withheld."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsRevision:
    """The trades under one revision of the lessons, or under no lessons."""

    lessons_hash: str | None
    trades: int
    days: int
    mean: float | None
    """Mean outcome in the unit of the comparison; None if no trade has an outcome in that unit."""
    mean_pnl: float | None
    mean_pnl_usd: float | None
    """Mean of `realized_pnl_usd` over the trades that have it."""
    win_rate: float | None
    difference: float | None
    """Mean minus the mean without lessons; None for the trades without lessons themselves."""
    interval: tuple[float, float] | None
    """90% confidence interval of the difference if markets were the same; None with fewer than five days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsComparison:
    """Every revision of the lessons compared with no lessons."""

    unit: OutcomeUnit | None
    revisions: tuple[LessonsRevision, ...]
    """First the trades without lessons, then the revisions in the order of their first day."""
    caution: str = CAUTION
