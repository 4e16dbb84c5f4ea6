"""Closed trades in the two forms that reflection analyses one by one: for evidence, and by holdout arm."""

import math
from datetime import UTC

from backsight.core.reflection.holdout_test import HoldoutTrade
from backsight.core.reflection.patterns import ClosedTrade
from backsight.core.regime import session_of
from backsight.core.trades.summary import ClosedTradeRow
from backsight.core.trades.trade import Trade


def closed_trade(trade: Trade) -> ClosedTrade:
    """The trade for the search for evidence: what was known at its entry, and its result."""
    opened, context = trade.opened_at, trade.context
    return ClosedTrade(
        id=trade.id,
        ended_at=trade.closed_at or trade.known_at,
        known_at=trade.known_at,
        symbol=trade.symbol,
        outcome=trade.outcome,
        won=None if trade.pnl is None else trade.won,
        regime=context.regime,
        volatility_regime=context.volatility_regime,
        regime_tag=trade.entry.regime_tag,
        session=context.session or (None if opened is None else session_of(opened)),
        hour=context.hour_utc if opened is None else opened.astimezone(UTC).hour,
        weekday=context.day_of_week if opened is None else opened.astimezone(UTC).weekday(),
        opened_at=opened,
        deployment_id=trade.deployment_id,
        direction=trade.direction,
        size_share=_size_share(trade),
        captured=_captured(trade),
        hold_seconds=None if trade.holding_minutes is None else 60.0 * trade.holding_minutes,
    )


def holdout_trade(row: ClosedTradeRow) -> HoldoutTrade | None:
    """The trade with its holdout arm; None if its arm, its entry time or its outcome is unknown."""
    if row.memory_arm is None or row.opened_at is None or row.outcome is None:
        return None
    day = row.opened_at.astimezone(UTC).date()
    return HoldoutTrade(
        arm=row.memory_arm, day=day, deployment_id=row.deployment_id, outcome=row.outcome, pnl=row.money
    )


def _size_share(trade: Trade) -> float | None:
    """The notional value of the entry as a share of equity.

    The size at entry is preferred to the size of the whole trade: whether a position is added to depends on how the
    trade went.
    """
    equity, size = trade.entry.equity, trade.size if trade.entry.size is None else trade.entry.size
    notional = trade.notional(size) if trade.currency is None else None
    if not equity or equity < 0.0 or notional is None:
        return None
    share = notional / equity
    return share if math.isfinite(share) else None


def _captured(trade: Trade) -> float | None:
    """The realised profit as a share of the maximum favourable excursion, 0 to 1; before costs if these are known."""
    gain = trade.pnl if trade.realized_pnl is None else trade.realized_pnl
    if gain is None or trade.mfe is None or trade.mfe <= 0.0:
        return None
    return max(0.0, min(1.0, gain / trade.mfe))
