"""Sizing: its laws, its reasons, and its recommendations for strategies without an edge."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backsight.core import serial_correlation
from backsight.core.errors import Invalid
from backsight.core.recall.arrays.columns import Floats, Integers
from backsight.core.recommended_size import (
    ANY_TRADE,
    CATEGORIES,
    Category,
    OpenRisk,
    PositionSize,
    SizedTrade,
    SizeKind,
    SizingQuery,
)
from backsight.core.regime import REGIMES, SESSIONS, VOLATILITY_REGIMES
from backsight.core.sizing import (
    LEAST_SIZE,
    CategoryColumn,
    TradeColumns,
    position_size,
    position_sizes,
    trade_columns,
)
from noise import SHAPES, NoiseTrade, noise

T0 = date(2026, 1, 1)
DAY = timedelta(days=1)
VALUES: dict[Category, tuple[str, ...]] = {
    "direction": ("long", "short"),
    "symbol": ("BTC", "ETH", "XAUUSD"),
    "regime": REGIMES,
    "volatility_regime": VOLATILITY_REGIMES,
    "session": SESSIONS,
}
ALL = SizingQuery(direction="long", symbol="BTC", regime=REGIMES[0], volatility_regime="low", session="asia")
SHORT = SizingQuery(direction="short")


def a_trade(number: int = 0, *, r: float = 1.0, **changes: Any) -> SizedTrade:
    """A trade; the trade of each number has its own day, unless `day` is given."""
    return SizedTrade(outcome_r=r, **({"day": T0 + number * DAY} | changes))


def a_record(wins: int, losses: int, **changes: Any) -> list[SizedTrade]:
    """The given numbers of trades at +1R and −1R, one a day, with the losses spread evenly."""
    n = wins + losses
    lost = [(number + 1) * losses // n > number * losses // n for number in range(n)]
    return [a_trade(number, r=-1.0 if lost[number] else 1.0, **changes) for number in range(n)]


def with_categories(trades: list[SizedTrade], seed: int = 0) -> list[SizedTrade]:
    rng = random.Random(seed)

    def place() -> dict[str, Any]:
        return {name: rng.choice(VALUES[name]) for name in CATEGORIES}

    return [replace(trade, **place()) for trade in trades]


def scaled(trades: list[SizedTrade], by: float) -> list[SizedTrade]:
    return [replace(trade, outcome_r=by * trade.outcome_r) for trade in trades]


def risk(size: PositionSize) -> float:
    """The recommended share, 0 without a recommendation."""
    return size.recommended or 0.0


def effects_of(size: PositionSize) -> dict[str, float]:
    return {level.name: level.effect for level in size.levels}


def estimate(size: PositionSize) -> tuple[float, float, float]:
    """The mean, its deviation and the cautious mean, where they are given."""
    assert size.mean is not None
    assert size.deviation is not None
    assert size.cautious_mean is not None
    return size.mean, size.deviation, size.cautious_mean


OUTCOMES = st.lists(
    st.tuples(st.floats(-5.0, 5.0).map(lambda r: round(r, 2)), st.integers(0, 40)), min_size=10, max_size=60
)


def trades_of(rows: list[tuple[float, int]]) -> list[SizedTrade]:
    return with_categories([a_trade(day, r=r) for r, day in rows])


def test_forty_trades_by_hand() -> None:
    """30 won, 10 lost, a day each; Student's t has its 15% quantile at −1.050 with 39 degrees of freedom (days), and
    at −1.325 with 40 / 12 − 1 (days in stretches of twelve)."""
    size = position_size(a_record(30, 10))
    effective_n = 40 * (1.036433 / 1.050399) ** 2
    square = (40 * 1.0 + 3.0**2) / 41
    mean = 0.5 * effective_n / (effective_n + 10)
    deviation = (square / (effective_n + 10)) ** 0.5
    assert size.effective_n == pytest.approx(effective_n, rel=1e-4)
    assert [size.mean, size.deviation] == pytest.approx([mean, deviation], rel=1e-4)
    assert size.uncapped == pytest.approx(0.25 * (mean - 1.324969 * deviation) / square, rel=1e-4)
    assert (size.win_rate, size.mean_win, size.mean_loss, size.kelly) == (0.75, 1.0, 1.0, 0.5)
    assert (round(size.uncapped, 4), size.recommended) == (0.0399, size.uncapped)


def two_sides() -> list[SizedTrade]:
    """50 longs of which 40 won and 50 shorts of which 25 won, a day each, in turn."""
    longs, shorts = a_record(40, 10, direction="long"), a_record(25, 25, direction="short")
    longs = [replace(trade, day=T0 + 2 * n * DAY) for n, trade in enumerate(longs)]
    return longs + [replace(trade, day=T0 + (2 * n + 1) * DAY) for n, trade in enumerate(shorts)]


def test_the_effect_of_a_direction_by_hand() -> None:
    """Two values of equal size, .3R off the mean: James-Stein shrinkage is 1 − error² / difference².

    A hundred days: Student's t with 100 / 12 − 1 degrees of freedom has its 15% quantile at −1.115.
    """
    size = position_size(two_sides(), SizingQuery(direction="long"))
    strategy, direction = size.levels
    square = (100 + 9) / 101
    error = (square * 100 / size.effective_n * (1 / 50 - 1 / 100)) ** 0.5
    shrinkage = 1 - error**2 / 0.3**2
    spread = 2 * (0.3**2 - error**2)
    unfamiliar = (spread + square / 10) / 2 * (10 / 60) ** 2
    estimates = [direction.difference, direction.error, direction.spread, direction.shrinkage, direction.effect]
    assert estimates == pytest.approx([0.3, error, spread**0.5, shrinkage, 0.3 * shrinkage])
    assert strategy.effect == pytest.approx(0.3 * size.effective_n / (size.effective_n + 10))
    variance = square / (size.effective_n + 10) + shrinkage * error**2 + unfamiliar
    assert size.deviation == pytest.approx(variance**0.5)
    assert size.cautious_mean == pytest.approx(size.mean - 1.115131 * variance**0.5)


def test_effects_of_two_equal_sides_cancel() -> None:
    longs, shorts = (position_size(two_sides(), SizingQuery(direction=side)) for side in ("long", "short"))
    assert effects_of(longs)["direction"] == pytest.approx(-effects_of(shorts)["direction"])
    assert risk(longs) > risk(position_size(two_sides())) > 0.0
    assert shorts.recommended is None


@given(OUTCOMES, st.floats(1.0, 50.0))
def test_outcomes_times_k_give_a_mean_times_k_and_a_kth_of_the_size(rows: list[tuple[float, int]], k: float) -> None:
    trades = [*trades_of(rows), a_trade(5, r=-2.0)]  # from 2R on the unseen loss is 1.5 times the worst
    size, larger = position_size(trades, ALL), position_size(scaled(trades, k), ALL)
    assert larger.cautious_mean == pytest.approx(k * estimate(size)[2], rel=1e-6, abs=1e-9)
    assert larger.uncapped == pytest.approx(size.uncapped / k, rel=1e-6, abs=1e-9)
    assert larger.effective_n == pytest.approx(size.effective_n)


def test_small_outcomes_still_add_an_unseen_loss_of_three_r() -> None:
    trades = a_record(60, 40)
    assert position_size(scaled(trades, 0.1)).mean_square == pytest.approx((100 * 0.01 + 9) / 101)
    assert position_size(scaled(trades, 0.1)).uncapped < 10 * position_size(trades).uncapped


@given(st.floats(0.0, 3.0, allow_subnormal=False))
def test_risk_appetite_is_linear(appetite: float) -> None:
    neutral = position_size(a_record(60, 40))
    size = position_size(a_record(60, 40), risk_appetite=appetite)
    assert size.uncapped == pytest.approx(appetite * neutral.uncapped)
    assert size.recommended == (min(0.05, size.uncapped) if size.uncapped >= LEAST_SIZE else 0.0)


@given(OUTCOMES, st.randoms(use_true_random=False))
def test_the_order_of_trades_does_not_matter(rows: list[tuple[float, int]], rng: random.Random) -> None:
    trades = trades_of(rows)
    size = position_size(trades, ALL)
    rng.shuffle(trades)
    again = position_size(trades, ALL)
    assert again.cautious_mean == pytest.approx(size.cautious_mean, rel=1e-6, abs=1e-9)
    assert again.effective_n == pytest.approx(size.effective_n)


def test_only_which_trades_share_a_day_matters() -> None:
    trades = with_categories([a_trade(n // 3, r=(-1.0) ** (n % 5)) for n in range(90)])
    later = [replace(trade, day=date.fromordinal(7 * trade.day.toordinal() - 4_000_000)) for trade in trades]
    assert position_size(later, ALL).uncapped == pytest.approx(position_size(trades, ALL).uncapped)
    ages = [replace(trade, day=T0 - 2025 * 365 * DAY) if n < 3 else trade for n, trade in enumerate(trades)]
    assert position_size(ages, ALL).uncapped == pytest.approx(position_size(trades, ALL).uncapped)


@given(OUTCOMES)
def test_more_trades_of_the_same_kind_never_lower_the_size_of_an_edge(rows: list[tuple[float, int]]) -> None:
    assume(sum(r for r, _ in rows) > 0)
    twice = [*rows, *((r, day + 50) for r, day in rows)]
    with pytest.MonkeyPatch.context() as patch:
        # As far as days are independent: twice the same days in the same order are themselves a long wave.
        patch.setattr(serial_correlation, "DAYS_A_WAVE", 1_000)
        assert position_size(trades_of(twice)).uncapped >= position_size(trades_of(rows)).uncapped - 1e-12


def test_days_that_resemble_the_day_before_are_less_evidence() -> None:
    """The same wins and losses, evenly mixed and in runs of ten days."""
    mixed = a_record(120, 80)
    runs = [replace(trade, outcome_r=-1.0 if n // 10 % 5 < 2 else 1.0) for n, trade in enumerate(mixed)]
    assert position_size(mixed).mean == pytest.approx(0.2, abs=0.02)
    assert position_size(runs).effective_n < 0.5 * position_size(mixed).effective_n
    assert position_size(runs).uncapped == 0.0 < position_size(mixed).uncapped


@pytest.mark.parametrize(
    "query", [ANY_TRADE, SizingQuery(direction="long"), SizingQuery(symbol="BTC", direction="long")]
)
def test_a_better_side_is_sized_more_the_longer_it_lasts(query: SizingQuery) -> None:
    half = [replace(trade, symbol="BTC" if n % 3 else "ETH") for n, trade in enumerate(two_sides())]
    records = [half + [replace(trade, day=trade.day + 200 * DAY * k) for k in range(1, times) for trade in half]
             for times in (1, 2, 4)]  # fmt: skip
    uncapped_sizes = [position_size(trades, query).uncapped for trades in records]
    assert 0 < uncapped_sizes[0] < uncapped_sizes[1] < uncapped_sizes[2]


def test_a_query_without_categories_gives_the_strategy_alone() -> None:
    trades = with_categories(a_record(60, 40))
    size = position_size(trades)
    assert [level.name for level in size.levels] == ["strategy"]
    assert size == position_size(a_record(60, 40)) == position_size(trade_columns(trades))


def test_values_that_do_not_differ_have_no_effect() -> None:
    trades = [replace(trade, direction="long" if n % 2 else "short") for n, trade in enumerate(a_record(90, 60))]
    size = position_size(trades, SHORT)
    assert (size.levels[1].shrinkage, size.levels[1].effect, size.levels[1].spread) == (0.0, 0.0, 0.0)
    assert size.uncapped == pytest.approx(position_size(trades).uncapped, rel=0.15)


def test_two_categories_with_the_same_values_are_not_counted_twice() -> None:
    trades = [replace(each, regime="trending_up" if each.direction == "long" else "ranging") for each in two_sides()]
    once = position_size(trades, SizingQuery(direction="long"))
    twice = position_size(trades, SizingQuery(direction="long", regime="trending_up"))
    assert effects_of(twice)["direction"] == pytest.approx(effects_of(twice)["regime"])
    assert estimate(once)[0] <= estimate(twice)[0] <= 0.6
    assert estimate(twice)[1] >= estimate(once)[1]


def test_trades_that_end_alike_on_a_day_count_as_one() -> None:
    days = a_record(24, 16)
    alike = [trade for trade in days for _ in range(5)]
    assert position_size(alike).effective_n == pytest.approx(position_size(days).effective_n, rel=0.03)
    assert position_size(alike).n == 200


def test_trades_of_a_single_day_count_as_one() -> None:
    size = position_size([a_trade(r=-1.0 if n % 4 == 0 else 1.0, direction="long") for n in range(40)], SHORT)
    assert (size.effective_n, size.recommended) == (1.0, None)


def test_a_regime_that_lasts_for_days_has_the_errors_of_days() -> None:
    """Whole days of one regime that end alike: fifteen times the trades do not reduce the error of the difference."""
    days = [replace(each, regime="ranging" if n % 2 else "volatile") for n, each in enumerate(a_record(24, 16))]
    single = position_size(days, SizingQuery(regime="ranging")).levels[1]
    many = position_size([trade for trade in days for _ in range(15)], SizingQuery(regime="ranging")).levels[1]
    assert single.error is not None
    assert many.error == pytest.approx(single.error, rel=0.15)


def test_a_side_never_traded_has_no_effect_and_more_doubt() -> None:
    trades = a_record(60, 40, direction="long")
    size, before = position_size(trades, SHORT), position_size(trades)
    level = size.levels[1]
    assert (level.n, level.difference, level.error, level.effect) == (0, 0.0, None, 0.0)
    assert size.mean == before.mean
    assert estimate(size)[1] ** 2 == pytest.approx(estimate(before)[1] ** 2 + size.mean_square / 10)
    assert risk(before) > 0.0
    assert (size.kind, size.recommended) == ("no_recommendation", None)


def test_doubt_about_a_side_fades_as_it_is_traded() -> None:
    longs = a_record(90, 60, direction="long")
    shorts = [[replace(each, day=each.day + 150 * DAY) for each in a_record(6 * k, 4 * k, direction="short")]
              for k in (0, 1, 2, 4, 8)]  # fmt: skip
    sizes = [position_size(longs + later, SHORT).uncapped for later in shorts]
    assert sizes == sorted(sizes)
    assert sizes[0] == 0.0 < sizes[-1]


def test_a_category_without_any_recorded_value_counts_as_never_traded() -> None:
    trades = a_record(70, 30)
    bare = TradeColumns(outcome_r=trade_columns(trades).outcome_r, day=trade_columns(trades).day)
    assert position_size(bare, SHORT) == position_size(trades, SHORT)
    assert estimate(position_size(bare, SHORT))[1] > estimate(position_size(bare))[1]


def test_values_that_no_trade_has_change_nothing() -> None:
    columns = trade_columns(two_sides())
    coded = columns.categories["direction"]
    wider = CategoryColumn(codes=coded.codes + 1, values=("flat", *coded.values, "hedged"))
    other = replace(columns, categories={"direction": wider})
    assert position_size(other, SHORT) == position_size(columns, SHORT)


def test_a_fat_tail_of_losses_reduces_the_size() -> None:
    trades = a_record(70, 30)
    tailed = [replace(trade, outcome_r=-4.0) if n % 10 == 0 else trade for n, trade in enumerate(trades)]
    lifted = [replace(trade, outcome_r=trade.outcome_r + 0.5) for trade in tailed]
    plain = position_size([replace(trade, outcome_r=trade.outcome_r + 0.02) for trade in trades])
    assert position_size(tailed).uncapped == 0.0
    assert position_size(lifted).mean_square > plain.mean_square
    assert position_size(lifted).uncapped < plain.uncapped


def test_an_unseen_loss_of_one_and_a_half_times_the_worst_is_added() -> None:
    trades = [*a_record(60, 39), a_trade(100, r=-8.0)]
    assert position_size(trades).mean_square == pytest.approx((99 + 64 + 144) / 101)


def test_wins_in_a_row_are_not_certainty() -> None:
    """Without a loss so far, one of 6R is counted: twenty wins get nothing, thirty some, fifty the cap."""
    ten, twenty, thirty, fifty = (position_size(a_record(wins, 0)) for wins in (10, 20, 30, 50))
    assert (ten.win_rate, ten.mean_loss, ten.kelly, ten.recommended) == (1.0, None, None, None)
    assert twenty.kind == "no_recommendation"
    assert 0.02 < risk(thirty) < risk(fifty) == 0.05
    assert twenty.mean_square == pytest.approx((20 + 36) / 21)
    assert twenty.mean == pytest.approx((twenty.effective_n - 6) / (twenty.effective_n + 11))
    assert "no loss yet" in twenty.reason


def test_the_first_loss_says_how_large_losses_are() -> None:
    scratched, lost = (position_size([*a_record(30, 0), a_trade(30, r=r)]) for r in (-0.1, -1.0))
    assert risk(scratched) < 0.03 < risk(lost)


def test_the_cap_holds_and_the_uncapped_size_is_kept() -> None:
    size = position_size(a_record(450, 50))
    assert (size.recommended, size.cap) == (0.05, 0.05)
    assert size.uncapped > 0.15
    assert size.reason.endswith("% of equity, capped at 5.0%.")
    assert position_size(a_record(450, 50), cap=0.02).recommended == 0.02


NO_LOSS = "There was no loss yet: one of 6R is counted."


@pytest.mark.parametrize(
    ("trades", "options", "kind", "reason"),
    [
        ([], {}, "no_recommendation", "No trades with a result in R; 10 are needed."),
        (a_record(1, 0), {}, "no_recommendation", "Only 1 trade with a result in R; 10 are needed."),
        (a_record(7, 0), {}, "no_recommendation", "Only 7 trades with a result in R; 10 are needed."),
        (a_record(60, 40), {"risk_appetite": 0.0}, "not_now", "Risk appetite is 0: nothing is to be risked."),
        (a_record(10, 20), {}, "no_edge", "-0.25R a trade expected from 30 trades: no edge to bet on."),
        (
            scaled(a_record(10, 10), 0.0),
            {},
            "no_recommendation",
            f"-0.20R a trade expected from 20 trades, give or take 0.24R: too unsure for a recommendation. {NO_LOSS}",
        ),
        (
            a_record(17, 13),
            {},
            "no_recommendation",
            "+0.10R a trade expected from 30 trades, give or take 0.18R: too unsure for a recommendation.",
        ),
    ],
    ids=["none", "one", "seven", "no appetite", "losing", "all at 0R", "unsure"],
)
def test_a_trade_without_a_size_has_a_kind_and_a_reason(
    trades: list[SizedTrade], options: dict[str, Any], kind: SizeKind, reason: str
) -> None:
    size = position_size(trades, **options)
    assert (size.kind, size.uncapped, size.reason) == (kind, 0.0, reason)
    assert size.recommended == (None if kind == "no_recommendation" else 0.0)


@given(rows=OUTCOMES, appetite=st.sampled_from([0.0, 0.1, 1.0]), risk=st.sampled_from([0.0, 0.01, 0.2]))
def test_a_kind_says_what_zero_and_none_mean(rows: list[tuple[float, int]], appetite: float, risk: float) -> None:
    size = position_size(trades_of(rows), ALL, risk_appetite=appetite, open_risk=OpenRisk(share=risk, trades=1))
    assert (size.recommended is None) == (size.kind == "no_recommendation")
    assert ((size.recommended or 0.0) >= LEAST_SIZE) == (size.kind == "sized")
    assert size.recommended in (None, 0.0) or size.kind == "sized"
    assert size.p_above_zero is not None
    if size.n >= 10:
        assert (size.kind == "no_edge") == (size.p_above_zero <= 0.2)
        assert size.p_above_zero == pytest.approx(NormalDist().cdf(estimate(size)[0] / estimate(size)[1]))
        assert (size.kind == "not_now") == (size.p_above_zero > 0.2 and size.recommended == 0.0)


@pytest.mark.parametrize("query", [ALL, SHORT, SizingQuery(symbol="SOL")])
@pytest.mark.parametrize("n", [0, 1, 9, 10])
def test_few_trades_have_an_answer_for_every_query(query: SizingQuery, n: int) -> None:
    size = position_size(with_categories(a_record(n - n // 2, n // 2) if n else []), query)
    assert (size.n, size.recommended) == (n, None)
    assert all(np.isfinite([*estimate(size), size.mean_square]))


def test_the_reason_names_the_value_that_was_never_traded() -> None:
    reason = position_size(a_record(400, 100, direction="long"), SHORT, risk_appetite=0.5).reason
    assert "a quarter of Kelly times a risk appetite of 0.5 is " in reason
    assert reason.endswith(" short was never traded before: more doubt.")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf"), 1e200])
def test_an_outcome_that_is_no_number_is_refused(wrong: float) -> None:
    with pytest.raises(Invalid, match="outcome_r: an outcome is not a finite number"):
        position_size([*a_record(20, 10), a_trade(r=wrong)])


@pytest.mark.parametrize(
    "options", [{"risk_appetite": -0.1}, {"risk_appetite": float("nan")}, {"cap": 0.0}, {"cap": 5.0}]
)
def test_an_appetite_or_cap_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=next(iter(options))):
        position_size(a_record(20, 10), **options)


def test_columns_of_unequal_length_are_refused() -> None:
    columns = trade_columns(a_record(20, 10))
    with pytest.raises(Invalid, match="differ in length"):
        replace(columns, day=columns.day[:-1])


# What lowers a size


def with_unknown(trades: list[SizedTrade], *, won: int, lost: int) -> TradeColumns:
    return replace(trade_columns(trades), unknown_won=won, unknown_lost=lost)


def test_trades_whose_r_is_unknown_lower_the_size_in_proportion() -> None:
    trades = a_record(90, 60)
    size, whole = position_size(with_unknown(trades, won=30, lost=20)), position_size(trades)
    assert size.uncapped == pytest.approx(whole.uncapped * 150 / 200)
    assert (size.n, size.unknown, size.mean) == (150, 50, whole.mean)
    assert "expected from 150 of 200 trades (R is unknown for 50)" in size.reason
    assert "That times 0.75 (known R) is " in size.reason


def test_neither_a_size_nor_a_mean_is_given_where_losers_hide() -> None:
    """R of the winners of a coin only: it used to be the cap."""
    size = position_size(with_unknown(a_record(40, 0), won=0, lost=40), ALL)
    assert (size.kind, size.recommended, size.uncapped) == ("no_recommendation", None, 0.0)
    assert (size.mean, size.p_above_zero, size.cautious_mean, size.win_rate) == (None, None, None, None)
    assert size.levels == ()
    assert size.reason == (
        "R is unknown for 100% of losing trades and 0% of winning ones: neither a size nor a mean can be given."
    )
    few = position_size(with_unknown(a_record(5, 0), won=0, lost=1))
    assert few.reason == "Only 5 trades with a result in R; 10 are needed. R is unknown for 1 more."


def test_the_more_strategies_were_tried_the_smaller_the_size() -> None:
    sizes = [position_size(a_record(300, 200), strategies=tried) for tried in (1, 2, 10, 40)]
    uncapped = [size.uncapped for size in sizes]
    assert uncapped == sorted(uncapped, reverse=True)
    assert 0.5 < uncapped[-1] / uncapped[0] < 0.8
    assert "with 98% for 40 strategies tried: " in sizes[-1].reason


def test_trades_of_a_day_that_end_alike_share_the_size_of_one() -> None:
    """Four copies of each signal: the signal as a whole gets what its single trades would get."""
    signals = a_record(120, 80)
    copied = [trade for trade in signals for _ in range(4)]
    one, four = position_size(signals), position_size(copied)
    assert four.copies == pytest.approx(4.0, rel=0.01)
    assert four.uncapped == pytest.approx(one.uncapped / 4, rel=0.1)
    assert "That over 4.0 (trades of a day end alike) is " in four.reason
    assert one.copies == 1.0


def test_a_rest_that_would_be_shown_as_zero_is_not_now() -> None:
    free = position_size(a_record(60, 40))
    rest, less = (
        position_size(a_record(60, 40), open_risk=OpenRisk(share=risk(free) - left, trades=1)) for left in (2e-4, 5e-5)
    )
    assert rest.kind == "sized"
    assert rest.recommended == pytest.approx(2e-4)
    assert (less.kind, less.recommended) == ("not_now", 0.0)


def test_what_is_at_risk_on_the_same_signal_is_taken_off() -> None:
    """The first copy leaves the other three their parts; a trade of the whole size leaves nothing."""
    copied = trade_columns(trade for trade in a_record(120, 80) for _ in range(4))
    free = position_size(copied)
    after = [position_size(copied, open_risk=OpenRisk(share=k * risk(free), trades=k)) for k in (1, 2, 3, 4)]
    parts = [size.recommended for size in after]
    assert parts[:3] == pytest.approx([free.recommended] * 3)
    assert risk(after[3]) < 0.05 * risk(free)
    whole = position_size(a_record(450, 50), open_risk=OpenRisk(share=0.04, trades=1))
    assert whole.recommended == pytest.approx(0.01)
    assert whole.reason.endswith("4.0% is already at risk on the same signal: 1.0% is left.")
    unknown = position_size(a_record(450, 50), open_risk=OpenRisk(trades=2, unknown=2))
    assert unknown.reason.endswith("The risk of 2 open trades on it is unknown.")


def best_of_coins(coins: int, n: int, *, runs: int, query: SizingQuery) -> float:
    """The mean over the runs of the largest size that any of the coins gets, before the cap."""
    largest = []
    for run in range(runs):
        rng = np.random.default_rng([run, coins, n])
        records = [winning(0.5)(rng, n) for _ in range(coins)]
        largest.append(max(position_size(record, query, strategies=coins).uncapped for record in records))
    return sum(largest) / runs


def test_the_best_of_many_coins_gets_next_to_nothing() -> None:
    assert best_of_coins(40, 150, runs=4, query=ANY_TRADE) <= 0.01


@pytest.mark.slow
@pytest.mark.parametrize("query", [ANY_TRADE, ALL], ids=["nothing", "all"])
@pytest.mark.parametrize("n", [30, 60, 150, 500])
def test_the_best_of_forty_coins_gets_at_most_half_a_percent(n: int, query: SizingQuery) -> None:
    mean = best_of_coins(40, n, runs=200, query=query)
    print(f"best of 40 coins, {n} trades, {'nothing' if query == ANY_TRADE else 'all'}: {mean:.3%}")  # noqa: T201
    assert mean <= 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTrades:
    """Random trades without results; the truth of a row gives them results."""

    won: Floats
    """Uniform between 0 and 1: a trade whose value is below the win rate is won."""
    day: Integers
    codes: dict[Category, Integers]

    def trades(self, outcome_r: Floats) -> TradeColumns:
        coded = {name: CategoryColumn(codes=codes, values=VALUES[name]) for name, codes in self.codes.items()}
        return TradeColumns(outcome_r=outcome_r, day=self.day, categories=coded)


def random_trades(rng: np.random.Generator, n: int) -> RandomTrades:
    """Trades spread over a year, with uniform and independent categories."""
    codes = {name: rng.integers(0, len(values), n) for name, values in VALUES.items()}
    return RandomTrades(won=rng.random(n), day=rng.integers(0, 365, n), codes=codes)


Truth = Callable[[np.random.Generator, int], TradeColumns]


def winning(rate: float) -> Truth:
    def truth(rng: np.random.Generator, n: int) -> TradeColumns:
        sample = random_trades(rng, n)
        return sample.trades(np.where(sample.won < rate, 1.0, -1.0))

    return truth


def fat_tailed(rng: np.random.Generator, n: int) -> TradeColumns:
    sample = random_trades(rng, n)
    return sample.trades(np.where(sample.won < 0.6, 1.0, np.where(sample.won < 0.97, -1.0, -10.0)))


def alike_within_a_day(rng: np.random.Generator, n: int, *, whole_days: bool = False) -> TradeColumns:
    """15 trades a day; a trade ends as its day with probability √.2, so that trades of a day have correlation .2."""
    sample, day = random_trades(rng, n), np.arange(n) // 15
    ends = np.where(rng.random(n) < 0.2**0.5, rng.random(n)[day], sample.won)
    codes = sample.codes | ({"regime": sample.codes["regime"][day]} if whole_days else {})
    spread = replace(sample, day=day * 365 // (n // 15 + 1), codes=codes)
    return spread.trades(np.where(ends < 0.5, 1.0, -1.0))


def alike_and_of_one_regime(rng: np.random.Generator, n: int) -> TradeColumns:
    return alike_within_a_day(rng, n, whole_days=True)


def better_in_one_regime(rng: np.random.Generator, n: int) -> TradeColumns:
    sample = random_trades(rng, n)
    return sample.trades(np.where(sample.won < np.where(sample.codes["regime"] == 0, 0.7, 0.5), 1.0, -1.0))


def better_long(rng: np.random.Generator, n: int) -> TradeColumns:
    sample = random_trades(rng, n)
    short = (rng.random(n) >= 0.8).astype(np.int64)
    skewed = replace(sample, codes=sample.codes | {"direction": short})
    return skewed.trades(np.where(sample.won < np.where(short == 1, 0.35, 0.65), 1.0, -1.0))


def same_category_twice(rng: np.random.Generator, n: int) -> TradeColumns:
    """A fair coin whose volatility regime has the same codes as its regime."""
    sample = random_trades(rng, n)
    redundant = replace(sample, codes=sample.codes | {"volatility_regime": sample.codes["regime"]})
    return redundant.trades(np.where(sample.won < 0.5, 1.0, -1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: the truth, the query, and the limits of the mean recommendation."""

    truth: str
    draw: Truth
    n: int
    query_name: str
    query: SizingQuery
    least: float = 0.0
    most: float

    def __str__(self) -> str:
        return f"{self.truth}, {self.n}, {self.query_name}"


SIZES = (30, 60, 150, 500)
ELSEWHERE = replace(ALL, regime=REGIMES[1])


def rows_of_the_specification() -> Iterator[Row]:
    """The table of the specification, a row for each number of trades."""
    nothing: dict[str, Any] = {"query_name": "nothing", "query": ANY_TRADE}
    everything: dict[str, Any] = {"query_name": "all", "query": ALL}
    for n in SIZES:
        yield Row(truth="fair coin", draw=winning(0.5), n=n, most=0.005, **nothing)
        yield Row(truth="fair coin", draw=winning(0.5), n=n, most=0.007, **everything)
    yield Row(truth="fair, correlated .2 within a day", draw=alike_within_a_day, n=500, most=0.007, **everything)
    for n in SIZES:
        yield Row(truth="30% winners", draw=winning(0.3), n=n, most=0.001, **everything)
    for n in SIZES:
        yield Row(truth="60% +1R, 37% −1R, 3% −10R", draw=fat_tailed, n=n, most=0.005, **nothing)
    yield Row(truth="60% winners", draw=winning(0.6), n=500, least=0.025, most=0.05, **nothing)
    yield Row(truth="60% winners", draw=winning(0.6), n=500, least=0.02, most=0.05, **everything)
    regime: dict[str, Any] = {"truth": "70% in one regime, else 50%", "draw": better_in_one_regime, "n": 500}
    yield Row(**regime, query_name="elsewhere, all", query=ELSEWHERE, most=0.008)
    yield Row(**regime, query_name="there, all", query=ALL, least=0.04, most=0.1)
    yield Row(truth="65% long, 35% short", draw=better_long, n=500, query_name="short", query=SHORT, most=0.001)


def harder_rows() -> Iterator[Row]:
    """Rows beyond the specification that occur in practice."""
    fair: dict[str, Any] = {"query_name": "all", "query": ALL, "most": 0.007}
    yield Row(truth="fair, correlated, a regime lasts the day", draw=alike_and_of_one_regime, n=500, **fair)
    yield Row(truth="fair, two categories tell the same", draw=same_category_twice, n=500, **fair)
    short = replace(ALL, direction="short")
    yield Row(truth="65% long, 35% short", draw=better_long, n=500, query_name="short, all", query=short, most=0.001)


TABLE = (*rows_of_the_specification(), *harder_rows())


def mean_size(row: Row, *, seeds: int) -> float:
    """The mean recommendation before the cap."""
    sizes = (position_size(row.draw(np.random.default_rng(seed), row.n), row.query).uncapped for seed in range(seeds))
    return sum(sizes) / seeds


def test_a_few_runs_of_the_table() -> None:
    fair, _, *_, there, _ = rows_of_the_specification()
    assert mean_size(fair, seeds=20) < 0.01
    assert mean_size(there, seeds=20) > 0.03


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=str)
def test_the_mean_recommendation_is_within_the_table(row: Row) -> None:
    mean = mean_size(row, seeds=1000)
    print(f"{row}: {mean:.3%}")  # noqa: T201
    assert row.least <= mean <= row.most, f"{mean:.3%}"


# Noise of all shapes


def noise_sizes(shape: str, *, trades: int, runs: int) -> tuple[float, float]:
    """The mean recommendation before the cap, asked with nothing and with all categories of the last trade."""
    sizes: list[list[float]] = []
    for seed in range(runs):
        market = [trade for trade in noise(shape, seed, trades) if trade.in_r]
        columns = trade_columns(sized_trade(trade) for trade in market)
        last = sized_trade(market[-1])
        everything = SizingQuery(**{name: getattr(last, name) for name in CATEGORIES})
        sizes.append([size.uncapped for size in position_sizes(columns, [ANY_TRADE, everything])])
    nothing, everything_given = zip(*sizes, strict=True)
    return sum(nothing) / runs, sum(everything_given) / runs


def sized_trade(trade: NoiseTrade) -> SizedTrade:
    categories = {name: getattr(trade, name) for name in CATEGORIES}
    return SizedTrade(outcome_r=trade.outcome, day=trade.closed_at.date(), **categories)


@pytest.mark.parametrize("shape", ["autocorrelated days", "regimes in spells"])
def test_noise_with_a_memory_gets_next_to_nothing(shape: str) -> None:
    assert max(noise_sizes(shape, trades=300, runs=20)) <= 0.008


@pytest.mark.slow
@pytest.mark.parametrize("trades", [60, 150, 300, 1000])
@pytest.mark.parametrize("shape", SHAPES)
def test_noise_of_every_shape_gets_at_most_half_a_percent(shape: str, trades: int) -> None:
    sizes = noise_sizes(shape, trades=trades, runs=200)
    print(f"{shape}, {trades} trades: nothing {sizes[0]:.3%}, all {sizes[1]:.3%}")  # noqa: T201
    assert max(sizes) <= 0.005


# Growth of a true edge


def log_growth(rng: np.random.Generator, *, trades: int, win_rate: float) -> tuple[float, float]:
    """The log of equity after trades at ±1R, each sized from the trades before it, and at a flat 1%."""
    results, day = np.where(rng.random(trades) < win_rate, 1.0, -1.0), np.arange(trades) * 365 // trades
    sizes = [risk(position_size(TradeColumns(outcome_r=results[:n], day=day[:n]))) for n in range(trades)]
    return float(np.log1p(np.array(sizes) * results).sum()), float(np.log1p(0.01 * results).sum())


def test_a_large_edge_grows_from_its_first_trades_on() -> None:
    assert log_growth(np.random.default_rng(1), trades=120, win_rate=0.75)[0] > 0.3


@pytest.mark.slow
def test_growth_of_a_small_edge() -> None:
    runs = [log_growth(np.random.default_rng(run), trades=500, win_rate=0.55) for run in range(100)]
    sized, flat = zip(*runs, strict=True)
    error = 1.96 * float(np.std(sized)) / 10
    print(f"growth {np.mean(sized):+.2f} ± {error:.2f}, at a flat 1% {np.mean(flat):+.2f}")  # noqa: T201
    assert np.mean(sized) - error > 0.15
