"""Trades that are over, as reflection looks at them: for evidence, beside lessons, and by the arm of memory."""

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
    """What comparisons need of a closed trade."""

    deployment_id: str
    opened_at: datetime | None
    closed_at: datetime
    outcome: Outcome | None
    pnl: float | None
    realized_pnl_usd: float | None
    lessons_hash: str | None
    memory_arm: MemoryArm | None


def closed_trade(trade: Trade) -> ClosedTrade:
    """What evidence needs of a trade: what was known at its entry, and what came of it."""
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
        direction=trade.direction,
        size_share=_size_share(trade),
        captured=_captured(trade),
        hold_seconds=None if trade.holding_minutes is None else 60.0 * trade.holding_minutes,
    )


def trade_under_lessons(ended: ClosedTradeRow) -> TradeUnderLessons:
    """A trade beside the lessons that were shown when it was opened."""
    return TradeUnderLessons(
        lessons_hash=ended.lessons_hash,
        day=ended.closed_at.astimezone(UTC).date(),
        outcome=ended.outcome,
        pnl=ended.pnl,
        pnl_usd=ended.realized_pnl_usd,
        won=None if ended.pnl is None else ended.pnl > 0,
    )


def holdout_trade(ended: ClosedTradeRow) -> HoldoutTrade | None:
    """A trade by its arm of memory; None where it has none, no entry or no outcome."""
    if ended.memory_arm is None or ended.opened_at is None or ended.outcome is None:
        return None
    day = ended.opened_at.astimezone(UTC).date()
    return HoldoutTrade(arm=ended.memory_arm, day=day, deployment_id=ended.deployment_id, outcome=ended.outcome)


def _size_share(trade: Trade) -> float | None:
    """What the entry put at work as a share of equity: what was added later is a result, where that is known."""
    equity, size = trade.entry.equity, trade.size if trade.entry.size is None else trade.entry.size
    if not equity or equity < 0.0 or size is None:
        return None
    share = abs(size * trade.entry_price) / equity
    return share if math.isfinite(share) else None


def _captured(trade: Trade) -> float | None:
    """What was realised of the best there was, 0 to 1, both before costs where those are known."""
    gain = trade.pnl if trade.realized_pnl is None else trade.realized_pnl
    if gain is None or trade.mfe is None or trade.mfe <= 0.0:
        return None
    return max(0.0, min(1.0, gain / trade.mfe))
