"""The audit chain: each command appends a link, and each link contains the hash of the link before it."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, digest
from backsight.core.instants import format_instant

GENESIS = "0" * 64

Cell = str | int | float | None
"""A column value in JSON; instants are fixed-width text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditChange:
    """What one command did to one row."""

    table: str
    key: tuple[Cell, ...]
    """The primary key without the owner: a chain has one owner."""
    set: Mapping[str, Cell] | None
    """All columns of the row after the change; None: the row was deleted."""
    was: str | None = None
    """The short hash of the row before the change; None for a new row."""

    def as_json(self) -> dict[str, object]:
        change: dict[str, object] = {"table": self.table, "key": list(self.key)}
        change["set"] = None if self.set is None else dict(self.set)
        return change if self.was is None else {**change, "was": self.was}


ITEM_LENGTH = 32
"""Hex digits of a row hash: 128 bits, so that nobody finds a second row with the hash of a given one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditBatch:
    """Many rows that one command added to a table: a short hash of each row instead of its columns."""

    table: str
    items: str
    """The row hashes, joined: a text takes a quarter of the memory of single hashes."""

    def as_json(self) -> dict[str, object]:
        return {"table": self.table, "items": _sorted_items(self.items)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Everything of the owner was removed, the links before this one included: the chain begins here."""

    rows: int

    def as_json(self) -> dict[str, object]:
        return {"table": "*", "erased": self.rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRemoval:
    """Rows of batches that one command removed because they were old: the short hash of each row."""

    table: str
    items: str
    before: datetime
    """Rows that were known before this instant were removed."""

    def as_json(self) -> dict[str, object]:
        return {"table": self.table, "removed": _sorted_items(self.items), "before": format_instant(self.before)}


RETENTION = "retention"
"""The operation of links that remove old rows."""
ERASE = "erase_owner"
"""The operation of a link with which a chain may begin in place of link 1."""

AuditItem = AuditChange | AuditBatch | AuditRemoval | Erasure
"""What a link records."""

MANY_ITEMS = 10_000


def _sorted_items(joined: str) -> str:
    if len(joined) < MANY_ITEMS * ITEM_LENGTH:
        return "".join(sorted(items_of(joined)))
    import numpy as np  # slow to import, and large imports of files have imported it already

    items = bytearray(joined, "ascii")
    np.frombuffer(items, dtype=f"S{ITEM_LENGTH}").sort()  # in place: the items of a large import are tens of megabytes
    return items.decode("ascii")


def item_hash(cells: Mapping[str, Cell]) -> str:
    """The short hash of a row: the first 32 hex digits of SHA-256 over its columns.

    >>> item_hash({"a": 1, "b": None}) == item_hash({"b": None, "a": 1})
    True
    >>> len(item_hash({}))
    32
    """
    return digest(cells)[:ITEM_LENGTH]


def items_of(joined: str) -> list[str]:
    """The row hashes of a batch, from the text that the link stores.

    >>> [item[0] for item in items_of("0" * 32 + "1" * 32)]
    ['0', '1']
    """
    return [joined[at : at + ITEM_LENGTH] for at in range(0, len(joined), ITEM_LENGTH)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One link of an owner's chain."""

    owner_id: str
    sequence: int
    at: datetime
    actor: str
    operation: str
    changes: str
    """Canonical JSON: a list of row changes and row batches."""
    previous: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The last link of a chain at some moment.

    A head that is saved elsewhere proves later whether links were cut off or rewritten.
    """

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


EMPTY = ChainHead(sequence=0, hash=GENESIS)


def parse_head(text: str) -> ChainHead:
    """Parse a head from the text that an export printed.

    >>> parse_head("0:" + "0" * 64) == EMPTY
    True
    """
    sequence, _, value = text.partition(":")
    if not sequence.isascii() or not sequence.isdigit() or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise Invalid(
            "this is not a chain head; give the head that export_audit printed, like 42:9f86d0…", field="head"
        )
    return ChainHead(sequence=int(sequence), hash=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The head of a chain when it was verified, and the number of rows that it recorded then.

    Whoever can change rows can change anything else in the store, so a checkpoint is worth as much as the place where
    it is kept: outside the store.
    """

    head: ChainHead
    rows: int

    def __str__(self) -> str:
        return f"{self.head}:{self.rows}"


def parse_checkpoint(text: str) -> Checkpoint:
    """Parse a checkpoint from the text that verify_audit printed.

    >>> str(parse_checkpoint(f"{EMPTY}:0")) == f"{EMPTY}:0"
    True
    """
    head, _, rows = text.rpartition(":")
    if not rows.isascii() or not rows.isdigit() or head.count(":") != 1:
        message = "this is not a checkpoint; give the `checkpoint` that verify_audit printed, like 42:9f86d0…:1200"
        raise Invalid(message, field="since")
    return Checkpoint(head=parse_head(head), rows=int(rows))


NO_CHANGES = '"changes":""'
CHARACTERS_AT_ONCE = 1_000_000


def link_hash(row: AuditRow) -> str:
    """SHA-256 over the canonical JSON of all fields of a link except the hash itself.

    The changes of a large import are hashed in parts, so that no copy of all of them is made.
    """
    content = {
        "owner": row.owner_id,
        "sequence": row.sequence,
        "at": format_instant(row.at),
        "actor": row.actor,
        "operation": row.operation,
        "changes": "",
        "previous": row.previous,
    }
    before, _, after = canonical_json(content).partition(NO_CHANGES)
    hashed = hashlib.sha256(f'{before}"changes":"'.encode())
    for first in range(0, len(row.changes), CHARACTERS_AT_ONCE):
        hashed.update(canonical_json(row.changes[first : first + CHARACTERS_AT_ONCE])[1:-1].encode())
    hashed.update(f'"{after}'.encode())
    return hashed.hexdigest()


def next_link(
    head: ChainHead,
    changes: Iterable[AuditItem],
    *,
    owner_id: str,
    at: datetime,
    actor: str,
    operation: str,
) -> AuditRow:
    """The link to append after a head."""
    row = AuditRow(
        owner_id=owner_id,
        sequence=head.sequence + 1,
        at=at,
        actor=actor,
        operation=operation,
        changes=canonical_json([change.as_json() for change in changes]),
        previous=head.hash,
        hash="",
    )
    return replace(row, hash=link_hash(row))


FindingKind = Literal["changed", "removed", "added", "link_changed", "link_missing", "link_added", "cut_off", "damaged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference between the stored rows and the audit chain."""

    kind: FindingKind
    table: str
    key: str
    detail: str
