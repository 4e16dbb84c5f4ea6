"""The plans that apply, in a prompt: each line names its symbol, condition and end, with figures of this instant."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.memory.affective import MAX_DRAWDOWN, Mood, drawdown_state, risk_appetite
from backsight.core.memory.conditions import condition_values
from backsight.core.memory.plan_check import check_plans
from backsight.core.memory.plan_origins import plan_from_mood
from backsight.core.memory.plan_words import condition_in_words
from backsight.core.memory.prospective import Plan, PlanDraft, make_plan, plan_state
from backsight.core.prompts.plans import PlanLine, plans_that_apply
from backsight.core.prompts.sections import CEILINGS
from core.memory.test_conditions import CONDITIONS
from core.prompts.test_sections import NOW, TEN, tokens

SKIP = {"type": "skip_trade"}


def a_plan(condition: Any, action: Any = SKIP, reasoning: str = "so", **more: Any) -> Plan:
    draft = PlanDraft(condition=condition, action=action, reasoning=reasoning, **more)
    return make_plan(draft, owner_id="ana", now=TEN)


def a_line(condition: Any, action: Any = SKIP, reasoning: str = "so", **more: Any) -> PlanLine:
    return PlanLine(plan=a_plan(condition, action, reasoning), now=NOW, **more)


def a_mood(drawdown: float) -> Mood:
    used, appetite = drawdown_state(drawdown), risk_appetite(drawdown)
    return Mood(equity=1.0 - drawdown, peak=1.0, drawdown=drawdown, drawdown_state=used, risk_appetite=appetite)


def test_plans_have_their_layout_to_the_byte() -> None:
    lines = [
        a_line({"symbol": "XAUUSD", "weekday": 4}, reasoning="four of five Fridays failed"),
        a_line({"regime": "ranging"}, symbols=("BTC", "ETH"), contradicted=True, reasoning="no range pays"),
    ]
    assert plans_that_apply(lines).text == (
        "## Plans that apply\n"
        '- XAUUSD on Fridays: skip the trade (until 4 Jul); reason of 4 Jun: "four of five Fridays failed"\n'
        "- BTC, ETH in a ranging market: skip the trade (until 4 Jul), against a plan above; "
        'reason of 4 Jun: "no range pays"'
    )


def test_a_plan_that_names_no_symbol_is_for_every_symbol() -> None:
    assert (
        a_line({"hour": 13}).text(reason_tokens=0)
        == "- every symbol from 13:00 to 14:00 UTC: skip the trade (until 4 Jul)"
    )
    many = a_line({"regime": "ranging"}, symbols=("A", "B", "C", "D", "E")).text(reason_tokens=0)
    assert many.startswith("- A, B, C and 2 more in a ranging market:")


def test_reasons_give_way_before_plans_do() -> None:
    lines = [a_line({"symbol": "XAUUSD", "weekday": day}, reasoning="breakouts failed here " * 9) for day in range(4)]
    section = plans_that_apply(lines)
    assert (len(section.rows), section.left_out) == (4, 0)
    assert "reason" not in section.text
    assert "reason of 4 Jun" in plans_that_apply(lines[:1]).text


def test_the_plan_of_a_mood_has_the_drawdown_of_this_instant() -> None:
    plan = plan_from_mood(a_mood(0.175), owner_id="ana", deployment_id="d", now=TEN)
    assert plan is not None
    assert (
        plan.reasoning == "On 2026-06-04 87.5% of the accepted drawdown was used: half the size until it is below 50%."
    )
    values = condition_values(now=NOW, mood=a_mood(0.39))
    assert PlanLine(plan=plan, now=NOW, values=values).text() == (
        "- every symbol with at least 50% of the accepted drawdown (now 195% of the accepted drawdown): size × 0.5 "
        "(until this no longer holds)"
    )


def test_over_a_year_no_figure_of_the_mood_is_stale() -> None:
    """A stored plan of former days says another figure; only the present one is shown."""
    plan = plan_from_mood(a_mood(0.176), owner_id="ana", deployment_id="d", now=TEN)
    assert plan is not None
    former = replace(plan, reasoning="88% of the accepted drawdown is used up: half the size until it is below 50%.")
    rng, drawdown, shown = random.Random(7), 0.176, 0
    for day in range(365):
        drawdown = min(0.6, max(0.0, drawdown + rng.gauss(0.0, 0.02)))
        now = TEN + timedelta(days=day)
        values = condition_values(now=now, mood=a_mood(drawdown))
        for checked in check_plans([plan_state(former)], values, now=now).applying:
            text = PlanLine(plan=checked, now=now, values=values).text()
            assert f"(now {100 * drawdown / MAX_DRAWDOWN:.0f}% of the accepted drawdown)" in text
            shown += 1
    assert shown > 100


@settings(max_examples=60, deadline=None)
@given(
    conditions=st.lists(CONDITIONS, min_size=1, max_size=4),
    symbol=st.sampled_from(["XAUUSD", "BTC/USDT:PERP", "限额" * 12, "😀" * 40]),
    reason=st.text(min_size=1, max_size=300).filter(str.strip),
)
def test_the_ceiling_holds_and_no_line_loses_its_symbol_or_its_condition(
    conditions: list[Any], symbol: str, reason: str
) -> None:
    lines = [a_line({"all": [{"symbol": symbol}, condition]}, reasoning=reason) for condition in conditions]
    section = plans_that_apply(lines)
    assert section.rows
    assert tokens(f"{section.text}\n\n") <= CEILINGS["plans"]
    assert len(section.rows) + section.left_out == len(lines)
    for row, condition in zip(section.rows, conditions, strict=False):
        start = row.text.partition(": skip")[0]
        assert start.startswith(f"- {symbol[:2]}")
        plain = start.removeprefix("- ").partition(" ")[2]
        assert plain, (condition, row.text)
        assert not {"{", "}", '"field"'} & set(start.split("'"))


@pytest.mark.parametrize("count", [1, 30, 99])
def test_a_condition_of_many_comparisons_is_cut_and_its_rest_counted(count: int) -> None:
    condition = {"all": [{"field": "price", "op": "!=", "value": 2400 + n} for n in range(count)]}
    text = a_line({"all": [{"symbol": "XAUUSD"}, condition]}).text()
    assert text.startswith("- XAUUSD with ")
    assert "price other than 2,400" in text
    assert len(condition_in_words(a_plan(condition).condition)) >= 22 * count
    assert tokens(plans_that_apply([a_line(condition, symbols=("XAUUSD",))]).text) <= CEILINGS["plans"]
