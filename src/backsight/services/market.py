"""Bars in the store: adding new bars, and the context and regime that the latest bars give."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.core.market import Bar, check_bars
from backsight.core.numbers import positive_zero
from backsight.core.observation import context_of_closed
from backsight.core.regime import SEED_INTERVAL_SECONDS, TRAILING_WINDOWS, WINDOW, RegimeReading, classify_regime
from backsight.importers.bars import BarsRead, BarsReport
from backsight.services.bar_symbols import symbol_of_bars
from backsight.services.context import Context
from backsight.store import bars as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View

BARS_READ = 128
"""Bars read of each interval: the 100 bars of a regime's window or of a trailing median, and the first bars of an ATR.
The number is fixed, because an ATR depends a little on its first bar."""
BARS_READ_FINEST = WINDOW * (1 + TRAILING_WINDOWS)
"""Bars read of the finest interval if it is not 5 minutes: volatility is compared with the ten windows before."""

Series = dict[int, list[Bar]]


def sorted_bars(bars: Iterable[Bar], *, until: datetime) -> list[list[Bar]]:
    """Checked series of bars, by symbol and interval, without bars that close after `until`."""
    series: dict[tuple[str, int], list[Bar]] = {}
    for bar in bars:
        series.setdefault((bar.symbol, bar.interval_seconds), []).append(_as_stored(bar))
    for bars_of_series in series.values():
        check_bars(bars_of_series)
    return [[bar for bar in series[key] if bar.closes_at <= until] for key in sorted(series)]


def _as_stored(bar: Bar) -> Bar:
    """A bar with its numbers as a database stores them: doubles, without negative zero."""
    numbers = bar.prices if bar.volume is None else (*bar.prices, bar.volume)
    if all(type(number) is float and number for number in numbers):
        return bar
    open_, high, low, close = (positive_zero(float(price)) for price in bar.prices)
    volume = None if bar.volume is None else positive_zero(float(bar.volume))
    return replace(bar, open=open_, high=high, low=low, close=close, volume=volume)


def add_bars(
    transaction: Transaction, owner: str, series: Sequence[Bar], *, recorded_at: datetime, field: str = "bars"
) -> int:
    """Store the new bars of a checked series and count them; `Conflict` if a bar differs from the stored one."""
    new = new_bars(transaction.connection, owner, series, field=field)
    facts = (stored.BarFact(owner_id=owner, bar=bar, known_at=bar.closes_at, recorded_at=recorded_at) for bar in new)
    if new:
        stored.add_bars(transaction, facts)
    return len(new)


def _any_stored(connection: Connection, owner: str, series: Sequence[Bar]) -> bool:
    """Whether a stored bar could equal, contradict or overlap a bar of a series."""
    first, last = series[0], series[-1]
    return stored.has_bars_between(
        connection,
        owner,
        symbol=first.symbol,
        interval_seconds=first.interval_seconds,
        since=first.opened_at - (first.closes_at - first.opened_at),
        until=last.closes_at,
    )


def new_bars(connection: Connection, owner: str, series: Sequence[Bar], *, field: str = "bars") -> list[Bar]:
    """The bars of a checked series that are not stored yet; `Conflict` if a bar differs from the stored one."""
    if not series:
        return []
    first, last = series[0], series[-1]
    stored_bars = stored.bars_between(
        connection,
        owner,
        None,
        symbol=first.symbol,
        interval_seconds=first.interval_seconds,
        since=first.opened_at - (first.closes_at - first.opened_at),
        until=last.closes_at,
    )
    known = {bar.opened_at: bar for bar in stored_bars}
    for bar in series:
        if known.get(bar.opened_at, bar) != bar:
            at = format_instant(bar.opened_at)
            raise Conflict(f"the {bar.symbol} bar of {at} differs from the stored bar; correct it", field=field)
    new = [bar for bar in series if bar.opened_at not in known]
    if known and new:
        _check_overlaps(sorted([*stored_bars, *new], key=lambda bar: bar.opened_at), field=field)
    return new


def _check_overlaps(bars: Sequence[Bar], *, field: str) -> None:
    for earlier, later in pairwise(bars):
        if later.opened_at < earlier.closes_at:
            first, second = format_instant(earlier.opened_at), format_instant(later.opened_at)
            message = f"the {later.symbol} bars of {first} and {second} overlap, and one of them is stored"
            raise Conflict(f"{message}; give bars that open when the stored bars open", field=field)


def recent_bars(view: View, symbol: str, *, unstored: Iterable[Sequence[Bar]] = ()) -> Series:
    """The last bars of a symbol in each interval, finest first.

    `unstored` are checked series of bars, as `sorted_bars` returns them. They count as if they were stored: a tick has
    the same bars before `close_tick` stores them and afterwards.
    """
    new = {bars[0].interval_seconds: bars for bars in unstored if bars and bars[0].symbol == symbol}
    symbol = symbol if new else symbol_of_bars(view, symbol)
    lengths = sorted({*stored.intervals(view.connection, view.owner, symbol), *new})
    series = _last_bars(view, symbol, dict.fromkeys(lengths, BARS_READ), new)
    finest = next(iter(series), SEED_INTERVAL_SECONDS)
    if finest != SEED_INTERVAL_SECONDS and len(series[finest]) == BARS_READ:
        series |= _last_bars(view, symbol, {finest: BARS_READ_FINEST}, new)
    return series


def _last_bars(view: View, symbol: str, counts: Mapping[int, int], new: Mapping[int, Sequence[Bar]]) -> Series:
    """The last bars of each interval, stored and new together; `counts` has the number of bars by interval."""
    series = stored.last_bars(view, symbol=symbol, counts=counts)
    for seconds in counts.keys() & new.keys():
        by_opening = {bar.opened_at: bar for bar in (*series.get(seconds, ()), *new[seconds])}
        series[seconds] = [by_opening[at] for at in sorted(by_opening)][-counts[seconds] :]
    return dict(sorted(series.items()))


def context_at(symbol: str, at: datetime, series: Series) -> ContextVector:
    """The context vector of a symbol at an instant, from its bars."""
    return context_of_closed(symbol, at=at, closed=series)


def regime_at(series: Series) -> RegimeReading | None:
    """The regime by the finest interval that has enough bars; None if none has."""
    for bars in series.values():
        reading = classify_regime(bars)
        if reading.tag != "unknown":
            return reading
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolBars:
    """The bars of one symbol in an import."""

    symbol: str
    bars: int
    added: int
    """The number of new bars; the other bars were stored before."""
    first_opened_at: datetime
    last_opened_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedBars:
    """The imported bars by symbol, and a report on the file."""

    interval_seconds: int
    symbols: tuple[SymbolBars, ...]
    report: BarsReport


def store_bars(transaction: Transaction, ctx: Context, file: BarsRead, *, field: str) -> ImportedBars:
    """Store the new bars of a file; `field` names the file in an error.

    Each series is taken out of the file, so that its memory is free for the link of the audit chain.
    """
    symbols = tuple(_store_series(transaction, ctx, file.bars.pop(symbol), field=field) for symbol in list(file.bars))
    return ImportedBars(interval_seconds=file.interval_seconds, symbols=symbols, report=file.report)


def _add_series(transaction: Transaction, ctx: Context, series: Sequence[Bar], *, field: str) -> int:
    """Store the new bars of a series and count them: in bulk if it has columns and none of its bars is stored."""
    from backsight.core.bar_columns import BarColumns  # imports NumPy

    if isinstance(series, BarColumns) and not _any_stored(transaction.connection, ctx.owner, series):
        stored.add_columns(transaction, ctx.owner, series, recorded_at=ctx.now)
        return len(series)
    return add_bars(transaction, ctx.owner, series, recorded_at=ctx.now, field=field)


def _store_series(transaction: Transaction, ctx: Context, series: Sequence[Bar], *, field: str) -> SymbolBars:
    added = _add_series(transaction, ctx, series, field=field)
    return SymbolBars(
        symbol=series[0].symbol,
        bars=len(series),
        added=added,
        first_opened_at=series[0].opened_at,
        last_opened_at=series[-1].opened_at,
    )
