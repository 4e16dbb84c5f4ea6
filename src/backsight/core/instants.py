"""Instants: UTC datetimes with microseconds, and the one text format for them."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backsight.core.errors import Invalid

PLAIN_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
"""A date without a time, as text."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JUST_BEFORE = timedelta(microseconds=1)
"""One microsecond, the resolution of instants. A tick reads memory as of this long before it."""
CLOCK_SKEW = timedelta(seconds=60)
"""How far a caller's clock may run ahead of ours before its times are refused as future."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """Limits of a read: facts known by `as_of` and recorded in this store by `seen_at`."""

    as_of: datetime
    seen_at: datetime | None = None
    """None: no limit on the time of recording."""

    def holds(self, known_at: datetime, recorded_at: datetime) -> bool:
        """Whether a fact with these instants lies within the horizon, inclusive."""
        return known_at <= self.as_of and (self.seen_at is None or recorded_at <= self.seen_at)


def to_utc(at: datetime, *, field: str = "time") -> datetime:
    """The same instant in UTC; a time without a zone is refused, because it names no instant.

    >>> to_utc(datetime.fromisoformat("2026-06-04T12:00:00+02:00")).isoformat()
    '2026-06-04T10:00:00+00:00'
    >>> to_utc(datetime(2026, 6, 4), field="as_of")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: as_of: 2026-06-04T00:00:00 has no time zone; add one, like 2026-06-04T00:00:00Z
    """
    if at != at:
        raise Invalid("NaT is not a time; give an instant, or leave it out if it is not known", field=field)
    if type(at) is not datetime:  # a subclass, like a Timestamp of pandas, has arithmetic of its own
        parts = (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)
        at = datetime(*parts, tzinfo=at.tzinfo, fold=at.fold)
    if at.tzinfo is None or at.utcoffset() is None:
        stamp = at.isoformat()
        raise Invalid(f"{stamp} has no time zone; add one, like {stamp}Z", field=field)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise Invalid(f"{at.isoformat()} is out of range; give a year from 1 to 9999", field=field) from None


def parse_instant(text: str, *, field: str = "time") -> datetime:
    """Parse an instant from ISO 8601 text that has a time zone.

    >>> parse_instant("2026-06-04T10:00:00.5Z")
    datetime.datetime(2026, 6, 4, 10, 0, 0, 500000, tzinfo=datetime.timezone.utc)
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        excerpt = text if len(text) <= 40 else text[:40] + "…"
        remedy = "give an instant like 2026-06-04T10:00:00Z"
        raise Invalid(f"{excerpt!r} is not an ISO 8601 time; {remedy}", field=field) from None
    return to_utc(at, field=field)


def format_instant(at: datetime) -> str:
    """ISO 8601 text of fixed width; it sorts in time order.

    >>> format_instant(datetime(2026, 6, 4, 10, tzinfo=UTC))
    '2026-06-04T10:00:00.000000Z'
    """
    utc = at if at.tzinfo is UTC else at.astimezone(UTC)
    return utc.isoformat("T", "microseconds")[:26] + "Z"


def nearest_minute(at: datetime) -> datetime:
    """The instant to show where only minutes are shown: the last microsecond of a minute counts to the next minute.

    What happened between two ticks and was not reported is recorded a microsecond before the second tick.

    >>> nearest_minute(datetime(2026, 6, 4, 9, 59, 59, 999_999, tzinfo=UTC)).strftime("%H:%M")
    '10:00'
    >>> nearest_minute(datetime(2026, 6, 4, 9, 59, 59, tzinfo=UTC)).strftime("%H:%M")
    '09:59'
    """
    is_last = at.second == 59 and at.microsecond == 999_999
    return at + JUST_BEFORE if is_last and at.year < 9999 else at


def days_between(earlier: datetime, later: datetime) -> float:
    """Days from one instant to a later one; 0 if the second is earlier.

    >>> days_between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 12, tzinfo=UTC))
    1.5
    """
    return max(0.0, (later - earlier) / timedelta(days=1))
