"""nautilus_trader: its positions report and its fills reports, as CSV.

The columns are those of `ReportProvider` in `nautilus_trader/analysis/reporter.py`: closed positions become trades;
the fills report (a row for each fill) and the order fills report (a row for each order, at its average price) become
fills. Times are UTC. The realised PnL of a position is net of the commissions in its currency.

A position of a backtest (the trader is `BACKTESTER-...`) is `sim`; the mode of another must be given. A report does not
tell the multiplier of an instrument: save the instrument before the fills of futures or options are imported.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

from backsight.core.orders import ReportedFill
from backsight.importers.cells import (
    Row,
    csv_rows,
    file_rows,
    header_of,
    instant_in,
    number_in,
    optional_number_in,
    optional_text_in,
    text_in,
)
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
from backsight.importers.trades import TradeRow

SIDES: Mapping[str, int] = {"BUY": 1, "SELL": -1}
BACKTEST = "BACKTESTER"
"""How ids of traders begin in backtests, unless another id is configured."""
POSITIONS = frozenset({"position_id", "instrument_id", "entry", "avg_px_open", "avg_px_close", "realized_pnl"})
FILLS = (
    frozenset({"trade_id", "instrument_id", "order_side", "last_qty", "last_px", "ts_event"}),
    frozenset({"client_order_id", "instrument_id", "side", "filled_qty", "avg_px", "ts_last"}),
)


def _names(head: FileHead) -> set[str]:
    return set(header_of(head.first_lines[0])) if head.first_lines else set()


def _are_positions(head: FileHead) -> bool:
    return _names(head) >= POSITIONS


def _are_fills(head: FileHead) -> bool:
    return any(_names(head) >= columns for columns in FILLS)


def _read_positions(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    currency: str | None = None

    def read_row(number: int, row: Row) -> Iterable[FileRow]:
        nonlocal currency
        symbol = text_in(row, "instrument_id")
        if text_in(row, "side") != "FLAT" or optional_text_in(row, "ts_closed") is None:
            return [LeftOutRow(number=number, reason="the position is still open")]
        pnl, own = _money(text_in(row, "realized_pnl"), "realized_pnl")
        if currency is None:
            currency = own
            return [RemarkRow(text=f"Results are in {own}."), _trade(number, row, symbol, pnl, own)]
        if own != currency:
            return [
                LeftOutRow(number=number, reason=f"the result is in {own}, and that of the first row in {currency}")
            ]
        return [_trade(number, row, symbol, pnl, own)]

    return file_rows(csv_rows(path), read_row)


def _trade(number: int, row: Row, symbol: str, pnl: float, currency: str) -> TradeRow:
    entry = text_in(row, "entry")
    if entry not in SIDES:
        raise ValueError("entry is neither BUY nor SELL")
    fees = [amount for amount, own in _amounts(optional_text_in(row, "commissions") or "") if own == currency]
    values: dict[str, Any] = {
        "symbol": symbol,
        "direction": "long" if SIDES[entry] > 0 else "short",
        "strategy_name": text_in(row, "strategy_id"),
        "opened_at": instant_in(row, "ts_opened", zone=UTC),
        "closed_at": instant_in(row, "ts_closed", zone=UTC),
        "entry_price": number_in(row, "avg_px_open"),
        "exit_price": number_in(row, "avg_px_close"),
        "size": number_in(row, "peak_qty"),
        "pnl": pnl,
        "fees": sum(fees),
        "position_key": text_in(row, "position_id"),
    }
    if (optional_text_in(row, "trader_id") or "").startswith(BACKTEST):
        values["mode"] = "sim"
    return TradeRow(number, values)


def _read_fills(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    known: set[str] = set()

    def read_row(number: int, row: Row) -> Iterable[FileRow]:
        side = text_in(row, "order_side", "side")
        if side not in SIDES:
            raise ValueError("the side is neither BUY nor SELL")
        symbol, quantity = text_in(row, "instrument_id"), number_in(row, "last_qty", "filled_qty")
        if quantity == 0:
            return [LeftOutRow(number=number, reason="nothing was filled")]
        commissions = _amounts(optional_text_in(row, "commission", "commissions") or "")
        if len(commissions) > 1:
            raise ValueError("commissions are in several currencies")
        fee, fee_currency = commissions[0] if commissions else (0.0, None)
        fill = ReportedFill(
            id=text_in(row, "trade_id", "client_order_id"),
            at=instant_in(row, "ts_event", "ts_last", zone=UTC),
            sequence=_count(optional_text_in(row, "client_order_id") or ""),
            kind="trade",
            position_key=optional_text_in(row, "position_id") or symbol,
            symbol=symbol,
            quantity=SIDES[side] * quantity,
            price=number_in(row, "last_px", "avg_px"),
            fee=fee,
            fee_currency=fee_currency,
            order_id=optional_text_in(row, "venue_order_id", "client_order_id"),
        )
        return [*_instrument(symbol, known), FillRow(number=number, fill=fill)]

    return file_rows(csv_rows(path), read_row)


def _count(client_order_id: str) -> int:
    """The number of an order, which its id ends with: it orders the fills of one instant.

    >>> _count("O-20120201-003800-001-000-12"), _count("mine")
    (12, 0)
    """
    last = client_order_id.rpartition("-")[2]
    return int(last) if last.isdecimal() and len(last) < 10 else 0


def _instrument(symbol: str, known: set[str]) -> Iterable[FileRow]:
    """What the id of a currency pair says, at its first fill: the currency of its prices."""
    if symbol in known:
        return []
    known.add(symbol)
    base, slash, quote = symbol.partition(".")[0].partition("/")
    return [InstrumentRow(symbol=symbol, currency=quote, underlying=base)] if slash and quote.isalpha() else []


def _money(text: str, column: str = "commissions") -> tuple[float, str]:
    """An amount and its currency.

    >>> _money("-40.30 USD")
    (-40.3, 'USD')
    """
    amount, _, currency = text.strip().partition(" ")
    if not currency:
        raise ValueError(f"{column} has no currency")
    number = optional_number_in({column: amount.replace("_", "").replace(",", "")}, column)
    if number is None:
        raise ValueError(f"{column} is not a number")
    return number, currency.strip()


def _amounts(text: str) -> list[tuple[float, str]]:
    """The amounts in a list as Python writes it.

    >>> _amounts("['6.30 USD', '0.1 EUR']"), _amounts("2.10 USD"), _amounts("[]")
    ([(6.3, 'USD'), (0.1, 'EUR')], [(2.1, 'USD')], [])
    """
    parts = [part.strip(" []{}'\"") for part in text.split(",")]
    return [_money(part) for part in parts if part]


FORMATS = (
    FileFormat(
        name="nautilus-positions",
        title="nautilus_trader positions report (CSV)",
        rows="trades",
        recognises=_are_positions,
        read=_read_positions,
    ),
    FileFormat(
        name="nautilus-fills",
        title="nautilus_trader fills report (CSV)",
        rows="fills",
        recognises=_are_fills,
        read=_read_fills,
    ),
)
