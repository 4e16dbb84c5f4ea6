"""Transaction log of a unified account that Bybit exports as CSV: trades, funding and transfers in one table.

    [Uid], Currency, Contract, Type, Direction, Quantity, Position, Filled Price, Funding, Fee Paid, Cash Flow, Change,
    Wallet Balance, Action, [OrderId, TradeId], Time(UTC)

The headers are those that public importers of this export read (everytrade; tests of tax and portfolio programs); a
line with the account's number may come first. Change is Cash Flow + Funding + Fee Paid, so a fee below 0 was paid. A
derivative has one row, whose `Action` is OPEN or CLOSE; the cash flow of a close is its profit before fees, but that of
an option its premium. A spot trade has a row for each asset, without an action: that of the base asset is the fill, and
that of the quote carries the fee of a sale. SETTLEMENT is funding.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from backsight.core.fills import ClosingPart
from backsight.core.instruments import is_base_asset
from backsight.core.orders import ReportedFill, ReportedKind
from backsight.importers.bybit import bybit_instrument
from backsight.importers.cells import file_rows
from backsight.importers.export_tables import CsvRow, ExportTable, csv_table, find_header
from backsight.importers.formats import FileFormat, FileHead, FileRow, FillRow, LeftOutRow, ReadOptions
from backsight.importers.market_symbols import DOLLARS, pair_instrument

COLUMNS = frozenset(
    {"currency", "contract", "type", "direction", "quantity", "filledprice", "feepaid", "cashflow", "change", "action"}
)
SIDES = {"buy": 1.0, "sell": -1.0}
EXECUTED = frozenset({"trade", "liquidation", "adl", "delivery"})
TRANSFERS = frozenset({"transfer_in", "transfer_out"})


def _is_log(head: FileHead) -> bool:
    return find_header(head.first_lines, (COLUMNS,)) is not None


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    header, rows = csv_table(path, (COLUMNS,))
    table = ExportTable(header.title_starting("time"), options.zone)
    yield from file_rows(rows, lambda number, row: _understood(number, row, table))


def _understood(number: int, row: CsvRow, table: ExportTable) -> Iterable[FileRow]:
    kind, symbol, coin = row.text("type").casefold(), row.text("contract").upper(), row.text("currency").upper()
    if kind in TRANSFERS and coin in DOLLARS:
        amount, fill_id = row.required("change"), _id(row, prefix="transfer:")
        fill = ReportedFill(id=fill_id, at=table.instant(row), sequence=0, kind="transfer", amount=amount)
        return [FillRow(number=number, fill=fill)]
    if kind == "settlement" and symbol:
        return [_funding(number, row, table, symbol, coin)]
    if kind in EXECUTED and symbol:
        return _execution(number, row, table, symbol, coin)
    return [LeftOutRow(number=number, reason=f"a transaction of type {kind or 'unknown'}")]


def _funding(number: int, row: CsvRow, table: ExportTable, symbol: str, coin: str) -> FileRow:
    amount = row.required("funding")
    if coin not in DOLLARS:
        return LeftOutRow(number=number, reason="funding in a coin, whose worth is not told")
    fill_id, at = _id(row, prefix="funding:"), table.instant(row)
    fill = ReportedFill(id=fill_id, at=at, sequence=0, kind="funding", symbol=symbol, amount=amount)
    return FillRow(number=number, fill=fill)


def _execution(number: int, row: CsvRow, table: ExportTable, symbol: str, coin: str) -> Iterator[FileRow]:
    side = SIDES.get(row.text("direction").casefold())
    if side is None:
        raise ValueError("direction is neither buy nor sell")
    if row.text("action"):
        yield from table.once(bybit_instrument(symbol))
        yield _derivative(number, row, table, symbol, coin, side)
        return
    yield from table.once(pair_instrument(symbol, symbol, "spot"))
    if is_base_asset(coin, symbol):
        fill = _fill(row, table, symbol, coin, side)
        yield FillRow(number=number, fill=fill, closes="all" if side < 0 else None)
    elif row.number_in("feepaid"):
        fill_id, fee = _id(row, prefix="fee:"), 0.0 - row.required("feepaid")
        at = table.instant(row)
        fill = ReportedFill(id=fill_id, at=at, sequence=0, kind="fee", symbol=symbol, fee=fee, fee_currency=coin)
        yield FillRow(number=number, fill=fill)
    else:
        yield LeftOutRow(number=number, reason="the side of the quote of a spot trade, whose fill is in another row")


def _derivative(number: int, row: CsvRow, table: ExportTable, symbol: str, coin: str, side: float) -> FillRow:
    kind = row.text("type").casefold()
    pnl = row.number_in("cashflow") if row.text("action").casefold() == "close" else None
    is_option = symbol.count("-") > 2
    closes: ClosingPart | None = None
    if kind != "trade" or (pnl is not None and (is_option or not pnl)):
        closes = "all"
    elif pnl:
        closes = "measured"
    fill = _fill(row, table, symbol, coin, side, pnl=None if is_option else pnl or None)
    return FillRow(number=number, fill=fill, closes=closes)


def _fill(
    row: CsvRow, table: ExportTable, symbol: str, coin: str, side: float, *, pnl: float | None = None
) -> ReportedFill:
    kind, size = row.text("type").casefold(), abs(row.required("quantity"))
    if size == 0:
        raise ValueError("quantity is 0")
    fill_kind: ReportedKind = "expiry" if kind == "delivery" else "trade"
    return ReportedFill(
        id=_id(row),
        at=table.instant(row),
        sequence=0,
        kind=fill_kind,
        symbol=symbol,
        quantity=side * size,
        price=row.required("filledprice"),
        fee=0.0 - (row.number_in("feepaid") or 0.0),
        fee_currency=coin or None,
        order_id=row.text("orderid") or None,
        realized_pnl=pnl,
        reason="liquidated" if kind in ("liquidation", "adl") else None,
    )


def _id(row: CsvRow, *, prefix: str = "") -> str:
    name = row.text("tradeid")
    return f"{prefix}{name}" if name else ""


FORMATS = (
    FileFormat(
        name="bybit-log",
        title="Bybit transaction log of a unified account (CSV)",
        rows="fills",
        recognises=_is_log,
        read=_read,
        currency="USDT",
    ),
)
