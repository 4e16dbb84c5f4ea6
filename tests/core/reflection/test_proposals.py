"""Plans and beliefs that patterns propose."""

import pytest

from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.proposals import Suggestion, suggest
from backsight.testing.reflection import a_pattern


def proposed(pattern: Pattern) -> dict[str, Suggestion]:
    return {each.kind: each for each in suggest(pattern, strategy_name="Fade", deployment_id="d", mode="live")}


RANGING = {"dimension": "regime", "value": "ranging", "label": "ranging markets"}


@pytest.mark.parametrize(
    ("interval", "action"),
    [
        ((-0.83, -0.57), {"type": "skip_trade"}),
        ((-0.83, 0.0), {"type": "adjust_param", "parameter": "size", "magnitude": 0.5}),
        ((-0.83, 0.2), {"type": "adjust_param", "parameter": "size", "magnitude": 0.5}),
    ],
)
def test_trades_that_surely_lose_are_skipped_and_others_halved(
    interval: tuple[float, float], action: dict[str, object]
) -> None:
    plan = proposed(a_pattern(**RANGING, interval=interval))["plan"]
    assert plan.content["planned_action"] == action


def test_a_winning_pattern_proposes_a_belief_and_no_plan() -> None:
    suggested = proposed(a_pattern(**RANGING, mean=0.7, difference=0.6, win_rate=0.7, interval=(0.5, 0.9)))
    assert {kind: each.content["claims"] for kind, each in suggested.items()} == {"belief": "above"}
    assert suggested["belief"].content["proposition"] == "Fade wins more often in ranging markets than elsewhere"


def test_longs_are_traded_with_and_not_in() -> None:
    suggested = proposed(a_pattern(dimension="direction", value="long", label="longs"))
    assert suggested["belief"].content["proposition"] == "Fade wins less often with longs than elsewhere"


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


@pytest.mark.parametrize(
    "changes",
    [{"win_rate": 0.6}, {"win_rate": None}, {"rest_win_rate": None}, {"rest_win_rate": 1.0}, {"win_rate": 0.55}],
)
def test_a_pattern_without_a_lower_win_rate_proposes_no_belief(changes: dict[str, object]) -> None:
    assert list(proposed(a_pattern(**RANGING, **changes))) == ["plan"]
