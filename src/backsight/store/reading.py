"""What every query shares: the owner's rows only, as far as the horizon goes."""

from collections.abc import Iterable
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, select

from backsight.core.instants import Horizon
from backsight.store.mapping import OWNER, Noun

T = TypeVar("T")


def owned(noun: Noun[Any], owner: str, *where: ColumnElement[bool]) -> Select[Any]:
    """The rows of one owner."""
    return select(noun.table).where(noun.table.c[OWNER] == owner, *where)


def within(noun: Noun[Any], horizon: Horizon) -> list[ColumnElement[bool]]:
    """Known by `as_of`, inclusive; recorded by `seen_at`, inclusive."""
    c = noun.table.c
    seen = [] if horizon.seen_at is None else [c.recorded_at <= horizon.seen_at]
    return [c.known_at <= horizon.as_of, *seen]


def matching(noun: Noun[Any], **values: object) -> list[ColumnElement[bool]]:
    """Columns that equal what was asked for; None asks for nothing."""
    return [noun.table.c[name] == value for name, value in values.items() if value is not None]


def fetch(connection: Connection, noun: Noun[T], statement: Select[Any]) -> list[T]:
    """The values of all rows that a statement finds."""
    return [noun.from_row(row) for row in connection.execute(statement).mappings()]


def fetch_one(connection: Connection, noun: Noun[T], statement: Select[Any]) -> T | None:
    """The value of the first row that a statement finds."""
    row = connection.execute(statement.limit(1)).mappings().first()
    return None if row is None else noun.from_row(row)


def has_tags(values: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether all wanted tags are among the values."""
    return set(wanted) <= set(values)
