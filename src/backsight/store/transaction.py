"""One command's writes: the rows, and for each what the audit chain will say of it."""

from collections.abc import Iterable
from typing import Any, TypeVar

from sqlalchemy import Connection, insert, select

from backsight.core.audit import Batch, Change, item_hash
from backsight.store.database import upsert
from backsight.store.mapping import Noun

T = TypeVar("T")


class Transaction:
    """Writes rows on a connection and remembers the changes."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changes: list[Change | Batch] = []

    def add(self, noun: Noun[T], value: T) -> None:
        """Write a row that is not there yet."""
        row = noun.to_row(value)
        self.connection.execute(insert(noun.table).values(**row))
        self._note(noun, row, noun.cells(row))

    def add_all(self, noun: Noun[T], values: Iterable[T]) -> None:
        """Write many rows that are not there yet; the chain keeps a short hash of each."""
        rows = [noun.to_row(value) for value in values]
        if rows:
            self.connection.execute(insert(noun.table), rows)
            items = tuple(item_hash(noun.cells(row)) for row in rows)
            self.changes.append(Batch(table=noun.table.name, items=items))

    def put(self, noun: Noun[T], value: T) -> None:
        """Write a row, in place of the one with its key if there is one; a row that says the same is left alone."""
        row = noun.to_row(value)
        former = self.connection.execute(select(noun.table).where(*noun.is_key(row))).mappings().first()
        if former is None:
            return self.add(noun, value)
        was = noun.cells(former)
        changed = {name: cell for name, cell in noun.cells(row).items() if was[name] != cell}
        if changed:
            upsert(self.connection, noun.table, row)
            self._note(noun, row, changed)
        return None

    def _note(self, noun: Noun[Any], row: dict[str, Any], cells: dict[str, Any]) -> None:
        self.changes.append(Change(table=noun.table.name, key=noun.key_of(row), set=cells))
