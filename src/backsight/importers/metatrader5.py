"""MetaTrader 5: the history report of a terminal, or of its strategy tester, as HTML (often UTF-16) or XLSX.

A report (Toolbox, History, Report) is one table: a preamble with the account, `12345 (USD, Broker-Demo, demo, Hedge)`,
then positions, orders and deals. Its columns are described in the terminal's help ("Trade reports"):

    deals       time, deal, symbol, type, direction, volume, price, order, [cost], commission, [fee], swap, profit,
                balance, comment
    positions   time, position, symbol, type, volume, price, stop, target, time, price, commission, swap, profit

Headers are written in the language of the terminal, words like `buy` and `in` are not, so rows are known by their
content. Deals become fills, balance operations transfers; orders and positions are the same facts again.

- **What a lot is worth** is not in a report, but the profit of the broker is: profit / (price difference × volume) is
  the point value of a deal. If one round value explains every deal of a symbol, it is the multiplier. Otherwise profits
  were converted into the currency of the account, and each fill carries its rate, so that its money agrees with the
  broker's. A lot of a pair of currencies is 100,000 units.
- **On a hedging account** a deal does not name its position. A deal that opens has the number of its position as order;
  a deal that closes is found in the table of positions by time, price and profit, else by the profit it must have had.
- The strategy tester does not name the account. It hedges if a deal enters against an open position: on a netting
  account such a deal would close.
- A position that was entered before the report begins is taken from the table of positions.
- Times are of the broker's server, without an offset: give its time zone.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from backsight.core.errors import Invalid
from backsight.core.instruments import NATIONAL_CURRENCIES
from backsight.core.orders import BrokerReason, ReportedFill, ReportedKind
from backsight.importers.archives import ZIP
from backsight.importers.cells import UnreadableError
from backsight.importers.files import instant_of, number_of
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
from backsight.importers.report_tables import beginning_of_xlsx, html_rows, xlsx_rows

SIDES: Mapping[str, int] = {"buy": 1, "sell": -1}
DIRECTIONS = ("in", "out", "in/out", "out by")
TRANSFERS = ("balance", "credit", "bonus", "correction")
CHARGES = ("charge", "commission", "interest", "tax", "agent")
"""How types of operations begin that charge or pay money, like `commission daily`."""
ORDERS = ("buy", "sell", "close by")
"""How types of orders and positions begin, like `buy stop limit`."""
TITLES = ("Trade History Report", "Strategy Tester Report")
KINDS, BOOKS = ("real", "demo", "contest"), ("Hedge", "Netting", "Exchange")
MONEY_COLUMNS = {
    13: ("commission", "swap", "profit", "balance", "comment"),
    14: ("commission", "fee", "swap", "profit", "balance", "comment"),
    15: ("cost", "commission", "fee", "swap", "profit", "balance", "comment"),
}
"""The columns of deals after the order, by the number of all columns."""
LOT = 100_000.0
"""Units of one lot of a pair of currencies."""
CENT = 0.0101
"""Profits are rounded to cents."""
ROUND = (1.0, 2.0, 2.5, 5.0)
"""Sizes of contracts are these times a power of ten."""
TELLING = 1.0
"""A profit below this is too rounded to tell a point value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deal:
    """A deal of the report; side is 1 for bought and -1 for sold."""

    number: int
    id: str
    at: datetime
    symbol: str
    side: int
    direction: str
    volume: float
    price: float
    order: str
    fee: float
    swap: float
    profit: float
    comment: str
    position_key: str = ""
    cost: float | None = None
    """The average price of what it closed."""
    closed_volume: float = 0.0

    @property
    def points(self) -> float:
        """Price difference × volume of what it closed, with the sign of the profit."""
        return 0.0 if self.cost is None else (self.cost - self.price) * self.closed_volume * self.side


@dataclass(frozen=True, slots=True, kw_only=True)
class _Payment:
    """Money that was paid in, out, charged or credited."""

    number: int
    id: str
    at: datetime
    kind: ReportedKind
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    """A row of the table of positions."""

    id: str
    symbol: str
    side: int
    volume: float
    opened_at: datetime
    open_price: float
    closed_at: datetime
    close_price: float
    profit: float


@dataclass(slots=True)
class _Open:
    """A position while the deals are gone through."""

    key: str
    side: int
    volume: float
    cost: float


@dataclass(slots=True)
class _Report:
    """What was read of a report."""

    currency: str | None = None
    hedging: bool = False
    deals: list[_Deal] = field(default_factory=list)
    payments: list[_Payment] = field(default_factory=list)
    closed: dict[tuple[str, datetime], list[_Closed]] = field(default_factory=dict)
    """By symbol and time of the close."""
    holdings: list[FillRow] = field(default_factory=list)
    left_out: list[LeftOutRow] = field(default_factory=list)


def _recognises(head: FileHead) -> bool:
    if head.start.startswith(ZIP):
        return _is_report(beginning_of_xlsx(head.path))
    return "<table" in head.text.lower() and _is_report(head.text)


def _is_report(text: str) -> bool:
    """Whether the title or the account of a report is in a text; the account is written alike in every language."""
    plain = text.replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ")
    accounts = (f", {kind}, {book})" for kind in KINDS for book in BOOKS)
    return any(title in plain for title in TITLES) or any(account in plain for account in accounts)


def _read(path: Path, options: ReadOptions) -> Iterator[FileRow]:
    with path.open("rb") as file:
        is_workbook = file.read(4) == ZIP
    report = _report(xlsx_rows(path) if is_workbook else html_rows(path), options)
    if None not in (report.currency, options.currency) and report.currency != options.currency:
        message = f"the account of {path} is in {report.currency}, not in {options.currency}"
        raise Invalid(f"{message}; give {report.currency} as the currency of a new account", field="currency")
    if report.currency is None:
        report.hedging = _enters_against(report.deals)
    deals = [deal for deal in _with_positions(report) if deal.position_key]
    yield from report.left_out
    if not deals and not report.payments:
        return
    yield RemarkRow(text=f"Times of the report are of the broker's server, and are read as {options.zone}.")
    if report.currency is not None:
        yield RemarkRow(text=f"The account of the report is in {report.currency}.")
    yield from _fill_rows(report, deals)


FORMATS = (
    FileFormat(
        name="metatrader5",
        title="MetaTrader 5 history or tester report (HTML or XLSX)",
        rows="fills",
        recognises=_recognises,
        read=_read,
    ),
)


def _report(rows: Iterator[tuple[int, list[str]]], options: ReadOptions) -> _Report:
    """Everything of a report; a row of deals that cannot be read is left out."""
    report, columns = _Report(), 0
    number = 0
    try:
        for number, cells in rows:
            _read_account(cells, report)
            if len(cells) >= 12 and not cells[1].isdecimal() and all(cells[:8]):
                columns = sum(1 for cell in cells if cell)
            try:
                _read_row(number, cells, report, columns, options)
            except ValueError as error:
                report.left_out.append(LeftOutRow(number=number, reason=str(error), broken=True))
    except UnreadableError as error:
        report.left_out.append(LeftOutRow(number=error.number or number + 1, reason=error.reason, broken=True))
    return report


def _read_account(cells: list[str], report: _Report) -> None:
    for cell in cells:
        inside = cell.partition("(")[2].rpartition(")")[0].split(", ")
        if report.currency is None and len(inside) >= 3 and any(part in KINDS for part in inside[2:]):
            report.currency, report.hedging = inside[0], inside[-1] == "Hedge"


def _read_row(number: int, cells: list[str], report: _Report, columns: int, options: ReadOptions) -> None:
    """Read a deal or a closed position; headers, sums and orders tell nothing more."""
    if len(cells) < 12 or not (_is_time(cells[0]) or cells[1].isdecimal()):
        return
    if not cells[1].isdecimal():
        raise ValueError("the number of a deal, an order or a position is not a number")
    kind, direction = cells[3].casefold(), cells[4].casefold()
    if direction in DIRECTIONS or kind.startswith((*TRANSFERS, *CHARGES)):
        _read_deal(number, cells, report, columns, options)
    elif not kind.startswith(ORDERS):
        report.left_out.append(_of_unknown_type(number, kind))
    elif number_of(direction.partition("/")[0].replace(" ", "")) is None:
        raise ValueError("the direction of a deal is not known, or the volume of an order or a position is missing")
    elif kind in SIDES and _is_position(cells):
        row = _closed(cells, options)
        report.closed.setdefault((row.symbol, row.closed_at), []).append(row)


def _is_time(cell: str) -> bool:
    return cell[:4].isdecimal() and cell[4:5] == "."


def _of_unknown_type(number: int, kind: str) -> LeftOutRow:
    return LeftOutRow(number=number, reason=f"a deal of the type {kind[:40]!r} is not known")


def _is_position(cells: list[str]) -> bool:
    """Whether a row is of a closed position: an order has no number after its second time, an open position no time."""
    return len(cells) >= 13 and _is_time(cells[8]) and number_of(cells[9].replace(" ", "")) is not None


def _read_deal(number: int, cells: list[str], report: _Report, columns: int, options: ReadOptions) -> None:
    names = MONEY_COLUMNS.get(columns) or MONEY_COLUMNS[min(15, max(13, len(cells)))]
    money = dict(zip(names, cells[8:], strict=False))
    if "profit" not in money or _lacks_a_cell(cells, columns):
        raise ValueError("another number of cells than the header")
    at, kind = _instant(cells[0], options), cells[3].casefold()
    profit = _number(money["profit"], "profit")
    paid = -_number(money["commission"], "commission") - _number(money.get("fee", ""), "fee")
    swap = _number(money["swap"], "swap")
    if kind in SIDES:
        report.deals.append(
            _Deal(
                number=number,
                id=cells[1],
                at=at,
                symbol=_required(cells[2], "symbol"),
                side=SIDES[kind],
                direction=cells[4].casefold(),
                volume=_positive(cells[5], "volume"),
                price=_positive(cells[6], "price"),
                order=cells[7],
                fee=paid,
                swap=swap,
                profit=profit,
                comment=money.get("comment", ""),
            )
        )
    elif kind.startswith(TRANSFERS):
        report.payments.append(_Payment(number=number, id=cells[1], at=at, kind="transfer", amount=profit))
    elif kind.startswith(CHARGES):
        amount = profit + swap - paid
        report.payments.append(_Payment(number=number, id=cells[1], at=at, kind="fee", amount=amount))
    else:
        report.left_out.append(_of_unknown_type(number, kind))


def _lacks_a_cell(cells: list[str], columns: int) -> bool:
    """Whether a cell is missing, so that others are in the wrong column; the last one, the comment, may be missing."""
    is_order = cells[7] == "" or cells[7].isdecimal()
    is_short = columns in MONEY_COLUMNS and len(cells) < columns
    return not is_order or (is_short and number_of(cells[-1].replace(" ", "")) is None)


def _closed(cells: list[str], options: ReadOptions) -> _Closed:
    return _Closed(
        id=cells[1],
        symbol=cells[2],
        side=SIDES[cells[3].casefold()],
        volume=_positive(cells[4].partition("/")[0], "volume"),
        opened_at=_instant(cells[0], options),
        open_price=_positive(cells[5], "price"),
        closed_at=_instant(cells[8], options),
        close_price=_positive(cells[9], "price"),
        profit=_number(cells[12], "profit"),
    )


def _enters_against(deals: Sequence[_Deal]) -> bool:
    """Whether a deal enters against an open position, as it can only on a hedging account."""
    volumes: dict[str, float] = {}
    for deal in deals:
        before = volumes.get(deal.symbol, 0.0)
        if deal.direction == "in" and before * deal.side < -1e-9:
            return True
        volumes[deal.symbol] = before + deal.side * deal.volume
    return False


def _with_positions(report: _Report) -> Iterator[_Deal]:
    """The deals with their positions and what they closed; one that closes an unknown position is left out."""
    books: dict[str, list[_Open]] = {}
    values: dict[str, float] = {}
    for deal in report.deals:
        book = books.setdefault(deal.symbol, [])
        if deal.direction == "in":
            yield replace(deal, position_key=_entered(deal, book, report.hedging).key)
            continue
        position = _position_closed(deal, book, report, values.get(deal.symbol))
        if position is None:
            reason = "it closes a position that was entered before the report begins"
            report.left_out.append(LeftOutRow(number=deal.number, reason=reason))
            continue
        closing = min(deal.volume, position.volume)
        closed = replace(deal, position_key=position.key, cost=position.cost, closed_volume=closing)
        position.volume -= closing
        if position.volume <= 1e-9:
            book.remove(position)
        if deal.volume - closing > 1e-9:
            book.append(_Open(position.key, deal.side, deal.volume - closing, deal.price))
        if abs(deal.profit) >= TELLING and closed.points:
            values[deal.symbol] = deal.profit / closed.points
        yield closed


def _entered(deal: _Deal, book: list[_Open], hedging: bool) -> _Open:
    """The position that a deal opened or added to."""
    key = deal.order if hedging else deal.symbol
    position = next((each for each in book if each.key == key), None)
    if position is None:
        position = _Open(key, deal.side, 0.0, deal.price)
        book.append(position)
    total = position.volume + deal.volume
    position.cost = (position.cost * position.volume + deal.price * deal.volume) / total
    position.volume = total
    return position


def _position_closed(deal: _Deal, book: list[_Open], report: _Report, value: float | None) -> _Open | None:
    """The position that a deal closes, or a part of; None if it is not known."""
    against = [each for each in book if each.side == -deal.side]
    if not report.hedging:
        return against[0] if against else _entered_before(deal, book, report)
    rows = _closes(deal, report)
    exact = [row for row in rows if abs(row.profit - deal.profit) < CENT] or rows
    keys = {row.id for row in exact}
    listed = [each for each in against if each.key in keys]
    enough = listed or [each for each in against if each.volume >= deal.volume - 1e-9]
    if not enough:
        return _entered_before(deal, book, report)
    if len(enough) == 1 or value is None:
        return enough[0]
    return min(enough, key=lambda each: abs((each.cost - deal.price) * deal.volume * deal.side * value - deal.profit))


def _closes(deal: _Deal, report: _Report) -> list[_Closed]:
    """The rows of positions that a deal may have closed: same symbol, time and price, other side."""
    rows = report.closed.get((deal.symbol, deal.at), [])
    same_price = (row for row in rows if math.isclose(row.close_price, deal.price, rel_tol=1e-9))
    return [row for row in same_price if row.side == -deal.side]


def _entered_before(deal: _Deal, book: list[_Open], report: _Report) -> _Open | None:
    """A position that is only in the table of positions, as its fills are older than the report."""
    used = {row.fill.position_key for row in report.holdings}
    first = report.deals[0].at
    for row in _closes(deal, report):
        key = row.id if report.hedging else row.symbol
        if row.opened_at < first and key not in used:
            position = _Open(key, row.side, max(row.volume, deal.volume), row.open_price)
            book.append(position)
            fill = ReportedFill(
                id=f"{row.id}:holding",
                at=row.opened_at,
                sequence=0,
                kind="holding",
                position_key=key,
                symbol=row.symbol,
                quantity=row.side * position.volume,
                price=row.open_price,
            )
            report.holdings.append(FillRow(number=deal.number, fill=fill))
            return position
    return None


def _fill_rows(report: _Report, deals: Sequence[_Deal]) -> Iterator[FileRow]:
    """Instruments, holdings, then deals and payments in the order of time."""
    values = {symbol: _PointValues(symbol, own, report.currency) for symbol, own in _by_symbol(deals).items()}
    for value in values.values():
        yield from value.rows()
    for row in report.holdings:
        rate = values[row.fill.symbol].rate_of(row.fill.position_key, row.fill.at)
        yield replace(row, fill=replace(row.fill, rate=rate))
    last, sequence = None, 0
    both: list[_Deal | _Payment] = [*deals, *report.payments]
    for each in sorted(both, key=lambda each: each.at):
        last, sequence = each.at, sequence + 2 if each.at == last else 0
        if isinstance(each, _Payment):
            yield FillRow(number=each.number, fill=_payment(each, sequence))
        else:
            yield from _rows_of_deal(each, sequence, values[each.symbol])


def _payment(payment: _Payment, sequence: int) -> ReportedFill:
    fee, amount = (-payment.amount, 0.0) if payment.kind == "fee" else (0.0, payment.amount)
    return ReportedFill(id=payment.id, at=payment.at, sequence=sequence, kind=payment.kind, fee=fee, amount=amount)


def _rows_of_deal(deal: _Deal, sequence: int, values: "_PointValues") -> Iterable[FileRow]:
    closes = deal.cost is not None
    fill = ReportedFill(
        id=deal.id,
        at=deal.at,
        sequence=sequence + 1,
        kind="trade",
        position_key=deal.position_key,
        symbol=deal.symbol,
        quantity=deal.side * deal.volume,
        price=deal.price,
        fee=deal.fee,
        rate=values.rate_of(deal.position_key, deal.at, closing=deal.id),
        order_id=deal.order or None,
        realized_pnl=deal.profit if closes else None,
        reason=_reason(deal.comment) if closes else None,
    )
    if deal.swap:
        swap = replace(
            fill,
            id=f"{deal.id}:swap",
            sequence=sequence,
            kind="funding",
            quantity=0.0,
            price=None,
            fee=0.0,
            rate=None,
            amount=deal.swap,
            realized_pnl=None,
            reason=None,
        )
        yield FillRow(number=deal.number, fill=swap)
    yield FillRow(number=deal.number, fill=fill)


def _reason(comment: str) -> BrokerReason | None:
    """Why the broker closed: the comment of such a deal begins with `[sl`, `[tp` or `[so`."""
    reasons: Mapping[str, BrokerReason] = {"[sl": "stop_loss", "[tp": "take_profit", "[so": "liquidated"}
    return reasons.get(comment.casefold()[:3])


class _PointValues:
    """What a lot of a symbol earns for one point of price, as the profits of the broker tell."""

    def __init__(self, symbol: str, deals: Sequence[_Deal], currency: str | None) -> None:
        self.symbol = symbol
        self.quote = _quote(symbol)
        self.lot = LOT if self.quote else 1.0
        closing = [deal for deal in deals if deal.points]
        telling = [deal for deal in closing if abs(deal.profit) >= TELLING]
        self._by_deal = {deal.id: deal.profit / deal.points for deal in telling}
        self._by_key: dict[str, list[tuple[datetime, float]]] = {}
        for deal in telling:
            self._by_key.setdefault(deal.position_key, []).append((deal.at, self._by_deal[deal.id]))
        self._times = [deal.at for deal in telling]
        self._values = list(self._by_deal.values())
        converted = None not in (self.quote, currency) and self.quote != currency
        self.constant = None if converted else _constant(closing, telling)

    def rows(self) -> Iterator[FileRow]:
        """The instrument, or a remark if nothing tells what a lot is worth."""
        if self.quote is not None:
            yield InstrumentRow(symbol=self.symbol, kind="fx", multiplier=self.constant or LOT, currency=self.quote)
        elif self.constant is not None:
            yield InstrumentRow(symbol=self.symbol, multiplier=self.constant)
        elif not self._values:
            text = f"Nothing in the report tells what a lot of {self.symbol} is worth, so it counts as one unit."
            yield RemarkRow(text=f"{text} Save its instrument with the multiplier if it is worth more.")

    def rate_of(self, position_key: str, at: datetime, *, closing: str = "") -> float | None:
        """The rate of a fill: what its profit says, else the next close of its position, else the last one before."""
        if self.constant is not None or not self._values:
            return None
        value = self._by_deal.get(closing)
        if value is None:
            closes = self._by_key.get(position_key, [])
            place = bisect_left(closes, (at, 0.0))
            before = self._values[max(0, bisect_right(self._times, at) - 1)]
            value = closes[place][1] if place < len(closes) else before
        return value / self.lot if value > 0 else None


def _constant(closing: Sequence[_Deal], telling: Sequence[_Deal]) -> float | None:
    """The round point value that explains every profit; None if there is none."""
    if not telling:
        return None
    best = max(telling, key=lambda deal: abs(deal.profit))
    value = float(f"{best.profit / best.points:.3g}")
    if value <= 0 or value / 10 ** math.floor(math.log10(value)) not in ROUND:
        return None
    explained = (abs(deal.profit - value * deal.points) <= CENT for deal in closing)
    return value if all(explained) else None


def _by_symbol(deals: Sequence[_Deal]) -> dict[str, list[_Deal]]:
    by_symbol: dict[str, list[_Deal]] = {}
    for deal in deals:
        by_symbol.setdefault(deal.symbol, []).append(deal)
    return by_symbol


def _quote(symbol: str) -> str | None:
    """The currency in which a pair of currencies is priced; None if a symbol is no such pair. Brokers add suffixes.

    >>> _quote("EURUSD"), _quote("USDJPY.m"), _quote("XAUUSD"), _quote("US30")
    ('USD', 'JPY', None, None)
    """
    base, quote = symbol[:3].upper(), symbol[3:6].upper()
    return quote if base in NATIONAL_CURRENCIES and quote in NATIONAL_CURRENCIES else None


def _instant(text: str, options: ReadOptions) -> datetime:
    try:
        return instant_of(text[:10].replace(".", "-") + text[10:], zone=options.zone)
    except ValueError:
        raise ValueError("time is not a time") from None


def _number(text: str, column: str) -> float:
    """A number with spaces between thousands and after its sign; an empty cell is 0.

    >>> _number("- 1 234.50", "profit"), _number("", "swap")
    (-1234.5, 0.0)
    """
    plain = text.replace(" ", "")
    number = number_of(plain) if plain else 0.0
    if number is None or not math.isfinite(number):
        raise ValueError(f"{column} is not a number")
    return number


def _positive(text: str, column: str) -> float:
    number = _number(text, column)
    if number <= 0:
        raise ValueError(f"{column} is not above 0")
    return number


def _required(text: str, column: str) -> str:
    if not text:
        raise ValueError(f"{column} is missing")
    return text
