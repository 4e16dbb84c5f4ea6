"""Walking through JSON: members, elements, values that are skipped, and texts that are cut off."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.importers.cells import UnreadableError
from backsight.importers.json_text import JsonCursor

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def walked(cursor: JsonCursor) -> Any:
    match cursor.next_character:
        case "{":
            return {name: walked(cursor) for name in cursor.members()}
        case "[":
            return [walked(cursor) for _ in cursor.elements()]
        case _:
            return cursor.value()


@given(VALUES, st.sampled_from([None, 2]))
def test_a_walk_sees_what_the_whole_text_says(value: object, indent: int | None) -> None:
    assert walked(JsonCursor(json.dumps(value, indent=indent))) == value


def test_what_is_not_read_is_skipped() -> None:
    cursor = JsonCursor('{"a": [1, 2], "b": {"c": {}}, "d": 4}')
    assert [name for name in cursor.members()] == ["a", "b", "d"]  # noqa: C416 - the names are the point


@pytest.mark.parametrize("end", range(1, 26))
def test_a_text_that_is_cut_off_is_unreadable(end: int) -> None:
    text = '{"a": [1, {"b": "x"}], "c": 2}'
    with pytest.raises(UnreadableError):
        walked(JsonCursor(text[:end]))


@pytest.mark.parametrize("text", ["{1: 2}", '{"a" 1}', '{"a": 1 "b": 2}', "[1 2]", "[" * 100_000])
def test_what_is_not_json_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        for _ in JsonCursor(text).elements() if text[0] == "[" else JsonCursor(text).members():
            pass
