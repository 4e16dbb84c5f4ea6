"""The audit chain: every command is a link, and a link names the one before it."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, digest
from backsight.core.instants import format_instant

GENESIS = "0" * 64

Cell = str | int | float | None
"""A stored value as JSON has it; instants are fixed-width text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one command did to one row, by table and key."""

    table: str
    key: tuple[Cell, ...]
    """The key without its owner, who is the chain's."""
    set: Mapping[str, Cell] | None
    """All columns of the row as it now is; None: the row was taken back."""
    was: str | None = None
    """The short hash of the row that it replaces, which a batch may have written; None where there was none."""

    def as_json(self) -> dict[str, object]:
        told: dict[str, object] = {"table": self.table, "key": list(self.key)}
        told["set"] = None if self.set is None else dict(self.set)
        return told if self.was is None else {**told, "was": self.was}


ITEM_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Many rows that one command added to a table: a short hash of each instead of its columns."""

    table: str
    items: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        return {"table": self.table, "count": len(self.items), "items": "".join(sorted(self.items))}


def item_hash(cells: Mapping[str, Cell]) -> str:
    """The first 16 hex digits of SHA-256 over a row's columns.

    >>> item_hash({"a": 1, "b": None}) == item_hash({"b": None, "a": 1})
    True
    >>> len(item_hash({}))
    16
    """
    return digest(cells)[:ITEM_LENGTH]


def items_of(joined: str) -> list[str]:
    """The hashes that a batch was written with.

    >>> items_of("0" * 16 + "1" * 16)
    ['0000000000000000', '1111111111111111']
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
    """Canonical JSON of what changed."""
    previous: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of a chain at some moment; kept elsewhere, it shows whether the chain was cut or rewritten since."""

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


EMPTY = Head(sequence=0, hash=GENESIS)


def parse_head(text: str) -> Head:
    """A head from the text that an export printed.

    >>> parse_head("0:" + "0" * 64) == EMPTY
    True
    """
    sequence, _, value = text.partition(":")
    if not sequence.isascii() or not sequence.isdigit() or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise Invalid("not a head; give the text an export printed, like 42:9f86d0…", field="head")
    return Head(sequence=int(sequence), hash=value)


def link_hash(row: AuditRow) -> str:
    """SHA-256 over everything in a link but the hash itself."""
    content = {
        "owner": row.owner_id,
        "sequence": row.sequence,
        "at": format_instant(row.at),
        "actor": row.actor,
        "operation": row.operation,
        "changes": row.changes,
        "previous": row.previous,
    }
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def next_link(
    head: Head, changes: Iterable[Change | Batch], *, owner_id: str, at: datetime, actor: str, operation: str
) -> AuditRow:
    """The link that follows a head."""
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
    return AuditRow(**{name: getattr(row, name) for name in row.__slots__ if name != "hash"}, hash=link_hash(row))


FindingKind = Literal["changed", "removed", "added", "link_changed", "link_missing", "link_added", "cut_off"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as the chain says, and where."""

    kind: FindingKind
    table: str
    key: str
    detail: str
