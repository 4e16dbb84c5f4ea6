"""The writes of one command: rows, and for each row the change that the audit chain records."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Table, delete, insert, select

from backsight.core.audit import AuditBatch, AuditChange, AuditItem, AuditRemoval, item_hash
from backsight.core.instants import format_instant
from backsight.store.compression import compress_text
from backsight.store.database import insert_missing, upsert_all
from backsight.store.mapping import KNOWN, OWNER, RECORDED, REPLACED_KNOWN, REPLACED_RECORDED, Noun, Row, is_compressed
from backsight.store.transaction_state import mark_touched

T = TypeVar("T")
ROWS_AT_ONCE = 500
"""Rows that are converted and inserted at once, so that many rows are not in memory as values of columns too."""

KEYS_AT_ONCE = 500


class Transaction:
    """Writes rows on a connection and collects the changes for the audit chain."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changes: list[AuditItem] = []

    def take_changes(self) -> list[AuditItem]:
        """The changes so far, which the transaction no longer holds."""
        changes, self.changes = self.changes, []
        return changes

    def add(self, noun: Noun[T], value: T) -> None:
        """Insert a new row."""
        values = noun.to_values(value)
        insert_all(self.connection, noun.table, [values])
        cells = noun.cells_of_values(values)
        self._audit(noun, cells, cells)

    def add_all(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Insert many new rows; the audit chain records a short hash of each row instead of its columns."""
        items: list[str] = []
        remaining = iter(values)
        while rows := [noun.to_values(value) for value in islice(remaining, ROWS_AT_ONCE)]:
            insert_all(self.connection, noun.table, rows)
            items += noun.item_hashes(rows)
        if items:
            self.changes.append(AuditBatch(table=noun.table.name, items="".join(items)))

    def add_missing(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Insert those rows whose keys are not stored yet; for rows whose key is the hash of their content."""
        rows = [noun.to_row(value) for value in values]
        new = insert_missing(self.connection, noun.table, rows)
        added = [row for row in rows if tuple(row[column.name] for column in noun.table.primary_key) in new]
        if added:
            items = "".join(item_hash(noun.cells(row)) for row in added)
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

    def remove_old(self, noun: Noun[Any], owner: str, keys: Sequence[str], *, before: datetime) -> None:
        """Delete the rows of batches with some first keys, because they are old; the link has a short hash of each."""
        items: list[str] = []
        name = noun.key[0]
        for first in range(0, len(keys), KEYS_AT_ONCE):
            c = noun.table.c
            some = [c[OWNER] == owner, c[name].in_(keys[first : first + KEYS_AT_ONCE])]
            rows = self.connection.execute(select(*noun.stored_columns).where(*some)).mappings()
            items += [item_hash(noun.cells(row)) for row in rows]
            self.connection.execute(delete(noun.table).where(*some))
        if items:
            self.changes.append(AuditRemoval(table=noun.table.name, items="".join(items), before=before))

    def put_back(self, noun: Noun[Any], key: Row, cells: dict[str, Any] | None) -> None:
        """Set the row with this key to cells that it had before, or delete it; without keeping a version."""
        former = self.connection.execute(noun.select_by_key, key).mappings().first()
        was = None if former is None else item_hash(noun.cells(former))
        if former is not None:
            self.connection.execute(noun.delete_by_key, key)
        if cells is not None:
            row = {**cells, OWNER: key[OWNER]}
            insert_all(self.connection, noun.table, [[row[name] for name in noun.columns]])
        self._audit(noun, key, cells, was=was)

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
    statement, names, compressed = _insert(table, connection.dialect)
    stored_rows = _at_rest(rows, compressed)
    remaining = (tuple(row) if names is None else dict(zip(names, row, strict=True)) for row in stored_rows)
    while driver_rows := list(islice(remaining, ROWS_AT_ONCE)):
        mark_touched(connection, table.name)
        connection.exec_driver_sql(statement, driver_rows)


def _at_rest(rows: Iterable[Sequence[Any]], compressed: Sequence[int]) -> Iterable[Sequence[Any]]:
    """Rows whose texts in some columns are compressed."""
    if not compressed:
        return rows
    return ([compress_text(v) if n in compressed and v is not None else v for n, v in enumerate(row)] for row in rows)


_INSERTS: dict[tuple[str, str], tuple[str, tuple[str, ...] | None, tuple[int, ...]]] = {}


def _insert(table: Table, dialect: Dialect) -> tuple[str, tuple[str, ...] | None, tuple[int, ...]]:
    """The INSERT statement of a table, the parameter names for drivers that take parameters by name, and the places of
    compressed columns; cached."""
    cached = _INSERTS.get((table.name, dialect.name))
    if cached is None:
        names = None if dialect.positional else tuple(column.name for column in table.c)
        compressed = tuple(number for number, column in enumerate(table.c) if is_compressed(column))
        statement = str(insert(table).compile(dialect=dialect))
        cached = _INSERTS[table.name, dialect.name] = statement, names, compressed
    return cached
