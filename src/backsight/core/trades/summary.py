"""Summaries of closed trades, each with its sample size."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from backsight.core.holdout import MemoryArm
from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.numbers import half_width, signed, with_margin
from backsight.core.statistics import moments_of
from backsight.core.trades.trade import Outcome, OutcomeUnit, Trade


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The number of closed trades and of wins, and their net PnL in the account's currency; a win is net > 0."""

    trades: int
    wins: int
    pnl: float
    last_closed_at: datetime | None
    unconverted: int = 0
    """Trades that are not in the sum, because no rate of their currency is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTradeRow:
    """The columns of a closed trade that the holdout test reads."""

    id: str
    deployment_id: str
    opened_at: datetime | None
    closed_at: datetime
    outcome: Outcome | None
    pnl: float | None
    currency: str | None = None
    """Given if the result could not be converted into the account's currency: it is in no sum."""
    memory_arm: MemoryArm | None

    @property
    def money(self) -> float | None:
        """The net result in the account's currency."""
        return self.pnl if self.currency is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOutcome:
    """The mean of outcomes in one unit, with its margin of error."""

    unit: OutcomeUnit
    n: int
    of: int
    """The number of trades, with or without an outcome in this unit."""
    mean: float
    margin: float | None
    """Half of its 95% interval by Student's t; None below two outcomes."""

    def __str__(self) -> str:
        unit = "R" if self.unit == "R" else " ATR" if self.unit == "vol" else ""
        known = f"n={self.n}" if self.n == self.of else f"{self.n} of {self.of} trades"
        return f"{with_margin(signed(self.mean, 2), self.margin, suffix=unit)} ({known})"


def mean_outcomes(trades: Iterable[Trade]) -> list[MeanOutcome]:
    """The mean outcome of closed trades in each unit that occurs; units never mix.

    There is no mean in R where R is missing more often among losers than among winners (`known_outcomes`).
    """
    closed = list(trades)
    by_unit: dict[OutcomeUnit, list[float]] = {}
    for trade in closed:
        if (outcome := trade.outcome) is not None:
            by_unit.setdefault(outcome.unit, []).append(outcome.value)
    if known_outcomes(closed).hides_losers:
        by_unit.pop("R", None)
    return [_mean(unit, values, of=len(closed)) for unit, values in sorted(by_unit.items())]


def known_outcomes(trades: Iterable[Trade]) -> KnownOutcomes:
    """Of how many won and lost trades the outcome in R is known."""
    counts = Counter((trade.won, trade.outcome is not None and trade.outcome.unit == "R") for trade in trades)
    return KnownOutcomes(
        won=counts[True, True] + counts[True, False],
        lost=counts[False, True] + counts[False, False],
        known_won=counts[True, True],
        known_lost=counts[False, True],
    )


def outcomes_in_words(trades: Iterable[Trade]) -> str:
    """The means of all units, and why there is none in R where losers hide; empty without outcomes."""
    closed = list(trades)
    known = known_outcomes(closed)
    means = ", ".join(map(str, mean_outcomes(closed)))
    parts = [f"{means}, mean with its 95% interval"] if means else []
    if known.hides_losers:
        parts.append(f"no mean in R is given: {known.in_words}")
    return "; ".join(parts)


def _mean(unit: OutcomeUnit, values: list[float], *, of: int) -> MeanOutcome:
    margin = half_width(moments_of(values).interval(level=0.95))
    return MeanOutcome(unit=unit, n=len(values), of=of, mean=fmean(values), margin=margin)
