"""Drift: detect that the level of a series of outcomes or sizes changed, in which direction, and since when.

Two detectors watch each series, both two-sided cumulative sums (CUSUM) of Page and Hinkley on values standardised by
the mean and deviation of the values before them. The fast detector finds a change of one standard deviation within
weeks; the slow detector finds half a standard deviation within 200 values. A day in UTC counts as one value: the mean
of its values, once the day is over. Where days follow each other in level, steps are smaller, so that a good week is no
change. `docs/decisions/0026-watch-list-and-slow-drift.md` has the measured rates.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Literal, NamedTuple

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.statistics import Moments

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
DETECTABLE_DAYS = 200
"""The longest recent period for which a detectable change is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The two constants of a CUSUM, in standard deviations."""

    allowance: float
    """k: half of the change to detect, taken from every step."""
    threshold: float
    """h: a sum above it raises an alarm."""
    freezes_inflation: bool
    """Whether a sum uses the inflation of when it left zero, so that a sudden jump is not taken for persistence."""


CHARTS: Mapping[Speed, Chart] = {
    "fast": Chart(allowance=0.5, threshold=10.0, freezes_inflation=True),
    "slow": Chart(allowance=0.15, threshold=28.0, freezes_inflation=False),
}
"""Together at most 5 % of 1,000 stationary values raise any alarm."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSum:
    """The CUSUM in one direction, and the values before and after the instant at which it last left zero."""

    total: float = 0.0
    since: datetime | None = None
    inflation: float = 1.0
    """Of the values before."""
    before: Moments = field(default_factory=Moments)
    after: Moments = field(default_factory=Moments)


_AT_ZERO = CumulativeSum()


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSidedSum:
    """The sums of one detector: upward and downward."""

    up: CumulativeSum = _AT_ZERO
    down: CumulativeSum = _AT_ZERO


_NEW_SUMS = TwoSidedSum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Persistence:
    """How much the level of a day carries over to the next: the lag-1 autocorrelation of z."""

    n: int = 0
    last: float = 0.0
    products: float = 0.0
    """Σ z_t · z_{t−1}."""
    squares: float = 0.0
    """Σ z_t²."""

    def add(self, z: float) -> "Persistence":
        """The autocorrelation with one more z."""
        return Persistence(n=self.n + 1, last=z, products=self.products + z * self.last, squares=self.squares + z * z)

    @property
    def autocorrelation(self) -> float:
        """r, from 0 to .9; a negative autocorrelation counts as 0.

        z² is 1 in the mean. The divisor is at least n, so that the first jump in a constant series is no persistence.
        """
        return max(0.0, min(MOST_PERSISTENCE, self.products / max(self.squares, self.n))) if self.n else 0.0

    @property
    def inflation(self) -> float:
        """By how much a sum of such values varies more than one of independent values: √((1 + r) / (1 − r)).

        >>> Persistence(n=10, products=6.0, squares=10.0).inflation
        2.0
        """
        r = self.autocorrelation
        return math.sqrt((1.0 + r) / (1.0 - r))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDay:
    """The values of the current day, which is not over."""

    date: date
    n: int
    mean: float
    first_at: datetime
    last_at: datetime


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

    @property
    def degrading(self) -> bool:
        """Whether the latest alarm is a fall, and the values since then are not clearly above 0 by themselves."""
        if self.latest is None or self.latest.turn == "up":
            return False
        interval = self.past.interval()
        if interval is None or self.past.mean <= 0.0:
            return True
        return (self.past.mean - interval[0]) * self.persistence.inflation >= self.past.mean


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableChange:
    """The smallest change that both detectors together would have found with probability one half or more."""

    days: int
    """The latest days with trades, throughout which the change would have lasted."""
    deviations: float
    """Its size in standard deviations of a day's mean, up or down."""
    size: float
    """The same in the unit of the series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftUpdate:
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
    [('down', 99, 104)]
    """
    if not math.isfinite(value):
        raise Invalid(f"{value} cannot be watched; give a finite number", field="value")
    today = detector.today
    if today is not None and at < today.last_at:
        late = f"the value at {format_instant(at)} is earlier than the last value, at {format_instant(today.last_at)}"
        raise Invalid(f"{late}; watch all values again in order", field="at")
    settled = settle(detector, now=at)
    today = _day_with_value(settled.detector.today, value, at)
    return DriftUpdate(detector=_with_today(settled.detector, today), alarms=settled.alarms)


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

    The deviation is at least 1 % of the mean, so that a rounding difference in constant sizes raises no alarm.

    >>> from backsight.core.statistics import moments_of
    >>> [standardised(value, moments_of([1.0, 2.0, 3.0])) for value in (2.5, 9.0)]
    [0.5, 2.5]
    """
    deviation = max(past.deviation or 0.0, LEAST_DEVIATION * abs(past.mean))
    difference = value - past.mean
    if deviation == 0.0:
        return math.copysign(CLIP, difference) if difference else 0.0
    return max(-CLIP, min(CLIP, difference / deviation))


def detectable_change(detector: Detector) -> DetectableChange | None:
    """The smallest change that would have been found by now, had it lasted for half of the days, at most 200.

    None with fewer than 60 days, and where no change would have been found. It follows from the mean path of both
    sums.

    >>> steady = Detector(past=Moments(n=400, mean=0.2, squares=4.0 * 399))
    >>> change = detectable_change(steady)
    >>> change.days, round(change.deviations, 2), round(change.size, 2)
    (200, 0.44, 0.88)
    """
    days = min(DETECTABLE_DAYS, detector.past.n // 2)
    deviation = detector.past.deviation
    if days < WARM_UP or not deviation:
        return None
    deviations = _smallest_found(detector.past.n - days, days)
    if deviations is None:
        return None
    deviations *= detector.persistence.inflation
    return DetectableChange(days=days, deviations=deviations, size=deviations * deviation)


@lru_cache(maxsize=1024)
def _smallest_found(before: int, days: int) -> float | None:
    """The smallest change, in standard deviations, whose mean path crosses a threshold; None above the clipped z."""
    low, high = 0.0, CLIP
    if not _is_found(high, before, days):
        return None
    while high - low > 1e-3:
        middle = (low + high) / 2.0
        low, high = (low, middle) if _is_found(middle, before, days) else (middle, high)
    return high


def _is_found(change: float, before: int, days: int) -> bool:
    """Whether the mean path of either sum crosses its threshold when the level changes after `before` values.

    The change itself moves the baseline: its mean, its deviation and its autocorrelation.
    """
    totals, products = dict.fromkeys(CHARTS, 0.0), 0.0
    for day in range(days):
        n = before + day
        share = day / n
        z = min(CLIP, change * (1.0 - share) / math.sqrt(1.0 + change * change * share * (1.0 - share)))
        inflation = Persistence(n=n, products=products, squares=n + products).inflation
        for speed, chart in CHARTS.items():
            step = z if chart.freezes_inflation else z / inflation
            totals[speed] = max(0.0, totals[speed] + step - chart.allowance)
            if totals[speed] > chart.threshold:
                return True
        products += z * z
    return False


def _with_today(detector: Detector, today: OpenDay) -> Detector:
    return Detector(
        past=detector.past,
        persistence=detector.persistence,
        fast=detector.fast,
        slow=detector.slow,
        today=today,
        latest=detector.latest,
    )


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
        step = _Step(z=z, inflation=persistence.inflation, day=day, past=past)
        fast, slow = _both_sides(fast, step, CHARTS["fast"]), _both_sides(slow, step, CHARTS["slow"])
        if (alarm := _alarm(fast, slow, day)) is not None:
            return Detector(past=alarm.after, persistence=persistence.add(z), latest=alarm)
    return Detector(
        past=past.add(day.mean), persistence=persistence.add(z), fast=fast, slow=slow, latest=detector.latest
    )


class _Step(NamedTuple):
    """A day as the sums take it."""

    z: float
    inflation: float
    day: OpenDay
    past: Moments


def _both_sides(sums: TwoSidedSum, step: _Step, chart: Chart) -> TwoSidedSum:
    return TwoSidedSum(up=_add(sums.up, step.z, step, chart), down=_add(sums.down, -step.z, step, chart))


def _add(side: CumulativeSum, z: float, step: _Step, chart: Chart) -> CumulativeSum:
    """S ← max(0, S + z / inflation − k)."""
    is_new = side.total == 0.0
    inflation = step.inflation if is_new or not chart.freezes_inflation else side.inflation
    total = max(0.0, side.total + z / inflation - chart.allowance)
    if total == 0.0:
        return _AT_ZERO
    return CumulativeSum(
        total=total,
        since=step.day.first_at if is_new else side.since,
        inflation=inflation,
        before=step.past if is_new else side.before,
        after=side.after.add(step.day.mean),
    )


def _alarm(fast: TwoSidedSum, slow: TwoSidedSum, day: OpenDay) -> Alarm | None:
    """The alarm of the sum that exceeds its threshold by most; None if none exceeds its own."""
    sums: list[tuple[Speed, Turn, CumulativeSum]] = [
        ("fast", "up", fast.up),
        ("fast", "down", fast.down),
        ("slow", "up", slow.up),
        ("slow", "down", slow.down),
    ]
    speed, turn, side = max(sums, key=lambda each: each[2].total / CHARTS[each[0]].threshold)
    if side.total <= CHARTS[speed].threshold:
        return None
    change = side.after.mean - side.before.mean
    deviation = max(side.before.deviation or 0.0, LEAST_DEVIATION * abs(side.before.mean))
    return Alarm(
        turn=turn,
        detector=speed,
        at=day.last_at,
        since=side.since or day.first_at,
        before=side.before,
        after=side.after,
        magnitude=change / deviation if deviation else math.copysign(CLIP, change),
    )
