"""One definition per noun: a table is made from its dataclass, and rows go to and fro without loss."""

import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Dialect,
    Double,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    type_coerce,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from backsight.core.audit import Cell
from backsight.core.ids import canonical_json
from backsight.core.instants import format_instant

METADATA = MetaData()
OWNER = "owner_id"

T = TypeVar("T")
Row = Mapping[Any, Any]
"""A row by column name, as it comes from or goes to the database."""

PlainText = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""Text that sorts by its bytes, as SQLite's does."""


class UtcInstant(TypeDecorator[datetime]):
    """An instant to the microsecond: a timestamp on PostgreSQL, fixed-width text that sorts alike on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return format_instant(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return at.astimezone(UTC)


class StoredInstant(UtcInstant):
    """An instant as it stands in the row, as text and unparsed, so that a spoilt one can be shown."""

    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return format_instant(value) if isinstance(value, datetime) else value


class TextTuple(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts, as a JSON array."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(PlainText)

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> Any:
        return None if value is None else canonical_json(list(value))

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...] | None:
        return None if value is None else tuple(json.loads(value))


@dataclass(frozen=True, slots=True)
class Leaf:
    """One column: where its value lives in the noun, and its type."""

    path: tuple[str, ...]
    column: str
    type: TypeEngine[Any]
    nullable: bool


class Noun(Generic[T]):
    """A frozen dataclass and the table that keeps it."""

    def __init__(self, of: type[T], table: Table, leaves: tuple[Leaf, ...], key: tuple[str, ...]) -> None:
        self.type = of
        self.table = table
        self.leaves = leaves
        self.key = key

    def to_row(self, value: T) -> dict[str, Any]:
        """The columns of a value."""
        return {leaf.column: _reach(value, leaf.path) for leaf in self.leaves}

    def from_row(self, row: Row) -> T:
        """The value of the columns: `from_row(to_row(x)) == x`."""
        return typing.cast(T, _build(self.type, {leaf.path: row[leaf.column] for leaf in self.leaves}))

    def cells(self, row: Row) -> dict[str, Cell]:
        """The columns of a row as JSON has them, without the owner."""
        return {name: as_cell(value) for name, value in row.items() if name != OWNER}

    def key_of(self, row: Row) -> tuple[Cell, ...]:
        """What names a row among its owner's."""
        return tuple(as_cell(row[name]) for name in self.key)

    def is_key(self, row: Row) -> Iterable[ColumnElement[bool]]:
        """The conditions that pick this row, owner first."""
        return [self.table.c[name] == row[name] for name in (OWNER, *self.key)]

    @property
    def stored_columns(self) -> list[ColumnElement[Any]]:
        """The columns as they stand in the row, unparsed."""
        return [
            type_coerce(c, StoredInstant()).label(c.name)
            if isinstance(c.type, UtcInstant)
            else type_coerce(c, PlainText).label(c.name)
            if isinstance(c.type, TextTuple)
            else c
            for c in self.table.c
        ]


def as_cell(value: Any) -> Cell:
    """A column's value as JSON has it."""
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, tuple):
        return canonical_json(list(value))
    return typing.cast(Cell, value)


def noun(
    of: type[T],
    table: str,
    *,
    key: tuple[str, ...] = ("id",),
    names: Mapping[str, str] | None = None,
    within: Mapping[str, tuple[str, ...]] | None = None,
    indexes: Iterable[tuple[str, ...]] = (),
) -> Noun[T]:
    """The table of a dataclass: its owner leads the primary key, every index and every reference.

    `names` gives a field another column name; `within` maps a referenced table to the columns that refer to it.
    """
    leaves = tuple(_leaves(of, names or {}))
    keyed = (OWNER, *key)
    columns = [
        Column(leaf.column, leaf.type, primary_key=leaf.column in keyed, nullable=leaf.nullable) for leaf in leaves
    ]
    columns.sort(key=lambda c: keyed.index(c.name) if c.name in keyed else len(keyed))
    references = [
        ForeignKeyConstraint((OWNER, *columns), (f"{to}.{OWNER}", f"{to}.id"), name=f"{table}_within_{to}")
        for to, columns in (within or {}).items()
    ]
    made = Table(
        table,
        METADATA,
        *columns,
        *references,
        *(Index(f"{table}_by_{'_'.join(names)}", OWNER, *names) for names in indexes),
    )
    return Noun(of, made, leaves, key)


def _leaves(
    of: type[Any], names: Mapping[str, str], path: tuple[str, ...] = (), optional: bool = False
) -> Iterable[Leaf]:
    hints = typing.get_type_hints(of)
    for field in fields(of):
        inner, nullable = _without_none(hints[field.name])
        here = (*path, field.name)
        if is_dataclass(inner):
            yield from _leaves(typing.cast(type[Any], inner), names, here, optional or nullable)
        else:
            column = names.get(".".join(here), "_".join(here))
            yield Leaf(here, column, _column_type(inner), nullable or optional)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (types.UnionType, typing.Union):
        left = [arg for arg in get_args(hint) if arg is not type(None)]
        if len(left) == 1:
            return left[0], True
    return hint, False


def _column_type(hint: Any) -> TypeEngine[Any]:
    if get_origin(hint) is Literal or hint is str:
        return PlainText
    if get_origin(hint) is tuple:
        return TextTuple()
    types_: dict[type, TypeEngine[Any]] = {int: BigInteger(), float: Double(), datetime: UtcInstant()}
    return types_[hint]


def _reach(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = None if value is None else getattr(value, name)
    return value


def _build(of: type[Any], values: Mapping[tuple[str, ...], Any]) -> Any:
    hints = typing.get_type_hints(of)
    made: dict[str, Any] = {}
    for field in fields(of):
        inner, nullable = _without_none(hints[field.name])
        if not is_dataclass(inner):
            made[field.name] = values[(field.name,)]
            continue
        below = {path[1:]: value for path, value in values.items() if path[0] == field.name}
        absent = nullable and all(value is None for value in below.values())
        made[field.name] = None if absent else _build(typing.cast(type[Any], inner), below)
    return of(**made)
