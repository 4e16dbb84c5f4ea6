"""Checking plans: which apply, when a condition begins to hold, and which plans contradict each other."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.memory.prospective import (
    PlanEvent,
    apply_events,
    plan_state,
)
from backsight.testing import T0
from core.memory.test_prospective import HOUR, a_plan, adjust, check

RANGING, TRENDING = {"regime": "ranging", "symbol": "BTC"}, {"regime": "trending_up", "symbol": "BTC"}


def test_a_skip_plan_protects_every_trade_until_it_expires() -> None:
    plan, holding, edges = a_plan(), frozenset[str](), 0
    for day in range(30):
        checked = check([plan], RANGING, now=T0 + timedelta(days=day), holding=holding)
        assert checked.applying == (plan,)
        holding, edges = checked.holding, edges + len(checked.rising)
    over = check([plan], RANGING, now=T0 + timedelta(days=30), holding=holding)
    assert (over.applying, over.rising, edges) == ((), (), 1)
    assert [event.kind for event in over.expired] == ["expired"]


def test_each_rising_edge_is_one_event() -> None:
    plan, holding, edges = a_plan(), frozenset[str](), []
    for hour, values in enumerate([RANGING, RANGING, TRENDING, RANGING, RANGING]):
        checked = check([plan], values, now=T0 + hour * HOUR, holding=holding)
        holding = checked.holding
        edges += [event.known_at for event in checked.rising]
    assert edges == [T0, T0 + 3 * HOUR]


def test_the_same_check_names_the_same_event() -> None:
    one, other = (check([a_plan()], RANGING, now=T0).rising for _ in range(2))
    assert one == other
    assert (one[0].symbol, one[0].plan_id) == ("BTC", a_plan().id)


def test_a_once_plan_fires_on_its_first_rising_edge_and_is_done() -> None:
    plan = a_plan(mode="once")
    checked = check([plan], RANGING, now=T0)
    fired = plan_state(plan, checked.rising)
    assert checked.applying == (plan,)
    assert (fired.status, fired.fired_at) == ("fired", T0)
    assert check([fired], RANGING, now=T0 + HOUR).applying == ()
    assert check([plan], RANGING, now=T0 + HOUR, holding=checked.holding).applying == ()


def test_a_while_true_plan_counts_its_edges_and_stays_active() -> None:
    state = plan_state(a_plan())
    for hour in (0, 5):
        state = apply_events(state, check([state], RANGING, now=T0 + hour * HOUR).rising)
    assert (state.status, state.times_fired, state.fired_at, state.last_fired_at) == ("active", 2, T0, T0 + 5 * HOUR)


def test_a_crossing_is_one_edge_against_the_tick_before() -> None:
    plan = a_plan(condition={"field": "price", "op": "crosses_above", "value": 100})
    assert check([plan], {"price": 101}, now=T0).missing == {plan.id: ("former price",)}
    assert check([plan], {"price": 101}, now=T0, former_values={"price": 99}).applying == (plan,)
    assert check([plan], {"price": 102}, now=T0, former_values={"price": 101}).applying == ()


def test_an_expiry_condition_ends_a_plan_without_an_expiry_time() -> None:
    plan = a_plan(expires_when={"field": "drawdown_state", "op": "<", "value": 0.5})
    assert plan.expires_at is None
    assert check([plan], RANGING | {"drawdown_state": 0.4}, now=T0).expired[0].plan_id == plan.id
    later = check([plan], RANGING, now=T0 + timedelta(days=400))
    assert (later.applying, later.missing) == ((plan,), {plan.id: ("drawdown_state",)})


def test_a_plan_that_is_not_active_or_not_yet_known_is_not_checked() -> None:
    inactive = [replace(plan_state(a_plan()), status=status) for status in ("fired", "expired", "cancelled", "settled")]
    checked = check([*inactive, a_plan(now=T0 + HOUR)], RANGING, now=T0)
    assert (checked.applying, checked.expired, checked.missing) == ((), (), {})


def test_plans_apply_by_priority_and_then_by_age() -> None:
    late, early = a_plan(now=T0), a_plan(now=T0 - HOUR)
    first = a_plan(priority=0.9)
    assert check([late, first, early], RANGING, now=T0).applying == (first, early, late)


def test_a_missing_field_is_named_with_its_plan() -> None:
    plan = a_plan(condition={"not": {"field": "drawdown_pct", "op": "<", "value": 0.1}})
    checked = check([plan, a_plan()], RANGING, now=T0)
    assert checked.missing == {plan.id: ("drawdown_pct",)}
    assert plan not in checked.applying


def test_two_contradicting_plans_are_both_named() -> None:
    skip, double = a_plan(priority=0.9), a_plan(action=adjust("size", 2.0))
    (contradiction,) = check([double, skip], RANGING, now=T0).contradictions
    assert (contradiction.first, contradiction.second) == (skip.id, double.id)
    assert contradiction.reason == "skip_trade stays out, and the other raises size"


def test_plans_contradict_only_while_both_apply() -> None:
    double = a_plan(action=adjust("size", 2.0), condition={"regime": "volatile"})
    assert check([a_plan(), double], RANGING, now=T0).contradictions == ()


@given(st.lists(st.sampled_from(["ranging", "trending_up", None]), min_size=1, max_size=12))
def test_edges_are_where_the_condition_began_to_hold(regimes: list[str | None]) -> None:
    plan, holding, edges = a_plan(), frozenset[str](), list[PlanEvent]()
    for hour, regime in enumerate(regimes):
        checked = check([plan], {"regime": regime}, now=T0 + hour * HOUR, holding=holding)
        again = check([plan], {"regime": regime}, now=T0 + hour * HOUR)
        assert (checked.applying, checked.holding) == (again.applying, again.holding)
        holding, edges = checked.holding, [*edges, *checked.rising]
    began = [n for n, regime in enumerate(regimes) if regime == "ranging" and [None, *regimes][n] != "ranging"]
    assert [event.known_at for event in edges] == [T0 + n * HOUR for n in began]
