"""Evidence: which groups of a strategy's last trades differ from the rest by more than chance and many looks explain.

Groups are made of what was known at entry; measured are the outcome and, for exits, the share of the best price that
was kept. A group counts from eight trades on eight days, with as many besides it. A pattern is found by the test of
`flips` at the level of `spending`, the strongest first; once found, the others are tested on what it leaves
unexplained, so that one fact is told once. It stays until its interval reaches the mean of the rest.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple

import numpy as np

from backsight.core.ids import digest
from backsight.core.reflection.alpha_spending import level_of_test, same_doubling
from backsight.core.reflection.day_clusters import Beside, Codes, Floats, beside_the_rest, means_of
from backsight.core.reflection.groups import Group, groups_of
from backsight.core.reflection.patterns import (
    DIMENSIONS,
    NOTHING_CARRIED,
    SLOT_OF,
    WINDOW,
    Carried,
    ClosedTrade,
    Evidence,
    Found,
    Look,
    Measure,
    Pattern,
    usual_unit,
)
from backsight.core.reflection.sign_flip_test import (
    Signs,
    best_first,
    contributions,
    largest_by_chance,
    p_of,
    signs,
    without_earlier,
)
from backsight.core.trades.trade import OutcomeUnit

FEWEST_TRADES = 8
FEWEST_DAYS = 8
MOST_NEW = 8
"""New patterns in one reflection: nobody learns more at once."""
SECOND_THOUGHT = 0.93
"""The weight, in the maximum over all patterns, of those one looks at last: exits, one slot of five, and hours, two
dozen groups that each hold little. Else they would be half of all patterns and hide the others."""


def evidence_of(
    trades: Iterable[ClosedTrade],
    *,
    as_of: datetime,
    closed: int | None = None,
    carried: Carried = NOTHING_CARRIED,
) -> Evidence:
    """What the last 500 of a strategy's trades show that were known by then, whatever order they come in.

    `closed` is how many were closed by then in all; None where all of them are given.
    """
    known = [trade for trade in trades if trade.known_at <= as_of]
    total = len(known) if closed is None else closed
    seen = _seen(known)
    patterns = {pattern.key: pattern for table in seen.tables for pattern in table.patterns}
    level = level_of_test(total, tested_at=carried.looks[-1].closed if carried.looks else 0)
    looks = tuple(each for each in carried.looks if not level or same_doubling(each.closed, total))
    found = tuple(each for each in carried.found if each.key in patterns and patterns[each.key].stands_out)
    if level and patterns:
        new = _Search(seen, level=level, looks=looks).new([each.key for each in found])
        found += tuple(Found(key=key, since=as_of, closed=total, p=p) for key, p in new)
    kept = {each.key for each in found}
    return Evidence(
        as_of=as_of,
        closed=total,
        n=len(seen.trades),
        days=len(seen.days),
        unit=seen.unit,
        groups=tuple(patterns.values()),
        patterns=tuple(patterns[each.key] for each in found),
        lost=tuple(each.key for each in carried.found if each.key not in kept),
        level=level,
        carried=Carried(looks=(*looks, Look(at=as_of, closed=total, level=level)) if level else looks, found=found),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Table:
    """The trades that have a measure, and the patterns among them, a column each."""

    values: Floats
    codes: Codes
    """The days of the trades, in rising order."""
    members: Floats
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Seen:
    """The trades that are looked at, in the order in which they ended."""

    trades: Sequence[ClosedTrade]
    days: Sequence[date]
    unit: OutcomeUnit | None
    tables: Sequence[_Table]

    @property
    def seed(self) -> int:
        """A number that follows from the trades."""
        told = [[each.id, each.outcome and each.outcome.value, each.captured] for each in self.trades]
        return int(digest(told)[:16], 16)


def _seen(known: Iterable[ClosedTrade]) -> _Seen:
    """The last 500 to become known, and the patterns among them in both measures."""
    latest = sorted(known, key=lambda trade: (trade.known_at, trade.ended_at, trade.id))[-WINDOW:]
    trades = sorted(latest, key=lambda trade: (trade.ended_at, trade.id))
    days = sorted({trade.day for trade in trades})
    unit, groups = usual_unit(each.outcome for each in trades), groups_of(trades)
    outcomes = [x.value if (x := each.outcome) is not None and x.unit == unit else None for each in trades]
    place = {day: code for code, day in enumerate(days)}
    codes = np.array([place[each.day] for each in trades], dtype=np.int64)
    tables = (
        _table("outcome", _numbers(outcomes), trades, groups, codes, unit),
        _table("captured", _numbers(each.captured for each in trades), trades, groups, codes, None),
    )
    return _Seen(trades=trades, days=days, unit=unit, tables=tables)


def _numbers(values: Iterable[float | None]) -> Floats:
    """The values as an array, NaN being not known."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _table(
    measure: Measure,
    values: Floats,
    trades: Sequence[ClosedTrade],
    groups: Sequence[Group],
    codes: Codes,
    unit: OutcomeUnit | None,
) -> _Table:
    """The groups in one measure, those large enough."""
    has = np.isfinite(values)
    held = [trade for trade, known in zip(trades, has, strict=True) if known]
    members = np.zeros((len(trades), len(groups)))
    for column, group in enumerate(groups):
        members[list(group.members), column] = 1.0
    values, members, codes = values[has], members[has], codes[has]
    figures = beside_the_rest(values, members, codes, int(codes[-1]) + 1 if len(codes) else 0)
    n, days = np.minimum(figures.n, figures.rest_n), np.minimum(figures.days, figures.rest_days)
    large = np.flatnonzero((n >= FEWEST_TRADES) & (days >= FEWEST_DAYS))
    members = members[:, large]
    told = _Told(
        beside=Beside(*(each[large] for each in figures)),
        won=means_of(_numbers(each.won for each in held), members),
        captured=means_of(_numbers(each.captured for each in held), members),
        hold=means_of(_numbers(each.hold_seconds for each in held), members),
    )
    ids = np.array([each.id for each in held], dtype=object)
    patterns = tuple(
        _pattern(groups[column], told, place, measure, unit, tuple(ids[members[:, place] > 0.0]))
        for place, column in enumerate(large.tolist())
    )
    return _Table(values=values, codes=codes, members=members, patterns=patterns)


class _Told(NamedTuple):
    """All figures of the groups that are large enough, and of the rest of each."""

    beside: Beside
    won: tuple[Floats, Floats]
    captured: tuple[Floats, Floats]
    hold: tuple[Floats, Floats]


def _pattern(
    group: Group, told: _Told, place: int, measure: Measure, unit: OutcomeUnit | None, trade_ids: tuple[str, ...]
) -> Pattern:
    beside = told.beside
    mean, rest_mean = float(beside.mean[place]), float(beside.rest_mean[place])
    win_rate, rest_win_rate = (_known(each[place]) for each in told.won)
    captured, rest_captured = (_known(each[place]) for each in told.captured)
    hold_seconds, rest_hold_seconds = (_known(each[place]) for each in told.hold)
    return Pattern(
        slot=SLOT_OF[group.dimension] if measure == "outcome" else "exit_timing",
        measure=measure,
        dimension=group.dimension,
        value=group.value,
        label=group.label,
        unit=unit,
        n=int(beside.n[place]),
        days=int(beside.days[place]),
        mean=mean,
        interval=_around(mean, beside.reach[place]),
        win_rate=win_rate,
        rest_n=int(beside.rest_n[place]),
        rest_days=int(beside.rest_days[place]),
        rest_mean=rest_mean,
        rest_win_rate=rest_win_rate,
        difference=mean - rest_mean,
        difference_interval=_around(mean - rest_mean, beside.difference_reach[place]),
        captured=captured,
        rest_captured=rest_captured,
        hold_seconds=hold_seconds,
        rest_hold_seconds=rest_hold_seconds,
        trade_ids=trade_ids,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _around(mean: float, reach: float) -> tuple[float, float] | None:
    return None if np.isnan(reach) else (mean - float(reach), mean + float(reach))


class _Search:
    """The search for patterns that chance does not make, among those of all measures at once."""

    def __init__(self, seen: _Seen, *, level: float, looks: Iterable[Look]) -> None:
        self.seen, self.level, self.days = seen, level, len(seen.days)
        self.earlier = [(bisect_right(seen.days, each.at.astimezone(UTC).date()), each.level) for each in looks]
        self.patterns = [pattern for table in seen.tables for pattern in table.patterns]
        self.order = [_order(pattern) for pattern in self.patterns]

    def new(self, known: Iterable[str]) -> Iterable[tuple[str, float]]:
        """The patterns found beyond those known, the strongest first, and how likely each is by chance."""
        told, flipped = list(known), signs(self.days, seed=self.seen.seed)
        for _ in range(MOST_NEW):
            parts = np.column_stack([self._parts(table, told) for table in self.seen.tables])
            statistics = np.abs(parts.sum(axis=0))
            best = best_first(statistics, self.order)
            p = self._p(float(statistics[best]), parts, flipped)
            if p > self.level or not self.patterns[best].stands_out:
                return
            told.append(self.patterns[best].key)
            yield told[-1], p

    def _p(self, statistic: float, parts: Floats, flipped: Signs) -> float:
        """How likely chance makes as much at this test and nothing at an earlier one."""
        by_chance = largest_by_chance(parts, flipped)
        p = p_of(statistic, by_chance)
        if p <= self.level or p > self.level + sum(level for _, level in self.earlier):
            return p  # what earlier tests have spent makes no difference to either
        return p_of(statistic, without_earlier(by_chance, parts, flipped, self.earlier))

    def _parts(self, table: _Table, told: Sequence[str]) -> Floats:
        """The days' contributions to the patterns of a measure, beyond those told; zero for these themselves."""
        if not table.patterns:
            return np.zeros((self.days, 0))
        columns = [place for place, pattern in enumerate(table.patterns) if pattern.key in told]
        parts = contributions(table.values, table.members, table.members[:, columns], table.codes, self.days)
        return parts * [_weight(pattern) for pattern in table.patterns]


def _weight(pattern: Pattern) -> float:
    """How much a pattern counts in the maximum.

    A pattern of lesser weight needs a larger T, by flips as by data, so the level holds whatever the weights.
    """
    return float(SECOND_THOUGHT ** ((pattern.measure == "captured") + (pattern.dimension == "hour")))


def _order(pattern: Pattern) -> tuple[int, int, float, str]:
    """Of patterns that say the same: the narrowest word, then the smaller group, then the worse."""
    return DIMENSIONS.index(pattern.dimension), pattern.n, pattern.mean, pattern.value
