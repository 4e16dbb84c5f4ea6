"""SQLite databases of other programs, opened for reading only."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

SQLITE = b"SQLite format 3\0"
"""How a database begins."""
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged database raises; SQLite quotes the damage in its messages, which then are not UTF-8."""


def readonly(path: Path) -> sqlite3.Connection:
    """A connection that cannot write; unless the database has a write-ahead log, no file is made beside it either."""
    log = path.with_name(path.name + "-wal")
    options = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{options}", uri=True)
    connection.row_factory = sqlite3.Row
    return connection


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table; none if there is no such table. A view is none: its query could take forever."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")} if known else set()
