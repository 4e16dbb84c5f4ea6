"""Closed trades in a few numbers, each with its sample size."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How a number of closed trades ended; a win is net > 0."""

    trades: int
    wins: int
    pnl: float
    last_closed_at: datetime | None


def tally(results: Iterable[tuple[float, datetime]]) -> Tally:
    """The tally of (net PnL, instant of the close) pairs; the sum does not depend on their order.

    >>> from datetime import UTC
    >>> tally([(0.1, datetime(2026, 1, 2, tzinfo=UTC)), (0.2, datetime(2026, 1, 1, tzinfo=UTC))]).trades
    2
    >>> tally([])
    Tally(trades=0, wins=0, pnl=0.0, last_closed_at=None)
    """
    held = list(results)
    return Tally(
        trades=len(held),
        wins=sum(pnl > 0 for pnl, _ in held),
        pnl=math.fsum(pnl for pnl, _ in held),
        last_closed_at=max((at for _, at in held), default=None),
    )
