"""Frozen dataclasses that are made faster behave as before."""

import pickle
from copy import copy
from dataclasses import FrozenInstanceError, dataclass, field, replace
from inspect import signature

import pytest

from backsight.core.quick_init import quick_init


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A quote with fields of every kind: required, with a default, and made anew for each."""

    bid: float
    ask: float | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedQuote(Quote):
    """A quote with one more field."""

    size: float = 1.0


def test_an_instance_has_its_values_and_its_class() -> None:
    quote = Quote(bid=1.0)
    assert (type(quote), quote.bid, quote.ask, quote.notes) == (Quote, 1.0, None, [])
    assert quote == Quote(bid=1.0, ask=None) != Quote(bid=2.0)
    assert hash(replace(quote, notes=())) == hash(Quote(bid=1.0, notes=()))  # type: ignore[arg-type]


def test_a_default_that_is_made_is_made_for_each_instance() -> None:
    assert Quote(bid=1.0).notes is not Quote(bid=1.0).notes


def test_a_default_that_is_made_is_made_when_the_default_of_the_signature_is_passed() -> None:
    placeholder = signature(Quote).parameters["notes"].default
    assert Quote(bid=1.0, notes=placeholder).notes == []


def test_an_instance_stays_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Quote(bid=1.0).bid = 2.0  # type: ignore[misc]


def test_a_missing_and_an_unknown_field_are_refused() -> None:
    with pytest.raises(TypeError, match="bid"):
        Quote()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="mid"):
        Quote(bid=1.0, mid=2.0)  # type: ignore[call-arg]


def test_copies_and_pickles_are_equal() -> None:
    quote = Quote(bid=1.0, notes=["wide"])
    assert copy(quote) == pickle.loads(pickle.dumps(quote)) == replace(quote) == quote


def test_a_subclass_keeps_its_class() -> None:
    sized = SizedQuote(bid=1.0, size=2.0)
    assert (type(sized), sized.bid, sized.size) == (SizedQuote, 1.0, 2.0)


def test_a_class_that_does_more_is_refused() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Checked:
        price: float

        def __post_init__(self) -> None:
            raise AssertionError

    with pytest.raises(TypeError, match="Checked does more"):
        quick_init(Checked)
