"""The base rate: what usually happens here, whatever comes to mind.

Memories are selected by their outcome; this is not. All closed trades of a strategy are weighed by how alike their
numbers are and how fresh they are, `K · Rec`, and counted from broad to narrow, one category at a time. A level says
how often its trades were won and how much they brought, and how sure one may be of either: trades of one UTC day share
a market, so errors are those of whole days. Only what is handed in is seen.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import assert_never, get_args

import numpy as np
from numpy.typing import NDArray

from backsight.core.context import ContextVector
from backsight.core.memory.episodic import Episode
from backsight.core.memory.semantic import won
from backsight.core.numbers import signed
from backsight.core.portfolio import Direction
from backsight.core.recall.rates import BaseRate, Level, LevelName, MeanOutcome, OpenTrade
from backsight.core.recall.score import DRAWDOWN_WEIGHT, DRAWDOWN_WIDTH, NUMBERS, PRICED, Query
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.statistics import beta_cdf, beta_quantile, t_quantile
from backsight.core.trades.trade import Outcome, OutcomeUnit

Floats = NDArray[np.floating]

ENOUGH = 20.0
"""The effective n from which a level tells enough to be the headline."""
TOO_LITTLE = 5.0
TAU_DAYS = 30.0
NOT_KNOWN = -1
"""The code of a category that a trade lacks."""
UNITS: tuple[OutcomeUnit, ...] = get_args(OutcomeUnit)
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
CODES: Mapping[str, Mapping[str, int]] = {
    "direction": {name: code for code, name in enumerate(DIRECTIONS)},
    "regime": {name: code for code, name in enumerate(REGIMES)},
    "volatility_regime": {name: code for code, name in enumerate(VOLATILITY_REGIMES)},
    "session": {name: code for code, name in enumerate(SESSIONS)},
    "unit": {name: code for code, name in enumerate(UNITS)},
}
"""What a category's values are in the columns; symbols have codes of their own in each `Trades`."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
NORMAL_95 = 1.6448536269514722
TAIL = 0.05
NO_WEIGHT = 1e-150
"""Where all weights together are less than this, nothing alike is remembered, and their squares vanish."""
ROUNDING = 1e-9
BLOCK = 16_384
"""Trades taken at a time, so that they stay in the processor's cache."""
WHOLE = slice(None)
LARGE_FREEDOM = 100
MOST_STEPS = 12

IN_REGIME: Mapping[str, str] = {
    "trending_up": "in markets trending up",
    "trending_down": "in markets trending down",
    "ranging": "in ranging markets",
    "volatile": "in volatile markets",
}
IN_SESSION: Mapping[str, str] = {
    "asia": "in the Asian session",
    "london": "in the London session",
    "overlap": "in the London and New York overlap",
    "newyork": "in the New York session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trades:
    """The closed trades of one strategy in columns, in any order; NaN and −1 mean "not known"."""

    closed_at: NDArray[np.float64]
    """Days since 1970, with their fraction."""
    day: NDArray[np.intp]
    """The UTC day of the close, counted from `first_day`."""
    first_day: int
    """Days from 1970 to day 0; no trade closed before it."""
    won: NDArray[np.bool_]
    outcome: Floats
    unit: NDArray[np.integer]
    direction: NDArray[np.integer]
    symbol: NDArray[np.integer]
    symbols: Mapping[str, int]
    """The code of each symbol."""
    regime: NDArray[np.integer]
    volatility_regime: NDArray[np.integer]
    session: NDArray[np.integer]
    price: Floats
    atr_d1: Floats
    atr_h1: Floats
    spread_as_atr_pct: Floats
    drawdown_pct: Floats

    def __len__(self) -> int:
        return len(self.day)


def base_rate(trades: Trades, query: Query, *, now: datetime, open_trades: Sequence[OpenTrade] = ()) -> BaseRate:
    """How often such trades were won and what they brought, without regard to what one would rather remember.

    >>> from backsight.core.context import ContextVector
    >>> def closed(n, r):
    ...     at = EPOCH + n * DAY
    ...     return Episode(owner_id="me", id=f"e{n}", kind="trade", deployment_id="d", strategy_name="IM", mode="live",
    ...                    symbol="BTC", direction="long" if n % 4 else "short", run_id=f"e{n}", pnl=r, ended_at=at,
    ...                    context=ContextVector(regime="ranging"), outcome=Outcome(value=r, unit="R"),
    ...                    first_known_at=at, known_at=at, recorded_at=at)
    >>> trades = trades_of(closed(n, 2.0 if n % 5 < 2 else -1.0) for n in range(120))
    >>> asked = Query(symbol="BTC", direction="long", context=ContextVector(regime="ranging", session="asia"))
    >>> found = base_rate(trades, asked, now=EPOCH + 120 * DAY)
    >>> [(level.name, level.n, round(level.effective_n, 1)) for level in found.levels]
    [('strategy', 120, 111.8), ('direction', 90, 83.3), ('symbol', 90, 83.3), ('regime', 90, 83.3), ('session', 0, 0.0)]
    >>> found.headline.name, found.sentence
    ('regime', '39 % of 90 long BTC trades in ranging markets were won (90 %: 31 to 48 %), effective 83; +0.18 ± 0.26R')
    >>> base_rate(trades_of([]), asked, now=EPOCH).sentence
    'too little to say (n=0)'
    """
    levels = tuple(_levels(trades, query, now=now, open_trades=open_trades))
    headline = next((level for level in reversed(levels) if _reaches(level.effective_n, ENOUGH)), levels[0])
    too_little = not _reaches(headline.effective_n, TOO_LITTLE)
    return BaseRate(levels=levels, headline=headline, too_little=too_little, sentence=headline.sentence)


def _levels(trades: Trades, query: Query, *, now: datetime, open_trades: Sequence[OpenTrade]) -> Iterator[Level]:
    asked, waiting = _asked(query), _open_columns(open_trades, now=now)
    tallies = zip(_tallies(trades, query, asked, now=now), _tallies(waiting, query, asked, now=now), strict=True)
    figures, former = None, (0, 0)
    for depth, (closed, marked) in enumerate(tallies, start=1):
        if figures is None or former != (closed.n, marked.n):  # else the category leaves nothing out
            figures, former = _figures(closed, marked), (closed.n, marked.n)
        named = tuple(each.id for each in open_trades if _lies_in(each, asked[:depth])) if marked.n else ()
        yield _named(replace(figures, open_ids=named), asked[:depth])


def trades_of(episodes: Iterable[Episode]) -> Trades:
    """The closed trades among a strategy's episodes, in columns; what has no result is left out.

    >>> len(trades_of([]))
    0
    """
    held = [(each, win) for each in episodes if (win := won(each)) is not None]
    return _columns(
        [(each.symbol, each.direction, each.context, each.outcome) for each, _ in held],
        closed_at=np.array([_days_since_1970(each.ended_at) for each, _ in held], dtype=np.float64),
        wins=np.array([win for _, win in held], dtype=np.bool_),
    )


_Told = tuple[str, Direction | None, ContextVector, Outcome | None]


def _open_columns(open_trades: Sequence[OpenTrade], *, now: datetime) -> Trades:
    """Open trades as if they closed now at their last mark."""
    return _columns(
        [(each.symbol, each.direction, each.context, each.outcome) for each in open_trades],
        closed_at=np.full(len(open_trades), _days_since_1970(now)),
        wins=np.zeros(len(open_trades), dtype=np.bool_),
    )


def _columns(told: Sequence[_Told], *, closed_at: NDArray[np.float64], wins: NDArray[np.bool_]) -> Trades:
    symbols = {symbol: code for code, symbol in enumerate(dict.fromkeys(symbol for symbol, *_ in told))}
    contexts = [context for _, _, context, _ in told]
    outcomes = [outcome for *_, outcome in told]
    day = np.floor(closed_at).astype(np.intp)
    first_day = int(day.min()) if len(day) else 0
    return Trades(
        closed_at=closed_at,
        day=day - first_day,
        first_day=first_day,
        won=wins,
        outcome=_numbers(None if outcome is None else outcome.value for outcome in outcomes),
        unit=_codes("unit", (None if outcome is None else outcome.unit for outcome in outcomes)),
        direction=_codes("direction", (direction for _, direction, *_ in told)),
        symbol=np.array([symbols[symbol] for symbol, *_ in told], dtype=np.int32),
        symbols=symbols,
        regime=_codes("regime", (context.regime for context in contexts)),
        volatility_regime=_codes("volatility_regime", (context.volatility_regime for context in contexts)),
        session=_codes("session", (context.session for context in contexts)),
        price=_numbers(context.price for context in contexts),
        atr_d1=_numbers(context.atr_d1 for context in contexts),
        atr_h1=_numbers(context.atr_h1 for context in contexts),
        spread_as_atr_pct=_numbers(context.spread_as_atr_pct for context in contexts),
        drawdown_pct=_numbers(context.drawdown_pct for context in contexts),
    )


def _numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def _codes(name: str, values: Iterable[str | None]) -> NDArray[np.int8]:
    codes = CODES[name]
    return np.array([NOT_KNOWN if value is None else codes[value] for value in values], dtype=np.int8)


def _days_since_1970(at: datetime) -> float:
    return (at - EPOCH) / DAY


def weights(trades: Trades, query: Query, *, now: datetime, part: slice = WHOLE) -> NDArray[np.float64]:
    """K · Rec of each trade: how alike its numbers are to those asked for, and how fresh it is.

    K is the part of Sim that is over numbers: the weighted mean closeness over those that the query gives. A number
    that the trade lacks scores 0; price counts for the query's own symbol only. Where nothing can be compared, K is 1.
    """
    fresh = _recency(_days_since_1970(now) - trades.closed_at[part])
    with np.errstate(all="ignore"):
        likeness = _kernel(trades, query, part)
    return fresh if likeness is None else fresh * likeness


def _recency(age: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rec: (1 + age/30)^−.5, as `score.recency` has it; written over the ages."""
    np.maximum(age, 0.0, out=age)
    age += TAU_DAYS
    np.divide(TAU_DAYS, age, out=age)
    return np.sqrt(age, out=age)


def _kernel(trades: Trades, query: Query, part: slice) -> Floats | None:
    """K of each trade; None where the query gives no number."""
    asked, total = query.context, 0.0
    score = np.zeros(len(trades.price[part]), dtype=trades.price.dtype)
    scale = _price_scale(asked, trades.price[part])
    for name, (weight, bandwidth) in NUMBERS.items():
        x = getattr(asked, name)
        if x is not None and name != "price":
            held = getattr(trades, name)[part]
            score += _closeness(x, held, bandwidth, scale=scale if name in PRICED else None, weight=weight)
            total += weight
    if asked.drawdown_pct is not None:
        apart = (trades.drawdown_pct[part] - asked.drawdown_pct) * (1.0 / DRAWDOWN_WIDTH)
        score += _bell(apart, -0.5, weight=DRAWDOWN_WEIGHT)
        total += DRAWDOWN_WEIGHT
    if asked.price is not None:
        return _with_price(asked.price, trades, query.symbol, part, score=score, total=total)
    return np.minimum(score / total, 1.0) if total else None


def _price_scale(asked: ContextVector, price: Floats) -> Floats | None:
    """What a price-sized number asked for is at a trade's price; 1 where one of the prices is not known."""
    if not asked.price or all(getattr(asked, name) is None for name in PRICED):
        return None
    scale = np.abs(price) * (1.0 / abs(asked.price))
    scale[~(scale > 0.0)] = 1.0
    return scale


def _closeness(x: float, held: Floats, bandwidth: float, *, scale: Floats | None, weight: float) -> Floats:
    """`score.closeness` of a column, at a bandwidth relative to the mean size of both values, times a weight."""
    here = x if scale is None else x * scale
    size = np.abs(held)
    size += abs(x) if scale is None else abs(x) * scale
    apart = held - here
    apart /= size
    found = _bell(apart, -2.0 / bandwidth**2, weight=weight)
    if x == 0.0:
        found[held == 0.0] = weight
    return found


def _bell(apart: Floats, sharpness: float, *, weight: float) -> Floats:
    """weight · exp(sharpness · apart²), 0 where a value is missing; written over `apart`."""
    apart *= apart
    apart *= sharpness
    np.exp(apart, out=apart)
    np.fmax(apart, 0.0, out=apart)
    apart *= weight
    return apart


def _with_price(
    price: float, trades: Trades, symbol: str | None, part: slice, *, score: Floats, total: float
) -> Floats:
    weight, bandwidth = NUMBERS["price"]
    same = trades.symbol[part] == _code(trades, "symbol", symbol)
    score += same * _closeness(price, trades.price[part], bandwidth, scale=None, weight=weight)
    if not total:
        return np.where(same, np.minimum(score / weight, 1.0), 1.0)
    return np.minimum(score / np.where(same, total + weight, total), 1.0)


def _code(trades: Trades, name: str, value: str | None) -> int:
    """The code of a category's value; one that no trade has where it was never seen."""
    codes = trades.symbols if name == "symbol" else CODES[name]
    return NOT_KNOWN - 1 if value is None else codes.get(value, NOT_KNOWN - 1)


_Asked = tuple[LevelName, str | None]


def _asked(query: Query) -> list[_Asked]:
    """The levels of a query from broad to narrow; a category that it does not give is skipped."""
    context = query.context
    given: list[_Asked] = [
        ("direction", query.direction),
        ("symbol", query.symbol),
        ("regime", context.regime),
        ("volatility_regime", context.volatility_regime),
        ("session", context.session),
    ]
    return [("strategy", None), *(each for each in given if each[1] is not None)]


def _lies_in(trade: OpenTrade, asked: Sequence[_Asked]) -> bool:
    held = {"direction": trade.direction, "symbol": trade.symbol}
    return all(value in (None, held.get(name) or getattr(trade.context, name, None)) for name, value in asked)


@dataclass(frozen=True, slots=True)
class _Amount:
    """Which rows of a tally are about the outcomes of one unit."""

    unit: OutcomeUnit
    count: int | None
    """None where all trades have an outcome of this unit."""
    weight: int
    product: int


@dataclass(frozen=True, slots=True)
class _Tally:
    """What a level is computed from: sums over the trades of each day."""

    first_day: int
    n: int
    sums: NDArray[np.float64]
    """A row of days for each of weight, weight², weight of those won, and what the amounts name."""
    amounts: tuple[_Amount, ...]


WEIGHT, SQUARE, WON, FIRST_AMOUNT = range(4)


def _amounts(unit: NDArray[np.integer]) -> tuple[_Amount, ...]:
    """Units apart: they are never mixed."""
    if not len(unit):
        return ()
    lowest, highest = int(unit.min()), int(unit.max())
    if lowest == highest != NOT_KNOWN:
        return (_Amount(UNITS[lowest], None, WEIGHT, FIRST_AMOUNT),)
    present = [name for code, name in enumerate(UNITS) if (unit == code).any()]
    firsts = range(FIRST_AMOUNT, FIRST_AMOUNT + 3 * len(present), 3)
    return tuple(_Amount(name, row, row + 1, row + 2) for name, row in zip(present, firsts, strict=True))


def _tallies(trades: Trades, query: Query, asked: Sequence[_Asked], *, now: datetime) -> list[_Tally]:
    """The sums of each level; each finds its trades among those of the level before, a block of trades at a time."""
    amounts = _amounts(trades.unit)
    rows = 1 + (max(amount.product for amount in amounts) if amounts else WON)
    sums = np.zeros((len(asked), rows, int(trades.day.max()) + 1 if len(trades) else 0))
    counts = [0] * len(asked)
    for start in range(0, len(trades), BLOCK):
        part = slice(start, start + BLOCK)
        columns = _summands(trades, part, weights(trades, query, now=now, part=part), amounts, rows)
        for level, (day, held) in enumerate(_narrowing(trades, part, asked, columns)):
            counts[level] += len(day)
            _add_by_day(sums[level], day, held)
    return [_Tally(trades.first_day, n, held, amounts) for n, held in zip(counts, sums, strict=True)]


def _summands(
    trades: Trades, part: slice, weight: NDArray[np.float64], amounts: Sequence[_Amount], rows: int
) -> NDArray[np.float64]:
    """What is summed, a row each."""
    found = np.empty((rows, len(weight)))
    found[WEIGHT] = weight
    np.multiply(weight, weight, out=found[SQUARE])
    np.multiply(weight, trades.won[part], out=found[WON])
    for amount in amounts:
        outcome = trades.outcome[part]
        if amount.count is not None:
            has = trades.unit[part] == CODES["unit"][amount.unit]
            found[amount.count] = has
            np.multiply(weight, has, out=found[amount.weight])
            outcome = np.where(has, outcome, 0.0)
        np.multiply(weight, outcome, out=found[amount.product])
    return found


def _narrowing(
    trades: Trades, part: slice, asked: Sequence[_Asked], columns: NDArray[np.float64]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """The days and summands of each level's trades, until none is left."""
    day, rows = trades.day[part], None
    for name, value in asked:
        if value is not None:
            codes = getattr(trades, name)[part]
            found = np.flatnonzero((codes if rows is None else codes[rows]) == _code(trades, name, value))
            rows = found if rows is None else rows[found]
            day, columns = day[found], columns.take(found, axis=1)
        if not len(day):
            return
        yield day, columns


def _add_by_day(sums: NDArray[np.float64], day: NDArray[np.intp], columns: NDArray[np.float64]) -> None:
    """Add columns to the sums of days: runs of one day first, since trades mostly come in order."""
    starts = np.concatenate(([0], np.flatnonzero(day[1:] != day[:-1]) + 1))
    days, runs = day[starts], np.add.reduceat(columns, starts, axis=1)
    for held, run in zip(sums, runs, strict=True):
        np.add.at(held, days, run)


@dataclass(frozen=True, slots=True)
class _Mean:
    """A weighted mean and its error by days."""

    value: float
    error: float | None
    """None where there is one day only."""
    days: int


def _mean(weight: NDArray[np.float64], product: NDArray[np.float64]) -> _Mean | None:
    """The mean of what is summed by days, with days as clusters (Liang & Zeger 1986); None without weight.

    m = Σ w·x / Σ w,   u_g = Σ_{i on g} w_i (x_i − m) / Σ w,   V = G/(G − 1) · Σ_g u_g²,   error = √V
    """
    total = float(weight.sum())
    if total < NO_WEIGHT:
        return None
    value, days = float(product.sum()) / total, int(np.count_nonzero(weight))
    off = (product - value * weight) / total
    largest = float(np.abs(off).max())
    if days == 1 or largest == 0.0:
        return _Mean(value, 0.0 if days > 1 else None, days)
    scaled = off / largest  # so that no square overflows
    return _Mean(value, largest * math.sqrt(float((scaled * scaled).sum()) * days / (days - 1)), days)


def _figures(closed: _Tally, marked: _Tally) -> Level:
    """A level without its name."""
    rate = _mean(closed.sums[WEIGHT], closed.sums[WON])
    effective = 0.0 if rate is None else _effective_n(rate, closed)
    return Level(
        name="strategy",
        value=None,
        n=closed.n,
        days=0 if rate is None else rate.days,
        effective_n=effective,
        win_rate=None if rate is None else rate.value,
        win_rate_interval=None if rate is None else jeffreys(rate.value, effective),
        outcomes=tuple(_mean_outcomes(closed, marked)),
        open=marked.n,
        open_ids=(),
        sentence="",
    )


def _effective_n(rate: _Mean, tally: _Tally) -> float:
    """How many independent trades of equal weight would tell the win rate as well.

    min((Σw)²/Σw², p(1 − p) / (V · (t/z)²)): Kish 1965, and the day-clustered variance V widened for having been
    estimated from few days, t and z the 95 % quantiles of Student's t at days − 1 and of the normal.

    Where all were won, or none, V says nothing about how days hang together: each day counts as one draw, Kish of the
    weights of days. One day is one draw.
    """
    if rate.error is None:
        return 1.0
    by_day = tally.sums[WEIGHT]
    spread, total = rate.value * (1.0 - rate.value), float(by_day.sum())
    if spread <= 0.0:
        return total**2 / float((by_day * by_day).sum())
    kish = total**2 / float(tally.sums[SQUARE].sum())
    clustered = (rate.error * t_95(rate.days - 1) / NORMAL_95) ** 2
    return min(kish, spread / clustered) if clustered else kish


def _mean_outcomes(closed: _Tally, marked: _Tally) -> Iterator[MeanOutcome]:
    """The mean outcome in each unit; open trades all count on the day they are marked for, which is today."""
    today = marked.first_day - closed.first_day
    for unit in UNITS:
        n, weight, product = _sums_of(unit, closed)
        waiting, more, worth = _sums_of(unit, marked)
        if waiting:
            weight, product = _with(weight, today, float(more.sum())), _with(product, today, float(worth.sum()))
        mean = _mean(weight, product)
        if mean is not None:
            yield MeanOutcome(unit=unit, n=n, open=waiting, mean=mean.value, interval=_interval(mean))


def _sums_of(unit: OutcomeUnit, tally: _Tally) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    """How many trades have an outcome in a unit, and their weight and weight × outcome by day."""
    amount = next((amount for amount in tally.amounts if amount.unit == unit), None)
    if amount is None:
        return 0, np.zeros(0), np.zeros(0)
    n = tally.n if amount.count is None else round(float(tally.sums[amount.count].sum()))
    return n, tally.sums[amount.weight], tally.sums[amount.product]


def _with(by_day: NDArray[np.float64], day: int, more: float) -> NDArray[np.float64]:
    """The sums of days with more on one of them, be it a new one."""
    if not 0 <= day < len(by_day):
        return np.append(by_day, more)
    changed = by_day.copy()
    changed[day] += more
    return changed


def _interval(mean: _Mean) -> tuple[float, float] | None:
    """mean ± t · error, t the 95 % quantile at days − 1; None on one day."""
    if mean.error is None:
        return None
    reach = t_95(mean.days - 1) * mean.error
    return mean.value - reach, mean.value + reach


def jeffreys(rate: float, n: float) -> tuple[float, float]:
    """The 90 % interval of a win rate from n trades: quantiles of Beta(½ + p·n, ½ + (1 − p)·n) (Jeffreys 1946).

    The rate itself is always within, so where all were won it ends at 1 (Brown, Cai & DasGupta 2001).

    >>> [round(end, 3) for end in jeffreys(0.58, 41.0)]
    [0.452, 0.7]
    >>> [round(end, 3) for end in jeffreys(1.0, 10.0)]
    [0.829, 1.0]
    """
    alpha, beta = 0.5 + rate * n, 0.5 + (1.0 - rate) * n
    return min(rate, beta_05(alpha, beta)), max(rate, 1.0 - beta_05(beta, alpha))


def beta_05(alpha: float, beta: float) -> float:
    """The x below which Beta(α, β) lies with 5 %: `beta_quantile` in a hundredth of its time, to 1e-10.

    Halley's method from a first guess (Numerical Recipes §6.14); where it does not settle, halving.

    >>> round(beta_05(8.0, 4.0), 6), round(beta_quantile(0.05, alpha=8.0, beta=4.0), 6)
    (0.435626, 0.435626)
    """
    x = _first_guess(alpha, beta)
    scale = math.lgamma(alpha + beta) - math.lgamma(alpha) - math.lgamma(beta)
    for _ in range(MOST_STEPS):
        if not 0.0 < x < 1.0:
            break
        density = math.exp((alpha - 1.0) * math.log(x) + (beta - 1.0) * math.log1p(-x) + scale)
        if density == 0.0:
            break
        off = (beta_cdf(x, alpha=alpha, beta=beta) - TAIL) / density
        step = off / (1.0 - 0.5 * min(1.0, off * ((alpha - 1.0) / x - (beta - 1.0) / (1.0 - x))))
        moved = x - step
        moved = x / 2.0 if moved <= 0.0 else (1.0 + x) / 2.0 if moved >= 1.0 else moved
        if abs(step) < min(1e-3 * math.sqrt(x * (1.0 - x) / (alpha + beta)), 1e-2 * x):
            return moved  # off by about the cube of that
        x = moved
    return beta_quantile(TAIL, alpha=alpha, beta=beta)


def _first_guess(alpha: float, beta: float) -> float:
    if alpha < 1.0 or beta < 1.0:
        low = math.exp(alpha * math.log(alpha / (alpha + beta))) / alpha
        both = low + math.exp(beta * math.log(beta / (alpha + beta))) / beta
        if both * TAIL < low:
            return math.pow(alpha * both * TAIL, 1.0 / alpha)
        return 1.0 - math.pow(beta * both * (1.0 - TAIL), 1.0 / beta)
    a, b, lean = 1.0 / (2.0 * alpha - 1.0), 1.0 / (2.0 * beta - 1.0), (NORMAL_95**2 - 3.0) / 6.0
    h = 2.0 / (a + b)
    w = NORMAL_95 * math.sqrt(lean + h) / h - (b - a) * (lean + 5.0 / 6.0 - 2.0 / (3.0 * h))
    return alpha / (alpha + beta * math.exp(2.0 * w))


@lru_cache(maxsize=4096)
def t_95(freedom: int) -> float:
    """The t below which Student's t lies with 95 %, exact to 1e-10; from 100 degrees on by Abramowitz & Stegun 26.7.5.

    >>> round(t_95(1), 4), round(t_95(29), 4), round(t_95(364), 4)
    (6.3138, 1.6991, 1.6491)
    """
    if freedom < LARGE_FREEDOM:
        return t_quantile(1.0 - TAIL, freedom=freedom)
    z, v = NORMAL_95, 1.0 / freedom
    terms = (
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    return z + sum(term * v**power for power, term in enumerate(terms, start=1))


def _reaches(effective_n: float, threshold: float) -> bool:
    """Whether it is at least that, rounding aside."""
    return effective_n >= threshold * (1.0 - ROUNDING)


def _named(figures: Level, asked: Sequence[_Asked]) -> Level:
    name, value = asked[-1]
    return replace(figures, name=name, value=value, sentence=_sentence(figures, dict(asked)))


def _sentence(level: Level, asked: Mapping[LevelName, str | None]) -> str:
    """What a level says, in one line."""
    if level.win_rate is None or level.win_rate_interval is None or not _reaches(level.effective_n, TOO_LITTLE):
        few = "" if level.n < TOO_LITTLE else f", effective {level.effective_n:.0f}"
        return f"too little to say (n={level.n}{few})"
    low, high = (f"{100.0 * end:.0f}" for end in level.win_rate_interval)
    rate = f"{100.0 * level.win_rate:.0f} % of {level.n} {_which(asked)} were won (90 %: {low} to {high} %)"
    brought = ", ".join(_brought(mean) for mean in level.outcomes)
    still = f"{level.open} open at the last mark" if level.open else ""
    return f"{rate}, effective {level.effective_n:.0f}" + "".join(f"; {part}" for part in (brought, still) if part)


def _which(asked: Mapping[LevelName, str | None]) -> str:
    """The trades of a level in a trader's words.

    >>> _which({"direction": "long", "symbol": "BTC", "regime": "trending_up", "volatility_regime": "low"})
    'long BTC trades in markets trending up at low volatility'
    >>> _which({"session": "overlap"})
    'trades in the London and New York overlap'
    """
    words = [asked.get("direction"), asked.get("symbol"), "trades"]
    if (regime := asked.get("regime")) is not None:
        words.append(IN_REGIME[regime])
    if (volatility := asked.get("volatility_regime")) is not None:
        words.append(f"at {volatility} volatility")
    if (session := asked.get("session")) is not None:
        words.append(IN_SESSION[session])
    return " ".join(word for word in words if word)


def _brought(mean: MeanOutcome) -> str:
    """A mean outcome with how far it may be off.

    >>> _brought(MeanOutcome(unit="R", n=63, open=0, mean=0.21, interval=(0.03, 0.39)))
    '+0.21 ± 0.18R'
    >>> _brought(MeanOutcome(unit="pct", n=3, open=0, mean=-0.0123, interval=None))
    '-1.23%'
    """
    share = 100.0 if mean.unit == "pct" else 1.0
    off = "" if mean.interval is None else f" ± {share * (mean.interval[1] - mean.interval[0]) / 2.0:.2f}"
    return f"{signed(share * mean.mean, 2)}{off}{_unit(mean.unit)}"


def _unit(unit: OutcomeUnit) -> str:
    match unit:
        case "R":
            return "R"
        case "vol":
            return " daily ATR"
        case "pct":
            return "%"
    assert_never(unit)
