"""A trade: one round trip from flat to flat, and its outcome in a unit that can be compared."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.portfolio import Direction, Mode

TradeStatus = Literal["open", "closed"]
OutcomeUnit = Literal["R", "vol", "pct"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How much was won or lost, and in which unit; statistics never mix units."""

    value: float
    unit: OutcomeUnit


def outcome_of(
    net: float,
    *,
    pnl_r: float | None = None,
    risk: float | None = None,
    peak_size: float | None = None,
    entry_price: float | None = None,
    atr_d1: float | None = None,
) -> Outcome | None:
    """The outcome in the best unit that the facts allow: R, else daily ATRs, else share of notional, else none.

    >>> outcome_of(300.0, risk=100.0)
    Outcome(value=3.0, unit='R')
    >>> outcome_of(300.0, peak_size=2.0, entry_price=2400.0, atr_d1=50.0)
    Outcome(value=3.0, unit='vol')
    >>> outcome_of(48.0, peak_size=2.0, entry_price=2400.0)
    Outcome(value=0.01, unit='pct')
    >>> outcome_of(300.0) is None
    True
    """
    if pnl_r is not None:
        return Outcome(value=pnl_r, unit="R")
    if risk:
        return Outcome(value=net / risk, unit="R")
    notional = abs((peak_size or 0.0) * (entry_price or 0.0))
    daily_move = abs((peak_size or 0.0) * (atr_d1 or 0.0))  # notional × ATR as a share of price
    if notional and daily_move:
        return Outcome(value=net / daily_move, unit="vol")
    return Outcome(value=net / notional, unit="pct") if notional else None


def risk_to_stop(direction: Direction, *, entry_price: float, stop_price: float, size: float) -> float | None:
    """What a loss at the stop would cost; a stop at or beyond the entry protects a gain and gives no risk.

    >>> risk_to_stop("long", entry_price=100.0, stop_price=95.0, size=2.0)
    10.0
    >>> risk_to_stop("short", entry_price=100.0, stop_price=95.0, size=2.0) is None
    True
    """
    distance = entry_price - stop_price if direction == "long" else stop_price - entry_price
    return distance * size if distance > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """One round trip. Money is in the account's currency; `pnl` is net, and a win is net > 0."""

    owner_id: str
    id: str
    deployment_id: str
    account_id: str
    strategy_id: str
    strategy_name: str
    strategy_version: int | None
    mode: Mode
    position_key: str
    symbol: str
    direction: Direction
    status: TradeStatus
    opened_at: datetime | None
    closed_at: datetime | None
    entry_price: float
    exit_price: float | None
    size: float | None
    stop_price: float | None
    risk: float | None
    """What a loss at the stop would have cost."""
    pnl: float | None
    realized_pnl: float | None
    """Gross: `pnl` = `realized_pnl` + `funding` − `fees`."""
    fees: float
    funding: float
    outcome: Outcome | None
    mae: float | None
    """Maximum adverse excursion in money: 0 or negative."""
    context: ContextVector
    """As it was at entry; stamped once, never changed."""
    market_context: str | None
    confidence: float | None
    reflection: str | None
    tags: tuple[str, ...]
    request_digest: str
    """SHA-256 of the request that made it, so that a replay is known from a contradiction."""
    known_at: datetime
    recorded_at: datetime

    @property
    def won(self) -> bool:
        return self.pnl is not None and self.pnl > 0
