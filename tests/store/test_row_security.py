"""Row-level security on PostgreSQL: what the role of the application can see and change, by SQL and by operations."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, NullPool, create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from backsight.core.errors import BacksightError, Invalid, Refused
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.operation import Operation
from backsight.store import images
from backsight.store.database import Database, open_database
from backsight.store.mapping import METADATA, OWNER
from backsight.store.row_security import WORDS_TABLE
from backsight.store.search import postgres_vectors
from backsight.store.search.vectors import VectorCache
from backsight.testing import T0, FakeClock, a_trade_call
from contracts.test_operations import a_call
from store.search.test_hybrid import RULES, near, scattered, searched, with_vectors, written
from support import fresh_postgres, lived_in_copy, raw

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def application_url(url: str) -> str:
    """The URL of a prepared store for a new role of the application."""
    role = f"application_{abs(hash(url)):x}_{os.getpid()}"
    database = open_database(url)
    database.prepare(role)
    database.prepare(role)  # again, as after an upgrade
    database.close()
    return make_url(url).set(username=role).render_as_string(hide_password=False)


@pytest.fixture
def store() -> str:
    return application_url(fresh_postgres())


@contextmanager
def as_owner(url: str, owner: str | None) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        if owner is not None and engine.dialect.name == "postgresql":
            connection.execute(text("SELECT set_config('backsight.owner', :owner, true)"), {"owner": owner})
        yield connection


def tables_of(connection: Connection) -> list[Any]:
    return list(
        connection.execute(
            text(
                "SELECT relname, relrowsecurity AND relforcerowsecurity AS forced, (SELECT attname FROM pg_index JOIN"
                " pg_attribute ON attrelid = indrelid AND attnum = indkey[0] WHERE indrelid = c.oid AND indisprimary)"
                " AS first, (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid AND polname = 'one_owner') AS"
                " policies"
                " FROM pg_class c WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
                " AND relname <> 'alembic_version'"
            )
        )
    )


def test_every_table_has_its_owner_first_and_a_forced_policy(store: str) -> None:
    database = open_database(store)
    written(database, RULES)
    with_vectors(database, "m", {"cap.md": [1.0, 0.0]})  # makes a table
    with database.reading() as connection:
        tables = tables_of(connection)
    database.close()
    assert len(tables) == len(METADATA.tables) + 2
    assert [row for row in tables if not (row.forced and row.first == OWNER and row.policies == 1)] == []
    assert all(table.primary_key.columns.keys()[0] == OWNER for table in METADATA.tables.values())
    assert all(next(iter(index.columns)).name == OWNER for table in METADATA.tables.values() for index in table.indexes)


def test_raw_sql_sees_and_changes_the_rows_of_one_owner_only() -> None:
    with lived_in_copy("postgresql", Path()) as (template, _):
        url = application_url(template)
        for owner, visible in ((None, False), ("bob", False), ("ana", True)):
            with as_owner(url, owner) as connection:
                rows = {
                    name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
                    for name in METADATA.tables
                }
                assert bool(sum(rows.values())) is visible, owner
                if not visible:
                    changed = [
                        connection.execute(text(statement.format(name))).rowcount
                        for name in METADATA.tables
                        for statement in ("DELETE FROM {}", "UPDATE {} SET owner_id = owner_id")
                    ]
                    assert set(changed) == {0}


@pytest.mark.parametrize(
    "statement",
    [
        'INSERT INTO accounts SELECT (jsonb_populate_record(a, \'{"owner_id": "ana"}\')).* FROM accounts a',
        "UPDATE accounts SET owner_id = 'ana'",
        "ALTER TABLE accounts DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE accounts NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY one_owner ON accounts",
        "CREATE TABLE mine (x int)",
        "SET LOCAL row_security = off; SELECT * FROM accounts",
        "TRUNCATE accounts",
        "CREATE ROLE other SUPERUSER",
        "SELECT backsight_make_vectors('accounts', 3)",
        "SELECT backsight_index_vectors('accounts; DROP TABLE accounts')",
    ],
)
def test_the_role_of_the_application_cannot_get_around_the_policies(store: str, statement: str) -> None:
    with open_memory(store, owner="bob") as memory:
        memory.open_account(venue="v", name="n")
    with pytest.raises(DBAPIError), as_owner(store, "bob") as connection:
        connection.exec_driver_sql(statement)


def identifiers(value: object) -> set[str]:
    return set(UUID.findall(json.dumps(value, default=str)))


IDS: dict[str, str] = {
    "trade_id": "trade_history",
    "episode_id": "episodic_memory",
    "memory_id": "episodic_memory",
    "plan_id": "prospective_memory",
    "belief_id": "semantic_memory",
    "edit_id": "document_writings",
    "proposal_id": "proposals",
    "decision_id": "decision_snapshots",
    "key_id": "api_keys",
    "deployment": "deployments",
    "account": "accounts",
}


def calls(operation: Operation, ana: dict[str, str], given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The calls of an operation with what belongs to Ana: all of it together, and each thing alone."""
    mine = {name: ana[name] for name in operation.arguments.model_fields if name in ana}
    if "recalls" in operation.arguments.model_fields:
        mine["recalls"] = [ana["recall"]]  # type: ignore[assignment]
    yield {**given, **mine}
    for name, value in mine.items():
        yield {**given, name: value}
    yield given


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_no_operation_gives_one_owner_anything_of_another(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has no policies: there, only the queries separate owners."""
    bobs = tmp_path / "bob"
    bobs.mkdir()
    monkeypatch.chdir(bobs)
    with lived_in_copy(database, tmp_path) as (template, last):
        url, clock = application_url(template) if database == "postgresql" else template, FakeClock(last)
        with open_memory(url, owner="ana", clock=clock) as memory:
            memory.create_key(name="ana")
            everything = "".join(json.dumps(link, default=str) for link in memory.export_audit().links)
            ana = {
                "recall": memory.recall_memories(symbol="XAUUSD").recall,
                "cursor": memory.list_trades(limit=1, mode="all").next_cursor or "",
                "head": memory.export_audit().head,
            }
        with as_owner(url, "ana") as connection:
            for name, table in IDS.items():
                ana[name] = connection.execute(text(f"SELECT id FROM {table} ORDER BY id LIMIT 1")).scalar_one()
        hidden = identifiers(everything)
        assert len(hidden) > 50
        with open_memory(url, owner="bob", clock=clock) as bob:
            answers = list(all_answers(bob, ana, bobs))
        for name, sent, answer in answers:
            assert identifiers(answer) & hidden <= identifiers(sent), name
        assert {name for name, _, _ in answers} == set(OPERATIONS)


def all_answers(bob: Memory, ana: dict[str, str], folder: Path) -> Iterator[tuple[str, Any, Any]]:
    for name, operation in OPERATIONS.items():
        given = a_call(operation)
        for sent in calls(operation, ana, given):
            try:
                answer = operation.as_json(bob.run(operation, sent))
            except BacksightError as error:
                answer = error.as_json()
            if name == "export_data":
                exported = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
                answer = [answer, exported]
            yield name, sent, answer


def test_a_cache_file_of_another_owner_is_not_used(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKSIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(images, "MIN_FILE_ROWS", 1)
    for owner in ("ana", "bob"):
        with open_memory(store, owner=owner, clock=FakeClock(T0)) as memory:
            memory.remember_trade(**a_trade_call(symbol=f"OF-{owner}"))
            memory.recall_memories(symbol="X", mode="all")
    files = sorted(tmp_path.glob("*.columns"), key=lambda path: b"ana " in path.read_bytes()[:600])
    assert len(files) == 2
    shutil.copy(files[1], files[0])
    with open_memory(store, owner="bob", clock=FakeClock(T0)) as memory:
        assert "OF-ana" not in str(memory.recall_memories(symbol="X", mode="all"))


def test_the_index_of_words_is_used_under_the_policies(store: str) -> None:
    database = open_database(store)
    for owner in ("ana", "bob"):
        written(database, {f"{number}.md": f"word{number} common" for number in range(10)}, owner=owner)
    with raw(str(make_url(store).set(username="postgres"))) as connection:
        many = "SELECT o, -i, false, 2, to_tsvector('simple', 'other' || i) FROM generate_series(1, 10000) i"
        connection.execute(text(f"INSERT INTO {WORDS_TABLE} {many}, (VALUES ('ana'), ('bob')) owners (o)"))
        connection.execute(text(f"ANALYZE {WORDS_TABLE}"))
    scans = scans_of(database, f"{WORDS_TABLE}_found")
    assert list(searched(database, "word7")) == ["7.md"]
    assert scans_of(database, f"{WORDS_TABLE}_found") > scans
    with database.reading("nobody") as connection:
        assert connection.execute(text("SELECT * FROM backsight_words('''word7''', true, NULL)")).all() == []
    database.close()


def test_the_index_of_vectors_is_used_under_the_policies(store: str) -> None:
    database = open_database(f"{store}%20-cenable_sort%3Doff")
    direction, cosines = scattered(database, 250)
    with database.writing("ana") as connection:
        postgres_vectors.build_hnsw_index(connection, "ana", "m", minimum=100)
    scans = scans_of(database, "%_near")
    assert set(near(database, VectorCache(), direction)) <= set(cosines)
    assert scans_of(database, "%_near") > scans
    database.close()


def scans_of(database: Database, index: str) -> int:
    """How often an index of the store was used."""
    with database.reading() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
    with database.reading() as connection:
        counted = text(
            "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE schemaname = current_schema"
            " AND indexrelname LIKE :index"
        )
        return int(connection.execute(counted, {"index": index}).scalar_one())


def test_only_a_role_without_special_rights_is_prepared(tmp_path: Path) -> None:
    database = open_database(fresh_postgres())
    assert "bypasses row-level security" in database.remarks[0]
    with pytest.raises(Refused, match="owns the tables"):
        database.prepare("postgres")
    database.close()
    on_file = open_database(f"sqlite:///{tmp_path}/store.db")
    with pytest.raises(Invalid, match="SQLite has no roles"):
        on_file.prepare("application")
    on_file.close()


def test_the_role_of_the_application_upgrades_nothing(store: str) -> None:
    engine = create_engine(make_url(store).set(username="postgres"))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
        for table in (*reversed(METADATA.sorted_tables),):
            connection.execute(text(f"DROP TABLE {table.name}"))
    engine.dispose()
    with pytest.raises(Refused, match="prepare-database"):
        open_database(store)


def test_doctor_has_no_remark_for_the_role_of_the_application(store: str) -> None:
    with open_memory(store) as memory:
        assert memory.doctor().remarks == ()
