"""Compares the revisions of the lessons, with confidence intervals from a bootstrap of whole days."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from backsight.core.ids import digest, plain
from backsight.core.reflection.day_clusters import Floats
from backsight.core.reflection.lessons_comparison import LessonsComparison, LessonsRevision, TradeUnderLessons
from backsight.core.reflection.patterns import most_common_unit
from backsight.core.trades.trade import OutcomeUnit

RESAMPLES = 2_000
MIN_DAYS = 5
BOUNDS = (0.05, 0.95)


def compare_revisions(trades: Iterable[TradeUnderLessons]) -> LessonsComparison:
    """Compare the trades under each revision with those under no lessons; the order of the trades does not matter."""
    ordered = sorted(trades, key=_order)
    unit = most_common_unit(trade.outcome for trade in ordered)
    hashes = list(dict.fromkeys(trade.lessons_hash for trade in ordered if trade.lessons_hash is not None))
    by_hash = {each: [trade for trade in ordered if trade.lessons_hash == each] for each in (None, *hashes)}
    return LessonsComparison(
        unit=unit, revisions=tuple(_revision(each, group, by_hash[None], unit) for each, group in by_hash.items())
    )


def _order(trade: TradeUnderLessons) -> tuple[date, str, str]:
    return trade.day, trade.lessons_hash or "", digest(plain(trade))


def _revision(
    lessons_hash: str | None,
    trades: Sequence[TradeUnderLessons],
    without_lessons: Sequence[TradeUnderLessons],
    unit: OutcomeUnit | None,
) -> LessonsRevision:
    values, base = _outcomes(trades, unit), _outcomes(without_lessons, unit)
    comparable = bool(lessons_hash is not None and values and base)
    return LessonsRevision(
        lessons_hash=lessons_hash,
        trades=len(trades),
        days=len({trade.day for trade in trades}),
        mean=_mean([value for _, value in values]),
        mean_pnl=_mean([trade.pnl for trade in trades if trade.pnl is not None]),
        mean_pnl_usd=_mean([trade.pnl_usd for trade in trades if trade.pnl_usd is not None]),
        win_rate=_mean([float(trade.won) for trade in trades if trade.won is not None]),
        difference=_mean_difference(values, base) if comparable else None,
        interval=_interval(values, base) if comparable else None,
    )


_DatedOutcomes = Sequence[tuple[date, float]]


def _outcomes(trades: Iterable[TradeUnderLessons], unit: OutcomeUnit | None) -> list[tuple[date, float]]:
    return [(each.day, x.value) for each in trades if (x := each.outcome) is not None and x.unit == unit]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _mean_difference(values: _DatedOutcomes, base: _DatedOutcomes) -> float:
    return math.fsum(value for _, value in values) / len(values) - math.fsum(value for _, value in base) / len(base)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DaySums:
    """Number and total outcome of the trades of each day: one row a day, one column a side of the comparison."""

    counts: Floats
    totals: Floats


def _interval(values: _DatedOutcomes, base: _DatedOutcomes) -> tuple[float, float] | None:
    """The 90 % bootstrap interval of the difference, resampling whole days (Künsch 1989, blocks of one day).

    A day on which both sides traded is drawn for both. The seed is derived from the data, so the same trades give the
    same interval.
    """
    if min(len({day for day, _ in each}) for each in (values, base)) < MIN_DAYS:
        return None
    days = _sums_by_day(values, base)
    draws = _resampled_day_counts(len(days.counts), seed=int(digest(plain([values, base]))[:16], 16))
    with np.errstate(all="ignore"):  # a resample may have no day of one side: its mean is NaN, and left out
        means = (draws @ days.totals) / (draws @ days.counts)
    differences = means[:, 0] - means[:, 1]
    low, high = np.quantile(differences[np.isfinite(differences)], BOUNDS)
    return float(low), float(high)


def _sums_by_day(*sides: _DatedOutcomes) -> _DaySums:
    row_of = {day: row for row, day in enumerate(sorted({day for side in sides for day, _ in side}))}
    counts, totals = np.zeros((2, len(row_of), len(sides)))
    for column, side in enumerate(sides):
        rows = [row_of[day] for day, _ in side]
        np.add.at(counts[:, column], rows, 1.0)
        np.add.at(totals[:, column], rows, [value for _, value in side])
    return _DaySums(counts=counts, totals=totals)


def _resampled_day_counts(days: int, *, seed: int) -> Floats:
    """How often each day is drawn, one row a resample; each resample draws as many days as there are.

    >>> _resampled_day_counts(7, seed=1).sum(axis=1).tolist() == [7.0] * 2000
    True
    """
    raw = np.asarray(np.random.PCG64(seed).random_raw(RESAMPLES * days), dtype=np.uint64)
    chosen = (raw % np.uint64(days)).astype(np.int64).reshape(RESAMPLES, days)
    rows = np.arange(RESAMPLES)[:, None] * days
    return np.bincount((rows + chosen).ravel(), minlength=RESAMPLES * days).reshape(RESAMPLES, days).astype(np.float64)
