"""Databases of other programs are read, and nothing is written beside them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from backsight.importers.sqlite_files import columns_of, readonly


def a_database(path: Path, *, journal: str = "delete") -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        connection.execute("CREATE TABLE trades (id, pair)")
        connection.execute("CREATE VIEW looks AS SELECT id FROM trades")
        connection.commit()
    return path


def test_columns_are_those_of_tables_only(tmp_path: Path) -> None:
    with closing(readonly(a_database(tmp_path / "a ?#.sqlite"))) as connection:
        assert columns_of(connection, "trades") == {"id", "pair"}
        assert columns_of(connection, "looks") == columns_of(connection, "none") == set()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_nothing_can_be_written(tmp_path: Path, journal: str) -> None:
    path = a_database(tmp_path / "a.sqlite", journal=journal)
    with closing(readonly(path)) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM trades")
    assert [each.name for each in tmp_path.iterdir()] == ["a.sqlite"]


def test_what_is_still_in_the_log_is_read(tmp_path: Path) -> None:
    path = a_database(tmp_path / "a.sqlite", journal="wal")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO trades VALUES (1, 'BTC/USDT')")
        writer.commit()
        with closing(readonly(path)) as connection:
            assert [tuple(row) for row in connection.execute("SELECT * FROM trades")] == [(1, "BTC/USDT")]
