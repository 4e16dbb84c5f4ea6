"""The scan: score every candidate in arrays, with the ids, order and factors that the plain definition gives.

Array arithmetic selects rows, with a margin of `TOLERANCE`; the plain definition then scores the few selected rows and
decides their order. Blocks are scanned newest first, and a block is skipped if its best possible row would not be among
the best rows so far. Rows with a similarity of exactly 0 need no margin: their score is 0 in both computations.
"""

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from backsight.core.instants import Horizon
from backsight.core.recall import score as plain
from backsight.core.recall.arrays.candidates import Candidates, Filters, candidates_of
from backsight.core.recall.arrays.columns import (
    DAY_MICROS,
    NUMBERS,
    UNITS,
    Array,
    Booleans,
    Columns,
    Floats,
    Integers,
    RowSelection,
    micros,
)
from backsight.core.recall.arrays.similarity import LEAST, TOLERANCE, ScoringContext, Similarity, similarity_to
from backsight.core.recall.period import UNWEIGHTED
from backsight.core.recall.rank import WARNINGS
from backsight.core.recall.score import RecallMood, ScoreFactors, Situation
from backsight.core.text.stems import text_likeness
from backsight.core.trades.trade import Outcome, OutcomeUnit

FEW_ROWS = 128
"""Up to this many rows are scored one by one, without a search for equal rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled episode."""

    id: str
    row: int
    value: float
    """The value that the ranking is sorted by."""
    factors: ScoreFactors


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The three rankings of a recall, and the number of candidates."""

    memories: tuple[Hit, ...]
    """By score."""
    nearest: tuple[Hit, ...]
    """By Sim · Rec, whatever the outcome."""
    warnings: tuple[Hit, ...]
    """Losses by sigmoid(−2x/σ) · Sim · Rec · Conf."""
    candidates: int
    sigma: Mapping[OutcomeUnit, float]


def scan(
    columns: Columns,
    situation: Situation,
    filters: Filters | None = None,
    *,
    horizon: Horizon,
    limit: int = 10,
    mood: RecallMood | None = None,
    period_weight: bool = False,
    after: tuple[float, str] | None = None,
) -> Scan:
    """Rank the candidates known at the horizon three ways; ties are ranked by id.

    `after` is the score and id of the last memory of the previous page. Episodes without an end and archived episodes
    are not candidates. With `period_weight` the score has the factor Period.

    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> columns = columns_of(an_episode(n, pnl_r=r) for n, r in enumerate((3.0, -1.0, 0.5)))
    >>> answer = scan(columns, Situation(symbol="XAUUSD"), horizon=Horizon(as_of=T0), limit=2)
    >>> [(hit.id, round(hit.value, 3)) for hit in answer.memories]
    [('episode-000000', 0.361), ('episode-000002', 0.237)]
    >>> [hit.id for hit in answer.nearest], [hit.id for hit in answer.warnings], answer.candidates
    (['episode-000000', 'episode-000001'], ['episode-000001'], 3)
    """
    context = ScoringContext(situation=situation, mood=mood or RecallMood(), now=horizon.as_of)
    with np.errstate(all="ignore"):
        candidates = candidates_of(columns, filters or Filters(), horizon, period_weight=period_weight)
        lists = TopLists.empty(candidates, context, limit=limit, after=after)
        _scan_blocks(candidates, context, lists)
    scorer = PlainScorer(candidates, context)
    return Scan(
        memories=scorer.rank(lists.memories, by_score),
        nearest=scorer.rank(lists.nearest, by_nearness),
        warnings=scorer.rank(lists.warnings, by_dread),
        candidates=candidates.count,
        sigma=candidates.sigma,
    )


def by_score(factors: ScoreFactors) -> float:
    return factors.score


def by_nearness(factors: ScoreFactors) -> float:
    return factors.nearness


def by_dread(factors: ScoreFactors) -> float:
    return factors.dread


# Scanning


class TopRows:
    """The rows that may be among the k with the highest values: those, and rows within the tolerance of the last."""

    def __init__(self, k: int, *, ids: Array, after: tuple[float, str] | None = None) -> None:
        self.k = k
        self.ids = ids
        self.after = after
        self.floor = 0.0 if k else math.inf
        """The value below which a row is not among the top k; values are never negative."""
        self.values: Floats = np.empty(0)
        self.rows: Integers = np.empty(0, np.int64)
        self.zero_rows: Integers = np.empty(0, np.int64)
        """The k rows with the first ids among the rows of similarity 0."""

    def may_take(self, bound: float) -> bool:
        """Whether rows with values up to a bound can be among the top k."""
        return bound * (1.0 + TOLERANCE) >= self.floor

    def offer(
        self, values: Floats, rows: RowSelection, *, is_zero: Booleans | None, only: Booleans | None = None
    ) -> None:
        """Take the rows that may be among the top k; `is_zero` marks the rows of similarity 0."""
        may_matter = values >= self.floor
        if only is not None:
            may_matter &= only
        if is_zero is not None:
            self._take_zero_rows(_rows_at(rows, np.flatnonzero(may_matter & is_zero)))
            may_matter &= ~is_zero
        if self.after is not None:
            may_matter &= values <= self.after[0] * (1.0 + TOLERANCE) + LEAST
        positions = np.flatnonzero(may_matter)
        if len(positions):
            self.values = np.concatenate([self.values, values[positions]])
            self.rows = np.concatenate([self.rows, _rows_at(rows, positions)])
            self._raise_floor()

    def _take_zero_rows(self, rows: Integers) -> None:
        """Keep the rows with the first ids, which rank first among equal values."""
        if self.after is not None and self.after[0] == 0:
            rows = rows[self.ids[rows] > self.after[1].encode()]
        if len(rows) and len(self.zero_rows) == self.k:
            rows = rows[self.ids[rows] < self.ids[self.zero_rows[-1]]]
        if len(rows):
            rows = np.concatenate([self.zero_rows, rows])
            self.zero_rows = rows[np.argsort(self.ids[rows], kind="stable")[: self.k]]

    def _raise_floor(self) -> None:
        """Raise the floor to the k-th highest value, less the tolerance, and drop the rows below it."""
        counted = self.values
        if self.after is not None:  # rows about as high as the start of the page may belong to the previous page
            counted = counted[counted < self.after[0] * (1.0 - TOLERANCE) - LEAST]
        if len(counted) < self.k:
            return
        last = float(np.partition(counted, len(counted) - self.k)[len(counted) - self.k])
        self.floor = max(0.0, last * (1.0 - TOLERANCE) - LEAST)
        high = self.values >= self.floor
        self.values, self.rows = self.values[high], self.rows[high]


def _rows_at(rows: RowSelection, positions: Integers) -> Integers:
    return positions + rows.start if isinstance(rows, slice) else rows[positions]


@dataclass(frozen=True, slots=True)
class TopLists:
    """The top rows of the three rankings."""

    memories: TopRows
    nearest: TopRows
    warnings: TopRows
    highest_boost: float
    """The highest that Aff · Period can be."""

    @classmethod
    def empty(
        cls, candidates: Candidates, context: ScoringContext, *, limit: int, after: tuple[float, str] | None
    ) -> "TopLists":
        ids, boost = candidates.columns.ids, highest_affect(context.mood)
        if candidates.periods is not None:
            boost *= float(candidates.periods.best.max(initial=UNWEIGHTED))
        return cls(TopRows(limit, ids=ids, after=after), TopRows(limit, ids=ids), TopRows(WARNINGS, ids=ids), boost)

    @property
    def floor(self) -> float:
        """The Sim · Rec below which a row matters to no ranking; 0 as long as every row matters."""
        scored = self.memories.floor / self.highest_boost
        return (1.0 - TOLERANCE) * min(scored, self.nearest.floor, self.warnings.floor)


def _scan_blocks(candidates: Candidates, context: ScoringContext, lists: TopLists) -> None:
    """Offer the rows of every block to the rankings, newest block first, except rows that cannot be good enough."""
    similarity, now = similarity_to(context.situation, candidates), micros(context.now)
    score_bound, near_bound, dread_bound = (bound.tolist() for bound in _block_bounds(candidates, context))
    for block in np.flatnonzero(candidates.counts)[::-1].tolist():
        scores_matter = lists.memories.may_take(score_bound[block])
        warnings_matter = lists.warnings.may_take(dread_bound[block])
        if not (scores_matter or warnings_matter or lists.nearest.may_take(near_bound[block])):
            continue
        rows = candidates.rows(block)
        if lists.floor > 0:
            rows = _promising_rows(candidates, similarity, lists, rows, now)
            if not len(rows):
                continue
        near = similarity.of(rows)
        multiply_recency(near, candidates.columns.ended_at[rows], now)
        is_zero = None if lists.floor > 0 or near.all() else near == 0
        lists.nearest.offer(near, rows, is_zero=is_zero)
        if scores_matter or warnings_matter:
            scores, dread, lost = score_rows(candidates, context.mood, rows, near)
            lists.warnings.offer(dread, rows, is_zero=is_zero, only=lost)
            lists.memories.offer(scores, rows, is_zero=is_zero)


def _promising_rows(
    candidates: Candidates, similarity: Similarity, lists: TopLists, rows: RowSelection, now: int
) -> Integers:
    """The rows that some ranking would take if their numbers and text matched fully: the others need no Sim."""
    columns = candidates.columns
    bound = similarity.upper_bound(rows)
    multiply_recency(bound, columns.ended_at[rows], now)
    positions = np.flatnonzero(bound >= lists.floor)
    rows = _rows_at(rows, positions)
    # Bound each ranking's value with the row's own outcome and conviction.
    bound = bound[positions] * (1.0 + TOLERANCE)
    x = columns.outcome[rows]
    q = _quality(x, candidates.table.unit.take(columns.group[rows]), candidates.sigma)
    with_conviction = bound * columns.conviction[rows]
    promising = bound >= lists.nearest.floor
    promising |= with_conviction * q * lists.highest_boost >= lists.memories.floor
    promising |= (with_conviction * (1.0 - q) >= lists.warnings.floor) & (x < 0)
    return rows[promising]


def score_rows(
    candidates: Candidates, mood: RecallMood, rows: RowSelection, near: Floats
) -> tuple[Floats, Floats, Booleans]:
    """The scores of rows, their rank values as warnings, and which of them lost; overwrites their Sim · Rec `near`."""
    columns = candidates.columns
    x, units = columns.outcome[rows], candidates.table.unit.take(columns.group[rows])
    score = _quality(x, units, candidates.sigma)
    near *= columns.conviction[rows]
    dread = (1.0 - score) * near
    score *= near
    # The factor Aff, as `score.affect` defines it.
    if mood.drawdown_state > plain.DRAWDOWN_MOOD:
        in_r = units == 0
        large_win = np.where(in_r & (x > plain.LARGE_WIN_R), plain.LARGE_WIN_AFFECT, 1.0)
        score *= np.where(in_r & (x < plain.LARGE_LOSS_R), plain.LARGE_LOSS_AFFECT, large_win)
    elif mood.consecutive_losses >= plain.LOSING_STREAK:
        by_sign = np.where(x > 0, plain.STREAK_WIN_AFFECT, plain.STREAK_LOSS_AFFECT)
        score *= np.where(units < 0, 1.0, by_sign)
    if candidates.periods is not None:
        score *= candidates.periods.weights[rows]
    return score, dread, x < 0


def multiply_recency(values: Floats, ended_at: Integers, now: int) -> None:
    """Multiply values by Rec, 1 / √(1 + age/τ), in place; the square root is the `DECAY` of ½."""
    age = (now - ended_at) * (1.0 / (DAY_MICROS * plain.TAU_DAYS))
    np.maximum(age, 0.0, out=age)
    age += 1.0
    values /= np.sqrt(age, out=age)


def _quality(x: Floats, units: NDArray[np.int8], sigma: Mapping[OutcomeUnit, float]) -> Floats:
    """Q of many outcomes; NaN is no outcome."""
    by_unit = np.array([*(sigma.get(unit, np.nan) for unit in UNITS), np.nan])
    q: Floats = -2.0 * x
    q /= by_unit.take(units, mode="wrap") if len(sigma) != 1 else next(iter(sigma.values()))
    np.exp(q, out=q)
    q += 1.0
    np.reciprocal(q, out=q)
    missing = np.isnan(q)
    if missing.any():
        q[missing] = 0.5
    return q


def _block_bounds(candidates: Candidates, context: ScoringContext) -> tuple[Floats, Floats, Floats]:
    """For each block, the highest that score, Sim · Rec and the rank value of a warning can be: as if Sim were 1."""
    blocks = candidates.columns.blocks
    rec = np.ones(len(blocks))
    multiply_recency(rec, blocks.ended_range[:, 1], micros(context.now))
    # The best Q, and the best 1 − Q of a loss, over all units; −1 for blocks without a loss.
    q = np.full(len(rec), 0.5)
    dread = np.full(len(rec), -1.0)
    for number, unit in enumerate(UNITS):
        if unit in candidates.sigma:
            highest, lowest = blocks.highest[:, number], blocks.lowest[:, number]
            q = np.fmax(q, 1.0 / (1.0 + np.exp(-2.0 * highest / candidates.sigma[unit])))
            loss = 1.0 / (1.0 + np.exp(2.0 * lowest / candidates.sigma[unit]))
            dread = np.where(lowest < 0, np.fmax(dread, loss), dread)
    q *= highest_affect(context.mood)
    if candidates.periods is not None:
        q *= candidates.periods.best
    with_conviction = rec * blocks.conviction
    return q * with_conviction, rec, dread * with_conviction


def highest_affect(mood: RecallMood) -> float:
    """The highest that Aff can be in a mood.

    >>> [highest_affect(RecallMood(drawdown_state=d, consecutive_losses=3 * n)) for d, n in ((0, 0), (0, 1), (1, 0))]
    [1.0, 1.09, 1.15]
    """
    return max(plain.affect(Outcome(value=x, unit="R"), mood) for x in (-2.0, 0.5, 3.0))


# Scoring by the plain definition


@dataclass(frozen=True, slots=True)
class PlainScorer:
    """Scores single rows by the plain definition."""

    candidates: Candidates
    context: ScoringContext
    cache: dict[int, ScoreFactors] = field(default_factory=dict)

    def rank(self, top: TopRows, by: Callable[[ScoreFactors], float]) -> tuple[Hit, ...]:
        """The k best rows in order; ties are ranked by id."""
        rows = np.concatenate([top.rows, top.zero_rows])
        equal_rows = self.equal_rows(rows)
        values = {row: by(self.factors(row)) for row in set(equal_rows)}
        ids = map(self.candidates.columns.id, rows.tolist())
        ranked = [
            (-values[equal], name, row, equal) for name, row, equal in zip(ids, rows.tolist(), equal_rows, strict=True)
        ]
        if top.after is not None:
            start = (-top.after[0], top.after[1])
            ranked = [each for each in ranked if each[:2] > start]
        return tuple(
            Hit(id=name, row=row, value=-value, factors=self.factors(equal))
            for value, name, row, equal in heapq.nsmallest(top.k, ranked)
        )

    def factors(self, row: int) -> ScoreFactors:
        """The factors of a row."""
        if row not in self.cache:
            self.cache[row] = self._score(row)
        return self.cache[row]

    def _score(self, row: int) -> ScoreFactors:
        columns, context, periods = self.candidates.columns, self.context, self.candidates.periods
        outcome = columns.outcome_of(row)
        return ScoreFactors(
            Q=plain.quality(outcome, sigma=self.candidates.sigma),
            Sim=plain.mean_closeness(self.compare_fields(row)),
            Rec=plain.recency(columns.end_of(row), now=context.now),
            Conf=float(columns.conviction[row]),
            Aff=plain.affect(outcome, context.mood),
            Period=UNWEIGHTED if periods is None else periods.exact_weight(columns, row),
        )

    def compare_fields(self, row: int) -> list[tuple[str, float, float]]:
        """The fields of Sim of a row, each with its name, weight and closeness."""
        columns, situation = self.candidates.columns, self.context.situation
        group, context = columns.group_of(row), columns.context(row)
        text = text_likeness(situation.words, columns.words_of(row)) if situation.words else None
        return list(
            plain.compare_fields(situation, symbol=group.symbol, direction=group.direction, context=context, text=text)
        )

    def equal_rows(self, rows: Integers) -> list[int]:
        """For each row a row with the same score, so that of a thousand equal rows only one is scored."""
        if len(rows) <= FEW_ROWS:
            return [int(row) for row in rows]
        columns, words = self.candidates.columns, self.context.situation.words
        # Join everything that a score depends on into one byte string a row, and find the distinct strings.
        names = ("ended_at", "outcome", "conviction", *NUMBERS)
        profile = [getattr(columns, name)[rows].view(np.int64) for name in names]
        profile += [getattr(columns, name)[rows].astype(np.int64) for name in ("group", "setting")]
        if words:
            profile.append(np.array([len(words.intersection(columns.words_of(int(row)))) for row in rows]))
        keys = np.stack(profile, axis=1).view(f"V{8 * len(profile)}").ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return [int(row) for row in rows[first[inverse]]]
