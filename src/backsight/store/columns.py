"""The columnar image of an owner's episodes, which recall scans (`store/images.py` says how it stays up to date)."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, or_, select

from backsight.core.recall.arrays.build import build_columns
from backsight.core.recall.arrays.columns import (
    NO_ROWS,
    Columns,
    EpisodeRows,
    differing_ids,
    update_columns,
)
from backsight.store.columns_build import batches, undecoded
from backsight.store.columns_file import FORMAT, pack_columns, unpack_columns
from backsight.store.images import ChangedRows, ImageCache, changed_conditions
from backsight.store.mapping import OWNER, REPLACED_KNOWN, REPLACED_RECORDED
from backsight.store.memories import EPISODES
from backsight.store.reading import AS_OF, OWNED, SEEN_AT, parameters, prepared_within
from backsight.store.reading import Columns as TableColumns
from backsight.store.view import View

MAX_BYTES = 512 * 1024 * 1024


class Images(ImageCache[Columns]):
    """A cache of the episodes of all owners: those that have ended with a result."""

    noun = EPISODES
    suffix = ".columns"
    file_format = FORMAT

    def __init__(self, folder: Path | None = None, *, prefix: str = "", max_bytes: int = MAX_BYTES) -> None:
        super().__init__(folder, prefix=prefix, max_bytes=max_bytes)

    def build(self, connection: Connection, owner: str) -> Columns:
        c = EPISODES.table.c
        statement = select(*undecoded(c, EpisodeRows._fields)).where(*_own(c, owner))
        return build_columns(batches(connection, statement))

    def update(self, connection: Connection, owner: str, columns: Columns, changed: ChangedRows) -> Columns:
        c = EPISODES.table.c
        rows = _joined(
            _rows(connection, select(*_fields(c)).where(*_own(c, owner), condition))
            for condition in changed_conditions(EPISODES, changed)
        )
        return update_columns(columns, rows, without=set(changed.ids) - set(rows.id))

    def with_former(self, view: View, columns: Columns) -> Columns:
        return update_columns(columns, _rows(view.connection, _FORMER, parameters(view.owner, view.horizon)))

    def differing_ids(self, first: Columns, second: Columns) -> list[str]:
        return differing_ids(first, second)

    def pack(self, columns: Columns, *, label: str) -> Iterator[bytes | memoryview]:
        return pack_columns(columns, label=label)

    def unpack(self, content: bytes) -> Columns:
        return unpack_columns(content)


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
