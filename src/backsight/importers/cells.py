"""Rows of other people's files, one at a time: CSV rows by column name, and the values in their cells.

A value that cannot be read raises `ValueError` with a reason that does not contain the value, so that the rows that are
left out can be counted by their reason.
"""

import csv
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, TypeVar

from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.importers.files import UNDECODED, instant_of, number_of, text_stream
from backsight.importers.formats import FileRow, LeftOutRow

Row = Mapping[str, Any]
"""The values of a row by column name; empty cells are left out."""
R = TypeVar("R")
EMPTY = frozenset({"", "nan", "nat", "none", "null", "<na>"})
"""How programs write an empty cell, in lower case."""


def file_rows(rows: Iterable[tuple[int, R]], read: Callable[[int, R], Iterable[FileRow]]) -> Iterator[FileRow]:
    """What `read` makes of each numbered row; a row that it cannot read is left out as broken.

    >>> list(file_rows([(2, {"size": "x"})], lambda number, row: [number_in(row, "size")]))
    [LeftOutRow(number=2, reason='size is not a number', broken=True)]
    """
    last = 0
    try:
        for number, row in rows:
            last = number
            try:
                made = tuple(read(number, row))
            except ValueError as error:
                made = (LeftOutRow(number=number, reason=str(error), broken=True),)
            yield from made
    except UnreadableError as error:
        yield LeftOutRow(number=error.number or last + 1, reason=error.reason, broken=True)


class UnreadableError(Exception):
    """From some row on a file cannot be read: it was cut off, or is damaged."""

    def __init__(self, reason: str, number: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.number = number


def csv_rows(path: Path, *, lower: bool = False) -> Iterator[tuple[int, Row]]:
    """The rows of a CSV file below its header, with their line numbers; plain or compressed with gzip.

    With `lower`, the names of columns are in lower case.
    """
    rows = numbered_cells(path)
    names = (name.strip() for name in next(rows, (0, []))[1])
    header = [name.casefold() if lower else name for name in names]
    for number, cells in rows:
        yield number, _by_name(header, cells)


def numbered_cells(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file that are not blank, its header first, with their line numbers; plain or gzip."""
    with text_stream(path) as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        try:
            for cells in reader:
                if any(cell and not cell.isspace() for cell in cells):
                    yield reader.line_num, cells
        except csv.Error:
            raise UnreadableError("not CSV", reader.line_num) from None
        except (EOFError, OSError, zlib.error):
            raise UnreadableError("the compressed file is cut off or damaged", reader.line_num + 1) from None


def plain_name(name: str) -> str:
    """A column name by its letters and digits, without case.

    >>> plain_name(" Executed_Qty "), plain_name("Date(UTC)"), plain_name("Realized P&L")
    ('executedqty', 'dateutc', 'realizedpl')
    """
    return "".join(character for character in name.casefold() if character.isalnum())


def header_of(line: str) -> list[str]:
    """The column names in the first line of a CSV file."""
    return [name.strip() for name in next(csv.reader([line]), [])]


def _by_name(header: list[str], cells: list[str]) -> Row:
    """The cells by column name; a row of another length than the header has none, so that it is named as broken."""
    if len(cells) != len(header):
        return {WRONG_LENGTH: True}
    texts = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    return {name: text for name, text in texts.items() if text.casefold() not in EMPTY}


WRONG_LENGTH = "\0length"
"""The only key of a row that has another number of cells than the header."""


def value_in(row: Row, *names: str) -> Any:
    """The value of the first of these columns that has one; None if none has."""
    for name in names:
        value = row.get(name)
        if value is not None:
            return value
    if WRONG_LENGTH in row:
        raise ValueError("another number of cells than the header")
    return None


def text_in(row: Row, *names: str) -> str:
    """The text of the first of these columns that has one."""
    text = optional_text_in(row, *names)
    if text is None:
        raise ValueError(f"{names[0]} is missing")
    return text


def optional_text_in(row: Row, *names: str) -> str | None:
    """The text of the first of these columns that has one; None if none has."""
    value = value_in(row, *names)
    text = "" if value is None else str(value).strip()
    if UNDECODED in text:
        raise ValueError(f"{names[0]} is not UTF-8")
    return text or None


def number_in(row: Row, *names: str) -> float:
    """The finite number of the first of these columns that has a value."""
    number = optional_number_in(row, *names)
    if number is None:
        raise ValueError(f"{names[0]} is missing")
    return number


def optional_number_in(row: Row, *names: str) -> float | None:
    """The finite number of the first of these columns that has a value; None if none has, or if it is NaN."""
    value = value_in(row, *names)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = number_of(value)
    if number is None or math.isinf(number):
        raise ValueError(f"{names[0]} is not a number")
    return None if math.isnan(number) else number


def instant_in(row: Row, *names: str, zone: tzinfo) -> datetime:
    """The instant of the first of these columns that has a value."""
    instant = optional_instant_in(row, *names, zone=zone)
    if instant is None:
        raise ValueError(f"{names[0]} is missing")
    return instant


def optional_instant_in(row: Row, *names: str, zone: tzinfo) -> datetime | None:
    """The instant of the first of these columns that has a value; None if none has."""
    value = value_in(row, *names)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        return instant_of(value, zone=zone)
    except ValueError:
        raise ValueError(f"{names[0]} is not a time") from None


class ContentIds:
    """Ids for the fills of a file that has none, so that importing it again, or a longer file, adds only what is new.

    An id is made from the content of a fill, and from the number of equal fills right before it at the same instant.

    >>> from backsight.testing import T0
    >>> ids = ContentIds("transactions")
    >>> first, again = ids.next_id(T0, "BTC", 1.0), ids.next_id(T0, "BTC", 1.0)
    >>> first == ContentIds("transactions").next_id(T0, "BTC", 1.0), first == again
    (True, False)
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._at: datetime | None = None
        self._counts: Counter[tuple[object, ...]] = Counter()
        self.sequence = 0
        """How many fills came before the last one at its instant."""

    def next_id(self, at: datetime, *content: object) -> str:
        """The id of the next fill in the file."""
        self.sequence += 1
        if at != self._at:
            self._at, self.sequence = at, 0
            self._counts.clear()
        self._counts[content] += 1
        return derive_id("fill", self._kind, format_instant(at), *map(repr, content), str(self._counts[content]))
