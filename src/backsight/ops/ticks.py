"""Ticks: the prompt before an agent decides, and the record of its decision afterwards."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from backsight.arguments import (
    AsOf,
    Citations,
    Cursor,
    Flag,
    Handles,
    Instant,
    Key,
    Limit,
    Name,
    NotNegative,
    Positive,
    RecordedText,
    Rules,
    SeenAt,
    Share,
    Symbol,
    Whole,
    as_object,
    as_objects,
    as_optional_object,
    check_symbols,
)
from backsight.core.context import ContextVector
from backsight.core.decision import (
    OURS,
    RESPONSE,
    DecidedOrder,
    Decision,
    LastTick,
    ModelUse,
    OpenedTick,
    Prompt,
    PromptRecord,
    ProposedOrder,
    Segment,
    ShownSegment,
    TickReport,
    Verdict,
    as_last,
    day_start_equity,
    decision_id,
    decision_of,
    different_facts,
)
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.fills import Fill
from backsight.core.holdout import MemoryArm
from backsight.core.holdout import memory_arm as arm_of
from backsight.core.instants import JUST_BEFORE, format_instant
from backsight.core.market import Bar
from backsight.core.memory.affective import with_agent_state
from backsight.core.memory.plan_check import Contradiction
from backsight.core.orders import BrokerSnapshot, Order, entry_direction
from backsight.core.portfolio import Account, Portfolio
from backsight.core.prompts.account import Cap
from backsight.core.recall.record import RecallQuery
from backsight.core.risk_state import AttemptKind, RiskState, render_risk_state
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Trade, rest_note
from backsight.object_arguments import (
    BarsArgument,
    CapArgument,
    OrderArgument,
    ProposalArgument,
    SegmentArgument,
    SnapshotArgument,
    VerdictArgument,
)
from backsight.operation import command, query
from backsight.services.agent_settings import refuse_stopped
from backsight.services.calls import resolve_calls
from backsight.services.card_outcomes import resolve_open_cards
from backsight.services.context import Context
from backsight.services.deployments import account_of, chosen_deployment, deployment_named, the_deployment
from backsight.services.id_prefixes import whole_id
from backsight.services.instant_bounds import check_instant, check_snapshot_instant
from backsight.services.learning import LearningReport
from backsight.services.ledger import Tick, possible_rests, post
from backsight.services.market import add_bars, context_at, new_bars, recent_bars, sorted_bars
from backsight.services.mood import mood_in
from backsight.services.outlook import recommended_share
from backsight.services.paging import cursor_after, read_cursor
from backsight.services.plan_checks import check_plans_at_tick
from backsight.services.present_state import PresentState, recorded_state, state_at_tick
from backsight.services.prompt_assembly import PromptRequest, assemble_prompt, recent_state
from backsight.services.recall import are_kept, repeat_recalls
from backsight.services.recall_hashes import named_recalls
from backsight.services.reflection import ReflectionResult, reflect_if_due
from backsight.services.void import void
from backsight.store import decisions as stored
from backsight.store import instruments as stored_instruments
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.recalls import recalls_of, store_recalls
from backsight.store.tick_claims import forget_intent
from backsight.store.transaction import Transaction
from backsight.store.view import View

Segments = Annotated[Sequence[SegmentArgument], Field(max_length=100)]
Proposals = Annotated[Sequence[ProposalArgument], Field(max_length=100)]
Symbols = Annotated[list[Symbol], Field(max_length=100)]
RECENT_TRADES = 10
"""Closed trades that say which symbols a deployment usually trades."""
Caps = Annotated[Sequence[CapArgument], Field(max_length=20)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTick:
    """A recorded decision, the trades that it opened and closed, and what memory learned from them."""

    decision: Decision
    opened: tuple[Trade, ...]
    closed: tuple[Trade, ...]
    learned: tuple[LearningReport, ...]
    """The changes in each memory, one report for each trade that was closed or corrected."""
    plans: tuple[str, ...]
    """Ids of the plans that applied at the tick."""
    contradictions: tuple[Contradiction, ...]
    """Pairs of these plans that cannot both be followed."""
    reflection: ReflectionResult | None
    """The result of the reflection that was due after the tick; None if none was due."""
    notes: tuple[str, ...]
    """What was assumed or is not known, in sentences: exits at a price that the broker did not give, recalls."""
    replayed: bool
    """Whether the tick was closed before: nothing was changed, the trades are as they were recorded, and what was
    learned then, the plans and the reflection are not repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoidedTick:
    """The decision of a tick that was voided, as it was recorded."""

    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPage:
    """A page of decisions, newest first, and the cursor of the next page."""

    deployment: str
    decisions: tuple[Decision, ...]
    next_cursor: str | None
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDetail:
    """A decision with the text of its prompt and of the model's answer."""

    decision: Decision
    shown: tuple[Segment, ...]
    """The segments that the agent was shown, as the caller reported them."""
    response: str | None
    """The raw answer of the model; None if it was not reported."""
    thinned: int
    """The number of these texts that `retention` has removed."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentActivity:
    """A deployment's recent activity, as figures and as the text that its agent reads."""

    deployment: str
    deployment_id: str
    state: RiskState
    text: str
    """Empty if there was no activity."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """The number of decisions that an account's ledger was built from, and of the trades in it."""

    account_id: str
    decisions: int
    opened: int
    closed: int
    replayed: bool
    """Whether the account had a ledger already; nothing was changed then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPreview(Prompt):
    """The prompt that an agent is shown, or would have been shown, at an instant."""

    deployment: str
    deployment_id: str
    memory_arm: MemoryArm
    tokens_without_memory: int
    contexts: tuple[ContextVector, ...]
    as_of: datetime
    seen_at: datetime | None


@query()
def open_tick(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment that is about to decide, by name or id."],
    at: Annotated[Instant, "The instant of the tick; memory is read as of a microsecond before it."],
    before: Annotated[SnapshotArgument, "The broker's snapshot: portfolio, fills since the last snapshot, marks."],
    sequence: Annotated[Whole, "Order among the ticks of one instant."] = 0,
    symbols: Annotated[Symbols, "The symbols that the agent may trade."] = [],  # noqa: B006
    bars: Annotated[BarsArgument, "Recently closed bars that are not stored yet."] = [],  # noqa: B006
    market: Annotated[Segments, "Your own sections, like bars, news or funding, with their headings."] = [],  # noqa: B006
    caps: Annotated[Caps, "The limits of your risk engine; the prompt shows them with the portfolio."] = [],  # noqa: B006
    tools: Annotated[Rules, "The tools that the agent can call, a line each: name and purpose."] = [],  # noqa: B006
    budget: Annotated[Whole | None, "Most tokens of the whole prompt; sections are cut in a fixed order."] = None,
    seen_at: SeenAt = None,
) -> OpenedTick:
    """Open a tick: get the system prompt and the message to show the agent before it decides.

    Nothing is written. Pass the segments that the agent was really shown to close_tick, with `recalls`.
    """
    check_instant(ctx, at, field="at")
    snapshot, sections, given_bars = (
        as_object(before, BrokerSnapshot),
        as_objects(market, Segment),
        as_objects(bars, Bar),
    )
    check_names(sections)
    check_symbols(given_bars)
    unstored = sorted_bars(given_bars, until=at)
    with ctx.reading() as connection:
        view = ctx.view(connection, at - JUST_BEFORE, seen_at)
        target = deployment_named(connection, ctx.owner, deployment)
        refuse_stopped(view, target)
        account = account_of(connection, target)
        _check_snapshot(ctx, account, snapshot, field="before")
        decision = stored.last_decision(view, target)
        last = None if decision is None else as_last(decision)
        at_tick, mood = ctx.view(connection, at, seen_at), mood_in(view, target)
        arm, present = _arm_of_day(target, at), PresentState(mood=mood)
        if arm != "off":
            _check_newer(snapshot, stored.last_of_account_then(view, account.id))
            present = state_at_tick(
                view, target, account, snapshot, at=at, sequence=sequence, unstored=unstored, recorded_at=ctx.now
            )
        contexts = tuple(
            with_agent_state(context_at(symbol, at, recent_bars(at_tick, symbol, unstored=unstored)), mood)
            for symbol in dict.fromkeys(symbols)
        )
        day_start = day_start_equity(last, at)
        request = PromptRequest(
            deployment=target,
            account=account,
            at=at,
            view=view,
            arm=arm,
            portfolio=snapshot.portfolio,
            last=decision,
            mood=mood,
            present=present,
            day_start_equity=snapshot.portfolio.equity if day_start is None else day_start,
            contexts=contexts,
            market=sections,
            caps=as_objects(caps, Cap),
            tools=tools,
            budget=budget,
        )
        prompt = assemble_prompt(ctx, request)
    return OpenedTick(
        **as_fields(prompt),
        decision_id=decision_id(target.id, at, sequence),
        deployment_id=target.id,
        at=at,
        sequence=sequence,
        as_of=view.as_of,
        seen_at=seen_at or ctx.now,
        memory_arm=request.arm,
        contexts=contexts,
    )


@query(audience=("trader",))
def preview_context(
    ctx: Context,
    *,
    deployment: Annotated[
        Key | None, "The deployment whose agent is shown the prompt, by name or id; the only one if left out."
    ] = None,
    symbols: Annotated[
        Symbols, "The symbols that the agent may trade; by default those of its positions and last trades."
    ] = [],  # noqa: B006
    market: Annotated[Segments, "Your own sections, like bars, news or funding, with their headings."] = [],  # noqa: B006
    caps: Annotated[Caps, "The limits of your risk engine."] = [],  # noqa: B006
    tools: Annotated[Rules, "The tools that the agent can call, a line each."] = [],  # noqa: B006
    budget: Annotated[Whole | None, "Most tokens of the whole prompt."] = None,
    memory_arm: Annotated[
        MemoryArm | None, "With memory shown, withheld or off; by default the arm of the day."
    ] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ContextPreview:
    """Preview the prompt of an agent, now or then: every segment with its tokens, with memory and without."""
    sections = as_objects(market, Segment)
    check_names(sections)
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        at = view.as_of
        target, _ = chosen_deployment(view, deployment)
        decision = stored.last_decision(view, target)
        last = None if decision is None else as_last(decision)
        of_account = stored.last_decision_of_account_then(view, target.account_id)
        portfolio = None if of_account is None else of_account.last_snapshot.portfolio
        mood = mood_in(view, target)
        contexts = tuple(
            with_agent_state(context_at(symbol, at, recent_bars(view, symbol)), mood)
            for symbol in symbols or _usual_symbols(view, target, portfolio)
        )
        request = PromptRequest(
            deployment=target,
            account=account_of(connection, target),
            at=at,
            view=view,
            arm=memory_arm or _arm_of_day(target, at),
            portfolio=portfolio,
            last=decision,
            mood=mood,
            present=recorded_state(view, target),
            day_start_equity=day_start_equity(last, at),
            contexts=contexts,
            market=sections,
            caps=as_objects(caps, Cap),
            tools=tools,
            budget=budget,
        )
        prompt = assemble_prompt(ctx, request)
    return ContextPreview(
        **as_fields(prompt),
        deployment=target.name,
        deployment_id=target.id,
        memory_arm=request.arm,
        tokens_without_memory=prompt.total_tokens - prompt.memory_tokens,
        contexts=contexts,
        as_of=at,
        seen_at=seen_at,
    )


def _arm_of_day(deployment: Deployment, at: datetime) -> MemoryArm:
    memory = deployment.memory
    return arm_of(deployment.id, at, holdout=memory.holdout, enabled=memory.enabled)


def _usual_symbols(view: View, deployment: Deployment, portfolio: Portfolio | None) -> list[str]:
    """The symbols of a deployment's open positions and of its last trades."""
    open_symbols = [] if portfolio is None else [position.symbol for position in portfolio.positions]
    trades = stored_trades.recent_closed(view, deployment.id, most=RECENT_TRADES)
    return list(dict.fromkeys([*open_symbols, *(trade.symbol for trade in trades)]))


@command()
def close_tick(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment that decided, by name or id."],
    at: Annotated[Instant, "The instant of the tick."],
    before: Annotated[SnapshotArgument, "The broker's snapshot before the decision."],
    verdict: Annotated[
        VerdictArgument | None,
        "The result of the decision: noop, rejected (with the rule) or executed; not needed if each of `proposals`"
        " has its own.",
    ] = None,
    after: Annotated[
        SnapshotArgument | None, "The broker's snapshot after the decision; by default the one before."
    ] = None,
    sequence: Annotated[Whole, "Order among the ticks of one instant."] = 0,
    proposal: Annotated[OrderArgument | None, "The order that was proposed, with its reason."] = None,
    proposals: Annotated[
        Proposals, "Several orders of one decision, instead of `proposal`: each with its reason, order id and verdict."
    ] = [],  # noqa: B006
    confidence: Annotated[Share | None, "The agent's confidence, 0 to 1."] = None,
    flatten: Annotated[Flag, "A command to close everything was in force."] = False,
    bars: Annotated[BarsArgument, "Bars that closed since the last tick; they are stored."] = [],  # noqa: B006
    shown: Annotated[
        Segments | None, "The segments that the agent was shown, from open_tick; none: memory was not used."
    ] = None,
    recalled: Annotated[Citations, "Ids of the memories in the segments."] = [],  # noqa: B006
    recalls: Annotated[
        Handles, "The `recall` of each recall answer that the agent used; stored with the decision."
    ] = [],  # noqa: B006
    lessons_hash: Annotated[Key | None, "Hash of the lessons that the agent was shown."] = None,
    seen_at: Annotated[Instant | None, "When the store was asked for the segments."] = None,
    usd_rate: Annotated[Positive | None, "Dollars for one unit of the account's currency."] = None,
    model: Annotated[Name | None, "The model that decided."] = None,
    model_parameters: Annotated[RecordedText | None, "The parameters of the model, as JSON."] = None,
    input_tokens: Annotated[Whole | None, "Tokens that the model read."] = None,
    output_tokens: Annotated[Whole | None, "Tokens that the model wrote."] = None,
    cost: Annotated[NotNegative | None, "Cost of the model call."] = None,
    citations: Annotated[Citations, "References that the agent gave."] = [],  # noqa: B006
    response: Annotated[
        RecordedText | None, "The raw answer of the model, at most 100,000 characters; get_decision shows it."
    ] = None,
    simulation_id: Annotated[Key | None, "The simulation that the tick belongs to."] = None,
) -> ClosedTick:
    """Close a tick: record the decision, and update the ledger and every memory from the broker's snapshots.

    Closing the same tick again changes nothing and returns what was recorded, whenever the store is asked again
    (`seen_at`). Other facts about a closed tick are refused by name, and so is a tick older than the account's last
    one. If a reflection is due, lessons are written afterwards; the tick stays closed even if that fails.
    """
    check_instant(ctx, at, field="at")
    before, after = as_object(before, BrokerSnapshot), as_optional_object(after, BrokerSnapshot)
    proposal, verdict = as_optional_object(proposal, Order), as_optional_object(verdict, Verdict)
    given_bars = as_objects(bars, Bar)
    proposed = _with_verdicts(proposal, as_objects(proposals, ProposedOrder), verdict)
    check_symbols(given_bars)
    closed_bars = sorted_bars(given_bars, until=at)
    segments = None if shown is None else tuple(as_objects(shown, Segment))
    named = named_recalls(ctx, recalls)
    entries = any(entry_direction(each.order, before) is not None for each in proposed)
    if not (are_kept(ctx, named.handles) and (not entries or ctx.database.images.has(ctx.owner))):
        with ctx.reading() as connection:  # other commands need not wait for what takes long the first time
            repeat_recalls(ctx, connection, named.handles, at=at, field="recalls")
            _with_shares(ctx, connection, deployment, proposed, before, closed_bars, at=at, sequence=sequence)
    with ctx.writing() as transaction:
        connection = transaction.connection
        repeated_recalls = repeat_recalls(ctx, connection, named.handles, at=at, field="recalls")
        target = deployment_named(connection, ctx.owner, deployment)
        decided = _with_shares(ctx, connection, deployment, proposed, before, closed_bars, at=at, sequence=sequence)
        account = account_of(connection, target)
        report = TickReport(
            at=at,
            sequence=sequence,
            before=before,
            after=after,
            proposals=decided,
            verdict=verdict or Verdict(kind="noop"),
            confidence=confidence,
            flatten=flatten,
            usd_rate=usd_rate,
            prompt=PromptRecord(
                segments=segments, recalled=tuple(recalled), lessons_hash=lessons_hash, seen_at=seen_at
            ),
            model_use=ModelUse(
                model=model,
                parameters=model_parameters,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cost=cost,
            ),
            citations=tuple(citations),
            response=response,
            simulation_id=simulation_id,
        )
        _check_snapshots(ctx, account, report)
        last = stored.last_of_account(connection, ctx.owner, target.account_id)
        if last is not None and last.moment >= (at, sequence):
            repeated = RepeatedTick(
                decision=decision_of(report, target, last, recorded_at=ctx.now),
                bars=closed_bars,
                recalls=[result.asked for result in repeated_recalls],
                are_all_recalls=named.handles == tuple(dict.fromkeys(recalls)),
            )
            return _replayed(ctx, connection, account, last, repeated)
        _check_newer(before, last)
        for series in closed_bars:
            add_bars(transaction, ctx.owner, series, recorded_at=ctx.now)
        resolve_calls(transaction, ctx.owner, by=at, recorded_at=ctx.now)
        resolve_open_cards(transaction, ctx.owner, by=at, recorded_at=ctx.now)
        last_of_target = last
        if last is not None and last.deployment_id != target.id:
            last_of_target = stored.last_of_deployment(ctx.view(connection, at), target.id)
        decision = decision_of(report, target, last_of_target, recorded_at=ctx.now)
        plan_checks = check_plans_at_tick(transaction, target, decision, last_of_target)
        posted = post(transaction, Tick(deployment=target, account=account, decision=decision, last=last))
        store_recalls(transaction, ctx.owner, decision.id, repeated_recalls, recalled, known_at=at, recorded_at=ctx.now)
        stored.add_last(transaction, posted.decision)
        forget_intent(connection, ctx.owner, account.id, at=at, sequence=sequence)
        answer = () if response is None else (Segment(name=RESPONSE, text=response),)
        _store_segments(transaction, ctx, at, (*(segments or ()), *answer))
    reflection = reflect_if_due(ctx, target, at=at, closed_in_tick=len(posted.closed))
    return ClosedTick(
        decision=posted.decision,
        opened=posted.opened,
        closed=posted.closed,
        learned=posted.learned,
        plans=tuple(dict.fromkeys(plan.id for check in plan_checks for plan in check.applying)),
        contradictions=tuple(dict.fromkeys(pair for check in plan_checks for pair in check.contradictions)),
        reflection=reflection,
        notes=(
            *named.notes,
            *_notes(posted.incomplete, posted.uncounted, posted.closed, posted.rests, posted.decision, account),
        ),
        replayed=False,
    )


@command()
def void_tick(
    ctx: Context,
    *,
    decision_id: Annotated[Key, "The decision of the account's last tick, by its id or the beginning of it."],
) -> VoidedTick:
    """Void the last tick of an account, for example one that a wrong clock dated years ahead.

    The decision and all that the tick wrote to the ledger and the memories return to what they were before it; bars and
    prompt texts stay. The audit chain records who voided what. Closing the same tick again restores it. To void several
    ticks, begin with the last one.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        whole = whole_id(connection, ctx.owner, stored.DECISIONS, decision_id, field="decision_id")
        decision = stored.decision(connection, ctx.owner, whole)
        if decision is None:
            raise NotFound(f"there is no decision {decision_id!r}; list_decisions has their ids", field="decision_id")
        last = stored.last_of_account(connection, ctx.owner, decision.account_id)
        if last is not None and last.moment != (decision.at, decision.sequence):
            message = f"the account's last tick is that of {format_instant(last.at)} ({last.sequence})"
            raise Conflict(f"{message}; void that one first", field="decision_id")
        void(transaction, decision)
    return VoidedTick(decision=decision)


@query(audience=("trader", "coach"))
def list_decisions(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    kind: Annotated[AttemptKind | None, "Only decisions with this verdict."] = None,
    since: Annotated[Instant | None, "Only ticks at or after this instant."] = None,
    until: Annotated[Instant | None, "Only ticks before this instant."] = None,
    limit: Annotated[Limit, "Most decisions on a page."] = 20,
    cursor: Annotated[Cursor | None, "The next_cursor of the previous page."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> DecisionPage:
    """List the decisions of a deployment, newest first: the proposal, the reason and the verdict of each."""
    query_arguments = ctx.arguments(without=("cursor", "limit"))
    horizon, before = ctx.horizon(as_of, seen_at), None
    if cursor is not None:
        before, horizon = read_cursor(cursor, _instant_and_sequence, query=query_arguments)
    with ctx.reading() as connection:
        view = View(connection, ctx.owner, horizon)
        target, _ = chosen_deployment(
            view, deployment, shows=lambda each: stored.last_of_deployment(view, each.id) is not None
        )
        decisions = stored.decisions(
            view,
            deployment_id=target.id,
            kind=kind,
            since=since,
            until=until,
            before=before,
            limit=limit + 1,
        )
    page = tuple(decisions[:limit])
    more = len(decisions) > limit
    next_cursor = None
    if more:
        last = page[-1]
        next_cursor = cursor_after([last.at, last.sequence], horizon, now=ctx.now, query=query_arguments)
    return DecisionPage(deployment=target.name, decisions=page, next_cursor=next_cursor, as_of=view.as_of)


@query()
def get_decision(
    ctx: Context,
    *,
    decision_id: Annotated[Key, "The decision, by its id or the beginning of it."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> DecisionDetail:
    """Get one decision in full: its orders and verdicts, the prompt that was shown, and the model's raw answer."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        whole = whole_id(connection, ctx.owner, stored.DECISIONS, decision_id, field="decision_id")
        decision = stored.decision_then(view, whole)
        if decision is None:
            message = f"there is no decision {decision_id!r} as of {format_instant(view.as_of)}"
            raise NotFound(f"{message}; list_decisions has their ids", field="decision_id")
        hashes = {each for each in (*decision.shown, decision.response_hash) if each is not None}
        texts = stored.segments(connection, ctx.owner, hashes)
    response = texts.get(decision.response_hash or "")
    return DecisionDetail(
        decision=decision,
        shown=tuple(texts[each] for each in decision.shown if each in texts),
        response=None if response is None else response.text,
        thinned=len(hashes - texts.keys()),
        as_of=view.as_of,
    )


@query(audience=("trader", "coach"))
def get_recent_activity(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> RecentActivity:
    """Get the recent activity of a deployment: rejections, executed orders, today's result, losing streak."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target, _ = chosen_deployment(view, deployment)
        last = stored.last_of_deployment(view, target.id)
        day_start = day_start_equity(last, view.as_of)
        state = recent_state(view, target, now=view.as_of, day_start_equity=day_start)
    return RecentActivity(
        deployment=target.name,
        deployment_id=target.id,
        state=state,
        text=render_risk_state(state),
        as_of=view.as_of,
    )


@command()
def backfill(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Any deployment of the account, by name or id; the only one if left out."] = None,
) -> Backfilled:
    """Build the ledger and the memories of an account from its recorded decisions.

    This is for decisions that were recorded before there was a ledger. An account that has a ledger is not changed.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        account = account_of(connection, the_deployment(ctx.view(connection), deployment))
        account_id = account.id
        decisions = stored.decisions_of_account(connection, ctx.owner, account_id)
        if stored_trades.has_ledger(connection, ctx.owner, account_id):
            return Backfilled(account_id=account_id, decisions=len(decisions), opened=0, closed=0, replayed=True)
        targets = {each.id: each for each in stored_strategies.deployments_of(connection, ctx.owner, account_id)}
        last: LastTick | None = None
        opened = closed = 0
        for decision in decisions:
            target = targets[decision.deployment_id]
            recorded = replace(decision, recorded_at=ctx.now)
            posted = post(transaction, Tick(deployment=target, account=account, decision=recorded, last=last))
            opened, closed, last = opened + len(posted.opened), closed + len(posted.closed), as_last(decision)
        replayed = not transaction.changes
    return Backfilled(account_id=account_id, decisions=len(decisions), opened=opened, closed=closed, replayed=replayed)


def check_names(market: Sequence[Segment]) -> None:
    """Refuse a caller's section that has the name of one of ours."""
    for number, segment in enumerate(market):
        if segment.name in OURS:
            message = f"{segment.name!r} is the name of a built-in section; choose another name"
            raise Invalid(message, field=f"market.{number}.name")


def as_fields(prompt: Prompt) -> dict[str, Any]:
    return {field.name: getattr(prompt, field.name) for field in fields(Prompt)}


def _check_snapshots(ctx: Context, account: Account, report: TickReport) -> None:
    _check_snapshot(ctx, account, report.before, field="before")
    _check_snapshot(ctx, account, report.after or report.before, field="after")


def _check_newer(before: BrokerSnapshot, last: LastTick | None) -> None:
    """Refuse a snapshot that is older than the last one of the account."""
    if last is not None and before.portfolio.at < last.broker_at:
        at, last_at = format_instant(before.portfolio.at), format_instant(last.broker_at)
        remedy = "ask the broker again, or void_tick the last tick if its time is wrong"
        message = f"{at} is before the last snapshot, of {last_at}; {remedy}"
        raise Conflict(message, field="before.portfolio.at")


def _check_snapshot(ctx: Context, account: Account, snapshot: BrokerSnapshot, *, field: str) -> None:
    """Refuse a portfolio of another account, one from the future, and one that has a position twice."""
    check_snapshot_instant(ctx, account, snapshot, field=field)
    portfolio = snapshot.portfolio
    if portfolio.account not in (None, account.id, account.name):
        message = f"{portfolio.account!r} is not the account of this deployment; give the portfolio of {account.name!r}"
        raise Invalid(message, field=f"{field}.portfolio.account")
    unique = "position_key" if account.position_mode == "hedging" else "symbol"
    values = [getattr(position, unique) for position in portfolio.positions]
    keys = [position.position_key for position in portfolio.positions]
    for number, position in enumerate(portfolio.positions):
        value = getattr(position, unique)
        if keys.count(position.position_key) > 1 or values.count(value) > 1:
            message = f"{value!r} occurs twice on a {account.position_mode} account; give each position once"
            raise Invalid(message, field=f"{field}.portfolio.positions.{number}.{unique}")


def _with_verdicts(
    proposal: Order | None, proposals: Sequence[ProposedOrder], verdict: Verdict | None
) -> tuple[DecidedOrder, ...]:
    """The orders of a decision, each with its verdict: its own, else that of the tick."""
    if proposal is not None and proposals:
        raise Invalid("give either `proposal` or `proposals`, not both", field="proposals")
    if verdict is None and (not proposals or any(each.verdict is None for each in proposals)):
        message = "there is none; give noop, rejected or executed, for the tick or for each of `proposals`"
        raise Invalid(message, field="verdict")
    _check_rule(verdict, field="verdict")
    if verdict is not None and verdict.kind != "noop" and proposal is None and not proposals:
        raise Invalid(f"the verdict is {verdict.kind}, but there is no proposal; give the order", field="proposal")
    for number, each in enumerate(proposals):
        _check_rule(each.verdict, field=f"proposals.{number}.verdict")
    orders = [ProposedOrder(order=proposal)] if proposal is not None else proposals
    pairs = ((each.order, each.verdict or verdict) for each in orders)
    return tuple(DecidedOrder(order=order, verdict=result) for order, result in pairs if result is not None)


def _check_rule(verdict: Verdict | None, *, field: str) -> None:
    if verdict is not None and verdict.kind == "rejected" and not verdict.rule:
        raise Invalid("a rejection without a rule; give the rule that rejected the proposal", field=f"{field}.rule")


def _with_shares(
    ctx: Context,
    connection: Connection,
    deployment: str,
    proposed: Sequence[DecidedOrder],
    before: BrokerSnapshot,
    unstored: Sequence[Sequence[Bar]],
    *,
    at: datetime,
    sequence: int,
) -> tuple[DecidedOrder, ...]:
    """The orders with the share of equity that was recommended for each; must be called before the tick writes."""
    directions = [entry_direction(each.order, before) for each in proposed]
    if not any(directions):
        return tuple(proposed)
    target, view = deployment_named(connection, ctx.owner, deployment), ctx.view(connection, at - JUST_BEFORE)
    present = state_at_tick(
        view,
        target,
        account_of(connection, target),
        before,
        at=at,
        sequence=sequence,
        unstored=unstored,
        recorded_at=ctx.now,
    )
    contexts = {
        symbol: context_at(symbol, at, recent_bars(ctx.view(connection, at), symbol, unstored=unstored))
        for symbol in {each.order.symbol for each in proposed}
    }
    return tuple(
        each
        if direction is None
        else replace(
            each,
            recommended_share=recommended_share(ctx, view, target, direction, contexts[each.order.symbol], present),
        )
        for each, direction in zip(proposed, directions, strict=True)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedTick:
    """A tick that is not after the account's last one, as its caller reports it."""

    decision: Decision
    bars: Sequence[Sequence[Bar]]
    recalls: Sequence[RecallQuery]
    are_all_recalls: bool
    """False if some were named by their hash: others of them may have been known when the tick was recorded."""


def _replayed(
    ctx: Context, connection: Connection, account: Account, last: LastTick, repeated: RepeatedTick
) -> ClosedTick:
    """The answer for a tick that was closed before with the same facts; any other tick is a `Conflict`."""
    former = stored.decision(connection, ctx.owner, repeated.decision.id)
    if former is None:
        message = f"the tick is not after the account's last one, {format_instant(last.at)} ({last.sequence})"
        remedy = "close ticks in order, give ticks of one instant increasing sequences, or void_tick a wrong last one"
        raise Conflict(f"{message}; {remedy}", field="at")
    at_tick = ctx.view(connection, former.known_at)
    different = [*different_facts(former, repeated.decision), *_different_evidence(at_tick, repeated)]
    if different:
        message = f"the tick of {format_instant(former.at)} ({former.sequence}) is recorded with other content"
        raise Conflict(f"{message} in {', '.join(different)}; a decision does not change", field=different[0])
    trades = {trade_id: stored_trades.trade_then(at_tick, trade_id) for trade_id in (*former.opened, *former.closed)}
    return ClosedTick(
        decision=former,
        opened=tuple(trade for trade_id in former.opened if (trade := trades[trade_id]) is not None),
        closed=tuple(trade for trade_id in former.closed if (trade := trades[trade_id]) is not None),
        learned=(),
        plans=(),
        contradictions=(),
        reflection=None,
        notes=_notes(
            stored_trades.incomplete_fills(at_tick, former.account_id),
            stored_trades.uncounted_payments(at_tick, former.account_id),
            [trade for trade_id in former.closed if (trade := trades[trade_id]) is not None],
            possible_rests(
                stored_trades.open_then(at_tick, former.account_id),
                former.at,
                {each.symbol: each for each in stored_instruments.instruments(at_tick)},
            ),
            former,
            account,
        ),
        replayed=True,
    )


def _notes(
    incomplete: Iterable[Fill],
    uncounted: Iterable[Fill],
    closed: Iterable[Trade],
    rests: Iterable[Trade],
    decision: Decision,
    account: Account,
) -> tuple[str, ...]:
    """What was assumed in the ledger, and where the broker contradicts it, in sentences."""
    return (
        *(_incomplete_note(fill, account) for fill in incomplete),
        *(_uncounted_note(fill, account) for fill in uncounted),
        *(_contradiction_note(trade, account) for trade in closed if trade.contradiction is not None),
        *(_currency_note(trade, account) for trade in closed if trade.currency is not None),
        *(f"{rest_note(trade.symbol, trade.open_size, trade.size or 0.0)}." for trade in rests),
        *(() if decision.equity_gap is None else (_gap_note(decision.equity_gap, account),)),
    )


def _incomplete_note(fill: Fill, account: Account) -> str:
    if fill.fee_is_missing:
        fee = f"{fill.fee_amount:.10g} {fill.fee_currency}"
        money = fill.money_currency or account.currency
        return f"{fill.symbol}: the fee of {fee} is not counted, because its worth in {money} is not known."
    gone = "the position is gone and has no mark; it is closed at"
    return f"{fill.symbol}: {gone} {fill.price:.10g}, the last price known. Report its fill to correct the price."


def _uncounted_note(fill: Fill, account: Account) -> str:
    payment = f"{fill.symbol}: the {fill.kind} of {fill.amount - fill.fee:.10g} {account.currency}"
    return f"{payment} is not counted, because its trade is kept in a currency of unknown rate."


def _contradiction_note(trade: Trade, account: Account) -> str:
    results = f"the broker realised {trade.broker_pnl:.10g} {account.currency}, the ledger {trade.realized_pnl:.10g}"
    remedy = (
        "If one unit is not one unit of money, save_instrument with multiplier or inverse: that mends this trade too"
    )
    return f"{trade.symbol}: {results}; nothing is learned from this trade. {remedy}."


def _currency_note(trade: Trade, account: Account) -> str:
    rate = f"no rate from {trade.currency} to {account.currency} is known"
    remedy = f"Give `rate` with the fill, a mark of {account.currency}{trade.currency}, or bars of it"
    return f"{trade.symbol}: the result is kept in {trade.currency} and is in no sum, because {rate}. {remedy}."


def _gap_note(gap: float, account: Account) -> str:
    change = f"Equity changed by {gap:+.10g} {account.currency} beyond what fills and marks explain"
    return f"{change}: check multipliers (save_instrument), fees, and transfers that were not reported."


def _different_evidence(at_tick: View, repeated: RepeatedTick) -> Iterator[str]:
    """`bars` if some of the bars are not stored, `recalls` if the decision is recorded with other recalls.

    A recall is the same whenever it was made (`seen_at`): a tick that is run again recalls later.
    """
    if any(new_bars(at_tick.connection, at_tick.owner, series) for series in repeated.bars):
        yield "bars"
    recorded = {replace(result.asked, seen_at=None) for result, _ in recalls_of(at_tick, repeated.decision.id)}
    given = {replace(recall_query, seen_at=None) for recall_query in repeated.recalls}
    if recorded != given and (repeated.are_all_recalls or not (recorded < given or given < recorded)):
        yield "recalls"


def _instant_and_sequence(at: datetime, sequence: int) -> tuple[datetime, int]:
    """The position of a decision in the list of decisions."""
    return at, int(sequence)


def _store_segments(transaction: Transaction, ctx: Context, at: datetime, segments: Iterable[Segment]) -> None:
    """Store the text of those segments that are not stored yet."""
    by_hash = {segment.hash: segment for segment in segments}
    shown = [
        ShownSegment(
            owner_id=ctx.owner,
            hash=segment_hash,
            name=segment.name,
            text=segment.text,
            known_at=at,
            recorded_at=ctx.now,
        )
        for segment_hash, segment in by_hash.items()
    ]
    stored.add_segments(transaction, ctx.owner, shown)
