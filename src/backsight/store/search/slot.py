"""What an index of words must offer, and the slots a search can be made in."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, Protocol, get_args

from sqlalchemy import Connection

from backsight.core.documents.document import Index, Piece
from backsight.core.documents.query import Term
from backsight.core.errors import Invalid, did_you_mean
from backsight.store.documents import Scope

Slot = Literal["sqlite_fts", "hybrid_embeddings"]
"""By words alone, or by words and meaning. The first name is older than the second database."""
SLOTS: tuple[Slot, ...] = get_args(Slot)


class Match(NamedTuple):
    """A chunk that has a term."""

    number: int
    saturation: float
    """What the term's repetition is worth in a text of this length, as BM25 has it."""


class WordIndex(Protocol):
    """Finds chunks by their words."""

    def add(self, connection: Connection, owner: str, pieces: Sequence[Piece]) -> None:
        """Index chunks that begin to stand."""
        ...

    def retire(self, connection: Connection, owner: str, pieces: Sequence[Piece]) -> None:
        """Keep chunks that no longer stand for those only who ask as of before."""
        ...

    def count(self, connection: Connection, stands: Index, term: Term) -> int:
        """How many of the chunks that stand have a term."""
        ...

    def matches(
        self,
        connection: Connection,
        stands: Index,
        term: Term,
        scope: Scope,
        *,
        having: int,
        among: Collection[int] | None = None,
    ) -> list[Match]:
        """The chunks of a scope that have a term, or those among some, in no order; `having` is what was counted."""
        ...


def slot_named(name: str) -> Slot:
    """The slot of this name.

    >>> slot_named("sqlite_fts")
    'sqlite_fts'
    >>> slot_named("faiss")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: search: 'faiss' is no slot; known: sqlite_fts, hybrid_embeddings
    """
    for slot in SLOTS:
        if slot == name:
            return slot
    raise Invalid(f"{name[:40]!r} is no slot; {did_you_mean(name, SLOTS)}", field="search")


def word_index(connection: Connection) -> WordIndex:
    """The index of words of the database that a connection is to."""
    if connection.dialect.name == "postgresql":
        from backsight.store.search.postgres_fts import PostgresWords

        return PostgresWords()
    from backsight.store.search.sqlite_fts import SqliteWords

    return SqliteWords()
