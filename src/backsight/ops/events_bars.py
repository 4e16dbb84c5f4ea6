"""Stored bars of a symbol over a period."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from backsight.arguments import AsOf, Instant, SeenAt, Symbol, Whole
from backsight.core.errors import Invalid
from backsight.core.market import Bar
from backsight.core.text.counts import count_of
from backsight.operation import query
from backsight.services.bar_symbols import symbol_of_bars
from backsight.services.context import Context
from backsight.store import bars as stored
from backsight.store.view import View

MostBars = Annotated[int, Field(strict=True, ge=1, le=2_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarList:
    """The bars of one interval, oldest first, and the intervals that are stored of the symbol."""

    symbol: str
    interval_seconds: int | None
    """None if no bars of the symbol are stored."""
    intervals: tuple[int, ...]
    bars: tuple[Bar, ...]
    more: bool
    """Whether the period has earlier bars than these."""
    message: str
    as_of: datetime


@query(audience=("trader", "coach"))
def list_bars(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument."],
    since: Annotated[Instant | None, "Only bars that opened at or after this instant."] = None,
    until: Annotated[Instant | None, "Only bars that opened before this instant; as_of if left out."] = None,
    interval_seconds: Annotated[
        Whole | None, "The length of a bar; by default the shortest of which the whole period fits `limit`."
    ] = None,
    limit: Annotated[MostBars, "The most bars to return, the last ones of the period."] = 300,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> BarList:
    """List the closed bars of an instrument over a period, of the shortest interval that fits."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        end = min(view.as_of, until or view.as_of)
        if since is not None and since >= end:
            raise Invalid("is not before the end of the period; give an earlier instant", field="since")
        symbol = symbol_of_bars(view, symbol)
        intervals = _known_intervals(view, symbol)
        if interval_seconds is not None and interval_seconds not in intervals:
            known = ", ".join(map(str, intervals)) or "none"
            message = f"no bars of {interval_seconds} s were known of {symbol}; choose one of: {known}"
            raise Invalid(message, field="interval_seconds")
        chosen = interval_seconds or _fitting(intervals, since, end, limit)
        bars = (
            []
            if chosen is None
            else stored.last_bars_between(
                view, symbol=symbol, interval_seconds=chosen, since=since, until=end, limit=limit + 1
            )
        )
    more = len(bars) > limit
    return BarList(
        symbol=symbol,
        interval_seconds=chosen,
        intervals=intervals,
        bars=tuple(bars[-limit:]),
        more=more,
        message=_message(symbol, chosen, min(len(bars), limit), more=more),
        as_of=view.as_of,
    )


def _known_intervals(view: View, symbol: str) -> tuple[int, ...]:
    """The intervals of which a bar was known at the view."""
    stored_now = stored.intervals(view.connection, view.owner, symbol)
    known = stored.last_bars(view, symbol=symbol, counts=dict.fromkeys(stored_now, 1))
    return tuple(seconds for seconds in stored_now if seconds in known)


def _fitting(intervals: tuple[int, ...], since: datetime | None, end: datetime, limit: int) -> int | None:
    """The shortest interval of which a period has at most `limit` bars, else the longest."""
    if since is None or not intervals:
        return next(iter(intervals), None)
    seconds = (end - since).total_seconds()
    return next((each for each in intervals if seconds / each <= limit), intervals[-1])


def _message(symbol: str, interval_seconds: int | None, count: int, *, more: bool) -> str:
    if interval_seconds is None:
        return f"No bars of {symbol} were known by then; import_bars or record_bars stores some."
    of = f"{count_of(count, 'bar')} of {symbol}, {interval_seconds} s each"
    return f"{of}, the last of the period; there are earlier ones." if more else f"{of}."
