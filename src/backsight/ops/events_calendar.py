"""The calendar of market events: imported from files, and read with what it means for open positions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from backsight.arguments import AsOf, FilePath, Key, Name, SeenAt, Share, Symbol
from backsight.core.errors import Invalid
from backsight.core.events import EventKind, Exposure, MarketEvent, concerns, event_id
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.deployments import deployment_at
from backsight.services.events import as_known, exposures
from backsight.store import events as stored

Hours = Annotated[int, Field(strict=True, ge=1, le=72)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedEvents:
    """What an import of market events did."""

    events: int
    added: int
    changed: int
    """Events that were stored with other values, which stay visible as of then."""
    cancelled: int
    """Events that were stored and that the calendar has cancelled since; they stay visible as of then."""
    first_at: datetime
    last_at: datetime
    notes: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingEvents:
    """The events of the next hours in order, and what they may mean for the open positions of a deployment."""

    events: tuple[MarketEvent, ...]
    your_exposure: tuple[Exposure, ...]
    """One for each event and open position that it concerns; empty without a deployment."""
    message: str
    as_of: datetime


@command()
def import_events(
    ctx: Context,
    *,
    path: Annotated[FilePath, "A CSV, JSON or iCalendar file on this machine."],
    source: Annotated[Name | None, "Whose calendar it is; by default the name of the file."] = None,
    timezone: Annotated[Name | None, "The zone of times without one; such times are refused without it."] = None,
) -> ImportedEvents:
    """Import a calendar of market events; events that are stored already are updated, and their former values kept.

    An event is known from now on, or from its own time if that is past. Recurring events of a calendar are taken for
    five years back and one year ahead.
    """
    from backsight.importers.events import read_events

    file = read_events(path, timezone=timezone, now=ctx.now)
    name = source or path.rpartition("/")[2].partition(".")[0] or "file"
    with ctx.writing() as transaction:
        events = {event.id: event for event in _events(ctx, file.rows, name)}
        known = stored.events_by_id(transaction.connection, ctx.owner, events)
        added = [event for event in events.values() if event.id not in known and not event.cancelled]
        transaction.add_all(stored.MARKET_EVENTS, added)
        revised = [event for event in events.values() if event.id in known and _differs(event, known[event.id])]
        for event in revised:
            transaction.revise(stored.MARKET_EVENTS, replace(event, known_at=ctx.now))
    instants = sorted(event.scheduled_at for event in events.values())
    taking_place = sum(not event.cancelled for event in events.values())
    cancelled = sum(event.cancelled for event in revised)
    changed = len(revised) - cancelled
    message = f"{count_of(taking_place, 'event')}: {len(added):,} new, {changed:,} changed."
    if taking_place < len(events):
        message = (
            f"{message} The calendar cancels {len(events) - taking_place:,} more: {cancelled:,} of them were stored."
        )
    return ImportedEvents(
        events=taking_place,
        added=len(added),
        changed=changed,
        cancelled=cancelled,
        first_at=instants[0],
        last_at=instants[-1],
        notes=file.notes,
        message=message,
    )


def _events(ctx: Context, rows: Sequence[object], source: str) -> list[MarketEvent]:
    from backsight.importers.events import EventRow

    events = []
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, EventRow):
            raise AssertionError("read_events reads rows of events")
        if row.actual is not None and row.scheduled_at > ctx.now:
            message = f"row {number}: an actual value before {row.scheduled_at:%Y-%m-%d %H:%M} UTC"
            raise Invalid(f"{message}; leave it out until the event has happened", field="path")
        identifier = event_id(
            ctx.owner,
            source=source,
            source_id=row.source_id,
            kind=row.kind,
            at=row.scheduled_at,
            symbols=row.symbols,
            title=row.title,
        )
        events.append(
            MarketEvent(
                owner_id=ctx.owner,
                id=identifier,
                kind=row.kind,
                scheduled_at=row.scheduled_at,
                symbols=row.symbols,
                importance=row.importance,
                title=row.title,
                source=source,
                source_id=row.source_id,
                actual=row.actual,
                forecast=row.forecast,
                previous=row.previous,
                known_at=min(ctx.now, row.scheduled_at),
                recorded_at=ctx.now,
                cancelled=row.cancelled,
            )
        )
    return events


def _differs(event: MarketEvent, other: MarketEvent) -> bool:
    return replace(event, known_at=other.known_at, recorded_at=other.recorded_at) != other


@query(audience=("trader", "coach"))
def get_upcoming_events(
    ctx: Context,
    *,
    lookahead_hours: Annotated[Hours, "How far ahead, in hours."] = 24,
    kinds: Annotated[list[EventKind] | None, "Only these kinds."] = None,
    symbols: Annotated[list[Symbol] | None, "Only events that concern one of these instruments."] = None,
    min_importance: Annotated[Share, "Only events of at least this importance."] = 0.4,
    deployment: Annotated[
        Key | None, "Adds your_exposure: each event against this deployment's open positions."
    ] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> UpcomingEvents:
    """Get the market events ahead and, with a deployment, how past events of the kind moved what it holds."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        until = view.as_of + timedelta(hours=lookahead_hours)
        ahead = stored.events_between(view, since=view.as_of, until=until)
        events = tuple(
            as_known(event, view)
            for event in ahead
            if event.importance >= min_importance
            and (not kinds or event.kind in kinds)
            and (not symbols or any(concerns(event, symbol) for symbol in symbols))
        )
        target = None if deployment is None else deployment_at(view, deployment)
        exposed = () if target is None else exposures(view, target, events)
        last_at = None if ahead else stored.last_event_at(view, until=view.as_of)
    message = _upcoming_message(len(events), len(ahead), lookahead_hours, last_at=last_at)
    if events and target is not None and not exposed:
        message = f"{message} No open position of {target.name} is concerned, so there is no exposure."
    return UpcomingEvents(events=events, your_exposure=exposed, message=message, as_of=view.as_of)


def _upcoming_message(listed: int, ahead: int, hours: int, *, last_at: datetime | None) -> str:
    within = f"within {count_of(hours, 'hour')}"
    if listed:
        return f"{count_of(listed, 'event')} {within}."
    if ahead:
        return f"No events match; {count_of(ahead, 'event')} {within} of other kinds, symbols or less importance."
    last = "" if last_at is None else f" The last one known was on {last_at:%Y-%m-%d}."
    return f"No events are known {within}; import_events imports a calendar.{last}"
