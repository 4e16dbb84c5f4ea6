"""Compares the revisions of the lessons, with confidence intervals from a bootstrap of whole days."""

import hashlib
import math
from dataclasses import dataclass

import numpy as np

from backsight.core.reflection.day_clusters import Floats
from backsight.core.reflection.lessons_comparison import LessonsComparison, LessonsRevision
from backsight.core.reflection.patterns import UNITS
from backsight.core.reflection.trades_under_lessons import TradesUnderLessons
from backsight.core.trades.columns import Integers

RESAMPLES = 2_000
MIN_DAYS = 5
BOUNDS = (0.05, 0.95)


def compare_revisions(trades: TradesUnderLessons) -> LessonsComparison:
    """Compare the trades under each revision with those under no lessons; the order of the trades does not matter."""
    unit = trades.most_common_unit
    code = None if unit is None else UNITS.index(unit)
    without_lessons = _outcomes(trades, None, code)
    return LessonsComparison(
        unit=unit,
        revisions=tuple(
            _revision(each, trades, _outcomes(trades, each, code), without_lessons)
            for each in (None, *trades.revisions)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DatedOutcomes:
    """The outcomes of one side of a comparison, sorted by day and value."""

    day: Integers
    value: Floats

    @property
    def mean(self) -> float | None:
        return _mean(self.value)

    @property
    def days(self) -> int:
        return len(np.unique(self.day))


def _outcomes(trades: TradesUnderLessons, lessons_hash: str | None, unit: int | None) -> _DatedOutcomes:
    rows = trades.of_revision(lessons_hash) & (trades.unit == unit)
    day, value = trades.day[rows], trades.outcome[rows]
    order = np.lexsort((value, day))
    return _DatedOutcomes(day=day[order], value=value[order])


def _revision(
    lessons_hash: str | None, trades: TradesUnderLessons, outcomes: _DatedOutcomes, base: _DatedOutcomes
) -> LessonsRevision:
    rows = trades.of_revision(lessons_hash)
    mean = outcomes.mean
    is_base = lessons_hash is None
    difference = None if is_base or mean is None or base.mean is None else mean - base.mean
    return LessonsRevision(
        lessons_hash=lessons_hash,
        trades=int(np.count_nonzero(rows)),
        days=len(np.unique(trades.day[rows])),
        mean=mean,
        mean_pnl=_mean(trades.pnl[rows]),
        mean_pnl_usd=_mean(trades.pnl_usd[rows]),
        win_rate=_mean(trades.won[rows]),
        difference=difference,
        interval=None if difference is None else _interval(outcomes, base),
    )


def _mean(values: Floats) -> float | None:
    """The mean of the known values; the sum is exact, so that their order does not matter."""
    known = values[~np.isnan(values)]
    return math.fsum(known.tolist()) / len(known) if len(known) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DaySums:
    """Number and total outcome of the trades of each day: one row a day, one column a side of the comparison."""

    counts: Floats
    totals: Floats


def _interval(values: _DatedOutcomes, base: _DatedOutcomes) -> tuple[float, float] | None:
    """The 90% bootstrap interval of the difference, resampling whole days (Künsch 1989, blocks of one day).

    A day on which both sides traded is drawn for both. The seed is derived from the data, so the same trades give the
    same interval.
    """
    if min(values.days, base.days) < MIN_DAYS:
        return None
    days = _sums_by_day(values, base)
    draws = _resampled_day_counts(len(days.counts), seed=_seed(values, base))
    with np.errstate(all="ignore"):  # a resample may have no day of one side: its mean is NaN, and left out
        means = (draws @ days.totals) / (draws @ days.counts)
    differences = means[:, 0] - means[:, 1]
    low, high = np.quantile(differences[np.isfinite(differences)], BOUNDS)
    return float(low), float(high)


def _seed(*sides: _DatedOutcomes) -> int:
    data = hashlib.sha256()
    for side in sides:
        data.update(side.day.astype("<i8").tobytes())
        data.update((side.value + 0.0).astype("<f8").tobytes())  # −0.0 and 0.0 are the same outcome
    return int.from_bytes(data.digest()[:8])


def _sums_by_day(*sides: _DatedOutcomes) -> _DaySums:
    days = np.unique(np.concatenate([side.day for side in sides]))
    places = [np.searchsorted(days, side.day) for side in sides]
    return _DaySums(
        counts=np.stack([np.bincount(each, minlength=len(days)) for each in places], axis=1).astype(np.float64),
        totals=np.stack(
            [np.bincount(each, side.value, len(days)) for each, side in zip(places, sides, strict=True)], axis=1
        ),
    )


def _resampled_day_counts(days: int, *, seed: int) -> Floats:
    """How often each day is drawn, one row a resample; each resample draws as many days as there are.

    >>> _resampled_day_counts(7, seed=1).sum(axis=1).tolist() == [7.0] * 2000
    True
    """
    raw = np.asarray(np.random.PCG64(seed).random_raw(RESAMPLES * days), dtype=np.uint64)
    chosen = (raw % np.uint64(days)).astype(np.int64).reshape(RESAMPLES, days)
    rows = np.arange(RESAMPLES)[:, None] * days
    return np.bincount((rows + chosen).ravel(), minlength=RESAMPLES * days).reshape(RESAMPLES, days).astype(np.float64)
