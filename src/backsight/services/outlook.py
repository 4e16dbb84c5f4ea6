"""What usually happens with a symbol: base rate and recommended risk of each direction, similar trades and losses.

The prompt of a tick needs this for every symbol that may be traded. What several symbols and directions share is read
once: the open trades, the columns of the episodes, the evidence for sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from backsight.core.context import ContextVector
from backsight.core.instants import EPOCH, Horizon
from backsight.core.portfolio import Direction, Mode
from backsight.core.prompts.symbol_memory import DirectionOutlook
from backsight.core.recall.base_rate import BaseRate, OpenTrade
from backsight.core.recall.rank import RecalledMemory
from backsight.core.recommended_size import PositionSize, SizingQuery
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.habit_learning import evidence_filter
from backsight.services.mood import mood_in
from backsight.services.recall import RecallSession, similar_episodes
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.recall.arrays.columns import Columns
    from backsight.core.recall.arrays.selection import TradeFilter
    from backsight.core.sizing import ClosedTrades

STRATEGIES_CACHED = 4
"""Strategies whose closed trades are kept between ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolOutlook:
    """The outlook of each direction in a symbol, the most similar episodes, and losses in similar contexts."""

    directions: tuple[DirectionOutlook, ...]
    nearest: tuple[RecalledMemory, ...]
    warnings: tuple[RecalledMemory, ...]


def symbol_outlook(
    ctx: Context,
    session: RecallSession,
    directions: Sequence[Direction],
    *,
    open_trades: Sequence[OpenTrade],
    risk_appetite: float,
) -> SymbolOutlook:
    """The outlook for the symbol of a recall, which must name a strategy and a mode."""
    from backsight.core.recall.arrays.base_rate import base_rates

    query, view, mode = session.query, session.view, session.query.mode_filter
    if query.strategy_name is None or mode is None:
        raise AssertionError("an outlook is of one strategy in one mode")
    trade_filter = evidence_filter(view, mode, strategy_name=query.strategy_name, symbol=query.symbol)
    rates = base_rates(
        session.columns,
        session.situation,
        directions,
        trade_filter=trade_filter,
        horizon=view.horizon,
        open_trades=open_trades,
    )
    sizes = _sizes(session.columns, view, trade_filter, query.context, directions, risk_appetite)
    similar = similar_episodes(ctx, session)
    return SymbolOutlook(
        directions=tuple(
            DirectionOutlook(direction=each, base_rate=_known(rates[each]), size=sizes[each]) for each in directions
        ),
        nearest=similar.nearest,
        warnings=similar.warnings,
    )


def _known(rate: BaseRate) -> BaseRate | None:
    return rate if rate.levels[0].n or rate.levels[0].open else None


def _sizes(
    columns: "Columns",
    view: View,
    trade_filter: "TradeFilter",
    context: ContextVector,
    directions: Sequence[Direction],
    risk_appetite: float,
) -> Mapping[Direction, PositionSize]:
    from backsight.core.sizing import position_size

    evidence = sizing_evidence(columns, trade_filter, view.horizon)
    return {
        each: position_size(evidence.in_r, sizing_query(each, context), risk_appetite=risk_appetite)
        for each in directions
    }


def recommended_share(
    ctx: Context, view: View, deployment: Deployment, direction: Direction, context: ContextVector
) -> float | None:
    """The share of equity that `position_size` recommends to risk on an entry; None before there are results in R."""
    from backsight.core.sizing import position_size

    strategy, symbol = deployment.strategy_name, context.symbol or ""
    trade_filter = evidence_filter(view, deployment.mode, strategy_name=strategy, symbol=symbol)
    evidence = sizing_evidence(ctx.database.images.at(view), trade_filter, view.horizon)
    if not len(evidence.in_r.day):
        return None
    appetite = mood_in(view, deployment).risk_appetite
    return position_size(evidence.in_r, sizing_query(direction, context), risk_appetite=appetite).recommended


def sizing_query(direction: Direction, context: ContextVector) -> SizingQuery:
    """The categories of a trade in this direction and context."""
    return SizingQuery(
        direction=direction,
        symbol=context.symbol,
        regime=context.regime,
        volatility_regime=context.volatility_regime,
        session=context.session,
    )


def sizing_evidence(columns: "Columns", trade_filter: "TradeFilter", horizon: Horizon) -> "ClosedTrades":
    """The closed trades that a size rests on; the same object until an episode is added to the columns."""
    from backsight.core.sizing import closed_trades

    if horizon.seen_at is not None or trade_filter.falling_since:
        return closed_trades(columns, trade_filter, horizon)
    return _evidence(columns, trade_filter.strategy_name, trade_filter.mode, _last_known(columns, horizon))


def _last_known(columns: "Columns", horizon: Horizon) -> int:
    from backsight.core.recall.arrays.selection import known_rows

    return known_rows(columns, horizon.as_of)


@lru_cache(maxsize=STRATEGIES_CACHED)
def _evidence(columns: "Columns", strategy_name: str | None, mode: Mode | None, rows: int) -> "ClosedTrades":
    """The closed trades among the first rows of the columns; kept, since most ticks close no trade."""
    from backsight.core.recall.arrays.selection import TradeFilter
    from backsight.core.sizing import closed_trades

    last = EPOCH + timedelta(microseconds=int(columns.known_at[rows - 1])) if rows else EPOCH
    return closed_trades(columns, TradeFilter(strategy_name=strategy_name, mode=mode), Horizon(as_of=last))
