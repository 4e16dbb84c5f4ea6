"""Summaries of closed trades, each with its sample size."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from backsight.core.numbers import half_width, signed, with_margin
from backsight.core.statistics import moments_of
from backsight.core.trades.trade import Outcome, OutcomeUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The number of closed trades and of wins, and their net PnL; a win is net > 0."""

    trades: int
    wins: int
    pnl: float
    last_closed_at: datetime | None


def tally(results: Iterable[tuple[float, datetime]]) -> Tally:
    """The tally of (net PnL, instant of the close) pairs; the sum does not depend on their order.

    >>> from datetime import UTC
    >>> tally([(0.1, datetime(2026, 1, 2, tzinfo=UTC)), (0.2, datetime(2026, 1, 1, tzinfo=UTC))]).trades
    2
    >>> tally([])
    Tally(trades=0, wins=0, pnl=0.0, last_closed_at=None)
    """
    pairs = list(results)
    return Tally(
        trades=len(pairs),
        wins=sum(pnl > 0 for pnl, _ in pairs),
        pnl=math.fsum(pnl for pnl, _ in pairs),
        last_closed_at=max((at for _, at in pairs), default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOutcome:
    """The mean of outcomes in one unit, with its margin of error."""

    unit: OutcomeUnit
    n: int
    mean: float
    margin: float | None
    """Half of its 95 % interval by Student's t; None below two outcomes."""

    def __str__(self) -> str:
        unit = "R" if self.unit == "R" else " ATR" if self.unit == "vol" else ""
        return f"{with_margin(signed(self.mean, 2), self.margin, suffix=unit)} (n={self.n})"


def mean_outcomes(outcomes: Iterable[Outcome]) -> list[MeanOutcome]:
    """The mean outcome of each unit that occurs; units never mix.

    >>> means = mean_outcomes([Outcome(value=2.0, unit="R"), Outcome(value=-1.0, unit="R")])
    >>> print(means[0])
    +0.50 ± 19.06R (n=2)
    """
    by_unit: dict[OutcomeUnit, list[float]] = {}
    for outcome in outcomes:
        by_unit.setdefault(outcome.unit, []).append(outcome.value)
    return [_mean(unit, values) for unit, values in sorted(by_unit.items())]


def _mean(unit: OutcomeUnit, values: list[float]) -> MeanOutcome:
    margin = half_width(moments_of(values).interval(level=0.95))
    return MeanOutcome(unit=unit, n=len(values), mean=fmean(values), margin=margin)
