"""Actions as people write them: what has one meaning is read and named, what has two is refused with both."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given

from backsight.core.errors import Invalid
from backsight.core.memory.loose_actions import loosen_action
from backsight.core.memory.planned_action import action_json, parse_action
from core.memory.test_conditions import ANYTHING

SKIP, ALERT = {"type": "skip_trade"}, {"type": "alert"}


def by(parameter: str, factor: float) -> dict[str, Any]:
    return {"type": "adjust_param", "parameter": parameter, "magnitude": factor}


def meaning(value: object) -> Any:
    loose, notes = loosen_action(value, field="planned_action")
    assert (notes != ()) == (loose != value)
    return action_json(parse_action(loose, field="planned_action"))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"type": "skip"}, SKIP),
        ({"action": "do not trade"}, SKIP),
        ({"skip_trade": True}, SKIP),
        ("skip_trade", SKIP),
        ({"type": "Notify"}, ALERT),
        ({"type": "close_position"}, {"type": "force_exit"}),
        ({"type": "exit", "magnitude": "50%"}, {"type": "force_exit", "magnitude": 0.5}),
        ({"lot_size": "*= 0.5"}, by("lot_size", 0.5)),
        ({"size": "-50%"}, by("size", 0.5)),
        ({"size": "x2"}, by("size", 2.0)),
        ({"parameter": "size", "factor": 0.5}, by("size", 0.5)),
        ({"type": "adjust_param", "parameter": "size", "magnitude": "0.5"}, by("size", 0.5)),
        ({"type": "halve_size"}, by("size", 0.5)),
        ({"type": "reduce_size", "magnitude": 0.5}, by("size", 0.5)),
        ({"confidence_boost": 0.2}, by("confidence", 1.2)),
        ({"type": "confidence_boost", "magnitude": 0.2}, by("confidence", 1.2)),
        ({"type": "increase", "parameter": "breakout_buffer", "magnitude": 0.5}, by("breakout_buffer", 1.5)),
        (by("size", 0.5), by("size", 0.5)),
    ],
)
def test_what_has_one_meaning_is_read(written: Any, read: Any) -> None:
    assert meaning(written) == read


@pytest.mark.parametrize(
    ("written", "ways"),
    [
        ({"type": "reduce_size", "magnitude": 0.3}, [by("size", 0.3), by("size", 0.7)]),
        ({"type": "confidence_boost", "magnitude": 1.2}, [by("confidence", 1.2), by("confidence", 2.2)]),
        ({"lot_size": 0.5}, [by("lot_size", 0.5)]),
        ({"type": "reduce_exposure"}, [by("exposure", 0.5)]),
        ({"type": "tighten_stop"}, [by("stop_distance", 0.5)]),
        ({"type": "set_tighter_stop"}, [by("stop_distance", 0.5)]),
        ({"type": "increase_breakout_buffer"}, [by("breakout_buffer", 1.5)]),
        ({"type": "buy"}, [ALERT]),
        ({"type": "wait_for_confirmation"}, [ALERT]),
    ],
)
def test_what_has_two_meanings_is_refused_and_each_remedy_is_accepted(written: Any, ways: list[Any]) -> None:
    with pytest.raises(Invalid) as refused:
        meaning(written)
    remedies = [json.JSONDecoder().raw_decode(text)[0] for text in refused.value.message.split("write ")[1:]]
    assert remedies == ways
    assert [meaning(remedy) for remedy in remedies] == ways


@given(ANYTHING)
def test_anything_is_read_or_refused(value: object) -> None:
    with suppress(Invalid):
        loose, notes = loosen_action(value, field="planned_action")
        assert notes or loose is value


def test_a_misspelt_action_is_refused_with_the_nearest() -> None:
    with pytest.raises(Invalid, match="did you mean 'skip_trade'"):
        meaning({"type": "skip_trad"})
