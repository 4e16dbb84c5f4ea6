"""How much to risk: a quarter of Kelly on what the mean outcome in R is, with 85 % certainty.

The mean is the strategy's, under ten sceptical trades at 0R, plus one effect for each category that is asked for.
Effects are estimated on all the strategy's trades, together, so that two categories that tell the same are not counted
twice; errors are those of whole days; an effect is shrunk by how much the values of its category differ at all
(crossed random effects: Henderson 1975; variance by moments: Searle, Casella & McCulloch 1992, §5).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from backsight.core.errors import Invalid
from backsight.core.numbers import signed
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.core.statistics import t_quantile

Category = Literal["direction", "symbol", "regime", "volatility_regime", "session"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

FEWEST_TRADES = 10
SCEPTICAL_TRADES = 10.0
DOUBT = 0.15
"""The quantile of the mean's posterior that is bet on."""
SHARE_OF_KELLY = 0.25
CAP = 0.05
LEAST_UNSEEN_LOSS_R = 3.0
UNSEEN_LOSS = 1.5
"""The loss not seen yet, in worst losses seen."""
LARGEST_R = 1e100
WIDEST_SPAN = 20_000
NORMAL_QUANTILE = NormalDist().inv_cdf(DOUBT)

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTrade:
    """A closed trade with an outcome in R; a category that is not known is None."""

    outcome_r: float
    day: date
    """The UTC day on which it closed."""
    direction: Direction | None = None
    symbol: str | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The categories of the trade to be sized; None is not asked for."""

    direction: Direction | None = None
    symbol: str | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None


NOTHING_ASKED = Asked()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """One category of all trades: where each one's value stands in `values`."""

    codes: Whole
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeColumns:
    """The closed trades of one strategy, a column a field."""

    outcome_r: Floats
    day: Whole
    """Any number that is the same for trades of one UTC day, such as its ordinal."""
    categories: Mapping[Category, Coded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not np.all(np.abs(self.outcome_r) <= LARGEST_R):
            raise Invalid("an outcome is not a finite number; leave such trades out", field="outcome_r")
        lengths = {len(self.day), *(len(coded.codes) for coded in self.categories.values())}
        if lengths != {len(self.outcome_r)}:
            raise Invalid("columns differ in length; give one entry for each trade", field="outcome_r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one category that is asked for adds to the strategy's mean."""

    category: Category
    value: str
    n: int
    """Trades with this value."""
    difference: float
    """Their mean outcome less that of all trades, in R; 0 where there are none."""
    error: float | None
    """The standard error of the difference, by days; None where there are no trades."""
    spread: float
    """How far the values of this category differ beyond their errors: a standard deviation in R."""
    shrinkage: float
    """The share of the difference that is kept; 0 where the values do not differ."""
    effect: float
    """What is added: less than the difference where another category asked for tells the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSize:
    """The fraction of equity to risk, and why."""

    recommended: float
    """After the cap."""
    uncapped: float
    reason: str
    n: int
    effective_n: float
    """How many independent trades the strategy's trades are worth, by days."""
    win_rate: float | None
    """p: trades that ended above 0R."""
    mean_win: float | None
    mean_loss: float | None
    """Of trades that ended at or below 0R, as a positive number."""
    kelly: float | None
    """Plain Kelly, p / mean loss − (1 − p) / mean win; for comparison."""
    strategy_mean: float
    """In R, under the sceptical trades."""
    strategy_error: float
    effects: tuple[Effect, ...]
    mean: float
    """The strategy's mean and all effects."""
    deviation: float
    """The standard deviation of the mean's posterior."""
    cautious_mean: float
    """μ: its 15 % quantile."""
    mean_square: float
    """E[R²], with one loss not seen yet."""
    risk_appetite: float
    cap: float


def columns_of(trades: Iterable[SizedTrade]) -> TradeColumns:
    """The trades as columns, to be kept where the same strategy is asked about often.

    >>> columns = columns_of([SizedTrade(outcome_r=1.0, day=date(2026, 1, 5), symbol="BTC")])
    >>> columns.outcome_r.tolist(), columns.categories["symbol"].values
    ([1.0], ('BTC',))
    """
    held = list(trades)
    return TradeColumns(
        outcome_r=np.array([trade.outcome_r for trade in held], dtype=np.float64),
        day=np.array([trade.day.toordinal() for trade in held], dtype=np.int64),
        categories={name: _coded([getattr(trade, name) for trade in held]) for name in CATEGORIES},
    )


def _coded(values: Sequence[str | None]) -> Coded:
    places: dict[str | None, int] = {}
    codes = [places.setdefault(value, len(places)) for value in values]
    return Coded(codes=np.array(codes, dtype=np.int64), values=tuple(places))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Strategy:
    """All trades, centred, and what they say without any category."""

    outcome_r: Floats
    off: Floats
    """Outcomes less their mean."""
    day: Whole
    days: int
    mean: float
    square: float
    """The mean square of outcomes: the variance of a trade for one who does not trust the mean."""
    few_days: float
    """How much wider an interval from so few days is, squared."""
    effective_n: float

    @property
    def n(self) -> int:
        return len(self.outcome_r)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Values:
    """The values of one category that occurred: trades, differences, their variances."""

    category: Category
    asked: int | None
    """Where the value asked for stands; None where it never occurred."""
    codes: Whole
    n: Floats
    difference: Floats
    variance: Floats
    inflation: Floats
    """Variance of the difference by days over that of independent trades."""
    spread: float
    """Between-value variance, net of errors."""


def position_size(
    trades: TradeColumns | Sequence[SizedTrade],
    asked: Asked = NOTHING_ASKED,
    *,
    risk_appetite: float = 1.0,
    cap: float = CAP,
) -> PositionSize:
    """The fraction of equity to risk on a trade: ¼ · μ / E[R²] · risk appetite, at most 5 %."""
    raise NotImplementedError


def _strategy(columns: TradeColumns) -> _Strategy:
    outcome_r, n = columns.outcome_r, len(columns.outcome_r)
    mean = float(np.mean(outcome_r))
    off = outcome_r - mean
    day, days = _days(columns.day)
    few_days = _few_days(days)
    variance = float(np.mean(off * off))
    by_day = np.bincount(day, weights=off)
    clustered = float(np.sum(by_day * by_day)) / n * days / max(1, days - 1)
    inflation = max(1.0, clustered / variance) if variance > 0.0 else 1.0
    return _Strategy(
        outcome_r=outcome_r,
        off=off,
        day=day,
        days=days,
        mean=mean,
        square=float(np.mean(outcome_r * outcome_r)),
        few_days=few_days,
        effective_n=n / (inflation * few_days) if days > 1 else 1.0,
    )


def _days(day: Whole) -> tuple[Whole, int]:
    start = int(day.min())
    if int(day.max()) - start < WIDEST_SPAN:
        codes = day - start
    else:
        codes = np.unique(day, return_inverse=True)[1].astype(np.int64)
    return codes, int(np.count_nonzero(np.bincount(codes)))


@lru_cache(maxsize=4096)
def _few_days(days: int) -> float:
    if days < 2:
        return 1.0
    return (t_quantile(DOUBT, freedom=days - 1) / NORMAL_QUANTILE) ** 2


def _values(strategy: _Strategy, category: Category, coded: Coded, value: str) -> _Values:
    counts = np.bincount(coded.codes, minlength=len(coded.values))
    seen = np.flatnonzero(counts)
    place = np.full(len(counts), -1)
    place[seen] = np.arange(len(seen))
    codes = place[coded.codes]
    n = counts[seen].astype(np.float64)
    difference = np.bincount(codes, weights=strategy.off) / n
    apart = 1.0 / n - 1.0 / strategy.n
    inflation = _inflation(strategy, codes, n, difference, apart)
    variance = strategy.square * inflation * apart
    room = strategy.n - float(np.sum(n * n)) / strategy.n
    between = float(np.sum(n * (difference * difference - variance)))
    asked = coded.values.index(value) if value in coded.values else None
    asked = None if asked is None or place[asked] < 0 else int(place[asked])
    return _Values(
        category=category,
        asked=asked,
        codes=codes,
        n=n,
        difference=difference,
        variance=variance,
        inflation=inflation,
        spread=max(0.0, between / room) if len(n) > 1 else 0.0,
    )


def _inflation(strategy: _Strategy, codes: Whole, n: Floats, difference: Floats, apart: Floats) -> Floats:
    k = len(n)
    rest = strategy.off - difference[codes]
    variance = float(np.mean(rest * rest))
    if variance <= 0.0 or k < 2:
        return np.full(k, strategy.few_days)
    span = int(strategy.day.max()) + 1
    cells = np.bincount(strategy.day * k + codes, weights=rest, minlength=span * k).reshape(span, k)
    by_day = cells / n - cells.sum(axis=1, keepdims=True) / strategy.n
    clustered = np.sum(by_day * by_day, axis=0) * strategy.days / max(1, strategy.days - 1)
    pooled = float(np.sum(n * clustered) / (variance * np.sum(n * apart)))
    own = clustered / (variance * apart)
    return np.maximum(np.maximum(1.0, pooled), own) * strategy.few_days


def _effects(strategy: _Strategy, values: Sequence[_Values]) -> tuple[list[float], float]:
    """Effect of each and variance of their sum."""
    fitted = [each for each in values if each.spread > 0.0]
    effects = {each.category: 0.0 for each in values}
    var = 0.0
    for each in values:
        k = len(each.n)
        unseen = ((k - 1) * each.spread + strategy.square / SCEPTICAL_TRADES) / k
        n = 0.0 if each.asked is None else each.n[each.asked]
        var += unseen * (SCEPTICAL_TRADES / (SCEPTICAL_TRADES + n)) ** 2
    if fitted:
        sizes = [len(each.n) for each in fitted]
        starts = np.cumsum([0, *sizes])
        n = np.concatenate([each.n for each in fitted])
        g = np.zeros((len(n), len(n)))
        for a, one in enumerate(fitted):
            for b, other in enumerate(fitted):
                if b < a:
                    continue
                tab = np.bincount(one.codes * sizes[b] + other.codes, minlength=sizes[a] * sizes[b]).reshape(sizes[a], sizes[b])
                g[starts[a]:starts[a + 1], starts[b]:starts[b + 1]] = tab
                g[starts[b]:starts[b + 1], starts[a]:starts[a + 1]] = tab.T
        g -= np.outer(n, n) / strategy.n
        infl = np.concatenate([each.inflation for each in fitted])
        spread = np.concatenate([np.full(len(each.n), each.spread) for each in fitted])
        lam = strategy.square * infl / spread
        inv = np.linalg.inv(g + np.diag(lam))
        u = inv @ (n * np.concatenate([each.difference for each in fitted]))
        total = np.zeros(len(n))
        for a, one in enumerate(fitted):
            sl = slice(starts[a], starts[a + 1])
            if one.asked is not None:
                weights = -one.n / strategy.n
                weights[one.asked] += 1
                effects[one.category] = float(weights @ u[sl])
                total[sl] = weights
        scaled = total * np.sqrt(infl)
        var += strategy.square * float(scaled @ inv @ scaled)
    return [effects[each.category] for each in values], var
