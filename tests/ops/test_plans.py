"""Operations on plans: created, checked, listed as of any instant, cancelled."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call
from support import deployed

DEPLOYMENT = "VolBreakout@main"
RANGING: dict[str, Any] = {"regime": "ranging"}
SKIP = {"type": "skip_trade"}
CONTEXT = ContextVector(regime="ranging")


@pytest.fixture
def planner(memory: Memory) -> Memory:
    deployed(memory)
    return memory


def create_plan(memory: Memory, condition: Any = RANGING, action: Any = SKIP, **more: Any) -> str:
    arguments = {"trigger_condition": condition, "planned_action": action, "reasoning": "three losses there"}
    return memory.create_trading_plan(**(arguments | more)).plan.id


def applying(memory: Memory, **arguments: Any) -> list[str]:
    answer = memory.check_active_plans(
        **({"deployment": DEPLOYMENT, "current_context": {"regime": "ranging"}} | arguments)
    )
    return [each.plan.id for each in answer.applying]


def test_a_skip_plan_protects_every_trade_until_it_expires(planner: Memory, clock: FakeClock) -> None:
    plan = create_plan(planner)
    for _ in range(5):
        clock.advance(days=5)
        assert applying(planner) == [plan]
        assert applying(planner, current_context={"regime": "volatile"}) == []
    clock.advance(days=5)
    assert applying(planner) == []
    (view,) = planner.list_plans().plans
    assert (view.status, view.times_fired, view.ended_at) == ("expired", 5, T0 + timedelta(days=30))


def test_a_rising_edge_is_recorded_once_for_each_symbol(planner: Memory, clock: FakeClock) -> None:
    plan = create_plan(planner)
    rising = []
    for symbol in ("BTC", "BTC", "ETH", "BTC"):
        clock.advance(hours=1)
        checked = planner.check_active_plans(deployment=DEPLOYMENT, symbol=symbol, current_context=CONTEXT)
        rising.append(list(checked.rising))
    assert rising == [[plan], [], [plan], []]
    assert planner.list_plans().plans[0].times_fired == 2


def test_a_plan_of_mode_once_applies_once(planner: Memory, clock: FakeClock) -> None:
    plan = create_plan(planner, mode="once")
    assert applying(planner) == [plan]
    for context in ({"regime": "volatile"}, {"regime": "ranging"}):
        clock.advance(hours=1)
        assert applying(planner, current_context=context) == []
    assert planner.list_plans().plans[0].status == "fired"


def test_mood_and_time_of_day_need_not_be_in_the_context(planner: Memory, clock: FakeClock) -> None:
    deep = {"field": "drawdown_pct", "op": ">=", "value": 0.15}
    early = {"field": "hour", "op": "<", "value": 12}
    plan = create_plan(planner, {"all": [deep, early]}, {"type": "adjust_param", "parameter": "size", "magnitude": 0.5})
    assert applying(planner, current_context=None) == []
    planner.record_equity(account="main", equity=10_000.0)
    clock.advance(minutes=5)
    planner.record_equity(account="main", equity=8_000.0)
    assert plan in applying(planner, current_context=None)


def test_two_plans_that_contradict_each_other_are_both_named(planner: Memory) -> None:
    more = create_plan(planner, action={"type": "adjust_param", "parameter": "size", "magnitude": 2.0}, priority=0.9)
    none = create_plan(planner, priority=0.1)
    checked = planner.check_active_plans(deployment=DEPLOYMENT, current_context=CONTEXT)
    assert [each.plan.id for each in checked.applying] == [more, none]
    (pair,) = checked.contradictions
    assert {pair.first, pair.second} == {more, none}
    assert "contradict" in checked.message


def test_a_field_that_is_missing_makes_a_comparison_false_and_is_named(planner: Memory) -> None:
    plan = create_plan(planner, {"not": {"regime": "trending_up"}})
    checked = planner.check_active_plans(deployment=DEPLOYMENT)
    assert checked.applying == ()
    assert [(each.plan_id, each.fields) for each in checked.missing] == [(plan, ("regime",))]


def test_a_plan_of_another_deployment_or_strategy_does_not_apply(planner: Memory) -> None:
    planner.save_strategy(name="Fade")
    planner.deploy(strategy_name="Fade", account="main")
    create_plan(planner, deployment="Fade@main")
    create_plan(planner, strategy_name="Fade")
    assert applying(planner) == []
    assert len(applying(planner, deployment="Fade@main")) == 2


def test_plans_are_listed_as_of_an_instant(planner: Memory, clock: FakeClock) -> None:
    plan = create_plan(planner)
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
    ("condition", "message"),
    [
        ({"regimee": "ranging"}, "regime"),
        ({}, "condition"),
        (["regime"], "condition: this is a list; give an object"),
        ({"drawdown_pct": 15}, "0 to 1"),
        ({"field": "regime", "op": ">", "value": "ranging"}, "condition"),
        ({"regime": "sideways"}, "ranging"),
    ],
)
def test_a_condition_that_cannot_be_judged_is_refused_when_made(planner: Memory, condition: Any, message: str) -> None:
    links = planner.verify_audit().links
    with pytest.raises(Invalid, match=message):
        create_plan(planner, condition)
    assert planner.verify_audit().links == links


def test_a_plan_that_is_over_cannot_be_cancelled_and_one_that_is_not_there_is_not_found(
    planner: Memory, clock: FakeClock
) -> None:
    plan = create_plan(planner, mode="once")
    applying(planner)
    with pytest.raises(Conflict, match="plan_id: the plan is fired"):
        planner.cancel_plan(plan_id=plan)
    with pytest.raises(NotFound, match="plan_id: no plan 'nothing'"):
        planner.cancel_plan(plan_id="nothing")


def test_plans_and_checks_leave_the_audit_chain_intact(planner: Memory, clock: FakeClock) -> None:
    create_plan(planner)
    applying(planner)
    planner.remember_trade(**a_trade_call())
    assert planner.verify_audit().intact


def test_a_check_ignores_later_changes_to_a_plan(planner: Memory, clock: FakeClock) -> None:
    plan = create_plan(planner)
    clock.advance(days=2)
    planner.cancel_plan(plan_id=plan)
    create_plan(planner, {"regime": "volatile"})
    clock.at = T0 + timedelta(days=1)  # a store that holds the future
    assert applying(planner) == [plan]


def test_a_dry_run_reports_what_a_check_reports_and_records_nothing(planner: Memory, clock: FakeClock) -> None:
    planner.save_strategy(name="Other")
    planner.deploy(strategy_name="Other", account="main")
    create_plan(planner)
    create_plan(planner, expiry_days=1.0)
    create_plan(planner, {"consecutive_losses": 1}, mode="once")
    planner.remember_trade(**a_trade_call(pnl=-100.0, pnl_r=-1.0, deployment=DEPLOYMENT))
    clock.advance(days=2)
    rows = planner.verify_audit().rows
    foreseen = planner.check_active_plans(current_context=CONTEXT, dry_run=True)
    assert planner.verify_audit().rows == rows
    checked = planner.check_active_plans(current_context=CONTEXT)
    assert planner.verify_audit().rows > rows
    assert (len(checked.rising), len(checked.expired), len(checked.applying)) == (2, 1, 2)
    assert "2 of 3 open plans apply then; a dry run, so nothing was recorded." in foreseen.message
    assert replace(foreseen, dry_run=False, message=checked.message) == checked


def test_a_check_as_of_an_instant_is_a_dry_run_of_then(planner: Memory, clock: FakeClock) -> None:
    plan = create_plan(planner)
    clock.advance(days=1)
    then: dict[str, Any] = {"as_of": clock.now(), "seen_at": clock.now(), "dry_run": True}
    answer = planner.check_active_plans(current_context=CONTEXT, **then)
    clock.advance(days=1)
    planner.check_active_plans(current_context=CONTEXT)
    planner.cancel_plan(plan_id=plan)
    create_plan(planner, {"regime": "ranging", "session": "london"})
    assert planner.check_active_plans(current_context=CONTEXT, **then) == answer
    assert [each.plan.id for each in answer.applying] == [plan]
    for field in ("as_of", "seen_at"):
        with pytest.raises(Invalid, match=f"{field}: only a dry run looks at the past; set dry_run, or leave it out"):
            planner.check_active_plans(**dict[str, Any]({field: T0}))
