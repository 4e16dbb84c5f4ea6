"""Record calls: decisions with a direction and a horizon but no position, judged when the horizon is over."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated

from backsight.arguments import (
    ContextArgument,
    Handles,
    Key,
    Keys,
    Name,
    NotNegative,
    Positive,
    Prose,
    Reason,
    Share,
    Symbol,
    Tags,
)
from backsight.core.context import merged_context
from backsight.core.errors import Conflict, Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime
from backsight.operation import command
from backsight.services.calls import price_contradiction
from backsight.services.context import Context
from backsight.services.id_prefixes import whole_episode_id
from backsight.services.recall import repeat_recalls
from backsight.services.trade_reports import decision_deployment
from backsight.store import memories as stored
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
    citations: Annotated[Keys, "Passages that it used, like 'TRADING_MANUAL.md:42-58'."] = [],  # noqa: B006
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless."] = None,
) -> RecordedDecision:
    """Record a decision with a direction and a horizon but no position, to be judged when the horizon is over.

    The outcome is the return over the horizon minus the benchmark's return, read from stored bars once they reach the
    end of the horizon. Record trades that a plan made you skip, so that settle_plan can tell whether skipping helped.
    """
    stated_context = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.reading() as connection:
        recall_results = repeat_recalls(ctx, connection, recalls, at=ctx.now, field="recalls")
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
    return RecordedDecision(episode=call, replayed=False, message=judged + note)


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
