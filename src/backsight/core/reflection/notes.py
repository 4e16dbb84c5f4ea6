"""Stored records of reflection: every attempt, the lessons notes, and the proposals of plans and beliefs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from backsight.core.ids import canonical_json, derive_id
from backsight.core.instants import format_instant
from backsight.core.memory.conditions import Condition, condition_json
from backsight.core.portfolio import Mode
from backsight.core.reflection.citation_check import DroppedBullet
from backsight.core.reflection.lessons import Bullet
from backsight.core.reflection.patterns import Pattern, SearchState, WatchedPattern
from backsight.core.reflection.revisions import AdoptedPattern

NoteStatus = Literal["active", "superseded"]
Author = Literal["statistics", "model", "owner"]
"""Who wrote a note."""
ReflectionOutcome = Literal["written", "unchanged", "rejected", "failed"]
"""The outcome of an attempt: a new note, no change, a note that was refused, or no answer from the model."""
ProposalKind = Literal["plan", "belief"]
ProposalStatus = Literal["proposed", "accepted", "rejected", "withdrawn"]
"""Memory withdraws a proposal that is not decided yet when the outcomes of trades no longer support it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteView:
    """A lessons note with its bullets and the evidence behind them, as answers show it."""

    id: str
    strategy_name: str
    strategy_version: int | None
    """The version that the deployment ran when the note was written."""
    mode: Mode
    """Of the deployments that the lessons are for."""
    evidence_mode: Mode | None
    """Of the trades behind the lessons; another mode than `mode` if the owner promoted them from there. None for
    lessons in the owner's words."""
    deployment_id: str | None
    """None for a note of the strategy, of which every new deployment gets a copy."""
    status: NoteStatus
    generated_at: datetime
    """When the note was first written."""
    window_start: datetime | None
    """The first close among the trades considered; None for lessons in the owner's words."""
    window_end: datetime | None
    trades_considered: int
    lessons_text: str
    content_hash: str
    """The hash that trades carry as `entry_lessons_hash`."""
    bullets: tuple[Bullet, ...]
    adopted: tuple[AdoptedPattern, ...] = ()
    """The patterns behind the lessons, with their effects as they were when the note was written."""
    author: Author
    model_used: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    copied_from: str | None
    """The id of the note that this one is a copy of."""
    known_at: datetime
    """Since when the note has this status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionNote(NoteView):
    """The row of a lessons note. Its text never changes; its status does."""

    owner_id: str
    strategy_id: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """One attempt to learn from trades, successful or not."""

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
    """Why the attempt had this outcome."""
    note_id: str | None
    """The note in force after the attempt."""
    closed: int
    """The number of the strategy's trades closed by then."""
    considered: int
    """The number of trades analysed."""
    evidence: tuple[Pattern, ...]
    """The significant patterns."""
    dropped: tuple[DroppedBullet, ...]
    """The bullets that were not accepted."""
    watched: tuple[WatchedPattern, ...]
    """The strongest patterns that are not significant yet."""
    carried: SearchState
    """The state of the search, which the next attempt continues."""
    model_used: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A plan or a belief that a pattern suggests, or a plan that a belief suggests; without effect until accepted."""

    owner_id: str
    id: str
    kind: ProposalKind
    deployment_id: str
    strategy_name: str
    mode: Mode
    reflection_id: str | None
    """The attempt that found the pattern; None for a plan that a belief suggests."""
    belief_id: str | None = None
    """The belief that suggests the plan."""
    evidence: str
    """The key of the pattern, or `belief` and its id."""
    statement: str
    """The pattern or the belief in words, with its numbers."""
    trade_ids: tuple[str, ...]
    content: str
    """The arguments of `create_trading_plan` or `add_belief`, as JSON."""
    status: ProposalStatus
    decided_reason: str | None = None
    made_id: str | None = None
    """The id of the plan or belief that was created on acceptance."""
    known_at: datetime
    recorded_at: datetime


def note_id(owner_id: str, scope: str, content_hash: str) -> str:
    """The id of a note: the same lessons in the same scope (a deployment or a `strategy_scope`) are the same note."""
    return derive_id("note", owner_id, scope, content_hash)


def strategy_scope(strategy_id: str, mode: Mode) -> str:
    """The scope of a strategy's own notes in a mode, for `note_id`."""
    return f"{strategy_id} {mode}"


def copied_note(note: ReflectionNote, *, deployment_id: str, version: int | None, at: datetime) -> ReflectionNote:
    """A deployment's copy of a strategy's note; tokens and cost are not copied."""
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


def proposal_id(deployment_id: str, kind: ProposalKind, subject: str) -> str:
    """The id of a proposal; its subject is the key of a pattern or, for a plan, its `plan_subject`.

    A pattern that is found again makes the same proposal, and so do a pattern and a belief about the same trades.
    """
    return derive_id("proposal", deployment_id, kind, subject)


def plan_subject(condition: Condition, action: Mapping[str, object]) -> str:
    """What distinguishes the plans that are proposed to a deployment: when to do what."""
    return canonical_json([condition_json(condition), action])
