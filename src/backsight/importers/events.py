"""Market events from a CSV, JSON or iCalendar file; recurring events of a calendar are expanded within bounds."""

import csv
import io
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice, takewhile
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from backsight.core.errors import Invalid, NotFound, Unavailable
from backsight.core.events import MOST_SYMBOLS, USUAL_IMPORTANCE, EventKind, checked_kind, kind_from_title
from backsight.core.text.untrusted_text import flat

MOST_BYTES = 20_000_000
MOST_EVENTS = 100_000
MOST_OCCURRENCES = 500
"""Occurrences of one recurring event; of more, those nearest to now."""
MOST_EXPANDED = 10_000
"""Occurrences that are looked at to find these."""
EXPANDED_BACK, EXPANDED_AHEAD = timedelta(days=5 * 365), timedelta(days=366)
FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
MOST_TITLE, MOST_VALUE = 200, 40
IMPORTANCE_WORDS = {"low": 0.2, "medium": 0.5, "moderate": 0.5, "high": 0.8}
NAMES: Mapping[str, tuple[str, ...]] = {
    "at": ("scheduled_at", "time", "date", "datetime", "at"),
    "kind": ("kind", "type"),
    "title": ("title", "event", "name", "summary"),
    "symbols": ("symbols", "symbol", "currency", "assets"),
    "importance": ("importance", "impact"),
    "source_id": ("source_id", "id", "uid"),
    "actual": ("actual",),
    "forecast": ("forecast", "consensus"),
    "previous": ("previous", "prior"),
}
"""The fields of an event, and the names of columns that have them."""
CANCELLED = "CANCELLED"
"""A status of iCalendar. No column of a file has this name, because names of columns are read in lower case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """An event of a file."""

    kind: EventKind
    scheduled_at: datetime
    symbols: tuple[str, ...]
    importance: float
    title: str
    source_id: str | None
    actual: str | None
    forecast: str | None
    previous: str | None
    cancelled: bool = False
    """The calendar says that the event does not take place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsRead:
    """The events of a file, and what was not taken as it is."""

    rows: tuple[EventRow, ...]
    notes: tuple[str, ...]


def read_events(path: str, *, timezone: str | None, now: datetime) -> EventsRead:
    """The events of a file; `Invalid` names the first row that is wrong."""
    file = Path(path)
    zone = _zone(timezone)
    content = _content(file)
    notes: list[str] = []
    start = content.lstrip("\ufeff \r\n\t")[:20]
    if start.upper().startswith("BEGIN:VCALENDAR"):
        objects: Iterable[tuple[int, Mapping[str, Any]]] = _calendar_rows(content, zone, now, notes)
    elif start[:1] in ("[", "{"):
        objects = _json_rows(content)
    else:
        objects = _csv_rows(content)
    rows: list[EventRow] = []
    for number, fields in objects:
        if len(rows) >= MOST_EVENTS:
            raise Invalid(f"the file has more than {MOST_EVENTS:,} events; split it", field="path")
        rows.append(_row(number, fields, zone))
    if not rows:
        raise Invalid("the file has no events; give CSV, JSON or iCalendar with a time and a title", field="path")
    return EventsRead(rows=tuple(rows), notes=tuple(notes))


def _zone(name: str | None) -> tzinfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(f"{name[:40]!r} is not a time zone; give one like Europe/Berlin", field="timezone") from None


def _content(file: Path) -> str:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise Invalid(
                f"the file has {file.stat().st_size / 1e6:,.0f} MB; give at most {MOST_BYTES // 1_000_000}",
                field="path",
            )
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}; give a CSV, JSON or iCalendar file", field="path") from None
    except UnicodeDecodeError:
        raise Invalid("the file is not text in UTF-8; save it as UTF-8", field="path") from None
    except OSError as error:
        raise Invalid(f"{file} cannot be read ({error.strerror}); give another file", field="path") from None


def _csv_rows(content: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    delimiter = ";" if content.partition("\n")[0].count(";") > content.partition("\n")[0].count(",") else ","
    reader = csv.DictReader(io.StringIO(content), delimiter=delimiter)
    try:
        for row in reader:
            yield (
                reader.line_num,
                {(name or "").strip().lower(): value for name, value in row.items() if isinstance(value, str)},
            )
    except csv.Error as error:
        raise Invalid(f"line {reader.line_num}: not CSV ({error})", field="path") from None


def _json_rows(content: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        objects = json.loads(content)
    except (ValueError, RecursionError):
        raise Invalid("the file is not JSON; give a list of objects", field="path") from None
    if isinstance(objects, dict):
        objects = objects.get("events")
    if not isinstance(objects, list):
        raise Invalid('the file has no list of events; give [{...}] or {"events": [...]}', field="path")
    for number, fields in enumerate(objects, start=1):
        if not isinstance(fields, dict):
            raise Invalid(f"event {number}: not an object with named fields", field="path")
        yield number, {str(name).lower(): value for name, value in fields.items()}


def _value(fields: Mapping[str, Any], field: str) -> Any:
    """The first value of a field, by the names that columns have for it."""
    values = (fields.get(name) for name in NAMES[field])
    return next((value for value in values if value is not None and str(value).strip()), None)


def _row(number: int, fields: Mapping[str, Any], zone: tzinfo | None) -> EventRow:
    try:
        title = flat(str(_value(fields, "title") or ""))[:MOST_TITLE]
        kind_text = _value(fields, "kind")
        if not title and kind_text is None:
            raise Invalid("neither a title nor a kind; give a column title or kind", field="title")
        kind = kind_from_title(title) if kind_text is None else checked_kind(str(kind_text))
        source_id = _value(fields, "source_id")
        return EventRow(
            kind=kind,
            scheduled_at=_instant(_value(fields, "at"), zone),
            symbols=_symbols(_value(fields, "symbols")),
            importance=_importance(_value(fields, "importance"), kind),
            title=title or kind,
            source_id=None if source_id is None else flat(str(source_id))[:MOST_TITLE],
            actual=_text(_value(fields, "actual")),
            forecast=_text(_value(fields, "forecast")),
            previous=_text(_value(fields, "previous")),
            cancelled=fields.get(CANCELLED) is True,
        )
    except Invalid as error:
        reason = error.message.removeprefix(f"{error.field}: ")
        raise Invalid(f"row {number}: {reason}", field="path") from None


def _instant(value: Any, zone: tzinfo | None) -> datetime:
    if value is None:
        raise Invalid("the time is missing; give a column scheduled_at", field="path")
    if isinstance(value, datetime):
        at = value
    else:
        try:
            at = datetime.fromisoformat(str(value).strip())
        except ValueError:
            raise Invalid(f"{str(value)[:40]!r} is not a time like 2026-06-04T12:30:00Z", field="path") from None
    if at.tzinfo is None and zone is None:
        raise Invalid(
            f"{at.isoformat()} has no time zone; give one in the file, or the argument timezone", field="path"
        )
    try:
        return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        raise Invalid(
            f"{str(value)[:40]!r} is no time that can be stored; give one nearer to today", field="path"
        ) from None


def _symbols(value: Any) -> tuple[str, ...]:
    names = value if isinstance(value, list) else re.split(r"[\s,;|]+", str(value)) if value is not None else []
    symbols = tuple(dict.fromkeys(str(name).strip().upper() for name in names if str(name).strip()))
    if len(symbols) > MOST_SYMBOLS:
        raise Invalid(f"{len(symbols):,} symbols; give at most {MOST_SYMBOLS}, or none for everything", field="path")
    bad = next((each for each in symbols if len(each) > 64 or not each.isprintable()), None)
    if bad is not None:
        raise Invalid(f"{bad[:40]!r} is not a symbol", field="path")
    return symbols


def _importance(value: Any, kind: EventKind) -> float:
    if value is None:
        return USUAL_IMPORTANCE.get(kind, 0.4)
    word = str(value).strip().lower()
    if word in IMPORTANCE_WORDS:
        return IMPORTANCE_WORDS[word]
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise Invalid(f"importance {word[:20]!r} is out of range; give 0 to 1, or low, medium or high", field="path")
    return number


def _text(value: Any) -> str | None:
    return None if value is None else flat(str(value))[:MOST_VALUE] or None


# iCalendar


def _calendar_rows(
    content: str, zone: tzinfo | None, now: datetime, notes: list[str]
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        import icalendar
    except ImportError:
        raise Unavailable(
            "iCalendar files need a parser; pip install 'backsight[calendars]', or give CSV or JSON", field="path"
        ) from None
    try:
        calendar = icalendar.Calendar.from_ical(content)
        components = list(calendar.walk("VEVENT"))
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Invalid(f"the calendar cannot be read ({str(error)[:80]}); export it again", field="path") from None
    moved = _moved_occurrences(components, zone)
    for number, component in enumerate(components, start=1):
        start = component.get("DTSTART")
        if start is None:
            raise Invalid(f"event {number} of the calendar has no start", field="path")
        title, uid = str(component.get("SUMMARY", "")), str(component.get("UID", "")) or None
        categories = component.get("CATEGORIES")
        labels = [] if categories is None else [str(each) for each in getattr(categories, "cats", [categories])]
        about = {"title": title, "symbols": _known_symbols(labels), **_kind_label(labels)}
        is_cancelled = str(component.get("STATUS", "")).strip().upper() == CANCELLED
        first = _start(start.dt, zone, number)
        instance = component.get("RECURRENCE-ID")
        if instance is not None:
            own_id = _occurrence_id(uid, _start(instance.dt, first.tzinfo, number))
            if "RANGE" in instance.params:
                notes.append(f"Event {number} changes all later ones of its series: only the first of them is changed.")
            yield number, {**about, "at": first, "source_id": own_id, CANCELLED: is_cancelled}
            continue
        if component.get("RDATE") is not None:
            notes.append(f"Event {number} has dates beside its rule (RDATE), which are left out.")
        excluded = _excluded(component, first.tzinfo, number)
        for at in _occurrences(number, component, first, now, notes):
            if _is_one_of(at, moved.get(uid or "", ())):
                continue
            own_id = uid if component.get("RRULE") is None else _occurrence_id(uid, at)
            yield number, {**about, "at": at, "source_id": own_id, CANCELLED: is_cancelled or _is_one_of(at, excluded)}


def _occurrence_id(uid: str | None, at: datetime) -> str | None:
    """The id of one occurrence of a recurring event, by the instant that its rule gives it."""
    return None if uid is None else f"{uid}/{at.astimezone(UTC).isoformat()}"


def _moved_occurrences(components: Iterable[Any], zone: tzinfo | None) -> Mapping[str, set[date]]:
    """The occurrences that have an event of their own, by the UID of their series."""
    moved: dict[str, set[date]] = {}
    for number, component in enumerate(components, start=1):
        instance, start = component.get("RECURRENCE-ID"), component.get("DTSTART")
        if instance is not None and start is not None:
            own_zone = _start(start.dt, zone, number).tzinfo
            moved.setdefault(str(component.get("UID", "")), set()).add(_instant_or_day(instance.dt, own_zone))
    return moved


def _excluded(component: Any, zone: tzinfo | None, number: int) -> set[date]:
    """The instants and days that the EXDATEs of a recurring event exclude."""
    lists = component.get("EXDATE", [])
    try:
        dates = [each.dt for dates in (lists if isinstance(lists, list) else [lists]) for each in dates.dts]
    except AttributeError:
        raise Invalid(f"event {number} of the calendar has an EXDATE that cannot be read", field="path") from None
    return {_instant_or_day(each, zone) for each in dates}


def _instant_or_day(at: datetime | date, zone: tzinfo | None) -> date:
    """A date as it is; an instant with the zone of its event, if it has none."""
    return at.replace(tzinfo=zone) if isinstance(at, datetime) and at.tzinfo is None else at


def _is_one_of(at: datetime, dates: Collection[date]) -> bool:
    """Whether an occurrence is at one of the instants, or on one of the days."""
    return at in dates or at.date() in dates


def _known_symbols(labels: list[str]) -> list[str]:
    """Of the categories of an event those that are tickers."""
    return [
        label.strip()
        for label in labels
        if re.fullmatch(r"[A-Z0-9./:-]{2,15}", label.strip()) and not _kind_label([label])
    ]


def _kind_label(labels: list[str]) -> dict[str, str]:
    for label in labels:
        name = label.strip().lower().replace(" ", "_")
        if name in USUAL_IMPORTANCE or kind_from_title(label) != "other":
            return {"kind": name if name in USUAL_IMPORTANCE else kind_from_title(label)}
    return {}


def _start(at: datetime | date, zone: tzinfo | None, number: int) -> datetime:
    """The start of an event; an event of a whole day starts at its midnight in the given zone."""
    if not isinstance(at, datetime):
        at = datetime.combine(at, time())
    if at.tzinfo is None and zone is None:
        raise Invalid(f"event {number} of the calendar has no time zone; give the argument timezone", field="path")
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)


def _occurrences(number: int, component: Any, start: datetime, now: datetime, notes: list[str]) -> Iterable[datetime]:
    """The instants of an event: one, or those of its rule within five years back and one year ahead."""
    rule = component.get("RRULE")
    if rule is None:
        return [start]
    from dateutil.rrule import rrulestr

    written = rule.to_ical().decode() if hasattr(rule, "to_ical") else str(rule)
    written = re.sub(r"UNTIL=(\d{8})(?=;|$)", r"UNTIL=\1T235959Z", written)  # a day, or an instant without a zone
    written = re.sub(r"UNTIL=(\d{8}T\d{6})(?=;|$)", r"UNTIL=\1Z", written)
    frequency = re.search(r"FREQ=(\w+)", written)
    if frequency is None or frequency[1] not in FREQUENCIES:
        raise Invalid(f"event {number} of the calendar repeats {written[:40]!r}; days are the shortest", field="path")
    try:
        dates = rrulestr(written, dtstart=start).xafter(max(start, now - EXPANDED_BACK), inc=True)
        until = now + EXPANDED_AHEAD
        within = list(takewhile(lambda at: at <= until, islice(dates, MOST_EXPANDED)))
    except (ValueError, TypeError, OverflowError) as error:
        raise Invalid(
            f"event {number} of the calendar has a rule that cannot be read ({error})", field="path"
        ) from None
    nearest = sorted(within, key=lambda at: abs(at - now))[:MOST_OCCURRENCES]
    if len(within) > MOST_OCCURRENCES:
        first, last = min(nearest), max(nearest)
        notes.append(
            f"Event {number} repeats more than {MOST_OCCURRENCES} times: only those nearest to now are taken,"
            f" {first:%Y-%m-%d} to {last:%Y-%m-%d}."
        )
    else:
        notes.append(f"Event {number} repeats: taken until {until:%Y-%m-%d}.")
    return sorted(nearest)
