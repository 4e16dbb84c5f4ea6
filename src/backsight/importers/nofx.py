"""nofx: the positions in its database, and the decisions in its logs.

The table `trader_positions` is described in `store/position.go`: closed positions become trades. `realized_pnl` is
before fees; times are milliseconds since 1970, in older databases texts. A decision record (`store/decision.go`) is an
object with a list of `decisions`; `decision_logs/` has one file for each, newer versions the table `decision_records`.
Actions that succeeded become fills. A close without a quantity closes all that the file opened. What a decision did
not trade (`hold`, `wait`, a moved stop) is left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from backsight.core.errors import Invalid
from backsight.core.orders import ReportedFill
from backsight.importers.cells import (
    ContentIds,
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
from backsight.importers.formats import FileFormat, FileHead, FileRow, FillRow, LeftOutRow, ReadOptions
from backsight.importers.json_rows import json_rows
from backsight.importers.sqlite_files import SQLITE, SQLITE_ERRORS, columns_of, readonly
from backsight.importers.trades import TradeRow

POSITIONS, DECISIONS = "trader_positions", "decision_records"
SIDES: Mapping[str, str] = {"LONG": "long", "SHORT": "short"}
ACTIONS: Mapping[str, tuple[str, int, bool]] = {
    "open_long": ("long", 1, True),
    "open_short": ("short", -1, True),
    "close_long": ("long", -1, False),
    "close_short": ("short", 1, False),
}
"""The side of the position, the sign of the quantity, and whether it is an entry."""


def _tables(head: FileHead) -> set[str]:
    if not head.start.startswith(SQLITE):
        return set()
    try:
        with closing(readonly(head.path)) as connection:
            return {table for table in (POSITIONS, DECISIONS) if "trader_id" in columns_of(connection, table)}
    except SQLITE_ERRORS:
        return set()


def _are_positions(head: FileHead) -> bool:
    return POSITIONS in _tables(head)


def _are_decisions(head: FileHead) -> bool:
    if head.start.startswith(SQLITE):
        return _tables(head) == {DECISIONS}
    text = head.text.lstrip()
    keys = ('"cycle_number"', '"decision_json"', '"account_state"', '"cot_trace"')
    return text.startswith(("{", "[")) and sum(1 for key in keys if key in text) >= 2


def _read_positions(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    def read_row(number: int, row: Row) -> Iterable[FileRow]:
        symbol, side = text_in(row, "symbol"), text_in(row, "side").upper()
        if text_in(row, "status").upper() != "CLOSED":
            return [LeftOutRow(number=number, reason="the position is still open")]
        if side not in SIDES:
            raise ValueError("side is neither LONG nor SHORT")
        fees = optional_number_in(row, "fee") or 0.0
        values: dict[str, Any] = {
            "symbol": symbol,
            "direction": SIDES[side],
            "strategy_name": text_in(row, "trader_id"),
            "opened_at": _instant(row, "entry_time", options.zone),
            "closed_at": _instant(row, "exit_time", options.zone),
            "entry_price": number_in(row, "entry_price"),
            "exit_price": number_in(row, "exit_price"),
            "size": optional_number_in(row, "entry_quantity") or number_in(row, "quantity"),
            "pnl": number_in(row, "realized_pnl") - fees,
            "fees": fees,
            "leverage": optional_number_in(row, "leverage") or None,
            "exit_reason": optional_text_in(row, "close_reason"),
            "position_key": optional_text_in(row, "exchange_position_id"),
        }
        return [TradeRow(number, {name: value for name, value in values.items() if value is not None})]

    return file_rows(_table_rows(path, POSITIONS), read_row)


def _instant(row: Row, name: str, zone: tzinfo) -> datetime:
    """A time of a position; 0 stands for none."""
    if value_in(row, name) == 0:
        raise ValueError(f"{name} is missing")
    return instant_in(row, name, zone=zone)


def _read_decisions(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    ids, sizes = ContentIds("nofx"), dict[str, float]()

    def read_row(number: int, record: Row) -> Iterable[FileRow]:
        actions = _actions(record)
        if not actions:
            return [LeftOutRow(number=number, reason="a cycle without a decision")]
        at = optional_instant_in(record, "timestamp", zone=options.zone)
        return [_action_row(number, action if at is None else {"at": at, **action}) for action in actions]

    def _action_row(number: int, action: Row) -> FileRow:
        name = text_in(action, "action")
        if name not in ACTIONS:
            return LeftOutRow(number=number, reason=f"{name[:40]} trades nothing")
        if value_in(action, "success") is False:
            return LeftOutRow(number=number, reason="the order failed")
        side, sign, enters = ACTIONS[name]
        symbol, price = text_in(action, "symbol"), optional_number_in(action, "price")
        key = f"{symbol} {side}"
        quantity = optional_number_in(action, "quantity") or (0.0 if enters else sizes.get(key, 0.0))
        if not quantity or not price or price < 0 or quantity < 0:
            return LeftOutRow(number=number, reason="its price or its quantity is not known")
        sizes[key] = max(0.0, sizes.get(key, 0.0) + (quantity if enters else -quantity))
        at = instant_in(action, "timestamp", "at", zone=UTC)
        order = optional_text_in(action, "order_id")
        order = None if order in (None, "0") else order
        fill = ReportedFill(
            id=ids.next_id(at, key, sign * quantity, price, order),
            at=at,
            sequence=ids.sequence,
            kind="trade",
            position_key=key,
            symbol=symbol,
            quantity=sign * quantity,
            price=price,
            order_id=order,
        )
        return FillRow(number=number, fill=fill)

    with path.open("rb") as file:
        is_database = file.read(len(SQLITE)) == SQLITE
    objects = ((number, row.content) for number, row in json_rows(path))
    return file_rows(_table_rows(path, DECISIONS) if is_database else objects, read_row)


def _actions(record: Row) -> list[dict[str, Any]]:
    actions = value_in(record, "decisions")
    try:
        actions = json.loads(actions) if isinstance(actions, str) else actions
    except (ValueError, RecursionError):
        actions = None
    if not isinstance(actions, list) or not all(isinstance(action, dict) for action in actions):
        raise ValueError("decisions is not a list of objects")
    return actions


def _table_rows(path: Path, table: str) -> Iterator[tuple[int, Row]]:
    try:
        with closing(readonly(path)) as connection:
            if "trader_id" not in columns_of(connection, table):
                raise Invalid(f"{path} has no table {table}; give a database of nofx", field="path")
            for number, row in enumerate(connection.execute(f"SELECT * FROM {table} ORDER BY id"), start=1):  # noqa: S608
                yield number, dict(row)
    except SQLITE_ERRORS as error:
        raise UnreadableError(f"the database is cut off or damaged ({error})") from None


FORMATS = (
    FileFormat(
        name="nofx",
        title="nofx positions (trader_positions in its database)",
        rows="trades",
        recognises=_are_positions,
        read=_read_positions,
        currency="USDT",
    ),
    FileFormat(
        name="nofx-decisions",
        title="nofx decision records (JSON, or decision_records in its database)",
        rows="fills",
        recognises=_are_decisions,
        read=_read_decisions,
        currency="USDT",
    ),
)
