"""Position sizing: a quarter of Kelly on a mean outcome in R that the true mean exceeds with 85% probability.

The expected outcome is the strategy's mean, shrunk by ten sceptical trades at 0R, plus one effect for each category of
the query. The effects are estimated together on all trades of the strategy, so that two categories with the same
information are not counted twice. Standard errors are those by days or by longer waves, whichever is larger
(`core.serial_correlation`). An effect is shrunk by how much the values of its category differ at all (crossed random
effects: Henderson 1975; their variance by moments: Searle, Casella & McCulloch 1992).

The variance of a trade is E[R²] about 0R, which includes one loss that has not happened yet. The same E[R²] is the
denominator of the Kelly fraction. Where no trade has lost yet, that loss is larger, and the mean includes it, too.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist

import numpy as np

from backsight.core.errors import Invalid
from backsight.core.instants import Horizon
from backsight.core.instruments import NO_UNDERLYINGS, Underlyings
from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.numbers import signed
from backsight.core.portfolio import Mode
from backsight.core.recall.arrays.columns import DAY_MICROS, SETTING_LABELS, Booleans, Columns, Floats, Integers
from backsight.core.recall.arrays.selection import TradeFilter, select_trades
from backsight.core.recall.base_rate import LevelName
from backsight.core.recall.won_counts import AllTrades, WonCount
from backsight.core.recommended_size import (
    ANY_TRADE,
    CATEGORIES,
    FEWEST_TRADES,
    NOTHING_OPEN,
    Category,
    OpenRisk,
    PositionSize,
    SizedTrade,
    SizeKind,
    SizeLevel,
    SizingQuery,
)
from backsight.core.serial_correlation import wave_variances, widening
from backsight.core.statistics import t_quantile

SCEPTICAL_TRADES = 10.0
DOUBT = 0.15
"""The quantile of the mean's posterior that the size is computed from."""
NO_EDGE = 0.2
"""The probability that the mean is above 0 up to which there is no edge; above it, and without a size, there is no
recommendation."""
LEAST_SIZE = 0.0001
"""The least share of equity that is recommended; less would be shown as 0%."""
SHARE_OF_KELLY = 0.25
CAP = 0.05
LEAST_UNSEEN_LOSS_R = 3.0
UNSEEN_LOSS = 1.5
"""The loss that has not happened yet, as a multiple of the worst loss so far."""
NO_LOSS_YET_R = 6.0
"""The loss that has not happened yet where no loss has shown how far losses go."""
LEAST_LOST_R = 1.0
"""All losses together, from which on they show how far losses go."""
LEAST_COPIES = 1.05
"""From how many copies on the reason names them; fewer are a matter of chance."""
DAYS_A_DEGREE = 12
"""Days with trades for each degree of freedom of the deviation, beyond the first twelve. Results may stay at one level
for weeks, and a record of a month cannot show that they do."""
LARGEST_R = 1e100
ROUNDING = 1e-12
"""A variance that is a smaller share of E[R²] counts as 0."""
WIDEST_SPAN = 100_000
"""Days between the first and the last trade up to which days are numbered by counting instead of sorting."""
NARROWER: tuple[Category, ...] = ("regime", "volatility_regime", "session")
"""The categories that are added to direction and symbol one by one when trades are counted."""
NORMAL = NormalDist()
NORMAL_QUANTILE = NORMAL.inv_cdf(DOUBT)
STRATEGIES_CACHED = 4
"""Strategies whose evidence is kept: all ticks between two closes share it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CategoryColumn:
    """One category of all trades: for each trade the index of its value in `values`."""

    codes: Integers
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TradeColumns:
    """The closed trades of one strategy as columns."""

    outcome_r: Floats
    day: Integers
    """A number for the UTC day on which a trade closed."""
    categories: Mapping[Category, CategoryColumn] = field(default_factory=dict)
    unknown_won: int = 0
    """The number of further trades that won, and whose outcome in R is unknown."""
    unknown_lost: int = 0

    def __post_init__(self) -> None:
        if not np.all(np.abs(self.outcome_r) <= LARGEST_R):
            raise Invalid("an outcome is not a finite number; leave out that trade", field="outcome_r")
        lengths = {len(self.day), *(len(coded.codes) for coded in self.categories.values())}
        if lengths != {len(self.outcome_r)}:
            raise Invalid("columns differ in length; give one entry a trade", field="outcome_r")

    @property
    def known(self) -> KnownOutcomes:
        """Of how many winners and losers R is known."""
        won = int(np.count_nonzero(self.outcome_r > 0.0))
        lost = len(self.outcome_r) - won
        return KnownOutcomes(won=won + self.unknown_won, lost=lost + self.unknown_lost, known_won=won, known_lost=lost)


def trade_columns(trades: Iterable[SizedTrade]) -> TradeColumns:
    """Transpose trades into columns; reuse them to size several trades of one strategy.

    >>> from datetime import date
    >>> columns = trade_columns([SizedTrade(outcome_r=1.0, day=date(2026, 1, 5), symbol="BTC")])
    >>> columns.outcome_r.tolist(), columns.categories["symbol"].values, columns.categories["regime"].values
    ([1.0], ('BTC',), (None,))
    """
    rows = list(trades)
    return TradeColumns(
        outcome_r=np.array([trade.outcome_r for trade in rows], dtype=np.float64),
        day=np.array([trade.day.toordinal() for trade in rows], dtype=np.int64),
        categories={name: _encoded([getattr(trade, name) for trade in rows]) for name in CATEGORIES},
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClosedTrades:
    """The closed trades of a strategy in one mode."""

    in_r: TradeColumns
    """The trades with an outcome in R."""
    n: int
    """The number of trades, with or without an outcome in R."""
    left_out: int
    """The number of trades left out because they ended before a decline of results."""
    strategies: int
    """The number of strategies in the mode with enough trades to be sized, this one included."""


def closed_trades(
    columns: Columns, trade_filter: TradeFilter, horizon: Horizon, *, underlyings: Underlyings = NO_UNDERLYINGS
) -> ClosedTrades:
    """The closed trades known at the horizon, archived or not; symbols of one underlying are one value.

    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> columns = columns_of([an_episode(1, symbol="BTC"), an_episode(2, pnl_r=-1.0)])
    >>> closed = closed_trades(columns, TradeFilter(strategy_name="VolBreakout", mode="live"), Horizon(as_of=T0))
    >>> closed.in_r.outcome_r.tolist(), closed.in_r.categories["symbol"].values, closed.n
    ([1.0, -1.0], ('BTC', 'XAUUSD'), 2)
    """
    selection, left_out = select_trades(columns, trade_filter, horizon)
    table, rows, in_r_unit = selection.table, selection.all_rows(), selection.table.unit == 0
    unknown = selection.group_counts() * ~in_r_unit
    rows = rows[in_r_unit[columns.group[rows]]]
    groups, settings = columns.group[rows].astype(np.int64), columns.setting[rows].astype(np.int64)
    in_r = TradeColumns(
        outcome_r=columns.outcome[rows],
        day=columns.ended_at[rows] // DAY_MICROS,
        categories={
            "direction": _reencoded(groups, table.fields["direction"].tolist()),
            "symbol": _reencoded(groups, [underlyings.of(symbol) for symbol in table.fields["symbol"].tolist()]),
            "regime": _reencoded(settings, SETTING_LABELS["regime"].tolist()),
            "volatility_regime": _reencoded(settings, SETTING_LABELS["volatility_regime"].tolist()),
            "session": _reencoded(settings, SETTING_LABELS["session"].tolist()),
        },
        unknown_won=int(unknown[table.won].sum()),
        unknown_lost=int(unknown[~table.won].sum()),
    )
    strategies = strategies_tried(columns, trade_filter.mode, horizon)
    return ClosedTrades(in_r=in_r, n=selection.count, left_out=left_out, strategies=strategies)


def strategies_tried(columns: Columns, mode: Mode | None, horizon: Horizon) -> int:
    """The number of strategies with enough trades in R to be sized, in a mode, at a horizon; at least 1.

    Trades are counted by the summaries of blocks, so that most rows are not read.
    """
    selection, _ = select_trades(columns, TradeFilter(mode=mode), horizon)
    table = selection.table
    counts = selection.group_counts() * (table.unit == 0)
    _, strategy = np.unique(table.fields["strategy_name"], return_inverse=True)
    return max(1, int(np.count_nonzero(np.bincount(strategy, counts, minlength=1) >= FEWEST_TRADES)))


def _reencoded(codes: Integers, labels: Sequence[str]) -> CategoryColumn:
    """Number the labels that occur in alphabetical order; codes may share a label, and "" is None."""
    present = sorted({labels[code] for code in np.flatnonzero(np.bincount(codes, minlength=1)).tolist()})
    index = {label: number for number, label in enumerate(present)}
    renumbered = np.array([index.get(label, 0) for label in labels], np.int64)
    return CategoryColumn(codes=renumbered[codes], values=tuple(label or None for label in present))


def position_size(
    trades: TradeColumns | Sequence[SizedTrade],
    query: SizingQuery = ANY_TRADE,
    *,
    risk_appetite: float = 1.0,
    cap: float = CAP,
    strategies: int = 1,
    open_risk: OpenRisk = NOTHING_OPEN,
) -> PositionSize:
    """The fraction of equity to risk on a trade: ¼ · μ / E[R²] · risk appetite, from 0 to the cap.

    150 trades, one a day, long and short in turn, of which three in five won; all but ten of the longs won:

    >>> from datetime import date, timedelta
    >>> days = [date(2026, 1, 1) + timedelta(days=number) for number in range(150)]
    >>> longs = [SizedTrade(outcome_r=-1.0 if n % 8 == 0 else 1.0, day=days[2 * n], direction="long")
    ...          for n in range(75)]
    >>> shorts = [SizedTrade(outcome_r=1.0 if n % 3 == 0 else -1.0, day=days[2 * n + 1], direction="short")
    ...           for n in range(75)]
    >>> size = position_size(longs + shorts)
    >>> round(size.mean, 3), round(size.deviation, 3), round(size.cautious_mean, 3), round(size.mean_square, 3)
    (0.187, 0.081, 0.099, 1.053)
    >>> round(size.recommended, 4), round(size.kelly, 3)
    (0.0235, 0.2)
    >>> size.reason
    '+0.19R a trade expected from 150 trades, at least +0.10R with 85%: a quarter of Kelly is 2.35% of equity.'
    >>> losing = position_size(longs + shorts, SizingQuery(direction="short"))
    >>> losing.kind, losing.recommended, losing.reason
    ('no_edge', 0.0, '-0.33R a trade expected from 150 trades: no edge to bet on.')
    >>> few = position_size(longs[:7])
    >>> few.kind, few.recommended, few.reason
    ('no_recommendation', None, 'Only 7 trades with a result in R; 10 are needed.')
    """
    columns = trades if isinstance(trades, TradeColumns) else trade_columns(trades)
    (size,) = position_sizes(
        columns, [query], risk_appetite=risk_appetite, cap=cap, strategies=strategies, open_risk=open_risk
    )
    return size


def position_sizes(
    columns: TradeColumns,
    queries: Iterable[SizingQuery],
    *,
    risk_appetite: float = 1.0,
    cap: float = CAP,
    strategies: int = 1,
    open_risk: OpenRisk = NOTHING_OPEN,
) -> Iterator[PositionSize]:
    """The size for each of several queries, as `position_size` gives it; the trades are read once."""
    _check(risk_appetite, cap)
    limits = _Limits(
        risk_appetite=risk_appetite, cap=cap, strategies=strategies, open_risk=open_risk, known=columns.known
    )
    strategy, designs = _strategy_evidence(columns), _designs(columns)
    for query in queries:
        categories = [_category_evidence(columns, name).of(value) for name, value in _given_categories(query)]
        yield _position_size(strategy, categories, designs, limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """What a size depends on beside the evidence of the trades with a known R."""

    risk_appetite: float
    cap: float
    strategies: int
    open_risk: OpenRisk
    known: KnownOutcomes

    @property
    def doubt(self) -> float:
        """The quantile of the mean's posterior: with K strategies tried, a √K-th of the doubt about one."""
        return DOUBT / math.sqrt(max(1, self.strategies))

    @property
    def factor(self) -> float:
        """What the share of Kelly is multiplied by: the risk appetite, and the share of trades whose R is known."""
        return self.risk_appetite * (self.known.known / max(1, self.known.n))


def _position_size(
    strategy: "_StrategyEvidence", categories: Sequence["_CategoryEvidence"], designs: "_Designs", limits: _Limits
) -> PositionSize:
    win_rate, mean_win, mean_loss = _wins_and_losses(strategy.outcome_r)
    effects, variance = _effects(strategy, categories, designs)
    category_levels = (_level(category, effect) for category, effect in zip(categories, effects, strict=True))
    levels = (_strategy_level(strategy), *category_levels)
    mean = math.fsum(level.effect for level in levels)
    deviation = math.sqrt(strategy.mean_square / (strategy.effective_n + SCEPTICAL_TRADES) + variance)
    cautious_mean = mean + _quantile(limits.doubt, strategy.days) * deviation
    p_above_zero = NORMAL.cdf(mean / deviation)
    enough = strategy.n >= FEWEST_TRADES and not limits.known.hides_losers
    # The share of equity for the signal as a whole, and for one of the trades that it makes at a time.
    share = max(0.0, SHARE_OF_KELLY * cautious_mean / strategy.mean_square * limits.factor) if enough else 0.0
    uncapped = share / strategy.copies
    left = max(0.0, min(limits.cap, uncapped, min(limits.cap, share) - limits.open_risk.share))
    kind = _kind(p_above_zero, uncapped, left, risk_appetite=limits.risk_appetite) if enough else "no_recommendation"
    size = PositionSize(
        kind=kind,
        recommended=None if kind == "no_recommendation" else left if kind == "sized" else 0.0,
        uncapped=uncapped,
        reason="",
        n=strategy.n,
        unknown=limits.known.unknown,
        strategies=limits.strategies,
        copies=strategy.copies,
        open_risk=limits.open_risk,
        effective_n=strategy.effective_n,
        win_rate=win_rate,
        mean_win=mean_win,
        mean_loss=mean_loss,
        no_loss_yet=_no_loss_yet(strategy.outcome_r),
        kelly=_kelly(win_rate, mean_win, mean_loss),
        levels=levels,
        mean=mean,
        deviation=deviation,
        p_above_zero=p_above_zero,
        cautious_mean=cautious_mean,
        mean_square=strategy.mean_square,
        risk_appetite=limits.risk_appetite,
        cap=limits.cap,
    )
    if limits.known.hides_losers:
        size = replace(
            size, win_rate=None, mean_win=None, mean_loss=None, kelly=None,
            levels=(), mean=None, deviation=None, p_above_zero=None, cautious_mean=None,
        )  # fmt: skip
    return replace(size, reason=_reason(size, limits))


def _kind(p_above_zero: float, uncapped: float, left: float, *, risk_appetite: float) -> SizeKind:
    """The kind of a recommendation from enough trades; `left` is the share that cap and open risk leave."""
    if p_above_zero <= NO_EDGE:
        return "no_edge"
    if risk_appetite == 0.0:
        return "not_now"
    if uncapped / risk_appetite < LEAST_SIZE:
        return "no_recommendation"
    return "sized" if left >= LEAST_SIZE else "not_now"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _StrategyEvidence:
    """All trades of the strategy, without regard to categories."""

    outcome_r: Floats
    deviations: Floats
    """Outcomes less their mean."""
    squares: float
    """The sum of the squared deviations."""
    day: Integers
    """Days are numbered from 0, in order."""
    counts: Floats
    """The number of trades by day."""
    days: int
    mean: float
    mean_square: float
    """E[R²], including one loss that has not happened yet."""
    few_days: float
    """The factor by which variances from so few days are inflated."""
    inflation: float
    """How many times larger the variance of the mean is than for independent trades, `few_days` included."""
    copies: float
    """How many times larger the variance of a day's sum is than for independent trades; at least 1.

    Kelly's share of m bets at a time, correlated ρ, is that of one bet over 1 + (m − 1)·ρ, and so is this.
    """

    @property
    def n(self) -> int:
        return len(self.outcome_r)

    @property
    def effective_n(self) -> float:
        return self.n / max(1.0, self.inflation)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CategoryEvidence:
    """The values of one category among the trades, as arrays by value, and the value of the query."""

    category: Category
    values: tuple[str | None, ...]
    value: str = ""
    """The value of the query."""
    index: int | None = None
    """The index of the query's value; None if no trade has it."""
    codes: Integers
    n: Floats
    difference: Floats
    """The mean outcome less the strategy's."""
    variance: Floats
    """The variance of the difference, by days or waves."""
    inflation: Floats
    """How many times larger the variance is than that of independent trades."""
    spread: float
    """The variance between values, less the variance of the errors."""

    @property
    def query_n(self) -> int:
        """The number of trades with the query's value."""
        return 0 if self.index is None else int(self.n[self.index])

    def of(self, value: str) -> "_CategoryEvidence":
        """The same evidence for a query with this value."""
        return replace(self, value=value, index=self.values.index(value) if value in self.values else None)


_Designs = dict[tuple[Category, ...], Floats]
"""The designs computed so far, by the categories that are fitted together."""


@lru_cache(maxsize=STRATEGIES_CACHED)
def _designs(columns: TradeColumns) -> _Designs:
    """The designs of these trades; computed when they are needed."""
    return {}


@lru_cache(maxsize=4096)
def _quantile(doubt: float, days: int) -> float:
    """The quantile of Student's t with one degree of freedom for every twelve days after the first twelve.

    >>> [round(_quantile(0.15, days), 2) for days in (10, 36, 60, 120, 365)]
    [-1.96, -1.39, -1.19, -1.1, -1.06]
    """
    return t_quantile(doubt, freedom=max(1.0, days / DAYS_A_DEGREE - 1.0))


def _check(risk_appetite: float, cap: float) -> None:
    if not 0.0 <= risk_appetite < math.inf:
        raise Invalid(f"{risk_appetite} is not a risk appetite; give 0 or more, 1 is neutral", field="risk_appetite")
    if not 0.0 < cap <= 1.0:
        raise Invalid(f"{cap} is not a share of equity; give more than 0 and at most 1", field="cap")


def _given_categories(query: SizingQuery) -> list[tuple[Category, str]]:
    return [(name, value) for name in CATEGORIES if (value := getattr(query, name)) is not None]


def _encoded(values: Sequence[str | None]) -> CategoryColumn:
    index: dict[str | None, int] = {}
    codes = [index.setdefault(value, len(index)) for value in values]
    return CategoryColumn(codes=np.array(codes, dtype=np.int64), values=tuple(index))


@lru_cache(maxsize=STRATEGIES_CACHED)
def _strategy_evidence(columns: TradeColumns) -> _StrategyEvidence:
    outcome_r, n = columns.outcome_r, len(columns.outcome_r)
    mean = float(np.sum(outcome_r)) / max(1, n)
    deviations = outcome_r - mean
    day, days = _numbered_days(columns.day)
    few_days = _few_days(days) if days > 1 else float(n)
    # Inflation: the variance of the mean by days, or by waves, over the variance of independent trades.
    counts, sums = (
        np.bincount(day, weights=each, minlength=days).astype(np.float64) for each in (np.ones(n), deviations)
    )
    squares, mean_square = _sum_of_squares(deviations), _mean_square(outcome_r)
    inflation, copies = few_days, 1.0
    if squares > ROUNDING * n * mean_square:
        by_day = _sum_of_squares(sums)
        wider = float(_wider(wave_variances(sums, counts) / by_day, days)) if by_day > 0.0 else 0.0
        by_day *= _bessel(days) / (squares * _bessel(n))
        copies = max(1.0, by_day)
        inflation = max(copies * few_days, by_day * wider)
    return _StrategyEvidence(
        outcome_r=outcome_r,
        deviations=deviations,
        squares=squares,
        day=day,
        counts=counts,
        days=days,
        mean=mean,
        mean_square=mean_square,
        few_days=few_days,
        inflation=inflation,
        copies=copies,
    )


def _unseen_loss(outcome_r: Floats) -> float:
    """The loss that has not happened yet: 3R or 1.5 times the worst loss, whichever is more; 6R without any loss.

    >>> _unseen_loss(np.array([1.0, 1.0, -1.0])), _unseen_loss(np.array([1.0, -4.0])), _unseen_loss(np.array([1.0]))
    (3.0, 6.0, 6.0)
    """
    return (
        NO_LOSS_YET_R if _no_loss_yet(outcome_r) else max(LEAST_UNSEEN_LOSS_R, UNSEEN_LOSS * -float(np.min(outcome_r)))
    )


def _no_loss_yet(outcome_r: Floats) -> bool:
    """Whether all losses together are below 1R."""
    return -float(np.sum(np.minimum(outcome_r, 0.0))) < LEAST_LOST_R


def _mean_square(outcome_r: Floats) -> float:
    """E[R²] over the trades and one loss that has not happened yet.

    >>> _mean_square(np.array([1.0, 1.0, -4.0])), _mean_square(np.array([]))
    (13.5, 36.0)
    """
    unseen = _unseen_loss(outcome_r)
    return (_sum_of_squares(outcome_r) + unseen * unseen) / (len(outcome_r) + 1)


def _sum_of_squares(numbers: Floats) -> float:
    """The sum of squares; unlike a dot product, `einsum` does not start threads, which would take longer."""
    return float(np.einsum("i,i->", numbers, numbers))


def _numbered_days(day: Integers) -> tuple[Integers, int]:
    """The days numbered from 0 without gaps, and their number."""
    if not len(day) or int(day.max()) - int(day.min()) > WIDEST_SPAN:
        distinct, codes = np.unique(day, return_inverse=True)
        return codes.astype(np.int64), len(distinct)
    since = day - day.min()
    traded = np.bincount(since) > 0
    return (np.cumsum(traded) - 1)[since], int(np.count_nonzero(traded))


@lru_cache(maxsize=4096)
def _few_days(days: int) -> float:
    """The square of how much wider Student's t is than the normal.

    >>> round(_few_days(2), 2), round(_few_days(30), 2)
    (3.59, 1.04)
    """
    return (t_quantile(DOUBT, freedom=days - 1) / NORMAL_QUANTILE) ** 2


def _wider(ratios: Floats, days: int) -> Floats:
    """The factor by which variances by days are inflated because days resemble each other; 0 if they do not."""
    return widening(ratios, days, lambda waves: math.sqrt(_few_days(waves + 1)))


def _bessel(count: int) -> float:
    """Bessel's correction of a variance: n / (n − 1)."""
    return count / max(1, count - 1)


@lru_cache(maxsize=STRATEGIES_CACHED)
def _category_evidences(columns: TradeColumns) -> dict[Category, _CategoryEvidence]:
    """The evidence of these trades by category, computed when needed: all of it goes with the trades it is of."""
    return {}


def _category_evidence(columns: TradeColumns, category: Category) -> _CategoryEvidence:
    """How outcomes differ between the values of a category; computed once for the same trades."""
    evidences = _category_evidences(columns)
    if category not in evidences:
        evidences[category] = _compare_values(columns, category)
    return evidences[category]


def _compare_values(columns: TradeColumns, category: Category) -> _CategoryEvidence:
    """How outcomes differ between the values of a category; trades without a value count as a value of their own."""
    strategy = _strategy_evidence(columns)
    no_values = CategoryColumn(codes=np.zeros(strategy.n, dtype=np.int64), values=(None,))
    codes, values = _without_gaps(columns.categories.get(category) or no_values)
    k, days = len(values), strategy.days
    # Count and sum by day and value.
    cell = strategy.day * k + codes
    counts = np.bincount(cell, minlength=days * k).reshape(days, k)
    sums = np.bincount(cell, weights=strategy.deviations, minlength=days * k).reshape(days, k)
    n = counts.sum(axis=0).astype(np.float64)
    difference = sums.sum(axis=0) / n
    inflation = _inflation(strategy, n, difference, sums - counts * difference)
    variance = strategy.mean_square * inflation * (1.0 / n - 1.0 / max(1, strategy.n))
    return _CategoryEvidence(
        category=category,
        values=tuple(values),
        codes=codes,
        n=n,
        difference=difference,
        variance=variance,
        inflation=inflation,
        spread=_spread(n, difference, variance),
    )


def _without_gaps(column: CategoryColumn) -> tuple[Integers, list[str | None]]:
    """The codes renumbered without gaps, and the values that occur."""
    occurs = np.bincount(column.codes, minlength=len(column.values)) > 0
    if occurs.all():
        return column.codes, list(column.values)
    values = [value for value, has in zip(column.values, occurs, strict=True) if has]
    return (np.cumsum(occurs) - 1)[column.codes], values


def _inflation(strategy: _StrategyEvidence, n: Floats, difference: Floats, residuals: Floats) -> Floats:
    """How many times larger the variances of differences are by days or waves than for independent trades; at least 1.

    `residuals` has, for each day and value, the sum of outcomes less the value's mean. A value has its own inflation if
    that is larger than the inflation of all values together, which is less noisy. It is never below the strategy's:
    values that last, such as a regime's, share what the days have in common.
    """
    squares = strategy.squares - float(np.sum(n * difference * difference))
    if len(n) < 2 or squares <= ROUNDING * strategy.n * strategy.mean_square:
        return np.full(len(n), strategy.inflation)
    independent = squares / (strategy.n - 1) * (1.0 / n - 1.0 / strategy.n)
    by_day, by_waves = _variances(strategy, n, residuals)
    together = float(np.sum(n * by_day) / np.sum(n * independent))
    with np.errstate(all="ignore"):
        wider = _wider(by_waves / by_day[:, None], strategy.days)
        wider_together = float(_wider(n @ by_waves / np.sum(n * by_day), strategy.days))
    of_all = max(strategy.inflation, max(1.0, together) * strategy.few_days, together * wider_together)
    return np.maximum(of_all, by_day / independent * np.maximum(strategy.few_days, wider))


def _variances(strategy: _StrategyEvidence, n: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    """The variance of each value's mean less the mean of all: clustered by day (Liang & Zeger 1986), and by waves."""
    # A day's part in the value's mean, less its part in the mean of all.
    parts = np.ascontiguousarray((residuals / n - residuals.sum(axis=1, keepdims=True) / strategy.n).T)
    by_waves = wave_variances(parts, np.broadcast_to(strategy.counts, parts.shape))
    by_day = np.einsum("vd,vd->v", parts, parts)
    return by_day * _bessel(strategy.days), by_waves * _bessel(strategy.days)


def _spread(n: Floats, difference: Floats, variance: Floats) -> float:
    """The variance between values by the method of moments, less the variance of the errors; never negative.

    >>> n, difference = np.array([50.0, 50.0]), np.array([0.3, -0.3])
    >>> round(_spread(n, difference, np.array([0.01, 0.01])), 6), _spread(n, difference, np.array([0.1, 0.1]))
    (0.16, 0.0)
    """
    total = float(np.sum(n))
    scale = total - _sum_of_squares(n) / max(1.0, total)
    between = float(np.sum(n * (difference * difference - variance)))
    return max(0.0, between / scale) if len(n) > 1 else 0.0


def _effects(
    strategy: _StrategyEvidence, categories: Sequence[_CategoryEvidence], designs: _Designs
) -> tuple[list[float], float]:
    """The effect of each category on the mean, and the variance of their sum."""
    differing = [category for category in categories if category.spread > 0.0]
    unfamiliar = math.fsum(_unfamiliar_variance(strategy, category) for category in categories)
    effects, variance = _fit(strategy, differing, designs) if differing else ({}, 0.0)
    return [effects.get(category.category, 0.0) for category in categories], unfamiliar + variance


def _fit(
    strategy: _StrategyEvidence, categories: Sequence[_CategoryEvidence], designs: _Designs
) -> tuple[dict[Category, float], float]:
    """Fit the effects of categories whose values differ together; return them and the variance of their sum.

    A single category with values of equal size keeps the share 1 − error² / difference² (James & Stein 1961).
    """
    # Stack the values of all categories into one vector.
    n, inflation = (np.concatenate([getattr(each, name) for each in categories]) for name in ("n", "inflation"))
    spread = np.concatenate([np.full(len(each.n), each.spread) for each in categories])
    difference = np.concatenate([each.difference for each in categories])
    contrasts = [_contrast(strategy, each) for each in categories]
    weights = np.concatenate(contrasts) * np.sqrt(inflation)
    # Solve Henderson's mixed model equations for the effects and for the variance of the query's effect.
    names = tuple(each.category for each in categories)
    if names not in designs:
        designs[names] = _design(strategy, categories)
    system = designs[names] + np.diag(strategy.mean_square * inflation / spread)
    solved = np.linalg.solve(system, np.column_stack([n * difference, weights]))
    parts = np.split(solved[:, 0], np.cumsum([len(each.n) for each in categories])[:-1])
    effects = {
        each.category: float(contrast @ part) for each, contrast, part in zip(categories, contrasts, parts, strict=True)
    }
    return effects, strategy.mean_square * float(weights @ solved[:, 1])


def _unfamiliar_variance(strategy: _StrategyEvidence, category: _CategoryEvidence) -> float:
    """The extra variance for a value that was rarely traded; it fades with the square of the value's trades.

    It is the mean of the spread between the values and the variance of ten trades. Without it, a strategy that was only
    ever long would be as sure of shorts.
    """
    values = len(category.n)
    unseen = ((values - 1) * category.spread + strategy.mean_square / SCEPTICAL_TRADES) / max(1, values)
    return unseen * (SCEPTICAL_TRADES / (SCEPTICAL_TRADES + category.query_n)) ** 2


def _contrast(strategy: _StrategyEvidence, category: _CategoryEvidence) -> Floats:
    """The weights that give the query's value less the mean of all trades; zeros if no trade has the value."""
    weights = np.zeros(len(category.n))
    if category.index is not None:
        weights -= category.n / strategy.n
        weights[category.index] += 1.0
    return weights


def _design(strategy: _StrategyEvidence, categories: Sequence[_CategoryEvidence]) -> Floats:
    """The number of trades that each two values share, less what chance would give."""
    n = np.concatenate([each.n for each in categories])
    system = np.diag(n) - np.outer(n, n) / strategy.n
    ends = np.cumsum([len(each.n) for each in categories])
    slices = [slice(end - len(each.n), end) for each, end in zip(categories, ends, strict=True)]
    for (rows, first), (columns, second) in combinations(zip(slices, categories, strict=True), 2):
        shared = _shared_trades(first, second)
        system[rows, columns] += shared
        system[columns, rows] += shared.T
    return system


def _shared_trades(first: _CategoryEvidence, second: _CategoryEvidence) -> Floats:
    """The number of trades by value of the first and value of the second category."""
    shape = len(first.n), len(second.n)
    pairs = np.bincount(first.codes * shape[1] + second.codes, minlength=shape[0] * shape[1])
    return pairs.reshape(shape).astype(np.float64)


def _strategy_level(strategy: _StrategyEvidence) -> SizeLevel:
    effective_n = strategy.effective_n
    shrinkage = effective_n / (effective_n + SCEPTICAL_TRADES)
    effect = strategy.mean * shrinkage
    if _no_loss_yet(strategy.outcome_r):
        effect = (effective_n * strategy.mean - NO_LOSS_YET_R) / (effective_n + SCEPTICAL_TRADES + 1.0)
    return SizeLevel(
        name="strategy",
        value=None,
        n=strategy.n,
        difference=strategy.mean,
        error=math.sqrt(strategy.mean_square / effective_n) if strategy.n else None,
        spread=math.sqrt(strategy.mean_square / SCEPTICAL_TRADES),
        shrinkage=shrinkage,
        effect=effect,
    )


def _level(category: _CategoryEvidence, effect: float) -> SizeLevel:
    index = category.index
    difference = 0.0 if index is None else float(category.difference[index])
    return SizeLevel(
        name=category.category,
        value=category.value,
        n=category.query_n,
        difference=difference,
        error=None if index is None else math.sqrt(category.variance[index]),
        spread=math.sqrt(category.spread),
        shrinkage=effect / difference if difference else 0.0,
        effect=effect,
    )


def _wins_and_losses(outcome_r: Floats) -> tuple[float | None, float | None, float | None]:
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


def _reason(size: PositionSize, limits: _Limits) -> str:
    """The reason for the size, in a few sentences."""
    if limits.known.hides_losers:
        return f"{limits.known.in_words}: neither a size nor a mean can be given."
    if size.n < FEWEST_TRADES:
        counted = f"Only {size.n} trade{'' if size.n == 1 else 's'}" if size.n else "No trades"
        unknown = f" R is unknown for {size.unknown} more." if size.unknown else ""
        return f"{counted} with a result in R; {FEWEST_TRADES} are needed.{unknown}"
    if size.risk_appetite == 0.0:
        return "Risk appetite is 0: nothing is to be risked."
    return " ".join([_edge(size, limits), *_reductions(size, limits), *_doubts(size)])


def _edge(size: PositionSize, limits: _Limits) -> str:
    mean, deviation, cautious_mean = size.mean or 0.0, size.deviation or 0.0, size.cautious_mean or 0.0
    expected = f"{signed(mean, 2)}R a trade expected from {_counted(limits.known)}"
    tried = f" for {size.strategies} strategies tried" if size.strategies > 1 else ""
    if size.kind == "no_edge":
        return f"{expected}: no edge to bet on."
    if size.kind == "no_recommendation":
        return f"{expected}, give or take {deviation:.2f}R: too unsure for a recommendation{tried}."
    appetite = "" if size.risk_appetite == 1.0 else f" times a risk appetite of {size.risk_appetite:.2g}"
    share = SHARE_OF_KELLY * cautious_mean / size.mean_square * size.risk_appetite
    capped = f", capped at {size.cap:.1%}" if size.cap < size.uncapped and not _is_reduced(size) else ""
    sure = f"at least {signed(cautious_mean, 2)}R with {1 - limits.doubt:.0%}{tried}"
    return f"{expected}, {sure}: a quarter of Kelly{appetite} is {share:.2%} of equity{capped}."


def _counted(known: KnownOutcomes) -> str:
    """The number of trades of a mean in R, of how many there are."""
    if not known.unknown:
        return f"{known.n} trades"
    return f"{known.known} of {known.n} trades (R is unknown for {known.unknown})"


def _is_reduced(size: PositionSize) -> bool:
    """Whether copies or unknown outcomes make the size smaller than the share of Kelly."""
    return size.copies >= LEAST_COPIES or size.unknown > 0


def _reductions(size: PositionSize, limits: _Limits) -> Iterator[str]:
    """What makes the size smaller than the share of Kelly."""
    if size.uncapped > 0.0 and _is_reduced(size):
        parts = []
        if size.unknown:
            parts.append(f"times {limits.known.known / limits.known.n:.2f} (known R)")
        if size.copies >= LEAST_COPIES:
            parts.append(f"over {size.copies:.1f} (trades of a day end alike)")
        capped = f", capped at {size.cap:.1%}" if size.cap < size.uncapped else ""
        yield f"That {', '.join(parts)} is {size.uncapped:.2%}{capped}."
    risk = size.open_risk
    if risk.share and size.recommended is not None and size.recommended < min(size.cap, size.uncapped):
        left = f"{size.recommended:.1%}" if size.recommended else "nothing"
        yield f"{risk.share:.1%} is already at risk on the same signal: {left} is left."
    if risk.unknown and size.uncapped > 0.0:
        yield f"The risk of {risk.unknown} open trade{'' if risk.unknown == 1 else 's'} on it is unknown."


def _doubts(size: PositionSize) -> Iterator[str]:
    if size.no_loss_yet:
        yield f"There was no loss yet: one of {NO_LOSS_YET_R:g}R is counted."
    for level in size.levels:
        if level.n == 0:
            yield f"{level.value} was never traded before: more doubt."


def all_trades(closed: ClosedTrades) -> AllTrades:
    """The numbers of the trades behind a size."""
    known = closed.in_r.known
    return AllTrades(won=known.known_won, n=known.known, unknown=known.unknown, left_out=closed.left_out)


def won_counts(trades: TradeColumns, query: SizingQuery) -> tuple[WonCount, ...]:
    """The trades with a result in R of the query's direction and symbol, then with one category of the query more each.

    >>> from datetime import date
    >>> traded = trade_columns(
    ...     SizedTrade(outcome_r=1.0 if n < 4 else -1.0, day=date(2026, 1, 5), direction="long", symbol="BTC",
    ...                regime="ranging" if n % 2 else "volatile") for n in range(9))
    >>> [count.text for count in won_counts(traded, SizingQuery(direction="long", symbol="BTC", regime="ranging"))]
    ['4 of 9 won', '2 of 4 in ranging markets']
    """
    here = _with_value(trades, "direction", query.direction) & _with_value(trades, "symbol", query.symbol)
    categories: dict[LevelName, str | None] = {}
    counts = [_count(trades, here, categories)]
    for category in NARROWER:
        value = getattr(query, category)
        if value is not None:
            here, categories = here & _with_value(trades, category, value), {**categories, category: value}
            counts.append(_count(trades, here, categories))
    return tuple(counts)


def _count(trades: TradeColumns, here: Booleans, categories: Mapping[LevelName, str | None]) -> WonCount:
    won = int((here & (trades.outcome_r > 0.0)).sum())
    return WonCount(won=won, n=int(here.sum()), categories=categories)


def _with_value(trades: TradeColumns, category: Category, value: str | None) -> Booleans:
    """Whether each trade has a value of a category; all have that of None."""
    column = trades.categories[category]
    if value is None:
        return np.full(len(column.codes), True)
    index = column.values.index(value) if value in column.values else -1
    return np.equal(column.codes, index)
