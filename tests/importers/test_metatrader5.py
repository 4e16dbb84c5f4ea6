"""MetaTrader 5: deals of a report become fills whose money is the broker's, on netting and on hedging accounts."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.core.instruments import ONE_TO_ONE, UnitWorth
from backsight.core.orders import ReportedFill, as_fill
from backsight.core.trades.fold import RoundTrip, fold
from backsight.importers.files import zone_named
from backsight.importers.formats import FileRow, FillRow, InstrumentRow, LeftOutRow, ReadOptions, RemarkRow, head_of
from backsight.importers.metatrader5 import FORMATS
from backsight.importers.registry import recognised_format
from backsight.testing import T0, an_account
from program_samples.metatrader5 import (
    BALANCE,
    DEALS,
    ENTRY,
    EXIT,
    HIDDEN,
    Cells,
    a_deal,
    a_table,
    as_html,
    as_xlsx,
    cells,
)

(REPORT,) = FORMATS


def read(path: Path, rows: Sequence[Cells], *, timezone: str = "UTC") -> list[FileRow]:
    path.write_bytes(as_html(rows).encode("utf-16"))
    return list(REPORT.read(path, ReadOptions(zone=zone_named(timezone))))


def fills_of(rows: Sequence[FileRow]) -> list[ReportedFill]:
    return [row.fill for row in rows if isinstance(row, FillRow)]


def folded(rows: Sequence[FileRow], currency: str = "USD") -> list[RoundTrip]:
    """The round trips of the rows, as an import makes them."""
    worths = {row.symbol: UnitWorth(multiplier=row.multiplier or 1.0) for row in rows if isinstance(row, InstrumentRow)}
    account = an_account(currency=currency)
    fills = []
    for fill in fills_of(rows):
        worth = worths.get(fill.symbol, ONE_TO_ONE)
        fills.append(as_fill(fill, account, decision_id=None, known_at=T0, recorded_at=T0, worth=worth))
    return fold(fills)


def test_a_deal_is_a_fill_and_a_balance_a_transfer(tmp_path: Path) -> None:
    rows = read(tmp_path / "r.html", a_table(BALANCE, ENTRY, EXIT))
    assert recognised_format(tmp_path / "r.html") == REPORT
    deposit, entry, swap, exit_ = fills_of(rows)
    assert (deposit.kind, deposit.amount, deposit.id) == ("transfer", 10_000.0, "1")
    assert (entry.id, entry.quantity, entry.price, entry.fee, entry.order_id) == ("11", 0.5, 1.1, 1.75, "1001")
    assert (entry.at, entry.position_key, entry.realized_pnl) == (datetime(2026, 1, 2, 10, tzinfo=UTC), "EURUSD", None)
    assert (swap.kind, swap.amount, swap.id) == ("funding", -0.4, "12:swap")
    assert (exit_.quantity, exit_.realized_pnl, exit_.reason) == (-0.5, 100.0, "take_profit")
    assert not [row for row in rows if isinstance(row, LeftOutRow)]


def test_the_profit_of_the_broker_tells_what_a_lot_is_worth(tmp_path: Path) -> None:
    rows = read(tmp_path / "r.html", a_table(ENTRY, EXIT))
    (instrument,) = [row for row in rows if isinstance(row, InstrumentRow)]
    assert instrument == InstrumentRow(symbol="EURUSD", kind="fx", multiplier=100_000.0, currency="USD")
    (trip,) = folded(rows)
    assert (trip.status, trip.fees, trip.funding) == ("closed", 3.5, -0.4)
    assert trip.realized_pnl == pytest.approx(100.0) == trip.broker_pnl
    assert trip.net == pytest.approx(96.1)


def test_gold_has_its_own_size_of_contract(tmp_path: Path) -> None:
    deals = [
        a_deal("02 10:00:00", 21, "sell", "in", "0.04", "4 106.170", "1", symbol="XAUUSDm"),
        a_deal("02 11:00:00", 22, "buy", "out", "0.04", "4 101.093", "2", "", "", "20.31", symbol="XAUUSDm"),
    ]
    rows = read(tmp_path / "r.html", a_table(*deals))
    assert InstrumentRow(symbol="XAUUSDm", multiplier=100.0) in rows
    (trip,) = folded(rows)
    assert trip.realized_pnl == pytest.approx(20.31, abs=0.01)


def test_profits_that_were_converted_give_each_fill_its_rate(tmp_path: Path) -> None:
    deals = [
        a_deal("02 10:00:00", 31, "buy", "in", "1.00", "150.000", "1", symbol="USDJPY"),
        a_deal("02 11:00:00", 32, "sell", "out", "1.00", "151.000", "2", "", "", "662.25", symbol="USDJPY"),
        a_deal("03 10:00:00", 33, "sell", "in", "0.10", "160.000", "3", symbol="USDJPY"),
        a_deal("03 11:00:00", 34, "buy", "out", "0.10", "160.500", "4", "", "", "- 31.15", symbol="USDJPY"),
        a_deal("04 11:00:00", 35, "sell", "in", "0.10", "161.000", "5", symbol="USDJPY"),
    ]
    rows = read(tmp_path / "r.html", a_table(*deals))
    assert InstrumentRow(symbol="USDJPY", kind="fx", multiplier=100_000.0, currency="JPY") in rows
    first, second, still_open = folded(rows)
    assert first.realized_pnl == pytest.approx(662.25)
    assert second.realized_pnl == pytest.approx(-31.15)
    assert still_open.status == "open"
    assert still_open.point_value == pytest.approx(623.0)


def test_a_lot_of_which_nothing_is_known_is_named(tmp_path: Path) -> None:
    rows = read(tmp_path / "r.html", a_table(a_deal("02 10:00:00", 1, "buy", "in", "1", "100", "1", symbol="US30")))
    remarks = [row.text for row in rows if isinstance(row, RemarkRow)]
    assert any("what a lot of US30 is worth" in text for text in remarks)
    assert any("in USD" in text for text in remarks)


def test_deals_of_a_hedging_account_belong_to_their_positions(tmp_path: Path) -> None:
    deals = [
        a_deal("02 10:00:00", 41, "buy", "in", "1.00", "1.10000", "501"),
        a_deal("02 10:05:00", 42, "sell", "in", "1.00", "1.10100", "502"),
        a_deal("02 10:10:00", 43, "buy", "in", "1.00", "1.10200", "503"),
        a_deal("02 12:00:00", 44, "sell", "out", "1.00", "1.10300", "504", "", "", "100.00"),
        a_deal("02 12:00:00", 45, "sell", "out", "1.00", "1.10300", "505", "", "", "300.00"),
        a_deal("02 13:00:00", 46, "buy", "out", "1.00", "1.10400", "506", "", "", "-300.00"),
    ]
    closed = ["", "", "2026.01.02 12:00:00", "1.10300", "0", "0"]
    positions = [
        ["2026.01.02 10:00:00", "501", "EURUSD", "buy", HIDDEN, "1", "1.10000", *closed, "300.00"],
        ["2026.01.02 10:10:00", "503", "EURUSD", "buy", HIDDEN, "1", "1.10200", *closed, "100.00"],
    ]
    rows = read(tmp_path / "r.html", a_table(*deals, positions=positions, book="Hedge"))
    results = {trip.position_key: round(trip.realized_pnl, 2) for trip in folded(rows)}
    assert results == {"501": 300.0, "502": -300.0, "503": 100.0}


def test_without_the_table_of_positions_the_profit_tells_the_position(tmp_path: Path) -> None:
    deals = [
        a_deal("02 10:00:00", 41, "buy", "in", "1.00", "1.10000", "501"),
        a_deal("02 10:10:00", 43, "buy", "in", "1.00", "1.10200", "503"),
        a_deal("02 11:00:00", 44, "buy", "in", "0.10", "1.10000", "504"),
        a_deal("02 11:01:00", 45, "sell", "out", "1.00", "1.10300", "505", "", "", "300.00"),
        a_deal("02 12:00:00", 46, "sell", "out", "0.10", "1.10300", "506", "", "", "30.00"),
        a_deal("02 12:00:00", 47, "sell", "out", "1.00", "1.10300", "507", "", "", "100.00"),
    ]
    rows = read(tmp_path / "r.html", a_table(*deals, book="Hedge"))
    results = {trip.position_key: round(trip.realized_pnl, 2) for trip in folded(rows)}
    assert results == {"501": 300.0, "503": 100.0, "504": 30.0}


def test_a_tester_report_hedges_if_a_deal_enters_against_a_position(tmp_path: Path) -> None:
    deals = [
        a_deal("02 10:00:00", 51, "buy", "in", "1.00", "1.10000", "1"),
        a_deal("02 10:05:00", 52, "sell", "in", "1.00", "1.10100", "2"),
        a_deal("02 12:00:00", 53, "sell", "out", "1.00", "1.10300", "3", "", "", "300.00"),
        a_deal("02 13:00:00", 54, "buy", "out", "1.00", "1.10400", "4", "", "", "-300.00"),
    ]
    rows = read(tmp_path / "r.html", [["Strategy Tester Report"], DEALS, *deals])
    assert recognised_format(tmp_path / "r.html") == REPORT
    assert {trip.position_key: round(trip.realized_pnl, 2) for trip in folded(rows)} == {"1": 300.0, "2": -300.0}
    (trip,) = folded(read(tmp_path / "r.html", [["Strategy Tester Report"], DEALS, ENTRY, EXIT]))
    assert trip.position_key == "EURUSD"


def test_a_reversal_closes_and_opens(tmp_path: Path) -> None:
    deals = [ENTRY, a_deal("02 12:00:00", 12, "sell", "in/out", "0.80", "1.10200", "2", "", "", "100.00")]
    closed, opened = folded(read(tmp_path / "r.html", a_table(*deals)))
    assert opened.direction == "short"
    assert [closed.realized_pnl, opened.size] == pytest.approx([100.0, 0.3])


def test_a_position_from_before_the_report_is_known_by_the_table_of_positions(tmp_path: Path) -> None:
    position = cells("2025.12.01 10:00:00|900|EURUSD|buy|0.50|1.10000|||2026.01.02 12:00:00|1.10200|0|0|100.00")
    rows = read(tmp_path / "r.html", a_table(BALANCE, EXIT, positions=[position], book="Hedge"))
    holding = next(fill for fill in fills_of(rows) if fill.kind == "holding")
    assert (holding.position_key, holding.quantity, holding.price) == ("900", 0.5, 1.1)
    (trip,) = folded(rows)
    assert trip.status == "closed"
    assert trip.realized_pnl == pytest.approx(100.0)


def test_a_deal_that_closes_nothing_known_is_left_out(tmp_path: Path) -> None:
    (left,) = read(tmp_path / "r.html", a_table(EXIT))
    assert isinstance(left, LeftOutRow)
    assert left.reason == "it closes a position that was entered before the report begins"


def test_times_are_those_of_the_server(tmp_path: Path) -> None:
    rows = read(tmp_path / "r.html", a_table(ENTRY), timezone="Europe/Athens")
    assert fills_of(rows)[0].at == datetime(2026, 1, 2, 8, tzinfo=UTC)
    assert any("Europe/Athens" in row.text for row in rows if isinstance(row, RemarkRow))


def test_an_account_in_another_currency_is_refused(tmp_path: Path) -> None:
    read(tmp_path / "r.html", a_table(ENTRY))
    assert list(REPORT.read(tmp_path / "r.html", ReadOptions(currency="USD")))
    with pytest.raises(Invalid, match=r"currency: .* is in USD, not in EUR; give USD"):
        list(REPORT.read(tmp_path / "r.html", ReadOptions(currency="EUR")))


def test_charges_are_fees_of_no_position(tmp_path: Path) -> None:
    charge = cells("2026.01.03 00:00:00|7||interest||||||||1.25|10 001.25|")
    (fill,) = fills_of(read(tmp_path / "r.html", a_table(charge)))
    assert (fill.kind, fill.fee, fill.position_key, fill.symbol) == ("fee", -1.25, "", "")


@pytest.mark.parametrize("columns", [13, 14, 15])
def test_columns_of_money_are_known_by_their_number_in_every_language(tmp_path: Path, columns: int) -> None:
    header = ["Время", "Сделка", "Символ", "Тип", "Напр.", "Объем", "Цена", "Ордер", "Комиссия", "Своп", "Прибыль"]
    row = [*EXIT[:8], "-1.75", "-0.40", "100.00", "10 000.00", "x"]
    entry = [*ENTRY[:8], "-1.75", "0", "0", "10 000.00", "x"]
    header += ["Баланс", "Комментарий"]
    for extra, place in ((14, 9), (15, 8)):
        if columns >= extra:
            for cells in (header, row, entry):
                cells.insert(place, "Сбор" if cells is header else "0.00")
    table = [["Торговый счет:", "9 (USD, Test, real, Netting)"], header, entry, row]
    (trip,) = folded(read(tmp_path / "r.html", table))
    assert (trip.fees, trip.funding, round(trip.realized_pnl, 6)) == (3.5, -0.4, 100.0)
    assert recognised_format(tmp_path / "r.html") == REPORT


def test_a_workbook_is_read_like_the_page(tmp_path: Path) -> None:
    table = a_table(BALANCE, ENTRY, EXIT)
    path = as_xlsx(tmp_path / "r.xlsx", table)
    assert recognised_format(path) == REPORT
    assert list(REPORT.read(path, ReadOptions())) == read(tmp_path / "r.html", table)


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        (0, "yesterday", "time is not a time"),
        (1, "12x", "the number of a deal, an order or a position is not a number"),
        (2, "", "symbol is missing"),
        (4, "away", "the direction of a deal is not known, or the volume of an order or a position is missing"),
        (5, "some", "volume is not a number"),
        (6, "0", "price is not above 0"),
        (11, "nan", "profit is not a number"),
    ],
)
def test_a_deal_that_cannot_be_read_is_named(tmp_path: Path, column: int, cell: str, reason: str) -> None:
    broken = [*EXIT[:column], cell, *EXIT[column + 1 :]]
    rows = read(tmp_path / "r.html", a_table(ENTRY, broken))
    (left,) = [row for row in rows if isinstance(row, LeftOutRow)]
    assert (left.reason, left.broken) == (reason, True)
    assert len(fills_of(rows)) == 1


@pytest.mark.parametrize("column", [*range(5, 13)])
def test_a_deal_without_one_of_its_cells_is_not_read_from_the_wrong_columns(tmp_path: Path, column: int) -> None:
    for deal in (EXIT, [*EXIT[:-1], ""]):
        rows = read(tmp_path / "r.html", a_table(ENTRY, [*deal[:column], *deal[column + 1 :]]))
        (left,) = [row for row in rows if isinstance(row, LeftOutRow)]
        assert (left.broken, len(fills_of(rows))) == (True, 1)


def test_an_operation_of_an_unknown_type_is_named(tmp_path: Path) -> None:
    operation = [*BALANCE[:3], "gift", *BALANCE[4:]]
    rows = read(tmp_path / "r.html", a_table(operation, ENTRY))
    (left,) = [row for row in rows if isinstance(row, LeftOutRow)]
    assert (left.reason, left.broken) == ("a deal of the type 'gift' is not known", False)


def test_a_report_that_is_cut_off_is_named(tmp_path: Path) -> None:
    page = as_html(a_table(BALANCE, ENTRY, EXIT))
    (tmp_path / "r.html").write_text(page[: page.index("1.10200")])
    rows = list(REPORT.read(tmp_path / "r.html", ReadOptions()))
    reasons = [(row.reason, row.broken) for row in rows if isinstance(row, LeftOutRow)]
    assert reasons == [("the report is cut off", True)]
    path = as_xlsx(tmp_path / "r.xlsx", a_table(ENTRY))
    path.write_bytes(path.read_bytes()[:700])
    (left,) = REPORT.read(path, ReadOptions())
    assert isinstance(left, LeftOutRow)
    assert (left.reason, left.broken) == ("the workbook is cut off or damaged", True)


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    laughs = '<!DOCTYPE sst [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
    path = as_xlsx(tmp_path / "r.xlsx", a_table(ENTRY), prolog=laughs)
    with pytest.raises(Invalid, match="document type"):
        list(REPORT.read(path, ReadOptions()))


@pytest.mark.parametrize("content", [b"", b"<html><table><tr><td>1</td></tr></table></html>"])
def test_another_page_or_an_empty_file_has_no_fills(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r.html").write_bytes(content)
    assert list(REPORT.read(tmp_path / "r.html", ReadOptions())) == []
    assert not REPORT.recognises(head_of(tmp_path / "r.html"))
