"""Prompt sections about the agent's own trades: the last closed ones and the open ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from backsight.core.errors import Invalid
from backsight.core.portfolio import Direction
from backsight.core.prompts.amounts import gain, money, percent, price, span, stretch
from backsight.core.prompts.sections import Section, section_of
from backsight.core.regime import RegimeTag
from backsight.core.text.untrusted_text import name, quote
from backsight.core.trades.mark import PositionMark
from backsight.core.trades.trade import Trade, minutes_between

CLOSED = "## Recent trades on this strategy (closed)"
OPEN = "## Open positions (memory view)"
RECENT, MOST_RECENT = 10, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLine:
    """A closed trade in one line; money is in the account's currency and `pnl` is net of costs."""

    id: str
    opened_at: datetime | None
    closed_at: datetime | None
    symbol: str
    direction: Direction
    notional: float | None
    entry_price: float
    exit_price: float | None
    pnl: float | None
    minutes: float | None
    regime: RegimeTag | None
    reason: str | None
    currency: str | None

    @property
    def text(self) -> str:
        share = self.pnl / self.notional if self.pnl is not None and self.notional else None
        return _joined(
            f"- {stretch(self.opened_at, self.closed_at)}",
            name(self.symbol),
            self.direction,
            None if self.notional is None else money(self.notional, self.currency),
            f"{price(self.entry_price)} → {price(self.exit_price)}",
            gain(self.pnl, self.currency, cents=True),
            None if share is None else f"({percent(share)})",
            None if self.minutes is None else span(self.minutes),
            None if self.regime is None else f"regime={self.regime}",
            _quoted(self.reason),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLine:
    """What memory adds to an open position: excursions, holding time and entry reason."""

    id: str
    opened_at: datetime | None
    symbol: str
    direction: Direction
    notional: float | None
    entry_price: float
    mark: float | None
    mfe: float | None
    mae: float | None
    minutes: float | None
    reason: str | None
    currency: str | None

    @property
    def text(self) -> str:
        known = self.mfe is not None and self.mae is not None
        return _joined(
            f"- {name(self.symbol)}",
            self.direction,
            None if self.notional is None else money(self.notional, self.currency),
            f"@ {price(self.entry_price)}",
            None if self.mark is None else f"mark={price(self.mark)}",
            f"MFE={gain(self.mfe, self.currency)} / MAE={gain(self.mae, self.currency)}" if known else None,
            None if self.minutes is None else f"held {span(self.minutes)}",
            _quoted(self.reason),
        )


def closed_line(trade: Trade, *, currency: str | None) -> ClosedLine:
    """The line of a closed trade; its notional is the largest size times the average entry price."""
    return ClosedLine(
        id=trade.id,
        opened_at=trade.opened_at,
        closed_at=trade.closed_at,
        symbol=trade.symbol,
        direction=trade.direction,
        notional=None if trade.size is None else abs(trade.size) * trade.entry_price,
        entry_price=trade.entry_price,
        exit_price=trade.exit_price,
        pnl=trade.pnl,
        minutes=trade.holding_minutes
        if trade.holding_minutes is not None
        else minutes_between(trade.opened_at, trade.closed_at),
        regime=trade.entry.regime_tag,
        reason=trade.entry.reason,
        currency=currency,
    )


def open_line(trade: Trade, mark: PositionMark | None, *, now: datetime, currency: str | None) -> OpenLine:
    """The line of an open trade at the mark of its last tick; without a tick the mark is unknown."""
    excursions = None if mark is None else mark.reach.excursions
    cost = trade.entry_price if trade.average_cost is None else trade.average_cost
    return OpenLine(
        id=trade.id,
        opened_at=trade.opened_at,
        symbol=trade.symbol,
        direction=trade.direction,
        notional=abs(trade.open_size) * cost if trade.open_size else None,
        entry_price=cost,
        mark=None if mark is None else mark.position.mark,
        mfe=trade.mfe if excursions is None else excursions.mfe,
        mae=trade.mae if excursions is None else excursions.mae,
        minutes=minutes_between(trade.opened_at, now),
        reason=trade.entry.reason,
        currency=currency,
    )


def recent_trades(lines: Iterable[ClosedLine], *, k: int = RECENT) -> Section:
    """At most `k` closed trades, latest entry first, as many as fit; `k` above 30 is refused."""
    if not 0 <= k <= MOST_RECENT:
        raise Invalid(f"{k} is out of range; give 0 to {MOST_RECENT}", field="recent_trades_k")
    return section_of("recent_trades", CLOSED, (line.text for line in _latest(lines)[:k]))


def open_positions(lines: Iterable[OpenLine]) -> Section:
    """The open positions, latest entry first, as many as fit."""
    return section_of("open_positions", OPEN, (line.text for line in _latest(lines)))


_Line = TypeVar("_Line", ClosedLine, OpenLine)


def _latest(lines: Iterable[_Line]) -> list[_Line]:
    """Sorted by entry, latest first, ties by id; a trade with an unknown entry is sorted by its exit."""
    by_id = sorted(lines, key=lambda line: line.id)
    return sorted(by_id, key=_entered, reverse=True)


def _entered(line: ClosedLine | OpenLine) -> datetime:
    closed_at = line.closed_at if isinstance(line, ClosedLine) else None
    return line.opened_at or closed_at or _LONG_AGO


_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def _quoted(reason: str | None) -> str | None:
    return quote(reason) if reason and reason.strip() else None


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)
