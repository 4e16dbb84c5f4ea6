"""The revision of the schema, and its creation in an empty store."""

from functools import cache

from sqlalchemy import Column, Connection, Index, MetaData, String, Table, insert, select
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from backsight.store import row_security
from backsight.store.mapping import METADATA

REVISION = "0001_0.1.0.dev15"
"""The last step in `store/migrations/versions`: its number and the first release that needs it."""

VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Alembic's table. It is defined here too, so that a new store can be created without loading Alembic."""


@cache
def _statements(dialect_name: str) -> tuple[str, ...]:
    """The DDL of every table and index; one message for PostgreSQL, one statement at a time for SQLite.

    Indexes are created in the order of their names. SQLAlchemy has them in a set, whose order differs between
    processes, and SQLite chooses between equally good indexes by the order of their creation.
    """
    from backsight.store import tables  # noqa: F401 (it defines every table)

    dialect = registry.load(dialect_name)()
    elements: list[DDLElement] = []
    for table in (*METADATA.sorted_tables, VERSION):
        elements += [CreateTable(table), *map(CreateIndex, sorted(table.indexes, key=_name_of_index))]
    statements = [str(element.compile(dialect=dialect)) for element in elements]
    return (";".join(statements),) if dialect_name == "postgresql" else tuple(statements)


def _name_of_index(index: Index) -> str:
    return str(index.name)


def create(connection: Connection) -> None:
    """Create all tables from their definitions and stamp the store with the current revision."""
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    if connection.dialect.name == "postgresql":
        row_security.install(connection, METADATA.tables)
    connection.execute(insert(VERSION).values(version_num=REVISION))


def revision(connection: Connection) -> str | None:
    """The revision of the store's schema."""
    return connection.execute(select(VERSION.c.version_num)).scalar_one_or_none()
