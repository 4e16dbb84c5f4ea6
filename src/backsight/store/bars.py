"""The table of bars, and reads of its latest bars."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import CompoundSelect, Connection, Select, bindparam, func, or_, select, union_all

from backsight.core.audit import AuditBatch
from backsight.core.instants import Horizon, format_instant
from backsight.core.market import Bar
from backsight.core.memory.exit_timing import PriceRange
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
from backsight.store.transaction import Transaction, insert_all
from backsight.store.unchanged import unchanged
from backsight.store.view import View

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from backsight.core.bar_columns import BarColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class BarFact:
    """A stored bar; it is known from the instant at which it closed."""

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


ROWS_AT_ONCE = 20_000
"""Rows that an import writes with one statement."""
CLOCK_CHANGE = timedelta(hours=2)
"""How much shorter than 24 hours a day of the wall clock may be."""
_C = BARS.table.c
_SYMBOL = _C.owner_id == OWNED, _C.symbol == bindparam("symbol")
_SERIES = *_SYMBOL, _C.interval_seconds == bindparam("seconds")
_PRICES = select(_C.opened_at, _C.open, _C.high, _C.low, _C.close, _C.volume)
_CLOSED = _PRICES.where(*_SERIES, _C.opened_at > bindparam("after"), _C.opened_at <= bindparam("until")).order_by(
    _C.opened_at
)

_RANGE = select(func.max(_C.high), func.min(_C.low), func.count()).where(
    *_SERIES, _C.opened_at >= bindparam("since"), _C.opened_at <= bindparam("last"), *prepared_within(BARS)
)


def _intervals() -> Select[Any]:
    """The intervals of a symbol's bars, by one index step for each interval, however many bars there are."""
    shortest = func.min(_C.interval_seconds).label("length")
    lengths = select(shortest).where(*_SYMBOL).cte("lengths", recursive=True)
    longer = select(shortest).where(*_SYMBOL, _C.interval_seconds > lengths.c.length).scalar_subquery()
    every = lengths.union_all(select(longer).where(lengths.c.length.is_not(None)))
    return select(every.c.length).where(every.c.length.is_not(None)).order_by(every.c.length)


_INTERVALS = _intervals()


@cache
def _lasts(lengths: tuple[int, ...]) -> CompoundSelect[Any]:
    """One statement for the last bars of several intervals, each with its own number of bars."""
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
    """The shortest interval of a symbol's bars, in seconds."""
    return next(iter(intervals(connection, owner, symbol)), None)


def intervals(connection: Connection, owner: str, symbol: str) -> tuple[int, ...]:
    """The intervals of a symbol's bars in seconds, shortest first."""
    return unchanged(
        connection,
        owner,
        ("intervals", symbol),
        (BARS,),
        lambda: tuple(connection.execute(_INTERVALS, parameters(owner, symbol=symbol)).scalars()),
    )


def _symbols() -> Select[Any]:
    """The symbols with bars, by one index step each."""
    owned = _C.owner_id == OWNED
    symbols = select(func.min(_C.symbol).label("symbol")).where(owned).cte("symbols", recursive=True)
    after = select(func.min(_C.symbol)).where(owned, _C.symbol > symbols.c.symbol).scalar_subquery()
    every = symbols.union_all(select(after).where(symbols.c.symbol.is_not(None)))
    return select(every.c.symbol).where(every.c.symbol.is_not(None)).order_by(every.c.symbol)


_SYMBOLS = _symbols()


def symbols(connection: Connection, owner: str) -> tuple[str, ...]:
    """The symbols with bars, in alphabetical order."""
    return unchanged(
        connection, owner, "symbols", (BARS,), lambda: tuple(connection.execute(_SYMBOLS, parameters(owner)).scalars())
    )


def intervals_then(view: View, symbol: str) -> tuple[int, ...]:
    """The intervals of a symbol's bars of which one was known at a horizon, shortest first."""
    counts = dict.fromkeys(intervals(view.connection, view.owner, symbol), 1)
    return tuple(sorted(last_bars(view, symbol=symbol, counts=counts))) if counts else ()


def last_bars(view: View, *, symbol: str, counts: Mapping[int, int]) -> dict[int, list[Bar]]:
    """The last bars of a symbol that were closed at a horizon, oldest first; `counts` has the number by interval."""
    connection, owner, as_of = view.connection, view.owner, view.as_of
    if not is_private(connection) or view.seen_at is not None:
        return _windows(view, symbol=symbol, counts=counts)
    cache = row_cache(connection)
    windows: dict[int, list[Bar]] = {}
    for seconds, count in sorted(counts.items()):
        key = (BARS, owner, symbol, seconds, count)
        read_at, window = cache.get(key, (None, []))
        if read_at is None or read_at > as_of:
            window = _windows(view, symbol=symbol, counts={seconds: count}).get(seconds, [])
            cache[key] = as_of, window
        elif not window or as_of >= window[-1].closes_at + timedelta(seconds=seconds) - CLOCK_CHANGE:
            newest = bars_closed(connection, owner, symbol=symbol, interval_seconds=seconds, after=read_at, until=as_of)
            window = [*window, *newest][-count:]
            cache[key] = as_of, window
        windows[seconds] = window  # from the cache if no further bar can have closed
    return {seconds: window for seconds, window in windows.items() if window}


def add_bars(transaction: Transaction, bars: Iterable[BarFact]) -> None:
    """Store bars, and drop the cached windows that may lack them."""
    transaction.add_all(BARS, list(bars))
    _forget_windows(transaction.connection)


def _forget_windows(connection: Connection) -> None:
    cache = row_cache(connection)
    for key in [key for key in cache if key[0] is BARS]:
        del cache[key]


def add_columns(transaction: Transaction, owner: str, series: "BarColumns", *, recorded_at: datetime) -> None:
    """Store the bars of a series like `add_bars`, without an object for each bar."""
    items = bytearray()
    for first in range(0, len(series), ROWS_AT_ONCE):
        rows = _rows_of_columns(owner, series.part(first, first + ROWS_AT_ONCE), format_instant(recorded_at))
        insert_all(transaction.connection, BARS.table, rows)
        items += "".join(BARS.item_hashes(rows)).encode("ascii")
    transaction.changes.append(AuditBatch(table=BARS.table.name, items=items.decode("ascii")))
    _forget_windows(transaction.connection)


def _rows_of_columns(owner: str, series: "BarColumns", recorded_at: str) -> list[tuple[Any, ...]]:
    """The column values of rows in table order, as `Noun.to_values` gives them."""
    count, length = len(series), series.interval_seconds * 1_000_000
    columns: dict[str, Sequence[Any]] = {
        "owner_id": [owner] * count,
        "symbol": [series.symbol] * count,
        "interval_seconds": [series.interval_seconds] * count,
        "opened_at": _instant_texts(series.opened),
        "known_at": _instant_texts(series.opened + length),
        "recorded_at": [recorded_at] * count,
        "open": series.open.tolist(),
        "high": series.high.tolist(),
        "low": series.low.tolist(),
        "close": series.close.tolist(),
        "volume": [None if volume != volume else volume for volume in series.volume.tolist()],
    }
    return list(zip(*(columns[name] for name in BARS.columns), strict=True))


def _instant_texts(microseconds: "NDArray[np.int64]") -> list[str]:
    """The texts of `format_instant`."""
    import numpy as np  # only imports of bars need it

    return [text + "Z" for text in np.datetime_as_string(microseconds.astype("datetime64[us]")).tolist()]


def has_bars_between(
    connection: Connection, owner: str, *, symbol: str, interval_seconds: int, since: datetime, until: datetime
) -> bool:
    """Whether a bar of a symbol that opened from `since` to `until` is stored."""
    c = BARS.table.c
    where = [*matching(BARS, symbol=symbol, interval_seconds=interval_seconds), c.opened_at >= since]
    statement = select(c.opened_at).where(c.owner_id == owner, *where, c.opened_at <= until).limit(1)
    return connection.execute(statement).first() is not None


def _windows(view: View, *, symbol: str, counts: Mapping[int, int]) -> dict[int, list[Bar]]:
    if not counts:
        return {}
    values = parameters(view.owner, view.horizon, symbol=symbol)
    for seconds, count in counts.items():
        values[f"opened_{seconds}"] = view.as_of - timedelta(seconds=seconds)
        values[f"count_{seconds}"] = count
    rows_by_interval: dict[int, list[Any]] = {seconds: [] for seconds in sorted(counts)}
    for row in view.connection.execute(_lasts(tuple(rows_by_interval)), values):
        rows_by_interval[row[0]].append(row[1:])
    return {seconds: _bars(rows[::-1], symbol, seconds) for seconds, rows in rows_by_interval.items() if rows}


def bars_closed(
    connection: Connection, owner: str, *, symbol: str, interval_seconds: int, after: datetime, until: datetime
) -> list[Bar]:
    """The bars of a symbol that closed after `after` and not after `until`, oldest first."""
    length = timedelta(seconds=interval_seconds)
    values = parameters(owner, symbol=symbol, seconds=interval_seconds, after=after - length, until=until - length)
    return _bars(connection.execute(_CLOSED, values), symbol, interval_seconds)


def first_close_from(connection: Connection, owner: str, symbol: str, at: datetime) -> datetime | None:
    """The first close of a bar of a symbol at or after an instant, over all intervals."""
    c = BARS.table.c
    closes: list[datetime] = []
    for seconds in intervals(connection, owner, symbol):
        length = timedelta(seconds=seconds)
        series = matching(BARS, symbol=symbol, interval_seconds=seconds)
        opened = connection.execute(
            select(func.min(c.opened_at)).where(c.owner_id == owner, *series, c.opened_at >= at - length)
        ).scalar()
        closes += [] if opened is None else [opened + length]
    return min(closes, default=None)


def _bars(rows: Iterable[Any], symbol: str, interval_seconds: int) -> list[Bar]:
    """Bars made from rows directly, which is faster than by the mapping of the table."""
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


def range_between(view: View, *, symbol: str, interval_seconds: int, since: datetime, until: datetime) -> PriceRange:
    """The highest and lowest price over the bars that opened from `since` on and closed by `until`."""
    last = until - timedelta(seconds=interval_seconds)
    values = parameters(view.owner, view.horizon, symbol=symbol, seconds=interval_seconds, since=since, last=last)
    high, low, bars = view.connection.execute(_RANGE, values).one()
    return PriceRange(high=high or 0.0, low=low or 0.0, bars=bars)


def first_bars(view: View, *, symbol: str, interval_seconds: int, since: datetime, limit: int) -> list[Bar]:
    """The first bars of a symbol that opened at or after an instant, oldest first, if they were known then."""
    where = [*matching(BARS, symbol=symbol, interval_seconds=interval_seconds), _C.opened_at >= since]
    statement = _PRICES.where(_C.owner_id == view.owner, *where, *within(BARS, view.horizon))
    return _bars(view.connection.execute(statement.order_by(_C.opened_at).limit(limit)), symbol, interval_seconds)


def first_reaching(
    view: View, *, symbol: str, interval_seconds: int, after: datetime, low: float, high: float
) -> list[Bar]:
    """The first bar of a symbol that opened after an instant and reaches one of two prices; empty if there is none."""
    where = [*matching(BARS, symbol=symbol, interval_seconds=interval_seconds), _C.opened_at > after]
    reaching = or_(_C.low <= low, _C.high >= high)
    statement = _PRICES.where(_C.owner_id == view.owner, *where, reaching, *within(BARS, view.horizon))
    return _bars(view.connection.execute(statement.order_by(_C.opened_at).limit(1)), symbol, interval_seconds)


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
    """The bars of a symbol that opened from `since` to `until`, both included, if they were known at the horizon."""
    c = BARS.table.c
    where = [*matching(BARS, symbol=symbol, interval_seconds=interval_seconds), c.opened_at >= since]
    known = [] if horizon is None else within(BARS, horizon)
    statement = owned(BARS, owner, *where, c.opened_at <= until, *known).order_by(c.opened_at)
    return [fact.bar for fact in fetch(connection, BARS, statement)]


def last_bars_between(
    view: View, *, symbol: str, interval_seconds: int, since: datetime | None, until: datetime, limit: int
) -> list[Bar]:
    """The last bars of a symbol that opened from `since` on and before `until`, as known in a view, oldest first."""
    opened_from = [] if since is None else [_C.opened_at >= since]
    statement = (
        _PRICES.where(*_SERIES, _C.opened_at < until, *opened_from, *prepared_within(BARS))
        .order_by(_C.opened_at.desc())
        .limit(limit)
    )
    values = parameters(view.owner, view.horizon, symbol=symbol, seconds=interval_seconds)
    return _bars(reversed(view.connection.execute(statement, values).all()), symbol, interval_seconds)


def close_at(view: View, *, symbol: str, interval_seconds: int, at: datetime) -> float | None:
    """The price at an instant: the close of the bar that ended at it or less than a bar before; None in a gap."""
    c, length = BARS.table.c, timedelta(seconds=interval_seconds)
    statement = (
        select(c.close)
        .where(c.owner_id == view.owner, *matching(BARS, symbol=symbol, interval_seconds=interval_seconds))
        .where(c.opened_at > at - 2 * length, c.opened_at <= at - length, *within(BARS, view.horizon))
        .order_by(c.opened_at.desc())
        .limit(1)
    )
    price: float | None = view.connection.execute(statement).scalar()
    return price
