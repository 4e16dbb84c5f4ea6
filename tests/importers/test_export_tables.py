"""Tables that exchanges export: headers below a preamble, numbers with units, broken lines."""

import gzip
from datetime import UTC
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.cells import UnreadableError
from backsight.importers.export_tables import CsvRow, amount_with_unit, csv_table, instant_in, number_in_text, zone_in

LAYOUT = (frozenset({"time", "feecoin"}),)


def rows_of(folder: Path, content: str | bytes) -> list[tuple[int, CsvRow]]:
    path = folder / "table.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(csv_table(path, LAYOUT)[1])


@pytest.mark.parametrize("start", ["", "\ufeff", "UID:1\n\n", "a;b;c;d;e\n"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_is_found_whatever_comes_before_it(tmp_path: Path, start: str, delimiter: str) -> None:
    ((_, row),) = rows_of(tmp_path, f"{start}TIME{delimiter}Fee Coin\n1{delimiter}BTC\n")
    assert (row.text("time"), row.text("feecoin"), row.text("price")) == ("1", "BTC", "")


def test_a_stray_quote_spoils_one_row(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, 'time,fee coin\n1,"BTC\n2\n3,BTC\n4,BTC,x\n5,BTC,\n')
    readable = {number: row.text("time") for number, row in rows if row.problem is None}
    assert readable == {2: "1", 4: "3", 6: "5"}
    assert [row.problem for _, row in rows if row.problem] == [
        "fewer cells than the header",
        "more cells than the header",
    ]
    with pytest.raises(ValueError, match="fewer cells"):
        rows[1][1].text("time")


def test_a_file_without_the_header_is_refused_with_its_columns(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="has no header of this format; give an export with feecoin, time"):
        rows_of(tmp_path, "time,price\n1,2\n")


def test_compressed_files_are_read_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    lines = "".join(f"{number},BTC{number * 7919 % 1000}\n" for number in range(9000))
    content = gzip.compress(f"time,fee coin\n{lines}".encode())
    assert len(rows_of(tmp_path, content)) == 9000
    with pytest.raises(UnreadableError, match="cut off or damaged"):
        rows_of(tmp_path, content[: len(content) // 2])


@pytest.mark.parametrize("text", ["1_000", "abc", "1,2,3", "nan", "inf", "1e999", "0x10", "12,34.5", "--1"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="price is not a number"):
        number_in_text(text, column="price")


@pytest.mark.parametrize(
    ("text", "number"),
    [("-1,234,567.5", -1234567.5), ("1 234", 1234.0), ("1.0E-4", 0.0001), ("+5", 5.0), ("-0.0", 0.0)],
)
def test_numbers_may_have_separators(text: str, number: float) -> None:
    assert number_in_text(text, column="price") == number


def test_a_semicolon_table_may_have_decimal_commas() -> None:
    assert CsvRow({"price": "1.234,5"}, decimal_comma=True).required("price") == 1234.5
    assert CsvRow({"price": "1,234.5"}, decimal_comma=True).required("price") == 1234.5


@pytest.mark.parametrize("text", ["", "BTC", "BTC5", "5BTC5"])
def test_an_amount_without_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="amount is not a number"):
        amount_with_unit(text, ())


@pytest.mark.parametrize("text", ["", "yesterday", "31.12.2024", "12/31/2024 10:00", "2024-13-01 00:00:00"])
def test_a_time_of_unknown_order_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        instant_in(text, UTC)


def test_an_offset_out_of_range_is_none() -> None:
    assert zone_in("Time(UTC+99)") == UTC
