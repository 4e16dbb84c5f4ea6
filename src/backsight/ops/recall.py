"""Recall: which memories matter here and now, and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from backsight.core.errors import Invalid
from backsight.core.memory.kind import MemoryKind
from backsight.core.portfolio import Direction
from backsight.core.recall.rank import RecalledMemory, rank
from backsight.core.recall.score import Query
from backsight.core.regime import Regime
from backsight.ops.arguments import (
    AsOf,
    ContextArgument,
    Instant,
    Key,
    Limit,
    Name,
    NotNegative,
    Prose,
    SeenAt,
    Symbol,
    Tags,
)
from backsight.ops.context import Context
from backsight.ops.operation import query
from backsight.ops.strategies import deployment_named
from backsight.ops.trades import merged_context
from backsight.store import memories as stored

ModeAsked = Literal["live", "paper", "sim", "all"]
Kinds = Annotated[list[MemoryKind], Field(min_length=1, max_length=5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What comes to mind: memories selected by outcome, each with the factors of its score."""

    memories: tuple[RecalledMemory, ...]
    candidates: int
    """How many episodes were scored."""
    message: str
    mode: ModeAsked
    as_of: datetime
    seen_at: datetime | None


@query(audience=("trader", "coach"))
def recall_memories(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument you are about to decide on."],
    market_context: Annotated[Prose | None, "The market now, in your words."] = None,
    context_regime: Annotated[Regime | None, "The market's regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "ATR(14) on daily bars now, in price units."] = None,
    strategy_name: Annotated[Name | None, "Only memories of this strategy."] = None,
    memory_types: Annotated[Kinds, "Which kinds of memory to look in."] = ["episodic", "semantic"],  # noqa: B006
    limit: Annotated[Limit, "How many memories at most."] = 10,
    direction: Annotated[Direction | None, "The way you would trade; counts as part of the likeness."] = None,
    context: Annotated[ContextArgument | None, "The whole context vector now, as far as it is known."] = None,
    deployment: Annotated[Key | None, "Only memories of this deployment, by name or id."] = None,
    mode: Annotated[ModeAsked | None, "Evidence from which accounts; the deployment's, else live."] = None,
    tags: Annotated[Tags, "Only memories with all of these labels."] = [],  # noqa: B006
    since: Annotated[Instant | None, "Only what ended at or after this instant."] = None,
    until: Annotated[Instant | None, "Only what ended before this instant."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Recall:
    """Recall past trades in contexts like this one, weighted by how they ended.

    Call it before you decide on a trade. Memories are selected by outcome, so they flatter: read the factors.
    """
    if since is not None and until is not None and until <= since:
        raise Invalid("is not after since; give a later instant", field="until")
    horizon = ctx.horizon(as_of, seen_at)
    asked = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.reading() as connection:
        home = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        within: ModeAsked = mode or (home.mode if home is not None else "live")
        episodes = []
        if "episodic" in memory_types:
            episodes = stored.episodes_with_outcome(
                connection,
                ctx.owner,
                horizon,
                tags=tags,
                since=since,
                until=until,
                symbol=symbol,
                strategy_name=strategy_name,
                deployment_id=None if home is None else home.id,
                mode=None if within == "all" else within,
            )
    found = rank(episodes, Query(symbol=symbol, direction=direction, context=asked), now=horizon.as_of, limit=limit)
    return Recall(
        memories=found,
        candidates=len(episodes),
        message=_message(len(found), len(episodes), symbol, within),
        mode=within,
        as_of=horizon.as_of,
        seen_at=horizon.seen_at,
    )


def _message(shown: int, scored: int, symbol: str, mode: ModeAsked) -> str:
    if scored == 0:
        return f"Nothing remembered of {symbol} ({mode} accounts) that fits."
    return f"{shown} of {scored} episodes, selected by outcome: winners score higher whatever the truth."
