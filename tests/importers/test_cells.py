"""Rows and cells of other people's files: values by column name, and reasons for what cannot be read."""

import gzip
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.importers.cells import (
    csv_rows,
    file_rows,
    instant_in,
    number_in,
    optional_instant_in,
    optional_number_in,
    optional_text_in,
    text_in,
)
from backsight.importers.formats import FileRow, LeftOutRow
from backsight.importers.trades import TradeRow


def symbols(number: int, row: Any) -> Iterable[FileRow]:
    return [TradeRow(number, {"symbol": text_in(row, "symbol")})]


def read(path: Path, content: bytes) -> list[FileRow]:
    path.write_bytes(content)
    return list(file_rows(csv_rows(path), symbols))


def test_rows_have_line_numbers_and_blank_lines_are_none(tmp_path: Path) -> None:
    rows = read(tmp_path / "f", b"\xef\xbb\xbfsymbol , x\n\nBTC,1\n ,\nETH,\n")
    assert rows == [TradeRow(3, {"symbol": "BTC"}), TradeRow(5, {"symbol": "ETH"})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"BTC", "another number of cells than the header"),
        (b"BTC,1,2", "another number of cells than the header"),
        (b",1", "symbol is missing"),
        (b"nan,1", "symbol is missing"),
        (b"\xff\xfe,1", "symbol is not UTF-8"),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out_and_the_next_is_read(tmp_path: Path, line: bytes, reason: str) -> None:
    rows = read(tmp_path / "f", b"symbol,x\n" + line + b"\nETH,1\n")
    assert rows == [LeftOutRow(number=2, reason=reason, broken=True), TradeRow(3, {"symbol": "ETH"})]


def test_compressed_and_utf_16_files_are_read_as_they_are(tmp_path: Path) -> None:
    rows = [TradeRow(2, {"symbol": "BTC"})]
    assert read(tmp_path / "f", gzip.compress(b"symbol,x\nBTC,1\n")) == rows
    assert read(tmp_path / "f", "symbol,x\nBTC,1\n".encode("utf-16")) == rows


def test_a_compressed_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    content = gzip.compress(b"symbol,x\n" + b"".join(b"%d,1\n" % number for number in range(20_000)))
    *rows, last = read(tmp_path / "f", content[: len(content) // 2])
    assert len(rows) > 1_000
    reason = "the compressed file is cut off or damaged"
    assert isinstance(last, LeftOutRow)
    assert (last.reason, last.broken) == (reason, True)


def test_a_cell_that_is_too_large_ends_the_reading(tmp_path: Path) -> None:
    rows = read(tmp_path / "f", b"symbol,x\n" + b"a" * 200_000 + b",1\nBTC,1\n")
    assert rows == [LeftOutRow(number=2, reason="not CSV", broken=True)]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    assert read(tmp_path / "f", b"") == []


def test_values_are_those_of_the_first_column_that_has_one() -> None:
    row = {"a": None, "b": " x ", "n": "1.5", "i": 3, "t": "2026-06-04 10:00"}
    assert (text_in(row, "a", "b"), optional_text_in(row, "a")) == ("x", None)
    assert (number_in(row, "a", "n"), number_in(row, "i"), optional_number_in(row, "a")) == (1.5, 3.0, None)
    assert optional_number_in({"a": math.nan}, "a") is None
    assert instant_in(row, "t", zone=UTC) == datetime(2026, 6, 4, 10, tzinfo=UTC)
    assert optional_instant_in(row, "a", zone=UTC) is None


@pytest.mark.parametrize("value", ["1,5", "inf", True, [1], {}])
def test_what_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="a is not a number"):
        number_in({"a": value}, "a")


def test_what_is_missing_or_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="a is missing"):
        number_in({}, "a")
    with pytest.raises(ValueError, match="a is missing"):
        instant_in({"a": " "}, "a", zone=UTC)
    with pytest.raises(ValueError, match="a is not a time"):
        instant_in({"a": "soon"}, "a", zone=UTC)
