"""The library of an owner, and citations for the matches of a search in it."""

from datetime import datetime

from backsight.core.documents.citation import Citation
from backsight.core.documents.document import IndexedChunk
from backsight.core.documents.merge import Candidate, RankedChunk, RankingSettings, diversify, rank, shortlist
from backsight.services.context import Context
from backsight.services.library import Library
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.search.hybrid import SearchMatches

MAX_SNIPPET = 8_000
"""Characters of a snippet; only a chunk of one very long line has more."""


def library_of(ctx: Context) -> Library:
    """The library of the context; a library without a workspace if none was configured."""
    return ctx.library if ctx.library is not None else Library()


def cite_matches(
    connection: Connection, owner: str, matches: SearchMatches, ranking: RankingSettings, *, now: datetime, limit: int
) -> tuple[Citation, ...]:
    """The best matches as citations, each with its lines."""
    headers = stored.chunk_headers(connection, owner, matches.numbers)
    candidates = [
        Candidate(
            id=str(number),
            path=header.path,
            source=header.source,
            keyword=matches.keyword.get(number),
            vector=matches.vector.get(number),
            at=header.written_at,
        )
        for number, header in headers.items()
    ]
    listed = shortlist(rank(candidates, ranking, now=now), ranking, limit)
    chunks = stored.numbered_chunks(connection, owner, [int(ranked.candidate.id) for ranked in listed])
    words = {str(number): frozenset(chunk.text.split()) for number, chunk in chunks.items()}
    best = diversify(listed, ranking, limit=limit, words=words)
    return tuple(_citation(ranked, chunks[int(ranked.candidate.id)]) for ranked in best)


def _citation(ranked: RankedChunk, chunk: IndexedChunk) -> Citation:
    return Citation(
        path=chunk.path,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        score=ranked.score,
        snippet=chunk.text[:MAX_SNIPPET],
        source=chunk.source,
        heading=chunk.heading,
        factors=ranked.factors,
        shortened=len(chunk.text) > MAX_SNIPPET,
    )
