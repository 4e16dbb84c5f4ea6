"""Lessons: what a strategy's trades taught, whether that helps, and what it proposes to do."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Flag, Instant, Key, Limit, LongProse, Name, Reason, SeenAt
from backsight.core.errors import Conflict, Invalid, NotFound, did_you_mean
from backsight.core.ids import canonical_json, derive_id
from backsight.core.instants import Horizon, format_instant
from backsight.core.market import EPOCH
from backsight.core.portfolio import Mode
from backsight.core.reflection import holdout_test
from backsight.core.reflection.citation_check import DroppedBullet
from backsight.core.reflection.closed_trades import holdout_trade, trade_under_lessons
from backsight.core.reflection.evidence_view import EvidenceView, describe_evidence
from backsight.core.reflection.holdout_test import HoldoutResult
from backsight.core.reflection.lessons import LessonsNote, accept_lessons, parse_note, render_lessons
from backsight.core.reflection.lessons_comparison import LessonsComparison
from backsight.core.reflection.notes import (
    Author,
    Proposal,
    ProposalStatus,
    Reflection,
    ReflectionNote,
    ReflectionOutcome,
    note_id,
    strategy_scope,
)
from backsight.core.reflection.reviews import (
    Period,
    PeriodResult,
    best_and_worst,
    render_review,
    summarise_trades,
)
from backsight.core.strategies import Deployment, Slot
from backsight.core.text.tokens import estimate
from backsight.core.trades.trade import Trade
from backsight.operation import command, query
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.services.proposals import decline_proposal, enact_proposal
from backsight.services.reflection import (
    NoteView,
    ReflectionResult,
    activate_note,
    bullets_of,
    carried_in,
    dropped_in,
    reflect_now,
    view_note,
)
from backsight.services.reviews import read_period
from backsight.store import notes as stored
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveLessons:
    """The lessons in force, and what the agent is shown of them."""

    deployment: str
    note: NoteView | None
    """None before the first."""
    text: str | None
    """As it is shown: without the slots that are suppressed."""
    hash: str | None
    """Of the whole note: what trades are stamped with, whichever slots are shown."""
    suppressed: tuple[Slot, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt to learn from trades, and what came of it."""

    id: str
    deployment_id: str
    at: datetime
    author: Author
    came: ReflectionOutcome
    reason: str
    note_id: str | None
    """The lessons in force after it."""
    closed: int
    considered: int
    patterns: tuple[str, ...]
    """Keys of what lessons may rest on."""
    dropped: tuple[DroppedBullet, ...]
    model_used: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonList:
    """Revisions of the lessons, and the last attempts, each newest first."""

    notes: tuple[NoteView, ...]
    attempts: tuple[AttemptView, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLessons:
    """How a strategy's trades went under each revision of the lessons, and under none."""

    strategy_name: str
    mode: Mode
    comparison: LessonsComparison
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHelp:
    """Whether memory helps a strategy, as far as one can tell."""

    strategy_name: str
    mode: Mode
    help: HoldoutResult
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedLessons:
    """The lessons that new deployments start with, and whether they did before."""

    note: NoteView
    cut: tuple[str, ...]
    """Bullets that did not fit."""
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodReview:
    """A period in figures, and as a report to read."""

    deployment: str
    period: Period
    start: datetime
    end: datetime
    result: PeriodResult
    best: tuple[Trade, ...]
    worst: tuple[Trade, ...]
    evidence: EvidenceView
    note: NoteView | None
    """The lessons in force at its end."""
    markdown: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalView:
    """A proposal as it stands."""

    proposal: Proposal
    stands: bool
    """Whether lessons may still rest on the pattern that it came from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalList:
    """Proposals, in the order in which they came to stand as they do."""

    proposals: tuple[ProposalView, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedProposal:
    """The proposal as it now is, and whether it was so before."""

    proposal: Proposal
    replayed: bool


@command(audience=("trader",), idempotent=False)
def reflect(
    ctx: Context,
    *,
    deployment: Annotated[Key, "Whose lessons, by name or id."],
    dry_run: Annotated[Flag, "Only say what would be written, and on what evidence; no model is asked."] = False,
) -> ReflectionResult:
    """Reflect on the strategy's closed trades and write what they teach, if they teach anything.

    A pattern must survive a test against chance, by days and over all groups looked at. The attempt is kept whatever
    comes of it; the lessons in force stay where the new ones are not fit, or whoever words them is away.
    """
    with ctx.reading() as connection:
        home = deployment_named(connection, ctx.owner, deployment)
    return reflect_now(ctx, home, at=ctx.now, dry_run=dry_run)


@query(audience=("trader",))
def active_lessons(
    ctx: Context,
    *,
    deployment: Annotated[Key, "Whose lessons, by name or id."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ActiveLessons:
    """Get the lessons in force for a deployment, as its agent is shown them."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home = deployment_named(connection, ctx.owner, deployment)
        note = stored.active_note(connection, ctx.owner, home.id, horizon)
    return ActiveLessons(
        deployment=home.name,
        note=None if note is None else view_note(note),
        text=None if note is None else _shown(note, home),
        hash=None if note is None else note.content_hash,
        suppressed=home.memory.suppressed,
        as_of=horizon.as_of,
    )


@query(audience=("trader",))
def list_lessons(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Of which deployment, by name or id."] = None,
    strategy_name: Annotated[Name | None, "Or of all deployments of this strategy, and its own."] = None,
    limit: Annotated[Limit, "How many revisions, and how many attempts, at most."] = 20,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> LessonList:
    """List the revisions of lessons and the last attempts to write them, with what came of each, newest first."""
    if (deployment is None) == (strategy_name is None):
        raise Invalid("give a deployment or a strategy_name, and not both", field="deployment")
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        named = _strategy_id(connection, ctx, strategy_name or "") if home is None else home.strategy_id
        only = None if home is None else home.id
        notes = stored.notes(connection, ctx.owner, horizon, strategy_id=named, deployment_id=only)
        attempts = stored.reflections(
            connection, ctx.owner, horizon, limit=limit, strategy_id=named, deployment_id=only
        )
    return LessonList(
        notes=tuple(map(view_note, notes[:limit])),
        attempts=tuple(map(_attempt_seen, attempts)),
        as_of=horizon.as_of,
    )


@query(audience=("trader",))
def compare_lessons(
    ctx: Context,
    *,
    strategy_name: Annotated[Name, "Of which strategy."],
    mode: Annotated[Mode, "Trades with real money, on paper or simulated; the three never blend."] = "live",
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ComparedLessons:
    """Compare how trades went under each revision of the lessons, and under none.

    It compares times, not arms: revisions were in force one after the other. does_memory_help compares arms.
    """
    from backsight.core.reflection.day_bootstrap import compare_revisions as compared  # needs NumPy

    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        named = _strategy_id(connection, ctx, strategy_name)
        ended = stored_trades.ended(connection, ctx.owner, horizon, strategy_id=named, mode=mode)
    comparison = compared(map(trade_under_lessons, ended))
    return ComparedLessons(strategy_name=strategy_name, mode=mode, comparison=comparison, as_of=horizon.as_of)


@query(audience=("trader", "coach"))
def does_memory_help(
    ctx: Context,
    *,
    strategy_name: Annotated[Name, "Which strategy."],
    mode: Annotated[Mode, "Trades with real money, on paper or simulated; the three never blend."] = "live",
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> MemoryHelp:
    """Tell whether memory helps: days on which it was shown beside days on which a coin withheld it.

    The interval may be looked at every day. Without a memory holdout on a deployment there is nothing to compare.
    """
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        named = _strategy_id(connection, ctx, strategy_name)
        ended = stored_trades.ended(connection, ctx.owner, horizon, strategy_id=named, mode=mode)
    armed = [trade for trade in map(holdout_trade, ended) if trade is not None]
    found = holdout_test.analyse_holdout(armed)
    return MemoryHelp(strategy_name=strategy_name, mode=mode, help=found, as_of=horizon.as_of)


@command()
def promote_lessons(
    ctx: Context,
    *,
    deployment: Annotated[Key, "Whose strategy and mode, by name or id."],
    lessons: Annotated[
        LongProse | None, "Lessons in your own words, in all five slots; those of the deployment if left out."
    ] = None,
) -> PromotedLessons:
    """Promote lessons to the strategy: every new deployment of it in this mode starts with its own copy.

    Deployments that run already keep theirs.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        home = deployment_named(connection, ctx.owner, deployment)
        proposed, source = _proposed(connection, ctx, home, lessons)
        note = accept_lessons(proposed, avoid=_avoid(connection, home), count=estimate)
        row = _promoted(ctx, home, note, source)
        former = stored.strategy_note(connection, ctx.owner, home.strategy_id, home.mode, EVERYTHING)
        if former is not None and former.known_at > ctx.now:
            told = f"lessons of {format_instant(former.known_at)} are the strategy's"
            raise Conflict(f"{told}; promote others at a later instant", field="deployment")
        kept = activate_note(transaction, row, former)
        replayed = not transaction.changes
    said = parse_note(proposed) if isinstance(proposed, str) else proposed
    cut = tuple(each.text for each in said.bullets if each not in note.bullets)
    return PromotedLessons(note=view_note(kept), cut=cut, replayed=replayed)


@query(audience=("trader", "coach"))
def review_period(
    ctx: Context,
    *,
    deployment: Annotated[Key, "Which deployment, by name or id."],
    period: Annotated[Period, "A day, seven days, or a month of the calendar."] = "weekly",
    ending: Annotated[Instant | None, "When it ended; now if left out."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> PeriodReview:
    """Review a period: trades and how they ended, what the strategy's trades show, and the lessons in force.

    Nothing that became known after its end is in it.
    """
    horizon = ctx.horizon(as_of, seen_at)
    end = horizon.as_of if ending is None else ending
    if end > horizon.as_of:
        raise Invalid(f"{format_instant(end)} has not come yet; give an earlier instant", field="ending")
    if end < EPOCH:
        raise Invalid(f"{format_instant(end)} is before 1970; give a later instant", field="ending")
    with ctx.reading() as connection:
        home = deployment_named(connection, ctx.owner, deployment)
        told = read_period(connection, home, period, end, seen_at=seen_at)
        note = stored.active_note(connection, ctx.owner, home.id, Horizon(as_of=end, seen_at=seen_at))
    best, worst = best_and_worst(told.trades)
    return PeriodReview(
        deployment=home.name,
        period=period,
        start=told.start,
        end=end,
        result=summarise_trades(told.trades),
        best=best,
        worst=worst,
        evidence=describe_evidence(told.evidence),
        note=None if note is None else view_note(note),
        markdown=render_review(told),
        as_of=horizon.as_of,
    )


@query(audience=("trader",))
def list_proposals(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only those of this deployment, by name or id."] = None,
    status: Annotated[ProposalStatus | None, "Only those of this status."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ProposalList:
    """List the plans and beliefs that patterns in trades propose; none is in force before it is accepted."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        only = None if home is None else home.id
        found = stored.proposals(connection, ctx.owner, horizon, deployment_id=only, status=status)
        standing = {each.deployment_id: _standing(connection, ctx, each.deployment_id, horizon) for each in found}
    seen = [ProposalView(proposal=each, stands=each.evidence in standing[each.deployment_id]) for each in found]
    return ProposalList(proposals=tuple(seen), as_of=horizon.as_of)


@command()
def accept_proposal(
    ctx: Context,
    *,
    proposal_id: Annotated[Key, "The proposal, as list_proposals names it."],
    reason: Annotated[Reason | None, "Why."] = None,
) -> DecidedProposal:
    """Accept a proposal: its plan or its belief is in force from now on."""
    with ctx.writing() as transaction:
        proposal = _proposal(transaction, ctx, proposal_id)
        if proposal.status == "accepted":
            return DecidedProposal(proposal=proposal, replayed=True)
        if proposal.status == "rejected":
            remedy = "create_trading_plan and add_belief make one all the same"
            raise Conflict(f"it was rejected, and stays so; {remedy}", field="proposal_id")
        return DecidedProposal(proposal=enact_proposal(transaction, ctx, proposal, reason=reason), replayed=False)


@command()
def reject_proposal(
    ctx: Context,
    *,
    proposal_id: Annotated[Key, "The proposal, as list_proposals names it."],
    reason: Annotated[Reason | None, "Why not."] = None,
) -> DecidedProposal:
    """Reject a proposal: it comes to nothing, and is not made again."""
    with ctx.writing() as transaction:
        proposal = _proposal(transaction, ctx, proposal_id)
        if proposal.status == "rejected":
            return DecidedProposal(proposal=proposal, replayed=True)
        if proposal.status == "accepted":
            remedy = "cancel_plan" if proposal.kind == "plan" else "retire_belief"
            raise Conflict(f"it was accepted, and is in force; {remedy} ends what came of it", field="proposal_id")
        return DecidedProposal(proposal=decline_proposal(transaction, ctx, proposal, reason=reason), replayed=False)


def _shown(note: ReflectionNote, home: Deployment) -> str:
    return (
        render_lessons(bullets_of(note), suppressed=home.memory.suppressed)
        if home.memory.suppressed
        else note.lessons_text
    )


def _attempt_seen(row: Reflection) -> AttemptView:
    return AttemptView(
        id=row.id,
        deployment_id=row.deployment_id,
        at=row.at,
        author=row.author,
        came=row.came,
        reason=row.reason,
        note_id=row.note_id,
        closed=row.closed,
        considered=row.considered,
        patterns=tuple(found.key for found in carried_in(row).found),
        dropped=dropped_in(row),
        model_used=row.model_used,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cost_usd=row.cost_usd,
    )


def _strategy_id(connection: Connection, ctx: Context, name: str) -> str:
    """The id of a strategy that is saved or deployed, or `NotFound` with the nearest name there is."""
    names = {each.strategy_name for each in stored_strategies.deployments(connection, ctx.owner, EVERYTHING)}
    if name not in names and stored_strategies.strategy(connection, ctx.owner, name) is None:
        remedy = did_you_mean(name, sorted(names)) if names else "save it first"
        raise NotFound(f"no strategy {name!r}; {remedy}", field="strategy_name")
    return derive_id("strategy", ctx.owner, name)


def _proposed(
    connection: Connection, ctx: Context, home: Deployment, lessons: str | None
) -> tuple[str | LessonsNote, ReflectionNote | None]:
    """The owner's words; or the lessons in force for a deployment, and the note that they are of."""
    if lessons is not None:
        return lessons, None
    note = stored.active_note(connection, ctx.owner, home.id, Horizon(as_of=ctx.now))
    if note is None:
        told = f"{home.name!r} has no lessons yet"
        raise NotFound(f"{told}; give them in your own words, or reflect first", field="lessons")
    return bullets_of(note), note


def _avoid(connection: Connection, home: Deployment) -> tuple[str, ...]:
    """What the latest version of a strategy avoids: new deployments run that."""
    latest = stored_strategies.strategy(connection, home.owner_id, home.strategy_name)
    return () if latest is None else latest.avoid


def _promoted(ctx: Context, home: Deployment, note: LessonsNote, source: ReflectionNote | None) -> ReflectionNote:
    """The note of a strategy, with what it is a copy of; no tokens, since none were used for it."""
    row = ReflectionNote(
        owner_id=ctx.owner,
        id=note_id(ctx.owner, strategy_scope(home.strategy_id, home.mode), note.hash),
        strategy_id=home.strategy_id,
        strategy_version=home.strategy_version,
        strategy_name=home.strategy_name,
        mode=home.mode,
        deployment_id=None,
        status="active",
        generated_at=ctx.now,
        window_start=None,
        window_end=None,
        trades_considered=0,
        lessons_text=note.text,
        content_hash=note.hash,
        bullets=canonical_json(note.bullets),
        author="owner",
        known_at=ctx.now,
        recorded_at=ctx.now,
    )
    if source is None:
        return row
    return replace(
        row,
        window_start=source.window_start,
        window_end=source.window_end,
        trades_considered=source.trades_considered,
        author=source.author,
        model_used=source.model_used,
        copied_from=source.id,
    )


def _standing(connection: Connection, ctx: Context, deployment_id: str, horizon: Horizon) -> set[str]:
    """The keys of the patterns that lessons of a deployment may rest on."""
    home = deployment_named(connection, ctx.owner, deployment_id)
    last = stored.last_reflection(connection, ctx.owner, horizon, strategy_id=home.strategy_id, mode=home.mode)
    return {found.key for found in carried_in(last).found}


def _proposal(transaction: Transaction, ctx: Context, proposal_id: str) -> Proposal:
    found = stored.proposal(transaction.connection, ctx.owner, proposal_id)
    if found is None or found.known_at > ctx.now:
        raise NotFound(f"no proposal {proposal_id[:40]!r}; list_proposals shows them", field="proposal_id")
    return found
