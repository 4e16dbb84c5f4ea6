"""Plans behind operations: made, checked, listed as they were at any instant, cancelled."""

from datetime import timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call
from support import deployed

HOME = "VolBreakout@main"
RANGING: dict[str, Any] = {"regime": "ranging"}
SKIP = {"type": "skip_trade"}
HERE = ContextVector(regime="ranging")


@pytest.fixture
def planner(memory: Memory) -> Memory:
    deployed(memory)
    return memory


def made(memory: Memory, condition: Any = RANGING, action: Any = SKIP, **more: Any) -> str:
    told = {"trigger_condition": condition, "planned_action": action, "reasoning": "three losses there"}
    return memory.create_trading_plan(**(told | more)).plan.id


def applying(memory: Memory, **asked: Any) -> list[str]:
    found = memory.check_active_plans(**({"deployment": HOME, "current_context": {"regime": "ranging"}} | asked))
    return [each.plan.id for each in found.applying]


def test_a_skip_plan_protects_every_trade_until_it_expires(planner: Memory, clock: FakeClock) -> None:
    plan = made(planner)
    for _ in range(5):
        clock.advance(days=5)
        assert applying(planner) == [plan]
        assert applying(planner, current_context={"regime": "volatile"}) == []
    clock.advance(days=5)
    assert applying(planner) == []
    (seen,) = planner.list_plans().plans
    assert (seen.status, seen.times_fired, seen.ended_at) == ("expired", 5, T0 + timedelta(days=30))


def test_a_rising_edge_is_recorded_once_for_each_symbol(planner: Memory, clock: FakeClock) -> None:
    plan = made(planner)
    rising = []
    for symbol in ("BTC", "BTC", "ETH", "BTC"):
        clock.advance(hours=1)
        checked = planner.check_active_plans(deployment=HOME, symbol=symbol, current_context=HERE)
        rising.append(list(checked.rising))
    assert rising == [[plan], [], [plan], []]
    assert planner.list_plans().plans[0].times_fired == 2


def test_once_is_once(planner: Memory, clock: FakeClock) -> None:
    plan = made(planner, mode="once")
    assert applying(planner) == [plan]
    for context in ({"regime": "volatile"}, {"regime": "ranging"}):
        clock.advance(hours=1)
        assert applying(planner, current_context=context) == []
    assert planner.list_plans().plans[0].status == "fired"


def test_the_mood_and_the_time_need_not_be_told(planner: Memory, clock: FakeClock) -> None:
    deep = {"field": "drawdown_pct", "op": ">=", "value": 0.15}
    early = {"field": "hour", "op": "<", "value": 12}
    plan = made(planner, {"all": [deep, early]}, {"type": "adjust_param", "parameter": "size", "magnitude": 0.5})
    assert applying(planner, current_context=None) == []
    planner.record_equity(account="main", equity=10_000.0)
    clock.advance(minutes=5)
    planner.record_equity(account="main", equity=8_000.0)
    assert plan in applying(planner, current_context=None)


def test_two_plans_that_contradict_each_other_are_both_named(planner: Memory) -> None:
    more = made(planner, action={"type": "adjust_param", "parameter": "size", "magnitude": 2.0}, priority=0.9)
    none = made(planner, priority=0.1)
    checked = planner.check_active_plans(deployment=HOME, current_context=HERE)
    assert [each.plan.id for each in checked.applying] == [more, none]
    (pair,) = checked.contradictions
    assert {pair.first, pair.second} == {more, none}
    assert "contradict" in checked.message


def test_a_field_that_is_missing_makes_a_comparison_false_and_is_named(planner: Memory) -> None:
    plan = made(planner, {"not": {"regime": "trending_up"}})
    checked = planner.check_active_plans(deployment=HOME)
    assert checked.applying == ()
    assert [(each.plan_id, each.fields) for each in checked.missing] == [(plan, ("regime",))]


def test_a_plan_of_another_deployment_or_strategy_does_not_apply(planner: Memory) -> None:
    planner.save_strategy(name="Fade")
    planner.deploy(strategy_name="Fade", account="main")
    made(planner, deployment="Fade@main")
    made(planner, strategy_name="Fade")
    assert applying(planner) == []
    assert len(applying(planner, deployment="Fade@main")) == 2


def test_plans_are_listed_as_they_were(planner: Memory, clock: FakeClock) -> None:
    plan = made(planner)
    clock.advance(hours=1)
    applying(planner)
    clock.advance(hours=1)
    planner.cancel_plan(plan_id=plan, reason="the range broke")
    then = [planner.list_plans(as_of=T0 + timedelta(minutes=90 * n)).plans[0] for n in range(3)]
    assert [(each.status, each.times_fired) for each in then] == [("active", 0), ("active", 1), ("cancelled", 1)]
    assert planner.list_plans(as_of=T0 - timedelta(seconds=1)).plans == ()
    assert planner.cancel_plan(plan_id=plan).replayed


KEYED: dict[str, Any] = {"trigger_condition": RANGING, "planned_action": SKIP, "idempotency_key": "k"}


def test_the_same_key_is_the_same_plan(planner: Memory, clock: FakeClock) -> None:
    first = planner.create_trading_plan(**KEYED, reasoning="why")
    clock.advance(days=1)
    again = planner.create_trading_plan(**KEYED, reasoning="why")
    assert (again.replayed, again.plan) == (True, first.plan)
    with pytest.raises(Conflict, match="idempotency_key: this key already belongs to another plan"):
        planner.create_trading_plan(**KEYED, reasoning="other")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ({"regimee": "ranging"}, "regime"),
        ({}, "condition"),
        (["regime"], "condition: this is a list; give an object"),
        ({"drawdown_pct": 15}, "0 to 1"),
        ({"field": "regime", "op": ">", "value": "ranging"}, "condition"),
        ({"regime": "sideways"}, "ranging"),
    ],
)
def test_a_condition_that_cannot_be_judged_is_refused_when_made(planner: Memory, condition: Any, said: str) -> None:
    links = planner.verify_audit().links
    with pytest.raises(Invalid, match=said):
        made(planner, condition)
    assert planner.verify_audit().links == links


def test_a_plan_that_is_over_cannot_be_cancelled_and_one_that_is_not_there_is_not_found(
    planner: Memory, clock: FakeClock
) -> None:
    plan = made(planner, mode="once")
    applying(planner)
    with pytest.raises(Conflict, match="plan_id: the plan is fired"):
        planner.cancel_plan(plan_id=plan)
    with pytest.raises(NotFound, match="plan_id: no plan 'nothing'"):
        planner.cancel_plan(plan_id="nothing")


def test_everything_is_in_the_audit_chain(planner: Memory, clock: FakeClock) -> None:
    made(planner)
    applying(planner)
    planner.remember_trade(**a_trade_call())
    assert planner.verify_audit().intact


def test_a_check_sees_nothing_that_became_of_a_plan_later(planner: Memory, clock: FakeClock) -> None:
    plan = made(planner)
    clock.advance(days=2)
    planner.cancel_plan(plan_id=plan)
    made(planner, {"regime": "volatile"})
    clock.at = T0 + timedelta(days=1)  # a store that holds the future
    assert applying(planner) == [plan]
