"""Plans: when they apply, when they end, which plans they contradict, and whether they helped."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Conflict, Invalid
from backsight.core.memory.plan_check import PlanCheck, check_plans
from backsight.core.memory.prospective import (
    Plan,
    PlanDraft,
    PlanEventKind,
    PlanState,
    apply_event,
    is_in_scope,
    make_cancelled_event,
    make_event,
    make_plan,
    make_settled_event,
    plan_state,
)
from backsight.testing import T0

HOUR = timedelta(hours=1)
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


def refused(**changes: Any) -> str:
    with pytest.raises(Invalid) as raised:
        a_plan(**changes)
    return raised.value.message


UP, DOWN = adjust("size", 2.0), adjust("Size", 0.5)
EXIT, ALERT = {"type": "force_exit"}, {"type": "alert"}


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
        ({"action": SKIP | {"magnitude": "much"}}, "planned_action.magnitude: 'much' is not a finite number; give one"),
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
