"""Verification: compare every stored row with the audit chain and report each difference."""

import json
import math
from collections import Counter
from typing import Any

from sqlalchemy import Connection, Select, select

from backsight.core.audit import EMPTY, AuditRow, Cell, ChainHead, Finding, FindingKind, item_hash, items_of, link_hash
from backsight.core.errors import BacksightError
from backsight.core.ids import canonical_json
from backsight.core.instants import parse_instant
from backsight.store.audit import AUDIT
from backsight.store.mapping import OWNER, Noun, Row
from backsight.store.schema import AUDITED

Key = tuple[str, tuple[Cell, ...]]


def verify(
    connection: Connection, owner: str, *, saved_head: ChainHead | None = None
) -> tuple[ChainHead, int, list[Finding]]:
    """The chain's head, the number of rows read, and every difference between the rows and the chain."""
    replay = _ChainReplay(owner, saved_head)
    for row in connection.execute(_stored(AUDIT, owner).order_by(AUDIT.table.c.sequence)).mappings():
        replay.follow(row)
    replay.finish()
    rows = 0
    for noun in AUDITED:
        for row in connection.execute(_stored(noun, owner)).mappings():
            rows += 1
            replay.compare(noun, row)
    replay.report_removed()
    return replay.head, rows, replay.findings


class _ChainReplay:
    """Follows the links one by one and computes what every row must be at the end."""

    def __init__(self, owner: str, saved_head: ChainHead | None) -> None:
        self.owner = owner
        self.saved_head = saved_head
        self.head = EMPTY
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
        if sequence > expected:
            missing = str(expected) if sequence == expected + 1 else f"{expected} to {sequence - 1}"
            self._link("link_missing", missing, f"removed before link {sequence}")
        elif row["previous"] != self.head.hash:
            self._link("link_changed", sequence, "it does not contain the hash of the link before it")
        if _hash_of(row, self.owner) != row["hash"]:
            self._link("link_changed", sequence, "its content does not match its hash")
        saved = self.saved_head
        if saved is not None and sequence == saved.sequence and row["hash"] != saved.hash:
            self._link("link_changed", sequence, "its hash is not that of the saved head: the chain was rewritten")
        self.head = ChainHead(sequence=sequence, hash=str(row["hash"]))
        self._apply(row)

    def finish(self) -> None:
        """Check that the chain reaches the saved head."""
        if self.saved_head is not None and self.saved_head.sequence > self.head.sequence:
            detail = f"the saved head is link {self.saved_head.sequence}, but the chain ends at {self.head.sequence}"
            self._link("cut_off", self.head.sequence + 1, detail)

    def compare(self, noun: Noun[Any], row: Row) -> None:
        """Compare one stored row with the row that the chain implies."""
        table, cells = noun.table.name, noun.cells(row)
        key = noun.key_of(row)
        expected = self.expected.pop((table, key), None)
        if expected is None:
            if not self._from_batch(table, cells):
                self._row("added", table, key, "no command wrote this row with these values")
            return
        differing = [name for name in sorted(cells) if not _same(cells[name], expected.get(name))]
        if differing:
            changes = [f"{name} was {_excerpt(expected.get(name))}, is {_excerpt(cells[name])}" for name in differing]
            self._row("changed", table, key, "; ".join(changes))

    def _from_batch(self, table: str, cells: dict[str, Cell]) -> bool:
        """Whether a batch wrote an equal row that no other stored row has matched."""
        hashes = self.batches.get(table, Counter())
        row_hash = item_hash(cells) if all(map(_storable, cells.values())) else ""
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


def _stored(noun: Noun[Any], owner: str) -> Select[Any]:
    return select(*noun.stored_columns).where(noun.table.c[OWNER] == owner)


def _hash_of(row: Row, owner: str) -> str | None:
    try:
        at = parse_instant(row["at"])
        return link_hash(AuditRow(**{**row, "owner_id": owner, "at": at}))
    except (BacksightError, TypeError, ValueError):
        return None


def _same(cell: Cell, expected: Cell) -> bool:
    return type(cell) is type(expected) and cell == expected


def _storable(cell: Cell) -> bool:
    """Whether a command could have written this value: not bytes, and not NaN or infinite."""
    return not isinstance(cell, bytes) and (not isinstance(cell, float) or math.isfinite(cell))


def _excerpt(cell: Cell) -> str:
    text = canonical_json(cell) if _storable(cell) else repr(cell)
    return text if len(text) <= 60 else text[:59] + "…"
