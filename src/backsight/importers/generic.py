"""Tables of fills or of closed trades that no program in particular wrote.

Columns are matched by common names, without regard to case and punctuation; the caller may name the others. A file that
another format knows is read by that format.
"""

import codecs
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

from backsight.core.errors import Invalid
from backsight.core.orders import BrokerReason, ReportedFill, ReportedKind
from backsight.importers.cells import EMPTY, UnreadableError, file_rows, plain_name
from backsight.importers.files import GZIP
from backsight.importers.formats import (
    FileFormat,
    FileHead,
    FileRow,
    FillRow,
    InstrumentRow,
    LeftOutRow,
    ReadOptions,
    RemarkRow,
    RowKind,
    head_of,
)
from backsight.importers.tables import (
    NOT_AN_OBJECT,
    SAMPLE,
    TIME_OF_DAY,
    Cells,
    DateOrder,
    FileTable,
    Notation,
    NumberedCells,
    ambiguous_numbers,
    column_names,
    date_order,
    has_comma_decimal,
    matched_columns,
    open_table,
)
from backsight.importers.trades import CONTEXT, TradeRow, native_values


def _words(**names: str) -> dict[str, tuple[str, ...]]:
    return {field: tuple(words.split()) for field, words in names.items()}


FILL_FIELDS = _words(
    time=(
        "time datetime timestamp dateutc timeutc datetimeutc executedat executiontime exectime tradetime transacttime "
        "filledat filltime createdat createdtime at transactiontime tradedate executiondate date day ts dt"
    ),
    symbol="symbol ticker instrument market pair contract product security coin asset sid stock",
    side="side direction buysell action tradeside transactiontype tradetype type",
    quantity=(
        "filledqty executedqty fillqty filledquantity executedquantity filledsize lastqty executed filled quantity qty "
        "shares units contracts size sz volume lots amount"
    ),
    price=(
        "fillprice executionprice executedprice filledprice avgfillprice avgtradingprice avgprice averageprice price "
        "tradeprice lastprice px"
    ),
    fee="fee fees commission commissions tradingfee feepaid totalfee feeamount",
    fee_currency="feecurrency feecoin feeasset feeccy commissionasset commissioncurrency feetoken",
    id="id tradeid fillid execid executionid transactionid tid dealid deal matchid",
    order_id="orderid order ordernumber orderno oid",
    kind="kind",
    amount="amount payment cashamount",
    realized_pnl="realizedpnl realisedpnl closedpnl realizedprofit realizedpl pnl profit pl",
    position_key="positionkey positionid",
    multiplier="multiplier contractmultiplier contractsize",
    currency="currency quotecurrency pricecurrency",
    rate="rate fxrate exchangerate",
    ratio="ratio splitratio",
    reason="reason exitreason",
    status="status orderstatus state orderstate",
)
"""Each field of a fill, and the names of columns that hold it; the first that a table has counts.

A table of orders has what was ordered beside what was executed: that comes first.
"""
EXECUTED_QUANTITY = frozenset(FILL_FIELDS["quantity"][:9])
"""Columns that tell how much of an order was executed, whatever became of the rest."""
TRADE_FIELDS = _words(
    symbol="symbol ticker instrument market pair contract",
    direction="direction side positionside tradeside type",
    entry_price="entryprice openprice avgentryprice entry avgentry openrate",
    exit_price="exitprice closeprice avgexitprice exit avgexit closerate",
    pnl="pnl netpnl profit netprofit realizedpnl realisedpnl profitloss pl netpl closedpnl",
    closed_at="closedat closetime exittime exitdate closedate closedtime dateclosed exitdatetime",
    opened_at="openedat opentime entrytime entrydate opendate openedtime dateopened entrydatetime",
    size="size quantity qty shares contracts volume units lots amount",
    fees="fees fee commission commissions",
    strategy_name="strategyname strategy system setup",
    stop_price="stopprice stoploss sl initialstop",
    risk="risk riskamount",
    pnl_r="pnlr rmultiple",
    idempotency_key="idempotencykey id tradeid ticket positionid",
    reflection="reflection notes note comment",
)
OF_FILLS = ("time", "symbol", "quantity", "price")
OF_TRADES = ("symbol", "direction", "entry_price", "exit_price", "closed_at")
"""Fields without which a table has no fills, or no closed trades."""
NATIVE = frozenset(
    [
        "market_context",
        "context_regime",
        "context_atr_d1",
        "confidence",
        "max_adverse_excursion",
        "equity",
        "mode",
        "deployment",
        "position_key",
        "tags",
        "reason",
        "exit_reason",
        "max_favorable_excursion",
        "funding",
        "leverage",
        "context",
    ]
)
"""Arguments of `remember_trade` and columns of `import_trades` that have no other usual names."""
NUMBERS_OF_FILLS = ("quantity", "price", "fee", "amount", "realized_pnl", "multiplier", "rate", "ratio")
NUMBERS_OF_TRADES = ("entry_price", "exit_price", "pnl", "size", "fees", "stop_price", "risk", "pnl_r")
BUYS = [
    "buy",
    "b",
    "bot",
    "bought",
    "long",
    "bid",
    "buytoopen",
    "buytoclose",
    "bto",
    "btc",
    "openlong",
    "closeshort",
    "buytocover",
    "kauf",
    "achat",
    "compra",
    "acquisto",
]
SELLS = [
    "sell",
    "s",
    "sld",
    "sold",
    "short",
    "ask",
    "selltoopen",
    "selltoclose",
    "sto",
    "stc",
    "openshort",
    "closelong",
    "sellshort",
    "verkauf",
    "vente",
    "venta",
    "vendita",
]
SIDES = {**dict.fromkeys(BUYS, 1.0), **dict.fromkeys(SELLS, -1.0)}
KINDS: dict[str, ReportedKind] = {plain_name(kind): kind for kind in get_args(ReportedKind)}
REASONS: dict[str, BrokerReason] = {plain_name(reason): reason for reason in get_args(BrokerReason)}
DIGITS = frozenset("0123456789")
_STATUS = "canceled cancelled rejected expired failed voided inactive new open pending working accepted submitted"
NOT_EXECUTED = frozenset(_words(status=_STATUS)["status"])
"""The status of an order that was not executed."""
ONLY_SIDES = ("side", "direction", "buysell", "tradeside")
"""Columns that hold nothing but sides; others may hold the type of an order."""
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LONGEST_EMPTY = 16
"""A text of this length is never an empty cell."""
EXECUTED = ("trade", "expiry", "assignment", "opening", "asset_transfer")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """A table, where its fields are, and how it writes them."""

    table: FileTable
    places: Mapping[str, int]
    """The place of the column of each field."""
    date: int | None
    """The place of a column of dates beside one of times of the day."""
    notation: Notation
    sample: Sequence[NumberedCells]
    numbers: Sequence[str] = ()
    """The fields that hold numbers."""
    native: frozenset[int] = frozenset()
    """The places of columns that are named as the arguments of `remember_trade`."""

    @property
    def rows(self) -> Iterator[NumberedCells]:
        return chain(self.sample, self.table.rows)

    def texts_at(self, place: int) -> Iterator[str]:
        """The cells of a column in the sample that are not empty."""
        rows = (cells for _, cells in self.sample if len(cells) == len(self.table.names))
        return (str(cells[place]) for cells in rows if not is_empty(cells[place]))

    def texts(self, field: str, rows: Iterable[NumberedCells] | None = None) -> Iterator[str]:
        """The cells of a field, in the sample or in other rows, that are not empty."""
        place = self.places.get(field)
        if place is None:
            return
        for _, cells in self.sample if rows is None else rows:
            if len(cells) == len(self.table.names) and not is_empty(cells[place]):
                yield str(self.with_date(cells, cells[place]) if field == "time" else cells[place])

    @property
    def has_semicolons(self) -> bool:
        """Whether semicolons separate the cells, as programs write where the comma separates decimals."""
        return "semicolon" in self.table.written_as

    @property
    def number_texts(self) -> Iterator[str]:
        """The numbers in the sample as they are written."""
        return (text for field in self.numbers for text in self.texts(field))

    def with_date(self, cells: Cells, time: Any) -> Any:
        """A time of the day with its date, where they are in two columns."""
        return time if self.date is None else f"{cells[self.date]} {time}".strip()

    def cells(self, cells: Cells) -> dict[str, Any]:
        """The cells of a row by field, without the empty ones; `ValueError` if it has another length."""
        if len(cells) != len(self.table.names):
            raise ValueError("another number of cells than the header")
        return {field: cells[place] for field, place in self.places.items() if not is_empty(cells[place])}

    def number(self, values: Mapping[str, Any], field: str) -> float | None:
        """The number of a field; None if the cell is empty."""
        value = values.get(field)
        try:
            return None if value is None else self.notation.number(value)
        except ValueError as error:
            raise ValueError(f"{field} {error}") from None

    @property
    def remarks(self) -> Iterator[RemarkRow]:
        """How the table is understood, in sentences."""
        names = self.table.names
        known = ", ".join(f"{names[place]} as {field}" for field, place in self.places.items())
        yield RemarkRow(text=f"{self.table.written_as}; columns read: {known}.")
        used = {*self.places.values(), self.date, *self.native}
        ignored = [name for place, name in enumerate(names) if place not in used and name != NOT_AN_OBJECT]
        if ignored:
            yield RemarkRow(text=f"Columns not read: {', '.join(ignored[:20])}.")
        if self.notation.comma_decimal:
            yield RemarkRow(text="A comma is the decimal sign.")
        doubtful = next(ambiguous_numbers(self.number_texts, semicolons=self.has_semicolons), None)
        if doubtful is not None:
            number = f"{self.notation.number(doubtful) or 0.0:.10g}"
            text = "No number tells the decimal sign from a thousands separator"
            yield RemarkRow(text=f"{text}: {doubtful} is read as {number}.")
        if self.notation.date_order is not None:
            first = "day" if self.notation.date_order == "dmy" else "month"
            yield RemarkRow(text=f"Dates begin with the {first}.")


def is_empty(cell: Any) -> bool:
    """Whether a cell holds no value.

    >>> [is_empty(cell) for cell in ("", " nan ", None, "0", 0)]
    [True, True, True, False, False]
    """
    if not isinstance(cell, str):
        return cell is None
    if not cell or cell[0] in DIGITS:
        return not cell
    return len(cell) < LONGEST_EMPTY and cell.strip().casefold() in EMPTY


# Recognition.


def is_table_of_fills(head: FileHead, columns: Mapping[str, str] | None = None) -> bool:
    """Whether a file is a table with the columns of fills, and not of closed trades."""
    matched = _matched(head, FILL_FIELDS, columns or {})
    return matched.keys() >= {*OF_FILLS} and not is_table_of_trades(head, columns)


def is_table_of_trades(head: FileHead, columns: Mapping[str, str] | None = None) -> bool:
    """Whether a file is a table with the columns of closed trades."""
    matched = _matched(head, TRADE_FIELDS, columns or {})
    return matched.keys() >= {*OF_TRADES}


def names_arguments(head: FileHead) -> bool:
    """Whether the columns of a table of trades, in a plain file, are named as the arguments of `remember_trade`."""
    is_plain = not head.start.startswith((GZIP, *UTF_16)) and head.text.lstrip()[:1] != "["
    return is_plain and {*OF_TRADES} <= {*column_names(head)}


def missing_columns(head: FileHead, kinds: Collection[RowKind]) -> str | None:
    """Which fields a table has no column for, in words; None if the file is no table with some of them."""
    names = column_names(head)
    sentences: list[tuple[int, str]] = []
    for kind in kinds:
        fields, required = (FILL_FIELDS, OF_FILLS) if kind == "fills" else (TRADE_FIELDS, OF_TRADES)
        matched = matched_columns(names, fields, {}) if names else {}
        missing = [field for field in required if field not in matched]
        if matched and missing:
            what = "fills" if kind == "fills" else "closed trades"
            sentences.append((len(missing), f"as a table of {what} it has no column for {', '.join(missing)}"))
    return f"{min(sentences)[1]} among {', '.join(names[:30])}" if sentences else None


def check_given_columns(head: FileHead, columns: Mapping[str, str], rows: RowKind) -> None:
    """Say which given columns a table does not have, or which fields are left without a column."""
    fields, required = (FILL_FIELDS, OF_FILLS) if rows == "fills" else (TRADE_FIELDS, OF_TRADES)
    names = column_names(head)
    _check_columns(head.path, names, matched_columns(names, fields, _fields(columns)) if names else required, required)


def _check_columns(path: Path, names: Sequence[str], matched: Container[str], required: Sequence[str]) -> None:
    missing = [field for field in required if field not in matched]
    if missing:
        message = f"{path} has no column for {', '.join(missing)}"
        raise Invalid(f"{message}; name them among its columns {', '.join(names[:30])}", field="columns")


def _matched(head: FileHead, fields: Mapping[str, Sequence[str]], columns: Mapping[str, str]) -> dict[str, str]:
    """The columns of the fields that a file has; empty if it is no table, or has other columns than those given."""
    names = column_names(head)
    try:
        return matched_columns(names, fields, _fields(columns)) if names else {}
    except Invalid:
        return {}


def _fields(columns: Mapping[str, str]) -> dict[str, str]:
    """The given fields by column, without the order of dates that may follow them."""
    return {column: field.partition(":")[0] for column, field in columns.items()}


# Layout.


def _layout(
    path: Path,
    options: ReadOptions,
    fields: Mapping[str, Sequence[str]],
    *,
    numbers: Sequence[str],
    times: Sequence[str],
) -> _Layout:
    """Find out where the fields of a table are, and how it writes them; `Invalid` if its first rows cannot be read."""
    try:
        return _found_layout(path, options, fields, numbers=numbers, times=times)
    except UnreadableError as error:
        message = f"{path} line {error.number or 1}: {error.reason}"
        raise Invalid(f"{message}; export the file again, or repair it", field="path") from None


def _found_layout(
    path: Path,
    options: ReadOptions,
    fields: Mapping[str, Sequence[str]],
    *,
    numbers: Sequence[str],
    times: Sequence[str],
) -> _Layout:
    table = open_table(path, head_of(path))
    matched = matched_columns(table.names, fields, _fields(options.columns))
    sample = list(islice(table.rows, SAMPLE))
    places = {field: table.names.index(column) for field, column in matched.items()}
    layout = _Layout(table=table, places=places, date=None, notation=Notation(), sample=sample, numbers=numbers)
    layout = replace(layout, date=_date_column(layout))
    commas = has_comma_decimal(layout.number_texts, semicolons=layout.has_semicolons)
    order = _given_order(options.columns) or date_order(text for field in times for text in layout.texts(field))
    if order == "unknown":
        rows = open_table(path, head_of(path)).rows  # the first rows do not tell, so all of them are asked
        order = date_order(text for field in times[:1] for text in layout.texts(field, rows))
    if order == "unknown":
        message = f"{path}: no date tells whether the day or the month comes first"
        remedy = "give the order with the field of the column, as in COLUMN=time:dmy or COLUMN=time:mdy"
        raise Invalid(f"{message}; {remedy}", field="columns")
    return replace(layout, notation=Notation(commas, order))


def _given_order(columns: Mapping[str, str]) -> DateOrder | None:
    for field in columns.values():
        order = field.partition(":")[2]
        if order not in ("", "dmy", "mdy"):
            raise Invalid(f"{order!r} is not an order of dates; give dmy or mdy", field="columns")
        if order:
            return "dmy" if order == "dmy" else "mdy"
    return None


def _date_column(layout: _Layout) -> int | None:
    """The place of a column of dates, if the column of times holds only times of the day."""
    texts = list(islice(layout.texts("time"), 20))
    if not texts or not all(TIME_OF_DAY.fullmatch(text.strip()) for text in texts):
        return None
    dates = (place for place, name in enumerate(layout.table.names) if plain_name(name) in ("date", "day", "tradedate"))
    return next(dates, None)


# Fills.


def read_fills(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    """The fills of a table."""
    layout = _layout(path, options, FILL_FIELDS, numbers=NUMBERS_OF_FILLS, times=("time",))
    _check_columns(path, layout.table.names, layout.places, OF_FILLS)
    layout = _with_side(layout, options)
    reader = _FillReader(layout, options)
    yield from layout.remarks
    yield from reader.remarks
    yield from file_rows(layout.rows, reader.read)


def _with_side(layout: _Layout, options: ReadOptions) -> _Layout:
    """The layout with the column of the sides: the given one, else the first that holds some.

    A column that only looks like it by its name is not read.
    """
    if "side" in _fields(options.columns).values():
        return layout
    names = [plain_name(name) for name in layout.table.names]
    taken = {place for field, place in layout.places.items() if field != "side"}
    places = [names.index(word) for word in FILL_FIELDS["side"] if word in names and names.index(word) not in taken]
    words = {place: {plain_name(text) for text in layout.texts_at(place)} for place in places}
    sides = [place for place in places if words[place] & (SIDES.keys() | KINDS.keys())]
    sides += [place for place in places if words[place] and names[place] in ONLY_SIDES]
    chosen = {"side": sides[0]} if sides else {}
    others = {field: place for field, place in layout.places.items() if field != "side" or chosen}
    return replace(layout, places=others | chosen)


class _FillReader:
    """Makes fills of the rows of a table."""

    def __init__(self, layout: _Layout, options: ReadOptions) -> None:
        self._layout, self._zone = layout, options.zone
        self.remarks: list[RemarkRow] = []
        self._has_side = "side" in layout.places
        fees = [number for number in self._numbers_of("fee") if number]
        self._fee_sign = -1.0 if fees and max(fees) < 0 else 1.0
        if self._fee_sign < 0:
            self.remarks.append(RemarkRow(text="Fees are written as negative numbers, and are taken as paid."))
        elif any(fee < 0 for fee in fees):
            self.remarks.append(RemarkRow(text="Negative fees are taken as rebates, positive ones as paid."))
        if "id" not in layout.places:
            self.remarks.append(RemarkRow(text="No column holds ids, so ids are derived from the content of the rows."))
        if not self._has_side and not any(number < 0 for number in self._numbers_of("quantity")):
            message = "No column holds sides and no quantity is negative, so every row is taken for a purchase"
            self.remarks.append(RemarkRow(text=f"{message}: give the column of the sides as COLUMN=side."))
        self._instruments: dict[str, tuple[float | None, str | None]] = {}
        place = layout.places["quantity"]
        self._tells_executed = plain_name(layout.table.names[place]) in EXECUTED_QUANTITY

    def _numbers_of(self, field: str) -> Iterator[float]:
        """The numbers of a field in the first rows."""
        numbers = (_number_or_none(self._layout.notation, text) for text in self._layout.texts(field))
        return (number for number in numbers if number is not None)

    def read(self, number: int, cells: Cells) -> Iterator[FileRow]:
        """The fill of a row, after what its row tells of its symbol; `ValueError` if the row cannot be read."""
        layout = self._layout
        values = layout.cells(cells)
        if "time" not in values:
            raise ValueError("time is missing")
        try:
            at = layout.notation.instant(layout.with_date(cells, values["time"]), zone=self._zone)
        except ValueError as error:
            raise ValueError(f"time {error}") from None
        side, kind = self._side_and_kind(values)
        symbol = _text(values, "symbol") or ""
        if not symbol and kind != "transfer":
            raise ValueError("symbol is missing")
        yield from self._instrument(symbol, values)
        is_executed = kind in EXECUTED
        numbers = {field: layout.number(values, field) for field in NUMBERS_OF_FILLS if field in values}
        quantity = (numbers.get("quantity") or 0.0) if is_executed else 0.0
        if "status" in values and kind == "trade" and not (self._tells_executed and quantity):
            status = plain_name(str(values["status"]))
            if status in NOT_EXECUTED:
                yield LeftOutRow(number=number, reason=f"an order that was not executed: {status}")
                return
        payment = numbers.get("amount")
        fill = ReportedFill(
            id=_text(values, "id") or "",
            at=at,
            sequence=0,
            kind=kind,
            position_key=_text(values, "position_key") or symbol,
            symbol=symbol,
            quantity=quantity if side is None else side * abs(quantity),
            price=numbers.get("price") if is_executed else None,
            ratio=numbers.get("ratio"),
            fee=self._fee_sign * (numbers.get("fee") or 0.0) + 0.0,
            fee_currency=_text(values, "fee_currency"),
            rate=numbers.get("rate"),
            order_id=_text(values, "order_id"),
            amount=0.0 if is_executed else (numbers.get("quantity") or 0.0) if payment is None else payment,
            realized_pnl=numbers.get("realized_pnl"),
            reason=REASONS.get(plain_name(str(values["reason"]))) if "reason" in values else None,
        )
        yield FillRow(number=number, fill=fill)

    def _side_and_kind(self, values: Mapping[str, Any]) -> tuple[float | None, ReportedKind]:
        """The sign of the quantity, None if the quantity has its own; and the kind of the fill."""
        side: float | None = None
        kind: ReportedKind = "trade"
        if self._has_side and ("side" in values or "kind" not in values):  # a payment has no side
            side, of_side = _side(str(values.get("side", "")))
            if side is None and of_side is None:
                raise ValueError("side is neither buy nor sell")
            kind = of_side or "trade"
        if "kind" in values:
            word = plain_name(str(values["kind"]))
            if word not in KINDS:
                raise ValueError("kind is not known")
            kind = KINDS[word]
        return side, kind

    def _instrument(self, symbol: str, values: Mapping[str, Any]) -> Iterator[InstrumentRow]:
        """What a row tells of its symbol, if it has not been told; one symbol has one multiplier and one currency."""
        multiplier, currency = self._layout.number(values, "multiplier"), _text(values, "currency")
        if not symbol or (multiplier is None and currency is None):
            return
        former = self._instruments.get(symbol, (None, None))
        for name, value, earlier in (("multiplier", multiplier, former[0]), ("currency", currency, former[1])):
            if None not in (value, earlier) and value != earlier:
                raise ValueError(f"{name} is not that of an earlier row of its symbol")
        known = former[0] if multiplier is None else multiplier, former[1] if currency is None else currency
        if known != former:
            self._instruments[symbol] = known
            yield InstrumentRow(symbol=symbol, multiplier=known[0], currency=known[1])


def _text(values: Mapping[str, Any], field: str) -> str | None:
    """The text of a field; None if the cell is empty."""
    value = values.get(field)
    return None if value is None else str(value).strip()


@lru_cache(maxsize=256)
def _side(text: str) -> tuple[float | None, ReportedKind | None]:
    """The sign of a side, or the kind of fill that is written in its place; cached, since few words come again."""
    word = plain_name(text)
    return SIDES.get(word), KINDS.get(word)


def _number_or_none(notation: Notation, text: str) -> float | None:
    try:
        return notation.number(text)
    except ValueError:
        return None


# Closed trades.


def read_trades(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    """The closed trades of a table."""
    layout = _layout(path, options, TRADE_FIELDS, numbers=NUMBERS_OF_TRADES, times=("closed_at", "opened_at"))
    native = frozenset(place for place, name in enumerate(layout.table.names) if _is_native(name))
    layout = replace(layout, native=native - {*layout.places.values()})
    yield from layout.remarks
    yield from file_rows(layout.rows, lambda number, cells: [_trade(layout, options, number, cells)])


def _trade(layout: _Layout, options: ReadOptions, number: int, cells: Cells) -> TradeRow:
    values = layout.cells(cells)
    for field in NUMBERS_OF_TRADES:
        if field in values:
            values[field] = layout.number(values, field)
    values |= _native_values(layout, cells)
    for field in ("opened_at", "closed_at"):
        if field in values:
            try:
                values[field] = layout.notation.instant(values[field], zone=options.zone)
            except ValueError as error:
                raise ValueError(f"{field} {error}") from None
    side = SIDES.get(plain_name(str(values.get("direction", ""))))
    if side is None:
        raise ValueError("direction is neither long nor short")
    values["direction"] = "long" if side > 0 else "short"
    if values.get("size") is not None:
        values["size"] = abs(values["size"])
    return TradeRow(number, values)


def _native_values(layout: _Layout, cells: Cells) -> dict[str, Any]:
    """The values of columns that are named as the arguments of `remember_trade` and as nothing else."""
    return native_values(
        (layout.table.names[place], cells[place]) for place in layout.native if not is_empty(cells[place])
    )


def _is_native(name: str) -> bool:
    return name in NATIVE or name.startswith(CONTEXT)


FORMATS = (
    FileFormat(
        name="fills-table",
        title="a table of fills (CSV, JSON or Parquet)",
        rows="fills",
        recognises=is_table_of_fills,
        read=read_fills,
        generic=True,
    ),
    FileFormat(
        name="trades-table",
        title="a table of closed trades (CSV, JSON or Parquet)",
        rows="trades",
        recognises=is_table_of_trades,
        read=read_trades,
        generic=True,
    ),
)
