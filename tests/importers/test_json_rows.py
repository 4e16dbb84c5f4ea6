"""Rows of JSON files."""

import json
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.cells import UnreadableError
from backsight.importers.json_rows import JsonRow, json_rows


def written(folder: Path, text: str) -> Path:
    path = folder / "rows.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": 2}]', '{"a": 1}\n{"a": 2}\n', ' \n[ {"a":1} , {"a":2} ] trailing', '{"a":1}{"a":2}']
)
def test_lists_and_lines_are_read(tmp_path: Path, text: str) -> None:
    assert [(number, row.required("a")) for number, row in json_rows(written(tmp_path, text))] == [(1, 1.0), (2, 2.0)]


@pytest.mark.parametrize("inside", [[{"a": 1}], {"a": 1}])
def test_one_object_under_keys_is_a_list_of_one(tmp_path: Path, inside: object) -> None:
    text = json.dumps({"history": {"event": inside}})
    assert [row.required("a") for _, row in json_rows(written(tmp_path, text), "history", "event")] == [1.0]


@pytest.mark.parametrize("text", ['[{"a": 1}, {"a"', '[{"a": 1}', '[{"a": 1}, {"a": NaN}]', '{"a": 1}\n{"a": '])
def test_a_file_that_is_cut_off_gives_its_rows_and_then_says_so(tmp_path: Path, text: str) -> None:
    rows = json_rows(written(tmp_path, text))
    assert next(rows)[1].required("a") == 1.0
    with pytest.raises(UnreadableError, match="cut off") as error:
        next(rows)
    assert error.value.number == 2


@pytest.mark.parametrize("text", ["", "  ", "a,b\n1,2\n", '"text"'])
def test_what_is_no_list_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Invalid, match=r"empty|not JSON"):
        list(json_rows(written(tmp_path, text)))


def test_a_value_of_another_type_is_named(tmp_path: Path) -> None:
    row = JsonRow({"a": True, "b": "x", "c": None, "d": "1,000.5", "e": {}})
    assert (row.number_in("c"), row.required("d"), row.text("e"), row.text("c")) == (None, 1000.5, "", "")
    for name, message in (("a", "a is not a number"), ("b", "b is not a number"), ("c", "c is missing")):
        with pytest.raises(ValueError, match=message):
            row.required(name)
    ((_, text),) = json_rows(written(tmp_path, '["a"]'))
    with pytest.raises(ValueError, match="not an object"):
        text.required("a")
