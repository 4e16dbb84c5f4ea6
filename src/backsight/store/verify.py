"""Re-reading everything against the audit chain: what was changed behind our back, and where."""

import json
import math
from collections import Counter
from typing import Any

from sqlalchemy import Connection, Select, select

from backsight.core.audit import EMPTY, AuditRow, Cell, Finding, FindingKind, Head, item_hash, items_of, link_hash
from backsight.core.errors import BacksightError
from backsight.core.ids import canonical_json
from backsight.core.instants import parse_instant
from backsight.store.audit import AUDIT
from backsight.store.mapping import OWNER, Noun, Row
from backsight.store.schema import AUDITED

Key = tuple[str, tuple[Cell, ...]]
State = dict[Key, dict[str, Cell]]


def verify(connection: Connection, owner: str, *, kept: Head | None = None) -> tuple[Head, int, list[Finding]]:
    """The chain's head, the number of rows read, and everything that is not as the chain says."""
    reading = _Chain(owner, kept)
    for row in connection.execute(_stored(AUDIT, owner).order_by(AUDIT.table.c.sequence)).mappings():
        reading.follow(row)
    reading.finish()
    rows = 0
    for noun in AUDITED:
        for row in connection.execute(_stored(noun, owner)).mappings():
            rows += 1
            reading.compare(noun, row)
    reading.name_removed()
    return reading.head, rows, reading.findings


class _Chain:
    """Follows the links one by one and knows what every row should be at the end."""

    def __init__(self, owner: str, kept: Head | None) -> None:
        self.owner = owner
        self.kept = kept
        self.head = EMPTY
        self.state: State = {}
        self.batched: dict[str, Counter[str]] = {}
        self.findings: list[Finding] = []

    def follow(self, row: Row) -> None:
        expected = self.head.sequence + 1
        sequence = row["sequence"]
        if not isinstance(sequence, int):
            self._link("link_changed", str(sequence), "its sequence is not a number")
            return
        if sequence < expected:
            self._link("link_added", sequence, "a link before the beginning of the chain")
            return
        if sequence > expected:
            lost = str(expected) if sequence == expected + 1 else f"{expected} to {sequence - 1}"
            self._link("link_missing", lost, f"removed before link {sequence}")
        elif row["previous"] != self.head.hash:
            self._link("link_changed", sequence, "does not follow from the link before it")
        if _hash_of(row, self.owner) != row["hash"]:
            self._link("link_changed", sequence, "its content does not match its hash")
        if self.kept is not None and sequence == self.kept.sequence and row["hash"] != self.kept.hash:
            self._link("link_changed", sequence, "is not the link whose head was kept: the chain was rewritten")
        self.head = Head(sequence=sequence, hash=str(row["hash"]))
        self._apply(row)

    def finish(self) -> None:
        if self.kept is not None and self.kept.sequence > self.head.sequence:
            detail = f"the kept head is link {self.kept.sequence}, the chain ends at {self.head.sequence}"
            self._link("cut_off", self.head.sequence + 1, detail)

    def compare(self, noun: Noun[Any], row: Row) -> None:
        table, cells = noun.table.name, noun.cells(row)
        key = noun.key_of(row)
        expected = self.state.pop((table, key), None)
        if expected is None:
            if not self._from_batch(table, cells):
                self._row("added", table, key, "no command wrote this row as it stands")
            return
        differing = [name for name in sorted(cells) if not _same(cells[name], expected.get(name))]
        if differing:
            told = "; ".join(f"{n} was {_shown(expected.get(n))}, is {_shown(cells[n])}" for n in differing)
            self._row("changed", table, key, told)

    def _from_batch(self, table: str, cells: dict[str, Cell]) -> bool:
        """Whether a batch wrote a row like this one that was not met yet."""
        left = self.batched.get(table, Counter())
        item = item_hash(cells) if all(map(_storable, cells.values())) else ""
        if left[item] < 1:
            return False
        left[item] -= 1
        return True

    def name_removed(self) -> None:
        for table, left in sorted(self.batched.items(), key=str):
            lost = left.total()
            if lost:
                self._row("removed", table, (f"{lost} of a batch",), "written by a command, not there as they were")
        for table, key in sorted(self.state, key=str):
            self._row("removed", table, key, "written by a command, no longer there")

    def _apply(self, row: Row) -> None:
        try:
            for change in json.loads(row["changes"]):
                if "items" in change:
                    self.batched.setdefault(change["table"], Counter()).update(items_of(change["items"]))
                    continue
                key = (change["table"], tuple(change["key"]))
                if "was" in change and self.state.pop(key, None) is None:
                    self.batched[change["table"]].subtract([change["was"]])
                if change["set"] is not None:
                    self.state[key] = dict(change["set"])
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
    """Whether a command could have written this: neither bytes nor a number that is none."""
    return not isinstance(cell, bytes) and (not isinstance(cell, float) or math.isfinite(cell))


def _shown(cell: Cell) -> str:
    text = canonical_json(cell) if _storable(cell) else repr(cell)
    return text if len(text) <= 60 else text[:59] + "…"
