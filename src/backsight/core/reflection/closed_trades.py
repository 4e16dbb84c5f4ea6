"""Closed trades in the three forms that reflection analyses: for evidence, by lessons revision, and by holdout arm."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from backsight.core.holdout import MemoryArm
from backsight.core.reflection.holdout_test import HoldoutTrade
from backsight.core.reflection.lessons_comparison import TradeUnderLessons
from backsight.core.reflection.patterns import ClosedTrade
from backsight.core.regime import session_of
from backsight.core.trades.trade import Outcome, Trade


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTradeRow:
    """The columns of a closed trade that comparisons read."""

    id: str
    deployment_id: str
    opened_at: datetime | None
    closed_at: datetime
    outcome: Outcome | None
    pnl: float | None
    currency: str | None = None
    """Given if the result could not be converted into the account's currency: it is in no sum."""
    realized_pnl_usd: float | None
    lessons_hash: str | None
    memory_arm: MemoryArm | None

    @property
    def money(self) -> float | None:
        """The net result in the account's currency."""
        return self.pnl if self.currency is None else None


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


def trade_under_lessons(row: ClosedTradeRow) -> TradeUnderLessons:
    """The trade with the lessons that were shown when it was opened."""
    return TradeUnderLessons(
        lessons_hash=row.lessons_hash,
        day=row.closed_at.astimezone(UTC).date(),
        outcome=row.outcome,
        pnl=row.money,
        pnl_usd=row.realized_pnl_usd,
        won=None if row.pnl is None else row.pnl > 0,
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
