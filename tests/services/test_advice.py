"""Advice from what trades earn: the markets in which a win rate misleads, end to end."""

import json
from datetime import timedelta
from typing import Any, get_args

import pytest

from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.semantic import Claim
from backsight.core.portfolio import Direction
from backsight.memory import Memory
from backsight.services.advice import AdviceEvidence, advice_evidence
from backsight.store.strategies import deployment as stored_deployment
from backsight.testing import FakeClock, a_trade_call

DEPLOYMENT = "manual:Mixed"
TREND = {"field": "regime", "op": "==", "value": "trending_up"}
RANGE = {"field": "regime", "op": "==", "value": "ranging"}


def traded(memory: Memory, clock: FakeClock, *, trend: list[float], ranges: list[float], trades: int = 80) -> None:
    """Trade trends and ranges by turns, one trade in 13 hours, with the given results in R again and again."""
    for number in range(trades):
        clock.advance(hours=13)
        results, regime = (trend, "trending_up") if number % 2 == 0 else (ranges, "ranging")
        r = results[number // 2 % len(results)]
        times = {"opened_at": clock.now() - timedelta(hours=1), "closed_at": clock.now()}
        subject = {"strategy_name": "Mixed", "symbol": "BTC", "direction": "long" if number % 4 < 2 else "short"}
        memory.remember_trade(**a_trade_call(pnl=100.0 * r, pnl_r=r, context_regime=regime, **subject) | times)


def advised(memory: Memory) -> dict[str, str]:
    """The actions of the open proposals, by condition."""
    contents = (json.loads(each.proposal.content) for each in memory.list_proposals(status="proposed").proposals)
    return {json.dumps(each["trigger_condition"]): each["planned_action"]["type"] for each in contents}


def recommended(memory: Memory, regime: Any, direction: Direction = "long") -> float:
    size = memory.position_size(symbol="BTC", direction=direction, strategy_name="Mixed", context_regime=regime).size
    return size.recommended or 0.0


def largest_recommended(memory: Memory, regime: Any) -> float:
    return max(recommended(memory, regime, each) for each in get_args(Direction))


THREE_OF_TEN = [-1.0, 5.0, -1.0, -1.0, 5.0, -1.0, -1.0, 5.0, -1.0, -1.0]


def believed(memory: Memory, regime: Any, *, claims: Claim) -> str:
    """State how often trades win in a regime, and return the id of the belief."""
    proposition = f"How often it wins with {regime}"
    stated = memory.add_belief(
        proposition=proposition, strategy_name="Mixed", regime=regime, about="win_rate", claims=claims
    )
    return stated.belief.belief.id


def credibility(memory: Memory, belief_id: str) -> float:
    beliefs = memory.list_beliefs().beliefs
    return next(each.posterior.credibility for each in beliefs if each.belief.id == belief_id)


def test_the_best_trades_are_not_forbidden_because_they_win_seldom(memory: Memory, clock: FakeClock) -> None:
    """A trend that wins 30% at +5R and −1R, and ranges that win 65% at +.6R and −1R."""
    beliefs = [believed(memory, "trending_up", claims="below"), believed(memory, "ranging", claims="above")]
    seven_of_twenty_lose = [-1.0 if number in (2, 5, 7, 10, 13, 16, 18) else 0.6 for number in range(20)]
    traded(memory, clock, trend=THREE_OF_TEN, ranges=seven_of_twenty_lose)
    memory.reflect(deployment=DEPLOYMENT)
    assert all(credibility(memory, belief) > 0.9 for belief in beliefs)
    assert recommended(memory, "trending_up") > recommended(memory, "ranging")
    assert set(advised(memory).items()) <= {(json.dumps(TREND), "adjust_param")}
    assert memory.list_plans().plans == ()


def test_trades_that_win_often_and_lose_money_are_proposed_to_be_skipped(memory: Memory, clock: FakeClock) -> None:
    """Ranges that win 80% at +.1R and −1R, and a trend that wins 30% at +5R."""
    often = believed(memory, "ranging", claims="above")
    traded(memory, clock, trend=THREE_OF_TEN, ranges=[0.1, 0.1, -1.0, 0.1, 0.1])
    assert credibility(memory, often) > 0.9
    assert advised(memory)[json.dumps(RANGE)] == "skip_trade"
    assert recommended(memory, "ranging") == 0.0
    assert memory.list_plans().plans == ()


@pytest.mark.parametrize(("regime", "advice"), [("ranging", "trade_less"), ("trending_up", "trade_more")])
def test_evidence_for_advice_is_the_mean_there_the_mean_elsewhere_and_the_sizes(
    memory: Memory, clock: FakeClock, regime: str, advice: str
) -> None:
    traded(memory, clock, trend=[1.0, 2.0, 1.0, -0.5], ranges=[-1.0, 0.2], trades=60)
    with memory.reading() as connection:
        deployment = stored_deployment(connection, memory.owner, DEPLOYMENT)
        assert deployment is not None
        condition = parse_condition({"regime": regime})
        evidence = advice_evidence(memory.view(connection), deployment, condition)
    mean, elsewhere = (-0.4, 0.9) if regime == "ranging" else (0.9, -0.4)
    assert (evidence.outcome.n, evidence.outcome.unit) == (30, "R")
    assert evidence.outcome.mean == pytest.approx(mean, abs=0.05)
    assert evidence.outcome.elsewhere == pytest.approx(elsewhere, abs=0.05)
    assert (evidence.advice, evidence.objection) == (advice, None)
    assert evidence.sizes is not None
    assert evidence.sizes.largest == pytest.approx(recommended(memory, regime), abs=0.01)


def the_evidence(memory: Memory, regime: str) -> AdviceEvidence:
    with memory.reading() as connection:
        deployment = stored_deployment(connection, memory.owner, DEPLOYMENT)
        assert deployment is not None
        return advice_evidence(memory.view(connection), deployment, parse_condition({"regime": regime}))


def remember(memory: Memory, clock: FakeClock, **changes: Any) -> None:
    clock.advance(hours=13)
    times = {"opened_at": clock.now() - timedelta(hours=1), "closed_at": clock.now()}
    memory.remember_trade(**a_trade_call(symbol="BTC", **changes) | times)


def test_sizes_for_advice_know_how_many_strategies_were_tried(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, trend=[9.0, 9.0, -9.0, 9.0], ranges=[-9.0, 1.8], trades=60)
    alone = the_evidence(memory, "trending_up")
    for number in range(7):
        for _ in range(10):
            remember(memory, clock, strategy_name=f"Coin{number}", direction="long", pnl=-100.0, pnl_r=-1.0)
    assert memory.position_size(symbol="BTC", direction="long", strategy_name="Mixed").size.strategies == 8
    among_eight = the_evidence(memory, "trending_up")
    assert alone.sizes is not None
    assert among_eight.sizes is not None
    assert among_eight.sizes.largest < alone.sizes.largest
    assert among_eight.sizes.largest == pytest.approx(largest_recommended(memory, "trending_up"), abs=0.002)


def test_trades_without_r_lower_the_sizes_and_are_counted_in_words(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, trend=[9.0, 9.0, -9.0, 9.0], ranges=[-9.0, 1.8], trades=60)
    before = the_evidence(memory, "trending_up")
    subject: dict[str, Any] = {"strategy_name": "Mixed", "direction": "long", "context_regime": "trending_up"}
    for number in range(12):
        remember(memory, clock, **subject, pnl=-50.0 if number % 4 == 3 else 100.0, pnl_r=None)
    after = the_evidence(memory, "trending_up")
    assert (after.outcome.n, after.outcome.unknown, after.outcome.biased) == (30, 12, None)
    assert before.sizes is not None
    assert after.sizes is not None
    assert after.sizes.largest < before.sizes.largest
    assert after.sizes.largest == pytest.approx(largest_recommended(memory, "trending_up"), abs=0.002)


@pytest.mark.parametrize(("regime", "pnl"), [("trending_up", -100.0), ("ranging", 100.0)])
def test_no_advice_where_the_outcomes_that_contradict_it_are_unknown(
    memory: Memory, clock: FakeClock, regime: str, pnl: float
) -> None:
    traded(memory, clock, trend=[1.0, 2.0, 1.0, -0.5], ranges=[-1.0, 0.2], trades=60)
    for _ in range(12):
        remember(memory, clock, strategy_name="Mixed", direction="long", context_regime=regime, pnl=pnl, pnl_r=None)
    evidence = the_evidence(memory, regime)
    assert evidence.advice is None
    assert "R is unknown for" in (evidence.objection or "")
