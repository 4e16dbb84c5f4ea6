"""Trade history that Binance exports as CSV: spot, margin, USDⓈ-M and COIN-M futures, and the futures' transactions.

    spot, margin       Date(UTC), Pair, Side, Price, Executed, Amount, Fee: numbers with their unit (0.5BTC)
    spot before 2021   Date(UTC), Market, Type, Price, Amount, Total, Fee, Fee Coin
    futures            Date(UTC) or Time(UTC), Symbol, Side, Price, Quantity, Amount, Fee, [Fee Coin],
                       [Realized Profit], [Quote Asset]
    transactions       Date(UTC), Type, Amount, Asset, Symbol, [Transaction ID]: of these the funding and the
                       transfers; profits and commissions are in the trade history too

The headers are those that rotki, everytrade and other public importers of these exports read. A fee above 0 was paid.
`Realized Profit` is before fees. The exports have no id of a fill, and times in seconds. In COIN-M a contract is worth
100 USD of Bitcoin and 10 USD of any other coin; profits, fees and funding are in the coin.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from backsight.core.fills import ClosingPart
from backsight.core.instruments import InstrumentKind
from backsight.core.orders import ReportedFill
from backsight.importers.cells import file_rows
from backsight.importers.export_tables import (
    CsvHeader,
    CsvRow,
    ExportTable,
    amount_with_unit,
    csv_table,
    find_header,
    number_in_text,
)
from backsight.importers.formats import (
    FileFormat,
    FileHead,
    FileRow,
    FillRow,
    InstrumentRow,
    LeftOutRow,
    ReadOptions,
)
from backsight.importers.market_symbols import DATED, DOLLARS, base_and_quote, inverse_instrument, pair_instrument

SPOT = frozenset({"pair", "side", "price", "executed", "amount", "fee"})
OLD_SPOT = frozenset({"dateutc", "market", "type", "price", "amount", "total", "fee", "feecoin"})
FUTURES = frozenset({"symbol", "side", "price", "quantity", "amount", "fee"})
TRADES = (SPOT, OLD_SPOT, FUTURES)
TRANSACTIONS = frozenset({"type", "amount", "asset", "symbol"})
COIN_MARGINED = re.compile(r"([A-Z0-9]{1,15})USD_(PERP|[0-9]{6})")
SIDES = {"BUY": 1.0, "SELL": -1.0}
TOLD_BY_TRADES = ("REALIZED_PNL", "COMMISSION")


def _has_time(header: CsvHeader | None) -> bool:
    """Whether the time says that it is of UTC or an offset from it, as Binance writes it."""
    return header is not None and _time_title(header) is not None


def _time_title(header: CsvHeader) -> str | None:
    return header.title_starting("dateutc", "timeutc")


def _is_trades(head: FileHead) -> bool:
    header = find_header(head.first_lines, TRADES)
    return _has_time(header) and header is not None and "filledprice" not in header.names


def _is_transactions(head: FileHead) -> bool:
    header = find_header(head.first_lines, (TRANSACTIONS,))
    return _has_time(header) and header is not None and not any(header.has(layout) for layout in TRADES)


def _table(header: CsvHeader, options: ReadOptions) -> ExportTable:
    return ExportTable(_time_title(header) or header.title_starting("date", "time"), options.zone)


def _read_trades(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    header, rows = csv_table(path, TRADES)
    table = _table(header, options)
    yield from file_rows(rows, lambda number, row: _trade(number, row, table))


def _trade(number: int, row: CsvRow, table: ExportTable) -> Iterable[FileRow]:
    symbol = row.text("pair", "symbol", "market").upper()
    side = SIDES.get(row.text("side", "type").upper())
    if not symbol or side is None:
        raise ValueError("no symbol, or a side that is neither BUY nor SELL")
    at, price = table.instant(row), row.required("price")
    size, fee, fee_coin = _amounts(row, symbol)
    if size <= 0:
        raise ValueError("the quantity is not above 0")
    instrument = _instrument(symbol, row)
    yield from table.once(instrument)
    settled = row.text("quoteasset") or instrument.currency
    fill = ReportedFill(
        id="",
        at=at,
        sequence=0,
        kind="trade",
        symbol=symbol,
        quantity=side * size,
        price=price,
        fee=fee,
        fee_currency=fee_coin or settled,
        realized_pnl=row.number_in("realizedprofit") or None,
    )
    yield FillRow(number=number, fill=fill, closes=_closing_part(fill, instrument))


def _closing_part(fill: ReportedFill, instrument: InstrumentRow) -> ClosingPart | None:
    """A sale on a spot market closes; of a fill with a realised profit, as much as the profit shows."""
    if instrument.kind == "spot":
        return "all" if fill.quantity < 0 else None
    return "measured" if fill.realized_pnl else None


def _amounts(row: CsvRow, symbol: str) -> tuple[float, float, str]:
    """The size, the fee and the coin of the fee, with or without units right after the numbers."""
    assets = base_and_quote(symbol) or ("", "")
    column = next(name for name in ("executed", "quantity", "amount") if name in row.cells)
    executed = row.text(column)
    if not executed:
        raise ValueError(f"{column} is missing")
    comma = row.decimal_comma
    size, _ = amount_with_unit(executed, _units_of(symbol, executed, assets), decimal_comma=comma, column=column)
    cell = row.text("fee")
    if not cell:
        return size, 0.0, ""
    units = {*assets, *_units_of(symbol, cell, assets)}
    fee, coin = amount_with_unit(cell, units, decimal_comma=comma, column="fee")
    return size, fee, (coin or row.text("feecoin")).upper()


def _units_of(symbol: str, cell: str, assets: tuple[str, str]) -> set[str]:
    """The units that may follow a number: the base asset is any beginning of the symbol that the cell ends with."""
    if not cell[-1:].isalpha():
        return set()
    units = {each for each in assets if each and cell.endswith(each) and cell[-len(each) - 1 : -len(each)].isdigit()}
    if units and not any(each[0].isdigit() for each in units):
        return units
    fitting = {symbol[:length] for length in range(1, len(symbol)) if cell.endswith(symbol[:length])}
    return {each for each in (fitting or set(assets)) if _is_number(cell.removesuffix(each))}


def _is_number(text: str) -> bool:
    try:
        number_in_text(text, column="amount")
    except ValueError:
        return False
    return True


def _instrument(symbol: str, row: CsvRow) -> InstrumentRow:
    coin_margined = COIN_MARGINED.fullmatch(symbol)
    if coin_margined:
        base = coin_margined[1]
        return inverse_instrument(symbol, base, face_value=100.0 if base == "BTC" else 10.0)
    if "executed" in row.cells or "market" in row.cells:
        return pair_instrument(symbol, symbol, "spot")
    kind: InstrumentKind | None = "perpetual" if "realizedprofit" in row.cells else None
    pair = DATED.sub("", symbol)
    return pair_instrument(symbol, pair, "future" if pair != symbol else kind)


def _read_transactions(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    header, rows = csv_table(path, (TRANSACTIONS,))
    table = _table(header, options)
    yield from file_rows(rows, lambda number, row: [_transaction(number, row, table)])


def _transaction(number: int, row: CsvRow, table: ExportTable) -> FileRow:
    kind, symbol, asset = row.text("type").upper(), row.text("symbol").upper(), row.text("asset").upper()
    at, amount = table.instant(row), row.required("amount")
    if kind in TOLD_BY_TRADES:
        return LeftOutRow(number=number, reason="a profit or commission, which the trade history tells too")
    name = row.text("transactionid")
    fill_id = f"{kind.casefold()}:{name}" if name else ""
    if kind == "FUNDING_FEE" and symbol and asset in DOLLARS:
        fill = ReportedFill(id=fill_id, at=at, sequence=0, kind="funding", symbol=symbol, amount=amount)
    elif kind == "TRANSFER" and asset in DOLLARS:
        fill = ReportedFill(id=fill_id, at=at, sequence=0, kind="transfer", amount=amount)
    else:
        in_coin = "" if asset in DOLLARS else ", in a coin"
        return LeftOutRow(number=number, reason=f"a transaction of type {kind or 'unknown'}{in_coin}")
    return FillRow(number=number, fill=fill)


FORMATS = (
    FileFormat(
        name="binance",
        title="Binance trade history (CSV)",
        rows="fills",
        recognises=_is_trades,
        read=_read_trades,
        currency="USDT",
    ),
    FileFormat(
        name="binance-transactions",
        title="Binance futures transaction history: funding (CSV)",
        rows="fills",
        recognises=_is_transactions,
        read=_read_transactions,
        currency="USDT",
    ),
)
