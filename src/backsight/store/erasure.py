"""Removing everything of an owner: rows, words, vectors, and the links of the audit chain."""

from sqlalchemy import Connection, delete, select, text

from backsight.store import audit
from backsight.store.audit import AUDIT
from backsight.store.documents import VECTORS
from backsight.store.mapping import METADATA, OWNER
from backsight.store.reading import row_cache
from backsight.store.search.postgres_vectors import erase_vectors
from backsight.store.search.slot import word_index
from backsight.store.tables import TABLES


def erase_rows(connection: Connection, owner: str) -> int:
    """Delete every row of an owner, the audit chain included; the number of rows without the links of the chain."""
    audit.head(connection, owner)  # the transaction remembers the head, to which the next link is appended
    if connection.dialect.name == "sqlite":
        connection.execute(text("PRAGMA secure_delete=ON"))
    models = select(VECTORS.table.c.model).where(VECTORS.table.c[OWNER] == owner).distinct()
    erase_vectors(connection, owner, list(connection.execute(models).scalars()))
    word_index(connection).erase(connection, owner)
    rows = 0
    for table in reversed(METADATA.sorted_tables):
        if table.name in TABLES:
            deleted = connection.execute(delete(table).where(table.c[OWNER] == owner)).rowcount
            rows += 0 if table is AUDIT.table else deleted
    row_cache(connection).clear()
    return rows
