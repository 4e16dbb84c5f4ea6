"""What the store itself tells as documents: decisions and runs by deployment and day, and periods in review.

What others wrote is quoted line by line, so that no heading or fence of it becomes one of ours.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backsight.core.decision import Decision, Segment
from backsight.core.instants import format_instant
from backsight.core.memory.episodic import Episode

Folder = Literal["decisions", "runs", "reviews"]
"""No file of a workspace is in them."""


def path_of(folder: Folder, deployment: str, name: str) -> str:
    """The path of what is told of a deployment.

    >>> path_of("decisions", "VolBreakout@main", "2026-06-04")
    'decisions/VolBreakout@main/2026-06-04.md'
    """
    return f"{folder}/{deployment}/{name}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something that was decided."""

    at: datetime
    kind: str
    symbol: str | None
    told: Mapping[str, str | None]
    """What there is to say of it, by name."""


def entry_of(decision: Decision) -> Entry:
    """The decision of a tick: what was proposed, why, and what became of it."""
    verdict = decision.verdict
    told = {
        "symbol": decision.symbol,
        "strategy": decision.strategy_id,
        "reason": decision.reason,
        "confidence": _number(decision.confidence),
        "rule": verdict.rule,
        "detail": verdict.detail,
        "proposal": decision.proposal,
    }
    return Entry(at=decision.at, kind=verdict.kind, symbol=decision.symbol, told=told)


def entry_of_call(call: Episode) -> Entry:
    """A call without a position, and its outcome once that is known."""
    told = {
        "symbol": call.symbol,
        "direction": call.direction,
        "strategy": call.strategy_name,
        "reason": call.reason,
        "confidence": _number(call.confidence),
        "market": call.market_context,
        "citations": ", ".join(call.citations),
        "due": None if call.due_at is None else format_instant(call.due_at),
        "outcome": None if call.outcome is None else f"{call.outcome.value:+.4g} {call.outcome.unit}",
    }
    return Entry(at=call.opened_at or call.first_known_at, kind="call", symbol=call.symbol, told=told)


def trace_of(entries: Iterable[Entry], day: str) -> str:
    """The decisions of a day as a text, a heading each, oldest first."""
    ordered = sorted(entries, key=lambda entry: entry.at)
    return f"# Decisions of {day}\n\n" + "\n".join(
        "\n".join([_heading(entry), "", *_items(entry.told), ""]) for entry in ordered
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of an agent: what it was told, what it held, what it decided, and what came of that."""

    decision: Decision
    told: tuple[Segment, ...]
    """What its caller showed it: the market, the news, whatever it was called for."""
    shown: tuple[str, ...]
    """Names of what memory showed it beside that."""
    account: str
    """The account before it decided."""


def transcript_of(runs: Iterable[Run], day: str) -> str:
    """The runs of a day as a text, a heading each, oldest first."""
    ordered = sorted(runs, key=lambda run: (run.decision.at, run.decision.sequence))
    return f"# Runs of {day}\n\n" + "\n".join("\n".join(_transcript(run)) for run in ordered)


def _transcript(run: Run) -> Iterator[str]:
    decision, entry = run.decision, entry_of(run.decision)
    yield _heading(entry)
    yield ""
    about = {
        "run": decision.id,
        "model": decision.model,
        "tokens": _both(decision.input_tokens, decision.output_tokens),
        "cost": _number(decision.cost),
        "memory": decision.memory_arm,
        "shown": ", ".join(run.shown),
        "recalled": ", ".join(decision.recalled),
        "citations": ", ".join(decision.citations),
    }
    yield from _items(about)
    for name, text in [*((segment.name, segment.text) for segment in run.told), ("account", run.account)]:
        if text.strip():
            yield from ("", f"### {_one_line(name)}", "", *(f"> {line}".rstrip() for line in text.splitlines()))
    came = {**entry.told, "opened": ", ".join(decision.opened), "closed": ", ".join(decision.closed)}
    yield from ("", "### decision", "", *_items({"verdict": entry.kind, **came}), "")


def _heading(entry: Entry) -> str:
    return f"## {format_instant(entry.at)} {entry.kind}" + (f" {_one_line(entry.symbol)}" if entry.symbol else "")


def _items(told: Mapping[str, str | None]) -> list[str]:
    return [f"- {name}: {_one_line(value)}" for name, value in told.items() if value]


def _both(inward: int | None, outward: int | None) -> str | None:
    return None if inward is None and outward is None else f"{inward or 0} in, {outward or 0} out"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
