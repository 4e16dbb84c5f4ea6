"""Tables of fills and of closed trades with the names that people use."""

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.core.orders import ReportedFill
from backsight.importers.files import zone_named
from backsight.importers.formats import FileRow, FillRow, InstrumentRow, LeftOutRow, ReadOptions, RemarkRow, head_of
from backsight.importers.generic import is_table_of_fills, is_table_of_trades, read_fills, read_trades
from backsight.importers.trades import TradeRow

TEXT = """Date(UTC),Pair,Side,Executed,Avg Price,Fee,Fee Coin,Trade ID,Order No
2026-06-04 10:00:00,BTC/USDT,BUY,0.5,70000,0.1,BNB,1,a
2026-06-04 10:05:00,BTC/USDT,SELL,0.5,71000,0.1,BNB,2,b
"""


def a_file(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(folder: Path, text: str, zone: str = "UTC", **columns: str) -> list[FileRow]:
    return list(read_fills(a_file(folder, text), ReadOptions(zone=zone_named(zone), columns=columns)))


def fills_of(folder: Path, text: str, **columns: str) -> list[ReportedFill]:
    return [row.fill for row in rows_of(folder, text, **columns) if isinstance(row, FillRow)]


def remarks_of(folder: Path, text: str) -> str:
    return " ".join(row.text for row in rows_of(folder, text) if isinstance(row, RemarkRow))


def left_out(folder: Path, text: str) -> list[tuple[int, str]]:
    return [(row.number, row.reason) for row in rows_of(folder, text) if isinstance(row, LeftOutRow)]


def test_common_names_are_understood(tmp_path: Path) -> None:
    bought, sold = fills_of(tmp_path, TEXT)
    assert (bought.at, bought.symbol, bought.quantity, bought.price) == (
        datetime(2026, 6, 4, 10, tzinfo=UTC),
        "BTC/USDT",
        0.5,
        70000.0,
    )
    assert (bought.fee, bought.fee_currency, bought.id, bought.order_id) == (0.1, "BNB", "1", "a")
    assert (sold.quantity, is_table_of_fills(head_of(a_file(tmp_path, TEXT)))) == (-0.5, True)
    assert "Executed as quantity, Avg Price as price" in remarks_of(tmp_path, TEXT)


def test_a_broken_row_and_a_truncated_file_are_named(tmp_path: Path) -> None:
    assert left_out(tmp_path, TEXT.replace("71000", "high")) == [(3, "price is not a number")]
    assert left_out(tmp_path, TEXT[:-15]) == [(3, "another number of cells than the header")]
    assert left_out(tmp_path, TEXT.replace("SELL", "HOLD")) == [(3, "side is neither buy nor sell")]
    assert left_out(tmp_path, TEXT.replace("2026-06-04 10:05:00", "soon")) == [(3, "time is not a time")]
    assert left_out(tmp_path, TEXT.replace(",BTC/USDT,S", ",,S")) == [(3, "symbol is missing")]


@pytest.mark.parametrize(
    "text", ["", "\n", "a,b\n1,2\n", "{}", '{"time": 1}', "<html>", "time,symbol\n", "[[1]]", '"\n' * 3]
)
def test_other_files_are_not_recognised(tmp_path: Path, text: str) -> None:
    head = head_of(a_file(tmp_path, text))
    assert (is_table_of_fills(head), is_table_of_trades(head)) == (False, False)


def test_missing_columns_are_named_with_those_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="has no column for quantity, price; name them among its columns time, symbol, x"):
        rows_of(tmp_path, "time,symbol,x\n2026-06-04,BTC,1\n")
    assert fills_of(tmp_path, "time,symbol,price,x\n2026-06-04,BTC,7,-1\n", x="quantity")[0].quantity == -1.0


@pytest.mark.parametrize("rows", [20, 20_000])
def test_a_compressed_file_that_is_cut_off_is_refused_or_named(tmp_path: Path, rows: int) -> None:
    text = "time,symbol,qty,price\n" + "".join(f"{1_780_000_000 + row},BTC,{row + 1},5\n" for row in range(rows))
    packed = gzip.compress(text.encode())
    path = tmp_path / "table.csv.gz"
    path.write_bytes(packed[: len(packed) // 2])
    if rows > 1_000:
        *_, last = read_fills(path, ReadOptions())
        assert isinstance(last, LeftOutRow)
        assert (last.reason, last.broken) == ("the compressed file is cut off or damaged", True)
    else:
        with pytest.raises(Invalid, match="cut off or damaged; export the file again"):
            list(read_fills(path, ReadOptions()))


def test_numbers_and_times_of_parquet_are_taken_as_they_are(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    at = datetime(2026, 6, 4, 10, tzinfo=UTC)
    columns = {"time": [at, at], "symbol": ["BTC", "BTC"], "qty": [2.0, -2.0], "price": [100, None], "id": [7, 8]}
    parquet.write_table(arrow.table(columns), tmp_path / "fills.parquet")
    fills = [row.fill for row in read_fills(tmp_path / "fills.parquet", ReadOptions()) if isinstance(row, FillRow)]
    assert [(fill.at, fill.quantity, fill.price, fill.id) for fill in fills] == [
        (at, 2.0, 100.0, "7"),
        (at, -2.0, None, "8"),
    ]
    assert is_table_of_fills(head_of(tmp_path / "fills.parquet"))


def test_a_line_that_is_no_json_object_is_named(tmp_path: Path) -> None:
    line = '{"time": 1780000000, "symbol": "BTC", "qty": 1, "price": 5}'
    assert left_out(tmp_path, f"{line}\n[1]\n{line}\n{line[:20]}") == [
        (2, "time is missing"),
        (4, "time is missing"),
    ]


def test_decimal_commas_and_dates_are_found_out(tmp_path: Path) -> None:
    text = "Datum;Uhrzeit;Ticker;Volume;Price\n04.06.2026;10:00;BMW;1.000,5;93,25\n"
    (fill,) = fills_of(tmp_path, text.replace("Datum", "Date").replace("Uhrzeit", "Time"))
    assert (fill.at, fill.quantity, fill.price) == (datetime(2026, 6, 4, 10, tzinfo=UTC), 1000.5, 93.25)
    said = remarks_of(tmp_path, text.replace("Datum", "Date").replace("Uhrzeit", "Time"))
    assert "CSV with semicolons" in said
    assert "A comma is the decimal sign. Dates begin with the day." in said


def test_an_order_of_dates_that_cannot_be_known_must_be_given(tmp_path: Path) -> None:
    text = "date,symbol,qty,price\n" + "04/06/2026,BTC,1,5\n" * 600
    with pytest.raises(Invalid, match=r"no date tells whether the day or the month comes first.*time:dmy"):
        rows_of(tmp_path, text)
    assert fills_of(tmp_path, text, date="time:dmy")[0].at.month == 6
    assert fills_of(tmp_path, text + "30/06/2026,BTC,1,5\n")[0].at.month == 6
    with pytest.raises(Invalid, match="'ydm' is not an order of dates"):
        rows_of(tmp_path, text, date="time:ydm")


def test_fees_written_as_negative_numbers_are_paid(tmp_path: Path) -> None:
    text = "time,symbol,qty,price,commission\n2026-06-04,BTC,1,5,-0.5\n2026-06-05,BTC,1,5,0\n"
    assert [fill.fee for fill in fills_of(tmp_path, text)] == [0.5, 0.0]
    assert "Fees are written as negative numbers" in remarks_of(tmp_path, text)
    assert [fill.fee for fill in fills_of(tmp_path, text.replace(",0\n", ",1\n"))] == [-0.5, 1.0]


def test_payments_and_corporate_actions_have_a_kind(tmp_path: Path) -> None:
    text = "time,symbol,kind,qty,price,payment,ratio\n2026-06-04,BTC,Funding,,,-2,\n2026-06-05,BTC,split,,,,10\n"
    funding, split = fills_of(tmp_path, text)
    assert (funding.kind, funding.amount, split.kind, split.ratio) == ("funding", -2.0, "split", 10.0)
    assert left_out(tmp_path, text.replace("Funding", "airdrop")) == [(2, "kind is not known")]


def test_a_type_that_is_not_a_side_leaves_the_sign_to_the_quantity(tmp_path: Path) -> None:
    text = "time,symbol,type,amount,price\n2026-06-04,BTC,LIMIT,-3,5\n"
    assert [fill.quantity for fill in fills_of(tmp_path, text)] == [-3.0]


def test_what_a_row_tells_of_its_symbol_comes_first(tmp_path: Path) -> None:
    text = "time,symbol,qty,price,multiplier,currency\n" + "2026-06-04,ES,1,5,50,USD\n" * 2
    instruments = [row for row in rows_of(tmp_path, text) if isinstance(row, InstrumentRow)]
    assert instruments == [InstrumentRow(symbol="ES", multiplier=50.0, currency="USD")]


def test_closed_trades_are_read_with_the_names_of_remember_trade(tmp_path: Path) -> None:
    text = "Ticker,Side,Entry Price,Exit Price,Net PnL,Exit Time,Qty\nSPY,SHORT,500,490,100,2026-06-04 10:00,-10\n"
    path = a_file(tmp_path, text)
    (row,) = (row for row in read_trades(path, ReadOptions()) if isinstance(row, TradeRow))
    expected: dict[str, Any] = {"symbol": "SPY", "direction": "short", "entry_price": 500.0, "exit_price": 490.0}
    expected |= {"pnl": 100.0, "closed_at": datetime(2026, 6, 4, 10, tzinfo=UTC), "size": 10.0}
    assert (row.values, is_table_of_trades(head_of(path)), is_table_of_fills(head_of(path))) == (expected, True, False)


def test_sides_in_other_languages_are_understood(tmp_path: Path) -> None:
    sides = ["Kauf", "Verkauf", "Achat", "Vente", "Compra", "Venta", "Acquisto", "Vendita"]
    lines = [f"2026-06-04 10:0{number}:00,SAP,{side},1,100\n" for number, side in enumerate(sides)]
    fills = fills_of(tmp_path, "time,symbol,side,quantity,price\n" + "".join(lines))
    assert [fill.quantity for fill in fills] == [1.0, -1.0] * 4


HEADER, BOUGHT = "time,symbol,side,quantity,price\n", "2026-06-01,A,buy,10,100\n"


def test_orders_that_were_not_executed_are_left_out(tmp_path: Path) -> None:
    text = (
        "time,symbol,side,quantity,filled,price,avg price,status\n"
        "2026-06-01,A,buy,10,10,0,100,FILLED\n"
        "2026-06-01,A,buy,10,0,90,0,CANCELED\n"
        "2026-06-02,A,sell,20,7,0,110,Cancelled\n"
    )
    fills = fills_of(tmp_path, text)
    assert [(fill.quantity, fill.price) for fill in fills] == [(10.0, 100.0), (-7.0, 110.0)], "what was executed counts"
    assert left_out(tmp_path, text) == [(3, "an order that was not executed: canceled")]
    ordered = "time,symbol,side,quantity,price,status\n2026-06-01,A,buy,10,100,Rejected\n"
    assert (fills_of(tmp_path, ordered), len(left_out(tmp_path, ordered))) == ([], 1)


def test_a_column_of_sides_that_cannot_be_read_makes_no_purchases(tmp_path: Path) -> None:
    text = "time,symbol,side,quantity,price\n2026-06-01,A,1,10,100\n2026-06-02,A,-1,10,110\n"
    assert [reason for _, reason in left_out(tmp_path, text)] == ["side is neither buy nor sell"] * 2
    text = "time,symbol,direction,type,quantity,price\n2026-06-01,A,in,buy,10,100\n2026-06-02,A,out,sell,10,110\n"
    assert [fill.quantity for fill in fills_of(tmp_path, text)] == [10.0, -10.0], "the column that holds sides is read"
    text = "time,symbol,type,quantity,price\n2026-06-01,A,limit,10,100\n"
    assert "No column holds sides and no quantity is negative" in remarks_of(tmp_path, text)
    assert "sides" not in remarks_of(tmp_path, text.replace("10,", "-10,"))


def test_a_payment_needs_no_side(tmp_path: Path) -> None:
    text = "time,symbol,side,quantity,price,kind,payment\n2026-06-01,A,buy,1,5,trade,\n2026-06-01,A,,,,funding,-2\n"
    assert [(fill.kind, fill.amount) for fill in fills_of(tmp_path, text)] == [("trade", 0.0), ("funding", -2.0)]


@pytest.mark.parametrize(
    ("number", "delimiter", "value"),
    [("1,234", ";", "1.234"), ("1,234", ",", "1234"), ("1.234", ";", "1.234"), ("1.234", ",", None)],
)
def test_a_separator_that_may_be_either_is_named(
    tmp_path: Path, number: str, delimiter: str, value: str | None
) -> None:
    text = (HEADER + "2026-06-01,A,buy,10,'NUMBER'\n").replace(",", delimiter).replace("'NUMBER'", f'"{number}"')
    expected = f"No number tells the decimal sign from a thousands separator: {number} is read as {value}."
    assert (expected in remarks_of(tmp_path, text)) == (value is not None)


@pytest.mark.parametrize("number", ["1,5", "1,23", "12,3456", "0,123"])
def test_no_decimals_are_lost_where_only_later_rows_have_them(tmp_path: Path, number: str) -> None:
    text = HEADER + BOUGHT * 600 + f'2026-06-01,A,buy,10,"{number}"\n'
    assert left_out(tmp_path, text) == [(602, "price is not a number")]


def test_a_symbol_has_one_multiplier_and_one_currency(tmp_path: Path) -> None:
    header = "time,symbol,side,quantity,price,multiplier,currency\n"
    text = header + "2026-06-01,ES,buy,1,5,50,USD\n2026-06-01,ES,buy,1,5,,USD\n2026-06-02,ES,sell,1,5,5,USD\n"
    assert left_out(tmp_path, text) == [(4, "multiplier is not that of an earlier row of its symbol")]
    assert len([row for row in rows_of(tmp_path, text) if isinstance(row, InstrumentRow)]) == 1


def test_times_may_name_utc(tmp_path: Path) -> None:
    (fill,) = (
        row.fill
        for row in rows_of(
            tmp_path, HEADER + BOUGHT.replace("2026-06-01", "2026-06-01 10:00:00 UTC"), zone="Asia/Tokyo"
        )
        if isinstance(row, FillRow)
    )
    assert fill.at == datetime(2026, 6, 1, 10, tzinfo=UTC)
