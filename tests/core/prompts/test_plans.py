"""The plans that apply, in a prompt."""

from typing import Any

from backsight.core.memory.plan_check import check_plans
from backsight.core.memory.prospective import PlanDraft, PlanState, make_plan, plan_state
from backsight.core.prompts.plans import plan_lines, plans_that_apply
from core.prompts.test_sections import NOW, TEN


def new_plan(action: dict[str, Any], reasoning: str, priority: float) -> PlanState:
    draft = PlanDraft(condition={"hour": 13}, action=action, reasoning=reasoning, priority=priority)
    return plan_state(make_plan(draft, owner_id="ana", now=TEN))


def test_plans_have_their_layout_to_the_byte() -> None:
    halve = {"type": "adjust_param", "parameter": "size", "magnitude": 0.5}
    plans = [
        new_plan(action, why, priority)
        for action, why, priority in (
            ({"type": "skip_trade"}, "London lunch: four of five breakouts failed here", 0.6),
            (halve, "75% of the accepted drawdown is used up", 0.9),
        )
    ]
    assert plans_that_apply(plan_lines(check_plans(plans, {"hour": 13}, now=NOW))).text == (
        "## Plans that apply\n"
        '- size × 0.5 until 2026-07-04T10:00: "75% of the accepted drawdown is used up"\n'
        '- skip the trade until 2026-07-04T10:00: "London lunch: four of five breakouts failed here"'
    )


def test_a_plan_against_a_plan_above_is_marked() -> None:
    actions = [{"type": "adjust_param", "parameter": "size", "magnitude": factor} for factor in (0.5, 1.5)]
    plans = [new_plan(action, "so", priority) for action, priority in zip(actions, (0.9, 0.1), strict=True)]
    text = plans_that_apply(plan_lines(check_plans(plans, {"hour": 13}, now=NOW))).text
    assert [("against a plan above" in line) for line in text.splitlines()] == [False, False, True]
