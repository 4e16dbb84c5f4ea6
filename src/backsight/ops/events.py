"""What the market did: bars."""

from dataclasses import dataclass
from typing import Annotated

from backsight.arguments import BarsArgument, Key, Name, Symbol, Whole, check_symbols
from backsight.core.errors import Invalid
from backsight.core.instants import CLOCK_SKEW
from backsight.importers.bars import read_bars
from backsight.operation import command
from backsight.services.calls import resolve_calls
from backsight.services.context import Context
from backsight.services.market import ImportedBars, add_bars, keep_bars, sorted_bars


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBars:
    """How many bars were told, and how many of them are new."""

    bars: int
    added: int


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
        kept = keep_bars(transaction, ctx, read, field="path")
        resolve_calls(transaction, ctx.owner, by=ctx.now, recorded_at=ctx.now)
    return kept


@command()
def record_bars(
    ctx: Context,
    *,
    bars: Annotated[BarsArgument, "Bars that are closed, oldest first; of several symbols and lengths if need be."],
) -> RecordedBars:
    """Record bars that closed, so that contexts, regimes and excursions can be read from them.

    Bars that are stored already are left alone; one that contradicts a stored bar is refused, and nothing is written.
    """
    check_symbols(bars)
    series = sorted_bars(bars, until=ctx.now + CLOCK_SKEW)
    if sum(map(len, series)) < len(bars):
        raise Invalid("one of them is not closed yet; give bars when they are", field="bars")
    with ctx.writing() as transaction:
        added = sum(add_bars(transaction, ctx.owner, each, recorded_at=ctx.now) for each in series)
        resolve_calls(transaction, ctx.owner, by=ctx.now, recorded_at=ctx.now)
    return RecordedBars(bars=len(bars), added=added)
