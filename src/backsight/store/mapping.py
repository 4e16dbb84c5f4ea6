"""One definition per noun: a table is made from its dataclass, and rows go to and fro without loss."""

import collections.abc
import json
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property, lru_cache, reduce
from hashlib import sha256
from itertools import repeat
from json.encoder import encode_basestring
from math import isfinite
from operator import itemgetter, or_
from types import NoneType
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import TypeAdapter
from sqlalchemy import (
    TEXT,
    TIMESTAMP,
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
from sqlalchemy.types import TypeEngine

from backsight.core.audit import ITEM_LENGTH, Cell, item_hash
from backsight.core.ids import canonical_json
from backsight.core.instants import format_instant
from backsight.core.quick_init import compiled
from backsight.store.compression import compress_text, decompress_text

METADATA = MetaData()
OWNER = "owner_id"

T = TypeVar("T")
Row = Mapping[Any, Any]
"""A row by column name, as it comes from or goes to the database."""

PlainText = Text().with_variant(TEXT(collation="C"), "postgresql")
"""Text that sorts by its bytes, as SQLite's does."""


class UtcInstant(TypeDecorator[datetime]):
    """An instant to the microsecond: a timestamp on PostgreSQL, fixed-width text that sorts alike on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
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
    """A tuple of texts, as a JSON array, which may be compressed at rest."""

    impl = Text
    cache_ok = True

    def __init__(self, *, compressed: bool = False) -> None:
        super().__init__()
        self.compressed = compressed

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(LargeBinary() if self.compressed else PlainText)

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        return compress_text(canonical_json(value)) if self.compressed else canonical_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...] | None:
        if value is None:
            return None
        return tuple(json.loads(decompress_text(value))) if self.compressed else _texts_of(value)


@lru_cache(maxsize=256)
def _texts_of(array: str) -> tuple[str, ...]:
    """The texts of a JSON array; cached, because the same labels come again and again."""
    return tuple(json.loads(array))


@dataclass(frozen=True, slots=True)
class Codec:
    """How a value is written as text and read back, where its text is not the JSON of its fields."""

    encode: Callable[[Any], str]
    decode: Callable[[str], Any]


class CompressedText(TypeDecorator[str]):
    """Text that is compressed at rest. The audit chain, exports and everybody else see the text."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        return None if value is None else compress_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else decompress_text(value)


class StoredText(CompressedText):
    """Compressed text, or the stored value itself where somebody has spoilt it, so that it can be shown."""

    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        try:
            return super().process_result_value(value, dialect)
        except (ValueError, TypeError):
            return value


class JsonText(TypeDecorator[Any]):
    """A value made of dataclasses, mappings and tuples, stored as canonical JSON.

    `none` is the stored text of None. The default is the SQL NULL. A `codec` replaces the JSON of the value's fields.
    A `compressed` text is compressed at rest.
    """

    impl = Text
    cache_ok = True

    def __init__(
        self, of: Any, none: str | None = None, codec: Codec | None = None, *, compressed: bool = False
    ) -> None:
        super().__init__()
        self.of = of
        self.none = none
        self.codec = codec
        self.compressed = compressed

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(LargeBinary() if self.compressed else PlainText)

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | bytes | None:
        text = self.to_text(value)
        return compress_text(text) if self.compressed and text is not None else text

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if self.compressed and value is not None:
            value = decompress_text(value)
        if value == self.none:
            return None
        return self.codec.decode(value) if self.codec else _adapter(self.of).validate_json(value)

    def to_text(self, value: Any) -> str | None:
        """The stored text of a value; a text is a value that was not decoded."""
        if value is None:
            return self.none
        if isinstance(value, str):
            return value
        if value == {} and self.codec is None:
            return "{}"
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
        sealed: Collection[str] = (),
    ) -> None:
        self.type = of
        self.table = table
        self.leaves = leaves
        self.key = key
        self.former = former
        """The table of replaced versions, each with the instants of its replacement; None if rows are never revised."""
        self.sealed = frozenset(sealed)
        """Columns whose text the audit chain does not contain, only a hash salted with the row's `salt`."""
        self.columns = tuple(column.name for column in table.c)
        converters = {name: _converter(column) for name, column in table.c.items()}
        self._converters = {name: convert for name, convert in converters.items() if convert is not None}
        place = {name: number for number, name in enumerate(self.columns)}
        self._pick_key = itemgetter(*(place[name] for name in (OWNER, *key)))
        self._sorted_columns = sorted(name for name in self.columns if name != OWNER)
        self._pick_sorted = itemgetter(*(place[name] for name in self._sorted_columns))

    def to_values(self, value: T) -> Sequence[Any]:
        """The column values of a row in table order, as numbers and text that database drivers accept."""
        return self._read_stored(value)

    def to_row(self, value: T) -> dict[str, Any]:
        """The columns of a value."""
        return dict(zip(self.columns, self._read(value), strict=False))  # versions have instants that values lack

    @cached_property
    def _read(self) -> Callable[[T], Sequence[Any]]:
        return _reader(self._leaves_in_order, {})

    @cached_property
    def _read_stored(self) -> Callable[[T], Sequence[Any]]:
        return _reader(self._leaves_in_order, self._converters)

    @cached_property
    def _build(self) -> Callable[[Sequence[Any]], Any]:
        place = {name: number for number, name in enumerate(self.columns)}
        return _builder(self.type, {leaf.path: place[leaf.column] for leaf in self.leaves})

    @property
    def _leaves_in_order(self) -> list[Leaf]:
        by_column = {leaf.column: leaf for leaf in self.leaves}
        return [by_column[name] for name in self.columns if name in by_column]

    def from_row(self, row: Sequence[Any]) -> T:
        """The value of a row that has the columns of the table in their order."""
        return typing.cast(T, self._build(row))

    def cells_of_values(self, values: Sequence[Any]) -> dict[str, Cell]:
        """The cells of `to_values` by column name, without the owner, in alphabetical order: ready for hashing."""
        cells = dict(zip(self._sorted_columns, self._pick_sorted(values), strict=True))
        return self._seal(cells) if self.sealed else cells

    def item_hashes(self, rows: Sequence[Sequence[Any]]) -> list[str]:
        """The `item_hash` of each row of `to_values`, column by column: a third of the time that single rows take."""
        if not rows:
            return []
        if self.sealed:
            return [item_hash(self.cells_of_values(row)) for row in rows]
        columns = list(zip(*(self._pick_sorted(row) for row in rows), strict=True))
        parts, varying = list[str](), list[Iterable[str]]()
        for name, values in zip(self._sorted_columns, columns, strict=True):
            texts = _json_texts(values)
            if isinstance(texts, str):  # of all rows, like the instant of an import
                parts.append(f"{canonical_json(name)}:{texts}".replace("%", "%%"))
            else:
                parts.append(f"{canonical_json(name)}:%s")
                varying.append(texts)
        pattern = "{" + ",".join(parts) + "}"
        texts_of_rows = zip(*varying, strict=True) if varying else repeat((), len(rows))
        return [sha256((pattern % texts).encode()).hexdigest()[:ITEM_LENGTH] for texts in texts_of_rows]

    def cells(self, row: Row) -> dict[str, Cell]:
        """The columns of a row as JSON values, without the owner, as the audit chain has them."""
        cells = self.unsealed_cells(row)
        return self._seal(cells) if self.sealed else cells

    def unsealed_cells(self, row: Row) -> dict[str, Cell]:
        """The columns of a row as JSON values, without the owner; sealed columns with their text."""
        cells = dict(row)
        del cells[OWNER]
        for name, convert in self._converters.items():
            cells[name] = convert(cells[name])
        return cells

    def _seal(self, cells: dict[str, Cell]) -> dict[str, Cell]:
        """Cells in which a salted hash replaces the text of sealed columns; the salt is left out."""
        salt = cells[SALT]
        hashes = {name: sealed_text(str(salt), str(cells[name])) for name in self.sealed if cells[name] is not None}
        return {**cells, SALT: None, **hashes}

    def key_of(self, row: Row) -> tuple[Cell, ...]:
        """What names a row among its owner's."""
        return tuple(_instant_text(row[name]) for name in self.key)

    def key_of_values(self, values: Sequence[Any]) -> tuple[Cell, ...]:
        """What names a row of driver values (`to_values`) among its owner's."""
        key: tuple[Cell, ...] = self._pick_key(values)
        return key[1:]

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
            else type_coerce(c, StoredText()).label(c.name)
            if is_compressed(c)
            else type_coerce(c, PlainText).label(c.name)
            if isinstance(c.type, TextTuple | JsonText)
            else c
            for c in self.table.c
        ]


SALT = "salt"
"""The column with the salt of a row's sealed columns."""


def sealed_text(salt: str, text: str) -> str:
    """The hash that the audit chain has instead of a sealed text: nobody without the salt can tell what it stands for.

    >>> sealed_text("00", "I never trade alts")[:16]
    '86e80aacaf6caabe'
    """
    return sha256(f"{salt}:{text}".encode()).hexdigest()


def is_compressed(column: Column[Any]) -> bool:
    """Whether a column's text is compressed at rest."""
    kind = column.type
    return isinstance(kind, CompressedText) or (isinstance(kind, JsonText | TextTuple) and kind.compressed)


def _json_texts(values: Sequence[Any]) -> str | Iterable[str]:
    """The canonical JSON of each value of a column; one text if it is the same for all."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return _float_texts(values)
    if kinds == {float, NoneType}:
        texts = iter(_float_texts([value for value in values if value is not None]))
        return ["null" if value is None else next(texts) for value in values]
    if values[0] == values[-1] and len(kinds) == 1 and len(set(values)) == 1:
        return canonical_json(values[0])
    if kinds == {str}:
        return map(encode_basestring, values)
    if kinds == {int}:
        return map(int.__repr__, values)
    return [encode_basestring(value) if type(value) is str else _json_text(value) for value in values]


def _float_texts(values: Sequence[float]) -> Iterable[str]:
    """The canonical JSON of numbers: their shortest text.

    Pydantic writes the same text in a tenth of the time, but for exponents, and null for what is not finite. Python
    writes exponents for less than a ten-thousandth.
    """
    text = _adapter(list[float]).dump_json(list(values)).decode()
    if "e" not in text and "n" not in text and "0.0000" not in text:
        return text[1:-1].split(",") if values else ()
    if not all(map(isfinite, values)):
        raise ValueError("a number that is not finite cannot be written as JSON")
    return map(float.__repr__, values)


def _json_text(value: Any) -> str:
    return "null" if value is None else canonical_json(value)


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
    indexed_where: Mapping[tuple[str, ...], str] | None = None,
    revised: bool = False,
    clustered: bool = False,
    compressed: Collection[str] = (),
    sealed: Collection[str] = (),
) -> Noun[T]:
    """The table of a dataclass: the owner leads the primary key, every index and every reference.

    - `names` gives a field another column name.
    - `as_json` names the fields whose value is one column of canonical JSON: a dataclass or a tuple of dataclasses. Any
      other dataclass takes a column for each of its fields.
    - `none_is_empty` names those fields of `as_json` whose None is stored as an empty text instead of NULL.
    - `codecs` maps fields to their text form, for a column of text that is not the JSON of the value's fields.
    - `within` maps a referenced table to the columns that refer to it.
    - `only_one` maps columns to the condition under which no two rows may have the same values in them.
    - `indexed_where` maps columns to the condition of a partial index on them.
    - `revised` rows may be corrected: a second table keeps the replaced versions, so that earlier reads stay the same.
    - `compressed` names the fields whose text is compressed at rest: what is long, often alike and seldom read.
    - `sealed` names the columns whose text is not in the audit chain, so that it can be erased; the row has a `salt`.
    - `clustered` stores the rows in the order of their key where SQLite can: smaller and faster for many small rows.
    """
    json_fields: dict[str, TextForm] = {field: ("" if field in none_is_empty else None, None) for field in as_json}
    json_fields |= {field: (None, codec) for field, codec in (codecs or {}).items()}
    leaves = tuple(_compressed(leaf, compressed) for leaf in _leaves(of, names or {}, json_fields))
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
        sqlite_with_rowid=not clustered,
    )
    _UNDEFINED_INDEXES.extend((made, f"{table}_by_{'_'.join(names)}", names, None, False) for names in indexes)
    partial = (("only_one", only_one, True), ("some_by", indexed_where, False))
    _UNDEFINED_INDEXES.extend(
        (made, f"{table}_{kind}_{'_'.join(names)}", names, where, unique)
        for kind, conditions, unique in partial
        for names, where in (conditions or {}).items()
    )
    return Noun(of, made, leaves, key, _former(of, table, leaves, key, sealed) if revised else None, sealed)


def _compressed(leaf: Leaf, compressed: Collection[str]) -> Leaf:
    if ".".join(leaf.path) not in compressed:
        return leaf
    if isinstance(leaf.type, JsonText):
        kind = leaf.type
        return replace(leaf, type=JsonText(kind.of, kind.none, kind.codec, compressed=True))
    if isinstance(leaf.type, TextTuple):
        return replace(leaf, type=TextTuple(compressed=True))
    return replace(leaf, type=CompressedText())


KNOWN, RECORDED = "known_at", "recorded_at"
REPLACED_KNOWN, REPLACED_RECORDED = "replaced_known_at", "replaced_recorded_at"


def _former(
    of: type[T], table: str, leaves: tuple[Leaf, ...], key: tuple[str, ...], sealed: Collection[str]
) -> Noun[T]:
    keyed = (*key, KNOWN, RECORDED)
    made = Table(
        f"{table}_former",
        METADATA,
        *_columns(leaves, (OWNER, *keyed)),
        Column(REPLACED_KNOWN, UtcInstant(), nullable=False),
        Column(REPLACED_RECORDED, UtcInstant(), nullable=False),
    )
    _UNDEFINED_INDEXES.extend(
        (made, f"{table}_former_by_{name}", (name,), None, False) for name in (REPLACED_KNOWN, REPLACED_RECORDED)
    )
    return Noun(of, made, leaves, keyed, sealed=sealed)


def _columns(leaves: Iterable[Leaf], keyed: tuple[str, ...]) -> list[Column[Any]]:
    """The columns of a table, those of its key first."""
    columns: list[Column[Any]] = [
        Column(leaf.column, leaf.type, primary_key=leaf.column in keyed, nullable=leaf.nullable) for leaf in leaves
    ]
    return sorted(columns, key=lambda c: keyed.index(c.name) if c.name in keyed else len(keyed))


_UNDEFINED_INDEXES: list[tuple[Table, str, tuple[str, ...], str | None, bool]] = []
"""Table, name and columns of indexes, the condition of a partial one, and whether it is unique."""


def define_indexes() -> None:
    """Define the indexes of all tables that are imported. Only the creation of a store needs them, not every start."""
    while _UNDEFINED_INDEXES:
        table, name, columns, where, unique = _UNDEFINED_INDEXES.pop()
        condition = None if where is None else text(where)
        keyed = [table.c[column] for column in (OWNER, *columns)]
        Index(name, *keyed, unique=unique, sqlite_where=condition, postgresql_where=condition)


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


def _reader(leaves: Sequence[Leaf], converters: Mapping[str, Converter]) -> Callable[[Any], tuple[Any, ...]]:
    """The function that reads the columns of a noun from a value, in their order; a part that is absent has None.

    `converters` turn columns into their stored text. The function is compiled, because it runs for every row that is
    written, and only when it is first needed, because a start needs few of them.
    """
    parts: dict[tuple[str, ...], str] = {(): "value"}
    lines, columns = ["def read(value):"], list[str]()
    for leaf in leaves:
        for depth in range(1, len(leaf.path)):
            path = leaf.path[:depth]
            if path not in parts:
                lines.append(f"  part_{len(parts)} = {_attribute(parts[path[:-1]], path[-1], optional=leaf.optional)}")
                parts[path] = f"part_{len(parts)}"
        read = _attribute(parts[leaf.path[:-1]], leaf.path[-1], optional=leaf.optional)
        columns.append(f"convert_{leaf.column}({read})" if leaf.column in converters else read)
    lines.append(f"  return ({', '.join(columns)},)")
    return compiled("read", lines, {f"convert_{name}": convert for name, convert in converters.items()})


def _attribute(part: str, name: str, *, optional: bool) -> str:
    """The source of an attribute of a part that may be absent."""
    return f"(None if {part} is None else {part}.{name})" if optional else f"{part}.{name}"


def _builder(of: type[Any], columns: Mapping[tuple[str, ...], int]) -> Callable[[Sequence[Any]], Any]:
    """The function that makes a value of a row; compiled for the same reasons as `_reader`."""
    classes: dict[str, type[Any]] = {}
    made = _making(of, columns, classes)
    return compiled("build", ["def build(row):", "  cells = tuple(row)", f"  return {made}"], classes)


def _making(of: type[Any], columns: Mapping[tuple[str, ...], int], classes: dict[str, type[Any]]) -> str:
    """The source of the call that makes a dataclass of cells; it adds the class to `classes`."""
    name, arguments = f"class_{len(classes)}", list[str]()
    classes[name] = of
    hints = typing.get_type_hints(of)
    for field in fields(of):
        if (field.name,) in columns:
            arguments.append(f"{field.name}=cells[{columns[(field.name,)]}]")
            continue
        inner, nullable = _without_none(hints[field.name])
        below = {path[1:]: column for path, column in columns.items() if path[0] == field.name}
        made = _making(typing.cast(type[Any], inner), below, classes)
        if nullable:
            is_absent = " is ".join([*(f"cells[{column}]" for column in below.values()), "None"])
            made = f"None if {is_absent} else {made}"
        arguments.append(f"{field.name}={made}")
    return f"{name}({', '.join(arguments)})"
