"""Habits: each with its sample, none from too few trades."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.memory.estimates import Estimate
from backsight.core.memory.habit_sentences import habit_sentences
from backsight.core.memory.procedural import (
    Figure,
    Habits,
    Record,
    Skill,
    TradeFigures,
    entry_timing,
    habits,
    learn,
    learn_all,
    window_of,
)
from backsight.core.trades.trade import Outcome, OutcomeUnit

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EIGHT_HOURS, ONE_HOUR = 8 * 3600.0, 3600.0
LOST = [bool(n * n % 7 % 2) for n in range(60)]
"""Losses without a simple rhythm."""


def figures(number: int = 0, *, r: float | None = 1.0, unit: OutcomeUnit = "R", **changes: Any) -> TradeFigures:
    """What habits are read from, of a trade that won or lost so much; one a day."""
    fields: dict[str, Any] = {"episode_id": f"e{number:04}", "strategy_name": "IM", "symbol": "BTC"}
    if r is not None:
        fields |= {"win": r > 0, "outcome": Outcome(value=r, unit=unit)}
    return TradeFigures(**(fields | {"known_at": T0 + number * DAY} | changes))


def alternating(n: int = 20, **both: tuple[Any, Any]) -> list[TradeFigures]:
    """Wins and losses in turn; of each pair given, the first goes with wins."""
    return [
        figures(each, r=-1.0 if each % 2 else 1.0, **{name: pair[each % 2] for name, pair in both.items()})
        for each in range(n)
    ]


def about(value: float, *, n: int) -> Any:
    """A figure near this value."""
    return Figure(value=cast("Any", pytest.approx(value)), n=n)


def value_and_n(figure: Figure | Estimate) -> tuple[Any, int]:
    return figure.value, figure.n


def in_sequence(trades: Iterable[TradeFigures]) -> list[TradeFigures]:
    """The trades, each with the result of the agent's last trade before it."""
    return list(learn_all(trades, skill=Skill(strategy_name="IM")).trades)


def habits_of(trades: Iterable[TradeFigures]) -> Habits:
    return learn_all(trades, skill=Skill(strategy_name="IM")).skill.symbols["BTC"].habits


def test_letting_winners_run_is_no_disposition_effect() -> None:
    effect = habits(alternating(hold_seconds=(EIGHT_HOURS, ONE_HOUR))).disposition_effect
    assert value_and_n(effect) == (pytest.approx(-0.875), 20)


def test_holding_losers_is_a_disposition_effect() -> None:
    effect = habits(alternating(hold_seconds=(ONE_HOUR, EIGHT_HOURS))).disposition_effect
    assert value_and_n(effect) == (pytest.approx(7.0), 20)


def test_without_winners_or_losers_there_is_no_disposition_to_see() -> None:
    wins = [figures(n, hold_seconds=ONE_HOUR) for n in range(20)]
    assert habits(wins).disposition_effect == Estimate(value=None, n=20)


def test_what_rests_on_fewer_than_ten_trades_is_not_told() -> None:
    result = habits(alternating(9, hold_seconds=(1.0, 1.0), size_share=(0.01, 0.01)))
    assert result.win_rate == Figure(value=None, n=9)
    assert result.outcomes == {"R": Figure(value=None, n=9)}
    assert (result.hold_seconds.value, result.size_variation.value, result.disposition_effect.value) == (
        None,
        None,
        None,
    )
    assert result.stability == 0.5


def test_each_figure_counts_only_the_trades_that_have_it() -> None:
    trades = [figures(n, hold_seconds=100.0 if n < 12 else None) for n in range(20)]
    result = habits(trades)
    assert (result.win_rate, result.hold_seconds) == (Figure(value=1.0, n=20), Figure(value=100.0, n=12))
    assert (result.captured_share, result.entry_timing) == (Figure(value=None, n=0), Estimate(value=None, n=0))


def test_units_are_never_mixed() -> None:
    trades = [figures(n, r=2.0) for n in range(10)] + [figures(10 + n, r=0.01, unit="pct") for n in range(12)]
    assert habits(trades).outcomes == {"R": Figure(value=2.0, n=10), "pct": about(0.01, n=12)}


def test_the_share_of_the_best_result_that_was_kept() -> None:
    for gain, kept_share in ((100.0, 1.0), (-30.0, 0.0), (75.0, 0.75)):
        assert habits([figures(n, gain=gain, mfe=100.0) for n in range(10)]).captured_share.value == kept_share


def test_a_trade_never_in_favour_kept_nothing_that_could_be_measured() -> None:
    assert habits([figures(n, gain=-30.0, mfe=0.0) for n in range(10)]).captured_share == Figure(value=None, n=0)


def test_entries_are_judged_by_what_came_first() -> None:
    early: dict[str, Any] = {"mae": -5.0, "mfe": 9.0, "mae_at": T0, "mfe_at": T0 + HOUR}
    late = early | {"mae_at": T0 + 2 * HOUR}
    trades = [figures(n, **early) for n in range(9)] + [figures(9 + n, **late) for n in range(3)]
    assert value_and_n(habits(trades).entry_timing) == (0.75, 12)
    without: list[dict[str, Any]] = [{"mae": 0.0}, {"mfe": 0.0}, {"mae_at": None}, {"mae_at": T0 + HOUR}]
    for unknown in without:
        assert entry_timing(figures(**(early | unknown))) is None


def test_size_is_seen_against_what_was_recommended() -> None:
    trades = [figures(n, size_share=0.3, risk_share=0.03, recommended_share=0.02) for n in range(10)]
    result = habits([*trades, figures(10, size_share=0.3, risk_share=0.03, recommended_share=0.0)])
    assert value_and_n(result.size_against_recommended) == (pytest.approx(1.5), 10)
    assert result.size_variation == about(0.0, n=11)
    assert result.stability == pytest.approx(1.0)


def test_stability_falls_with_the_variation_of_size() -> None:
    result = habits(alternating(size_share=(0.01, 0.03)))
    assert result.size_variation.value == pytest.approx(0.01 * (20 / 19) ** 0.5 / 0.02)
    assert result.stability == pytest.approx(1 / (1 + 0.01 * (20 / 19) ** 0.5 / 0.02))


def test_larger_after_a_loss_is_seen() -> None:
    result = habits(in_sequence(alternating(21, size_share=(0.02, 0.01))))
    assert value_and_n(result.loss_aversion) == (pytest.approx(1.0), 20)
    assert value_and_n(result.recency_bias) == (pytest.approx(-1.0), 20)
    assert result.recency_bias_of == "size"


def test_where_size_never_varies_confidence_tells() -> None:
    result = habits(in_sequence(alternating(21, size_share=(0.01, 0.01), confidence=(0.4, 0.8))))
    assert result.loss_aversion == Estimate(value=cast("Any", pytest.approx(0.0)), n=20)
    assert value_and_n(result.recency_bias) == (pytest.approx(1.0), 20)
    assert result.recency_bias_of == "confidence"


def test_a_trade_follows_the_last_trade_of_its_agent_whatever_the_symbol() -> None:
    """Losses in one symbol, wins in the other, and twice the size after a loss."""
    trades = [
        figures(n, r=-1.0 if lost else 1.0, symbol="ETH" if n % 2 else "BTC", size_share=0.02 if after else 0.01)
        for n, (lost, after) in enumerate(zip(LOST, [False, *LOST], strict=False))
    ]
    skill = learn_all(trades, skill=Skill(strategy_name="IM")).skill
    for practice in skill.symbols.values():
        assert practice.habits.loss_aversion.value == pytest.approx(1.0)
        assert (practice.habits.loss_aversion.low or 0.0) > 0.2


def test_another_deployment_is_another_agent() -> None:
    first = figures(1, r=-1.0, deployment_id="a")
    mine, other = in_sequence([first, figures(2, deployment_id="a"), figures(3, deployment_id="b")])[1:]
    assert (mine.previous_win, other.previous_win) == (False, None)


def test_a_result_not_known_at_the_entry_moves_no_size() -> None:
    """The third trade was opened before the second was closed, so it followed the first."""
    first, second = figures(1), figures(2, r=-1.0, opened_at=T0 + 1.5 * DAY)
    third = figures(3, opened_at=second.known_at - HOUR)
    assert [each.previous_win for each in in_sequence([first, second, third])] == [None, True, True]
    at_the_close = figures(3, opened_at=second.known_at)
    assert in_sequence([first, second, at_the_close])[2].previous_win is False
    assert in_sequence([replace(first, opened_at=first.known_at)])[0].previous_win is None


def test_the_window_grows_with_stability() -> None:
    assert [window_of(stability) for stability in (-1.0, 0.0, 0.31, 1.0, 9.0)] == [20, 50, 66, 100, 100]
    assert habits([figures(n) for n in range(200)], stability=0.2).n == 60


def test_the_window_of_a_row_is_that_of_the_row_before() -> None:
    steady = [figures(n, size_share=0.01) for n in range(120)]
    assert [habits_of(steady[:n]).window for n in (9, 10, 11, 120)] == [75, 75, 100, 100]
    assert habits_of(steady).n == 100


def test_what_is_expected_is_the_strategys_record_before_the_window() -> None:
    others = [figures(n, r=-1.0, symbol="ETH") for n in range(30)]
    recent = [figures(30 + n, r=2.0) for n in range(75)]
    result = habits_of([*others, *recent])
    assert (result.win_rate, result.expected_win_rate) == (Figure(value=1.0, n=75), Figure(value=0.0, n=30))
    assert (result.outcomes["R"].value, result.expected_outcomes["R"].value) == (2.0, -1.0)


def test_no_mean_in_r_is_told_where_r_is_known_of_winners_only() -> None:
    """A coin whose losers have no R: its mean would be +1R."""
    coin = [figures(n) if n % 2 else figures(n, r=None, win=False) for n in range(200)]
    result = habits_of(coin)
    assert [result.win_rate.value, result.expected_win_rate.value] == pytest.approx([0.5, 0.5], abs=0.01)
    assert {each["R"].value for each in (result.outcomes, result.expected_outcomes)} == {None}
    (sentence,) = habit_sentences(result)
    assert sentence.startswith("No mean outcome in R is given: R is known for 38 of 75 trades")


def test_what_lies_in_the_window_is_not_expected() -> None:
    assert habits_of([figures(n) for n in range(60)]).expected_win_rate == Figure(value=None, n=0)
    assert habits_of([figures(n) for n in range(100)]).expected_win_rate == Figure(value=1.0, n=25)


def test_falling_outcomes_and_growing_sizes_drift_apart() -> None:
    before = [figures(n, r=(-1.0) ** n, size_share=0.01 + 0.001 * (n % 2)) for n in range(100)]
    after = [figures(100 + n, r=-3.0, size_share=0.02) for n in range(12)]
    learned = learn_all([*before, *after], skill=Skill(strategy_name="IM"))
    assert {(each.series, each.unit, each.alarm.turn) for each in learned.alarms} == {
        ("outcome", "R", "down"),
        ("size", None, "up"),
    }
    practice = learned.skill.symbols["BTC"]
    assert practice.outcome_drift["R"].degrading
    assert not practice.size_drift.degrading


def test_a_trade_of_another_strategy_or_out_of_order_is_refused() -> None:
    skill = learn(Skill(strategy_name="IM"), figures(3)).skill
    with pytest.raises(Invalid, match="learn each strategy by itself"):
        learn(skill, figures(4, strategy_name="VB"))
    with pytest.raises(Invalid, match="learn all episodes again"):
        learn(skill, figures(2))


ROWS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.none() | st.floats(-5, 5),
        st.sampled_from(("R", "pct")),
        st.none() | st.floats(0.001, 0.1),
        st.sampled_from(("BTC", "ETH")),
        st.none() | st.integers(0, 40),
    ),
    max_size=130,
)


def opened(day: int, days_held: int | None) -> dict[str, Any]:
    """When a trade was opened, of which agent: those with an unknown opening are another agent's."""
    if days_held is None:
        return {"deployment_id": "other"}
    return {"deployment_id": "own", "opened_at": T0 + (day - days_held) * DAY}


def trades_of(rows: list[Any]) -> list[TradeFigures]:
    rows = sorted(rows, key=lambda row: row[0])
    return [
        figures(n, r=r, unit=unit, size_share=size, symbol=symbol, known_at=T0 + day * DAY, **opened(day, held))
        for n, (day, r, unit, size, symbol, held) in enumerate(rows)
    ]


@given(ROWS, st.integers(0, 130))
def test_learned_in_parts_is_learned_at_once(rows: list[Any], cut: int) -> None:
    trades, nothing = trades_of(rows), Skill(strategy_name="IM")
    at_once = learn_all(trades, skill=nothing)
    past = learn_all(trades[:cut], skill=nothing)
    then = learn_all(trades[cut:], skill=past.skill)
    assert then.skill == at_once.skill
    assert past.alarms + then.alarms == at_once.alarms


@given(ROWS)
def test_the_kept_row_is_the_row_read_from_all_trades(rows: list[Any]) -> None:
    """A plain reading: stability carried from row to row over the whole history."""
    trades = in_sequence(trades_of(rows))
    mine = [each for each in trades if each.symbol == "BTC"]
    stability, row = 0.5, habits([])
    for n in range(1, len(mine) + 1):
        first = mine[:n][-window_of(stability) :][0]
        earlier = Record()
        for each in trades[: trades.index(first)]:
            earlier = earlier.add(each)
        row = habits(mine[:n], stability=stability, earlier=earlier)
        stability = row.stability
    if mine:
        assert habits_of(trades) == row
