"""Keyword search in PostgreSQL: a `tsvector` per chunk, with words stemmed in Python, and a GIN index.

BM25 needs the frequency of a term in a chunk, and PostgreSQL gives only `ts_rank`. With equal weights, the rank of a
single word that occurs n times is (1 + 1/4 + ... + 1/n²) / (π²/6). So n is read back from the rank, and BM25 is
computed from n. A phrase or a prefix counts as one occurrence.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Join,
    Select,
    TableValuedAlias,
    Text,
    and_,
    bindparam,
    func,
    select,
    text,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY

from backsight.core.documents.document import IndexState
from backsight.core.documents.merge import saturation
from backsight.core.documents.query import Term
from backsight.core.text.stems import distinct_stem
from backsight.store.documents import CHUNKS, Scope
from backsight.store.row_security import WORDS_TABLE
from backsight.store.search.slot import ChunkWords, TermMatch

MAX_WORDS = 16_000
"""Words of a chunk that are indexed with their positions: PostgreSQL stores no more. Later words count once."""
MAX_BYTES = 500_000
"""Bytes of a chunk's words that are indexed; PostgreSQL limits a tsvector, including its positions, to a megabyte."""
_RANK_BY_FREQUENCY = list(accumulate(1 / n**2 / 1.64493406685 for n in range(1, 257)))
_INSERT = text(
    f"INSERT INTO {WORDS_TABLE} (owner_id, number, former, length, words) "  # noqa: S608
    "VALUES (:owner, :number, false, :length, to_tsvector('simple', :words))"
)
_RETIRE = text(f"UPDATE {WORDS_TABLE} SET former = true WHERE owner_id = :owner AND number = :number")  # noqa: S608

_ERASE = text(f"DELETE FROM {WORDS_TABLE} WHERE owner_id = :owner")  # noqa: S608


def _matching(term: Term, *, ranked: bool, only: Collection[int] | None = None) -> TableValuedAlias:
    """The chunks of the connection's owner that contain a term, by the function that `row_security` describes."""
    numbers = None if only is None else list(only)
    matching = func.backsight_words(
        bindparam("query", _tsquery(term), Text(), unique=True), ranked, type_coerce(numbers, ARRAY(BigInteger()))
    )
    return matching.table_valued("number", "former", "length", "rank", name="w")


class PostgresWords:
    """The keyword index in the table of words of one schema; `former` marks superseded chunks."""

    def prepare(self, words: Sequence[str]) -> ChunkWords:
        return ChunkWords(" ".join(_truncate([distinct_stem(word) for word in words])), len(words))

    def add(self, connection: Connection, owner: str, chunks: Mapping[int, ChunkWords]) -> None:
        if chunks:
            rows = [
                {"owner": owner, "number": number, "length": words.length, "words": words.text}
                for number, words in chunks.items()
            ]
            connection.execute(_INSERT, rows)

    def retire(self, connection: Connection, owner: str, numbers: Sequence[int]) -> None:
        if numbers:
            connection.execute(_RETIRE, [{"owner": owner, "number": number} for number in numbers])

    def erase(self, connection: Connection, owner: str) -> None:
        connection.execute(_ERASE, {"owner": owner})

    def count(self, connection: Connection, index: IndexState, term: Term, at: datetime | None = None) -> int:
        words = _matching(term, ranked=False)
        if at is None:
            counted = select(func.count()).select_from(words).where(words.c.former.is_(False))
        else:
            counted = select(func.count()).select_from(_in_scope(words, index.owner_id, Scope(at=at)))
        return int(connection.execute(counted).scalar_one())

    def matches(
        self,
        connection: Connection,
        index: IndexState,
        term: Term,
        scope: Scope,
        *,
        document_frequency: int,
        only: Collection[int] | None = None,
    ) -> list[TermMatch]:
        mean_length = index.words / index.chunks if index.chunks else 0.0
        is_word = len(term.words) == 1 and not (term.prefix or term.spellings)
        return [
            TermMatch(number, saturation(term_frequency(rank) if is_word else 1, length, mean_length))
            for number, rank, length in connection.execute(_statement(index, term, scope, only)).all()
        ]


def _truncate(stems: Sequence[str]) -> list[str]:
    """As many stems as PostgreSQL accepts; only a chunk that is one huge line has more."""
    first = stems[:MAX_WORDS]
    listed = [*first, *sorted(set(stems[MAX_WORDS:]) - set(first))]
    sizes = accumulate(len(word.encode()) + 1 for word in listed)
    return [word for word, size in zip(listed, sizes, strict=True) if size <= MAX_BYTES]


def term_frequency(rank: float) -> int:
    """How often a word occurs in a text, from its `ts_rank` with equal weights.

    >>> [term_frequency(rank) for rank in (0.6079271, 0.7599089, 0.82745635)]
    [1, 2, 3]
    """
    return min(bisect_left(_RANK_BY_FREQUENCY, rank - 1e-6), len(_RANK_BY_FREQUENCY) - 1) + 1


def _statement(index: IndexState, term: Term, scope: Scope, only: Collection[int] | None) -> Select[Any]:
    words = _matching(term, ranked=True, only=only)
    statement = select(words.c.number, words.c.rank, words.c.length)
    if scope.at is None:
        statement = statement.where(words.c.former.is_(False))
    if not scope.is_all:
        statement = statement.select_from(_in_scope(words, index.owner_id, scope))
    return statement


def _in_scope(words: TableValuedAlias, owner: str, scope: Scope) -> Join:
    """The words of the chunks of a scope."""
    c = CHUNKS.table.c
    return words.join(CHUNKS.table, and_(c.owner_id == owner, c.number == words.c.number, *scope.conditions(c)))


def _tsquery(term: Term) -> str:
    """A term in PostgreSQL's query language; words are only letters and digits, so that none is an operator."""
    if term.spellings:
        return " | ".join(dict.fromkeys(f"'{distinct_stem(word)}'" for word in term.spellings))
    phrase = " <-> ".join(f"'{distinct_stem(word)}'" for word in term.words)
    return f"{phrase}:*" if term.prefix else phrase
