"""Publishing: a new generation of the index replaces the previous one in a single transaction.

Whatever has to be computed is computed by `prepare`, before the transaction begins: the transaction only writes rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, update

from backsight.core.documents.document import (
    Document,
    IndexedChunk,
    IndexState,
    Vector,
    assign_numbers,
    indexed_words,
)
from backsight.core.errors import Conflict
from backsight.store.database import Database, upsert_all
from backsight.store.documents import CHUNKS, DOCUMENTS, INDEXES, VECTORS, any_vector
from backsight.store.search.postgres_vectors import build_hnsw_index, write_vectors
from backsight.store.search.slot import ChunkWords, word_index


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The changes of one generation of the index."""

    removed: tuple[Document, ...] = ()
    """Versions of documents that are no longer current."""
    added: tuple[Document, ...] = ()
    removed_chunks: tuple[IndexedChunk, ...] = ()
    added_chunks: tuple[IndexedChunk, ...] = ()
    touched: tuple[Document, ...] = ()
    """Documents with unchanged text whose files have a new stamp."""

    @property
    def is_empty(self) -> bool:
        return self == Publication()


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPublication:
    """A publication and its words, ready to be written."""

    publication: Publication
    words: tuple[ChunkWords, ...]
    """The words of the added chunks."""
    words_difference: int
    """Words of the added chunks minus words of the removed chunks."""


def prepare(connection: Connection, publication: Publication) -> PreparedPublication:
    """Compute what publishing writes, outside a write transaction; the connection tells which database it is for."""
    index = word_index(connection)
    added = [indexed_words(chunk.heading, chunk.text) for chunk in publication.added_chunks]
    removed = (indexed_words(chunk.heading, chunk.text) for chunk in publication.removed_chunks)
    return PreparedPublication(
        publication=publication,
        words=tuple(index.prepare(words) for words in added),
        words_difference=sum(map(len, added)) - sum(map(len, removed)),
    )


def publish(connection: Connection, before: IndexState, prepared: PreparedPublication, after: IndexState) -> IndexState:
    """Replace one generation of the index by the next, within the caller's transaction."""
    owner, publication = before.owner_id, prepared.publication
    at = max(after.synced_at, before.changed_at)  # a generation never begins before the one that it follows
    words = word_index(connection)
    _retire(connection, owner, publication, now=at)
    words.retire(connection, owner, [chunk.number for chunk in publication.removed_chunks])
    chunks = _add(connection, publication, last_number=before.last_number, at=at)
    words.add(connection, owner, dict(zip((chunk.number for chunk in chunks), prepared.words, strict=True)))
    is_new = not publication.is_empty or after.skipped != before.skipped
    index = replace(
        after,
        generation=before.generation + is_new,
        changed_at=at if is_new else before.changed_at,
        last_number=before.last_number + len(chunks),
        chunks=before.chunks + len(chunks) - len(publication.removed_chunks),
        documents=before.documents + len(publication.added) - len(publication.removed),
        words=before.words + prepared.words_difference,
    )
    upsert_all(connection, INDEXES.table, [INDEXES.to_row(index)])
    return index


def _retire(connection: Connection, owner: str, publication: Publication, *, now: datetime) -> None:
    d, c = DOCUMENTS.table.c, CHUNKS.table.c
    documents = update(DOCUMENTS.table).where(d.owner_id == owner, d.path == bindparam("at_path"), d.valid_to.is_(None))
    chunks = update(CHUNKS.table).where(c.owner_id == owner, c.number == bindparam("at_number"))
    if publication.removed:
        paths = [{"at_path": document.path} for document in publication.removed]
        connection.execute(documents.values(valid_to=now), paths)
    if publication.removed_chunks:
        numbers = [{"at_number": chunk.number} for chunk in publication.removed_chunks]
        connection.execute(chunks.values(valid_to=now), numbers)


def _add(connection: Connection, publication: Publication, *, last_number: int, at: datetime) -> list[IndexedChunk]:
    chunks = assign_numbers(publication.added_chunks, last_number, at=at)
    documents = [*(replace(document, valid_from=at) for document in publication.added), *publication.touched]
    upsert_all(connection, DOCUMENTS.table, [DOCUMENTS.to_row(document) for document in documents])
    if chunks:
        connection.execute(insert(CHUNKS.table), [CHUNKS.to_row(chunk) for chunk in chunks])
    return chunks


def put_vectors(
    connection: Connection, index: IndexState, model: str, rows: Mapping[str, Sequence[Sequence[float]]]
) -> IndexState:
    """Store the vectors of one model by text hash: one for each passage of a text, all of them at once."""
    from backsight.store.search.vectors import pack_vector  # imports NumPy, which a search by keywords does not need

    owner = index.owner_id
    vectors = [
        Vector(owner_id=owner, model=model, text_hash=text_hash, passage=passage, values=pack_vector(row))
        for text_hash, passages in rows.items()
        for passage, row in enumerate(passages)
    ]
    if vectors:
        _check_dimensions(model, any_vector(connection, owner, model), vectors[0])
        upsert_all(connection, VECTORS.table, [VECTORS.to_row(vector) for vector in vectors])
        write_vectors(connection, owner, model, vectors)
    after = replace(index, embeddings=index.embeddings + 1)
    upsert_all(connection, INDEXES.table, [INDEXES.to_row(after)])
    return after


def _check_dimensions(model: str, stored: Vector | None, vector: Vector) -> None:
    if stored is not None and stored.dimensions != vector.dimensions:
        raise Conflict(
            f"{model!r} now gives vectors of {vector.dimensions} dimensions, but its stored vectors have "
            f"{stored.dimensions}; configure the new model under another name",
            field="embedder",
        )


def finish_vectors(database: Database, owner: str, model: str) -> None:
    """Prepare newly stored vectors for fast search, under a lock of its own so that the owner's writers do not wait."""
    with database.writing(owner, lock=f"{owner} vectors") as connection:
        build_hnsw_index(connection, owner, model)
