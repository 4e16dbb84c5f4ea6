"""Does the change of an account's equity agree with the ledger? A missing multiplier or transfer shows itself here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from backsight.core.trades.settle import LedgerChange
from backsight.core.trades.trade import EXPLAINED_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeWorth:
    """What a trade added to equity, realised and at its mark and net of costs, before a tick and after it."""

    before: float
    after: float
    notional: float
    """The largest so far."""
    fees: float
    """Of this tick."""


def equity_gap(equity_change: float | None, change: LedgerChange, trades: Sequence[TradeWorth]) -> float | None:
    """By how much equity changed beyond what trades and transfers explain; None if the difference is small.

    No claim is made without a trade, and where fills are inferred: their prices are estimates.
    """
    written = (*change.added, *change.restated, *change.withdrawn)
    if equity_change is None or not trades or any(fill.kind == "inferred" for fill in written):
        return None
    moved = math.fsum(fill.amount for fill in change.added if fill.kind == "transfer")
    gap = equity_change - moved - math.fsum(each.after - each.before for each in trades)
    explained = EXPLAINED_SHARE * math.fsum(each.notional for each in trades) + math.fsum(each.fees for each in trades)
    return gap if abs(gap) > explained else None
