"""pyfolio: transactions become fills, in the order of the file."""

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.importers.formats import FileRow, FillRow, LeftOutRow, ReadOptions, head_of
from backsight.importers.pyfolio import FORMATS
from backsight.importers.registry import recognised_format
from program_samples.pyfolio import HEADER, LINES

(TRANSACTIONS,) = FORMATS
REAL = Path(__file__).parents[2].parent / "shared" / "data" / "formats" / "pyfolio_txn"


def rows_of(folder: Path, text: str) -> list[FileRow]:
    (folder / "txn.csv").write_text(text)
    return list(TRANSACTIONS.read(folder / "txn.csv", ReadOptions()))


def test_a_transaction_is_a_fill(tmp_path: Path) -> None:
    first, _, last = rows_of(tmp_path, HEADER + LINES)
    assert isinstance(first, FillRow)
    assert isinstance(last, FillRow)
    fill = first.fill
    assert (first.number, fill.symbol, fill.quantity, fill.price, fill.fee) == (2, "AMD", 448.0, 15.54, 0.0)
    assert (fill.at, fill.kind, fill.position_key) == (datetime(2004, 1, 9, tzinfo=UTC), "trade", "AMD")
    assert last.fill.quantity == -896.0


def test_equal_transactions_are_two_fills_with_ids_that_last(tmp_path: Path) -> None:
    ids = [row.fill.id for row in rows_of(tmp_path, HEADER + LINES) if isinstance(row, FillRow)]
    longer = HEADER + LINES + LINES.replace("2004", "2005")
    assert len(set(ids)) == 3
    assert [row.fill.id for row in rows_of(tmp_path, longer) if isinstance(row, FillRow)][:3] == ids


def test_other_names_of_columns(tmp_path: Path) -> None:
    text = "date,symbol,amount,price,commission\n2024-01-02 15:30,Equity(24 [AAPL]),10,190.5,1.25\n"
    (row,) = rows_of(tmp_path, text)
    assert isinstance(row, FillRow)
    assert (row.fill.symbol, row.fill.fee, row.fill.at.hour) == ("AAPL", 1.25, 15)


@pytest.mark.parametrize(
    ("line", "reason", "broken"),
    [
        ("2004-01-13 00:00:00+00:00,0,16.0,0,AMD,0", "amount is 0", False),
        ("2004-01-13 00:00:00+00:00,some,16.0,0,AMD,0", "amount is not a number", True),
        ("2004-01-13 00:00:00+00:00,1,,0,AMD,0", "price is missing", True),
        ("2004-01-13 00:00:00+00:00,1,1", "another number of cells than the header", True),
    ],
)
def test_a_row_that_is_no_transaction_is_named(tmp_path: Path, line: str, reason: str, broken: bool) -> None:
    *_, left = rows_of(tmp_path, f"{HEADER}{LINES}{line}\n")
    assert left == LeftOutRow(number=5, reason=reason, broken=broken)


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    *fills, left = rows_of(tmp_path, (HEADER + LINES)[:-20])
    assert len(fills) == 2
    assert left == LeftOutRow(number=4, reason="another number of cells than the header", broken=True)


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    assert rows_of(tmp_path, "") == []


@pytest.mark.parametrize(
    ("header", "recognised"),
    [
        (HEADER, True),
        ("date,symbol,amount,price\n", True),
        ("date,symbol,amount,price,side\n", False),
        ("symbol,amount,price\n", False),
        ("date,dt,symbol,amount,price\n", False),
        ("", False),
    ],
)
def test_a_file_is_recognised_by_its_header(tmp_path: Path, header: str, recognised: bool) -> None:
    (tmp_path / "f.csv").write_text(header)
    assert TRANSACTIONS.recognises(head_of(tmp_path / "f.csv")) == recognised


@pytest.mark.skipif(not REAL.exists(), reason="the shared sample is not on this machine")
def test_the_shared_sample_has_the_shares_of_its_daily_positions() -> None:
    path = REAL / "test_txn.csv.gz"
    assert recognised_format(path) == TRANSACTIONS
    rows = list(TRANSACTIONS.read(path, ReadOptions()))
    fills = [row.fill for row in rows if isinstance(row, FillRow)]
    assert (len(rows), len(fills), len({fill.id for fill in fills})) == (9_367, 9_367, 9_367)
    assert {fill.symbol for fill in fills} == {"AMD", "CERN", "COST", "DELL", "GPS", "INTC", "MMM"}
    with gzip.open(REAL / "test_pos.csv.gz", "rt") as file:
        header, first = file.readline().strip().split(","), file.readline().strip().split(",")
    values = dict(zip(header, first, strict=True))
    bought = {fill.symbol: fill.quantity * (fill.price or 0.0) for fill in fills if fill.at == fills[0].at}
    assert {symbol: float(values[symbol]) for symbol in bought} == pytest.approx(bought)
