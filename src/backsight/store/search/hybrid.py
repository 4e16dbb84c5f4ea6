"""Hybrid search: the candidates of keyword search and of vector search, each with the scores of both methods."""

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING, Literal

from sqlalchemy import Connection

from backsight.core.documents.document import IndexState
from backsight.core.documents.merge import COMMON_SHARE, DEPTH, inverse_document_frequency
from backsight.core.documents.query import DocumentQuery, Term
from backsight.store.documents import Scope
from backsight.store.search.postgres_vectors import vector_table
from backsight.store.search.slot import WordIndex, word_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from backsight.store.search.vectors import VectorCache

NEVER_COMMON = 20
"""A term in at most this many chunks is never common, however small the index."""
FULL_LOOKUP = 2_000
"""A common term in at most this many chunks is scored in all of them; a more frequent term, only in the best chunks."""
SHORTEST_BEGINNING = 3
"""A word that no chunk has is searched as a prefix if it has at least this many letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatches:
    """The result of a search: the candidates, and scores of both methods by chunk number."""

    numbers: Set[int]
    """The candidates. Chunks with only common terms are candidates only if no chunk has a rare term."""
    keyword: Mapping[int, float]
    """BM25; a chunk without any term is missing."""
    vector: Mapping[int, float] = field(default_factory=dict)
    """Cosines; a candidate without a vector is missing."""


def best(scores: Mapping[int, float]) -> list[int]:
    """The chunk numbers with the largest scores; among equal scores, the newest chunks."""
    return [number for _, number in nlargest(DEPTH, zip(scores.values(), scores, strict=True))]


def keyword_search(connection: Connection, index: IndexState, query: DocumentQuery, scope: Scope) -> SearchMatches:
    """All chunks of a scope that contain any term; common terms find chunks only if no other term does.

    `index` is the state of the index at the instant of the scope, so that nothing indexed later changes a score.
    """
    words = word_index(connection)
    common_above = max(NEVER_COMMON, int(COMMON_SHARE * index.chunks))
    counted = [_counted_term(words, connection, index, term, scope.at) for term in query.terms]
    scores: defaultdict[int, float] = defaultdict(float)

    def add(term: Term, count: int, only: list[int] | None = None) -> None:
        weight = inverse_document_frequency(count, index.chunks)
        for number, saturation in words.matches(connection, index, term, scope, document_frequency=count, only=only):
            scores[number] += weight * saturation

    # First the rare terms.
    for term, count in counted:
        if 0 < count <= common_above:
            add(term, count)
    with_rare_term = frozenset(scores)
    # Then the common terms, in the best chunks only if a lookup in all chunks would be slow.
    for term, count in counted:
        if count > common_above:
            add(term, count, best(scores) if with_rare_term and count > FULL_LOOKUP else None)
    return SearchMatches(numbers=with_rare_term or frozenset(scores), keyword=dict(scores))


def _counted_term(
    words: WordIndex, connection: Connection, index: IndexState, term: Term, at: datetime | None
) -> tuple[Term, int]:
    """The term and its document frequency; a word that no chunk has becomes a prefix."""
    count = words.count(connection, index, term, at)
    if count or term.prefix or len(term.words) > 1 or len(term.words[0]) < SHORTEST_BEGINNING:
        return term, count
    prefix = Term(words=term.words, prefix=True)
    return prefix, words.count(connection, index, prefix, at)


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The embedding of a query by a model, and the cache of the vectors it is compared with."""

    values: "NDArray[np.float32]"
    model: str
    cache: "VectorCache"


def hybrid_search(
    connection: Connection, index: IndexState, query: DocumentQuery, scope: Scope, vector: QueryVector | None = None
) -> SearchMatches:
    """The best candidates of both methods; without a query vector, those of keyword search."""
    matches = keyword_search(connection, index, query, scope)
    strongest = best({number: matches.keyword[number] for number in matches.numbers})
    if vector is None:
        return replace(matches, numbers=frozenset(strongest))
    near = vector.cache.nearest(connection, index, vector.model, vector.values, scope, limit=DEPTH, also=strongest)
    return replace(matches, vector=near, numbers=frozenset([*strongest, *best(near)]))


def vectors_compared_in(connection: Connection, owner: str, model: str) -> Literal["database", "memory"]:
    """Where the vectors of a model are compared: by the database's extension, or in this process."""
    return "memory" if vector_table(connection, owner, model) is None else "database"
