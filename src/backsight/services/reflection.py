"""How a reflection is made: read at one moment, worded outside any transaction, kept in another.

Every attempt is recorded, whatever came of it. A language model is asked between the two transactions; where another
attempt was recorded meanwhile, this one changes nothing.
"""

import logging
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from backsight.core.errors import BacksightError, Conflict, Invalid
from backsight.core.ids import canonical_json
from backsight.core.instants import Horizon, format_instant
from backsight.core.portfolio import Mode
from backsight.core.reflection.cadence import SinceReflection, is_due
from backsight.core.reflection.citation_check import DroppedBullet, check_bullets
from backsight.core.reflection.closed_trades import closed_trade
from backsight.core.reflection.evidence_view import EvidenceView, describe_evidence
from backsight.core.reflection.lessons import Bullet, LessonsNote, accept_lessons, note_from_bullets, write_lessons
from backsight.core.reflection.notes import (
    Author,
    NoteStatus,
    Proposal,
    Reflection,
    ReflectionNote,
    ReflectionOutcome,
    note_id,
    reflection_id,
)
from backsight.core.reflection.patterns import NEW_SEARCH, WINDOW, SearchState, TradeEvidence
from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorRequest, ReflectorUnavailable
from backsight.core.strategies import Deployment, Strategy
from backsight.core.text.tokens import estimate
from backsight.services.context import Context, Reflectors
from backsight.services.deployments import deployed_strategy
from backsight.services.proposals import propose
from backsight.store import notes as stored
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING

LOG = logging.getLogger("backsight")
OVERTAKEN = "another reflection of this deployment was recorded meanwhile; nothing was changed"
CUT = "cut: the note holds no more"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteView:
    """Lessons as they are kept, each with what it rests on."""

    id: str
    strategy_name: str
    strategy_version: int | None
    mode: Mode
    deployment_id: str | None
    """None: of the strategy."""
    status: NoteStatus
    generated_at: datetime
    """When they were first written."""
    window_start: datetime | None
    window_end: datetime | None
    trades_considered: int
    lessons_text: str
    content_hash: str
    """What `entry_lessons_hash` names on trades."""
    bullets: tuple[Bullet, ...]
    author: Author
    model_used: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    copied_from: str | None
    known_at: datetime
    """Since when they have this status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionResult:
    """What came of a reflection, and on what evidence."""

    reflection_id: str | None
    """None where nothing was recorded."""
    deployment: str
    at: datetime
    came: ReflectionOutcome
    reason: str
    note: NoteView | None
    """The lessons in force after it."""
    bullets: tuple[Bullet, ...]
    """What the lessons now say, or would say."""
    dropped: tuple[DroppedBullet, ...]
    """A model's bullets that were not taken, and why."""
    evidence: EvidenceView
    proposals: tuple[Proposal, ...]
    """Plans and beliefs that it proposes, those of before aside."""
    model_used: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    dry_run: bool
    replayed: bool
    """Whether it was recorded before: nothing was changed then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionInputs:
    """What a reflection starts from, as it was at one moment."""

    home: Deployment
    strategy: Strategy | None
    """The version that is deployed; None where it was never saved."""
    at: datetime
    evidence: TradeEvidence
    window: tuple[datetime, datetime] | None
    """When the first and the last of the trades considered ended."""
    former: ReflectionNote | None
    """The lessons in force."""
    attempts: int
    """How many were recorded before."""
    again: Reflection | None
    """The attempt of this very instant, where it was recorded already."""

    @property
    def avoid(self) -> tuple[str, ...]:
        return () if self.strategy is None else self.strategy.avoid


@dataclass(frozen=True, slots=True, kw_only=True)
class _AttemptDraft:
    """What is to become of an attempt."""

    came: ReflectionOutcome
    reason: str
    author: Author
    note: LessonsNote | None = None
    """The note that becomes active; None: the one there is stays."""
    dropped: tuple[DroppedBullet, ...] = ()
    model_used: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


def reflect_now(ctx: Context, home: Deployment, *, at: datetime, dry_run: bool = False) -> ReflectionResult:
    """What a reflection at an instant comes to; a dry run records nothing and asks no model."""
    with ctx.reading() as connection:
        considered = read_inputs(connection, home, at=at)
    if (newer := considered.former) is not None and newer.known_at > at:
        told = f"lessons of {format_instant(newer.known_at)} are in force"
        raise Conflict(f"{told}; reflect at a later instant", field="deployment")
    if considered.again is not None:
        return _replayed(considered, considered.again)
    if dry_run:
        return _done(considered, _dry(considered), considered.former, dry_run=True)
    return _keep(ctx, considered, _worded(considered, ctx.reflectors))


def reflect_if_due(ctx: Context, home: Deployment, *, at: datetime, closed_in_tick: int) -> ReflectionResult | None:
    """What a reflection after a tick came to; None where none is due. A provider that fails is an outcome, no error."""
    if home.memory.cadence == "off" or (home.memory.cadence == "per_n_trades" and not closed_in_tick):
        return None
    with ctx.reading() as connection:
        if not is_due(home.memory.when, _since(connection, home, at, closed_in_tick), now=at):
            return None
    try:
        return reflect_now(ctx, home, at=at)
    except Conflict as conflict:  # somebody wrote lessons at a later instant than this tick
        LOG.warning("reflection of %s: %s", home.name, conflict.message)
        return None


def _since(connection: Connection, home: Deployment, at: datetime, closed_in_tick: int) -> SinceReflection:
    """What happened to a deployment since its last attempt and its last note."""
    horizon = Horizon(as_of=at)
    attempted_at = _last_at(connection, home, horizon)
    wrote_at = _last_at(connection, home, horizon, came="written")
    return SinceReflection(
        closed_in_tick=closed_in_tick,
        closed_since_attempt=stored.closed_since(connection, home, attempted_at, horizon),
        closed_since_note=stored.closed_since(connection, home, wrote_at, horizon),
        last_attempt_at=attempted_at,
    )


def _last_at(
    connection: Connection, home: Deployment, horizon: Horizon, *, came: ReflectionOutcome | None = None
) -> datetime | None:
    last = stored.last_reflection(connection, home.owner_id, horizon, deployment_id=home.id, came=came)
    return None if last is None else last.at


def read_inputs(connection: Connection, home: Deployment, *, at: datetime) -> ReflectionInputs:
    """The evidence as of an instant, and what is in force for a deployment."""
    evidence, window = evidence_at(connection, home, Horizon(as_of=at))
    return ReflectionInputs(
        home=home,
        strategy=deployed_strategy(connection, home),
        at=at,
        evidence=evidence,
        window=window,
        former=stored.active_note(connection, home.owner_id, home.id, EVERYTHING),
        attempts=stored.count_reflections(connection, home.owner_id, home.id),
        again=stored.reflection(connection, home.owner_id, reflection_id(home.id, at)),
    )


def evidence_at(
    connection: Connection, home: Deployment, horizon: Horizon
) -> tuple[TradeEvidence, tuple[datetime, datetime] | None]:
    """What a strategy's last trades in a mode showed then, and when the first and the last of them ended."""
    from backsight.core.reflection.evidence import find_evidence  # needs NumPy

    owner, strategy_id, mode = home.owner_id, home.strategy_id, home.mode
    found = stored_trades.last_closed(connection, owner, horizon, strategy_id=strategy_id, mode=mode, limit=WINDOW)
    trades = [closed_trade(trade) for trade in found]
    last = stored.last_reflection(connection, owner, horizon, strategy_id=strategy_id, mode=mode)
    evidence = find_evidence(
        trades,
        as_of=horizon.as_of,
        closed=stored_trades.closed_count(connection, owner, horizon, strategy_id=strategy_id, mode=mode),
        state=carried_in(last),
    )
    ended = [trade.ended_at for trade in trades]
    return evidence, (min(ended), max(ended)) if ended else None


@cache
def _reader(of: Any) -> TypeAdapter[Any]:
    """What reads such values from JSON; made when it is needed first, since that takes a while."""
    return TypeAdapter(of)


def bullets_of(row: ReflectionNote) -> LessonsNote:
    """The lessons of a kept note, each with what it rests on."""
    return LessonsNote(bullets=_reader(tuple[Bullet, ...]).validate_json(row.bullets))


def carried_in(row: Reflection | None) -> SearchState:
    """What an attempt hands to the next; nothing before the first."""
    if row is None:
        return NEW_SEARCH
    carried: SearchState = _reader(SearchState).validate_json(row.carried)
    return carried


def dropped_in(row: Reflection) -> tuple[DroppedBullet, ...]:
    """A model's bullets that an attempt did not take."""
    dropped: tuple[DroppedBullet, ...] = _reader(tuple[DroppedBullet, ...]).validate_json(row.dropped)
    return dropped


def view_note(row: ReflectionNote) -> NoteView:
    """A kept note as it is shown."""
    told = {each.name: getattr(row, each.name) for each in fields(NoteView) if each.name != "bullets"}
    return NoteView(bullets=bullets_of(row).bullets, **told)


def activate_note(transaction: Transaction, note: ReflectionNote, former: ReflectionNote | None) -> ReflectionNote:
    """The note as it is kept, in force from its instant on in place of the former; lessons told before are the same."""
    if former is not None and former.id == note.id:
        return former
    if former is not None:
        over = replace(former, status="superseded", known_at=note.known_at, recorded_at=note.recorded_at)
        transaction.revise(stored.NOTES, over)
    held = stored.note(transaction.connection, note.owner_id, note.id)
    if held is not None:
        note = replace(held, status="active", known_at=note.known_at, recorded_at=note.recorded_at)
    transaction.revise(stored.NOTES, note)
    return note


# Wording


def _dry(considered: ReflectionInputs) -> _AttemptDraft:
    """What the evidence would write by itself, and who would be asked."""
    memory, draft = considered.home.memory, _by_itself(considered)
    if memory.reflector == "statistics" or not considered.evidence.patterns:
        return draft
    return replace(draft, reason=f"{memory.model} would word this evidence; in a dry run it is not asked")


def _worded(considered: ReflectionInputs, reflectors: Reflectors) -> _AttemptDraft:
    """The note that follows from the evidence, or why there is none."""
    memory = considered.home.memory
    if considered.evidence.patterns and memory.reflector == "model" and memory.model is not None:
        return _asked(considered, reflectors, memory.model)
    return _by_itself(considered)


def _by_itself(considered: ReflectionInputs) -> _AttemptDraft:
    if not considered.evidence.patterns:
        return _without_patterns(considered)
    return _judged(considered, write_lessons(considered.evidence), author="statistics")


def _without_patterns(considered: ReflectionInputs) -> _AttemptDraft:
    """Lessons that no longer hold are taken back; those that the owner worded stay until trades say otherwise."""
    former = considered.former
    missing = describe_evidence(considered.evidence).missing or ""
    if former is None or not bullets_of(former).bullets:
        return _AttemptDraft(came="unchanged", reason=f"no lesson yet: {missing}", author="statistics")
    if former.author == "owner":
        return _AttemptDraft(came="unchanged", reason=f"the owner's lessons stay: {missing}", author="statistics")
    return _AttemptDraft(came="written", reason=f"no lesson holds: {missing}", author="statistics", note=LessonsNote())


def _asked(considered: ReflectionInputs, reflectors: Reflectors, model: str) -> _AttemptDraft:
    """What a language model makes of the evidence, as far as it bears examination."""
    strategy, former = considered.strategy, considered.former
    asked = ReflectorRequest(
        evidence=considered.evidence,
        strategy_name=considered.home.strategy_name,
        strategy="" if strategy is None else _told(strategy),
        avoid=considered.avoid,
        note=None if former is None else bullets_of(former),
    )
    try:
        answered = reflectors(model).reflect(asked)
    except BacksightError as error:
        LOG.warning("reflection of %s: %s", considered.home.name, error.message)
        return _failed(error, model)
    except Exception as error:  # what a plug-in raises must not take a tick down
        LOG.exception("reflection of %s: %s failed", considered.home.name, model)
        return _AttemptDraft(came="failed", reason=f"{model} failed: {error!r:.200}", author="model", model_used=model)
    return _examined(considered, answered)


def _failed(error: BacksightError, model: str) -> _AttemptDraft:
    draft = _AttemptDraft(came="failed", reason=error.message, author="model", model_used=model)
    if not isinstance(error, ReflectorUnavailable):
        return draft
    return replace(draft, input_tokens=error.input_tokens, output_tokens=error.output_tokens, cost_usd=error.cost_usd)


def _examined(considered: ReflectionInputs, answered: ReflectorAnswer) -> _AttemptDraft:
    """A model's bullets held against the evidence that it was given."""
    checked = check_bullets(answered.bullets, patterns=considered.evidence.patterns)
    if checked.bullets:
        draft = _judged(considered, note_from_bullets(checked.bullets), author="model")
    else:
        why = f"none of its {len(answered.bullets)} bullets holds: " if answered.bullets else "it wrote no bullet"
        told = f"{why}{checked.dropped[0].reason}" if checked.dropped else why
        draft = _AttemptDraft(came="rejected", reason=told, author="model")
    return replace(
        draft,
        dropped=checked.dropped + draft.dropped,
        model_used=answered.model,
        input_tokens=answered.input_tokens,
        output_tokens=answered.output_tokens,
        cost_usd=answered.cost_usd,
    )


def _judged(considered: ReflectionInputs, proposed: LessonsNote, *, author: Author) -> _AttemptDraft:
    """A note that is fit to be shown, or why it is not."""
    former = considered.former
    try:
        note = accept_lessons(proposed, avoid=considered.avoid, count=estimate)
    except Invalid as error:
        return _AttemptDraft(came="rejected", reason=error.message, author=author)
    cut = tuple(DroppedBullet(text=each.text, reason=CUT) for each in proposed.bullets if each not in note.bullets)
    if former is not None and former.content_hash == note.hash:
        return _AttemptDraft(came="unchanged", reason="the lessons in force say the same", author=author, dropped=cut)
    lessons = "1 lesson" if len(note.bullets) == 1 else f"{len(note.bullets)} lessons"
    told = f"{lessons} from {considered.evidence.n} closed trades"
    return _AttemptDraft(came="written", reason=told, author=author, note=note, dropped=cut)


def _told(strategy: Strategy) -> str:
    """What the owner says of a strategy, a line each."""
    said = strategy.guidance
    lists = (strategy.rules, said.look_for, said.entry_rules, said.exit_rules, said.risk_rules)
    return "\n".join(line for line in (strategy.thesis, *(rule for rules in lists for rule in rules)) if line)


# Keeping


def _keep(ctx: Context, considered: ReflectionInputs, draft: _AttemptDraft) -> ReflectionResult:
    """Record the attempt with its note and what it proposes, unless another was recorded meanwhile."""
    home, former = considered.home, considered.former
    with ctx.writing() as transaction:
        connection = transaction.connection
        if stored.count_reflections(connection, home.owner_id, home.id) != considered.attempts:
            stands = stored.active_note(connection, home.owner_id, home.id, EVERYTHING)
            return _done(considered, replace(draft, came="unchanged", reason=OVERTAKEN, note=None), stands)
        in_force = former
        if draft.note is not None:
            in_force = activate_note(transaction, _row(considered, draft, draft.note, now=ctx.now), former)
        attempt = _attempt(considered, draft, in_force, now=ctx.now)
        transaction.add(stored.REFLECTIONS, attempt)
        proposals = propose(transaction, ctx, home, attempt, considered.evidence.patterns)
    return _done(considered, draft, in_force, recorded=attempt.id, proposals=proposals)


def _row(considered: ReflectionInputs, draft: _AttemptDraft, note: LessonsNote, *, now: datetime) -> ReflectionNote:
    home, window = considered.home, considered.window
    return ReflectionNote(
        owner_id=home.owner_id,
        id=note_id(home.owner_id, home.id, note.hash),
        strategy_id=home.strategy_id,
        strategy_version=home.strategy_version,
        strategy_name=home.strategy_name,
        mode=home.mode,
        deployment_id=home.id,
        status="active",
        generated_at=considered.at,
        window_start=None if window is None else window[0],
        window_end=None if window is None else window[1],
        trades_considered=considered.evidence.n,
        lessons_text=note.text,
        content_hash=note.hash,
        bullets=canonical_json(note.bullets),
        author=draft.author,
        model_used=draft.model_used,
        input_tokens=draft.input_tokens,
        output_tokens=draft.output_tokens,
        cost_usd=draft.cost_usd,
        known_at=considered.at,
        recorded_at=now,
    )


def _attempt(
    considered: ReflectionInputs, draft: _AttemptDraft, in_force: ReflectionNote | None, *, now: datetime
) -> Reflection:
    home, evidence = considered.home, considered.evidence
    return Reflection(
        owner_id=home.owner_id,
        id=reflection_id(home.id, considered.at),
        deployment_id=home.id,
        strategy_id=home.strategy_id,
        strategy_name=home.strategy_name,
        mode=home.mode,
        at=considered.at,
        author=draft.author,
        came=draft.came,
        reason=draft.reason,
        note_id=None if in_force is None else in_force.id,
        closed=evidence.closed,
        considered=evidence.n,
        evidence=canonical_json(evidence.patterns),
        dropped=canonical_json(draft.dropped),
        carried=canonical_json(evidence.search_state),
        model_used=draft.model_used,
        input_tokens=draft.input_tokens,
        output_tokens=draft.output_tokens,
        cost_usd=draft.cost_usd,
        known_at=considered.at,
        recorded_at=now,
    )


def _done(
    considered: ReflectionInputs,
    draft: _AttemptDraft,
    in_force: ReflectionNote | None,
    *,
    recorded: str | None = None,
    proposals: tuple[Proposal, ...] = (),
    dry_run: bool = False,
) -> ReflectionResult:
    stands = None if in_force is None else view_note(in_force)
    would_be = draft.note.bullets if draft.note is not None else () if stands is None else stands.bullets
    return ReflectionResult(
        reflection_id=recorded,
        deployment=considered.home.name,
        at=considered.at,
        came=draft.came,
        reason=draft.reason,
        note=stands,
        bullets=would_be,
        dropped=draft.dropped,
        evidence=describe_evidence(considered.evidence),
        proposals=proposals,
        model_used=draft.model_used,
        input_tokens=draft.input_tokens,
        output_tokens=draft.output_tokens,
        cost_usd=draft.cost_usd,
        dry_run=dry_run,
        replayed=False,
    )


def _replayed(considered: ReflectionInputs, attempt: Reflection) -> ReflectionResult:
    """What an attempt came to that is recorded already."""
    draft = _AttemptDraft(
        came=attempt.came,
        reason=attempt.reason,
        author=attempt.author,
        dropped=dropped_in(attempt),
        model_used=attempt.model_used,
        input_tokens=attempt.input_tokens,
        output_tokens=attempt.output_tokens,
        cost_usd=attempt.cost_usd,
    )
    return replace(_done(considered, draft, considered.former, recorded=attempt.id), replayed=True)
