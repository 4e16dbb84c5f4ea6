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
from backsight.core.reflection.alpha_spending import same_doubling, significance_level
from backsight.core.reflection.day_clusters import Codes, Floats, GroupStatistics, compare_with_rest, group_means
from backsight.core.reflection.groups import TradeGroup, group_trades
from backsight.core.reflection.patterns import (
    DIMENSIONS,
    NEW_SEARCH,
    SLOT_OF,
    WINDOW,
    ClosedTrade,
    InterimLook,
    Measure,
    Pattern,
    SearchState,
    SignificantPattern,
    TradeEvidence,
    most_common_unit,
)
from backsight.core.reflection.sign_flip_test import (
    Signs,
    day_contributions,
    exclude_earlier_rejections,
    max_statistics,
    p_value,
    random_signs,
    strongest_pattern,
)
from backsight.core.trades.trade import OutcomeUnit

MIN_TRADES = 8
MIN_DAYS = 8
MAX_NEW_PATTERNS = 8
"""New patterns in one reflection: nobody learns more at once."""
LOW_PRIORITY_WEIGHT = 0.93
"""The weight, in the maximum over all patterns, of those one looks at last: exits, one slot of five, and hours, two
dozen groups that each hold little. Else they would be half of all patterns and hide the others."""


def evidence_of(
    trades: Iterable[ClosedTrade],
    *,
    as_of: datetime,
    closed: int | None = None,
    carried: SearchState = NEW_SEARCH,
) -> TradeEvidence:
    """What the last 500 of a strategy's trades show that were known by then, whatever order they come in.

    `closed` is how many were closed by then in all; None where all of them are given.
    """
    known = [trade for trade in trades if trade.known_at <= as_of]
    total = len(known) if closed is None else closed
    seen = _trade_sample(known)
    patterns = {pattern.key: pattern for table in seen.tables for pattern in table.patterns}
    level = significance_level(total, tested_at=carried.looks[-1].closed if carried.looks else 0)
    looks = tuple(each for each in carried.looks if not level or same_doubling(each.closed, total))
    found = tuple(each for each in carried.found if each.key in patterns and patterns[each.key].stands_out)
    if level and patterns:
        new = _PatternSearch(seen, level=level, looks=looks).new([each.key for each in found])
        found += tuple(SignificantPattern(key=key, since=as_of, closed=total, p=p) for key, p in new)
    kept = {each.key for each in found}
    return TradeEvidence(
        as_of=as_of,
        closed=total,
        n=len(seen.trades),
        days=len(seen.days),
        unit=seen.unit,
        groups=tuple(patterns.values()),
        patterns=tuple(patterns[each.key] for each in found),
        lost=tuple(each.key for each in carried.found if each.key not in kept),
        level=level,
        carried=SearchState(
            looks=(*looks, InterimLook(at=as_of, closed=total, level=level)) if level else looks, found=found
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MeasureTable:
    """The trades that have a measure, and the patterns among them, a column each."""

    values: Floats
    codes: Codes
    """The days of the trades, in rising order."""
    members: Floats
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TradeSample:
    """The trades that are looked at, in the order in which they ended."""

    trades: Sequence[ClosedTrade]
    days: Sequence[date]
    unit: OutcomeUnit | None
    tables: Sequence[_MeasureTable]

    @property
    def seed(self) -> int:
        """A number that follows from the trades."""
        told = [[each.id, each.outcome and each.outcome.value, each.captured] for each in self.trades]
        return int(digest(told)[:16], 16)


def _trade_sample(known: Iterable[ClosedTrade]) -> _TradeSample:
    """The last 500 to become known, and the patterns among them in both measures."""
    latest = sorted(known, key=lambda trade: (trade.known_at, trade.ended_at, trade.id))[-WINDOW:]
    trades = sorted(latest, key=lambda trade: (trade.ended_at, trade.id))
    days = sorted({trade.day for trade in trades})
    unit, groups = most_common_unit(each.outcome for each in trades), group_trades(trades)
    outcomes = [x.value if (x := each.outcome) is not None and x.unit == unit else None for each in trades]
    place = {day: code for code, day in enumerate(days)}
    codes = np.array([place[each.day] for each in trades], dtype=np.int64)
    tables = (
        _measure_table("outcome", _numbers(outcomes), trades, groups, codes, unit),
        _measure_table("captured", _numbers(each.captured for each in trades), trades, groups, codes, None),
    )
    return _TradeSample(trades=trades, days=days, unit=unit, tables=tables)


def _numbers(values: Iterable[float | None]) -> Floats:
    """The values as an array, NaN being not known."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _measure_table(
    measure: Measure,
    values: Floats,
    trades: Sequence[ClosedTrade],
    groups: Sequence[TradeGroup],
    codes: Codes,
    unit: OutcomeUnit | None,
) -> _MeasureTable:
    """The groups in one measure, those large enough."""
    has = np.isfinite(values)
    held = [trade for trade, known in zip(trades, has, strict=True) if known]
    members = np.zeros((len(trades), len(groups)))
    for column, group in enumerate(groups):
        members[list(group.members), column] = 1.0
    values, members, codes = values[has], members[has], codes[has]
    figures = compare_with_rest(values, members, codes, int(codes[-1]) + 1 if len(codes) else 0)
    n, days = np.minimum(figures.n, figures.rest_n), np.minimum(figures.days, figures.rest_days)
    large = np.flatnonzero((n >= MIN_TRADES) & (days >= MIN_DAYS))
    members = members[:, large]
    told = _GroupFigures(
        beside=GroupStatistics(*(each[large] for each in figures)),
        won=group_means(_numbers(each.won for each in held), members),
        captured=group_means(_numbers(each.captured for each in held), members),
        hold=group_means(_numbers(each.hold_seconds for each in held), members),
    )
    ids = np.array([each.id for each in held], dtype=object)
    patterns = tuple(
        _pattern(groups[column], told, place, measure, unit, tuple(ids[members[:, place] > 0.0]))
        for place, column in enumerate(large.tolist())
    )
    return _MeasureTable(values=values, codes=codes, members=members, patterns=patterns)


class _GroupFigures(NamedTuple):
    """All figures of the groups that are large enough, and of the rest of each."""

    beside: GroupStatistics
    won: tuple[Floats, Floats]
    captured: tuple[Floats, Floats]
    hold: tuple[Floats, Floats]


def _pattern(
    group: TradeGroup,
    told: _GroupFigures,
    place: int,
    measure: Measure,
    unit: OutcomeUnit | None,
    trade_ids: tuple[str, ...],
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


class _PatternSearch:
    """The search for patterns that chance does not make, among those of all measures at once."""

    def __init__(self, seen: _TradeSample, *, level: float, looks: Iterable[InterimLook]) -> None:
        self.seen, self.level, self.days = seen, level, len(seen.days)
        self.earlier = [(bisect_right(seen.days, each.at.astimezone(UTC).date()), each.level) for each in looks]
        self.patterns = [pattern for table in seen.tables for pattern in table.patterns]
        self.order = [_order(pattern) for pattern in self.patterns]

    def new(self, known: Iterable[str]) -> Iterable[tuple[str, float]]:
        """The patterns found beyond those known, the strongest first, and how likely each is by chance."""
        told, flipped = list(known), random_signs(self.days, seed=self.seen.seed)
        for _ in range(MAX_NEW_PATTERNS):
            parts = np.column_stack([self._parts(table, told) for table in self.seen.tables])
            statistics = np.abs(parts.sum(axis=0))
            best = strongest_pattern(statistics, self.order)
            p = self._p(float(statistics[best]), parts, flipped)
            if p > self.level or not self.patterns[best].stands_out:
                return
            told.append(self.patterns[best].key)
            yield told[-1], p

    def _p(self, statistic: float, parts: Floats, flipped: Signs) -> float:
        """How likely chance makes as much at this test and nothing at an earlier one."""
        by_chance = max_statistics(parts, flipped)
        p = p_value(statistic, by_chance)
        if p <= self.level or p > self.level + sum(level for _, level in self.earlier):
            return p  # what earlier tests have spent makes no difference to either
        return p_value(statistic, exclude_earlier_rejections(by_chance, parts, flipped, self.earlier))

    def _parts(self, table: _MeasureTable, told: Sequence[str]) -> Floats:
        """The days' contributions to the patterns of a measure, beyond those told; zero for these themselves."""
        if not table.patterns:
            return np.zeros((self.days, 0))
        columns = [place for place, pattern in enumerate(table.patterns) if pattern.key in told]
        parts = day_contributions(table.values, table.members, table.members[:, columns], table.codes, self.days)
        return parts * [_weight(pattern) for pattern in table.patterns]


def _weight(pattern: Pattern) -> float:
    """How much a pattern counts in the maximum.

    A pattern of lesser weight needs a larger T, by flips as by data, so the level holds whatever the weights.
    """
    return float(LOW_PRIORITY_WEIGHT ** ((pattern.measure == "captured") + (pattern.dimension == "hour")))


def _order(pattern: Pattern) -> tuple[int, int, float, str]:
    """Of patterns that say the same: the narrowest word, then the smaller group, then the worse."""
    return DIMENSIONS.index(pattern.dimension), pattern.n, pattern.mean, pattern.value
