"""Traces: documents written from rows of the store: decisions and runs per deployment and day, and period reviews."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import NamedTuple

from backsight.core.agents.run import AgentRun
from backsight.core.decision import OURS, Decision, Segment
from backsight.core.documents.citation import Source
from backsight.core.documents.document import ChangeStamp, LoadedDocument
from backsight.core.documents.trace import (
    Folder,
    RunTranscript,
    TickTranscript,
    call_entry,
    decision_entry,
    decisions_document,
    runs_document,
    trace_path,
)
from backsight.core.instants import Horizon, format_instant
from backsight.core.prompts.account import portfolio_and_caps
from backsight.core.reflection.periods import PERIODS, Period
from backsight.core.reflection.reviews import period_end, period_name, render_review
from backsight.core.strategies import Deployment
from backsight.services.reviews import read_results
from backsight.store import agents as stored_agents
from backsight.store import bars as stored_bars
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored_memories
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.view import EVERYTHING, View

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SOURCES: Mapping[Folder, Source] = {"decisions": "decision", "runs": "run", "reviews": "review"}
SHOWN_BARS = 3
"""Bars of each symbol in a transcript: all bars are in the store."""
TRACE_SOURCES = tuple(SOURCES.values())
"""The sources of documents that are written from rows, and not read from files."""


class Trace(NamedTuple):
    """A document written from rows: its path, the stamp of its rows, and a function that writes it."""

    path: str
    stamp: ChangeStamp
    load: Callable[[Connection], LoadedDocument]


def traces(connection: Connection, owner: str, *, now: datetime) -> dict[str, Trace]:
    """All traces of a store by path, in the order of their paths: chunks are numbered in this order."""
    deployments = {each.id: each for each in stored_strategies.deployments(View(connection, owner, EVERYTHING))}
    by_path: dict[str, Trace] = {}

    def add(folder: Folder, deployment_id: str, name: str, day: date, stamp: ChangeStamp, write: Write) -> None:
        deployment = deployments[deployment_id]
        path = trace_path(folder, deployment.name, name)
        by_path[path] = _trace(folder, path, deployment, stamp, day, write)

    ticks, calls = stored_decisions.marks(connection, owner), stored_memories.call_marks(connection, owner)
    for deployment_id, day, stamp in _by_day([*ticks, *calls]):
        add("decisions", deployment_id, day.isoformat(), day, stamp, _decisions)
    for deployment_id, day, stamp in _by_day([*ticks, *stored_agents.run_marks(connection, owner)]):
        add("runs", deployment_id, day.isoformat(), day, stamp, _runs)
    for deployment_id, period, end, stamp in _by_period(stored_trades.close_marks(connection, owner), now):
        name = f"{period}/{period_name(period, end)}"
        add("reviews", deployment_id, name, end.date(), stamp, partial(_review, period, end))
    return dict(sorted(by_path.items()))


Mark = tuple[str, datetime, datetime]
"""The id of a deployment, the instant of a row, and when the row was recorded."""
Write = Callable[[Connection, Deployment, date], str]
"""Writes the text of a deployment's trace of a day."""


def _by_day(marks: Iterable[Mark]) -> Iterator[tuple[str, date, ChangeStamp]]:
    days: defaultdict[tuple[str, date], list[datetime]] = defaultdict(list)
    for deployment_id, at, recorded_at in marks:
        days[deployment_id, at.date()].append(recorded_at)
    return ((deployment_id, day, _stamp(recorded)) for (deployment_id, day), recorded in days.items())


def _by_period(marks: Iterable[Mark], now: datetime) -> Iterator[tuple[str, Period, datetime, ChangeStamp]]:
    """The finished periods in which a trade was closed."""
    periods: defaultdict[tuple[str, Period, datetime], list[datetime]] = defaultdict(list)
    for deployment_id, at, recorded_at in marks:
        for period in PERIODS:
            if (end := period_end(period, at)) <= now:
                periods[deployment_id, period, end].append(recorded_at)
    return (
        (deployment_id, period, end, _stamp(recorded)) for (deployment_id, period, end), recorded in periods.items()
    )


def _stamp(recorded: list[datetime]) -> ChangeStamp:
    """The stamp of rows: how many there are, and when the last one was recorded."""
    return ChangeStamp(size=len(recorded), changed=(max(recorded) - EPOCH) // timedelta(microseconds=1))


def _trace(folder: Folder, path: str, deployment: Deployment, stamp: ChangeStamp, day: date, write: Write) -> Trace:
    def load(connection: Connection) -> LoadedDocument:
        return LoadedDocument(
            path=path,
            source=SOURCES[folder],
            agent=deployment.name,
            written_at=_midnight(day),
            stamp=stamp,
            text=write(connection, deployment, day),
        )

    return Trace(path, stamp, load)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _ticks(connection: Connection, deployment: Deployment, day: date) -> list[Decision]:
    start = _midnight(day)
    end = start + timedelta(days=1)
    return stored_decisions.decisions_between(connection, deployment.owner_id, deployment.id, start, end)


def _decisions(connection: Connection, deployment: Deployment, day: date) -> str:
    start = _midnight(day)
    end = start + timedelta(days=1)
    calls = stored_memories.calls_between(connection, deployment.owner_id, deployment.id, start, end)
    ticks = _ticks(connection, deployment, day)
    entries = [*(decision_entry(tick, deployment.strategy_name) for tick in ticks), *map(call_entry, calls)]
    return decisions_document(entries, day.isoformat())


def _runs(connection: Connection, deployment: Deployment, day: date) -> str:
    ticks = _ticks(connection, deployment, day)
    hashes = {each for tick in ticks for each in (*tick.shown, tick.response_hash) if each is not None}
    segments = stored_decisions.segments(connection, deployment.owner_id, hashes)
    start = _midnight(day)
    runs = stored_agents.runs_between(connection, deployment.owner_id, deployment.id, start, start + timedelta(days=1))
    transcripts = [_tick_transcript(connection, deployment, tick, segments) for tick in ticks]
    return runs_document(transcripts, map(_run_transcript, runs), day.isoformat())


def _run_transcript(run: AgentRun) -> RunTranscript:
    tokens = (run.input_tokens, run.output_tokens)
    details = {
        "run": run.id,
        "status": run.status,
        "error": run.error,
        "re-examines": run.parent_id,
        "model": run.model,
        "tokens": None if tokens == (None, None) else f"{tokens[0] or 0} in, {tokens[1] or 0} out",
        "cost": None if run.cost is None else f"{run.cost:g}",
        "card": run.card_type,
        "result": run.result,
        "does not fit": run.misfit,
    }
    parts = (("prompt", run.prompt), ("output", run.output or ""))
    return RunTranscript(at=run.started_at, kind=run.kind, details=details, parts=parts)


def _tick_transcript(
    connection: Connection, deployment: Deployment, tick: Decision, segments: Mapping[str, Segment]
) -> TickTranscript:
    prompt = [segments[segment_hash] for segment_hash in tick.shown if segment_hash in segments]
    response = None if tick.response_hash is None else segments.get(tick.response_hash)
    return TickTranscript(
        decision=tick,
        caller_segments=tuple(segment for segment in prompt if segment.name not in OURS),
        memory_segments=tuple(segment.name for segment in prompt if segment.name in OURS),
        account="\n".join(row.text for row in portfolio_and_caps(tick.before.portfolio, currency=None).rows),
        strategy_name=deployment.strategy_name,
        market="\n".join(_market_lines(View(connection, deployment.owner_id, Horizon(as_of=tick.at)), tick)),
        response=None if response is None else response.text,
    )


def _market_lines(view: View, tick: Decision) -> Iterator[str]:
    """The mark of each symbol, and its last closed bars at the tick."""
    for symbol, mark in sorted(tick.before.marks.items()):
        yield f"{symbol} mark={mark:g}"
        interval = stored_bars.finest_interval(view.connection, view.owner, symbol)
        if interval is not None:
            for bar in stored_bars.last_bars(view, symbol=symbol, counts={interval: SHOWN_BARS}).get(interval, ()):
                prices = f"open={bar.open:g} high={bar.high:g} low={bar.low:g} close={bar.close:g}"
                yield f"{symbol} bar {format_instant(bar.opened_at)} {prices}"


def _review(period: Period, end: datetime, connection: Connection, deployment: Deployment, _day: date) -> str:
    return render_review(read_results(connection, deployment, period, end))
