"""What bars tell an operation: those it brings, and those that were closed by an instant."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict
from backsight.core.instants import Horizon, format_instant
from backsight.core.market import Bar, check_bars
from backsight.core.numbers import positive_zero
from backsight.core.observation import context_of_closed
from backsight.core.regime import SEED_INTERVAL_SECONDS, TRAILING_WINDOWS, WINDOW, RegimeReading, classify_regime
from backsight.importers.bars import BarsRead, BarsReport
from backsight.services.context import Context
from backsight.store import bars as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction

READ = 128
"""Bars read of an interval: the hundred of a regime's window or of a trailing median, and those an ATR starts from.
The number is fixed, since an ATR depends a little on where its bars begin."""
READ_FINEST = WINDOW * (1 + TRAILING_WINDOWS)
"""Of the finest interval, where it is not of five minutes: its volatility is compared with ten windows before."""

Series = dict[int, list[Bar]]


def sorted_bars(bars: Iterable[Bar], *, until: datetime) -> list[list[Bar]]:
    """Bars by symbol and interval, each checked to be one sound series; those not closed yet are left out."""
    series: dict[tuple[str, int], list[Bar]] = {}
    for bar in bars:
        series.setdefault((bar.symbol, bar.interval_seconds), []).append(_as_kept(bar))
    for each in series.values():
        check_bars(each)
    return [[bar for bar in each if bar.closes_at <= until] for _, each in sorted(series.items())]


def _as_kept(bar: Bar) -> Bar:
    """A bar with its numbers as a database has them: doubles, and one zero."""
    opened, high, low, close = (positive_zero(float(price)) for price in bar.prices)
    volume = None if bar.volume is None else positive_zero(float(bar.volume))
    return replace(bar, open=opened, high=high, low=low, close=close, volume=volume)


def add_bars(
    transaction: Transaction, owner: str, series: Sequence[Bar], *, recorded_at: datetime, field: str = "bars"
) -> int:
    """Store those bars of one sound series that are not there yet; how many. One that contradicts is `Conflict`."""
    if not series:
        return 0
    first, last = series[0], series[-1]
    found = stored.bars_between(
        transaction.connection,
        owner,
        None,
        symbol=first.symbol,
        interval_seconds=first.interval_seconds,
        since=first.opened_at - (first.closes_at - first.opened_at),
        until=last.closes_at,
    )
    known = {bar.opened_at: bar for bar in found}
    for bar in series:
        if known.get(bar.opened_at, bar) != bar:
            at = format_instant(bar.opened_at)
            raise Conflict(f"the {bar.symbol} bar of {at} is not the stored one; correct it", field=field)
    new = [bar for bar in series if bar.opened_at not in known]
    if known and new:
        _check_apart(sorted([*found, *new], key=lambda bar: bar.opened_at), field=field)
    facts = [stored.BarFact(owner_id=owner, bar=bar, known_at=bar.closes_at, recorded_at=recorded_at) for bar in new]
    transaction.add_all(stored.BARS, facts)
    stored.forget_windows(transaction.connection)
    return len(new)


def _check_apart(bars: Sequence[Bar], *, field: str) -> None:
    for earlier, later in pairwise(bars):
        if later.opened_at < earlier.closes_at:
            one, other = format_instant(earlier.opened_at), format_instant(later.opened_at)
            told = f"the {later.symbol} bars of {one} and {other} overlap, and one of them is stored"
            raise Conflict(f"{told}; give bars that begin where the stored ones do", field=field)


def recent_bars(connection: Connection, owner: str, symbol: str, horizon: Horizon) -> Series:
    """The last bars of a symbol in every interval there is, finest first."""
    counts = dict.fromkeys(stored.intervals(connection, owner, symbol), READ)
    found = stored.last_bars(connection, owner, horizon, symbol=symbol, counts=counts)
    finest = next(iter(found), SEED_INTERVAL_SECONDS)
    if finest != SEED_INTERVAL_SECONDS and len(found[finest]) == READ:
        longer = {finest: READ_FINEST}
        found |= stored.last_bars(connection, owner, horizon, symbol=symbol, counts=longer)
    return found


def with_given(series: Series, given: Iterable[Sequence[Bar]], symbol: str) -> Series:
    """Stored bars and those given beside them, which may not be stored yet."""
    joined = dict(series)
    for each in given:
        if each and each[0].symbol == symbol:
            seconds = each[0].interval_seconds
            by_opening = {bar.opened_at: bar for bar in (*joined.get(seconds, ()), *each)}
            joined[seconds] = [by_opening[at] for at in sorted(by_opening)]
    return dict(sorted(joined.items()))


def context_at(symbol: str, at: datetime, series: Series) -> ContextVector:
    """The context of a symbol as bars tell it."""
    return context_of_closed(symbol, at=at, closed=series)


def regime_at(series: Series) -> RegimeReading | None:
    """The regime by the finest bars; None where there are none or too few."""
    for bars in series.values():
        reading = classify_regime(bars)
        if reading.tag != "unknown":
            return reading
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolBars:
    """What one symbol of a file brought."""

    symbol: str
    bars: int
    added: int
    """The rest was stored before."""
    first_opened_at: datetime
    last_opened_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedBars:
    """The bars that are now stored, and what the file was like."""

    interval_seconds: int
    symbols: tuple[SymbolBars, ...]
    report: BarsReport


def keep_bars(transaction: Transaction, ctx: Context, read: BarsRead, *, field: str) -> ImportedBars:
    """Store the bars of a file that are not there yet; `field` names the file in a refusal."""
    symbols = tuple(_keep(transaction, ctx, series, field=field) for series in read.bars.values())
    return ImportedBars(interval_seconds=read.interval_seconds, symbols=symbols, report=read.report)


def _keep(transaction: Transaction, ctx: Context, series: tuple[Bar, ...], *, field: str) -> SymbolBars:
    added = add_bars(transaction, ctx.owner, series, recorded_at=ctx.now, field=field)
    return SymbolBars(
        symbol=series[0].symbol,
        bars=len(series),
        added=added,
        first_opened_at=series[0].opened_at,
        last_opened_at=series[-1].opened_at,
    )
