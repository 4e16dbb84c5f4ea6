"""How trades went under each revision of the lessons, by a bootstrap of whole days."""

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
ENDS = (0.05, 0.95)


def compare_revisions(trades: Iterable[TradeUnderLessons]) -> LessonsComparison:
    """Each revision beside none; the order of trades does not matter."""
    given = sorted(trades, key=_order)
    unit = most_common_unit(trade.outcome for trade in given)
    hashes = list(dict.fromkeys(trade.lessons_hash for trade in given if trade.lessons_hash is not None))
    held = {each: [trade for trade in given if trade.lessons_hash == each] for each in (None, *hashes)}
    return LessonsComparison(
        unit=unit, revisions=tuple(_revision(each, taught, held[None], unit) for each, taught in held.items())
    )


def _order(trade: TradeUnderLessons) -> tuple[date, str, str]:
    return trade.day, trade.lessons_hash or "", digest(plain(trade))


def _revision(
    lessons_hash: str | None,
    taught: Sequence[TradeUnderLessons],
    untaught: Sequence[TradeUnderLessons],
    unit: OutcomeUnit | None,
) -> LessonsRevision:
    values, base = _outcomes(taught, unit), _outcomes(untaught, unit)
    compared = bool(lessons_hash is not None and values and base)
    return LessonsRevision(
        lessons_hash=lessons_hash,
        trades=len(taught),
        days=len({trade.day for trade in taught}),
        mean=_mean([value for _, value in values]),
        mean_pnl=_mean([trade.pnl for trade in taught if trade.pnl is not None]),
        mean_pnl_usd=_mean([trade.pnl_usd for trade in taught if trade.pnl_usd is not None]),
        win_rate=_mean([float(trade.won) for trade in taught if trade.won is not None]),
        difference=_mean_difference(values, base) if compared else None,
        interval=_interval(values, base) if compared else None,
    )


_DatedOutcomes = Sequence[tuple[date, float]]


def _outcomes(trades: Iterable[TradeUnderLessons], unit: OutcomeUnit | None) -> list[tuple[date, float]]:
    return [(each.day, x.value) for each in trades if (x := each.outcome) is not None and x.unit == unit]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _mean_difference(values: _DatedOutcomes, base: _DatedOutcomes) -> float:
    ours, theirs = ([value for _, value in each] for each in (values, base))
    return math.fsum(ours) / len(ours) - math.fsum(theirs) / len(theirs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _DaySums:
    """Trades and what they brought, a day each, with lessons and without."""

    counts: Floats
    totals: Floats


def _interval(values: _DatedOutcomes, base: _DatedOutcomes) -> tuple[float, float] | None:
    """The 90 % interval of the difference: whole days drawn with replacement (Künsch 1989, blocks of one day).

    A day on which both traded is drawn for both. The draws follow from the data, so the same trades give the same.
    """
    if min(len({day for day, _ in each}) for each in (values, base)) < MIN_DAYS:
        return None
    days = _by_day(values, base)
    drawn = _resampled_day_counts(len(days.counts), seed=int(digest(plain([values, base]))[:16], 16))
    with np.errstate(all="ignore"):
        means = (drawn @ days.totals) / (drawn @ days.counts)
    apart = means[:, 0] - means[:, 1]
    low, high = np.quantile(apart[np.isfinite(apart)], ENDS)
    return float(low), float(high)


def _by_day(*sides: _DatedOutcomes) -> _DaySums:
    place = {day: row for row, day in enumerate(sorted({day for side in sides for day, _ in side}))}
    counts, totals = np.zeros((2, len(place), len(sides)))
    for column, side in enumerate(sides):
        rows = [place[day] for day, _ in side]
        np.add.at(counts[:, column], rows, 1.0)
        np.add.at(totals[:, column], rows, [value for _, value in side])
    return _DaySums(counts=counts, totals=totals)


def _resampled_day_counts(days: int, *, seed: int) -> Floats:
    """How often each day is drawn, a row a resample, as many days as there are; the same for the same seed.

    >>> _resampled_day_counts(7, seed=1).sum(axis=1).tolist() == [7.0] * 2000
    True
    """
    raw = np.asarray(np.random.PCG64(seed).random_raw(RESAMPLES * days), dtype=np.uint64)
    chosen = (raw % np.uint64(days)).astype(np.int64).reshape(RESAMPLES, days)
    rows = np.arange(RESAMPLES)[:, None] * days
    return np.bincount((rows + chosen).ravel(), minlength=RESAMPLES * days).reshape(RESAMPLES, days).astype(np.float64)
