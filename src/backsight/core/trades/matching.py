"""Matching a reported trade with the ledger: which of the broker's trades an agent speaks of."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from backsight.core.trades.report import TradeReport
from backsight.core.trades.trade import Trade

CLOSE_TOLERANCE = timedelta(minutes=5)
"""How far the agent's time of a close may be from the broker's."""
PNL_TOLERANCE = 0.05
"""How far the agent's result may be from the ledger's, as a share of it; the same share of the fees is allowed too."""
CENT = 0.01
PRICE_TOLERANCE = 0.005
"""How far the agent's prices may be from the ledger's, as a share, where the agent names no deployment."""
RECENT = timedelta(days=1)
"""How long ago a trade closed that a report speaks of without a deployment and a time."""


def matching_trade(report: TradeReport, trades: Iterable[Trade], *, closed_by: datetime | None = None) -> Trade | None:
    """The first of the trades that the report can be about; None if there is none.

    With `closed_by`, the instant of a report that names no deployment: prices must agree too, and without a close time
    the trade must have closed within the day before. Any new trade may resemble an old one.
    """
    return next(
        (
            trade
            for trade in trades
            if matches(report, trade) and (closed_by is None or _is_likely(report, trade, closed_by))
        ),
        None,
    )


def _is_likely(report: TradeReport, trade: Trade, closed_by: datetime) -> bool:
    """Whether the prices of a report agree with those of a trade, and its time with a close that is not stated."""
    prices = (report.entry_price, trade.entry_price), (report.exit_price, trade.exit_price)
    if not all(
        actual is not None and math.isclose(stated, actual, rel_tol=PRICE_TOLERANCE) for stated, actual in prices
    ):
        return False
    return report.closed_at is not None or (trade.closed_at is not None and closed_by - trade.closed_at <= RECENT)


def matches(report: TradeReport, trade: Trade) -> bool:
    """Whether the report can be about this trade of the ledger: same position, about the same close and result.

    Trades without fills are not of the ledger. A report without a close time or a position key matches any.
    """
    if trade.first_fill_id is None or trade.pnl is None or trade.closed_at is None:
        return False
    if report.position_key not in (None, trade.position_key):
        return False
    if report.closed_at is not None and abs(report.closed_at - trade.closed_at) > CLOSE_TOLERANCE:
        return False
    return math.isclose(report.pnl, trade.pnl, rel_tol=PNL_TOLERANCE, abs_tol=PNL_TOLERANCE * trade.fees + CENT)
