"""Files of rows: CSV, Parquet and JSON Lines, with their times and numbers, and errors that name the row."""

import codecs
import csv
import gzip
import io
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from backsight.core.errors import BacksightError, Invalid, NotFound, Refused, Unavailable, nearest
from backsight.core.instants import EPOCH
from backsight.core.numbers import positive_zero

EPOCH_UNITS: tuple[tuple[float, Decimal], ...] = (
    (1e11, Decimal(1_000_000)),
    (1e14, Decimal(1_000)),
    (1e17, Decimal(1)),
    (1e20, Decimal("0.001")),
)
"""Limits below which a number is in seconds, milliseconds, microseconds, nanoseconds; and the unit in microseconds."""
YEARS = (1700, 9000)
"""Accepted years: far enough from the ends of the calendar that no zone or interval leads out of it."""
NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")
UNDECODED = "\N{REPLACEMENT CHARACTER}"
"""What stands for bytes that are no text in the encoding of a file."""
GZIP = b"\x1f\x8b"
"""How a file that is compressed with gzip begins."""
MAX_PARQUET_ROWS = 20_000_000
MAX_CELL = 100_000
"""Characters of a cell of a Parquet file."""
PARQUET_BATCH = 4_096
EPOCH_SMALLEST = 1e8
"""Smaller numbers (before March 1973, as seconds) are years or compact dates and not times."""


RowUnit = Literal["line", "row"]


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is being read; its errors name the file and the line or row."""

    path: Path
    unit: RowUnit = "line"

    def invalid(self, number: int, message: str, *, field: str) -> Invalid:
        return Invalid(f"{self.path} {self.unit} {number}: {message}", field=field)

    def located(self, number: int, error: BacksightError) -> BacksightError:
        """The same error, with the file and the line or row in its message."""
        return type(error)(f"{self.path} {self.unit} {number}: {message_without_field(error)}", field=error.field)


def message_without_field(error: BacksightError) -> str:
    """The message of an error without the name of its field in front."""
    return error.message.removeprefix(f"{error.field}: ")


def short_text(value: object) -> str:
    """A value in quotes for a message, cut to 40 characters."""
    text = str(value)
    return repr(text if len(text) <= 40 else text[:40] + "…")


def zone_named(name: str) -> tzinfo:
    """The time zone with an IANA name.

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
        raise Invalid(f"{short_text(name)} is not a known time zone; {remedy}", field="timezone") from None


def instant_of(value: object, *, zone: tzinfo) -> datetime:
    """The instant (UTC) in a cell; `ValueError` with the reason if the cell holds no time.

    >>> instant_of("2025-11-02 01:30", zone=zone_named("America/New_York")).isoformat()
    '2025-11-02T05:30:00+00:00'
    >>> instant_of("1762061400000", zone=UTC) == instant_of(1762061400, zone=UTC)
    True
    """
    at = _read_time(value)
    if not YEARS[0] <= at.year <= YEARS[1]:
        raise ValueError(f"{short_text(value)} is out of range; give a year from {YEARS[0]} to {YEARS[1]}")
    return (at if at.tzinfo else at.replace(tzinfo=zone, fold=0)).astimezone(UTC)


def is_shown_twice(at: datetime, zone: tzinfo) -> bool:
    """Whether clocks of a zone show the time of an instant again an hour later, because they go back meanwhile.

    >>> zone = zone_named("America/New_York")
    >>> [is_shown_twice(datetime(2025, 11, 2, hour, 30, tzinfo=UTC), zone) for hour in (4, 5, 6)]
    [False, True, False]
    """
    if not isinstance(zone, ZoneInfo):
        return False
    local = at.astimezone(zone)
    return not local.fold and local.utcoffset() != local.replace(fold=1).utcoffset()


def read_bytes(path: Path) -> bytes:
    """The bytes of a file; an error if the file does not exist, cannot be read or is empty."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if not content:
        raise empty_file(path)
    return content


def unreadable(path: Path, error: Exception) -> BacksightError:
    """The error for a file that cannot be opened or read."""
    match error:
        case FileNotFoundError():
            return NotFound(f"there is no file {path}; check its name and folder", field="path")
        case PermissionError():
            return Refused(f"{path} may not be read; ask its owner for permission", field="path")
        case _:
            return Invalid(f"{str(path)!r} cannot be read ({error}); give the path of a file", field="path")


def line_count(path: Path) -> int:
    """The number of lines of a file: about as many rows as a text file has."""
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def text_stream(path: Path) -> io.TextIOWrapper:
    """A text file, plain or compressed with gzip, to be read line by line: UTF-16 by its byte order mark, else UTF-8.

    A character that cannot be decoded becomes U+FFFD.
    """
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == GZIP
        raw = cast(BinaryIO, gzip.GzipFile(path)) if compressed else path.open("rb")
        start = raw.read(2)
        raw.seek(0)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise unreadable(path, error) from None
    encoding = "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    return io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")


def decode(content: bytes, *, path: Path) -> str:
    """The text of UTF-8 bytes without a byte order mark; an error if the text is blank."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise Source(path).invalid(line, message, field="path") from None
    if not text.strip():
        raise empty_file(path)
    return text


def read_table(path: Path) -> tuple[Source, Sequence[str], Iterator[tuple[int, Sequence[object]]]]:
    """The header of a CSV or Parquet file, and its rows with their numbers; the cells of a CSV file are text."""
    with _opened(path) as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet or path.suffix.casefold() in (".parquet", ".pq"):
        source = Source(path, "row")
        return source, *_parquet_cells(read_bytes(path), source)
    source = Source(path)
    return source, *_csv_cells(source)


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line number and the object of every line that is not blank.

    Repeated keys and NaN are refused, because JSON has neither.
    """
    source, is_empty = Source(path), True
    for number, text in enumerate(_lines(path), start=1):
        if not text.strip():
            continue
        is_empty = False
        try:
            line = _STRICT.decode(text)
        except (ValueError, RecursionError) as error:
            raise source.invalid(number, f"not JSON ({error}); write one object a line", field="path") from None
        if not isinstance(line, dict):
            raise source.invalid(number, f"{short_text(line)} is not an object; write one object a line", field="path")
        yield number, line
    if is_empty:
        raise empty_file(path)


def _lines(path: Path, *, newline: Literal["", "\n"] = "\n") -> Iterator[str]:
    """The lines of a UTF-8 file, one at a time, since a large file would take several times its size in memory.

    `newline` is as for `open`: lines end with "\\n", or, if it is empty, with "\\r" too.
    """
    with io.TextIOWrapper(_opened(path), encoding="utf-8-sig", newline=newline) as stream:
        try:
            yield from stream
        except UnicodeDecodeError:
            decode(read_bytes(path), path=path)  # raises an error that names the line
            raise


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def number_of(value: object) -> float | None:
    """The number in a cell, possibly NaN or infinite; None if the cell holds no number.

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


def empty_file(path: Path) -> Invalid:
    """The error for a file without content."""
    return Invalid(f"{path} is empty; give a file with rows", field="path")


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {short_text(twice)} occurs twice")
    return content


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


_STRICT = json.JSONDecoder(object_pairs_hook=_unrepeated, parse_constant=_no_constant)


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
            raise ValueError(f"{short_text(value)} is not a time; give one like 2026-06-04T10:00:00Z")


def _read_time_text(text: str) -> datetime:
    if text[-4:] in (" UTC", " GMT"):
        text = f"{text[:-4]}Z"
    compact_date = len(text) == 8
    if NUMBER.fullmatch(text) and not compact_date:
        return _from_epoch(Decimal(text))
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{short_text(text)} is not a time; give one like 2026-06-04T10:00:00Z") from None


def _from_epoch(number: Decimal) -> datetime:
    """The instant of a number of seconds or parts of seconds since 1970.

    A fraction is rounded to the nearest microsecond, because 1762061400.1 as a float is a little less than that. Whole
    nanoseconds are cut to microseconds, as those of Parquet files are.
    """
    if number < EPOCH_SMALLEST:
        raise ValueError(f"{short_text(number)} is too small for a time since 1970; give one like 2026-06-04T10:00:00Z")
    for limit, microseconds in EPOCH_UNITS:
        if number < limit:
            exact = number * microseconds
            return EPOCH + timedelta(microseconds=int(exact) if number % 1 == 0 else round(exact))
    raise ValueError(f"{short_text(number)} is too large for a time since 1970; give one like 2026-06-04T10:00:00Z")


def _csv_cells(source: Source) -> tuple[Sequence[str], Iterator[tuple[int, Sequence[object]]]]:
    first = next((line for line in _lines(source.path, newline="") if line.strip()), None)
    if first is None:
        raise empty_file(source.path)
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(_lines(source.path, newline=""), delimiter=delimiter, strict=True)
    lines = _csv_lines(reader, source)
    _, header = next(lines, (1, []))
    return header, _same_length(lines, len(header), source)


def _csv_lines(reader: Any, source: Source) -> Iterator[tuple[int, list[str]]]:
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        raise source.invalid(reader.line_num, f"not CSV ({error}); check the quotes", field="path") from None


def _same_length(
    lines: Iterator[tuple[int, list[str]]], length: int, source: Source
) -> Iterator[tuple[int, Sequence[object]]]:
    for number, cells in lines:
        if len(cells) != length:
            message = f"{len(cells)} cells, but the header has {length}; write one cell for each column"
            raise source.invalid(number, message, field="path")
        yield number, cells


def _parquet_cells(content: bytes, source: Source) -> tuple[Sequence[str], Iterator[tuple[int, Sequence[object]]]]:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        remedy = "pip install 'backsight[parquet]', or give a CSV file"
        raise Unavailable(f"{source.path} is Parquet, which needs pyarrow; {remedy}", field="path") from None
    try:
        file = open_parquet(arrow, parquet, arrow.BufferReader(content))
    except (arrow.ArrowException, OSError) as error:
        raise Invalid(f"{source.path} is not Parquet ({error}); give a CSV or Parquet file", field="path") from None
    return file.schema_arrow.names, _parquet_rows(arrow, file, source)


def open_parquet(arrow: Any, parquet: Any, where: Any) -> Any:
    """A Parquet file to be read in parts; texts stay in dictionaries, since a small file can repeat a long text."""
    schema = parquet.read_schema(where)
    texts = [field.name for field in schema if arrow.types.is_string(field.type) or arrow.types.is_binary(field.type)]
    file = parquet.ParquetFile(where, read_dictionary=texts)
    if file.metadata.num_rows > MAX_PARQUET_ROWS:
        raise Invalid(f"the file has more than {MAX_PARQUET_ROWS:,} rows; split it", field="path")
    return file


def _parquet_rows(arrow: Any, file: Any, source: Source) -> Iterator[tuple[int, Sequence[object]]]:
    number = 0
    try:
        for batch in file.iter_batches(batch_size=PARQUET_BATCH):
            for cells in zip(*(python_values(arrow, column) for column in batch.columns), strict=True):
                number += 1
                yield number, cells
    except (arrow.ArrowException, OSError) as error:
        raise Invalid(f"{source.path} is not Parquet ({error}); give a CSV or Parquet file", field="path") from None


def python_values(arrow: Any, column: Any) -> list[Any]:
    """A column as Python values; times are cut to microseconds, the resolution of Python."""
    if arrow.types.is_timestamp(column.type):
        column = column.cast(arrow.timestamp("us", tz=column.type.tz), safe=False)
    if arrow.types.is_dictionary(column.type):
        longest = max((len(text) for text in column.dictionary.to_pylist() if text is not None), default=0)
        if longest > MAX_CELL:
            raise Invalid(f"a cell has more than {MAX_CELL:,} characters; shorten it", field="path")
    values: list[Any] = column.to_pylist()
    return values
