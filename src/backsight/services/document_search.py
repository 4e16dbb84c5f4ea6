"""Searching the index, and citing what matches."""

from datetime import datetime

from backsight.core.documents.citation import Citation
from backsight.core.documents.document import Piece
from backsight.core.documents.merge import Candidate, Ranked, Rules, fold, rank, worth_reading
from backsight.services.context import Context
from backsight.services.library import Library
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.search.hybrid import Found


def library(ctx: Context) -> Library:
    """How this owner's documents are kept."""
    return ctx.library if ctx.library is not None else Library()


def cited(
    connection: Connection, owner: str, found: Found, rules: Rules, *, now: datetime, limit: int
) -> tuple[Citation, ...]:
    """The best of what was found, each with its lines."""
    heads = stored.heads(connection, owner, found.numbers)
    candidates = [
        Candidate(
            id=str(number),
            path=head.path,
            source=head.source,
            keyword=found.keyword.get(number),
            vector=found.vector.get(number),
            at=head.written_at,
        )
        for number, head in heads.items()
    ]
    likely = worth_reading(rank(candidates, rules, now=now), rules, limit)
    pieces = stored.numbered_chunks(connection, owner, [int(each.candidate.id) for each in likely])
    words = {str(number): frozenset(piece.text.split()) for number, piece in pieces.items()}
    taken = fold(likely, rules, limit=limit, words=words)
    return tuple(_citation(each, pieces[int(each.candidate.id)]) for each in taken)


def _citation(ranked: Ranked, piece: Piece) -> Citation:
    return Citation(
        path=piece.path,
        start_line=piece.start_line,
        end_line=piece.end_line,
        score=ranked.score,
        snippet=piece.text[:LONGEST_SNIPPET],
        source=piece.source,
        heading=piece.heading,
        factors=ranked.factors,
        shortened=len(piece.text) > LONGEST_SNIPPET,
    )


LONGEST_SNIPPET = 8_000
"""Characters; only a very long line is longer."""
