"""Fusion: one order out of what matches by words and what matches by meaning.

Neither score means the same from query to query: BM25 grows with the rarity of the words, a cosine lives in a narrow
band. So each is standardised over the candidates of its query, and the two are added (Shaw & Fox 1994 for the sum;
Montague & Aslam 2001 for standard scores). A half that does not tell its candidates apart says little: below a floor
its spread is not blown up. docs/decisions/0016-documents.md has what else was tried.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Literal

from backsight.core.documents.citation import Factors, Source
from backsight.core.errors import Invalid

Fusion = Literal["standardised", "weighted_sum", "reciprocal_rank"]

DEPTH = 100
"""How many candidates each half brings."""
K1, B = 1.2, 0.75
"""BM25's saturation by repetition, and its allowance for length (Robertson & Zaragoza 2009)."""
LEAST_TELLING = 0.5
"""What a term counts that nearly every chunk has: enough for a chunk with it to be found."""
PLAIN_KEYWORD, PLAIN_VECTOR = 1.0, 0.04
"""Spreads below which a half does not tell its candidates apart: of BM25, and of cosines."""
RANK_FLOOR = 60
"""Of reciprocal ranks (Cormack, Clarke & Büttcher 2009)."""
AGEING: Set[Source] = frozenset({"journal", "run", "decision", "review"})
"""What a half-life makes less of; rules do not age."""
COMMON = 0.1
"""A term in more than this share of the chunks finds nothing by itself: it only ranks what others found."""
SPARE = 4
"""So many times as many are read as are wanted: some repeat others."""
SAME = 0.9
"""Chunks of one file that share so much of their words are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How candidates are put in order."""

    fusion: Fusion = "standardised"
    keyword_weight: float = 0.5
    vector_weight: float = 0.5
    minimum_score: float = 0.15
    """What matches less by words and by meaning is left out."""
    per_source: Mapping[Source, int] = field(default_factory=dict)
    """At most so many of a source."""
    novelty: float = 0.7
    """λ of maximal marginal relevance (Carbonell & Goldstein 1998): 1 minds no repetition within a file."""
    half_life_days: float | None = None
    """After so many days a journal entry counts half."""

    def check(self) -> None:
        """Refuse weights that put nothing in order."""
        weights = (self.keyword_weight, self.vector_weight)
        if not all(math.isfinite(each) and each >= 0 for each in weights) or sum(weights) == 0:
            raise Invalid("weights are 0 or more, and not both 0", field="keyword_weight")
        if not 0 <= self.minimum_score <= 1:
            raise Invalid(f"{self.minimum_score} is no score; give 0 to 1", field="minimum_score")
        if not 0 <= self.novelty <= 1:
            raise Invalid(f"{self.novelty} is out of range; give 0 to 1", field="novelty")
        if self.half_life_days is not None and not self.half_life_days > 0:
            raise Invalid(f"{self.half_life_days} is no half-life; give days above 0", field="half_life_days")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A chunk that a half has found."""

    id: str
    path: str
    source: Source
    keyword: float | None = None
    """BM25, the larger the better; None where no word is in it."""
    vector: float | None = None
    """Cosine; None where it has no vector yet."""
    at: datetime | None = None
    """When it was written, as far as it ages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate in its place."""

    candidate: Candidate
    score: float
    factors: Factors


def inverse_document_frequency(having: int, total: int) -> float:
    """How telling a term is, as Lucene has it; never below a floor, so that a rule in a small manual does not vanish.

    >>> [round(inverse_document_frequency(n, 5), 2) for n in (1, 3, 5)]
    [1.39, 0.54, 0.5]
    """
    return max(LEAST_TELLING, math.log1p((total - having + 0.5) / (having + 0.5)))


def saturation(repeated: float, length: float, mean_length: float) -> float:
    """What repeating a term in a text of some length is worth, 0 to 2.2 (BM25).

    >>> round(saturation(1, 100, 100), 2), round(saturation(3, 100, 100), 2), round(saturation(1, 400, 100), 2)
    (1.0, 1.57, 0.45)
    """
    norm = 1 - B + B * (length / mean_length if mean_length else 1.0)
    return repeated * (K1 + 1) / (repeated + K1 * norm)


def keyword_score(bm25: float) -> float:
    """BM25 in [0, 1), the larger the better.

    >>> keyword_score(0.0), keyword_score(4.0)
    (0.0, 0.8)
    """
    return bm25 / (1 + bm25)


def rank(candidates: Sequence[Candidate], rules: Rules, *, now: datetime) -> list[Ranked]:
    """The candidates in order: fused, aged, without the weak.

    >>> from datetime import UTC
    >>> found = [
    ...     Candidate(id="both", path="m.md", source="manual", keyword=9.0, vector=0.6),
    ...     Candidate(id="meaning", path="m.md", source="manual", vector=0.7),
    ...     Candidate(id="neither", path="m.md", source="manual", vector=0.1),
    ... ]
    >>> [each.candidate.id for each in rank(found, Rules(), now=datetime(2026, 6, 4, tzinfo=UTC))]
    ['both', 'meaning']
    """
    ranked = [
        Ranked(candidate=each, score=score * aged, factors=_factors(each, aged))
        for each, score in zip(candidates, _fused(candidates, rules), strict=True)
        if _strength(each) >= rules.minimum_score
        for aged in (_recency(each, rules, now),)
    ]
    return sorted(ranked, key=lambda each: (-each.score, each.candidate.path, each.candidate.id))


def _strength(candidate: Candidate) -> float:
    """How well it matches by the half that matches better: a strong hit of one half needs no other."""
    return max(keyword_score(candidate.keyword or 0.0), candidate.vector or 0.0)


def _factors(candidate: Candidate, aged: float) -> Factors:
    keyword = None if candidate.keyword is None else keyword_score(candidate.keyword)
    return Factors(keyword=keyword, vector=candidate.vector, recency=aged)


def _recency(candidate: Candidate, rules: Rules, now: datetime) -> float:
    if rules.half_life_days is None or candidate.at is None or candidate.source not in AGEING:
        return 1.0
    age = max(now - candidate.at, timedelta(0)) / timedelta(days=1)
    return float(0.5 ** (age / rules.half_life_days))


# Fusions: each a score in [0, 1] a candidate


def _fused(candidates: Sequence[Candidate], rules: Rules) -> list[float]:
    keywords = [each.keyword or 0.0 for each in candidates]
    vectors = [each.vector for each in candidates]
    if all(vector is None for vector in vectors):
        return [keyword_score(each) for each in keywords]
    total = rules.keyword_weight + rules.vector_weight
    weights = rules.keyword_weight / total, rules.vector_weight / total
    lowest = min(vector for vector in vectors if vector is not None)
    cosines = [lowest if vector is None else vector for vector in vectors]
    match rules.fusion:
        case "standardised":
            return _standardised(keywords, cosines, weights)
        case "weighted_sum":
            return _weighted_sum(keywords, vectors, weights)
        case "reciprocal_rank":
            return _reciprocal_rank(keywords, vectors, weights)


def _standardised(keywords: list[float], cosines: list[float], weights: tuple[float, float]) -> list[float]:
    by_keyword, by_vector = standard(keywords, floor=PLAIN_KEYWORD), standard(cosines, floor=PLAIN_VECTOR)
    sums = (weights[0] * word + weights[1] * meaning for word, meaning in zip(by_keyword, by_vector, strict=True))
    return [1 / (1 + math.exp(-each)) for each in sums]


def _weighted_sum(keywords: list[float], vectors: list[float | None], weights: tuple[float, float]) -> list[float]:
    """w · s_fts + w · s_vec, as hybrids have it that add the two as they are."""
    return [
        weights[0] * keyword_score(word) + weights[1] * max(meaning or 0.0, 0.0)
        for word, meaning in zip(keywords, vectors, strict=True)
    ]


def _reciprocal_rank(keywords: list[float], vectors: list[float | None], weights: tuple[float, float]) -> list[float]:
    by_word, by_meaning = _places(keywords, none=0.0), _places(vectors, none=None)
    best = 1 / (RANK_FLOOR + 1)
    return [
        (weights[0] * (1 / (RANK_FLOOR + word) if word else 0) + weights[1] * (1 / (RANK_FLOOR + near) if near else 0))
        / best
        for word, near in zip(by_word, by_meaning, strict=True)
    ]


def standard(values: Sequence[float], *, floor: float) -> list[float]:
    """Standard scores; a spread below the floor counts as if it were the floor, about.

    >>> [round(each, 2) for each in standard([0.0, 4.0], floor=0.0)], standard([3.0, 3.0], floor=1.0)
    ([-1.0, 1.0], [0.0, 0.0])
    """
    mean = math.fsum(values) / len(values) if values else 0.0
    variance = math.fsum((each - mean) ** 2 for each in values) / len(values) if values else 0.0
    spread = math.sqrt(variance + floor**2) or 1.0
    return [(each - mean) / spread for each in values]


def _places(values: Sequence[float | None], *, none: float | None) -> list[int]:
    """The place of each from 1 on, equal ones the same; 0 for what is not there."""
    there = sorted((number for number, each in enumerate(values) if each != none), key=lambda n: -(values[n] or 0.0))
    places = [0] * len(values)
    if there:
        places[there[0]] = 1
    for place, (before, after) in enumerate(pairwise(there), start=2):
        places[after] = places[before] if values[after] == values[before] else place
    return places


# Folding


Words = Mapping[str, Set[str]]
"""What chunks say, by id, to see that one says what another does."""


def worth_reading(ranked: Sequence[Ranked], rules: Rules, limit: int) -> list[Ranked]:
    """Those of a ranking that can be among the best once repetitions are folded."""
    counts: Counter[Source] = Counter()
    likely: list[Ranked] = []
    for each in ranked:
        source = each.candidate.source
        counts[source] += 1
        if counts[source] <= SPARE * rules.per_source.get(source, limit):
            likely.append(each)
    return likely[: max(SPARE * limit, 20)]


def fold(ranked: Sequence[Ranked], rules: Rules, *, limit: int, words: Words) -> list[Ranked]:
    """The best, each weighed against what it repeats of its own file; a repetition, or one above a cap, is left out."""
    taken: list[Ranked] = []
    counts: Counter[Source] = Counter()
    left, alike = list(ranked), [0.0] * len(ranked)
    while left and len(taken) < limit:
        marginal = [
            rules.novelty * each.score - (1 - rules.novelty) * like for each, like in zip(left, alike, strict=True)
        ]
        place = max(range(len(left)), key=marginal.__getitem__)
        best, like = left.pop(place), alike.pop(place)
        source = best.candidate.source
        if like >= SAME or counts[source] >= rules.per_source.get(source, limit):
            continue
        taken.append(best)
        counts[source] += 1
        alike = [
            max(before, _alike(best.candidate, each.candidate, words)) for before, each in zip(alike, left, strict=True)
        ]
    return sorted(taken, key=lambda each: -each.score)


def _alike(one: Candidate, other: Candidate, words: Words) -> float:
    """The share of words that two chunks of one file have in common (Jaccard); those of two files are not compared."""
    if one.path != other.path:
        return 0.0
    said, also = words.get(one.id, frozenset()), words.get(other.id, frozenset())
    return len(said & also) / len(said | also) if said and also else 0.0
