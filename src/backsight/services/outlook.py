"""What usually happens with a symbol: expectation and recommended risk of each direction, similar trades and losses.

The prompt of a tick needs this for every symbol that may be traded. What several symbols and directions share is read
once: the open trades, the columns of the episodes, the evidence for sizes.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from backsight.core.context import ContextVector
from backsight.core.instants import EPOCH, Horizon
from backsight.core.instruments import Underlyings
from backsight.core.memory.episodic import risk_share
from backsight.core.portfolio import Direction, Mode
from backsight.core.prompts.symbol_memory import DirectionOutlook
from backsight.core.recall.rank import RecalledMemory
from backsight.core.recall.won_counts import AllTrades
from backsight.core.recommended_size import OpenRisk, PositionSize, SizingQuery
from backsight.core.strategies import Deployment
from backsight.core.trades.mark import PositionMark, open_result
from backsight.core.trades.trade import Trade
from backsight.services.context import Context
from backsight.services.habit_learning import evidence_filter
from backsight.services.recall import MarkedTrade, RecallSession, marked_trades, similar_episodes, with_marks
from backsight.store import trades as stored_trades
from backsight.store.instruments import underlyings as underlyings_in
from backsight.store.view import View

if TYPE_CHECKING:
    from backsight.core.recall.arrays.columns import Columns
    from backsight.core.recall.arrays.scan import Scan
    from backsight.core.recall.arrays.selection import TradeFilter
    from backsight.core.sizing import ClosedTrades
    from backsight.services.present_state import PresentState

STRATEGIES_CACHED = 4
"""Strategies whose closed trades are kept between ticks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolOutlook:
    """The outlook of each direction in a symbol, the most similar episodes, and losses in similar contexts."""

    trades: AllTrades
    """The trades that the outlooks rest on."""
    falling_since: Mapping[tuple[str, str | None], datetime]
    """By strategy and symbol, None for the strategy as a whole: since when results have been falling."""
    directions: tuple[DirectionOutlook, ...]
    nearest: tuple[RecalledMemory, ...]
    warnings: tuple[RecalledMemory, ...]
    scan: "Scan"
    """The ranking of all episodes that they are part of."""


def symbol_outlook(
    ctx: Context,
    session: RecallSession,
    directions: Sequence[Direction],
    *,
    account_trades: Sequence[MarkedTrade],
    risk_appetite: float,
    underlyings: Underlyings,
) -> SymbolOutlook:
    """The outlook for the symbol of a recall, which must name a strategy and a mode.

    `account_trades` are the open trades of the account, of all its strategies.
    """
    from backsight.core.sizing import all_trades, won_counts

    query, view, mode = session.query, session.view, session.query.mode_filter
    if query.strategy_name is None or mode is None:
        raise AssertionError("an outlook is of one strategy in one mode")
    symbols = session.situation.symbols
    trade_filter = evidence_filter(view, mode, strategy_name=query.strategy_name, symbols=symbols)
    evidence = sizing_evidence(session.columns, trade_filter, view.horizon, underlyings)
    queries = {direction: sizing_query(direction, query.context, underlyings) for direction in directions}
    similar = similar_episodes(ctx, session)
    return SymbolOutlook(
        trades=all_trades(evidence),
        falling_since=trade_filter.falling_since,
        directions=tuple(
            DirectionOutlook(
                direction=direction,
                counts=won_counts(evidence.in_r, sizing),
                size=recommended_size(
                    evidence,
                    sizing,
                    risk_appetite=risk_appetite,
                    open_risk=open_risk(account_trades, query.strategy_name, symbols, direction),
                ),
            )
            for direction, sizing in queries.items()
        ),
        nearest=similar.nearest,
        warnings=similar.warnings,
        scan=similar.scan,
    )


def recommended_size(
    evidence: "ClosedTrades", query: SizingQuery, *, risk_appetite: float, open_risk: OpenRisk
) -> PositionSize:
    """The size of a trade, with all that lowers it."""
    from backsight.core.sizing import position_size

    return position_size(
        evidence.in_r,
        query,
        risk_appetite=risk_appetite,
        strategies=evidence.strategies,
        open_risk=open_risk,
    )


def open_in(view: View, deployment: Deployment | None, mode: Mode) -> list[MarkedTrade]:
    """The open trades of a deployment's account; of all accounts of the mode if no deployment is known."""
    if deployment is None:
        return marked_trades(view, strategy_name=None, mode=mode)
    return with_marks(view, stored_trades.open_then(view, deployment.account_id))


def open_risk(
    trades: Iterable[MarkedTrade], strategy_name: str, symbols: Collection[str], direction: Direction
) -> OpenRisk:
    """The risk of the open trades on the same signal: in the same direction, of the same strategy or underlying."""
    same = [
        (trade, mark)
        for trade, mark in trades
        if trade.direction == direction and (trade.strategy_name == strategy_name or trade.symbol in symbols)
    ]
    shares = [share for trade, mark in same if (share := _share_at_risk(trade, mark)) is not None]
    return OpenRisk(share=math.fsum(shares), trades=len(same), unknown=len(same) - len(shares))


def _share_at_risk(trade: Trade, mark: PositionMark | None) -> float | None:
    """The largest risk of an open trade so far, as a share of the equity at entry; None where a part is not known."""
    result = open_result(trade, mark)
    risk = trade.entry.configured_risk if result is None else result.risk
    return risk_share(replace(trade, risk=risk))


def recommended_share(
    ctx: Context,
    view: View,
    deployment: Deployment,
    direction: Direction,
    context: ContextVector,
    present: "PresentState",
) -> float | None:
    """The share of equity that the prompt of a tick recommends to risk on an entry; None without a recommendation.

    Evidence is that of the view; open trades and risk appetite are those of the instant.
    """
    strategy, symbol, known = deployment.strategy_name, context.symbol or "", underlyings_in(view)
    symbols = (symbol, *known.joined(symbol))
    trade_filter = evidence_filter(view, deployment.mode, strategy_name=strategy, symbols=symbols)
    evidence = sizing_evidence(ctx.database.images.at(view), trade_filter, view.horizon, known)
    return recommended_size(
        evidence,
        sizing_query(direction, context, known),
        risk_appetite=present.mood.risk_appetite,
        open_risk=open_risk(present.open_trades, strategy, symbols, direction),
    ).recommended


def sizing_query(direction: Direction, context: ContextVector, underlyings: Underlyings) -> SizingQuery:
    """The categories of a trade in this direction and context; symbols of one underlying are one category."""
    return SizingQuery(
        direction=direction,
        symbol=None if context.symbol is None else underlyings.of(context.symbol),
        regime=context.regime,
        volatility_regime=context.volatility_regime,
        session=context.session,
    )


def sizing_evidence(
    columns: "Columns", trade_filter: "TradeFilter", horizon: Horizon, underlyings: Underlyings
) -> "ClosedTrades":
    """The closed trades that a size rests on; the same object until an episode is added to the columns."""
    from backsight.core.sizing import closed_trades

    if horizon.seen_at is not None or trade_filter.falling_since:
        return closed_trades(columns, trade_filter, horizon, underlyings=underlyings)
    rows = _last_known(columns, horizon)
    return _evidence(columns, trade_filter.strategy_name, trade_filter.mode, rows, underlyings.pairs)


def _last_known(columns: "Columns", horizon: Horizon) -> int:
    from backsight.core.recall.arrays.selection import known_rows

    return known_rows(columns, horizon.as_of)


_EvidenceKey = tuple[str | None, Mode | None, int, tuple[tuple[str, str], ...]]
_EVIDENCE: "WeakKeyDictionary[Columns, dict[_EvidenceKey, ClosedTrades]]" = WeakKeyDictionary()
"""By columns: the evidence of a few strategies. It is dropped with the columns, which are large."""


def _evidence(
    columns: "Columns",
    strategy_name: str | None,
    mode: Mode | None,
    rows: int,
    underlyings: tuple[tuple[str, str], ...],
) -> "ClosedTrades":
    """The closed trades among the first rows of the columns; kept, since most ticks close no trade."""
    key, known = (strategy_name, mode, rows, underlyings), _EVIDENCE.setdefault(columns, {})
    if key not in known:
        if len(known) >= STRATEGIES_CACHED:
            known.clear()
        known[key] = _closed_trades(columns, strategy_name, mode, rows, underlyings)
    return known[key]


def _closed_trades(
    columns: "Columns",
    strategy_name: str | None,
    mode: Mode | None,
    rows: int,
    underlyings: tuple[tuple[str, str], ...],
) -> "ClosedTrades":
    from backsight.core.recall.arrays.selection import TradeFilter
    from backsight.core.sizing import closed_trades

    last = EPOCH + timedelta(microseconds=int(columns.known_at[rows - 1])) if rows else EPOCH
    trade_filter = TradeFilter(strategy_name=strategy_name, mode=mode)
    return closed_trades(columns, trade_filter, Horizon(as_of=last), underlyings=Underlyings(dict(underlyings)))
