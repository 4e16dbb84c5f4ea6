"""One definition per noun: a table is made from its dataclass, and rows go to and fro without loss."""

import collections.abc
import json
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache, reduce
from operator import attrgetter, itemgetter, or_
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import TypeAdapter
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Delete,
    Dialect,
    Double,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    Select,
    Table,
    Text,
    TypeDecorator,
    bindparam,
    delete,
    select,
    text,
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
        return at if at.tzinfo is UTC else at.astimezone(UTC)


class StoredInstant(UtcInstant):
    """An instant as stored text, not decoded, so that a corrupt value can be shown."""

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
        return None if value is None else canonical_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...] | None:
        return None if value is None else tuple(json.loads(value))


@dataclass(frozen=True, slots=True)
class Codec:
    """How a value is written as text and read back, where its text is not the JSON of its fields."""

    encode: Callable[[Any], str]
    decode: Callable[[str], Any]


class JsonText(TypeDecorator[Any]):
    """A value made of dataclasses, mappings and tuples, stored as canonical JSON.

    `none` is the stored text of None. The default is the SQL NULL. A `codec` replaces the JSON of the value's fields.
    """

    impl = Text
    cache_ok = True

    def __init__(self, of: Any, none: str | None = None, codec: Codec | None = None) -> None:
        super().__init__()
        self.of = of
        self.none = none
        self.codec = codec

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(PlainText)

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return self.to_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if value == self.none:
            return None
        return self.codec.decode(value) if self.codec else _adapter(self.of).validate_json(value)

    def to_text(self, value: Any) -> str | None:
        """The stored text of a value; a text is a value that was not decoded."""
        if value is None:
            return self.none
        if isinstance(value, str):
            return value
        return self.codec.encode(value) if self.codec else canonical_json(value)


@cache
def _adapter(of: Any) -> TypeAdapter[Any]:
    """The decoder of a type, built when the first value of that type is read."""
    return TypeAdapter(of)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One column of a table: the path to its value in the dataclass, its name and its type."""

    path: tuple[str, ...]
    column: str
    type: TypeEngine[Any]
    nullable: bool
    optional: bool
    """Whether a nested dataclass on the path may be None."""


class Noun(Generic[T]):
    """A frozen dataclass and the table that stores it."""

    def __init__(
        self,
        of: type[T],
        table: Table,
        leaves: tuple[Leaf, ...],
        key: tuple[str, ...],
        former: "Noun[T] | None" = None,
    ) -> None:
        self.type = of
        self.table = table
        self.leaves = leaves
        self.key = key
        self.former = former
        """The table of replaced versions, each with the instants of its replacement; None if rows are never revised."""
        self.columns = tuple(column.name for column in table.c)
        converters = [(name, number, _converter(column)) for number, (name, column) in enumerate(table.c.items())]
        self._converted = [(name, number, convert) for name, number, convert in converters if convert is not None]
        read = {leaf.column: leaf for leaf in leaves}
        self._read = _reader([read[name] for name in self.columns if name in read])
        place = {name: number for number, name in enumerate(self.columns)}
        self._build = _builder(of, {leaf.path: place[leaf.column] for leaf in leaves})
        self._sorted_columns = sorted(name for name in self.columns if name != OWNER)
        self._pick_sorted = itemgetter(*(place[name] for name in self._sorted_columns))

    def to_values(self, value: T) -> list[Any]:
        """The column values of a row in table order, as numbers and text that database drivers accept."""
        row = self._read(value)
        for _, number, convert in self._converted:
            row[number] = convert(row[number])
        return row

    def to_row(self, value: T) -> dict[str, Any]:
        """The columns of a value."""
        return dict(zip(self.columns, self._read(value), strict=False))  # versions have instants that values lack

    def from_row(self, row: Sequence[Any]) -> T:
        """The value of a row that has the columns of the table in their order."""
        return typing.cast(T, self._build(row))

    def cells_of_values(self, values: Sequence[Any]) -> dict[str, Cell]:
        """The cells of `to_values` by column name, without the owner, in alphabetical order: ready for hashing."""
        return dict(zip(self._sorted_columns, self._pick_sorted(values), strict=True))

    def cells(self, row: Row) -> dict[str, Cell]:
        """The columns of a row as JSON values, without the owner."""
        cells = dict(row)
        del cells[OWNER]
        for name, _, convert in self._converted:
            cells[name] = convert(cells[name])
        return cells

    def key_of(self, row: Row) -> tuple[Cell, ...]:
        """What names a row among its owner's."""
        return tuple(_instant_text(row[name]) for name in self.key)

    def key_values(self, row: Row) -> dict[str, Any]:
        """The parameter values of `select_by_key` and `delete_by_key` that pick this row."""
        return {name: row[name] for name in (OWNER, *self.key)}

    @cached_property
    def select_by_key(self) -> Select[Any]:
        """The statement that selects one row with its stored text, not decoded."""
        return select(*self.stored_columns).where(*self._is_key)

    @cached_property
    def delete_by_key(self) -> Delete:
        """The statement that deletes one row."""
        return delete(self.table).where(*self._is_key)

    @property
    def _is_key(self) -> list[ColumnElement[bool]]:
        return [self.table.c[name] == bindparam(name) for name in (OWNER, *self.key)]

    @cached_property
    def stored_columns(self) -> list[ColumnElement[Any]]:
        """The columns of the table with their stored text, not decoded."""
        return [
            type_coerce(c, StoredInstant()).label(c.name)
            if isinstance(c.type, UtcInstant)
            else type_coerce(c, PlainText).label(c.name)
            if isinstance(c.type, TextTuple | JsonText)
            else c
            for c in self.table.c
        ]


Converter = Callable[[Any], Any]
"""Gives the stored text of a value; leaves a text that was not decoded as it is."""


def _converter(column: Column[Any]) -> Converter | None:
    """The function that turns a column's values into text; None for columns of numbers or text."""
    if isinstance(column.type, UtcInstant):
        return _instant_text
    if isinstance(column.type, TextTuple):
        return _tuple_text
    return column.type.to_text if isinstance(column.type, JsonText) else None


def _instant_text(value: Any) -> Any:
    return _formatted(value) if isinstance(value, datetime) else value


_formatted = lru_cache(maxsize=1024)(format_instant)
"""The text of an instant; cached, because most rows of a command have the same instants in several columns."""


def _tuple_text(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return _json_array(value) if all(type(item) is str for item in value) else canonical_json(value)


@lru_cache(maxsize=256)
def _json_array(texts: tuple[str, ...]) -> str:
    """Texts as a JSON array; cached, because the same labels come again and again.

    Numbers are not cached: (0, -0.0) equals (0.0, 0.0), and its text is another one.
    """
    return canonical_json(texts)


def noun(
    of: type[T],
    table: str,
    *,
    key: tuple[str, ...] = ("id",),
    names: Mapping[str, str] | None = None,
    as_json: Collection[str] = (),
    none_is_empty: Collection[str] = (),
    codecs: Mapping[str, Codec] | None = None,
    within: Mapping[str, tuple[str, ...]] | None = None,
    indexes: Iterable[tuple[str, ...]] = (),
    only_one: Mapping[tuple[str, ...], str] | None = None,
    revised: bool = False,
    clustered: bool = False,
) -> Noun[T]:
    """The table of a dataclass: the owner leads the primary key, every index and every reference.

    - `names` gives a field another column name.
    - `as_json` names the fields whose value is one column of canonical JSON: a dataclass or a tuple of dataclasses. Any
      other dataclass takes a column for each of its fields.
    - `none_is_empty` names those fields of `as_json` whose None is stored as an empty text instead of NULL.
    - `codecs` maps fields to their text form, for a column of text that is not the JSON of the value's fields.
    - `within` maps a referenced table to the columns that refer to it.
    - `only_one` maps columns to the condition under which no two rows may have the same values in them.
    - `revised` rows may be corrected: a second table keeps the replaced versions, so that earlier reads stay the same.
    - `clustered` stores the rows in the order of their key where SQLite can: smaller and faster for many small rows.
    """
    json_fields: dict[str, TextForm] = {field: ("" if field in none_is_empty else None, None) for field in as_json}
    json_fields |= {field: (None, codec) for field, codec in (codecs or {}).items()}
    leaves = tuple(_leaves(of, names or {}, json_fields))
    columns = _columns(leaves, (OWNER, *key))
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
        *(_unique(table, names, where) for names, where in (only_one or {}).items()),
        sqlite_with_rowid=not clustered,
    )
    return Noun(of, made, leaves, key, _former(of, table, leaves, key) if revised else None)


KNOWN, RECORDED = "known_at", "recorded_at"
REPLACED_KNOWN, REPLACED_RECORDED = "replaced_known_at", "replaced_recorded_at"


def _former(of: type[T], table: str, leaves: tuple[Leaf, ...], key: tuple[str, ...]) -> Noun[T]:
    keyed = (*key, KNOWN, RECORDED)
    made = Table(
        f"{table}_former",
        METADATA,
        *_columns(leaves, (OWNER, *keyed)),
        Column(REPLACED_KNOWN, UtcInstant(), nullable=False),
        Column(REPLACED_RECORDED, UtcInstant(), nullable=False),
        *(Index(f"{table}_former_by_{name}", OWNER, name) for name in (REPLACED_KNOWN, REPLACED_RECORDED)),
    )
    return Noun(of, made, leaves, keyed)


def _columns(leaves: Iterable[Leaf], keyed: tuple[str, ...]) -> list[Column[Any]]:
    """The columns of a table, those of its key first."""
    columns: list[Column[Any]] = [
        Column(leaf.column, leaf.type, primary_key=leaf.column in keyed, nullable=leaf.nullable) for leaf in leaves
    ]
    return sorted(columns, key=lambda c: keyed.index(c.name) if c.name in keyed else len(keyed))


def _unique(table: str, names: tuple[str, ...], where: str) -> Index:
    named, condition = f"{table}_only_one_{'_'.join(names)}", text(where)
    return Index(named, OWNER, *names, unique=True, sqlite_where=condition, postgresql_where=condition)


TextForm = tuple[str | None, Codec | None]
"""The stored text of None, and the codec of any other value."""


def _leaves(
    of: type[Any],
    names: Mapping[str, str],
    json_fields: Mapping[str, TextForm],
    path: tuple[str, ...] = (),
    optional: bool = False,
) -> Iterable[Leaf]:
    """The columns of a dataclass; `json_fields` maps a field that is stored as one text to its text form."""
    hints = typing.get_type_hints(of)
    for field in fields(of):
        inner, nullable = _without_none(hints[field.name])
        here = (*path, field.name)
        dotted = ".".join(here)
        column = names.get(dotted, "_".join(here))
        if dotted in json_fields:
            none, codec = json_fields[dotted]
            yield Leaf(here, column, JsonText(inner, none, codec), none is None and (nullable or optional), optional)
        elif is_dataclass(inner):
            yield from _leaves(typing.cast(type[Any], inner), names, json_fields, here, optional or nullable)
        else:
            yield Leaf(here, column, _column_type(inner), nullable or optional, optional)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (types.UnionType, typing.Union):
        left = [arg for arg in get_args(hint) if arg is not type(None)]
        if len(left) < len(get_args(hint)):
            return reduce(or_, left), True
    return hint, False


def _column_type(hint: Any) -> TypeEngine[Any]:
    if get_origin(hint) is Literal or hint is str:
        return PlainText
    if get_origin(hint) is tuple:
        return TextTuple()
    if get_origin(hint) is collections.abc.Mapping:
        return JsonText(hint)
    types_: dict[type, TypeEngine[Any]] = {
        bool: Boolean(),
        int: BigInteger(),
        float: Double(),
        bytes: LargeBinary(),
        datetime: UtcInstant(),
    }
    return types_[hint]


def _reader(leaves: Sequence[Leaf]) -> Callable[[Any], list[Any]]:
    """What reads the values of some columns from a noun, in their order; a part that is not there has none.

    It runs for every row that is written, so all is read at once; where a part may be absent its owner holds the place.
    """
    owner, *_ = leaves
    read = attrgetter(*(".".join(owner.path if leaf.optional else leaf.path) for leaf in leaves))
    parts: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for number, leaf in enumerate(leaves):
        if leaf.optional:
            parts.setdefault(leaf.path[:-1], []).append((number, leaf.path[-1]))

    def values(value: Any) -> list[Any]:
        row = list(read(value))
        for path, places in parts.items():
            part = _reach(value, path)
            for number, name in places:
                row[number] = None if part is None else getattr(part, name)
        return row

    return values


def _reach(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if value is None:
            return None
        value = getattr(value, name)
    return value


def _builder(of: type[Any], columns: Mapping[tuple[str, ...], int]) -> Callable[[Sequence[Any]], Any]:
    """What makes a value of a row; worked out once, since it runs for every row that is read."""
    hints = typing.get_type_hints(of)
    plain: list[tuple[str, int]] = []
    nested: list[tuple[str, Callable[[Sequence[Any]], Any], list[int]]] = []
    for field in fields(of):
        inner, nullable = _without_none(hints[field.name])
        if (field.name,) in columns:
            plain.append((field.name, columns[(field.name,)]))
            continue
        below = {path[1:]: column for path, column in columns.items() if path[0] == field.name}
        make = _builder(typing.cast(type[Any], inner), below)
        nested.append((field.name, make, list(below.values()) if nullable else []))

    def build(row: Sequence[Any]) -> Any:
        made = {name: row[column] for name, column in plain}
        for name, make, absent in nested:
            gone = absent and all(row[column] is None for column in absent)
            made[name] = None if gone else make(row)
        return of(**made)

    return build
