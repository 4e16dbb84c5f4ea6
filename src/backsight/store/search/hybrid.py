"""Hybrid search: the candidates of keyword search and of vector search, each with the scores of both methods."""

import math
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING, Literal, NamedTuple

from sqlalchemy import Connection

from backsight.core.documents.document import IndexState
from backsight.core.documents.merge import COMMON_SHARE, DEPTH, inverse_document_frequency
from backsight.core.documents.query import DocumentQuery, QueryWord, Term
from backsight.core.documents.spelling import spellings
from backsight.store.documents import Scope
from backsight.store.search.postgres_vectors import vector_table
from backsight.store.search.slot import WordIndex, word_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from backsight.store.search.vectors import VectorCache

EVERY_TERM_FINDS = 2_000
"""In an index of fewer chunks, even a common term finds all chunks that contain it."""
FULL_LOOKUP = 2_000
"""A common term in at most this many chunks is scored in all of them; a more frequent term, only in the best chunks."""
SHORTEST_BEGINNING = 4
"""A word that no chunk has is searched as a prefix if it has at least this many letters."""
NAME_WEIGHT = 2.0
"""A ticker, a code or a number counts as much as two words: a text without it is about something else."""
NAMES_SHARE = 0.25
"""Missing names of less weight than this share of a query are a detail of a long question, and not what it is about."""
MOST_MISSING = 2
"""Beyond this many, ordinary words that no chunk has do not count: questions have words like "went" and "wrong"."""
INEXACT_CREDIT = 0.7
"""The part of a word's weight that a chunk gets for a longer word or another spelling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatches:
    """The result of a search: the candidates, and scores of both methods by chunk number."""

    numbers: Set[int]
    """The candidates. Beyond 2,000 chunks, chunks with only common terms are candidates only if rarer terms found no
    chunk that contains a common term too."""
    keyword: Mapping[int, float]
    """BM25; a chunk without any term is missing."""
    coverage: Mapping[int, float] = field(default_factory=dict)
    """The share of what the query asks for that a chunk contains, 0 to 1: words weighed by their rarity."""
    vector: Mapping[int, float] = field(default_factory=dict)
    """Cosines; a candidate without a vector is missing."""
    missing: tuple[str, ...] = ()
    """Words of the query that no chunk contains, as the query writes them."""
    names_missing: bool = False
    """Whether tickers, codes or numbers that are missing are an important part of the query."""
    is_other_language: bool = False
    """Whether the query is in a language that the embedder does not know."""
    weights: Mapping[Term, float] = field(default_factory=dict)
    """The weight of each word of the query, by the term that was searched for it."""


def best(scores: Mapping[int, float]) -> list[int]:
    """The chunk numbers with the largest scores; among equal scores, the newest chunks."""
    return [number for _, number in nlargest(DEPTH, zip(scores.values(), scores, strict=True))]


class CountedTerm(NamedTuple):
    """A term as it is searched, and how many chunks contain it."""

    term: Term
    chunks: int
    is_exact: bool
    """Whether the term is searched as the query has it, perhaps with umlauts written otherwise, and not as a prefix or
    in another spelling."""


def keyword_search(connection: Connection, index: IndexState, query: DocumentQuery, scope: Scope) -> SearchMatches:
    """All chunks of a scope that contain any term; in a large index, common terms find chunks only if others do not.

    `index` is the state of the index at the instant of the scope, so that nothing indexed later changes a score.
    """
    words = word_index(connection)
    counted = {term: _counted_term(words, connection, index, query, term, scope.at) for term in query.terms}
    scores: defaultdict[int, float] = defaultdict(float)
    numbers_of: dict[Term, list[int]] = {}

    def add(key: Term, *, only: list[int] | None = None) -> None:
        term, count, _ = counted[key]
        weight = inverse_document_frequency(count, index.chunks)
        matches = words.matches(connection, index, term, scope, document_frequency=count, only=only)
        numbers_of[key] = [number for number, _ in matches]
        for number, saturation in matches:
            scores[number] += weight * saturation

    common_above = COMMON_SHARE * index.chunks if index.chunks >= EVERY_TERM_FINDS else math.inf
    common = [term for term in query.terms if counted[term].chunks > common_above]
    # First the rare terms.
    for term in query.terms:
        if counted[term].chunks and term not in common:
            add(term)
    with_rare_term = frozenset(scores)
    # Then the common terms, in the best chunks only if a lookup in all chunks would be slow.
    for term in common:
        add(term, only=best(scores) if with_rare_term and counted[term].chunks > FULL_LOOKUP else None)
    if common and with_rare_term.isdisjoint(number for term in common for number in numbers_of[term]):
        # No chunk with a rare term has a common one: then the common terms find chunks, too.
        for term in common:
            add(term)
        with_rare_term = frozenset(scores)
    weights = _word_weights(query, counted, index.chunks)
    missing = [word for term, word in query.query_words.items() if _is_missing(term, word, counted)]
    return SearchMatches(
        numbers=with_rare_term or frozenset(scores),
        keyword=dict(scores),
        coverage=_coverage(query, counted, numbers_of, weights),
        weights={counted[term].term: weight for term, weight in weights.items()},
        missing=tuple(word.text for word in missing),
        names_missing=_names_missing(query, counted, weights),
    )


def _counted_term(
    words: WordIndex, connection: Connection, index: IndexState, query: DocumentQuery, term: Term, at: datetime | None
) -> CountedTerm:
    """The term and its document frequency; a word that no chunk has gets other umlauts, a longer end or other letters.

    A name stays as it is, and so does a word that other chunks contain as a part of a name or a phrase.
    """
    count = words.count(connection, index, term, at)
    word = query.query_words.get(term)
    if count or term.prefix or word is None or word.is_name:
        return CountedTerm(term, count, True)
    alternatives = [(replace(term, spellings=word.umlauts), True)] if word.umlauts else []
    if len(term.words[0]) >= SHORTEST_BEGINNING:
        alternatives.append((replace(term, prefix=True), False))
    if other := spellings(term.words[0]):
        alternatives.append((replace(term, spellings=other), False))
    for alternative, is_exact in alternatives:
        if count := words.count(connection, index, alternative, at):
            return CountedTerm(alternative, count, is_exact)
    return CountedTerm(term, 0, True)


def _is_missing(term: Term, word: QueryWord, counted: Mapping[Term, CountedTerm]) -> bool:
    return not any(counted[each].chunks for each in (term, *word.wholes))


def _names_missing(query: DocumentQuery, counted: Mapping[Term, CountedTerm], weights: Mapping[Term, float]) -> bool:
    missing = [
        weights[term] for term, word in query.query_words.items() if word.is_name and _is_missing(term, word, counted)
    ]
    return bool(missing) and math.fsum(missing) >= NAMES_SHARE * math.fsum(weights.values())


def _word_weights(query: DocumentQuery, counted: Mapping[Term, CountedTerm], chunks: int) -> dict[Term, float]:
    """The weight of each word that the query asks for: its inverse document frequency, more for a name."""
    weights: dict[Term, float] = {}
    missing = 0
    for term, word in query.query_words.items():
        count = counted[term].chunks or max((counted[whole].chunks for whole in word.wholes), default=0)
        missing += not count and not word.is_name
        if count or word.is_name or missing <= MOST_MISSING:
            weights[term] = inverse_document_frequency(count, chunks) * (NAME_WEIGHT if word.is_name else 1.0)
    return weights


def _coverage(
    query: DocumentQuery,
    counted: Mapping[Term, CountedTerm],
    numbers_of: Mapping[Term, list[int]],
    weights: Mapping[Term, float],
) -> dict[int, float]:
    """The share of the weight of all words that each chunk contains, by chunk number."""
    total = math.fsum(weights.values())
    covered: defaultdict[int, float] = defaultdict(float)
    # LIC-2207 is no answer to LIC-3310: without its number, the rest of a code does not count.
    unknown_codes = {
        word.wholes
        for term, word in query.query_words.items()
        if word.wholes and any(map(str.isdigit, term.words[0])) and _is_missing(term, word, counted)
    }
    for term, weight in weights.items():
        if query.query_words[term].wholes in unknown_codes:
            continue
        credit = weight / total * (1.0 if counted[term].is_exact else INEXACT_CREDIT)
        wholes = query.query_words[term].wholes
        numbers = {number for each in (term, *wholes) for number in numbers_of.get(each, ())}
        for number in numbers:
            covered[number] += credit
    return {number: min(1.0, share) for number, share in covered.items()}


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The embedding of a query by a model, and the cache of the vectors it is compared with."""

    values: "NDArray[np.float32]"
    model: str
    cache: "VectorCache"
    language: str | None = None
    """The only language that the model knows well; None for many."""


def hybrid_search(
    connection: Connection, index: IndexState, query: DocumentQuery, scope: Scope, vector: QueryVector | None = None
) -> SearchMatches:
    """The best candidates of both methods; without a query vector, those of keyword search."""
    matches = keyword_search(connection, index, query, scope)
    strongest = best({number: matches.keyword[number] for number in matches.numbers})
    if vector is None:
        return replace(matches, numbers=frozenset(strongest))
    near = vector.cache.nearest(connection, index, vector.model, vector.values, scope, limit=DEPTH, also=strongest)
    is_other_language = vector.language is not None and query.language not in (None, vector.language)
    numbers = frozenset([*strongest, *best(near)])
    return replace(matches, vector=near, numbers=numbers, is_other_language=is_other_language)


def vectors_compared_in(connection: Connection, owner: str, model: str) -> Literal["database", "memory"]:
    """Where the vectors of a model are compared: by the database's extension, or in this process."""
    return "memory" if vector_table(connection, owner, model) is None else "database"
