"""Evidence: which groups of a strategy's latest trades differ from the rest by more than chance.

Groups share a property known at entry, or two. Two measures are compared: the outcome and, for exits, the share of the
maximum profit that was captured. A group needs eight trades on eight days, and so does the rest. Patterns are found by
the test in `shift_test` at the level that alpha spending allows, the strongest first among the groups whose interval
excludes the mean of the rest. Once a pattern is found, the other groups are tested on what it leaves unexplained, so
that one fact becomes one lesson. Some groups are passed over, with a reason:

- Its trades, or the others, come in fewer than ten separate runs: a single spell of the market may explain it.
- Only one half carries it. Where shorts in ranging markets lose and longs do not, the pair may be a lesson, and
  "ranging markets" may not.
- Outcomes are unknown for some trades, and more often for the losers of the better side or the winners of the worse.
- It says what follows a win or a loss, and outcomes resemble the second and third before them as well: then not the
  last trade explains the next, but the state of the market both.

A pattern stays until its interval reaches the mean of the rest. The strongest groups that failed the test are on the
watch list.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.reflection.alpha_spending import USUAL_LEVEL, same_doubling, significance_level
from backsight.core.reflection.day_clusters import Codes, Floats, GroupStatistics, compare_with_rest, group_means
from backsight.core.reflection.groups import TradeGroup, group_trades
from backsight.core.reflection.patterns import (
    DIMENSIONS,
    NEW_SEARCH,
    PAIRED_WITH_DIRECTION,
    SLOT_OF,
    WINDOW,
    ClosedTrade,
    Dimension,
    InterimLook,
    Measure,
    Pattern,
    SearchState,
    SignificantPattern,
    TradeEvidence,
    most_common_unit,
    pair_parts,
)
from backsight.core.reflection.shift_test import (
    MIN_RUNS,
    TradingDays,
    dealt_statistics,
    first_of_ties,
    p_value,
    persistence,
    separate_runs,
    unexplained,
)
from backsight.core.reflection.watch_list import watch_list
from backsight.core.trades.trade import OutcomeUnit

MIN_TRADES = 8
MIN_DAYS = 8
MAX_NEW_PATTERNS = 8
"""In one reflection."""
SHARES: Mapping[Measure, float] = {"outcome": 1.0, "captured": 0.25}
"""The share of the false-positive budget that the groups of one dimension have together, by measure."""
SMALL_SHARE = 0.5
"""The factor of the share of hours and pairs. Without it these many small groups would hide the others."""
ALL_SHARES = 14.0
"""About the sum of all shares."""
CARRIES = 1.0
"""A part of a group carries its effect if it differs by this many standard errors."""
RESEMBLANCE = 1.645
"""Outcomes resemble those before them if their autocorrelations exceed 0 by this many standard errors."""


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
        result = _PatternSearch(sample, level=level).run([each.key for each in significant])
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
        passed_over=result.passed_over,
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
    missing = _missing_outcomes(trades, values, members) if measure == "outcome" else None
    measured = [trade for trade, known in zip(trades, has_value, strict=True) if known]
    values, members, codes = values[has_value], members[has_value], codes[has_value]
    runs = _runs(groups, members)
    # Only groups with enough trades and days, inside and outside the group; pairs in the outcome only.
    statistics = compare_with_rest(values, members, codes, int(codes[-1]) + 1 if len(codes) else 0)
    n = np.minimum(statistics.n, statistics.rest_n)
    days = np.minimum(statistics.days, statistics.rest_days)
    is_large = (n >= MIN_TRADES) & (days >= MIN_DAYS)
    is_pair = np.array([group.dimension in PAIRED_WITH_DIRECTION for group in groups], dtype=np.bool_)
    large = np.flatnonzero(is_large if measure == "outcome" else is_large & ~is_pair)
    members = members[:, large]
    figures = _GroupFigures(
        statistics=GroupStatistics(*(figure[large] for figure in statistics)),
        won=group_means(_numbers(trade.won for trade in measured), members),
        captured=group_means(_numbers(trade.captured for trade in measured), members),
        hold=group_means(_numbers(trade.hold_seconds for trade in measured), members),
        runs=runs[large],
    )
    ids = np.array([trade.id for trade in measured], dtype=object)
    patterns = tuple(
        _pattern(groups[column], figures, index, measure, unit, tuple(ids[members[:, index] > 0.0]))
        for index, column in enumerate(large.tolist())
    )
    if missing is not None:
        patterns = tuple(
            replace(
                pattern, unknown=missing.unknown[column], biased=missing.bias(column, better=pattern.difference > 0.0)
            )
            for pattern, column in zip(patterns, large.tolist(), strict=True)
        )
    return _MeasureTable(values=values, codes=codes, members=members, patterns=patterns)


class _MissingOutcomes(NamedTuple):
    """For each group: its trades whose outcome is not known, and of how many winners and losers it is known."""

    unknown: Sequence[int]
    groups: Sequence[KnownOutcomes]
    rests: Sequence[KnownOutcomes]

    def bias(self, column: int, *, better: bool) -> str | None:
        """Why a group may look better, or worse, than the rest only because of the outcomes that are not known."""
        group, rest = self.groups[column], self.rests[column]
        if group.hides_losers if better else group.hides_winners:
            return f"{group.in_words} there"
        if rest.hides_winners if better else rest.hides_losers:
            return f"{rest.in_words} elsewhere"
        return None


def _missing_outcomes(trades: Sequence[ClosedTrade], values: Floats, members: Floats) -> _MissingOutcomes | None:
    """The outcomes that are not known, group by group; None where all are known."""
    is_known = np.isfinite(values)
    if is_known.all():
        return None
    won = np.array([value > 0.0 if each.won is None else each.won for each, value in zip(trades, values, strict=True)])
    is_judged = np.array([each.won is not None for each in trades]) | is_known
    sides = [(is_judged & won), (is_judged & ~won), (is_known & won), (is_known & ~won)]
    totals = [int(side.sum()) for side in sides]
    inside = np.array([side @ members for side in sides]).astype(np.int64).T.tolist()
    return _MissingOutcomes(
        unknown=(~is_known @ members).astype(np.int64).tolist(),
        groups=[_known_outcomes(counts) for counts in inside],
        rests=[_known_outcomes([total - n for total, n in zip(totals, counts, strict=True)]) for counts in inside],
    )


def _known_outcomes(counts: Sequence[int]) -> KnownOutcomes:
    won, lost, known_won, known_lost = counts
    return KnownOutcomes(won=won, lost=lost, known_won=known_won, known_lost=known_lost)


def _runs(groups: Sequence[TradeGroup], members: Floats) -> Floats:
    """The separate runs of each group; of a pair the fewest of its own and its parts', since within one spell of a
    regime longs and shorts alternate."""
    runs = separate_runs(members)
    index = {(group.dimension, group.value): column for column, group in enumerate(groups)}
    parts = [[index[part] for part in pair_parts(group.dimension, group.value).items()] for group in groups]
    return np.array([min(runs[column], *runs[columns]) for column, columns in enumerate(parts)])


class _GroupFigures(NamedTuple):
    """All figures of the groups; each pair is of the group and of the rest."""

    statistics: GroupStatistics
    won: tuple[Floats, Floats]
    captured: tuple[Floats, Floats]
    hold: tuple[Floats, Floats]
    runs: Floats


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
        runs=int(figures.runs[index]),
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
    passed_over: Mapping[str, str] = field(default_factory=dict)
    """Why groups among them cannot be patterns now, whatever their p-value."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _TableStatistics:
    """The statistics of the groups of one measure, on what the known patterns leave unexplained."""

    effects: Floats
    """T over its deviation under shifts, signed and weighted."""
    dealt: Floats
    """|T|, weighted, under each deal: one row a deal, one column a group."""
    passed_over: Mapping[int, str]
    """Why groups cannot be patterns, by column."""


class _PatternSearch:
    """The search for significant patterns among the groups of all measures at once."""

    def __init__(self, sample: _TradeSample, *, level: float) -> None:
        self.level, self.tables = level, [table for table in sample.tables if table.patterns]
        self.patterns = [pattern for table in self.tables for pattern in table.patterns]
        self.tie_break = [_tie_break(pattern) for pattern in self.patterns]
        self.direction = np.array([np.sign(each.difference) if each.stands_out else 0.0 for each in self.patterns])
        self.is_testable = np.array([pattern.runs >= MIN_RUNS for pattern in self.patterns])
        self.weights = _weights(self.patterns, self.is_testable)

    def run(self, known: Iterable[str]) -> _SearchResult:
        """The new significant patterns, the strongest first, and the figures of the groups that failed the test.

        `known` are the keys of patterns that were found earlier. A group is passed over if its interval includes the
        mean of the rest, if its difference turns around once the known patterns are taken into account (its figures
        would not show what was tested), or for one of the reasons above. The null distribution is still that of all
        groups with enough runs, so the level holds.
        """
        new: dict[str, float] = {}
        explained = list(known)
        while True:
            # Test the strongest group on what the known patterns leave unexplained.
            tables = self._statistics(explained)
            effects = np.concatenate([table.effects for table in tables])
            dealt = np.concatenate([table.dealt for table in tables], axis=1)
            reasons = self._reasons(tables)
            is_free = np.array([index not in reasons for index in range(len(effects))])
            candidates = np.where((np.sign(effects) * self.direction > 0.0) & is_free, np.abs(effects), 0.0)
            null = dealt[:, self.is_testable].max(axis=1, initial=0.0)
            if len(new) < MAX_NEW_PATTERNS and candidates.any():
                strongest = int(candidates.argmax())
                p = p_value(float(candidates[strongest]), null)
                if p <= self.level:
                    key = self.patterns[first_of_ties(candidates / self.weights, strongest, self.tie_break)].key
                    new[key] = p
                    explained.append(key)
                    continue
            return self._result(new, effects, dealt, null, reasons)

    def _result(
        self, new: Mapping[str, float], effects: Floats, dealt: Floats, null: Floats, reasons: Mapping[int, str]
    ) -> _SearchResult:
        """The new patterns; the p-values of all other groups, and the strengths of those that could be patterns."""
        critical = float(np.quantile(null, 1.0 - USUAL_LEVEL))
        keys = [pattern.key for pattern in self.patterns]
        others = [index for index, key in enumerate(keys) if key not in new]
        # More trades bring more runs, but no other reason goes away with them.
        may_come = [index for index in others if index not in reasons or not self.is_testable[index]]
        strengths = {
            keys[index]: abs(float(effects[index])) / critical
            for index in may_come
            if critical and effects[index] * self.direction[index] > 0.0
        }
        # A group with too few runs is not in the null distribution, but is compared as if it were.
        p_values = {
            keys[index]: p_value(abs(float(effects[index])), np.maximum(null, dealt[:, index])) for index in others
        }
        passed_over = {keys[index]: reason for index, reason in reasons.items() if keys[index] not in new}
        return _SearchResult(new=new, p_values=p_values, strengths=strengths, passed_over=passed_over)

    def _statistics(self, explained: Sequence[str]) -> list[_TableStatistics]:
        first, statistics = 0, list[_TableStatistics]()
        for table in self.tables:
            weights = self.weights[first : first + len(table.patterns)]
            statistics.append(_table_statistics(table, explained, weights))
            first += len(table.patterns)
        return statistics

    def _reasons(self, tables: Sequence[_TableStatistics]) -> dict[int, str]:
        """Why groups are passed over, by their index among all patterns."""
        reasons = {
            index: f"its trades or the others come in {pattern.runs} separate runs; {MIN_RUNS} are needed"
            for index, pattern in enumerate(self.patterns)
            if pattern.runs < MIN_RUNS
        }
        reasons |= {index: each.biased for index, each in enumerate(self.patterns) if each.biased is not None}
        first = 0
        for table, statistics in zip(self.tables, tables, strict=True):
            reasons |= {first + column: reason for column, reason in statistics.passed_over.items()}
            first += len(table.patterns)
        return reasons


def _table_statistics(table: _MeasureTable, explained: Sequence[str], weights: Floats) -> _TableStatistics:
    """The statistics of the groups of a measure beyond the explained patterns."""
    columns = [column for column, pattern in enumerate(table.patterns) if pattern.key in explained]
    outcome, labels = unexplained(table.values, table.members, table.members[:, columns])
    days = TradingDays.of(table.codes)
    runs = np.array([pattern.runs for pattern in table.patterns], dtype=np.float64)
    statistics = np.sqrt(len(outcome) - 1.0) * (outcome @ labels)
    return _TableStatistics(
        effects=weights * statistics / persistence(outcome, labels, days, runs),
        dealt=weights * dealt_statistics(outcome, labels, days),
        passed_over=_half_effects(table, outcome) | _aftereffects(table, outcome),
    )


def _half_effects(table: _MeasureTable, outcome: Floats) -> dict[int, str]:
    """The groups whose effect only one of their pairs carries, by column, with the reason."""
    column_of = {(pattern.dimension, pattern.value): column for column, pattern in enumerate(table.patterns)}
    reasons: dict[int, str] = {}
    for pair, pattern in enumerate(table.patterns):
        if pattern.dimension not in PAIRED_WITH_DIRECTION:
            continue
        for part in pair_parts(pattern.dimension, pattern.value).items():
            if (whole := column_of.get(part)) is not None and not _others_carry(table, outcome, whole, pair):
                reasons[whole] = f"only {pattern.label} differ; the others there do not"
    return reasons


def _others_carry(table: _MeasureTable, outcome: Floats, whole: int, pair: int) -> bool:
    """Whether the trades of a group outside one of its pairs differ in the same direction from all other trades."""
    outside = table.members[:, whole] == 0.0
    others = ~outside & (table.members[:, pair] == 0.0)
    if others.sum() < MIN_TRADES:
        return True  # too few to say otherwise
    base = outcome[outside].mean()
    effect, other_effect = outcome[~outside].mean() - base, outcome[others].mean() - base
    error = outcome.std() * np.sqrt(1.0 / others.sum() + 1.0 / outside.sum())
    return bool(other_effect * np.sign(effect) > CARRIES * error)


def _aftereffects(table: _MeasureTable, outcome: Floats) -> dict[int, str]:
    """The groups of trades after a win or a loss if outcomes also resemble the second and third before them."""
    resemblance = sum(float(outcome[lag:] @ outcome[:-lag]) for lag in (2, 3)) * np.sqrt(len(outcome) / 2.0)
    if resemblance < RESEMBLANCE:
        return {}
    reason = "outcomes also resemble the second and third before them: the market may explain both"
    return {column: reason for column, pattern in enumerate(table.patterns) if pattern.dimension == "after"}


def _weights(patterns: Sequence[Pattern], is_testable: NDArray[np.bool_]) -> Floats:
    """The weights of the groups in the maximum: each dimension has its share of the false-positive budget.

    The quantile of the share that is left to one group, as if groups were independent and normal. A lower weight asks
    for a larger T from the data and from the deals alike, so the level holds for any weights.
    """
    kinds = [(pattern.measure, pattern.dimension) for pattern in patterns]
    sizes = Counter(kind for kind, testable in zip(kinds, is_testable, strict=True) if testable)
    budget, quantile = USUAL_LEVEL / ALL_SHARES / 2.0, NormalDist().inv_cdf
    return np.array([quantile(budget) / quantile(budget * _share(kind) / max(1, sizes[kind] - 1)) for kind in kinds])


def _share(kind: tuple[Measure, Dimension]) -> float:
    measure, dimension = kind
    is_small = dimension == "hour" or dimension in PAIRED_WITH_DIRECTION
    return SHARES[measure] * (SMALL_SHARE if is_small else 1.0)


def _tie_break(pattern: Pattern) -> tuple[int, int, float, str]:
    """The order of patterns with the same statistic: the most specific dimension, the smaller group, the lower mean."""
    return DIMENSIONS.index(pattern.dimension), pattern.n, pattern.mean, pattern.value
