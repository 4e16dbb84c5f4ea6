"""Plans: when they apply, when they end, which plans they contradict, and whether they helped."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Conflict, Invalid
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.plan_check import PlanCheck, check_plans
from backsight.core.memory.plan_origins import plan_from_belief, plan_from_mood
from backsight.core.memory.plan_settlement import compute_settlement, settle
from backsight.core.memory.planned_action import PlannedAction, action_json, contradiction_of, parse_action
from backsight.core.memory.prospective import (
    Plan,
    PlanDraft,
    PlanEvent,
    PlanEventKind,
    PlanSource,
    PlanState,
    apply_event,
    apply_events,
    is_in_scope,
    make_cancelled_event,
    make_event,
    make_plan,
    make_settled_event,
    plan_state,
)
from backsight.core.memory.semantic import Belief, Domain
from backsight.core.trades.trade import Outcome
from backsight.testing import T0

HOUR = timedelta(hours=1)
RANGING, TRENDING = {"regime": "ranging", "symbol": "BTC"}, {"regime": "trending_up", "symbol": "BTC"}
SKIP = {"type": "skip_trade"}
KINDS: st.SearchStrategy[PlanEventKind] = st.sampled_from(["rising", "expired", "cancelled", "settled", "outcome"])


def adjust(parameter: str, magnitude: float) -> dict[str, Any]:
    return {"type": "adjust_param", "parameter": parameter, "magnitude": magnitude}


def a_plan(**changes: Any) -> Plan:
    """A plan to skip trades in a ranging market."""
    options: dict[str, Any] = {"owner_id": "ana", "now": T0}
    options |= {name: changes.pop(name) for name in ("owner_id", "now", "key", "recorded_at") if name in changes}
    draft: dict[str, Any] = {"condition": {"regime": "ranging"}, "action": SKIP, "reasoning": "lost here"} | changes
    return make_plan(PlanDraft(**draft), **options)


def check(plans: Iterable[Plan | PlanState], values: Mapping[str, object], **options: Any) -> PlanCheck:
    """Check plans; one without a state is new."""
    states = [plan if isinstance(plan, PlanState) else plan_state(plan) for plan in plans]
    return check_plans(states, values, **options)


def a_belief(**changes: Any) -> Belief:
    defaults: dict[str, Any] = {
        "owner_id": "ana",
        "id": "belief",
        "mode": "live",
        "proposition": "IM loses when it ranges",
        "domain": Domain(strategy="IM", regime="ranging"),
        "conditions": None,
        "about": "win_rate",
        "claims": "below",
        "reference": 0.5,
        "source": "induced",
        "prior_alpha": 1.0,
        "prior_beta": 1.0,
        "known_at": T0,
    }
    return Belief(**(defaults | changes))


def outcomes(*values: float) -> list[Outcome | None]:
    return [Outcome(value=value, unit="R") for value in values]


def refused(**changes: Any) -> str:
    with pytest.raises(Invalid) as raised:
        a_plan(**changes)
    return raised.value.message


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


UP, DOWN = adjust("size", 2.0), adjust("Size", 0.5)
EXIT, ALERT = {"type": "force_exit"}, {"type": "alert"}


@pytest.mark.parametrize(
    ("one", "other", "contradict"),
    [
        (UP, DOWN, True),
        (UP, SKIP, True),
        (UP, EXIT, True),
        (UP, adjust("stop", 0.5), False),
        (UP, UP, False),
        (DOWN, SKIP, False),
        (DOWN, EXIT, False),
        (SKIP, EXIT, False),
        (SKIP, SKIP, False),
        (ALERT, UP, False),
        (ALERT, SKIP, False),
    ],
)
def test_the_table_of_contradictions(one: dict[str, Any], other: dict[str, Any], contradict: bool) -> None:
    first, second = parse_action(one), parse_action(other)
    assert bool(contradiction_of(first, second)) is bool(contradiction_of(second, first)) is contradict


def test_a_scope_is_a_deployment_a_strategy_or_both() -> None:
    of_strategy, of_deployment = a_plan(strategy_name="IM"), a_plan(deployment_id="d")
    assert is_in_scope(a_plan(), deployment_id="d", strategy_name="IM")
    assert is_in_scope(of_strategy, deployment_id="d", strategy_name="IM")
    assert not is_in_scope(of_strategy, deployment_id="d", strategy_name="VB")
    assert not is_in_scope(of_deployment, deployment_id="e", strategy_name="IM")


def test_the_trigger_type_is_an_argument_or_stated_or_follows_from_the_fields() -> None:
    assert a_plan(trigger_type="state").trigger_type == "state"
    assert a_plan(condition={"regime": "ranging", "type": "event"}).trigger_type == "event"
    assert a_plan(condition={"field": "hours_to_event", "op": "<", "value": 2}).trigger_type == "event"
    assert "the condition states market_condition" in refused(
        condition={"regime": "ranging", "type": "market_condition"}, trigger_type="time"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"condition": [{"regime": "ranging"}]}, "trigger_condition: a list is not a condition"),
        ({"condition": {"regmie": "ranging"}}, "trigger_condition: 'regmie' is not a known field; did you mean"),
        ({"expires_when": {}}, "expires_when: the condition is empty"),
        ({"expires_at": T0}, "expires_at: 2026-06-04T10:00:00.000000Z is not after now"),
        ({"expires_at": datetime(2027, 1, 1)}, "expires_at: 2027-01-01T00:00:00 has no time zone"),  # noqa: DTZ001
        ({"priority": 2}, "priority: 2.0 is not a priority; give a number from 0 to 1"),
        ({"priority": 10**400}, "priority: 1000"),
        ({"reasoning": " "}, "reasoning: the reasoning has no text or is too long"),
        ({"mode": "twice"}, "mode: 'twice' is not a mode; known: while_true, once"),
        ({"trigger_type": "tme"}, "trigger_type: 'tme' is not a trigger type; did you mean 'time'?"),
        ({"action": "skip"}, "planned_action: an action is an object"),
        ({"action": {}}, "planned_action.type: None is not an action; known: adjust_param"),
        ({"action": SKIP | {"size": 1}}, "planned_action: unknown key 'size'; give type, parameter and magnitude"),
        ({"action": SKIP | {"magnitude": 1}}, "planned_action.magnitude: skip_trade has no magnitude; leave it out"),
        ({"action": SKIP | {"parameter": "size"}}, "planned_action.parameter: skip_trade changes no parameter"),
        (
            {"action": {"type": "adjust_param", "magnitude": 2}},
            "planned_action.parameter: None is not the name of a parameter",
        ),
        (
            {"action": {"type": "adjust_param", "parameter": "size"}},
            "planned_action.magnitude: adjust_param needs a factor",
        ),
        ({"action": adjust("size", 1)}, "planned_action.magnitude: adjust_param needs a factor above 0 and not 1"),
        ({"action": adjust("size", -2)}, "planned_action.magnitude: adjust_param needs a factor above 0 and not 1"),
        ({"action": adjust("size", float("nan"))}, "planned_action.magnitude: nan is not a finite number"),
        ({"action": EXIT | {"magnitude": 1.5}}, "planned_action.magnitude: 1.5 is no share of a position"),
    ],
)
def test_a_bad_plan_is_refused_with_a_remedy(changes: dict[str, Any], message: str) -> None:
    assert refused(**changes).startswith(message)


@pytest.mark.parametrize("action", [SKIP, ALERT, EXIT, EXIT | {"magnitude": 0.5}, UP])
def test_an_action_reads_back_as_itself(action: dict[str, Any]) -> None:
    assert action_json(parse_action(action)) == action


def test_the_same_plan_made_twice_is_one_plan() -> None:
    assert a_plan().id == a_plan().id
    assert len({a_plan().id, a_plan(priority=0.6).id, a_plan(now=T0 + HOUR).id, a_plan(key="k").id}) == 4
    assert a_plan(key="k").id == a_plan(key="k", now=T0 + HOUR).id


def test_only_an_active_plan_can_be_cancelled() -> None:
    plan = plan_state(a_plan())
    gone = apply_event(plan, make_cancelled_event(plan, now=T0, note="no longer"))
    assert (gone.status, gone.ended_at) == ("cancelled", T0)
    with pytest.raises(Conflict, match="is cancelled; only active plans can be cancelled"):
        make_cancelled_event(gone, now=T0)


def test_a_plan_ended_when_it_first_ended() -> None:
    plan = a_plan(expires_at=T0 + HOUR)
    noticed, settled = make_event(plan, "expired", now=T0 + 3 * HOUR), make_event(plan, "settled", now=T0 + 5 * HOUR)
    assert plan_state(plan, [noticed]).ended_at == plan.expires_at
    state = plan_state(plan, [settled, noticed])
    assert (state.status, state.ended_at) == ("settled", plan.expires_at)
    by_condition = a_plan(expires_when={"regime": "trending_up"})
    assert plan_state(by_condition, [make_event(by_condition, "expired", now=T0 + HOUR)]).ended_at == T0 + HOUR


def test_a_plan_past_its_expiry_is_over_though_no_check_noticed() -> None:
    plan = a_plan(expires_at=T0 + HOUR)
    states = [plan_state(plan, now=now) for now in (None, T0, T0 + HOUR)]
    assert [(state.status, state.ended_at) for state in states] == [*[("active", None)] * 2, ("expired", T0 + HOUR)]


def test_a_plan_is_settled_once() -> None:
    plan = plan_state(a_plan())
    done = apply_event(plan, make_settled_event(plan, followed=True, now=T0))
    assert (done.status, done.ended_at) == ("settled", T0)
    with pytest.raises(Conflict, match="a plan is settled once"):
        make_settled_event(done, followed=True, now=T0)


@given(st.lists(st.tuples(KINDS, st.integers(0, 9)), max_size=8), st.randoms(use_true_random=False))
def test_applying_events_one_by_one_equals_applying_them_at_once(
    rows: list[tuple[PlanEventKind, int]], rng: Random
) -> None:
    start = a_plan(mode=rng.choice(["once", "while_true"]))
    events = [make_event(start, kind, now=T0 + hour * HOUR) for kind, hour in rows]
    events.sort(key=lambda event: (event.known_at, event.recorded_at, event.id))
    state = plan_state(start)
    for number, event in enumerate(events):
        state = apply_event(state, event)
        assert state == plan_state(start, rng.sample(events[: number + 1], number + 1))


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


def test_a_skip_helped_where_the_calls_not_made_lost() -> None:
    (result,) = settle(a_plan(), followed=True, outcomes=outcomes(*[-1.0] * 9, 0.5)).results
    assert (result.unit, result.n, result.mean, result.helped) == ("R", 10, -0.85, True)
    assert result.low is not None
    assert result.high is not None
    assert result.low < -0.85 < result.high < 0


def test_a_skip_hurt_where_the_calls_not_made_won() -> None:
    assert settle(a_plan(), followed=True, outcomes=outcomes(*[2.0] * 9, -1.0)).results[0].helped is False


def test_a_smaller_size_helps_where_trades_lost_and_other_actions_where_they_won() -> None:
    lost = outcomes(*[-1.0] * 9, 0.5)
    assert settle(a_plan(action=adjust("size", 0.5)), followed=True, outcomes=lost).results[0].helped is True
    assert settle(a_plan(action=adjust("target", 0.5)), followed=True, outcomes=lost).results[0].helped is False
    assert settle(a_plan(action=UP), followed=True, outcomes=lost).results[0].helped is False


def test_a_skip_that_was_not_followed_would_have_helped_where_the_trades_lost() -> None:
    lost = outcomes(*[-1.0] * 9, 0.5)
    assert settle(a_plan(), followed=False, outcomes=lost).results[0].helped is True
    assert settle(a_plan(action=UP), followed=False, outcomes=lost).results[0].helped is None


def test_few_or_mixed_outcomes_leave_open_whether_a_plan_helped() -> None:
    assert settle(a_plan(), followed=True, outcomes=outcomes(*[-1.0] * 9)).results[0].helped is None
    assert settle(a_plan(), followed=True, outcomes=outcomes(*[-1.0, 1.0] * 10)).results[0].helped is None
    (single,) = settle(a_plan(), followed=True, outcomes=outcomes(-1.0)).results
    assert (single.low, single.high) == (None, None)


def test_units_are_settled_apart_and_missing_outcomes_are_counted() -> None:
    mixed = [*outcomes(1.0), Outcome(value=0.02, unit="pct"), None]
    settlement = settle(a_plan(), followed=True, outcomes=mixed)
    assert [(result.unit, result.n) for result in settlement.results] == [("R", 1), ("pct", 1)]
    assert settlement.without_outcome == 1


def test_a_settlement_counts_each_current_episode_once() -> None:
    plan = a_plan()
    events = [make_event(plan, "outcome", now=T0 + n * HOUR, episode_id=name) for n, name in enumerate("abac")]
    two, lost = outcomes(2.0, -1.0)
    settlement = compute_settlement(
        plan, [*events, make_cancelled_event(plan_state(plan), now=T0)], {"b": two, "a": lost}, followed=True
    )
    assert settlement == settle(plan, followed=True, outcomes=[two, lost])


def test_a_credible_belief_that_its_domain_is_worse_skips_it() -> None:
    plan = plan_from_belief(a_belief(), credibility=0.93, n=24, now=T0)
    assert plan is not None
    assert plan.condition == parse_condition({"regime": "ranging", "strategy": "IM"})
    assert (plan.action.kind, plan.strategy_name, plan.priority) == ("skip_trade", "IM", 0.93)
    assert plan.reasoning == "IM loses when it ranges (credibility .93, 24 episodes)"
    assert plan.sources == (PlanSource(kind="semantic", id="belief"),)


def test_a_credible_belief_that_its_domain_is_better_raises_confidence_there() -> None:
    belief = a_belief(claims="above", conditions=parse_condition({"field": "atr_d1", "op": ">", "value": 100.0}))
    plan = plan_from_belief(belief, credibility=0.93, n=24, now=T0)
    assert plan is not None
    assert plan.action == PlannedAction(kind="adjust_param", parameter="confidence", magnitude=1.2)
    assert check([plan], {"strategy": "IM", "regime": "ranging", "atr_d1": 120}, now=T0).applying == (plan,)
    assert check([plan], {"strategy": "IM", "regime": "ranging", "atr_d1": 90}, now=T0).applying == ()


@pytest.mark.parametrize(
    ("changes", "credibility", "n"),
    [
        ({}, 0.89, 50),
        ({}, 0.95, 19),
        ({"retired_at": T0}, 0.95, 50),
        ({"domain": Domain()}, 0.95, 50),
    ],
)
def test_other_beliefs_make_no_plan(changes: dict[str, Any], credibility: float, n: int) -> None:
    assert plan_from_belief(a_belief(**changes), credibility=credibility, n=n, now=T0) is None


def test_a_plan_from_a_belief_bars_another_one() -> None:
    first = plan_from_belief(a_belief(), credibility=0.95, n=20, now=T0)
    assert first is not None
    assert plan_from_belief(a_belief(), credibility=0.95, n=20, now=T0 + HOUR, existing=[first]) is None
    assert plan_from_belief(a_belief(), credibility=0.95, n=20, now=T0 + HOUR, existing=[]) is not None


def test_a_deep_drawdown_halves_the_size_until_half_of_it_is_regained() -> None:
    plan = plan_from_mood(Mood(drawdown_state=0.8), owner_id="ana", deployment_id="d", now=T0)
    assert plan is not None
    states = {state: check([plan], {"drawdown_state": state}, now=T0) for state in (0.8, 0.6, 0.5, 0.49)}
    assert [bool(checked.applying) for checked in states.values()] == [True, True, True, False]
    assert len(states[0.49].expired) == 1
    assert (plan.trigger_type, action_json(plan.action)) == ("state", adjust("size", 0.5))


def test_a_deployment_has_one_plan_from_its_mood() -> None:
    deep = Mood(drawdown_state=1.0)
    plan = plan_from_mood(deep, owner_id="ana", deployment_id="d", now=T0)
    assert plan is not None
    assert plan_from_mood(deep, owner_id="ana", deployment_id="d", now=T0 + HOUR, existing=[plan]) is None
    assert plan_from_mood(deep, owner_id="ana", deployment_id="e", now=T0 + HOUR, existing=[plan]) is not None


def test_a_belief_whose_conditions_cannot_be_joined_with_its_domain_makes_no_plan() -> None:
    deep: dict[str, Any] = {"hour": 9}
    for _ in range(7):
        deep = {"not": deep}
    belief = a_belief(conditions=parse_condition(deep))
    assert plan_from_belief(belief, credibility=0.95, n=20, now=T0) is None
