"""Upcoming market events, and what past events of their kind did to the prices of open positions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from backsight.core.events import (
    COARSEST_SECONDS,
    MOVE_AFTER,
    Exposure,
    MarketEvent,
    concerns,
    moves_of,
    outcome_figures,
)
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Trade, dollars_for_one, in_dollars
from backsight.services.bar_symbols import symbol_of_bars
from backsight.services.deployments import account_of
from backsight.store import bars as stored_bars
from backsight.store import events as stored
from backsight.store import trades as stored_trades
from backsight.store.view import View

AHEAD = timedelta(hours=72)
MIN_IMPORTANCE = 0.4
OUTCOME_LASTS = timedelta(hours=72)
"""For how long after an event conditions know its outcome."""


def next_event(view: View, symbol: str | None) -> tuple[str, float] | None:
    """The kind of the next important event that concerns a symbol, and the hours to it; None within 72 hours."""
    upcoming = stored.events_between(view, since=view.as_of, until=view.as_of + AHEAD)
    for event in upcoming:
        if event.importance >= MIN_IMPORTANCE and (symbol is None or concerns(event, symbol)):
            return event.kind, (event.scheduled_at - view.as_of).total_seconds() / 3_600.0
    return None


def last_outcomes(view: View, symbol: str | None) -> dict[str, float]:
    """The figures of the last event of each kind in the last 72 hours that concerns a symbol, like `nfp.actual`."""
    events = stored.events_between(view, since=view.as_of - OUTCOME_LASTS, until=view.as_of)
    return outcome_figures(events, symbol=symbol, at=view.as_of)


def as_known(event: MarketEvent, view: View) -> MarketEvent:
    """An event without its published value, if it has not happened yet."""
    return replace(event, actual=None) if event.scheduled_at > view.as_of else event


def exposures(view: View, deployment: Deployment, events: Sequence[MarketEvent]) -> tuple[Exposure, ...]:
    """What each event may mean for each open position of a deployment that it concerns."""
    account = account_of(view.connection, deployment)
    open_trades = [
        trade
        for trade in stored_trades.open_then(view, deployment.account_id)
        if trade.deployment_id == deployment.id and trade.open_size
    ]
    exposed: list[Exposure] = []
    moves: dict[tuple[str, str], tuple[list[float], str | None]] = {}
    for event in events:
        for trade in open_trades:
            if not concerns(event, trade.symbol):
                continue
            key = event.kind, trade.symbol
            if key not in moves:
                moves[key] = past_moves(view, event.kind, trade.symbol)
            known, why_fewer = moves[key]
            count, typical, worst, missing = moves_of(known, trade.direction, why_fewer=why_fewer)
            notional = _notional(view, trade)
            exposed.append(
                Exposure(
                    event_id=event.id,
                    symbol=trade.symbol,
                    position_side=trade.direction,
                    notional=notional,
                    currency=account.currency,
                    notional_usd=in_dollars(notional, dollars_for_one(account.currency)),
                    similar_events_back=count,
                    median_abs_move=typical,
                    worst_move=worst,
                    missing=missing,
                )
            )
    return tuple(exposed)


def _notional(view: View, trade: Trade) -> float | None:
    """What the open size is worth at the last mark, else at the average entry."""
    if trade.currency is not None:
        return None
    mark = stored_trades.last_mark(view, trade)
    return trade.notional(trade.open_size, None if mark is None else mark.position.mark)


def past_moves(view: View, kind: str, symbol: str) -> tuple[list[float], str | None]:
    """The moves of a symbol's price in the four hours after past events of a kind, and why there may be none.

    Events of one instant have one move: a calendar lists the figures of one print (monthly, yearly, core) one by one.
    """
    symbol = symbol_of_bars(view, symbol)
    lengths = stored_bars.intervals_then(view, symbol)
    fine = sorted(each for each in lengths if each <= COARSEST_SECONDS)
    if not lengths:
        return [], f"no bars of {symbol} are stored; import_bars imports them"
    if not fine:
        return [], f"bars of at most an hour are needed; those of {symbol} are of {min(lengths) // 3_600} hours"
    past = stored.past_events(view, kind=kind, until=view.as_of - MOVE_AFTER)
    instants = sorted({event.scheduled_at for event in past if concerns(event, symbol)})  # one print, several figures
    if not instants:
        return [], f"no past event of the kind {kind} that concerns {symbol} is known; import_events imports them"
    moves = [_move(view, symbol, fine, at) for at in instants]
    return [move for move in moves if move is not None], None


def _move(view: View, symbol: str, lengths: Sequence[int], at: datetime) -> float | None:
    """The move from an instant to four hours after, as a share; None if bars are missing at either end."""
    for seconds in lengths:
        first, last = (
            stored_bars.close_at(view, symbol=symbol, interval_seconds=seconds, at=end) for end in (at, at + MOVE_AFTER)
        )
        if first and last is not None:
            return last / first - 1.0
    return None
