"""Instants: aware, UTC, to the microsecond; one spelling everywhere."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backsight.core.errors import Invalid

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JUST_BEFORE = timedelta(microseconds=1)
"""The finest step of time there is: what happened before a tick, and what a tick may know, end this far from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """How far a read can see: what the world knew by `as_of`, of what this store had recorded by `seen_at`."""

    as_of: datetime
    seen_at: datetime | None = None
    """None: everything recorded, whatever the clock says."""

    def holds(self, known_at: datetime, recorded_at: datetime) -> bool:
        """Whether something was known and recorded by then."""
        return known_at <= self.as_of and (self.seen_at is None or recorded_at <= self.seen_at)


def to_utc(at: datetime, *, field: str = "time") -> datetime:
    """The same instant in UTC; a naive time is refused, since it names no instant.

    >>> to_utc(datetime.fromisoformat("2026-06-04T12:00:00+02:00")).isoformat()
    '2026-06-04T10:00:00+00:00'
    >>> to_utc(datetime(2026, 6, 4), field="as_of")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: as_of: 2026-06-04T00:00:00 has no time zone; add one, like 2026-06-04T00:00:00Z
    """
    if at.tzinfo is None or at.utcoffset() is None:
        stamp = at.isoformat()
        raise Invalid(f"{stamp} has no time zone; add one, like {stamp}Z", field=field)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise Invalid(f"{at.isoformat()} is out of range; give a year from 1 to 9999", field=field) from None


def parse_instant(text: str, *, field: str = "time") -> datetime:
    """An instant from ISO 8601 text with a zone.

    >>> parse_instant("2026-06-04T10:00:00.5Z")
    datetime.datetime(2026, 6, 4, 10, 0, 0, 500000, tzinfo=datetime.timezone.utc)
    """
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        shown = text if len(text) <= 40 else text[:40] + "…"
        remedy = "give an instant like 2026-06-04T10:00:00Z"
        raise Invalid(f"{shown!r} is not an ISO 8601 time; {remedy}", field=field) from None
    return to_utc(at, field=field)


def format_instant(at: datetime) -> str:
    """Fixed-width text that sorts as time does.

    >>> format_instant(datetime(2026, 6, 4, 10, tzinfo=UTC))
    '2026-06-04T10:00:00.000000Z'
    """
    utc = at if at.tzinfo is UTC else at.astimezone(UTC)
    return utc.isoformat("T", "microseconds")[:26] + "Z"


def days_between(earlier: datetime, later: datetime) -> float:
    """Days from one instant to a later one; never negative.

    >>> days_between(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 12, tzinfo=UTC))
    1.5
    """
    return max(0.0, (later - earlier) / timedelta(days=1))
