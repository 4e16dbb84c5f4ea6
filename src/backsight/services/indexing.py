"""Bringing the index up to date: read the documents that changed, and publish all changes in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.documents.chunk import lines_of
from backsight.core.documents.document import (
    Document,
    IndexedChunk,
    IndexState,
    LoadedDocument,
    compare_chunks,
    content_hash,
    index_chunks,
)
from backsight.importers.workspace import Workspace
from backsight.services.context import Context, Progress
from backsight.services.traces import Trace, is_trace, traces
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.publishing import Publication, publish

ATTEMPTS = 3
"""How often a sync starts again because another writer has published meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """The state of the index after a sync, and how many documents the sync read, changed and removed."""

    index: IndexState
    read: int
    """Files that were read; unchanged files are not read."""
    changed: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChanges:
    """The difference between the workspace and the index."""

    changed: tuple[LoadedDocument, ...]
    touched: tuple[Document, ...]
    """Documents with unchanged text whose files have a new stamp."""
    removed: tuple[Document, ...]
    skipped: Mapping[str, str]
    read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSync:
    """A publication, and the generation of the index that it was prepared for."""

    generation: int
    changes: DocumentChanges
    publication: Publication


def sync_index(ctx: Context, workspace: Workspace, *, files_only: bool = False) -> SyncResult:
    """Bring the index to the state of the workspace and the store; searches meanwhile see the previous state.

    Files are read outside a write transaction. If other writers publish first several times, the last attempt reads
    within the transaction. With `files_only`, documents written from rows of the store stay as they are.
    """
    for _ in range(ATTEMPTS):
        with ctx.reading() as connection:
            planned = _plan(connection, ctx, workspace, files_only=files_only)
        with ctx.writing() as transaction:
            index = stored.index_or_empty(transaction.connection, ctx.owner, now=ctx.now)
            if index.generation == planned.generation:
                return _publish(transaction.connection, index, planned, now=ctx.now)
    with ctx.writing() as transaction:
        planned = _plan(transaction.connection, ctx, workspace, files_only=files_only)
        index = stored.index_or_empty(transaction.connection, ctx.owner, now=ctx.now)
        return _publish(transaction.connection, index, planned, now=ctx.now)


def _plan(connection: Connection, ctx: Context, workspace: Workspace, *, files_only: bool) -> PlannedSync:
    index = stored.index_or_empty(connection, ctx.owner, now=ctx.now)
    indexed = stored.documents(connection, ctx.owner)
    if files_only:
        indexed = {path: document for path, document in indexed.items() if not is_trace(document.source)}
    written_up = {} if files_only else traces(connection, ctx.owner, now=ctx.now)
    changes = _find_changes(workspace, indexed, written_up, ctx.progress)
    publication = _publication(connection, ctx.owner, changes, indexed, now=ctx.now)
    return PlannedSync(generation=index.generation, changes=changes, publication=publication)


def _publish(connection: Connection, index: IndexState, planned: PlannedSync, *, now: datetime) -> SyncResult:
    changes = planned.changes
    after = publish(connection, index, planned.publication, replace(index, synced_at=now, skipped=changes.skipped))
    return SyncResult(index=after, read=changes.read, changed=len(changes.changed), removed=len(changes.removed))


def _find_changes(
    workspace: Workspace, indexed: Mapping[str, Document], written_up: Mapping[str, Trace], progress: Progress
) -> DocumentChanges:
    listing = workspace.list_files()
    skipped: dict[str, str] = dict(listing.skipped)
    changed: list[LoadedDocument] = []
    touched: list[Document] = []
    present: set[str] = set()
    read = 0
    for number, (path, stamp) in enumerate(listing.files.items(), start=1):
        progress("Reading files", number, len(listing.files))
        document = indexed.get(path)
        if document is not None and document.stamp == stamp:
            present.add(path)
            continue
        loaded = workspace.load(path)
        read += 1
        if not isinstance(loaded, LoadedDocument):
            skipped[path] = loaded
            continue
        present.add(path)
        if document is not None and _has_same_text(document, loaded):
            touched.append(replace(document, stamp=loaded.stamp))
        else:
            changed.append(loaded)
    for number, (path, trace) in enumerate(written_up.items(), start=1):
        progress("Writing up what was done", number, len(written_up))
        document = indexed.get(path)
        present.add(path)
        if document is None or document.stamp != trace.stamp:
            changed.append(trace.load())
    removed = tuple(document for path, document in indexed.items() if path not in present)
    return DocumentChanges(changed=tuple(changed), touched=tuple(touched), removed=removed, skipped=skipped, read=read)


def _has_same_text(document: Document, loaded: LoadedDocument) -> bool:
    return (document.content_hash, document.source) == (content_hash(loaded.text), loaded.source)


def _publication(
    connection: Connection, owner: str, changes: DocumentChanges, indexed: Mapping[str, Document], *, now: datetime
) -> Publication:
    removed_chunks = [
        chunk for document in changes.removed for chunk in stored.chunks(connection, owner, document.path)
    ]
    added_chunks: list[IndexedChunk] = []
    for loaded in changes.changed:
        before = stored.chunks(connection, owner, loaded.path)
        difference = compare_chunks(before, index_chunks(loaded, owner=owner, now=now))
        removed_chunks += difference.removed
        added_chunks += difference.added
    replaced = tuple(indexed[loaded.path] for loaded in changes.changed if loaded.path in indexed)
    return Publication(
        removed=(*changes.removed, *replaced),
        added=tuple(_document(loaded, owner=owner, now=now) for loaded in changes.changed),
        removed_chunks=tuple(removed_chunks),
        added_chunks=tuple(added_chunks),
        touched=changes.touched,
    )


def _document(loaded: LoadedDocument, *, owner: str, now: datetime) -> Document:
    return Document(
        owner_id=owner,
        path=loaded.path,
        source=loaded.source,
        agent=loaded.agent,
        written_at=loaded.written_at,
        content_hash=content_hash(loaded.text),
        lines=len(lines_of(loaded.text)),
        stamp=loaded.stamp,
        valid_from=now,
    )
