"""The writes of one command: rows, and for each row the change that the audit chain records."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Table, delete, insert, select

from backsight.core.audit import AuditBatch, AuditChange, item_hash
from backsight.core.instants import format_instant
from backsight.store.database import upsert_all
from backsight.store.mapping import KNOWN, OWNER, RECORDED, REPLACED_KNOWN, REPLACED_RECORDED, Noun, Row

T = TypeVar("T")


class Transaction:
    """Writes rows on a connection and collects the changes for the audit chain."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changes: list[AuditChange | AuditBatch] = []

    def add(self, noun: Noun[T], value: T) -> None:
        """Insert a new row."""
        values = noun.to_values(value)
        insert_all(self.connection, noun.table, [values])
        cells = noun.cells_of_values(values)
        self._audit(noun, cells, cells)

    def add_all(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Insert many new rows; the audit chain records a short hash of each row instead of its columns."""
        rows = [noun.to_values(value) for value in values]
        if rows:
            insert_all(self.connection, noun.table, rows)
            items = tuple(item_hash(noun.cells_of_values(row)) for row in rows)
            self.changes.append(AuditBatch(table=noun.table.name, items=items))

    def derive(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Insert or replace rows that are derived from other rows; the audit chain does not record them."""
        upsert_all(self.connection, noun.table, [noun.to_row(value) for value in values])

    def derive_new(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Insert new rows that are derived from other rows; the audit chain does not record them."""
        insert_all(self.connection, noun.table, map(noun.to_values, values))

    def revise(self, noun: Noun[T], value: T) -> bool:
        """Write a new version of a row, or a new row; whether anything but its time changed.

        The version that is replaced is kept, if rows of this noun are revised.
        """
        row = noun.to_row(value)
        former = self._stored(noun, row)
        if former is None:
            self.add(noun, value)
            return True
        former_cells, cells = noun.cells(former), noun.cells(row)
        if all(former_cells[name] == cell for name, cell in cells.items() if name != RECORDED):
            return False
        if noun.former is not None:
            self._keep(noun, former, known_at=row[KNOWN], recorded_at=row[RECORDED])
        upsert_all(self.connection, noun.table, [row])
        self._audit(noun, row, cells, was=item_hash(former_cells))
        return True

    def withdraw(self, noun: Noun[T], value: T, *, known_at: datetime, recorded_at: datetime) -> None:
        """Delete a row that is no longer true; reads as of an earlier instant still see it."""
        row = noun.to_row(value)
        former = self._stored(noun, row)
        if former is not None:
            self._keep(noun, former, known_at=known_at, recorded_at=recorded_at)
            self.connection.execute(noun.delete_by_key, noun.key_values(row))
            self._audit(noun, row, None, was=item_hash(noun.cells(former)))

    def erase_versions(self, noun: Noun[T], value: T) -> None:
        """Delete the replaced versions of a row, because what replaced them is itself no longer true."""
        versions = noun.former
        if versions is None:
            return
        row, c = noun.to_row(value), versions.table.c
        same_key = [c[name] == row[name] for name in (OWNER, *noun.key)]
        replaced = self.connection.execute(select(*versions.stored_columns).where(*same_key)).mappings().all()
        if replaced:
            self.connection.execute(delete(versions.table).where(*same_key))
        for former in replaced:
            self._audit(versions, former, None, was=item_hash(versions.cells(former)))

    def _stored(self, noun: Noun[Any], row: Row) -> Row | None:
        """The stored row with this key, unparsed: the text that the audit chain recorded."""
        return self.connection.execute(noun.select_by_key, noun.key_values(row)).mappings().first()

    def _keep(self, noun: Noun[Any], former: Row, *, known_at: datetime, recorded_at: datetime) -> None:
        """Copy a replaced version to the table of former versions.

        A version that is replaced at its own instants is dropped: no read could ever have seen it.
        """
        versions = noun.former
        replaced = {REPLACED_KNOWN: format_instant(known_at), REPLACED_RECORDED: format_instant(recorded_at)}
        if versions is None or [former[KNOWN], former[RECORDED]] == [*replaced.values()]:
            return
        row = {**former, **replaced}
        insert_all(self.connection, versions.table, [[row[name] for name in versions.columns]])
        self._audit(versions, row, versions.cells(row))

    def _audit(self, noun: Noun[Any], row: Row, cells: dict[str, Any] | None, *, was: str | None = None) -> None:
        self.changes.append(AuditChange(table=noun.table.name, key=noun.key_of(row), set=cells, was=was))


def insert_all(connection: Connection, table: Table, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of driver values (`Noun.to_values`), in the order of the table's columns.

    The values go straight to the driver. SQLAlchemy would look up each value by column name several times, which takes
    longer than the database does for wide rows.
    """
    statement, names = _insert(table, connection.dialect)
    driver_rows = [tuple(row) if names is None else dict(zip(names, row, strict=True)) for row in rows]
    if driver_rows:
        connection.exec_driver_sql(statement, driver_rows)


_INSERTS: dict[tuple[str, str], tuple[str, tuple[str, ...] | None]] = {}


def _insert(table: Table, dialect: Dialect) -> tuple[str, tuple[str, ...] | None]:
    """The INSERT statement of a table, and the parameter names for drivers that take parameters by name; cached."""
    cached = _INSERTS.get((table.name, dialect.name))
    if cached is None:
        names = None if dialect.positional else tuple(column.name for column in table.c)
        cached = _INSERTS[table.name, dialect.name] = str(insert(table).compile(dialect=dialect)), names
    return cached
