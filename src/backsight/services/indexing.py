"""Bringing the index up to date: read what changed, and publish it at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.documents.chunk import lines_of
from backsight.core.documents.document import (
    Document,
    Index,
    Piece,
    Read,
    Stamp,
    content_hash,
    no_index,
    pieces_of,
    revised,
)
from backsight.importers.workspace import Workspace
from backsight.services.context import Context, Progress
from backsight.services.traces import Trace, is_trace, traces
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.publishing import Publication, publish

TRIES = 3
"""How often another writer may come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """How the index stands, and what it took to bring it there."""

    stands: Index
    read: int
    """Files that were read; one that is as it was is not."""
    changed: int
    removed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """What is in the workspace, beside what is in the index."""

    changed: tuple[Read, ...]
    touched: tuple[Document, ...]
    gone: tuple[Document, ...]
    skipped: Mapping[str, str]
    read: int


def sync(ctx: Context, workspace: Workspace, *, files_only: bool = False) -> Synced:
    """Bring the index to what the workspace and the store hold; a search meanwhile finds what there was before.

    Files are read while nobody waits. Where other writers keep coming first, they wait in the end. With `files_only`,
    what the store tells stays as it was indexed last.
    """
    for _ in range(TRIES):
        with ctx.reading() as connection:
            seen = _seen(connection, ctx, workspace, files_only=files_only)
        with ctx.writing() as transaction:
            if _index(transaction.connection, ctx).generation == seen.before.generation:
                return _published(transaction.connection, ctx, seen)
    with ctx.writing() as transaction:
        seen = _seen(transaction.connection, ctx, workspace, files_only=files_only)
        return _published(transaction.connection, ctx, seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What is to be published, and which index it was worked out for."""

    before: Index
    looked: _Looked
    publication: Publication


def _index(connection: Connection, ctx: Context) -> Index:
    return stored.index(connection, ctx.owner) or no_index(ctx.owner, now=ctx.now)


def _seen(connection: Connection, ctx: Context, workspace: Workspace, *, files_only: bool) -> _Seen:
    before, standing = _index(connection, ctx), stored.documents(connection, ctx.owner)
    if files_only:
        standing = {path: each for path, each in standing.items() if not is_trace(each.source)}
    told = {} if files_only else traces(connection, ctx.owner, now=ctx.now)
    looked = _look(workspace, standing, told, ctx.progress)
    publication = _publication(connection, ctx.owner, looked, standing, now=ctx.now)
    return _Seen(before=before, looked=looked, publication=publication)


def _published(connection: Connection, ctx: Context, seen: _Seen) -> Synced:
    after = replace(_index(connection, ctx), synced_at=ctx.now, skipped=seen.looked.skipped)
    stands = publish(connection, after, seen.publication, after)
    looked = seen.looked
    return Synced(stands=stands, read=looked.read, changed=len(looked.changed), removed=len(looked.gone))


def _look(
    workspace: Workspace, standing: Mapping[str, Document], told: Mapping[str, Trace], progress: Progress
) -> _Looked:
    listing = workspace.list_files()
    skipped: dict[str, str] = dict(listing.skipped)
    changed: list[Read] = []
    touched: list[Document] = []
    present: set[str] = set()
    read = 0
    for number, (path, stamp) in enumerate(listing.files.items(), start=1):
        progress("Reading files", number, len(listing.files))
        known = standing.get(path)
        if known is not None and known.stamp == stamp:
            present.add(path)
            continue
        said = workspace.read(path)
        read += 1
        if not isinstance(said, Read):
            skipped[path] = said
            continue
        present.add(path)
        if known is not None and _says_the_same(known, said):
            touched.append(replace(known, stamp=said.stamp))
        else:
            changed.append(said)
    for number, (path, trace) in enumerate(told.items(), start=1):
        progress("Writing up what was done", number, len(told))
        known = standing.get(path)
        present.add(path)
        if known is None or known.stamp != trace.stamp:
            changed.append(trace.read())
    gone = tuple(document for path, document in standing.items() if path not in present)
    return _Looked(changed=tuple(changed), touched=tuple(touched), gone=gone, skipped=skipped, read=read)


def _says_the_same(known: Document, said: Read) -> bool:
    return (known.content_hash, known.source) == (content_hash(said.text), said.source)


def _publication(
    connection: Connection, owner: str, looked: _Looked, standing: Mapping[str, Document], *, now: datetime
) -> Publication:
    ended_chunks: list[Piece] = [piece for each in looked.gone for piece in stored.chunks(connection, owner, each.path)]
    begun_chunks: list[Piece] = []
    for read in looked.changed:
        revision = revised(stored.chunks(connection, owner, read.path), pieces_of(read, owner=owner, now=now))
        ended_chunks += revision.ended
        begun_chunks += revision.begun
    replaced = tuple(standing[read.path] for read in looked.changed if read.path in standing)
    return Publication(
        ended=(*looked.gone, *replaced),
        begun=tuple(_document(read, owner=owner, now=now) for read in looked.changed),
        ended_chunks=tuple(ended_chunks),
        begun_chunks=tuple(begun_chunks),
        touched=looked.touched,
    )


def _document(read: Read, *, owner: str, now: datetime) -> Document:
    return Document(
        owner_id=owner,
        path=read.path,
        source=read.source,
        agent=read.agent,
        written_at=read.written_at,
        content_hash=content_hash(read.text),
        lines=len(lines_of(read.text)),
        stamp=Stamp(size=read.stamp.size, changed=read.stamp.changed),
        valid_from=now,
    )
