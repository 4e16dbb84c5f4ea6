"""Reads that are answered from memory while no command has changed their tables.

Every command appends a link to its owner's audit chain, so that the head of the chain identifies the state of the
store, whichever process wrote it. A transaction reads the head once, and what was read at the same head is not read
again. When this process commits a command, values of tables that the command did not change stay valid at the new head.
A head that another process wrote makes all values invalid.
"""

from collections.abc import Callable, Hashable
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Select, func, select

from backsight.store import audit
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED, Noun
from backsight.store.reading import OWNED, parameters
from backsight.store.transaction_state import MOST_VALUES, TransactionState, Values, state_of
from backsight.store.view import EVERYTHING, View

T = TypeVar("T")


def unchanged(
    connection: Connection, owner: str, key: Hashable, nouns: tuple[Noun[Any], ...], read: Callable[[], T]
) -> T:
    """The result of `read`, reused until a command changes a table of the nouns or of their replaced versions."""
    tables, state = tables_of(nouns), state_of(connection)
    if state is None or state.has_touched(tables):
        return read()
    values = _values(connection, owner, state)
    entry = values.get(key)
    if entry is not None:
        cached: T = entry[1]
        return cached
    value = read()
    _set(values, key, tables, value)
    return value


def put(connection: Connection, owner: str, key: Hashable, nouns: tuple[Noun[Any], ...], value: object) -> None:
    """Make a value that was computed from the current rows of some tables known to later reads; it replaces another."""
    tables, state = tables_of(nouns), state_of(connection)
    if state is not None and not state.has_touched(tables):
        _set(_values(connection, owner, state), key, tables, value)


def put_written(connection: Connection, owner: str, key: Hashable, nouns: tuple[Noun[Any], ...], value: object) -> None:
    """Make a value that the running command wrote known to later reads, once the command is committed.

    A later write of the command to one of the tables drops the value.
    """
    state = state_of(connection)
    if state is not None:
        state.written.append((owner, key, tables_of(nouns), value))


def get(connection: Connection, owner: str, key: Hashable, nouns: tuple[Noun[Any], ...]) -> Any:
    """The value under a key; None if there is none, or if one of the tables was changed since."""
    state = state_of(connection)
    if state is None or state.has_touched(tables_of(nouns)):
        return None
    entry = _values(connection, owner, state).get(key)
    return None if entry is None else entry[1]


MOST_HASHES = 1_000
"""Hashes of an owner's stored rows that are remembered for each table."""


def stored_hashes(connection: Connection, owner: str, noun: Noun[Any]) -> frozenset[str]:
    """The latest hashes that commands stored in a table whose rows are named by the hash of their content."""
    return get(connection, owner, ("stored", noun), (noun,)) or frozenset()


def remember_stored(connection: Connection, owner: str, noun: Noun[Any], hashes: frozenset[str]) -> None:
    """Let later commands know these hashes: those that were known, and those that the running command stored."""
    latest = hashes if len(hashes) <= MOST_HASHES else frozenset()
    put_written(connection, owner, ("stored", noun), (noun,), latest)


def _values(connection: Connection, owner: str, state: TransactionState) -> Values:
    """The values of an owner at the head that the transaction began with."""
    return state.shared.at(owner, state.first_heads.get(owner) or audit.head(connection, owner)).values


def _set(values: Values, key: Hashable, tables: frozenset[str], value: object) -> None:
    if len(values) >= MOST_VALUES:
        values.clear()
    values[key] = tables, value


_TABLES: dict[tuple[Noun[Any], ...], frozenset[str]] = {}


def tables_of(nouns: tuple[Noun[Any], ...]) -> frozenset[str]:
    """The names of the tables of some nouns and of their replaced versions."""
    tables = _TABLES.get(nouns)
    if tables is None:
        versions = [noun.former for noun in nouns if noun.former is not None]
        tables = _TABLES[nouns] = frozenset(noun.table.name for noun in (*nouns, *versions))
    return tables


def has_no_later_correction(view: View, noun: Noun[Any]) -> bool:
    """Whether no row was replaced after a view, so that every current row known by then is the row as of the view.

    The two latest instants are read by an index, and reused until a row is replaced.
    """
    if view.horizon is EVERYTHING:
        return True
    known_at, recorded_at = _last_replaced(view.connection, view.owner, noun)
    if known_at is not None and known_at > view.as_of:
        return False
    return view.seen_at is None or recorded_at is None or recorded_at <= view.seen_at


def _last_replaced(connection: Connection, owner: str, noun: Noun[Any]) -> tuple[datetime | None, datetime | None]:
    versions = noun.former
    if versions is None:
        return None, None

    def read() -> tuple[datetime | None, datetime | None]:
        row = connection.execute(_latest_replacement(versions), parameters(owner)).one()
        return row[0], row[1]

    return unchanged(connection, owner, ("last replaced", noun), (versions,), read)


@cache
def _latest_replacement(versions: Noun[Any]) -> Select[Any]:
    c = versions.table.c
    latest = (
        select(func.max(c[name], type_=c[name].type)).where(c[OWNER] == OWNED).scalar_subquery()
        for name in (REPLACED_KNOWN, REPLACED_RECORDED)
    )
    return select(*latest)
