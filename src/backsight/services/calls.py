"""Judge calls: once the horizon of a call is over, stored bars tell its outcome."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.instants import Horizon, format_instant
from backsight.core.market import Bar
from backsight.core.memory.episodic import Episode, resolve_call, unjudged_call
from backsight.services.bar_symbols import symbol_of_bars
from backsight.services.deployments import deployment_of
from backsight.services.plan_learning import record_outcome
from backsight.store import bars as stored_bars
from backsight.store import memories as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View

GIVEN_UP = timedelta(days=30)
"""How long after its horizon a call is still tried again at every tick."""
OTHER_LEVEL = 1.25
"""A price this many times above or below a bar is not a price of its market: less than a 3:2 split, and more than
markets move between a price and the bar around it."""
LONGEST_CLOSURE = timedelta(days=5)
"""An older bar proves nothing about a price: markets close for a long weekend, and move over weeks."""


def resolve_calls(transaction: Transaction, owner: str, *, by: datetime, recorded_at: datetime) -> None:
    """Judge the calls whose horizon is over at an instant, as far as the stored bars reach."""
    connection = transaction.connection
    for call in stored.calls_due(connection, owner, since=by - GIVEN_UP, by=by):
        resolved = _judge(connection, call, recorded_at=recorded_at)
        if resolved is not None and resolved.known_at <= by:
            transaction.revise(stored.EPISODES, resolved)
            if resolved.not_judged is None:
                record_outcome(transaction, deployment_of(connection, call), resolved, recorded_at=recorded_at)


def _judge(connection: Connection, call: Episode, *, recorded_at: datetime) -> Episode | None:
    """The call with its outcome, or with the reason why it has none; None while a price is missing."""
    begins, ends = call.opened_at, call.ended_at
    if begins is None:
        return None
    own = _read_move(connection, call.owner_id, call.symbol, begins, ends, entry_price=call.entry_price)
    if own is None:
        return None
    why = price_contradiction(connection, call, at=begins)
    if why is not None:
        return unjudged_call(call, why=why, known_at=own.known_at, recorded_at=recorded_at)
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
    symbol = symbol_of_bars(View(connection, owner, Horizon(as_of=ends)), symbol)
    closed_at = stored_bars.first_close_from(connection, owner, symbol, ends)
    before, last = (_last_bar(connection, owner, symbol, at) for at in (begins, ends))
    first = entry_price or (None if before is None else before.close)
    if closed_at is None or last is None or not first:
        return None
    last_price = last.close if last.closes_at > begins else first
    return _PriceMove(first=first, last=last_price, known_at=max(ends, closed_at))


def price_contradiction(connection: Connection, call: Episode, *, at: datetime) -> str | None:
    """A sentence if the stated price of a call is at another level than the bars at its instant; else None.

    The price must be near the bar that closed last before the call or the bar that the call falls into, if one is
    stored: a split, another quote currency or another contract shows itself as a price far from both.
    """
    price, symbol = call.entry_price, symbol_of_bars(View(connection, call.owner_id, Horizon(as_of=at)), call.symbol)
    before = _last_bar(connection, call.owner_id, symbol, at)
    near = [] if before is None or at - before.closes_at > LONGEST_CLOSURE else [before]
    for seconds in stored_bars.intervals(connection, call.owner_id, symbol):
        until = at + timedelta(seconds=seconds)
        near += stored_bars.bars_closed(
            connection, call.owner_id, symbol=symbol, interval_seconds=seconds, after=at, until=until
        )
    if price is None or not near or any(_is_near(price, bar) for bar in near):
        return None
    bar = near[0]
    bars = f"the {call.symbol} bar of {format_instant(bar.opened_at)} is {bar.low:.10g} to {bar.high:.10g}"
    return f"Not judged: the price of the call is {price:.10g}, but {bars}: another contract, currency or split?"


def _is_near(price: float, bar: Bar) -> bool:
    """Whether a price is within a bar, or not far from it; bars with prices of 0 or below prove nothing."""
    return bar.low <= 0 or bar.low / OTHER_LEVEL <= price <= bar.high * OTHER_LEVEL


def _last_bar(connection: Connection, owner: str, symbol: str, at: datetime) -> Bar | None:
    """The bar that closed last by an instant; of several, the one with the shortest interval."""
    counts = dict.fromkeys(stored_bars.intervals(connection, owner, symbol), 1)
    if not counts:
        return None
    bars = stored_bars.last_bars(View(connection, owner, Horizon(as_of=at)), symbol=symbol, counts=counts)
    lasts = [series[-1] for series in bars.values() if series]
    return max(lasts, key=lambda bar: (bar.closes_at, -bar.interval_seconds), default=None)
