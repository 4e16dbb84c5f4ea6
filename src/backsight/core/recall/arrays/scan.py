"""The scan: every candidate scored at once, in arrays; the same ids, order and factors as `score` gives one by one.

Blocks are looked at newest first, and one is passed over only if the best it can hold would not be among the best
found so far. Arrays select, a hair too many; the few that are left are scored by `score` itself, which has the last
word on factors and order. What is like nothing asked with is no matter of a hair: its score is 0 in both.
"""

import heapq
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from backsight.core.recall.arrays.candidates import Candidates, Filters, Rows, candidates_of, with_periods
from backsight.core.recall.arrays.columns import NUMBERS as HELD_NUMBERS
from backsight.core.recall.arrays.columns import (
    UNITS,
    Array,
    Columns,
    Floats,
    Truths,
    Whole,
    micros,
)
from backsight.core.recall.arrays.similarity import LEAST, Likeness, ScoringContext, likeness_of
from backsight.core.recall.period import UNWEIGHTED
from backsight.core.recall.score import RecallMood, ScoreFactors, Situation, affect, quality, recency, similarity
from backsight.core.text.stems import text_likeness
from backsight.core.trades.trade import Outcome, OutcomeUnit

WARNINGS = 3
HAIR = 1e-9
"""Share by which array arithmetic may differ from the plain one, with much to spare."""
DAY = timedelta(days=1) / timedelta(microseconds=1)
FEW = 128
"""Up to so many rows are judged one by one, without a look for equal ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One episode that came to mind."""

    id: str
    row: int
    value: float
    """What it was ranked by."""
    factors: ScoreFactors


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What came to mind, of how many candidates."""

    memories: tuple[Hit, ...]
    """By Score."""
    nearest: tuple[Hit, ...]
    """By Sim · Rec, blind to the outcome."""
    warnings: tuple[Hit, ...]
    """Losing episodes by sigmoid(−2x/σ) · Sim · Rec · Conf."""
    candidates: int
    sigma: Mapping[OutcomeUnit, float]


def scan(
    columns: Columns,
    query: Situation,
    filters: Filters | None = None,
    *,
    as_of: datetime,
    seen_at: datetime | None = None,
    limit: int = 10,
    temper: RecallMood | None = None,
    period_weight: bool = False,
    after: tuple[float, str] | None = None,
) -> Scan:
    """The best memories, the nearest and the warnings among all that was known; ties by id.

    `after` is score and id of the last memory of the page before. Episodes without an end, or put away, are no
    candidates. With `period_weight` scores are weighted by how the strategy fared at the time.

    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> columns = columns_of(an_episode(n, pnl_r=r) for n, r in enumerate((3.0, -1.0, 0.5)))
    >>> found = scan(columns, Situation(symbol="XAUUSD"), as_of=T0, limit=2)
    >>> [(hit.id, round(hit.value, 3)) for hit in found.memories]
    [('episode-000000', 0.361), ('episode-000002', 0.237)]
    >>> [hit.id for hit in found.nearest], [hit.id for hit in found.warnings], found.candidates
    (['episode-000000', 'episode-000001'], ['episode-000001'], 3)
    """
    asked = ScoringContext(query=query, temper=temper or RecallMood(), now=as_of)
    with np.errstate(all="ignore"):
        among = candidates_of(columns, filters or Filters(), as_of=as_of, seen_at=seen_at)
        if period_weight:
            among = with_periods(among, as_of=as_of, seen_at=seen_at)
        lists = Lists.empty(among, asked, limit=limit, after=after)
        _sweep(among, asked, lists)
    judge = Judge(among, asked)
    return Scan(
        memories=judge.ranked(lists.memories, by_score),
        nearest=judge.ranked(lists.nearest, by_nearness),
        warnings=judge.ranked(lists.warnings, by_dread),
        candidates=int(among.counts.sum()),
        sigma=among.sigma,
    )


def by_score(factors: ScoreFactors) -> float:
    return factors.score


def by_nearness(factors: ScoreFactors) -> float:
    return factors.nearness


def by_dread(factors: ScoreFactors) -> float:
    return factors.dread


# Sweeping


class Best:
    """Rows that may be among the k with the highest values: those, and what is within a hair of the last."""

    def __init__(self, k: int, *, ids: Array, after: tuple[float, str] | None = None) -> None:
        self.k = k
        self.ids = ids
        self.after = after
        self.floor = 0.0 if k else math.inf
        """What a value must have; nothing is below 0 but what does not count."""
        self.values: Floats = np.empty(0)
        self.rows: Whole = np.empty(0, np.int64)
        self.unlike: Whole = np.empty(0, np.int64)
        """Of the rows that are like nothing asked with, whose value is 0, those with the first ids."""

    def may_take(self, bound: float) -> bool:
        """Whether rows with values up to a bound can matter."""
        return bound * (1.0 + HAIR) >= self.floor

    def offer(self, values: Floats, rows: Rows, *, unlike: Truths | None, only: Truths | None = None) -> None:
        """Take of these rows what may matter; of those that are like nothing asked with, few do."""
        kept = values >= self.floor
        if only is not None:
            kept &= only
        if unlike is not None:
            self._take_unlike(_at(rows, np.flatnonzero(kept & unlike)))
            kept &= ~unlike
        if self.after is not None:
            kept &= values <= self.after[0] * (1.0 + HAIR) + LEAST
        places = np.flatnonzero(kept)
        if len(places):
            self.values = np.concatenate([self.values, values[places]])
            self.rows = np.concatenate([self.rows, _at(rows, places)])
            self._raise_floor()

    def _take_unlike(self, rows: Whole) -> None:
        """Keep the first ids: of equals they are the best."""
        if self.after is not None and self.after[0] == 0:
            rows = rows[self.ids[rows] > self.after[1].encode()]
        if len(rows) and len(self.unlike) == self.k:
            rows = rows[self.ids[rows] < self.ids[self.unlike[-1]]]
        if len(rows):
            rows = np.concatenate([self.unlike, rows])
            self.unlike = rows[np.argsort(self.ids[rows], kind="stable")[: self.k]]

    def _raise_floor(self) -> None:
        sure = self.values
        if self.after is not None:  # about the score of the page's start only the id decides, later
            sure = sure[sure < self.after[0] * (1.0 - HAIR) - LEAST]
        if len(sure) < self.k:
            return
        last = float(np.partition(sure, len(sure) - self.k)[len(sure) - self.k])
        self.floor = max(0.0, last * (1.0 - HAIR) - LEAST)
        kept = self.values >= self.floor
        self.values, self.rows = self.values[kept], self.rows[kept]


def _at(rows: Rows, places: Whole) -> Whole:
    return places + rows.start if isinstance(rows, slice) else rows[places]


@dataclass(frozen=True, slots=True)
class Lists:
    """The three parts of an answer."""

    memories: Best
    nearest: Best
    warnings: Best
    most: float
    """The most that Aff and Period can be together."""

    @classmethod
    def empty(cls, among: Candidates, asked: ScoringContext, *, limit: int, after: tuple[float, str] | None) -> "Lists":
        ids, most = among.columns.ids, most_affect(asked.temper)
        if among.periods is not None:
            most *= float(among.periods.best.max(initial=UNWEIGHTED))
        return cls(Best(limit, ids=ids, after=after), Best(limit, ids=ids), Best(WARNINGS, ids=ids), most)

    @property
    def floor(self) -> float:
        """What Sim · Rec must have for a row to matter to any of them; 0 as long as everything does."""
        return (1.0 - HAIR) * min(self.memories.floor / self.most, self.nearest.floor, self.warnings.floor)


def _sweep(among: Candidates, asked: ScoringContext, lists: Lists) -> None:
    """Offer what every block has, newest first, but for what cannot be good enough."""
    likeness, now = likeness_of(among, asked), micros(asked.now)
    best, near, worst = (bound.tolist() for bound in _bounds(among, asked))
    for block in np.flatnonzero(among.counts)[::-1].tolist():
        remembers, warns = lists.memories.may_take(best[block]), lists.warnings.may_take(worst[block])
        if not (remembers or warns or lists.nearest.may_take(near[block])):
            continue
        rows = among.rows(block)
        if lists.floor > 0:
            rows = _hopeful(among, likeness, lists, rows, now)
            if not len(rows):
                continue
        values = likeness.of(rows)
        fade(values, among.columns.ended_at[rows], now)
        unlike = None if lists.floor > 0 or values.all() else values == 0
        lists.nearest.offer(values, rows, unlike=unlike)
        if remembers or warns:
            scores, dread, lost = products(among, asked, rows, values)
            lists.warnings.offer(dread, rows, unlike=unlike, only=lost)
            lists.memories.offer(scores, rows, unlike=unlike)


def _hopeful(among: Candidates, likeness: Likeness, lists: Lists, rows: Rows, now: int) -> Whole:
    """The rows that some list would take if their numbers were as alike as can be."""
    columns = among.columns
    bound = likeness.at_most(rows)
    fade(bound, columns.ended_at[rows], now)
    places = np.flatnonzero(bound >= lists.floor)
    rows = _at(rows, places)
    bound = bound[places] * (1.0 + HAIR)
    x = columns.outcome[rows]
    good = _quality(x, among.table.unit.take(columns.group[rows]), among.sigma)
    sure = bound * columns.conviction[rows]
    kept = bound >= lists.nearest.floor
    kept |= sure * good * lists.most >= lists.memories.floor
    kept |= (sure * (1.0 - good) >= lists.warnings.floor) & (x < 0)
    return rows[kept]


def products(among: Candidates, asked: ScoringContext, rows: Rows, values: Floats) -> tuple[Floats, Floats, Truths]:
    """Of rows with their Sim · Rec, which is used up: scores, what they rank by as warnings, and which of them lost."""
    columns = among.columns
    x, units = columns.outcome[rows], among.table.unit.take(columns.group[rows])
    good = _quality(x, units, among.sigma)
    values *= columns.conviction[rows]
    dread = (1.0 - good) * values
    good *= values
    if asked.temper.drawdown_state > 0.5:
        in_r = units == 0
        good *= np.where(in_r & (x < -1.5), 1.15, np.where(in_r & (x > 2.0), 1.09, 1.0))
    elif asked.temper.consecutive_losses >= 3:
        good *= np.where(units < 0, 1.0, np.where(x > 0, 1.09, 0.94))
    if among.periods is not None:
        good *= among.periods.weights[rows]
    return good, dread, x < 0


def fade(values: Floats, ended: Whole, now: int) -> None:
    """Multiply values by Rec, 1 / √(1 + age/τ)."""
    age = (now - ended) * (1.0 / (DAY * 30.0))
    np.maximum(age, 0.0, out=age)
    age += 1.0
    values /= np.sqrt(age, out=age)


def _quality(x: Floats, units: NDArray[np.int8], sigma: Mapping[OutcomeUnit, float]) -> Floats:
    """Q of many outcomes; NaN is none."""
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


def _bounds(among: Candidates, asked: ScoringContext) -> tuple[Floats, Floats, Floats]:
    """What Score, Sim · Rec and the rank of a warning can be at most in each block, were all as alike as can be."""
    blocks = among.columns.blocks
    rec = np.ones(len(blocks.each))
    fade(rec, blocks.ended[:, 1], micros(asked.now))
    good = np.full(len(rec), 0.5)
    dread = np.full(len(rec), -1.0)
    for number, unit in enumerate(UNITS):
        if unit in among.sigma:
            highest, lowest = blocks.highest[:, number], blocks.lowest[:, number]
            good = np.fmax(good, 1.0 / (1.0 + np.exp(-2.0 * highest / among.sigma[unit])))
            losing = 1.0 / (1.0 + np.exp(2.0 * lowest / among.sigma[unit]))
            dread = np.where(lowest < 0, np.fmax(dread, losing), dread)
    good *= most_affect(asked.temper)
    if among.periods is not None:
        good *= among.periods.best
    alone = rec * blocks.conviction
    return good * alone, rec, dread * alone


def most_affect(temper: RecallMood) -> float:
    """The most that Aff can be in a mood.

    >>> [most_affect(RecallMood(drawdown_state=d, consecutive_losses=3 * n)) for d, n in ((0, 0), (0, 1), (1, 0))]
    [1.0, 1.09, 1.15]
    """
    return max(affect(Outcome(value=x, unit="R"), temper) for x in (-2.0, 0.5, 3.0))


# Judging


@dataclass(frozen=True, slots=True)
class Judge:
    """The plain score of the few rows that are left."""

    among: Candidates
    asked: ScoringContext
    known: dict[int, ScoreFactors] = field(default_factory=dict)

    def ranked(self, best: Best, by: Callable[[ScoreFactors], float]) -> tuple[Hit, ...]:
        """The k best in order, ties by id."""
        rows = np.concatenate([best.rows, best.unlike])
        alike = self.alike(rows)
        values = {row: by(self.factors(row)) for row in set(alike)}
        names = map(self.among.columns.id, rows.tolist())
        ranked = [(-values[like], name, row, like) for name, row, like in zip(names, rows.tolist(), alike, strict=True)]
        if best.after is not None:
            start = (-best.after[0], best.after[1])
            ranked = [each for each in ranked if each[:2] > start]
        return tuple(
            Hit(id=name, row=row, value=-value, factors=self.factors(like))
            for value, name, row, like in heapq.nsmallest(best.k, ranked)
        )

    def factors(self, row: int) -> ScoreFactors:
        """The factors of a row."""
        if row not in self.known:
            self.known[row] = self._judged(row)
        return self.known[row]

    def _judged(self, row: int) -> ScoreFactors:
        columns, asked, periods = self.among.columns, self.asked, self.among.periods
        outcome = columns.outcome_of(row)
        return ScoreFactors(
            Q=quality(outcome, sigma=self.among.sigma),
            Sim=self._sim(row),
            Rec=recency(columns.ended(row), now=asked.now),
            Conf=float(columns.conviction[row]),
            Aff=affect(outcome, asked.temper),
            Period=UNWEIGHTED if periods is None else periods.exactly(columns, row),
        )

    def _sim(self, row: int) -> float:
        columns, query = self.among.columns, self.asked.query
        group, context = columns.group_of(row), columns.context(row)
        share = text_likeness(query.words, columns.words_of(row)) if query.words else None
        return similarity(query, symbol=group.symbol, direction=group.direction, context=context, text=share)

    def alike(self, rows: Whole) -> list[int]:
        """For each row one that scores the same, so that of a thousand equal ones a single one is scored."""
        if len(rows) <= FEW:
            return [int(row) for row in rows]
        columns, words = self.among.columns, self.asked.query.words
        names = ("ended_at", "outcome", "conviction", *HELD_NUMBERS)
        profile = [getattr(columns, name)[rows].view(np.int64) for name in names]
        profile += [getattr(columns, name)[rows].astype(np.int64) for name in ("group", "setting")]
        if words:
            profile.append(np.array([len(words.intersection(columns.words_of(int(row)))) for row in rows]))
        keys = np.stack(profile, axis=1).view(f"V{8 * len(profile)}").ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return [int(row) for row in rows[first[inverse]]]
