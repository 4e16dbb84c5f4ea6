"""All tables together, and the revision of the schema they form."""

from functools import cache
from typing import Any

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, select
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from backsight.store.audit import AUDIT
from backsight.store.bars import BARS
from backsight.store.decisions import DECISIONS, PLACED_ORDERS, SEGMENTS
from backsight.store.documents import INDEX_TABLES, WRITINGS
from backsight.store.experience import DERIVED, RETIREMENTS, STATED
from backsight.store.instruments import INSTRUMENTS
from backsight.store.mapping import METADATA, Noun
from backsight.store.memories import EPISODES, RECALLS, RETRIEVALS
from backsight.store.notes import NOTES, PROPOSALS, REFLECTIONS
from backsight.store.plans import PLAN_EVENTS, PLANS
from backsight.store.state import EQUITY
from backsight.store.strategies import ACCOUNTS, DEPLOYMENTS, STRATEGIES
from backsight.store.trades import FILLS, MARKS, TRADES

REVISION = "0001_0.1.0.dev7"
"""The last step in `store/migrations/versions`: its number and the first release that needs it."""

CURRENT: tuple[Noun[Any], ...] = (
    ACCOUNTS,
    INSTRUMENTS,
    STRATEGIES,
    DEPLOYMENTS,
    DECISIONS,
    SEGMENTS,
    PLACED_ORDERS,
    FILLS,
    TRADES,
    MARKS,
    EPISODES,
    RECALLS,
    RETRIEVALS,
    BARS,
    EQUITY,
    PLANS,
    PLAN_EVENTS,
    STATED,
    RETIREMENTS,
    NOTES,
    REFLECTIONS,
    PROPOSALS,
    WRITINGS,
)
AUDITED = (*CURRENT, *(noun.former for noun in CURRENT if noun.former is not None))
"""The nouns whose rows the audit chain covers: current rows, and the versions that corrections replaced."""

TABLES = frozenset({AUDIT.table.name, *(noun.table.name for noun in (*AUDITED, *DERIVED, *INDEX_TABLES))})

VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Alembic's table. It is defined here too, so that a new store can be created without loading Alembic."""


@cache
def _statements(dialect_name: str) -> tuple[str, ...]:
    """The DDL of every table and index; one message for PostgreSQL, one statement at a time for SQLite."""
    dialect = registry.load(dialect_name)()
    elements: list[DDLElement] = []
    for table in (*METADATA.sorted_tables, VERSION):
        elements += [CreateTable(table), *map(CreateIndex, table.indexes)]
    statements = [str(element.compile(dialect=dialect)) for element in elements]
    return (";".join(statements),) if dialect_name == "postgresql" else tuple(statements)


def create(connection: Connection) -> None:
    """Create all tables from their definitions and stamp the store with the current revision."""
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(insert(VERSION).values(version_num=REVISION))


def revision(connection: Connection) -> str | None:
    """The revision of the store's schema."""
    return connection.execute(select(VERSION.c.version_num)).scalar_one_or_none()
