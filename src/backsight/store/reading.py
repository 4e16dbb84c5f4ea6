"""Conditions and helpers that all queries share: one owner's rows, up to the horizon."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    Boolean,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    or_,
    select,
    union_all,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from backsight.core.instants import Horizon
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED, Noun, UtcInstant

T = TypeVar("T")
Key = TypeVar("Key", int, str, datetime)
BATCH = 500
"""Keys per statement: fewer than the parameter limit of either database."""
Columns = ReadOnlyColumnCollection[str, Any]

ROW_CACHE, PRIVATE = "backsight_row_cache", "backsight_private"
MOST_CACHED_ROWS = 1_000


def row_cache(connection: Connection) -> dict[Any, Any]:
    """Rows that this connection need not read twice.

    The cache holds rows that never change. For a store that is private to this process it also holds rows that only
    this process can change. `Database` clears the cache when a transaction is rolled back.
    """
    cache: dict[Any, Any] = connection.info.setdefault(ROW_CACHE, {})
    if len(cache) > MOST_CACHED_ROWS:
        cache.clear()
    return cache


def is_private(connection: Connection) -> bool:
    """Whether the store exists only in this process, so that no other process can write to it."""
    return PRIVATE in connection.info


OWNED: BindParameter[str] = bindparam("owner")
AS_OF, SEEN_AT = bindparam("as_of", type_=UtcInstant()), bindparam("seen_at", type_=UtcInstant())


def parameters(owner: str, horizon: Horizon | None = None, **values: object) -> dict[str, object]:
    """The parameter values of a prepared statement.

    Statements that run at every tick are constants with parameters, because SQLAlchemy takes longer to build a
    statement than the database takes to run it.
    """
    instants = {} if horizon is None else {"as_of": horizon.as_of, "seen_at": horizon.seen_at}
    return {"owner": owner, **instants, **values}


class rare(FunctionElement[bool]):  # noqa: N801 (it is called like a function of SQL)
    """A condition that few rows meet, said to SQLite.

    SQLite has no statistics of a store. It takes the rows of an owner to be ten, and so reads all rows of a clustered
    table rather than those that an index of another column names.
    """

    name = "rare"
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: object = None) -> "rare":
        """Itself: SQLAlchemy would compare it with 1, and SQLite would not see the condition any more."""
        return self


@compiles(rare)
def _compile_rare(condition: rare, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(condition.clauses, **options)


@compiles(rare, "sqlite")
def _compile_rare_for_sqlite(condition: rare, compiler: SQLCompiler, **options: Any) -> str:
    return f"unlikely({compiler.process(condition.clauses, **options)})"


def owned(noun: Noun[Any], owner: str, *where: ColumnElement[bool]) -> Select[Any]:
    """A statement that selects one owner's current rows."""
    return select(noun.table).where(noun.table.c[OWNER] == owner, *where)


def ids_beginning_with(connection: Connection, noun: Noun[Any], owner: str, prefix: str) -> list[str]:
    """At most two ids of an owner's current rows that begin with some hexadecimal digits."""
    c = noun.table.c
    after_last = prefix + "g"  # ids consist of hexadecimal digits and hyphens, and text is compared byte by byte
    statement = select(c.id).where(c[OWNER] == owner, c.id >= prefix, c.id < after_last).order_by(c.id).limit(2)
    return list(connection.execute(statement).scalars())


def within(noun: Noun[Any], horizon: Horizon) -> list[ColumnElement[bool]]:
    """Conditions: known by `as_of` and recorded by `seen_at`, both inclusive."""
    c = noun.table.c
    recorded = [] if horizon.seen_at is None else [c.recorded_at <= horizon.seen_at]
    return [c.known_at <= horizon.as_of, *recorded]


def prepared_within(noun: Noun[Any]) -> list[ColumnElement[bool]]:
    """The conditions of `within` for a prepared statement; `parameters` supplies the horizon."""
    c = noun.table.c
    return [c.known_at <= AS_OF, or_(SEEN_AT.is_(None), c.recorded_at <= SEEN_AT)]


Where = Callable[[Columns], Iterable[ColumnElement[bool]]]


def known(
    noun: Noun[Any], owner: str, horizon: Horizon, where: Where = lambda _columns: ()
) -> Select[Any] | CompoundSelect[Any]:
    """A statement that selects one owner's rows as of a horizon, including versions that were corrected later."""
    current = owned(noun, owner, *within(noun, horizon), *where(noun.table.c))
    if noun.former is None:
        return current
    c = noun.former.table.c
    replaced_later = c[REPLACED_KNOWN] > horizon.as_of
    if horizon.seen_at is not None:
        replaced_later = or_(replaced_later, c[REPLACED_RECORDED] > horizon.seen_at)
    columns = [c[column.name] for column in noun.table.c]
    former = select(*columns).where(c[OWNER] == owner, *within(noun.former, horizon), replaced_later, *where(c))
    return union_all(current, former)


def prepared_known(noun: Noun[Any], columns: Iterable[str], where: Where) -> CompoundSelect[Any]:
    """The statement of `known` for some columns of a revised noun, prepared; `parameters` supplies the horizon."""
    if noun.former is None:
        raise TypeError(f"{noun.table.name} is never revised")
    names, c, former = list(columns), noun.table.c, noun.former.table.c
    replaced_later = or_(former[REPLACED_KNOWN] > AS_OF, former[REPLACED_RECORDED] > SEEN_AT)
    return union_all(
        select(*(c[name] for name in names)).where(c[OWNER] == OWNED, *prepared_within(noun), *where(c)),
        select(*(former[name] for name in names)).where(
            former[OWNER] == OWNED, *prepared_within(noun.former), replaced_later, *where(former)
        ),
    )


def matching(noun: Noun[Any] | Columns, **values: object) -> list[ColumnElement[bool]]:
    """Conditions that columns equal the given values, of a tuple one of them; a value of None adds no condition."""
    columns = noun.table.c if isinstance(noun, Noun) else noun
    return [
        columns[name].in_(value) if isinstance(value, tuple) else columns[name] == value
        for name, value in values.items()
        if value is not None
    ]


Statement = Select[Any] | CompoundSelect[Any]


def fetch(
    connection: Connection, noun: Noun[T], statement: Statement, values: Mapping[str, object] | None = None
) -> list[T]:
    """The nouns of all rows that a statement selects."""
    return [noun.from_row(row) for row in connection.execute(statement, values)]


def fetch_one(
    connection: Connection, noun: Noun[T], statement: Statement, values: Mapping[str, object] | None = None
) -> T | None:
    """The noun of the first row that a statement selects."""
    limited = statement if values else statement.limit(1)
    row = connection.execute(limited, values).first()
    return None if row is None else noun.from_row(row)


def in_batches(keys: Collection[Key]) -> Iterator[list[Key]]:
    """The keys in sorted order, `BATCH` at a time."""
    ordered = sorted(keys)
    return (ordered[first : first + BATCH] for first in range(0, len(ordered), BATCH))
