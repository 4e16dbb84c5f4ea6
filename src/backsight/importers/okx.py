"""Trading history that OKX exports as CSV: spot, margin, perpetuals, futures and options of a trading account.

    UID:…,Account Type:Main,Time Zone:UTC+8
    id, Order id, Time, Trade Type, Symbol, Action, Amount, Trading Unit, Filled Price, PnL, Fee, Fee Unit, Position
    Change, Position Balance, Balance Change, Balance, Balance Unit

The shape is that of the account's statement as public importers read it (bittytax, everytrade, tests of portfolio
programs). The first line tells the time zone; each line may begin with a byte order mark. A fee below 0 was paid. `PnL`
is before fees. A spot trade has two rows, one for each asset: that of the base asset is the fill, that of the quote
carries the fee of a sale. `Open long` and `Close long` are of an account that holds long and short side by side.

Amounts of derivatives may be in contracts (`cont`), and the file does not say how much one is. For contracts settled in
dollars the size follows from the PnL of closed positions. An inverse contract is worth 100 USD of Bitcoin, else 10 USD.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backsight.core.instruments import InstrumentKind
from backsight.core.orders import ReportedFill
from backsight.importers.cells import file_rows
from backsight.importers.export_tables import CsvHeader, CsvRow, ExportTable, csv_table, find_header, zone_in
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
from backsight.importers.market_symbols import DOLLARS, inverse_instrument, pair_instrument

COLUMNS = frozenset(
    {"id", "orderid", "time", "tradetype", "symbol", "action", "amount", "tradingunit", "fee", "feeunit"}
)
SPOT = frozenset({"spot", "margin"})
SIDES = {
    "buy": 1.0,
    "sell": -1.0,
    "open long": 1.0,
    "close long": -1.0,
    "open short": -1.0,
    "close short": 1.0,
}
NEAR_POWER_OF_TEN = 0.05


def _is_okx(head: FileHead) -> bool:
    return find_header(head.first_lines, (COLUMNS,)) is not None


@dataclass
class _History:
    """What the rows of one file share."""

    table: ExportTable
    contract_sizes: Mapping[str, float]
    """What one contract is in base units, where closed positions tell it."""
    unknown_sizes: set[str] = field(default_factory=set)
    sides: dict[str, str] = field(default_factory=dict)
    """The position that was traded last, by symbol, where long and short are held side by side."""


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    header, rows = csv_table(path, (COLUMNS,))
    zone = zone_in(" ".join(header.before)) or options.zone
    table = ExportTable(header.title_starting("time"), zone)
    history = _History(table=table, contract_sizes=_contract_sizes(path, header))
    yield from file_rows(rows, lambda number, row: _understood(number, row, history))
    if history.unknown_sizes:
        symbols = ", ".join(sorted(history.unknown_sizes))
        yield RemarkRow(
            text=f"The file does not tell the size of a contract of {symbols}: it counts as 1 unit, unless an "
            "instrument with the right multiplier was saved before"
        )


def _understood(number: int, row: CsvRow, history: _History) -> Iterable[FileRow]:
    kind, action, symbol = row.text("tradetype").casefold(), row.text("action").casefold(), row.text("symbol").upper()
    if "transfer" in (kind, *action.split()):
        yield _transfer(number, row)
    elif action.startswith("funding"):
        yield _funding(number, row, symbol, history)
    elif kind in SPOT:
        yield from _spot(number, row, symbol, history)
    elif _side(action) is None:
        yield LeftOutRow(number=number, reason=f"an action {action or 'unknown'}")
    else:
        yield from _derivative(number, row, symbol, history)


def _side(action: str) -> float | None:
    """1 for a purchase and −1 for a sale; liquidations name the side that they close."""
    if "liquidat" in action or "adl" in action.split():
        return 1.0 if "short" in action else -1.0 if "long" in action else None
    return SIDES.get(action)


def _spot(number: int, row: CsvRow, symbol: str, history: _History) -> Iterable[FileRow]:
    base = symbol.partition("-")[0]
    side = SIDES.get(row.text("action").casefold())
    if not base or side is None:
        raise ValueError("no symbol, or an action that is neither Buy nor Sell")
    yield from history.table.once(pair_instrument(symbol, symbol, "spot"))
    unit = row.text("balanceunit").upper()
    if unit in ("", base):
        sells_coins = side < 0 and row.text("tradetype").casefold() == "spot"
        fill = _execution(row, symbol, side, history)
        yield FillRow(number=number, fill=fill, closes="all" if sells_coins else None)
    elif row.number_in("fee"):
        yield FillRow(number=number, fill=_fee_alone(row, symbol, history))
    else:
        yield LeftOutRow(number=number, reason="the side of the quote of a spot trade, whose fill is in another row")


def _derivative(number: int, row: CsvRow, symbol: str, history: _History) -> Iterable[FileRow]:
    action = row.text("action").casefold()
    side = _side(action)
    if not symbol or side is None:
        raise ValueError("symbol is missing")
    in_contracts = row.text("tradingunit").casefold() in ("cont", "conts", "contract", "contracts", "")
    instrument = _instrument(symbol, history, in_contracts=in_contracts)
    yield from history.table.once(instrument)
    position_side = next((each for each in ("long", "short") if each in action), "")
    if position_side:
        history.sides[symbol] = position_side
    fill = _execution(row, symbol, side, history, pnl=row.number_in("pnl") or None)
    closes = action.startswith("close") or action not in SIDES
    yield FillRow(number=number, fill=fill, closes="all" if closes else "measured" if fill.realized_pnl else None)


def _execution(row: CsvRow, symbol: str, side: float, history: _History, *, pnl: float | None = None) -> ReportedFill:
    size, price = row.required("amount"), row.required("filledprice")
    if size <= 0:
        raise ValueError("amount is not above 0")
    return ReportedFill(
        id=row.text("id"),
        at=history.table.instant(row),
        sequence=0,
        kind="trade",
        position_key=_position_key(symbol, history),
        symbol=symbol,
        quantity=side * size,
        price=price,
        fee=0.0 - (row.number_in("fee") or 0.0),
        fee_currency=row.text("feeunit").upper() or None,
        order_id=row.text("orderid") or None,
        realized_pnl=pnl,
        reason="liquidated" if "liquidat" in row.text("action").casefold() else None,
    )


def _position_key(symbol: str, history: _History) -> str:
    position_side = history.sides.get(symbol)
    return f"{symbol}:{position_side}" if position_side else symbol


def _fee_alone(row: CsvRow, symbol: str, history: _History) -> ReportedFill:
    """The fee of a sale, which is in the row of the quote."""
    return ReportedFill(
        id=row.text("id"),
        at=history.table.instant(row),
        sequence=0,
        kind="fee",
        symbol=symbol,
        fee=0.0 - row.required("fee"),
        fee_currency=row.text("feeunit", "balanceunit").upper() or None,
        order_id=row.text("orderid") or None,
    )


def _funding(number: int, row: CsvRow, symbol: str, history: _History) -> FileRow:
    amount = row.number_in("pnl") or row.number_in("balancechange")
    if not symbol or amount is None:
        raise ValueError("symbol or pnl is missing")
    if (row.text("balanceunit") or row.text("feeunit")).upper() not in DOLLARS:
        return LeftOutRow(number=number, reason="funding in a coin, whose worth is not told")
    fill = ReportedFill(
        id=row.text("id"),
        at=history.table.instant(row),
        sequence=0,
        kind="funding",
        position_key=_position_key(symbol, history),
        symbol=symbol,
        amount=amount,
    )
    return FillRow(number=number, fill=fill)


def _transfer(number: int, row: CsvRow) -> FileRow:
    row.required("balancechange")
    return LeftOutRow(number=number, reason="a transfer between accounts of one owner")


def _instrument(symbol: str, history: _History, *, in_contracts: bool) -> InstrumentRow:
    parts = symbol.split("-")
    base, quote, rest = parts[0], parts[1] if len(parts) > 1 else "", parts[2:]
    kind: InstrumentKind = "perpetual" if rest == ["SWAP"] else "option" if len(rest) > 2 else "future"
    if quote == "USD" and kind != "option":
        return inverse_instrument(symbol, base, face_value=100.0 if base == "BTC" else 10.0)
    row = pair_instrument(symbol, f"{base}-{quote}", kind)
    size = history.contract_sizes.get(symbol)
    if not in_contracts:
        return row
    if size is None:
        history.unknown_sizes.add(symbol)
        return row
    return InstrumentRow(symbol=symbol, kind=kind, multiplier=size, currency=row.currency, underlying=row.underlying)


def _contract_sizes(path: Path, header: CsvHeader) -> dict[str, float]:
    """What one contract of each linear symbol is in base units: PnL over price difference and contracts.

    It follows from the closed position with the largest difference. OKX's contracts are powers of ten of the base.
    """
    _, rows = csv_table(path, (COLUMNS,))
    by_position: defaultdict[tuple[str, str], list[tuple[str, float, float, float]]] = defaultdict(list)
    for _, row in rows:
        if row.problem is not None or row.text("tradingunit").casefold() != "cont":
            continue
        action, symbol = row.text("action").casefold(), row.text("symbol").upper()
        side = _side(action)
        try:
            amount, price = row.number_in("amount"), row.number_in("filledprice")
            pnl = row.number_in("pnl") or 0.0
        except ValueError:
            continue
        if side is not None and amount and price and "-USD-" not in symbol:
            position_side = "short" if "short" in action else "long" if "long" in action else ""
            by_position[symbol, position_side].append((row.text("time"), side * amount, price, pnl))
    sizes: dict[str, float] = {}
    for (symbol, _), fills in by_position.items():
        if fills[0][0] > fills[-1][0]:
            fills.reverse()
        size = _contract_size(fills)
        if size is not None:
            sizes[symbol] = size
    return sizes


def _contract_size(fills: Iterable[tuple[str, float, float, float]]) -> float | None:
    position, average, best, size = 0.0, 0.0, 0.0, None
    for _, quantity, price, pnl in fills:
        if position * quantity >= 0:
            average = (average * abs(position) + price * abs(quantity)) / (abs(position) + abs(quantity))
        else:
            closed = min(abs(position), abs(quantity))
            gain = math.copysign(closed, position) * (price - average)
            if pnl and abs(gain) > best:
                best, size = abs(gain), pnl / gain
            if abs(quantity) > abs(position):
                average = price
        position += quantity
    if size is None or size <= 0:
        return None
    power = 10.0 ** round(math.log10(size))
    return power if abs(size / power - 1.0) <= NEAR_POWER_OF_TEN else None


FORMATS = (
    FileFormat(
        name="okx",
        title="OKX trading history (CSV)",
        rows="fills",
        recognises=_is_okx,
        read=_read,
        currency="USDT",
    ),
)
