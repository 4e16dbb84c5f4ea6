"""Flex queries of Interactive Brokers."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.importers.formats import FillRow, InstrumentRow, LeftOutRow, ReadOptions, RemarkRow
from backsight.importers.ibkr import instant_of_flex, split_ratio
from backsight.importers.registry import format_named
from export_reading import fills_read, of_type, rows_read
from export_samples import IBKR_FLEX, IBKR_FLEX_CSV

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "formats" / "ibkr_flex_trades.xml"


def test_trades_splits_dividends_and_deposits(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "ibkr-flex", IBKR_FLEX)
    fills = {row.fill.id: row.fill for row in of_type(rows, FillRow)}
    stock, option, expiry = fills["1"], fills["2"], fills["3"]
    assert (stock.quantity, stock.fee, stock.fee_currency, stock.rate, stock.order_id) == (10.0, 1.0, "USD", 0.9, "11")
    assert stock.at == datetime(2026, 1, 5, 14, 30, tzinfo=UTC), "New York time"
    assert (option.symbol, option.quantity, expiry.kind, expiry.price) == ("AAPL260116C00310000", -1.0, "expiry", 0.0)
    assert expiry.realized_pnl == pytest.approx(250 * 0.9)
    split = next(fill for fill in fills.values() if fill.kind == "split")
    assert (split.symbol, split.ratio) == ("AAPL", 4.0)
    assert [(fills[name].kind, fills[name].amount) for name in ("cash:6", "cash:7")] == [
        ("dividend", 9.0),
        ("transfer", 1000.0),
    ]
    assert [row.multiplier for row in of_type(rows, InstrumentRow)] == [1.0, 100.0]
    assert [row.broken for row in of_type(rows, LeftOutRow)] == [False] * 4
    assert not of_type(rows, RemarkRow), "10 shares and a split of 4:1 are the 40 of the open positions"


def test_positions_that_the_fills_do_not_lead_to_are_told(tmp_path: Path) -> None:
    text = IBKR_FLEX.replace('position="40"', 'position="140"')
    (remark,) = of_type(rows_read(tmp_path, "ibkr-flex", text), RemarkRow)
    assert "AAPL 140 instead of 40" in remark.text


def test_several_accounts_in_a_file_are_told(tmp_path: Path) -> None:
    text = IBKR_FLEX.replace("</FlexStatements>", '<FlexStatement accountId="U2"></FlexStatement></FlexStatements>')
    (remark,) = of_type(rows_read(tmp_path, "ibkr-flex", text), RemarkRow)
    assert "several accounts (U1, U2)" in remark.text


def test_a_file_with_orders_only_is_read_by_its_orders(tmp_path: Path) -> None:
    text = IBKR_FLEX.replace('levelOfDetail="EXECUTION"', 'levelOfDetail="CLOSED_LOT"')
    (fill,) = (each for each in fills_read(tmp_path, "ibkr-flex", text) if each.kind == "trade")
    assert (fill.symbol, fill.quantity) == ("AAPL", 10.0)


def test_the_side_gives_the_sign_in_csv(tmp_path: Path) -> None:
    rows = rows_read(tmp_path, "ibkr-flex-csv", IBKR_FLEX_CSV)
    fills = [row.fill for row in of_type(rows, FillRow)]
    assert [fill.quantity for fill in fills] == [103.0, 137.0, -240.0]
    assert sum(fill.fee for fill in fills) == pytest.approx(2.45072)
    assert [row.reason for row in of_type(rows, LeftOutRow)] == ["a row ORDER, which repeats executions"]


def test_currencies_without_a_rate_are_told(tmp_path: Path) -> None:
    text = IBKR_FLEX_CSV.replace("Conid", "CurrencyPrimary").replace("265598", "USD", 2).replace("265598", "EUR")
    (remark,) = of_type(rows_read(tmp_path, "ibkr-flex-csv", text), RemarkRow)
    assert remark.text == "Trades in EUR, USD have no rate: add fxRateToBase to the query"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('tradePrice="300" ibC', 'tradePrice="abc" ibC', "tradeprice is not a number"),
        ('quantity="10" tradePrice="300" ibC', 'quantity="0" tradePrice="300" ibC', "quantity is 0"),
        ('dateTime="20260105;093000" quantity="10" tradePrice="300" ibC', 'quantity="10" tradePrice="300" ibC', "time"),
        ('dateTime="20260106;100000"', 'dateTime="01/06/2026;100000"', "two orders"),
        ("SPLIT 4 FOR 1", "SPLIT 4 FOR 0", "ratio of the split is missing"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = IBKR_FLEX.replace("\n dateTime", " dateTime")
    assert old in text
    broken = [
        row for row in of_type(rows_read(tmp_path, "ibkr-flex", text.replace(old, new)), LeftOutRow) if row.broken
    ]
    assert len(broken) == 1
    assert reason in broken[0].reason


def test_a_file_that_is_cut_off_gives_its_rows_and_says_so(tmp_path: Path) -> None:
    text = IBKR_FLEX[: IBKR_FLEX.index("<CorporateActions>")]
    rows = rows_read(tmp_path, "ibkr-flex", text)
    assert len(of_type(rows, FillRow)) == 3
    assert [row.reason for row in of_type(rows, LeftOutRow) if row.broken] == [
        "the file is cut off or not XML from here on"
    ]


def test_entities_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + IBKR_FLEX.replace("Example", "&b;")
    with pytest.raises(Invalid, match="declares XML entities"):
        rows_read(tmp_path, "ibkr-flex", bomb)


def test_dates_of_every_format_but_two_orders() -> None:
    expected = datetime(2026, 1, 26, 11, 57, 15, tzinfo=UTC)
    for text in (
        "20260126;115715",
        "2026-01-26;11:57:15",
        "20260126 115715",
        "2026-01-26, 11:57:15",
        "20260126;115715 EST",
    ):
        assert instant_of_flex(text, UTC) == expected, text
    assert instant_of_flex("20260126", UTC) == datetime(2026, 1, 26, tzinfo=UTC)
    assert split_ratio("SPLIT 1.5 FOR .") is None


@pytest.mark.skipif(not REAL.exists(), reason="needs the shared sample")
def test_the_real_sample(tmp_path: Path) -> None:
    rows = list(format_named("ibkr-flex").read(REAL, ReadOptions()))
    fills = [row.fill for row in of_type(rows, FillRow)]
    assert [(fill.symbol, fill.quantity) for fill in fills] == [
        ("GOLD", 691.0),
        ("GOLD", -100.0),
        ("AAPL", 103.0),
        ("AAPL", 137.0),
    ]
    assert sum(fill.fee for fill in fills) == pytest.approx(5.7665514)
    (remark,) = of_type(rows, RemarkRow)
    assert "AAPL 340 instead of 240, GOLD 0 instead of 591" in remark.text
