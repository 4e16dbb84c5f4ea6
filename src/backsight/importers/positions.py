"""Position logs of agents: the holdings after each step, what each step changed, and where a log contradicts itself.

A row is `{"date", "id", "this_action": {"action", "symbol", "amount"}, "positions": {SYMBOL: quantity, "CASH": cash}}`.
The holdings are the facts; the action is only what the agent says it did. Nothing is corrected: each contradiction is
reported with its line, as `Dirt`, and the row stays.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args

from backsight.core.errors import Invalid
from backsight.core.market import Bar
from backsight.importers.bars import Opening
from backsight.importers.files import instant_of, json_lines, number_of, zone_named

CASH = "CASH"
QUANTITY_TOLERANCE = 1e-9
"""Quantities are equal if they differ by at most this share of the larger one; a smaller holding is flat."""
CASH_TOLERANCE = 1e-10
"""Cash is unchanged if it differs by at most this share of the larger balance: the rounding of doubles."""
PRICE_TOLERANCE = 1e-6
"""Prices are equal if they differ by at most this share; logs round cash to four decimals."""

Transition = Literal["open", "close", "flip", "addition", "reduction"]
DirtKind = Literal[
    "repeated_id",
    "time_backwards",
    "unknown_action",
    "no_row_before",
    "not_the_action",
    "action_without_change",
    "several_symbols",
    "cash_without_quantity",
    "price_not_positive",
    "price_not_stated",
    "no_bar",
    "price_outside_bar",
    "price_off_open",
]
DIRT: tuple[DirtKind, ...] = get_args(DirtKind)

_SIGNS: Mapping[str, int] = {"buy": 1, "buy_crypto": 1, "sell": -1, "sell_crypto": -1}
_IDLE = ("no_trade", "hold", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What the agent says it did."""

    action: str
    symbol: str
    amount: float
    price: float | None = None
    """The stated price; few rows have one."""

    @property
    def is_idle(self) -> bool:
        return self.action in _IDLE

    @property
    def quantity(self) -> float | None:
        """The signed quantity of the action; None if its word is not known."""
        sign = _SIGNS.get(self.action)
        return None if sign is None else sign * self.amount

    def __str__(self) -> str:
        return f"{self.action} {self.amount:.12g} {self.symbol}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """A row of a log: the holdings after a step."""

    line: int
    at: datetime
    id: int | str | None
    action: Action | None
    holdings: Mapping[str, float]
    """Quantity by symbol, without flat symbols."""
    cash: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionLog:
    """The rows of a log, in file order."""

    path: Path
    rows: tuple[PositionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The change of one holding between two rows."""

    symbol: str
    before: float
    after: float
    transition: Transition

    @property
    def quantity(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class Dirt:
    """A place where the log contradicts itself or the bars."""

    line: int
    kind: DirtKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """What a row changed since the previous row, and the contradictions in it."""

    row: PositionRow
    moves: tuple[Move, ...]
    """The changed holdings by symbol; empty for the first row."""
    cash: float | None
    """The change of cash; None for the first row."""
    price: float | None
    """The price of a unit if one symbol changed; None if none or several did."""
    dirt: tuple[Dirt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSummary:
    """Counts of a log."""

    rows: int
    instants: int
    held_at_start: int
    """Symbols that are held in the first row; their entries are not in the log."""
    opens: int
    closes: int
    flips: int
    additions: int
    reductions: int
    dirt: Mapping[DirtKind, int]
    """The count of each kind of contradiction that occurs."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The prices of a bar; a bar that was not complete when the file was written has its open only."""

    opened_at: datetime
    closes_at: datetime
    open: float
    low: float | None = None
    high: float | None = None
    close: float | None = None


Quotes = Mapping[str, Sequence[Quote]]
"""Quotes by symbol, sorted by time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CashCheck:
    """How many changes of cash agree with the bars."""

    changes: int
    """Rows that changed a holding."""
    checked: int
    """Rows of `changes` that have a bar for every changed symbol."""
    reconciled: int
    """Rows of `checked` whose cash changed by quantity × the open of the bar."""


def read_positions(path: str | Path, *, timezone: str) -> PositionLog:
    """The rows of a position log in file order; times without an offset are wall-clock times of the zone (fold=0)."""
    file, zone = Path(path), zone_named(timezone)
    rows = tuple(_row(line, number=number, zone=zone, path=file) for number, line in json_lines(file))
    return PositionLog(path=file, rows=rows)


def log_changes(
    log: PositionLog, *, bars: Mapping[str, Sequence[Bar]] | None = None, openings: Sequence[Opening] = ()
) -> tuple[RowChange, ...]:
    """What each row changed, in file order, with its contradictions.

    If bars are given, prices are compared with the bar that contains the instant of the row.
    """
    quotes = None if bars is None else quotes_of(bars, openings)
    first_lines: dict[int | str, int] = {}
    row_changes: list[RowChange] = []
    before: PositionRow | None = None
    for row in log.rows:
        repeated = _repeated_id(row, first_lines)
        row_changes.append(_change(before, row, quotes=quotes, dirt=repeated))
        before = row
    return tuple(row_changes)


def summarise(row_changes: Sequence[RowChange]) -> PositionSummary:
    """The counts of a log, from its changes."""
    transitions = Counter(move.transition for change in row_changes for move in change.moves)
    dirt = Counter(dirt.kind for change in row_changes for dirt in change.dirt)
    return PositionSummary(
        rows=len(row_changes),
        instants=len({change.row.at for change in row_changes}),
        held_at_start=len(row_changes[0].row.holdings) if row_changes else 0,
        opens=transitions["open"],
        closes=transitions["close"],
        flips=transitions["flip"],
        additions=transitions["addition"],
        reductions=transitions["reduction"],
        dirt={kind: dirt[kind] for kind in DIRT if dirt[kind]},
    )


def quotes_of(bars: Mapping[str, Sequence[Bar]], openings: Sequence[Opening] = ()) -> Quotes:
    """Bars and openings by symbol, sorted by time."""
    quotes: dict[str, list[Quote]] = {}
    for symbol, series in bars.items():
        quotes[symbol] = [Quote(bar.opened_at, bar.closes_at, bar.open, bar.low, bar.high, bar.close) for bar in series]
    for opening in openings:
        quote = Quote(opening.opened_at, opening.closes_at, opening.price)
        quotes.setdefault(opening.symbol, []).append(quote)
    return {symbol: sorted(series, key=_opened_at) for symbol, series in quotes.items()}


def last_quote(quotes: Sequence[Quote], at: datetime) -> Quote | None:
    """The last bar that opened at or before an instant; it may have closed since."""
    count = bisect_right(quotes, at, key=_opened_at)
    return quotes[count - 1] if count else None


def quote_at(quotes: Sequence[Quote], at: datetime) -> Quote | None:
    """The bar that contains an instant."""
    quote = last_quote(quotes, at)
    return quote if quote and at < quote.closes_at else None


def check_cash(row_changes: Sequence[RowChange], quotes: Quotes) -> CashCheck:
    """Count the rows whose cash changed by the cost of the holdings at the open of their bars, within a millionth."""
    costs = [_cost_at_open(change, quotes) for change in row_changes if change.moves]
    checked = [cost for cost in costs if cost is not None]
    return CashCheck(
        changes=len(costs),
        checked=len(checked),
        reconciled=sum(difference <= tolerance for difference, tolerance in checked),
    )


def _cost_at_open(change: RowChange, quotes: Quotes) -> tuple[float, float] | None:
    """The difference between cash and cost, and its tolerance; None if a symbol has no bar."""
    bars = [quote_at(quotes.get(move.symbol, ()), change.row.at) for move in change.moves]
    opens = [quote.open for quote in bars if quote is not None]
    if len(opens) < len(bars) or change.cash is None:
        return None
    costs = [move.quantity * price for move, price in zip(change.moves, opens, strict=True)]
    return abs(change.cash + sum(costs)), PRICE_TOLERANCE * sum(map(abs, costs))


def transition_of(before: float, after: float) -> Transition | None:
    """The kind of a change of quantity; None if the quantity did not change.

    >>> transition_of(0, 2), transition_of(2, 3), transition_of(3, -1), transition_of(-1, 0), transition_of(2, 2)
    ('open', 'addition', 'flip', 'close', None)
    """
    flat = QUANTITY_TOLERANCE * max(abs(before), abs(after))
    if abs(after - before) <= flat:
        return None
    if abs(before) <= flat:
        return "open"
    if abs(after) <= flat:
        return "close"
    if (before > 0) != (after > 0):
        return "flip"
    return "addition" if abs(after) > abs(before) else "reduction"


def _row(line: Mapping[str, Any], *, number: int, zone: tzinfo, path: Path) -> PositionRow:
    positions = line.get("positions")
    if not isinstance(positions, dict) or CASH not in positions:
        raise _invalid(
            path, number, "no object with CASH; give the quantity of each symbol, and CASH", field="positions"
        )
    quantities = {name: _finite(value, name=name, number=number, path=path) for name, value in positions.items()}
    cash = quantities.pop(CASH)
    return PositionRow(
        line=number,
        at=_instant(line.get("date"), number=number, zone=zone, path=path),
        id=_id(line.get("id"), number=number, path=path),
        action=_action(line.get("this_action"), number=number, path=path),
        holdings={symbol: quantity for symbol, quantity in quantities.items() if quantity},
        cash=cash,
    )


def _invalid(path: Path, number: int, message: str, *, field: str) -> Invalid:
    return Invalid(f"{path} line {number}: {message}", field=field)


def _finite(value: object, *, name: str, number: int, path: Path, field: str = "positions") -> float:
    quantity = number_of(value) if isinstance(value, int | float) else None
    if quantity is None or not isfinite(quantity):
        raise _invalid(path, number, f"{name} is {value!r:.40}; give a finite number", field=field)
    return quantity


def _instant(value: object, *, number: int, zone: tzinfo, path: Path) -> datetime:
    if not isinstance(value, str):
        raise _invalid(path, number, f"{value!r:.40} is not a time; give one like 2026-06-04 10:00:00", field="date")
    try:
        return instant_of(value, zone=zone)
    except ValueError as error:
        raise _invalid(path, number, str(error), field="date") from None


def _id(value: object, *, number: int, path: Path) -> int | str | None:
    if value is None or (isinstance(value, int | str) and not isinstance(value, bool)):
        return value
    raise _invalid(path, number, f"{value!r:.40} is not an id; give a whole number or text", field="id")


def _action(value: object, *, number: int, path: Path) -> Action | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _invalid(
            path, number, f"{value!r:.40} is not an object; give action, symbol, amount", field="this_action"
        )
    word, symbol, price = value.get("action"), value.get("symbol"), value.get("price")
    if not isinstance(word, str) or not isinstance(symbol, str):
        raise _invalid(path, number, "no text for action or symbol; give both", field="this_action")
    amount = _finite(value.get("amount"), name="amount", number=number, path=path, field="this_action")
    stated = None if price is None else _finite(price, name="price", number=number, path=path, field="this_action")
    return Action(action=word, symbol=symbol, amount=amount, price=stated)


def _opened_at(quote: Quote) -> datetime:
    return quote.opened_at


def _change(before: PositionRow | None, row: PositionRow, *, quotes: Quotes | None, dirt: list[Dirt]) -> RowChange:
    if before is None:
        dirt += _first_action(row)
        return RowChange(row=row, moves=(), cash=None, price=None, dirt=tuple(dirt))
    moves, cash = _moves(before, row), _cash_change(before, row)
    price = -cash / moves[0].quantity if len(moves) == 1 else None
    dirt += _time_backwards(before, row)
    dirt += _against_action(row, moves)
    dirt += _against_cash(row, moves, cash)
    if price is not None:
        dirt += _against_price(row, moves[0], price, quotes)
    return RowChange(row=row, moves=moves, cash=cash, price=price, dirt=tuple(dirt))


def _moves(before: PositionRow, row: PositionRow) -> tuple[Move, ...]:
    moves: list[Move] = []
    for symbol in sorted(before.holdings.keys() | row.holdings.keys()):
        earlier, later = before.holdings.get(symbol, 0.0), row.holdings.get(symbol, 0.0)
        transition = transition_of(earlier, later)
        if transition:
            moves.append(Move(symbol=symbol, before=earlier, after=later, transition=transition))
    return tuple(moves)


def _cash_change(before: PositionRow, row: PositionRow) -> float:
    """The change of cash; 0 if it is within rounding."""
    difference = row.cash - before.cash
    return 0.0 if abs(difference) <= CASH_TOLERANCE * max(abs(row.cash), abs(before.cash)) else difference


def _repeated_id(row: PositionRow, first_lines: dict[int | str, int]) -> list[Dirt]:
    """The contradiction of an id that an earlier row has; `first_lines` collects the first line of each id."""
    if row.id is None:
        return []
    first = first_lines.setdefault(row.id, row.line)
    if first == row.line:
        return []
    return [_dirt(row, "repeated_id", f"id {row.id!r} is that of line {first}")]


def _first_action(row: PositionRow) -> Iterator[Dirt]:
    if row.action is not None and not row.action.is_idle:
        yield _dirt(row, "no_row_before", f"{row.action}: the first row has none before it to compare with")


def _time_backwards(before: PositionRow, row: PositionRow) -> Iterator[Dirt]:
    if row.at < before.at:
        message = f"{row.at.isoformat()} is before {before.at.isoformat()} of line {before.line}"
        yield _dirt(row, "time_backwards", message)


def _against_action(row: PositionRow, moves: Sequence[Move]) -> Iterator[Dirt]:
    action = row.action
    if len(moves) > 1:
        yield _dirt(row, "several_symbols", f"one step changed {_moves_text(moves)}")
    if action is None or action.is_idle:
        if moves:
            yield _dirt(row, "not_the_action", f"no trade is stated, but {_moves_text(moves)} changed")
    elif action.quantity is None:
        yield _dirt(row, "unknown_action", f"{action.action!r} is neither buy nor sell; changed: {_moves_text(moves)}")
    elif not moves:
        yield _dirt(row, "action_without_change", f"{action} is stated, but nothing changed")
    elif len(moves) > 1 or not _is_stated(moves[0], action.symbol, action.quantity):
        yield _dirt(row, "not_the_action", f"{action} is stated, but {_moves_text(moves)} changed")


def _is_stated(move: Move, symbol: str, quantity: float) -> bool:
    size = max(abs(move.before), abs(move.after), abs(quantity))
    return move.symbol == symbol and abs(move.quantity - quantity) <= QUANTITY_TOLERANCE * size


def _against_cash(row: PositionRow, moves: Sequence[Move], cash: float) -> Iterator[Dirt]:
    if cash and not moves:
        yield _dirt(row, "cash_without_quantity", f"cash changed by {cash:+.12g}, and no holding did")


def _against_price(row: PositionRow, move: Move, price: float, quotes: Quotes | None) -> Iterator[Dirt]:
    if price <= 0:
        yield _dirt(row, "price_not_positive", f"{_moves_text([move])} changed at a price of {price:.12g}")
        return
    stated = row.action.price if row.action else None
    if stated is not None and _differ(price, stated):
        yield _dirt(row, "price_not_stated", f"{move.symbol} cost {price:.12g}, and {stated:.12g} is stated")
    if quotes is not None:
        yield from _against_quote(row, move, price, quote_at(quotes.get(move.symbol, ()), row.at))


def _against_quote(row: PositionRow, move: Move, price: float, quote: Quote | None) -> Iterator[Dirt]:
    """At most one contradiction: a price outside the bar is not reported as off the open too."""
    cost = f"{move.symbol} cost {price:.12g}"
    if quote is None:
        yield _dirt(row, "no_bar", f"{cost}, and there is no bar at {row.at.isoformat()}")
    elif _outside(price, quote):
        yield _dirt(row, "price_outside_bar", f"{cost}, outside low {quote.low} to high {quote.high}")
    elif _differ(price, quote.open):
        yield _dirt(row, "price_off_open", f"{cost}, and the bar opened at {quote.open}")


def _outside(price: float, quote: Quote) -> bool:
    if quote.low is None or quote.high is None:
        return False
    return price < quote.low * (1 - PRICE_TOLERANCE) or price > quote.high * (1 + PRICE_TOLERANCE)


def _differ(price: float, other: float) -> bool:
    return abs(price - other) > PRICE_TOLERANCE * abs(other)


def _moves_text(moves: Sequence[Move]) -> str:
    return ", ".join(f"{move.symbol} {move.quantity:+.12g}" for move in moves) or "nothing"


def _dirt(row: PositionRow, kind: DirtKind, message: str) -> Dirt:
    return Dirt(line=row.line, kind=kind, message=f"line {row.line}: {message}")
