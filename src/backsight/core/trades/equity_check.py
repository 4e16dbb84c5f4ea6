"""Does the change of an account's equity agree with the ledger? A missing multiplier or transfer shows itself here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from backsight.core.fills import Fill
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
    moved = math.fsum(_moved(fill, change) for fill in change.added)
    gap = equity_change - moved - math.fsum(each.after - each.before for each in trades)
    explained = EXPLAINED_SHARE * math.fsum(each.notional for each in trades) + math.fsum(each.fees for each in trades)
    return gap if abs(gap) > explained else None


def _moved(fill: Fill, change: LedgerChange) -> float:
    """What a transfer moved into the account: its money, or what its units cost, which their trade does not count."""
    if fill.kind != "asset_transfer":
        return fill.amount if fill.kind == "transfer" else 0.0
    trips = [trip for trip in change.trips if trip.position_key == fill.position_key and trip.opened_at <= fill.at]
    if not trips:
        return 0.0
    trip = trips[-1]
    leaves = (fill.quantity > 0) != (trip.direction == "long")
    cost = trip.average_cost if leaves or fill.price is None else fill.price
    return fill.quantity * abs(trip.valued(cost)) * trip.point_value
