"""Orders and what became of them: what an agent asks of a broker, and what a broker reports."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.fills import Fill
from backsight.core.instants import to_utc
from backsight.core.portfolio import Direction, Portfolio

ReportedKind = Literal["trade", "funding", "fee", "transfer"]
BrokerReason = Literal["stop_loss", "take_profit", "liquidated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is asked of a broker: a quantity of a symbol at the market, and the levels that protect the position."""

    symbol: str
    quantity: float
    """Buy is positive, sell negative, in base units; 0 only moves the stop and the target of a position."""
    stop_price: float | None = None
    """Attached to the position; None leaves the one in force."""
    target_price: float | None = None
    """Attached to the position; None leaves the one in force."""
    reduce_only: bool = False
    """At most closes the position, never opens or turns one."""
    position_key: str | None = None
    """Which position, on a hedging account; None opens a new one there, and means the symbol's on a netting account."""
    reason: str | None = None
    """The agent's words."""

    @property
    def direction(self) -> Direction | None:
        """Which way it trades; None where it only moves levels."""
        if self.quantity == 0:
            return None
        return "long" if self.quantity > 0 else "short"


def entry_direction(order: Order, before: "BrokerSnapshot") -> Direction | None:
    """Which way an order would enter or add; None where it only leaves a position or moves its levels."""
    held = (position for position in before.portfolio.positions if position.symbol == order.symbol)
    against = sum(position.size for position in held if position.direction != order.direction)
    leaves = order.reduce_only or abs(order.quantity) <= against
    return None if leaves else order.direction


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedFill:
    """An execution, a funding payment, a fee or a transfer, as a broker reports it."""

    id: str
    at: datetime
    sequence: int
    """The broker's order among fills of one instant."""
    kind: ReportedKind
    position_key: str = ""
    """Empty for a transfer: it belongs to no position."""
    symbol: str = ""
    quantity: float = 0.0
    """Bought is positive, sold negative, in base units; 0 where nothing was executed."""
    price: float | None = None
    fee: float = 0.0
    """What was paid; negative for a rebate."""
    amount: float = 0.0
    """Funding received or a transfer in; negative for paid and out. 0 for executions."""
    realized_pnl: float | None = None
    """The broker's word on what it realised, before fees."""
    reason: BrokerReason | None = None
    """Why, where it was the broker that acted; None for what was ordered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSnapshot:
    """What a broker says of one account at one instant."""

    portfolio: Portfolio
    fills: tuple[ReportedFill, ...] = ()
    """What was executed, paid and moved since the snapshot before; none from a broker that reports no fills."""
    marks: Mapping[str, float]
    """The last price of every symbol it follows, held or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executed:
    """An order that the broker carried out."""

    order: Order
    position_key: str
    fills: tuple[ReportedFill, ...]
    """Its executions; none where the broker reports none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An order that the broker did not carry out; nothing changed."""

    order: Order
    rule: str
    detail: str


OrderResult = Executed | Rejected


def check_order(order: Order) -> None:
    """Nothing, where an order names a quantity and levels that are numbers; else it is refused.

    >>> check_order(Order(symbol="BTC", quantity=0.0))
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: quantity: 0.0 orders nothing; give base units, positive to buy, negative to sell
    """
    if not order.symbol:
        raise Invalid("it is empty; give one", field="symbol")
    levels = order.stop_price is not None or order.target_price is not None
    if not math.isfinite(order.quantity) or (order.quantity == 0 and not levels):
        told = f"{order.quantity} orders nothing; give base units, positive to buy, negative to sell"
        raise Invalid(told, field="quantity")
    if order.position_key == "":
        raise Invalid("it is empty; name the position or leave it out", field="position_key")
    _check_finite(order.stop_price, field="stop_price")
    _check_finite(order.target_price, field="target_price")


def as_fill(
    reported: ReportedFill,
    *,
    owner_id: str,
    account_id: str,
    decision_id: str | None,
    known_at: datetime,
    recorded_at: datetime,
    reason: str | None = None,
) -> Fill:
    """The fact that a report is in the ledger; one that is not a number or names no instant is refused.

    `reason` is the agent's, for what its decision ordered; where the broker acted on its own, its word stands.

    >>> from datetime import UTC
    >>> now = datetime(2026, 6, 4, 10, tzinfo=UTC)
    >>> told = ReportedFill(id="7", at=now, sequence=0, kind="trade", symbol="BTC", quantity=2.0, price=100.0)
    >>> fill = as_fill(told, owner_id="ana", account_id="a", decision_id=None, known_at=now, recorded_at=now)
    >>> fill.quantity, fill.price, fill.price_source
    (2.0, 100.0, 'reported')
    """
    _check_reported(reported)
    return Fill(
        owner_id=owner_id,
        account_id=account_id,
        id=reported.id,
        kind=reported.kind,
        at=to_utc(reported.at, field="at"),
        sequence=reported.sequence,
        position_key=reported.position_key or reported.symbol,
        symbol=reported.symbol,
        quantity=reported.quantity,
        price=reported.price,
        price_source="reported",
        fee=reported.fee,
        amount=reported.amount,
        realized_pnl=reported.realized_pnl,
        reason=reported.reason or reason,
        decision_id=decision_id,
        group_id=None,
        earliest_at=None,
        latest_at=None,
        replaces=None,
        known_at=to_utc(known_at, field="known_at"),
        recorded_at=to_utc(recorded_at, field="recorded_at"),
    )


def _check_reported(reported: ReportedFill) -> None:
    for name in ("quantity", "price", "fee", "amount", "realized_pnl"):
        _check_finite(getattr(reported, name), field=name)
    if reported.kind == "trade" and (reported.price is None or reported.quantity == 0):
        told = f"{reported.quantity} at {reported.price} is no execution; give both, or report another kind"
        raise Invalid(told, field="quantity")


def _check_finite(value: float | None, *, field: str) -> None:
    if value is not None and not math.isfinite(value):
        raise Invalid(f"{value} is not a number one can trade on; give a finite one or none", field=field)
