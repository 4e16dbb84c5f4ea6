"""An owner's rows as plain cells: read in the order of their keys, and inserted again into an empty store."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from sqlalchemy import BigInteger, Boolean, Connection, Double, literal, select

from backsight.core.audit import Cell
from backsight.store.audit import AUDIT
from backsight.store.experience import DERIVED
from backsight.store.mapping import METADATA, OWNER, Noun, UtcInstant
from backsight.store.reading import row_cache
from backsight.store.tables import AUDITED
from backsight.store.transaction import insert_all

ROWS_AT_ONCE = 2_000
_ORDER = {table.name: number for number, table in enumerate(METADATA.sorted_tables)}
FACTS: tuple[Noun[Any], ...] = (*sorted(AUDITED, key=lambda noun: _ORDER[noun.table.name]), AUDIT)
"""Every table that cannot be derived again, so that a row comes after the rows that it refers to."""

CellKind = Literal["instant", "boolean", "integer", "number", "text"]


def cell_kinds(noun: Noun[Any]) -> dict[str, CellKind]:
    """The kind of every column but the owner, in the order of the table."""
    return {column.name: _kind(column.type) for column in noun.table.c if column.name != OWNER}


def _kind(column_type: object) -> CellKind:
    match column_type:
        case UtcInstant():
            return "instant"
        case Boolean():
            return "boolean"
        case BigInteger():
            return "integer"
        case Double():
            return "number"
        case _:
            return "text"


def read_cells(connection: Connection, noun: Noun[Any], owner: str) -> Iterator[list[dict[str, Cell]]]:
    """An owner's rows of a table in the order of their key, some at a time: the same on both databases."""
    statement = select(*noun.stored_columns).where(noun.table.c[OWNER] == owner).order_by(*noun.table.primary_key)
    streamed = connection.execute(statement.execution_options(yield_per=ROWS_AT_ONCE))
    for rows in streamed.mappings().partitions():
        yield [noun.unsealed_cells(row) for row in rows]


def insert_cells(connection: Connection, noun: Noun[Any], owner: str, rows: Iterable[Mapping[str, Cell]]) -> None:
    """Insert rows as they were read; the audit chain is one of the tables, so it gets no new link."""
    columns = [name for name in noun.columns if name != OWNER]
    place = noun.columns.index(OWNER)
    values = ([row[name] for name in columns] for row in rows)
    insert_all(connection, noun.table, ([*row[:place], owner, *row[place:]] for row in values))
    row_cache(connection).clear()  # it may remember that there was nothing


def has_rows(connection: Connection, owner: str) -> bool:
    """Whether a store has anything of an owner."""
    return any(
        connection.execute(select(literal(1)).where(noun.table.c[OWNER] == owner).limit(1)).first() is not None
        for noun in (*FACTS, *DERIVED)
    )
