"""Bars from files: CSV, Parquet, and the JSON lines that lie beside agents' position logs.

Times are ISO 8601, or numbers since 1970 whose unit their size tells. A time without an offset is on the wall clock of
the zone given, with `fold=0`: an hour that occurs twice when clocks go back is its first occurrence, and an hour that
is skipped when they go forward is read with the offset before the change (02:30 becomes 03:30). Where that puts two
different bars at one instant, the file is refused, since only an offset can tell them apart.
"""

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from backsight.core.errors import (
    BacksightError,
    Invalid,
    NotFound,
    Refused,
    Unavailable,
    did_you_mean,
    nearest,
)
from backsight.core.market import Bar
from backsight.core.numbers import positive_zero

Column = Literal["time", "open", "high", "low", "close", "volume", "symbol"]
Price = Literal["open", "high", "low", "close"]

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
"""What a column may be called, case folded; where a file has several of one kind, the first named here counts."""
OPTIONAL: tuple[Column, ...] = ("volume", "symbol")
GAPS_LISTED = 1000
DAY = timedelta(days=1)
SHORTEST_DAY = timedelta(hours=23)
"""A day on which clocks go forward."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_UNITS: tuple[tuple[float, Decimal], ...] = (
    (1e11, Decimal(1_000_000)),
    (1e14, Decimal(1_000)),
    (1e17, Decimal(1)),
    (1e20, Decimal("0.001")),
)
"""Below which size a number is in seconds, milliseconds, microseconds, nanoseconds; and its microseconds a unit."""
YEARS = (1700, 9000)
"""Years that are taken for times; far enough from the ends of the calendar that no zone or interval leads out of it."""
LONGEST_INTERVAL = 366 * 86_400
LONGEST_SYMBOL = 64
NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
EPOCH_SMALLEST = 1e8
"""Smaller numbers (before March 1973, as seconds) are years or compact dates, not instants."""
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
    """Bars that a file lacks: those that would have opened after one instant and before another."""

    symbol: str
    after: datetime
    """When the last bar before the gap opened."""
    before: datetime
    """When the first bar after the gap opened."""
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The open of a bar that had not ended when the file was written; the rest of it is not known."""

    symbol: str
    interval_seconds: int
    opened_at: datetime
    price: float

    @property
    def closes_at(self) -> datetime:
        return self.opened_at + timedelta(seconds=self.interval_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class BarsReport:
    """What was in a file of bars, beyond the bars."""

    rows: int
    """Rows read, with those that were dropped and those of other symbols."""
    duplicates: int
    """Rows dropped because an identical one was there."""
    out_of_order: int
    """Rows that came after a later one of their symbol; they are sorted in."""
    other_symbols: int
    """Rows left out because another symbol was asked for."""
    overlaps: int
    """Bars that opened before the bar before them had ended."""
    gap_count: int
    missing: int
    """Bars that all gaps lack together."""
    gaps: tuple[Gap, ...]
    """The first thousand, by symbol and time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarsRead:
    """The bars of a file, per symbol and sorted by time, and what else was found."""

    interval_seconds: int
    bars: Mapping[str, tuple[Bar, ...]]
    openings: tuple[Opening, ...]
    """Bars of which only the open is known; files of traders end with one a symbol."""
    report: BarsReport


@dataclass(frozen=True, slots=True)
class Source:
    """A file being read, so that every refusal names it and the place."""

    path: Path
    unit: Literal["line", "row"] = "line"

    def wrong(self, number: int, message: str, *, field: str) -> Invalid:
        return Invalid(f"{self.path} {self.unit} {number}: {message}", field=field)

    def placed(self, number: int, error: BacksightError) -> BacksightError:
        """The same refusal, with the place that it is of."""
        said = error.message.removeprefix(f"{error.field}: ")
        return type(error)(f"{self.path} {self.unit} {number}: {said}", field=error.field)


@dataclass(frozen=True, slots=True)
class _Row:
    """A bar as a file has it, its interval not yet known."""

    number: int
    symbol: str
    at: datetime
    prices: tuple[float, float, float, float]
    volume: float | None


@dataclass(frozen=True, slots=True)
class _TraderLine:
    """The bars of one symbol, as a line of a trader's file has them."""

    symbol: str
    zone: str
    seconds: int
    rows: Sequence[_Row]
    openings: Sequence[Opening]


def read_bars(
    path: str | Path, *, symbol: str | None = None, interval_seconds: int | None = None, timezone: str = "UTC"
) -> BarsRead:
    """The bars of a CSV or Parquet file, sorted by time, with what was dropped and what is missing.

    `symbol` names the bars of a file without such a column, and selects from a file with one. An interval that is not
    given is the most common distance between bars. Of bars of a day or longer, distances are on the zone's wall clock,
    so that the days of 23 and 25 hours are no gaps.
    """
    zone = zone_named(timezone)
    if interval_seconds is not None and not 1 <= interval_seconds <= LONGEST_INTERVAL:
        remedy = "give whole seconds, from 1 to those of a year"
        raise Invalid(f"{interval_seconds} is no length of a bar; {remedy}", field="interval_seconds")
    source, header, cells = read_table(Path(path))
    columns = _columns(header, source)
    if symbol is None and "symbol" not in columns:
        raise Invalid(f"{source.path} has no column for it; give the symbol of its bars", field="symbol")
    rows, other = _rows(cells, columns=columns, symbol=symbol, zone=zone, source=source)
    return _assemble(rows, interval_seconds=interval_seconds, zone=zone, source=source, other_symbols=other)


def read_trader_bars(path: str | Path, *, timezone: str | None = None, otherwise: str | None = None) -> BarsRead:
    """The bars of a JSON-lines file with a symbol a line, as the position logs of AI-Trader have them.

    A line is `{"Meta Data": {...}, "Time Series (60min)": {time: {"1. buy price": …}}}`; buy price is the open, sell
    price the close. Times are in the zone given, else in the one that the file names, `otherwise` where it names none.
    The last bar of a line has an open only: it had not ended, and is among `openings`.
    """
    source = Source(Path(path))
    lines: dict[str, _TraderLine] = {}
    for number, line in json_lines(source.path):
        read = _trader_line(line, timezone=timezone, otherwise=otherwise, number=number, source=source)
        first = next(iter(lines.values()), read)
        if (read.zone, read.seconds) != (first.zone, first.seconds):
            raise source.wrong(number, "another interval or zone than the first line; split the file", field="path")
        if read.symbol in lines:
            raise source.wrong(number, f"a second line of {read.symbol!r}; join its lines", field="symbol")
        lines[read.symbol] = read
    rows = [row for each in lines.values() for row in each.rows]
    if not rows:
        raise Invalid(f"{source.path} has no bars that ended; give a file with a symbol a line", field="path")
    return _assemble(
        rows,
        interval_seconds=first.seconds,
        zone=zone_named(first.zone),
        source=source,
        openings=[opening for each in lines.values() for opening in each.openings],
    )


def zone_named(name: str) -> tzinfo:
    """The time zone of an IANA name.

    >>> zone_named("America/New_York")
    zoneinfo.ZoneInfo(key='America/New_York')
    >>> zone_named("New York")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: timezone: 'New York' is not a known time zone; did you mean 'America/New_York'?
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = {place.rpartition("/")[2].replace("_", " "): place for place in sorted(available_timezones())}
        match = nearest(name.rpartition("/")[2].replace("_", " "), known)
        remedy = f"did you mean '{known[match]}'?" if match else "give one like America/New_York or UTC"
        raise Invalid(f"{_shown(name)} is not a known time zone; {remedy}", field="timezone") from None


def instant_of(value: object, *, zone: tzinfo) -> datetime:
    """The instant (UTC) that a cell names; a ValueError says why it names none.

    >>> instant_of("2025-11-02 01:30", zone=zone_named("America/New_York")).isoformat()
    '2025-11-02T05:30:00+00:00'
    >>> instant_of("1762061400000", zone=UTC) == instant_of(1762061400, zone=UTC)
    True
    """
    at = _read_time(value)
    if not YEARS[0] <= at.year <= YEARS[1]:
        raise ValueError(f"{_shown(value)} is out of range; give a year from {YEARS[0]} to {YEARS[1]}")
    return (at if at.tzinfo else at.replace(tzinfo=zone, fold=0)).astimezone(UTC)


def read_bytes(path: Path) -> bytes:
    """The bytes of a file that is there, may be read and is not empty."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}; check its name and folder", field="path") from None
    except PermissionError:
        raise Refused(f"{path} may not be read; ask its owner for the right to", field="path") from None
    except (OSError, ValueError) as error:
        raise Invalid(f"{str(path)!r} cannot be read ({error}); give the path of a file", field="path") from None
    if not content:
        raise _empty(path)
    return content


def decode(content: bytes, *, path: Path) -> str:
    """The text of UTF-8 bytes, not blank, without the mark that some programs put first."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise Source(path).wrong(line, message, field="path") from None
    if not text.strip():
        raise _empty(path)
    return text


def read_table(path: Path) -> tuple[Source, Sequence[str], Iterator[tuple[int, Sequence[object]]]]:
    """The header of a CSV or Parquet file, and its rows with their numbers; cells of a CSV file are texts."""
    content = read_bytes(path)
    if content.startswith(b"PAR1") or path.suffix.casefold() in (".parquet", ".pq"):
        source = Source(path, "row")
        return source, *_parquet_cells(content, source)
    source = Source(path)
    return source, *_csv_cells(decode(content, path=path), source)


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that is not blank.

    A key that an object has twice is refused, and so is NaN: JSON has neither.
    """
    source = Source(path)
    for number, text in enumerate(decode(read_bytes(path), path=path).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            line = _STRICT.decode(text)
        except (ValueError, RecursionError) as error:
            raise source.wrong(number, f"not JSON ({error}); write one object a line", field="path") from None
        if not isinstance(line, dict):
            raise source.wrong(number, f"{_shown(line)} is not an object; write one object a line", field="path")
        yield number, line


def number_of(value: object) -> float | None:
    """The double that a cell holds, NaN and the infinities too; None where it holds no number.

    >>> number_of(" 1.5 "), number_of("1_000"), number_of(True)
    (1.5, None, None)
    """
    if isinstance(value, str):
        if "_" in value:
            return None
    elif isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    try:
        return positive_zero(float(value))
    except ValueError:
        return None
    except OverflowError:
        return math.inf


def _empty(path: Path) -> Invalid:
    return Invalid(f"{path} is empty; give a file with rows", field="path")


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {_shown(twice)} occurs twice")
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


_STRICT = json.JSONDecoder(object_pairs_hook=_unrepeated, parse_constant=_no_constant)


def _shown(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _read_time(value: object) -> datetime:
    match value:
        case datetime():
            return value
        case date():
            return datetime.combine(value, time())
        case str():
            return _read_time_text(value.strip())
        case int() | float() if not isinstance(value, bool) and math.isfinite(value):
            return _from_epoch(Decimal(value))
        case _:
            raise ValueError(f"{_shown(value)} is not a time; give one like 2026-06-04T10:00:00Z")


def _read_time_text(text: str) -> datetime:
    compact_date = len(text) == 8
    if NUMBER.fullmatch(text) and not compact_date:
        return _from_epoch(Decimal(text))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{_shown(text)} is not a time; give one like 2026-06-04T10:00:00Z") from None


def _from_epoch(number: Decimal) -> datetime:
    if number < EPOCH_SMALLEST:
        raise ValueError(f"{_shown(number)} is too small for a time since 1970; give one like 2026-06-04T10:00:00Z")
    for limit, microseconds in EPOCH_UNITS:
        if number < limit:
            return EPOCH + timedelta(microseconds=int(number * microseconds))
    raise ValueError(f"{_shown(number)} is too large for a time since 1970; give one like 2026-06-04T10:00:00Z")


def _csv_cells(text: str, source: Source) -> tuple[Sequence[str], Iterator[tuple[int, Sequence[object]]]]:
    first = next(line for line in text.split("\n") if line.strip())
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    lines = _csv_lines(reader, source)
    _, header = next(lines, (1, []))
    return header, _same_length(lines, len(header), source)


def _csv_lines(reader: Any, source: Source) -> Iterator[tuple[int, list[str]]]:
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise source.wrong(reader.line_num, f"not CSV ({error}); check its quotes", field="path") from None


def _same_length(
    lines: Iterator[tuple[int, list[str]]], length: int, source: Source
) -> Iterator[tuple[int, Sequence[object]]]:
    for number, cells in lines:
        if len(cells) != length:
            message = f"{len(cells)} cells where the header has {length}; write one for each column"
            raise source.wrong(number, message, field="path")
        yield number, cells


def _parquet_cells(content: bytes, source: Source) -> tuple[Sequence[str], Iterator[tuple[int, Sequence[object]]]]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        remedy = "pip install 'backsight[parquet]', or give a CSV file"
        raise Unavailable(f"{source.path} is Parquet, which needs pyarrow; {remedy}", field="path") from None
    try:
        table = parquet.read_table(arrow.BufferReader(content))
    except (arrow.ArrowException, OSError) as error:
        raise Invalid(f"{source.path} is not Parquet ({error}); give a CSV or Parquet file", field="path") from None
    columns = [_python_values(arrow, column) for column in table.columns]
    return table.column_names, enumerate(zip(*columns, strict=True), start=1)


def _python_values(arrow: Any, column: Any) -> list[object]:
    """A column as Python values; instants to the microsecond, since Python has no finer ones."""
    if arrow.types.is_timestamp(column.type):
        column = column.cast(arrow.timestamp("us", tz=column.type.tz), safe=False)
    values: list[object] = column.to_pylist()
    return values


def _columns(header: Sequence[str], source: Source) -> dict[Column, int]:
    """Where each column is that bars are made of."""
    names = [re.sub(r"[\s-]+", "_", name.strip().casefold()) for name in header]
    found: dict[Column, int] = {}
    for column, spellings in NAMES.items():
        spelt = next((name for name in spellings if name in names), None)
        if spelt is None and column not in OPTIONAL:
            there = ", ".join(_shown(name) for name in header[:20])
            remedy = f"name one {' or '.join(spellings)} in its first line (there: {there})"
            raise Invalid(f"{source.path} has no such column; {remedy}", field=column)
        if spelt is not None and names.count(spelt) > 1:
            raise Invalid(f"{source.path} has two columns {spelt!r}; rename one", field=column)
        if spelt is not None:
            found[column] = names.index(spelt)
    return found


def _rows(
    cells: Iterable[tuple[int, Sequence[object]]],
    *,
    columns: Mapping[Column, int],
    symbol: str | None,
    zone: tzinfo,
    source: Source,
) -> tuple[list[_Row], int]:
    """The rows of the symbol asked for, or of all; and how many others there were."""
    rows: list[_Row] = []
    others = Counter[str]()
    for number, row in cells:
        named = {column: row[place] for column, place in columns.items()}
        own = _symbol(named, number=number, source=source) if "symbol" in columns else symbol
        if own is None or symbol not in (None, own):
            others[own or ""] += 1
            continue
        at = _time(named["time"], zone=zone, number=number, source=source)
        rows.append(_row(named, symbol=own, at=at, number=number, source=source))
    if not rows and others:
        raise NotFound(f"{source.path} has no rows of {symbol!r}; {did_you_mean(symbol or '', others)}", field="symbol")
    if not rows:
        raise Invalid(f"{source.path} has no rows under its header; give a file with bars", field="path")
    return rows, others.total()


def _symbol(named: Mapping[Column, object], *, number: int, source: Source) -> str:
    symbol = named["symbol"]
    if not isinstance(symbol, str) or not symbol.strip():
        raise source.wrong(number, "no symbol; name the symbol in every row", field="symbol")
    if len(symbol.strip()) > LONGEST_SYMBOL or not symbol.strip().isprintable():
        message = f"{_shown(symbol)} is not a symbol; give up to {LONGEST_SYMBOL} printable characters"
        raise source.wrong(number, message, field="symbol")
    return symbol.strip()


def _time(value: object, *, zone: tzinfo, number: int, source: Source) -> datetime:
    try:
        return instant_of(value, zone=zone)
    except ValueError as error:
        raise source.wrong(number, str(error), field="time") from None


def _row(named: Mapping[Any, object], *, symbol: str, at: datetime, number: int, source: Source) -> _Row:
    open_, high, low, close = (_price(named.get(name), field=name, number=number, source=source) for name in PRICES)
    if high < low:
        raise source.wrong(number, f"{high} is below the low {low}; swap or correct them", field="high")
    for field, price in (("open", open_), ("close", close)):
        if not low <= price <= high:
            raise source.wrong(number, f"{price} is outside low {low} to high {high}; correct the row", field=field)
    volume = _volume(named.get("volume"), number=number, source=source)
    return _Row(number, symbol, at, (open_, high, low, close), volume)


def _price(value: object, *, field: Price, number: int, source: Source) -> float:
    price = number_of(value)
    if price is not None and math.isfinite(price):
        return price
    if value is None or (isinstance(value, str) and not value.strip()):
        raise source.wrong(number, "no price; fill it in or leave out the row", field=field)
    if price is None:
        raise source.wrong(number, f"{_shown(value)} is not a number; write it like 1234.5", field=field)
    raise source.wrong(number, f"{_shown(value)} is not a price; correct or leave out the row", field=field)


def _volume(value: object, *, number: int, source: Source) -> float | None:
    """The volume; None where the cell is empty or NaN, as programs write what they do not know."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    volume = number_of(value)
    if volume is not None and math.isnan(volume):
        return None
    if volume is None or volume < 0 or math.isinf(volume):
        message = f"{_shown(value)} is no volume; give a number from 0, or leave it empty where it is not known"
        raise source.wrong(number, message, field="volume")
    return volume


def _assemble(
    rows: Sequence[_Row],
    *,
    interval_seconds: int | None,
    zone: tzinfo,
    source: Source,
    other_symbols: int = 0,
    openings: Sequence[Opening] = (),
) -> BarsRead:
    """Rows in any order as bars: sorted, without duplicates, with their gaps."""
    by_symbol: dict[str, list[_Row]] = {}
    for row in rows:
        by_symbol.setdefault(row.symbol, []).append(row)
    unique = {symbol: _sorted_once(by_symbol[symbol], source) for symbol in sorted(by_symbol)}
    instants = {symbol: [row.at for row in kept] for symbol, kept in unique.items()}
    seconds = interval_seconds or _infer_interval(instants.values(), zone=zone, source=source)
    gaps, overlaps = _gaps(instants, interval=timedelta(seconds=seconds), zone=zone)
    report = BarsReport(
        rows=len(rows) + len(openings) + other_symbols,
        duplicates=len(rows) - sum(len(kept) for kept in unique.values()),
        out_of_order=sum(_out_of_order(read) for read in by_symbol.values()),
        other_symbols=other_symbols,
        overlaps=overlaps,
        gap_count=len(gaps),
        missing=sum(gap.missing for gap in gaps),
        gaps=tuple(gaps[:GAPS_LISTED]),
    )
    bars = {symbol: tuple(_bar(row, seconds) for row in kept) for symbol, kept in unique.items()}
    ordered = sorted(openings, key=lambda opening: (opening.symbol, opening.opened_at))
    return BarsRead(interval_seconds=seconds, bars=bars, openings=tuple(ordered), report=report)


def _bar(row: _Row, seconds: int) -> Bar:
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


def _sorted_once(rows: Sequence[_Row], source: Source) -> list[_Row]:
    kept: list[_Row] = []
    for row in sorted(rows, key=lambda row: row.at):
        if not kept or kept[-1].at != row.at:
            kept.append(row)
        elif (kept[-1].prices, kept[-1].volume) != (row.prices, row.volume):
            message = f"another bar of {row.symbol} at {row.at.isoformat()} than {source.unit} {kept[-1].number} has"
            remedy = "keep one, or give times with an offset where clocks changed"
            raise source.wrong(row.number, f"{message}; {remedy}", field="time")
    return kept


def _out_of_order(rows: Sequence[_Row]) -> int:
    count, latest = 0, rows[0].at
    for row in rows:
        count += row.at < latest
        latest = max(latest, row.at)
    return count


def _distances(instants: Sequence[datetime], zone: tzinfo) -> list[timedelta]:
    """Distances of neighbours on the wall clock of a zone; in UTC those that really passed."""
    local = instants if zone is UTC else [at.astimezone(zone).replace(tzinfo=None) for at in instants]
    return [later - earlier for earlier, later in pairwise(local)]


def _infer_interval(instants: Iterable[Sequence[datetime]], *, zone: tzinfo, source: Source) -> int:
    """The most common distance of neighbours, in seconds; of several equally common ones the shortest."""
    series = list(instants)
    elapsed = [distance for each in series for distance in _distances(each, UTC)]
    if not elapsed:
        raise Invalid(f"{source.path} has one bar a symbol, which tells none; give it", field="interval_seconds")
    if min(elapsed) >= SHORTEST_DAY:
        elapsed = [distance for each in series for distance in _distances(each, zone)]
    counted = Counter(elapsed)
    interval = min(counted, key=lambda distance: (-counted[distance], distance))
    seconds, rest = divmod(interval, timedelta(seconds=1))
    if rest or seconds > LONGEST_INTERVAL:
        remedy = "give whole seconds, from 1 to those of a year"
        raise Invalid(f"{source.path} has bars {interval} apart; {remedy}", field="interval_seconds")
    return seconds


def _gaps(instants: Mapping[str, Sequence[datetime]], *, interval: timedelta, zone: tzinfo) -> tuple[list[Gap], int]:
    """Every distance of more than one interval, and how many are of less."""
    gaps: list[Gap] = []
    overlaps = 0
    for symbol, series in instants.items():
        distances = _distances(series, zone if interval >= DAY else UTC)
        for (after, before), distance in zip(pairwise(series), distances, strict=True):
            overlaps += distance < interval
            if distance > interval:
                gaps.append(Gap(symbol=symbol, after=after, before=before, missing=-(-distance // interval) - 1))
    return gaps, overlaps


def _trader_line(
    line: Mapping[str, Any], *, timezone: str | None, otherwise: str | None, number: int, source: Source
) -> _TraderLine:
    meta = _mapping(line, "Meta Data", number=number, source=source)
    label, series = _series(line, number=number, source=source)
    symbol = _meta(meta, "Symbol", number=number, source=source)
    seconds = _interval_of(label, number=number, source=source)
    name = timezone or _meta(meta, "Time Zone", number=number, source=source, otherwise=otherwise)
    zone = zone_named(name)
    rows: list[_Row] = []
    openings: list[Opening] = []
    for stamp, prices in series.items():
        at = _time(stamp, zone=zone, number=number, source=source)
        named = _trader_prices(prices, stamp=stamp, number=number, source=source)
        if set(named) == {"open"}:
            price = _price(named["open"], field="open", number=number, source=source)
            openings.append(Opening(symbol=symbol, interval_seconds=seconds, opened_at=at, price=price))
        else:
            rows.append(_row(named, symbol=symbol, at=at, number=number, source=source))
    return _TraderLine(symbol, name, seconds, rows, openings)


def _mapping(line: Mapping[str, Any], key: str, *, number: int, source: Source) -> dict[str, Any]:
    value = line.get(key)
    if not isinstance(value, dict):
        raise source.wrong(number, f"no object {key!r}; give lines of Meta Data and Time Series", field="path")
    return value


def _series(line: Mapping[str, Any], *, number: int, source: Source) -> tuple[str, dict[str, Any]]:
    key = next((key for key in line if key.startswith("Time Series")), "Time Series")
    return key, _mapping(line, key, number=number, source=source)


def _meta(meta: Mapping[str, Any], name: str, *, number: int, source: Source, otherwise: str | None = None) -> str:
    value = next((value for key, value in meta.items() if key.endswith(f". {name}")), otherwise)
    if not isinstance(value, str) or not value.strip():
        remedy = "give timezone" if name == "Time Zone" else "name it in every line"
        raise source.wrong(number, f"Meta Data has no {name}; {remedy}", field="path")
    return value.strip()


def _interval_of(label: str, *, number: int, source: Source) -> int:
    minutes = re.fullmatch(r"Time Series \(([1-9][0-9]{0,4})min\)", label)
    if minutes:
        return int(minutes[1]) * 60
    if label == "Time Series (Daily)":
        return 86_400
    message = f"{_shown(label)} names no interval; write Time Series (60min) or Time Series (Daily)"
    raise source.wrong(number, message, field="interval_seconds")


def _trader_prices(prices: object, *, stamp: str, number: int, source: Source) -> dict[str, object]:
    if not isinstance(prices, dict):
        raise source.wrong(number, f"{stamp} has no prices; give an object with buy price, high, low", field="path")
    named: dict[str, object] = {}
    for key, value in prices.items():
        column = TRADER_NAMES.get(key.partition(". ")[2])
        if column is not None:
            named[column] = value
    return named
