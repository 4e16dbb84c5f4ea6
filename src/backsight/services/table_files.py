"""Rows in files, written some at a time: JSON Lines with their hash, and tables as CSV or Parquet."""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol

from backsight.core.audit import Cell
from backsight.core.errors import Invalid, Unavailable
from backsight.core.ids import canonical_json
from backsight.store.archive import CellKind

TableFormat = Literal["csv", "parquet"]
CellRow = Mapping[str, Cell]
BLOCK = 1024 * 1024
LARGEST_INTEGER = 2**63 - 1


class RowWriter(Protocol):
    """A file that is open for writing rows."""

    def write(self, rows: Sequence[CellRow]) -> None: ...


class JsonLinesWriter:
    """One object a line with sorted keys, so that equal rows are equal bytes; counts and hashes what it writes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.rows = 0

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def write(self, rows: Iterable[CellRow]) -> None:
        for row in rows:
            line = canonical_json(row).encode() + b"\n"
            self._file.write(line)
            self._hash.update(line)
            self.rows += 1


@contextmanager
def json_lines_file(path: Path) -> Iterator[JsonLinesWriter]:
    """A new file of JSON Lines; a file that exists is not touched."""
    with path.open("xb") as file:
        yield JsonLinesWriter(file)


def hash_of_rows(batches: Iterable[Iterable[CellRow]]) -> str:
    """The hash that a file of JSON Lines with these rows has."""
    writer = JsonLinesWriter(_Nowhere())
    for rows in batches:
        writer.write(rows)
    return writer.sha256


class _Nowhere:
    def write(self, line: bytes) -> None:
        """Drop the line."""


def table_file(
    path: Path, kinds: Mapping[str, CellKind], *, table_format: TableFormat
) -> AbstractContextManager[RowWriter]:
    """A new CSV or Parquet file with these columns, as a context manager that gives its writer."""
    return (_csv_file if table_format == "csv" else _parquet_file)(path, kinds)


class _CsvWriter:
    def __init__(self, file: Any, columns: Sequence[str]) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._columns = columns
        self._writer.writerow(columns)

    def write(self, rows: Sequence[CellRow]) -> None:
        self._writer.writerows([_csv_cell(row[name]) for name in self._columns] for row in rows)


def _csv_cell(cell: Cell) -> Cell:
    return str(cell).lower() if isinstance(cell, bool) else cell


@contextmanager
def _csv_file(path: Path, kinds: Mapping[str, CellKind]) -> Iterator[RowWriter]:
    with path.open("x", encoding="utf-8", newline="") as file:
        yield _CsvWriter(file, list(kinds))


class _ParquetWriter:
    def __init__(self, arrow: Any, writer: Any, schema: Any, kinds: Mapping[str, CellKind]) -> None:
        self._arrow, self._writer, self._schema, self._kinds = arrow, writer, schema, kinds

    def write(self, rows: Sequence[CellRow]) -> None:
        columns = {name: [_parquet_cell(row[name], kind) for row in rows] for name, kind in self._kinds.items()}
        self._writer.write_table(self._arrow.Table.from_pydict(columns, schema=self._schema))


def _parquet_cell(cell: Cell, kind: CellKind) -> Any:
    return datetime.fromisoformat(cell) if kind == "instant" and isinstance(cell, str) else cell


@contextmanager
def _parquet_file(path: Path, kinds: Mapping[str, CellKind]) -> Iterator[RowWriter]:
    arrow, parquet = parquet_modules()
    types = {
        "instant": arrow.timestamp("us", tz="UTC"),
        "boolean": arrow.bool_(),
        "integer": arrow.int64(),
        "number": arrow.float64(),
        "text": arrow.string(),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    with parquet.ParquetWriter(path, schema) as writer:
        yield _ParquetWriter(arrow, writer, schema, kinds)


def parquet_modules() -> tuple[Any, Any]:
    """The library that writes Parquet; `Unavailable` if it is not installed."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        remedy = "pip install 'backsight[parquet]', or choose csv"
        raise Unavailable(f"Parquet needs pyarrow, which is not installed; {remedy}", field="tables") from None


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    content_hash = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            content_hash.update(block)
    return content_hash.hexdigest()


def read_rows(path: Path, kinds: Mapping[str, CellKind]) -> Iterator[CellRow]:
    """The rows of a file of JSON Lines; each line must have exactly the columns of the table."""
    columns = set(kinds)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise _bad_line(path, number, "it is not JSON") from None
            if not isinstance(row, dict) or set(row) != columns:
                raise _bad_line(path, number, "its columns are not those of the table")
            if not all(map(_is_cell, row.values())):
                raise _bad_line(path, number, "a value is not a text, a finite number, true, false or null")
            yield row


def _is_cell(value: object) -> bool:
    if isinstance(value, float):
        return value - value == 0  # neither infinite nor NaN
    if isinstance(value, int):
        return abs(value) <= LARGEST_INTEGER
    return value is None or isinstance(value, str)


def _bad_line(path: Path, number: int, problem: str) -> Invalid:
    return Invalid(f"{path} line {number}: {problem}; give a folder as export_data wrote it", field="path")
