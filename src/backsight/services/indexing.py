"""Bringing the index up to date: read the documents that changed, and publish the changes in short transactions.

Files and documents written from rows of the store are published apart. Everything is read and computed before a write
transaction begins; the transaction checks that nobody else has published the same documents meanwhile, and writes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from backsight.core.documents.write_policy import NOTE_SOURCES
from backsight.core.errors import Unavailable
from backsight.importers.workspace import Workspace
from backsight.services.context import Context
from backsight.services.traces import TRACE_SOURCES, Trace, traces
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.publishing import PreparedPublication, Publication, prepare, publish

ATTEMPTS = 20
"""How often documents are read again because another process has published them meanwhile."""
TRACES_PER_TRANSACTION = 40
"""Documents from the store that are published at once: a writer waits for this many at most."""
ROOT = "."
"""The whole workspace, where a path is expected."""
EMPTIED = (
    "no indexed file is left, so the index of the former files is kept; "
    "if they were deleted on purpose, reindex with accept_empty"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """The state of the index after a sync, and how many documents the sync read, changed and removed."""

    index: IndexState
    read: int = 0
    """Files that were read; unchanged files are not read."""
    changed: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChanges:
    """The difference between documents and the index."""

    changed: tuple[LoadedDocument, ...] = ()
    touched: tuple[Document, ...] = ()
    """Documents with unchanged text whose files have a new stamp."""
    removed: tuple[Document, ...] = ()
    skipped: Mapping[str, str] | None = None
    """Files that cannot be indexed, with the reason; None if files were not listed."""
    read: int = 0

    @property
    def paths(self) -> list[str]:
        documents: Sequence[Document | LoadedDocument] = (*self.changed, *self.touched, *self.removed)
        return [document.path for document in documents]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSync:
    """Changes that are ready to be published, and the versions of the documents that they were computed from."""

    changes: DocumentChanges
    before: Mapping[str, Document]
    prepared: PreparedPublication


def sync_index(
    ctx: Context, workspace: Workspace, *, files_only: bool = False, accept_empty: bool = False
) -> SyncResult:
    """Bring the index to the state of the workspace and the store; searches meanwhile see the previous state.

    With `files_only`, documents written from rows of the store stay as they are. If no indexed file is left, the index
    of the former files is dropped only with `accept_empty`. Documents whose rows somebody changed are indexed again,
    unless `files_only`.
    """
    spoilt: frozenset[str] = frozenset()
    if not files_only:
        with ctx.reading() as connection:
            spoilt = frozenset(stored.spoilt_paths(connection, ctx.owner))
            indexed = stored.documents(connection, ctx.owner, without=TRACE_SOURCES)
        spoilt |= frozenset(contradicted_files(workspace, indexed))
    files = _sync_files(ctx, workspace, spoilt, accept_empty=accept_empty)
    if files_only:
        return files
    parts = [files, *_sync_all_traces(ctx, spoilt)]
    return SyncResult(
        index=parts[-1].index,
        read=files.read,
        changed=sum(part.changed for part in parts),
        removed=sum(part.removed for part in parts),
    )


# Files


def _sync_files(ctx: Context, workspace: Workspace, spoilt: frozenset[str], *, accept_empty: bool) -> SyncResult:
    for _ in range(ATTEMPTS):
        with ctx.reading() as connection:
            indexed = stored.documents(connection, ctx.owner, without=TRACE_SOURCES)
        changes = _file_changes(ctx, workspace, indexed, spoilt, accept_empty=accept_empty)
        if (result := _publish(ctx, changes, indexed)) is not None:
            return result
    raise _overtaken()


def _file_changes(
    ctx: Context,
    workspace: Workspace,
    indexed: Mapping[str, Document],
    spoilt: frozenset[str],
    *,
    accept_empty: bool,
) -> DocumentChanges:
    listing = workspace.list_files()
    skipped: dict[str, str] = dict(listing.skipped)
    changed: list[LoadedDocument] = []
    touched: list[Document] = []
    present: set[str] = set()
    read = 0
    for number, (path, stamp) in enumerate(listing.files.items(), start=1):
        ctx.progress("Reading files", number, len(listing.files))
        document = indexed.get(path)
        if document is not None and document.stamp == stamp and path not in spoilt:
            present.add(path)
            continue
        loaded = workspace.load(path)
        read += 1
        if not isinstance(loaded, LoadedDocument):
            skipped[path] = loaded
            continue
        present.add(path)
        if document is not None and _has_same_text(document, loaded) and path not in spoilt:
            touched.append(replace(document, stamp=loaded.stamp))
        else:
            changed.append(loaded)
    removed = tuple(document for path, document in indexed.items() if path not in present)
    if not accept_empty and _is_emptied(indexed, removed, changed):
        removed, skipped[ROOT] = (), EMPTIED
    return DocumentChanges(changed=tuple(changed), touched=tuple(touched), removed=removed, skipped=skipped, read=read)


def _is_emptied(
    indexed: Mapping[str, Document], removed: Collection[Document], changed: Collection[LoadedDocument]
) -> bool:
    """Whether several files are gone and nothing is left but notes that were written since, as if a disk were missing.

    Files that were moved are not gone.
    """
    if not removed or (len(removed) == 1 and (changed or len(indexed) > 1)):
        return False
    gone, new = {document.path for document in removed}, {loaded.path for loaded in changed}
    last = max(document.valid_from for document in removed)
    is_left = any(
        document.source not in NOTE_SOURCES or (path not in new and document.valid_from <= last)
        for path, document in indexed.items()
        if path not in gone
    )
    texts = {document.content_hash for document in removed}
    return not is_left and texts.isdisjoint(content_hash(loaded.text) for loaded in changed)


def _has_same_text(document: Document, loaded: LoadedDocument) -> bool:
    return (document.content_hash, document.source) == (content_hash(loaded.text), loaded.source)


def contradicted_files(workspace: Workspace, indexed: Mapping[str, Document]) -> list[str]:
    """The indexed files that have not changed since, and whose text is not the one that was indexed."""
    contradicted: list[str] = []
    for path, document in indexed.items():
        loaded = workspace.load(path)
        if isinstance(loaded, LoadedDocument) and loaded.stamp == document.stamp:
            contradicted += [] if _has_same_text(document, loaded) else [path]
    return contradicted


# Documents from rows of the store


def _sync_all_traces(ctx: Context, spoilt: frozenset[str]) -> Iterator[SyncResult]:
    """Remove documents whose rows are gone, and write those whose rows have changed, some at a time."""
    with ctx.reading() as connection:
        indexed = stored.documents(connection, ctx.owner, only=TRACE_SOURCES)
        present = traces(connection, ctx.owner, now=ctx.now)
    removed = tuple(document for path, document in indexed.items() if path not in present)
    # If another process publishes one of them first, it removes them as well.
    if removed and (result := _publish(ctx, DocumentChanges(removed=removed), indexed)) is not None:
        yield result
    stale = list(_stale(present.values(), indexed, spoilt))
    for first in range(0, len(stale), TRACES_PER_TRANSACTION):
        yield _sync_traces(ctx, stale[first : first + TRACES_PER_TRANSACTION], spoilt)
        ctx.progress("Writing up what was done", min(first + TRACES_PER_TRANSACTION, len(stale)), len(stale))


def _stale(candidates: Iterable[Trace], indexed: Mapping[str, Document], spoilt: frozenset[str]) -> Iterable[Trace]:
    return (
        each
        for each in candidates
        if each.path not in indexed or indexed[each.path].stamp != each.stamp or each.path in spoilt
    )


def _sync_traces(ctx: Context, batch: Sequence[Trace], spoilt: frozenset[str]) -> SyncResult:
    """Write up some documents and publish them; those that another process has published meanwhile are left out."""
    for _ in range(ATTEMPTS):
        with ctx.reading() as connection:
            indexed = stored.documents(connection, ctx.owner, paths=[each.path for each in batch])
            changes = DocumentChanges(changed=tuple(each.load(connection) for each in _stale(batch, indexed, spoilt)))
        if (result := _publish(ctx, changes, indexed)) is not None:
            return result
    raise _overtaken()


# Publishing


def _publish(ctx: Context, changes: DocumentChanges, indexed: Mapping[str, Document]) -> SyncResult | None:
    """Publish changes, unless one of their documents has been published by another process meanwhile: then None."""
    planned = _plan(ctx, changes, indexed)
    with ctx.writing() as transaction:
        connection = transaction.connection
        if stored.documents(connection, ctx.owner, paths=changes.paths) != planned.before:
            return None
        index = stored.index_or_empty(connection, ctx.owner, now=ctx.now)
        skipped = index.skipped if changes.skipped is None else changes.skipped
        synced = replace(index, synced_at=max(ctx.now, index.synced_at), skipped=skipped)
        after = publish(connection, index, planned.prepared, synced)
    return SyncResult(index=after, read=changes.read, changed=len(changes.changed), removed=len(changes.removed))


def _plan(ctx: Context, changes: DocumentChanges, indexed: Mapping[str, Document]) -> PlannedSync:
    """What publishing the changes writes; reads the chunks that are replaced."""
    before = {path: indexed[path] for path in changes.paths if path in indexed}
    with ctx.reading() as connection:
        publication = _publication(connection, ctx, changes, before)
        return PlannedSync(changes=changes, before=before, prepared=prepare(connection, publication))


def _publication(
    connection: Connection, ctx: Context, changes: DocumentChanges, before: Mapping[str, Document]
) -> Publication:
    replaced = [*(document.path for document in changes.removed), *(each.path for each in changes.changed)]
    chunks = stored.chunks_by_path(connection, ctx.owner, replaced)
    removed_chunks = [chunk for document in changes.removed for chunk in chunks.get(document.path, ())]
    added_chunks: list[IndexedChunk] = []
    for loaded in changes.changed:
        new = index_chunks(loaded, owner=ctx.owner, now=ctx.now)
        difference = compare_chunks(chunks.get(loaded.path, ()), new)
        removed_chunks += difference.removed
        added_chunks += difference.added
    return Publication(
        removed=(*changes.removed, *(before[each.path] for each in changes.changed if each.path in before)),
        added=tuple(_document(loaded, ctx) for loaded in changes.changed),
        removed_chunks=tuple(removed_chunks),
        added_chunks=tuple(added_chunks),
        touched=changes.touched,
    )


def _document(loaded: LoadedDocument, ctx: Context) -> Document:
    return Document(
        owner_id=ctx.owner,
        path=loaded.path,
        source=loaded.source,
        agent=loaded.agent,
        written_at=loaded.written_at,
        content_hash=content_hash(loaded.text),
        lines=len(lines_of(loaded.text)),
        stamp=loaded.stamp,
        valid_from=ctx.now,
    )


def _overtaken() -> Unavailable:
    return Unavailable("other processes keep changing the same documents; run reindex again", field="index")
