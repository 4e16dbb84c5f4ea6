"""Words in PostgreSQL: a `tsvector` a chunk, with the words stemmed here, and a GIN index over them.

`ts_rank` knows nothing of other texts. For one word of equal weight everywhere it is a known function of how often the
word stands in the text, the sum of 1/n² up to that number over π²/6; so the number is read from it, and BM25 made of
that. A phrase or a prefix counts once.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Any

from sqlalchemy import Connection, Select, and_, column, func, literal_column, select, table, text

from backsight.core.documents.document import Index, Piece, indexed_words
from backsight.core.documents.merge import saturation
from backsight.core.documents.query import Term
from backsight.core.text.stems import stem
from backsight.store.documents import CHUNKS, Scope
from backsight.store.search.slot import Match

TABLE = "document_words"
LONGEST = 16_000
"""Words of a chunk that are indexed: PostgreSQL keeps no positions beyond."""
MOST_BYTES = 500_000
"""Of all its words: PostgreSQL keeps no more than a megabyte, positions and all."""
_RANKS = list(accumulate(1 / n**2 / 1.64493406685 for n in range(1, 257)))
_MADE = f"""
CREATE TABLE IF NOT EXISTS {TABLE} (
    owner_id text COLLATE "C" NOT NULL, number bigint NOT NULL, former boolean NOT NULL, length bigint NOT NULL,
    words tsvector NOT NULL, PRIMARY KEY (owner_id, number)
);
CREATE INDEX IF NOT EXISTS {TABLE}_found ON {TABLE} USING gin (words)
"""
_ADDED = text(
    f"INSERT INTO {TABLE} (owner_id, number, former, length, words) "  # noqa: S608
    "VALUES (:owner, :number, false, :length, to_tsvector('simple', :words))"
)
_RETIRED = text(f"UPDATE {TABLE} SET former = true WHERE owner_id = :owner AND number = :number")  # noqa: S608


class PostgresWords:
    """The table of words of one schema."""

    def add(self, connection: Connection, owner: str, pieces: Sequence[Piece]) -> None:
        """Index chunks that begin to stand."""
        if not connection.execute(text("SELECT to_regclass(:name)"), {"name": TABLE}).scalar():
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('backsight:document_words', 0))"))
            connection.execute(text(_MADE))
        rows = []
        for piece in pieces:
            words = _fitting(indexed_words(piece.heading, piece.text))
            stemmed = " ".join(map(stem, words))
            rows.append({"owner": owner, "number": piece.number, "length": len(words), "words": stemmed})
        if rows:
            connection.execute(_ADDED, rows)

    def retire(self, connection: Connection, owner: str, pieces: Sequence[Piece]) -> None:
        """Keep chunks that no longer stand for those only who ask as of before."""
        if pieces:
            connection.execute(_RETIRED, [{"owner": owner, "number": piece.number} for piece in pieces])

    def count(self, connection: Connection, stands: Index, term: Term) -> int:
        """How many of the chunks that stand have a term."""
        w = _words.c
        asked = w.words.op("@@")(func.to_tsquery("simple", _spelt(term)))
        mine = (w.owner_id == stands.owner_id, w.former.is_(False), asked)
        return int(connection.execute(select(func.count()).select_from(_words).where(*mine)).scalar_one())

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
        mean = stands.words / stands.chunks if stands.chunks else 0.0
        counted = len(term.words) == 1 and not term.prefix
        return [
            Match(number, saturation(repeated(rank) if counted else 1, length, mean))
            for number, rank, length in connection.execute(_statement(stands, term, scope, among)).all()
        ]


def _fitting(words: list[str]) -> list[str]:
    """As many of the words as PostgreSQL takes; only a chunk that is one huge line has more."""
    sizes = accumulate(len(word.encode()) + 1 for word in words[:LONGEST])
    return [word for word, size in zip(words, sizes, strict=False) if size <= MOST_BYTES]


def repeated(rank: float) -> int:
    """How often a word stands in a text, by its `ts_rank` with equal weights.

    >>> [repeated(rank) for rank in (0.6079271, 0.7599089, 0.82745635)]
    [1, 2, 3]
    """
    return min(bisect_left(_RANKS, rank - 1e-6), len(_RANKS) - 1) + 1


_words = table(TABLE, column("owner_id"), column("number"), column("former"), column("length"), column("words"))


def _statement(stands: Index, term: Term, scope: Scope, among: Collection[int] | None) -> Select[Any]:
    w, c = _words.c, CHUNKS.table.c
    asked = func.to_tsquery("simple", _spelt(term))
    rank = func.ts_rank(literal_column("'{1,1,1,1}'::float4[]"), w.words, asked)
    statement = select(w.number, rank, w.length).where(w.owner_id == stands.owner_id, w.words.op("@@")(asked))
    if scope.at is None:
        statement = statement.where(w.former.is_(False))
    if not scope.is_all:
        mine = and_(c.owner_id == w.owner_id, c.number == w.number, *scope.conditions(c))
        statement = statement.select_from(_words.join(CHUNKS.table, mine))
    if among is not None:
        statement = statement.where(w.number.in_(among))
    return statement


def _spelt(term: Term) -> str:
    """A term in PostgreSQL's language; the words are letters and digits, so that nothing in them can be an operator."""
    spelt = " <-> ".join(f"'{stem(word)}'" for word in term.words)
    return f"{spelt}:*" if term.prefix else spelt
