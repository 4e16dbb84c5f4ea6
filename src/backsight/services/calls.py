"""Judge calls: once the horizon of a call is over, stored bars tell its outcome."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.instants import Horizon
from backsight.core.market import Bar
from backsight.core.memory.episodic import Episode, resolve_call
from backsight.services.deployments import deployment_of
from backsight.services.plan_learning import record_outcome
from backsight.store import bars as stored_bars
from backsight.store import memories as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View

GIVEN_UP = timedelta(days=30)
"""How long after its horizon a call is still tried again at every tick."""


def resolve_calls(transaction: Transaction, owner: str, *, by: datetime, recorded_at: datetime) -> None:
    """Judge the calls whose horizon is over at an instant, as far as the stored bars reach."""
    connection = transaction.connection
    for call in stored.calls_due(connection, owner, since=by - GIVEN_UP, by=by):
        resolved = _judge(connection, call, recorded_at=recorded_at)
        if resolved is not None and resolved.known_at <= by:
            transaction.revise(stored.EPISODES, resolved)
            record_outcome(transaction, deployment_of(connection, call), resolved, recorded_at=recorded_at)


def _judge(connection: Connection, call: Episode, *, recorded_at: datetime) -> Episode | None:
    """The call with its outcome; None while a price is missing."""
    begins, ends = call.opened_at, call.ended_at
    if begins is None:
        return None
    own = _read_move(connection, call.owner_id, call.symbol, begins, ends, entry_price=call.entry_price)
    if own is None:
        return None
    benchmark = None
    if call.benchmark is not None:
        benchmark = _read_move(connection, call.owner_id, call.benchmark, begins, ends)
        if benchmark is None:
            return None
    return resolve_call(
        call,
        entry_price=own.first,
        exit_price=own.last,
        benchmark=None if benchmark is None else (benchmark.first, benchmark.last),
        known_at=own.known_at if benchmark is None else max(own.known_at, benchmark.known_at),
        recorded_at=recorded_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PriceMove:
    """The prices at both ends of a horizon, and when the last one was known."""

    first: float
    last: float
    known_at: datetime


def _read_move(
    connection: Connection,
    owner: str,
    symbol: str,
    begins: datetime,
    ends: datetime,
    *,
    entry_price: float | None = None,
) -> _PriceMove | None:
    """How a price moved over a horizon; None until a bar closes at or after the end.

    Where no bar closed within the horizon, the price did not move.
    """
    closed_at = stored_bars.first_close_from(connection, owner, symbol, ends)
    before, last = (_last_bar(connection, owner, symbol, at) for at in (begins, ends))
    first = entry_price or (None if before is None else before.close)
    if closed_at is None or last is None or not first:
        return None
    last_price = last.close if last.closes_at > begins else first
    return _PriceMove(first=first, last=last_price, known_at=max(ends, closed_at))


def _last_bar(connection: Connection, owner: str, symbol: str, at: datetime) -> Bar | None:
    """The bar that closed last by an instant; of several, the one with the shortest interval."""
    counts = dict.fromkeys(stored_bars.intervals(connection, owner, symbol), 1)
    if not counts:
        return None
    bars = stored_bars.last_bars(View(connection, owner, Horizon(as_of=at)), symbol=symbol, counts=counts)
    lasts = [series[-1] for series in bars.values() if series]
    return max(lasts, key=lambda bar: (bar.closes_at, -bar.interval_seconds), default=None)
