"""The account at a tick: what it holds, what may not be exceeded, and what became of the last decision."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.decision import Decision
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
    """What was proposed last, and what became of it."""

    at: datetime
    kind: AttemptKind
    symbol: str | None
    reason: str | None
    """The agent's words."""
    rule: str | None = None
    detail: str | None = None

    @property
    def text(self) -> str:
        by = f" by {name(self.rule, most=32)}" if self.rule else ""
        symbol = f" {name(self.symbol)}" if self.symbol else ""
        reason = f" {quote(self.reason)}" if self.reason and self.reason.strip() else ""
        return f"- {instant(self.at)} {self.kind}{symbol}{by}{reason}"


def last_line(decision: Decision) -> LastLine:
    verdict = decision.verdict
    return LastLine(
        at=decision.at,
        kind=verdict.kind,
        symbol=decision.symbol,
        reason=decision.reason,
        rule=verdict.rule,
        detail=verdict.detail,
    )


def last_decision(line: LastLine | None) -> Section:
    """The last decision, and what the risk engine or the broker said to it; empty before the first."""
    rows = [] if line is None else [line.text]
    if line is not None and line.detail and line.detail.strip():
        rows.append(f"- told: {quote(line.detail, tokens=30)}")
    return section_of("last_decision", LAST, rows)


def portfolio_and_caps(portfolio: Portfolio, *, currency: str | None, caps: tuple[Cap, ...] = ()) -> Section:
    """What the broker says is held, by symbol and key, and the caps; these keep their place before positions do."""
    funds = f"- equity {money(portfolio.equity, currency)}, cash {money(portfolio.cash, currency)}"
    held = sorted(portfolio.positions, key=lambda position: (position.symbol, position.position_key))
    rows = [Row(funds), *(Row(_held(position), 2) for position in held), *(Row(cap.text, 1) for cap in caps)]
    return section_of("portfolio", PORTFOLIO, rows)


def _held(position: Position) -> str:
    levels = {
        "entry": position.average_price,
        "mark": position.mark,
        "stop": position.stop_price,
        "target": position.target_price,
        "liquidation": position.liquidation_price,
    }
    said = " ".join(f"{level}={price(value)}" for level, value in levels.items() if value is not None)
    leverage = "" if position.leverage is None else f" {price(position.leverage)}x"
    return f"- {name(position.symbol)} {position.direction} {price(position.size)}{leverage} {said}"
