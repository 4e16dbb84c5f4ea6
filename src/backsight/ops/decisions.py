"""Calls: what the agent would do and did not, and what the market made of it once the horizon was over."""

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
from backsight.services.context import Context
from backsight.services.recall import repeat_recalls
from backsight.services.trade_reports import reported_deployment
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
"""What a call says that its outcome does not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision:
    """The call as an episode; its outcome is known when its horizon is over, and not before."""

    episode: Episode
    replayed: bool
    message: str


@command(audience=("trader",))
def record_decision(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument it is about."],
    direction: Annotated[Direction, "Which way you think it will go."],
    strategy_name: Annotated[Name, "The strategy whose call it is."],
    horizon_hours: Annotated[Positive, "After how many hours it is judged."],
    reasoning: Annotated[Reason, "Why, in your words."],
    price: Annotated[Positive | None, "The price now; the last stored bar's if left out."] = None,
    benchmark: Annotated[Symbol | None, "What its return is held against, like 'BTC'; cash if left out."] = None,
    market_context: Annotated[Prose | None, "The market now, in your words."] = None,
    context_regime: Annotated[Regime | None, "The market's regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "ATR(14) on daily bars now, in price units."] = None,
    confidence: Annotated[Share | None, "How sure you are, 0 to 1."] = None,
    context: Annotated[ContextArgument | None, "The whole context vector now, as far as it is known."] = None,
    deployment: Annotated[Key | None, "The deployment it belongs to, by name or id."] = None,
    recalled: Annotated[Keys, "The episodes that were recalled for it."] = [],  # noqa: B006
    recalls: Annotated[Handles, "The `recall` of each answer that it was made on; kept with it."] = [],  # noqa: B006
    tags: Annotated[Tags, "Labels to find it by."] = [],  # noqa: B006
    citations: Annotated[Keys, "What it was made on, as search_memory cites it: 'TRADING_MANUAL.md:42-58'."] = [],  # noqa: B006
    idempotency_key: Annotated[Key | None, "Makes a repeated call harmless: the same key is the same decision."] = None,
) -> RecordedDecision:
    """Record a decision with a direction and a horizon but no position, to be judged when the horizon is over.

    Its outcome is the return over the horizon less the benchmark's, read from stored bars when they reach that far.
    Record what a plan made you skip, and settle_plan can tell whether skipping helped.
    """
    given = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    due_at = _due(ctx.now, horizon_hours)
    remembered = repeat_recalls(ctx, recalls, at=ctx.now, field="recalls")
    with ctx.writing() as transaction:
        home = reported_deployment(transaction, ctx, deployment, strategy_name)
        named = idempotency_key or f"{home.id} {format_instant(ctx.now)} {ctx.request_digest}"
        call_id = derive_id("call", ctx.owner, named)
        call = Episode(
            owner_id=ctx.owner,
            id=call_id,
            kind="call",
            deployment_id=home.id,
            strategy_name=strategy_name,
            mode=home.mode,
            symbol=symbol,
            direction=direction,
            reason=reasoning,
            benchmark=benchmark,
            due_at=due_at,
            run_id=call_id,
            context=given.completed(symbol=symbol, price=price, at=ctx.now),
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
        former = stored.episode(transaction.connection, ctx.owner, call_id)
        if former is not None:
            then = given.completed(symbol=symbol, price=price, at=former.opened_at)
            if not _says_the_same(former, replace(call, context=then)):
                told = "already used for another decision; use a new key for a new one"
                raise Conflict(told, field="idempotency_key")
            told = "Already recorded: this call is a replay and changed nothing."
            return RecordedDecision(episode=former, replayed=True, message=told)
        transaction.add(stored.EPISODES, call)
        store_recalls(transaction, ctx.owner, call_id, remembered, recalled, known_at=ctx.now, recorded_at=ctx.now)
    return RecordedDecision(episode=call, replayed=False, message=f"Judged at {format_instant(due_at)}.")


def _says_the_same(former: Episode, told: Episode) -> bool:
    """Whether a call is told again; what the clock and the market made of it is not the caller's."""
    if any(getattr(former, name) != getattr(told, name) for name in STATED):
        return False
    horizons = [each.ended_at - (each.opened_at or each.ended_at) for each in (former, told)]
    return horizons[0] == horizons[1] and told.entry_price in (None, former.entry_price)


def _due(now: datetime, hours: float) -> datetime:
    try:
        return now + timedelta(hours=hours)
    except OverflowError:
        raise Invalid(f"{hours} hours is too far off; give fewer", field="horizon_hours") from None
