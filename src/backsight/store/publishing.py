"""Publishing: one generation of an index takes the place of another, wholly or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, update

from backsight.core.documents.document import Document, Index, Piece, Vector, indexed_words, numbered
from backsight.core.errors import Conflict
from backsight.store.database import upsert, upsert_all
from backsight.store.documents import CHUNKS, DOCUMENTS, INDEXES, VECTORS, any_vector
from backsight.store.search.postgres_vectors import keep
from backsight.store.search.slot import word_index


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What one generation of the index changes."""

    ended: tuple[Document, ...] = ()
    """Versions of documents that no longer stand."""
    begun: tuple[Document, ...] = ()
    ended_chunks: tuple[Piece, ...] = ()
    begun_chunks: tuple[Piece, ...] = ()
    touched: tuple[Document, ...] = ()
    """Documents that say what they said, though their files were written."""

    @property
    def is_empty(self) -> bool:
        return self == Publication()


def publish(connection: Connection, before: Index, publication: Publication, after: Index) -> Index:
    """Put one generation in the place of another; the caller's transaction makes that one moment for every reader."""
    owner = before.owner_id
    words = word_index(connection)
    _end(connection, owner, publication, now=after.synced_at)
    words.retire(connection, owner, publication.ended_chunks)
    made = _begin(connection, publication, last_number=before.last_number)
    words.add(connection, owner, made)
    stands = replace(
        after,
        generation=before.generation + (not publication.is_empty),
        last_number=before.last_number + len(made),
        chunks=before.chunks + len(made) - len(publication.ended_chunks),
        documents=before.documents + len(publication.begun) - len(publication.ended),
        words=before.words + _count(made) - _count(publication.ended_chunks),
    )
    upsert(connection, INDEXES.table, INDEXES.to_row(stands))
    return stands


def _count(pieces: Sequence[Piece]) -> int:
    return sum(len(indexed_words(piece.heading, piece.text)) for piece in pieces)


def _end(connection: Connection, owner: str, publication: Publication, *, now: datetime) -> None:
    d, c = DOCUMENTS.table.c, CHUNKS.table.c
    documents = update(DOCUMENTS.table).where(d.owner_id == owner, d.path == bindparam("at_path"), d.valid_to.is_(None))
    chunks = update(CHUNKS.table).where(c.owner_id == owner, c.number == bindparam("at_number"))
    if publication.ended:
        connection.execute(documents.values(valid_to=now), [{"at_path": each.path} for each in publication.ended])
    if publication.ended_chunks:
        ended = [{"at_number": each.number} for each in publication.ended_chunks]
        connection.execute(chunks.values(valid_to=now), ended)


def _begin(connection: Connection, publication: Publication, *, last_number: int) -> list[Piece]:
    made = numbered(publication.begun_chunks, last_number)
    documents = [*publication.begun, *publication.touched]
    upsert_all(connection, DOCUMENTS.table, [DOCUMENTS.to_row(each) for each in documents])
    if made:
        connection.execute(insert(CHUNKS.table), [CHUNKS.to_row(piece) for piece in made])
    return made


def put_vectors(connection: Connection, stands: Index, vectors: Sequence[Vector]) -> Index:
    """Keep vectors of one model, each in place of the one of its text."""
    if vectors:
        owner, model = stands.owner_id, vectors[0].model
        _check_numbers(model, any_vector(connection, owner, model), vectors[0])
        upsert_all(connection, VECTORS.table, [VECTORS.to_row(each) for each in vectors])
        keep(connection, owner, model, vectors)
    after = replace(stands, embeddings=stands.embeddings + 1)
    upsert(connection, INDEXES.table, INDEXES.to_row(after))
    return after


def _check_numbers(model: str, former: Vector | None, vector: Vector) -> None:
    if former is not None and former.numbers != vector.numbers:
        told = f"{model!r} gave {vector.numbers} numbers a text, and {former.numbers} before"
        raise Conflict(f"{told}; it is another model, so give it another name", field="embedder")
