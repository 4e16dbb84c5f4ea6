"""A position log as ticks: what was held before and after every row, at prices that could be known by then.

The holdings are the fact; the action is kept as what the agent proposed. A row whose time goes backwards is a tick at
the last instant, with the next sequence: a ledger only goes forward.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path

from backsight.core.decision import Verdict
from backsight.core.errors import Invalid
from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.portfolio import Portfolio, Position
from backsight.importers.bars import LONGEST_SYMBOL
from backsight.importers.positions import (
    QUANTITY_TOLERANCE,
    Action,
    Change,
    PositionLog,
    PositionRow,
    Quote,
    Quotes,
    last_quote,
)

Holdings = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTick:
    """What a row of a log brings to the ledger."""

    row: PositionRow
    at: datetime
    """The row's instant, or that of the row before where time goes backwards."""
    sequence: int
    """Order among the ticks of one instant."""
    before: BrokerSnapshot
    """What the row before held, at the prices of this one; of the first row, what it holds itself."""
    after: BrokerSnapshot | None
    """None where nothing changed."""
    proposal: Order | None
    verdict: Verdict


def position_ticks(log: PositionLog, changed: Sequence[Change], *, quotes: Quotes) -> Iterator[PositionTick]:
    """The ticks of a log, in file order; a symbol that is held without any price known by then is refused.

    Where one symbol changed, its price is what cash says it cost. Everything else is at the open of the bar that the
    instant falls into, else at the last price known before: never at what a bar only showed later.
    """
    prices = _Prices(quotes)
    held = _without_dust(log)
    for number, (change, (at, sequence)) in enumerate(zip(changed, _moments(log.rows), strict=True)):
        row, former = change.row, changed[max(0, number - 1)].row
        before, holdings = held[max(0, number - 1)], held[number]
        marks = _marks(change, prices, at=at, symbols={*before, *holdings}, path=log.path)
        moved = any(before.get(move.symbol) != holdings.get(move.symbol) for move in change.moves)
        yield PositionTick(
            row=row,
            at=at,
            sequence=sequence,
            before=_snapshot(before, former, marks, at, path=log.path),
            after=_snapshot(holdings, row, marks, at, path=log.path) if moved or row.cash != former.cash else None,
            proposal=_order(row.action) if number else None,
            verdict=Verdict(kind="executed") if moved else Verdict(kind="noop", detail=_why_nothing(change)),
        )


class _Prices:
    """The last price that was known of every symbol, while time goes on."""

    def __init__(self, quotes: Quotes) -> None:
        self._quotes = quotes
        self._seen: dict[str, tuple[datetime, float]] = {}

    def at(self, symbol: str, at: datetime) -> float | None:
        """The open of the bar that an instant falls into, else the latest price known before; None where none is."""
        quote = last_quote(self._quotes.get(symbol, ()), at)
        if quote is not None and at < quote.closes_at:
            return quote.open
        known = [self._seen[symbol]] if symbol in self._seen else []
        known += [] if quote is None else [_last_price(quote)]
        return max(known, key=lambda each: each[0])[1] if known else None

    def saw(self, marks: Mapping[str, float], at: datetime) -> None:
        """Remember the prices of an instant."""
        self._seen |= {symbol: (at, price) for symbol, price in marks.items()}


def _last_price(quote: Quote) -> tuple[datetime, float]:
    """The latest price that a bar that has ended told, and when."""
    return (quote.opened_at, quote.open) if quote.close is None else (quote.closes_at, quote.close)


def _moments(rows: Sequence[PositionRow]) -> Iterator[tuple[datetime, int]]:
    """Instant and sequence of every row; time only goes forward."""
    last: tuple[datetime, int] | None = None
    for row in rows:
        last = (row.at, 0) if last is None or row.at > last[0] else (last[0], last[1] + 1)
        yield last


def _without_dust(log: PositionLog) -> list[Holdings]:
    """What every row holds, but for remainders below a billionth of the most that was held: those are flat."""
    peaks: dict[str, float] = {}
    found: list[Holdings] = []
    for row in log.rows:
        before = found[-1] if found else {}
        peaks = {symbol: peaks.get(symbol, 0.0) for symbol in row.holdings}
        held: dict[str, float] = {}
        for symbol, quantity in row.holdings.items():
            _check_symbol(symbol, log.path, row)
            if abs(quantity) <= QUANTITY_TOLERANCE * peaks[symbol]:
                continue
            stays = symbol in before and (before[symbol] > 0) == (quantity > 0)
            peaks[symbol] = max(peaks[symbol], abs(quantity)) if stays else abs(quantity)
            held[symbol] = quantity
        found.append(held)
    return found


def _marks(change: Change, prices: _Prices, *, at: datetime, symbols: Iterable[str], path: Path) -> Mapping[str, float]:
    """The price of every symbol that is held before or after a row; remembered, since later rows may need it."""
    marks: dict[str, float] = {}
    for symbol in sorted(symbols):
        price = _price_paid(change, symbol) or prices.at(symbol, at)
        if price is None:
            message = f"no price of {symbol!r} is known at {at.isoformat()}; give bars that have it"
            raise Invalid(f"{path} line {change.row.line}: {message}", field="bars")
        marks[symbol] = price
    prices.saw(marks, at)
    return marks


def _price_paid(change: Change, symbol: str) -> float | None:
    """The price that cash tells of the one symbol that changed; None where it tells none that one can pay."""
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
        message = "cash and holdings come to more than a number can hold; correct them"
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
    """What the agent says it ordered; None where that is no order."""
    quantity = None if action is None else action.quantity
    if action is None or not quantity or not _is_symbol(action.symbol):
        return None
    return Order(symbol=action.symbol, quantity=quantity, reason=action.action)


def _why_nothing(change: Change) -> str | None:
    return "; ".join(dirt.message for dirt in change.dirt) or None


def _is_symbol(text: str) -> bool:
    return 0 < len(text) <= LONGEST_SYMBOL and text == text.strip() and text.isprintable()


def _check_symbol(symbol: str, path: Path, row: PositionRow) -> None:
    if not _is_symbol(symbol):
        shown = repr(symbol if len(symbol) <= LONGEST_SYMBOL else symbol[:LONGEST_SYMBOL] + "…")
        message = f"{shown} is not a symbol; give up to {LONGEST_SYMBOL} printable characters"
        raise Invalid(f"{path} line {row.line}: {message}", field="positions")
