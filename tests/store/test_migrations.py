"""The migrations and the schema say the same, on both databases."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect
from sqlalchemy.engine.interfaces import ReflectedIndex

from backsight.memory import open_memory
from backsight.store import schema
from backsight.store.mapping import METADATA
from backsight.store.migrations.run import configuration, upgrade
from backsight.testing import a_trade_call


def differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), METADATA))


def where_of(index: ReflectedIndex) -> dict[str, str]:
    return {name: str(value) for name, value in index.get("dialect_options", {}).items()}


def described(connection: Connection) -> dict[str, object]:
    seen = inspect(connection)
    return {
        table: (
            [(c["name"], str(c["type"]), c["nullable"]) for c in seen.get_columns(table)],
            seen.get_pk_constraint(table)["constrained_columns"],
            sorted(str(key) for key in seen.get_foreign_keys(table)),
            sorted(str({**index, "dialect_options": where_of(index)}) for index in seen.get_indexes(table)),
        )
        for table in sorted(seen.get_table_names())
    }


def test_a_new_store_is_what_the_migrations_make(url: str, postgres_url: str, tmp_path: Path) -> None:
    open_memory(url).close()
    made = create_engine(url)
    steps = create_engine(f"sqlite:///{tmp_path}/steps.db" if made.dialect.name == "sqlite" else postgres_url)
    with made.connect() as one, steps.begin() as other:
        upgrade(other)
        assert differences(one) == []
        assert differences(other) == []
        assert described(one) == described(other)
        assert schema.revision(one) == schema.revision(other)
    made.dispose()
    steps.dispose()


def test_a_store_that_the_migrations_made_works(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    with open_memory(url) as memory:
        memory.remember_trade(**a_trade_call())
        assert memory.verify_audit().intact


def test_every_step_is_listed_oldest_first() -> None:
    steps = ScriptDirectory.from_config(configuration()).walk_revisions()
    assert tuple(reversed([step.revision for step in steps])) == schema.REVISIONS
