"""Plans and beliefs that patterns propose."""

import pytest

from backsight.core.memory.conditions import evaluate_condition, parse_condition
from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.proposals import Suggestion, suggest
from backsight.testing.reflection import a_pattern


def proposed(pattern: Pattern) -> dict[str, Suggestion]:
    return {each.kind: each for each in suggest(pattern, strategy_name="Fade", deployment_id="d", mode="live")}


RANGING = {"dimension": "regime", "value": "ranging", "label": "ranging markets"}


def test_trades_that_surely_lose_are_skipped() -> None:
    plan = proposed(a_pattern(**RANGING))["plan"]
    assert plan.content["planned_action"] == {"type": "skip_trade"}
    assert plan.content["trigger_condition"] == {"field": "regime", "op": "==", "value": "ranging"}


@pytest.mark.parametrize(
    "changes",
    [
        {"interval": (-0.83, 0.0)},
        {"interval": (-0.83, 0.2)},
        {"interval": None},
        {"mean": 0.1, "interval": (0.02, 0.18), "rest_mean": 0.9, "win_rate": 0.3, "rest_win_rate": 0.7},
    ],
)
def test_trades_that_may_earn_money_are_neither_skipped_nor_made_smaller(changes: dict[str, object]) -> None:
    assert list(proposed(a_pattern(**RANGING | changes))) == ["belief"]


def test_a_winning_pattern_proposes_a_belief_and_no_plan() -> None:
    suggested = proposed(a_pattern(**RANGING, mean=0.7, difference=0.6, win_rate=0.3, interval=(0.5, 0.9)))
    assert {kind: each.content["claims"] for kind, each in suggested.items()} == {"belief": "above"}
    proposition = suggested["belief"].content["proposition"]
    assert proposition == "Fade earns more in ranging markets than elsewhere: +0.70R against +0.10R"


def test_longs_are_traded_with_and_not_in() -> None:
    suggested = proposed(a_pattern(dimension="direction", value="long", label="longs"))
    proposition = suggested["belief"].content["proposition"]
    assert proposition == "Fade earns less with longs than elsewhere: -0.70R against +0.10R"


def test_a_belief_is_about_the_mean_outcome_whatever_the_win_rate() -> None:
    for win_rate in (0.1, 0.9, None):
        belief = proposed(a_pattern(**RANGING, win_rate=win_rate))["belief"].content
        assert (belief["about"], belief["claims"], belief["reference"]) == ("mean_outcome", "below", 0.1)


def test_in_another_unit_than_r_a_belief_is_about_earning_or_losing_at_all() -> None:
    loses = proposed(a_pattern(**RANGING, unit="pct", mean=-0.02, interval=(-0.03, -0.01), rest_mean=0.01))["belief"]
    assert (loses.content["claims"], loses.content["reference"]) == ("below", 0.0)
    assert proposed(a_pattern(**RANGING, unit="pct", mean=-0.02, interval=(-0.05, 0.01))) == {}


def test_an_hour_can_be_planned_for_and_not_believed_in() -> None:
    suggested = proposed(a_pattern(dimension="hour", value="09", label="the hour from 09:00 UTC", slot="entry_timing"))
    assert list(suggested) == ["plan"]
    assert suggested["plan"].content["trigger_condition"] == {"field": "hour", "op": "==", "value": 9}


@pytest.mark.parametrize(
    "changes",
    [
        {"dimension": "regime_tag", "value": "chop_hivol"},
        {"dimension": "size", "value": "large"},
        {**RANGING, "measure": "captured", "unit": None, "slot": "exit_timing"},
    ],
)
def test_a_pattern_without_a_condition_proposes_nothing(changes: dict[str, object]) -> None:
    assert proposed(a_pattern(**changes)) == {}


PAIR = {"dimension": "regime_and_direction", "value": "ranging_and_short", "label": "shorts in ranging markets"}


def test_a_pair_is_skipped_and_believed_as_a_pair() -> None:
    """The longs in ranging markets, which may earn, are left alone."""
    suggested = proposed(a_pattern(**PAIR))
    plan, belief = suggested["plan"].content, suggested["belief"].content
    condition = parse_condition(plan["trigger_condition"])
    held = {
        direction: evaluate_condition(condition, {"regime": "ranging", "direction": direction}).holds
        for direction in ("long", "short")
    }
    assert held == {"long": False, "short": True}
    assert (belief["regime"], belief["direction"]) == ("ranging", "short")
    assert belief["proposition"] == (
        "Fade earns less with shorts in ranging markets than elsewhere: -0.70R against +0.10R"
    )


def test_a_weekday_may_be_skipped_but_no_trade_after_a_loss() -> None:
    """Nothing would end a plan to skip trades after a loss: no trade could be won in between."""
    monday = proposed(a_pattern(dimension="weekday", value="0", label="Mondays", slot="entry_timing"))
    assert list(monday) == ["plan"]
    assert monday["plan"].content["trigger_condition"] == {"field": "weekday", "op": "==", "value": 0}
    assert proposed(a_pattern(dimension="after", value="loss", label="trades after a loss")) == {}
