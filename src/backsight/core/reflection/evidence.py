"""Evidence: which groups of a strategy's latest trades differ from the rest by more than chance.

Groups share a property known at entry. Two measures are compared: the outcome and, for exits, the share of the maximum
profit that was captured. A group needs eight trades on eight days, and so does the rest. Patterns are found by the
sign-flip test at the level that alpha spending allows, the strongest first among the groups whose interval excludes the
mean of the rest. Once a pattern is found, the other groups are tested on what it leaves unexplained, so that one fact
becomes one lesson. A pattern stays until its interval reaches the mean of the rest. The strongest groups that failed
the test are on the watch list.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import NamedTuple

import numpy as np

from backsight.core.ids import digest
from backsight.core.reflection.alpha_spending import USUAL_LEVEL, same_doubling, significance_level
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
from backsight.core.reflection.watch_list import watch_list
from backsight.core.trades.trade import OutcomeUnit

MIN_TRADES = 8
MIN_DAYS = 8
MAX_NEW_PATTERNS = 8
"""In one reflection."""
LOW_PRIORITY_WEIGHT = 0.93
"""The weight of exits and hours in the maximum over all patterns. Without it these many small groups, half of all
patterns, would hide the others."""


def find_evidence(
    trades: Iterable[ClosedTrade], *, as_of: datetime, closed: int | None = None, state: SearchState = NEW_SEARCH
) -> TradeEvidence:
    """What the latest 500 of a strategy's trades known by `as_of` show; their order does not matter.

    `closed` is the number of all trades closed by then; by default that of the given trades.
    """
    known = [trade for trade in trades if trade.known_at <= as_of]
    total = len(known) if closed is None else closed
    sample = _trade_sample(known)
    groups = {pattern.key: pattern for table in sample.tables for pattern in table.patterns}
    # Is a test due, and which earlier tests share its budget?
    level = significance_level(total, tested_at=state.looks[-1].closed if state.looks else 0)
    looks = tuple(look for look in state.looks if not level or same_doubling(look.closed, total))
    # Patterns of earlier reflections stay while they stand out; the test adds new ones.
    significant = tuple(each for each in state.found if each.key in groups and groups[each.key].stands_out)
    result = _SearchResult()
    if groups:
        # Between tests the level is 0: the search finds nothing, and its p-values are for the watch list only.
        result = _PatternSearch(sample, level=level, looks=looks).run([each.key for each in significant])
        significant += tuple(
            SignificantPattern(key=key, since=as_of, closed=total, p=p) for key, p in result.new.items()
        )
    significant_keys = {each.key for each in significant}
    unproven = [group for group in groups.values() if group.key not in significant_keys]
    if level:
        looks = (*looks, InterimLook(at=as_of, closed=total, level=level))
    return TradeEvidence(
        as_of=as_of,
        closed=total,
        n=len(sample.trades),
        days=len(sample.days),
        unit=sample.unit,
        groups=tuple(groups.values()),
        patterns=tuple(groups[each.key] for each in significant),
        lost=tuple(each.key for each in state.found if each.key not in significant_keys),
        level=level,
        search_state=SearchState(looks=looks, found=significant),
        p_values=result.p_values,
        watched=watch_list(unproven, p_values=result.p_values, strengths=result.strengths, closed=total),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MeasureTable:
    """The trades that have a measure, and one column for each group among them."""

    values: Floats
    codes: Codes
    members: Floats
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TradeSample:
    """The trades that are analysed, in the order of their closes."""

    trades: Sequence[ClosedTrade]
    days: Sequence[date]
    unit: OutcomeUnit | None
    tables: Sequence[_MeasureTable]

    @property
    def seed(self) -> int:
        """A seed derived from the trades, so that the same trades give the same p-values."""
        rows = [[trade.id, trade.outcome and trade.outcome.value, trade.captured] for trade in self.trades]
        return int(digest(rows)[:16], 16)


def _trade_sample(known: Iterable[ClosedTrade]) -> _TradeSample:
    """The 500 trades that became known last, and their groups in both measures."""
    latest = sorted(known, key=lambda trade: (trade.known_at, trade.ended_at, trade.id))[-WINDOW:]
    trades = sorted(latest, key=lambda trade: (trade.ended_at, trade.id))
    days = sorted({trade.day for trade in trades})
    unit, groups = most_common_unit(trade.outcome for trade in trades), group_trades(trades)
    outcomes = [x.value if (x := trade.outcome) is not None and x.unit == unit else None for trade in trades]
    code_of = {day: code for code, day in enumerate(days)}
    codes = np.array([code_of[trade.day] for trade in trades], dtype=np.int64)
    tables = (
        _measure_table("outcome", _numbers(outcomes), trades, groups, codes, unit),
        _measure_table("captured", _numbers(trade.captured for trade in trades), trades, groups, codes, None),
    )
    return _TradeSample(trades=trades, days=days, unit=unit, tables=tables)


def _numbers(values: Iterable[float | None]) -> Floats:
    """The values as an array, with NaN for unknown ones."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _measure_table(
    measure: Measure,
    values: Floats,
    trades: Sequence[ClosedTrade],
    groups: Sequence[TradeGroup],
    codes: Codes,
    unit: OutcomeUnit | None,
) -> _MeasureTable:
    """The groups that are large enough in one measure, with their figures."""
    members = np.zeros((len(trades), len(groups)))
    for column, group in enumerate(groups):
        members[list(group.members), column] = 1.0
    # Only trades that have the measure.
    has_value = np.isfinite(values)
    measured = [trade for trade, known in zip(trades, has_value, strict=True) if known]
    values, members, codes = values[has_value], members[has_value], codes[has_value]
    # Only groups with enough trades and days, inside and outside the group.
    statistics = compare_with_rest(values, members, codes, int(codes[-1]) + 1 if len(codes) else 0)
    n = np.minimum(statistics.n, statistics.rest_n)
    days = np.minimum(statistics.days, statistics.rest_days)
    large = np.flatnonzero((n >= MIN_TRADES) & (days >= MIN_DAYS))
    members = members[:, large]
    figures = _GroupFigures(
        statistics=GroupStatistics(*(figure[large] for figure in statistics)),
        won=group_means(_numbers(trade.won for trade in measured), members),
        captured=group_means(_numbers(trade.captured for trade in measured), members),
        hold=group_means(_numbers(trade.hold_seconds for trade in measured), members),
    )
    ids = np.array([trade.id for trade in measured], dtype=object)
    patterns = tuple(
        _pattern(groups[column], figures, index, measure, unit, tuple(ids[members[:, index] > 0.0]))
        for index, column in enumerate(large.tolist())
    )
    return _MeasureTable(values=values, codes=codes, members=members, patterns=patterns)


class _GroupFigures(NamedTuple):
    """All figures of the groups; each pair is of the group and of the rest."""

    statistics: GroupStatistics
    won: tuple[Floats, Floats]
    captured: tuple[Floats, Floats]
    hold: tuple[Floats, Floats]


def _pattern(
    group: TradeGroup,
    figures: _GroupFigures,
    index: int,
    measure: Measure,
    unit: OutcomeUnit | None,
    trade_ids: tuple[str, ...],
) -> Pattern:
    """The figures of the group at an index, as a pattern."""
    statistics = figures.statistics
    mean, rest_mean = float(statistics.mean[index]), float(statistics.rest_mean[index])
    win_rate, rest_win_rate = (_known(means[index]) for means in figures.won)
    captured, rest_captured = (_known(means[index]) for means in figures.captured)
    hold_seconds, rest_hold_seconds = (_known(means[index]) for means in figures.hold)
    return Pattern(
        slot=SLOT_OF[group.dimension] if measure == "outcome" else "exit_timing",
        measure=measure,
        dimension=group.dimension,
        value=group.value,
        label=group.label,
        unit=unit,
        n=int(statistics.n[index]),
        days=int(statistics.days[index]),
        mean=mean,
        interval=_interval(mean, statistics.half_width[index]),
        win_rate=win_rate,
        rest_n=int(statistics.rest_n[index]),
        rest_days=int(statistics.rest_days[index]),
        rest_mean=rest_mean,
        rest_win_rate=rest_win_rate,
        difference=mean - rest_mean,
        difference_interval=_interval(mean - rest_mean, statistics.difference_half_width[index]),
        captured=captured,
        rest_captured=rest_captured,
        hold_seconds=hold_seconds,
        rest_hold_seconds=rest_hold_seconds,
        trade_ids=trade_ids,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(center: float, half_width: float) -> tuple[float, float] | None:
    return None if np.isnan(half_width) else (center - float(half_width), center + float(half_width))


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchResult:
    """What a search found, and how near the other groups came."""

    new: Mapping[str, float] = field(default_factory=dict)
    """P-values of the new significant patterns, the strongest first."""
    p_values: Mapping[str, float] = field(default_factory=dict)
    """P-values of the groups that are not new patterns."""
    strengths: Mapping[str, float] = field(default_factory=dict)
    """The statistic of the groups among them that could be patterns, as a share of the usual critical value."""


class _PatternSearch:
    """The search for significant patterns among the groups of all measures at once."""

    def __init__(self, sample: _TradeSample, *, level: float, looks: Iterable[InterimLook]) -> None:
        self.sample, self.level, self.days = sample, level, len(sample.days)
        self.earlier = [(bisect_right(sample.days, look.at.astimezone(UTC).date()), look.level) for look in looks]
        self.patterns = [pattern for table in sample.tables for pattern in table.patterns]
        self.tie_break = [_tie_break(pattern) for pattern in self.patterns]
        self.direction = np.array([np.sign(each.difference) if each.stands_out else 0.0 for each in self.patterns])

    def run(self, known: Iterable[str]) -> _SearchResult:
        """The new significant patterns, the strongest first, and the figures of the groups that failed the test.

        `known` are the keys of patterns that were found earlier. A group is passed over if its interval includes the
        mean of the rest, or if its difference turns around once the known patterns are taken into account: its figures
        would not show what was tested. The null distribution is still that of all groups, so the level holds.
        """
        new: dict[str, float] = {}
        explained, signs = list(known), random_signs(self.days, seed=self.sample.seed)
        while True:
            # Test the strongest group on what the known patterns leave unexplained.
            contributions = np.column_stack([self._contributions(table, explained) for table in self.sample.tables])
            effects = contributions.sum(axis=0)
            statistics, null = np.abs(effects), max_statistics(contributions, signs)
            candidates = np.where(np.sign(effects) * self.direction > 0.0, statistics, 0.0)
            if len(new) < MAX_NEW_PATTERNS and candidates.any():
                strongest = strongest_pattern(candidates, self.tie_break)
                p = self._p_value(float(statistics[strongest]), null, contributions, signs)
                if p <= self.level:
                    new[self.patterns[strongest].key] = p
                    explained.append(self.patterns[strongest].key)
                    continue
            return self._result(new, statistics, candidates, null)

    def _result(self, new: Mapping[str, float], statistics: Floats, candidates: Floats, null: Floats) -> _SearchResult:
        """The new patterns; the p-values of all other groups, and the strengths of those that could be patterns."""
        critical = float(np.quantile(null, 1.0 - USUAL_LEVEL))
        keys = [pattern.key for pattern in self.patterns]
        others = [index for index, key in enumerate(keys) if key not in new]
        return _SearchResult(
            new=new,
            p_values={keys[index]: p_value(float(statistics[index]), null) for index in others},
            strengths={keys[index]: float(candidates[index]) / critical for index in others if candidates[index] > 0.0},
        )

    def _p_value(self, statistic: float, null: Floats, contributions: Floats, signs: Signs) -> float:
        """The probability that chance makes as large a statistic now, and made no earlier test reject."""
        p = p_value(statistic, null)
        if p <= self.level or p > self.level + sum(level for _, level in self.earlier):
            return p  # earlier tests cannot change the decision
        return p_value(statistic, exclude_earlier_rejections(null, contributions, signs, self.earlier))

    def _contributions(self, table: _MeasureTable, explained: Sequence[str]) -> Floats:
        """The days' contributions to the groups of a measure, beyond the explained patterns."""
        if not table.patterns:
            return np.zeros((self.days, 0))
        columns = [column for column, pattern in enumerate(table.patterns) if pattern.key in explained]
        known = table.members[:, columns]
        contributions = day_contributions(table.values, table.members, known, table.codes, self.days)
        return contributions * [_weight(pattern) for pattern in table.patterns]


def _weight(pattern: Pattern) -> float:
    """The weight of a pattern in the maximum.

    A lower weight asks for a larger T from the data and from the flips alike, so the level holds for any weights.
    """
    return float(LOW_PRIORITY_WEIGHT ** ((pattern.measure == "captured") + (pattern.dimension == "hour")))


def _tie_break(pattern: Pattern) -> tuple[int, int, float, str]:
    """The order of patterns with the same statistic: the most specific dimension, the smaller group, the lower mean."""
    return DIMENSIONS.index(pattern.dimension), pattern.n, pattern.mean, pattern.value
