"""What reflection leaves behind: every attempt, the notes that came of it, and what they propose."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.portfolio import Mode

NoteStatus = Literal["active", "superseded"]
Author = Literal["statistics", "model", "owner"]
"""Who words a note."""
ReflectionOutcome = Literal["written", "unchanged", "rejected", "failed"]
"""What came of an attempt: a new note, nothing new, a note that is not fit to be shown, or no answer."""
ProposalKind = Literal["plan", "belief"]
ProposalStatus = Literal["proposed", "accepted", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionNote:
    """Lessons as they are kept. Their text never changes; only whether they are in force does."""

    owner_id: str
    id: str
    strategy_id: str
    strategy_version: int | None
    """Of the deployment when it was written."""
    strategy_name: str
    mode: Mode
    """Of the trades that it rests on; the three never blend."""
    deployment_id: str | None
    """None: it is of the strategy, and every new deployment starts with a copy."""
    status: NoteStatus
    generated_at: datetime
    """When it was first written."""
    window_start: datetime | None
    """When the first of the trades considered ended; None where none is named."""
    window_end: datetime | None
    trades_considered: int
    lessons_text: str
    content_hash: str
    """What `entry_lessons_hash` names on trades."""
    bullets: str
    """Each lesson with its slot, the keys of its evidence and the ids of its trades, as JSON."""
    author: Author
    model_used: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    copied_from: str | None = None
    """The note that was promoted, or that a new deployment started with."""
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """One attempt to learn from trades, whatever came of it."""

    owner_id: str
    id: str
    deployment_id: str
    strategy_id: str
    strategy_name: str
    mode: Mode
    at: datetime
    author: Author
    came: ReflectionOutcome
    reason: str
    """Why it came to that, in words."""
    note_id: str | None
    """The note that is in force after it."""
    closed: int
    """How many trades of the strategy were closed by then."""
    considered: int
    """How many of them were looked at."""
    evidence: str
    """The patterns that lessons may rest on, with their numbers, as JSON."""
    dropped: str
    """A model's bullets that were not taken, and why, as JSON."""
    carried: str
    """What the next attempt goes on from, as JSON."""
    model_used: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan or a belief that a pattern in the trades suggests; nothing of it is in force until it is accepted."""

    owner_id: str
    id: str
    kind: ProposalKind
    deployment_id: str
    strategy_name: str
    mode: Mode
    reflection_id: str
    """The attempt that found the pattern."""
    evidence: str
    """The key of the pattern."""
    statement: str
    """The pattern in words, with its numbers."""
    trade_ids: tuple[str, ...]
    content: str
    """What `create_trading_plan` or `add_belief` takes, as JSON."""
    status: ProposalStatus
    decided_reason: str | None = None
    made_id: str | None = None
    """The plan or belief that was made of it."""
    known_at: datetime
    recorded_at: datetime


def note_id(owner_id: str, home: str, content_hash: str) -> str:
    """The id of a note: the same lessons of the same deployment, or strategy and mode, are the same note."""
    return derive_id("note", owner_id, home, content_hash)


def strategy_scope(strategy_id: str, mode: Mode) -> str:
    """What the notes of a strategy in a mode are of."""
    return f"{strategy_id} {mode}"


def copied_note(note: ReflectionNote, *, deployment_id: str, version: int | None, at: datetime) -> ReflectionNote:
    """A deployment's own copy of a strategy's lessons; no tokens, since none were used for it."""
    return replace(
        note,
        id=note_id(note.owner_id, deployment_id, note.content_hash),
        strategy_version=version,
        deployment_id=deployment_id,
        status="active",
        generated_at=at,
        input_tokens=None,
        output_tokens=None,
        cost_usd=None,
        copied_from=note.id,
        known_at=at,
        recorded_at=at,
    )


def reflection_id(deployment_id: str, at: datetime) -> str:
    """The id of an attempt."""
    return derive_id("reflection", deployment_id, format_instant(at))


def proposal_id(deployment_id: str, kind: ProposalKind, evidence: str) -> str:
    """The id of a proposal: a pattern proposes once, however often it is seen again."""
    return derive_id("proposal", deployment_id, kind, evidence)
