"""SQLite databases of other programs, opened for reading only."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

SQLITE = b"SQLite format 3\0"
"""How a database begins."""
HEADER, LARGEST_PAGE = 100, 65_536
"""Bytes of the header, and of the largest page, which the header writes as 1 (sqlite.org/fileformat.html)."""
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged database raises; SQLite quotes the damage in its messages, which then are not UTF-8."""


def readonly(path: Path) -> sqlite3.Connection:
    """A connection that cannot write; unless the database has a write-ahead log, no file is made beside it either."""
    options = "mode=ro" if write_ahead_log(path) else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{options}", uri=True)
    connection.row_factory = sqlite3.Row
    return connection


def write_ahead_log(path: Path) -> bool:
    """Whether a database has a log beside it, with changes that are not in the database yet."""
    log = path.with_name(path.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def size_in_header(start: bytes) -> int:
    """The size of a database in bytes, as its header tells it; 0 if the header does not."""
    if len(start) < HEADER or start[24:28] != start[92:96]:
        return HEADER if len(start) < HEADER else 0
    page = int.from_bytes(start[16:18], "big")
    return (LARGEST_PAGE if page == 1 else page) * int.from_bytes(start[28:32], "big")


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns of a table; none if there is no such table. A view is none: its query could take forever."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    return {row["name"] for row in connection.execute(f"PRAGMA table_info({table})")} if known else set()
