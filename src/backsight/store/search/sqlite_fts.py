"""Keyword search in SQLite: FTS5 with Porter stemming, one table for current chunks and one for superseded chunks.

Each owner has separate tables, so that the words of one owner do not change the ranking of another. FTS5's inverse
document frequency is zero for a term that half of the chunks contain. So FTS5's weight is divided out of its BM25
score, which leaves the term saturation, and the caller applies an inverse document frequency with a floor.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Result,
    Select,
    and_,
    column,
    func,
    literal_column,
    select,
    table,
    text,
)

from backsight.core.documents.document import IndexState
from backsight.core.documents.merge import saturation
from backsight.core.documents.query import Term
from backsight.core.ids import digest
from backsight.store.documents import CHUNKS, Scope
from backsight.store.search.slot import ChunkWords, TermMatch

FTS5_MIN_WEIGHT = 1e-6
"""FTS5 gives this weight to a term whose inverse document frequency is not positive."""


class SqliteWords:
    """The keyword index in the FTS5 tables of one file."""

    def prepare(self, words: Sequence[str]) -> ChunkWords:
        return ChunkWords(" ".join(words), len(words))

    def add(self, connection: Connection, owner: str, chunks: Mapping[int, ChunkWords]) -> None:
        for name in _tables(owner):
            create = f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5(words, tokenize = 'porter unicode61')"
            connection.execute(text(create))
        if chunks:
            insert = text(f"INSERT INTO {_current_table(owner)} (rowid, words) VALUES (:number, :words)")  # noqa: S608
            connection.execute(insert, [{"number": number, "words": words.text} for number, words in chunks.items()])

    def retire(self, connection: Connection, owner: str, numbers: Sequence[int]) -> None:
        if numbers:
            current, superseded = _tables(owner)
            move = f"INSERT INTO {superseded} (rowid, words) SELECT rowid, words FROM {current} WHERE rowid = :number"  # noqa: S608
            rows = [{"number": number} for number in numbers]
            connection.execute(text(move), rows)
            connection.execute(text(f"DELETE FROM {current} WHERE rowid = :number"), rows)  # noqa: S608

    def erase(self, connection: Connection, owner: str) -> None:
        for name in _tables(owner):
            connection.execute(text(f"DROP TABLE IF EXISTS {name}"))

    def count(self, connection: Connection, index: IndexState, term: Term, at: datetime | None = None) -> int:
        owner = index.owner_id
        if at is None:
            return _count(connection, _current_table(owner), term)
        return sum(len(connection.execute(_in_scope(owner, name, term, Scope(at=at))).all()) for name in _tables(owner))

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
        owner = index.owner_id
        if scope.at is None:
            weight = _fts5_weight(document_frequency, index.chunks)
            return _current_matches(connection, owner, weight, term, scope, only)
        mean_length = index.words / index.chunks if index.chunks else 0.0
        return [
            TermMatch(number, 1.0 if term.spellings else saturation(frequency, length, mean_length))
            for name in _tables(owner)
            for number, frequency, length in _occurrences(connection, owner, name, term, scope, only)
        ]


def _count(connection: Connection, name: str, term: Term) -> int:
    counted = text(f"SELECT count(*) FROM {name} WHERE {name} MATCH :query")  # noqa: S608 - the name is a hash
    return int(connection.execute(counted, {"query": _fts5_query(term)}).scalar_one())


def _current_matches(
    connection: Connection, owner: str, weight: float, term: Term, scope: Scope, only: Collection[int] | None
) -> list[TermMatch]:
    """The current chunks of a scope that contain a term, weighed by FTS5, which is fast."""
    name = _current_table(owner)
    if term.spellings:
        one: ColumnElement[float] = literal_column("1.0")
        return _as_matches(connection.execute(_in_scope(owner, name, term, scope, one, only=only)))
    if scope.is_all and only is None:
        everywhere = text(f"SELECT rowid, bm25({name}) / :weight FROM {name} WHERE {name} MATCH :query")  # noqa: S608
        return _as_matches(connection.execute(everywhere, {"query": _fts5_query(term), "weight": -weight}))
    score = literal_column(f"bm25({name})") / -weight
    return _as_matches(connection.execute(_in_scope(owner, name, term, scope, score, only=only)))


def _occurrences(
    connection: Connection, owner: str, name: str, term: Term, scope: Scope, only: Collection[int] | None
) -> list[tuple[int, int, int]]:
    """The chunks of a scope that contain a term: number, how often each contains it, and its length in words.

    FTS5 weighs a chunk by the mean length of all chunks that its table has now. As of an earlier instant, BM25 is
    therefore computed from the occurrences, which `highlight` marks.
    """
    marked: ColumnElement[str] = literal_column(f"highlight({name}, 0, char(1), '')")
    indexed: ColumnElement[str] = literal_column(f"{name}.words")
    occurrences = func.length(marked) - func.length(indexed)
    length = func.length(indexed) - func.length(func.replace(indexed, " ", "")) + 1
    rows = connection.execute(_in_scope(owner, name, term, scope, occurrences, length, only=only))
    return cast(list[tuple[int, int, int]], rows.all())


def _in_scope(
    owner: str,
    name: str,
    term: Term,
    scope: Scope,
    *columns: ColumnElement[Any],
    only: Collection[int] | None = None,
) -> Select[Any]:
    """A statement that selects the chunks of a scope that contain a term: number and further columns."""
    words = table(name, column("rowid"))
    statement = select(words.c.rowid, *columns).where(literal_column(name).match(_fts5_query(term)))
    if not scope.is_all:
        c = CHUNKS.table.c
        # The unary plus makes SQLite run the MATCH once and look up the chunks, and not MATCH for every chunk.
        rowid: ColumnElement[int] = literal_column(f"+{name}.rowid")
        in_scope = and_(c.owner_id == owner, c.number == rowid, *scope.conditions(c))
        statement = statement.select_from(words.join(CHUNKS.table, in_scope))
    if only is not None:
        numbers = func.json_each(json.dumps(list(only))).table_valued("value")
        statement = statement.where(words.c.rowid.in_(select(numbers.c.value)))
    return statement


def _as_matches(rows: Result[Any]) -> list[TermMatch]:
    return cast(list[TermMatch], rows.all())  # a row already is such a tuple; copying thousands of rows takes time


def _fts5_weight(document_frequency: int, rows: int) -> float:
    """FTS5's inverse document frequency."""
    weight = (
        math.log((rows - document_frequency + 0.5) / (document_frequency + 0.5))
        if rows > document_frequency - 0.5
        else 0.0
    )
    return weight if weight > 0 else FTS5_MIN_WEIGHT


def _fts5_query(term: Term) -> str:
    """A term in FTS5's query language; words are only letters and digits, so that none is an operator."""
    if term.spellings:
        return " OR ".join(f'"{word}"' for word in term.spellings)
    return f'"{" ".join(term.words)}"{" *" if term.prefix else ""}'


def _current_table(owner: str) -> str:
    return f"document_words_{digest(owner)[:16]}"


def _tables(owner: str) -> tuple[str, str]:
    """The tables of the current and of the superseded chunks."""
    return _current_table(owner), _superseded_table(owner)


def _superseded_table(owner: str) -> str:
    return f"{_current_table(owner)}_former"
