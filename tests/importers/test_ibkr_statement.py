"""Activity statements of Interactive Brokers."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow, RemarkRow
from export_reading import fills_read, of_type, rows_read
from export_samples import IBKR_STATEMENT


def test_trades_with_thousands_separators_in_new_york_time(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "ibkr-statement", IBKR_STATEMENT)
    bought, sold, *_ = (row.fill for row in of_type(rows, FillRow))
    assert (bought.quantity, bought.price, bought.fee, bought.rate) == (1000.0, 182.1, 1.0, None)
    assert bought.at == datetime(2026, 5, 1, 13, 35, tzinfo=UTC)
    assert (sold.quantity, sold.realized_pnl) == (-4000.0, 1899.25), "commissions of the 1,000 shares it knows"


def test_other_currencies_are_converted_at_the_rates_of_the_statement(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "ibkr-statement", IBKR_STATEMENT)
    sap, dividend = (row.fill for row in of_type(rows, FillRow) if row.fill.symbol == "SAP")
    assert (sap.rate, sap.fee, sap.fee_currency) == (1.1, 3.0, "EUR")
    assert dividend.kind == "dividend"
    assert dividend.amount == pytest.approx(121.0)
    (remark,) = of_type(rows, RemarkRow)
    assert "rates of the end" in remark.text
    without = IBKR_STATEMENT.replace("Base Currency Exchange Rate,Data,EUR,1.1\n", "")
    (remark,) = of_type(rows_read(tmp_path, "ibkr-statement", without), RemarkRow)
    assert remark.text == "The statement tells no rate of EUR: money in it is not converted"


def test_options_expire_with_the_multiplier_of_a_later_section(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "ibkr-statement", IBKR_STATEMENT)
    option = next(row for row in of_type(rows, InstrumentRow) if row.kind == "option")
    assert (option.multiplier, option.underlying) == (100.0, "SPY")
    kinds = [row.fill.kind for row in of_type(rows, FillRow) if row.fill.symbol == option.symbol]
    assert kinds == ["trade", "expiry"]


def test_forex_has_a_header_of_its_own(tmp_path: Path) -> None:
    (fill,) = (each for each in fills_read(tmp_path, "ibkr-statement", IBKR_STATEMENT) if each.symbol == "EUR.USD")
    assert (fill.quantity, fill.price, fill.fee, fill.fee_currency) == (6000.0, 1.1, 2.0, "USD")


def test_splits_deposits_and_subtotals(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "ibkr-statement", IBKR_STATEMENT)
    fills = [row.fill for row in of_type(rows, FillRow)]
    assert [(fill.symbol, fill.ratio) for fill in fills if fill.kind == "split"] == [("AAPL", 4.0)]
    assert [fill.amount for fill in fills if fill.kind == "transfer"] == [20000.0]
    reasons = [row.reason for row in of_type(rows, LeftOutRow)]
    assert reasons.count("a subtotal") == 4
    assert reasons.count("a row closedlot, which repeats executions") == 1


def test_executions_count_instead_of_orders_where_they_are_listed(tmp_path: Path) -> None:
    order = 'Trades,Data,Order,Stocks,USD,AAPL,"2026-05-01, 09:35:00","1,000",'
    text = IBKR_STATEMENT.replace(order, order.replace("Order", "Trade"))
    fills = [each for each in fills_read(tmp_path, "ibkr-statement", text) if each.kind == "trade"]
    assert [fill.quantity for fill in fills] == [1000.0]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"1,000",182.10', '"1,00",182.10', "quantity is not a number"),
        ("2026-05-01, 09:35:00", "05/01/2026, 09:35", "two orders"),
        (",182.10,182.10,-182100,-1.00,182101,0,0,O", ",182.10", "fewer cells"),
        ('Trades,Data,Order,Stocks,USD,AAPL,"2026-05-01', "Trades,Date", "neither Header, Data nor a subtotal"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    rows = rows_read(tmp_path, "ibkr-statement", IBKR_STATEMENT.replace(old, new))
    (broken,) = (row for row in of_type(rows, LeftOutRow) if row.broken)
    assert broken.number == 6
    assert reason in broken.reason


def test_a_future_whose_multiplier_is_not_in_the_statement_is_named(tmp_path: Path) -> None:
    future = 'Trades,Data,Order,Futures,USD,ESM6,"2026-05-06, 10:00:00",1,5000,5000,0,-2,0,0,0,O'
    text = IBKR_STATEMENT.replace("Trades,SubTotal", f"{future}\nTrades,SubTotal", 1)
    remarks = [row.text for row in of_type(rows_read(tmp_path, "ibkr-statement", text), RemarkRow)]
    assert any("what a contract of ESM6 is worth" in remark for remark in remarks)
