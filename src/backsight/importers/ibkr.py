"""Flex queries of Interactive Brokers, as XML or CSV: trades, cash transactions, corporate actions.

    <FlexQueryResponse><FlexStatements><FlexStatement accountId …>
      <Trades><Trade symbol assetCategory currency fxRateToBase multiplier dateTime quantity tradePrice ibCommission
                     ibCommissionCurrency taxes fifoPnlRealized buySell notes levelOfDetail tradeID ibOrderID …/>
      <CashTransactions><CashTransaction type amount currency fxRateToBase dateTime symbol transactionID …/>
      <CorporateActions><CorporateAction type symbol dateTime quantity description actionDescription …/>
      <OpenPositions><OpenPosition symbol position …/>

The attributes are documented in the Flex Queries reference (ibkrguides.com/reportingreference) and in ibflex. In CSV
the same names are columns (`ClientAccountID`, `AssetClass`, `CurrencyPrimary`). The query decides which there are.

- Executions count; orders, closed lots and summaries are the same again. A file that has orders only is read by them.
- Commissions below 0 were paid. `fifoPnlRealized` is after the commissions of entry and exit, which are added back as
  far as the file has them. `fxRateToBase` converts into the currency of the account.
- Times are of the time zone that the account is set to, New York if it is not.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any
from xml.parsers import expat

from backsight.core.errors import Invalid
from backsight.core.instruments import InstrumentKind
from backsight.core.orders import ReportedFill, ReportedKind
from backsight.importers.cells import UnreadableError, file_rows, plain_name
from backsight.importers.export_tables import CsvRow, csv_table, find_header, instant_in
from backsight.importers.files import text_stream
from backsight.importers.formats import (
    FileFormat,
    FileHead,
    FileRow,
    FillRow,
    InstrumentRow,
    LeftOutRow,
    ReadOptions,
    RemarkRow,
)

CSV_TRADES = frozenset({"symbol", "datetime", "quantity", "tradeprice", "ibcommission"})
KINDS: Mapping[str, InstrumentKind] = {
    "STK": "stock",
    "CFD": "stock",
    "FUND": "stock",
    "OPT": "option",
    "FOP": "option",
    "WAR": "option",
    "FUT": "future",
    "CASH": "fx",
    "CRYPTO": "spot",
}
DIVIDENDS = frozenset({"dividends", "payment in lieu of dividends", "withholding tax"})
DEPOSITS = ("deposit", "withdrawal")
CHARGES = frozenset({"other fees", "commission adjustments", "broker fees"})
SPLIT = re.compile(r"split ([0-9.]{1,12}) for ([0-9.]{1,12})", re.IGNORECASE)
STOCK_DIVIDEND = re.compile(r"stock dividend ([0-9.]{1,12}) for ([0-9.]{1,12})", re.IGNORECASE)
CHUNK = 65_536
NEW_YORK = "America/New_York"


class EntryFees:
    """The commissions that were paid for open positions, to add back to profits from which they are taken."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[float, float]] = {}

    def closed_by(self, symbol: str, quantity: float, fee: float) -> float:
        """The commissions of the part of a position that a fill closed: of its entry and of its exit.

        >>> fees = EntryFees()
        >>> fees.closed_by("AAPL", 100.0, 2.0), fees.closed_by("AAPL", -50.0, 1.0), fees.closed_by("AAPL", -150.0, 3.0)
        (0.0, 2.0, 2.0)
        """
        size, paid = self._open.get(symbol, (0.0, 0.0))
        if size * quantity >= 0:
            self._open[symbol] = size + quantity, paid + fee
            return 0.0
        closed = min(abs(size), abs(quantity))
        entry, exit_ = paid * closed / abs(size), fee * closed / abs(quantity)
        left = fee - exit_ if abs(quantity) > abs(size) else paid - entry
        self._open[symbol] = size + quantity, left
        return entry + exit_


@dataclass
class FlexFile:
    """What the rows of one file share."""

    zone: tzinfo
    has_executions: bool
    has_details: bool
    entry_fees: EntryFees = field(default_factory=EntryFees)
    symbols: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    traded: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    positions: dict[str, float] | None = None
    """By symbol, at the end of the period; None if the file does not tell them."""
    unconverted: set[str] = field(default_factory=set)
    """Currencies of trades that have no rate to the currency of the account."""
    splits: set[tuple[str, datetime]] = field(default_factory=set)

    def instrument(self, row: CsvRow, symbol: str) -> Iterator[InstrumentRow]:
        if symbol in self.symbols:
            return
        self.symbols.add(symbol)
        underlying = row.text("underlyingsymbol")
        yield InstrumentRow(
            symbol=symbol,
            kind=KINDS.get(row.text("assetcategory", "assetclass").upper()),
            multiplier=row.number_in("multiplier") or 1.0,
            currency=row.text("currency", "currencyprimary").upper() or None,
            underlying=underlying if underlying and underlying != symbol else None,
        )


def _is_xml(head: FileHead) -> bool:
    return "<FlexQueryResponse" in head.text[:4096]


def _is_csv(head: FileHead) -> bool:
    return find_header(head.first_lines, (CSV_TRADES,)) is not None


def _read_xml(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    has_executions, has_details = _holds(path, 'levelOfDetail="EXECUTION"', 'levelOfDetail="DETAIL"')
    file = FlexFile(zone=options.zone, has_executions=has_executions, has_details=has_details)
    yield from file_rows(_elements(path), lambda number, element: _understood(number, element, file))
    yield from _remarks(file)


def _read_csv(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    _, rows = csv_table(path, (CSV_TRADES,))
    (has_executions,) = _holds(path, "EXECUTION")
    file = FlexFile(zone=options.zone, has_executions=has_executions, has_details=False)
    yield from file_rows(rows, lambda number, row: _trade(number, "Trade", row, file))
    yield from _remarks(file)


def _holds(path: Path, *words: str) -> list[bool]:
    """Whether each word occurs in a text file, which is read in parts."""
    missing, tail = set(words), ""
    with text_stream(path) as stream:
        try:
            while missing and (part := stream.read(CHUNK)):
                text = tail + part
                missing = {word for word in missing if word not in text}
                tail = text[-64:]
        except (EOFError, OSError):
            pass  # A damaged file is named when its rows are read.
    return [word not in missing for word in words]


def _elements(path: Path) -> Iterator[tuple[int, tuple[str, CsvRow]]]:
    """The elements of an XML file with their attributes, as it is read; entities are refused."""
    parser = expat.ParserCreate()
    ready: list[tuple[int, tuple[str, CsvRow]]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        cells = {plain_name(key): value for key, value in attributes.items()}
        ready.append((parser.CurrentLineNumber, (name, CsvRow(cells))))

    def refuse(*_declaration: Any) -> None:
        raise Invalid(f"{path} declares XML entities, which a Flex query never does; it is not read", field="path")

    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    with text_stream(path) as stream:
        try:
            while part := stream.read(CHUNK):
                parser.Parse(part, False)
                yield from ready
                ready.clear()
            parser.Parse("", True)
        except (expat.ExpatError, EOFError, OSError):
            yield from ready
            raise UnreadableError("the file is cut off or not XML from here on", parser.CurrentLineNumber) from None


def _understood(number: int, element: tuple[str, CsvRow], file: FlexFile) -> Iterable[FileRow]:
    name, row = element
    reader = _READERS.get(name)
    return () if reader is None else reader(number, name, row, file)


def _account(_number: int, _name: str, row: CsvRow, file: FlexFile) -> Iterable[FileRow]:
    file.accounts.add(row.text("accountid"))
    return ()


def _position(number: int, _name: str, row: CsvRow, file: FlexFile) -> Iterable[FileRow]:
    if row.text("levelofdetail").upper() in ("", "SUMMARY"):
        file.positions = file.positions or {}
        symbol = symbol_of(row)
        file.positions[symbol] = file.positions.get(symbol, 0.0) + row.required("position")
    return [LeftOutRow(number=number, reason="a position at the end of the period, to which the fills lead")]


def _again(number: int, name: str, _row: CsvRow, _file: FlexFile) -> Iterable[FileRow]:
    return [LeftOutRow(number=number, reason=f"a row {name}, which repeats executions")]


def _trade(number: int, name: str, row: CsvRow, file: FlexFile) -> Iterable[FileRow]:
    detail = (row.text("levelofdetail") or ("ORDER" if name == "Order" else "EXECUTION")).upper()
    if detail != ("EXECUTION" if file.has_executions or detail != "ORDER" else "ORDER"):
        return [LeftOutRow(number=number, reason=f"a row {detail}, which repeats executions")]
    symbol, quantity, price = symbol_of(row), _quantity(row), row.required("tradeprice", "price")
    fill = execution(row, file, symbol=symbol, quantity=quantity, price=price)
    file.traded[symbol] += quantity
    return [*file.instrument(row, symbol), FillRow(number=number, fill=fill)]


def execution(row: CsvRow, file: FlexFile, *, symbol: str, quantity: float, price: float) -> ReportedFill:
    """The fill of a trade; the commission and the taxes of other currencies than its own are not added."""
    at = instant_of_flex(row.text("datetime", "tradedate"), file.zone)
    commission = row.number_in("ibcommission") or 0.0
    rate, currency = row.number_in("fxratetobase"), row.text("currency", "currencyprimary").upper()
    if rate is None:
        file.unconverted.add(currency)
    fee_currency = row.text("ibcommissioncurrency").upper() or currency
    taxes = row.number_in("taxes") or 0.0
    fee = 0.0 - commission - (taxes if fee_currency == currency else 0.0)
    fees = file.entry_fees.closed_by(symbol, quantity, fee)
    profit = row.number_in("fifopnlrealized")
    return ReportedFill(
        id=row.text("tradeid") or row.text("transactionid") or row.text("ibexecid"),
        at=at,
        sequence=0,
        kind=kind_of_code(row.text("notes", "notescodes", "code"), row.text("assetcategory", "assetclass")),
        symbol=symbol,
        quantity=quantity,
        price=price,
        fee=fee,
        fee_currency=fee_currency or None,
        rate=rate or None,
        order_id=row.text("iborderid") or None,
        realized_pnl=(profit + fees) * (rate or 1.0) if profit else None,
    )


def symbol_of(row: CsvRow) -> str:
    """The symbol without the blanks that pad the root of an option."""
    symbol = "".join(row.text("symbol").split())
    if not symbol:
        raise ValueError("symbol is missing")
    return symbol


def _quantity(row: CsvRow) -> float:
    """Bought is positive; the side tells it where the quantity has no sign. A cancellation has the sign of its own."""
    quantity, side = row.required("quantity"), row.text("buysell").upper()
    if quantity == 0:
        raise ValueError("quantity is 0")
    if side in ("BUY", "SELL"):
        return abs(quantity) if side == "BUY" else -abs(quantity)
    return quantity


def kind_of_code(codes: str, category: str) -> ReportedKind:
    """What the codes of a trade say: `Ep` expired, `A` assigned, `Ex` exercised. Shares that are delivered are traded.

    >>> kind_of_code("C;Ep", "OPT"), kind_of_code("A;C", "OPT"), kind_of_code("A;O", "STK")
    ('expiry', 'assignment', 'trade')
    """
    words = set(codes.replace(",", ";").replace(" ", "").split(";"))
    is_option = category.upper() in ("OPT", "FOP", "WAR") or "option" in category.casefold()
    if "Ep" in words:
        return "expiry"
    return "assignment" if is_option and words & {"A", "Ex", "AEx", "GEA"} else "trade"


def instant_of_flex(text: str, zone: tzinfo) -> datetime:
    """The instant in a date and time of a Flex query.

    >>> from datetime import UTC
    >>> instant_of_flex("20260126;115715", UTC).isoformat(), instant_of_flex("2026-01-26, 11:57:15", UTC).isoformat()
    ('2026-01-26T11:57:15+00:00', '2026-01-26T11:57:15+00:00')
    """
    date, _, time = text.replace(",", " ").replace(";", " ").strip().partition(" ")
    if "/" in date:
        raise ValueError("the date may be of two orders; set the date format of the query to yyyyMMdd")
    time = time.strip().partition(" ")[0]
    if time.isdigit() and len(time) == 6:
        time = f"{time[:2]}:{time[2:4]}:{time[4:]}"
    if date.isdigit() and len(date) == 8:
        date = f"{date[:4]}-{date[4:6]}-{date[6:]}"
    return instant_in(f"{date}T{time}" if time else date, zone)


def _cash(number: int, _name: str, row: CsvRow, file: FlexFile) -> Iterable[FileRow]:
    kind, symbol = row.text("type").casefold(), "".join(row.text("symbol").split())
    if row.text("levelofdetail").upper() == "SUMMARY" and file.has_details:
        return [LeftOutRow(number=number, reason="a sum of cash transactions that have rows of their own")]
    amount = row.required("amount") * (row.number_in("fxratetobase") or 1.0)
    if kind in DIVIDENDS and symbol:
        fill_kind: ReportedKind = "dividend"
    elif kind.startswith(DEPOSITS):
        fill_kind, symbol = "transfer", ""
    elif kind in CHARGES and symbol:
        fill_kind = "fee"
    else:
        return [LeftOutRow(number=number, reason=f"{kind or 'a cash transaction'}, which belongs to no position")]
    at = instant_of_flex(row.text("datetime") or row.text("reportdate", "settledate"), file.zone)
    name, is_fee = row.text("transactionid"), fill_kind == "fee"
    fill = ReportedFill(
        id=f"cash:{name}" if name else "",
        at=at,
        sequence=0,
        kind=fill_kind,
        symbol=symbol,
        fee=-amount if is_fee else 0.0,
        amount=0.0 if is_fee else amount,
    )
    return [FillRow(number=number, fill=fill)]


def _corporate_action(number: int, _name: str, row: CsvRow, file: FlexFile) -> Iterable[FileRow]:
    kind, symbol = row.text("type").upper(), symbol_of(row)
    ratio = split_ratio(f"{row.text('actiondescription')} {row.text('description')}")
    if kind not in ("FS", "RS", "SD", "SO", "") or (ratio is None and kind not in ("FS", "RS", "SD")):
        return [LeftOutRow(number=number, reason=f"a corporate action of type {kind or 'unknown'}")]
    if ratio is None:
        raise ValueError("the ratio of the split is missing: add the action description to the query")
    at = instant_of_flex(row.text("datetime") or row.text("reportdate"), file.zone)
    if symbol.endswith(".OLD") or (symbol, at) in file.splits:
        return [LeftOutRow(number=number, reason="the other side of a split")]
    file.splits.add((symbol, at))
    file.traded[symbol] += row.number_in("quantity") or 0.0
    fill = ReportedFill(
        id=f"split:{symbol}:{at.isoformat()}",
        at=at,
        sequence=0,
        kind="split",
        symbol=symbol,
        ratio=ratio,
    )
    return [FillRow(number=number, fill=fill)]


def split_ratio(text: str) -> float | None:
    """How many units one became; None if the text tells no split.

    >>> split_ratio("AAPL(US0378331005) SPLIT 4 FOR 1 (AAPL)"), split_ratio("XYZ SPLIT 1 FOR 10"), split_ratio("MERGED")
    (4.0, 0.1, None)
    >>> split_ratio("ABC(US0) STOCK DIVIDEND 1 FOR 20")
    1.05
    """
    for pattern, units_left in ((SPLIT, 0.0), (STOCK_DIVIDEND, 1.0)):
        match = pattern.search(text)
        if match:
            try:
                return units_left + float(match[1]) / float(match[2])
            except (ValueError, ZeroDivisionError):
                return None
    return None


def _remarks(file: FlexFile) -> Iterator[RemarkRow]:
    if len(file.accounts) > 1:
        names = ", ".join(sorted(file.accounts))
        yield RemarkRow(text=f"The file is of several accounts ({names}), taken as one: export one account a file")
    if len(file.unconverted) > 1:
        names = ", ".join(sorted(file.unconverted))
        yield RemarkRow(text=f"Trades in {names} have no rate: add fxRateToBase to the query")
    if file.positions is None:
        return
    symbols = sorted({*file.positions, *(symbol for symbol, size in file.traded.items() if abs(size) > 1e-9)})
    differing = [
        f"{symbol} {file.positions.get(symbol, 0.0):g} instead of {file.traded.get(symbol, 0.0):g}"
        for symbol in symbols
        if abs(file.positions.get(symbol, 0.0) - file.traded.get(symbol, 0.0)) > 1e-6
    ]
    if differing:
        yield RemarkRow(
            text="The positions at the end of the period are not those that its fills lead to: "
            f"{', '.join(differing)}; export the time since they were entered too"
        )


_Reader = Callable[[int, str, CsvRow, FlexFile], Iterable[FileRow]]
_READERS: Mapping[str, _Reader] = {
    "FlexStatement": _account,
    "Trade": _trade,
    "Order": _trade,
    "Lot": _again,
    "SymbolSummary": _again,
    "AssetSummary": _again,
    "WashSale": _again,
    "OptionEAE": _again,
    "CashTransaction": _cash,
    "CorporateAction": _corporate_action,
    "OpenPosition": _position,
}

FORMATS = (
    FileFormat(
        name="ibkr-flex",
        title="Interactive Brokers Flex query (XML)",
        rows="fills",
        recognises=_is_xml,
        read=_read_xml,
        timezone=NEW_YORK,
    ),
    FileFormat(
        name="ibkr-flex-csv",
        title="Interactive Brokers Flex query of trades (CSV)",
        rows="fills",
        recognises=_is_csv,
        read=_read_csv,
        timezone=NEW_YORK,
    ),
)
