"""Activity statements of Interactive Brokers as CSV: sections, each with headers and rows of its own.

    Trades,Header,DataDiscriminator,Asset Category,Currency,Symbol,Date/Time,Quantity,T. Price,C. Price,Proceeds,
        Comm/Fee,Basis,Realized P/L,MTM P/L,Code
    Trades,Data,Order,Stocks,USD,AAPL,"2026-05-01, 09:35:00",100,182.10,…
    Trades,SubTotal,,Stocks,USD,AAPL,,100,…
    Corporate Actions, Dividends, Withholding Tax, Deposits & Withdrawals, Financial Instrument Information, Base
        Currency Exchange Rate, Account Information

The sections are those of statements that public importers read. A section may have several headers: that of forex names
other columns. Orders count, unless the statement lists the executions of each order (`Trade` or `Execution`) too.
`Realized P/L` is after the commissions of entry and exit, which are added back. Multipliers and rates are in sections
after the trades, so the file is read twice. Rates are those of the end of the period. Times are of New York unless the
account is set to another time zone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path

from backsight.core.errors import Invalid
from backsight.core.instruments import InstrumentKind
from backsight.core.orders import ReportedFill, ReportedKind
from backsight.importers.cells import file_rows, plain_name
from backsight.importers.export_tables import CsvRow, cells_of, number_in_text, text_lines
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
from backsight.importers.ibkr import NEW_YORK, EntryFees, instant_of_flex, kind_of_code, split_ratio, symbol_of

TRADES, ACTIONS, INSTRUMENTS = "Trades", "Corporate Actions", "Financial Instrument Information"
DIVIDENDS = ("Dividends", "Withholding Tax", "Payment In Lieu Of Dividends")
DEPOSITS = "Deposits & Withdrawals"
RATES, ACCOUNT = "Base Currency Exchange Rate", "Account Information"
SECTIONS = frozenset({TRADES, ACTIONS, DEPOSITS, *DIVIDENDS})
EXECUTIONS = frozenset({"trade", "execution"})
KINDS: Mapping[str, InstrumentKind] = {
    "stocks": "stock",
    "cfds": "stock",
    "equity and index options": "option",
    "options on futures": "option",
    "warrants": "option",
    "futures": "future",
    "forex": "fx",
    "cryptocurrency": "spot",
}
SUBTOTALS = frozenset({"SubTotal", "Total", "Notes"})
CONTRACTS = ("futures", "options on futures")
OPTION_MULTIPLIER = 100.0
SECURITY = re.compile(r"([A-Z0-9. ]{1,24})\(")
"""A security at the start of a description: `AAPL(US0378331005) Cash Dividend USD 0.25 per Share`."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of a section, below the section's last header."""

    section: str
    kind: str
    row: CsvRow


@dataclass
class _Statement:
    """What sections after the trades tell, and the symbols met."""

    zone: tzinfo
    multipliers: dict[str, float] = field(default_factory=dict)
    underlyings: dict[str, str] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    base_currency: str = ""
    has_executions: bool = False
    entry_fees: EntryFees = field(default_factory=EntryFees)
    symbols: set[str] = field(default_factory=set)
    unconverted: set[str] = field(default_factory=set)
    unknown_sizes: set[str] = field(default_factory=set)
    """Futures without a multiplier in the statement."""
    splits: set[tuple[str, datetime]] = field(default_factory=set)

    def rate(self, currency: str) -> float | None:
        """The rate of a currency into that of the account; None if they are the same, or if none is told."""
        if currency in ("", self.base_currency):
            return None
        if currency not in self.rates:
            self.unconverted.add(currency)
        return self.rates.get(currency)


def _is_statement(head: FileHead) -> bool:
    lines = [line.replace("\ufeff", "") for line in head.first_lines]
    return any(line.startswith(("Statement,Header,", "Trades,Header,DataDiscriminator,")) for line in lines)


def _lines(path: Path) -> Iterator[tuple[int, _Line]]:
    """The rows of every section, with their columns by name."""
    headers: dict[str, list[str]] = {}
    for number, text in text_lines(path):
        section, kind, *cells = [*cells_of(text, ","), "", ""]
        section, kind, cells = section.strip(), kind.strip(), cells[:-2]
        if kind == "Header":
            headers[section] = [plain_name(cell) for cell in cells]
        else:
            header = headers.get(section, [])
            problem = "fewer cells than the header" if len(cells) < len(header) and kind == "Data" else None
            problem = problem if header else "a line of no section"
            yield number, _Line(section, kind, CsvRow(dict(zip(header, cells, strict=False)), problem=problem))


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    statement = _Statement(zone=options.zone)
    sections = {_learn(line, statement) for _, line in _lines(path)}
    if not sections & SECTIONS:
        raise Invalid(f"{path} has no trades or payments; give an activity statement as CSV", field="path")
    yield from file_rows(_lines(path), lambda number, line: _understood(number, line, statement))
    if statement.unknown_sizes:
        names = ", ".join(sorted(statement.unknown_sizes))
        yield RemarkRow(
            text=f"The statement does not tell what a contract of {names} is worth (Financial Instrument Information): "
            "it counts as 1 unit; save an instrument with the right multiplier"
        )
    if statement.unconverted:
        names = ", ".join(sorted(statement.unconverted))
        yield RemarkRow(text=f"The statement tells no rate of {names}: money in it is not converted")
    elif statement.rates and statement.symbols:
        yield RemarkRow(text="Other currencies are converted at the rates of the end of the statement's period")


def _learn(line: _Line, statement: _Statement) -> str:
    """Take note of a multiplier, a rate, the currency of the account, or of executions; return the section."""
    row = line.row
    if line.kind != "Data" or row.problem is not None:
        return line.section
    if line.section == TRADES:
        statement.has_executions |= row.text("datadiscriminator").casefold() in EXECUTIONS
    elif line.section == ACCOUNT and row.text("fieldname") == "Base Currency":
        statement.base_currency = row.text("fieldvalue").upper()
    elif line.section in (INSTRUMENTS, RATES):
        name = "multiplier" if line.section == INSTRUMENTS else "rate"
        try:
            number = number_in_text(row.text(name), column=name)
        except ValueError:
            return line.section
        if line.section == RATES:
            statement.rates[row.text("currency").upper()] = number
            return line.section
        for symbol in filter(None, (each.strip() for each in row.text("symbol").split(","))):
            statement.multipliers[symbol] = number
            if row.text("underlying"):
                statement.underlyings[symbol] = row.text("underlying")
    return line.section


def _understood(number: int, line: _Line, statement: _Statement) -> Iterable[FileRow]:
    if line.section not in SECTIONS:
        if line.row.problem is not None:
            raise ValueError(line.row.problem)
        return ()
    if line.kind in SUBTOTALS:
        return [LeftOutRow(number=number, reason="a subtotal")]
    if line.kind != "Data":
        raise ValueError("the second cell is neither Header, Data nor a subtotal")
    if line.section == TRADES:
        return _trade(number, line.row, statement)
    if any(line.row.text(column).casefold().startswith("total") for column in ("currency", "assetcategory")):
        return [LeftOutRow(number=number, reason="a subtotal")]
    if line.section == ACTIONS:
        return [_corporate_action(number, line.row, statement)]
    return [_cash(number, line, statement)]


def _trade(number: int, row: CsvRow, statement: _Statement) -> Iterable[FileRow]:
    detail = row.text("datadiscriminator").casefold()
    if detail not in EXECUTIONS and (statement.has_executions or detail != "order"):
        return [LeftOutRow(number=number, reason=f"a row {detail or 'without a kind'}, which repeats executions")]
    symbol, category = row.text("symbol"), row.text("assetcategory")
    quantity, price = row.required("quantity"), row.required("tprice")
    if not symbol or quantity == 0:
        raise ValueError("symbol or quantity is missing")
    currency = row.text("currency").upper()
    commission = row.number_in("commfee", "comminusd") or 0.0
    profit, rate = row.number_in("realizedpl"), statement.rate(currency)
    fees = statement.entry_fees.closed_by(symbol, quantity, 0.0 - commission)
    fill = ReportedFill(
        id="",
        at=instant_of_flex(row.text("datetime"), statement.zone),
        sequence=0,
        kind=kind_of_code(row.text("code"), category),
        symbol=symbol,
        quantity=quantity,
        price=price,
        fee=0.0 - commission,
        fee_currency="USD" if "comminusd" in row.cells else currency or None,
        rate=rate,
        realized_pnl=(profit + fees) * (rate or 1.0) if profit else None,
    )
    return [*_instrument(symbol, category, currency, statement), FillRow(number=number, fill=fill)]


def _instrument(symbol: str, category: str, currency: str, statement: _Statement) -> Iterator[InstrumentRow]:
    if symbol in statement.symbols:
        return
    statement.symbols.add(symbol)
    kind = KINDS.get(category.casefold().partition(" - ")[0])
    if symbol not in statement.multipliers and category.casefold().startswith(CONTRACTS):
        statement.unknown_sizes.add(symbol)
    usual = OPTION_MULTIPLIER if category.casefold().startswith("equity and index options") else 1.0
    underlying = statement.underlyings.get(symbol)
    yield InstrumentRow(
        symbol=symbol,
        kind=kind,
        multiplier=statement.multipliers.get(symbol, usual),
        currency=currency or None,
        underlying=underlying if underlying != symbol else None,
    )


def _cash(number: int, line: _Line, statement: _Statement) -> FileRow:
    row = line.row
    amount = row.required("amount") * (statement.rate(row.text("currency").upper()) or 1.0)
    at = instant_of_flex(row.text("date", "settledate"), statement.zone)
    kind: ReportedKind = "transfer" if line.section == DEPOSITS else "dividend"
    symbol = "" if kind == "transfer" else _security(row.text("description"))
    if kind == "dividend" and not symbol:
        return LeftOutRow(number=number, reason="a payment that names no security")
    return FillRow(number=number, fill=ReportedFill(id="", at=at, sequence=0, kind=kind, symbol=symbol, amount=amount))


def _corporate_action(number: int, row: CsvRow, statement: _Statement) -> FileRow:
    description = row.text("description")
    ratio, symbol = split_ratio(description), _security(description)
    if ratio is None:
        return LeftOutRow(number=number, reason="a corporate action that is no split")
    at = instant_of_flex(row.text("datetime") or row.text("reportdate"), statement.zone)
    symbol = symbol_of(CsvRow({"symbol": symbol}))
    if (symbol, at) in statement.splits:
        return LeftOutRow(number=number, reason="the other side of a split")
    statement.splits.add((symbol, at))
    fill = ReportedFill(
        id=f"split:{symbol}:{at.isoformat()}", at=at, sequence=0, kind="split", symbol=symbol, ratio=ratio
    )
    return FillRow(number=number, fill=fill)


def _security(description: str) -> str:
    match = SECURITY.match(description)
    return match[1].strip() if match else ""


FORMATS = (
    FileFormat(
        name="ibkr-statement",
        title="Interactive Brokers activity statement (CSV)",
        rows="fills",
        recognises=_is_statement,
        read=_read,
        timezone=NEW_YORK,
    ),
)
