"""Lessons: learn from a strategy's closed trades, test whether memory helps, and decide on proposals."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Flag, Instant, Key, Limit, LongProse, Name, Reason, SeenAt
from backsight.core.errors import Conflict, Invalid, NotFound, did_you_mean
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.market import EPOCH
from backsight.core.memory.plan_origins import may_suggest_plan
from backsight.core.portfolio import Mode
from backsight.core.reflection.citation_check import DroppedBullet
from backsight.core.reflection.evidence_view import EvidenceView, describe_evidence
from backsight.core.reflection.holdout_test import HoldoutResult, analyse_holdout
from backsight.core.reflection.lessons import (
    LessonsNote,
    accept_lessons,
    mark_origin,
    parse_note,
    render_lessons,
    shown_lessons_hash,
)
from backsight.core.reflection.lessons_comparison import LessonsComparison
from backsight.core.reflection.notes import (
    Author,
    NoteView,
    Proposal,
    ProposalStatus,
    Reflection,
    ReflectionNote,
    ReflectionOutcome,
    note_id,
    strategy_scope,
)
from backsight.core.reflection.periods import Period
from backsight.core.reflection.reviews import PeriodResult, best_and_worst, render_review, summarise_trades
from backsight.core.scope import AnswerScope
from backsight.core.strategies import Deployment, Slot
from backsight.core.text.counts import count_of
from backsight.core.text.tokens import estimate
from backsight.core.trades.trade import Trade
from backsight.operation import command, query
from backsight.services.belief_learning import current_beliefs
from backsight.services.context import Context, refuse_past
from backsight.services.deployments import (
    chosen_deployment,
    deployment_at,
    deployment_named,
    deployments_at,
    deployments_to_read,
    resolve_scope,
    the_deployment,
)
from backsight.services.holdout import HoldoutRecord, holdout_record
from backsight.services.id_prefixes import whole_id
from backsight.services.proposals import check_supported, decline_proposal, enact_proposal
from backsight.services.reflection import (
    ReflectionResult,
    WatchList,
    activate_note,
    read_watch_list,
    reflect_dry_run,
    reflect_now,
)
from backsight.services.reviews import read_period
from backsight.services.withheld_memory import READ_ANYWAY, WITHHELD, withholds_from_queries
from backsight.store import notes as stored
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import EVERYTHING, View

REFLECTED, MOST_REFLECTIONS = 50, 5
"""Of how many last trades the reflections are read, and how many are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveLessons:
    """The lessons in force, and their text as the agent reads it."""

    deployment: str
    note: NoteView | None
    """None if there are no lessons yet, and on a day on which memory is withheld."""
    text: str | None
    """The text without the suppressed slots, and with the watched patterns if the deployment shows them."""
    hash: str | None
    """The hash that trades carry: of the whole note, whichever slots are suppressed; of the text where unproven lessons
    stand beside it."""
    suppressed: tuple[Slot, ...]
    reflections: tuple[Trade, ...]
    """The last trades that the agent wrote a reflection on, newest first."""
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One reflection and its outcome.

    A class beside `Reflection` because it has the keys of the patterns instead of the state of the search, which only
    the next reflection reads and which is many times as large.
    """

    id: str
    deployment_id: str
    at: datetime
    author: Author
    came: ReflectionOutcome
    reason: str
    note_id: str | None
    """The note in force after the reflection."""
    closed: int
    """The number of the strategy's trades closed by then."""
    considered: int
    """The number of trades analysed."""
    patterns: tuple[str, ...]
    """Keys of the significant patterns."""
    dropped: tuple[DroppedBullet, ...]
    model_used: str | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonList:
    """Revisions of the lessons and the last reflections, both newest first."""

    notes: tuple[NoteView, ...]
    attempts: tuple[AttemptView, ...]
    watched: tuple[WatchList, ...]
    """The watch list in each mode in which the strategy is deployed, computed from the trades known by then."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLessons:
    """The results of a strategy's trades under each revision of the lessons, and without lessons."""

    strategy_name: str
    mode: Mode
    comparison: LessonsComparison
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHelp:
    """Whether memory helps a strategy."""

    strategy_name: str
    mode: Mode
    help: HoldoutResult
    currency: str | None
    """The currency of the results in money; null without trades, or if the accounts have several."""
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedLessons:
    """The lessons that new deployments of a strategy start with."""

    note: NoteView
    cut: tuple[str, ...]
    """Bullets that did not fit."""
    replayed: bool
    """Whether these were the strategy's lessons before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodReview:
    """A period in figures and as a Markdown report."""

    deployment: str
    period: Period
    start: datetime
    end: datetime
    result: PeriodResult
    best: tuple[Trade, ...]
    worst: tuple[Trade, ...]
    evidence: EvidenceView
    note: NoteView | None
    """The note in force at the end of the period."""
    markdown: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalView:
    """A proposal, and whether its pattern or its belief still holds."""

    proposal: Proposal
    still_holds: bool
    """Whether the pattern behind the proposal is still significant, or the belief behind it still credible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalList:
    """Proposals in the order in which they got their status."""

    proposals: tuple[ProposalView, ...]
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedProposal:
    """The proposal after the decision."""

    proposal: Proposal
    replayed: bool
    """Whether the same decision was made before."""


@command(audience=("trader",), idempotent=False)
def reflect(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    dry_run: Annotated[Flag, "Only report what would be written and on what evidence; no model is called."] = False,
    as_of: Annotated[Instant | None, "For a dry run: what was known at this instant; default now."] = None,
    seen_at: SeenAt = None,
) -> ReflectionResult:
    """Reflect on the strategy's closed trades and write lessons if a pattern is significant.

    A pattern must pass a test against chance that is clustered by day and corrected for all groups compared. The
    reflection is recorded whatever its outcome. The lessons in force stay if the new ones are refused or the language
    model is unavailable.
    """
    refuse_past(as_of, seen_at, dry_run=dry_run)
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target = the_deployment(view, deployment)
        if dry_run:
            return reflect_dry_run(view, ctx.database.trade_images.at(view), target)
    return reflect_now(ctx, target, at=ctx.now)


@query(audience=("trader",))
def active_lessons(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ActiveLessons:
    """Get the lessons in force for a deployment, as its agent reads them."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target, default = chosen_deployment(
            view, deployment, shows=lambda each: stored.active_note(view, each.id) is not None
        )
        is_withheld = as_of is None and withholds_from_queries(view, target)
        note = None if is_withheld else stored.active_note(view, target.id)
        text = None if is_withheld else _visible_text(view, note, target)
        reflections = () if is_withheld else _reflections(view, target)
        if is_withheld:
            message = f"{WITHHELD} {READ_ANYWAY}"
        else:
            message = _why_no_lessons(view, target) if note is None else _active_message(note)
    return ActiveLessons(
        deployment=target.name,
        note=note,
        text=text,
        hash=shown_lessons_hash(text or "", note_hash=None if note is None else note.content_hash),
        suppressed=target.memory.suppressed,
        reflections=reflections,
        message=" ".join([*default, message]),
        as_of=view.as_of,
    )


def _reflections(view: View, deployment: Deployment) -> tuple[Trade, ...]:
    """The last trades of a deployment that have a reflection."""
    last = stored_trades.trades(view, limit=REFLECTED, deployment_id=deployment.id, status="closed")
    return tuple(trade for trade in last if trade.reflection)[:MOST_REFLECTIONS]


@query(audience=("trader",))
def list_lessons(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; every one if left out."] = None,
    strategy_name: Annotated[Name | None, "Instead of a deployment: a strategy with all its deployments."] = None,
    limit: Annotated[Limit, "The maximum number of revisions, and of reflections."] = 20,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> LessonList:
    """List the revisions of the lessons, the last reflections with their outcomes, and the patterns that are watched.

    A watched pattern differs from the rest but is not proven: chance may still explain it. It is no lesson, and nothing
    is proposed from it.
    """
    if deployment is not None and strategy_name is not None:
        raise Invalid("a strategy_name is given too; give one of the two", field="deployment")
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        if strategy_name is not None:
            strategy_id = _strategy_id(view, strategy_name)
            deployments = [each for each in stored_strategies.deployments(view) if each.strategy_id == strategy_id]
            notes = stored.notes(view, strategy_id=strategy_id)
            reflections = stored.reflections(view, limit=limit, strategy_id=strategy_id)
        else:
            first, _ = chosen_deployment(view, deployment)
            deployments = [first] if deployment is not None else deployments_to_read(view, deployments_at(view))
            notes = _newest_first(
                each
                for target in deployments
                for each in stored.notes(view, strategy_id=target.strategy_id, deployment_id=target.id)
            )
            reflections = _latest_first(
                each
                for target in deployments
                for each in stored.reflections(view, limit=limit, deployment_id=target.id)
            )[:limit]
        in_mode = {(each.strategy_id, each.mode): each for each in reversed(deployments)}
        columns = ctx.database.trade_images.at(view)
        watched = tuple(
            read_watch_list(view, columns, each) for _, each in sorted(in_mode.items(), key=lambda item: item[0][::-1])
        )
    return LessonList(
        notes=tuple(notes[:limit]),
        attempts=tuple(map(_attempt_view, reflections)),
        watched=watched,
        as_of=view.as_of,
    )


def _newest_first(notes: Iterable[ReflectionNote]) -> list[ReflectionNote]:
    return sorted(notes, key=lambda each: (each.generated_at, each.id), reverse=True)


def _latest_first(reflections: Iterable[Reflection]) -> list[Reflection]:
    return sorted(sorted(reflections, key=lambda each: each.id), key=lambda each: each.known_at, reverse=True)


@query(audience=("trader",))
def compare_lessons(
    ctx: Context,
    *,
    strategy_name: Annotated[Name, "The strategy."],
    mode: Annotated[
        Mode | None,
        "Trades with real money, on paper or simulated, which are never mixed; by default the mode of the strategy's "
        "deployment or the only one with trades.",
    ] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ComparedLessons:
    """Compare the results of trades under each revision of the lessons, and without lessons.

    This compares periods of time, because revisions were in force one after the other. does_memory_help compares random
    arms.
    """
    # These modules need NumPy.
    from backsight.core.reflection.day_bootstrap import compare_revisions
    from backsight.core.reflection.trades_under_lessons import trades_under_lessons
    from backsight.core.trades.columns import trades_of_strategy

    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        strategy_id = _strategy_id(view, strategy_name)
        scope = resolve_scope(view, strategy_name=strategy_name, mode=mode)
        columns = ctx.database.trade_images.at(view)
    rows = trades_of_strategy(columns, view.horizon, strategy_id=strategy_id, mode=scope.mode)
    comparison = compare_revisions(trades_under_lessons(columns, rows))
    return ComparedLessons(
        strategy_name=strategy_name,
        mode=scope.mode,
        comparison=comparison,
        message=_compared_message(scope, len(rows)),
        as_of=view.as_of,
    )


@query(audience=("trader", "coach"))
def does_memory_help(
    ctx: Context,
    *,
    strategy_name: Annotated[Name, "The strategy."],
    mode: Annotated[
        Mode | None,
        "Trades with real money, on paper or simulated, which are never mixed; by default the mode of the strategy's "
        "deployment or the only one with trades.",
    ] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> MemoryHelp:
    """Test whether memory helps: compare days with memory shown and days with memory withheld at random.

    The result may be read every day: its interval is valid at all times at once. Days without a trade count, and a
    trade that stays open counts as it stood two days after its entry. Without a memory holdout on a deployment there
    is nothing to compare.
    """
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        strategy_id = _strategy_id(view, strategy_name)
        scope = resolve_scope(view, strategy_name=strategy_name, mode=mode)
        columns = ctx.database.trade_images.at(view)
        record = holdout_record(view, columns, strategy_id=strategy_id, strategy_name=strategy_name, mode=scope.mode)
    return MemoryHelp(
        strategy_name=strategy_name,
        mode=scope.mode,
        help=analyse_holdout(record.trades, record.days, recalled_days=record.recalled_days),
        currency=record.currency,
        message=_help_message(scope, record),
        as_of=view.as_of,
    )


def _help_message(scope: AnswerScope, record: HoldoutRecord) -> str:
    """What the comparison covers, and what it leaves out."""
    still_open = sum(trade.is_open for trade in record.trades)
    sentences = [_compared_message(scope, record.closed)]
    if still_open:
        sentences.append(
            f"{count_of(still_open, 'trade')} not closed within two days of the entry: counted as of then."
        )
    if record.recalled_days:
        days = count_of(record.recalled_days, "withheld day")
        sentences.append(f"{days} not counted: a decision rests on a recall, so memory was not withheld.")
    return " ".join(sentences)


@command()
def promote_lessons(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "A deployment of the strategy, by name or id; the only one if left out."] = None,
    lessons: Annotated[
        LongProse | None, "Lessons in your own words, with all five slots; those of the deployment if left out."
    ] = None,
    mode: Annotated[
        Mode | None, "The mode whose new deployments start with the lessons; that of the deployment if left out."
    ] = None,
) -> PromotedLessons:
    """Promote lessons to the strategy: every new deployment in the mode starts with a copy of them.

    Lessons from another mode, such as from paper to live, say in every bullet which trades they rest on. Existing
    deployments keep their lessons.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        target = the_deployment(ctx.view(connection), deployment)
        into: Mode = mode or target.mode
        source: ReflectionNote | None = None
        proposed: str | LessonsNote
        if lessons is None:
            source = _lessons_in_force(ctx, connection, target)
            proposed = mark_origin(LessonsNote(bullets=source.bullets), source.evidence_mode, mode=into)
        else:
            proposed = lessons
        note = accept_lessons(proposed, avoid=_avoid_rules(connection, target), count=estimate)
        former = stored.strategy_note(View(connection, ctx.owner, EVERYTHING), target.strategy_id, into)
        if former is not None and former.known_at > ctx.now:
            newer = f"the strategy has {into} lessons of {format_instant(former.known_at)}"
            raise Conflict(f"{newer}; promote others at a later instant", field="deployment")
        active = activate_note(transaction, _strategy_note(ctx, target, into, note, source), former)
        replayed = not transaction.changes
    whole = proposed if isinstance(proposed, LessonsNote) else parse_note(proposed)
    cut = tuple(bullet.text for bullet in whole.bullets if bullet not in note.bullets)
    return PromotedLessons(note=active, cut=cut, replayed=replayed)


@query(audience=("trader", "coach"))
def review_period(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    period: Annotated[Period, "A day, seven days, or a calendar month."] = "weekly",
    ending: Annotated[Instant | None, "The end of the period; now if left out."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> PeriodReview:
    """Review a period: its trades and results, the evidence of the strategy's trades, and the lessons in force.

    The review contains nothing that became known after the end of the period.
    """
    latest = ctx.horizon(as_of, seen_at).as_of
    end = latest if ending is None else ending
    if end > latest:
        raise Invalid(f"{format_instant(end)} is in the future; give an earlier instant", field="ending")
    if end < EPOCH:
        raise Invalid(f"{format_instant(end)} is before 1970; give a later instant", field="ending")
    with ctx.reading() as connection:
        view = ctx.view(connection, end, seen_at)
        target, _ = chosen_deployment(view, deployment)
        record, evidence = read_period(view, ctx.database.trade_images.at(view), target, period)
        note = stored.active_note(view, target.id)
    best, worst = best_and_worst(record.trades)
    return PeriodReview(
        deployment=target.name,
        period=period,
        start=record.start,
        end=end,
        result=summarise_trades(record.trades),
        best=best,
        worst=worst,
        evidence=describe_evidence(evidence),
        note=note,
        markdown=render_review(record),
        as_of=latest,
    )


@query(audience=("trader",))
def list_proposals(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only the proposals of this deployment, by name or id."] = None,
    status: Annotated[ProposalStatus | None, "Only the proposals with this status."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ProposalList:
    """List the plans and beliefs that lessons and beliefs propose; none has an effect before it is accepted."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target = None if deployment is None else deployment_at(view, deployment)
        deployment_id = None if target is None else target.id
        proposals = stored.proposals(view, deployment_id=deployment_id, status=status)
        significant = {each.deployment_id: _significant_keys(view, each.deployment_id) for each in proposals}
        credible = _credible_beliefs(view, {each.mode for each in proposals if each.belief_id is not None})
    views = [
        ProposalView(
            proposal=each,
            still_holds=each.evidence in significant[each.deployment_id]
            if each.belief_id is None
            else each.belief_id in credible,
        )
        for each in proposals
    ]
    return ProposalList(proposals=tuple(views), as_of=view.as_of)


@command()
def accept_proposal(
    ctx: Context,
    *,
    proposal_id: Annotated[Key, "The id of the proposal, from list_proposals."],
    reason: Annotated[Reason | None, "Why you accept it."] = None,
) -> DecidedProposal:
    """Accept a proposal: its plan or its belief is in force from now on.

    A plan whose advice the outcomes of trades no longer support is refused.
    """
    with ctx.writing() as transaction:
        proposal = _proposal(transaction, ctx, proposal_id)
        if proposal.status == "accepted":
            return DecidedProposal(proposal=proposal, replayed=True)
        remedy = "create the plan or belief with create_trading_plan or add_belief instead"
        if proposal.status == "rejected":
            raise Conflict(f"the proposal was rejected, which is final; {remedy}", field="proposal_id")
        if proposal.status == "withdrawn":
            raise Conflict(f"the proposal was withdrawn: {proposal.decided_reason}; {remedy}", field="proposal_id")
        if proposal.kind == "plan":
            target = deployment_named(transaction.connection, ctx.owner, proposal.deployment_id)
            check_supported(ctx.view(transaction.connection), target, proposal)
        return DecidedProposal(proposal=enact_proposal(transaction, ctx, proposal, reason=reason), replayed=False)


@command()
def reject_proposal(
    ctx: Context,
    *,
    proposal_id: Annotated[Key, "The id of the proposal, from list_proposals."],
    reason: Annotated[Reason | None, "Why you reject it."] = None,
) -> DecidedProposal:
    """Reject a proposal: it has no effect and is not made again."""
    with ctx.writing() as transaction:
        proposal = _proposal(transaction, ctx, proposal_id)
        if proposal.status == "rejected":
            return DecidedProposal(proposal=proposal, replayed=True)
        if proposal.status == "accepted":
            remedy = "cancel_plan" if proposal.kind == "plan" else "retire_belief"
            raise Conflict(f"the proposal was accepted; end its {proposal.kind} with {remedy}", field="proposal_id")
        declined = decline_proposal(transaction, proposal, reason=reason, now=ctx.now)
        return DecidedProposal(proposal=declined, replayed=False)


def _why_no_lessons(view: View, deployment: Deployment) -> str:
    """That a deployment has no lessons, and why: what its last reflection came to."""
    last = stored.last_reflection(view, strategy_id=deployment.strategy_id, mode=deployment.mode)
    if last is None:
        return f"{deployment.name} has no lessons: nothing was reflected on yet; reflect does so."
    return f"{deployment.name} has no lessons. The last reflection, at {last.at:%Y-%m-%d %H:%M}: {last.reason}."


def _active_message(note: NoteView) -> str:
    trades = count_of(note.trades_considered, "trade")
    return f"Lessons {note.content_hash}, by {note.author}, since {note.known_at:%Y-%m-%d %H:%M}, from {trades}."


def _compared_message(scope: AnswerScope, trades: int) -> str:
    return " ".join([*scope.notes, f"{count_of(trades, f'closed {scope.mode} trade')}."])


def _visible_text(view: View, note: ReflectionNote | None, deployment: Deployment) -> str | None:
    """The lessons as the agent of a deployment reads them; None without any."""
    memory = deployment.memory
    watched = stored.watched_patterns(view, deployment) if memory.lessons == "proven_and_watched" else ()
    if note is None and not watched:
        return None
    lessons = LessonsNote() if note is None else LessonsNote(bullets=note.bullets)
    return render_lessons(lessons, suppressed=memory.suppressed, watched=watched)


def _attempt_view(reflection: Reflection) -> AttemptView:
    return AttemptView(
        id=reflection.id,
        deployment_id=reflection.deployment_id,
        at=reflection.at,
        author=reflection.author,
        came=reflection.came,
        reason=reflection.reason,
        note_id=reflection.note_id,
        closed=reflection.closed,
        considered=reflection.considered,
        patterns=tuple(pattern.key for pattern in reflection.carried.found),
        dropped=reflection.dropped,
        model_used=reflection.model_used,
        input_tokens=reflection.input_tokens,
        output_tokens=reflection.output_tokens,
        cost_usd=reflection.cost_usd,
    )


def _strategy_id(view: View, name: str) -> str:
    """The id of a strategy that was saved or deployed by then; `NotFound` suggests the nearest name."""
    names = {each.strategy_name for each in deployments_at(view)}
    if name not in names and not stored_strategies.is_saved(view, name):
        remedy = did_you_mean(name, sorted(names)) if names else "save it first"
        raise NotFound(f"no strategy {name!r}; {remedy}", field="strategy_name")
    return derive_id("strategy", view.owner, name)


def _lessons_in_force(ctx: Context, connection: Connection, deployment: Deployment) -> ReflectionNote:
    note = stored.active_note(ctx.view(connection), deployment.id)
    if note is None:
        remedy = "give them in your own words, or reflect first"
        raise NotFound(f"{deployment.name!r} has no lessons yet; {remedy}", field="lessons")
    return note


def _avoid_rules(connection: Connection, deployment: Deployment) -> tuple[str, ...]:
    """The avoid rules of the latest version of a strategy, which is what new deployments run."""
    latest = stored_strategies.strategy(connection, deployment.owner_id, deployment.strategy_name)
    return () if latest is None else latest.avoid


def _strategy_note(
    ctx: Context, deployment: Deployment, mode: Mode, note: LessonsNote, source: ReflectionNote | None
) -> ReflectionNote:
    """The note of a strategy, with the origin of a copy; tokens and cost stay with the source."""
    row = ReflectionNote(
        owner_id=ctx.owner,
        id=note_id(ctx.owner, strategy_scope(deployment.strategy_id, mode), note.hash),
        strategy_id=deployment.strategy_id,
        strategy_version=deployment.strategy_version,
        strategy_name=deployment.strategy_name,
        mode=mode,
        evidence_mode=None,
        deployment_id=None,
        status="active",
        generated_at=ctx.now,
        window_start=None,
        window_end=None,
        trades_considered=0,
        lessons_text=note.text,
        content_hash=note.hash,
        bullets=note.bullets,
        author="owner",
        model_used=None,
        input_tokens=None,
        output_tokens=None,
        cost_usd=None,
        copied_from=None,
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
        evidence_mode=source.evidence_mode,
        adopted=source.adopted,
        author=source.author,
        model_used=source.model_used,
        copied_from=source.id,
    )


def _significant_keys(view: View, deployment_id: str) -> set[str]:
    """The keys of the patterns that are significant for the strategy and mode of a deployment."""
    deployment = deployment_named(view.connection, view.owner, deployment_id)
    last = stored.last_reflection(view, strategy_id=deployment.strategy_id, mode=deployment.mode)
    return set() if last is None else {pattern.key for pattern in last.carried.found}


def _credible_beliefs(view: View, modes: Collection[Mode]) -> set[str]:
    """The ids of the beliefs that may still suggest a plan."""
    records = (record for mode in modes for record in current_beliefs(view, mode))
    return {
        record.standing.belief.id
        for record in records
        if may_suggest_plan(record.standing, credibility=record.posterior.credibility)
    }


def _proposal(transaction: Transaction, ctx: Context, proposal_id: str) -> Proposal:
    proposal_id = whole_id(transaction.connection, ctx.owner, stored.PROPOSALS, proposal_id, field="proposal_id")
    proposal = stored.proposal(transaction.connection, ctx.owner, proposal_id)
    if proposal is None or proposal.known_at > ctx.now:
        raise NotFound(f"no proposal {proposal_id[:40]!r}; list_proposals lists them", field="proposal_id")
    return proposal
