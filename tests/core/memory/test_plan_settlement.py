"""Settling a plan: which outcomes count, and when they show that the plan helped."""

from backsight.core.memory.plan_settlement import compute_settlement, settle
from backsight.core.memory.prospective import (
    make_cancelled_event,
    make_event,
    plan_state,
)
from backsight.core.trades.trade import Outcome
from backsight.testing import T0
from core.memory.test_prospective import HOUR, UP, a_plan, adjust


def outcomes(*values: float) -> list[Outcome | None]:
    return [Outcome(value=value, unit="R") for value in values]


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
