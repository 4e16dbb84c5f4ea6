"""The stored audit chain: one chain per owner, one link per command."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, literal_column, select, text

from backsight.core.audit import EMPTY, ERASE, RETENTION, AuditItem, AuditRow, ChainHead, items_of, next_link
from backsight.core.instants import parse_instant
from backsight.store.mapping import noun
from backsight.store.reading import OWNED, owned, parameters
from backsight.store.transaction_state import state_of

IMPORTS = (
    "import_bars",
    "import_data",
    "import_events",
    "import_fills",
    "import_positions",
    "import_trades",
    "migrate_legacy",
)
"""The operations that read files into the store."""
_IS_IMPORT = f"operation IN ({', '.join(map(repr, IMPORTS))})"
AUDIT = noun(
    AuditRow,
    "audit_log",
    key=("sequence",),
    indexed_where={("operation",): f"operation = '{RETENTION}'", ("sequence",): _IS_IMPORT},
    compressed=("changes",),
)


_HEAD = (
    select(AUDIT.table.c.sequence, AUDIT.table.c.hash)
    .where(AUDIT.table.c.owner_id == OWNED)
    .order_by(AUDIT.table.c.sequence.desc())
    .limit(1)
)
_HEAD_INSTANT = (
    select(AUDIT.table.c.at).where(AUDIT.table.c.owner_id == OWNED).order_by(AUDIT.table.c.sequence.desc()).limit(1)
)
_HASH = select(AUDIT.table.c.hash).where(
    AUDIT.table.c.owner_id == OWNED, AUDIT.table.c.sequence == bindparam("sequence")
)
_CHANGES = select(AUDIT.table.c.at, AUDIT.table.c.changes).where(
    AUDIT.table.c.owner_id == OWNED,
    AUDIT.table.c.sequence > bindparam("after"),
    AUDIT.table.c.sequence <= bindparam("until"),
)
_APPEND = insert(AUDIT.table)


def head(connection: Connection, owner: str) -> ChainHead:
    """The last link of an owner's chain; a transaction reads it once."""
    state = state_of(connection)
    if state is not None and owner in state.heads:
        return state.heads[owner]
    last = connection.execute(_HEAD, parameters(owner)).first()
    chain_head = EMPTY if last is None else ChainHead(sequence=last.sequence, hash=last.hash)
    if state is not None:
        state.heads[owner] = state.first_heads[owner] = chain_head
    return chain_head


def owners(connection: Connection) -> list[str]:
    """The owners who have written to the store, as far as row-level security lets this connection see them."""
    c = AUDIT.table.c
    return list(connection.execute(select(c.owner_id).distinct().order_by(c.owner_id)).scalars())


def head_instant(connection: Connection, owner: str) -> datetime | None:
    """When the last link of an owner's chain was written; None for an empty chain."""
    at: datetime | None = connection.execute(_HEAD_INSTANT, parameters(owner)).scalar()
    return at


class ImportLink(NamedTuple):
    """The link of an import: when it was made, by which operation and caller."""

    sequence: int
    at: datetime
    operation: str
    actor: str


def last_imports(connection: Connection, owner: str, *, until: datetime, limit: int) -> list[ImportLink]:
    """The last imports up to an instant, newest first."""
    c = AUDIT.table.c
    links = select(c.sequence, c.at, c.operation, c.actor).where(c.owner_id == owner, text(_IS_IMPORT), c.at <= until)
    return [ImportLink(*row) for row in connection.execute(links.order_by(c.sequence.desc()).limit(limit))]


def contains(connection: Connection, owner: str, head: ChainHead) -> bool:
    """Whether an owner's chain has this link."""
    return connection.execute(_HASH, parameters(owner, sequence=head.sequence)).scalar() == head.hash


def instant_of(connection: Connection, owner: str, head: ChainHead) -> datetime | None:
    """When a link was written; None if the chain does not have it."""
    c = AUDIT.table.c
    statement = select(c.at).where(c.owner_id == owner, c.sequence == head.sequence, c.hash == head.hash)
    at: datetime | None = connection.execute(statement).scalar()
    return at


def beginning(connection: Connection, owner: str) -> AuditRow | None:
    """The link with which an owner's chain begins, if everything before it was erased; None for a chain from link 1."""
    first = next(links(connection, owner, limit=1), None)
    return first if first is not None and first.sequence > 1 and first.operation == ERASE else None


def count_links(connection: Connection, owner: str) -> int:
    """The number of links that an owner's chain has."""
    return int(connection.execute(select(func.count()).where(AUDIT.table.c.owner_id == owner)).scalar_one())


def removals(connection: Connection, owner: str) -> list[tuple[str, int, datetime]]:
    """What `retention` removed, oldest first: the table, the number of rows, and before which instant."""
    is_retention = AUDIT.table.c.operation == literal_column(f"'{RETENTION}'")  # a literal, for the partial index
    rows = connection.execute(owned(AUDIT, owner, is_retention).order_by(AUDIT.table.c.sequence))
    changes = (change for row in rows for change in json.loads(AUDIT.from_row(row).changes))
    return [
        (change["table"], len(items_of(change["removed"])), parse_instant(change["before"]))
        for change in changes
        if "removed" in change
    ]


def thinned_before(connection: Connection, owner: str) -> datetime | None:
    """The latest instant before which prompts and recalls were removed; None if `retention` removed nothing."""
    return max((before for _, _, before in removals(connection, owner)), default=None)


def changes_of(
    connection: Connection, owner: str, table: str, *, after: ChainHead, until: ChainHead
) -> Iterator[tuple[datetime, str]]:
    """The instant and the changes, as JSON, of every link between two heads that changed a table."""
    mention = f'"table":"{table}"'
    for row in connection.execute(_CHANGES, parameters(owner, after=after.sequence, until=until.sequence)):
        if mention in row.changes:
            yield row.at, row.changes


def append(
    connection: Connection,
    changes: Sequence[AuditItem],
    *,
    owner: str,
    at: datetime,
    actor: str,
    operation: str,
) -> None:
    """Append the link that records these changes."""
    link = next_link(head(connection, owner), changes, owner_id=owner, at=at, actor=actor, operation=operation)
    del changes  # of a large import these are tens of megabytes, which the link has as text
    connection.execute(_APPEND, AUDIT.to_row(link))
    state = state_of(connection)
    if state is not None:
        state.heads[owner] = ChainHead(sequence=link.sequence, hash=link.hash)


def links(connection: Connection, owner: str, *, after: int = 0, limit: int | None = None) -> Iterator[AuditRow]:
    """An owner's links in order, starting after a sequence number."""
    c = AUDIT.table.c
    statement = owned(AUDIT, owner, c.sequence > after).order_by(c.sequence).limit(limit)
    for row in connection.execute(statement):
        yield AUDIT.from_row(row)
