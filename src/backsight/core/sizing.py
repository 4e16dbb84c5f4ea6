"""How much to risk: a quarter of Kelly on what the mean outcome in R is, with 85 % certainty.

The mean is the strategy's, under ten sceptical trades at 0R, plus one effect for each category that is asked for.
Effects are estimated on all the strategy's trades, together, so that two categories that tell the same are not counted
twice; errors are those of whole days; an effect is shrunk by how much the values of its category differ at all
(crossed random effects: Henderson 1975; their variance by moments: Searle, Casella & McCulloch 1992).

A trade varies as one does who doubts the mean and knows that the worst loss is still to come: by E[R²] about 0R, with
one loss not seen yet. The same E[R²] divides μ.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from backsight.core.errors import Invalid
from backsight.core.numbers import signed
from backsight.core.portfolio import Mode
from backsight.core.recall.arrays.columns import Columns, micros
from backsight.core.recommended_size import (
    ANY_TRADE,
    CATEGORIES,
    Category,
    PositionSize,
    SizedTrade,
    SizeLevel,
    SizingQuery,
)
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.statistics import t_quantile

FEWEST_TRADES = 10
SCEPTICAL_TRADES = 10.0
DOUBT = 0.15
"""The quantile of the mean's posterior that is bet on."""
SHARE_OF_KELLY = 0.25
CAP = 0.05
LEAST_UNSEEN_LOSS_R = 3.0
UNSEEN_LOSS = 1.5
"""The loss not seen yet, in worst losses seen."""
DAY_MICROS = 86_400_000_000
LARGEST_R = 1e100
ROUNDING = 1e-12
"""A variance that is a smaller share of E[R²] is none."""
WIDEST_SPAN = 100_000
"""Days between the first and the last trade up to which days are told apart by counting, not by sorting."""
NORMAL_QUANTILE = NormalDist().inv_cdf(DOUBT)

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coded:
    """One category of all trades: where each one's value stands in `values`."""

    codes: Codes
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeColumns:
    """The closed trades of one strategy, a column a field."""

    outcome_r: Numbers
    day: Codes
    """Any number that is the same for trades of one UTC day, such as its ordinal."""
    categories: Mapping[Category, Coded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not np.all(np.abs(self.outcome_r) <= LARGEST_R):
            raise Invalid("an outcome is not a finite number; leave such trades out", field="outcome_r")
        lengths = {len(self.day), *(len(coded.codes) for coded in self.categories.values())}
        if lengths != {len(self.outcome_r)}:
            raise Invalid("columns differ in length; give one entry for each trade", field="outcome_r")


def columns_of(trades: Iterable[SizedTrade]) -> TradeColumns:
    """The trades as columns, to be kept where one strategy is asked about often.

    >>> from datetime import date
    >>> columns = columns_of([SizedTrade(outcome_r=1.0, day=date(2026, 1, 5), symbol="BTC")])
    >>> columns.outcome_r.tolist(), columns.categories["symbol"].values, columns.categories["regime"].values
    ([1.0], ('BTC',), (None,))
    """
    held = list(trades)
    return TradeColumns(
        outcome_r=np.array([trade.outcome_r for trade in held], dtype=np.float64),
        day=np.array([trade.day.toordinal() for trade in held], dtype=np.int64),
        categories={name: _coded([getattr(trade, name) for trade in held]) for name in CATEGORIES},
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClosedTrades:
    """The closed trades of a strategy in one mode, those with an outcome in R as columns."""

    in_r: TradeColumns
    n: int
    """How many there are, with or without R."""
    left_out: int
    """How many more there are from before a fall."""


def trades_in(
    columns: Columns,
    *,
    strategy_name: str,
    mode: Mode,
    as_of: datetime,
    seen_at: datetime | None = None,
    fallen: tuple[str, datetime] | None = None,
) -> ClosedTrades:
    """The closed trades among episodes, as far as they were known; archived ones count.

    `fallen` is a symbol and the instant since which its results are falling: its trades that ended before are left out.

    >>> from backsight.core.recall.arrays import columns as episodes
    >>> from backsight.testing import T0, an_episode
    >>> held = episodes.columns_of([an_episode(1, symbol="BTC"), an_episode(2, pnl_r=-1.0)])
    >>> closed = trades_in(held, strategy_name="VolBreakout", mode="live", as_of=T0)
    >>> closed.in_r.outcome_r.tolist(), closed.in_r.categories["symbol"].values, closed.n
    ([1.0, -1.0], ('BTC', 'XAUUSD'), 2)
    """
    groups = columns.vocabulary.groups.values
    wanted = ("trade", strategy_name, mode)
    own = np.array([(g.kind, g.strategy_name, g.mode) == wanted and g.won is not None for g in groups])
    stop = int(np.searchsorted(columns.known_at, micros(as_of), "right"))
    rows = np.flatnonzero(own[columns.group[:stop]])
    if seen_at is not None:
        rows = rows[columns.recorded_at[rows] <= micros(seen_at)]
    there = len(rows)
    if fallen is not None:
        symbol, since = fallen
        falling = np.array([group.symbol == symbol for group in groups])
        rows = rows[~falling[columns.group[rows]] | (columns.ended_at[rows] >= micros(since))]
    n = len(rows)
    rows = rows[np.array([group.unit == "R" for group in groups])[columns.group[rows]]]
    settings = columns.setting[rows].astype(np.int64)
    by_row = columns.group[rows].astype(np.int64)
    in_r = TradeColumns(
        outcome_r=columns.outcome[rows],
        day=columns.ended_at[rows] // DAY_MICROS,
        categories={
            "direction": _coded_by(by_row, [group.direction for group in groups]),
            "symbol": _coded_by(by_row, [group.symbol for group in groups]),
            "regime": _coded_by(settings // 25, (None, *REGIMES)),
            "volatility_regime": _coded_by(settings // 5 % 5, (None, *VOLATILITY_REGIMES)),
            "session": _coded_by(settings % 5, (None, *SESSIONS)),
        },
    )
    return ClosedTrades(in_r=in_r, n=n, left_out=there - n)


def _coded_by(codes: Codes, values: Sequence[str | None]) -> Coded:
    """Codes into values, of which many are the same and some occur in no row."""
    present = sorted({values[code] for code in np.unique(codes)}, key=lambda value: value or "")
    place = {value: number for number, value in enumerate(present)}
    renamed = np.array([place.get(value, 0) for value in values], np.int64)
    return Coded(codes=renamed[codes], values=tuple(present))


def position_size(
    trades: TradeColumns | Sequence[SizedTrade],
    asked: SizingQuery = ANY_TRADE,
    *,
    risk_appetite: float = 1.0,
    cap: float = CAP,
) -> PositionSize:
    """The fraction of equity to risk on a trade: ¼ · μ / E[R²] · risk appetite, from 0 to the cap.

    150 trades, one a day, three of five won; longs won all of theirs but ten:

    >>> from datetime import date, timedelta
    >>> days = [date(2026, 1, 1) + timedelta(days=number) for number in range(150)]
    >>> longs = [SizedTrade(outcome_r=-1.0 if n % 8 == 0 else 1.0, day=days[n], direction="long") for n in range(75)]
    >>> shorts = [SizedTrade(outcome_r=1.0 if n % 3 == 0 else -1.0, day=days[n], direction="short")
    ...           for n in range(75, 150)]
    >>> size = position_size(longs + shorts)
    >>> round(size.mean, 3), round(size.deviation, 3), round(size.cautious_mean, 3), round(size.mean_square, 3)
    (0.187, 0.081, 0.103, 1.053)
    >>> round(size.recommended, 4), round(size.kelly, 3)
    (0.0245, 0.2)
    >>> size.reason
    '+0.19R a trade expected from 150 trades, at least +0.10R with 85%: a quarter of Kelly is 2.4% of equity.'
    >>> position_size(longs + shorts, SizingQuery(direction="short")).reason
    '-0.33R a trade expected from 150 trades: no edge to bet on.'
    >>> position_size(longs[:7]).reason
    'Only 7 trades with a result in R; 10 are needed.'
    """
    _check(risk_appetite, cap)
    columns = trades if isinstance(trades, TradeColumns) else columns_of(trades)
    strategy = _strategy(columns)
    values = [_values(strategy, columns, name, value) for name, value in _named(asked)]
    effects, doubt = _effects(strategy, values)
    levels = (_strategy_level(strategy), *(_level(each, effect) for each, effect in zip(values, effects, strict=True)))
    mean = math.fsum(level.effect for level in levels)
    deviation = math.sqrt(strategy.square / (strategy.effective_n + SCEPTICAL_TRADES) + doubt)
    cautious_mean = mean + NORMAL_QUANTILE * deviation
    enough = strategy.n >= FEWEST_TRADES
    uncapped = max(0.0, SHARE_OF_KELLY * cautious_mean / strategy.square * risk_appetite) if enough else 0.0
    win_rate, mean_win, mean_loss = _wins_and_losses(strategy.outcome_r)
    size = PositionSize(
        recommended=min(cap, uncapped),
        uncapped=uncapped,
        reason="",
        n=strategy.n,
        effective_n=strategy.effective_n,
        win_rate=win_rate,
        mean_win=mean_win,
        mean_loss=mean_loss,
        kelly=_kelly(win_rate, mean_win, mean_loss),
        levels=levels,
        mean=mean,
        deviation=deviation,
        cautious_mean=cautious_mean,
        mean_square=strategy.square,
        risk_appetite=risk_appetite,
        cap=cap,
    )
    return replace(size, reason=_reason(size))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Strategy:
    """All trades, and what they say without any category."""

    outcome_r: Numbers
    off: Numbers
    """Outcomes less their mean."""
    squares: float
    """The sum of their squares."""
    day: Codes
    """From 0 to the number of days − 1."""
    days: int
    mean: float
    square: float
    """E[R²], one loss not seen yet included."""
    few_days: float
    """By how much errors from so few days are to be widened, squared."""
    effective_n: float

    @property
    def n(self) -> int:
        return len(self.outcome_r)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Values:
    """The values of one category that occurred, and which of them is asked for."""

    category: Category
    value: str
    asked: int | None
    """Where the value asked for stands; None where it never occurred."""
    codes: Codes
    n: Numbers
    difference: Numbers
    """Mean outcomes less the strategy's."""
    variance: Numbers
    """Of the differences, by days."""
    inflation: Numbers
    """How many times larger that is than if all trades were independent."""
    spread: float
    """The variance between values, net of errors."""

    @property
    def asked_n(self) -> int:
        return 0 if self.asked is None else int(self.n[self.asked])


def _check(risk_appetite: float, cap: float) -> None:
    if not 0.0 <= risk_appetite < math.inf:
        raise Invalid(f"{risk_appetite} is no appetite; give 0 or more, 1 for neutral", field="risk_appetite")
    if not 0.0 < cap <= 1.0:
        raise Invalid(f"{cap} is no share of equity; give more than 0 and at most 1", field="cap")


def _named(asked: SizingQuery) -> list[tuple[Category, str]]:
    return [(name, value) for name in CATEGORIES if (value := getattr(asked, name)) is not None]


def _coded(values: Sequence[str | None]) -> Coded:
    places: dict[str | None, int] = {}
    codes = [places.setdefault(value, len(places)) for value in values]
    return Coded(codes=np.array(codes, dtype=np.int64), values=tuple(places))


def _strategy(columns: TradeColumns) -> _Strategy:
    outcome_r, n = columns.outcome_r, len(columns.outcome_r)
    mean = float(np.sum(outcome_r)) / max(1, n)
    off = outcome_r - mean
    day, days = _days(columns.day)
    few_days = _few_days(days) if days > 1 else float(n)
    by_day = _squares(np.asarray(np.bincount(day, weights=off), dtype=np.float64)) * _small(days)
    squares, square = _squares(off), _mean_square(outcome_r)
    inflation = max(1.0, by_day / (squares * _small(n))) if squares > ROUNDING * n * square else 1.0
    return _Strategy(
        outcome_r=outcome_r,
        off=off,
        squares=squares,
        day=day,
        days=days,
        mean=mean,
        square=square,
        few_days=few_days,
        effective_n=n / max(1.0, inflation * few_days),
    )


def _mean_square(outcome_r: Numbers) -> float:
    """E[R²] over the trades and one loss not seen yet: 3R, or half as much again as the worst.

    >>> _mean_square(np.array([1.0, 1.0, -4.0])), _mean_square(np.array([]))
    (13.5, 9.0)
    """
    worst = -float(np.min(outcome_r, initial=0.0))
    unseen = max(LEAST_UNSEEN_LOSS_R, UNSEEN_LOSS * worst)
    return (_squares(outcome_r) + unseen * unseen) / (len(outcome_r) + 1)


def _squares(numbers: Numbers) -> float:
    """The sum of squares; a dot product would wake all cores for it, and wait for them."""
    return float(np.einsum("i,i->", numbers, numbers))


def _days(day: Codes) -> tuple[Codes, int]:
    """The days numbered from 0, and how many there are."""
    if not len(day) or int(day.max()) - int(day.min()) > WIDEST_SPAN:
        held, codes = np.unique(day, return_inverse=True)
        return codes.astype(np.int64), len(held)
    since = day - day.min()
    traded = np.bincount(since) > 0
    return (np.cumsum(traded) - 1)[since], int(np.count_nonzero(traded))


@lru_cache(maxsize=4096)
def _few_days(days: int) -> float:
    """By how much Student's t is wider than the normal, squared.

    >>> round(_few_days(2), 2), round(_few_days(30), 2)
    (3.59, 1.04)
    """
    return (t_quantile(DOUBT, freedom=days - 1) / NORMAL_QUANTILE) ** 2


def _small(count: int) -> float:
    """The correction of a variance for its estimated mean: n / (n − 1)."""
    return count / max(1, count - 1)


def _values(strategy: _Strategy, columns: TradeColumns, category: Category, value: str) -> _Values:
    """How the trades differ by one category; trades without it are a value of their own."""
    coded = columns.categories.get(category) or Coded(codes=np.zeros(strategy.n, dtype=np.int64), values=(None,))
    codes, kept = _occurring(coded)
    k, days = len(kept), strategy.days
    cell = strategy.day * k + codes
    counts = np.bincount(cell, minlength=days * k).reshape(days, k)
    sums = np.bincount(cell, weights=strategy.off, minlength=days * k).reshape(days, k)
    n = counts.sum(axis=0).astype(np.float64)
    difference = sums.sum(axis=0) / n
    inflation = _inflation(strategy, n, difference, sums - counts * difference)
    variance = strategy.square * inflation * (1.0 / n - 1.0 / max(1, strategy.n))
    return _Values(
        category=category,
        value=value,
        asked=kept.index(value) if value in kept else None,
        codes=codes,
        n=n,
        difference=difference,
        variance=variance,
        inflation=inflation,
        spread=_spread(n, difference, variance),
    )


def _occurring(coded: Coded) -> tuple[Codes, list[str | None]]:
    """The codes without gaps, and the values that they stand for."""
    occurs = np.bincount(coded.codes, minlength=len(coded.values)) > 0
    if occurs.all():
        return coded.codes, list(coded.values)
    kept = [value for value, has in zip(coded.values, occurs, strict=True) if has]
    return (np.cumsum(occurs) - 1)[coded.codes], kept


def _inflation(strategy: _Strategy, n: Numbers, difference: Numbers, cells: Numbers) -> Numbers:
    """How many times larger the variances of differences are by days than of independent trades, never less.

    Cells hold, for each day and value, the sum of outcomes less the value's mean. A value has its own inflation where
    that is larger, else that of all values together, which is less noisy.
    """
    squares = strategy.squares - float(np.sum(n * difference * difference))
    if len(n) < 2 or squares <= ROUNDING * strategy.n * strategy.square:
        return np.full(len(n), strategy.few_days)
    independent = squares / (strategy.n - 1) * (1.0 / n - 1.0 / strategy.n)
    by_day = _variances_by_day(strategy, n, cells)
    together = max(1.0, float(np.sum(n * by_day) / np.sum(n * independent)))
    return np.maximum(together, by_day / independent) * strategy.few_days


def _variances_by_day(strategy: _Strategy, n: Numbers, cells: Numbers) -> Numbers:
    """Σ over days of what a day adds to (the value's mean − the mean of all), squared (Liang & Zeger 1986)."""
    whole = cells.sum(axis=1) / strategy.n
    own = np.einsum("dv,dv->v", cells, cells) / (n * n)
    shared = np.einsum("d,dv->v", whole, cells) / n
    return np.asarray((own - 2.0 * shared + _squares(whole)) * _small(strategy.days), dtype=np.float64)


def _spread(n: Numbers, difference: Numbers, variance: Numbers) -> float:
    """The variance between values by moments, net of errors, never negative.

    >>> each, apart = np.array([50.0, 50.0]), np.array([0.3, -0.3])
    >>> round(_spread(each, apart, np.array([0.01, 0.01])), 6), _spread(each, apart, np.array([0.1, 0.1]))
    (0.16, 0.0)
    """
    total = float(np.sum(n))
    room = total - _squares(n) / max(1.0, total)
    between = float(np.sum(n * (difference * difference - variance)))
    return max(0.0, between / room) if len(n) > 1 else 0.0


def _effects(strategy: _Strategy, values: Sequence[_Values]) -> tuple[list[float], float]:
    """What each category asked for adds to the mean, and the variance of their sum."""
    differ = [each for each in values if each.spread > 0.0]
    doubt = math.fsum(_unfamiliar(strategy, each) for each in values)
    found, variance = _fit(strategy, differ) if differ else ({}, 0.0)
    return [found.get(each.category, 0.0) for each in values], doubt + variance


def _fit(strategy: _Strategy, values: Sequence[_Values]) -> tuple[dict[Category, float], float]:
    """The effects of categories whose values differ, fitted together, and the variance of their sum.

    Alone, and with values of equal size, a category keeps the share 1 − error² / difference² (James & Stein 1961).
    """
    n, inflation = (np.concatenate([getattr(each, name) for each in values]) for name in ("n", "inflation"))
    spread = np.concatenate([np.full(len(each.n), each.spread) for each in values])
    difference = np.concatenate([each.difference for each in values])
    asked = [_asked_for(strategy, each) for each in values]
    weights = np.concatenate(asked) * np.sqrt(inflation)
    system = _together(strategy, values) + np.diag(strategy.square * inflation / spread)
    solved = np.linalg.solve(system, np.column_stack([n * difference, weights]))
    parts = np.split(solved[:, 0], np.cumsum([len(each.n) for each in values])[:-1])
    found = {each.category: float(share @ part) for each, share, part in zip(values, asked, parts, strict=True)}
    return found, strategy.square * float(weights @ solved[:, 1])


def _unfamiliar(strategy: _Strategy, each: _Values) -> float:
    """The variance for a value that was never traded, fading with the square of its trades.

    As much as the values seen differ, and one more as ten trades do: without it a strategy that was only ever long
    would be as sure of shorts.
    """
    unseen = ((len(each.n) - 1) * each.spread + strategy.square / SCEPTICAL_TRADES) / max(1, len(each.n))
    return unseen * (SCEPTICAL_TRADES / (SCEPTICAL_TRADES + each.asked_n)) ** 2


def _asked_for(strategy: _Strategy, each: _Values) -> Numbers:
    """The value asked for against the mean of all trades; nothing where it never occurred."""
    weights = np.zeros(len(each.n))
    if each.asked is not None:
        weights -= each.n / strategy.n
        weights[each.asked] += 1.0
    return weights


def _together(strategy: _Strategy, values: Sequence[_Values]) -> Numbers:
    """How many trades each two values share, beyond what chance gives."""
    n = np.concatenate([each.n for each in values])
    system = np.diag(n) - np.outer(n, n) / strategy.n
    ends = np.cumsum([len(each.n) for each in values])
    parts = [slice(end - len(each.n), end) for each, end in zip(values, ends, strict=True)]
    for (rows, one), (columns, other) in combinations(zip(parts, values, strict=True), 2):
        shared = _shared(one, other)
        system[rows, columns] += shared
        system[columns, rows] += shared.T
    return system


def _shared(one: _Values, other: _Values) -> Numbers:
    shape = len(one.n), len(other.n)
    pairs = np.bincount(one.codes * shape[1] + other.codes, minlength=shape[0] * shape[1])
    return pairs.reshape(shape).astype(np.float64)


def _strategy_level(strategy: _Strategy) -> SizeLevel:
    effective_n = strategy.effective_n
    shrinkage = effective_n / (effective_n + SCEPTICAL_TRADES)
    return SizeLevel(
        name="strategy",
        value=None,
        n=strategy.n,
        difference=strategy.mean,
        error=math.sqrt(strategy.square / effective_n) if strategy.n else None,
        spread=math.sqrt(strategy.square / SCEPTICAL_TRADES),
        shrinkage=shrinkage,
        effect=strategy.mean * shrinkage,
    )


def _level(each: _Values, effect: float) -> SizeLevel:
    difference = 0.0 if each.asked is None else float(each.difference[each.asked])
    return SizeLevel(
        name=each.category,
        value=each.value,
        n=each.asked_n,
        difference=difference,
        error=None if each.asked is None else math.sqrt(each.variance[each.asked]),
        spread=math.sqrt(each.spread),
        shrinkage=effect / difference if difference else 0.0,
        effect=effect,
    )


def _wins_and_losses(outcome_r: Numbers) -> tuple[float | None, float | None, float | None]:
    """The win rate, the mean win and the mean loss."""
    if not len(outcome_r):
        return None, None, None
    n, wins = len(outcome_r), int(np.count_nonzero(outcome_r > 0.0))
    mean_win = float(np.sum(np.maximum(outcome_r, 0.0))) / wins if wins else None
    mean_loss = abs(float(np.sum(np.minimum(outcome_r, 0.0)))) / (n - wins) if wins < n else None
    return wins / n, mean_win, mean_loss


def _kelly(win_rate: float | None, mean_win: float | None, mean_loss: float | None) -> float | None:
    """Plain Kelly (1956) on two outcomes.

    >>> _kelly(0.75, 1.0, 1.0), _kelly(0.5, 2.0, 1.0), _kelly(1.0, 1.0, None)
    (0.5, 0.25, None)
    """
    if win_rate is None or not mean_win or not mean_loss:
        return None
    return win_rate / mean_loss - (1.0 - win_rate) / mean_win


def _reason(size: PositionSize) -> str:
    """Why it is this much, in a sentence or two."""
    if size.n < FEWEST_TRADES:
        counted = f"Only {size.n} trade{'' if size.n == 1 else 's'}" if size.n else "No trades"
        return f"{counted} with a result in R; {FEWEST_TRADES} are needed."
    if size.risk_appetite == 0.0:
        return "Risk appetite is 0: nothing is to be risked."
    return _edge(size) + "".join(f" {level.value} was never traded before: more doubt." for level in _unseen(size))


def _unseen(size: PositionSize) -> list[SizeLevel]:
    return [level for level in size.levels if level.n == 0]


def _edge(size: PositionSize) -> str:
    expected = f"{signed(size.mean, 2)}R a trade expected from {size.n} trades"
    if size.mean <= 0.0:
        return f"{expected}: no edge to bet on."
    if size.uncapped == 0.0:
        return f"{expected}, give or take {size.deviation:.2f}R: too unsure to bet on."
    appetite = "" if size.risk_appetite == 1.0 else f" times a risk appetite of {size.risk_appetite:g}"
    capped = f", capped at {size.cap:.1%}" if size.recommended < size.uncapped else ""
    sure = f"at least {signed(size.cautious_mean, 2)}R with {1 - DOUBT:.0%}"
    return f"{expected}, {sure}: a quarter of Kelly{appetite} is {size.uncapped:.1%} of equity{capped}."
