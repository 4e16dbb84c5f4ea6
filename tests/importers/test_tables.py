"""Tables that no program in particular wrote."""

import gzip
from datetime import UTC
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.formats import head_of
from backsight.importers.tables import Notation, column_names, date_order, matched_columns, open_table


def rows_of(path: Path) -> list[tuple[int, list[object]]]:
    return [(number, list(cells)) for number, cells in open_table(path, head_of(path)).rows]


@pytest.mark.parametrize(
    ("text", "written_as"),
    [
        ("a,b\n1,2\n\n3,4\n", "CSV with commas"),
        ("a;b\n1;2\n\n3;4\n", "CSV with semicolons"),
        ("a\tb\n1\t2\n\n3\t4\n", "CSV with tabs"),
        ('{"a": "1", "b": "2"}\n\n\n{"a": "3", "b": "4"}\n', "JSON Lines"),
    ],
)
def test_text_tables_are_read_with_line_numbers(tmp_path: Path, text: str, written_as: str) -> None:
    path = tmp_path / "table"
    path.write_text(text)
    assert open_table(path, head_of(path)).written_as == written_as
    first, last = rows_of(path)
    assert (first[1], last) == (["1", "2"], (4, ["3", "4"]))


def test_json_arrays_and_compressed_tables_are_read(tmp_path: Path) -> None:
    array, packed = tmp_path / "table.json", tmp_path / "table.csv.gz"
    array.write_text('[{"a": 1}, {"a": 2, "b": null}]')
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert rows_of(array) == [(1, [1, None]), (2, [2, None])]
    assert (column_names(head_of(packed)), rows_of(packed)) == (("a", "b"), [(2, ["1", "2"])])


def test_parquet_is_read_in_batches(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    parquet.write_table(arrow.table({"a": list(range(1_200)), "b": ["x"] * 1_200}), path)
    rows = rows_of(path)
    assert (column_names(head_of(path)), len(rows), rows[-1]) == (("a", "b"), 1_200, (1_200, [1_199, "x"]))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(Invalid, match="is not Parquet"):
        open_table(path, head_of(path))


def test_columns_are_matched_by_synonyms_and_as_given() -> None:
    synonyms = {"time": ("timestamp", "date"), "price": ("px",), "size": ("qty",)}
    assert matched_columns(["Date ", "PX", "Menge"], synonyms, {"menge": "size"}) == {
        "time": "Date ",
        "price": "PX",
        "size": "Menge",
    }
    with pytest.raises(Invalid, match="there is no column 'Preis'; the file has PX"):
        matched_columns(["PX"], synonyms, {"Preis": "price"})
    with pytest.raises(Invalid, match="'prise' is not a field; did you mean 'price'"):
        matched_columns(["PX"], synonyms, {"PX": "prise"})


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e3", 1000.0), (" 5 ", 5.0), ("1,000", 1000.0), ("-$3.50", -3.5), ("", None), ("nan", None), ("-", None)],
)
def test_numbers(text: str, number: float | None) -> None:
    if text == "-":
        with pytest.raises(ValueError, match="is not a number"):
            Notation().number(text)
    else:
        assert Notation().number(text) == number


@pytest.mark.parametrize("value", ["inf", float("inf"), "1_000", "0x10", True, [1], "1.2.3"])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        Notation().number(value)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("4/6/2026 3:05:07 PM", "2026-04-06T15:05:07+00:00"),
        ("04/06/26, 12:30 am", "2026-04-06T00:30:00+00:00"),
        ("2026-06-04T10:00:00Z", "2026-06-04T10:00:00+00:00"),
        ("1780567200", "2026-06-04T10:00:00+00:00"),
    ],
)
def test_times_in_the_american_order(text: str, at: str) -> None:
    assert Notation(date_order="mdy").instant(text, zone=UTC).isoformat() == at


@pytest.mark.parametrize("text", ["31/31/2026", "yesterday", "", "99/01/2026 25:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        Notation(date_order="dmy").instant(text, zone=UTC)


def test_dots_mean_that_the_day_comes_first() -> None:
    assert (date_order(["01.02.2026"]), date_order(["01/13/2026"]), date_order([])) == ("dmy", "mdy", None)
