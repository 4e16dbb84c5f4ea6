"""Vectors in PostgreSQL: where they are compared, and the HNSW index."""

import pytest
from sqlalchemy import text as sql

from backsight.store.database import Database, open_database
from backsight.store.search import postgres_vectors
from backsight.store.search.vectors import VectorCache
from store.search.test_hybrid import RULES, assert_nearest, near, scattered, with_passages, with_vectors, written


def compares(database: Database) -> bool:
    """Whether the database compares vectors itself."""
    with database.reading("ana") as connection:
        return postgres_vectors.vector_table(connection, "ana", "m") is not None


def test_vectors_are_compared_in_the_database_if_supported(database: Database, in_the_database: bool) -> None:
    written(database, RULES)
    assert not compares(database)
    with_vectors(database, "m", {"cap.md": [1.0, 0.0]})
    assert compares(database) is (in_the_database and database.name.startswith("postgresql"))


def test_an_hnsw_index_finds_the_same_chunks(postgres_url: str) -> None:
    database = open_database(f"{postgres_url}%20-cenable_sort%3Doff")  # so that so few are not simply sorted
    direction, cosines = scattered(database, 250)
    graphs = sql(
        "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE schemaname = current_schema"
        " AND indexrelname LIKE '%_near'"
    )
    with database.writing("ana") as connection:
        postgres_vectors.build_hnsw_index(connection, "ana", "m", minimum=100)
        before = connection.execute(graphs).scalar_one()
    assert_nearest(database, direction, cosines)
    with database.reading("ana") as connection:
        connection.execute(sql("SELECT pg_stat_force_next_flush()"))
    with database.reading("ana") as connection:
        assert connection.execute(graphs).scalar_one() == before + 1  # within filters there is none
    database.close()


def test_an_hnsw_index_finds_as_many_chunks_however_many_passages_they_have(postgres_url: str) -> None:
    database = open_database(f"{postgres_url}%20-cenable_sort%3Doff")
    direction, cosines = scattered(database, 60)
    toward = [[x + place / 1_000 for place, x in enumerate(direction)]] * 200
    with_passages(database, "m", {"even/000.md": toward})
    with database.writing("ana") as connection:
        postgres_vectors.build_hnsw_index(connection, "ana", "m", minimum=10)
    assert set(near(database, VectorCache(), direction)) == set(cosines)
    database.close()


def test_vectors_stored_before_the_extension_are_not_lost(postgres_url: str) -> None:
    database = open_database(postgres_url)
    with pytest.MonkeyPatch.context() as without_it:
        without_it.setattr(postgres_vectors, "_create_table", lambda *_, **__: None)
        direction, cosines = scattered(database, 30)
        with_passages(database, "m", {"even/000.md": [direction] * 1_100})  # more than are read at once
    assert not compares(database)
    written(database, {"new.md": "new"})
    with_vectors(database, "m", {"new.md": direction})
    assert compares(database)
    assert set(near(database, VectorCache(), direction)) == {*cosines, "new.md"}
    assert near(database, VectorCache(), direction)["even/000.md"] == 0.7
    with database.reading("ana") as connection:
        counted = f"SELECT count(*) FROM {postgres_vectors._table_name('ana', 'm')}"
        assert connection.execute(sql(counted)).scalar_one() == 1_130
    database.close()
