"""A position log as ticks: the account before and after each row, at prices that were known by then.

The holdings are the facts; the action is stored as the agent's proposal. If the time of a row goes backwards, its tick
has the instant of the previous row and the next sequence number, because a ledger only goes forward.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from operator import itemgetter
from pathlib import Path

from backsight.core.decision import Verdict
from backsight.core.errors import Invalid
from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.portfolio import Portfolio, Position
from backsight.core.text.symbols import symbol_problem
from backsight.importers.files import short_text
from backsight.importers.positions import (
    QUANTITY_TOLERANCE,
    Action,
    PositionLog,
    PositionRow,
    Quote,
    Quotes,
    RowChange,
    last_quote,
)

Holdings = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTick:
    """One row of a log as a tick of the ledger."""

    row: PositionRow
    at: datetime
    """The row's instant, or that of the previous row if time goes backwards."""
    sequence: int
    """The order among the ticks of one instant."""
    before: BrokerSnapshot
    """The holdings of the previous row at the prices of this row; for the first row, its own holdings."""
    after: BrokerSnapshot | None
    """None if nothing changed."""
    proposal: Order | None
    verdict: Verdict


def position_ticks(log: PositionLog, row_changes: Sequence[RowChange], *, quotes: Quotes) -> Iterator[PositionTick]:
    """The ticks of a log, in file order; `Invalid` if a holding has no price known by then.

    If one symbol changed, its price is its cost in cash. Every other symbol has the open of the bar that contains the
    instant, else its last known price. A price that a bar only showed later is never used.
    """
    prices = _KnownPrices(quotes)
    holdings_of_rows = _without_dust(log)
    for number, (change, (at, sequence)) in enumerate(zip(row_changes, _moments(log.rows), strict=True)):
        row, former = change.row, row_changes[max(0, number - 1)].row
        before, holdings = holdings_of_rows[max(0, number - 1)], holdings_of_rows[number]
        marks = _marks(change, prices, at=at, symbols={*before, *holdings}, path=log.path)
        moved = any(before.get(move.symbol) != holdings.get(move.symbol) for move in change.moves)
        yield PositionTick(
            row=row,
            at=at,
            sequence=sequence,
            before=_snapshot(before, former, marks, at, path=log.path),
            after=_snapshot(holdings, row, marks, at, path=log.path) if moved or row.cash != former.cash else None,
            proposal=_order(row.action) if number else None,
            verdict=Verdict(kind="executed") if moved else Verdict(kind="noop", detail=_contradictions(change)),
        )


class _KnownPrices:
    """The last known price of each symbol, as the ticks go on."""

    def __init__(self, quotes: Quotes) -> None:
        self._quotes = quotes
        self._last: dict[str, tuple[datetime, float]] = {}

    def at(self, symbol: str, at: datetime) -> float | None:
        """The open of the bar that contains an instant, else the last known price; None if there is none."""
        quote = last_quote(self._quotes.get(symbol, ()), at)
        if quote is not None and at < quote.closes_at:
            return quote.open
        known = [self._last[symbol]] if symbol in self._last else []
        known += [] if quote is None else [_last_price(quote)]
        return max(known, key=itemgetter(0))[1] if known else None

    def add(self, marks: Mapping[str, float], at: datetime) -> None:
        """Add the prices of an instant."""
        self._last |= {symbol: (at, price) for symbol, price in marks.items()}


def _last_price(quote: Quote) -> tuple[datetime, float]:
    """The last price of a closed bar, and its instant."""
    return (quote.opened_at, quote.open) if quote.close is None else (quote.closes_at, quote.close)


def _moments(rows: Sequence[PositionRow]) -> Iterator[tuple[datetime, int]]:
    """The instant and sequence number of each row; time only goes forward."""
    last: tuple[datetime, int] | None = None
    for row in rows:
        last = (row.at, 0) if last is None or row.at > last[0] else (last[0], last[1] + 1)
        yield last


def _without_dust(log: PositionLog) -> list[Holdings]:
    """The holdings of each row; a remainder below a billionth of the peak of a holding counts as flat."""
    peaks: dict[str, float] = {}
    holdings_of_rows: list[Holdings] = []
    for row in log.rows:
        before = holdings_of_rows[-1] if holdings_of_rows else {}
        peaks = {symbol: peaks.get(symbol, 0.0) for symbol in row.holdings}
        holdings: dict[str, float] = {}
        for symbol, quantity in row.holdings.items():
            _check_symbol(symbol, log.path, row)
            if abs(quantity) <= QUANTITY_TOLERANCE * peaks[symbol]:
                continue
            same_side = symbol in before and (before[symbol] > 0) == (quantity > 0)
            peaks[symbol] = max(peaks[symbol], abs(quantity)) if same_side else abs(quantity)
            holdings[symbol] = quantity
        holdings_of_rows.append(holdings)
    return holdings_of_rows


def _marks(
    change: RowChange, prices: _KnownPrices, *, at: datetime, symbols: Iterable[str], path: Path
) -> Mapping[str, float]:
    """The price of each symbol that is held before or after a row; later rows may use it too."""
    marks: dict[str, float] = {}
    for symbol in sorted(symbols):
        price = _price_paid(change, symbol) or prices.at(symbol, at)
        if price is None:
            message = f"no price of {symbol!r} is known at {at.isoformat()}; give bars that have it"
            raise Invalid(f"{path} line {change.row.line}: {message}", field="bars")
        marks[symbol] = price
    prices.add(marks, at)
    return marks


def _price_paid(change: RowChange, symbol: str) -> float | None:
    """The cost in cash of the one symbol that changed; None if it is not a positive price."""
    price = change.price
    if price is None or change.moves[0].symbol != symbol or not isfinite(price) or price <= 0:
        return None
    return price


def _snapshot(
    holdings: Holdings, row: PositionRow, marks: Mapping[str, float], at: datetime, *, path: Path
) -> BrokerSnapshot:
    positions = tuple(_position(symbol, holdings[symbol], marks[symbol]) for symbol in sorted(holdings))
    equity = row.cash + sum(position.signed_size * position.mark for position in positions)
    if not isfinite(equity):
        message = "the value of cash and holdings is too large for a number; correct the row"
        raise Invalid(f"{path} line {row.line}: {message}", field="positions")
    portfolio = Portfolio(at=at, equity=equity, cash=row.cash, positions=positions)
    return BrokerSnapshot(portfolio=portfolio, marks=marks)


def _position(symbol: str, quantity: float, mark: float) -> Position:
    return Position(
        position_key=symbol,
        symbol=symbol,
        direction="long" if quantity > 0 else "short",
        size=abs(quantity),
        mark=mark,
    )


def _order(action: Action | None) -> Order | None:
    """The order that the agent states; None if the action is no order."""
    quantity = None if action is None else action.quantity
    if action is None or not quantity or symbol_problem(action.symbol) is not None:
        return None
    return Order(symbol=action.symbol, quantity=quantity, reason=action.action)


def _contradictions(change: RowChange) -> str | None:
    return "; ".join(dirt.message for dirt in change.dirt) or None


def _check_symbol(symbol: str, path: Path, row: PositionRow) -> None:
    problem = symbol_problem(symbol)
    if problem is not None:
        raise Invalid(f"{path} line {row.line}: {short_text(symbol)} {problem}", field="positions")
