"""Tables with a header that no program in particular wrote: CSV, JSON and Parquet, read one row at a time.

The delimiter, the decimal sign and the order of dates are found out from the rows, and remarked.
"""

import csv
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from backsight.core.errors import Invalid, Unavailable, did_you_mean, nearest
from backsight.importers.cells import EMPTY, UnreadableError, numbered_cells, plain_name
from backsight.importers.files import instant_of, number_of, open_parquet, python_values, text_stream
from backsight.importers.formats import FileHead

Cells = Sequence[Any]
NumberedCells = tuple[int, Cells]
DateOrder = Literal["dmy", "mdy"]
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
PARQUET = b"PAR1"
SAMPLE = 500
"""Rows from which the way of writing numbers and dates is found out."""
CLOCK = r"([0-9]{1,2}:[0-9]{2}[0-9:.]{0,13}) ?([AaPp][Mm])?"
DATE = re.compile(rf"([0-9]{{1,2}})[./-]([0-9]{{1,2}})[./-]([0-9]{{4}}|[0-9]{{2}})(?:[ T,]{{1,2}}{CLOCK})?")
"""A date that begins with the day or the month."""
TIME_OF_DAY = re.compile(CLOCK)
GROUPS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{2,3})*,[0-9]{3}")
"""Digits in groups: of three, or in lakhs and crores (12,34,567)."""
MONEY = str.maketrans("", "", "$€£¥ \u00a0\u202f'’")
"""Signs that are written beside numbers and say nothing of their value."""


@dataclass(frozen=True, slots=True)
class FileTable:
    """The column names of a file, and its rows with their numbers; each row has a cell for each column."""

    names: tuple[str, ...]
    rows: Iterator[NumberedCells]
    written_as: str
    """What the file is, like `CSV with semicolons`."""


def open_table(path: Path, head: FileHead) -> FileTable:
    """A CSV, JSON or Parquet file as a table."""
    if head.start.startswith(PARQUET):
        return _parquet(path)
    if head.text.lstrip()[:1] == "[":
        return _of_objects(_json_array(path), "JSON")
    if head.first_object is not None:
        return _of_objects(_json_lines(path), "JSON Lines")
    if head.text.lstrip()[:1] == "{":
        raise Invalid(f"{path} is not JSON, or cut off within its first row; export it again", field="path")
    return _csv(path, head)


def column_names(head: FileHead) -> tuple[str, ...]:
    """The column names of a file, as far as its beginning tells them; empty if it is no table."""
    if head.start.startswith(PARQUET):
        try:
            return _parquet(head.path).names
        except (Invalid, Unavailable):
            return ()
    if head.first_object is not None:
        return tuple(head.first_object)
    if not head.first_lines or head.text.lstrip()[:1] in ("<", "{", "["):
        return ()
    return _header(head)


def matched_columns(
    names: Sequence[str], synonyms: Mapping[str, Sequence[str]], given: Mapping[str, str]
) -> dict[str, str]:
    """The column of each field that a table has: as given, else by the first of the field's synonyms."""
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(plain_name(name), name)
    columns: dict[str, str] = {}
    for column, field in given.items():
        if column not in names and plain_name(column) not in by_plain:
            listed = ", ".join(names[:30])
            raise Invalid(f"there is no column {column!r}; the file has {listed}", field="columns")
        if field not in synonyms:
            remedy = (
                did_you_mean(field, list(synonyms))
                if nearest(field, synonyms)
                else f"give one of {', '.join(synonyms)}"
            )
            raise Invalid(f"{field!r} is not a field; {remedy}", field="columns")
        columns[field] = column if column in names else by_plain[plain_name(column)]
    for field, words in synonyms.items():
        taken = set(columns.values())
        known = (by_plain[word] for word in (*words, plain_name(field)) if word in by_plain)
        free = next((name for name in known if name not in taken), None)
        if field not in columns and free is not None:
            columns[field] = free
    return columns


# Ways of writing.


@dataclass(frozen=True, slots=True)
class Notation:
    """How a table writes numbers and dates."""

    comma_decimal: bool = False
    date_order: DateOrder | None = None
    """None if dates begin with the year, or are numbers since 1970."""

    def number(self, value: object) -> float | None:
        """The finite number in a cell; None if the cell is empty, `ValueError` if it holds something else.

        >>> Notation(comma_decimal=True).number("1.234,50 €"), Notation().number("$1,234.50"), Notation().number("(3)")
        (1234.5, 1234.5, -3.0)
        """
        if isinstance(value, str):
            try:
                number: float | None = float(value)  # the usual case, and the fastest
            except ValueError:
                return self._of_text(value)
            if "_" in value or (self.comma_decimal and "." in value):
                return self._of_text(value)
        else:
            number = None if value is None else number_of(value)
            if number is None and value is not None:
                raise ValueError("is not a number")
        if number is None or math.isnan(number):
            return None
        if math.isinf(number):
            raise ValueError("is not a number")
        return number + 0.0

    def _of_text(self, text: str) -> float | None:
        bare = text.translate(MONEY)
        if bare.casefold() in EMPTY:
            return None
        if bare.startswith("(") and bare.endswith(")"):
            bare = f"-{bare[1:-1]}"
        thousands, decimal = (".", ",") if self.comma_decimal else (",", ".")
        if thousands in bare and GROUPS.fullmatch(bare.partition(decimal)[0].replace(thousands, ",")) is None:
            raise ValueError("is not a number")
        number = number_of(bare.replace(thousands, "").replace(decimal, "."))
        if number is None or math.isinf(number):
            raise ValueError("is not a number")
        return None if math.isnan(number) else number

    def instant(self, value: object, *, zone: tzinfo) -> datetime:
        """The instant in a cell; `ValueError` if it holds none.

        >>> from datetime import UTC
        >>> Notation(date_order="dmy").instant("04.06.2026 10:00", zone=UTC).isoformat()
        '2026-06-04T10:00:00+00:00'
        """
        if self.date_order is not None and isinstance(value, str):
            match = DATE.fullmatch(value.strip())
            if match is not None:
                value = _iso(match, self.date_order)
        try:
            return instant_of(value, zone=zone)
        except (ValueError, OverflowError):
            raise ValueError("is not a time") from None


def _iso(match: re.Match[str], order: DateOrder) -> str:
    first, second, year, clock, half = match.groups()
    day, month = (first, second) if order == "dmy" else (second, first)
    year = year if len(year) == 4 else f"20{year}"
    hours, colon, rest = (clock or "00:00").partition(":")
    if half:
        hours = str(int(hours) % 12 + (12 if half.casefold() == "pm" else 0))
    return f"{year}-{int(month):02}-{int(day):02}T{int(hours):02}{colon}{rest}"


def has_comma_decimal(numbers: Iterable[str], *, semicolons: bool) -> bool:
    """Whether a comma separates the decimals: it comes after a point, or other than three digits follow it.

    Where that cannot be known, a file with semicolons is taken to have decimal commas.

    >>> [has_comma_decimal([text], semicolons=False) for text in ("1,5", "0,123", "1.234,56", "1,234.56", "1,234")]
    [True, True, True, False, False]
    """
    unsure = False
    for text in numbers:
        comma, point = text.rfind(","), text.rfind(".")
        if comma >= 0 and point >= 0:
            return comma > point
        bare = text.translate(MONEY)
        sign = "," if comma >= 0 else "."
        if bare.count(sign) == 1 and GROUPS.fullmatch(bare.replace(sign, ",")) is None:
            return sign == ","
        unsure = unsure or comma >= 0
    return unsure and semicolons


def ambiguous_numbers(numbers: Iterable[str], *, semicolons: bool) -> Iterator[str]:
    """The numbers whose only sign may separate decimals or thousands; none if another number tells which.

    A point is taken for a thousands separator by files with semicolons only.

    >>> [[*ambiguous_numbers(texts, semicolons=False)] for texts in (["1,234", "5"], ["1,234", "0,5"], ["1.234"])]
    [['1,234'], [], []]
    """
    ambiguous = []
    for text in numbers:
        bare = text.translate(MONEY)
        signs = [character for character in bare if character in (",." if semicolons else ",")]
        if len(signs) > 1 or (signs and GROUPS.fullmatch(bare.replace(signs[0], ",")) is None):
            return
        if signs:
            ambiguous.append(text)
    yield from ambiguous


def date_order(dates: Iterable[str]) -> DateOrder | Literal["unknown"] | None:
    """Whether the day or the month comes first; None if no date begins with one of them.

    >>> date_order(["04/06/2026", "13/06/2026"]), date_order(["04/06/2026"]), date_order(["2026-06-04"])
    ('dmy', 'unknown', None)
    """
    unsure = False
    for text in dates:
        match = DATE.fullmatch(text.strip())
        if match is None:
            continue
        first, second = int(match[1]), int(match[2])
        if first > 12 or "." in text.partition(" ")[0]:
            return "dmy"
        if second > 12:
            return "mdy"
        unsure = True
    return "unknown" if unsure else None


# Files.


def _header(head: FileHead) -> tuple[str, ...]:
    try:
        cells = next(csv.reader([head.first_lines[0]], delimiter=_delimiter(head)), [])
    except csv.Error:
        return ()
    return tuple(name.strip() for name in cells)


def _delimiter(head: FileHead) -> str:
    """The delimiter that occurs most in the first line."""
    return max(DELIMITERS, key=head.first_lines[0].count)


def _csv(path: Path, head: FileHead) -> FileTable:
    if not head.first_lines:
        raise Invalid(f"{path} has no text; give a table of CSV, JSON or Parquet", field="path")
    delimiter = _delimiter(head)
    return FileTable(_header(head), _csv_rows(path, delimiter), f"CSV with {DELIMITERS[delimiter]}s")


def _csv_rows(path: Path, delimiter: str) -> Iterator[NumberedCells]:
    return islice(numbered_cells(path, delimiter), 1, None)


def _of_objects(objects: Iterator[tuple[int, Mapping[str, Any]]], written_as: str) -> FileTable:
    """A table of JSON objects; its columns are the keys of the first rows."""
    first = list(islice(objects, SAMPLE))
    names = tuple(dict.fromkeys(key for _, content in first for key in content))
    rows = ((number, [content.get(name) for name in names]) for number, content in chain(first, objects))
    return FileTable(names, rows, written_as)


def _json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    number = 0
    with text_stream(path) as stream:
        try:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, _json_object(line)
        except (EOFError, OSError, zlib.error):
            raise UnreadableError("the compressed file is cut off or damaged", number + 1) from None


def _json_object(line: str) -> Mapping[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    return content if isinstance(content, dict) else {NOT_AN_OBJECT: True}


NOT_AN_OBJECT = "\0not an object"
"""The only key of a row that is no JSON object."""


def _json_array(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with text_stream(path) as stream:
        try:
            content = json.load(stream)
        except (ValueError, RecursionError, EOFError, OSError, zlib.error) as error:
            raise Invalid(f"{path} is not JSON ({error}); check that it is complete", field="path") from None
    for number, row in enumerate(content if isinstance(content, list) else [], start=1):
        yield number, row if isinstance(row, dict) else {NOT_AN_OBJECT: True}


def _parquet(path: Path) -> FileTable:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        remedy = "pip install 'backsight[parquet]', or give a CSV file"
        raise Unavailable(f"{path} is Parquet, which needs pyarrow; {remedy}", field="path") from None
    try:
        file = open_parquet(arrow, parquet, path)
    except (arrow.ArrowException, OSError) as error:
        raise Invalid(f"{path} is not Parquet ({error}); check that it is complete", field="path") from None
    return FileTable(tuple(file.schema_arrow.names), _parquet_rows(arrow, file), "Parquet")


def _parquet_rows(arrow: Any, file: Any) -> Iterator[NumberedCells]:
    number = 0
    try:
        for batch in file.iter_batches(batch_size=SAMPLE):
            columns = [python_values(arrow, column) for column in batch.columns]
            for cells in zip(*columns, strict=True):
                number += 1
                yield number, cells
    except (arrow.ArrowException, OSError):
        raise UnreadableError("the file is damaged", number + 1) from None
