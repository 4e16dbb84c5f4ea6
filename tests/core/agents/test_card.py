"""Card types are checked when they are saved, and results against them when they are recorded."""

from dataclasses import replace
from typing import Any

import pytest

from backsight.core.agents.card import CardField, CardType, card_type_named, checked_result, checked_type, shipped_types
from backsight.core.errors import BacksightError, Conflict, Invalid
from backsight.testing import T0

TYPE = CardType(
    owner_id="ana",
    name="mine",
    fields=(CardField(name="call", type="text", role="direction"),),
    re_examinable="always",
    actions=("KEEP",),
    known_at=T0,
    recorded_at=T0,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": ()}, "fields: a card type without fields"),
        ({"fields": (TYPE.fields[0], TYPE.fields[0])}, "fields.1.name: the field 'call' is there twice"),
        ({"fields": (CardField(name="", type="text"),)}, "fields.0.name: '' is no field name"),
        ({"fields": (CardField(name="e", type="text", role="entry"),)}, "fields.0.type: 'entry' is a number"),
        ({"fields": (CardField(name="e", type="number", choices=("1",)),)}, "fields.0.choices: 'e' is no text"),
        (
            {"fields": (TYPE.fields[0], CardField(name="b", type="text", role="direction"))},
            "fields.1.role: two fields mean 'direction'",
        ),
        ({"actions": ("hold on",)}, "actions.0: 'hold on' is no action"),
    ],
)
def test_a_card_type_that_makes_no_sense_is_refused_by_its_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        checked_type(replace(TYPE, **change))


def test_a_shipped_card_type_cannot_be_saved_again() -> None:
    for shipped in shipped_types("ana"):
        with pytest.raises(Conflict, match="shipped"):
            checked_type(shipped)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_a_number_that_is_not_finite_is_refused_wherever_it_is(value: Any) -> None:
    with pytest.raises(Invalid, match="is not a finite number"):
        checked_result({"entry": value})


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"symbol": "BTC\ud800"}, "result.symbol: contains a NUL or half a surrogate pair"),
        ({"watch_for": ["a", "b\0"]}, "result.watch_for.1: contains a NUL"),
        ({"x\ud800": 1}, r"result.x.ud800: contains a NUL or half"),
        ({"entry": 10**400}, "result.entry: is beyond every finite number"),
        ({"summary": "x" * 100_000}, "result: has 100,014 characters as JSON; give at most 100,000"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_field(result: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        checked_result(result)


def test_a_result_that_is_nested_too_deeply_is_refused() -> None:
    nested: dict[str, Any] = {}
    for _ in range(50):
        nested = {"a": nested}
    with pytest.raises(Invalid, match="nested too deeply"):
        checked_result(nested)


def test_an_unknown_card_type_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(BacksightError, match="did you mean 'trade_decision'"):
        card_type_named("trade_decison", shipped_types("ana"))
