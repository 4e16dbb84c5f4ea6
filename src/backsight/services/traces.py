"""Documents that are made of rows: decisions and runs by deployment and day, and reviews of periods that are over."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import NamedTuple

from backsight.core.decision import OURS, Decision, Segment
from backsight.core.documents.citation import Source
from backsight.core.documents.document import ChangeStamp, LoadedDocument
from backsight.core.documents.trace import (
    Folder,
    Run,
    call_entry,
    decision_entry,
    decisions_document,
    runs_document,
    trace_path,
)
from backsight.core.prompts.account import portfolio_and_caps
from backsight.core.reflection.reviews import PERIODS, Period, period_end, period_name, render_review
from backsight.core.strategies import Deployment
from backsight.services.reviews import read_period
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored_memories
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.view import EVERYTHING

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SOURCES: Mapping[Folder, Source] = {"decisions": "decision", "runs": "run", "reviews": "review"}


class Trace(NamedTuple):
    """A document that is made of rows: its stamp, and what makes it."""

    stamp: ChangeStamp
    load: Callable[[], LoadedDocument]


def traces(connection: Connection, owner: str, *, now: datetime) -> dict[str, Trace]:
    """What the rows of a store tell, by path."""
    homes = {home.id: home for home in stored_strategies.deployments(connection, owner, EVERYTHING)}
    ticks, calls = stored_decisions.marks(connection, owner), stored_memories.call_marks(connection, owner)
    found: dict[str, Trace] = {}
    for home_id, day, stamp in _by_day([*ticks, *calls]):
        path, make = trace_path("decisions", homes[home_id].name, day.isoformat()), partial(_decisions, connection)
        found[path] = _trace("decisions", path, homes[home_id], stamp, day, make)
    for home_id, day, stamp in _by_day(ticks):
        path, make = trace_path("runs", homes[home_id].name, day.isoformat()), partial(_runs, connection)
        found[path] = _trace("runs", path, homes[home_id], stamp, day, make)
    for home_id, period, end, stamp in _by_period(stored_trades.close_marks(connection, owner), now):
        path = trace_path("reviews", homes[home_id].name, f"{period}/{period_name(period, end)}")
        make = partial(_review, connection, period, end)
        found[path] = _trace("reviews", path, homes[home_id], stamp, end.date(), make)
    return found


def is_trace(source: Source) -> bool:
    """Whether a document is made of rows, and not of a file.

    >>> is_trace("run"), is_trace("artifact")
    (True, False)
    """
    return source in SOURCES.values()


Mark = tuple[str, datetime, datetime]
"""A deployment, when something happened, and when that was recorded."""


def _by_day(marks: Iterable[Mark]) -> Iterator[tuple[str, date, ChangeStamp]]:
    days: defaultdict[tuple[str, date], list[datetime]] = defaultdict(list)
    for home_id, at, recorded_at in marks:
        days[home_id, at.date()].append(recorded_at)
    return ((home_id, day, _stamp(recorded)) for (home_id, day), recorded in days.items())


def _by_period(marks: Iterable[Mark], now: datetime) -> Iterator[tuple[str, Period, datetime, ChangeStamp]]:
    """The periods that are over and in which something was closed."""
    over: defaultdict[tuple[str, Period, datetime], list[datetime]] = defaultdict(list)
    for home_id, at, recorded_at in marks:
        for period in PERIODS:
            if (end := period_end(period, at)) <= now:
                over[home_id, period, end].append(recorded_at)
    return ((home_id, period, end, _stamp(recorded)) for (home_id, period, end), recorded in over.items())


def _stamp(recorded: list[datetime]) -> ChangeStamp:
    return ChangeStamp(size=len(recorded), changed=(max(recorded) - EPOCH) // timedelta(microseconds=1))


def _trace(
    folder: Folder, path: str, home: Deployment, stamp: ChangeStamp, day: date, make: Callable[[Deployment, date], str]
) -> Trace:
    def load() -> LoadedDocument:
        return LoadedDocument(
            path=path,
            source=SOURCES[folder],
            agent=home.name,
            written_at=_midnight(day),
            stamp=stamp,
            text=make(home, day),
        )

    return Trace(stamp, load)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _ticks(connection: Connection, home: Deployment, day: date) -> list[Decision]:
    begins = _midnight(day)
    return stored_decisions.decisions_between(connection, home.owner_id, home.id, begins, begins + timedelta(days=1))


def _decisions(connection: Connection, home: Deployment, day: date) -> str:
    begins = _midnight(day)
    calls = stored_memories.calls_between(connection, home.owner_id, home.id, begins, begins + timedelta(days=1))
    entries = [*map(decision_entry, _ticks(connection, home, day)), *map(call_entry, calls)]
    return decisions_document(entries, day.isoformat())


def _runs(connection: Connection, home: Deployment, day: date) -> str:
    ticks = _ticks(connection, home, day)
    texts = stored_decisions.segments(connection, home.owner_id, {name for tick in ticks for name in tick.shown})
    return runs_document((_run(tick, texts) for tick in ticks), day.isoformat())


def _run(tick: Decision, texts: Mapping[str, Segment]) -> Run:
    shown = [texts[name] for name in tick.shown if name in texts]
    return Run(
        decision=tick,
        caller_segments=tuple(segment for segment in shown if segment.name not in OURS),
        memory_segments=tuple(segment.name for segment in shown if segment.name in OURS),
        account="\n".join(row.text for row in portfolio_and_caps(tick.before.portfolio, currency=None).rows),
    )


def _review(connection: Connection, period: Period, end: datetime, home: Deployment, _day: date) -> str:
    return render_review(read_period(connection, home, period, end))
