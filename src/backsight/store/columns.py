"""The columnar image of an owner's episodes: built once, then updated from the entries of the audit chain.

Every command appends a link to its owner's audit chain, so the head of the chain identifies the state of the store,
whichever process wrote it. An image belongs to one head. A large image is also written to a file beside the store, so
that a new process need not build it; the file is ignored if the chain does not contain its head.
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
from backsight.core.recall.arrays.columns import (
    NO_ROWS,
    Columns,
    EpisodeRows,
    differing_ids,
    empty_columns,
    update_columns,
)
from backsight.store import audit
from backsight.store.columns_file import LABEL_END, pack_columns, read_label, unpack_columns
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED
from backsight.store.memories import EPISODES
from backsight.store.reading import AS_OF, OWNED, SEEN_AT, parameters, prepared_within
from backsight.store.reading import Columns as TableColumns
from backsight.store.view import View

MAX_BYTES = 512 * 1024 * 1024
"""The limit for the images of all owners together; the image in use is cached whatever its size."""
MIN_FILE_ROWS = 20_000
"""Images with fewer episodes are not written to a file, since they are built quickly."""
MAX_FILE_LINKS = 2_000
"""The file is rewritten when the image is this many links ahead of it."""
MAX_FILE_GROWTH = 10
"""The file is rewritten when one row in this many was added or removed."""
IDS_PER_QUERY = 500


@dataclass(frozen=True, slots=True)
class Image:
    """The episodes of an owner at one head of the audit chain."""

    head: ChainHead
    columns: Columns
    file: "FileState | None" = None
    """The content of the file; None if no file was read or written."""

    @property
    def is_far_from_file(self) -> bool:
        """Whether it takes long to update an image from the file, which every new process has to do."""
        if self.file is None:
            return True
        links, rows = self.head.sequence - self.file.sequence, len(self.columns) - self.file.rows
        return links >= MAX_FILE_LINKS or abs(rows) * MAX_FILE_GROWTH >= self.file.rows


class FileState(NamedTuple):
    """The state of the store that a file was written for."""

    sequence: int
    rows: int


@dataclass(slots=True)
class OwnerImages:
    """The latest images of an owner; a reader whose snapshot is a little older may need an older image."""

    images: deque[Image] = field(default_factory=lambda: deque(maxlen=3))
    lock: Lock = field(default_factory=Lock)
    """Held while columns are updated: the images of an owner share arrays and a vocabulary."""

    @property
    def nbytes(self) -> int:
        return self.images[-1].columns.nbytes if self.images else 0


class Images:
    """A cache of the images of all owners of a store."""

    def __init__(self, folder: Path | None = None, *, prefix: str = "", max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._prefix = prefix
        self._max_bytes = max_bytes
        self._owners: OrderedDict[str, OwnerImages] = OrderedDict()
        self._lock = Lock()

    def at(self, view: View) -> Columns:
        """The episodes of the view that ended, and later ones, which the reader must leave out.

        The connection must not have uncommitted writes, since they may be rolled back.
        """
        cache = self._cache(view.owner)
        columns = self._current(view.connection, view.owner, cache)
        rows = _rows(view.connection, _FORMER, parameters(view.owner, view.horizon))
        if not rows.id:
            return columns
        with cache.lock:
            return update_columns(columns, rows)

    def forget(self, owner: str) -> None:
        """Drop the images of an owner, and the file."""
        with self._lock:
            self._owners.pop(owner, None)
        path = self._path(owner)
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def drop_if_spoilt(self, connection: Connection, owner: str) -> list[str]:
        """Compare the image with the store, and return the ids of episodes that differ; if any, forget the image."""
        ids = differing_ids(self._current(connection, owner, self._cache(owner)), _built(connection, owner))
        if ids:
            self.forget(owner)
        return ids

    @property
    def nbytes(self) -> int:
        """The size of the images in bytes."""
        with self._lock:
            return sum(cache.nbytes for cache in self._owners.values())

    def _cache(self, owner: str) -> OwnerImages:
        with self._lock:
            cache = self._owners.setdefault(owner, OwnerImages())
            self._owners.move_to_end(owner)
            return cache

    def _current(self, connection: Connection, owner: str, cache: OwnerImages) -> Columns:
        """The columns at the head of the chain that the connection sees."""
        head = audit.head(connection, owner)
        with cache.lock:
            image = self._image_at(connection, owner, head, cache.images)
            if not cache.images or cache.images[-1].head.sequence < head.sequence:
                cache.images.append(image)
        self._evict()
        return image.columns

    def _image_at(self, connection: Connection, owner: str, head: ChainHead, images: deque[Image]) -> Image:
        """The image at a head: updated from a cached image or from the file, or else built from the store."""
        for image in reversed(images):
            if image.head.sequence <= head.sequence and _is_in_chain(connection, owner, image.head, head):
                return self._written(owner, _updated(connection, owner, image, head))
        images.clear()
        image_in_file = self._read_file(connection, owner, head)
        if image_in_file is None or image_in_file.head == EMPTY:
            return self._written(owner, Image(head, _built(connection, owner)))
        return self._written(owner, _updated(connection, owner, image_in_file, head))

    def _evict(self) -> None:
        """Drop the least recently used images until the others fit."""
        with self._lock:
            total = sum(cache.nbytes for cache in self._owners.values())
            while total > self._max_bytes and len(self._owners) > 1:
                _, evicted = self._owners.popitem(last=False)
                total -= evicted.nbytes

    # The file

    def _path(self, owner: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{self._prefix}{digest(owner)[:16]}.columns"

    def _read_file(self, connection: Connection, owner: str, head: ChainHead) -> Image | None:
        """The image in the file; None if there is none, or if it is damaged or not of this owner's chain."""
        path = self._path(owner)
        try:
            if path is None or not path.exists():
                return None
            with path.open("rb") as file:
                file_owner, _, head_text = read_label(file.read(LABEL_END)).rpartition(" ")
                file_head = parse_head(head_text)
                if file_owner != owner or not _is_in_chain(connection, owner, file_head, head):
                    return None
                file.seek(0)
                columns = unpack_columns(file.read())
                return Image(file_head, columns, FileState(file_head.sequence, len(columns)))
        except (OSError, Invalid):
            return None

    def _written(self, owner: str, image: Image) -> Image:
        """The image, written to its file if it is large and far ahead of the file."""
        path = self._path(owner)
        if path is None or len(image.columns) < MIN_FILE_ROWS or not image.is_far_from_file:
            return image
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.touch(mode=0o600)
            with draft.open("wb") as file:
                file.writelines(pack_columns(image.columns, label=f"{owner} {image.head}"))
            draft.replace(path)
        except OSError:  # the file only saves time, so a full disk is not an error here
            with suppress(OSError):
                draft.unlink()
        return replace(image, file=FileState(image.head.sequence, len(image.columns)))


def _is_in_chain(connection: Connection, owner: str, head: ChainHead, last: ChainHead) -> bool:
    """Whether the chain that ends with `last` contains `head`."""
    return head == last or (head.sequence < last.sequence and audit.contains(connection, owner, head))


def _built(connection: Connection, owner: str) -> Columns:
    """The columns built from every row of the store."""
    c = EPISODES.table.c
    return update_columns(empty_columns(), _rows(connection, select(*_fields(c)).where(*_own(c, owner))))


def _updated(connection: Connection, owner: str, image: Image, head: ChainHead) -> Image:
    """The image at a later head of the same chain."""
    if image.head == head:
        return image
    changed_ids, bulk_instants = _changes(connection, owner, image.head, head)
    if not changed_ids and not bulk_instants:
        return replace(image, head=head)
    c = EPISODES.table.c
    ids = sorted(changed_ids)
    conditions = [c.id.in_(ids[first : first + IDS_PER_QUERY]) for first in range(0, len(ids), IDS_PER_QUERY)]
    if bulk_instants:
        conditions.append(c.recorded_at.in_(sorted(bulk_instants)))
    rows = _joined(_rows(connection, select(*_fields(c)).where(*_own(c, owner), condition)) for condition in conditions)
    removed = changed_ids - set(rows.id)
    return replace(image, head=head, columns=update_columns(image.columns, rows, without=removed))


def _changes(connection: Connection, owner: str, after: ChainHead, until: ChainHead) -> tuple[set[str], set[Any]]:
    """The ids of the episodes that links name, and the instants of links that wrote episodes without naming them."""
    ids: set[str] = set()
    instants: set[Any] = set()
    for at, changes in audit.changes_of(connection, owner, EPISODES.table.name, after=after, until=until):
        for change in json.loads(changes):
            if change["table"] == EPISODES.table.name:
                if "key" in change:
                    ids.add(change["key"][0])
                else:
                    instants.add(at)
    return ids, instants


def _fields(c: TableColumns) -> Iterator[ColumnElement[Any]]:
    return (c[name] for name in EpisodeRows._fields)


def _own(c: TableColumns, owner: str) -> list[ColumnElement[bool]]:
    return [c[OWNER] == owner, _has_result(c)]


def _has_result(c: TableColumns) -> ColumnElement[bool]:
    """An episode without a result is not recalled."""
    return or_(c.pnl.is_not(None), c.outcome_value.is_not(None))


def _former_versions() -> Any:
    """The versions that were current at a horizon and have been replaced since."""
    former = EPISODES.former
    if former is None:
        raise TypeError("the table of episodes has no former versions")
    c = former.table.c
    current_then = or_(c[REPLACED_KNOWN] > AS_OF, c[REPLACED_RECORDED] > SEEN_AT)
    return select(*_fields(c)).where(c[OWNER] == OWNED, _has_result(c), *prepared_within(former), current_then)


_FORMER = _former_versions()


def _rows(connection: Connection, statement: Any, values: dict[str, object] | None = None) -> EpisodeRows:
    rows = [tuple(row) for row in connection.execute(statement, values)]
    return EpisodeRows(*zip(*rows, strict=True)) if rows else NO_ROWS


def _joined(parts: Iterable[EpisodeRows]) -> EpisodeRows:
    filled = [part for part in parts if part.id]
    return EpisodeRows(*(sum(map(tuple, columns), ()) for columns in zip(*filled, strict=True))) if filled else NO_ROWS
