"""Actions of plans: they read back as themselves, and some contradict each other."""

from typing import Any

import pytest

from backsight.core.memory.planned_action import action_json, contradiction_of, parse_action
from core.memory.test_prospective import ALERT, DOWN, EXIT, SKIP, UP, adjust


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


@pytest.mark.parametrize("action", [SKIP, SKIP | {"magnitude": 0.5}, ALERT, EXIT, EXIT | {"magnitude": 0.5}, UP])
def test_an_action_reads_back_as_itself(action: dict[str, Any]) -> None:
    assert action_json(parse_action(action)) == action
