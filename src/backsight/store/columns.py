"""The columnar image of an owner's episodes: built once, then brought up to date by what the audit chain says.

Every command is a link of its owner's chain, so the chain's head names the state of the store: an image is of one head,
whichever process wrote. A file beside the store spares a fresh process the building of a large one; it is of a head
too, and of no use once the chain no longer holds that head.
"""

import json
import os
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, or_, select

from backsight.core.audit import EMPTY, ChainHead, parse_head
from backsight.core.errors import Invalid
from backsight.core.ids import digest
from backsight.core.recall.arrays.columns import NO_ROWS, Columns, Rows, changed, differing, no_columns
from backsight.store import audit
from backsight.store.columns_file import LABELLED, label_of, packed, unpacked
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED
from backsight.store.memories import EPISODES
from backsight.store.reading import AS_OF, OWNED, SEEN_AT, parameters, prepared_within
from backsight.store.reading import Columns as TableColumns
from backsight.store.view import View

MOST_BYTES = 512 * 1024 * 1024
"""What the images of all owners together may take; the one in use is kept whatever its size."""
WORTH_A_FILE = 20_000
"""From so many episodes on, building takes longer than one likes to wait."""
LINKS_A_FILE = 2_000
"""After so many links a file is written anew, and when one in so many rows has come or gone."""
GROWN = 10
MANY = 500
"""Ids asked for at a time."""


@dataclass(frozen=True, slots=True)
class Image:
    """The episodes of an owner as they stand at one head of the chain."""

    head: ChainHead
    columns: Columns
    filed: "Filed | None" = None
    """What the file holds, as far as it is known; None where none was read or written."""

    @property
    def is_far_from_file(self) -> bool:
        """Whether to catch up with the file takes long: it is done at every start."""
        if self.filed is None:
            return True
        links, rows = self.head.sequence - self.filed.sequence, len(self.columns) - self.filed.rows
        return links >= LINKS_A_FILE or abs(rows) * GROWN >= self.filed.rows


class Filed(NamedTuple):
    """What a file is of."""

    sequence: int
    rows: int


@dataclass(slots=True)
class Held:
    """The latest images of an owner: one who began to read a little earlier may still need the one before."""

    images: deque[Image] = field(default_factory=lambda: deque(maxlen=3))
    lock: Lock = field(default_factory=Lock)

    @property
    def nbytes(self) -> int:
        return self.images[-1].columns.nbytes if self.images else 0


class Images:
    """The images of all owners of a store, as many as fit."""

    def __init__(self, folder: Path | None = None, *, prefix: str = "", most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._prefix = prefix
        self._most_bytes = most_bytes
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock = Lock()

    def at(self, view: View) -> Columns:
        """The episodes of the view that ended, and later ones, which the reader must leave out.

        The connection must not have uncommitted writes, since they may be rolled back.
        """
        columns = self._current(view.connection, view.owner)
        return changed(columns, _rows(view.connection, _STANDING, parameters(view.owner, view.horizon)))

    def forget(self, owner: str) -> None:
        """Drop what is held of an owner, and its file."""
        with self._lock:
            self._held.pop(owner, None)
        file = self._file(owner)
        if file is not None:
            with suppress(OSError):
                file.unlink()

    def spoilt(self, connection: Connection, owner: str) -> list[str]:
        """The ids of the episodes of which the image does not say what the store does; it is forgotten then."""
        found = differing(self._current(connection, owner), _built(connection, owner))
        if found:
            self.forget(owner)
        return found

    @property
    def nbytes(self) -> int:
        """What the images take."""
        with self._lock:
            return sum(held.nbytes for held in self._held.values())

    def _current(self, connection: Connection, owner: str) -> Columns:
        with self._lock:
            held = self._held.setdefault(owner, Held())
            self._held.move_to_end(owner)
        head = audit.head(connection, owner)
        with held.lock:
            image = self._brought_to(connection, owner, head, held.images)
            if not held.images or held.images[-1].head.sequence < head.sequence:
                held.images.append(image)
        self._make_room()
        return image.columns

    def _brought_to(self, connection: Connection, owner: str, head: ChainHead, images: deque[Image]) -> Image:
        for image in reversed(images):
            if image.head.sequence <= head.sequence and _is_of(connection, owner, image.head, head):
                return self._filed(owner, _followed(connection, owner, image, head))
        images.clear()
        image = self._from_file(connection, owner, head) or Image(EMPTY, no_columns())
        if image.head == EMPTY:
            return self._filed(owner, Image(head, _built(connection, owner)))
        return self._filed(owner, _followed(connection, owner, image, head))

    def _make_room(self) -> None:
        with self._lock:
            total = sum(held.nbytes for held in self._held.values())
            while total > self._most_bytes and len(self._held) > 1:
                _, dropped = self._held.popitem(last=False)
                total -= dropped.nbytes

    # The file

    def _file(self, owner: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{self._prefix}{digest(owner)[:16]}.columns"

    def _from_file(self, connection: Connection, owner: str, head: ChainHead) -> Image | None:
        file = self._file(owner)
        try:
            if file is None or not file.exists():
                return None
            with file.open("rb") as opened:
                of, _, told = label_of(opened.read(LABELLED)).rpartition(" ")
                filed = parse_head(told)
                if of != owner or not _is_of(connection, owner, filed, head):
                    return None
                opened.seek(0)
                columns = unpacked(opened.read())
                return Image(filed, columns, Filed(filed.sequence, len(columns)))
        except (OSError, Invalid):
            return None

    def _filed(self, owner: str, image: Image) -> Image:
        """The image, written to its file if it is large and the file is far behind."""
        file = self._file(owner)
        if file is None or len(image.columns) < WORTH_A_FILE or not image.is_far_from_file:
            return image
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            draft.touch(mode=0o600)
            with draft.open("wb") as opened:
                opened.writelines(packed(image.columns, label=f"{owner} {image.head}"))
            draft.replace(file)
        except OSError:  # it only spares time: a full disk is for those to tell who must write
            with suppress(OSError):
                draft.unlink()
        return replace(image, filed=Filed(image.head.sequence, len(image.columns)))


def _is_of(connection: Connection, owner: str, head: ChainHead, last: ChainHead) -> bool:
    """Whether a chain that ends with `last` holds `head`."""
    return head == last or (head.sequence < last.sequence and audit.contains(connection, owner, head))


def _built(connection: Connection, owner: str) -> Columns:
    """The image from every row of the store."""
    c = EPISODES.table.c
    return changed(no_columns(), _rows(connection, select(*_wanted(c)).where(*_of(c, owner))))


def _followed(connection: Connection, owner: str, image: Image, head: ChainHead) -> Image:
    """The image at a later head of the same chain."""
    if image.head == head:
        return image
    named, written = _changes(connection, owner, image.head, head)
    if not named and not written:
        return replace(image, head=head)
    c = EPISODES.table.c
    ids = sorted(named)
    wanted = [c.id.in_(ids[first : first + MANY]) for first in range(0, len(ids), MANY)]
    if written:
        wanted.append(c.recorded_at.in_(sorted(written)))
    rows = _joined(_rows(connection, select(*_wanted(c)).where(*_of(c, owner), where)) for where in wanted)
    return replace(image, head=head, columns=changed(image.columns, rows, without=named - set(rows.id)))


def _changes(connection: Connection, owner: str, after: ChainHead, until: ChainHead) -> tuple[set[str], set[Any]]:
    """The ids of the episodes that links name, and the instants at which links wrote many that they do not name."""
    named: set[str] = set()
    written: set[Any] = set()
    for at, changes in audit.changes_of(connection, owner, EPISODES.table.name, after=after, until=until):
        for change in json.loads(changes):
            if change["table"] == EPISODES.table.name:
                if "key" in change:
                    named.add(change["key"][0])
                else:
                    written.add(at)
    return named, written


def _wanted(c: TableColumns) -> Iterator[ColumnElement[Any]]:
    """What an image is made of."""
    return (c[name] for name in Rows._fields)


def _of(c: TableColumns, owner: str) -> list[ColumnElement[bool]]:
    return [c[OWNER] == owner, _ended(c)]


def _ended(c: TableColumns) -> ColumnElement[bool]:
    """What has no result is no memory to act on."""
    return or_(c.pnl.is_not(None), c.outcome_value.is_not(None))


def _standing() -> Any:
    """The versions that a correction has replaced since, and that stood at a horizon."""
    former = EPISODES.former
    if former is None:
        raise TypeError("episodes are revised")
    c = former.table.c
    standing = or_(c[REPLACED_KNOWN] > AS_OF, c[REPLACED_RECORDED] > SEEN_AT)
    return select(*_wanted(c)).where(c[OWNER] == OWNED, _ended(c), *prepared_within(former), standing)


_STANDING = _standing()


def _rows(connection: Connection, statement: Any, values: dict[str, object] | None = None) -> Rows:
    found = [tuple(row) for row in connection.execute(statement, values)]
    return Rows(*zip(*found, strict=True)) if found else NO_ROWS


def _joined(parts: Iterable[Rows]) -> Rows:
    held = [part for part in parts if part.id]
    return Rows(*(sum(map(tuple, columns), ()) for columns in zip(*held, strict=True))) if held else NO_ROWS
