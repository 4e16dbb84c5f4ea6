"""Cron expressions: minute, hour, day of the month, month and day of the week, in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from backsight.core.errors import Invalid

MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, 1)}
DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
FIELDS: tuple[tuple[str, int, int, Mapping[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, MONTHS),
    ("day of the week", 0, 7, DAYS),
)
SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
LONGEST_WAIT = timedelta(days=366 * 8 + 3)
"""A 29 February is at most eight years away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronExpression:
    """The instants at which something is due."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either_day: bool
    """Both days are restricted: a day that fits one of them is due, as cron has it."""

    def next_after(self, at: datetime) -> datetime | None:
        """The first due instant after an instant; None if there is none.

        >>> from datetime import UTC
        >>> parse_cron("30 9 * * mon-fri").next_after(datetime(2026, 6, 5, 10, tzinfo=UTC)).isoformat()
        '2026-06-08T09:30:00+00:00'
        """
        last = at + LONGEST_WAIT
        day = at.replace(hour=0, minute=0, second=0, microsecond=0)
        while day <= last:
            if self._is_due_on(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        due = day.replace(hour=hour, minute=minute)
                        if due > at:
                            return due
            day += timedelta(days=1)
        return None

    def _is_due_on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either_day else by_date and by_weekday


def parse_cron(text: str, *, field: str = "schedule", now: datetime | None = None) -> CronExpression:
    """The expression that a text means; `Invalid` if it means none, or if it never fires after `now`.

    >>> parse_cron("*/15 8-10 * * *").hours
    frozenset({8, 9, 10})
    >>> parse_cron("61 * * * *")
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: schedule: the minute '61' is not within 0 to 59
    """
    parts = SHORTHANDS.get(text.strip().lower(), text).split()
    if len(parts) != len(FIELDS):
        remedy = "give minute, hour, day, month and weekday, like '*/15 * * * mon-fri', or 'off'"
        raise Invalid(f"{text[:40]!r} has {len(parts)} parts instead of five; {remedy}", field=field)
    values = [_values(part.lower(), *each, field=field) for part, each in zip(parts, FIELDS, strict=True)]
    expression = CronExpression(
        text=text.strip(),
        minutes=values[0],
        hours=values[1],
        days=values[2],
        months=values[3],
        weekdays=frozenset(day % 7 for day in values[4]),
        either_day=not parts[2].startswith("*") and not parts[4].startswith("*"),
    )
    if now is not None and expression.next_after(now) is None:
        raise Invalid(f"{text[:40]!r} never fires: no such day comes; give another day or month", field=field)
    return expression


def _values(text: str, name: str, low: int, high: int, words: Mapping[str, int], *, field: str) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, name, {}, field=field) if slash else 1
        if step < 1:
            raise Invalid(f"the step of the {name} {part!r} is below 1", field=field)
        if span == "*":
            first, last = low, high
        else:
            start, dash, end = span.partition("-")
            first = _number(start, name, words, field=field)
            last = _number(end, name, words, field=field) if dash else high if slash else first
            if dash and words is DAYS and last == 0 < first:
                last = high  # a week that is counted from Monday ends on a Sunday, as in mon-sun
        if not (low <= first <= last <= high):
            raise Invalid(f"the {name} {part!r} is not within {low} to {high}", field=field)
        values.update(range(first, last + 1, step))
    return frozenset(values)


def _number(text: str, name: str, words: Mapping[str, int], *, field: str) -> int:
    if text in words:
        return words[text]
    if not text.isdecimal() or len(text) > 4:
        raise Invalid(f"the {name} {text[:20]!r} is not a number", field=field)
    return int(text)
