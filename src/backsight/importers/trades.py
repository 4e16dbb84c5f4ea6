"""Closed trades from files; the columns or keys are the arguments of `remember_trade`, and a few that only files have.

    CSV, Parquet   one trade a row, under a header of argument names. Fields of the context vector are columns like
                   context.session or context.atr_h1. Tags are separated by semicolons. An empty cell is left out.
    JSON Lines     one trade a line, as an object of arguments

Times are ISO 8601 or numbers since 1970. A time without an offset is in the given time zone. Numbers in a CSV file are
converted. Nothing else is converted or checked here: `import_trades` checks the arguments.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.core.trades.report import TradeReport
from backsight.importers.files import Source, instant_of, json_lines, number_of, read_table, zone_named

JSON_LINES = (".jsonl", ".ndjson", ".json")
TIMES = ("opened_at", "closed_at")
TAGS, CONTEXT = "tags", "context."
NUMBERS = frozenset(
    {
        *(field.name for field in fields(TradeReport) if "float" in str(field.type)),
        *(f"{CONTEXT}{field.name}" for field in fields(ContextVector) if "float" in str(field.type)),
    }
)
WHOLE_NUMBERS = frozenset(f"{CONTEXT}{field.name}" for field in fields(ContextVector) if "int" in str(field.type))


@dataclass(frozen=True, slots=True)
class TradeRow:
    """One trade of a file, its values not checked yet."""

    number: int
    """The line number in a text file, else the row number."""
    values: Mapping[str, Any]
    """By name: arguments of `remember_trade`, and the columns that only files have."""


@dataclass(frozen=True, slots=True)
class TradesRead:
    """The rows of a file, in file order; they are read while they are used, and can be used once."""

    source: Source
    rows: Iterator[TradeRow]


def read_trades(path: str | Path, *, timezone: str = "UTC") -> TradesRead:
    """The trades of a CSV, Parquet or JSON Lines file; the file name's suffix says which."""
    file, zone = Path(path), zone_named(timezone)
    if file.suffix.casefold() in JSON_LINES:
        source, objects = Source(file), json_lines(file)
    else:
        source, header, cells = read_table(file)
        objects = _objects(header, cells, source=source)
    rows = (TradeRow(number, _with_times(values, number, zone=zone, source=source)) for number, values in objects)
    first = next(rows, None)
    if first is None:
        raise Invalid(f"{file} has no rows below its header; give a file with trades", field="path")
    return TradesRead(source, chain([first], rows))


def _objects(
    header: Sequence[str], cells: Iterator[tuple[int, Sequence[object]]], *, source: Source
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a table as objects: row number, and values by column name. Empty cells are left out."""
    names = [name.strip() for name in header]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Invalid(f"{source.path} has two columns named {twice!r}; rename one of them", field="path")
    for number, row in cells:
        pairs = zip(names, row, strict=True)
        yield (
            number,
            native_values(
                (name, cell)
                for name, cell in pairs
                if cell is not None and not (isinstance(cell, str) and not cell.strip())
            ),
        )


def native_values(cells: Iterable[tuple[str, object]]) -> dict[str, Any]:
    """The arguments of `remember_trade` in cells with their column names; fields of the context are put together."""
    values: dict[str, Any] = {}
    context: dict[str, Any] = {}
    for name, cell in cells:
        if name.startswith(CONTEXT):
            context[name.removeprefix(CONTEXT)] = _value(name, cell)
        else:
            values[name] = _value(name, cell)
    if context:
        values.setdefault("context", context)
    return values


def _value(name: str, cell: object) -> object:
    """The value of a cell. A text that should be a number and is not stays text; the argument check then names it."""
    if name in NUMBERS:
        number = number_of(cell)
        return cell if number is None else number
    if name in WHOLE_NUMBERS:
        number = number_of(cell)
        return int(number) if number is not None and number.is_integer() else cell
    if name == TAGS and isinstance(cell, str):
        return [tag.strip() for tag in cell.split(";") if tag.strip()]
    return cell.strip() if isinstance(cell, str) else cell


def _with_times(values: dict[str, Any], number: int, *, zone: tzinfo, source: Source) -> dict[str, Any]:
    for name in TIMES:
        if values.get(name) is not None:
            try:
                values[name] = instant_of(values[name], zone=zone)
            except ValueError as error:
                raise source.invalid(number, str(error), field=name) from None
    return values
