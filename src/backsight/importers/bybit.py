"""Trade history that Bybit exports as CSV: derivatives and spot of a unified account.

    derivatives   Market, Filled Type, Filled Quantity, Filled Price, Order Price, Fee Rate, Trading Fee, feeCoin,
                  ExecFeeV2, Direction, Order Type, Trasaction ID (so written), Order No., Transaction Time(UTC+0)
    spot          [Uid], Spot Pairs, Order Type, Direction, [feeCoin, ExecFeeV2], Filled Value, Filled Price, Filled
                  Quantity, Fees, Transaction ID, Order No., Timestamp (UTC)

The headers are those that public importers of these exports read (everytrade; tests of cost calculators and portfolio
programs); a line with the account's number may come first. `Long` is a purchase and `Short` a sale. A fee above 0 was
paid, for funding too. Times have minutes only: `14:35 2024-11-16`. A spot fee without a coin is in what was received:
the base asset of a purchase, the quote of a sale. `Close Long`, liquidations, what a column `Closed Size` says and
sales on a spot market close a position. `BTCUSD` is an inverse contract of 1 USD, settled in Bitcoin.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from backsight.core.fills import ClosingPart
from backsight.core.instruments import InstrumentKind
from backsight.core.orders import ReportedFill
from backsight.importers.cells import file_rows
from backsight.importers.export_tables import CsvRow, ExportTable, csv_table, find_header
from backsight.importers.formats import (
    FileFormat,
    FileHead,
    FileRow,
    FillRow,
    InstrumentRow,
    LeftOutRow,
    ReadOptions,
)
from backsight.importers.market_symbols import DOLLARS, base_and_quote, inverse_instrument, pair_instrument

DERIVATIVES = frozenset({"market", "filledtype", "filledquantity", "filledprice", "direction", "tradingfee"})
SPOT = frozenset({"spotpairs", "direction", "filledprice", "filledquantity", "fees"})
LAYOUTS = (DERIVATIVES, SPOT)
SIDES = {
    "buy": 1.0,
    "long": 1.0,
    "open long": 1.0,
    "close short": 1.0,
    "sell": -1.0,
    "short": -1.0,
    "open short": -1.0,
    "close long": -1.0,
}
EXECUTED = frozenset({"trade", "liquidation", "busttrade", "adltrade", "settle", "delivery"})
LIQUIDATED = frozenset({"liquidation", "busttrade"})
INVERSE = re.compile(r"([A-Z0-9]{2,12})USD([FGHJKMNQUVXZ][0-9]{2})?")
USDC_PERPETUAL = re.compile(r"([A-Z0-9]{2,12})PERP")


def _is_bybit(head: FileHead) -> bool:
    return find_header(head.first_lines, LAYOUTS) is not None


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    header, rows = csv_table(path, LAYOUTS)
    title = header.title_starting("transactiontime", "timestamp", "tradetime", "time")
    table = ExportTable(title, options.zone)
    read = _spot if header.has(SPOT) else _derivative
    yield from file_rows(rows, lambda number, row: read(number, row, table))


def _derivative(number: int, row: CsvRow, table: ExportTable) -> Iterable[FileRow]:
    symbol, kind = row.text("market").upper(), row.text("filledtype").casefold()
    if not symbol:
        raise ValueError("market is missing")
    if kind == "funding":
        yield _funding(number, row, table, symbol)
        return
    if kind not in EXECUTED:
        yield LeftOutRow(number=number, reason=f"a row of type {kind or 'unknown'}")
        return
    instrument = bybit_instrument(symbol)
    yield from table.once(instrument)
    fee, coin = _fee(row, "tradingfee")
    fill = _execution(row, table, symbol, fee=fee, coin=coin or instrument.currency, liquidated=kind in LIQUIDATED)
    yield FillRow(number=number, fill=fill, closes=_closing_part(row, fill))


def _closing_part(row: CsvRow, fill: ReportedFill) -> ClosingPart | None:
    closed = row.number_in("closedsize", "closedqty") or 0.0
    if fill.reason == "liquidated" or row.text("direction").casefold().startswith("close"):
        return "all"
    return None if closed <= 0 else "all" if closed >= abs(fill.quantity) else "some"


def _spot(number: int, row: CsvRow, table: ExportTable) -> Iterable[FileRow]:
    symbol = row.text("spotpairs").upper()
    if not symbol:
        raise ValueError("spotpairs is missing")
    yield from table.once(pair_instrument(symbol, symbol, "spot"))
    fee, coin = _fee(row, "fees")
    assets = base_and_quote(symbol)
    if not coin and assets is not None:
        coin = assets[0] if _side(row) > 0 else assets[1]
    fill = _execution(row, table, symbol, fee=fee, coin=coin)
    yield FillRow(number=number, fill=fill, closes="all" if fill.quantity < 0 else None)


def _execution(
    row: CsvRow, table: ExportTable, symbol: str, *, fee: float, coin: str | None, liquidated: bool = False
) -> ReportedFill:
    size, price, at = row.required("filledquantity"), row.required("filledprice"), table.instant(row)
    if size <= 0:
        raise ValueError("filledquantity is not above 0")
    return ReportedFill(
        id=_id(row),
        at=at,
        sequence=0,
        kind="trade",
        symbol=symbol,
        quantity=_side(row) * size,
        price=price,
        fee=fee,
        fee_currency=coin or None,
        order_id=row.text("orderno") or None,
        reason="liquidated" if liquidated else None,
    )


def _funding(number: int, row: CsvRow, table: ExportTable, symbol: str) -> FileRow:
    fee, coin = _fee(row, "tradingfee")
    coin = coin or bybit_instrument(symbol).currency or ""
    if coin not in DOLLARS:
        return LeftOutRow(number=number, reason="funding in a coin, whose worth is not told")
    at, name = table.instant(row), _id(row)
    fill_id = f"funding:{name}" if name else ""
    fill = ReportedFill(id=fill_id, at=at, sequence=0, kind="funding", symbol=symbol, amount=-fee)
    return FillRow(number=number, fill=fill)


def _id(row: CsvRow) -> str:
    return row.text("trasactionid", "transactionid")


def _side(row: CsvRow) -> float:
    side = SIDES.get(row.text("direction").casefold())
    if side is None:
        raise ValueError("direction is neither a purchase nor a sale")
    return side


def _fee(row: CsvRow, column: str) -> tuple[float, str]:
    """The fee and its coin. Where the coin is told, the amount is in ExecFeeV2."""
    coin = row.text("feecoin").upper()
    fee = row.number_in("execfeev2") if coin else None
    if fee is None:
        fee = row.number_in(column)
    return fee or 0.0, coin


def bybit_instrument(symbol: str) -> InstrumentRow:
    """What the name of a derivative at Bybit tells of it."""
    if "-" in symbol:
        underlying = symbol.partition("-")[0]
        kind: InstrumentKind = "option" if symbol.count("-") > 2 else "future"
        return InstrumentRow(symbol=symbol, kind=kind, underlying=underlying)
    inverse, usdc = INVERSE.fullmatch(symbol), USDC_PERPETUAL.fullmatch(symbol)
    if inverse:
        row = inverse_instrument(symbol, inverse[1], face_value=1.0)
        return InstrumentRow(
            symbol=symbol,
            kind="future" if inverse[2] else "perpetual",
            currency=row.currency,
            underlying=row.underlying,
            inverse=True,
        )
    return pair_instrument(symbol, f"{usdc[1]}USDC" if usdc else symbol, "perpetual")


FORMATS = (
    FileFormat(
        name="bybit",
        title="Bybit trade history (CSV)",
        rows="fills",
        recognises=_is_bybit,
        read=_read,
        currency="USDT",
    ),
)
