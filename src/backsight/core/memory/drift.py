"""Drift: detect that the level of a series of outcomes or sizes changed, in which direction, and since when.

The test is the two-sided cumulative sum (CUSUM) of Page and Hinkley, on values standardised by the mean and deviation
of the values before them. A day in UTC counts as one value: the mean of its values, once the day is over.
"""

import math
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.statistics import Moments

Turn = Literal["up", "down"]

WARM_UP = 30
"""Daily values that only make the baseline."""
CLIP = 2.5
"""Largest absolute z."""
ALLOWANCE = 0.5
"""k of the CUSUM: half of the change to detect, in standard deviations."""
THRESHOLD = 10.0
"""h of the CUSUM: a sum above it raises an alarm."""
QUIET_DAYS = 100
"""Daily values without an alarm after which a fall no longer counts."""
LEAST_DEVIATION = 0.01
"""Smallest standard deviation, as a share of the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A change in the level of a series."""

    turn: Turn
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
    before: Moments = field(default_factory=Moments)
    after: Moments = field(default_factory=Moments)


_AT_ZERO = CumulativeSum()


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
    """The state of the test after the values so far."""

    past: Moments = field(default_factory=Moments)
    up: CumulativeSum = field(default_factory=CumulativeSum)
    down: CumulativeSum = field(default_factory=CumulativeSum)
    today: OpenDay | None = None
    latest: Alarm | None = None
    quiet: int = 0
    """Daily values since the latest alarm."""

    @property
    def degrading(self) -> bool:
        """Whether the latest alarm is a fall, less than a hundred daily values ago."""
        return self.latest is not None and self.latest.turn == "down" and self.quiet < QUIET_DAYS


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


def _with_today(detector: Detector, today: OpenDay) -> Detector:
    return Detector(
        past=detector.past,
        up=detector.up,
        down=detector.down,
        today=today,
        latest=detector.latest,
        quiet=detector.quiet,
    )


def _day_with_value(today: OpenDay | None, value: float, at: datetime) -> OpenDay:
    if today is None:
        return OpenDay(date=at.astimezone(UTC).date(), n=1, mean=value, first_at=at, last_at=at)
    n = today.n + 1
    mean = today.mean + (value - today.mean) / n
    return OpenDay(date=today.date, n=n, mean=mean, first_at=today.first_at, last_at=at)


def _judge(detector: Detector, day: OpenDay) -> Detector:
    """One CUSUM step, once a day is over: S ← max(0, S ± z − .5), an alarm above 10 (Page 1954, Hinkley 1971).

    The first 30 values only make the baseline. After an alarm the baseline is the values since t₀, and both sums are
    zero.
    """
    past, quiet = detector.past, detector.quiet + 1
    up, down = detector.up, detector.down
    if past.n < WARM_UP:
        return Detector(past=past.add(day.mean), up=up, down=down, latest=detector.latest, quiet=quiet)
    z = standardised(day.mean, past)
    up, down = _step(up, z, day, past), _step(down, -z, day, past)
    if max(up.total, down.total) <= THRESHOLD:
        return Detector(past=past.add(day.mean), up=up, down=down, latest=detector.latest, quiet=quiet)
    alarm = _alarm("up", up, day) if up.total > down.total else _alarm("down", down, day)
    return Detector(past=alarm.after, latest=alarm)


def _step(side: CumulativeSum, z: float, day: OpenDay, past: Moments) -> CumulativeSum:
    total = max(0.0, side.total + z - ALLOWANCE)
    if total == 0.0:
        return _AT_ZERO
    if side.total == 0.0:
        return CumulativeSum(total=total, since=day.first_at, before=past, after=Moments().add(day.mean))
    return CumulativeSum(total=total, since=side.since, before=side.before, after=side.after.add(day.mean))


def _alarm(turn: Turn, side: CumulativeSum, day: OpenDay) -> Alarm:
    change = side.after.mean - side.before.mean
    deviation = max(side.before.deviation or 0.0, LEAST_DEVIATION * abs(side.before.mean))
    return Alarm(
        turn=turn,
        at=day.last_at,
        since=side.since or day.first_at,
        before=side.before,
        after=side.after,
        magnitude=change / deviation if deviation else math.copysign(CLIP, change),
    )
