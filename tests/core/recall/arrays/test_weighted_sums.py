"""Weighted sums by level: columns give the results of the formulas, in either precision."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core import serial_correlation
from backsight.core.context import ContextVector
from backsight.core.instants import EPOCH, Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.quantiles import jeffreys
from backsight.core.recall.arrays import weighted_sums
from backsight.core.recall.arrays.base_rate import base_rate
from backsight.core.recall.arrays.columns import (
    append_episodes,
    columns_of,
    micros,
    setting_of,
)
from backsight.core.recall.arrays.selection import TradeFilter
from backsight.core.recall.base_rate import ROUNDING, BaseRate, BaseRateLevel, OpenTrade
from backsight.core.recall.score import Situation, recency, similarity
from backsight.core.statistics import beta_quantile, t_quantile
from backsight.core.trades.trade import OutcomeUnit
from core.recall.arrays.test_base_rate import (
    DAY,
    EPISODES,
    EVERYBODY,
    HOURS,
    MICROSECOND,
    MODES,
    NOON,
    NUMBERS,
    PLACES,
    QUERIES,
    RESULTS,
    SIDES,
    STRATEGIES,
    SYMBOLS,
    UNITS,
    a_trade,
    a_year,
    an_open_trade,
    strategy_level,
)


def likeness(query: Situation, symbol: str, context: ContextVector) -> float:
    """The kernel K by the plain score: Sim of the query's numbers alone; 1 where no number can be compared."""
    given = {name: getattr(query.context, name) for name in NUMBERS}
    if all(value is None or (name == "price" and symbol != query.symbol) for name, value in given.items()):
        return 1.0
    numbers = Situation(symbol=query.symbol, context=ContextVector(**given))
    return similarity(numbers, symbol=symbol, direction=None, context=context)


@dataclass
class Plain:
    """A weighted mean with errors clustered by day, from (weight, value, day) of each trade."""

    weighted: list[tuple[float, float, int]]

    @property
    def mean(self) -> float:
        return math.fsum(w * x for w, x, _ in self.weighted) / math.fsum(w for w, _, _ in self.weighted)

    @property
    def days(self) -> set[int]:
        return {day for w, _, day in self.weighted if w > 0}

    @property
    def error(self) -> float:
        total, mean, g = math.fsum(w for w, _, _ in self.weighted), self.mean, len(self.days)
        by_day = [math.fsum(w * (x - mean) for w, x, at in self.weighted if at == day) for day in self.days]
        return math.sqrt(g / (g - 1)) * math.hypot(*(each / total for each in by_day))

    @property
    def effective_n(self) -> float:
        p, total = self.mean, math.fsum(w for w, _, _ in self.weighted)
        if len(self.days) == 1:
            return 1.0
        if not any(w * x for w, x, _ in self.weighted) or not any(w * (1 - x) for w, x, _ in self.weighted):
            by_day = [math.fsum(w for w, _, at in self.weighted if at == day) for day in self.days]
            return total**2 / math.fsum(each**2 for each in by_day)
        kish = total**2 / math.fsum(w * w for w, _, _ in self.weighted)
        widened = t_quantile(0.95, freedom=len(self.days) - 1) / 1.6448536269514722
        return min(kish, p * (1 - p) / (self.error * widened) ** 2) if self.error > 1e-10 else kish

    def interval(self, rate: "Plain | None", share: float, swing: float) -> tuple[float, float] | None:
        """`share` of the trades of the win rate have an outcome in the unit of this mean."""
        if len(self.days) == 1:
            return None
        reach = t_quantile(0.95, freedom=len(self.days) - 1) * self.error
        low, high = (0.0, 0.0) if rate is None or not share else jeffreys(rate.mean, share * rate.effective_n)
        p = 0.0 if rate is None or not share else rate.mean
        return self.mean - max(reach, swing * (p - low)), self.mean + max(reach, swing * (high - p))


@dataclass
class PlainLevel:
    """The closed and open trades of a level at an instant."""

    trades: Sequence[Episode]
    open_trades: Sequence[OpenTrade]
    query: Situation
    as_of: datetime
    swings: Mapping[OutcomeUnit, float] = field(default_factory=dict)
    """The strategy's mean win less its mean loss, by unit."""

    def narrowed(self, name: str) -> "PlainLevel":
        def has(trade: Any) -> bool:
            if name == "symbol":
                return trade.symbol == self.query.symbol or trade.symbol in self.query.joined
            sides = (self.query, trade) if name == "direction" else (self.query.context, trade.context)
            return bool(getattr(sides[0], name) == getattr(sides[1], name))

        trades = [trade for trade in self.trades if has(trade)]
        open_trades = [trade for trade in self.open_trades if has(trade)]
        return replace(self, trades=trades, open_trades=open_trades)

    @property
    def known(self) -> KnownOutcomes:
        """Of how many winners and losers R is known."""
        results = [(_won(each), each.outcome is not None and each.outcome.unit == "R") for each in self.trades]
        return KnownOutcomes(
            won=sum(bool(won) for won, _ in results),
            lost=sum(not won for won, _ in results),
            known_won=sum(bool(won) and known for won, known in results),
            known_lost=sum(not won and known for won, known in results),
        )

    def with_swings(self) -> "PlainLevel":
        return replace(self, swings={unit: self._swing(unit) for unit in UNITS})

    def _swing(self, unit: OutcomeUnit) -> float:
        in_unit = [(e.outcome.value, e) for e in self.trades if e.outcome and e.outcome.unit == unit]
        sides: list[float | None] = []
        for won in (True, False):
            weighted = [self._weighed(episode, x) for x, episode in in_unit if _won(episode) == won]
            total = math.fsum(w for w, _, _ in weighted)
            sides.append(math.fsum(w * x for w, x, _ in weighted) / total if total > 1e-150 else None)
        if None in sides:
            return 2 * abs(sides[0] or sides[1] or 0.0)
        return max(0.0, (sides[0] or 0.0) - (sides[1] or 0.0))

    def _weighed(self, trade: Episode, x: float) -> tuple[float, float, int]:
        weight = likeness(self.query, trade.symbol, trade.context) * recency(trade.ended_at, now=self.as_of)
        return weight, x, (trade.ended_at - EPOCH).days

    @property
    def rate(self) -> Plain | None:
        weighted = [self._weighed(trade, float(_won(trade) or 0.0)) for trade in self.trades]
        return Plain(weighted) if any(w for w, _, _ in weighted) else None

    def mean(self, unit: OutcomeUnit) -> Plain | None:
        closed = [self._weighed(e, e.outcome.value) for e in self.trades if e.outcome and e.outcome.unit == unit]
        today = (self.as_of - EPOCH).days
        still = [
            (likeness(self.query, each.symbol, each.context), each.outcome.value, today)
            for each in self.open_trades
            if each.outcome and each.outcome.unit == unit
        ]
        return Plain([*closed, *still]) if any(w for w, _, _ in [*closed, *still]) else None


def _won(episode: Episode) -> bool | None:
    if episode.kind != "trade":
        return None
    result = episode.pnl if episode.pnl is not None else None if episode.outcome is None else episode.outcome.value
    return None if result is None else result > 0


def counted(
    episodes: Iterable[Episode], trade_filter: TradeFilter, *, as_of: datetime, seen_at: datetime | None
) -> tuple[list[Episode], int]:
    """The trades that count, and the number of trades left out because they ended before results began to fall."""
    known = [
        episode
        for episode in episodes
        if _won(episode) is not None
        and episode.known_at <= as_of
        and (seen_at is None or episode.recorded_at <= seen_at)
        and trade_filter.strategy_name in (None, episode.strategy_name)
        and trade_filter.mode in (None, episode.mode)
    ]
    trades = [e for e in known if e.ended_at >= trade_filter.falling_since.get((e.strategy_name, e.symbol), e.ended_at)]
    return trades, len(known) - len(trades)


def check(level: BaseRateLevel, plain: PlainLevel, *, rel: float, withheld: bool) -> None:
    rate = plain.rate
    assert (level.withheld is not None) == withheld
    assert (level.n, level.open_ids) == (len(plain.trades), tuple(each.id for each in plain.open_trades))
    assert level.days == (len(rate.days) if rate else 0)
    assert level.win_rate == (pytest.approx(rate.mean, rel=rel) if rate else None)
    assert level.effective_n == pytest.approx(rate.effective_n if rate else 0.0, rel=10 * rel)
    if rate and level.win_rate_interval:
        alpha, beta = 0.5 + rate.mean * rate.effective_n, 0.5 + (1 - rate.mean) * rate.effective_n
        low, high = (beta_quantile(p, alpha=alpha, beta=beta) for p in (0.05, 0.95))
        assert level.win_rate_interval == pytest.approx((min(low, rate.mean), max(high, rate.mean)), abs=10 * rel)
    means = {unit: expected for unit in UNITS if (expected := plain.mean(unit)) is not None and not withheld}
    assert [mean.unit for mean in level.outcomes] == list(means)
    for mean in level.outcomes:
        same = means[mean.unit]
        off = rel * max(abs(x) for _, x, _ in same.weighted)
        assert mean.mean == pytest.approx(same.mean, rel=rel, abs=off)
        swing = plain.swings[mean.unit]
        interval = same.interval(rate, mean.n / level.n if level.n else 0.0, swing)
        assert mean.interval == (interval and pytest.approx(interval, rel=rel, abs=off + 20 * rel * swing))


def check_all(rate: BaseRate, plain: PlainLevel, *, rel: float) -> None:
    withheld = False
    for level in rate.levels:
        plain = plain if level.name == "strategy" else plain.narrowed(level.name)
        withheld |= plain.known.hides_losers
        check(level, plain, rel=rel, withheld=withheld)
    telling = [level for level in rate.levels if level.effective_n >= 20 * (1 - ROUNDING)]
    assert rate.headline == (telling[-1] if telling else rate.levels[0])
    assert rate.too_little == (rate.headline.effective_n < 5 * (1 - ROUNDING))


OPEN_TRADES = st.lists(st.tuples(PLACES, SYMBOLS, SIDES, RESULTS), max_size=4)


SINCE = st.integers(-60, 4).map(lambda quarters: NOON + quarters * DAY / 4)


TRADE_FILTERS = st.builds(
    TradeFilter,
    strategy_name=st.none() | STRATEGIES,
    mode=st.none() | MODES,
    falling_since=st.just({}) | st.dictionaries(st.tuples(STRATEGIES, SYMBOLS), SINCE, max_size=2),
)


INSTANTS = st.builds(lambda hours, k: NOON - timedelta(hours=hours) + k * MICROSECOND, HOURS, st.integers(-1, 1))


@given(
    st.lists(EPISODES, max_size=3), OPEN_TRADES, QUERIES, TRADE_FILTERS, INSTANTS, st.none() | INSTANTS, st.booleans()
)
@settings(deadline=None, max_examples=150)
def test_columns_give_the_results_of_the_formulas(
    batches: list[list[Episode]],
    marks: list[Any],
    query: Situation,
    trade_filter: TradeFilter,
    as_of: datetime,
    seen_at: datetime | None,
    single: bool,
) -> None:
    open_trades = [
        an_open_trade(n, symbol=symbol, direction=side, outcome=result, context=ContextVector(**place))
        for n, (place, symbol, side, result) in enumerate(marks)
    ]
    columns = columns_of([], block=4)
    for batch in batches:
        columns = append_episodes(columns, batch)
    last = {each.id: each for batch in batches for each in batch}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weighted_sums, "CHUNK_ROWS", 8)
        patch.setattr(serial_correlation, "DAYS_A_WAVE", 1_000)  # waves have a test of their own
        patch.setattr(weighted_sums, "MAX_DOUBLE_TRADES", -1 if single else weighted_sums.MAX_DOUBLE_TRADES)
        rate = base_rate(
            columns,
            query,
            trade_filter=trade_filter,
            horizon=Horizon(as_of=as_of, seen_at=seen_at),
            open_trades=open_trades,
        )
    trades, left_out = counted(last.values(), trade_filter, as_of=as_of, seen_at=seen_at)
    assert rate.left_out == left_out
    check_all(rate, PlainLevel(trades, open_trades, query, as_of).with_swings(), rel=3e-5 if single else 1e-9)


@pytest.mark.parametrize("in_order", [True, False])
def test_many_trades_are_summed_as_a_few_are(in_order: bool) -> None:
    trades = a_year(np.random.default_rng(1), here=60_000, elsewhere=60_000, in_order=in_order)
    query = Situation(context=ContextVector(regime="ranging"))
    rate = base_rate(trades, query, trade_filter=EVERYBODY, horizon=Horizon(as_of=NOON))
    weight = 1.0 / np.sqrt(1.0 + (micros(NOON) - trades.ended_at) / 86_400e6 / 30.0)
    assert [level.n for level in rate.levels] == [120_000, 60_000]
    assert rate.levels[0].win_rate == pytest.approx(weight[trades.outcome > 0].sum() / weight.sum(), rel=1e-6)
    here = trades.setting == setting_of("ranging")
    assert rate.levels[1].outcomes[0].mean == pytest.approx(np.average(trades.outcome[here], weights=weight[here]))


def test_single_precision_agrees_with_double(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    trades = a_year(rng, here=10_000, elsewhere=10_000)
    for name in NUMBERS:
        getattr(trades, name)[:] = np.where(rng.random(20_000) < 0.1, np.nan, rng.uniform(0.01, 0.2, 20_000))
    numbers: dict[str, Any] = dict.fromkeys(NUMBERS, 0.1)
    query = Situation(context=ContextVector(regime="ranging", **numbers), symbol="XAUUSD")
    single = base_rate(trades, query, trade_filter=EVERYBODY, horizon=Horizon(as_of=NOON))
    monkeypatch.setattr(weighted_sums, "MAX_DOUBLE_TRADES", 20_000)
    double = base_rate(trades, query, trade_filter=EVERYBODY, horizon=Horizon(as_of=NOON))
    for one, other in zip(single.levels, double.levels, strict=True):
        assert (one.n, one.days) == (other.n, other.days)
        assert one.win_rate == pytest.approx(other.win_rate, rel=1e-6)
        assert one.effective_n == pytest.approx(other.effective_n, rel=1e-6)
        assert one.outcomes[0].interval == pytest.approx(other.outcomes[0].interval, rel=1e-5)


@pytest.mark.parametrize(("drawdown", "days_alike"), [(0.02, 60), (0.75, 1)])
def test_without_similar_trades_the_nearest_count_however_far(
    monkeypatch: pytest.MonkeyPatch, drawdown: float, days_alike: int
) -> None:
    """At a distance of 15 kernel widths, a trade that is a little nearer weighs e^20 times as much."""
    trades = [a_trade(n, r=(-1.0) ** n, days_ago=n, drawdown_pct=0.04 if n == 7 else 0.0) for n in range(60)]
    query = Situation(context=ContextVector(drawdown_pct=drawdown))
    double = strategy_level(trades, query=query)
    monkeypatch.setattr(weighted_sums, "MAX_DOUBLE_TRADES", -1)
    single = strategy_level(trades, query=query)
    assert double.effective_n == pytest.approx(days_alike, rel=0.3)
    assert single.effective_n == pytest.approx(double.effective_n, rel=1e-5)
