"""Words in SQLite: FTS5 with porter stemming, a table for the chunks that stand and one for those that stood.

Each owner has tables of its own, so that nobody's words weigh in another's ranking. FTS5's own inverse document
frequency vanishes for a term that half of the chunks have; it is divided out, so that only what repetition and length
are worth is left, and ours is put in its place.
"""

import json
import math
from collections.abc import Collection, Sequence
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Result, and_, column, func, literal_column, select, table, text

from backsight.core.documents.document import Index, Piece, indexed_words
from backsight.core.documents.query import Term
from backsight.core.ids import digest
from backsight.store.documents import CHUNKS, Scope
from backsight.store.search.slot import Match

LEAST_WEIGHT = 1e-6
"""What FTS5 weighs a term with that has no weight of its own."""


class SqliteWords:
    """The FTS5 tables of one file."""

    def add(self, connection: Connection, owner: str, pieces: Sequence[Piece]) -> None:
        """Index chunks that begin to stand."""
        _make(connection, owner)
        _insert(connection, _standing(owner), pieces)

    def retire(self, connection: Connection, owner: str, pieces: Sequence[Piece]) -> None:
        """Keep chunks that no longer stand for those only who ask as of before."""
        if pieces:
            ended = [{"number": piece.number} for piece in pieces]
            connection.execute(text(f"DELETE FROM {_standing(owner)} WHERE rowid = :number"), ended)  # noqa: S608
            _insert(connection, _former(owner), pieces)

    def count(self, connection: Connection, stands: Index, term: Term) -> int:
        """How many of the chunks that stand have a term."""
        return _count(connection, _standing(stands.owner_id), term)

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
        owner = stands.owner_id
        found = _matches(connection, owner, _standing(owner), _fts5_weight(having, stands.chunks), term, scope, among)
        if scope.at is not None:
            former = _former(owner)
            weight = _fts5_weight(_count(connection, former, term), stands.last_number - stands.chunks)
            found += _matches(connection, owner, former, weight, term, scope, among)
        return found


def _count(connection: Connection, name: str, term: Term) -> int:
    counted = text(f"SELECT count(*) FROM {name} WHERE {name} MATCH :asked")  # noqa: S608 - the name is a hash
    return int(connection.execute(counted, {"asked": _spelt(term)}).scalar_one())


def _matches(
    connection: Connection,
    owner: str,
    name: str,
    weight: float,
    term: Term,
    scope: Scope,
    among: Collection[int] | None,
) -> list[Match]:
    if scope.is_all and among is None:
        plain = text(f"SELECT rowid, bm25({name}) / :weight FROM {name} WHERE {name} MATCH :asked")  # noqa: S608
        return _read(connection.execute(plain, {"asked": _spelt(term), "weight": -weight}))
    words = table(name, column("rowid"))
    score = literal_column(f"bm25({name})") / -weight
    statement = select(words.c.rowid, score).where(literal_column(name).match(_spelt(term)))
    if not scope.is_all:
        c = CHUNKS.table.c
        found: ColumnElement[int] = literal_column(f"+{name}.rowid")  # words are looked up once, not for each chunk
        mine = and_(c.owner_id == owner, c.number == found, *scope.conditions(c))
        statement = statement.select_from(words.join(CHUNKS.table, mine))
    if among is not None:
        given = func.json_each(json.dumps(list(among))).table_valued("value")
        statement = statement.where(words.c.rowid.in_(select(given.c.value)))
    return _read(connection.execute(statement))


def _read(rows: Result[Any]) -> list[Match]:
    return cast(list[Match], rows.all())  # a row is the tuple that a match is; making thousands anew takes time


def _fts5_weight(having: int, rows: int) -> float:
    """The inverse document frequency as FTS5 has it."""
    weight = math.log((rows - having + 0.5) / (having + 0.5)) if rows > having - 0.5 else 0.0
    return weight if weight > 0 else LEAST_WEIGHT


def _spelt(term: Term) -> str:
    """A term in FTS5's language; the words are letters and digits, so that nothing in them can be an operator."""
    return f'"{" ".join(term.words)}"{" *" if term.prefix else ""}'


def _standing(owner: str) -> str:
    return f"document_words_{digest(owner)[:16]}"


def _former(owner: str) -> str:
    return f"{_standing(owner)}_former"


def _make(connection: Connection, owner: str) -> None:
    for name in (_standing(owner), _former(owner)):
        made = f"CREATE VIRTUAL TABLE IF NOT EXISTS {name} USING fts5(words, tokenize = 'porter unicode61')"
        connection.execute(text(made))


def _insert(connection: Connection, name: str, pieces: Sequence[Piece]) -> None:
    rows = [{"number": piece.number, "words": " ".join(indexed_words(piece.heading, piece.text))} for piece in pieces]
    if rows:
        connection.execute(text(f"INSERT INTO {name} (rowid, words) VALUES (:number, :words)"), rows)  # noqa: S608
