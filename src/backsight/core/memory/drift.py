"""Drift: when a series of outcomes or sizes stopped being what it was, in which direction, and since when.

The test is Page's and Hinkley's cumulative sum, two-sided, on values standardised by their own past. One value is one
UTC day: where several came on a day, their mean, known when the day is over.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.statistics import Moments

Turn = Literal["up", "down"]

SKIPPED = 30
CLIP = 2.5
ALLOWANCE = 0.5
THRESHOLD = 10.0
QUIET = 100
LEAST_DEVIATION = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """That the level of a series has changed."""

    turn: Turn
    at: datetime
    """When the last value of the day became known that raised it."""
    since: datetime
    """t₀: when the first value after the change became known, as far as can be told."""
    before: Moments
    """Of the values before t₀."""
    after: Moments
    """Of the values from t₀ to the alarm."""
    magnitude: float
    """By how much the mean has moved, in standard deviations of the values before; its sign is the direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeSum:
    """The cumulative sum in one direction, and what lies on either side of where it last left zero."""

    total: float = 0.0
    since: datetime | None = None
    before: Moments = field(default_factory=Moments)
    after: Moments = field(default_factory=Moments)


_AT_ZERO = CumulativeSum()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDay:
    """The values of a day that is not over."""

    date: date
    n: int
    mean: float
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """Where the test stands after the values seen so far."""

    past: Moments = field(default_factory=Moments)
    up: CumulativeSum = field(default_factory=CumulativeSum)
    down: CumulativeSum = field(default_factory=CumulativeSum)
    today: OpenDay | None = None
    latest: Alarm | None = None
    quiet: int = 0
    """Daily values since the latest alarm."""

    @property
    def degrading(self) -> bool:
        """Whether a fall stands: until a rise, or a hundred values without an alarm."""
        return self.latest is not None and self.latest.turn == "down" and self.quiet < QUIET


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftUpdate:
    """A detector after more values, and the alarms they raised."""

    detector: Detector
    alarms: tuple[Alarm, ...] = ()


def watch(detector: Detector, value: float, *, at: datetime) -> DriftUpdate:
    """The detector after one more value, in the order in which values become known.

    The value joins those of its day; the day before, now over, is judged.

    >>> from datetime import timedelta
    >>> t0 = datetime(2026, 1, 1, tzinfo=UTC)
    >>> values = [1.0, -1.0] * 50 + [-3.0] * 20
    >>> watched = watch_all(((t0 + timedelta(days=n), value) for n, value in enumerate(values)))
    >>> [(alarm.turn, (alarm.since - t0).days, (alarm.at - t0).days) for alarm in watched.alarms]
    [('down', 99, 104)]
    """
    if not math.isfinite(value):
        raise Invalid(f"{value} cannot be watched; give a finite number", field="value")
    today = detector.today
    if today is not None and at < today.last_at:
        late = f"a value of {format_instant(at)} is earlier than the last one, of {format_instant(today.last_at)}"
        raise Invalid(f"{late}; watch all anew in order", field="at")
    settled = settle(detector, now=at)
    held = settled.detector
    return DriftUpdate(detector=_with_today(held, _joined(held.today, value, at)), alarms=settled.alarms)


def watch_all(values: Iterable[tuple[datetime, float]], *, detector: Detector | None = None) -> DriftUpdate:
    """The detector after these instants and values, in the order in which they became known."""
    held, alarms = detector or Detector(), list[Alarm]()
    for at, value in values:
        watched = watch(held, value, at=at)
        held = watched.detector
        alarms += watched.alarms
    return DriftUpdate(detector=held, alarms=tuple(alarms))


def settle(detector: Detector, *, now: datetime) -> DriftUpdate:
    """The detector as it stands at an instant: the values of a day count once the day is over.

    Reading settled or not changes nothing in what comes after.
    """
    today = detector.today
    if today is None or now.astimezone(UTC).date() <= today.date:
        return DriftUpdate(detector=detector)
    judged = _judge(detector, today)
    return DriftUpdate(detector=judged, alarms=() if judged.latest is detector.latest else (judged.latest,))  # type: ignore[arg-type]


def standardised(value: float, past: Moments) -> float:
    """z: a value by the mean and deviation of all before it, clipped at ±2.5.

    The deviation counts as at least 1 % of the mean, so that sizes that never varied do not alarm by a rounding.

    >>> from backsight.core.statistics import moments_of
    >>> [standardised(value, moments_of([1.0, 2.0, 3.0])) for value in (2.5, 9.0)]
    [0.5, 2.5]
    """
    deviation = max(past.deviation or 0.0, LEAST_DEVIATION * abs(past.mean))
    off = value - past.mean
    if deviation == 0.0:
        return math.copysign(CLIP, off) if off else 0.0
    return max(-CLIP, min(CLIP, off / deviation))


def _with_today(held: Detector, today: OpenDay) -> Detector:
    return Detector(past=held.past, up=held.up, down=held.down, today=today, latest=held.latest, quiet=held.quiet)


def _joined(today: OpenDay | None, value: float, at: datetime) -> OpenDay:
    if today is None:
        return OpenDay(date=at.astimezone(UTC).date(), n=1, mean=value, first_at=at, last_at=at)
    n = today.n + 1
    mean = today.mean + (value - today.mean) / n
    return OpenDay(date=today.date, n=n, mean=mean, first_at=today.first_at, last_at=at)


def _judge(detector: Detector, day: OpenDay) -> Detector:
    """One step of the test, once a day is over: S ← max(0, S ± z − .5), an alarm above 10 (Page 1954, Hinkley 1971).

    The first 30 values only make the past. After an alarm the past is what came since t₀, and both sums are zero.
    """
    past, quiet = detector.past, detector.quiet + 1
    up, down = detector.up, detector.down
    if past.n < SKIPPED:
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
    moved = side.after.mean - side.before.mean
    deviation = max(side.before.deviation or 0.0, LEAST_DEVIATION * abs(side.before.mean))
    return Alarm(
        turn=turn,
        at=day.last_at,
        since=side.since or day.first_at,
        before=side.before,
        after=side.after,
        magnitude=moved / deviation if deviation else math.copysign(CLIP, moved),
    )
