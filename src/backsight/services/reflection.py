"""A reflection in three steps: read the evidence, draft lessons, record the result.

Reading and recording are two transactions; a language model is called between them. Every reflection is recorded,
also one that failed or changed nothing. If another reflection of the deployment was recorded in between, nothing is
changed.
"""

import logging
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from backsight.core.errors import Conflict
from backsight.core.instants import Horizon, format_instant
from backsight.core.portfolio import Mode
from backsight.core.reflection.cadence import SinceReflection, is_due
from backsight.core.reflection.citation_check import DroppedBullet
from backsight.core.reflection.closed_trades import closed_trade
from backsight.core.reflection.evidence_view import EvidenceView, describe_evidence, watch_message
from backsight.core.reflection.lessons import Bullet, LessonsNote
from backsight.core.reflection.notes import (
    NoteView,
    Proposal,
    Reflection,
    ReflectionNote,
    ReflectionOutcome,
    note_id,
    reflection_id,
)
from backsight.core.reflection.patterns import NEW_SEARCH, WINDOW, TradeEvidence, WatchedPattern
from backsight.core.reflection.revisions import adopted_patterns
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.deployments import deployed_strategy
from backsight.services.lessons_draft import ReflectionDraft, ReflectionInputs, draft_dry_run, draft_lessons
from backsight.services.proposals import propose_from_patterns, review_advice
from backsight.store import notes as stored
from backsight.store import trades as stored_trades
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING, View

if TYPE_CHECKING:
    from backsight.core.trades.columns import ClosedTradeColumns

LOG = logging.getLogger("backsight")
OVERTAKEN = "another reflection of this deployment was recorded in the meantime; nothing was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionResult:
    """The outcome of a reflection, and the evidence for it."""

    reflection_id: str | None
    """None if nothing was recorded."""
    deployment: str
    at: datetime
    came: ReflectionOutcome
    reason: str
    note: NoteView | None
    """The note in force after the reflection."""
    bullets: tuple[Bullet, ...]
    """The lessons as they are now, or as a dry run would write them."""
    dropped: tuple[DroppedBullet, ...]
    """The model's bullets that were not accepted."""
    evidence: EvidenceView
    proposals: tuple[Proposal, ...]
    """New proposals of plans and beliefs."""
    model_used: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    dry_run: bool
    replayed: bool
    """Whether the reflection was recorded before; then nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchList:
    """The strongest patterns of a strategy in a mode that are not proven yet."""

    strategy_name: str
    mode: Mode
    closed: int
    """The number of the strategy's trades closed by then."""
    patterns: tuple[WatchedPattern, ...]
    """The strongest first; at most five."""
    message: str


def reflect_dry_run(view: View, columns: "ClosedTradeColumns", deployment: Deployment) -> ReflectionResult:
    """What a reflection as of a view would write; nothing is recorded and no model is called."""
    inputs = _read_inputs(view, columns, deployment)
    if inputs.recorded is not None and view.horizon.holds(inputs.recorded.known_at, inputs.recorded.recorded_at):
        return _replay(inputs, inputs.recorded)
    return replace(_result(inputs, draft_dry_run(inputs), inputs.active_note), dry_run=True)


def reflect_now(ctx: Context, deployment: Deployment, *, at: datetime) -> ReflectionResult:
    """Reflect as of an instant, and record the result."""
    with ctx.reading() as connection:
        view, in_force = ctx.view(connection, at), ctx.view(connection, EVERYTHING.as_of)
        inputs = _read_inputs(view, ctx.database.trade_images.at(view), deployment, in_force=in_force)
    if (active := inputs.active_note) is not None and active.known_at > at:
        newer = f"lessons of {format_instant(active.known_at)} are in force"
        raise Conflict(f"{newer}; reflect at a later instant", field="deployment")
    if inputs.recorded is not None:
        return _replay(inputs, inputs.recorded)
    return _record(ctx, inputs, draft_lessons(inputs, ctx.reflectors))


def reflect_if_due(
    ctx: Context, deployment: Deployment, *, at: datetime, closed_in_tick: int
) -> ReflectionResult | None:
    """Reflect after a tick if the cadence says so; None if not. An unavailable model is an outcome, not an error."""
    memory = deployment.memory
    if memory.cadence == "off" or (memory.cadence == "per_n_trades" and not closed_in_tick):
        return None
    with ctx.reading() as connection:
        since = _since_reflection(View(connection, deployment.owner_id, Horizon(as_of=at)), deployment, closed_in_tick)
    if not is_due(memory.when, since, now=at):
        return None
    try:
        return reflect_now(ctx, deployment, at=at)
    except Conflict as conflict:  # the lessons in force are of a later instant than this tick
        LOG.warning("reflection of %s: %s", deployment.name, conflict.message)
        return None


def is_due_between_ticks(view: View, deployment: Deployment) -> bool:
    """Whether a reflection is due although no tick closes a trade: trades are also imported and reported."""
    since = _since_reflection(view, deployment, closed_in_tick=0)
    return is_due(deployment.memory.when, replace(since, closed_in_tick=since.closed_since_attempt), now=view.as_of)


def read_evidence(
    view: View, columns: "ClosedTradeColumns", deployment: Deployment
) -> tuple[TradeEvidence, tuple[datetime, datetime] | None]:
    """The evidence of a strategy's latest trades in a mode, and their first and last close."""
    # These modules need NumPy.
    from backsight.core.reflection.evidence import find_evidence
    from backsight.core.trades.columns import trades_of_strategy

    strategy_id, mode = deployment.strategy_id, deployment.mode
    rows = stored_trades.last_closed(view, strategy_id=strategy_id, mode=mode, limit=WINDOW)
    trades = [closed_trade(trade) for trade in rows]
    last = stored.last_reflection(view, strategy_id=strategy_id, mode=mode)
    evidence = find_evidence(
        trades,
        as_of=view.as_of,
        closed=len(trades_of_strategy(columns, view.horizon, strategy_id=strategy_id, mode=mode)),
        state=NEW_SEARCH if last is None else last.carried,
    )
    closes = [trade.ended_at for trade in trades]
    return evidence, (min(closes), max(closes)) if closes else None


def read_watch_list(view: View, columns: "ClosedTradeColumns", deployment: Deployment) -> WatchList:
    """The watch list of a strategy in the mode of a deployment, from the trades known by the view's instant."""
    evidence, _ = read_evidence(view, columns, deployment)
    last = stored.last_reflection(view, strategy_id=deployment.strategy_id, mode=deployment.mode)
    proven = set() if last is None else {each.key for each in last.carried.found}
    due = [pattern.label for pattern in evidence.patterns if pattern.key not in proven]
    message = f"A reflection now would prove: {', '.join(due)}. " if due else ""
    return WatchList(
        strategy_name=deployment.strategy_name,
        mode=deployment.mode,
        closed=evidence.closed,
        patterns=evidence.watched,
        message=message + watch_message(evidence),
    )


def activate_note(transaction: Transaction, note: ReflectionNote, former: ReflectionNote | None) -> ReflectionNote:
    """Put a note in force from its instant on, in place of the former one; return the note as stored.

    Lessons that were in force before, with the same text, become active again as the same note.
    """
    if former is not None and former.id == note.id:
        return former
    if former is not None:
        superseded = replace(former, status="superseded", known_at=note.known_at, recorded_at=note.recorded_at)
        transaction.revise(stored.NOTES, superseded)
    earlier = stored.note(transaction.connection, note.owner_id, note.id)
    if earlier is not None:
        note = replace(earlier, status="active", known_at=note.known_at, recorded_at=note.recorded_at)
    transaction.revise(stored.NOTES, note)
    return note


def _since_reflection(view: View, deployment: Deployment, closed_in_tick: int) -> SinceReflection:
    attempted_at = stored.last_reflection_at(view, deployment.id)
    wrote_at = stored.last_reflection_at(view, deployment.id, outcome="written")
    return SinceReflection(
        closed_in_tick=closed_in_tick,
        closed_since_attempt=stored.closed_since(view, deployment, attempted_at),
        closed_since_note=stored.closed_since(view, deployment, wrote_at),
        last_attempt_at=attempted_at,
    )


def _read_inputs(
    view: View, columns: "ClosedTradeColumns", deployment: Deployment, *, in_force: View | None = None
) -> ReflectionInputs:
    """What a reflection as of a view starts from; `in_force` is the view of the lessons in force, if it differs."""
    connection, owner, at = view.connection, view.owner, view.as_of
    evidence, window = read_evidence(view, columns, deployment)
    return ReflectionInputs(
        deployment=deployment,
        strategy=deployed_strategy(connection, deployment),
        at=at,
        evidence=evidence,
        window=window,
        active_note=stored.active_note(in_force or view, deployment.id),
        reflection_count=stored.count_reflections(connection, owner, deployment.id),
        recorded=stored.reflection(connection, owner, reflection_id(deployment.id, at)),
    )


def _record(ctx: Context, inputs: ReflectionInputs, draft: ReflectionDraft) -> ReflectionResult:
    """Store the reflection, its note and its proposals, unless another reflection was recorded in the meantime."""
    deployment, owner = inputs.deployment, inputs.deployment.owner_id
    with ctx.writing() as transaction:
        connection = transaction.connection
        if stored.count_reflections(connection, owner, deployment.id) != inputs.reflection_count:
            active = stored.active_note(View(connection, owner, EVERYTHING), deployment.id)
            return _result(inputs, replace(draft, outcome="unchanged", reason=OVERTAKEN, note=None), active)
        active = inputs.active_note
        if draft.note is not None:
            active = activate_note(transaction, _note_row(inputs, draft, draft.note, now=ctx.now), active)
        reflection = _reflection_row(inputs, draft, active, now=ctx.now)
        transaction.add(stored.REFLECTIONS, reflection)
        review_advice(transaction, deployment, now=reflection.known_at)
        proposals = propose_from_patterns(transaction, ctx, deployment, reflection)
    return replace(_result(inputs, draft, active), reflection_id=reflection.id, proposals=proposals)


def _replay(inputs: ReflectionInputs, reflection: Reflection) -> ReflectionResult:
    """The result of a reflection that is recorded already."""
    draft = ReflectionDraft(
        outcome=reflection.came,
        reason=reflection.reason,
        author=reflection.author,
        dropped=reflection.dropped,
        model_used=reflection.model_used,
        input_tokens=reflection.input_tokens,
        output_tokens=reflection.output_tokens,
        cost_usd=reflection.cost_usd,
    )
    return replace(_result(inputs, draft, inputs.active_note), reflection_id=reflection.id, replayed=True)


def _note_row(inputs: ReflectionInputs, draft: ReflectionDraft, note: LessonsNote, *, now: datetime) -> ReflectionNote:
    deployment, window = inputs.deployment, inputs.window
    return ReflectionNote(
        owner_id=deployment.owner_id,
        id=note_id(deployment.owner_id, deployment.id, note.hash),
        strategy_id=deployment.strategy_id,
        strategy_version=deployment.strategy_version,
        strategy_name=deployment.strategy_name,
        mode=deployment.mode,
        evidence_mode=deployment.mode,
        deployment_id=deployment.id,
        status="active",
        generated_at=inputs.at,
        window_start=None if window is None else window[0],
        window_end=None if window is None else window[1],
        trades_considered=inputs.evidence.n,
        lessons_text=note.text,
        content_hash=note.hash,
        bullets=note.bullets,
        adopted=adopted_patterns(inputs.evidence.patterns),
        author=draft.author,
        model_used=draft.model_used,
        input_tokens=draft.input_tokens,
        output_tokens=draft.output_tokens,
        cost_usd=draft.cost_usd,
        copied_from=None,
        known_at=inputs.at,
        recorded_at=now,
    )


def _reflection_row(
    inputs: ReflectionInputs, draft: ReflectionDraft, active: ReflectionNote | None, *, now: datetime
) -> Reflection:
    deployment, evidence = inputs.deployment, inputs.evidence
    return Reflection(
        owner_id=deployment.owner_id,
        id=reflection_id(deployment.id, inputs.at),
        deployment_id=deployment.id,
        strategy_id=deployment.strategy_id,
        strategy_name=deployment.strategy_name,
        mode=deployment.mode,
        at=inputs.at,
        author=draft.author,
        came=draft.outcome,
        reason=draft.reason,
        note_id=None if active is None else active.id,
        closed=evidence.closed,
        considered=evidence.n,
        evidence=evidence.patterns,
        dropped=draft.dropped,
        watched=evidence.watched,
        carried=evidence.search_state,
        model_used=draft.model_used,
        input_tokens=draft.input_tokens,
        output_tokens=draft.output_tokens,
        cost_usd=draft.cost_usd,
        known_at=inputs.at,
        recorded_at=now,
    )


def _result(inputs: ReflectionInputs, draft: ReflectionDraft, active: ReflectionNote | None) -> ReflectionResult:
    """The answer for a reflection that recorded nothing."""
    bullets = draft.note.bullets if draft.note is not None else () if active is None else active.bullets
    return ReflectionResult(
        reflection_id=None,
        deployment=inputs.deployment.name,
        at=inputs.at,
        came=draft.outcome,
        reason=draft.reason,
        note=active,
        bullets=bullets,
        dropped=draft.dropped,
        evidence=describe_evidence(inputs.evidence),
        proposals=(),
        model_used=draft.model_used,
        input_tokens=draft.input_tokens,
        output_tokens=draft.output_tokens,
        cost_usd=draft.cost_usd,
        dry_run=False,
        replayed=False,
    )
