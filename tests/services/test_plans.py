"""Plans apply and expire at ticks, a deep drawdown creates one, and a settlement says whether following it helped."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.market import Bar
from backsight.core.orders import Order, ReportedFill
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call
from support import deployed

HOUR = timedelta(hours=1)
DEPLOYMENT = "VolBreakout@main"
ALERT = {"type": "alert"}
SKIP = {"type": "skip_trade"}
HALVE = {"type": "adjust_param", "parameter": "size", "magnitude": 0.5}
DOUBLE = HALVE | {"magnitude": 2.0}
RANGING: dict[str, Any] = {"regime": "ranging"}
POSITION = a_position(2.0)


def at(hours: float) -> datetime:
    return T0 + hours * HOUR


def price(op: str, value: float) -> dict[str, Any]:
    return {"field": "price", "op": op, "value": value}


def create_plan(memory: Memory, condition: Any = RANGING, action: Any = ALERT, **more: Any) -> str:
    call = {"trigger_condition": condition, "planned_action": action, "reasoning": "three losses there"}
    return memory.create_trading_plan(**(call | more)).plan.id


def a_bar(hours: float, close: float) -> Bar:
    """BTC's bar that closes at this hour."""
    opened_at = at(hours - 1)
    return Bar(symbol="BTC", interval_seconds=3600, opened_at=opened_at, open=close, high=close, low=close, close=close)


class Desk:
    """The deployment VolBreakout@main and its ticks, one an hour."""

    def __init__(self, memory: Memory, clock: FakeClock) -> None:
        self.memory, self.clock = memory, clock
        deployed(memory)

    def tick(self, hours: float, *, equity: float = 10_000.0, **more: Any) -> ClosedTick:
        """A tick without positions and without an order."""
        self.clock.at = max(self.clock.at, at(hours))
        call: dict[str, Any] = {"deployment": DEPLOYMENT, "at": at(hours), "verdict": {"kind": "noop"}}
        return self.memory.close_tick(**(call | {"before": a_snapshot(at=at(hours), equity=equity)} | more))

    def look(self, hours: float, close: float, **more: Any) -> ClosedTick:
        """A tick that proposes to buy BTC after this close; the order is rejected."""
        call: dict[str, Any] = {"verdict": {"kind": "rejected", "rule": "size"}, "bars": [a_bar(hours, close)]}
        call["proposal"] = Order(symbol="BTC", quantity=1.0, reason="a try")
        return self.tick(hours, **(call | more))

    def trade(self, hours: float, close: float) -> str:
        """Open a trade at a tick, close it an hour later, and return the id of the trade."""
        call: dict[str, Any] = {"verdict": {"kind": "executed"}, "after": a_snapshot(POSITION, at=at(hours))}
        self.look(hours, close, proposal=Order(symbol="BTC", quantity=2.0, reason="in"), **call)
        looks = {"before": a_snapshot(POSITION, at=at(hours + 1)), "after": a_snapshot(at=at(hours + 1))}
        leave = Order(symbol="BTC", quantity=-2.0, reason="out")
        done = self.look(hours + 1, close, proposal=leave, **call | looks)
        return done.closed[0].id

    def plan(self) -> tuple[str, int]:
        """Status of the only plan, and how often its condition became true."""
        (plan,) = self.memory.list_plans().plans
        return plan.status, plan.times_fired


def check(desk: Desk, **arguments: Any) -> None:
    """Check the active plans for BTC in a ranging market."""
    desk.memory.check_active_plans(
        **{"deployment": DEPLOYMENT, "symbol": "BTC", "current_context": RANGING} | arguments
    )


def trades(desk: Desk, *results: float, **more: Any) -> None:
    """Record trades that open now and close one minute apart, with these results in R."""
    opened = desk.clock.now()
    for number, pnl_r in enumerate(results):
        desk.clock.advance(minutes=1)
        call = {"symbol": "BTC", "deployment": DEPLOYMENT, "opened_at": opened, "idempotency_key": f"{opened} {number}"}
        desk.memory.remember_trade(**a_trade_call(**call | {"pnl": 100 * pnl_r, "pnl_r": pnl_r} | more))


def calls(desk: Desk, *results: float) -> None:
    """Record decisions now that have these returns an hour later."""
    now = desk.clock.now()
    for number, each in enumerate(results):
        desk.memory.record_decision(
            symbol="BTC",
            direction="long",
            strategy_name="VolBreakout",
            horizon_hours=1.0,
            reasoning="what the plan made me skip",
            price=100.0 / (1.0 + each),
            deployment=DEPLOYMENT,
            idempotency_key=f"{now} {number}",
        )
    desk.clock.advance(hours=1)
    desk.memory.record_bars(bars=[a_bar((desk.clock.now() - T0) / HOUR, 100.0)])


# Plans at a tick.


def test_an_expired_plan_ended_at_its_expiry_time_whenever_it_is_read(desk: Desk) -> None:
    create_plan(desk.memory, expiry_days=1.0)
    desk.clock.at = at(30)
    before = desk.memory.list_plans().plans
    desk.tick(30)
    assert [(each.status, each.ended_at) for each in before] == [("expired", at(24))]
    assert desk.memory.list_plans().plans == before


# The plan that a deep drawdown creates.


# Settlement.


@pytest.mark.parametrize(("followed", "mean"), [(True, 0.1), (False, -1.0)])
def test_a_skip_is_settled_by_decisions_if_followed_and_by_trades_if_not(
    desk: Desk, followed: bool, mean: float
) -> None:
    plan = create_plan(desk.memory, action=SKIP)
    check(desk)
    calls(desk, 0.1)
    trades(desk, -1.0)
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=followed).settlement.results
    assert (result.n, round(result.mean, 9)) == (1, mean)


LOSSES = (-1.0, -0.9, -1.1, -1.0, -0.8, -1.0, -1.2, -1.0, -0.7, -1.0)
WINS = tuple(-each for each in LOSSES)
MIXED = (1.0, -1.0) * 5


@pytest.mark.parametrize(
    ("action", "followed", "results", "helped"),
    [
        (HALVE, True, LOSSES, True),
        (HALVE, True, WINS, False),
        (HALVE, True, MIXED, None),
        (HALVE, True, LOSSES[:9], None),
        (HALVE, False, LOSSES, True),
        (DOUBLE, True, WINS, True),
        (DOUBLE, False, WINS, None),
        (SKIP, False, LOSSES, True),
    ],
)
def test_helped_is_known_for_ten_trades_whose_interval_excludes_zero(
    desk: Desk, action: Any, followed: bool, results: tuple[float, ...], helped: bool | None
) -> None:
    plan = create_plan(desk.memory, action=action)
    check(desk)
    trades(desk, *results)
    settled = desk.memory.settle_plan(plan_id=plan, followed=followed)
    (result,) = settled.settlement.results
    assert (result.unit, result.n, result.helped) == ("R", len(results), helped)
    assert (settled.plan.status, settled.settlement.followed, settled.replayed) == ("settled", followed, False)


@pytest.mark.parametrize(("sign", "helped"), [(0.01, True), (-0.01, False)])
def test_a_skip_that_was_followed_helped_where_the_calls_lost(desk: Desk, sign: float, helped: bool) -> None:
    plan = create_plan(desk.memory, action=SKIP)
    check(desk)
    calls(desk, *(sign * each for each in LOSSES))
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results
    assert (result.n, result.mean < 0, result.helped) == (10, helped, helped)


def test_an_outcome_without_a_unit_is_counted_apart(desk: Desk) -> None:
    plan = create_plan(desk.memory, action=HALVE)
    check(desk)
    trades(desk, 1.0, pnl_r=None)
    settlement = desk.memory.settle_plan(plan_id=plan, followed=True).settlement
    assert (settlement.results, settlement.without_outcome) == ((), 1)


def test_a_plan_is_settled_once(desk: Desk) -> None:
    plan = create_plan(desk.memory)
    first = desk.memory.settle_plan(plan_id=plan, followed=True, note="it paid")
    desk.clock.advance(days=1)
    links = desk.memory.verify_audit().links
    again = desk.memory.settle_plan(plan_id=plan, followed=True)
    assert (first.replayed, again.replayed, again.settlement) == (False, True, first.settlement)
    with pytest.raises(Conflict, match="followed: the plan is already settled as followed"):
        desk.memory.settle_plan(plan_id=plan, followed=False)
    assert desk.memory.verify_audit().links == links
    assert desk.memory.check_active_plans(current_context=ContextVector(regime="ranging")).applying == ()


def test_an_unknown_plan_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound, match="plan_id: no plan 'nothing'"):
        desk.memory.settle_plan(plan_id="nothing", followed=True)


# Arguments.


def test_a_plan_needs_only_a_condition_an_action_a_reason_and_an_expiry(desk: Desk) -> None:
    plan = desk.memory.create_trading_plan(
        trigger_condition=RANGING, planned_action=SKIP, reasoning="three losses there", expiry_days=7.0
    ).plan
    assert (plan.expires_at, plan.mode, plan.trigger_type) == (T0 + timedelta(days=7), "while_true", "market_condition")
    exactly: dict[str, Any] = {"current_context": {"regime": "ranging", "atr_d1": 90.0}}
    answer = desk.memory.check_active_plans(**exactly)
    assert [each.plan for each in answer.applying] == [plan]


def test_a_context_may_name_the_strategy(desk: Desk) -> None:
    plan = desk.memory.create_trading_plan(
        trigger_condition={"regime": "ranging", "strategy": "VolBreakout", "type": "market_condition"},
        planned_action={"type": "skip_trade", "magnitude": 0.5},
        reasoning="three losses there",
    ).plan
    assert (plan.action.kind, plan.action.magnitude) == ("skip_trade", 0.5)
    named: dict[str, Any] = {"current_context": RANGING | {"strategy": "VolBreakout"}}
    for arguments in (named, named | {"deployment": DEPLOYMENT}):
        assert [each.plan for each in desk.memory.check_active_plans(**arguments).applying] == [plan]
    other: dict[str, Any] = {"current_context": RANGING | {"strategy": "Fade"}}
    assert desk.memory.check_active_plans(**other).applying == ()
    links = desk.memory.verify_audit().links
    with pytest.raises(
        Invalid, match=r"current_context\.strategy: deployment 'VolBreakout@main' runs 'VolBreakout', not"
    ):
        desk.memory.check_active_plans(**other, deployment=DEPLOYMENT)
    assert desk.memory.verify_audit().links == links


def test_a_strategy_that_is_not_deployed_has_its_plans_checked(memory: Memory) -> None:
    plan = memory.create_trading_plan(
        trigger_condition={"strategy": "IM", "regime": "ranging"}, planned_action=SKIP, reasoning="three losses there"
    ).plan
    seed: dict[str, Any] = {"current_context": {"strategy": "IM", "regime": "ranging"}}
    assert [each.plan for each in memory.check_active_plans(**seed).applying] == [plan]
    assert memory.check_active_plans(current_context=ContextVector(regime="ranging")).applying == ()


@pytest.mark.parametrize("field", ["trigger_condition", "planned_action", "expires_when"])
def test_a_list_is_no_condition_and_no_action(desk: Desk, field: str) -> None:
    links = desk.memory.verify_audit().links
    call: dict[str, Any] = {"trigger_condition": RANGING, "planned_action": SKIP, "reasoning": "x"}
    with pytest.raises(Invalid, match=f"{field}: this is a list; give an object"):
        desk.memory.create_trading_plan(**call | {field: [RANGING]})
    assert desk.memory.verify_audit().links == links


def test_plans_are_in_the_audit_chain_and_every_memory_follows_from_it(desk: Desk) -> None:
    plan = create_plan(desk.memory, price(">", 100.0), SKIP)
    desk.trade(1, 101.0)
    calls(desk, -0.02)
    desk.tick(5, equity=8_000.0)
    desk.memory.settle_plan(plan_id=plan, followed=False)
    assert desk.memory.verify_audit().intact
    assert desk.memory.doctor().healthy


def test_a_settlement_counts_trades_with_the_outcomes_known_at_that_time(desk: Desk) -> None:
    plan = create_plan(desk.memory, price("<", 200.0), HALVE)
    desk.trade(1, 100.0)
    fee = ReportedFill(id="late", at=at(2), sequence=9, kind="fee", symbol="BTC", fee=50.0)
    desk.tick(3, before=a_snapshot(at=at(3), fills=[fee]))
    (trade,) = desk.memory.list_trades(deployment=DEPLOYMENT).trades
    assert trade.outcome is not None
    (result,) = desk.memory.settle_plan(plan_id=plan, followed=True).settlement.results
    assert (result.n, result.mean) == (1, trade.outcome.value)
