"""The search itself: candidates by words, candidates by meaning, and what each says of the other's."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from backsight.core.documents.document import Index
from backsight.core.documents.merge import COMMON, DEPTH, inverse_document_frequency
from backsight.core.documents.query import Query, Term
from backsight.store.documents import Scope
from backsight.store.search.slot import Match, WordIndex, word_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from backsight.store.search.vectors import Matrices

FEW = 20
"""A term that so few chunks have is never common, however small the index."""
RERANKED = 4 * DEPTH
SHORTEST_BEGINNING = 3
"""Letters of a word that nothing has, to be taken for the beginning of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What each half says of the candidates, by the numbers of the chunks."""

    keyword: Mapping[int, float]
    """BM25; what is not in it has none of the words."""
    vector: Mapping[int, float]
    """Cosines; what is not in it has no vector."""

    @property
    def numbers(self) -> set[int]:
        """The best of each half."""
        return {*nlargest(DEPTH, self.keyword, key=_order(self.keyword))} | {
            *nlargest(DEPTH, self.vector, key=_order(self.vector))
        }


def _order(scores: Mapping[int, float]) -> Callable[[int], tuple[float, int]]:
    return lambda number: (scores[number], -number)


def by_words(connection: Connection, stands: Index, query: Query, scope: Scope) -> dict[int, float]:
    """BM25 of the chunks of a scope that have any of the terms that are not common."""
    words = word_index(connection)
    most = max(FEW, int(COMMON * stands.chunks))
    telling: list[tuple[Term, list[Match]]] = []
    common: list[Term] = []
    for term in query.terms:
        found = _having(words, connection, stands, term, scope, most + 1)
        if len(found) > most:
            common.append(term)
        elif found:
            telling.append((term, found))
    scores: defaultdict[int, float] = defaultdict(float)
    for _, found in telling:
        _add(scores, found, len(found), stands.chunks)
    among = None if not scores else nlargest(RERANKED, scores, key=_order(scores))
    for term in common:
        found = words.matches(connection, stands, term, scope, among=among)
        _add(scores, found, max(most, len(found)), stands.chunks)
    return dict(scores)


def _having(
    words: WordIndex, connection: Connection, stands: Index, term: Term, scope: Scope, most: int
) -> list[Match]:
    """The chunks that have a term; for a word that none has, those that have one which begins so."""
    found = words.matches(connection, stands, term, scope, most=most)
    if found or term.prefix or len(term.words) > 1 or len(term.words[0]) < SHORTEST_BEGINNING:
        return found
    return words.matches(connection, stands, Term(words=term.words, prefix=True), scope, most=most)


def _add(scores: dict[int, float], found: list[Match], having: int, total: int) -> None:
    weight = inverse_document_frequency(min(having, total), total)
    for number, saturation in found:
        scores[number] += weight * saturation


def find(
    connection: Connection,
    stands: Index,
    query: Query,
    scope: Scope,
    *,
    matrices: "Matrices | None" = None,
    model: str = "",
    asked: "NDArray[np.float32] | None" = None,
) -> Found:
    """What both halves find; without the query's vector, what the words do."""
    keyword = by_words(connection, stands, query, scope)
    if matrices is None or asked is None:
        return Found(keyword=keyword, vector={})
    return Found(keyword=keyword, vector=matrices.nearest(connection, stands, model, asked, scope))
