"""What learning does to plans: it makes them from drawdowns, and counts the outcomes that followed them."""

from datetime import timedelta

from backsight.testing import T0
from services.test_plans import ALERT, HALVE, SKIP, Desk, at, calls, check, create_plan, price, trades


def test_a_deep_drawdown_creates_one_plan_that_halves_size_until_half_of_it_is_recovered(desk: Desk) -> None:
    states = []
    for hours, equity in enumerate((10_000.0, 8_600.0, 8_490.0, 8_300.0, 8_900.0, 9_001.0, 9_000.0, 9_500.0)):
        applied = desk.tick(hours, equity=equity).plans
        plans = desk.memory.list_plans().plans
        states.append((len(plans), len(applied), [each.status for each in plans]))
    waits, applies = (1, 0, ["active"]), (1, 1, ["active"])
    assert states == [(0, 0, []), (0, 0, []), waits, applies, applies, *[(1, 0, ["expired"])] * 3]
    plan = desk.memory.list_plans().plans[0].plan
    assert (plan.action.kind, plan.action.parameter, plan.action.magnitude) == ("adjust_param", "size", 0.5)
    assert plan.sources[0].kind == "affective"


def test_fifteen_of_twenty_percent_is_deep_enough(desk: Desk) -> None:
    desk.tick(1)
    desk.tick(2, equity=8_500.0)
    assert desk.memory.get_agent_state().mood.drawdown_state == 0.75
    assert desk.plan() == ("active", 0)


def test_a_drawdown_recorded_without_a_tick_creates_the_plan(desk: Desk) -> None:
    for equity in (10_000.0, 8_000.0, 7_900.0):
        desk.memory.record_equity(account="main", equity=equity)
        desk.clock.advance(hours=1)
    assert desk.plan() == ("active", 0)
    assert desk.memory.list_plans().plans[0].plan.known_at == at(1)


def test_a_second_deep_drawdown_creates_a_second_plan(desk: Desk) -> None:
    for hours, equity in enumerate((10_000.0, 8_000.0, 9_900.0, 9_900.0, 8_000.0, 8_000.0)):
        desk.tick(hours, equity=equity)
    assert [each.status for each in desk.memory.list_plans().plans] == ["expired", "active"]


def test_only_a_trade_opened_while_the_condition_held_counts_for_the_plan(desk: Desk) -> None:
    plan = create_plan(desk.memory, price(">", 100.0), HALVE)
    inside, outside = desk.trade(1, 101.0), desk.trade(3, 99.0)
    assert [each.id for each in desk.memory.get_trade_reflection(trade_id=inside).plans] == [plan]
    assert desk.memory.get_trade_reflection(trade_id=outside).plans == ()
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results
    assert (result.n, result.helped) == (1, None)


def test_a_skip_is_settled_by_the_decisions_recorded_while_it_applied(desk: Desk) -> None:
    plan = create_plan(desk.memory, action=SKIP)
    check(desk)
    calls(desk, -0.02, -0.04)
    check(desk, current_context={"regime": "volatile"})
    calls(desk, 0.5)
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results
    assert (result.unit, result.n, round(result.mean, 9)) == ("pct", 2, -0.03)


def test_a_plan_with_mode_once_counts_trades_opened_within_five_minutes_after_it_fired(desk: Desk) -> None:
    plan = create_plan(desk.memory, action=HALVE, mode="once")
    check(desk)
    for minutes in (0, 5, 6):
        desk.clock.at = T0 + timedelta(minutes=minutes)
        trades(desk, 1.0)
    check(desk, current_context={"regime": "volatile"})
    desk.clock.advance(days=20)
    trades(desk, 1.0)
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results
    assert result.n == 2


def test_an_expired_plan_counts_no_later_trades_even_if_nobody_checked_it(desk: Desk) -> None:
    plan = create_plan(desk.memory, action=HALVE, expiry_days=5.0)
    check(desk)
    for days in (5.0 - 1e-6, 5.0, 20.0):
        desk.clock.at = at(24 * days)
        trades(desk, 1.0)
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results
    assert result.n == 1


def test_a_condition_that_failed_for_all_symbols_counts_no_later_trade(desk: Desk) -> None:
    create_plan(desk.memory, {"field": "drawdown_pct", "op": ">=", "value": 0.1})
    applied = [len(desk.tick(hours, equity=equity).plans) for hours, equity in enumerate((10_000.0, 8_800.0, 10_000.0))]
    assert applied == [0, 1, 0]  # by the equity of the tick, which its prompt shows
    trade = desk.trade(4, 100.0)
    assert desk.memory.get_trade_reflection(trade_id=trade).plans == ()


def test_a_check_for_a_symbol_overrides_a_check_without_a_symbol(desk: Desk) -> None:
    plan = create_plan(desk.memory, action=HALVE)
    check(desk)
    desk.clock.advance(hours=1)
    check(desk, current_context={"regime": "volatile"})
    check(desk, symbol=None)
    trades(desk, 1.0)
    trades(desk, 2.0, symbol="ETH")
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results
    assert (result.n, result.mean) == (1, 2.0)


def test_decisions_count_for_a_skip_only(desk: Desk) -> None:
    plans = [create_plan(desk.memory, action=action) for action in (SKIP, HALVE, ALERT)]
    check(desk)
    calls(desk, 0.1)
    results = [desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results for plan in plans]
    assert [len(each) for each in results] == [1, 0, 0]


def test_a_mood_plan_that_was_cancelled_comes_back_only_with_the_next_drawdown(desk: Desk) -> None:
    desk.tick(1)
    desk.tick(2, equity=8_400.0)
    (plan,) = desk.memory.list_plans().plans
    desk.memory.cancel_plan(plan_id=plan.plan.id)
    desk.tick(3, equity=8_300.0)
    assert len(desk.memory.list_plans().plans) == 1
    desk.tick(4, equity=10_100.0)
    desk.tick(5, equity=8_000.0)
    assert [each.status for each in desk.memory.list_plans().plans] == ["cancelled", "active"]
