"""Bars at rest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, bindparam, func, select, union_all

from backsight.core.instants import Horizon
from backsight.core.market import Bar
from backsight.store.mapping import noun
from backsight.store.reading import (
    OWNED,
    fetch,
    is_private,
    matching,
    owned,
    parameters,
    prepared_within,
    row_cache,
    within,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarFact:
    """A bar, known from the instant it closed."""

    owner_id: str
    bar: Bar
    known_at: datetime
    recorded_at: datetime


BARS = noun(
    BarFact,
    "bars",
    key=("symbol", "interval_seconds", "opened_at"),
    names={
        f"bar.{name}": name
        for name in ("symbol", "interval_seconds", "opened_at", "open", "high", "low", "close", "volume")
    },
    clustered=True,
)


CLOCK_CHANGE = timedelta(hours=2)
"""A day by the wall clock may be this much shorter than another."""
_C = BARS.table.c
_SYMBOL = _C.owner_id == OWNED, _C.symbol == bindparam("symbol")
_SERIES = *_SYMBOL, _C.interval_seconds == bindparam("seconds")
_PRICES = select(_C.opened_at, _C.open, _C.high, _C.low, _C.close, _C.volume)
_FINEST = select(func.min(_C.interval_seconds)).where(*_SYMBOL)
_CLOSED = _PRICES.where(*_SERIES, _C.opened_at > bindparam("after"), _C.opened_at <= bindparam("until")).order_by(
    _C.opened_at
)


def _intervals() -> Select[Any]:
    """The lengths that a symbol has bars of, one step in the key's order each, however many bars there are."""
    shortest = func.min(_C.interval_seconds).label("length")
    lengths = select(shortest).where(*_SYMBOL).cte("lengths", recursive=True)
    longer = select(shortest).where(*_SYMBOL, _C.interval_seconds > lengths.c.length).scalar_subquery()
    every = lengths.union_all(select(longer).where(lengths.c.length.is_not(None)))
    return select(every.c.length).where(every.c.length.is_not(None)).order_by(every.c.length)


_INTERVALS = _intervals()


@cache
def _lasts(lengths: tuple[int, ...]) -> CompoundSelect[Any]:
    """The last bars of several lengths in one statement, each length with the count of bars that is asked for."""
    parts = [
        select(_C.interval_seconds, *_PRICES.selected_columns)
        .where(*_SYMBOL, _C.interval_seconds == seconds, *prepared_within(BARS))
        .where(_C.opened_at <= bindparam(f"opened_{seconds}"))
        .order_by(_C.opened_at.desc())
        .limit(bindparam(f"count_{seconds}"))
        .subquery()
        for seconds in lengths
    ]
    return union_all(*(select(part) for part in parts))


def finest_interval(connection: Connection, owner: str, symbol: str) -> int | None:
    """The shortest length in seconds that a symbol has bars of."""
    found: int | None = connection.execute(_FINEST, parameters(owner, symbol=symbol)).scalar_one()
    return found


def intervals(connection: Connection, owner: str, symbol: str) -> tuple[int, ...]:
    """The lengths in seconds that a symbol has bars of, shortest first."""
    held, key = row_cache(connection), (BARS, owner, symbol)
    if key in held:
        known: tuple[int, ...] = held[key]
        return known
    found = tuple(connection.execute(_INTERVALS, parameters(owner, symbol=symbol)).scalars())
    if is_private(connection):
        held[key] = found
    return found


def last_bars(
    connection: Connection, owner: str, horizon: Horizon, *, symbol: str, counts: Mapping[int, int]
) -> dict[int, list[Bar]]:
    """The last bars of a symbol that were closed by a horizon, so many of each length, oldest first."""
    if not is_private(connection) or horizon.seen_at is not None:
        return _windows(connection, owner, horizon, symbol=symbol, counts=counts)
    held = row_cache(connection)
    for seconds, count in sorted(counts.items()):
        key = (BARS, owner, symbol, seconds, count)
        then, window = held.get(key, (None, []))
        if then is None or then > horizon.as_of:
            window = _windows(connection, owner, horizon, symbol=symbol, counts={seconds: count}).get(seconds, [])
        elif not window or horizon.as_of >= window[-1].closes_at + timedelta(seconds=seconds) - CLOCK_CHANGE:
            newest = bars_closed(
                connection, owner, symbol=symbol, interval_seconds=seconds, after=then, until=horizon.as_of
            )
            window = [*window, *newest][-count:]
        else:
            continue  # no further bar can have closed
        held[key] = horizon.as_of, window
    found = {seconds: held[BARS, owner, symbol, seconds, count][1] for seconds, count in sorted(counts.items())}
    return {seconds: window for seconds, window in found.items() if window}


def forget_windows(connection: Connection) -> None:
    """Bars were added: what was read before may not be all there is."""
    held = row_cache(connection)
    for key in [key for key in held if key[0] is BARS]:
        del held[key]


def _windows(
    connection: Connection, owner: str, horizon: Horizon, *, symbol: str, counts: Mapping[int, int]
) -> dict[int, list[Bar]]:
    if not counts:
        return {}
    values = parameters(owner, horizon, symbol=symbol)
    for seconds, count in counts.items():
        values[f"opened_{seconds}"] = horizon.as_of - timedelta(seconds=seconds)
        values[f"count_{seconds}"] = count
    found: dict[int, list[Any]] = {seconds: [] for seconds in sorted(counts)}
    for row in connection.execute(_lasts(tuple(found)), values):
        found[row[0]].append(row[1:])
    return {seconds: _made(rows[::-1], symbol, seconds) for seconds, rows in found.items() if rows}


def bars_closed(
    connection: Connection, owner: str, *, symbol: str, interval_seconds: int, after: datetime, until: datetime
) -> list[Bar]:
    """The bars of a symbol that closed after one instant and by another, oldest first."""
    length = timedelta(seconds=interval_seconds)
    values = parameters(owner, symbol=symbol, seconds=interval_seconds, after=after - length, until=until - length)
    return _made(connection.execute(_CLOSED, values), symbol, interval_seconds)


def first_close_from(connection: Connection, owner: str, symbol: str, at: datetime) -> datetime | None:
    """When the first bar of a symbol closes at or after an instant, of any length."""
    c = BARS.table.c
    closes: list[datetime] = []
    for seconds in intervals(connection, owner, symbol):
        length = timedelta(seconds=seconds)
        mine = matching(BARS, symbol=symbol, interval_seconds=seconds)
        opened = connection.execute(
            select(func.min(c.opened_at)).where(c.owner_id == owner, *mine, c.opened_at >= at - length)
        ).scalar()
        closes += [] if opened is None else [opened + length]
    return min(closes, default=None)


def _made(rows: Iterable[Any], symbol: str, interval_seconds: int) -> list[Bar]:
    """Bars by the hundred: faster than one noun at a time."""
    return [
        Bar(
            symbol=symbol,
            interval_seconds=interval_seconds,
            opened_at=opened_at,
            open=opened,
            high=high,
            low=low,
            close=close,
            volume=volume,
        )
        for opened_at, opened, high, low, close, volume in rows
    ]


def bars_between(
    connection: Connection,
    owner: str,
    horizon: Horizon | None,
    *,
    symbol: str,
    interval_seconds: int,
    since: datetime,
    until: datetime,
) -> list[Bar]:
    """The bars of a symbol that opened from one instant up to another, both counted, as far as the horizon goes."""
    c = BARS.table.c
    where = [*matching(BARS, symbol=symbol, interval_seconds=interval_seconds), c.opened_at >= since]
    seen = [] if horizon is None else within(BARS, horizon)
    statement = owned(BARS, owner, *where, c.opened_at <= until, *seen).order_by(c.opened_at)
    return [fact.bar for fact in fetch(connection, BARS, statement)]
