"""Prompt sections about the account: open positions, risk limits and the last decision."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.decision import LastTick
from backsight.core.portfolio import Portfolio, Position
from backsight.core.prompts.amounts import instant, money, price
from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.risk_state import AttemptKind
from backsight.core.text.untrusted_text import name, quote, shorten

PORTFOLIO = "## Portfolio"
LAST = "## Last decision"


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
    """The last proposal and its verdict."""

    at: datetime
    kind: AttemptKind
    symbol: str | None
    reason: str | None
    """The agent's own reason for the proposal."""
    rule: str | None = None
    detail: str | None = None

    @property
    def text(self) -> str:
        by = f" by {name(self.rule, most=32)}" if self.rule else ""
        symbol = f" {name(self.symbol)}" if self.symbol else ""
        reason = f" {quote(self.reason)}" if self.reason and self.reason.strip() else ""
        return f"- {instant(self.at)} {self.kind}{symbol}{by}{reason}"


def last_line(last: LastTick) -> LastLine:
    verdict = last.verdict
    return LastLine(
        at=last.at,
        kind=verdict.kind,
        symbol=last.symbol,
        reason=last.reason,
        rule=verdict.rule,
        detail=verdict.detail,
    )


def last_decision(line: LastLine | None) -> Section:
    """The last decision and the answer of the risk engine or the broker; empty before the first decision."""
    rows = [] if line is None else [line.text]
    if line is not None and line.detail and line.detail.strip():
        rows.append(f"- told: {quote(line.detail, tokens=30)}")
    return section_of("last_decision", LAST, rows)


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
    leverage = "" if position.leverage is None else f" {price(position.leverage)}x"
    return f"- {name(position.symbol)} {position.direction} {price(position.size)}{leverage} {levels}"
