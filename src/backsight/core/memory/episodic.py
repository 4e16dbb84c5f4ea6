"""Episodes: what happened once, in which context, and how it ended."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.ids import derive_id
from backsight.core.portfolio import Direction, Mode
from backsight.core.trades.trade import Outcome, Trade

EpisodeKind = Literal["trade", "call", "inaction"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A closed trade, a call without a position, or a deliberate inaction."""

    owner_id: str
    id: str
    kind: EpisodeKind
    trade_id: str | None
    deployment_id: str
    strategy_name: str
    mode: Mode
    symbol: str
    direction: Direction | None
    reason: str | None
    """Why nothing was done, for an inaction."""
    run_id: str
    """The first of consecutive inactions with one symbol and reason; an episode's own id otherwise."""
    count: int
    """How many such inactions there were up to and with this one."""
    context: ContextVector
    market_context: str | None
    entry_price: float | None
    exit_price: float | None
    pnl: float | None
    outcome: Outcome | None
    hold_seconds: float | None
    mfe: float | None
    mae: float | None
    confidence: float | None
    reflection: str | None
    tags: tuple[str, ...]
    group_id: str | None
    """An episode may be of a group of trades: legs of one idea."""
    ended_at: datetime
    """When the trade was closed or the decision taken; a correction is known later."""
    known_at: datetime
    recorded_at: datetime


def episode_id_of(trade_id: str) -> str:
    """The id of the episode that a trade leaves behind."""
    return derive_id("episode", trade_id)


def episode_of_trade(trade: Trade) -> Episode:
    """The episode that a closed trade leaves behind."""
    episode_id = episode_id_of(trade.id)
    return Episode(
        owner_id=trade.owner_id,
        id=episode_id,
        kind="trade",
        trade_id=trade.id,
        deployment_id=trade.deployment_id,
        strategy_name=trade.strategy_name,
        mode=trade.mode,
        symbol=trade.symbol,
        direction=trade.direction,
        reason=None,
        run_id=episode_id,
        count=1,
        context=trade.context,
        market_context=trade.market_context,
        entry_price=trade.entry_price,
        exit_price=trade.exit_price,
        pnl=trade.pnl,
        outcome=trade.outcome,
        hold_seconds=None if trade.holding_minutes is None else trade.holding_minutes * 60,
        mfe=trade.mfe,
        mae=trade.mae,
        confidence=trade.confidence,
        reflection=trade.reflection,
        tags=trade.tags,
        group_id=trade.group_id,
        ended_at=trade.closed_at or trade.known_at,
        known_at=trade.known_at,
        recorded_at=trade.recorded_at,
    )


def continues(latest: Episode | None, *, reason: str) -> bool:
    """Whether one more inaction for this reason carries on the latest episode of its symbol."""
    return latest is not None and latest.kind == "inaction" and latest.reason == reason
