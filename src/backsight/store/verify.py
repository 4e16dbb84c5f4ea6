"""Verification: compare every stored row with the audit chain and report each difference."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from backsight.core.audit import (
    EMPTY,
    ERASE,
    AuditRow,
    Cell,
    ChainHead,
    Checkpoint,
    Finding,
    FindingKind,
    item_hash,
    items_of,
    link_hash,
)
from backsight.core.chain_heads import RecordedChain
from backsight.core.errors import BacksightError
from backsight.core.ids import canonical_json
from backsight.core.instants import parse_instant
from backsight.store import audit
from backsight.store.audit import AUDIT
from backsight.store.mapping import OWNER, RECORDED, Noun, Row, UtcInstant
from backsight.store.memories import RETRIEVALS, RETRIEVED_EPISODES
from backsight.store.recalls import may_be_first_retrieved_since, may_be_recorded_since
from backsight.store.tables import AUDITED

Key = tuple[str, tuple[Cell, ...]]


REPORTED = 2_000
"""Rows that are compared at once, and rows or links between two reports of the progress."""
MOST_LINES = 10
"""Lines of the heads file that are named."""


def verify(
    connection: Connection,
    owner: str,
    *,
    saved_head: ChainHead | None = None,
    recorded: RecordedChain | None = None,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> tuple[ChainHead, int, list[Finding]]:
    """The chain's head, the number of rows read, and every difference between the rows and the chain.

    `recorded` are the heads of a file outside the database, read before the transaction of this connection began.
    """
    replay = _ChainReplay(owner, saved_head, recorded=recorded)
    links, total = audit.head(connection, owner).sequence, count_rows(connection, owner)
    for row in connection.execute(_stored(AUDIT, owner).order_by(AUDIT.table.c.sequence)).mappings():
        replay.follow(row)
        if replay.head.sequence % REPORTED == 0:
            progress("links of the audit chain", replay.head.sequence, links)
    replay.finish()
    rows = 0
    for noun in AUDITED:
        for part in connection.execute(_stored(noun, owner), execution_options={"yield_per": REPORTED}).partitions():
            replay.compare(noun, part)
            rows += len(part)
            progress("rows against the audit chain", rows, total)
    progress("rows against the audit chain", rows, total)
    replay.report_removed()
    return replay.head, rows, replay.findings


def count_rows(connection: Connection, owner: str) -> int:
    """The number of an owner's rows that the audit chain records."""
    counts = [select(func.count()).where(noun.table.c[OWNER] == owner).scalar_subquery() for noun in AUDITED]
    return sum(connection.execute(select(*counts)).one())


def spoilt_rows(connection: Connection, owner: str, error: Exception) -> tuple[Finding, ...]:
    """The rows that explain why reading failed: those that differ from the audit chain, else the error itself."""
    _, _, findings = verify(connection, owner)
    detail = f"a derived row cannot be read ({type(error).__name__}); doctor --repair derives them again"
    return tuple(findings) or (Finding(kind="damaged", table="derived", key="", detail=detail),)


class _ChainReplay:
    """Follows the links one by one and computes what every row must be at the end."""

    def __init__(
        self,
        owner: str,
        saved_head: ChainHead | None,
        *,
        head: ChainHead = EMPTY,
        recorded: RecordedChain | None = None,
    ) -> None:
        self.owner = owner
        self.saved_head = saved_head
        self.recorded = recorded or RecordedChain()
        self.head = head
        self.expected: dict[Key, dict[str, Cell]] = {}
        self.batches: dict[str, Counter[str]] = {}
        """By table: the hashes of rows that batches wrote and that no stored row has matched yet."""
        self.findings: list[Finding] = []

    def follow(self, row: Row) -> None:
        """Check one link and apply its changes."""
        expected = self.head.sequence + 1
        sequence = row["sequence"]
        if not isinstance(sequence, int):
            self._link("link_changed", str(sequence), "its sequence is not a number")
            return
        if sequence < expected:
            self._link("link_added", sequence, "its sequence is below the start of the chain, or is used twice")
            return
        if self.head == EMPTY and sequence > 1 and row["operation"] == ERASE:
            self._begin(row)
        elif sequence > expected:
            missing = str(expected) if sequence == expected + 1 else f"{expected} to {sequence - 1}"
            self._link("link_missing", missing, f"removed before link {sequence}")
        elif row["previous"] != self.head.hash:
            self._link("link_changed", sequence, "it does not contain the hash of the link before it")
        if _hash_of(row, self.owner) != row["hash"]:
            self._link("link_changed", sequence, "its content does not match its hash")
        saved = self.saved_head
        if saved is not None and sequence == saved.sequence and row["hash"] != saved.hash:
            self._link("link_changed", sequence, "its hash is not that of the saved head: the chain was rewritten")
        if self.recorded.hashes.get(sequence, {row["hash"]}) != {row["hash"]}:
            self._link("link_changed", sequence, "its hash is not that in the heads file: the chain was rewritten")
        self.head = ChainHead(sequence=sequence, hash=str(row["hash"]))
        self._apply(row)

    def _begin(self, row: Row) -> None:
        """Begin with the link of an erasure; it contains the hash of the last link that was erased."""
        erased = ChainHead(sequence=row["sequence"] - 1, hash=str(row["previous"]))
        if self.saved_head is not None and self.saved_head.sequence == erased.sequence and self.saved_head != erased:
            self._link("link_changed", erased.sequence, "the erased chain does not end with the saved head")
        self.check_erasure(row["sequence"])

    def check_erasure(self, first: int) -> None:
        """Check that no head of before an erasure is recorded: the head of the erasure would have replaced them."""
        if self.recorded.hashes and min(self.recorded.hashes) < first:
            self._link("link_added", first, "the heads file has no head of this erasure: somebody forged it")

    def finish(self) -> None:
        """Check that the chain reaches the saved head."""
        if self.saved_head is not None and self.saved_head.sequence > self.head.sequence:
            detail = f"the saved head is link {self.saved_head.sequence}, but the chain ends at {self.head.sequence}"
            self._link("cut_off", self.head.sequence + 1, detail)
        self.report_recorded()

    def report_recorded(self) -> None:
        """Check that the chain reaches the last head in the heads file, and that the key signed every line."""
        if self.recorded.last > self.head.sequence:
            detail = f"the heads file ends with link {self.recorded.last}, but the chain ends at {self.head.sequence}"
            self._link("cut_off", self.head.sequence + 1, detail)
        for line in self.recorded.unsigned[:MOST_LINES]:
            detail = "the key did not sign this line: it was forged, or signed with another key"
            self.findings.append(Finding(kind="damaged", table="heads file", key=f"line {line}", detail=detail))

    def compare(self, noun: Noun[Any], rows: Sequence[Sequence[Any]]) -> None:
        """Compare stored rows with the rows that the chain implies."""
        table = noun.table.name
        values = [noun.stored_values(row) for row in rows]
        keyed = [(noun.key_of_values(row), row) for row in values]
        hashes = iter(_row_hashes(noun, [row for key, row in keyed if (table, key) not in self.expected]))
        for key, row in keyed:
            expected = self.expected.pop((table, key), None)
            if expected is not None:
                self._compare_cells(table, key, noun.cells_of_values(row), expected)
            elif not self._from_batch(table, next(hashes, "")):
                self._row("added", table, key, "no command wrote this row with these values")

    def _compare_cells(
        self, table: str, key: tuple[Cell, ...], cells: dict[str, Cell], expected: dict[str, Cell]
    ) -> None:
        differing = [name for name in sorted(cells) if not _same(cells[name], expected.get(name))]
        if differing:
            changes = [f"{name} was {_excerpt(expected.get(name))}, is {_excerpt(cells[name])}" for name in differing]
            self._row("changed", table, key, "; ".join(changes))

    def _from_batch(self, table: str, row_hash: str) -> bool:
        """Whether a batch wrote an equal row that no other stored row has matched."""
        hashes = self.batches.get(table, Counter())
        if hashes[row_hash] < 1:
            return False
        hashes[row_hash] -= 1
        return True

    def report_removed(self) -> None:
        """Report the rows that the chain implies and that were not compared with any stored row."""
        for table, hashes in sorted(self.batches.items(), key=str):
            missing = hashes.total()
            if missing:
                self._row("removed", table, (f"{missing} of a batch",), "a command wrote these rows; they are missing")
        for table, key in sorted(self.expected, key=str):
            self._row("removed", table, key, "a command wrote this row; it is missing")

    def _apply(self, row: Row) -> None:
        try:
            for change in json.loads(row["changes"]):
                if "items" in change:
                    self.batches.setdefault(change["table"], Counter()).update(items_of(change["items"]))
                    continue
                if "removed" in change:
                    self.batches[change["table"]].subtract(items_of(change["removed"]))
                    continue
                if "erased" in change:
                    self.expected.clear()
                    self.batches.clear()
                    continue
                key = (change["table"], tuple(change["key"]))
                if "was" in change and self.expected.pop(key, None) is None:
                    self.batches[change["table"]].subtract([change["was"]])
                if change["set"] is not None:
                    self.expected[key] = dict(change["set"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._link("link_changed", row["sequence"], "its list of changes cannot be read")

    def _link(self, kind: FindingKind, sequence: int | str, detail: str) -> None:
        self.findings.append(Finding(kind=kind, table=AUDIT.table.name, key=str(sequence), detail=detail))

    def _row(self, kind: FindingKind, table: str, key: tuple[Cell, ...], detail: str) -> None:
        self.findings.append(Finding(kind=kind, table=table, key=", ".join(map(str, key)), detail=detail))


def _may_be_recorded_since(noun: Noun[Any], owner: str, instant: datetime) -> ColumnElement[bool]:
    """A condition that every row recorded since an instant meets."""
    if noun is RETRIEVALS:
        return may_be_recorded_since(owner, instant)
    if noun is RETRIEVED_EPISODES:
        return may_be_first_retrieved_since(owner, instant)
    recorded: ColumnElement[bool] = noun.table.c[RECORDED] >= instant
    return recorded


def _stored(noun: Noun[Any], owner: str) -> Select[Any]:
    return select(*noun.stored_columns).where(noun.table.c[OWNER] == owner)


def _hash_of(row: Row, owner: str) -> str | None:
    try:
        at = parse_instant(row["at"])
        return link_hash(AuditRow(**{**row, "owner_id": owner, "at": at}))
    except (BacksightError, TypeError, ValueError):
        return None


def _row_hashes(noun: Noun[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The short hash of each row; empty if it has a value that no command could have written."""
    try:
        return noun.item_hashes(rows)
    except (TypeError, ValueError):  # bytes, or not finite: find the rows with such values
        return [_row_hash(noun.cells_of_values(row)) for row in rows]


def _row_hash(cells: Mapping[str, Cell]) -> str:
    try:
        return item_hash(cells)
    except (TypeError, ValueError):
        return ""


def _same(cell: Cell, expected: Cell) -> bool:
    return type(cell) is type(expected) and cell == expected


def _storable(cell: Cell) -> bool:
    """Whether a command could have written this value: not bytes, and not NaN or infinite."""
    return not isinstance(cell, bytes) and (not isinstance(cell, float) or math.isfinite(cell))


def _excerpt(cell: Cell) -> str:
    text = canonical_json(cell) if _storable(cell) else repr(cell)
    return text if len(text) <= 60 else text[:59] + "…"


# Verification of what was written since a checkpoint


def verify_since(
    connection: Connection, owner: str, checkpoint: Checkpoint, *, recorded: RecordedChain | None = None
) -> tuple[ChainHead, int, list[Finding]]:
    """The chain's head, the number of rows compared, and the differences since an earlier verification.

    Links after the checkpoint are checked, each row that they wrote is compared, and all rows are counted. A row of
    before the checkpoint that was changed in place is not noticed.
    """
    begins = audit.beginning(connection, owner)
    is_erased = begins is not None and begins.sequence > checkpoint.head.sequence
    if begins is not None and is_erased:  # the link of the checkpoint was erased, and all rows of before
        erased = ChainHead(sequence=begins.sequence - 1, hash=begins.previous)
        checkpoint = Checkpoint(head=erased, rows=0)
    replay = _NewLinks(owner, checkpoint, recorded)
    if begins is not None:
        replay.check_erasure(begins.sequence)
    after = AUDIT.table.c.sequence > checkpoint.head.sequence
    if not is_erased and not audit.contains(connection, owner, checkpoint.head) and checkpoint.head != EMPTY:
        replay.report_lost_checkpoint()
    for row in connection.execute(_stored(AUDIT, owner).where(after).order_by(AUDIT.table.c.sequence)).mappings():
        replay.follow(row)
    replay.report_recorded()
    for noun in AUDITED:
        replay.compare_new(noun, connection)
    replay.compare_count(count_rows(connection, owner))
    return replay.head, replay.rows, replay.findings


class _NewLinks(_ChainReplay):
    """Follows the links after a checkpoint, and knows what the rows that they name must be."""

    def __init__(self, owner: str, checkpoint: Checkpoint, recorded: RecordedChain | None) -> None:
        super().__init__(owner, None, head=checkpoint.head, recorded=recorded)
        self.named: dict[str, dict[tuple[Cell, ...], dict[str, Cell] | None]] = {}
        """By table and key: the last content that a link gave to a row; None: deleted."""
        self.count = checkpoint.rows
        self.rows = 0
        self.first_at: datetime | None = None
        """The earliest instant of a link, which is the recording time of its rows; None if one cannot be read."""

    def report_lost_checkpoint(self) -> None:
        head = self.head
        self._link("cut_off", head.sequence, "the chain does not have the link of the checkpoint: it was rewritten")

    def _apply(self, row: Row) -> None:
        try:
            at = parse_instant(row["at"])
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            for change in json.loads(row["changes"]):
                self._apply_change(change)
        except (BacksightError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self._link("link_changed", row["sequence"], "its list of changes cannot be read")

    def _apply_change(self, change: dict[str, Any]) -> None:
        table = change["table"]
        if "erased" in change:
            self.count = 0
            return
        if "removed" in change:
            self._apply_removal(table, items_of(change["removed"]))
            return
        if "items" in change:
            items = items_of(change["items"])
            self.batches.setdefault(table, Counter()).update(items)
            self.count += len(items)
            return
        key, named = tuple(change["key"]), self.named.setdefault(table, {})
        was, batch = change.get("was"), self.batches.get(table, Counter())
        if was is not None and key not in named and batch[was] > 0:
            batch[was] -= 1  # a row of a batch, which is named from now on
        self.count += (change["set"] is not None) - (was is not None)
        named[key] = change["set"]

    def _apply_removal(self, table: str, items: list[str]) -> None:
        """Rows that were removed because they were old; most are from before the checkpoint."""
        new = self.batches.get(table, Counter())
        new.subtract(item for item in items if new[item] > 0)
        self.count -= len(items)

    def compare_new(self, noun: Noun[Any], connection: Connection) -> None:
        """Compare the rows of a table that links since the checkpoint wrote."""
        table = noun.table.name
        for key, expected in self.named.get(table, {}).items():
            self._compare_named(noun, connection, key, expected)
        hashes = self.batches.get(table, Counter())
        if not hashes.total():
            return
        rows = _stored(noun, self.owner)
        if self.first_at is not None:
            rows = rows.where(_may_be_recorded_since(noun, self.owner, self.first_at))
        for part in connection.execute(rows, execution_options={"yield_per": REPORTED}).partitions():
            self._match(noun, hashes, part)
        if hashes.total():
            self._row("removed", table, (f"{hashes.total()} of a batch",), "these rows are missing or were changed")

    def _compare_named(
        self, noun: Noun[Any], connection: Connection, key: tuple[Cell, ...], expected: dict[str, Cell] | None
    ) -> None:
        pairs = zip((noun.table.c[name] for name in noun.key), key, strict=True)
        where = (
            column == (parse_instant(str(cell)) if isinstance(column.type, UtcInstant) else cell)
            for column, cell in pairs
        )
        stored = connection.execute(_stored(noun, self.owner).where(*where)).first()
        self.rows += 1
        table = noun.table.name
        if stored is None or expected is None:
            if stored is not None and not self.batches.get(table, Counter())[_row_hash(noun.cells(stored._mapping))]:
                self._row("added", table, key, "a command deleted this row; it is there")
            elif expected is not None:
                self._row("removed", table, key, "a command wrote this row; it is missing")
            return
        self.expected[table, key] = expected
        self.compare(noun, [stored])

    def _match(self, noun: Noun[Any], hashes: Counter[str], rows: Sequence[Sequence[Any]]) -> None:
        """Take the rows of batches off `hashes`."""
        for row_hash in _row_hashes(noun, [noun.stored_values(row) for row in rows]):
            if hashes[row_hash] > 0:
                hashes[row_hash] -= 1
                self.rows += 1

    def compare_count(self, count: int) -> None:
        """Report rows that were added or removed without a command."""
        if count != self.count and not self.findings:
            kind: FindingKind = "added" if count > self.count else "removed"
            detail = f"the store has {count} rows, the chain says {self.count}: verify everything to find them"
            self._row(kind, "all tables", (abs(count - self.count),), detail)
