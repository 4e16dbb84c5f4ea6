"""Checks of plans at ticks: when a plan fires, expires, and whom a check concerns."""

from typing import Any

import pytest

from services.test_plans import DEPLOYMENT, DOUBLE, HALVE, RANGING, SKIP, Desk, at, check, create_plan, price, trades


def test_a_plan_fires_once_while_its_condition_holds_and_again_after_it_failed(desk: Desk) -> None:
    plan = create_plan(desk.memory, price(">", 100.0))
    states = []
    for hours, close in enumerate((99.0, 101.0, 102.0, 98.0, 103.0), start=1):
        applied = desk.look(hours, close).plans
        states.append((applied == (plan,), desk.plan()[1]))
    assert states == [(False, 0), (True, 1), (True, 1), (False, 1), (True, 2)]
    assert desk.memory.list_plans().plans[0].last_fired_at == at(5)


@pytest.mark.parametrize("ends", [{"expiry_days": 3 / 24}, {"expires_when": price("<", 95.0)}])
def test_a_plan_expires_at_its_time_or_by_its_condition(desk: Desk, ends: dict[str, Any]) -> None:
    plan = create_plan(desk.memory, price("<", 100.0), **ends)
    applied = [desk.look(hours, close).plans for hours, close in ((1, 99.0), (2, 98.0), (3, 94.0), (4, 98.0))]
    assert applied == [(plan,), (plan,), (), ()]
    (record,) = desk.memory.list_plans().plans
    assert (record.status, record.ended_at, record.times_fired) == ("expired", at(3), 1)
    assert desk.memory.list_plans(as_of=at(2)).plans[0].status == "active"


def test_a_condition_that_does_not_depend_on_the_symbol_fires_once_for_all_symbols(desk: Desk) -> None:
    create_plan(desk.memory, {"field": "drawdown_pct", "op": ">=", "value": 0.1})
    counts = []
    for hours, symbol, equity in ((1, "BTC", 8_800.0), (2, "ETH", 8_800.0), (3, None, 8_800.0), (4, "SOL", 10_000.0)):
        desk.tick(hours - 0.5, equity=10_000.0 if hours == 1 else equity)
        desk.tick(hours, equity=equity)
        desk.clock.advance(minutes=1)
        answer = desk.memory.check_active_plans(deployment=DEPLOYMENT, symbol=symbol)
        counts.append((len(answer.applying), desk.plan()[1]))
    assert counts == [(1, 1), (1, 1), (1, 1), (0, 1)]


def test_a_plan_with_mode_once_applies_at_one_tick_only(desk: Desk) -> None:
    plan = create_plan(desk.memory, price(">", 100.0), mode="once")
    applied = [desk.look(hours, close).plans for hours, close in ((1, 99.0), (2, 101.0), (3, 102.0), (4, 99.0))]
    assert applied == [(), (plan,), (), ()]
    assert desk.plan() == ("fired", 1)


def test_plans_that_contradict_each_other_are_both_named(desk: Desk) -> None:
    more = create_plan(desk.memory, price(">", 100.0), DOUBLE, priority=0.9)
    none = create_plan(desk.memory, price(">", 100.0), SKIP)
    less = create_plan(desk.memory, price(">", 200.0), HALVE)
    quiet, loud = desk.look(1, 99.0), desk.look(2, 101.0)
    assert (quiet.plans, quiet.contradictions) == ((), ())
    assert loud.plans == (more, none)
    (pair,) = loud.contradictions
    assert (pair.first, pair.second) == (more, none)
    assert len(desk.look(3, 201.0).contradictions) == len({(more, none), (more, less)})


def test_a_crossing_is_against_the_deployments_own_last_tick(desk: Desk) -> None:
    desk.memory.save_strategy(name="Fade")
    desk.memory.deploy(strategy_name="Fade", account="main")
    plan = create_plan(desk.memory, price("crosses_above", 100.0))
    assert desk.look(1, 99.0).plans == ()
    assert desk.look(2, 101.0, deployment="Fade@main").plans == ()  # its first
    assert desk.look(3, 102.0).plans == (plan,)  # from 99, an hour before the other's tick
    assert desk.look(4, 103.0, deployment="Fade@main").plans == ()
    assert desk.look(5, 104.0).plans == ()


def test_a_crossing_without_bars_does_not_hold(desk: Desk) -> None:
    create_plan(desk.memory, price("crosses_below", 100.0))
    assert [desk.look(hours, 0.0, bars=[]).plans for hours in (1, 2)] == [(), ()]


def test_another_strategys_plan_does_not_concern_a_deployment(desk: Desk) -> None:
    create_plan(desk.memory, price(">", 100.0), strategy_name="Fade")
    own = create_plan(desk.memory, price(">", 100.0), strategy_name="VolBreakout")
    assert desk.look(1, 101.0).plans == (own,)
    trade = desk.trade(2, 101.0)
    assert [plan.id for plan in desk.memory.get_trade_reflection(trade_id=trade).plans] == [own]
    assert [each.plan.id for each in desk.memory.list_plans(deployment=DEPLOYMENT).plans] == [own]


def test_a_field_unknown_at_a_tick_ends_no_plan(desk: Desk) -> None:
    create_plan(desk.memory, {"field": "hours_to_event", "op": "<", "value": 6}, HALVE)
    for hours in (1, 2, 3):
        desk.clock.at = at(hours)
        answer = desk.memory.check_active_plans(deployment=DEPLOYMENT, hours_to_event=5.0 - hours, event_kind="FOMC")
        assert len(answer.applying) == 1
        desk.tick(hours)
    assert desk.plan() == ("active", 1)


def test_the_checks_of_one_deployment_do_not_count_for_another(desk: Desk) -> None:
    desk.memory.save_strategy(name="Fade")
    desk.memory.deploy(strategy_name="Fade", account="main")
    plan = create_plan(desk.memory, RANGING, HALVE)
    check(desk, deployment="Fade@main")
    desk.clock.advance(hours=1)
    trades(desk, 1.0)
    trades(desk, -1.0, deployment="Fade@main", strategy_name="Fade")
    settled = desk.memory.settle_plan(plan_id=plan, followed=True).settlement
    assert [(result.n, result.mean) for result in settled.results] == [(1, -1.0)]
