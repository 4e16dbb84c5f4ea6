"""The search slots of the settings, and the contract that the keyword index of each database fulfils."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, get_args

from sqlalchemy import Connection

from backsight.core.errors import Invalid, did_you_mean

if TYPE_CHECKING:  # every start reads the settings of the search, and few starts search
    from backsight.core.documents.document import IndexState
    from backsight.core.documents.query import Term
    from backsight.store.documents import Scope

Slot = Literal["sqlite_fts", "hybrid_embeddings"]
"""Keyword search alone, or keyword and vector search. Both slots work on both databases, despite the first name."""
SLOTS: tuple[Slot, ...] = get_args(Slot)


class TermMatch(NamedTuple):
    """A chunk that contains a term."""

    number: int
    saturation: float
    """BM25's weight of the term in this chunk, without the inverse document frequency."""


class ChunkWords(NamedTuple):
    """The words of a chunk as a keyword index stores them."""

    text: str
    length: int
    """The number of words."""


class WordIndex(Protocol):
    """The keyword index of one database."""

    def prepare(self, words: Sequence[str]) -> ChunkWords:
        """The words of a chunk in stored form; computed before the write transaction begins."""
        ...

    def add(self, connection: Connection, owner: str, chunks: Mapping[int, ChunkWords]) -> None:
        """Add the words of new chunks, by chunk number."""
        ...

    def retire(self, connection: Connection, owner: str, numbers: Sequence[int]) -> None:
        """Mark chunks as superseded: only queries as of an earlier instant find them."""
        ...

    def erase(self, connection: Connection, owner: str) -> None:
        """Remove the words of all chunks of an owner."""
        ...

    def count(self, connection: Connection, index: "IndexState", term: "Term", at: datetime | None = None) -> int:
        """Document frequency: how many of the chunks that are current, or were at an instant, contain a term."""
        ...

    def matches(
        self,
        connection: Connection,
        index: "IndexState",
        term: "Term",
        scope: "Scope",
        *,
        document_frequency: int,
        only: Collection[int] | None = None,
    ) -> list[TermMatch]:
        """The chunks of a scope that contain a term, unordered; with `only`, among the chunks with these numbers.

        `index` and `document_frequency` are those of the instant of the scope.
        """
        ...


def slot_named(name: str) -> Slot:
    """The search slot with this name.

    >>> slot_named("sqlite_fts")
    'sqlite_fts'
    >>> slot_named("faiss")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: search: 'faiss' is not a search slot; known: sqlite_fts, hybrid_embeddings
    """
    for slot in SLOTS:
        if slot == name:
            return slot
    raise Invalid(f"{name[:40]!r} is not a search slot; {did_you_mean(name, SLOTS)}", field="search")


def word_index(connection: Connection) -> WordIndex:
    """The keyword index of the connection's database."""
    if connection.dialect.name == "postgresql":
        from backsight.store.search.postgres_fts import PostgresWords

        return PostgresWords()
    from backsight.store.search.sqlite_fts import SqliteWords

    return SqliteWords()
