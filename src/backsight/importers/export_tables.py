"""Tables that exchanges export as CSV, read line by line: a header below a preamble, units, times with an offset.

Column names are compared by their letters and digits, without regard to case, so `Fee Coin` and `fee_coin` are one.
Every line is a row of its own: a stray quote spoils one row and not the rest of the file.
"""

import csv
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

from backsight.core.errors import Invalid
from backsight.importers.cells import UnreadableError, plain_name
from backsight.importers.files import instant_of, number_of, text_stream
from backsight.importers.formats import InstrumentRow

HEADER_WITHIN = 20
"""How many lines may come before the header: some exports begin with the account's number."""
GROUPED = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
UTC_OFFSET = re.compile(r"utc ?(?:([+-])([0-9]{1,2})(?::?([0-9]{2}))?)?", re.IGNORECASE)
TWO_DIGIT_YEAR = re.compile(r"[0-9]{2}-[0-9]{2}-[0-9]{2} ")
TIME_FIRST = re.compile(r"([0-9]{2}:[0-9]{2}(?::[0-9]{2})?) ([0-9]{4}-[0-9]{2}-[0-9]{2})")
BLANK = frozenset({"", "-", "--", "n/a", "null", "none"})


@dataclass(frozen=True, slots=True)
class CsvHeader:
    """The line of a CSV file that names its columns."""

    before: tuple[str, ...]
    """The lines before it."""
    delimiter: str
    titles: tuple[str, ...]
    """The columns as the file writes them."""
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(map(plain_name, self.titles)))

    def has(self, columns: Iterable[str]) -> bool:
        return set(columns) <= set(self.names)

    def title_starting(self, *starts: str) -> str | None:
        """The first column whose plain name starts with one of these, as the file writes it."""
        titles = (title for title, name in zip(self.titles, self.names, strict=True) if name.startswith(starts))
        return next(titles, None)


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One line of a CSV file, its cells by plain column name."""

    cells: Mapping[str, str]
    decimal_comma: bool = False
    problem: str | None = None
    """Why the line is no row of the table."""

    def text(self, *names: str) -> str:
        """The cell of the first of these columns that the file has; empty if it is blank or there is none."""
        if self.problem is not None:
            raise ValueError(self.problem)
        for name in names:
            if name in self.cells:
                cell = self.cells[name].strip()
                return "" if cell.casefold() in BLANK else cell
        return ""

    def number_in(self, *names: str) -> float | None:
        """The number in a cell; None if the cell is blank."""
        cell = self.text(*names)
        return number_in_text(cell, decimal_comma=self.decimal_comma, column=names[0]) if cell else None

    def required(self, *names: str) -> float:
        """The number in a cell that must not be blank."""
        number = self.number_in(*names)
        if number is None:
            raise ValueError(f"{names[0]} is missing")
        return number


def number_in_text(text: str, *, decimal_comma: bool = False, column: str) -> float:
    """The finite number in a text, with thousands separators.

    >>> number_in_text("1,234.5", column="price"), number_in_text("1.234,5", decimal_comma=True, column="price")
    (1234.5, 1234.5)
    >>> number_in_text("0,5", column="price")
    Traceback (most recent call last):
    ...
    ValueError: price is not a number
    """
    plain = text.replace(" ", "").replace("\u00a0", "")
    if "," in plain:
        if decimal_comma and plain.rfind(",") > plain.rfind("."):
            plain = plain.replace(".", "").replace(",", ".")
        elif GROUPED.fullmatch(plain):
            plain = plain.replace(",", "")
    number = number_of(plain)
    if number is None or number != number or abs(number) == float("inf"):
        raise ValueError(f"{column} is not a number")
    return number


def amount_with_unit(
    text: str, units: Collection[str] = (), *, decimal_comma: bool = False, column: str = "amount"
) -> tuple[float, str]:
    """A number and the unit right after it; a unit that may begin with a digit must be one of `units`.

    >>> amount_with_unit("0.5BTC"), amount_with_unit("20.01000SHIB", {"1000SHIB"}), amount_with_unit("3")
    ((0.5, 'BTC'), (20.0, '1000SHIB'), (3.0, ''))
    """
    cell = text.strip()
    unit = next((each for each in sorted(units, key=len, reverse=True) if each and cell.endswith(each)), "")
    if not unit:
        unit = cell.lstrip("+-0123456789.,Ee ") if cell[-1:].isalpha() else ""
    return number_in_text(cell.removesuffix(unit), decimal_comma=decimal_comma, column=column), unit


def zone_in(text: str | None) -> tzinfo | None:
    """The offset from UTC that a text names; None if it names none.

    >>> [str(zone_in(text)) for text in ("Date(UTC)", "Time Zone:UTC+8", "Trade Time(UTC-05:30)", "Time")]
    ['UTC', 'UTC+08:00', 'UTC-05:30', 'None']
    """
    match = UTC_OFFSET.search(text or "")
    if match is None:
        return None
    sign, hours, minutes = match.groups()
    if sign is None or int(hours) > 14 or int(minutes or 0) > 59:
        return UTC
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-offset if sign == "-" else offset) if offset else UTC


def instant_in(text: str, zone: tzinfo) -> datetime:
    """The instant (UTC) in a cell, also with two digits of the year or the time of day first.

    >>> instant_in("24-01-05 12:00:00", UTC).isoformat(), instant_in("14:35 2024-11-16", UTC).isoformat()
    ('2024-01-05T12:00:00+00:00', '2024-11-16T14:35:00+00:00')
    """
    if not text:
        raise ValueError("the time is missing")
    if TWO_DIGIT_YEAR.match(text):
        text = "20" + text
    elif match := TIME_FIRST.fullmatch(text):
        text = f"{match[2]} {match[1]}"
    try:
        return instant_of(text, zone=zone)
    except ValueError:
        raise ValueError("the time cannot be read") from None


def find_header(lines: Iterable[str], layouts: Sequence[frozenset[str]]) -> CsvHeader | None:
    """The first line that has every column of one of the layouts, among the first twenty."""
    before: list[str] = []
    for line, _ in zip(lines, range(HEADER_WITHIN), strict=False):
        delimiter = max(",;\t|", key=line.count)
        header = CsvHeader(tuple(before), delimiter, tuple(cell.strip() for cell in cells_of(line, delimiter)))
        if any(header.has(layout) for layout in layouts):
            return header
        before.append(line)
    return None


def csv_table(path: Path, layouts: Sequence[frozenset[str]]) -> tuple[CsvHeader, Iterator[tuple[int, CsvRow]]]:
    """The header of a CSV file, and its rows with their line numbers, one at a time."""
    header = find_header((line for _, line in text_lines(path)), layouts)
    if header is None:
        expected = " or ".join(", ".join(sorted(layout)) for layout in layouts)
        raise Invalid(f"{path} has no header of this format; give an export with {expected}", field="path")
    return header, _rows(path, header)


def _rows(path: Path, header: CsvHeader) -> Iterator[tuple[int, CsvRow]]:
    lines = text_lines(path)
    for _ in range(len(header.before) + 1):
        next(lines)
    width, comma = len(header.names), header.delimiter == ";"
    for number, line in lines:
        cells = cells_of(line, header.delimiter)
        if len(cells) != width and any(cell.strip() for cell in cells[width:]):
            yield number, CsvRow({}, problem="more cells than the header")
        elif len(cells) < width:
            yield number, CsvRow({}, problem="fewer cells than the header")
        else:
            yield number, CsvRow(dict(zip(header.names, cells, strict=False)), comma)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, with their numbers, without the marks that some programs add."""
    number = 0
    with text_stream(path) as stream:
        try:
            for number, line in enumerate(stream, start=1):
                text = line.replace("\ufeff", "").replace("\0", "\ufffd").rstrip("\r\n")
                if text.strip():
                    yield number, text
        except (EOFError, OSError, zlib.error):
            raise UnreadableError("the compressed file is cut off or damaged", number + 1) from None


class ExportTable:
    """What the rows of one exported table share: the column and the zone of times, and the symbols met."""

    def __init__(self, time_title: str | None, zone: tzinfo) -> None:
        self.time_column = plain_name(time_title or "")
        self.zone = zone_in(time_title) or zone
        self._symbols: set[str] = set()

    def instant(self, row: CsvRow) -> datetime:
        return instant_in(row.text(self.time_column), self.zone)

    def once(self, instrument: InstrumentRow) -> Iterator[InstrumentRow]:
        """The instrument, before the first fill of its symbol."""
        if instrument.symbol not in self._symbols:
            self._symbols.add(instrument.symbol)
            yield instrument


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of one line."""
    try:
        return next(csv.reader((line,), delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return [line]
