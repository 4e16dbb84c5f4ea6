"""Documents at rest: versions of documents, chunks, vectors, the state of the index, and what agents wrote.

The index is derived from files and other rows, so that it can be rebuilt; the audit chain does not record it. The audit
chain does record what agents wrote.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, literal, or_, select, tuple_

from backsight.core.documents.citation import Source
from backsight.core.documents.document import (
    Document,
    IndexedChunk,
    IndexState,
    Vector,
    content_hash,
    embedded_text,
    empty_index,
)
from backsight.core.documents.writing import Writing
from backsight.store.mapping import Noun, noun
from backsight.store.reading import (
    AS_OF,
    BATCH,
    OWNED,
    Columns,
    fetch,
    fetch_one,
    in_batches,
    known,
    matching,
    owned,
    parameters,
)
from backsight.store.view import View

DOCUMENTS = noun(Document, "documents", key=("path", "valid_from"), indexes=[("valid_to", "path")])
CHUNKS = noun(
    IndexedChunk, "document_chunks", key=("number",), indexes=[("path", "valid_to"), ("valid_to", "text_hash")]
)
VECTORS = noun(Vector, "document_vectors", key=("model", "text_hash", "passage"))
INDEXES = noun(IndexState, "document_indexes", key=("generation",))
WRITINGS = noun(Writing, "document_writings", indexes=[("made_at", "id"), ("run_id",)], revised=True)

INDEX_TABLES: tuple[Noun[Document] | Noun[IndexedChunk] | Noun[Vector] | Noun[IndexState], ...] = (
    DOCUMENTS,
    CHUNKS,
    VECTORS,
    INDEXES,
)
LAST_CHARACTER = "\U0010ffff"
"""The largest code point: every path that begins with a prefix sorts before the prefix with this appended."""


class ChunkHeader(NamedTuple):
    """What the ranking needs of a chunk, without its text."""

    path: str
    source: Source
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The chunks that a search may find."""

    at: datetime | None = None
    """The instant at which chunks were current; None for now."""
    agents: tuple[str, ...] = ()
    """Only documents of these agents and documents for all agents; empty for all documents."""
    sources: tuple[Source, ...] = ()
    path_prefix: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_all(self) -> bool:
        """Whether every current chunk is in the scope."""
        return self == Scope()

    def conditions(self, c: Columns) -> list[ColumnElement[bool]]:
        """The conditions of the scope on the columns of chunks."""
        conditions: list[ColumnElement[bool] | None] = [
            valid_at(c, self.at),
            or_(c.agent.is_(None), c.agent.in_(self.agents)) if self.agents else None,
            c.source.in_(self.sources) if self.sources else None,
            _starts_with(c.path, self.path_prefix) if self.path_prefix else None,
            c.written_at >= self.since if self.since is not None else None,
            c.written_at <= self.until if self.until is not None else None,
        ]
        return [condition for condition in conditions if condition is not None]


def valid_at(c: Columns, at: datetime | None) -> ColumnElement[bool]:
    """The condition that a row is current (None), or was current at an instant."""
    if at is None:
        current: ColumnElement[bool] = c.valid_to.is_(None)
        return current
    not_superseded: ColumnElement[bool] = or_(c.valid_to.is_(None), c.valid_to > at)
    return and_(c.valid_from <= at, not_superseded)


def _starts_with(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    return and_(column >= prefix, column < prefix + LAST_CHARACTER)


_I = INDEXES.table.c
_INDEX = select(INDEXES.table).where(_I.owner_id == OWNED).order_by(_I.generation.desc()).limit(1)
_INDEX_AT = _INDEX.where(_I.changed_at <= AS_OF)


def index_state(connection: Connection, owner: str, at: datetime | None = None) -> IndexState | None:
    """The state of an owner's index, now or at an instant; None if nothing was indexed by then."""
    if at is None:
        return fetch_one(connection, INDEXES, _INDEX, parameters(owner))
    return fetch_one(connection, INDEXES, _INDEX_AT, parameters(owner, as_of=at))


def index_or_empty(connection: Connection, owner: str, *, now: datetime) -> IndexState:
    """The state of an owner's index; an empty index if nothing was ever indexed."""
    return index_state(connection, owner) or empty_index(owner, now=now)


def documents(
    connection: Connection,
    owner: str,
    *,
    only: Collection[Source] = (),
    without: Collection[Source] = (),
    paths: Collection[str] | None = None,
) -> dict[str, Document]:
    """The current documents by path: of some sources, without some sources, or at some paths."""
    c = DOCUMENTS.table.c
    current = owned(DOCUMENTS, owner, valid_at(c, None))
    if only:
        current = current.where(c.source.in_(only))
    if without:
        current = current.where(c.source.not_in(without))
    statements = [current] if paths is None else [current.where(c.path.in_(batch)) for batch in in_batches(paths)]
    return {document.path: document for each in statements for document in fetch(connection, DOCUMENTS, each)}


def has_documents_of(connection: Connection, owner: str, source: Source) -> bool:
    """Whether a document of a source was ever indexed."""
    c = DOCUMENTS.table.c
    first = select(c.path).where(c.owner_id == owner, c.source == source).limit(1)
    return connection.execute(first).first() is not None


def document(connection: Connection, owner: str, path: str, at: datetime | None = None) -> Document | None:
    """The version of a document that is current, or was current at an instant."""
    c = DOCUMENTS.table.c
    return fetch_one(connection, DOCUMENTS, owned(DOCUMENTS, owner, c.path == path, valid_at(c, at)))


def chunks(connection: Connection, owner: str, path: str, at: datetime | None = None) -> list[IndexedChunk]:
    """The chunks of a document that are current, or were current at an instant, in order."""
    c = CHUNKS.table.c
    return fetch(connection, CHUNKS, owned(CHUNKS, owner, c.path == path, valid_at(c, at)).order_by(c.start_line))


def chunks_by_path(connection: Connection, owner: str, paths: Collection[str]) -> dict[str, list[IndexedChunk]]:
    """The current chunks of several documents, by path and in order."""
    c, by_path = CHUNKS.table.c, dict[str, list[IndexedChunk]]()
    for batch in in_batches(paths):
        statement = owned(CHUNKS, owner, c.path.in_(batch), valid_at(c, None)).order_by(c.path, c.start_line)
        for chunk in fetch(connection, CHUNKS, statement):
            by_path.setdefault(chunk.path, []).append(chunk)
    return by_path


def document_text(connection: Connection, owner: str, path: str, at: datetime | None = None) -> str:
    """The text of a document as it is indexed, or was indexed at an instant; empty if there is no such document."""
    return "".join(chunk.shown_text for chunk in chunks(connection, owner, path, at))


def document_texts(
    connection: Connection, owner: str, paths: Collection[str], at: datetime | None = None
) -> dict[str, str]:
    """The texts of several documents by path, read in one statement; documents that are not indexed are left out."""
    c, texts = CHUNKS.table.c, dict[str, str]()
    statement = owned(CHUNKS, owner, c.path.in_(list(paths)), valid_at(c, at)).order_by(c.path, c.start_line)
    for chunk in fetch(connection, CHUNKS, statement):
        texts[chunk.path] = texts.get(chunk.path, "") + chunk.shown_text
    return texts


def spoilt_paths(connection: Connection, owner: str) -> list[str]:
    """The documents whose current chunks are not those that were indexed: a chunk was changed, added or removed."""
    c, spoilt, texts = CHUNKS.table.c, set[str](), dict[str, list[str]]()
    columns = c.path, c.start_line, c.heading, c.text, c.text_hash
    statement = select(*columns).where(c.owner_id == owner, valid_at(c, None)).order_by(c.path, c.start_line)
    for path, _, heading, text, text_hash in connection.execute(statement):
        texts.setdefault(path, []).append(text)
        if text_hash != content_hash(embedded_text(heading, text)):
            spoilt.add(path)
    d = DOCUMENTS.table.c
    indexed = select(d.path, d.content_hash).where(d.owner_id == owner, valid_at(d, None))
    hashes = {row.path: row.content_hash for row in connection.execute(indexed)}
    spoilt.update(path for path in texts.keys() ^ hashes.keys() if path in texts or hashes[path] != _EMPTY_HASH)
    spoilt.update(path for path in texts.keys() & hashes.keys() if content_hash("".join(texts[path])) != hashes[path])
    return sorted(spoilt)


_EMPTY_HASH = content_hash("")


def numbered_chunks(connection: Connection, owner: str, numbers: Collection[int]) -> dict[int, IndexedChunk]:
    """Chunks by number, without those that somebody changed."""
    by_number: dict[int, IndexedChunk] = {}
    for batch in in_batches(numbers):
        statement = owned(CHUNKS, owner, CHUNKS.table.c.number.in_(batch))
        by_number |= {chunk.number: chunk for chunk in fetch(connection, CHUNKS, statement) if chunk.is_sound}
    return by_number


def chunk_headers(connection: Connection, owner: str, numbers: Collection[int]) -> dict[int, ChunkHeader]:
    """Chunks by number, without their text."""
    c = CHUNKS.table.c
    headers: dict[int, ChunkHeader] = {}
    columns = select(c.number, c.path, c.source, c.written_at).where(c.owner_id == owner)
    for batch in in_batches(numbers):
        rows = connection.execute(columns.where(c.number.in_(batch)))
        headers |= {row[0]: ChunkHeader(row[1], row[2], row[3]) for row in rows}
    return headers


# Vectors


def chunks_to_embed(connection: Connection, owner: str, model: str, *, limit: int) -> Mapping[str, IndexedChunk]:
    """Current chunks without a vector of a model, by text hash: one chunk per text."""
    statement = owned(CHUNKS, owner, *_without_vector(owner, model)).order_by(CHUNKS.table.c.number).limit(limit)
    return {chunk.text_hash: chunk for chunk in fetch(connection, CHUNKS, statement)}


def count_texts_to_embed(connection: Connection, owner: str, model: str) -> int:
    """How many different texts of current chunks have no vector of a model."""
    c = CHUNKS.table.c
    counted = select(func.count(c.text_hash.distinct())).where(c.owner_id == owner, *_without_vector(owner, model))
    return int(connection.execute(counted).scalar_one())


def _without_vector(owner: str, model: str) -> tuple[ColumnElement[bool], ...]:
    c, v = CHUNKS.table.c, VECTORS.table.c
    embedded = select(v.text_hash).where(v.owner_id == owner, v.model == model)
    return c.valid_to.is_(None), c.text_hash.not_in(embedded)


def count_embedded(connection: Connection, owner: str, model: str, at: datetime | None = None) -> int:
    """How many of the chunks that are current, or were at an instant, have vectors of a model.

    The vectors of a text are stored together, so that a text with the first has all.
    """
    c, v = CHUNKS.table.c, VECTORS.table.c
    same_text = (v.owner_id == c.owner_id) & (v.text_hash == c.text_hash) & (v.model == model) & (v.passage == 0)
    joined = select(func.count()).select_from(CHUNKS.table.join(VECTORS.table, same_text))
    return int(connection.execute(joined.where(c.owner_id == owner, valid_at(c, at))).scalar_one())


def numbers_in(connection: Connection, owner: str, scope: Scope) -> list[int]:
    """The numbers of all chunks in a scope, ascending."""
    c = CHUNKS.table.c
    statement = select(c.number).where(c.owner_id == owner, *scope.conditions(c)).order_by(c.number)
    return list(connection.execute(statement).scalars())


def texts_in(connection: Connection, owner: str, scope: Scope) -> Iterable[tuple[int, str]]:
    """The number and the text hash of each chunk in a scope, by ascending number."""
    c = CHUNKS.table.c
    statement = select(c.number, c.text_hash).where(c.owner_id == owner, *scope.conditions(c)).order_by(c.number)
    return ((row[0], row[1]) for row in connection.execute(statement))


def vectors(connection: Connection, owner: str, model: str, hashes: Collection[str]) -> dict[str, list[bytes]]:
    """The stored vectors of texts, by text hash: one for each passage of a text."""
    v = VECTORS.table.c
    by_hash: dict[str, list[bytes]] = {}
    for batch in in_batches(hashes):
        conditions = (v.owner_id == owner, v.model == model, v.text_hash.in_(batch))
        statement = select(v.text_hash, v["values"]).where(*conditions).order_by(v.text_hash, v.passage)
        for text_hash, values in connection.execute(statement):
            by_hash.setdefault(text_hash, []).append(bytes(values))
    return by_hash


def stored_vectors(connection: Connection, owner: str, model: str) -> Iterator[list[Vector]]:
    """All vectors of a model, in batches."""
    v = VECTORS.table.c
    last: tuple[str, int] = ("", 0)
    while True:
        is_after = tuple_(v.text_hash, v.passage) > tuple_(*map(literal, last))
        after = owned(VECTORS, owner, v.model == model, is_after).order_by(v.text_hash, v.passage).limit(BATCH)
        batch = fetch(connection, VECTORS, after)
        if not batch:
            return
        yield batch
        last = batch[-1].text_hash, batch[-1].passage


def any_vector(connection: Connection, owner: str, model: str) -> Vector | None:
    """One vector of a model; None if there is none."""
    return fetch_one(connection, VECTORS, owned(VECTORS, owner, VECTORS.table.c.model == model).limit(1))


# Writings


def writing(connection: Connection, owner: str, writing_id: str) -> Writing | None:
    """The note or edit with this id."""
    return fetch_one(connection, WRITINGS, owned(WRITINGS, owner, WRITINGS.table.c.id == writing_id))


def pending_writings(connection: Connection, owner: str) -> list[Writing]:
    """Notes that are not yet known to be in their files, oldest first."""
    c = WRITINGS.table.c
    return fetch(connection, WRITINGS, owned(WRITINGS, owner, c.status == "pending").order_by(c.made_at, c.id))


def writings(view: View, *, run_id: str | None = None) -> list[Writing]:
    """Notes and edits as of a view, newest first."""
    statement = known(WRITINGS, view.owner, view.horizon, lambda c: matching(c, run_id=run_id))
    rows = fetch(view.connection, WRITINGS, statement)
    return sorted(sorted(rows, key=lambda each: each.id), key=lambda each: each.made_at, reverse=True)
