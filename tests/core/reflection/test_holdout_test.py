"""The holdout test of whether memory helps: worked examples and invariances."""

import math
import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.holdout import MemoryArm
from backsight.core.reflection.holdout_test import HoldoutDay, HoldoutTrade, analyse_holdout, boundary, counted_until
from backsight.core.statistics import rate_bounds, t_quantile
from backsight.core.trades.trade import Outcome

FIRST = date(2026, 1, 5)


def a_trade(arm: MemoryArm, *, day: int, r: float, **changes: Any) -> HoldoutTrade:
    values: dict[str, Any] = {"deployment_id": "d1", "outcome": Outcome(value=r, unit="R")}
    return HoldoutTrade(arm=arm, day=FIRST + timedelta(days=day), **values | changes)


def a_day(arm: MemoryArm, *, day: int, deployment_id: str = "d1") -> HoldoutDay:
    return HoldoutDay(arm=arm, day=FIRST + timedelta(days=day), deployment_id=deployment_id)


def days_of(arm: MemoryArm, results: Iterable[float], *, start: int = 0) -> list[HoldoutTrade]:
    return [a_trade(arm, day=start + n, r=r) for n, r in enumerate(results)]


WITH_MEMORY = days_of("shown", [1.0, 0.0, 2.0, 1.0, 1.0, 1.0])
WITHHELD = days_of("withheld", [0.0, 1.0, -1.0, 0.0, 0.0], start=6)


def test_the_difference_and_its_interval_by_hand() -> None:
    """Deviations √(2/5) and √(2/4): 1/15 + 1/10 in squares; together 4/9 a day."""
    result = analyse_holdout(WITH_MEMORY + WITHHELD)
    assert (result.shown.trades, result.shown.days, result.shown.mean) == (6, 6, 1.0)
    assert (result.withheld.trades, result.withheld.days, result.withheld.mean) == (5, 5, 0.0)
    own, freedom = 1 / 15 + 1 / 10, (1 / 15 + 1 / 10) ** 2 / (1 / 15**2 / 5 + 1 / 10**2 / 4)
    errors = boundary(4 * 6 * 5 / 11) * (8 * freedom + 3) / (8 * freedom + 1)
    reach = math.sqrt(own * freedom * (math.exp(errors**2 / freedom) - 1))
    assert result.difference == 1.0
    assert result.interval == pytest.approx((1.0 - reach, 1.0 + reach))
    assert (result.verdict, result.days_to_settle) == ("not yet", 10)


def test_the_boundary_by_hand() -> None:
    tuned = (-2 * math.log(0.1) + math.log(-2 * math.log(0.1)) + 1) / 60
    expected = math.sqrt((1 + 1 / (tuned * 50)) * math.log((1 + tuned * 50) / 0.01))
    assert boundary(50.0) == pytest.approx(expected)


def test_there_is_no_verdict_before_five_days_in_each_arm() -> None:
    result = analyse_holdout(WITH_MEMORY + WITHHELD[:4])
    assert (result.difference, result.interval, result.verdict) == (1.0, None, "silent")
    assert result.sentence == "Too early to say: 6 days with memory, 4 without; at least 5 of each are needed."


def test_without_a_comparison_the_sentence_gives_the_remedy() -> None:
    assert analyse_holdout([]).sentence.startswith("Nothing to compare: no decision")
    quiet = [a_day(arm, day=n) for n in range(20) for arm in ("shown", "withheld")]
    assert analyse_holdout([], quiet).sentence.startswith("Nothing to compare: no trade was opened (20 days with")
    assert "Deploy with a memory holdout" in analyse_holdout(WITH_MEMORY).sentence


def test_without_variation_there_is_no_verdict() -> None:
    result = analyse_holdout(days_of("shown", [1.0] * 9) + days_of("withheld", [0.0] * 9, start=9))
    assert (result.verdict, result.interval) == ("silent", None)
    assert result.sentence.startswith("Nothing to compare: the outcomes do not vary")


def test_a_few_days_that_are_alike_are_no_certainty() -> None:
    with_memory = days_of("shown", [1.0, -1.0] * 20)
    result = analyse_holdout(with_memory + days_of("withheld", [-1.0] * 5, start=40))
    assert result.verdict == "not yet"


@pytest.mark.parametrize(("gain", "verdict", "opening"), [(2.0, "yes", "Yes: with"), (-2.0, "no", "No: with memory")])
def test_a_plain_answer(gain: float, verdict: str, opening: str) -> None:
    with_memory = days_of("shown", [gain + 0.5 * (n % 3) for n in range(30)])
    result = analyse_holdout(with_memory + days_of("withheld", [0.5 * (n % 3) for n in range(15)], start=30))
    assert (result.verdict, result.days_to_settle) == (verdict, 0)
    assert result.sentence.startswith(opening)


def test_no_difference_is_settled_by_no_number_of_days() -> None:
    both = [1.0, -1.0] * 6
    result = analyse_holdout(days_of("shown", both) + days_of("withheld", both, start=12))
    assert (result.verdict, result.days_to_settle) == ("not yet", None)
    assert result.sentence.startswith("Whether memory helps is not known yet: the difference is")
    assert "more than ten years of such days" in result.sentence


def test_as_many_more_days_like_these_settle_it() -> None:
    rng = random.Random(5)
    with_memory, withheld = ([rng.gauss(mean, 1.0) for _ in range(n)] for mean, n in ((0.8, 30), (0.0, 15)))
    before = analyse_holdout(days_of("shown", with_memory) + days_of("withheld", withheld, start=30))
    assert before.verdict == "not yet"
    assert before.days_to_settle is not None
    times = math.ceil(1 + before.days_to_settle / 45)
    after = analyse_holdout(days_of("shown", with_memory * times) + days_of("withheld", withheld * times, start=1000))
    assert after.verdict == "yes"


def test_days_of_two_deployments_are_two() -> None:
    twice = [a_trade("shown", day=0, r=1.0, deployment_id=name) for name in ("d1", "d2")]
    assert analyse_holdout(twice).shown.days == 2


def test_other_units_and_days_without_memory_are_left_out() -> None:
    other = [a_trade("shown", day=0, r=9.0, outcome=Outcome(value=9.0, unit="pct")), a_trade("off", day=1, r=9.0)]
    result = analyse_holdout(WITH_MEMORY + WITHHELD + other)
    assert (result.unit, result.left_out, result.shown.mean) == ("R", 2, 1.0)


def test_a_day_without_a_trade_counts_as_zero() -> None:
    quiet = [a_day("shown", day=n) for n in range(6, 12)]
    result = analyse_holdout(WITH_MEMORY + WITHHELD, quiet)
    assert (result.shown.days, result.shown.trades, result.shown.mean, result.shown.mean_day) == (12, 6, 1.0, 0.5)
    assert result.difference == 0.5


def test_a_day_of_several_trades_is_one_day_of_their_sum() -> None:
    twice = [each for trade in WITH_MEMORY for each in (trade, trade)]
    result = analyse_holdout(twice + WITHHELD)
    assert (result.shown.trades, result.shown.days, result.shown.mean, result.shown.mean_day) == (12, 6, 1.0, 2.0)
    assert result.difference == 2.0


def test_money_is_compared_beside_the_outcomes_and_decides_nothing() -> None:
    with_money = [replace(trade, pnl=-100.0 * trade.outcome.value) for trade in WITH_MEMORY + WITHHELD]
    result = analyse_holdout(with_money)
    assert (result.shown.money_day, result.withheld.money_day, result.money_difference) == (-100.0, 0.0, -100.0)
    assert result.interval is not None
    assert result.money_interval == pytest.approx((-100 * result.interval[1], -100 * result.interval[0]))
    unknown = analyse_holdout([*with_money, a_trade("shown", day=0, r=1.0)])
    assert (unknown.money_difference, unknown.shown.money_day) == (None, None)


def test_days_that_move_together_in_one_arm_widen_the_interval() -> None:
    """Runs of equal days in both arms: the same totals tell less than where they alternate."""
    rng = random.Random(3)
    arms: list[MemoryArm] = ["shown" if n // 8 % 2 else "withheld" for n in range(160)]
    levels = [1.0 if n // 8 % 3 else -1.0 for n in range(160)]
    in_runs = analyse_holdout(a_trade(arm, day=n, r=levels[n]) for n, arm in enumerate(arms))
    order = rng.sample(range(160), 160)
    mixed = analyse_holdout(a_trade(arms[n], day=place, r=levels[n]) for place, n in enumerate(order))
    assert in_runs.difference == pytest.approx(mixed.difference)
    assert in_runs.interval is not None
    assert mixed.interval is not None
    assert in_runs.interval[1] - in_runs.interval[0] > 1.5 * (mixed.interval[1] - mixed.interval[0])


def test_an_open_trade_is_counted_at_the_end_of_the_second_day_after_its_entry() -> None:
    assert counted_until(FIRST) == datetime(2026, 1, 8, tzinfo=UTC)
    result = analyse_holdout([*WITH_MEMORY, *WITHHELD, a_trade("withheld", day=30, r=-4.0, is_open=True)])
    assert result.withheld.open == 1
    assert result.withheld.mean == pytest.approx(-4 / 6)


def test_before_memory_was_ever_withheld_the_days_to_come_are_planned() -> None:
    assert analyse_holdout(WITH_MEMORY).detectable is None
    planned = analyse_holdout(days_of("shown", [1.0, -1.0] * 10)).detectable
    assert planned is not None
    assert (planned.withheld_share, planned.difference) == (0.2, None)
    assert planned.deviation == pytest.approx(math.sqrt(20 / 19))
    tenth, fifth = (each.days or 0 for each in planned.needed)
    assert 3.5 * fifth < tenth <= 3_650 or tenth == 0
    assert planned.sentence.endswith("if 20% of days are withheld.")


def test_what_is_called_detectable_is_found_in_four_lives_of_five() -> None:
    """At the number of days planned, looked at once: 80%, within the noise of 150 lives."""
    rng = random.Random(8)
    plan = analyse_holdout(lives(rng, days=100, effect=0.0)).detectable
    assert plan is not None
    assert plan.difference is not None
    settled = sum(analyse_holdout(lives(rng, days=100, effect=plan.difference)).verdict == "yes" for _ in range(150))
    low, high = rate_bounds(settled, 150, confidence=0.999)
    assert low <= 0.85
    assert high >= 0.7


def lives(rng: random.Random, *, days: int, effect: float) -> list[HoldoutTrade]:
    """Every other day with memory, which brings so much more a day."""
    arms: list[MemoryArm] = ["shown" if n % 2 else "withheld" for n in range(days)]
    return [a_trade(arm, day=n, r=rng.gauss(effect if arm == "shown" else 0.0, 1.0)) for n, arm in enumerate(arms)]


def test_few_days_widen_at_least_as_students_t_does() -> None:
    result = analyse_holdout(WITH_MEMORY + WITHHELD)
    assert result.interval is not None
    assert (result.interval[1] - 1.0) / math.sqrt(1 / 15 + 1 / 10) > t_quantile(0.999, freedom=9)


arms = st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.floats(-3, 3)), max_size=60)


@settings(max_examples=60)
@given(arms, st.randoms())
def test_the_order_does_not_matter_and_arms_may_change_places(
    rows: list[tuple[bool, int, float]], rng: random.Random
) -> None:
    trades = [a_trade("shown" if up else "withheld", day=2 * day + up, r=r) for up, day, r in rows]
    result = analyse_holdout(trades)
    again = analyse_holdout(rng.sample(trades, len(trades)))
    assert (again.difference, again.interval) == (result.difference, result.interval)
    swapped = analyse_holdout(a_trade("withheld" if up else "shown", day=2 * day + up, r=r) for up, day, r in rows)
    if result.interval is None or swapped.interval is None:
        assert result.interval == swapped.interval
    else:
        assert swapped.interval == pytest.approx((-result.interval[1], -result.interval[0]))
