"""Editing a member of a JSON text: what it says afterwards, and that nothing else changes."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.surfaces.connect.json_text import read_json, with_member, without_member

NAMES = st.text(max_size=5).filter(lambda name: name not in ("servers", "backsight"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(NAMES, children, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
INDENTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])
PATH = ("servers", "backsight")
ENTRY = {"command": "/opt/backsight", "args": ["mcp"], "env": {"A": "é\n"}}


@given(content=OBJECTS, servers=st.none() | OBJECTS, indent=INDENTS, crlf=st.booleans())
def test_an_entry_is_added_to_any_object_and_taken_out_again(
    content: dict[str, Any], servers: dict[str, Any] | None, indent: int | str | None, crlf: bool
) -> None:
    if servers is not None:
        content = {**content, "servers": servers, "last": 1}
    text = json.dumps(content, indent=indent)
    text = text.replace("\n", "\r\n") if crlf else text
    added = with_member(text, PATH, ENTRY, comments=False)
    assert json.loads(added) == {**content, "servers": {**(servers or {}), "backsight": ENTRY}}
    removed = without_member(added, PATH, comments=False)
    assert json.loads(removed) == {**content, "servers": servers or {}}
    assert removed == text or not servers


@given(content=OBJECTS, indent=INDENTS, ascii_only=st.booleans())
def test_a_strict_text_is_read_as_json_reads_it(
    content: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_only)
    assert read_json(text, comments=False).content == content
    assert read_json(text, comments=True).content == content


@given(st.text(alphabet='{}[]",:/*\\ \n1a', max_size=30))
def test_what_is_read_without_comments_is_what_json_reads(text: str) -> None:
    try:
        content = read_json(text, comments=False).content
    except Invalid:
        return
    assert content == (json.loads(text) if text.strip() else {})


COMMENTED = """{
  // servers {of the editor}
  "servers": {
    "a": {"url": "http://a"}, // "quoted"
    /* "b": {} */
  }, // end
  "theme": "dark"
}
"""


def test_comments_and_trailing_commas_stay_where_they_are() -> None:
    added = with_member(COMMENTED, PATH, 1, comments=True)
    assert added == COMMENTED.replace('    /* "b": {} */\n', '    /* "b": {} */\n    "backsight": 1,\n')
    assert without_member(added, PATH, comments=True) == COMMENTED


def test_a_comment_after_the_last_member_stays_after_it() -> None:
    text = '{\n\t"servers": {\n\t\t"a": 1 // one\n\t}\n}'
    added = with_member(text, PATH, 2, comments=True)
    assert added == '{\n\t"servers": {\n\t\t"a": 1, // one\n\t\t"backsight": 2\n\t}\n}'
    assert without_member(added, PATH, comments=True) == text


def test_an_entry_between_others_is_replaced_and_removed_in_its_place() -> None:
    text = '{"servers": {"a": 1, "backsight": {"old": []}, "c": 3}}'
    assert with_member(text, PATH, 2, comments=False) == '{"servers": {"a": 1, "backsight": 2, "c": 3}}'
    assert without_member(text, PATH, comments=False) == '{"servers": {"a": 1, "c": 3}}'


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_an_empty_text_is_an_empty_object(text: str) -> None:
    added = with_member(text, PATH, 1, comments=False)
    assert added.removeprefix(text) == '{\n  "servers": {\n    "backsight": 1\n  }\n}\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,}', "line 1 has a comma after the last item"),
        ('{\n  // note\n  "a": 1}', "line 2 has '// note"),
        ('{"a": }', "line 1 has '}', which is not JSON"),
        ('{"a": 1\n"b": 2}', "line 1 has no '}' or comma after an item"),
        ('{"a" 1}', "line 1 has a name without a colon"),
        ("[1]", "line 1 has a value that is not an object"),
        ("{} {}", "line 1 has text after the end of the object"),
        ('{"a": "x', "which is not JSON"),
        ('{"a": ' + "[" * 100_000, "too many nested brackets"),
        ('{"servers": [1]}', "'servers' is not an object"),
    ],
)
def test_a_text_that_is_not_json_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(Invalid, match=re.escape(problem)):
        with_member(text, PATH, 1, comments=False)
