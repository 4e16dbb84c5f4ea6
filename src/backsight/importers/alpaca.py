"""Account activities of Alpaca, as JSON or as CSV with the same names.

    FILL                   id, activity_type, transaction_time, type, price, qty, side, symbol, order_id, …
    any other type         id, activity_type, date, net_amount, symbol, qty, per_share_amount, price, description, …

The objects and the types are documented at docs.alpaca.markets/docs/account-activities. `side` may be `sell_short`.
Times of fills have their offset; other activities have a date. Fills have no fee: regulatory fees are activities of
their own. `CFEE` is a fee on crypto, taken in the coin. An option contract is 100 shares. A split is two activities:
the old units out and the new ones in. `details` has its rates, or the description (`From QTY:10, To QTY:30`). What has
a date only counts at 16:00, after the fills of its day; a split at the start of its day.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from pathlib import Path

from backsight.core.orders import ReportedFill, ReportedKind
from backsight.importers.cells import file_rows
from backsight.importers.export_tables import csv_table, find_header, instant_in, number_in_text
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
from backsight.importers.json_rows import JsonRow, json_rows
from backsight.importers.market_symbols import base_and_quote, pair_instrument, stock_or_option

CSV_COLUMNS = (
    frozenset({"activitytype", "symbol", "qty", "price"}),
    frozenset({"activitytype", "symbol", "netamount"}),
)
DATED = frozenset({"transaction_time", "executed_at", "net_amount"})
SIDES = {"buy": 1.0, "sell": -1.0, "sell_short": -1.0, "buy_to_cover": 1.0}
DEPOSITS = frozenset({"CSD", "CSW", "TRANS", "ACATC", "JNLC", "JNL"})
SHARES = frozenset({"ACATS", "JNLS"})
SPLITS = frozenset({"SPLIT", "SSP"})
CHARGES = frozenset({"FEE", "PTC", "DIVFEE"})
CLOSED_OPTIONS: dict[str, ReportedKind] = {
    "OPEXP": "expiry",
    "OPASN": "assignment",
    "OPXRC": "assignment",
    "OPEXC": "assignment",
}
FROM_TO = re.compile(r"From QTY: ?([0-9.]{1,20}), To QTY: ?([0-9.]{1,20})", re.IGNORECASE)


@dataclass
class _Activities:
    zone: tzinfo
    symbols: set[str] = field(default_factory=set)
    splits: dict[tuple[str, datetime], float | None] = field(default_factory=dict)
    """The units that one side of a split moved; None once the split is told."""

    def once(self, symbol: str) -> Iterator[InstrumentRow]:
        if symbol not in self.symbols:
            self.symbols.add(symbol)
            yield _instrument(symbol)


def _instrument(symbol: str) -> InstrumentRow:
    if "/" in symbol:
        return pair_instrument(symbol, symbol, "spot")
    return stock_or_option(symbol)


def _is_json(head: FileHead) -> bool:
    first = head.first_object
    return first is not None and "activity_type" in first and not DATED.isdisjoint(first)


def _is_csv(head: FileHead) -> bool:
    return find_header(head.first_lines, CSV_COLUMNS) is not None


def _read_json(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    activities = _Activities(zone=options.zone)
    yield from file_rows(json_rows(path), lambda number, row: _activity(number, row, activities))
    yield from _remarks(activities)


def _read_csv(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    header, rows = csv_table(path, CSV_COLUMNS)
    names = {plain: title.strip().casefold() for plain, title in zip(header.names, header.titles, strict=True)}
    activities = _Activities(zone=options.zone)
    objects = (
        (number, JsonRow({names[name]: cell for name, cell in row.cells.items()}, problem=row.problem))
        for number, row in rows
    )
    yield from file_rows(objects, lambda number, row: _activity(number, row, activities))
    yield from _remarks(activities)


def _activity(number: int, row: JsonRow, activities: _Activities) -> Iterable[FileRow]:
    kind, symbol = row.text("activity_type").upper(), row.text("symbol").upper()
    if kind == "FILL":
        return [*activities.once(symbol), FillRow(number=number, fill=_execution(row, symbol, activities))]
    if kind in CLOSED_OPTIONS or kind == "OPTRD":
        return [*activities.once(symbol), FillRow(number=number, fill=_option_event(row, kind, symbol, activities))]
    if kind in SPLITS:
        return [_split(number, row, symbol, activities)]
    other = _payment(row, kind, symbol, activities)
    if other is not None:
        return [FillRow(number=number, fill=other)]
    return [LeftOutRow(number=number, reason=f"an activity {kind or 'of no type'}, which changes no position")]


def _execution(row: JsonRow, symbol: str, activities: _Activities) -> ReportedFill:
    side, size, price = SIDES.get(row.text("side").casefold()), row.required("qty"), row.required("price")
    if not symbol or side is None or size <= 0:
        raise ValueError("no symbol, no quantity, or a side that is neither buy nor sell")
    return ReportedFill(
        id=row.text("id"),
        at=instant_in(row.text("transaction_time"), activities.zone),
        sequence=0,
        kind="trade",
        symbol=symbol,
        quantity=side * size,
        price=price,
        order_id=row.text("order_id") or None,
    )


def _option_event(row: JsonRow, kind: str, symbol: str, activities: _Activities) -> ReportedFill:
    """An option that ends, at no price, or the shares that are delivered for it."""
    quantity = row.required("qty")
    if not symbol or quantity == 0:
        raise ValueError("symbol or qty is missing")
    return ReportedFill(
        id=row.text("id"),
        at=_date(row, activities),
        sequence=0,
        kind=CLOSED_OPTIONS.get(kind, "trade"),
        symbol=symbol,
        quantity=quantity,
        price=row.required("price") if kind == "OPTRD" else 0.0,
    )


def _payment(row: JsonRow, kind: str, symbol: str, activities: _Activities) -> ReportedFill | None:
    """A payment for a position, a fee on it, a transfer of money or of units; None if it is none of them."""
    fill_kind: ReportedKind
    amount = fee = quantity = 0.0
    price: float | None = None
    if kind in DEPOSITS:
        fill_kind, symbol, amount = "transfer", "", row.required("net_amount")
    elif kind in CHARGES and symbol:
        fill_kind, fee = "fee", 0.0 - row.required("net_amount")
    elif kind.startswith("DIV") and symbol:
        fill_kind, amount = "dividend", row.required("net_amount")
    elif kind == "CFEE" and symbol and row.number_in("qty"):
        fill_kind, quantity, price = "asset_transfer", row.required("qty"), row.number_in("price")
        fee = abs(quantity) * (price or 0.0)
        symbol = _pair(symbol)
    elif kind in SHARES and symbol and row.number_in("qty"):
        fill_kind, quantity, price = "asset_transfer", row.required("qty"), row.number_in("price")
    else:
        return None
    return ReportedFill(
        id=row.text("id"),
        at=_date(row, activities),
        sequence=0,
        kind=fill_kind,
        symbol=symbol,
        quantity=quantity,
        price=price or None,
        fee=fee,
        amount=amount,
    )


def _pair(symbol: str) -> str:
    """The symbol that fills of a pair have: `BTC/USD`, also where a fee is of `BTCUSD`."""
    assets = None if "/" in symbol else base_and_quote(symbol)
    return symbol if assets is None else "/".join(assets)


def _split(number: int, row: JsonRow, symbol: str, activities: _Activities) -> FileRow:
    """A split, told by its first side if that tells the ratio, else by the second one."""
    at, quantity = _date(row, activities, hour="00:00"), row.required("qty")
    if not symbol or quantity == 0:
        raise ValueError("symbol or qty is missing")
    key = symbol, at
    ratio = _ratio(row)
    if key in activities.splits:
        other = activities.splits[key]
        if other is None or other * quantity > 0:
            return LeftOutRow(number=number, reason="the other side of a split")
        ratio = ratio or abs(max(quantity, other) / min(quantity, other))
    if ratio is None:
        activities.splits[key] = quantity
        return LeftOutRow(number=number, reason="one side of a split")
    activities.splits[key] = None
    name = f"split:{symbol}:{at.isoformat()}"
    return FillRow(
        number=number, fill=ReportedFill(id=name, at=at, sequence=0, kind="split", symbol=symbol, ratio=ratio)
    )


def _ratio(row: JsonRow) -> float | None:
    """How many units one became, if the activity tells it."""
    details = row.content.get("details")
    rates = JsonRow(details if isinstance(details, dict) else {})
    before, after = rates.number_in("old_rate"), rates.number_in("new_rate")
    match = FROM_TO.search(row.text("description"))
    if match and not (before and after):
        before, after = number_in_text(match[1], column="description"), number_in_text(match[2], column="description")
    return after / before if before and after and after / before > 0 else None


def _remarks(activities: _Activities) -> Iterator[RemarkRow]:
    lonely = sorted({symbol for (symbol, _), quantity in activities.splits.items() if quantity is not None})
    if lonely:
        yield RemarkRow(text=f"A split of {', '.join(lonely)} has one side only and no ratio, so it is not imported")


def _date(row: JsonRow, activities: _Activities, *, hour: str = "16:00") -> datetime:
    text, date = row.text("transaction_time") or row.text("executed_at"), row.text("date")
    return instant_in(text or (f"{date} {hour}" if len(date) == len("2026-06-04") else date), activities.zone)


FORMATS = (
    FileFormat(
        name="alpaca",
        title="Alpaca account activities (JSON)",
        rows="fills",
        recognises=_is_json,
        read=_read_json,
        timezone="America/New_York",
    ),
    FileFormat(
        name="alpaca-csv",
        title="Alpaca account activities (CSV)",
        rows="fills",
        recognises=_is_csv,
        read=_read_csv,
        timezone="America/New_York",
    ),
)
