"""A trade: one round trip from flat to flat, and its outcome in a unit that can be compared."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.holdout import MemoryArm
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Preset, RegimeTag

TradeStatus = Literal["open", "closed"]
OutcomeUnit = Literal["R", "vol", "pct"]
ExcursionSource = Literal["bars", "marks"]


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
    notional: float | None = None,
    atr_share: float | None = None,
) -> Outcome | None:
    """The outcome in the best unit that the facts allow: R, else daily ATRs, else share of notional, else none.

    `notional` is the largest during the trade, `atr_share` the daily ATR as a share of price at entry.

    >>> outcome_of(300.0, risk=100.0)
    Outcome(value=3.0, unit='R')
    >>> outcome_of(300.0, notional=5000.0, atr_share=0.02)
    Outcome(value=3.0, unit='vol')
    >>> outcome_of(48.0, notional=4800.0)
    Outcome(value=0.01, unit='pct')
    >>> outcome_of(300.0) is None
    True
    """
    if pnl_r is not None:
        return Outcome(value=pnl_r, unit="R")
    if risk:
        return Outcome(value=net / risk, unit="R")
    daily_move = abs((notional or 0.0) * (atr_share or 0.0))
    if daily_move:
        return Outcome(value=net / daily_move, unit="vol")
    return Outcome(value=net / abs(notional), unit="pct") if notional else None


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
class Entry:
    """What is stamped on a trade when it is opened, and never changed but for the size, which follows the fills."""

    size: float | None = None
    """What the first fill opened; of one that turned the position, its part."""
    size_usd: float | None = None
    leverage: float | None = None
    reason: str | None = None
    """The proposal's."""
    snapshot_id: str | None = None
    """The decision that opened it; None where no decision of ours did."""
    lessons_hash: str | None = None
    """Of the active note; None where no lessons were shown."""
    shown_hash: str | None = None
    """Of all memory that was shown."""
    regime_tag: RegimeTag | None = None
    """None where bars are missing."""
    regime_interval_seconds: int | None = None
    regime_preset: Preset | None = None
    equity: float | None = None
    """Of the account, before the entry."""
    recommended_share: float | None = None
    """The size that was recommended, as a share of equity."""
    configured_risk: float | None = None
    """The strategy's risk per trade, in money, at the equity of the entry."""
    model: str | None = None


REPORTED_ENTRY = Entry()
"""The entry of a trade that was reported as a whole: nothing but its price is known."""


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
    holding_minutes: float | None = None
    entry_price: float
    """Average over everything that was added."""
    exit_price: float | None
    """Average over everything that was taken off."""
    size: float | None
    """The largest held."""
    open_size: float = 0.0
    """What is still held."""
    average_cost: float | None = None
    """Of what is held, or was at last."""
    stop_price: float | None
    """The first that was seen."""
    initial_risk: float | None = None
    """At the first stop."""
    risk: float | None
    """What a loss at the stop would have cost, at its largest."""
    pnl: float | None
    """None while it is open."""
    realized_pnl: float | None
    """Gross: `pnl` = `realized_pnl` + `funding` − `fees`."""
    realized_pnl_usd: float | None = None
    """At the rate of the close; None where that is not known, as are the other amounts in dollars."""
    usd_rate: float | None = None
    """Dollars for a unit of the account's currency at the close."""
    fees: float
    fees_usd: float | None = None
    funding: float
    broker_pnl: float | None = None
    """What the broker says was realised, where it speaks of every exit."""
    inferred: bool = False
    """Whether any of its prices is an inference."""
    outcome: Outcome | None
    mfe: float | None = None
    """Maximum favourable excursion in money: 0 or more."""
    mae: float | None
    """Maximum adverse excursion in money: 0 or negative."""
    mfe_at: datetime | None = None
    mae_at: datetime | None = None
    mfe_r: float | None = None
    """In multiples of the risk, as is `mae_r`."""
    mae_r: float | None = None
    mfe_usd: float | None = None
    mae_usd: float | None = None
    excursion_source: ExcursionSource | None = None
    excursion_interval_seconds: int | None = None
    entry: Entry = REPORTED_ENTRY
    exit_reason: str | None = None
    exit_snapshot_id: str | None = None
    memory_arm: MemoryArm | None = None
    """None where no tick opened it."""
    context: ContextVector
    """As it was at entry; stamped once, never changed."""
    market_context: str | None
    confidence: float | None
    reflection: str | None
    tags: tuple[str, ...]
    group_id: str | None = None
    """Legs of one idea share it."""
    first_fill_id: str | None = None
    """None for a trade that was told as a whole."""
    request_digest: str
    """SHA-256 of the request that made it, so that a replay is known from a contradiction; empty where fills did."""
    created_at: datetime
    """When its first version was recorded."""
    known_at: datetime
    recorded_at: datetime

    @property
    def won(self) -> bool:
        return self.pnl is not None and self.pnl > 0


def minutes_between(opened_at: datetime | None, closed_at: datetime | None) -> float | None:
    """How long a trade was held; None where one end is not known."""
    return (closed_at - opened_at).total_seconds() / 60 if opened_at and closed_at else None
