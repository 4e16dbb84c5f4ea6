"""Closed and open trades: a page of them, and one with its episode."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Cursor, Instant, Key, Limit, Name, SeenAt, Symbol
from backsight.core.memory.episodic import Episode, episode_id_of
from backsight.core.portfolio import Direction
from backsight.core.recall.record import ModeChoice
from backsight.core.text.counts import count_of
from backsight.core.trades.mark import OpenResult, PositionMark, open_result
from backsight.core.trades.trade import Trade, TradeStatus
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import hint_where_trades_are, resolve_scope
from backsight.services.id_prefixes import trade_known_then
from backsight.services.paging import cursor_after, instant_and_id, read_cursor
from backsight.store import memories as stored_memories
from backsight.store import trades as stored
from backsight.store.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class TradePage:
    """A page of trades, newest first, and the cursor of the next page."""

    trades: tuple[Trade, ...]
    next_cursor: str | None
    mode: ModeChoice
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeRead:
    """One trade, its episode, and its mark at the last tick at which it was open."""

    trade: Trade
    episode: Episode | None
    """None while the trade is open."""
    mark: PositionMark | None
    so_far: OpenResult | None
    """Result and excursions at the last mark; None for a closed trade, which has its own, and before any mark."""


@query(audience=("trader", "coach"))
def list_trades(
    ctx: Context,
    *,
    symbol: Annotated[Symbol | None, "Only trades in this instrument."] = None,
    strategy_name: Annotated[Name | None, "Only trades of this strategy."] = None,
    deployment: Annotated[Key | None, "Only trades of this deployment, by name or id."] = None,
    direction: Annotated[Direction | None, "Only trades in this direction."] = None,
    mode: Annotated[
        ModeChoice | None,
        "By default the deployment's, or the only one with trades.",
    ] = None,
    status: Annotated[TradeStatus, "Closed trades, or open trades."] = "closed",
    since: Annotated[Instant | None, "Only trades closed (or opened, if open) at or after this instant."] = None,
    until: Annotated[Instant | None, "Only trades closed (or opened, if open) before this instant."] = None,
    limit: Annotated[Limit, "The most trades to return."] = 20,
    cursor: Annotated[Cursor | None, "The next_cursor of the previous page."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradePage:
    """List closed or open trades, newest first, one page at a time."""
    horizon = ctx.horizon(as_of, seen_at)
    page_query = ctx.arguments(without=("cursor", "limit"))
    before = None
    if cursor is not None:
        before, horizon = read_cursor(cursor, instant_and_id, query=page_query)
    with ctx.reading() as connection:
        view = View(connection, ctx.owner, horizon)
        scope = resolve_scope(
            view,
            deployment=deployment,
            strategy_name=strategy_name,
            mode=None if mode == "all" else mode,
            all_modes=mode == "all",
        )
        one_mode = None if mode == "all" else scope.mode
        trades = stored.trades(
            view,
            limit=limit + 1,
            before=before,
            since=since,
            until=until,
            symbol=symbol,
            strategy_name=strategy_name,
            deployment_id=None if scope.deployment is None else scope.deployment.id,
            side=direction,
            mode=one_mode,
            status=status,
        )
        more = "; there are more" if len(trades) > limit else ""
        sentence = f"{count_of(min(len(trades), limit), f'{status} trade')}, newest first{more}."
        message = " ".join([*scope.notes, sentence])
        if not trades:
            hint = hint_where_trades_are(view, mode=one_mode, strategy_name=strategy_name, symbol=symbol)
            message = " ".join([*scope.notes, f"No {status} trades match.", hint])
    page = tuple(trades[:limit])
    next_cursor = None
    if len(trades) > limit:
        last = page[-1]
        listed_at = last.closed_at or last.opened_at or last.known_at
        next_cursor = cursor_after([listed_at, last.id], horizon, now=ctx.now, query=page_query)
    return TradePage(trades=page, next_cursor=next_cursor, mode=one_mode or "all", message=message, as_of=horizon.as_of)


@query(audience=("trader", "coach"))
def get_trade(
    ctx: Context,
    *,
    trade_id: Annotated[Key, "The trade's id, from remember_trade or list_trades."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> TradeRead:
    """Get one trade with its context, its outcome and its episode; an open one as it stands at its last mark."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        trade, view = trade_known_then(connection, ctx.owner, trade_id, horizon), View(connection, ctx.owner, horizon)
        mark = stored.last_mark(view, trade)
        return TradeRead(
            trade=trade,
            episode=stored_memories.episode(view, episode_id_of(trade.id)),
            mark=mark,
            so_far=open_result(trade, mark),
        )
