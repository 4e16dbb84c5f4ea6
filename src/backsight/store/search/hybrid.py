"""The search itself: candidates by words, candidates by meaning, and what each says of the other's."""

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from heapq import nlargest
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from backsight.core.documents.document import Index
from backsight.core.documents.merge import COMMON, DEPTH, inverse_document_frequency
from backsight.core.documents.query import Query, Term
from backsight.store.documents import Scope
from backsight.store.search.slot import WordIndex, word_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from backsight.store.search.vectors import Matrices

FEW = 20
"""A term that so few chunks have is never common, however small the index."""
CHEAP = 2_000
"""A common term that so many chunks have is looked up in all of them; one that more have, in the best only."""
SHORTEST_BEGINNING = 3
"""Letters of a word that nothing has, to be taken for the beginning of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worded:
    """What the words of a query say."""

    scores: Mapping[int, float]
    """BM25 by the number of the chunk; what is not in it has none of the words, or only common ones."""
    found: Set[int]
    """The chunks that are found by it: those with a word that is not common, if there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What each half says of the candidates, by the numbers of the chunks."""

    keyword: Mapping[int, float]
    """BM25; what is not in it has none of the words, or only common ones."""
    vector: Mapping[int, float]
    """Cosines of the candidates; what is not in it has no vector."""
    numbers: Set[int]
    """The best of each half."""


def best(scores: Mapping[int, float]) -> list[int]:
    """The numbers with the largest scores, of equal ones the newest."""
    return [number for _, number in nlargest(DEPTH, zip(scores.values(), scores, strict=True))]


def by_words(connection: Connection, stands: Index, query: Query, scope: Scope) -> Worded:
    """BM25 of the chunks of a scope that have any of the terms; common terms find nothing if others do."""
    words = word_index(connection)
    most = max(FEW, int(COMMON * stands.chunks))
    counted = [_counted(words, connection, stands, term) for term in query.terms]
    scores: defaultdict[int, float] = defaultdict(float)

    def add(term: Term, having: int, among: list[int] | None = None) -> None:
        weight = inverse_document_frequency(having, stands.chunks)
        for number, saturation in words.matches(connection, stands, term, scope, having=having, among=among):
            scores[number] += weight * saturation

    for term, having in counted:
        if 0 < having <= most or (having == 0 and scope.at is not None):
            add(term, having)
    telling = frozenset(scores)
    for term, having in counted:
        if having > most:
            add(term, having, best(scores) if telling and having > CHEAP else None)
    return Worded(scores=dict(scores), found=telling or frozenset(scores))


def _counted(words: WordIndex, connection: Connection, stands: Index, term: Term) -> tuple[Term, int]:
    """How many chunks have a term; a word that none has is taken for the beginning of others."""
    having = words.count(connection, stands, term)
    if having or term.prefix or len(term.words) > 1 or len(term.words[0]) < SHORTEST_BEGINNING:
        return term, having
    longer = Term(words=term.words, prefix=True)
    return longer, words.count(connection, stands, longer)


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
    worded = by_words(connection, stands, query, scope)
    strongest = best({number: worded.scores[number] for number in worded.found})
    if matrices is None or asked is None:
        return Found(keyword=worded.scores, vector={}, numbers=frozenset(strongest))
    near = matrices.nearest(connection, stands, model, asked, scope, most=DEPTH, also=strongest)
    return Found(keyword=worded.scores, vector=near, numbers=frozenset([*strongest, *best(near)]))
