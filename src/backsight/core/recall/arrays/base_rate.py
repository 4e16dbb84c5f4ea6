"""The base rate: what usually happens here, whatever comes to mind.

Memories are selected by their outcome; this is not. All closed trades of a strategy are weighed by how alike their
numbers are and how fresh they are, `K · Rec`, and counted from broad to narrow, one category at a time. A level says
how often its trades were won and how much they brought, and how sure one may be of either: trades of one UTC day share
a market, so errors are those of whole days.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import numpy as np

from backsight.core.quantiles import NORMAL_95, jeffreys, t_95
from backsight.core.recall.arrays.columns import UNITS, Columns, Floats
from backsight.core.recall.arrays.evidence_weights import likeness
from backsight.core.recall.arrays.weighted_sums import Among as Among
from backsight.core.recall.arrays.weighted_sums import Amount, Asked, Tallies, tallies
from backsight.core.recall.base_rate import (
    ENOUGH,
    TOO_LITTLE,
    BaseRate,
    BaseRateLevel,
    LevelOutcome,
    OpenTrade,
    reaches,
    sentence,
)
from backsight.core.recall.score import Situation
from backsight.core.trades.trade import OutcomeUnit

NO_WEIGHT = 1e-150
"""Where all weights together are less than this, nothing alike is remembered, and their squares vanish."""
SAFE_SQUARES = (1e-250, 1e250)
"""Sums of squares beyond these may have lost or overflown something."""
SMALLEST = 1e-300


def base_rate(
    columns: Columns,
    query: Situation,
    *,
    among: Among,
    as_of: datetime,
    seen_at: datetime | None = None,
    open_trades: Sequence[OpenTrade] = (),
) -> BaseRate:
    """How often such trades were won and what they brought, without regard to what one would rather remember.

    Trades that the owner has put away count too.

    >>> from datetime import timedelta
    >>> from backsight.core.context import ContextVector
    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> def closed(n, r):
    ...     way, at = "long" if n % 4 else "short", T0 - timedelta(days=120 - n)
    ...     return an_episode(n, pnl_r=r, known_at=at, direction=way, context=ContextVector(regime="ranging"))
    >>> columns = columns_of(closed(n, 2.0 if n % 5 < 2 else -1.0) for n in range(120))
    >>> asked = Situation(symbol="XAUUSD", direction="long", context=ContextVector(regime="ranging", session="asia"))
    >>> found = base_rate(columns, asked, among=Among(strategy_name="VolBreakout"), as_of=T0)
    >>> [(level.name, level.n, round(level.effective_n, 1)) for level in found.levels]
    [('strategy', 120, 111.8), ('direction', 90, 83.3), ('symbol', 90, 83.3), ('regime', 90, 83.3), ('session', 0, 0.0)]
    >>> found.headline.name
    'regime'
    >>> found.sentence
    '39 % of 90 long XAUUSD trades in ranging markets were won (90 %: 31 to 48 %), effective 83; +0.18 ± 0.26R'
    >>> base_rate(columns, asked, among=Among(strategy_name="another"), as_of=T0).sentence
    'too little to say (n=0)'
    """
    asked = _asked(query)
    found = tallies(columns, query, asked, among=among, as_of=as_of, seen_at=seen_at)
    waiting = [_Waiting(each, likeness(query, symbol=each.symbol, context=each.context)) for each in open_trades]
    levels = tuple(_levels(found, asked, list(_narrowing(waiting, asked))))
    headline = next((level for level in reversed(levels) if reaches(level.effective_n, ENOUGH)), levels[0])
    return BaseRate(
        levels=levels,
        headline=headline,
        too_little=not reaches(headline.effective_n, TOO_LITTLE),
        sentence=headline.sentence,
        left_out=found.left_out,
    )


def _asked(query: Situation) -> list[Asked]:
    """The levels of a query from broad to narrow; a category that it does not give is skipped."""
    context = query.context
    given: list[Asked] = [
        ("direction", query.direction),
        ("symbol", query.symbol),
        ("regime", context.regime),
        ("volatility_regime", context.volatility_regime),
        ("session", context.session),
    ]
    return [("strategy", None), *(each for each in given if each[1] is not None)]


class _Waiting(NamedTuple):
    """An open trade, which weighs as if it closed now."""

    trade: OpenTrade
    weight: float

    def lies_in(self, asked: Asked) -> bool:
        name, value = asked
        if name == "strategy":
            return True
        side = self.trade if name in ("direction", "symbol") else self.trade.context
        return bool(getattr(side, name) == value)


def _narrowing(waiting: Sequence[_Waiting], asked: Sequence[Asked]) -> Iterator[Sequence[_Waiting]]:
    """The open trades of each level."""
    for each in asked:
        waiting = [one for one in waiting if one.lies_in(each)]
        yield waiting


def _levels(closed: Tallies, asked: Sequence[Asked], waiting: Sequence[Sequence[_Waiting]]) -> Iterator[BaseRateLevel]:
    amounts = {unit: amount for unit in UNITS if (amount := _amount(unit, closed, waiting)) is not None}
    rates, *means = _means([(closed.weight, closed.won), *((each.weight, each.product) for each in amounts.values())])
    for depth, (name, value) in enumerate(asked):
        rate = rates[depth]
        effective = 0.0 if rate is None else _effective_n(rate, closed, depth)
        level = BaseRateLevel(
            name=name,
            value=value,
            n=int(closed.n[depth]),
            days=0 if rate is None else rate.days,
            effective_n=effective,
            win_rate=None if rate is None else rate.value,
            win_rate_interval=None if rate is None else jeffreys(rate.value, effective),
            outcomes=tuple(
                LevelOutcome(
                    unit=unit,
                    n=int(amount.n[depth]),
                    open=len(_marks(unit, waiting[depth])),
                    mean=mean.value,
                    interval=_interval(mean),
                )
                for (unit, amount), by_level in zip(amounts.items(), means, strict=True)
                if (mean := by_level[depth]) is not None
            ),
            open=len(waiting[depth]),
            open_ids=tuple(each.trade.id for each in waiting[depth]),
            sentence="",
        )
        yield replace(level, sentence=sentence(level, dict(asked[: depth + 1])))


class _Mean(NamedTuple):
    """A weighted mean and its error by days."""

    value: float
    error: float | None
    """None where there is one day only."""
    days: int


def _means(sums: Sequence[tuple[Floats, Floats]]) -> list[list[_Mean | None]]:
    """Of weights and products by level and day: the means of levels, with days as clusters; None without weight.

    m = Σ w·x / Σ w,   u_g = Σ_{i on g} w_i (x_i − m) / Σ w,   V = G/(G − 1) · Σ_g u_g²,   error = √V
    (Liang & Zeger 1986)
    """
    weight, product = (np.stack(each) for each in zip(*sums, strict=True))
    with np.errstate(all="ignore"):
        total, days = weight.sum(axis=2), (weight > 0.0).sum(axis=2)
        value = product.sum(axis=2) / total
        off = np.subtract(product, np.multiply(value[:, :, None], weight, out=weight), out=product)
        largest = np.ones_like(total)
        squares = np.einsum("ijk,ijk->ij", off, off)
        if not np.all((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])):
            largest = np.maximum(np.abs(off).max(axis=2), SMALLEST)
            squares = np.square(off / largest[:, :, None]).sum(axis=2)
        error = largest / total * np.sqrt(squares * days / (days - 1))
    figures = np.stack((total, value, error, days), axis=2).tolist()
    return [
        [None if w < NO_WEIGHT else _Mean(m, e if g > 1 else None, int(g)) for w, m, e, g in each] for each in figures
    ]


def _effective_n(rate: _Mean, closed: Tallies, depth: int) -> float:
    """How many independent trades of equal weight would tell the win rate as well.

    min((Σw)²/Σw², p(1 − p) / (V · (t/z)²)): Kish 1965, and the day-clustered variance V widened for having been
    estimated from few days, t and z the 95 % quantiles of Student's t at days − 1 and of the normal.

    Where all were won, or none, V says nothing about how days hang together: each day counts as one draw, Kish of the
    weights of days. One day is one draw.
    """
    if rate.error is None:
        return 1.0
    by_day = closed.weight[depth]
    spread, total = rate.value * (1.0 - rate.value), float(by_day.sum())
    if spread <= 0.0:
        return total**2 / float((by_day * by_day).sum())
    kish = total**2 / float(closed.squares[depth])
    clustered = (rate.error * t_95(rate.days - 1) / NORMAL_95) ** 2
    return min(kish, spread / clustered) if clustered else kish


def _amount(unit: OutcomeUnit, closed: Tallies, waiting: Sequence[Sequence[_Waiting]]) -> Amount | None:
    """The outcomes in a unit; open trades all count on the day that they are marked for, which is today."""
    marks = [_marks(unit, level) for level in waiting]
    amount = closed.amounts.get(unit)
    if not marks[0]:
        return amount
    n, weight, product = amount or Amount(np.zeros_like(closed.n), *np.zeros((2, *closed.weight.shape)))
    weight, product = weight.copy(), product.copy()
    weight[:, closed.today] += [math.fsum(w for w, _ in level) for level in marks]
    product[:, closed.today] += [math.fsum(w * x for w, x in level) for level in marks]
    return Amount(n, weight, product)


def _marks(unit: OutcomeUnit, waiting: Sequence[_Waiting]) -> list[tuple[float, float]]:
    """The weights of open trades that are marked in a unit, and what they would have brought."""
    return [(each.weight, x.value) for each in waiting if (x := each.trade.outcome) is not None and x.unit == unit]


def _interval(mean: _Mean) -> tuple[float, float] | None:
    """mean ± t · error, t the 95 % quantile at days − 1; None on one day."""
    if mean.error is None:
        return None
    reach = t_95(mean.days - 1) * mean.error
    return mean.value - reach, mean.value + reach
