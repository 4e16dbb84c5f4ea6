"""Images of an owner's rows in memory: built once, then updated from the entries of the audit chain.

Every command appends a link to its owner's audit chain, so the head of the chain identifies the state of the store,
whichever process wrote it. An image belongs to one head. A large image is also written to a file beside the store, so
that a new process need not build it; the file is ignored if the chain does not contain its head.
"""

import json
import os
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, select

from backsight.core.audit import EMPTY, ChainHead, parse_head
from backsight.core.errors import Invalid
from backsight.core.garbage_collection import collection_paused
from backsight.core.ids import digest
from backsight.store import audit
from backsight.store.columns_file import LABEL_END, read_label
from backsight.store.mapping import OWNER, Noun
from backsight.store.unchanged import has_no_later_correction, put, unchanged
from backsight.store.view import View

MIN_FILE_ROWS = 20_000
"""Images with fewer rows are not written to a file, since they are built quickly."""
MAX_FILE_LINKS = 2_000
"""The file is rewritten when the image is this many links ahead of it."""
MAX_FILE_GROWTH = 10
"""The file is rewritten when one row in this many was added or removed."""
IDS_PER_QUERY = 500


class ColumnSet(Protocol):
    """The rows of an image."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int: ...


C = TypeVar("C", bound=ColumnSet)


@dataclass(frozen=True, slots=True)
class Image(Generic[C]):
    """The rows of an owner at one head of the audit chain."""

    head: ChainHead
    columns: C
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


class ChangedRows(NamedTuple):
    """What links changed in a table: the ids of rows, and the instants of links that wrote rows without naming them."""

    ids: Collection[str]
    instants: Collection[Any]


@dataclass(slots=True)
class OwnerImages(Generic[C]):
    """The latest images of an owner; a reader whose snapshot is a little older may need an older image."""

    images: deque[Image[C]] = field(default_factory=lambda: deque(maxlen=3))
    lock: Lock = field(default_factory=Lock)
    """Held while columns are updated: the images of an owner share arrays and a vocabulary."""

    @property
    def nbytes(self) -> int:
        return self.images[-1].columns.nbytes if self.images else 0


class ImageCache(ABC, Generic[C]):
    """A cache of the images of all owners of a store; a subclass says what the columns of an image are."""

    noun: ClassVar[Noun[Any]]
    suffix: ClassVar[str]
    """How the name of a file ends."""
    file_format: ClassVar[bytes]
    """How the content of a file begins."""

    def __init__(self, folder: Path | None = None, *, prefix: str = "", max_bytes: int) -> None:
        """`max_bytes` limits the images of all owners together; the image in use is cached whatever its size."""
        self._folder = folder
        self._prefix = prefix
        self._max_bytes = max_bytes
        self._owners: OrderedDict[str, OwnerImages[C]] = OrderedDict()
        self._lock = Lock()

    @abstractmethod
    def build(self, connection: Connection, owner: str) -> C:
        """The columns built from every row of the store."""

    @abstractmethod
    def update(self, connection: Connection, owner: str, columns: C, changed: ChangedRows) -> C:
        """The columns after the changed rows were read again."""

    @abstractmethod
    def with_former(self, view: View, columns: C) -> C:
        """The columns with the versions that a view shows instead of current ones."""

    @abstractmethod
    def differing_ids(self, first: C, second: C) -> list[str]:
        """The ids of rows that differ."""

    @abstractmethod
    def pack(self, columns: C, *, label: str) -> Iterator[bytes | memoryview]:
        """The content of the file."""

    @abstractmethod
    def unpack(self, content: bytes) -> C:
        """The columns in a file, or `Invalid`."""

    def at(self, view: View) -> C:
        """The rows of the view, and rows known or recorded later, which the reader must leave out.

        The connection must not have uncommitted writes, since they may be rolled back.
        """
        cache = self._cache(view.owner)
        columns = self._current(view.connection, view.owner, cache)
        if has_no_later_correction(view, self.noun):
            return columns
        with cache.lock:
            return self.with_former(view, columns)

    def forget(self, owner: str) -> None:
        """Drop the images of an owner, and the file."""
        with self._lock:
            self._owners.pop(owner, None)
        path = self._path(owner)
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def write_file(self, connection: Connection, owner: str) -> None:
        """Write the file after an import, so that no later process has to build the image of many rows."""
        if self._path(owner) is not None and self._has_many(connection, owner):
            self._current(connection, owner, self._cache(owner))

    def drop_if_spoilt(self, connection: Connection, owner: str) -> list[str]:
        """Compare the image with the store, and return the ids of rows that differ; if any, forget the image."""
        ids = self.differing_ids(self._current(connection, owner, self._cache(owner)), self.build(connection, owner))
        if ids:
            self.forget(owner)
        return ids

    def drop_file_if_spoilt(self, connection: Connection, owner: str) -> list[str]:
        """Compare the file with the store, and return the ids of rows that differ; if any, remove the file.

        A checksum shows a damaged file. It does not show a file that somebody wrote with other content.
        """
        head = audit.head(connection, owner)
        image = self._read_file(connection, owner, head)
        if image is None:
            return []
        columns = self._updated(connection, owner, image, head).columns
        ids = self.differing_ids(columns, self.build(connection, owner))
        if ids:
            self.forget(owner)
        return ids

    def has(self, owner: str) -> bool:
        """Whether an image of an owner is in memory, so that its columns need not be built."""
        with self._lock:
            cache = self._owners.get(owner)
            return cache is not None and bool(cache.images)

    @property
    def nbytes(self) -> int:
        """The size of the images in bytes."""
        with self._lock:
            return sum(cache.nbytes for cache in self._owners.values())

    def _cache(self, owner: str) -> OwnerImages[C]:
        with self._lock:
            cache = self._owners.setdefault(owner, OwnerImages())
            self._owners.move_to_end(owner)
            return cache

    def _current(self, connection: Connection, owner: str, cache: OwnerImages[C]) -> C:
        """The columns at the head of the chain that the connection sees."""
        head = audit.head(connection, owner)
        since = unchanged(connection, owner, ("head of the columns", self.suffix), (self.noun,), lambda: head)
        with cache.lock:
            if cache.images and cache.images[-1].head == since:  # no row was changed after it
                return cache.images[-1].columns
            image = self._image_at(connection, owner, head, cache.images)
            if not cache.images or cache.images[-1].head.sequence < head.sequence:
                cache.images.append(image)
                put(connection, owner, ("in chain", image.head), (), True)
        self._evict()
        return image.columns

    def _image_at(self, connection: Connection, owner: str, head: ChainHead, images: deque[Image[C]]) -> Image[C]:
        """The image at a head: updated from a cached image or from the file, or else built from the store."""
        for image in reversed(images):
            if image.head.sequence <= head.sequence and _is_in_chain(connection, owner, image.head, head):
                return self._written(owner, self._updated(connection, owner, image, head))
        images.clear()
        image_in_file = self._read_file(connection, owner, head)
        if image_in_file is None or image_in_file.head == EMPTY:
            with collection_paused():
                return self._written(owner, Image(head, self.build(connection, owner)))
        return self._written(owner, self._updated(connection, owner, image_in_file, head))

    def _evict(self) -> None:
        """Drop the least recently used images until the others fit."""
        with self._lock:
            total = sum(cache.nbytes for cache in self._owners.values())
            while total > self._max_bytes and len(self._owners) > 1:
                _, evicted = self._owners.popitem(last=False)
                total -= evicted.nbytes

    # The file

    def _path(self, owner: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{self._prefix}{digest(owner)[:16]}{self.suffix}"

    def _read_file(self, connection: Connection, owner: str, head: ChainHead) -> Image[C] | None:
        """The image in the file; None if there is none, or if it is damaged or not of this owner's chain."""
        path = self._path(owner)
        try:
            if path is None or not path.exists():
                return None
            with path.open("rb", buffering=0) as file:  # a buffer would be copied together with the content
                file_owner, _, head_text = read_label(file.read(LABEL_END), self.file_format).rpartition(" ")
                file_head = parse_head(head_text)
                if file_owner != owner or not _is_in_chain(connection, owner, file_head, head):
                    return None
                file.seek(0)
                columns = self.unpack(file.read())
                return Image(file_head, columns, FileState(file_head.sequence, len(columns)))
        except (OSError, Invalid):
            return None

    def _written(self, owner: str, image: Image[C]) -> Image[C]:
        """The image, written to its file if it is large and far ahead of the file."""
        path = self._path(owner)
        if path is None or len(image.columns) < MIN_FILE_ROWS or not image.is_far_from_file:
            return image
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.touch(mode=0o600)
            with draft.open("wb") as file:
                file.writelines(self.pack(image.columns, label=f"{owner} {image.head}"))
            draft.replace(path)
        except OSError:  # the file only saves time, so a full disk is not an error here
            with suppress(OSError):
                draft.unlink()
        return replace(image, file=FileState(image.head.sequence, len(image.columns)))

    # Changes

    def _updated(self, connection: Connection, owner: str, image: Image[C], head: ChainHead) -> Image[C]:
        """The image at a later head of the same chain."""
        if image.head == head:
            return image
        changed = self._changes(connection, owner, image.head, head)
        if not changed.ids and not changed.instants:
            return replace(image, head=head)
        return replace(image, head=head, columns=self.update(connection, owner, image.columns, changed))

    def _changes(self, connection: Connection, owner: str, after: ChainHead, until: ChainHead) -> ChangedRows:
        ids: set[str] = set()
        instants: set[Any] = set()
        table = self.noun.table.name
        for at, changes in audit.changes_of(connection, owner, table, after=after, until=until):
            for change in json.loads(changes):
                if change["table"] == table:
                    if "key" in change:
                        ids.add(change["key"][0])
                    else:
                        instants.add(at)
        return ChangedRows(ids, instants)

    def _has_many(self, connection: Connection, owner: str) -> bool:
        """Whether there are so many rows that their image is written to a file."""
        c = self.noun.table.c
        statement = select(c.id).where(c[OWNER] == owner).offset(MIN_FILE_ROWS - 1).limit(1)
        return connection.execute(statement).first() is not None


def _is_in_chain(connection: Connection, owner: str, head: ChainHead, last: ChainHead) -> bool:
    """Whether the chain that ends with `last` contains `head`."""
    if head.sequence >= last.sequence:
        return head == last
    # A head that this process has seen stays in the chain until another process writes; then nothing is reused.
    return unchanged(connection, owner, ("in chain", head), (), lambda: audit.contains(connection, owner, head))


def changed_conditions(noun: Noun[Any], changed: ChangedRows) -> list[ColumnElement[bool]]:
    """Conditions that together match the rows that links changed, each for one statement."""
    c, ids = noun.table.c, sorted(changed.ids)
    conditions: list[ColumnElement[bool]] = [
        c.id.in_(ids[first : first + IDS_PER_QUERY]) for first in range(0, len(ids), IDS_PER_QUERY)
    ]
    if changed.instants:
        conditions.append(c.recorded_at.in_(sorted(changed.instants)))
    return conditions
