"""Why a memory ranks where it does: its factors, what is ahead of it, and what would lift it.

Every candidate is scored in arrays, none passed over; whatever comes within a hair of a rank is scored by `score`.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

import numpy as np

from backsight.core.instants import EPOCH, format_instant
from backsight.core.numbers import short
from backsight.core.recall.arrays.candidates import Candidates, Filters, candidates_of, with_periods
from backsight.core.recall.arrays.columns import GONE, UNITS, Columns, Floats, Truths, Whole, micros
from backsight.core.recall.arrays.scan import HAIR, Judge, by_dread, by_nearness, by_score, fade, most_affect, products
from backsight.core.recall.arrays.similarity import LEAST, ScoringContext, likeness_of
from backsight.core.recall.explanation import (
    ComparedField,
    Explanation,
    FactorName,
    Higher,
    Placed,
    Value,
    not_a_candidate,
)
from backsight.core.recall.period import BEST_WEIGHT
from backsight.core.recall.rank import age, in_words, likeness
from backsight.core.recall.score import RecallMood, ScoreFactors, Situation, compared, mean_closeness, quality
from backsight.core.text.stems import text_likeness
from backsight.core.trades.trade import Outcome


def explain(
    columns: Columns,
    episode_id: str,
    query: Situation,
    filters: Filters | None = None,
    *,
    as_of: datetime,
    seen_at: datetime | None = None,
    limit: int = 10,
    temper: RecallMood | None = None,
    period_weight: bool = False,
) -> Explanation | None:
    """Where an episode ranks in what `scan` finds with the same arguments, and why; None if there is no such episode.

    >>> from datetime import timedelta
    >>> from backsight.core.recall.arrays.columns import columns_of
    >>> from backsight.testing import T0, an_episode
    >>> days = [an_episode(n, pnl_r=2.0, ended_at=T0 - timedelta(days=30 * n)) for n in range(9)]
    >>> found = explain(columns_of(days), "episode-000007", Situation(symbol="XAUUSD"), as_of=T0, limit=5)
    >>> found.sentence
    '8th of 9 by score (0.12): behind because it is 210 days old (Rec .35); had it ended now it would be 2nd'
    >>> [(placed.rank, placed.id) for placed in found.ahead]
    [(5, 'episode-000004'), (7, 'episode-000006')]
    >>> explain(columns_of(days), "episode-000007", Situation(), Filters(symbol="BTC"), as_of=T0).sentence
    'Not a candidate: its symbol is XAUUSD, not BTC'
    """
    row = _row_of(columns, episode_id)
    if row is None:
        return None
    wanted, asked = filters or Filters(), ScoringContext(query=query, temper=temper or RecallMood(), now=as_of)
    with np.errstate(all="ignore"):
        among = candidates_of(columns, wanted, as_of=as_of, seen_at=seen_at)
        if reasons := list(_misses(columns, row, wanted, as_of=as_of, seen_at=seen_at)):
            return not_a_candidate(episode_id, reasons, int(among.counts.sum()))
        if period_weight:
            among = with_periods(among, as_of=as_of, seen_at=seen_at)
        return _explained(row, Rankings.of(among, asked), limit=limit)


def _row_of(columns: Columns, name: str) -> int | None:
    encoded = name.encode()
    alike = np.flatnonzero(columns.marks == zlib.crc32(encoded)).tolist()
    return next((row for row in alike if columns.group[row] != GONE and columns.id(row) == name), None)


# What is no candidate


def _misses(
    columns: Columns, row: int, filters: Filters, *, as_of: datetime, seen_at: datetime | None
) -> Iterator[str]:
    """Why a row is no candidate."""
    group = columns.group_of(row)
    if columns.known_at[row] > micros(as_of):
        yield f"it became known at {_instant(columns.known_at[row])}, after {format_instant(as_of)}"
    if seen_at is not None and columns.recorded_at[row] > micros(seen_at):
        yield f"it was recorded at {_instant(columns.recorded_at[row])}, after {format_instant(seen_at)}"
    if group.won is None:
        yield "it has no outcome yet"
    elif not group.remembered:
        yield "its owner has put it away"
    for field, called in FILTERED.items():
        asked, held = getattr(filters, field), getattr(group, field)
        if asked not in (None, held):
            yield f"its {called} is {held or 'not known'}, not {asked}"
    if lacking := sorted(set(filters.tags) - set(columns.tags(row))):
        yield f"it has no tag {', '.join(lacking)}"
    if filters.since is not None and columns.ended_at[row] < micros(filters.since):
        yield f"it ended at {_instant(columns.ended_at[row])}, before {format_instant(filters.since)}"
    if filters.until is not None and columns.ended_at[row] >= micros(filters.until):
        yield f"it ended at {_instant(columns.ended_at[row])}, not before {format_instant(filters.until)}"


def _instant(at: int) -> str:
    return format_instant(EPOCH + timedelta(microseconds=int(at)))


FILTERED = {
    "symbol": "symbol",
    "strategy_name": "strategy",
    "deployment_id": "deployment",
    "mode": "mode",
    "direction": "direction",
}


# Ranks


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Rows by a value, highest first, ties by id."""

    judge: Judge
    rows: Whole
    values: Floats
    """To a hair."""
    unlike: Truths
    """Which rows are like nothing asked with: their value is 0, to the last bit."""
    by: Callable[[ScoreFactors], float]

    def rank(self, row: int, value: float) -> int:
        """The rank of a row with its own value, or if it had this higher one."""
        margin = value * HAIR + LEAST
        ahead = int(np.count_nonzero(self.values > value + margin))
        place = (-value, bytes(self.judge.among.columns.ids[row]), row)
        return 1 + ahead + sum(each < place for each in self._exactly(self._within(value, margin)))

    def at(self, rank: int) -> int:
        """The row at a rank."""
        place = len(self.values) - rank
        value = float(np.partition(self.values, place)[place])
        margin = value * HAIR + LEAST
        ahead = int(np.count_nonzero(self.values > value + margin))
        return sorted(self._exactly(self._within(value, margin)))[rank - ahead - 1][2]

    def _within(self, value: float, margin: float) -> Truths:
        return np.abs(self.values - value) <= margin

    def _exactly(self, which: Truths) -> Iterator[tuple[float, bytes, int]]:
        """What some rows are ranked by."""
        unlike, rows = self.rows[which & self.unlike], self.rows[which & ~self.unlike]
        ids = self.judge.among.columns.ids
        for row in unlike.tolist():
            yield 0.0, bytes(ids[row]), row
        for row, alike in zip(rows.tolist(), self.judge.alike(rows), strict=True):
            yield -self.by(self.judge.factors(alike)), bytes(ids[row]), row


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """All candidates by score, by nearness, and the losses as warnings."""

    judge: Judge
    scores: Ranking
    nearest: Ranking
    warnings: Ranking

    @classmethod
    def of(cls, among: Candidates, asked: ScoringContext) -> "Rankings":
        likeness, now, judge = likeness_of(among, asked), micros(asked.now), Judge(among, asked)
        found = []
        for block in np.flatnonzero(among.counts).tolist():
            rows = among.rows(block)
            near = likeness.of(rows)
            fade(near, among.columns.ended_at[rows], now)
            places = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            found.append((places, near, *products(among, asked, rows, near.copy())))
        rows, near, scores, dread, lost = (np.concatenate(column) for column in zip(*found, strict=True))
        unlike = near == 0
        return cls(
            judge,
            Ranking(judge, rows, scores, unlike, by_score),
            Ranking(judge, rows, near, unlike, by_nearness),
            Ranking(judge, rows[lost], dread[lost], unlike[lost], by_dread),
        )


# What is a candidate


def _explained(row: int, rankings: Rankings, *, limit: int) -> Explanation:
    judge, count = rankings.judge, len(rankings.scores.rows)
    factors = judge.factors(row)
    outcome = judge.among.columns.outcome_of(row)
    rank = rankings.scores.rank(row, factors.score)
    fields = _fields(row, judge)
    higher = _higher(row, rankings, fields)
    lost = outcome is not None and outcome.value < 0
    return Explanation(
        id=judge.among.columns.id(row),
        sentence=f"{ordinal(rank)} of {count} by score ({factors.score:.2g}): {_why(row, judge, rank, higher)}",
        candidates=count,
        factors=factors,
        score=factors.score,
        rank=rank,
        nearest_rank=rankings.nearest.rank(row, factors.nearness),
        warning_rank=rankings.warnings.rank(row, factors.dread) if lost else None,
        fields=fields,
        ahead=tuple(_placed(at, rankings) for at in sorted({limit, rank - 1}) if 0 < at < rank),
        higher=higher,
    )


def _placed(rank: int, rankings: Rankings) -> Placed:
    row = rankings.scores.at(rank)
    factors = rankings.judge.factors(row)
    return Placed(rank=rank, id=rankings.judge.among.columns.id(row), score=factors.score, factors=factors)


def _fields(row: int, judge: Judge) -> tuple[ComparedField, ...]:
    columns, query = judge.among.columns, judge.asked.query
    group, context, words = columns.group_of(row), columns.context(row), columns.words_of(row)
    share = text_likeness(query.words, words) if query.words else None
    fields = list(compared(query, symbol=group.symbol, direction=group.direction, context=context, text=share))
    total = sum(weight for _, weight, _ in fields)
    values: dict[str, tuple[Value, Value]] = {
        "direction": (query.direction, group.direction),
        "text": (tuple(sorted(query.words)), tuple(sorted(query.words.intersection(words)))),
    }
    return tuple(
        ComparedField(
            name=name,
            weight=weight,
            asked=values[name][0] if name in values else getattr(query.context, name),
            held=values[name][1] if name in values else getattr(context, name),
            closeness=near,
            contribution=weight * near / total,
        )
        for name, weight, near in fields
    )


def _higher(row: int, rankings: Rankings, fields: tuple[ComparedField, ...]) -> tuple[Higher, ...]:
    """What would lift a row, the most first."""
    judge, scores = rankings.judge, rankings.scores
    factors, found = judge.factors(row), []
    for name, best in _best(rankings, likened=bool(fields)).items():
        if getattr(factors, name) < best:
            score = replace(factors, **{name: best}).score
            found.append(Higher(factor=name, value=best, score=score, rank=scores.rank(row, score)))
    for field in fields:
        if field.closeness < 1:
            sim = mean_closeness((f.name, f.weight, 1.0 if f is field else f.closeness) for f in fields)
            score = replace(factors, Sim=sim).score
            rank = scores.rank(row, score)
            found.append(Higher(factor="Sim", field=field.name, value=sim, score=score, rank=rank))
    return tuple(sorted(found, key=lambda each: -each.score))


def _best(rankings: Rankings, *, likened: bool) -> dict[FactorName, float]:
    """The best that each factor can be; without a context Sim is what it is."""
    among, rows = rankings.judge.among, rankings.scores.rows
    x, units = among.columns.outcome[rows], among.table.unit.take(among.columns.group[rows])
    highest: list[Outcome | None] = [None] if -1 in units else []
    highest += [Outcome(value=float(x[units == n].max()), unit=unit) for n, unit in enumerate(UNITS) if n in units]
    best: dict[FactorName, float] = {
        "Q": max(quality(outcome, sigma=among.sigma) for outcome in highest),
        "Rec": 1.0,
        "Conf": 1.0,
        "Aff": most_affect(rankings.judge.asked.temper),
    }
    if likened:
        best["Sim"] = 1.0
    if among.periods is not None:
        best["Period"] = BEST_WEIGHT
    return best


# In words


def _why(row: int, judge: Judge, rank: int, higher: tuple[Higher, ...]) -> str:
    if rank == 1:
        return "nothing is ahead of it"
    most = next((each for each in higher if each.field is None), None)
    if most is None:
        return "what is ahead of it scores the same"
    cause, remedy = _cause(most.factor, row, judge)
    still = "still " if most.rank == rank else ""
    value = short(getattr(judge.factors(row), most.factor))
    return f"behind because {cause} ({most.factor} {value}); {remedy} it would {still}be {ordinal(most.rank)}"


def _cause(factor: FactorName, row: int, judge: Judge) -> tuple[str, str]:
    """What keeps a row back, and what would not."""
    columns, outcome = judge.among.columns, judge.among.columns.outcome_of(row)
    match factor:
        case "Q":
            result = "with a risk not known" if outcome is None else f"at {in_words(outcome)}"
            return f"it ended {result}", "had it ended as well as the best"
        case "Sim":
            return f"its context is {likeness(judge.factors(row).Sim)}", "had its context been the same"
        case "Rec":
            return f"it is {age(columns.ended(row), now=judge.asked.now)} old", "had it ended now"
        case "Conf":
            return "confidence in it was not full", "had it been"
        case "Aff":
            return "other results come to mind in this mood", "were it one of them"
        case "Period":
            return "its strategy had not had the best of months", "had it had"
    assert_never(factor)


def ordinal(number: int) -> str:
    """A rank as it is said.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111, 1003)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd', '111th', '1003rd']
    """
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
