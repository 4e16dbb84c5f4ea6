"""Market events: bars, from a file or one call at a time."""

from dataclasses import dataclass
from typing import Annotated

from backsight.arguments import FilePath, Name, Symbol, Whole, as_objects, check_symbols
from backsight.core.errors import Invalid
from backsight.core.instants import EPOCH
from backsight.core.market import Bar
from backsight.importers.bars import TimeLabel, read_bars
from backsight.object_arguments import BarsArgument
from backsight.operation import command
from backsight.services.calls import resolve_calls
from backsight.services.card_outcomes import resolve_cards_since
from backsight.services.context import Context
from backsight.services.market import ImportedBars, add_bars, sorted_bars, store_bars


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedBars:
    """The number of bars in the call, and the number of new bars among them."""

    bars: int
    added: int


@command()
def import_bars(
    ctx: Context,
    *,
    path: Annotated[
        FilePath, "Path of a CSV or Parquet file on this machine, with a header and time, open, high, low, close."
    ],
    symbol: Annotated[
        Symbol | None, "The instrument of a file without a symbol column; else only its bars are imported."
    ] = None,
    interval_seconds: Annotated[
        Whole | None, "Length of a bar; the most common distance between bars if left out."
    ] = None,
    timezone: Annotated[Name, "The time zone of times without an offset, like 'America/New_York'."] = "UTC",
    times: Annotated[TimeLabel, "Whether the times of the file are those at which bars open or close."] = "open",
) -> ImportedBars:
    """Import bars from a file, with a report of duplicates and gaps.

    Bars that are stored already do not change. If a bar differs from the stored one, nothing is written. The hours of
    the market are read from the file: nights, weekends and holidays are not missing bars.
    """
    file = read_bars(path, symbol=symbol, interval_seconds=interval_seconds, timezone=timezone, times=times)
    with ctx.writing() as transaction:
        imported = store_bars(transaction, ctx, file, field="path")
        resolve_calls(transaction, ctx.owner, by=ctx.now, recorded_at=ctx.now)
        resolve_cards_since(transaction, ctx.owner, since=EPOCH, by=ctx.now)
    return imported


@command()
def record_bars(
    ctx: Context,
    *,
    bars: Annotated[BarsArgument, "Closed bars, oldest first; they may be of several symbols and intervals."],
) -> RecordedBars:
    """Record closed bars, from which contexts, regimes and excursions are computed.

    Bars that are stored already do not change. If a bar differs from the stored one, nothing is written.
    """
    closed_bars = as_objects(bars, Bar)
    check_symbols(closed_bars)
    series = sorted_bars(closed_bars, until=ctx.now + ctx.clock_skew)
    if sum(map(len, series)) < len(bars):
        raise Invalid("a bar is not closed yet; give bars after their close", field="bars")
    with ctx.writing() as transaction:
        added = sum(add_bars(transaction, ctx.owner, bars_of_one, recorded_at=ctx.now) for bars_of_one in series)
        resolve_calls(transaction, ctx.owner, by=ctx.now, recorded_at=ctx.now)
        if added:
            since = min(bars_of_one[0].opened_at for bars_of_one in series)
            resolve_cards_since(transaction, ctx.owner, since=since, by=ctx.now)
    return RecordedBars(bars=len(bars), added=added)
