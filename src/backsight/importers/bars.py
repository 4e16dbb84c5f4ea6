"""Bars from files: CSV, Parquet, and the JSON Lines that AI-Trader writes beside its position logs.

Times are ISO 8601, or numbers since 1970; the size of a number tells its unit. A time without an offset is a
wall-clock time in the given zone, with `fold=0`. When clocks go back, an hour that occurs twice is its first
occurrence. When clocks go forward, a skipped hour has the offset before the change (02:30 becomes 03:30). A file that
then has two different bars at one instant is refused, because only offsets can tell them apart.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from backsight.core.errors import BacksightError, Invalid, NotFound, did_you_mean
from backsight.core.instants import EPOCH
from backsight.core.market import Bar
from backsight.core.text.symbols import symbol_problem
from backsight.importers.files import Source, instant_of, json_lines, number_of, read_table, short_text, zone_named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Column = Literal["time", "open", "high", "low", "close", "volume", "symbol"]
Price = Literal["open", "high", "low", "close"]
TimeLabel = Literal["open", "close"]
"""Whether the times of a file are those at which bars open or close."""

PRICES: tuple[Price, ...] = get_args(Price)
NAMES: Mapping[Column, tuple[str, ...]] = {
    "time": ("open_time", "timestamp", "datetime", "time", "date"),
    "open": ("open",),
    "high": ("high",),
    "low": ("low",),
    "close": ("close",),
    "volume": ("volume",),
    "symbol": ("symbol", "ticker", "instrument"),
}
"""Accepted names of each column, case folded; if a file has several of them, the first in this list is used."""
OPTIONAL: tuple[Column, ...] = ("volume", "symbol")
GAPS_LISTED = 1000
DAY = timedelta(days=1)
SHORTEST_DAY = timedelta(hours=23)
"""The length of a day on which clocks go forward."""
LONGEST_INTERVAL = 366 * 86_400
TRADER_NAMES: Mapping[str, Price | Literal["volume"]] = {
    "buy price": "open",
    "open": "open",
    "high": "high",
    "low": "low",
    "sell price": "close",
    "close": "close",
    "volume": "volume",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Bars that a file lacks between two bars of a symbol."""

    symbol: str
    after: datetime
    """When the last bar before the gap opened."""
    before: datetime
    """When the first bar after the gap opened."""
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingSession:
    """A session of a market, like a trading day, without any bar: a holiday, or missing as a whole."""

    symbol: str
    opens_at: datetime
    """When its first bar would have opened."""
    bars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The open of a bar that was not complete when the file was written."""

    symbol: str
    interval_seconds: int
    opened_at: datetime
    price: float

    @property
    def closes_at(self) -> datetime:
        return self.opened_at + timedelta(seconds=self.interval_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarsReport:
    """Rows of a file that were dropped or sorted, and bars that are missing."""

    rows: int
    """All rows of the file, with dropped rows and rows of other symbols."""
    duplicates: int
    """Rows dropped because an identical row came before."""
    out_of_order: int
    """Rows that came after a later bar of their symbol; the bars are sorted."""
    other_symbols: int
    """Rows of symbols that were not requested."""
    overlaps: int
    """Bars that opened before the previous bar closed."""
    gap_count: int
    missing: int
    """The number of missing bars in all gaps, within the hours of the market."""
    gaps: tuple[Gap, ...]
    """The first thousand gaps, by symbol and time."""
    session_count: int
    """How many whole sessions have no bar; these bars are not counted as missing."""
    sessions: tuple[MissingSession, ...]
    """The first thousand sessions without a bar, by symbol and time."""
    closed: int
    """Intervals without a bar outside the hours of the market."""
    counting: str
    """How missing bars were counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarsRead:
    """The bars of a file by symbol, sorted by time, and a report on the file."""

    interval_seconds: int
    bars: dict[str, Sequence[Bar]]
    openings: tuple[Opening, ...]
    """Incomplete bars with an open only; a trader file ends with one for each symbol."""
    report: BarsReport


@dataclass(frozen=True, slots=True)
class _BarRow:
    """A bar of a file before its interval is known."""

    number: int
    symbol: str
    at: datetime
    prices: tuple[float, float, float, float]
    volume: float | None


@dataclass(frozen=True, slots=True)
class _TraderLine:
    """One line of a trader file: the bars of one symbol."""

    symbol: str
    zone: str
    seconds: int
    rows: Sequence[_BarRow]
    openings: Sequence[Opening]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarsReading:
    """What is read, and how: the arguments of `read_bars`, checked."""

    path: Path
    symbol: str | None
    interval_seconds: int | None
    zone: tzinfo
    times: TimeLabel


def read_bars(
    path: str | Path,
    *,
    symbol: str | None = None,
    interval_seconds: int | None = None,
    timezone: str = "UTC",
    times: TimeLabel = "open",
) -> BarsRead:
    """The bars of a CSV or Parquet file, sorted by time, with a report of dropped rows and gaps.

    `symbol` names the bars of a file without a symbol column, and selects rows of a file with one. If no interval is
    given, it is the most common distance between bars. Distances of a day or longer are measured on the wall clock of
    the zone, so that days of 23 or 25 hours are not gaps. `times` says whether the file's times are opens or closes.
    """
    if interval_seconds is not None and not 1 <= interval_seconds <= LONGEST_INTERVAL:
        remedy = f"give whole seconds, from 1 to {LONGEST_INTERVAL}"
        raise Invalid(f"{interval_seconds} is not the length of a bar; {remedy}", field="interval_seconds")
    reading = BarsReading(
        path=Path(path), symbol=symbol, interval_seconds=interval_seconds, zone=zone_named(timezone), times=times
    )
    return read_regular_bars(reading) or read_bars_by_row(reading)


def read_bars_by_row(reading: BarsReading) -> BarsRead:
    """The bars of any CSV or Parquet file, read row by row; an error names the row."""
    source, header, cells = read_table(reading.path)
    columns = _checked_columns(header, symbol=reading.symbol, source=source)
    rows, other = _rows(cells, columns=columns, symbol=reading.symbol, zone=reading.zone, source=source)
    return _assemble(
        rows,
        interval_seconds=reading.interval_seconds,
        zone=reading.zone,
        source=source,
        other_symbols=other,
        times=reading.times,
    )


def read_trader_bars(path: str | Path, *, timezone: str | None = None, default_timezone: str | None = None) -> BarsRead:
    """The bars of a JSON Lines file with one symbol a line, as AI-Trader writes it.

    A line is `{"Meta Data": {...}, "Time Series (60min)": {time: {"1. buy price": …}}}`. The buy price is the open, the
    sell price the close. Times are in `timezone` if it is given, else in the zone that the file names, else in
    `default_timezone`. The last bar of a line has an open only, because it was not complete; it is in `openings`.
    """
    source = Source(Path(path))
    lines: dict[str, _TraderLine] = {}
    for number, line in json_lines(source.path):
        bars_line = _trader_line(
            line, timezone=timezone, default_timezone=default_timezone, number=number, source=source
        )
        first = next(iter(lines.values()), bars_line)
        if (bars_line.zone, bars_line.seconds) != (first.zone, first.seconds):
            message = "the interval or the time zone differs from the first line; split the file"
            raise source.invalid(number, message, field="path")
        if bars_line.symbol in lines:
            message = f"a second line for {bars_line.symbol!r}; join the lines of a symbol"
            raise source.invalid(number, message, field="symbol")
        lines[bars_line.symbol] = bars_line
    rows = [row for bars_line in lines.values() for row in bars_line.rows]
    if not rows:
        raise Invalid(f"{source.path} has no complete bars; give a file with one symbol a line", field="path")
    return _assemble(
        rows,
        interval_seconds=first.seconds,
        zone=zone_named(first.zone),
        source=source,
        openings=[opening for bars_line in lines.values() for opening in bars_line.openings],
    )


def read_regular_bars(reading: BarsReading) -> BarsRead | None:
    """The bars of a regular CSV file, read in bulk; None for other files, which are read row by row."""
    from backsight.importers import regular_bars  # imports NumPy, which only files of bars need

    source = Source(reading.path)
    try:
        series, other_symbols = regular_bars.read_regular(
            reading.path,
            partial(_checked_columns, symbol=reading.symbol, source=source),
            symbol=reading.symbol,
            checked_symbol=lambda cell: _symbol(cell, number=0, source=source),
            zone=reading.zone,
        )
        rows = {name: series.pop(name).joined() for name in sorted(series)}
        return _assemble_columns(rows, reading, other_symbols=other_symbols)
    except (regular_bars.IrregularError, BacksightError):
        return None


def _assemble_columns(
    rows: "Mapping[str, dict[str, NDArray[Any]]]", reading: BarsReading, *, other_symbols: int
) -> BarsRead:
    """The same as `_assemble`, from the columns of each symbol."""
    import numpy as np

    from backsight.core.bar_columns import VALUES, BarColumns
    from backsight.importers.regular_bars import IrregularError, out_of_order, sorted_unique

    count = sum(len(columns["time"]) for columns in rows.values())
    misplaced = sum(out_of_order(columns["time"]) for columns in rows.values())
    unique = {symbol: sorted_unique(columns) for symbol, columns in rows.items()}
    steps = [np.diff(columns["time"]) for columns in unique.values()]
    interval_seconds, zone = reading.interval_seconds, reading.zone
    if interval_seconds is None:
        lengths, counts = np.unique(np.concatenate(steps), return_counts=True)
        if not len(lengths):
            raise IrregularError
        counted = {timedelta(microseconds=int(step)): int(n) for step, n in zip(lengths, counts, strict=True)}
        interval_seconds = _interval_from(counted, Source(reading.path))
    interval = timedelta(seconds=interval_seconds)
    if interval >= SHORTEST_DAY and zone is not UTC:
        raise IrregularError
    if reading.times == "close":
        for columns in unique.values():
            columns["time"] = columns["time"] - interval_seconds * 1_000_000
    series_gaps = {
        symbol: _gaps_of_columns(symbol, columns["time"], interval=interval, zone=zone)
        for symbol, columns in unique.items()
    }
    bars: dict[str, Sequence[Bar]] = {
        symbol: BarColumns(
            symbol=symbol,
            interval_seconds=interval_seconds,
            opened=columns["time"],
            **{name: columns[name] for name in VALUES},
        )
        for symbol, columns in unique.items()
    }
    report = _report(
        series_gaps,
        rows=count + other_symbols,
        duplicates=count - sum(map(len, bars.values())),
        out_of_order=misplaced,
        other_symbols=other_symbols,
    )
    return BarsRead(interval_seconds=interval_seconds, bars=bars, openings=(), report=report)


def _gaps_of_columns(symbol: str, opened: "NDArray[np.int64]", *, interval: timedelta, zone: tzinfo) -> "_SeriesGaps":
    """The same as `_gaps_of`, from the opening times in microseconds; row by row only where it must be."""
    import numpy as np

    from backsight.core.bar_columns import instant_from

    length = interval // timedelta(microseconds=1)
    steps = np.diff(opened)
    if not (steps > length).any():
        return _SeriesGaps([], int(np.count_nonzero(steps < length)))
    slots = opened // length
    if zone is not UTC or DAY % interval or len(np.unique(slots)) < len(slots):
        return _gaps_of(symbol, [instant_from(at) for at in opened.tolist()], interval=interval, zone=zone)
    overlaps = int(np.count_nonzero(steps < length))
    wide = [
        Gap(symbol=symbol, after=instant_from(after), before=instant_from(before), missing=-(-step // length) - 1)
        for place in np.flatnonzero(steps > length)
        for after, before, step in [(int(opened[place]), int(opened[place + 1]), int(steps[place]))]
    ]
    if overlaps:
        return _SeriesGaps(wide, overlaps)
    return _gaps_in_hours(
        symbol, wide, slots, lambda slot: instant_from(int(opened[np.searchsorted(slots, slot)])), interval, zone
    )


def _checked_columns(header: Sequence[str], *, symbol: str | None, source: Source) -> dict[Column, int]:
    """The position of each column that bars need; an error if neither a column nor the caller names the symbol."""
    columns = _columns(header, source)
    if symbol is None and "symbol" not in columns:
        raise Invalid(f"{source.path} has no symbol column; give the symbol of its bars", field="symbol")
    return columns


def _columns(header: Sequence[str], source: Source) -> dict[Column, int]:
    """The position of each column that bars need."""
    names = [re.sub(r"[\s-]+", "_", name.strip().casefold()) for name in header]
    positions: dict[Column, int] = {}
    for column, accepted in NAMES.items():
        name = next((name for name in accepted if name in names), None)
        if name is None and column not in OPTIONAL:
            present = ", ".join(short_text(name) for name in header[:20])
            remedy = f"name a column {' or '.join(accepted)} in the header (it has: {present})"
            raise Invalid(f"{source.path} has no {column} column; {remedy}", field=column)
        if name is not None and names.count(name) > 1:
            raise Invalid(f"{source.path} has two columns named {name!r}; rename one of them", field=column)
        if name is not None:
            positions[column] = names.index(name)
    return positions


def _rows(
    cells: Iterable[tuple[int, Sequence[object]]],
    *,
    columns: Mapping[Column, int],
    symbol: str | None,
    zone: tzinfo,
    source: Source,
) -> tuple[list[_BarRow], int]:
    """The rows of the requested symbol, or of all symbols; and the number of other rows."""
    rows: list[_BarRow] = []
    others = Counter[str]()
    for number, row in cells:
        values = {column: row[position] for column, position in columns.items()}
        row_symbol = _symbol(values["symbol"], number=number, source=source) if "symbol" in columns else symbol
        if row_symbol is None or symbol not in (None, row_symbol):
            others[row_symbol or ""] += 1
            continue
        at = _time(values["time"], zone=zone, number=number, source=source)
        rows.append(_row(values, symbol=row_symbol, at=at, number=number, source=source))
    if not rows and others:
        raise NotFound(f"{source.path} has no rows of {symbol!r}; {did_you_mean(symbol or '', others)}", field="symbol")
    if not rows:
        raise Invalid(f"{source.path} has no rows below its header; give a file with bars", field="path")
    return rows, others.total()


def _symbol(symbol: object, *, number: int, source: Source) -> str:
    if not isinstance(symbol, str) or not symbol.strip():
        raise source.invalid(number, "no symbol; name the symbol in every row", field="symbol")
    problem = symbol_problem(symbol.strip())
    if problem is not None:
        raise source.invalid(number, f"{short_text(symbol)} {problem}", field="symbol")
    return symbol.strip()


def _time(value: object, *, zone: tzinfo, number: int, source: Source) -> datetime:
    try:
        return instant_of(value, zone=zone)
    except ValueError as error:
        raise source.invalid(number, str(error), field="time") from None


def _row(values: Mapping[Any, object], *, symbol: str, at: datetime, number: int, source: Source) -> _BarRow:
    open_, high, low, close = (_price(values.get(name), field=name, number=number, source=source) for name in PRICES)
    if high < low:
        raise source.invalid(number, f"{high} is below the low {low}; swap or correct them", field="high")
    for field, price in (("open", open_), ("close", close)):
        if not low <= price <= high:
            raise source.invalid(number, f"{price} is outside low {low} to high {high}; correct the row", field=field)
    volume = _volume(values.get("volume"), number=number, source=source)
    return _BarRow(number, symbol, at, (open_, high, low, close), volume)


def _price(value: object, *, field: Price, number: int, source: Source) -> float:
    price = number_of(value)
    if price is not None and math.isfinite(price):
        return price
    if value is None or (isinstance(value, str) and not value.strip()):
        raise source.invalid(number, "no price; fill it in or remove the row", field=field)
    if price is None:
        raise source.invalid(number, f"{short_text(value)} is not a number; write it like 1234.5", field=field)
    raise source.invalid(number, f"{short_text(value)} is not a price; correct or remove the row", field=field)


def _volume(value: object, *, number: int, source: Source) -> float | None:
    """The volume; None if the cell is empty or NaN, as programs write unknown values."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    volume = number_of(value)
    if volume is not None and math.isnan(volume):
        return None
    if volume is None or volume < 0 or math.isinf(volume):
        message = f"{short_text(value)} is not a volume; give 0 or more, or leave the cell empty if it is not known"
        raise source.invalid(number, message, field="volume")
    return volume


def _assemble(
    rows: Sequence[_BarRow],
    *,
    interval_seconds: int | None,
    zone: tzinfo,
    source: Source,
    other_symbols: int = 0,
    openings: Sequence[Opening] = (),
    times: TimeLabel = "open",
) -> BarsRead:
    """Bars from rows in any order: sorted, without duplicates, with a report of the gaps."""
    by_symbol: dict[str, list[_BarRow]] = {}
    for row in rows:
        by_symbol.setdefault(row.symbol, []).append(row)
    unique = {symbol: _sorted_unique(by_symbol[symbol], source) for symbol in sorted(by_symbol)}
    labels = {symbol: [row.at for row in series] for symbol, series in unique.items()}
    seconds = interval_seconds or _infer_interval(labels.values(), zone=zone, source=source)
    interval = timedelta(seconds=seconds)
    if times == "close":
        unique = {symbol: [_opened(row, interval, zone) for row in series] for symbol, series in unique.items()}
    instants = {symbol: [row.at for row in series] for symbol, series in unique.items()}
    series_gaps = {symbol: _gaps_of(symbol, each, interval=interval, zone=zone) for symbol, each in instants.items()}
    report = _report(
        series_gaps,
        rows=len(rows) + len(openings) + other_symbols,
        duplicates=len(rows) - sum(map(len, unique.values())),
        out_of_order=sum(map(_out_of_order, by_symbol.values())),
        other_symbols=other_symbols,
    )
    bars: dict[str, Sequence[Bar]] = {
        symbol: tuple(_bar(row, seconds) for row in series) for symbol, series in unique.items()
    }
    ordered = sorted(openings, key=lambda opening: (opening.symbol, opening.opened_at))
    return BarsRead(interval_seconds=seconds, bars=bars, openings=tuple(ordered), report=report)


def _report(
    series_gaps: "Mapping[str, _SeriesGaps]", *, rows: int, duplicates: int, out_of_order: int, other_symbols: int
) -> BarsReport:
    gaps = [gap for each in series_gaps.values() for gap in each.gaps]
    sessions = [session for each in series_gaps.values() for session in each.sessions]
    return BarsReport(
        rows=rows,
        duplicates=duplicates,
        out_of_order=out_of_order,
        other_symbols=other_symbols,
        overlaps=sum(each.overlaps for each in series_gaps.values()),
        gap_count=len(gaps),
        missing=sum(gap.missing for gap in gaps),
        gaps=tuple(gaps[:GAPS_LISTED]),
        session_count=len(sessions),
        sessions=tuple(sessions[:GAPS_LISTED]),
        closed=sum(each.closed for each in series_gaps.values()),
        counting=_counting(series_gaps),
    )


def _bar(row: _BarRow, seconds: int) -> Bar:
    open_, high, low, close = row.prices
    return Bar(
        symbol=row.symbol,
        interval_seconds=seconds,
        opened_at=row.at,
        open=open_,
        high=high,
        low=low,
        close=close,
        volume=row.volume,
    )


def _sorted_unique(rows: Sequence[_BarRow], source: Source) -> list[_BarRow]:
    """The rows by time, without identical duplicates; an error if two different bars have one instant."""
    unique: list[_BarRow] = []
    for row in sorted(rows, key=lambda row: row.at):
        if not unique or unique[-1].at != row.at:
            unique.append(row)
        elif (unique[-1].prices, unique[-1].volume) != (row.prices, row.volume):
            place = f"{source.unit} {unique[-1].number}"
            message = f"{place} has a different bar of {row.symbol} at {row.at.isoformat()}"
            remedy = "keep one of them, or give times with an offset if clocks changed"
            raise source.invalid(row.number, f"{message}; {remedy}", field="time")
    return unique


def _out_of_order(rows: Sequence[_BarRow]) -> int:
    count, latest = 0, rows[0].at
    for row in rows:
        count += row.at < latest
        latest = max(latest, row.at)
    return count


def _distances(instants: Sequence[datetime], zone: tzinfo) -> list[timedelta]:
    """Distances between neighbours on the wall clock of a zone; in UTC, the time that really passed."""
    local = instants if zone is UTC else [at.astimezone(zone).replace(tzinfo=None) for at in instants]
    return [later - earlier for earlier, later in pairwise(local)]


def _infer_interval(instants: Iterable[Sequence[datetime]], *, zone: tzinfo, source: Source) -> int:
    """The most common distance between neighbours in seconds; the shortest of equally common ones."""
    series = list(instants)
    elapsed = [distance for each in series for distance in _distances(each, UTC)]
    if not elapsed:
        raise Invalid(
            f"{source.path} has one bar per symbol, so the interval cannot be inferred; give it",
            field="interval_seconds",
        )
    if min(elapsed) >= SHORTEST_DAY:
        elapsed = [distance for each in series for distance in _distances(each, zone)]
    return _interval_from(Counter(elapsed), source)


def _interval_from(counted: Mapping[timedelta, int], source: Source) -> int:
    """The most common of counted distances, if it is the length of a bar."""
    interval = min(counted, key=lambda distance: (-counted[distance], distance))
    seconds, rest = divmod(interval, timedelta(seconds=1))
    if rest or seconds > LONGEST_INTERVAL:
        remedy = f"give whole seconds, from 1 to {LONGEST_INTERVAL}"
        raise Invalid(f"{source.path} has bars {interval} apart; {remedy}", field="interval_seconds")
    return seconds


@dataclass(frozen=True, slots=True)
class _SeriesGaps:
    """What is missing in the bars of one symbol."""

    gaps: Sequence[Gap]
    overlaps: int
    sessions: Sequence[MissingSession] = ()
    closed: int = 0
    by_hours: bool = False
    """Whether only intervals within the hours of the market count."""


def _gaps_of(symbol: str, instants: Sequence[datetime], *, interval: timedelta, zone: tzinfo) -> _SeriesGaps:
    """The gaps of a series (distances of more than one interval), and the number of overlaps (distances of less)."""
    distances = _distances(instants, zone if interval >= DAY else UTC)
    overlaps = sum(distance < interval for distance in distances)
    wide = [
        Gap(symbol=symbol, after=after, before=before, missing=-(-distance // interval) - 1)
        for (after, before), distance in zip(pairwise(instants), distances, strict=True)
        if distance > interval
    ]
    slots = _slots(instants, interval, zone)
    if not wide or overlaps or slots is None:
        return _SeriesGaps(wide, overlaps)
    return _gaps_in_hours(symbol, wide, slots, dict(zip(slots, instants, strict=True)).__getitem__, interval, zone)


def _gaps_in_hours(
    symbol: str,
    wide: Sequence[Gap],
    slots: "Sequence[int] | NDArray[np.int64]",
    instant_of_slot: Callable[[int], datetime],
    interval: timedelta,
    zone: tzinfo,
) -> "_SeriesGaps":
    """The gaps within the hours of the market, as far as the series tells them; else all gaps."""
    from backsight.importers.sessions import gaps_within_hours  # imports NumPy: slow, and few files have gaps

    within = gaps_within_hours(slots, per_day=DAY // interval)
    if within is None:
        return _SeriesGaps(wide, 0)
    real = {gap.after for gap in wide}  # an hour that is skipped when clocks go forward is none
    counted = [gap for gap in within if instant_of_slot(gap.after) in real]
    return _SeriesGaps(
        [
            Gap(
                symbol=symbol, after=instant_of_slot(gap.after), before=instant_of_slot(gap.before), missing=gap.missing
            )
            for gap in counted
            if gap.missing
        ],
        0,
        [
            MissingSession(
                symbol=symbol,
                opens_at=_moved(instant_of_slot(gap.after), (first - gap.after) * interval, zone),
                bars=length,
            )
            for gap in counted
            for first, length in gap.sessions
        ],
        sum(gap.closed for gap in counted),
        by_hours=True,
    )


def _slots(instants: Sequence[datetime], interval: timedelta, zone: tzinfo) -> list[int] | None:
    """The numbers of the intervals since 1970, on the wall clock of the zone.

    None unless a day has a whole number of intervals. In a market that is open when clocks go back, an hour occurs
    twice; its intervals are numbered in UTC.
    """
    if interval > DAY or DAY % interval:
        return None
    for clock in (zone, UTC):
        start = EPOCH.replace(tzinfo=None)
        slots = [(at.astimezone(clock).replace(tzinfo=None) - start) // interval for at in instants]
        if len(set(slots)) == len(slots):
            return slots
    return None


def _moved(at: datetime, by: timedelta, zone: tzinfo) -> datetime:
    """An instant moved on the wall clock of a zone."""
    local = at.astimezone(zone).replace(tzinfo=None) + by
    return local.replace(tzinfo=zone).astimezone(UTC)


def _counting(series: Mapping[str, _SeriesGaps]) -> str:
    """How missing bars were counted, in a sentence."""
    if any(each.by_hours and (each.closed or each.sessions) for each in series.values()):
        return (
            "Hours in which the file has no bars in the weeks before or after are closed and not counted; a whole"
            " session without bars is named apart."
        )
    return "Every interval between two bars is counted."


def _opened(row: _BarRow, interval: timedelta, zone: tzinfo) -> _BarRow:
    """The row of a bar that is labelled at its close, with the time of its open."""
    return replace(row, at=row.at - interval if interval < DAY else _moved(row.at, -interval, zone))


def _trader_line(
    line: Mapping[str, Any], *, timezone: str | None, default_timezone: str | None, number: int, source: Source
) -> _TraderLine:
    meta = _mapping(line, "Meta Data", number=number, source=source)
    label, series = _series(line, number=number, source=source)
    symbol = _meta(meta, "Symbol", number=number, source=source)
    seconds = _interval_of(label, number=number, source=source)
    name = timezone or _meta(meta, "Time Zone", number=number, source=source, default=default_timezone)
    zone = zone_named(name)
    rows: list[_BarRow] = []
    openings: list[Opening] = []
    for stamp, prices in series.items():
        at = _time(stamp, zone=zone, number=number, source=source)
        values = _trader_prices(prices, stamp=stamp, number=number, source=source)
        if set(values) == {"open"}:
            price = _price(values["open"], field="open", number=number, source=source)
            openings.append(Opening(symbol=symbol, interval_seconds=seconds, opened_at=at, price=price))
        else:
            rows.append(_row(values, symbol=symbol, at=at, number=number, source=source))
    return _TraderLine(symbol, name, seconds, rows, openings)


def _mapping(line: Mapping[str, Any], key: str, *, number: int, source: Source) -> dict[str, Any]:
    value = line.get(key)
    if not isinstance(value, dict):
        raise source.invalid(number, f"no object {key!r}; every line needs Meta Data and Time Series", field="path")
    return value


def _series(line: Mapping[str, Any], *, number: int, source: Source) -> tuple[str, dict[str, Any]]:
    key = next((key for key in line if key.startswith("Time Series")), "Time Series")
    return key, _mapping(line, key, number=number, source=source)


def _meta(meta: Mapping[str, Any], name: str, *, number: int, source: Source, default: str | None = None) -> str:
    value = next((value for key, value in meta.items() if key.endswith(f". {name}")), default)
    if not isinstance(value, str) or not value.strip():
        remedy = "give timezone" if name == "Time Zone" else "name it in every line"
        raise source.invalid(number, f"Meta Data has no {name}; {remedy}", field="path")
    return value.strip()


def _interval_of(label: str, *, number: int, source: Source) -> int:
    minutes = re.fullmatch(r"Time Series \(([1-9][0-9]{0,4})min\)", label)
    if minutes:
        return int(minutes[1]) * 60
    if label == "Time Series (Daily)":
        return 86_400
    message = f"{short_text(label)} names no interval; write Time Series (60min) or Time Series (Daily)"
    raise source.invalid(number, message, field="interval_seconds")


def _trader_prices(prices: object, *, stamp: str, number: int, source: Source) -> dict[str, object]:
    if not isinstance(prices, dict):
        raise source.invalid(number, f"{stamp} has no prices; give an object with buy price, high, low", field="path")
    values: dict[str, object] = {}
    for key, value in prices.items():
        column = TRADER_NAMES.get(key.partition(". ")[2])
        if column is not None:
            values[column] = value
    return values
