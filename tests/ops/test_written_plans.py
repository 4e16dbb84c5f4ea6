"""Plans as people write them: accepted, or refused with a remedy that works when it is followed to the letter."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.answers.layouts import brief
from backsight.core.errors import Invalid
from backsight.core.memory.plan_words import plan_in_words
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import deployed

DEPLOYMENT = "VolBreakout@main"
SKIP, ALERT = {"type": "skip_trade"}, {"type": "alert"}
HALVE = {"type": "adjust_param", "parameter": "lot_size", "magnitude": 0.5}

PRINTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "If NFP beats expectations, I'll buy the dip": (
        {"event": "NFP", "outcome": "beats expectations"},
        {"type": "buy_the_dip"},
    ),
    "If NFP comes in above 200K on Friday, I will buy the dip on gold": (
        {"if": "NFP > 200K AND weekday = Friday AND symbol = XAUUSD"},
        {"type": "buy"},
    ),
    "If VB hasn't triggered by Wednesday, increase the breakout buffer": (
        {"strategy": "VB", "not_triggered_since": "Wednesday"},
        {"type": "increase", "parameter": "breakout_buffer"},
    ),
    "If the Fed raises rates next week, set a tighter stop": (
        {"event": "Fed", "outcome": "raises"},
        {"type": "set_tighter_stop"},
    ),
    "The last three VolBreakout signals in this regime were false: wait for confirmation": (
        {"strategy": "VolBreakout", "regime": "ranging", "consecutive_losses": {">=": 3}},
        {"type": "wait_for_confirmation"},
    ),
    "I'm in drawdown: reduce lot size on the next trade regardless of signal strength": (
        {"any_signal": True, "drawdown_pct": {">": 0}},
        {"type": "reduce_lot_size", "magnitude": 0.5},
    ),
    "IF regime=low_vol AND strategy=IM THEN skip_trade": (
        {"if": "regime=low_vol AND strategy=IM"},
        {"skip_trade": True},
    ),
    "IF regime=trending AND VB_signal THEN confidence_boost=0.2": (
        {"regime": "trending", "VB_signal": True},
        {"confidence_boost": 0.2},
    ),
    "Drawdown > 15% -> IF any_signal THEN lot_size *= 0.5": (
        {"if": "Drawdown > 15%"},
        {"lot_size": "*= 0.5"},
    ),
    "A reflection's pattern: its regime and strategy, its action and magnitude": (
        {"regime": "ranging", "strategy": "IM", "type": "market_condition"},
        {"type": "skip_trade", "magnitude": 1.0},
    ),
    "if price reaches X, do Y": ({"price": {"reaches": 2400}}, {"type": "close_position"}),
    "if regime changes, reduce exposure": ({"regime": "changes"}, {"type": "reduce_exposure"}),
    "test this edge on next 10 trades": ({"strategy": "VolBreakout"}, {"type": "test_edge", "trades": 10}),
}
"""The plans that the seed prints, as a model writes them down."""

LISTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"field": "NFP", "op": ">", "value": "200K"}, ALERT),
    ({"nfp.actual": {"gt": 200_000}}, ALERT),
    ({"regime": "low_vol"}, SKIP),
    ({"drawdown_pct": {">": 0.15}}, HALVE),
    ({"drawdown_pct": {"$gte": 0.05, "$lt": 0.15}}, HALVE),
    ({"days_since_last_trade": {">=": 3}}, ALERT),
    ({"hours_since_last_trade": "> 72"}, ALERT),
    ({"weekday": [0, 4], "symbol": "XAUUSD"}, SKIP),
    ({"field": "drawdown", "operator": "gte", "value": "15%"}, HALVE),
    ({"field": "session", "op": "=", "value": "asia"}, SKIP),
    ({"field": "drawdown_pct", "op": ">=", "value": 15}, HALVE),
    ({"not_traded_since": "Wednesday"}, ALERT),
    ({"VB_signal": True}, SKIP),
]


def corrected(condition: dict[str, Any], action: dict[str, Any], refused: Invalid) -> tuple[Any, Any]:
    """The call with the remedy of an error carried out: what it says to write, to leave out, or to give."""
    message, field = refused.message, refused.field or ""
    written = message.partition("write {")[2]
    instead = json.JSONDecoder().raw_decode("{" + written)[0] if written else None
    if field.startswith("planned_action"):
        return condition, instead if instead is not None else ALERT
    if "leave it out" in message:
        wrong = message.partition('"')[2].partition('"')[0]
        condition = {name: value for name, value in condition.items() if name != wrong} | (instead or {})
        return condition, action
    if ", so " in message:
        share = message.partition(", so ")[2].partition(" ")[0]
        return {**condition, "value": float(share)}, action
    assert instead is not None, message
    wrong = message.partition('"')[2].partition('"')[0]
    others = [{name: value} for name, value in condition.items() if name != wrong]
    return {"all": [*others, instead]}, action


def create_as_told_by_remedies(memory: Memory, condition: Any, action: Any) -> tuple[Any, int]:
    """The plan that is made in the end, and how many remedies it took."""
    for refusals in range(4):
        plans = len(memory.list_plans().plans)
        try:
            return memory.create_trading_plan(
                trigger_condition=condition, planned_action=action, reasoning="as printed"
            ), refusals
        except Invalid as refused:
            assert len(memory.list_plans().plans) == plans, "nothing is written"
            condition, action = corrected(condition, action, refused)
    raise AssertionError(f"four remedies did not help: {condition} {action}")


@pytest.mark.parametrize("sentence", PRINTED)
def test_every_plan_that_the_seed_prints_is_accepted_or_its_remedy_works(memory: Memory, sentence: str) -> None:
    deployed(memory)
    condition, action = PRINTED[sentence]
    created, _ = create_as_told_by_remedies(memory, condition, action)
    assert created.message == f"{plan_in_words(created.plan, now=T0)}."
    assert memory.list_plans().plans[0].plan == created.plan


@pytest.mark.parametrize(("condition", "action"), LISTED)
def test_what_people_write_is_accepted_or_its_remedy_works(memory: Memory, condition: Any, action: Any) -> None:
    created, refusals = create_as_told_by_remedies(memory, condition, action)
    assert refusals <= 1
    assert created.plan.action.kind == action["type"]


def test_most_printed_plans_need_no_remedy_for_their_condition(memory: Memory) -> None:
    accepted = 0
    for condition, _ in PRINTED.values():
        try:
            memory.create_trading_plan(trigger_condition=condition, planned_action=ALERT, reasoning="as printed")
            accepted += 1
        except Invalid:
            continue
    assert accepted >= 10


def test_what_was_read_as_what_is_noted(memory: Memory) -> None:
    created = memory.create_trading_plan(
        trigger_condition={"regime": "low_vol"}, planned_action={"type": "skip"}, reasoning="nothing moves"
    )
    assert created.notes == (
        'trigger_condition: {"regime": "low_vol"} is read as volatility_regime == "low"',
        'planned_action: {"type": "skip"} is read as skip_trade',
    )
    plain = memory.create_trading_plan(
        trigger_condition={"volatility_regime": "low"}, planned_action=SKIP, reasoning="nothing moves"
    )
    assert plain.notes == ()
    assert plain.plan.condition == created.plan.condition


def test_a_belief_takes_the_same_words(memory: Memory) -> None:
    deployed(memory)
    belief = memory.add_belief(
        proposition="quiet markets lose", strategy_name="VolBreakout", conditions={"regime": "low_vol"}, claims="below"
    )
    assert 'is read as volatility_regime == "low"' in belief.message


CSV = "scheduled_at,kind,symbols,importance,title,id,actual,forecast,previous\n"


def test_a_plan_on_an_outcome_applies_once_it_is_known(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    deployed(memory)
    release = T0 + timedelta(hours=4)
    file = tmp_path / "calendar.csv"

    def calendar(actual: str) -> None:
        file.write_text(f"{CSV}{release.isoformat()},nfp,,.9,NFP,n1,{actual},180K,210K\n")
        memory.import_events(path=str(file), source="desk")

    calendar("")
    for condition in ({"NFP": "> 200K"}, {"NFP": "beats"}, {"nfp.change": {"<": 0}}):
        memory.create_trading_plan(trigger_condition=condition, planned_action=ALERT, reasoning="the dip")

    def applying(hours: float, **more: Any) -> int:
        answer = memory.check_active_plans(
            deployment=DEPLOYMENT, dry_run=True, as_of=T0 + timedelta(hours=hours), **more
        )
        return len(answer.applying)

    clock.at = T0 + timedelta(hours=5)
    assert applying(4.5) == 0
    clock.advance(hours=1)
    calendar("227K")
    clock.advance(hours=100)
    assert [applying(hours) for hours in (3, 4.5, 5.9, 6, 20, 75, 77)] == [0, 0, 0, 2, 2, 2, 0]
    seen_before = memory.check_active_plans(
        deployment=DEPLOYMENT, dry_run=True, as_of=T0 + timedelta(hours=20), seen_at=T0 + timedelta(hours=5.5)
    )
    assert seen_before.applying == ()
    assert {name for missing in seen_before.missing for name in missing.fields} == {
        "nfp.actual", "nfp.surprise", "nfp.change",
    }  # fmt: skip


def test_a_plan_on_days_without_a_trade_counts_from_the_last_entry(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.create_trading_plan(
        trigger_condition={"days_since_last_trade": {">=": 3}}, planned_action=ALERT, reasoning="too quiet"
    )

    def applies(days: float) -> bool:
        as_of = T0 + timedelta(days=days)
        answer = memory.check_active_plans(deployment=DEPLOYMENT, dry_run=True, as_of=as_of)
        return bool(answer.applying)

    clock.at = T0 + timedelta(days=4)
    opened = T0 + timedelta(days=3.5)
    memory.remember_trade(**a_trade_call(deployment=DEPLOYMENT, opened_at=opened, closed_at=clock.now()))
    clock.advance(days=10)
    assert [applies(days) for days in (2.9, 3.1, 4.1, 6.4, 6.6)] == [False, True, False, False, True]


def test_the_prompt_and_the_answers_have_the_same_words(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.create_trading_plan(
        trigger_condition={"symbol": "BTC", "direction": "long", "weekday": [T0.weekday()]},
        planned_action=SKIP,
        reasoning="they failed",
    )
    clock.advance(minutes=5)
    tick = memory.open_tick(
        deployment=DEPLOYMENT, at=clock.now(), before=a_snapshot(at=clock.now()), symbols=["BTC", "ETH"]
    )
    assert tick.text.count("- BTC longs on ") == 1
    checked = memory.check_active_plans(deployment=DEPLOYMENT, symbol="BTC", direction="long")
    for answer in (checked, memory.list_plans()):
        assert "BTC longs on " in brief(answer)
        assert '"field"' not in brief(answer)


def test_a_check_says_the_drawdown_of_now(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    memory.record_equity(account="main", equity=10_000.0)
    clock.advance(minutes=5)
    memory.record_equity(account="main", equity=8_240.0)
    clock.advance(hours=1)
    memory.record_equity(account="main", equity=6_100.0)
    checked = memory.check_active_plans(deployment=DEPLOYMENT)
    (plan,) = checked.applying
    assert "88% of the accepted drawdown was used" in plan.plan.reasoning
    assert [figures.text for figures in checked.figures] == ["195% of the accepted drawdown"]
