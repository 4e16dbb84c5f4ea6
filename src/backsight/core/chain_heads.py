"""Heads of audit chains, recorded outside the database and signed with a key that the database does not have.

Whoever can write the database can rewrite a chain from its first link, or cut it off. A head that was recorded
elsewhere contradicts the result. Each line of the file has one head; HMAC-SHA256 signs it (RFC 2104).
"""

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from backsight.core.audit import ERASE, ChainHead, parse_head
from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json
from backsight.core.instants import format_instant, parse_instant

RESTORE = "restore"
"""The operation of a head after which the chain continues from a backup: later links were given up."""
SIGNATURE = "signature"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHead:
    """The head of an owner's chain after a command."""

    owner_id: str
    head: ChainHead
    operation: str
    at: datetime


def head_line(record: RecordedHead, key: bytes | None) -> str:
    """The line of the heads file, without its end; unsigned if there is no key.

    >>> from datetime import UTC
    >>> from backsight.core.audit import EMPTY
    >>> record = RecordedHead(owner_id="ana", head=EMPTY, operation="doctor", at=datetime(2026, 1, 5, tzinfo=UTC))
    >>> parse_line(head_line(record, b"key"), b"key") == record
    True
    >>> parse_line(head_line(record, b"other"), b"key")
    'not signed'
    >>> parse_line(head_line(record, b"key")[:-20], b"key")
    'unreadable'
    """
    content = {
        "owner": record.owner_id,
        "head": str(record.head),
        "operation": record.operation,
        "at": format_instant(record.at),
    }
    return canonical_json(content if key is None else {**content, SIGNATURE: _signature(content, key)})


def _signature(content: dict[str, str], key: bytes) -> str:
    return hmac.new(key, canonical_json(content).encode(), hashlib.sha256).hexdigest()


def parse_line(line: str, key: bytes | None) -> RecordedHead | Literal["unreadable", "not signed"]:
    """The head in a line of the heads file. If a key is given, only a line that it signed is believed."""
    try:
        content = json.loads(line)
        signature = content.pop(SIGNATURE, "")
        record = RecordedHead(
            owner_id=content["owner"],
            head=parse_head(content["head"]),
            operation=content["operation"],
            at=parse_instant(content["at"]),
        )
        is_signed = key is None or hmac.compare_digest(_signature(content, key), signature)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Invalid):
        return "unreadable"
    return record if is_signed else "not signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChain:
    """What the recorded heads say about one owner's chain."""

    hashes: dict[int, set[str]] = field(default_factory=dict)
    """By sequence number: the hash of the link. Two hashes mean that the chain was replaced and continued."""
    newest: RecordedHead | None = None
    restored: RecordedHead | None = None
    """The last head from which a restored backup continues."""
    unsigned: tuple[int, ...] = ()
    """Numbers of lines that the key did not sign."""
    unreadable: int = 0
    """Lines that are no heads; for example one that was cut off by a full disk."""

    @property
    def last(self) -> int:
        """The sequence number of the last recorded link; 0 without any."""
        return max(self.hashes, default=0)


def recorded_chain(lines: Iterable[str], owner: str, key: bytes | None) -> RecordedChain:
    """Follow the lines of a heads file in order.

    The head of an erasure replaces all heads before it, and a restored backup gives up the heads after it. Both count
    only if they are recorded here: the database cannot say by itself that it was erased.
    """
    hashes: dict[int, set[str]] = {}
    newest = restored = None
    first, unreadable, unsigned = 0, 0, list[int]()
    for number, line in enumerate(lines, start=1):
        record = parse_line(line, key)
        if record == "unreadable":
            unreadable += 1
        elif record == "not signed":
            unsigned.append(number)
        elif record.owner_id == owner:
            sequence = record.head.sequence
            if record.operation == RESTORE:
                first, restored = 0, record
                hashes = {each: known for each, known in hashes.items() if each <= sequence}
            elif record.operation == ERASE:
                first, hashes = sequence, {}
            if sequence >= first:  # another process may have recorded an erased link late
                hashes.setdefault(sequence, set()).add(record.head.hash)
                newest = record
    return RecordedChain(
        hashes=hashes, newest=newest, restored=restored, unsigned=tuple(unsigned), unreadable=unreadable
    )
