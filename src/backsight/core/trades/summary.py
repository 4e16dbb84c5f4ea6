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
    """The number of closed trades and of wins, and their net PnL in the account's currency; a win is net > 0."""

    trades: int
    wins: int
    pnl: float
    last_closed_at: datetime | None
    unconverted: int = 0
    """Trades that are not in the sum, because no rate of their currency is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeResult:
    """The result of a closed trade."""

    deployment_id: str
    pnl: float
    currency: str | None
    """Given if the result could not be converted into the account's currency."""
    closed_at: datetime


def tally(results: Iterable[TradeResult]) -> Tally:
    """The tally of results; the sum does not depend on their order.

    >>> from datetime import UTC
    >>> at = datetime(2026, 1, 2, tzinfo=UTC)
    >>> gains = [TradeResult(deployment_id="d", pnl=7.0, currency=currency, closed_at=at) for currency in (None, "JPY")]
    >>> tally(gains).pnl, tally(gains).trades, tally(gains).unconverted
    (7.0, 2, 1)
    >>> tally([])
    Tally(trades=0, wins=0, pnl=0.0, last_closed_at=None, unconverted=0)
    """
    closed = list(results)
    converted = [each.pnl for each in closed if each.currency is None]
    return Tally(
        trades=len(closed),
        wins=sum(each.pnl > 0 for each in closed),
        pnl=math.fsum(converted),
        last_closed_at=max((each.closed_at for each in closed), default=None),
        unconverted=len(closed) - len(converted),
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
