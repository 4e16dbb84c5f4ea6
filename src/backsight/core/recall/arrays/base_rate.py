"""The base rate in arrays: how often trades like this one won and how much they brought, whatever recall selects.

Memories are selected by their outcome, but the trades of a base rate are not. Every closed trade of a strategy is
weighted by K · Rec and counted at each level, from broad to narrow, one category at a time. Trades of one UTC day share
a market, and days resemble the days before them, so errors are those by days or by longer waves, whichever is larger
(`core.serial_correlation`).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from backsight.core.instants import Horizon
from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.quantiles import jeffreys, t_95
from backsight.core.recall.arrays.columns import UNITS, Booleans, Columns, Floats
from backsight.core.recall.arrays.selection import TradeFilter
from backsight.core.recall.arrays.weighted_sums import NO_WEIGHT, LevelKey, LevelSums, UnitSums, sum_levels
from backsight.core.recall.base_rate import (
    ENOUGH,
    TOO_LITTLE,
    BaseRate,
    BaseRateLevel,
    LevelOutcome,
    OpenTrade,
    breadth,
    reaches,
    sentence,
)
from backsight.core.recall.score import Situation, number_similarity
from backsight.core.serial_correlation import wave_variances, widening
from backsight.core.statistics import NORMAL_95
from backsight.core.trades.trade import OutcomeUnit

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
    >>> print(rate.sentence)  # doctest: +NORMALIZE_WHITESPACE
    no long XAUUSD trades in ranging markets in the Asian session yet; elsewhere: 39% of 90 long XAUUSD trades in
    ranging markets were won (90%: 31 to 48%), worth about 83 independent trades; +0.18 ± 0.27R
    >>> base_rate(columns, here, trade_filter=TradeFilter(strategy_name="another"), horizon=now).sentence
    'too little to say (n=0)'
    """
    keys = _level_keys(situation)
    (closed,) = sum_levels(columns, situation, keys, trade_filter=trade_filter, horizon=horizon)
    return _base_rate(closed, keys, _weighted(open_trades, situation), situation.joined)


def _base_rate(
    closed: LevelSums, keys: Sequence[LevelKey], open_trades: "Sequence[_WeightedTrade]", joined: tuple[str, ...]
) -> BaseRate:
    by_level = list(_open_by_level(open_trades, keys, joined))
    levels = tuple(_levels(closed, keys, by_level, joined))
    headline = next((level for level in reversed(levels) if reaches(level.effective_n, ENOUGH)), levels[0])
    rate = BaseRate(
        levels=levels,
        headline=headline,
        too_little=not reaches(headline.effective_n, TOO_LITTLE),
        sentence="",
        left_out=closed.left_out,
        in_symbol=closed.in_symbol,
        joined=joined,
    )
    return replace(rate, sentence=f"{breadth(rate)}{headline.sentence}")


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

    def matches(self, key: LevelKey, joined: tuple[str, ...]) -> bool:
        """Whether the trade is of a level; `joined` are symbols that count as the level's."""
        name, value = key
        if name == "strategy" or (name == "symbol" and self.trade.symbol in joined):
            return True
        labels = self.trade if name in ("direction", "symbol") else self.trade.context
        return bool(getattr(labels, name) == value)


def _open_by_level(
    trades: Sequence[_WeightedTrade], keys: Sequence[LevelKey], joined: tuple[str, ...]
) -> Iterator[Sequence[_WeightedTrade]]:
    """The open trades of each level."""
    for key in keys:
        trades = [trade for trade in trades if trade.matches(key, joined)]
        yield trades


def _levels(
    closed: LevelSums,
    keys: Sequence[LevelKey],
    open_trades: Sequence[Sequence[_WeightedTrade]],
    joined: tuple[str, ...],
) -> Iterator[BaseRateLevel]:
    units = {unit: sums for unit in UNITS if (sums := _with_open(unit, closed, open_trades)) is not None}
    rates, *means = _means([(closed.weight, closed.won), *((sums.weight, sums.product) for sums in units.values())])
    known = [_known_in_r(closed, depth) for depth in range(len(keys))]
    for depth, (name, value) in enumerate(keys):
        rate = rates[depth]
        # Where losers hide among a level's trades, they do so at every narrower level, which may be too few to show it.
        hidden = next((each for each in reversed(known[: depth + 1]) if each is not None and each.hides_losers), None)
        wins = None if rate is None else _WinRate.of(rate, closed, depth)
        level = BaseRateLevel(
            name=name,
            value=value,
            n=int(closed.n[depth]),
            days=0 if rate is None else rate.days,
            effective_n=0.0 if wins is None else wins.effective_n,
            win_rate=None if wins is None else wins.value,
            win_rate_interval=None if wins is None else wins.interval,
            outcomes=tuple(
                LevelOutcome(
                    unit=unit,
                    n=int(sums.n[depth]),
                    open=len(_marks(unit, open_trades[depth])),
                    mean=mean.value,
                    interval=_interval(mean, None if wins is None else wins.among(int(sums.n[depth])), sums.swing),
                )
                for (unit, sums), by_level in zip(units.items(), means, strict=True)
                if (mean := by_level[depth]) is not None and hidden is None
            ),
            withheld=None if hidden is None else hidden.in_words,
            open=len(open_trades[depth]),
            open_ids=tuple(each.trade.id for each in open_trades[depth]),
            sentence="",
        )
        yield replace(level, sentence=sentence(level, dict(keys[: depth + 1]), joined))


def _known_in_r(closed: LevelSums, depth: int) -> KnownOutcomes | None:
    """Of how many trades of a level R is known; None if of all or of none."""
    sums = closed.by_unit.get("R")
    if sums is None or sums.n[depth] in (0, closed.n[depth]):
        return None
    n, won, known, known_won = (int(counts[depth]) for counts in (closed.n, closed.n_won, sums.n, sums.n_won))
    return KnownOutcomes(won=won, lost=n - won, known_won=known_won, known_lost=known - known_won)


class _WinRate(NamedTuple):
    """A win rate with its 90% interval."""

    value: float
    n: int
    effective_n: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, rate: "_MeanByDay", closed: LevelSums, depth: int) -> "_WinRate":
        effective_n = _effective_n(rate, closed, depth)
        return cls(rate.value, int(closed.n[depth]), effective_n, jeffreys(rate.value, effective_n))

    def among(self, n: int) -> "_WinRate | None":
        """The same rate if only n of the trades were known; None without any."""
        if n >= self.n or not n:
            return self if n else None
        effective_n = self.effective_n * n / self.n
        return self._replace(n=n, effective_n=effective_n, interval=jeffreys(self.value, effective_n))


class _MeanByDay(NamedTuple):
    """A weighted mean with half the width of its 90% interval."""

    value: float
    reach: float | None
    """None if there is only one day."""
    days: int


def _means(sums: Sequence[tuple[Floats, Floats]]) -> list[list[_MeanByDay | None]]:
    """The mean of each pair of weights and products, by level; None without weight.

    m = Σ w·x / Σ w,   u_g = Σ_{i on g} w_i (x_i − m) / Σ w,   V = G/(G − 1) · Σ_g u_g²   (Liang & Zeger 1986)

    reach² = V · max(t², the widening for serial correlation), with t the 95% quantile of Student's t at G − 1.
    """
    weight, product = (np.stack(arrays) for arrays in zip(*sums, strict=True))
    with np.errstate(all="ignore"):
        total, days = weight.sum(axis=2), (weight > 0.0).sum(axis=2)
        value = product.sum(axis=2) / total
        # The residual of each day, in place of the product.
        residual = np.subtract(product, value[:, :, None] * weight, out=product)
        largest = np.ones_like(total)
        squares = np.einsum("ijk,ijk->ij", residual, residual)
        if not np.all((squares > SAFE_SQUARES[0]) & (squares < SAFE_SQUARES[1])):
            # Scale by the largest residual, so that no square overflows or underflows.
            largest = np.maximum(np.abs(residual).max(axis=2), SMALLEST)
            residual /= largest[:, :, None]
            squares = np.square(residual).sum(axis=2)
        waves = wave_variances(residual, weight) / squares[:, :, None]
        error = largest / total * np.sqrt(squares * days / (days - 1))
        wider = np.sqrt(widening(waves, days, t_95))
    _inherit(wider, weight > 0.0)
    figures = np.stack((total, value, error, wider, days), axis=2).tolist()
    return [
        [None if w < NO_WEIGHT else _MeanByDay(m, _reach(e, x, int(g)), int(g)) for w, m, e, x, g in levels]
        for levels in figures
    ]


def _reach(error: float, wider: float, days: int) -> float | None:
    """Half the width of a 90% interval; None on one day."""
    return error * max(wider, t_95(days - 1)) if days > 1 else None


def _inherit(wider: Floats, traded: Booleans) -> None:
    """Widen each level as much as the next broader one, in place, where its days come in long runs.

    A regime that lasts for weeks has few runs among the strategy's days, and its own waves are then too few to show
    what the days of a run have in common. Labels that come and go as by chance have n·q·(1 − q) runs, with q the share
    of the n days that have the label (Wald & Wolfowitz 1940); half of that or less is long runs.
    """
    for unit, depth in np.argwhere(wider[:, :-1] > 0.0).tolist():
        broader, narrower = traded[unit, depth], traded[unit, depth + 1]
        if wider[unit, depth + 1] < wider[unit, depth] and _comes_in_runs(narrower[broader]):
            wider[unit, depth + 1] = wider[unit, depth]


def _comes_in_runs(days: Booleans) -> bool:
    """Whether the days that are true come in at most half as many runs as by chance.

    >>> _comes_in_runs(np.repeat([True, False] * 3, 10)), _comes_in_runs(np.tile([True, True, False], 20))
    (True, False)
    """
    runs = int(days[0]) + int(np.count_nonzero(days[1:] & ~days[:-1]))
    share = float(days.mean())
    return runs <= 0.5 * len(days) * share * (1.0 - share)


def _effective_n(rate: _MeanByDay, closed: LevelSums, depth: int) -> float:
    """The effective sample size: how many independent trades of equal weight would give the same precision.

    min((Σw)²/Σw², p(1 − p) / (reach / z)²): Kish 1965, and the half-width of the mean's interval over the 95% quantile
    of the normal. Few days, and days that resemble each other, thus count as fewer trades.

    If all trades won, or none, V says nothing about the correlation within days: each day counts as one draw, by Kish
    on the weights of days. One day is one draw.
    """
    if rate.reach is None:
        return 1.0
    by_day = closed.weight[depth]
    spread, total = rate.value * (1.0 - rate.value), float(by_day.sum())
    if spread <= 0.0:
        return total**2 / float((by_day * by_day).sum())
    kish = total**2 / float(closed.squares[depth])
    variance = (rate.reach / NORMAL_95) ** 2
    return min(kish, spread / variance) if variance else kish


def _with_open(
    unit: OutcomeUnit, closed: LevelSums, open_trades: Sequence[Sequence[_WeightedTrade]]
) -> UnitSums | None:
    """The sums of a unit with the open trades added, which all count on the day of the horizon."""
    marks = [_marks(unit, level) for level in open_trades]
    sums = closed.by_unit.get(unit)
    if not marks[0]:
        return sums
    none = np.zeros_like(closed.n)
    sums = sums or UnitSums(none, none, *np.zeros((2, *closed.weight.shape)))
    weight, product = sums.weight.copy(), sums.product.copy()
    weight[:, closed.today] += [math.fsum(w for w, _ in level) for level in marks]
    product[:, closed.today] += [math.fsum(w * x for w, x in level) for level in marks]
    return sums._replace(weight=weight, product=product)


def _marks(unit: OutcomeUnit, trades: Sequence[_WeightedTrade]) -> list[tuple[float, float]]:
    """The weight and the outcome at the last mark of the open trades with an outcome in a unit."""
    return [(each.weight, x.value) for each in trades if (x := each.trade.outcome) is not None and x.unit == unit]


def _interval(mean: _MeanByDay, wins: _WinRate | None, swing: float) -> tuple[float, float] | None:
    """The 90% interval of a mean outcome: mean ± reach, or wider where the win rate alone leaves more doubt.

    A few trades without a winner have nearly the same outcome, and no spread to estimate an error from. But their win
    rate has an interval, and each winner would move the mean by the strategy's `swing` over their number.
    """
    if mean.reach is None:
        return None
    low, high = mean.value - mean.reach, mean.value + mean.reach
    if wins is None:
        return low, high
    fewer, more = wins.value - wins.interval[0], wins.interval[1] - wins.value
    return min(low, mean.value - swing * fewer), max(high, mean.value + swing * more)
