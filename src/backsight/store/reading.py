"""What every query shares: the owner's rows only, as far as the horizon goes."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    or_,
    select,
    union_all,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from backsight.core.instants import Horizon
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED, Noun, UtcInstant

T = TypeVar("T")
Key = TypeVar("Key", int, str)
MANY = 500
"""Keys asked for at a time."""
Columns = ReadOnlyColumnCollection[str, Any]


def nothing(_columns: Columns) -> Iterable[ColumnElement[bool]]:
    """No condition."""
    return ()


REMEMBERED, PRIVATE = "backsight_remembered", "backsight_private"
MOST_REMEMBERED = 1_000


def remembered(connection: Connection) -> dict[Any, Any]:
    """What a connection need not read twice: rows that never change, and more where no other process can write.

    It is forgotten when a transaction is rolled back, since it may hold what was taken back.
    """
    held: dict[Any, Any] = connection.info.setdefault(REMEMBERED, {})
    if len(held) > MOST_REMEMBERED:
        held.clear()
    return held


def is_private(connection: Connection) -> bool:
    """Whether a store lives in this process alone."""
    return PRIVATE in connection.info


OWNED: BindParameter[str] = bindparam("owner")
AS_OF, SEEN_AT = bindparam("as_of", type_=UtcInstant()), bindparam("seen_at", type_=UtcInstant())


def asked(owner: str, horizon: Horizon | None = None, **values: object) -> dict[str, object]:
    """The values of a prepared statement's parameters.

    Statements that run at every tick are made once and prepared: making one takes longer than running it.
    """
    times = {} if horizon is None else {"as_of": horizon.as_of, "seen_at": horizon.seen_at}
    return {"owner": owner, **times, **values}


def owned(noun: Noun[Any], owner: str, *where: ColumnElement[bool]) -> Select[Any]:
    """The rows of one owner."""
    return select(noun.table).where(noun.table.c[OWNER] == owner, *where)


def within(noun: Noun[Any], horizon: Horizon) -> list[ColumnElement[bool]]:
    """Known by `as_of`, inclusive; recorded by `seen_at`, inclusive."""
    c = noun.table.c
    seen = [] if horizon.seen_at is None else [c.recorded_at <= horizon.seen_at]
    return [c.known_at <= horizon.as_of, *seen]


def within_asked(noun: Noun[Any]) -> list[ColumnElement[bool]]:
    """The same for a prepared statement."""
    c = noun.table.c
    return [c.known_at <= AS_OF, or_(SEEN_AT.is_(None), c.recorded_at <= SEEN_AT)]


Where = Callable[[Columns], Iterable[ColumnElement[bool]]]


def known(noun: Noun[Any], owner: str, horizon: Horizon, where: Where = nothing) -> Select[Any] | CompoundSelect[Any]:
    """The rows of one owner as they stood at a horizon, also those that a correction has replaced since."""
    current = owned(noun, owner, *within(noun, horizon), *where(noun.table.c))
    if noun.former is None:
        return current
    c = noun.former.table.c
    standing = c[REPLACED_KNOWN] > horizon.as_of
    if horizon.seen_at is not None:
        standing = or_(standing, c[REPLACED_RECORDED] > horizon.seen_at)
    columns = [c[column.name] for column in noun.table.c]
    former = select(*columns).where(c[OWNER] == owner, *within(noun.former, horizon), standing, *where(c))
    return union_all(current, former)


def known_asked(noun: Noun[Any], columns: Iterable[str], where: Where) -> CompoundSelect[Any]:
    """Some columns of a revised noun as they stood, as a prepared statement."""
    if noun.former is None:
        raise TypeError(f"{noun.table.name} is never revised")
    names, c, former = list(columns), noun.table.c, noun.former.table.c
    standing = or_(former[REPLACED_KNOWN] > AS_OF, former[REPLACED_RECORDED] > SEEN_AT)
    return union_all(
        select(*(c[name] for name in names)).where(c[OWNER] == OWNED, *within_asked(noun), *where(c)),
        select(*(former[name] for name in names)).where(
            former[OWNER] == OWNED, *within_asked(noun.former), standing, *where(former)
        ),
    )


def matching(noun: Noun[Any] | Columns, **values: object) -> list[ColumnElement[bool]]:
    """Columns that equal what was asked for; None asks for nothing."""
    columns = noun.table.c if isinstance(noun, Noun) else noun
    return [columns[name] == value for name, value in values.items() if value is not None]


Statement = Select[Any] | CompoundSelect[Any]


def fetch(
    connection: Connection, noun: Noun[T], statement: Statement, values: Mapping[str, object] | None = None
) -> list[T]:
    """The values of all rows that a statement finds."""
    return [noun.from_row(row) for row in connection.execute(statement, values)]


def fetch_one(
    connection: Connection, noun: Noun[T], statement: Statement, values: Mapping[str, object] | None = None
) -> T | None:
    """The value of the first row that a statement finds."""
    limited = statement if values else statement.limit(1)
    row = connection.execute(limited, values).first()
    return None if row is None else noun.from_row(row)


def some_at_a_time(keys: Collection[Key]) -> Iterator[list[Key]]:
    """Keys in order, no more at once than every database takes in one statement."""
    ordered = sorted(keys)
    return (ordered[first : first + MANY] for first in range(0, len(ordered), MANY))
