"""Market events in the store."""

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import Connection, desc

from backsight.core.events import MarketEvent
from backsight.store.mapping import noun
from backsight.store.reading import fetch, in_batches, known, owned
from backsight.store.view import View

MARKET_EVENTS = noun(
    MarketEvent, "market_events", indexes=[("scheduled_at", "id"), ("kind", "scheduled_at")], revised=True
)


def events_by_id(connection: Connection, owner: str, ids: Collection[str]) -> dict[str, MarketEvent]:
    """The stored events with these ids."""
    c, by_id = MARKET_EVENTS.table.c, dict[str, MarketEvent]()
    for batch in in_batches(ids):
        by_id |= {
            each.id: each for each in fetch(connection, MARKET_EVENTS, owned(MARKET_EVENTS, owner, c.id.in_(batch)))
        }
    return by_id


def events_between(view: View, *, since: datetime, until: datetime) -> list[MarketEvent]:
    """The events that were known and not cancelled, scheduled after `since` and until `until`, in order."""
    statement = known(
        MARKET_EVENTS, view.owner, view.horizon, lambda c: [c.scheduled_at > since, c.scheduled_at <= until]
    )
    return _in_order(fetch(view.connection, MARKET_EVENTS, statement))


def last_event_at(view: View, *, until: datetime) -> datetime | None:
    """When the last event until an instant was scheduled; None if none was known."""
    statement = known(
        MARKET_EVENTS, view.owner, view.horizon, lambda c: [c.scheduled_at <= until, c.cancelled.is_(False)]
    )
    last = fetch(view.connection, MARKET_EVENTS, statement.order_by(desc("scheduled_at")).limit(1))
    return last[0].scheduled_at if last else None


def past_events(view: View, *, kind: str, until: datetime) -> list[MarketEvent]:
    """The events of a kind that were known and not cancelled, scheduled until an instant, in order."""
    statement = known(MARKET_EVENTS, view.owner, view.horizon, lambda c: [c.kind == kind, c.scheduled_at <= until])
    return _in_order(fetch(view.connection, MARKET_EVENTS, statement))


def _in_order(events: Iterable[MarketEvent]) -> list[MarketEvent]:
    return sorted((each for each in events if not each.cancelled), key=lambda each: (each.scheduled_at, each.id))
