"""The base rate in arrays: how often trades like this one won and how much they brought, whatever recall selects.

Memories are selected by their outcome, but the trades of a base rate are not. Every closed trade of a strategy is
weighted by K · Rec and counted at each level, from broad to narrow, one category at a time. Trades of one UTC day share
a market, so standard errors are clustered by day.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from backsight.core.instants import Horizon
from backsight.core.portfolio import Direction
from backsight.core.quantiles import NORMAL_95, jeffreys, t_95
from backsight.core.recall.arrays.columns import UNITS, Columns, Floats
from backsight.core.recall.arrays.selection import TradeFilter
from backsight.core.recall.arrays.weighted_sums import LevelKey, LevelSums, UnitSums, sum_levels
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
from backsight.core.recall.score import Situation, number_similarity
from backsight.core.trades.trade import OutcomeUnit

NO_WEIGHT = 1e-150
"""Below this total weight a level has no similar trades; the squares of such weights underflow."""
SAFE_SQUARES = (1e-250, 1e250)
"""Outside of these limits a sum of squares may have lost digits or overflowed."""
SMALLEST = 1e-300


def base_rate(
    columns: Columns,
    situation: Situation,
    *,
    trade_filter: TradeFilter,
    horizon: Horizon,
    open_trades: Sequence[OpenTrade] = (),
) -> BaseRate:
    """The win rate and the mean outcome of similar trades at each level; archived trades count, too.

    >>> from datetime import timedelta
    >>> from backsight.core.context import ContextVector
    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> def closed(n, r):
    ...     way, at = "long" if n % 4 else "short", T0 - timedelta(days=120 - n)
    ...     return an_episode(n, pnl_r=r, known_at=at, direction=way, context=ContextVector(regime="ranging"))
    >>> columns = columns_of(closed(n, 2.0 if n % 5 < 2 else -1.0) for n in range(120))
    >>> now = Horizon(as_of=T0)
    >>> here = Situation(symbol="XAUUSD", direction="long", context=ContextVector(regime="ranging", session="asia"))
    >>> rate = base_rate(columns, here, trade_filter=TradeFilter(strategy_name="VolBreakout"), horizon=now)
    >>> [(level.name, level.n, round(level.effective_n, 1)) for level in rate.levels]
    [('strategy', 120, 111.8), ('direction', 90, 83.3), ('symbol', 90, 83.3), ('regime', 90, 83.3), ('session', 0, 0.0)]
    >>> rate.headline.name
    'regime'
    >>> rate.sentence
    '39 % of 90 long XAUUSD trades in ranging markets were won (90 %: 31 to 48 %), effective 83; +0.18 ± 0.26R'
    >>> base_rate(columns, here, trade_filter=TradeFilter(strategy_name="another"), horizon=now).sentence
    'too little to say (n=0)'
    """
    keys = _level_keys(situation)
    (closed,) = sum_levels(columns, situation, keys, trade_filter=trade_filter, horizon=horizon)
    return _base_rate(closed, keys, _weighted(open_trades, situation))


def base_rates(
    columns: Columns,
    situation: Situation,
    directions: Sequence[Direction],
    *,
    trade_filter: TradeFilter,
    horizon: Horizon,
    open_trades: Sequence[OpenTrade] = (),
) -> Mapping[Direction, BaseRate]:
    """The base rate of each direction, equal to `base_rate` with that direction; the columns are read once for all."""
    if not directions:
        return {}
    keys = {each: _level_keys(replace(situation, direction=each)) for each in directions}
    closed = sum_levels(
        columns, situation, keys[directions[0]], trade_filter=trade_filter, horizon=horizon, directions=directions
    )
    weighted = _weighted(open_trades, situation)
    return {each: _base_rate(sums, keys[each], weighted) for each, sums in zip(directions, closed, strict=True)}


def _base_rate(closed: LevelSums, keys: Sequence[LevelKey], open_trades: "Sequence[_WeightedTrade]") -> BaseRate:
    levels = tuple(_levels(closed, keys, list(_open_by_level(open_trades, keys))))
    headline = next((level for level in reversed(levels) if reaches(level.effective_n, ENOUGH)), levels[0])
    return BaseRate(
        levels=levels,
        headline=headline,
        too_little=not reaches(headline.effective_n, TOO_LITTLE),
        sentence=headline.sentence,
        left_out=closed.left_out,
    )


def _weighted(open_trades: Sequence[OpenTrade], situation: Situation) -> "list[_WeightedTrade]":
    """The open trades with their weights."""
    return [
        _WeightedTrade(trade, number_similarity(situation, symbol=trade.symbol, context=trade.context))
        for trade in open_trades
    ]


def _level_keys(situation: Situation) -> list[LevelKey]:
    """The levels from broad to narrow; a category that the situation does not give is skipped."""
    context = situation.context
    categories: list[LevelKey] = [
        ("direction", situation.direction),
        ("symbol", situation.symbol),
        ("regime", context.regime),
        ("volatility_regime", context.volatility_regime),
        ("session", context.session),
    ]
    return [("strategy", None), *(key for key in categories if key[1] is not None)]


class _WeightedTrade(NamedTuple):
    """An open trade and its weight, as if it closed now."""

    trade: OpenTrade
    weight: float

    def matches(self, key: LevelKey) -> bool:
        name, value = key
        if name == "strategy":
            return True
        labels = self.trade if name in ("direction", "symbol") else self.trade.context
        return bool(getattr(labels, name) == value)


def _open_by_level(trades: Sequence[_WeightedTrade], keys: Sequence[LevelKey]) -> Iterator[Sequence[_WeightedTrade]]:
    """The open trades of each level."""
    for key in keys:
        trades = [trade for trade in trades if trade.matches(key)]
        yield trades


def _levels(
    closed: LevelSums, keys: Sequence[LevelKey], open_trades: Sequence[Sequence[_WeightedTrade]]
) -> Iterator[BaseRateLevel]:
    units = {unit: sums for unit in UNITS if (sums := _with_open(unit, closed, open_trades)) is not None}
    rates, *means = _means([(closed.weight, closed.won), *((sums.weight, sums.product) for sums in units.values())])
    for depth, (name, value) in enumerate(keys):
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
                    n=int(sums.n[depth]),
                    open=len(_marks(unit, open_trades[depth])),
                    mean=mean.value,
                    interval=_interval(mean),
                )
                for (unit, sums), by_level in zip(units.items(), means, strict=True)
                if (mean := by_level[depth]) is not None
            ),
            open=len(open_trades[depth]),
            open_ids=tuple(each.trade.id for each in open_trades[depth]),
            sentence="",
        )
        yield replace(level, sentence=sentence(level, dict(keys[: depth + 1])))


class _ClusteredMean(NamedTuple):
    """A weighted mean and its standard error, clustered by day."""

    value: float
    error: float | None
    """None if there is only one day."""
    days: int


def _means(sums: Sequence[tuple[Floats, Floats]]) -> list[list[_ClusteredMean | None]]:
    """The mean of each pair of weights and products, by level, with days as clusters; None without weight.

    m = Σ w·x / Σ w,   u_g = Σ_{i on g} w_i (x_i − m) / Σ w,   V = G/(G − 1) · Σ_g u_g²,   error = √V
    (Liang & Zeger 1986)
    """
    weight, product = (np.stack(arrays) for arrays in zip(*sums, strict=True))
    with np.errstate(all="ignore"):
        total, days = weight.sum(axis=2), (weight > 0.0).sum(axis=2)
        value = product.sum(axis=2) / total
        # The residual of each day; weight and product are overwritten.
        residual = np.subtract(product, np.multiply(value[:, :, None], weight, out=weight), out=product)
        largest = np.ones_like(total)
        squares = np.einsum("ijk,ijk->ij", residual, residual)
        if not np.all((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])):
            # Scale by the largest residual, so that no square overflows or underflows.
            largest = np.maximum(np.abs(residual).max(axis=2), SMALLEST)
            squares = np.square(residual / largest[:, :, None]).sum(axis=2)
        error = largest / total * np.sqrt(squares * days / (days - 1))
    figures = np.stack((total, value, error, days), axis=2).tolist()
    return [
        [None if w < NO_WEIGHT else _ClusteredMean(m, e if g > 1 else None, int(g)) for w, m, e, g in levels]
        for levels in figures
    ]


def _effective_n(rate: _ClusteredMean, closed: LevelSums, depth: int) -> float:
    """The effective sample size: how many independent trades of equal weight would give the same precision.

    min((Σw)²/Σw², p(1 − p) / (V · (t/z)²)): Kish 1965, and the day-clustered variance V, widened because it is
    estimated from few days; t and z are the 95 % quantiles of Student's t at days − 1 and of the normal.

    If all trades won, or none, V says nothing about the correlation within days: each day counts as one draw, by Kish
    on the weights of days. One day is one draw.
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


def _with_open(
    unit: OutcomeUnit, closed: LevelSums, open_trades: Sequence[Sequence[_WeightedTrade]]
) -> UnitSums | None:
    """The sums of a unit with the open trades added, which all count on the day of the horizon."""
    marks = [_marks(unit, level) for level in open_trades]
    sums = closed.by_unit.get(unit)
    if not marks[0]:
        return sums
    n, weight, product = sums or UnitSums(np.zeros_like(closed.n), *np.zeros((2, *closed.weight.shape)))
    weight, product = weight.copy(), product.copy()
    weight[:, closed.today] += [math.fsum(w for w, _ in level) for level in marks]
    product[:, closed.today] += [math.fsum(w * x for w, x in level) for level in marks]
    return UnitSums(n, weight, product)


def _marks(unit: OutcomeUnit, trades: Sequence[_WeightedTrade]) -> list[tuple[float, float]]:
    """The weight and the outcome at the last mark of the open trades with an outcome in a unit."""
    return [(each.weight, x.value) for each in trades if (x := each.trade.outcome) is not None and x.unit == unit]


def _interval(mean: _ClusteredMean) -> tuple[float, float] | None:
    """mean ± t · error, with the 95 % quantile of Student's t at days − 1; None on one day."""
    if mean.error is None:
        return None
    reach = t_95(mean.days - 1) * mean.error
    return mean.value - reach, mean.value + reach
