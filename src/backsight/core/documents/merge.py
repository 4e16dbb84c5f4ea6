"""Fusion: one ranking out of the results of keyword search and vector search.

The scores of both methods change their scale from query to query: BM25 grows with the rarity of the words, and cosines
fill a narrow band. So each method's scores are standardised over the candidates of the query, and the standard scores
are added (CombSUM: Shaw & Fox 1994; standard scores: Montague & Aslam 2001). Standard deviations have a floor: a method
that gives all candidates nearly the same score has little influence. The best chunk of a file is ranked by the file's
best scores. docs/decisions/0016-documents.md and 0051-documents-beside-writers.md list the alternatives that were
measured.

Standard scores order the candidates of one query and say nothing about another query. The score that is shown is
absolute: a logistic function of how much of the query a chunk contains and of the cosine, with coefficients that were
fitted to questions with and without an answer (docs/decisions/0051-documents-beside-writers.md).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from backsight.core.documents.citation import MatchFactors, Source
from backsight.core.errors import Invalid

Fusion = Literal["standardised", "weighted_sum", "reciprocal_rank"]

DEPTH = 100
"""Candidates taken from each search method."""
K1, B = 1.2, 0.75
"""BM25's parameters for term repetition and for text length (Robertson & Zaragoza 2009)."""
MIN_IDF = 0.5
"""Floor of the inverse document frequency: a term that nearly every chunk has still finds chunks."""
BM25_DEVIATION_FLOOR, COSINE_DEVIATION_FLOOR = 1.0, 0.04
"""Floors of the standard deviation of a method's scores."""
RRF_K = 60
"""The constant k of reciprocal rank fusion (Cormack, Clarke & Büttcher 2009)."""
AGEING_SOURCES: Set[Source] = frozenset({"journal", "run", "decision", "review"})
"""Sources whose score decays with the half-life; rules do not age."""
COMMON_SHARE = 0.1
"""A term in more than this share of the chunks is common: it only ranks the chunks that other terms found."""
ANSWER_INTERCEPT, ANSWER_COVERAGE, ANSWER_COSINE = -7.0, 10.0, 13.0
"""Coefficients of the logistic score."""
UNRELATED_COSINE = 0.23
"""The cosine that is assumed for a chunk without a vector: that of a text about something else."""
OTHER_LANGUAGE_COSINE = 0.11
"""How much larger the cosine of unrelated texts is in a language that the model does not know: it sees the language."""
TAIL = 0.1
"""If a candidate reaches the minimum score, others are kept from this share of the minimum on."""
SHORTLIST_FACTOR = 4
"""The text of this many times the wanted chunks is read, because duplicates are dropped afterwards."""
DUPLICATE_SIMILARITY = 0.9
"""Two chunks of one file are duplicates if the Jaccard similarity of their words is at least this."""
SAME_FILE_SIMILARITY = 0.3
"""Two chunks of one file are at least this similar: the best chunk of another file is preferred to the next of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSettings:
    """How candidates are ranked."""

    fusion: Fusion = "standardised"
    keyword_weight: float = 0.5
    vector_weight: float = 0.5
    minimum_score: float = 0.3
    """If no candidate has this score, the query has no answer; else candidates below a tenth of it are dropped."""
    per_source: Mapping[Source, int] = field(default_factory=dict)
    """The most citations of a source; a source that is not listed has no limit."""
    mmr_lambda: float = 0.7
    """λ of maximal marginal relevance (Carbonell & Goldstein 1998): 1 ignores repetition within a file."""
    half_life_days: float | None = None
    """Days after which the score of an ageing source is halved; None for no ageing."""

    def check(self) -> None:
        """Raise Invalid for settings that give no ranking."""
        weights = (self.keyword_weight, self.vector_weight)
        if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or sum(weights) == 0:
            raise Invalid(
                f"weights {self.keyword_weight} and {self.vector_weight} cannot be used; "
                "give numbers of 0 or more, not both 0",
                field="keyword_weight",
            )
        if not 0 <= self.minimum_score <= 1:
            raise Invalid(f"{self.minimum_score} is not a score; give a number from 0 to 1", field="minimum_score")
        if not 0 <= self.mmr_lambda <= 1:
            raise Invalid(f"{self.mmr_lambda} is out of range; give a number from 0 to 1", field="mmr_lambda")
        if self.half_life_days is not None and not self.half_life_days > 0:
            raise Invalid(f"{self.half_life_days} is not a half-life; give days above 0", field="half_life_days")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk found by keyword search, by vector search or by both."""

    id: str
    path: str
    source: Source
    keyword: float | None = None
    """BM25 score; None if the chunk has none of the words."""
    coverage: float = 0.0
    """The share of the query's words that the chunk contains, weighed by their rarity."""
    vector: float | None = None
    """Cosine similarity; None if the chunk has no vector yet."""
    names_missing: bool = False
    """Whether the query names something that no chunk mentions: then likeness in meaning is no answer."""
    is_other_language: bool = False
    """Whether the query is in a language that the embedder does not know: then unrelated texts have larger cosines."""
    at: datetime | None = None
    """When the document was written; None for a document without age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedChunk:
    """A candidate with its final score."""

    candidate: Candidate
    order: float
    """The fused score, which ranks the candidates of one query; 1 more for those that reach the minimum score, so that
    a weak candidate never precedes an answer."""
    score: float
    """The absolute score, which can be compared between queries."""
    factors: MatchFactors


def inverse_document_frequency(document_frequency: int, total: int) -> float:
    """Inverse document frequency as in Lucene, with a floor so that a rule in a small manual is still found.

    >>> [round(inverse_document_frequency(n, 5), 2) for n in (1, 3, 5)]
    [1.39, 0.54, 0.5]
    """
    return max(MIN_IDF, math.log1p((total - document_frequency + 0.5) / (document_frequency + 0.5)))


def saturation(term_frequency: float, length: float, mean_length: float) -> float:
    """BM25's weight, 0 to 2.2, of a term that is repeated in a text of some length.

    >>> round(saturation(1, 100, 100), 2), round(saturation(3, 100, 100), 2), round(saturation(1, 400, 100), 2)
    (1.0, 1.57, 0.45)
    """
    length_norm = 1 - B + B * (length / mean_length if mean_length else 1.0)
    return term_frequency * (K1 + 1) / (term_frequency + K1 * length_norm)


def keyword_score(bm25: float) -> float:
    """BM25 mapped to [0, 1).

    >>> keyword_score(0.0), keyword_score(4.0)
    (0.0, 0.8)
    """
    return bm25 / (1 + bm25)


def answer_score(coverage: float, cosine: float | None) -> float:
    """How likely a chunk answers a query, 0 to 1, from the share of the query that it contains and the cosine.

    >>> [round(answer_score(*pair), 2) for pair in ((1.0, None), (0.25, None), (1.0, 0.1), (0.0, 0.7), (0.1, 0.3))]
    [1.0, 0.18, 0.99, 0.89, 0.11]
    """
    vector = UNRELATED_COSINE if cosine is None else cosine
    return 1 / (1 + math.exp(-(ANSWER_INTERCEPT + ANSWER_COVERAGE * coverage + ANSWER_COSINE * vector)))


def _answer_score(candidate: Candidate) -> float:
    cosine = candidate.vector
    if cosine is not None and candidate.is_other_language:
        cosine -= OTHER_LANGUAGE_COSINE
    if cosine is not None and candidate.names_missing:
        cosine = min(cosine, UNRELATED_COSINE)
    return answer_score(candidate.coverage, cosine)


def rank(candidates: Sequence[Candidate], settings: RankingSettings, *, now: datetime) -> list[RankedChunk]:
    """The candidates, best first: scores fused and aged, weak candidates dropped; none if all are weak.

    >>> from datetime import UTC
    >>> candidates = [
    ...     Candidate(id="both", path="m.md", source="manual", keyword=9.0, coverage=0.8, vector=0.6),
    ...     Candidate(id="meaning", path="m.md", source="manual", vector=0.7),
    ...     Candidate(id="neither", path="m.md", source="manual", vector=0.1),
    ... ]
    >>> ranked = rank(candidates, RankingSettings(), now=datetime(2026, 6, 4, tzinfo=UTC))
    >>> [chunk.candidate.id for chunk in ranked]
    ['both', 'meaning']
    """
    scores = list(map(_answer_score, candidates))
    if max(scores, default=0.0) < settings.minimum_score:
        return []
    ranked = [
        RankedChunk(
            candidate=candidate,
            order=order * recency + (score >= settings.minimum_score),
            score=score * recency,
            factors=_factors(candidate, recency),
        )
        for candidate, score, order in zip(candidates, scores, _fused_scores(candidates, settings), strict=True)
        if score >= TAIL * settings.minimum_score
        for recency in (_recency(candidate, settings, now),)
    ]
    return sorted(ranked, key=lambda chunk: (-chunk.order, chunk.candidate.path, chunk.candidate.id))


def _factors(candidate: Candidate, recency: float) -> MatchFactors:
    keyword = None if candidate.keyword is None else candidate.coverage
    return MatchFactors(keyword=keyword, vector=candidate.vector, recency=recency)


def _recency(candidate: Candidate, settings: RankingSettings, now: datetime) -> float:
    if settings.half_life_days is None or candidate.at is None or candidate.source not in AGEING_SOURCES:
        return 1.0
    age = max(now - candidate.at, timedelta(0)) / timedelta(days=1)
    return float(0.5 ** (age / settings.half_life_days))


# Fusion methods: each gives every candidate a score in [0, 1]


def _fused_scores(candidates: Sequence[Candidate], settings: RankingSettings) -> list[float]:
    # Of two chunks with equal BM25, the one that contains more of the query comes first.
    keywords = [(candidate.keyword or 0.0) * (1 + candidate.coverage) for candidate in candidates]
    vectors = [candidate.vector for candidate in candidates]
    known = [vector for vector in vectors if vector is not None]
    if not known:
        return [keyword_score(bm25) for bm25 in keywords]
    # Weights sum to 1, so that the fused scores stay in [0, 1].
    total = settings.keyword_weight + settings.vector_weight
    weights = settings.keyword_weight / total, settings.vector_weight / total
    match settings.fusion:
        case "standardised":
            # A chunk without a vector counts as the least similar candidate.
            lowest = min(known)
            cosines = [lowest if vector is None else vector for vector in vectors]
            return _standardised([candidate.path for candidate in candidates], keywords, cosines, weights)
        case "weighted_sum":
            return _weighted_sum(keywords, vectors, weights)
        case "reciprocal_rank":
            return _reciprocal_rank(keywords, vectors, weights)


def _standardised(
    paths: Sequence[str], keywords: list[float], cosines: list[float], weights: tuple[float, float]
) -> list[float]:
    """The weighted sum of both standard scores, mapped to (0, 1) by the logistic function.

    The best chunk of a file stands for the file: it gets the file's largest score of each method, which in a long file
    two different chunks may have.
    """
    keyword_z = [weights[0] * z for z in standard_scores(keywords, floor=BM25_DEVIATION_FLOOR)]
    vector_z = [weights[1] * z for z in standard_scores(cosines, floor=COSINE_DEVIATION_FLOOR)]
    sums = [by_word + by_vector for by_word, by_vector in zip(keyword_z, vector_z, strict=True)]
    places_of: defaultdict[str, list[int]] = defaultdict(list)
    for place, path in enumerate(paths):
        places_of[path].append(place)
    for places in places_of.values():
        best = max(places, key=sums.__getitem__)
        sums[best] = max(keyword_z[place] for place in places) + max(vector_z[place] for place in places)
    return [1 / (1 + math.exp(-weighted)) for weighted in sums]


def _weighted_sum(keywords: list[float], vectors: list[float | None], weights: tuple[float, float]) -> list[float]:
    """The weighted sum of keyword score and cosine; a negative or missing cosine counts as 0."""
    return [
        weights[0] * keyword_score(bm25) + weights[1] * max(cosine or 0.0, 0.0)
        for bm25, cosine in zip(keywords, vectors, strict=True)
    ]


def _reciprocal_rank(keywords: list[float], vectors: list[float | None], weights: tuple[float, float]) -> list[float]:
    """Reciprocal rank fusion: the weighted sum of 1 / (k + rank), divided by the score of the first rank."""
    keyword_ranks, vector_ranks = _ranks(keywords, missing=0.0), _ranks(vectors, missing=None)
    best = 1 / (RRF_K + 1)
    return [
        (weights[0] * _reciprocal(by_word) + weights[1] * _reciprocal(by_vector)) / best
        for by_word, by_vector in zip(keyword_ranks, vector_ranks, strict=True)
    ]


def _reciprocal(rank_or_zero: int) -> float:
    return 1 / (RRF_K + rank_or_zero) if rank_or_zero else 0


def standard_scores(values: Sequence[float], *, floor: float) -> list[float]:
    """Standard scores (value minus mean, over the standard deviation); the floor is added to the variance, squared.

    >>> [round(score, 2) for score in standard_scores([0.0, 4.0], floor=0.0)], standard_scores([3.0, 3.0], floor=1.0)
    ([-1.0, 1.0], [0.0, 0.0])
    """
    mean = math.fsum(values) / len(values) if values else 0.0
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values) if values else 0.0
    deviation = math.sqrt(variance + floor**2) or 1.0
    return [(value - mean) / deviation for value in values]


def _ranks(values: Sequence[float | None], *, missing: float | None) -> list[int]:
    """The rank of each value, largest first, from 1; equal values share a rank, and a missing value has rank 0."""
    present = [place for place, value in enumerate(values) if value != missing]
    present.sort(key=lambda place: -(values[place] or 0.0))
    ranks = [0] * len(values)
    if present:
        ranks[present[0]] = 1
    for position, (before, after) in enumerate(pairwise(present), start=2):
        ranks[after] = ranks[before] if values[after] == values[before] else position
    return ranks


# Selection


WordSets = Mapping[str, Set[str]]
"""The words of each chunk by candidate id, to recognise repetition."""


def shortlist(ranked: Sequence[RankedChunk], settings: RankingSettings, limit: int) -> list[RankedChunk]:
    """The ranked chunks that can be among the best `limit` once duplicates and caps are applied."""
    counts: Counter[Source] = Counter()
    eligible: list[RankedChunk] = []
    for chunk in ranked:
        source = chunk.candidate.source
        counts[source] += 1
        if counts[source] <= SHORTLIST_FACTOR * settings.per_source.get(source, limit):
            eligible.append(chunk)
    return eligible[: max(SHORTLIST_FACTOR * limit, 20)]


def diversify(
    ranked: Sequence[RankedChunk], settings: RankingSettings, *, limit: int, words: WordSets
) -> list[RankedChunk]:
    """The best `limit` chunks by maximal marginal relevance, without duplicates and within the caps of sources."""
    chosen: list[RankedChunk] = []
    counts: Counter[Source] = Counter()
    # similarity[i]: how much remaining[i] repeats of the chunks that are already chosen
    remaining, similarity = list(ranked), [0.0] * len(ranked)
    while remaining and len(chosen) < limit:
        # Marginal relevance: λ · order - (1 - λ) · similarity; take the largest.
        marginal = [
            settings.mmr_lambda * chunk.order - (1 - settings.mmr_lambda) * repeated
            for chunk, repeated in zip(remaining, similarity, strict=True)
        ]
        place = max(range(len(remaining)), key=marginal.__getitem__)
        best, repeated = remaining.pop(place), similarity.pop(place)
        source = best.candidate.source
        if repeated >= DUPLICATE_SIMILARITY or counts[source] >= settings.per_source.get(source, limit):
            continue
        chosen.append(best)
        counts[source] += 1
        similarity = [
            max(before, _similarity(best.candidate, chunk.candidate, words))
            for before, chunk in zip(similarity, remaining, strict=True)
        ]
    return sorted(chosen, key=lambda chunk: -chunk.order)


def _similarity(a: Candidate, b: Candidate, words: WordSets) -> float:
    """Jaccard similarity of the words of two chunks of one file, with a floor; 0 for chunks of different files."""
    if a.path != b.path:
        return 0.0
    a_words, b_words = words.get(a.id, frozenset()), words.get(b.id, frozenset())
    jaccard = len(a_words & b_words) / len(a_words | b_words) if a_words and b_words else 0.0
    return max(SAME_FILE_SIMILARITY, jaccard)
