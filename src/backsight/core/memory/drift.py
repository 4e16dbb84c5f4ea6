"""Drift: detect that the level of a series of outcomes or sizes changed, in which direction, and since when.

Two detectors watch each series, both two-sided cumulative sums (CUSUM) of Page and Hinkley on values standardised by
the mean and deviation of the values before them. The fast detector finds a change of one standard deviation within
weeks; the slow detector finds half a standard deviation within 200 values. A day in UTC counts as one value: the mean
of its values, once the day is over. Where days follow each other in level, steps are smaller, so that a good week is no
change.

A sum above its threshold is an alarm only if the mean after the change differs from the mean before it by more than the
long-run variance of the days allows: where levels last for weeks, a few bad weeks are no change either. Days that are
many, and do not resemble the days before them, count as independent.
`docs/decisions/0028-beliefs-and-drift.md` and `0040-short-records-and-dead-edges.md` have the reasons, `docs/truth.md`
the measured rates.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from backsight.core.copies import copy_with
from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.quick_init import quick_init
from backsight.core.statistics import Moments, t_cdf

Turn = Literal["up", "down"]
Speed = Literal["fast", "slow"]
"""The two detectors."""

WARM_UP = 30
"""Daily values that only make the baseline."""
CLIP = 2.5
"""Largest absolute z."""
LEAST_DEVIATION = 0.01
"""Smallest standard deviation, as a share of the mean."""
MOST_PERSISTENCE = 0.9
"""Largest autocorrelation of daily values that is allowed for."""
MEMORY = 0.8
"""Weight of the autocovariance of days that are one day farther apart."""
EXTRAPOLATION = 6.0
"""From the weighted sum of autocovariances to their whole sum: exact where days resemble each other for about four
weeks, autocorrelations falling by 4% a day, and more than enough where they do so for a shorter time."""
CONFIRMED = 0.001
"""An alarm needs a difference of the means before and after with a one-sided p-value below this."""
ENOUGH_DAYS = 180
"""Days before the change from which on their autocorrelations show whether they resemble each other."""
DAYS_A_DEGREE = 28.0
"""Days before the change that count as one degree of freedom of the long-run variance; days after it count half."""
RECOVERED = 0.05 / 6
"""One-sided level at which a look at the values since a fall finds them above 0."""
FIRST_LOOK = 20
"""After how many daily values since a fall a recovery is first looked for; then at every doubling."""
TYPICAL_EXCESS = 3.0 * EXTRAPOLATION / math.sqrt(2.0 * math.pi * (1.0 - MEMORY * MEMORY))
"""√n times half as much again as the mean by which the estimated long-run variance of n independent days exceeds 1."""
DETECTABLE_DAYS = 200
"""The longest recent period for which a detectable change is reported."""
FIRST_DETECTABLE = 150
"""Days before which no detectable change is reported: until then only collapses would be found."""
LARGEST_CHANGE = 10.0
"""The largest detectable change that is reported, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The two constants of a CUSUM, in standard deviations."""

    allowance: float
    """k: half of the change to detect, taken from every step."""
    threshold: float
    """h: a sum above it raises an alarm."""


CHARTS: Mapping[Speed, Chart] = {
    "fast": Chart(allowance=0.5, threshold=10.0),
    "slow": Chart(allowance=0.2, threshold=19.5),
}
"""Together at most 5% of 1,000 stationary values raise any alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A change in the level of a series."""

    turn: Turn
    detector: Speed
    at: datetime
    """When the last value of the day that raised the alarm became known."""
    since: datetime
    """t₀: the estimated change point, when the first value after the change became known."""
    before: Moments
    """The values before t₀."""
    after: Moments
    """The values from t₀ to the alarm."""
    magnitude: float
    """The change of the mean, in standard deviations of the values before; its sign is the direction."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Persistence:
    """How much the level of a day carries over to later days, from the z of all days so far."""

    n: int = 0
    last: float = 0.0
    products: float = 0.0
    """Σ z_t · z_{t−1}."""
    squares: float = 0.0
    """Σ z_t²."""
    echo: float = 0.0
    """Σ_k .8^(k−1) · z_{t+1−k}, the weighted days before the next one."""
    echoes: float = 0.0
    """Σ_t z_t · (the echo before t): autocovariances weighted by .8^(lag − 1), about a mean of 0."""

    def add(self, z: float) -> "Persistence":
        """The persistence with one more z."""
        return Persistence(
            n=self.n + 1,
            last=z,
            products=self.products + z * self.last,
            squares=self.squares + z * z,
            echo=MEMORY * self.echo + z,
            echoes=self.echoes + z * self.echo,
        )

    @property
    def weight(self) -> float:
        """The divisor of autocovariances: Σ z², and at least n, so that the first jump in a constant series is no
        persistence."""
        return max(self.squares, float(self.n))

    @property
    def autocorrelation(self) -> float:
        """r of one day with the next, from 0 to .9; a negative autocorrelation counts as 0."""
        return max(0.0, min(MOST_PERSISTENCE, self.products / self.weight)) if self.n else 0.0

    @property
    def inflation(self) -> float:
        """By how much a sum of such values varies more than one of independent values: √((1 + r) / (1 − r)).

        >>> Persistence(n=10, products=6.0, squares=10.0).inflation
        2.0
        """
        r = self.autocorrelation
        return math.sqrt((1.0 + r) / (1.0 - r))

    @property
    def long_run_variance(self) -> float:
        """n times the variance of the mean of n such values, over the variance of one value.

        >>> Persistence(n=10, echoes=5.0, squares=10.0).long_run_variance
        7.0
        """
        return long_run_variance(self.echoes, self.weight)


def long_run_variance(echoes: float, weight: float) -> float:
    """1 + 2 · Σ autocorrelations, extrapolated from their weighted sum; at least 1.

    >>> long_run_variance(5.0, 10.0), long_run_variance(-5.0, 10.0)
    (7.0, 1.0)
    """
    return 1.0 + 2.0 * EXTRAPOLATION * max(0.0, echoes / weight) if weight else 1.0


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedDays:
    """The z of the days since a sum left zero, and their weighted autocovariances about their own mean."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    echo: float = 0.0
    echo_of_ones: float = 0.0
    """The echo if every z were 1."""
    products: float = 0.0
    """Σ z · echo."""
    cross_products: float = 0.0
    """Σ z · echo of ones + Σ echo."""
    counts: float = 0.0
    """Σ echo of ones."""

    def add(self, z: float) -> "ChangedDays":
        """The days with one more z."""
        return ChangedDays(
            n=self.n + 1,
            total=self.total + z,
            squares=self.squares + z * z,
            echo=MEMORY * self.echo + z,
            echo_of_ones=MEMORY * self.echo_of_ones + 1.0,
            products=self.products + z * self.echo,
            cross_products=self.cross_products + z * self.echo_of_ones + self.echo,
            counts=self.counts + self.echo_of_ones,
        )

    def echoes(self) -> tuple[float, float]:
        """The weighted sum of autocovariances about the mean of these days, and its divisor Σ (z − mean)².

        >>> days = ChangedDays().add(2.0).add(2.0).add(5.0).add(5.0)
        >>> [round(part, 6) for part in days.echoes()]
        [-2.79, 9.0]
        """
        mean = self.total / self.n
        echoes = self.products - mean * self.cross_products + mean * mean * self.counts
        return echoes, max(0.0, self.squares - mean * self.total)


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSum:
    """The CUSUM in one direction, and the values before and after the instant at which it last left zero."""

    total: float = 0.0
    since: datetime | None = None
    persistence: Persistence = field(default_factory=Persistence)
    """Of the values before, so that the change itself is not taken for persistence."""
    before: Moments = field(default_factory=Moments)
    after: Moments = field(default_factory=Moments)
    changed: ChangedDays = field(default_factory=ChangedDays)

    def is_confirmed(self, turn: Turn) -> bool:
        """Whether the means before and after differ in this direction by more than chance makes of persistent days.

        t = (after − before) / (deviation · √(L · (1/n + 1/m))), L the long-run variance of the n days before and the m
        days after, each about their own mean.
        """
        n, m = self.before.n, self.after.n
        change = (self.after.mean - self.before.mean) * (1.0 if turn == "up" else -1.0)
        deviation = least_deviation(self.before)
        if deviation == 0.0:
            return change > 0.0
        echoes, spread = self.changed.echoes()
        echoes, weight = self.persistence.echoes + echoes, self.persistence.weight + spread
        return is_confirmed(change / deviation, long_run(echoes, weight, before=n, after=m), before=n, after=m)


class LongRun(NamedTuple):
    """How much the mean of days varies, and how well that is known."""

    variance: float
    """n times the variance of the mean of n days, over the variance of one day."""
    freedom: float
    """Degrees of freedom of the variance."""


def long_run(echoes: float, weight: float, *, before: int, after: int) -> LongRun:
    """The long-run variance of the days before and after a change.

    >>> long_run(0.0, 200.0, before=200, after=40), long_run(50.0, 200.0, before=240, after=80)
    (LongRun(variance=1.0, freedom=238.0), LongRun(variance=4.0, freedom=10.0))
    """
    if are_independent(echoes, weight, before=before, after=after):
        return LongRun(variance=1.0, freedom=before + after - 2.0)
    return LongRun(variance=long_run_variance(echoes, weight), freedom=_stretches(before, after))


def _stretches(before: int, after: int) -> float:
    """Degrees of freedom where days resemble each other: the variance is known from few stretches of weeks."""
    return max(1.0, (before + after / 2.0) / DAYS_A_DEGREE)


def is_confirmed(change: float, days: LongRun, *, before: int, after: int) -> bool:
    """Whether a rise, in standard deviations, is more than the long-run variance allows.

    >>> [is_confirmed(1.0, LongRun(variance=1.0, freedom=200.0), before=200, after=days) for days in (10, 20)]
    [False, True]
    """
    t = change / math.sqrt(days.variance * (1.0 / before + 1.0 / after))
    return t > 0.0 and t_cdf(-t, freedom=days.freedom) < CONFIRMED


def are_independent(echoes: float, weight: float, *, before: int, after: int = 0) -> bool:
    """Whether many days do not resemble each other: their weighted autocorrelation is below one standard error of it.

    Of independent days the weighted sum of autocorrelations has the variance Σ .64^(lag − 1) / days.

    >>> [are_independent(echoes, 200.0, before=200) for echoes in (-30.0, 20.0, 30.0)]
    [True, True, False]
    >>> are_independent(0.0, 100.0, before=100)
    False
    """
    error = 1.0 / math.sqrt((1.0 - MEMORY * MEMORY) * (before + after))
    return before >= ENOUGH_DAYS and echoes < error * weight


_AT_ZERO = CumulativeSum()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSidedSum:
    """The sums of one detector: upward and downward."""

    up: CumulativeSum = _AT_ZERO
    down: CumulativeSum = _AT_ZERO


_NEW_SUMS = TwoSidedSum()


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDay:
    """The values of the current day, which is not over."""

    date: date
    n: int
    mean: float
    first_at: datetime
    last_at: datetime


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """The state of both detectors of a series after the values so far."""

    past: Moments = field(default_factory=Moments)
    """The daily values since t₀ of the latest alarm; all of them where there was none."""
    persistence: Persistence = field(default_factory=Persistence)
    fast: TwoSidedSum = _NEW_SUMS
    slow: TwoSidedSum = _NEW_SUMS
    today: OpenDay | None = None
    latest: Alarm | None = None
    recovered: bool = False
    """Whether the values since the latest alarm were above 0 by themselves at one of their looks."""

    @property
    def degrading(self) -> bool:
        """Whether the latest alarm is a fall, and the values since then have not been above 0 by themselves."""
        return self.latest is not None and self.latest.turn == "down" and not self.recovered


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableChange:
    """The smallest change that both detectors together would have found with probability one half or more."""

    days: int
    """The latest days with trades, throughout which the change would have lasted."""
    deviations: float
    """Its size in standard deviations of a day's mean, up or down."""
    size: float
    """The same in the unit of the series."""


class DriftUpdate(NamedTuple):
    """A detector after more values, and the alarms they raised."""

    detector: Detector
    alarms: tuple[Alarm, ...] = ()


def watch(detector: Detector, value: float, *, at: datetime) -> DriftUpdate:
    """The detector after one more value; values come in the order in which they become known.

    The first value of a new day completes the day before, and the test takes one step.

    >>> from datetime import timedelta
    >>> t0 = datetime(2026, 1, 1, tzinfo=UTC)
    >>> detector, alarms = Detector(), []
    >>> for n, value in enumerate([1.0, -1.0] * 50 + [-3.0] * 20):
    ...     update = watch(detector, value, at=t0 + timedelta(days=n))
    ...     detector, alarms = update.detector, [*alarms, *update.alarms]
    >>> [(alarm.turn, (alarm.since - t0).days, (alarm.at - t0).days) for alarm in alarms]
    [('down', 99, 107)]
    """
    if not math.isfinite(value):
        raise Invalid(f"{value} cannot be watched; give a finite number", field="value")
    today = detector.today
    if today is not None and at < today.last_at:
        late = f"the value at {format_instant(at)} is earlier than the last value, at {format_instant(today.last_at)}"
        raise Invalid(f"{late}; watch all values again in order", field="at")
    settled, alarms = settle(detector, now=at)
    today = _day_with_value(settled.today, value, at)
    return DriftUpdate(detector=copy_with(settled, today=today), alarms=alarms)


def settle(detector: Detector, *, now: datetime) -> DriftUpdate:
    """The detector at an instant: the values of a day count once the day is over.

    Whether a detector is settled before the next value or not, the result is the same.
    """
    today = detector.today
    if today is None or now.astimezone(UTC).date() <= today.date:
        return DriftUpdate(detector=detector)
    judged = _judge(detector, today)
    return DriftUpdate(detector=judged, alarms=() if judged.latest is detector.latest else (judged.latest,))  # type: ignore[arg-type]


def standardised(value: float, past: Moments) -> float:
    """z: (value − mean) / deviation of all values before it, clipped at ±2.5.

    The deviation is at least 1% of the mean, so that a rounding difference in constant sizes raises no alarm.

    >>> from backsight.core.statistics import moments_of
    >>> [standardised(value, moments_of([1.0, 2.0, 3.0])) for value in (2.5, 9.0)]
    [0.5, 2.5]
    """
    deviation = least_deviation(past)
    difference = value - past.mean
    if deviation == 0.0:
        return math.copysign(CLIP, difference) if difference else 0.0
    return max(-CLIP, min(CLIP, difference / deviation))


def least_deviation(past: Moments) -> float:
    """The standard deviation of values, at least 1% of their mean."""
    return max(past.deviation or 0.0, LEAST_DEVIATION * abs(past.mean))


def detectable_change(detector: Detector) -> DetectableChange | None:
    """The smallest change that would have been found by now, had it lasted for half of the days, at most 200.

    None with fewer than 150 days, and where no change would have been found. It follows from the mean path of both
    sums.

    >>> steady = Detector(past=Moments(n=400, mean=0.2, squares=4.0 * 399))
    >>> change = detectable_change(steady)
    >>> change.days, round(change.deviations, 2), round(change.size, 2)
    (200, 0.51, 1.03)
    """
    days = min(DETECTABLE_DAYS, detector.past.n // 2)
    deviation = detector.past.deviation
    if detector.past.n < FIRST_DETECTABLE or not deviation:
        return None
    before, persistence = detector.past.n - days, detector.persistence
    independent = are_independent(persistence.echoes, persistence.weight, before=before, after=days)
    deviations = _smallest_found(before, days, independent=independent)
    if deviations is None:
        return None
    deviations *= 1.0 if independent else math.sqrt(persistence.long_run_variance)
    return DetectableChange(days=days, deviations=deviations, size=deviations * deviation)


@lru_cache(maxsize=1024)
def _smallest_found(before: int, days: int, *, independent: bool) -> float | None:
    """The smallest change, in standard deviations, whose mean path crosses a threshold; None above ten."""
    low, high = 0.0, LARGEST_CHANGE
    if not _is_found(high, before, days, independent=independent):
        return None
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        low, high = (low, middle) if _is_found(middle, before, days, independent=independent) else (middle, high)
    return high


def _is_found(change: float, before: int, days: int, *, independent: bool) -> bool:
    """Whether the mean path of either sum crosses its threshold when the level changes after `before` values.

    The change itself moves the baseline: its mean and its deviation.
    """
    totals = dict.fromkeys(CHARTS, 0.0)
    for day in range(days):
        n = before + day
        share = day / n
        z = min(CLIP, change * (1.0 - share) / math.sqrt(1.0 + change * change * share * (1.0 - share)))
        for speed, chart in CHARTS.items():
            totals[speed] = max(0.0, totals[speed] + z - chart.allowance)
        if any(totals[speed] > chart.threshold for speed, chart in CHARTS.items()):
            # Even of independent days the estimate of the long-run variance is above 1, and it varies.
            variance = 1.0 if independent else 1.0 + TYPICAL_EXCESS / math.sqrt(n + 1)
            freedom = n - 1.0 if independent else _stretches(before, day + 1)
            if is_confirmed(change, LongRun(variance=variance, freedom=freedom), before=before, after=day + 1):
                return True
    return False


def _day_with_value(today: OpenDay | None, value: float, at: datetime) -> OpenDay:
    if today is None:
        return OpenDay(date=at.astimezone(UTC).date(), n=1, mean=value, first_at=at, last_at=at)
    n = today.n + 1
    mean = today.mean + (value - today.mean) / n
    return OpenDay(date=today.date, n=n, mean=mean, first_at=today.first_at, last_at=at)


def _judge(detector: Detector, day: OpenDay) -> Detector:
    """One CUSUM step of both detectors, once a day is over (Page 1954, Hinkley 1971).

    The first 30 values only make the baseline. After an alarm the baseline is the values since t₀, and all sums are
    zero.
    """
    past, persistence = detector.past, detector.persistence
    z = standardised(day.mean, past) if past.n > 1 else 0.0
    fast, slow = detector.fast, detector.slow
    if past.n >= WARM_UP:
        step = _Step(z=z, persistence=persistence, day=day, past=past)
        fast, slow = _both_sides(fast, step, CHARTS["fast"]), _both_sides(slow, step, CHARTS["slow"])
        if (alarm := _alarm(fast, slow, day)) is not None:
            return Detector(past=alarm.after, persistence=persistence.add(z), latest=alarm)
    past, persistence = past.add(day.mean), persistence.add(z)
    recovered = detector.recovered or (detector.degrading and _is_above_zero(past, persistence))
    return Detector(
        past=past, persistence=persistence, fast=fast, slow=slow, latest=detector.latest, recovered=recovered
    )


def _is_above_zero(past: Moments, persistence: Persistence) -> bool:
    """Whether the values since a fall are above 0 by themselves, at one of their looks: 20, 40, 80 … days."""
    if past.n < FIRST_LOOK or past.n % FIRST_LOOK or (past.n // FIRST_LOOK).bit_count() > 1 or past.mean <= 0.0:
        return False
    error = (past.deviation or 0.0) * math.sqrt(persistence.long_run_variance / past.n)
    return error == 0.0 or t_cdf(-past.mean / error, freedom=past.n - 1) < RECOVERED


class _Step(NamedTuple):
    """A day as the sums take it."""

    z: float
    persistence: Persistence
    day: OpenDay
    past: Moments


def _both_sides(sums: TwoSidedSum, step: _Step, chart: Chart) -> TwoSidedSum:
    return TwoSidedSum(up=_add(sums.up, step.z, step, chart), down=_add(sums.down, -step.z, step, chart))


def _add(side: CumulativeSum, z: float, step: _Step, chart: Chart) -> CumulativeSum:
    """S ← max(0, S + z / inflation − k)."""
    is_new = side.total == 0.0
    persistence = step.persistence if is_new else side.persistence
    total = max(0.0, side.total + z / persistence.inflation - chart.allowance)
    if total == 0.0:
        return _AT_ZERO
    return CumulativeSum(
        total=total,
        since=step.day.first_at if is_new else side.since,
        persistence=persistence,
        before=step.past if is_new else side.before,
        after=side.after.add(step.day.mean),
        changed=side.changed.add(step.z),
    )


def _alarm(fast: TwoSidedSum, slow: TwoSidedSum, day: OpenDay) -> Alarm | None:
    """The alarm of the sum that exceeds its threshold by most and is confirmed; None if there is none."""
    sums: list[tuple[Speed, Turn, CumulativeSum]] = [
        ("fast", "up", fast.up),
        ("fast", "down", fast.down),
        ("slow", "up", slow.up),
        ("slow", "down", slow.down),
    ]
    alarms = [each for each in sums if each[2].total > CHARTS[each[0]].threshold and each[2].is_confirmed(each[1])]
    if not alarms:
        return None
    speed, turn, side = max(alarms, key=lambda each: each[2].total / CHARTS[each[0]].threshold)
    change, deviation = side.after.mean - side.before.mean, least_deviation(side.before)
    return Alarm(
        turn=turn,
        detector=speed,
        at=day.last_at,
        since=side.since or day.first_at,
        before=side.before,
        after=side.after,
        magnitude=change / deviation if deviation else math.copysign(CLIP, change),
    )
