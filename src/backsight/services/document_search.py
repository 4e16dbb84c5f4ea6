"""The library of an owner, and citations for the matches of a search in it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from backsight.core.documents.chunk import lines_of
from backsight.core.documents.citation import Citation
from backsight.core.documents.document import IndexedChunk, IndexState
from backsight.core.documents.merge import Candidate, RankedChunk, RankingSettings, diversify, rank, shortlist
from backsight.core.documents.query import DocumentQuery, Term, words_of
from backsight.core.documents.sections import ChunkSection, answering_section
from backsight.core.documents.workspace import is_markdown
from backsight.core.text.counts import count_of
from backsight.services.context import Context
from backsight.services.library import Library
from backsight.store import documents as stored
from backsight.store.database import Connection
from backsight.store.documents import Scope
from backsight.store.search.hybrid import QueryVector, SearchMatches, hybrid_search

MAX_SNIPPET = 8_000
"""Characters of a snippet; only a chunk of one very long line has more."""
NO_WORDS = "the query contains no words; search for words, names or numbers"
MOST_NAMED = 8
"""Words of a query that a message names."""


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
            coverage=matches.coverage.get(number, 0.0),
            names_missing=matches.names_missing,
            is_other_language=matches.is_other_language,
            vector=matches.vector.get(number),
            at=header.written_at,
        )
        for number, header in headers.items()
    ]
    listed = shortlist(rank(candidates, ranking, now=now), ranking, limit)
    chunks = stored.numbered_chunks(connection, owner, [int(ranked.candidate.id) for ranked in listed])
    listed = [ranked for ranked in listed if int(ranked.candidate.id) in chunks]
    words = {str(number): frozenset(chunk.text.split()) for number, chunk in chunks.items()}
    best = diversify(listed, ranking, limit=limit, words=words)
    return tuple(_citation(ranked, chunks[int(ranked.candidate.id)], matches.weights) for ranked in best)


def _citation(ranked: RankedChunk, chunk: IndexedChunk, weights: Mapping[Term, float]) -> Citation:
    """The lines of a chunk that answer the query, as a citation."""
    section = None
    if is_markdown(chunk.path):
        section = answering_section(chunk.text, chunk.heading, weights, source=chunk.source)
    if section is None:
        section = ChunkSection(first=0, lines=tuple(lines_of(chunk.text)), heading=chunk.heading)
    first = chunk.start_line + section.first
    return Citation(
        path=chunk.path,
        start_line=first,
        end_line=first + len(section.lines) - 1,
        score=ranked.score,
        snippet=section.text[:MAX_SNIPPET],
        source=chunk.source,
        heading=section.heading,
        factors=ranked.factors,
        shortened=len(section.text) > MAX_SNIPPET,
    )


def has_matches(
    connection: Connection,
    index: IndexState,
    query: DocumentQuery,
    scope: Scope,
    ranking: RankingSettings,
    vector: QueryVector | None,
) -> bool:
    """Whether documents outside the filters of a scope answer a query."""
    everywhere = Scope(at=scope.at)
    if scope == everywhere:
        return False
    matches = hybrid_search(connection, index, query, everywhere, vector)
    return bool(cite_matches(connection, index.owner_id, matches, ranking, now=index.synced_at, limit=1))


def search_remarks(
    query: DocumentQuery,
    matches: SearchMatches,
    citations: Sequence[Citation],
    index: IndexState,
    ranking: RankingSettings,
    *,
    outside_filters: bool,
) -> str:
    """What the caller of a search should know: missing words, corrected words, and why nothing is cited."""
    remarks = [] if citations else [_why_nothing(query, matches, index, ranking, outside_filters=outside_filters)]
    if matches.missing and (citations or matches.keyword):
        remarks.append(f"nothing is written about: {', '.join(matches.missing[:MOST_NAMED])}")
    words = {word for citation in citations for word in words_of(citation.snippet)}
    for term in matches.weights:
        if corrections := sorted(words.intersection(term.spellings)):
            remarks.append(f"{term.words[0]!r} is in no document and was read as {' or '.join(map(repr, corrections))}")
    return "; ".join(remarks)


def _why_nothing(
    query: DocumentQuery, matches: SearchMatches, index: IndexState, ranking: RankingSettings, *, outside_filters: bool
) -> str:
    if not query.terms:
        return NO_WORDS
    if not index.chunks:
        return "the index is empty because the workspace has no documents; add files and run reindex"
    if outside_filters:
        return "documents outside the filters match; remove filters"
    words = ", ".join(sorted(query.words)[:MOST_NAMED])
    if matches.keyword:
        weak = f"{count_of(len(matches.keyword), 'passage')} with some of the words, but not enough to be an answer"
        return f"{weak} (minimum score {ranking.minimum_score:g}): {words}; try other words"
    return f"none of {index.documents} documents matches: {words}; try other words"
