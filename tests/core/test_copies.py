"""Copies of dataclasses: as `dataclasses.replace` makes them."""

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.context import ContextVector, PlanContext
from backsight.core.copies import copy_with
from backsight.core.trades.trade import Outcome

VALUES = st.dictionaries(st.sampled_from(["atr_d1", "atr_h1", "spread_points"]), st.none() | st.floats(0, 10))


@given(VALUES, VALUES)
def test_a_copy_is_what_replace_gives(before: dict[str, float | None], changes: dict[str, float | None]) -> None:
    context = ContextVector(**before)  # type: ignore[arg-type]
    assert copy_with(context, **changes) == replace(context, **changes)  # type: ignore[arg-type]


def test_a_copy_has_the_class_of_its_original_and_is_frozen() -> None:
    for context in (ContextVector(price=1.0), PlanContext(price=1.0, strategy="IM")):
        copy = copy_with(context, price=2.0)
        assert (type(copy), copy) == (type(context), replace(context, price=2.0))
        with pytest.raises(FrozenInstanceError):
            copy.price = 3.0  # type: ignore[misc]


def test_a_field_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TypeError, match="volume"):
        copy_with(Outcome(value=1.0, unit="R"), volume=2.0)
