"""Files of closed trades: a row becomes arguments or is refused."""

from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest

from backsight.core.errors import Invalid, NotFound
from backsight.importers.trades import read_trades
from backsight.ops import trades

CLOSED = datetime(2026, 6, 4, 10, tzinfo=UTC)


def a_file(folder: Path, text: str, name: str = "trades.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_a_row_of_texts_becomes_arguments(tmp_path: Path) -> None:
    header = "symbol,pnl,closed_at,tags,context.session,context.atr_h1,context.hour_utc,reflection"
    path = a_file(tmp_path, f"{header}\nBTC, 1.5 ,2026-06-04T10:00:00Z,a b; é ;,london,20,9,\n")
    (row,) = read_trades(path).rows
    assert row.number == 2
    assert row.values == {
        "symbol": "BTC",
        "pnl": 1.5,
        "closed_at": CLOSED,
        "tags": ["a b", "é"],
        "context": {"session": "london", "atr_h1": 20.0, "hour_utc": 9},
    }


def test_every_argument_that_is_a_number_is_read_as_one(tmp_path: Path) -> None:
    numbers = [name for name, hint in get_type_hints(trades.remember_trade).items() if "float" in str(hint)]
    path = a_file(tmp_path, f"closed_at,{','.join(numbers)}\n2026-06-04T10:00:00Z,{','.join('2' for _ in numbers)}\n")
    (row,) = read_trades(path).rows
    assert "equity" in numbers
    assert row.values == {"closed_at": CLOSED, **dict.fromkeys(numbers, 2.0)}


def test_an_object_is_unchanged_except_for_its_times(tmp_path: Path) -> None:
    text = (
        '{"symbol": "BTC", "closed_at": "2026-06-04T12:00:00+02:00", "context": {"regime": "ranging"}, "size": "x"}\n'
    )
    (row,) = read_trades(a_file(tmp_path, text, "trades.jsonl")).rows
    assert row.values == {"symbol": "BTC", "closed_at": CLOSED, "context": {"regime": "ranging"}, "size": "x"}


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    table = {"symbol": ["BTC"], "pnl": [1], "closed_at": [CLOSED], "risk": [None], "context.atr_d1": [2.5]}
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(arrow.table(table), tmp_path / "trades.parquet")
    text = "symbol,pnl,closed_at,risk,context.atr_d1\nBTC,1,2026-06-04T10:00:00Z,,2.5\n"
    columnar, plain = read_trades(tmp_path / "trades.parquet"), read_trades(a_file(tmp_path, text))
    (row,) = columnar.rows
    assert [row.values] == [each.values for each in plain.rows]
    assert (columnar.source.unit, row.number) == ("row", 1)


def test_a_time_without_an_offset_is_in_the_timezone_argument(tmp_path: Path) -> None:
    path = a_file(tmp_path, "closed_at,opened_at\n2026-06-04 06:00,1780562400\n")
    (row,) = read_trades(path, timezone="America/New_York").rows
    assert (row.values["closed_at"], row.values["opened_at"]) == (CLOSED, datetime(2026, 6, 4, 8, 40, tzinfo=UTC))


def test_a_text_that_should_be_a_number_stays_text_for_the_check_to_name(tmp_path: Path) -> None:
    (row,) = read_trades(a_file(tmp_path, "pnl,context.hour_utc\na lot,9.5\n")).rows
    assert row.values == {"pnl": "a lot", "context": {"hour_utc": "9.5"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("closed_at\n2026-06-04T10:00:00Z\nyesterday\n", r"closed_at: .*trades\.csv line 3: 'yesterday' is not a time"),
        ("pnl,pnl\n1,2\n", r"path: .*trades\.csv has two columns named 'pnl'; rename one"),
        ("pnl,symbol\n1\n", r"path: .*trades\.csv line 2: 1 cells, but the header has 2"),
        ("pnl,symbol\n", r"path: .*trades\.csv has no rows below its header"),
        ("", r"path: .*trades\.csv is empty"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        list(read_trades(a_file(tmp_path, text)).rows)


def test_lines_may_end_with_a_carriage_return_and_the_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "trades.csv").write_bytes(b"\xef\xbb\xbf\rpnl;symbol\r1;BTC\r2;ETH\r")
    rows = list(read_trades(tmp_path / "trades.csv").rows)
    assert [(row.number, row.values) for row in rows] == [
        (3, {"pnl": 1.0, "symbol": "BTC"}),
        (4, {"pnl": 2.0, "symbol": "ETH"}),
    ]


@pytest.mark.parametrize("name", ["trades.csv", "trades.jsonl"])
def test_a_byte_that_is_not_utf_8_is_named_by_its_line_far_into_the_file(tmp_path: Path, name: str) -> None:
    row = b'{"pnl": 1}\n' if name.endswith("jsonl") else b"1,2\n"
    head = b"" if name.endswith("jsonl") else b"pnl,fees\n"
    (tmp_path / name).write_bytes(head + 5_000 * row + b"\xe9\n")
    with pytest.raises(Invalid, match=rf"line {5_001 + bool(head)}: byte 0xe9 is not UTF-8; save the file as UTF-8"):
        list(read_trades(tmp_path / name).rows)


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="path: there is no file"):
        read_trades(tmp_path / "trades.csv")
