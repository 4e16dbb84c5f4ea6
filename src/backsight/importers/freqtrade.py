"""freqtrade: results of backtests (`.json`, or the `.zip` around it), and its database of trades (`tradesv3.sqlite`).

A backtest is `{"strategy": {NAME: {"trades": [...]}}}`; the `.meta.json` beside it has nothing of the trades. The
shapes are those of `freqtrade/data/btanalysis.py` (BT_DATA_COLUMNS) and `freqtrade/persistence/trade_model.py`; the
names that columns had before are in `freqtrade/persistence/migrations.py` (`sell_reason`, `buy_tag`, one `fee`). Times
are UTC.

Trades are imported, not the orders: only a trade has its stop, its reasons, its funding and the prices it saw. The
orders of a trade tell its average prices and its largest size, since `amount` and `close_rate` are those of the last
exit. Excursions come from `min_rate` and `max_rate`, except for a trade with several entries or exits, of which the
size at those prices is not known.

A backtest is `sim`. A trade of a database is `paper` if its orders have the ids of a dry run (`dry_run_...`); otherwise
its mode must be given, since an import is never silently `live`.
"""

import sqlite3
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from backsight.core.errors import Invalid
from backsight.importers.archives import ZIP, ZIP_ERRORS
from backsight.importers.cells import (
    Row,
    UnreadableError,
    file_rows,
    instant_in,
    number_in,
    optional_instant_in,
    optional_number_in,
    optional_text_in,
    text_in,
    value_in,
)
from backsight.importers.files import decode, read_bytes
from backsight.importers.formats import FileFormat, FileHead, FileRow, LeftOutRow, ReadOptions, RemarkRow
from backsight.importers.json_text import JsonCursor
from backsight.importers.sqlite_files import SQLITE, SQLITE_ERRORS, columns_of, readonly
from backsight.importers.trades import TradeRow

LARGEST_RESULT = 2**30
"""Bytes of the largest result that is unpacked from a `.zip`."""
FILLED_AT = "order_filled_timestamp"
DRY_RUN = "dry_run"
"""How ids of orders begin that were not sent to an exchange."""
MARKS = ('"results_per_pair"', '"profit_ratio"', '"profit_percent"', '"stake_currency"')
"""Keys of which a result has at least one near its beginning."""


def _is_result(head: FileHead) -> bool:
    text = head.text.lstrip()
    known = '"strategy"' in text and '"trades"' in text and any(mark in text for mark in MARKS)
    return (text.startswith("{") and known) or (head.start.startswith(ZIP) and _result_member(head.path) is not None)


def _is_database(head: FileHead) -> bool:
    if not head.start.startswith(SQLITE):
        return False
    try:
        with closing(readonly(head.path)) as connection:
            return {"pair", "open_rate", "stake_amount"} <= columns_of(connection, "trades")
    except SQLITE_ERRORS:
        return False


def _read_result(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    return _with_currency(file_rows(_trades_of_result(_result_text(path)), _trade_rows))


def _read_database(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    return _with_currency(file_rows(_trades_of_database(path), _trade_rows))


def _with_currency(rows: Iterator[FileRow]) -> Iterator[FileRow]:
    """The rows, and before the first trade the currency of the results: that in which its pair is priced."""
    for row in rows:
        if isinstance(row, TradeRow):
            quote = str(row.values["symbol"]).partition("/")[2].partition(":")[0]
            yield RemarkRow(text=f"Results are in {quote or 'the stake currency'}.")
            yield row
            break
        yield row
    yield from rows


FORMATS = (
    FileFormat(
        name="freqtrade-backtest",
        title="freqtrade backtest result (JSON or ZIP)",
        rows="trades",
        recognises=_is_result,
        read=_read_result,
        currency="USDT",
        mode="sim",
    ),
    FileFormat(
        name="freqtrade",
        title="freqtrade database (tradesv3.sqlite)",
        rows="trades",
        recognises=_is_database,
        read=_read_database,
        currency="USDT",
    ),
)


@dataclass(frozen=True, slots=True)
class _Legs:
    """The entries or the exits of a trade."""

    amount: float
    value: float
    count: int

    @property
    def price(self) -> float:
        return self.value / self.amount


def _trade_rows(number: int, row: Row) -> Iterable[FileRow]:
    """The trade of a row; a row that is not closed is left out."""
    text_in(row, "pair")
    if value_in(row, "is_open"):
        return [LeftOutRow(number=number, reason="the trade was still open")]
    if optional_instant_in(row, "close_date", zone=UTC) is None:
        return [LeftOutRow(number=number, reason="the trade was never filled")]
    return [TradeRow(number, {name: value for name, value in _values(row).items() if value is not None})]


def _values(row: Row) -> Mapping[str, Any]:
    """The arguments of a closed trade; None where the row does not tell."""
    short = bool(value_in(row, "is_short"))
    orders = _orders(row)
    entries, exits = _legs(row, orders, "sell" if short else "buy")
    size = _largest_size(orders, "sell" if short else "buy") or entries.amount
    fee = optional_number_in(row, "fee") or 0.0
    fees = entries.value * (optional_number_in(row, "fee_open") or fee)
    fees += exits.value * (optional_number_in(row, "fee_close") or fee)
    worst, best = _excursions(row, entries, short=short) if entries.count == exits.count == 1 else (None, None)
    return {
        "symbol": text_in(row, "pair"),
        "direction": "short" if short else "long",
        "strategy_name": optional_text_in(row, "strategy"),
        "opened_at": instant_in(row, "open_date", zone=UTC),
        "closed_at": instant_in(row, "close_date", zone=UTC),
        "entry_price": entries.price,
        "exit_price": exits.price,
        "size": size,
        "pnl": number_in(row, "profit_abs", "close_profit_abs"),
        "fees": fees,
        "funding": optional_number_in(row, "funding_fees"),
        "leverage": optional_number_in(row, "leverage"),
        "stop_price": optional_number_in(row, "initial_stop_loss_abs", "initial_stop_loss") or None,
        "reason": optional_text_in(row, "enter_tag", "buy_tag"),
        "exit_reason": optional_text_in(row, "exit_reason", "sell_reason"),
        "max_adverse_excursion": worst,
        "max_favorable_excursion": best,
        "mode": "paper" if any(_is_dry(order) for order in orders) else None,
    }


def _orders(row: Row) -> list[Row]:
    """The filled orders of a trade; a result also lists orders that were never filled."""
    orders = value_in(row, "orders") or []
    if not isinstance(orders, list) or not all(isinstance(order, dict) for order in orders):
        raise ValueError("orders is not a list of objects")
    return [order for order in orders if order.get(FILLED_AT, 0) is not None]


def _legs(row: Row, orders: list[Row], entry_side: str) -> tuple[_Legs, _Legs]:
    """Entries and exits: of the orders if both are among them, else as the trade itself tells them."""
    entered = [order for order in orders if text_in(order, "ft_order_side") == entry_side]
    left = [order for order in orders if text_in(order, "ft_order_side") != entry_side]
    if entered and left:
        return _sum(entered), _sum(left)
    amount = number_in(row, "amount")
    opened, closed = number_in(row, "open_rate"), number_in(row, "close_rate")
    if amount <= 0:
        raise ValueError("amount is not above 0")
    return _Legs(amount, amount * opened, 1), _Legs(amount, amount * closed, 1)


def _sum(orders: list[Row]) -> _Legs:
    pairs = [(_filled(order), _price(order)) for order in orders]
    return _Legs(sum(amount for amount, _ in pairs), sum(amount * price for amount, price in pairs), len(pairs))


def _largest_size(orders: list[Row], entry_side: str) -> float:
    size = largest = 0.0
    for order in orders:
        size += _filled(order) * (1 if text_in(order, "ft_order_side") == entry_side else -1)
        largest = max(largest, size)
    return largest


def _filled(order: Row) -> float:
    """What an order traded; the orders of a result have no `filled`, only their amount."""
    amount = number_in(order, "filled", "amount")
    if amount <= 0:
        raise ValueError("filled is not above 0")
    return amount - (optional_number_in(order, "ft_fee_base") or 0.0)


def _price(order: Row) -> float:
    return number_in(order, *(name for name in PRICES if optional_number_in(order, name)), PRICES[0])


PRICES = ("average", "safe_price", "price", "stop_price", "ft_price")
"""Where an order has its price, best first; 0 is none."""


def _is_dry(order: Row) -> bool:
    return (optional_text_in(order, "order_id") or "").startswith(DRY_RUN)


def _excursions(row: Row, entries: _Legs, *, short: bool) -> tuple[float | None, float | None]:
    """The worst and the best unrealised result, from the lowest and the highest price that the trade saw."""
    low, high = optional_number_in(row, "min_rate") or None, optional_number_in(row, "max_rate") or None
    fall = None if low is None else max(0.0, entries.price - low) * entries.amount
    rise = None if high is None else max(0.0, high - entries.price) * entries.amount
    return (rise, fall) if short else (fall, rise)


def _result_text(path: Path) -> str:
    content = read_bytes(path)
    if not content.startswith(ZIP):
        return decode(content, path=path)
    member = _result_member(path)
    if member is None:
        raise Invalid(f"{path} has no freqtrade result in it; give the .zip that freqtrade wrote", field="path")
    with zipfile.ZipFile(path) as archive:
        if archive.getinfo(member).file_size > LARGEST_RESULT:
            raise Invalid(f"{member} in {path} is larger than 1 GiB; give it unpacked, in parts", field="path")
        try:
            content = archive.read(member)
        except ZIP_ERRORS as error:
            raise Invalid(f"{member} in {path} cannot be unpacked ({error}); fetch it again", field="path") from None
    return decode(content, path=path)


def _result_member(path: Path) -> str | None:
    """The result in an archive: the one `.json` that is neither the configuration nor the metadata."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".json") and "/" not in name]
    except ZIP_ERRORS:
        return None
    results = [name for name in names if not name.endswith(("_config.json", ".meta.json"))]
    return results[0] if len(results) == 1 and results[0].startswith("backtest") else None


def _trades_of_result(text: str) -> Iterator[tuple[int, Row]]:
    """The trades of every strategy in a result, numbered from 1."""
    cursor, number = JsonCursor(text), 0
    for part in cursor.members():
        if part != "strategy":
            continue
        for strategy in cursor.members():
            for member in cursor.members():
                if member != "trades":
                    continue
                for _ in cursor.elements():
                    trade, number = cursor.value(), number + 1
                    yield number, {"strategy": strategy, **trade} if isinstance(trade, dict) else {}


def _trades_of_database(path: Path) -> Iterator[tuple[int, Row]]:
    """The trades of a database with their filled orders, numbered from 1."""
    try:
        with closing(readonly(path)) as connection:
            if "pair" not in columns_of(connection, "trades"):
                raise Invalid(f"{path} has no table of trades; give a tradesv3.sqlite of freqtrade", field="path")
            with_orders = "ft_trade_id" in columns_of(connection, "orders")
            for number, trade in enumerate(connection.execute("SELECT * FROM trades ORDER BY id"), start=1):
                row = dict(trade)
                if with_orders:
                    row["orders"] = _filled_orders(connection, row["id"])
                yield number, row
    except SQLITE_ERRORS as error:
        raise UnreadableError(f"the database is cut off or damaged ({error})") from None


def _filled_orders(connection: sqlite3.Connection, trade_id: object) -> list[Row]:
    query = "SELECT * FROM orders WHERE ft_trade_id = ? AND filled > 0 ORDER BY id"
    return [dict(order) for order in connection.execute(query, (trade_id,))]
