"""Traces: documents written from rows of the store, so that decisions and runs can be searched like files.

Text from outside is quoted line by line, so that no heading or fence in it becomes part of the document's structure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.decision import Decision, Segment
from backsight.core.ids import canonical_json
from backsight.core.instants import format_instant
from backsight.core.memory.episodic import Episode

Folder = Literal["decisions", "runs", "reviews"]
"""Folders of traces; no file of a workspace has a source there."""


def trace_path(folder: Folder, deployment: str, name: str) -> str:
    """The path of a deployment's trace.

    >>> trace_path("decisions", "VolBreakout@main", "2026-06-04")
    'decisions/VolBreakout@main/2026-06-04.md'
    """
    return f"{folder}/{deployment}/{name}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEntry:
    """One decision or call of a day."""

    at: datetime
    kind: str
    symbol: str | None
    details: Mapping[str, str | None]
    """Values by name; None is left out."""


def decision_entry(decision: Decision, strategy_name: str) -> TraceEntry:
    """The decision of a tick: proposal, reason and verdict."""
    verdict = decision.verdict
    details = {
        "symbol": decision.symbol,
        "strategy": strategy_name,
        "reason": decision.reason,
        "confidence": _number(decision.confidence),
        "rule": verdict.rule,
        "detail": verdict.detail,
        "proposal": None if decision.proposal is None else canonical_json(decision.proposal),
        "further proposals": canonical_json(decision.further_proposals) if decision.further_proposals else None,
    }
    return TraceEntry(at=decision.at, kind=verdict.kind, symbol=decision.symbol, details=details)


def call_entry(call: Episode) -> TraceEntry:
    """A call (a forecast without a position), with its outcome once known."""
    details = {
        "symbol": call.symbol,
        "direction": call.direction,
        "strategy": call.strategy_name,
        "reason": call.reason,
        "confidence": _number(call.confidence),
        "market": call.market_context,
        "citations": ", ".join(call.citations),
        "due": None if call.due_at is None else format_instant(call.due_at),
        "not judged": call.not_judged,
        "outcome": None if call.outcome is None else f"{call.outcome.value:+.4g} {call.outcome.unit}",
    }
    return TraceEntry(at=call.opened_at or call.first_known_at, kind="call", symbol=call.symbol, details=details)


def decisions_document(entries: Iterable[TraceEntry], day: str) -> str:
    """The decisions of a day in Markdown, one section each, oldest first."""
    ordered = sorted(entries, key=lambda entry: entry.at)
    return f"# Decisions of {day}\n\n" + "\n".join(
        "\n".join([_heading(entry), "", *_bullets(entry.details), ""]) for entry in ordered
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TickTranscript:
    """One tick of an agent: its input, its account and its decision."""

    decision: Decision
    caller_segments: tuple[Segment, ...]
    """Prompt segments from the caller: market, news and the like."""
    memory_segments: tuple[str, ...]
    """Names of the prompt segments from memory."""
    account: str
    """The account before the decision."""
    strategy_name: str
    market: str = ""
    """Marks and the last bars, as the agent saw them."""
    response: str | None = None
    """The model's raw answer; None if it was not reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTranscript:
    """One run of an agent that is not a tick: its prompt, its output and its result."""

    at: datetime
    kind: str
    details: Mapping[str, str | None]
    """Values by name; None is left out."""
    parts: tuple[tuple[str, str], ...]
    """Texts with their headings, like the prompt and the output."""


def runs_document(ticks: Iterable[TickTranscript], runs: Iterable[RunTranscript], day: str) -> str:
    """The ticks and the other runs of a day in Markdown, one section each, oldest first."""
    sections = [((tick.decision.at, tick.decision.sequence), _tick_section(tick)) for tick in ticks]
    sections += [((run.at, 0), _run_section(run)) for run in runs]
    ordered = sorted(sections, key=lambda section: section[0])
    return f"# Runs of {day}\n\n" + "\n".join("\n".join(section) for _, section in ordered)


def _run_section(run: RunTranscript) -> Iterator[str]:
    yield f"## {format_instant(run.at)} {run.kind}"
    yield ""
    yield from _bullets(run.details)
    yield from _quoted(run.parts)
    yield ""


def _quoted(parts: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, text in parts:
        if text.strip():
            yield from ("", f"### {_one_line(name)}", "", *(f"> {line}".rstrip() for line in text.splitlines()))


def _tick_section(run: TickTranscript) -> Iterator[str]:
    decision, entry = run.decision, decision_entry(run.decision, run.strategy_name)
    yield _heading(entry)
    yield ""
    about = {
        "run": decision.id,
        "model": decision.model,
        "tokens": _token_counts(decision.input_tokens, decision.output_tokens),
        "cost": _number(decision.cost),
        "memory": decision.memory_arm,
        "shown": ", ".join(run.memory_segments),
        "recalled": ", ".join(decision.recalled),
        "citations": ", ".join(decision.citations),
    }
    yield from _bullets(about)
    given = [(segment.name, segment.text) for segment in run.caller_segments]
    parts = [("market", run.market), *given, ("account", run.account), ("answer of the model", run.response or "")]
    yield from _quoted(parts)
    outcome = {**entry.details, "opened": ", ".join(decision.opened), "closed": ", ".join(decision.closed)}
    yield from ("", "### decision", "", *_bullets({"verdict": entry.kind, **outcome}), "")


def _heading(entry: TraceEntry) -> str:
    return f"## {format_instant(entry.at)} {entry.kind}" + (f" {_one_line(entry.symbol)}" if entry.symbol else "")


def _bullets(details: Mapping[str, str | None]) -> list[str]:
    return [f"- {name}: {_one_line(value)}" for name, value in details.items() if value]


def _token_counts(input_tokens: int | None, output_tokens: int | None) -> str | None:
    return (
        None if input_tokens is None and output_tokens is None else f"{input_tokens or 0} in, {output_tokens or 0} out"
    )


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
