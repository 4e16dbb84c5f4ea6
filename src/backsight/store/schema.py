"""All tables together, and the revisions that led to them."""

from functools import cache
from typing import Any

from sqlalchemy import Column, Connection, MetaData, String, Table, insert, select
from sqlalchemy.dialects import registry
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from backsight.store.audit import AUDIT
from backsight.store.bars import BARS
from backsight.store.decisions import DECISIONS, SEGMENTS
from backsight.store.documents import INDEXED, WRITINGS
from backsight.store.experience import DERIVED, RETIREMENTS, STATED
from backsight.store.mapping import METADATA, Noun
from backsight.store.memories import EPISODES, RECALLS, RETRIEVALS
from backsight.store.notes import NOTES, PROPOSALS, REFLECTIONS
from backsight.store.plans import PLAN_EVENTS, PLANS
from backsight.store.state import EQUITY
from backsight.store.strategies import ACCOUNTS, DEPLOYMENTS, STRATEGIES
from backsight.store.trades import FILLS, MARKS, TRADES

REVISIONS = ("0001_0.1.0.dev7",)
"""Oldest first; each names the first release that needs it."""

KEPT: tuple[Noun[Any], ...] = (
    ACCOUNTS,
    STRATEGIES,
    DEPLOYMENTS,
    DECISIONS,
    SEGMENTS,
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
NOUNS = (*KEPT, *(noun.former for noun in KEPT if noun.former is not None))
"""What an owner's audit chain speaks for."""

TABLES = frozenset({AUDIT.table.name, *(noun.table.name for noun in (*NOUNS, *DERIVED, *INDEXED))})

VERSION = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""Kept by the migrations; here so that a new store needs none of them."""


@cache
def _statements(name: str) -> tuple[str, ...]:
    """What makes every table and its indexes in a dialect; PostgreSQL takes all of it at once."""
    dialect = registry.load(name)()
    made: list[DDLElement] = []
    for table in (*METADATA.sorted_tables, VERSION):
        made += [CreateTable(table), *map(CreateIndex, table.indexes)]
    spelt = [str(each.compile(dialect=dialect)) for each in made]
    return (";".join(spelt),) if name == "postgresql" else tuple(spelt)


def create(connection: Connection) -> None:
    """Make all tables at once, as the migrations would have left them."""
    for statement in _statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
    connection.execute(insert(VERSION).values(version_num=REVISIONS[-1]))


def revision(connection: Connection) -> str | None:
    """The revision a store is at."""
    return connection.execute(select(VERSION.c.version_num)).scalar_one_or_none()
