"""Documents at rest: versions, chunks, vectors, and how the index stands.

The index follows from files and from other rows, so the audit chain does not speak of it; it can be made again. What
agents wrote is told by the chain.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from backsight.core.documents.citation import Source
from backsight.core.documents.document import Document, Index, Piece, Vector
from backsight.core.documents.writing import Writing
from backsight.core.instants import Horizon
from backsight.store.mapping import Noun, noun
from backsight.store.reading import BATCH, Columns, fetch, fetch_one, in_batches, matching, owned

DOCUMENTS = noun(Document, "documents", key=("path", "valid_from"), indexes=[("valid_to", "path")])
CHUNKS = noun(Piece, "document_chunks", key=("number",), indexes=[("path", "valid_to"), ("valid_to", "text_hash")])
VECTORS = noun(Vector, "document_vectors", key=("model", "text_hash"))
INDEXES = noun(Index, "document_indexes", key=())
WRITINGS = noun(Writing, "document_writings", indexes=[("known_at", "id"), ("run_id",)])

INDEXED: tuple[Noun[Document] | Noun[Piece] | Noun[Vector] | Noun[Index], ...] = (DOCUMENTS, CHUNKS, VECTORS, INDEXES)
LAST = "\U0010ffff"
"""No text goes on with a later character."""


class Head(NamedTuple):
    """What a ranking must know of a chunk, without its text."""

    path: str
    source: Source
    written_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which chunks a search may find."""

    at: datetime | None = None
    """As they stood then; None: as they stand."""
    agent: str | None = None
    sources: tuple[Source, ...] = ()
    path_prefix: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_all(self) -> bool:
        """Whether every chunk that stands is in it."""
        return self == Scope()

    def conditions(self, c: Columns) -> list[ColumnElement[bool]]:
        """What chunks must fulfil, of columns named like theirs."""
        asked: list[ColumnElement[bool] | None] = [
            stood(c, self.at),
            or_(c.agent.is_(None), c.agent == self.agent) if self.agent is not None else None,
            c.source.in_(self.sources) if self.sources else None,
            _begins(c.path, self.path_prefix) if self.path_prefix else None,
            c.written_at >= self.since if self.since is not None else None,
            c.written_at <= self.until if self.until is not None else None,
        ]
        return [each for each in asked if each is not None]


def stood(c: Columns, at: datetime | None) -> ColumnElement[bool]:
    """Stands, or stood at an instant."""
    if at is None:
        now: ColumnElement[bool] = c.valid_to.is_(None)
        return now
    stands: ColumnElement[bool] = or_(c.valid_to.is_(None), c.valid_to > at)
    return and_(c.valid_from <= at, stands)


def _begins(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    return and_(column >= prefix, column < prefix + LAST)


def index(connection: Connection, owner: str) -> Index | None:
    """How the index stands; None where nothing was ever indexed."""
    return fetch_one(connection, INDEXES, owned(INDEXES, owner))


def documents(connection: Connection, owner: str, at: datetime | None = None) -> dict[str, Document]:
    """The documents that stand, or stood then, by path."""
    found = fetch(connection, DOCUMENTS, owned(DOCUMENTS, owner, stood(DOCUMENTS.table.c, at)))
    return {document.path: document for document in found}


def document(connection: Connection, owner: str, path: str, at: datetime | None = None) -> Document | None:
    """The version of a document that stands, or stood then."""
    c = DOCUMENTS.table.c
    return fetch_one(connection, DOCUMENTS, owned(DOCUMENTS, owner, c.path == path, stood(c, at)))


def chunks(connection: Connection, owner: str, path: str, at: datetime | None = None) -> list[Piece]:
    """The chunks of a document that stand, or stood then, in order."""
    c = CHUNKS.table.c
    return fetch(connection, CHUNKS, owned(CHUNKS, owner, c.path == path, stood(c, at)).order_by(c.start_line))


def numbered_chunks(connection: Connection, owner: str, numbers: Collection[int]) -> dict[int, Piece]:
    """Chunks by their numbers."""
    found: dict[int, Piece] = {}
    for some in in_batches(numbers):
        statement = owned(CHUNKS, owner, CHUNKS.table.c.number.in_(some))
        found |= {piece.number: piece for piece in fetch(connection, CHUNKS, statement)}
    return found


def heads(connection: Connection, owner: str, numbers: Collection[int]) -> dict[int, Head]:
    """Chunks by their numbers, without their texts."""
    c = CHUNKS.table.c
    found: dict[int, Head] = {}
    asked = select(c.number, c.path, c.source, c.written_at).where(c.owner_id == owner)
    for some in in_batches(numbers):
        rows = connection.execute(asked.where(c.number.in_(some)))
        found |= {row[0]: Head(row[1], row[2], row[3]) for row in rows}
    return found


# Vectors


def hashes_without_vector(connection: Connection, owner: str, model: str, *, limit: int) -> Mapping[str, Piece]:
    """Chunks that stand and whose text has no vector of this model, one a text."""
    statement = owned(CHUNKS, owner, *_without_vector(owner, model)).order_by(CHUNKS.table.c.number).limit(limit)
    return {piece.text_hash: piece for piece in fetch(connection, CHUNKS, statement)}


def without_vector(connection: Connection, owner: str, model: str) -> int:
    """How many texts of chunks that stand have no vector of this model."""
    c = CHUNKS.table.c
    counted = select(func.count(c.text_hash.distinct())).where(c.owner_id == owner, *_without_vector(owner, model))
    return int(connection.execute(counted).scalar_one())


def _without_vector(owner: str, model: str) -> tuple[ColumnElement[bool], ...]:
    c, v = CHUNKS.table.c, VECTORS.table.c
    having = select(v.text_hash).where(v.owner_id == owner, v.model == model)
    return c.valid_to.is_(None), c.text_hash.not_in(having)


def embedded(connection: Connection, owner: str, model: str) -> int:
    """How many chunks that stand have a vector of this model."""
    c, v = CHUNKS.table.c, VECTORS.table.c
    mine = (v.owner_id == c.owner_id) & (v.text_hash == c.text_hash) & (v.model == model)
    joined = select(func.count()).select_from(CHUNKS.table.join(VECTORS.table, mine))
    return int(connection.execute(joined.where(c.owner_id == owner, c.valid_to.is_(None))).scalar_one())


def numbers_in(connection: Connection, owner: str, scope: Scope) -> list[int]:
    """The number of every chunk in a scope, in order."""
    c = CHUNKS.table.c
    statement = select(c.number).where(c.owner_id == owner, *scope.conditions(c)).order_by(c.number)
    return list(connection.execute(statement).scalars())


def texts_in(connection: Connection, owner: str, scope: Scope) -> Iterable[tuple[int, str]]:
    """The number and the text's hash of every chunk in a scope."""
    c = CHUNKS.table.c
    statement = select(c.number, c.text_hash).where(c.owner_id == owner, *scope.conditions(c)).order_by(c.number)
    return ((row[0], row[1]) for row in connection.execute(statement))


def vectors(connection: Connection, owner: str, model: str, hashes: Collection[str]) -> dict[str, bytes]:
    """The vectors of texts, by their hashes."""
    v = VECTORS.table.c
    found: dict[str, bytes] = {}
    for some in in_batches(hashes):
        mine = (v.owner_id == owner, v.model == model, v.text_hash.in_(some))
        statement = select(v.text_hash, v["values"]).where(*mine)
        found |= {row[0]: bytes(row[1]) for row in connection.execute(statement)}
    return found


def stored_vectors(connection: Connection, owner: str, model: str) -> Iterator[list[Vector]]:
    """Every vector of a model, some at a time."""
    v = VECTORS.table.c
    last = ""
    while True:
        after = owned(VECTORS, owner, v.model == model, v.text_hash > last).order_by(v.text_hash).limit(BATCH)
        some = fetch(connection, VECTORS, after)
        if not some:
            return
        yield some
        last = some[-1].text_hash


def any_vector(connection: Connection, owner: str, model: str) -> Vector | None:
    """One of the vectors of a model; None where there is none."""
    return fetch_one(connection, VECTORS, owned(VECTORS, owner, VECTORS.table.c.model == model).limit(1))


# Writings


def writing(connection: Connection, owner: str, writing_id: str) -> Writing | None:
    """The note or edit of this id."""
    return fetch_one(connection, WRITINGS, owned(WRITINGS, owner, WRITINGS.table.c.id == writing_id))


def pending_writings(connection: Connection, owner: str) -> list[Writing]:
    """Notes that are not known to stand in their files, oldest first."""
    c = WRITINGS.table.c
    return fetch(connection, WRITINGS, owned(WRITINGS, owner, c.status == "pending").order_by(c.known_at, c.id))


def writings(connection: Connection, owner: str, horizon: Horizon, *, run_id: str | None = None) -> list[Writing]:
    """What was written or proposed, newest first."""
    c = WRITINGS.table.c
    asked = owned(WRITINGS, owner, c.known_at <= horizon.as_of, *matching(WRITINGS, run_id=run_id))
    return fetch(connection, WRITINGS, asked.order_by(c.known_at.desc(), c.id))
