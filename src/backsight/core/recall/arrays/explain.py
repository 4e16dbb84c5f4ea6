"""The rank of one memory in a recall: its factors, the memories ahead of it, and what would rank it higher.

Every candidate is scored in arrays, and none is skipped. Rows within the tolerance of a rank are scored by the plain
definition.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

import numpy as np

from backsight.core.instants import EPOCH, Horizon, format_instant
from backsight.core.numbers import short
from backsight.core.recall.arrays.candidates import Candidates, Filters, candidates_of
from backsight.core.recall.arrays.columns import REPLACED, UNITS, Booleans, Columns, Floats, Integers, micros
from backsight.core.recall.arrays.scan import (
    PlainScorer,
    by_dread,
    by_nearness,
    by_score,
    highest_affect,
    multiply_recency,
    score_rows,
)
from backsight.core.recall.arrays.similarity import LEAST, TOLERANCE, ScoringContext, similarity_to
from backsight.core.recall.explanation import (
    ComparedField,
    Explanation,
    FactorName,
    Improvement,
    RankedMemory,
    Value,
    not_a_candidate,
)
from backsight.core.recall.period import BEST_WEIGHT
from backsight.core.recall.rank import age_in_words, outcome_in_words, similarity_in_words
from backsight.core.recall.score import RecallMood, ScoreFactors, Situation, mean_closeness, quality
from backsight.core.trades.trade import Outcome

FILTER_NAMES = {
    "symbol": "symbol",
    "strategy_name": "strategy",
    "deployment_id": "deployment",
    "mode": "mode",
    "direction": "direction",
}


def explain(
    columns: Columns,
    episode_id: str,
    situation: Situation,
    filters: Filters | None = None,
    *,
    horizon: Horizon,
    limit: int = 10,
    mood: RecallMood | None = None,
    period_weight: bool = False,
) -> Explanation | None:
    """Explain the rank of an episode in a `scan` with the same arguments; None if there is no such episode.

    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> columns = columns_of(an_episode(n, pnl_r=2.0, ended_at=T0 - timedelta(days=30 * n)) for n in range(9))
    >>> seventh, now = "episode-000007", Horizon(as_of=T0)
    >>> explanation = explain(columns, seventh, Situation(symbol="XAUUSD"), horizon=now, limit=5)
    >>> explanation.sentence
    '8th of 9 by score (0.12): behind because it is 210 days old (Rec .35); had it ended now it would be 2nd'
    >>> [(memory.rank, memory.id) for memory in explanation.ahead]
    [(5, 'episode-000004'), (7, 'episode-000006')]
    >>> explain(columns, seventh, Situation(), Filters(symbol="BTC"), horizon=now).sentence
    'Not a candidate: its symbol is XAUUSD, not BTC'
    """
    row = _row_of(columns, episode_id)
    if row is None:
        return None
    row_filters = filters or Filters()
    context = ScoringContext(situation=situation, mood=mood or RecallMood(), now=horizon.as_of)
    with np.errstate(all="ignore"):
        candidates = candidates_of(columns, row_filters, horizon, period_weight=period_weight)
        if reasons := list(_exclusions(columns, row, row_filters, horizon)):
            return not_a_candidate(episode_id, reasons, candidates.count)
        return _explanation(row, Rankings.of(candidates, context), limit=limit)


def _row_of(columns: Columns, episode_id: str) -> int | None:
    rows = np.flatnonzero(columns.marks == zlib.crc32(episode_id.encode())).tolist()
    return next((row for row in rows if columns.group[row] != REPLACED and columns.id(row) == episode_id), None)


# Rows that are not candidates


def _exclusions(columns: Columns, row: int, filters: Filters, horizon: Horizon) -> Iterator[str]:
    """The reasons why a row is not a candidate."""
    group, as_of, seen_at = columns.group_of(row), horizon.as_of, horizon.seen_at
    if columns.known_at[row] > micros(as_of):
        yield f"it became known at {_instant(columns.known_at[row])}, after {format_instant(as_of)}"
    if seen_at is not None and columns.recorded_at[row] > micros(seen_at):
        yield f"it was recorded at {_instant(columns.recorded_at[row])}, after {format_instant(seen_at)}"
    if group.won is None:
        yield "it has no outcome yet"
    elif not group.recallable:
        yield "it is archived"
    for field, name in FILTER_NAMES.items():
        wanted, actual = getattr(filters, field), getattr(group, field)
        if wanted not in (None, actual) and not (field == "symbol" and actual in filters.joined):
            yield f"its {name} is {actual or 'not known'}, not {wanted}"
    if missing := sorted(set(filters.tags) - set(columns.tags(row))):
        yield f"it has no tag {', '.join(missing)}"
    if filters.since is not None and columns.ended_at[row] < micros(filters.since):
        yield f"it ended at {_instant(columns.ended_at[row])}, before {format_instant(filters.since)}"
    if filters.until is not None and columns.ended_at[row] >= micros(filters.until):
        yield f"it ended at {_instant(columns.ended_at[row])}, not before {format_instant(filters.until)}"


def _instant(at: int) -> str:
    return format_instant(EPOCH + timedelta(microseconds=int(at)))


# Ranks


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Rows sorted by a value, highest first; ties are sorted by id."""

    scorer: PlainScorer
    rows: Integers
    values: Floats
    """To the tolerance."""
    is_zero: Booleans
    """The rows of similarity 0, whose value is exactly 0."""
    by: Callable[[ScoreFactors], float]

    def rank(self, row: int, value: float) -> int:
        """The rank of a row with its own value, or the rank it would have with a higher value."""
        margin = value * TOLERANCE + LEAST
        ahead = int(np.count_nonzero(self.values > value + margin))
        place = (-value, bytes(self.scorer.candidates.columns.ids[row]), row)
        return 1 + ahead + sum(other < place for other in self._sort_keys(self._near(value, margin)))

    def row_at(self, rank: int) -> int:
        """The row at a rank."""
        place = len(self.values) - rank
        value = float(np.partition(self.values, place)[place])
        margin = value * TOLERANCE + LEAST
        ahead = int(np.count_nonzero(self.values > value + margin))
        return sorted(self._sort_keys(self._near(value, margin)))[rank - ahead - 1][2]

    def _near(self, value: float, margin: float) -> Booleans:
        return np.abs(self.values - value) <= margin

    def _sort_keys(self, which: Booleans) -> Iterator[tuple[float, bytes, int]]:
        """The exact sort keys of some rows."""
        zero_rows, rows = self.rows[which & self.is_zero], self.rows[which & ~self.is_zero]
        ids = self.scorer.candidates.columns.ids
        for row in zero_rows.tolist():
            yield 0.0, bytes(ids[row]), row
        for row, equal in zip(rows.tolist(), self.scorer.equal_rows(rows), strict=True):
            yield -self.by(self.scorer.factors(equal)), bytes(ids[row]), row


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """All candidates by score and by nearness, and the losses as warnings."""

    scorer: PlainScorer
    scores: Ranking
    nearest: Ranking
    warnings: Ranking

    @classmethod
    def of(cls, candidates: Candidates, context: ScoringContext) -> "Rankings":
        similarity, now = similarity_to(context.situation, candidates), micros(context.now)
        blocks = []
        for block in np.flatnonzero(candidates.counts).tolist():
            rows = candidates.rows(block)
            near = similarity.of(rows)
            multiply_recency(near, candidates.columns.ended_at[rows], now)
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            blocks.append((numbers, near, *score_rows(candidates, context.mood, rows, near.copy())))
        numbers, near, scores, dread, lost = (np.concatenate(column) for column in zip(*blocks, strict=True))
        scorer, is_zero = PlainScorer(candidates, context), near == 0
        return cls(
            scorer,
            Ranking(scorer, numbers, scores, is_zero, by_score),
            Ranking(scorer, numbers, near, is_zero, by_nearness),
            Ranking(scorer, numbers[lost], dread[lost], is_zero[lost], by_dread),
        )


# Rows that are candidates


def _explanation(row: int, rankings: Rankings, *, limit: int) -> Explanation:
    scorer, count = rankings.scorer, len(rankings.scores.rows)
    factors = scorer.factors(row)
    outcome = scorer.candidates.columns.outcome_of(row)
    rank = rankings.scores.rank(row, factors.score)
    fields = _compared_fields(row, scorer)
    improvements = _improvements(row, rankings, fields)
    lost = outcome is not None and outcome.value < 0
    return Explanation(
        id=scorer.candidates.columns.id(row),
        sentence=f"{ordinal(rank)} of {count} by score ({factors.score:.2g}): {_why(row, scorer, rank, improvements)}",
        candidates=count,
        factors=factors,
        score=factors.score,
        rank=rank,
        nearest_rank=rankings.nearest.rank(row, factors.nearness),
        warning_rank=rankings.warnings.rank(row, factors.dread) if lost else None,
        fields=fields,
        ahead=tuple(_ranked_memory(at, rankings) for at in sorted({limit, rank - 1}) if 0 < at < rank),
        higher=improvements,
    )


def _ranked_memory(rank: int, rankings: Rankings) -> RankedMemory:
    row = rankings.scores.row_at(rank)
    factors = rankings.scorer.factors(row)
    memory_id = rankings.scorer.candidates.columns.id(row)
    return RankedMemory(rank=rank, id=memory_id, score=factors.score, factors=factors)


def _compared_fields(row: int, scorer: PlainScorer) -> tuple[ComparedField, ...]:
    columns, situation = scorer.candidates.columns, scorer.context.situation
    fields, context, words = scorer.compare_fields(row), columns.context(row), columns.words_of(row)
    total = sum(weight for _, weight, _ in fields)
    values: dict[str, tuple[Value, Value]] = {
        "direction": (situation.direction, columns.group_of(row).direction),
        "text": (tuple(sorted(situation.words)), tuple(sorted(situation.words.intersection(words)))),
    }
    return tuple(
        ComparedField(
            name=name,
            weight=weight,
            query_value=values[name][0] if name in values else getattr(situation.context, name),
            memory_value=values[name][1] if name in values else getattr(context, name),
            closeness=near,
            contribution=weight * near / total,
        )
        for name, weight, near in fields
    )


def _improvements(row: int, rankings: Rankings, fields: tuple[ComparedField, ...]) -> tuple[Improvement, ...]:
    """What would rank a row higher, the largest gain first."""
    scorer, scores = rankings.scorer, rankings.scores
    factors, improvements = scorer.factors(row), []
    for name, best in _best_factors(rankings, has_fields=bool(fields)).items():
        if getattr(factors, name) < best:
            score = replace(factors, **{name: best}).score
            improvements.append(Improvement(factor=name, value=best, score=score, rank=scores.rank(row, score)))
    for field in fields:
        if field.closeness < 1:
            sim = mean_closeness((f.name, f.weight, 1.0 if f is field else f.closeness) for f in fields)
            score = replace(factors, Sim=sim).score
            rank = scores.rank(row, score)
            improvements.append(Improvement(factor="Sim", field=field.name, value=sim, score=score, rank=rank))
    return tuple(sorted(improvements, key=lambda improvement: -improvement.score))


def _best_factors(rankings: Rankings, *, has_fields: bool) -> dict[FactorName, float]:
    """The best value of each factor; Sim cannot change if no field is compared."""
    candidates, rows = rankings.scorer.candidates, rankings.scores.rows
    x, units = candidates.columns.outcome[rows], candidates.table.unit.take(candidates.columns.group[rows])
    highest: list[Outcome | None] = [None] if -1 in units else []
    highest += [Outcome(value=float(x[units == n].max()), unit=unit) for n, unit in enumerate(UNITS) if n in units]
    best: dict[FactorName, float] = {
        "Q": max(quality(outcome, sigma=candidates.sigma) for outcome in highest),
        "Rec": 1.0,
        "Conf": 1.0,
        "Aff": highest_affect(rankings.scorer.context.mood),
    }
    if has_fields:
        best["Sim"] = 1.0
    if candidates.periods is not None:
        best["Period"] = BEST_WEIGHT
    return best


# In words


def _why(row: int, scorer: PlainScorer, rank: int, improvements: tuple[Improvement, ...]) -> str:
    if rank == 1:
        return "nothing is ahead of it"
    largest = next((each for each in improvements if each.field is None), None)
    if largest is None:
        return "what is ahead of it scores the same"
    cause, remedy = _cause(largest.factor, row, scorer)
    still = "still " if largest.rank == rank else ""
    value = short(getattr(scorer.factors(row), largest.factor))
    return f"behind because {cause} ({largest.factor} {value}); {remedy} it would {still}be {ordinal(largest.rank)}"


def _cause(factor: FactorName, row: int, scorer: PlainScorer) -> tuple[str, str]:
    """Why a factor of a row is low, and what would raise it."""
    columns, outcome = scorer.candidates.columns, scorer.candidates.columns.outcome_of(row)
    match factor:
        case "Q":
            result = "with a risk not known" if outcome is None else f"at {outcome_in_words(outcome)}"
            return f"it ended {result}", "had it ended as well as the best"
        case "Sim":
            compared = sum(each.memory_value not in (None, ()) for each in _compared_fields(row, scorer))
            similar = similarity_in_words(scorer.factors(row).Sim, compared=compared)
            return f"its context is {similar}", "had its context been the same"
        case "Rec":
            return f"it is {age_in_words(columns.end_of(row), now=scorer.context.now)} old", "had it ended now"
        case "Conf":
            return "the confidence in it was not full", "with full confidence"
        case "Aff":
            return "the present mood favours other results", "with such a result"
        case "Period":
            return "its strategy did not have the best of months", "had it been the best"
    assert_never(factor)


def ordinal(number: int) -> str:
    """A rank as an ordinal number.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1003)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd', '111th', '1003rd']
    """
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
