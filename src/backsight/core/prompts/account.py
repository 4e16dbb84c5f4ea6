"""Prompt sections about the account: open positions, risk limits and the last decision."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.decision import Decision, Verdict
from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.portfolio import Portfolio, Position
from backsight.core.prompts.amounts import instant, money, multiple, price
from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.risk_state import AttemptKind
from backsight.core.text.untrusted_text import name, quote, shorten

PORTFOLIO = "## Portfolio"
LAST = "## Last decision"
SYMBOL_TOKENS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """A limit of the caller's risk engine, like a name of `position cap` and a value of `$5,000`."""

    name: str
    value: str

    @property
    def text(self) -> str:
        return f"- cap {shorten(self.name, most=40, tokens=30)}: {shorten(self.value, most=40, tokens=30)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLine:
    """The last proposal with its price, and its verdict."""

    at: datetime
    kind: AttemptKind
    order: Order | None = None
    """None if nothing was proposed."""
    price: float | None = None
    """The price at which the order was filled, else the price at the decision; None if neither is known."""
    filled: bool = False
    """Whether the price is that of the fills."""
    rule: str | None = None
    detail: str | None = None

    @property
    def text(self) -> str:
        by = f" by {name(self.rule, most=32)}" if self.rule else ""
        if self.order is None:
            return f"- {instant(self.at)} {self.kind}, nothing proposed"
        reason = f" {quote(self.order.reason)}" if self.order.reason and self.order.reason.strip() else ""
        return f"- {instant(self.at)} {self.kind}{by}: {' '.join(self._proposal(self.order))}{reason}"

    def _proposal(self, order: Order) -> Iterator[str]:
        """The order in words: its side, size, price and levels."""
        symbol = name(order.symbol, tokens=SYMBOL_TOKENS)
        if order.quantity == 0:
            yield f"{symbol} levels moved"
        else:
            yield f"{'buy' if order.quantity > 0 else 'sell'} {price(abs(order.quantity))} {symbol}"
            if self.price is not None:
                yield f"{'filled' if self.filled else 'marked'} at {price(self.price)}"
        levels = {"stop": order.stop_price, "target": order.target_price}
        yield from (f"{level}={price(value)}" for level, value in levels.items() if value is not None)


def last_lines(last: Decision) -> list[LastLine]:
    """The lines of the last decision, one for each of its orders."""
    if not last.proposals:
        return [_last_line(last, None, last.verdict)]
    return [_last_line(last, each.order, each.verdict) for each in last.proposals]


def _last_line(last: Decision, order: Order | None, verdict: Verdict) -> LastLine:
    """The line of one order; the price is the average of its fills, else the mark before it."""
    fill_price = None if order is None or verdict.kind != "executed" else _fill_price(last.after, order)
    mark = None if order is None else last.before.marks.get(order.symbol)
    return LastLine(
        at=last.at,
        kind=verdict.kind,
        order=order,
        price=mark if fill_price is None else fill_price,
        filled=fill_price is not None,
        rule=verdict.rule,
        detail=verdict.detail,
    )


def _fill_price(after: BrokerSnapshot | None, order: Order) -> float | None:
    """The average price of the fills that the broker reports in the order's symbol and on its side."""
    fills = [
        (fill.quantity, fill.price)
        for fill in (() if after is None else after.fills)
        if fill.kind == "trade" and fill.symbol == order.symbol and fill.quantity * order.quantity > 0
        if fill.price is not None
    ]
    size = sum(quantity for quantity, _ in fills)
    return sum(quantity * at for quantity, at in fills) / size if size else None


def last_decision(lines: Sequence[LastLine]) -> Section:
    """The last decision and the answers of the risk engine or the broker; empty before the first decision.

    If the section is too long, answers are dropped before orders.
    """
    return section_of("last_decision", LAST, [row for line in lines for row in _rows_of(line)])


def _rows_of(line: LastLine) -> Iterator[Row]:
    yield Row(line.text)
    if line.detail and line.detail.strip():
        label = "why nothing" if line.order is None else "the engine's answer"
        yield Row(f"- {label}: {quote(line.detail, tokens=30)}", 1)


def portfolio_and_caps(portfolio: Portfolio, *, currency: str | None, caps: tuple[Cap, ...] = ()) -> Section:
    """The broker's positions, sorted by symbol and key, and the caps.

    If the section is too long, positions are dropped before caps.
    """
    funds = f"- equity {money(portfolio.equity, currency)}, cash {money(portfolio.cash, currency)}"
    positions = sorted(portfolio.positions, key=lambda position: (position.symbol, position.position_key))
    rows = [Row(funds), *(Row(_position_line(position), 2) for position in positions)]
    rows += [Row(cap.text, 1) for cap in caps]
    return section_of("portfolio", PORTFOLIO, rows)


def _position_line(position: Position) -> str:
    prices = {
        "entry": position.average_price,
        "mark": position.mark,
        "stop": position.stop_price,
        "target": position.target_price,
        "liquidation": position.liquidation_price,
    }
    levels = " ".join(f"{label}={price(value)}" for label, value in prices.items() if value is not None)
    leverage = "" if position.leverage is None else f" leverage={multiple(position.leverage)}"
    return f"- {name(position.symbol)} {position.direction} size={price(position.size)}{leverage} {levels}"
