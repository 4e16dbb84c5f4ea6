"""Account history of Tradier, as its brokerage API answers it in JSON.

    {"history": {"event": [{"amount", "date", "type": "trade", "trade": {"commission", "price", "quantity", "symbol",
    "trade_type"}}, {"type": "option", "option": {"option_type": "OPTEXP", "quantity"}}, {"type": "dividend", …}, …]}}

The shape is documented at docs.tradier.com/docs/history; one event alone is an object instead of a list. Sold is
negative. There are days but no times, and no ids. `amount` is the money that moved: what is in it beyond price and
quantity are fees, which `commission` often leaves out. An option contract is 100 shares.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path

from backsight.core.orders import ReportedFill, ReportedKind
from backsight.importers.cells import file_rows
from backsight.importers.export_tables import instant_in
from backsight.importers.formats import (
    FileFormat,
    FileHead,
    FileRow,
    FillRow,
    InstrumentRow,
    LeftOutRow,
    ReadOptions,
)
from backsight.importers.json_rows import JsonRow, json_rows
from backsight.importers.market_symbols import stock_or_option

TRANSFERS = frozenset({"ach", "wire", "check", "transfer", "journal"})
CENT = 0.01
MOST_FEES = 0.05
"""Money beyond this share of a trade's worth is not its fee."""


@dataclass
class _Events:
    zone: tzinfo
    symbols: set[str] = field(default_factory=set)

    def once(self, instrument: InstrumentRow) -> Iterator[InstrumentRow]:
        if instrument.symbol not in self.symbols:
            self.symbols.add(instrument.symbol)
            yield instrument


def _is_tradier(head: FileHead) -> bool:
    start = "".join(head.text[:256].split())
    return start.startswith(('{"history":{"event":', '{"history":"null"'))


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    history = _Events(zone=options.zone)
    yield from file_rows(json_rows(path, "history", "event"), lambda number, row: _event(number, row, history))


def _event(number: int, row: JsonRow, history: _Events) -> Iterable[FileRow]:
    kind = row.text("type").casefold()
    detail = row.content.get(kind) or row.content.get("adjustment")
    inner = JsonRow(detail if isinstance(detail, dict) else {})
    symbol = (inner.text("symbol") or row.text("symbol")).upper()
    at = instant_in(row.text("date"), history.zone)
    if kind == "trade":
        return _trade(number, row, inner, symbol, at, history)
    if kind == "option":
        return _option(number, inner, symbol, at, history)
    amount = row.required("amount")
    fill_kind: ReportedKind
    if kind in TRANSFERS:
        fill_kind, symbol = "transfer", ""
    elif kind == "dividend" and symbol:
        fill_kind = "dividend"
    else:
        return [LeftOutRow(number=number, reason=f"a {kind or 'payment'} that names no position")]
    fill = ReportedFill(id="", at=at, sequence=0, kind=fill_kind, symbol=symbol, amount=amount)
    return [FillRow(number=number, fill=fill)]


def _trade(number: int, row: JsonRow, inner: JsonRow, symbol: str, at: datetime, history: _Events) -> Iterable[FileRow]:
    quantity, price = inner.required("quantity"), inner.required("price")
    if not symbol or quantity == 0:
        raise ValueError("symbol or quantity is missing")
    instrument = stock_or_option(symbol)
    worth = quantity * price * (instrument.multiplier or 1.0)
    fee, amount = inner.number_in("commission") or 0.0, row.number_in("amount")
    beyond = 0.0 if amount is None else -(amount + worth)
    if fee == 0 and CENT <= abs(beyond) <= max(1.0, MOST_FEES * abs(worth)):
        fee = round(beyond, 6)
    fill = ReportedFill(id="", at=at, sequence=0, kind="trade", symbol=symbol, quantity=quantity, price=price, fee=fee)
    return [*history.once(instrument), FillRow(number=number, fill=fill)]


def _option(number: int, inner: JsonRow, symbol: str, at: datetime, history: _Events) -> Iterable[FileRow]:
    """An option that expired, was assigned or exercised ends at no price; shares are traded in a row of their own."""
    quantity = inner.required("quantity")
    if not symbol or quantity == 0:
        raise ValueError("the symbol of an option that ended is missing")
    kind: ReportedKind = "expiry" if "EXP" in inner.text("option_type").upper() else "assignment"
    fill = ReportedFill(id="", at=at, sequence=0, kind=kind, symbol=symbol, quantity=quantity, price=0.0)
    return [*history.once(stock_or_option(symbol)), FillRow(number=number, fill=fill)]


FORMATS = (
    FileFormat(
        name="tradier",
        title="Tradier account history (JSON)",
        rows="fills",
        recognises=_is_tradier,
        read=_read,
    ),
)
