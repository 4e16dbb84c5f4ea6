"""What the market did: bars."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from backsight.core.errors import Conflict
from backsight.core.instants import format_instant
from backsight.core.market import Bar
from backsight.importers.bars import BarsReport, read_bars
from backsight.ops.arguments import Key, Name, Symbol, Whole
from backsight.ops.context import Context
from backsight.ops.operation import command
from backsight.store import bars as stored
from backsight.store.transaction import Transaction


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


@command()
def import_bars(
    ctx: Context,
    *,
    path: Annotated[Key, "The CSV or Parquet file, where this runs: a header, a time, open, high, low, close."],
    symbol: Annotated[Symbol | None, "The instrument, where the file has no column for it; else only this one."] = None,
    interval_seconds: Annotated[Whole | None, "How long a bar is; the most common distance if left out."] = None,
    timezone: Annotated[Name, "The zone of times that name none, like 'America/New_York'."] = "UTC",
) -> ImportedBars:
    """Import bars from a file, with a report of duplicates and gaps.

    Bars that are stored already are left alone; one that contradicts a stored bar is refused, and nothing is written.
    """
    read = read_bars(path, symbol=symbol, interval_seconds=interval_seconds, timezone=timezone)
    with ctx.writing() as transaction:
        symbols = tuple(_add(transaction, ctx, series) for series in read.bars.values())
    return ImportedBars(interval_seconds=read.interval_seconds, symbols=symbols, report=read.report)


def _add(transaction: Transaction, ctx: Context, series: tuple[Bar, ...]) -> SymbolBars:
    first, last = series[0], series[-1]
    found = stored.bars_between(
        transaction.connection,
        ctx.owner,
        None,
        symbol=first.symbol,
        interval_seconds=first.interval_seconds,
        since=first.opened_at,
        until=last.opened_at,
    )
    known = {bar.opened_at: bar for bar in found}
    for bar in series:
        if known.get(bar.opened_at, bar) != bar:
            at = format_instant(bar.opened_at)
            raise Conflict(f"its {bar.symbol} bar of {at} is not the stored one; correct the file", field="path")
    new = [bar for bar in series if bar.opened_at not in known]
    facts = [stored.BarFact(owner_id=ctx.owner, bar=bar, known_at=bar.closes_at, recorded_at=ctx.now) for bar in new]
    transaction.add_all(stored.BARS, facts)
    return SymbolBars(
        symbol=first.symbol,
        bars=len(series),
        added=len(new),
        first_opened_at=first.opened_at,
        last_opened_at=last.opened_at,
    )
