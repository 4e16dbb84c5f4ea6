"""Ticks: what memory has to say before a decision, and what happened in it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from backsight.arguments import (
    AsOf,
    BarsArgument,
    CapArgument,
    Cursor,
    Flag,
    Handles,
    Instant,
    Key,
    Keys,
    Limit,
    Name,
    NotNegative,
    OrderArgument,
    Positive,
    Prose,
    Rules,
    SeenAt,
    SegmentArgument,
    Share,
    SnapshotArgument,
    Symbol,
    VerdictArgument,
    Whole,
    check_symbols,
)
from backsight.core.context import ContextVector
from backsight.core.decision import (
    OURS,
    Decision,
    LastTick,
    ModelUse,
    OpenedTick,
    Prompt,
    PromptRecord,
    Segment,
    ShownSegment,
    TickReport,
    Verdict,
    as_last,
    decision_id,
    decision_of,
)
from backsight.core.errors import Conflict, Invalid
from backsight.core.holdout import MemoryArm
from backsight.core.holdout import memory_arm as arm_of
from backsight.core.ids import digest
from backsight.core.instants import CLOCK_SKEW, JUST_BEFORE, Horizon, format_instant
from backsight.core.market import EPOCH
from backsight.core.memory.prospective import Contradiction
from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.portfolio import Account, Portfolio
from backsight.core.risk_state import AttemptKind, RiskState, render_risk_state
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Trade
from backsight.operation import command, query
from backsight.services.calls import resolve_calls
from backsight.services.context import Context
from backsight.services.deployments import account_of, deployment_named
from backsight.services.learning import LearningReport
from backsight.services.ledger import Tick, post
from backsight.services.market import add_bars, context_at, recent_bars, sorted_bars, with_given
from backsight.services.paging import cursor_after, read_cursor
from backsight.services.plan_checks import check_plans_at_tick
from backsight.services.prompt_assembly import PromptRequest, assemble_prompt, recent_state
from backsight.services.recall import repeat_recalls
from backsight.services.reflection import ReflectionResult, reflect_if_due
from backsight.store import decisions as stored
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.database import Connection
from backsight.store.recalls import store_recalls
from backsight.store.transaction import Transaction
from backsight.store.view import View

Segments = Annotated[list[SegmentArgument], Field(max_length=100)]
Symbols = Annotated[list[Symbol], Field(max_length=100)]
FEW = 10
"""Trades that are looked at for what a deployment usually trades."""
Caps = Annotated[list[CapArgument], Field(max_length=20)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTick:
    """The decision as it is kept, and the trades that it opened and closed."""

    decision: Decision
    opened: tuple[Trade, ...]
    closed: tuple[Trade, ...]
    learned: tuple[LearningReport, ...]
    """What the trades that ended, or were corrected, changed in each memory."""
    plans: tuple[str, ...]
    """The plans that applied when it was decided."""
    contradictions: tuple[Contradiction, ...]
    """Those of them that cannot both be followed."""
    reflection: ReflectionResult | None
    """What a reflection came to, where one was due after it."""
    replayed: bool
    """Whether it was already known: nothing was changed then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPage:
    """Some decisions, newest first, and where the next page starts."""

    decisions: tuple[Decision, ...]
    next_cursor: str | None
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentActivity:
    """What a deployment did lately, as figures and as the agent reads it."""

    deployment_id: str
    state: RiskState
    text: str
    """Empty where there is nothing to say."""
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """What the ledger of an account was made from."""

    account_id: str
    decisions: int
    opened: int
    closed: int
    replayed: bool
    """Whether the ledger was there already: nothing was changed then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPreview(Prompt):
    """What an agent sees, or would have seen, at an instant."""

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
    before: Annotated[SnapshotArgument, "The broker's snapshot: portfolio, fills since the one before, marks."],
    sequence: Annotated[Whole, "Order among the ticks of one instant."] = 0,
    symbols: Annotated[Symbols, "The instruments that may be decided on."] = [],  # noqa: B006
    bars: Annotated[BarsArgument, "Bars that closed lately, where they are not stored yet."] = [],  # noqa: B006
    market: Annotated[Segments, "Your own sections, like bars, news or funding, with their headings."] = [],  # noqa: B006
    caps: Annotated[Caps, "The limits of your risk engine, to be shown with the portfolio."] = [],  # noqa: B006
    tools: Annotated[Rules, "What the agent can call, a line each: the name and what it is for."] = [],  # noqa: B006
    budget: Annotated[Whole | None, "Tokens at most of all that is shown; sections give way in a fixed order."] = None,
    seen_at: SeenAt = None,
) -> OpenedTick:
    """Open a tick: the system prompt and the message that the agent is shown before it decides.

    Nothing is written. Hand the segments of memory that were really shown to close_tick, with `recalls`.
    """
    _check_instant(ctx, at)
    check_names(market)
    check_symbols(bars)
    horizon = Horizon(as_of=at - JUST_BEFORE, seen_at=seen_at)
    with ctx.reading() as connection:
        home = deployment_named(connection, ctx.owner, deployment)
        account = account_of(connection, home)
        _check_snapshot(account, before, field="before")
        given = sorted_bars(bars, until=at)
        arm = arm_of(home.id, at, holdout=home.memory.holdout, enabled=home.memory.enabled)
        last = stored.last_of_deployment(View(connection, ctx.owner, horizon), home.id)
        seen = Horizon(as_of=at, seen_at=seen_at)
        contexts = tuple(
            context_at(symbol, at, with_given(recent_bars(connection, ctx.owner, symbol, seen), given, symbol))
            for symbol in dict.fromkeys(symbols)
        )
        request = PromptRequest(
            deployment=home,
            account=account,
            at=at,
            view=View(connection, ctx.owner, horizon),
            arm=arm,
            portfolio=before.portfolio,
            day_start_equity=_day_start_equity(last, at, before),
            contexts=contexts,
            market=market,
            caps=caps,
            tools=tools,
            budget=budget,
        )
        shown = assemble_prompt(ctx, request)
    return OpenedTick(
        **as_fields(shown),
        decision_id=decision_id(home.id, at, sequence),
        deployment_id=home.id,
        at=at,
        sequence=sequence,
        as_of=horizon.as_of,
        seen_at=seen_at or ctx.now,
        memory_arm=arm,
        contexts=contexts,
    )


@query(audience=("trader",))
def preview_context(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment whose agent it is, by name or id."],
    symbols: Annotated[
        Symbols, "The instruments that may be decided on; those it holds or traded last if left out."
    ] = [],  # noqa: B006
    market: Annotated[Segments, "Your own sections, like bars, news or funding, with their headings."] = [],  # noqa: B006
    caps: Annotated[Caps, "The limits of your risk engine."] = [],  # noqa: B006
    tools: Annotated[Rules, "What the agent can call, a line each."] = [],  # noqa: B006
    budget: Annotated[Whole | None, "Tokens at most of all that is shown."] = None,
    memory_arm: Annotated[
        MemoryArm | None, "With memory shown, withheld or off; as the day has it if left out."
    ] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> ContextPreview:
    """Preview what an agent sees, now or then: every segment with its tokens, with memory and without."""
    check_names(market)
    horizon = ctx.horizon(as_of, seen_at)
    at = horizon.as_of
    with ctx.reading() as connection:
        home = deployment_named(connection, ctx.owner, deployment)
        last = stored.last_of_deployment(View(connection, ctx.owner, horizon), home.id)
        portfolio = None if last is None else _portfolio_after(connection, ctx.owner, last)
        chosen = symbols or _usual_symbols(connection, home, portfolio, horizon)
        contexts = tuple(
            context_at(symbol, at, recent_bars(connection, ctx.owner, symbol, horizon)) for symbol in chosen
        )
        arm = memory_arm or arm_of(home.id, at, holdout=home.memory.holdout, enabled=home.memory.enabled)
        today = last is not None and last.at.date() == at.date()
        request = PromptRequest(
            deployment=home,
            account=account_of(connection, home),
            at=at,
            view=View(connection, ctx.owner, horizon),
            arm=arm,
            portfolio=portfolio,
            day_start_equity=last.day_start_equity if last is not None and today else None,
            contexts=contexts,
            market=market,
            caps=caps,
            tools=tools,
            budget=budget,
        )
        shown = assemble_prompt(ctx, request)
    return ContextPreview(
        **as_fields(shown),
        deployment_id=home.id,
        memory_arm=arm,
        tokens_without_memory=shown.total_tokens - shown.memory_tokens,
        contexts=contexts,
        as_of=at,
        seen_at=seen_at,
    )


def _portfolio_after(connection: Connection, owner: str, last: LastTick) -> Portfolio | None:
    """The account as the last tick left it."""
    decision = stored.decision(connection, owner, last.id)
    if decision is None:
        return None
    return decision.last_snapshot.portfolio


def _usual_symbols(
    connection: Connection, home: Deployment, portfolio: Portfolio | None, horizon: Horizon
) -> list[str]:
    """What a deployment holds, and what it traded last."""
    held = [] if portfolio is None else [position.symbol for position in portfolio.positions]
    traded = stored_trades.recent_closed(connection, home.owner_id, home.id, horizon, most=FEW)
    return list(dict.fromkeys([*held, *(trade.symbol for trade in traded)]))


@command()
def close_tick(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment that decided, by name or id."],
    at: Annotated[Instant, "The instant of the tick."],
    before: Annotated[SnapshotArgument, "The broker's snapshot before the decision."],
    verdict: Annotated[VerdictArgument, "What became of it: noop, rejected (with the rule) or executed."],
    after: Annotated[SnapshotArgument | None, "The broker's snapshot after it; the one before if left out."] = None,
    sequence: Annotated[Whole, "Order among the ticks of one instant."] = 0,
    proposal: Annotated[OrderArgument | None, "The order that was proposed, with its reason."] = None,
    confidence: Annotated[Share | None, "How sure the agent was, 0 to 1."] = None,
    flatten: Annotated[Flag, "A command to close everything was in force."] = False,
    bars: Annotated[BarsArgument, "Bars that closed since the last tick; they are kept."] = [],  # noqa: B006
    shown: Annotated[Segments | None, "What the agent was shown, as open_tick gave it; none: no memory."] = None,
    recalled: Annotated[Keys, "Ids of the memories in what was shown."] = [],  # noqa: B006
    recalls: Annotated[Handles, "The `recall` of each answer that it was decided on; kept with it."] = [],  # noqa: B006
    lessons_hash: Annotated[Key | None, "Of the lessons that were shown."] = None,
    seen_at: Annotated[Instant | None, "When the store was asked for what was shown."] = None,
    usd_rate: Annotated[Positive | None, "What a unit of the account's currency is worth in dollars."] = None,
    model: Annotated[Name | None, "The model that decided."] = None,
    model_parameters: Annotated[Prose | None, "Its parameters, as JSON."] = None,
    input_tokens: Annotated[Whole | None, "Tokens it read."] = None,
    output_tokens: Annotated[Whole | None, "Tokens it wrote."] = None,
    cost: Annotated[NotNegative | None, "What that cost."] = None,
    citations: Annotated[Keys, "What the agent referred to."] = [],  # noqa: B006
    sim_run_id: Annotated[Key | None, "The simulation that it belongs to."] = None,
) -> ClosedTick:
    """Close a tick: keep the decision, and bring the ledger and every memory to where the broker is.

    Closing the same tick again changes nothing and says so; a tick older than the last one is refused. Where a
    reflection is due, lessons are written afterwards; whatever becomes of that, the tick is closed.
    """
    _check_instant(ctx, at)
    _check_verdict(verdict, proposal)
    check_symbols(bars)
    closed_bars = sorted_bars(bars, until=at)
    repeated_recalls = repeat_recalls(ctx, recalls, at=at, field="recalls")
    segments = None if shown is None else tuple(shown)
    with ctx.writing() as transaction:
        connection = transaction.connection
        target = deployment_named(connection, ctx.owner, deployment)
        account = account_of(connection, target)
        report = TickReport(
            at=at,
            sequence=sequence,
            before=before,
            after=after,
            proposal=proposal,
            verdict=verdict,
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
            sim_run_id=sim_run_id,
            request_digest=digest({**ctx.arguments(without=("deployment",)), "deployment_id": target.id}),
        )
        _check_snapshots(account, report)
        last = stored.last_of_account(connection, ctx.owner, target.account_id)
        if last is not None and last.moment >= (at, sequence):
            return _replayed(ctx, connection, target, last, report)
        _check_newer(before, last)
        for series in closed_bars:
            add_bars(transaction, ctx.owner, series, recorded_at=ctx.now)
        resolve_calls(transaction, ctx.owner, by=at, recorded_at=ctx.now)
        last_of_target = last
        if last is not None and last.deployment_id != target.id:
            last_of_target = stored.last_of_deployment(ctx.view(connection, at), target.id)
        decision = decision_of(report, target, last_of_target, recorded_at=ctx.now)
        plan_checks = check_plans_at_tick(transaction, target, decision, last_of_target)
        posted = post(transaction, Tick(deployment=target, account=account, decision=decision, last=last))
        store_recalls(transaction, ctx.owner, decision.id, repeated_recalls, recalled, known_at=at, recorded_at=ctx.now)
        transaction.add_all(stored.DECISIONS, [posted.decision])
        _keep_segments(transaction, ctx, at, segments or ())
    reflection = reflect_if_due(ctx, target, at=at, closed_in_tick=len(posted.closed))
    return ClosedTick(
        decision=posted.decision,
        opened=posted.opened,
        closed=posted.closed,
        learned=posted.learned,
        plans=tuple(dict.fromkeys(plan.id for check in plan_checks for plan in check.applying)),
        contradictions=tuple(dict.fromkeys(pair for check in plan_checks for pair in check.contradictions)),
        reflection=reflection,
        replayed=False,
    )


@query(audience=("trader", "coach"))
def list_decisions(
    ctx: Context,
    *,
    deployment: Annotated[Key, "Whose decisions, by name or id."],
    kind: Annotated[AttemptKind | None, "Only those that came to this."] = None,
    since: Annotated[Instant | None, "Only ticks at or after this instant."] = None,
    until: Annotated[Instant | None, "Only ticks before this instant."] = None,
    limit: Annotated[Limit, "How many at most."] = 20,
    cursor: Annotated[Cursor | None, "The next_cursor of the page before."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> DecisionPage:
    """List the decisions of a deployment, newest first: what was proposed, why, and what became of it."""
    horizon = ctx.horizon(as_of, seen_at)
    asked = ctx.arguments(without=("cursor", "limit"))
    before = None if cursor is None else read_cursor(cursor, query=asked)
    with ctx.reading() as connection:
        home = deployment_named(connection, ctx.owner, deployment)
        found = stored.decisions(
            View(connection, ctx.owner, horizon),
            deployment_id=home.id,
            kind=kind,
            since=since,
            until=until,
            before=None if before is None else (before[0], _sequence(before[1])),
            limit=limit + 1,
        )
    page = tuple(found[:limit])
    more = cursor_after(page[-1].at, str(page[-1].sequence), query=asked) if len(found) > limit else None
    return DecisionPage(decisions=page, next_cursor=more, as_of=horizon.as_of)


@query(audience=("trader", "coach"))
def get_recent_activity(
    ctx: Context,
    *,
    deployment: Annotated[Key, "The deployment, by name or id."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> RecentActivity:
    """Get what a deployment did lately: rejections, executed orders, today's result, losing streak."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home = deployment_named(connection, ctx.owner, deployment)
        last = stored.last_of_deployment(View(connection, ctx.owner, horizon), home.id)
        today = last is not None and last.at.date() == horizon.as_of.date()
        day_start = last.day_start_equity if last is not None and today else None
        view = View(connection, ctx.owner, horizon)
        state = recent_state(view, home, now=horizon.as_of, day_start_equity=day_start)
    return RecentActivity(deployment_id=home.id, state=state, text=render_risk_state(state), as_of=horizon.as_of)


@command()
def backfill(
    ctx: Context,
    *,
    deployment: Annotated[Key, "A deployment of the account whose ledger is to be made, by name or id."],
) -> Backfilled:
    """Make the ledger and the memories of an account from its decision snapshots.

    For decisions that were kept before there was a ledger. An account that has one is left alone.
    """
    with ctx.writing() as transaction:
        connection = transaction.connection
        home = deployment_named(connection, ctx.owner, deployment)
        account = account_of(connection, home)
        decisions = stored.decisions_of_account(connection, ctx.owner, home.account_id)
        if stored_trades.has_ledger(connection, ctx.owner, home.account_id):
            return Backfilled(account_id=account.id, decisions=len(decisions), opened=0, closed=0, replayed=True)
        homes = {each.id: each for each in stored_strategies.deployments_of(connection, ctx.owner, home.account_id)}
        last: LastTick | None = None
        opened = closed = 0
        for decision in decisions:
            now = replace(decision, recorded_at=ctx.now)
            tick = Tick(deployment=homes[decision.deployment_id], account=account, decision=now, last=last)
            posted = post(transaction, tick)
            opened, closed, last = opened + len(posted.opened), closed + len(posted.closed), as_last(decision)
        replayed = not transaction.changes
    return Backfilled(account_id=account.id, decisions=len(decisions), opened=opened, closed=closed, replayed=replayed)


def check_names(market: Sequence[Segment]) -> None:
    """Refuse a caller's section that is called as one of ours."""
    for number, segment in enumerate(market):
        if segment.name in OURS:
            told = f"{segment.name!r} is a section of memory or of the prompt; choose another name"
            raise Invalid(told, field=f"market.{number}.name")


def as_fields(shown: Prompt) -> dict[str, Any]:
    return {field.name: getattr(shown, field.name) for field in fields(Prompt)}


def _check_instant(ctx: Context, at: datetime) -> None:
    if at > ctx.now + CLOCK_SKEW:
        raise Invalid(f"{format_instant(at)} is in the future; give the instant of the tick", field="at")
    if at < EPOCH:
        raise Invalid(f"{format_instant(at)} is before 1970; give the instant of the tick", field="at")


def _check_snapshots(account: Account, report: TickReport) -> None:
    _check_snapshot(account, report.before, field="before")
    _check_snapshot(account, report.after or report.before, field="after")


def _check_newer(before: BrokerSnapshot, last: LastTick | None) -> None:
    """Refuse a snapshot that is older than the last one of the account."""
    if last is not None and before.portfolio.at < last.broker_at:
        at, last_at = format_instant(before.portfolio.at), format_instant(last.broker_at)
        message = f"{at} is before the last snapshot, of {last_at}; ask the broker again"
        raise Conflict(message, field="before.portfolio.at")


def _check_snapshot(account: Account, snapshot: BrokerSnapshot, *, field: str) -> None:
    """Refuse a portfolio of another account, and one that contradicts itself."""
    portfolio = snapshot.portfolio
    if portfolio.account not in (None, account.id, account.name):
        told = f"{portfolio.account!r} is not the account of this deployment, {account.name!r}"
        raise Invalid(f"{told}; give that one's portfolio", field=f"{field}.portfolio.account")
    unique = "position_key" if account.position_mode == "hedging" else "symbol"
    named = [getattr(position, unique) for position in portfolio.positions]
    keys = [position.position_key for position in portfolio.positions]
    for number, position in enumerate(portfolio.positions):
        place = f"{field}.portfolio.positions.{number}"
        if keys.count(position.position_key) > 1 or named.count(getattr(position, unique)) > 1:
            told = f"{getattr(position, unique)!r} is there twice on a {account.position_mode} account"
            raise Invalid(f"{told}; give each position once", field=f"{place}.{unique}")


def _check_verdict(verdict: Verdict, proposal: Order | None) -> None:
    if verdict.kind == "rejected" and not verdict.rule:
        raise Invalid("a rejection names no rule; give the one that refused", field="verdict.rule")
    if verdict.kind != "noop" and proposal is None:
        raise Invalid(f"nothing proposed was {verdict.kind}; give the order", field="proposal")


def _replayed(
    ctx: Context, connection: Connection, deployment: Deployment, last: LastTick, report: TickReport
) -> ClosedTick:
    """The answer for a tick that was closed before with the same content; any other tick is a `Conflict`."""
    former = stored.decision(connection, ctx.owner, decision_id(deployment.id, report.at, report.sequence))
    if former is None:
        told = f"it is not after the account's last tick, {format_instant(last.at)} ({last.sequence})"
        remedy = "ticks are applied in order; of one instant, give each the next sequence"
        raise Conflict(f"{told}; {remedy}", field="at")
    if former.request_digest != report.request_digest:
        told = f"the tick of {format_instant(former.at)} ({former.sequence}) is kept with other content"
        raise Conflict(f"{told}; a decision does not change", field="at")
    found = stored_trades.trades_by_id(connection, ctx.owner, (*former.opened, *former.closed))
    return ClosedTick(
        decision=former,
        opened=tuple(found[each] for each in former.opened if each in found),
        closed=tuple(found[each] for each in former.closed if each in found),
        learned=(),
        plans=(),
        contradictions=(),
        reflection=None,
        replayed=True,
    )


def _sequence(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise Invalid("not a cursor; give the next_cursor of the page before, or none", field="cursor")
    return int(text)


def _keep_segments(transaction: Transaction, ctx: Context, at: datetime, segments: Iterable[Segment]) -> None:
    by_hash = {segment.hash: segment for segment in segments}
    new = [
        ShownSegment(
            owner_id=ctx.owner,
            hash=each,
            name=segment.name,
            text=segment.text,
            known_at=at,
            recorded_at=ctx.now,
        )
        for each, segment in by_hash.items()
        if not stored.has_segment(transaction.connection, ctx.owner, each)
    ]
    transaction.add_all(stored.SEGMENTS, new)


def _day_start_equity(last: LastTick | None, at: datetime, before: BrokerSnapshot) -> float:
    """The equity at the first tick of the UTC day: this one's, where there was none before."""
    if last is not None and last.at.date() == at.date():
        return last.day_start_equity
    return before.portfolio.equity
