"""The base rate: against a plain reference, by hand at the edges, and how often its intervals hold the truth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsight.core.context import ContextVector
from backsight.core.memory.episodic import Episode
from backsight.core.recall.base_rate import (
    EPOCH,
    ROUNDING,
    Trades,
    base_rate,
    beta_05,
    jeffreys,
    t_95,
    trades_of,
    weights,
)
from backsight.core.recall.rates import BaseRate, Level, MeanOutcome, OpenTrade
from backsight.core.recall.score import Query, recency, similarity
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.statistics import beta_quantile, t_quantile
from backsight.core.trades.trade import Outcome, OutcomeUnit
from backsight.testing import T0, an_episode

DAY = timedelta(days=1)
NOON = datetime(2026, 6, 4, 12, tzinfo=T0.tzinfo)
UNITS: tuple[OutcomeUnit, ...] = ("R", "vol", "pct")
NUMBERS = ("price", "atr_d1", "atr_h1", "spread_as_atr_pct", "drawdown_pct")
EVERYTHING = Query(
    direction="long",
    symbol="XAUUSD",
    context=ContextVector(regime="ranging", volatility_regime="low", session="asia"),
)


def a_trade(number: int = 1, *, r: float = 1.0, days_ago: float = 0.0, **changes: Any) -> Episode:
    """A closed trade that won or lost so many R so many days ago."""
    fields = ("regime", "volatility_regime", "session", *NUMBERS)
    context = ContextVector(**{name: changes.pop(name) for name in fields if name in changes})
    return an_episode(number, pnl_r=r, context=context, **({"ended_at": NOON - days_ago * DAY} | changes))


def an_open_trade(number: int = 1, *, r: float | None = -2.0, **changes: Any) -> OpenTrade:
    made: dict[str, Any] = {"symbol": "XAUUSD", "direction": "long", "context": ContextVector()}
    outcome = None if r is None else Outcome(value=r, unit="R")
    return OpenTrade(id=f"open-{number}", **(made | {"outcome": outcome} | changes))


def asked(trades: Sequence[Episode], query: Query = Query(), **how: Any) -> BaseRate:  # noqa: B008
    return base_rate(trades_of(trades), query, now=NOON, **how)


def strategy_of(trades: Sequence[Episode], **how: Any) -> Level:
    return asked(trades, **how).levels[0]


def one_a_day(*results: float) -> list[Episode]:
    return [a_trade(n, r=r, days_ago=n) for n, r in enumerate(results)]


def at_once(*results: float) -> list[Episode]:
    """Trades of one instant, so that all weigh the same, each said to be of a day of its own by `day_by_day`."""
    return [a_trade(n, r=r) for n, r in enumerate(results)]


def day_by_day(trades: Sequence[Episode], days: Sequence[int] | None = None) -> Trades:
    """Trades of equal weight whose days are told apart."""
    columns = trades_of(trades)
    return replace(columns, day=np.array(range(len(trades)) if days is None else days, dtype=np.intp))


# By hand


def test_four_of_ten_on_ten_days() -> None:
    """Equal weights: Kish says 10; days say .24 / V with V = 10/9 · .24/10, and t at 9 of 1.833."""
    found = base_rate(day_by_day(at_once(*[2.0] * 4, *[-1.0] * 6)), Query(), now=NOON).headline
    widened = 1.833113 / 1.644854
    assert (found.n, found.days) == (10, 10)
    assert found.win_rate == pytest.approx(0.4)
    assert found.effective_n == pytest.approx(9 / widened**2, rel=1e-5)
    assert found.win_rate_interval == pytest.approx(jeffreys(0.4, found.effective_n))
    (mean,) = found.outcomes
    reach = 1.833113 * math.sqrt(10 / 9 * (4 * 1.8**2 + 6 * 1.2**2)) / 10
    assert (mean.unit, mean.n, mean.open) == ("R", 10, 0)
    assert mean.mean == pytest.approx(0.2)
    assert mean.interval == pytest.approx((0.2 - reach, 0.2 + reach), rel=1e-5)


def test_what_is_old_weighs_less() -> None:
    found = strategy_of([a_trade(1, r=1.0), a_trade(2, r=-1.0, days_ago=90)])
    assert found.win_rate == pytest.approx(1.0 / 1.5)
    assert found.outcomes[0].mean == pytest.approx((1.0 - 0.5) / 1.5)


def test_days_that_end_alike_are_one_draw_each() -> None:
    """Eight days of five trades, all won or all lost: V is that of eight, and never mind the forty."""
    results = [1.0 if day % 2 else -1.0 for day in range(8) for _ in range(5)]
    found = base_rate(day_by_day(at_once(*results), [n // 5 for n in range(40)]), Query(), now=NOON).headline
    assert found.effective_n == pytest.approx(7 / (t_quantile(0.95, freedom=7) / 1.644854) ** 2, rel=1e-5)
    assert found.sentence.startswith("50 % of 40 trades were won (90 %: 2")


def test_more_of_the_same_day_is_no_more_evidence() -> None:
    once = at_once(1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0)
    first = base_rate(day_by_day(once), Query(), now=NOON).headline
    thrice = base_rate(day_by_day([*once, *once, *once], [*range(8)] * 3), Query(), now=NOON).headline
    assert first.effective_n == pytest.approx(thrice.effective_n)
    assert first.win_rate_interval == pytest.approx(thrice.win_rate_interval)
    assert first.outcomes[0].interval == pytest.approx(thrice.outcomes[0].interval)


def test_a_day_like_every_other_leaves_kish() -> None:
    found = base_rate(day_by_day(at_once(*[1.0, -1.0] * 6), [n // 2 for n in range(12)]), Query(), now=NOON).headline
    assert found.effective_n == pytest.approx(12.0)


# Edges


@pytest.mark.parametrize("query", [Query(), EVERYTHING, Query(context=ContextVector(atr_d1=3.0, price=1.0))])
def test_nothing_remembered_is_too_little(query: Query) -> None:
    found = asked([], query)
    assert (found.too_little, found.sentence) == (True, "too little to say (n=0)")
    assert all((level.n, level.days, level.effective_n, level.win_rate) == (0, 0, 0.0, None) for level in found.levels)
    assert all(level.win_rate_interval is None and level.outcomes == () for level in found.levels)


def test_one_trade_is_too_little() -> None:
    found = asked([a_trade(r=2.0)])
    assert (found.too_little, found.headline.effective_n, found.headline.win_rate) == (True, 1.0, 1.0)
    assert found.headline.outcomes == (MeanOutcome(unit="R", n=1, open=0, mean=2.0, interval=None),)


def test_three_trades_are_too_little() -> None:
    found = asked(one_a_day(1.0, -1.0, 1.0))
    assert (found.too_little, found.sentence) == (True, "too little to say (n=3)")


def test_one_day_is_one_draw_however_many_trades_it_had() -> None:
    found = asked([a_trade(n, r=(-1.0) ** n) for n in range(300)])
    assert (found.headline.effective_n, found.headline.days) == (1.0, 1)
    assert found.sentence == "too little to say (n=300, effective 1)"
    assert found.headline.outcomes[0].interval is None


@pytest.mark.parametrize(("r", "rate"), [(1.0, 1.0), (-1.0, 0.0), (0.0, 0.0)])
def test_where_all_end_alike_each_day_is_one_draw(r: float, rate: float) -> None:
    days = [n // 5 for n in range(100)]
    found = base_rate(day_by_day(at_once(*[r] * 100), days), Query(), now=NOON).headline
    assert found.win_rate == rate
    assert found.effective_n == pytest.approx(20.0)
    low, high = found.win_rate_interval or (0.5, 0.5)
    assert low <= rate <= high
    assert 0.05 < high - low < 0.15
    assert found.outcomes[0].interval == pytest.approx((r, r))


def test_trades_that_lack_every_number_asked_for_say_nothing() -> None:
    found = asked(one_a_day(1.0, -1.0, 1.0), Query(context=ContextVector(atr_d1=3.0))).headline
    assert (found.n, found.effective_n, found.win_rate, found.outcomes) == (3, 0.0, None, ())


def test_a_trade_whose_outcome_has_no_unit_counts_as_won_or_lost() -> None:
    found = strategy_of([a_trade(1, r=1.0), a_trade(2, outcome=None, pnl=-5.0, days_ago=1)])
    assert (found.n, found.outcomes[0].n, found.outcomes[0].mean) == (2, 1, 1.0)
    assert 0.0 < (found.win_rate or 0.0) < 1.0


def test_only_trades_with_a_result_count() -> None:
    others = [a_trade(1, kind="call"), a_trade(2, kind="inaction", pnl=None, outcome=None)]
    assert len(trades_of([*others, a_trade(3), a_trade(4, pnl=None, outcome=None)])) == 1


def test_units_are_never_mixed() -> None:
    percent = [a_trade(n, days_ago=n, outcome=Outcome(value=0.01 * n, unit="pct")) for n in range(10, 14)]
    r = one_a_day(2.0, -1.0, 3.0)
    mixed = {mean.unit: mean for mean in strategy_of([*r, *percent]).outcomes}
    assert list(mixed) == ["R", "pct"]
    for alone in (*strategy_of(r).outcomes, *strategy_of(percent).outcomes):
        assert mixed[alone.unit].n == alone.n
        assert mixed[alone.unit].mean == pytest.approx(alone.mean)
        assert mixed[alone.unit].interval == pytest.approx(alone.interval)


def test_huge_outcomes_do_not_overflow() -> None:
    (mean,) = strategy_of([*one_a_day(1e300, -1e300, 1e300)]).outcomes
    assert mean.interval is not None
    assert all(math.isfinite(end) for end in mean.interval)


# Levels


def test_levels_go_from_broad_to_narrow_one_category_at_a_time() -> None:
    found = asked([a_trade(regime="ranging", volatility_regime="low", session="asia")], EVERYTHING)
    named = [(level.name, level.value) for level in found.levels]
    assert named == [
        ("strategy", None),
        ("direction", "long"),
        ("symbol", "XAUUSD"),
        ("regime", "ranging"),
        ("volatility_regime", "low"),
        ("session", "asia"),
    ]
    assert [level.n for level in found.levels] == [1] * 6


def test_a_category_that_is_not_asked_for_is_skipped() -> None:
    found = asked([a_trade()], Query(symbol="XAUUSD", context=ContextVector(session="asia")))
    assert [(level.name, level.n) for level in found.levels] == [("strategy", 1), ("symbol", 1), ("session", 0)]


def test_a_symbol_never_traded_has_no_trades() -> None:
    assert [level.n for level in asked([a_trade()], Query(symbol="BTC")).levels] == [1, 0]


def test_the_headline_is_the_narrowest_level_that_says_enough() -> None:
    long = [a_trade(n, r=(-1.0) ** (n // 3), days_ago=n, regime="ranging") for n in range(60)]
    few = [a_trade(n, r=(-1.0) ** n, days_ago=n, regime="volatile", direction="long") for n in range(60, 70)]
    everywhere = asked([*long, *few], Query(direction="long", context=ContextVector(regime="volatile")))
    there = asked([*long, *few], Query(direction="long", context=ContextVector(regime="ranging")))
    assert (everywhere.headline.name, there.headline.name) == ("direction", "regime")
    assert asked(few, Query(direction="long")).headline.name == "strategy"


def test_a_level_tells_a_trader_what_it_found() -> None:
    trades = [
        a_trade(n, r=2.0 if n % 5 < 2 else -1.0, days_ago=n, symbol="BTC", regime="ranging", session="overlap")
        for n in range(63)
    ]
    query = Query(symbol="BTC", direction="long", context=ContextVector(regime="ranging", session="overlap"))
    assert [level.sentence for level in asked(trades, query).levels[2:4]] == [
        "42 % of 63 long BTC trades were won (90 %: 31 to 52 %), effective 58; +0.25 ± 0.32R",
        "42 % of 63 long BTC trades in ranging markets were won (90 %: 31 to 52 %), effective 58; +0.25 ± 0.32R",
    ]


# Open trades


def test_open_losers_are_in_the_mean_and_not_in_the_win_rate() -> None:
    winners = one_a_day(*[1.0, 1.0, -0.5] * 20)
    before, after = strategy_of(winners), strategy_of(winners, open_trades=[an_open_trade(n) for n in range(9)])
    assert (after.win_rate, after.effective_n, after.n) == (before.win_rate, before.effective_n, before.n)
    assert after.outcomes[0].mean < before.outcomes[0].mean
    assert (after.open, after.outcomes[0].open, after.outcomes[0].n) == (9, 9, 60)
    assert after.open_ids == tuple(f"open-{n}" for n in range(9))
    assert after.sentence.endswith("; 9 open at the last mark")


def test_an_open_trade_weighs_as_if_it_closed_now_and_shares_the_day() -> None:
    """Closed today and open today are one cluster: two days in all."""
    found = strategy_of([a_trade(1, r=1.0), a_trade(2, r=1.0, days_ago=90)], open_trades=[an_open_trade(r=-1.0)])
    (mean,) = found.outcomes
    assert mean.mean == pytest.approx(0.5 / 2.5)
    off = [(0.0 - 2.0 * 0.2) / 2.5, (0.5 - 0.5 * 0.2) / 2.5]
    reach = t_quantile(0.95, freedom=1) * math.sqrt(2.0 * sum(each * each for each in off))
    assert mean.interval == pytest.approx((0.2 - reach, 0.2 + reach))


def test_an_open_trade_counts_where_it_matches_and_is_marked() -> None:
    waiting = [
        an_open_trade(1, context=ContextVector(regime="ranging")),
        an_open_trade(2, direction="short"),
        an_open_trade(3, r=None),
        an_open_trade(4, outcome=Outcome(value=-0.01, unit="pct")),
    ]
    query = Query(direction="long", context=ContextVector(regime="ranging"))
    found = asked(one_a_day(1.0, -1.0), query, open_trades=waiting)
    named = [level.open_ids for level in found.levels]
    assert named == [("open-1", "open-2", "open-3", "open-4"), ("open-1", "open-3", "open-4"), ("open-1",)]
    assert [[(mean.unit, mean.n, mean.open) for mean in level.outcomes] for level in found.levels] == [
        [("R", 2, 2), ("pct", 0, 1)],
        [("R", 2, 1), ("pct", 0, 1)],
        [("R", 0, 1)],
    ]


def test_an_open_trade_is_weighed_by_its_numbers() -> None:
    query = Query(context=ContextVector(atr_d1=10.0))
    far, near = (an_open_trade(context=ContextVector(atr_d1=atr)) for atr in (30.0, 10.0))
    closed = [a_trade(n, days_ago=n, atr_d1=10.0) for n in range(5)]
    means = [asked(closed, query, open_trades=[each]).headline.outcomes[0].mean for each in (far, near)]
    assert means[0] > 0.99 > means[1]


# Weights

VALUES = st.none() | st.just(0.0) | st.floats(1e-3, 1e6)
CONTEXTS = st.builds(
    ContextVector,
    price=VALUES,
    atr_d1=VALUES,
    atr_h1=VALUES,
    spread_as_atr_pct=VALUES,
    drawdown_pct=st.none() | st.just(0.0) | st.floats(0, 1),
)


@given(CONTEXTS, st.lists(st.tuples(CONTEXTS, st.sampled_from(["BTC", "ETH"]), st.floats(-5, 3000)), max_size=8))
def test_weights_are_those_of_the_score(context: ContextVector, held: list[Any]) -> None:
    trades = [
        an_episode(n, context=each, symbol=symbol, ended_at=NOON - days_ago * DAY)
        for n, (each, symbol, days_ago) in enumerate(held)
    ]
    query = Query(symbol="BTC", context=context)
    expected = [likeness(query, each.symbol, each.context) * recency(each.ended_at, now=NOON) for each in trades]
    assert weights(trades_of(trades), query, now=NOON) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_atrs_are_compared_as_a_share_of_price() -> None:
    then = trades_of([a_trade(price=2000.0, atr_d1=20.0, symbol="ETH"), a_trade(2, atr_d1=50.0)])
    assert weights(then, Query(context=ContextVector(price=5000.0, atr_d1=50.0)), now=NOON).tolist() == [1.0, 1.0]


@given(st.floats(1e-3, 1e6), st.floats(0, 1))
@settings(max_examples=60)
def test_quick_quantiles_are_the_slow_ones(n: float, p: float) -> None:
    alpha, beta = 0.5 + p * n, 0.5 + (1 - p) * n
    assert beta_05(alpha, beta) == pytest.approx(beta_quantile(0.05, alpha=alpha, beta=beta), abs=1e-10, rel=1e-7)


@pytest.mark.parametrize("freedom", [1, 2, 50, 99, 100, 101, 1000, 100_000])
def test_quick_t_quantiles_are_the_slow_ones(freedom: int) -> None:
    assert t_95(freedom) == pytest.approx(t_quantile(0.95, freedom=freedom), abs=1e-10)


# Against the formulas in plain Python


def likeness(query: Query, symbol: str, context: ContextVector) -> float:
    """K by the plain score: Sim of a query with numbers only; 1 where nothing can be compared."""
    given = {name: getattr(query.context, name) for name in NUMBERS}
    if all(value is None or (name == "price" and symbol != query.symbol) for name, value in given.items()):
        return 1.0
    numbers = Query(symbol=query.symbol, context=ContextVector(**given))
    return similarity(numbers, symbol=symbol, direction=None, context=context)


@dataclass
class Plain:
    """A weighted mean by days, one trade at a time."""

    weighted: list[tuple[float, float, int]]

    @property
    def mean(self) -> float:
        return math.fsum(w * x for w, x, _ in self.weighted) / math.fsum(w for w, _, _ in self.weighted)

    @property
    def days(self) -> set[int]:
        return {day for w, _, day in self.weighted if w > 0}

    @property
    def variance(self) -> float:
        total, mean, g = math.fsum(w for w, _, _ in self.weighted), self.mean, len(self.days)
        by_day = [math.fsum(w * (x - mean) for w, x, at in self.weighted if at == day) for day in self.days]
        return g / (g - 1) * math.fsum((each / total) ** 2 for each in by_day)

    @property
    def effective_n(self) -> float:
        p, total = self.mean, math.fsum(w for w, _, _ in self.weighted)
        if len(self.days) == 1:
            return 1.0
        if not any(w * x for w, x, _ in self.weighted) or not any(w * (1 - x) for w, x, _ in self.weighted):
            by_day = [math.fsum(w for w, _, at in self.weighted if at == day) for day in self.days]
            return total**2 / math.fsum(each**2 for each in by_day)
        kish = total**2 / math.fsum(w * w for w, _, _ in self.weighted)
        widened = (t_quantile(0.95, freedom=len(self.days) - 1) / 1.6448536269514722) ** 2
        return min(kish, p * (1 - p) / (self.variance * widened)) if self.variance > 1e-20 else kish

    @property
    def interval(self) -> tuple[float, float] | None:
        if len(self.days) == 1:
            return None
        reach = t_quantile(0.95, freedom=len(self.days) - 1) * math.sqrt(self.variance)
        return self.mean - reach, self.mean + reach


def plain_rate(trades: Sequence[Episode], query: Query) -> Plain | None:
    weighted = [
        (
            likeness(query, each.symbol, each.context) * recency(each.ended_at, now=NOON),
            float((each.pnl or 0) > 0),
            (each.ended_at - EPOCH).days,
        )
        for each in trades
    ]
    return Plain(weighted) if any(w for w, _, _ in weighted) else None


def plain_mean(
    trades: Sequence[Episode], waiting: Sequence[OpenTrade], query: Query, unit: OutcomeUnit
) -> Plain | None:
    weighted = [
        (
            likeness(query, each.symbol, each.context) * recency(each.ended_at, now=NOON),
            each.outcome.value,
            (each.ended_at - EPOCH).days,
        )
        for each in trades
        if each.outcome is not None and each.outcome.unit == unit
    ] + [
        (likeness(query, each.symbol, each.context), each.outcome.value, (NOON - EPOCH).days)
        for each in waiting
        if each.outcome is not None and each.outcome.unit == unit
    ]
    return Plain(weighted) if any(w for w, _, _ in weighted) else None


def matching(held: Sequence[Any], query: Query, names: Sequence[str]) -> list[Any]:
    def lies_in(each: Any, name: str) -> bool:
        sides = (query, each) if name in ("direction", "symbol") else (query.context, each.context)
        return bool(getattr(sides[0], name) == getattr(sides[1], name))

    return [each for each in held if all(lies_in(each, name) for name in names)]


def check(level: Level, trades: Sequence[Episode], waiting: Sequence[OpenTrade], query: Query) -> None:
    rate = plain_rate(trades, query)
    assert (level.n, level.open_ids) == (len(trades), tuple(each.id for each in waiting))
    assert level.days == (len(rate.days) if rate else 0)
    assert level.win_rate == (pytest.approx(rate.mean, abs=1e-9) if rate else None)
    assert level.effective_n == pytest.approx(rate.effective_n if rate else 0.0, rel=1e-9)
    if rate and level.win_rate_interval:
        alpha, beta = 0.5 + rate.mean * rate.effective_n, 0.5 + (1 - rate.mean) * rate.effective_n
        low, high = (beta_quantile(p, alpha=alpha, beta=beta) for p in (0.05, 0.95))
        assert level.win_rate_interval == pytest.approx((min(low, rate.mean), max(high, rate.mean)), abs=1e-9)
    means = {unit: plain for unit in UNITS if (plain := plain_mean(trades, waiting, query, unit))}
    assert [mean.unit for mean in level.outcomes] == list(means)
    for mean in level.outcomes:
        assert mean.mean == pytest.approx(means[mean.unit].mean, abs=1e-9)
        assert mean.interval == pytest.approx(means[mean.unit].interval, abs=1e-9 if mean.interval else None)


LIKE = st.none() | st.floats(1.0, 3.0)
PLACES = st.fixed_dictionaries(
    {
        "regime": st.sampled_from([None, *REGIMES[:2]]),
        "volatility_regime": st.sampled_from([None, *VOLATILITY_REGIMES[:2]]),
        "session": st.sampled_from([None, *SESSIONS[:2]]),
        "price": LIKE,
        "atr_d1": LIKE,
        "atr_h1": LIKE,
        "spread_as_atr_pct": LIKE,
        "drawdown_pct": st.none() | st.floats(0, 0.1),
    }
)
SYMBOLS = st.sampled_from(["BTC", "ETH"])
SIDES = st.sampled_from(["long", "short", None])
RESULTS = st.none() | st.builds(Outcome, value=st.floats(-3, 3), unit=st.sampled_from(UNITS))
ROWS = st.tuples(PLACES, SYMBOLS, SIDES, RESULTS, st.booleans(), st.integers(0, 60))
HELD = st.lists(ROWS, max_size=30)
WAITING = st.lists(st.tuples(PLACES, SYMBOLS, SIDES, RESULTS), max_size=4)
QUERIES = st.builds(
    lambda place, symbol, side: Query(symbol=symbol, direction=side, context=ContextVector(**place)),
    PLACES,
    st.none() | SYMBOLS,
    SIDES,
)


def told(rows: Sequence[Any]) -> list[Episode]:
    return [
        a_trade(n, days_ago=hours / 4, symbol=symbol, direction=side, pnl=1.0 if win else -1.0, outcome=result, **place)
        for n, (place, symbol, side, result, win, hours) in enumerate(rows)
    ]


@given(HELD, WAITING, QUERIES)
@settings(deadline=None)
def test_the_columns_say_what_the_formulas_say(rows: list[Any], marks: list[Any], query: Query) -> None:
    trades = told(rows)
    waiting = [
        an_open_trade(n, symbol=symbol, direction=side, outcome=result, context=ContextVector(**place))
        for n, (place, symbol, side, result) in enumerate(marks)
    ]
    found = asked(trades, query, open_trades=waiting)
    names = [level.name for level in found.levels if level.name != "strategy"]
    for depth, level in enumerate(found.levels):
        check(level, matching(trades, query, names[:depth]), matching(waiting, query, names[:depth]), query)
    telling = [level for level in found.levels if level.effective_n >= 20 * (1 - ROUNDING)]
    assert found.headline == (telling[-1] if telling else found.levels[0])
    assert found.too_little == (found.headline.effective_n < 5 * (1 - ROUNDING))


@given(HELD, QUERIES, st.randoms())
@settings(deadline=None, max_examples=50)
def test_order_does_not_matter(rows: list[Any], query: Query, random: Any) -> None:
    trades = told(rows)
    shuffled = random.sample(trades, len(trades))
    for one, other in zip(asked(trades, query).levels, asked(shuffled, query).levels, strict=True):
        assert (one.n, one.days) == (other.n, other.days)
        assert one.win_rate == (None if other.win_rate is None else pytest.approx(other.win_rate))
        assert one.effective_n == pytest.approx(other.effective_n)


@given(HELD, QUERIES)
@settings(deadline=None, max_examples=50)
def test_a_narrower_level_holds_a_part_of_the_broader_and_never_more_than_its_trades(
    rows: list[Any], query: Query
) -> None:
    levels = asked(told(rows), query).levels
    assert [level.n for level in levels] == sorted((level.n for level in levels), reverse=True)
    assert all(level.days <= level.n and level.effective_n <= level.n * (1 + 1e-9) for level in levels)
    for level in levels:
        if level.win_rate is not None and level.win_rate_interval is not None:
            assert 0.0 <= level.win_rate_interval[0] <= level.win_rate <= level.win_rate_interval[1] <= 1.0


def test_more_trades_than_fit_into_a_block_are_summed_alike() -> None:
    rng = np.random.default_rng(1)
    trades = a_year(rng, here=60_000, elsewhere=60_000)
    backwards: dict[str, Any] = {
        name: value[::-1]
        for name in Trades.__dataclass_fields__
        if isinstance(value := getattr(trades, name), np.ndarray)
    }
    query = Query(context=ContextVector(regime="ranging"))
    one = base_rate(trades, query, now=NOON)
    other = base_rate(replace(trades, **backwards), query, now=NOON)
    weight = weights(trades, query, now=NOON)
    assert [level.n for level in one.levels] == [120_000, 60_000]
    assert one.levels[0].win_rate == pytest.approx(weight[trades.won].sum() / weight.sum())
    for level, same in zip(one.levels, other.levels, strict=True):
        assert level.effective_n == pytest.approx(same.effective_n)
        assert level.outcomes[0].interval == pytest.approx(same.outcomes[0].interval)


# Coverage


def a_year(
    rng: np.random.Generator, *, here: int, elsewhere: int, rate: float = 0.5, a_day: int = 1, alike: float = 0.0
) -> Trades:
    """Trades spread over a year, some in ranging markets at a rate of their own, the rest elsewhere at a half.

    `alike` is the correlation of wins within a day: each day has its own rate, from a Beta.
    """
    days = rng.choice(365, size=here // a_day, replace=False) if a_day > 1 else rng.integers(0, 365, here)
    rates: NDArray[np.float64] = np.full(len(days), rate)
    if alike:
        size = 1.0 / alike - 1.0
        rates = rng.beta(rate * size, (1.0 - rate) * size, len(days))
    days, rates = np.repeat(days, here // len(days)), np.repeat(rates, here // len(days))
    day = np.concatenate((days, rng.integers(0, 365, elsewhere))).astype(np.intp)
    n, first_day = len(day), (NOON - EPOCH).days - 365
    won = rng.random(n) < np.concatenate((rates, np.full(elsewhere, 0.5)))
    none, unknown = np.full(n, np.nan), np.full(n, -1, dtype=np.int8)
    return Trades(
        closed_at=first_day + day + rng.random(n),
        day=day,
        first_day=first_day,
        won=won,
        outcome=np.where(won, 1.0, -1.0),
        unit=np.zeros(n, dtype=np.int8),
        direction=unknown,
        symbol=unknown,
        symbols={},
        regime=np.where(np.arange(n) < len(days), REGIMES.index("ranging"), REGIMES.index("volatile")),
        volatility_regime=unknown,
        session=unknown,
        **dict.fromkeys(NUMBERS, none),
    )


def held_by(intervals: Sequence[tuple[float, float] | None], truth: float) -> int:
    return sum(each is not None and each[0] <= truth <= each[1] for each in intervals)


def cells(runs: int, **how: Any) -> list[Level]:
    """The narrow level in so many worlds."""
    query = Query(context=ContextVector(regime="ranging"))
    return [base_rate(a_year(np.random.default_rng(seed), **how), query, now=NOON).levels[-1] for seed in range(runs)]


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("here", [30, 80, 250])
def test_nine_of_ten_intervals_hold_the_true_win_rate(here: int, apart: float) -> None:
    found = cells(2000, here=here, elsewhere=1000, rate=0.5 + apart)
    covered = held_by([level.win_rate_interval for level in found], 0.5 + apart)
    assert 1700 <= covered <= 1900, f"{covered} of 2000"


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("here", [30, 80, 250])
def test_intervals_hold_the_true_win_rate_where_days_hang_together(here: int, apart: float) -> None:
    found = cells(2000, here=here, elsewhere=1000, rate=0.5 + apart, a_day=5, alike=0.2)
    covered = held_by([level.win_rate_interval for level in found], 0.5 + apart)
    assert covered >= 1600, f"{covered} of 2000"


@pytest.mark.slow
@pytest.mark.parametrize(("a_day", "alike"), [(1, 0.0), (5, 0.2)])
@pytest.mark.parametrize("here", [30, 80, 250])
def test_intervals_hold_the_true_mean_outcome(here: int, a_day: int, alike: float) -> None:
    found = cells(2000, here=here, elsewhere=0, rate=0.6, a_day=a_day, alike=alike)
    covered = held_by([level.outcomes[0].interval for level in found], 0.2)
    assert covered >= 1600, f"{covered} of 2000"
