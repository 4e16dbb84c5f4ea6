"""Keyword search in PostgreSQL: a `tsvector` per chunk, with words stemmed in Python, and a GIN index.

BM25 needs the frequency of a term in a chunk, and PostgreSQL gives only `ts_rank`. With equal weights, the rank of a
single word that occurs n times is (1 + 1/4 + ... + 1/n²) / (π²/6). So n is read back from the rank, and BM25 is
computed from n. A phrase or a prefix counts as one occurrence.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, Join, Select, and_, column, func, literal_column, select, table, text

from backsight.core.documents.document import IndexedChunk, IndexState, indexed_words
from backsight.core.documents.merge import saturation
from backsight.core.documents.query import Term
from backsight.core.text.stems import stem
from backsight.store.documents import CHUNKS, Scope
from backsight.store.search.slot import TermMatch

TABLE = "document_words"
MAX_WORDS = 16_000
"""Words of a chunk that are indexed; PostgreSQL stores no positions beyond."""
MAX_BYTES = 500_000
"""Bytes of a chunk's words that are indexed; PostgreSQL limits a tsvector, including its positions, to a megabyte."""
_RANK_BY_FREQUENCY = list(accumulate(1 / n**2 / 1.64493406685 for n in range(1, 257)))
_CREATE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    owner_id text COLLATE "C" NOT NULL, number bigint NOT NULL, former boolean NOT NULL, length bigint NOT NULL,
    words tsvector NOT NULL, PRIMARY KEY (owner_id, number)
);
CREATE INDEX IF NOT EXISTS {TABLE}_found ON {TABLE} USING gin (words)
"""
_INSERT = text(
    f"INSERT INTO {TABLE} (owner_id, number, former, length, words) "  # noqa: S608
    "VALUES (:owner, :number, false, :length, to_tsvector('simple', :words))"
)
_RETIRE = text(f"UPDATE {TABLE} SET former = true WHERE owner_id = :owner AND number = :number")  # noqa: S608
_words = table(TABLE, column("owner_id"), column("number"), column("former"), column("length"), column("words"))


class PostgresWords:
    """The keyword index in the table of words of one schema; `former` marks superseded chunks."""

    def add(self, connection: Connection, owner: str, chunks: Sequence[IndexedChunk]) -> None:
        if not connection.execute(text("SELECT to_regclass(:name)"), {"name": TABLE}).scalar():
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('backsight:document_words', 0))"))
            connection.execute(text(_CREATE))
        rows = []
        for chunk in chunks:
            words = _truncate(indexed_words(chunk.heading, chunk.text))
            stemmed = " ".join(map(stem, words))
            rows.append({"owner": owner, "number": chunk.number, "length": len(words), "words": stemmed})
        if rows:
            connection.execute(_INSERT, rows)

    def retire(self, connection: Connection, owner: str, chunks: Sequence[IndexedChunk]) -> None:
        if chunks:
            connection.execute(_RETIRE, [{"owner": owner, "number": chunk.number} for chunk in chunks])

    def count(self, connection: Connection, index: IndexState, term: Term, at: datetime | None = None) -> int:
        w = _words.c
        contains = w.words.op("@@")(func.to_tsquery("simple", _tsquery(term)))
        counted = select(func.count()).where(w.owner_id == index.owner_id, contains)
        if at is None:
            counted = counted.select_from(_words).where(w.former.is_(False))
        else:
            counted = counted.select_from(_in_scope(Scope(at=at)))
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
        is_word = len(term.words) == 1 and not term.prefix
        return [
            TermMatch(number, saturation(term_frequency(rank) if is_word else 1, length, mean_length))
            for number, rank, length in connection.execute(_statement(index, term, scope, only)).all()
        ]


def _truncate(words: list[str]) -> list[str]:
    """As many words as PostgreSQL accepts; only a chunk that is one huge line has more."""
    sizes = accumulate(len(word.encode()) + 1 for word in words[:MAX_WORDS])
    return [word for word, size in zip(words, sizes, strict=False) if size <= MAX_BYTES]


def term_frequency(rank: float) -> int:
    """How often a word occurs in a text, from its `ts_rank` with equal weights.

    >>> [term_frequency(rank) for rank in (0.6079271, 0.7599089, 0.82745635)]
    [1, 2, 3]
    """
    return min(bisect_left(_RANK_BY_FREQUENCY, rank - 1e-6), len(_RANK_BY_FREQUENCY) - 1) + 1


def _statement(index: IndexState, term: Term, scope: Scope, only: Collection[int] | None) -> Select[Any]:
    w = _words.c
    query = func.to_tsquery("simple", _tsquery(term))
    rank = func.ts_rank(literal_column("'{1,1,1,1}'::float4[]"), w.words, query)
    statement = select(w.number, rank, w.length).where(w.owner_id == index.owner_id, w.words.op("@@")(query))
    if scope.at is None:
        statement = statement.where(w.former.is_(False))
    if not scope.is_all:
        statement = statement.select_from(_in_scope(scope))
    if only is not None:
        statement = statement.where(w.number.in_(only))
    return statement


def _in_scope(scope: Scope) -> Join:
    """The words of the chunks of a scope."""
    w, c = _words.c, CHUNKS.table.c
    return _words.join(CHUNKS.table, and_(c.owner_id == w.owner_id, c.number == w.number, *scope.conditions(c)))


def _tsquery(term: Term) -> str:
    """A term in PostgreSQL's query language; words are only letters and digits, so that none is an operator."""
    phrase = " <-> ".join(f"'{stem(word)}'" for word in term.words)
    return f"{phrase}:*" if term.prefix else phrase
