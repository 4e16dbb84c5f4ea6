"""Closed trades from files: a row or an object each, with the names that `remember_trade` has for its arguments.

    CSV, Parquet   a header of names; what belongs to the context is called context.session, context.atr_h1 and so on;
                   tags are separated by semicolons; an empty cell says nothing
    JSON Lines     an object a line, as `remember_trade` takes them

Times are ISO 8601, or numbers since 1970; one without an offset is on the wall clock of the zone given. Nothing else is
converted but the texts of a CSV file that are numbers: whether a row is a trade is for `remember_trade` to say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import tzinfo
from pathlib import Path
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid
from backsight.importers.bars import Source, instant_of, json_lines, number_of, read_table, zone_named

JSON_LINES = (".jsonl", ".ndjson", ".json")
TIMES = ("opened_at", "closed_at")
TAGS, CONTEXT = "tags", "context."
NUMBERS = frozenset(
    {
        "entry_price",
        "exit_price",
        "pnl",
        "pnl_r",
        "context_atr_d1",
        "confidence",
        "max_adverse_excursion",
        "size",
        "risk",
        "stop_price",
        "fees",
        *(f"{CONTEXT}{field.name}" for field in fields(ContextVector) if "float" in str(field.type)),
    }
)
WHOLE_NUMBERS = frozenset(f"{CONTEXT}{field.name}" for field in fields(ContextVector) if "int" in str(field.type))


@dataclass(frozen=True, slots=True)
class TradeRow:
    """A trade as a file tells it, unchecked."""

    number: int
    """Of its line; of its row in a file without lines."""
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TradesRead:
    """The rows of a file in its order."""

    source: Source
    rows: tuple[TradeRow, ...]


def read_trades(path: str | Path, *, timezone: str = "UTC") -> TradesRead:
    """The trades of a CSV, Parquet or JSON Lines file, by what it is called."""
    file, zone = Path(path), zone_named(timezone)
    if file.suffix.casefold() in JSON_LINES:
        source, told = Source(file), json_lines(file)
    else:
        source, header, cells = read_table(file)
        told = _named(header, cells, source=source)
    rows = tuple(TradeRow(number, _with_times(each, number, zone=zone, source=source)) for number, each in told)
    if not rows:
        raise Invalid(f"{file} has no rows under its header; give a file with trades", field="path")
    return TradesRead(source, rows)


def _named(
    header: Sequence[str], cells: Iterator[tuple[int, Sequence[object]]], *, source: Source
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a table as objects."""
    names = [name.strip() for name in header]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Invalid(f"{source.path} has two columns {twice!r}; rename one", field="path")
    for number, row in cells:
        told: dict[str, Any] = {}
        context: dict[str, Any] = {}
        for name, cell in zip(names, row, strict=True):
            if cell is None or (isinstance(cell, str) and not cell.strip()):
                continue
            if name.startswith(CONTEXT):
                context[name.removeprefix(CONTEXT)] = _value(name, cell)
            else:
                told[name] = _value(name, cell)
        if context:
            told.setdefault("context", context)
        yield number, told


def _value(name: str, cell: object) -> object:
    """What a cell says; a text that should be a number and is none stays a text, for the check to name."""
    if name in NUMBERS:
        number = number_of(cell)
        return cell if number is None else number
    if name in WHOLE_NUMBERS:
        number = number_of(cell)
        return int(number) if number is not None and number.is_integer() else cell
    if name == TAGS and isinstance(cell, str):
        return [tag.strip() for tag in cell.split(";") if tag.strip()]
    return cell.strip() if isinstance(cell, str) else cell


def _with_times(told: dict[str, Any], number: int, *, zone: tzinfo, source: Source) -> dict[str, Any]:
    for name in TIMES:
        if told.get(name) is not None:
            try:
                told[name] = instant_of(told[name], zone=zone)
            except ValueError as error:
                raise source.wrong(number, str(error), field=name) from None
    return told
