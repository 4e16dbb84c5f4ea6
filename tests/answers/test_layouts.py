"""Every name in a layout is an attribute of the answer that it lays out."""

import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cached_property
from string import Formatter
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from backsight.answers.blocks import Block, Body, CellTemplate, Each, Excerpts, Handle, Line, Quoted, Rows, Values
from backsight.answers.layouts import LAYOUTS
from backsight.memory import OPERATIONS


def kinds_of(hint: Any) -> list[type]:
    """The classes that a type hint allows."""
    if get_origin(hint) in (Union, types.UnionType):
        return [kind for option in get_args(hint) for kind in kinds_of(option)]
    return [hint] if isinstance(hint, type) and hint is not type(None) else []


def items_of(hint: Any) -> Any:
    """The type of the items of a tuple, or the type itself."""
    return get_args(hint)[0] if get_origin(hint) is tuple else hint


def hint_at(hint: Any, path: str) -> Any:
    """The type at a dotted path of attributes; None where a value may have any attribute."""
    for name in filter(None, path.split(".")):
        found = [_attribute(kind, name) for kind in kinds_of(hint)]
        if not found:
            return None  # the types of a protocol or a type variable are not known here
        known = [each for each in found if each is not _MISSING]
        assert known, f"{hint} has no attribute {name!r}"
        hint = known[0]
    return hint


_MISSING = object()


def _attribute(kind: type, name: str) -> Any:
    hints = get_type_hints(kind)
    if name in hints:
        return hints[name]
    found = getattr(kind, name, _MISSING)
    if isinstance(found, property):
        return get_type_hints(found.fget).get("return")
    if isinstance(found, cached_property):
        return get_type_hints(found.func).get("return")
    return found


def names_in(template: CellTemplate) -> Iterator[str]:
    """The attributes that a template names."""
    if isinstance(template, Quoted):
        yield from names_in(template.text)
        yield from filter(None, [template.whole])
    if isinstance(template, str):
        yield from (name for _, name, _, _ in Formatter().parse(template) if name is not None)


def check(block: Block, answer: Any) -> None:
    """Look up every name of a block."""

    def look_up(hint: Any, *templates: CellTemplate) -> None:
        for template in templates:
            for name in names_in(template):
                hint_at(hint, name)

    def columns(hint: Any, templates: Mapping[str, CellTemplate]) -> None:
        look_up(hint, *templates.values())

    match block:
        case Line(text):
            look_up(answer, text)
        case Rows(path, templates) if isinstance(path, str):
            columns(items_of(hint_at(answer, path)), templates)
        case Values(path, templates):
            columns(items_of(hint_at(answer, path)), templates)
            hint_at(answer, block.unless)
        case Excerpts(path, templates):
            columns(items_of(hint_at(answer, path)), templates)
            hint_at(answer, block.words)
        case Each(path, text):
            look_up(items_of(hint_at(answer, path)), text)
        case Body(path, text, title):
            look_up(items_of(hint_at(answer, path)), text, title)
        case Handle(path):
            hint_at(answer, path)
            hint_at(answer, block.when)


RESULTS = {kind.__name__: kind for each in OPERATIONS.values() for kind in kinds_of(each.returns)}


def test_every_layout_is_of_an_answer() -> None:
    assert LAYOUTS.keys() <= RESULTS.keys()


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_name_in_a_layout_is_an_attribute_of_the_answer(name: str) -> None:
    assert is_dataclass(RESULTS[name])
    for block in LAYOUTS[name]:
        check(block, RESULTS[name])


def test_a_name_that_no_answer_has_is_found() -> None:
    with pytest.raises(AssertionError, match="has no attribute 'symbl'"):
        check(Rows("trades", {"symbol": "{symbl}"}), OPERATIONS["list_trades"].returns)
