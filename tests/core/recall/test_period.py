"""Laws of the period weight, in plain arithmetic and in arrays."""

import math
import random
import statistics
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.instants import Horizon
from backsight.core.memory.episodic import Episode
from backsight.core.recall.arrays.candidates import Filters
from backsight.core.recall.arrays.columns import columns_of
from backsight.core.recall.arrays.scan import scan
from backsight.core.recall.period import sharpe_weight
from backsight.core.recall.score import Situation
from backsight.core.trades.trade import Outcome
from backsight.testing import T0, an_episode
from backsight.testing.recall import period_weights, rank_plainly

EXTREMES = st.floats(-1e300, 1e300) | st.floats(-1e-200, 1e-200)
OUTCOMES = st.sampled_from([0.1, -1.0, 3.0]) | st.floats(-20, 20) | EXTREMES
GOOD = (1.0, 2.0, 1.0, 2.0, 1.0)


def a_month(outcomes: tuple[float, ...] = GOOD, **changes: Any) -> list[Episode]:
    """Episodes a day apart, the last at T0."""
    last = len(outcomes) - 1
    return [
        an_episode(n, **{"pnl_r": r, "ended_at": T0 - timedelta(days=last - n), **changes})
        for n, r in enumerate(outcomes)
    ]


def weight_of(episode: Episode, company: list[Episode]) -> float:
    return period_weights([episode], company)[episode.id]


@given(st.lists(OUTCOMES, max_size=12))
def test_a_weight_is_from_a_half_to_two(outcomes: list[float]) -> None:
    assert 0.5 <= sharpe_weight(outcomes) <= 2.0


@given(st.lists(OUTCOMES, min_size=5, max_size=12), st.randoms(), st.integers(-50, 20))
def test_neither_order_nor_unit_of_risk_matters(outcomes: list[float], rng: random.Random, power: int) -> None:
    weight = sharpe_weight(outcomes)
    shuffled = rng.sample(outcomes, len(outcomes))
    assert sharpe_weight(shuffled) == weight
    scaled = [math.ldexp(x, power) for x in outcomes]
    if all(math.ldexp(x, -power) == y for x, y in zip(scaled, outcomes, strict=True)):
        assert sharpe_weight(scaled) == weight


@given(st.lists(st.floats(-20, 20), min_size=5, max_size=12))
def test_the_weight_follows_the_sharpe_ratio(outcomes: list[float]) -> None:
    spread = statistics.pstdev(outcomes)
    expected = 1.0
    if spread > 1e-9:
        sharpe = statistics.fmean(outcomes) / spread * math.sqrt(252 / 30)
        expected = 0.5 + 0.5 * min(3.0, max(0.0, sharpe))
        assert sharpe_weight(outcomes) == pytest.approx(expected, rel=1e-9)
    elif len(set(outcomes)) == 1:
        assert sharpe_weight(outcomes) == 1.0


@given(OUTCOMES, st.integers(5, 40))
def test_equal_outcomes_have_no_spread_whatever_rounding_does(r: float, count: int) -> None:
    episodes = a_month((r,) * count, known_at=T0)
    assert sharpe_weight([r] * count) == 1.0
    result = scan(columns_of(episodes), Situation(), horizon=Horizon(as_of=T0), limit=count, period_weight=True)
    assert {hit.factors.Period for hit in result.memories} == {1.0}


def test_the_month_ends_with_the_episode_and_holds_thirty_days() -> None:
    *before, last = a_month()
    assert weight_of(last, [*before, last]) == 2.0
    assert weight_of(last, before) == 1.0
    at_the_edge = [*before[1:], last, an_episode(9, pnl_r=2.0, ended_at=T0 - timedelta(days=30))]
    assert weight_of(last, at_the_edge) == 1.0
    within = an_episode(9, pnl_r=2.0, ended_at=T0 - timedelta(days=30) + timedelta(microseconds=1))
    assert weight_of(last, [*before[1:], last, within]) == 2.0


def test_nothing_that_ended_later_counts() -> None:
    first, *after = a_month()
    assert weight_of(first, [first, *after]) == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy_name": "Carry"},
        {"mode": "sim"},
        {"kind": "inaction"},
        {"outcome": Outcome(value=2.0, unit="pct")},
        {"outcome": None},
    ],
)
def test_only_outcomes_in_r_of_the_same_strategy_and_mode_count(changes: dict[str, Any]) -> None:
    last = an_episode(99)
    others = a_month(GOOD, **changes)
    assert weight_of(last, [last, *others]) == 1.0
    columns = columns_of([last, *others])
    result = scan(
        columns,
        Situation(),
        Filters(strategy_name="VolBreakout", mode="live"),
        horizon=Horizon(as_of=T0),
        period_weight=True,
    )
    assert {hit.factors.Period for hit in result.memories} == {1.0}


def test_episodes_that_are_filtered_out_or_archived_still_count() -> None:
    last = an_episode(99, symbol="BTC")
    others = a_month(GOOD, archived_at=T0, kind="call", symbol="ETH")
    assert weight_of(last, [last, *others]) == 2.0
    result = scan(
        columns_of([last, *others]), Situation(), Filters(symbol="BTC"), horizon=Horizon(as_of=T0), period_weight=True
    )
    assert [(hit.id, hit.factors.Period) for hit in result.memories] == [(last.id, 2.0)]


@pytest.mark.parametrize("late", ["known_at", "recorded_at"])
def test_episodes_that_are_not_yet_known_do_not_count(late: str) -> None:
    last, tomorrow = an_episode(99), T0 + timedelta(days=1)
    columns = columns_of([last, *a_month(GOOD, **{late: tomorrow})])
    then = scan(columns, Situation(), horizon=Horizon(as_of=T0, seen_at=T0), period_weight=True)
    later = scan(columns, Situation(), horizon=Horizon(as_of=tomorrow, seen_at=tomorrow), period_weight=True)
    assert {hit.factors.Period for hit in then.memories} == {1.0}
    assert 2.0 in {hit.factors.Period for hit in later.memories}


def test_an_episode_in_another_unit_is_weighted_by_those_in_r() -> None:
    last = an_episode(99, outcome=Outcome(value=0.01, unit="pct"))
    assert weight_of(last, a_month()) == 2.0
    result = scan(columns_of([last, *a_month()]), Situation(), horizon=Horizon(as_of=T0), period_weight=True)
    assert {hit.id: hit.factors.Period for hit in result.memories}[last.id] == 2.0


def test_only_the_score_is_weighted() -> None:
    episodes = a_month((1.0, -2.0, 3.0, -1.0, 2.0, -0.5, 1.5))
    now = T0 + timedelta(days=1)
    weighted = rank_plainly(episodes, Situation(), now=now, limit=9, period_weight=True)
    blunt = rank_plainly(episodes, Situation(), now=now, limit=9)
    assert [(m.id, m.score) for m in weighted.nearest] == [(m.id, m.score) for m in blunt.nearest]
    assert [(m.id, m.score) for m in weighted.warnings] == [(m.id, m.score) for m in blunt.warnings]
    assert any(m.factors.Period != 1.0 for m in weighted.memories)
    assert all(m.score == m.factors.score for m in weighted.memories)
