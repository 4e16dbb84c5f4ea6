"""Decisions: record calls that take no position, review previous decisions, and find out what became of them."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from backsight.arguments import (
    AsOf,
    Citations,
    ContextArgument,
    Handles,
    Key,
    Keys,
    Name,
    NotNegative,
    Positive,
    Prose,
    Reason,
    SeenAt,
    Share,
    Symbol,
    Tags,
    Whole,
    as_context,
)
from backsight.core.agents.outcomes import DecisionOutcome
from backsight.core.agents.review import DecisionTally, ReviewedDecision, line_of
from backsight.core.context import merged_context
from backsight.core.errors import Conflict, Invalid, Refused
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.agent_cards import run_named
from backsight.services.agent_runs import release_interrupted
from backsight.services.calls import price_contradiction
from backsight.services.card_outcomes import read_states, settle, write_states
from backsight.services.context import Context
from backsight.services.decision_review import NOTHING_TO_REVIEW, review_decisions
from backsight.services.deployments import chosen_deployment, deployment_named
from backsight.services.id_prefixes import whole_episode_id
from backsight.services.recall import repeat_recalls
from backsight.services.recall_hashes import named_recalls
from backsight.services.trade_reports import decision_deployment
from backsight.services.withheld_memory import READ_ANYWAY, WITHHELD, withholds_from_queries
from backsight.store import memories as stored
from backsight.store.outcomes import cards_since
from backsight.store.recalls import store_recalls

STATED = (
    "strategy_name",
    "symbol",
    "direction",
    "reason",
    "benchmark",
    "market_context",
    "confidence",
    "tags",
    "citations",
    "deployment_id",
    "context",
)
"""The fields of a call that its caller states and that its outcome does not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """The call as an episode; its outcome is not known before its horizon is over."""

    episode: Episode
    replayed: bool
    message: str


@command(audience=("trader",))
def record_decision(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument the decision is about."],
    direction: Annotated[Direction, "The direction in which you expect the price to move."],
    strategy_name: Annotated[Name, "The strategy that makes the decision."],
    horizon_hours: Annotated[Positive, "After how many hours the decision is judged."],
    reasoning: Annotated[Reason, "Why, in your words."],
    price: Annotated[Positive | None, "The price now; the close of the last stored bar if left out."] = None,
    benchmark: Annotated[
        Symbol | None, "The instrument whose return is subtracted, like 'BTC'; cash if left out."
    ] = None,
    market_context: Annotated[Prose | None, "The market now, in your words."] = None,
    context_regime: Annotated[Regime | None, "The regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "Daily ATR(14) now, in price units."] = None,
    confidence: Annotated[Share | None, "How sure you are."] = None,
    context: Annotated[ContextArgument | None, "The context now."] = None,
    deployment: Annotated[Key | None, "The deployment, by name or id; else the strategy's only one."] = None,
    recalled: Annotated[Keys, "Ids of recalled memories."] = [],  # noqa: B006
    recalls: Annotated[Handles, "The `recall` of each recall_memories answer it used."] = [],  # noqa: B006
    tags: Annotated[Tags, "Labels to find the decision by."] = [],  # noqa: B006
    citations: Annotated[Citations, "Passages that it used, like 'TRADING_MANUAL.md:42-58'."] = [],  # noqa: B006
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless."] = None,
) -> RecordedDecision:
    """Record a decision with a direction and a horizon but no position, to be judged when the horizon is over.

    The outcome is the return over the horizon minus the benchmark's return, read from stored bars once they reach the
    end of the horizon. Record trades that a plan made you skip, so that settle_plan can tell whether skipping helped.
    """
    stated_context = merged_context(as_context(context), symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.reading() as connection:
        known_recalls = named_recalls(ctx, recalls, connection=connection)
        recall_results = repeat_recalls(ctx, connection, known_recalls.handles, at=ctx.now, field="recalls")
    with ctx.writing() as transaction:
        due_at = _due_at(ctx.now, horizon_hours)
        named = None if idempotency_key is None else derive_id("call", ctx.owner, idempotency_key)
        target, note = decision_deployment(transaction, ctx, deployment, strategy_name, key=named)
        unnamed = f"{target.id} {format_instant(ctx.now)} {ctx.request_digest}"
        call_id = named or derive_id("call", ctx.owner, unnamed)
        call = Episode(
            owner_id=ctx.owner,
            id=call_id,
            kind="call",
            deployment_id=target.id,
            strategy_name=strategy_name,
            mode=target.mode,
            symbol=symbol,
            direction=direction,
            reason=reasoning,
            benchmark=benchmark,
            due_at=due_at,
            series_id=call_id,
            context=stated_context.completed(symbol=symbol, price=price, at=ctx.now),
            market_context=market_context,
            entry_price=price,
            confidence=confidence,
            tags=tuple(tags),
            citations=tuple(citations),
            opened_at=ctx.now,
            ended_at=due_at,
            first_known_at=ctx.now,
            known_at=ctx.now,
            recorded_at=ctx.now,
        )
        former = stored.current_episode(transaction.connection, ctx.owner, call_id)
        if former is not None:
            repeated = replace(call, context=stated_context.completed(symbol=symbol, price=price, at=former.opened_at))
            if not _is_repetition(repeated, of=former):
                raise Conflict("this key already belongs to another decision; use a new key", field="idempotency_key")
            message = "Already recorded: this call is a replay and changed nothing."
            return RecordedDecision(episode=former, replayed=True, message=message)
        transaction.add(stored.EPISODES, call)
        connection = transaction.connection
        doubt = price_contradiction(connection, call, at=ctx.now)
        ids = [whole_episode_id(connection, ctx.owner, key, field="recalled") for key in recalled]
        store_recalls(transaction, ctx.owner, call_id, recall_results, ids, known_at=ctx.now, recorded_at=ctx.now)
    judged = f"Judged at {format_instant(due_at)}." if doubt is None else doubt
    message = " ".join([judged + note, *known_recalls.notes])
    return RecordedDecision(episode=call, replayed=False, message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class MyDecisions:
    """The last decisions of a deployment, newest first, and how often they were right."""

    deployment: str
    decisions: tuple[ReviewedDecision, ...]
    lines: tuple[str, ...]
    """Each decision in one line, like `2d ago · WAIT · range unresolved`."""
    tally: DecisionTally
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedDecisions:
    """How many decisions were looked at, and how many changed their state."""

    looked_at: int
    changed: int
    released: int
    """Runs that were interrupted and are recorded as failed now."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledDecision:
    """What became of a decision, as the owner says."""

    outcome: DecisionOutcome
    message: str


@query(audience=("trader", "coach"))
def get_my_decisions(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "The deployment, by name or id; the only one if left out."] = None,
    limit: Annotated[Annotated[Whole, Field(ge=1, le=20)], "Most decisions."] = 5,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> MyDecisions:
    """Get your last decisions, what became of each, the latest conviction, and how often you were right."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target, notes = chosen_deployment(view, deployment)
        is_withheld = as_of is None and withholds_from_queries(view, target)
        review = NOTHING_TO_REVIEW if is_withheld else review_decisions(view, target, limit=limit)
    lines = tuple(line_of(each, now=view.as_of) for each in review.decisions)
    hint = "No decision was known then; record_run with a card, or close_tick, records one."
    tally = review.tally.sentence
    if is_withheld:
        sentences = [*notes, WITHHELD, READ_ANYWAY]
    else:
        sentences = [*notes, f"{tally[0].upper()}{tally[1:]}." if lines else hint]
    return MyDecisions(
        deployment=target.name,
        decisions=review.decisions,
        lines=lines,
        tally=review.tally,
        message=" ".join(sentences),
        as_of=view.as_of,
    )


@command()
def resolve_decisions(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only decisions of this deployment, by name or id."] = None,
) -> ResolvedDecisions:
    """Look at the stored bars again for every decision with levels, and record what became of each.

    Late bars may change what was recorded; the former outcome is kept. Settled decisions do not change.
    """
    with ctx.reading() as connection:
        target = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        runs = cards_since(connection, ctx.owner, deployment_id=None if target is None else target.id)
        states = read_states(connection, ctx.owner, [run for run in runs if run.known_at <= ctx.now], by=ctx.now)
    with ctx.writing() as transaction:
        changed = write_states(transaction, states, recorded_at=ctx.now)
        released = release_interrupted(transaction, ctx)
    message = f"{count_of(len(states), 'decision')} looked at, {changed} changed."
    return ResolvedDecisions(looked_at=len(states), changed=changed, released=released, message=message)


@command()
def settle_decision(
    ctx: Context,
    *,
    run: Annotated[Key, "The run that decided, by its id or the beginning of it."],
    entry: Annotated[Positive, "The price at which you entered."],
    exit: Annotated[Positive, "The price at which you left."],  # noqa: A002
) -> SettledDecision:
    """Settle a decision at your own entry and exit, which win over the bars."""
    with ctx.writing() as transaction:
        decided = run_named(transaction.connection, ctx.owner, run)
        if decided.card_type is None or decided.result is None or decided.kind == "re_examination":
            raise Refused("the run has no card, so there is nothing to settle", field="run")
        outcome = settle(transaction, decided, entry=entry, exit_price=exit, now=ctx.now)
    result = "unknown: the entry is beyond the stop" if outcome.outcome_r is None else f"{outcome.outcome_r:+.2f}R"
    return SettledDecision(outcome=outcome, message=f"Settled; the result is {result}.")


def _is_repetition(call: Episode, *, of: Episode) -> bool:
    """Whether a call states the same as a recorded one; what the caller did not state may differ."""
    if any(getattr(of, name) != getattr(call, name) for name in STATED):
        return False
    horizons = [each.ended_at - (each.opened_at or each.ended_at) for each in (of, call)]
    return horizons[0] == horizons[1] and call.entry_price in (None, of.entry_price)


def _due_at(now: datetime, hours: float) -> datetime:
    try:
        return now + timedelta(hours=hours)
    except OverflowError:
        raise Invalid(f"{hours} hours is too far off; give fewer", field="horizon_hours") from None
