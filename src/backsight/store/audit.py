"""The stored audit chain: one chain per owner, one link per command."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select

from backsight.core.audit import EMPTY, AuditBatch, AuditChange, AuditRow, ChainHead, next_link
from backsight.store.mapping import noun
from backsight.store.reading import OWNED, owned, parameters

AUDIT = noun(AuditRow, "audit_log", key=("sequence",))


_HEAD = (
    select(AUDIT.table.c.sequence, AUDIT.table.c.hash)
    .where(AUDIT.table.c.owner_id == OWNED)
    .order_by(AUDIT.table.c.sequence.desc())
    .limit(1)
)
_HASH = select(AUDIT.table.c.hash).where(
    AUDIT.table.c.owner_id == OWNED, AUDIT.table.c.sequence == bindparam("sequence")
)
_CHANGES = select(AUDIT.table.c.at, AUDIT.table.c.changes).where(
    AUDIT.table.c.owner_id == OWNED,
    AUDIT.table.c.sequence > bindparam("after"),
    AUDIT.table.c.sequence <= bindparam("until"),
    AUDIT.table.c.changes.like(bindparam("mention"), escape="/"),
)
_APPEND = insert(AUDIT.table)


def head(connection: Connection, owner: str) -> ChainHead:
    """The last link of an owner's chain."""
    last = connection.execute(_HEAD, parameters(owner)).first()
    return EMPTY if last is None else ChainHead(sequence=last.sequence, hash=last.hash)


def contains(connection: Connection, owner: str, head: ChainHead) -> bool:
    """Whether an owner's chain has this link."""
    return connection.execute(_HASH, parameters(owner, sequence=head.sequence)).scalar() == head.hash


def changes_of(
    connection: Connection, owner: str, table: str, *, after: ChainHead, until: ChainHead
) -> Iterator[tuple[datetime, str]]:
    """The instant and the changes, as JSON, of every link between two heads that changed a table."""
    mention = '%"table":"{}"%'.format(table.replace("_", "/_"))
    values = parameters(owner, after=after.sequence, until=until.sequence, mention=mention)
    for row in connection.execute(_CHANGES, values):
        yield row.at, row.changes


def append(
    connection: Connection,
    changes: Sequence[AuditChange | AuditBatch],
    *,
    owner: str,
    at: datetime,
    actor: str,
    operation: str,
) -> None:
    """Append the link that records these changes."""
    link = next_link(head(connection, owner), changes, owner_id=owner, at=at, actor=actor, operation=operation)
    connection.execute(_APPEND, AUDIT.to_row(link))


def links(connection: Connection, owner: str, *, after: int = 0, limit: int | None = None) -> Iterator[AuditRow]:
    """An owner's links in order, starting after a sequence number."""
    c = AUDIT.table.c
    statement = owned(AUDIT, owner, c.sequence > after).order_by(c.sequence).limit(limit)
    for row in connection.execute(statement):
        yield AUDIT.from_row(row)
