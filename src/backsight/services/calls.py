"""Calls: what the market made of a call once its horizon was over."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.instants import Horizon
from backsight.core.market import Bar
from backsight.core.memory.episodic import Episode, resolved
from backsight.core.strategies import Deployment
from backsight.services.plans import record_outcome
from backsight.store import bars as stored_bars
from backsight.store import memories as stored
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection
from backsight.store.transaction import Transaction


def resolve_calls(transaction: Transaction, owner: str, *, by: datetime, recorded_at: datetime) -> None:
    """Judge the calls whose horizon is over by an instant, as far as the bars that are stored reach.

    One that cannot be judged within a month is not tried again at every tick.
    """
    for call in stored.calls_due(transaction.connection, owner, since=by - GIVEN_UP, by=by):
        judged = _judged(transaction.connection, call, recorded_at=recorded_at)
        if judged is not None and judged.known_at <= by:
            transaction.revise(stored.EPISODES, judged)
            record_outcome(transaction, _home(transaction.connection, call), judged, recorded_at=recorded_at)


def _judged(connection: Connection, call: Episode, *, recorded_at: datetime) -> Episode | None:
    began, ends = call.opened_at, call.ended_at
    if began is None:
        return None
    own = _moved(connection, call.owner_id, call.symbol, began, ends, stated=call.entry_price)
    against = None if call.benchmark is None else _moved(connection, call.owner_id, call.benchmark, began, ends)
    if own is None or (call.benchmark is not None and against is None):
        return None
    return resolved(
        call,
        entry_price=own.first,
        exit_price=own.last,
        benchmark=None if against is None else (against.first, against.last),
        known_at=own.known_at if against is None else max(own.known_at, against.known_at),
        recorded_at=recorded_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moved:
    """The prices at both ends of a horizon, and when the last one was known."""

    first: float
    last: float
    known_at: datetime


def _moved(
    connection: Connection, owner: str, symbol: str, began: datetime, ends: datetime, *, stated: float | None = None
) -> _Moved | None:
    """How a price moved over a horizon; where no bar closed in it, not at all."""
    told = stored_bars.first_close_from(connection, owner, symbol, ends)
    before, last = (_last_bar(connection, owner, symbol, at) for at in (began, ends))
    first = stated or (None if before is None else before.close)
    if told is None or last is None or not first:
        return None
    return _Moved(first=first, last=last.close if last.closes_at > began else first, known_at=max(ends, told))


def _last_bar(connection: Connection, owner: str, symbol: str, at: datetime) -> Bar | None:
    """The bar that closed last by an instant, the finest of several."""
    counts = dict.fromkeys(stored_bars.intervals(connection, owner, symbol), 1)
    if not counts:
        return None
    found = stored_bars.last_bars(connection, owner, Horizon(as_of=at), symbol=symbol, counts=counts)
    lasts = [series[-1] for series in found.values() if series]
    return max(lasts, key=lambda bar: (bar.closes_at, -bar.interval_seconds), default=None)


def _home(connection: Connection, call: Episode) -> Deployment:
    home = stored_strategies.deployment(connection, call.owner_id, call.deployment_id)
    if home is None:
        raise AssertionError(f"call {call.id!r} has no deployment")
    return home


GIVEN_UP = timedelta(days=30)
