"""One command's writes: the rows, and for each what the audit chain will say of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Table, delete, insert, select

from backsight.core.audit import Batch, Change, item_hash
from backsight.core.instants import format_instant
from backsight.store.database import upsert, upsert_all
from backsight.store.mapping import KNOWN, RECORDED, REPLACED_KNOWN, REPLACED_RECORDED, Noun, Row

T = TypeVar("T")


class Transaction:
    """Writes rows on a connection and remembers the changes."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changes: list[Change | Batch] = []

    def add(self, noun: Noun[T], value: T) -> None:
        """Write a row that is not there yet."""
        told = noun.to_values(value)
        insert_all(self.connection, noun.table, [told])
        cells = noun.cells_of_values(told)
        self._note(noun, cells, cells)

    def add_all(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Write many rows that are not there yet; the chain keeps a short hash of each."""
        rows = [noun.to_values(value) for value in values]
        if rows:
            insert_all(self.connection, noun.table, rows)
            items = tuple(item_hash(noun.cells_of_values(row)) for row in rows)
            self.changes.append(Batch(table=noun.table.name, items=items))

    def derive(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Write rows that follow from others, in place of those with their keys; the chain does not speak of them."""
        upsert_all(self.connection, noun.table, [noun.to_row(value) for value in values])

    def derive_new(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Write rows that follow from others and are not there yet; the chain does not speak of them."""
        insert_all(self.connection, noun.table, map(noun.to_values, values))

    def put(self, noun: Noun[T], value: T) -> None:
        """Write a row, in place of the one with its key if there is one; a row that says the same is left alone."""
        row = noun.to_row(value)
        former = self._stored(noun, row)
        if former is None:
            return self.add(noun, value)
        was, cells = noun.cells(former), noun.cells(row)
        if was != cells:
            upsert(self.connection, noun.table, row)
            self._note(noun, row, cells, was=item_hash(was))
        return None

    def revise(self, noun: Noun[T], value: T) -> bool:
        """Write a new version of a row, and keep the one it replaces; whether it says anything new."""
        row = noun.to_row(value)
        former = self._stored(noun, row)
        if former is None:
            self.add(noun, value)
            return True
        was, cells = noun.cells(former), noun.cells(row)
        if all(was[name] == cell for name, cell in cells.items() if name != RECORDED):
            return False
        self._keep(noun, former, known_at=row[KNOWN], recorded_at=row[RECORDED])
        upsert(self.connection, noun.table, row)
        self._note(noun, row, cells, was=item_hash(was))
        return True

    def withdraw(self, noun: Noun[T], value: T, *, known_at: datetime, recorded_at: datetime) -> None:
        """Take back a row that no longer stands; who asks as of before still finds it."""
        row = noun.to_row(value)
        former = self._stored(noun, row)
        if former is not None:
            self._keep(noun, former, known_at=known_at, recorded_at=recorded_at)
            self.connection.execute(delete(noun.table).where(*noun.is_key(row)))
            self._note(noun, row, None, was=item_hash(noun.cells(former)))

    def _stored(self, noun: Noun[Any], row: Row) -> Row | None:
        """The row with this key, with its stored text: what the audit chain said of it."""
        return self.connection.execute(select(*noun.stored_columns).where(*noun.is_key(row))).mappings().first()

    def _keep(self, noun: Noun[Any], former: Row, *, known_at: datetime, recorded_at: datetime) -> None:
        """Keep a version that is replaced; one replaced at its own instants was never to be seen."""
        kept = noun.former
        replaced = {REPLACED_KNOWN: format_instant(known_at), REPLACED_RECORDED: format_instant(recorded_at)}
        if kept is None or [former[KNOWN], former[RECORDED]] == [*replaced.values()]:
            return
        row = {**former, **replaced}
        insert_all(self.connection, kept.table, [[row[name] for name in kept.columns]])
        self._note(kept, row, kept.cells(row))

    def _note(self, noun: Noun[Any], row: Row, cells: dict[str, Any] | None, *, was: str | None = None) -> None:
        self.changes.append(Change(table=noun.table.name, key=noun.key_of(row), set=cells, was=was))


def insert_all(connection: Connection, table: Table, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows that hold what the columns of a table are told as, in their order.

    They go to the driver as they are. On the way through SQLAlchemy each value would be looked up by its name a few
    times over: for wide rows that takes longer than the database does.
    """
    statement, names = _insert(table, connection.dialect)
    taken = [tuple(row) if names is None else dict(zip(names, row, strict=True)) for row in rows]
    if taken:
        connection.exec_driver_sql(statement, taken)


_INSERTS: dict[tuple[str, str], tuple[str, tuple[str, ...] | None]] = {}


def _insert(table: Table, dialect: Dialect) -> tuple[str, tuple[str, ...] | None]:
    """The statement that writes a row of a table; the names of its parameters, where a driver takes them by name.

    Both follow from the definitions of the table and of the dialect, and are made once.
    """
    made = _INSERTS.get((table.name, dialect.name))
    if made is None:
        names = None if dialect.positional else tuple(column.name for column in table.c)
        made = _INSERTS[table.name, dialect.name] = str(insert(table).compile(dialect=dialect)), names
    return made
