"""What the outside world must offer: each a protocol, handed in and never looked up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backsight.core.orders import Order, OrderResult, ReportedFill
from backsight.core.portfolio import Portfolio


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """The current instant, aware and in UTC."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSnapshot:
    """What a broker says of one account at one instant."""

    portfolio: Portfolio
    fills: tuple[ReportedFill, ...]
    """What was executed, paid and moved since the snapshot before; none from a broker that reports no fills."""
    marks: Mapping[str, float]
    """The last price of every symbol it follows, held or not."""


class Broker(Protocol):
    """Holds an account: says what is in it, and takes orders."""

    def snapshot(self) -> BrokerSnapshot:
        """The account now, and what happened in it since the snapshot before."""
        ...

    def submit(self, order: Order) -> OrderResult:
        """What became of an order; a rejection is an answer and not an error."""
        ...
