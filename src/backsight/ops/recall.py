"""Recall: which memories matter here and now, and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from backsight.core.conditions import values_of
from backsight.core.errors import Invalid
from backsight.core.instants import Horizon
from backsight.core.memory.affective import Mood
from backsight.core.memory.episodic import Episode
from backsight.core.memory.kind import MemoryKind
from backsight.core.memory.prospective import KeptPlan, check, kept
from backsight.core.memory.semantic import day_of
from backsight.core.portfolio import Direction, Mode
from backsight.core.recall.rank import RecalledMemory, remind
from backsight.core.recall.rates import BaseRate
from backsight.core.recall.score import Query, Temper
from backsight.core.recall.words import stems
from backsight.core.regime import Regime
from backsight.core.sized import Asked, PositionSize, SizedTrade
from backsight.core.strategies import Deployment
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
from backsight.ops.beliefs import About, BeliefSeen, beliefs_about
from backsight.ops.context import Context
from backsight.ops.experience import mode_asked
from backsight.ops.operation import query
from backsight.ops.planning import open_plans
from backsight.ops.state import falling_since, habits_at, mood_then
from backsight.ops.strategies import deployment_named
from backsight.ops.trades import merged_context
from backsight.store import memories as stored
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection

ModeAsked = Literal["live", "paper", "sim", "all"]
Kinds = Annotated[list[MemoryKind], Field(min_length=1, max_length=5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """What usually happens here, what is like it, what went wrong, and what comes to mind, in this order."""

    base_rate: BaseRate | None
    """Of all trades of the strategy (of any, where none is named), by how alike and how fresh; None without trades."""
    nearest: tuple[RecalledMemory, ...]
    """The likest and freshest, whatever their outcome."""
    warnings: tuple[RecalledMemory, ...]
    """Losses in contexts like this one."""
    memories: tuple[RecalledMemory, ...]
    """Selected by outcome, each with the factors of its score."""
    beliefs: tuple[BeliefSeen, ...]
    """Beliefs that speak of this, the most credible first."""
    plans: tuple[KeptPlan, ...]
    """Plans whose condition holds now; reading does not trigger them."""
    mood: Mood | None
    """Of the deployment that is named; it colours the factor Aff."""
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

    Call it before you decide on a trade, and read the base rate and the warnings first: memories are selected by
    outcome, so they flatter.
    """
    if since is not None and until is not None and until <= since:
        raise Invalid("is not after since; give a later instant", field="until")
    horizon = ctx.horizon(as_of, seen_at)
    asked = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.reading() as connection:
        home = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        within: ModeAsked = mode or (home.mode if home is not None else "live")
        one_mode = None if within == "all" else within
        usual: list[Episode] = []
        episodes: list[Episode] = []
        if "episodic" in memory_types:
            strategy = strategy_name or (None if home is None else home.strategy_name)
            usual = stored.trades_taught(connection, ctx.owner, horizon, mode=one_mode, strategy_name=strategy)
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
                mode=one_mode,
            )
        about = About(symbol=symbol, direction=direction, strategy_name=strategy_name, context=asked)
        beliefs: tuple[BeliefSeen, ...] = ()
        if "semantic" in memory_types and one_mode is not None:
            beliefs = beliefs_about(connection, ctx.owner, one_mode, horizon, about)
        mood = None if home is None else mood_then(connection, home, horizon)
        plans = () if home is None else _plans(connection, home, about, mood, horizon)
    query = Query(symbol=symbol, direction=direction, context=asked, words=stems(market_context))
    found = remind(episodes, query, now=horizon.as_of, limit=limit, temper=_temper(mood))
    return Recall(
        base_rate=_base_rate(usual, query, horizon) if usual else None,
        nearest=found.nearest,
        warnings=found.warnings,
        memories=found.memories,
        beliefs=beliefs,
        plans=plans,
        mood=mood,
        candidates=len(episodes),
        message=_message(len(found.memories), len(episodes), symbol, within),
        mode=within,
        as_of=horizon.as_of,
        seen_at=horizon.seen_at,
    )


def _temper(mood: Mood | None) -> Temper:
    if mood is None:
        return Temper()
    return Temper(drawdown_state=mood.drawdown_state, consecutive_losses=mood.consecutive_losses)


def _base_rate(trades: list[Episode], query: Query, horizon: Horizon) -> BaseRate:
    from backsight.core.recall.base_rate import base_rate, trades_of

    return base_rate(trades_of(trades), query, now=horizon.as_of)


def _plans(
    connection: Connection, home: Deployment, about: About, mood: Mood | None, horizon: Horizon
) -> tuple[KeptPlan, ...]:
    """The plans of a deployment that hold now, the most urgent first."""
    plans, _ = open_plans(connection, home, horizon)
    values = values_of(
        now=horizon.as_of,
        context=about.context,
        mood=mood,
        strategy=home.strategy_name,
        symbol=about.symbol,
        direction=about.direction,
    )
    return tuple(kept(plan) for plan in check(plans, values, now=horizon.as_of).applying)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAdvice:
    """How much of the equity to risk, and why; 0 is an answer."""

    size: PositionSize
    deployment: str | None
    """Whose risk appetite it was multiplied by; None where nobody's is known, and it counts as 1."""
    since: datetime | None
    """Results in this symbol are falling since then: its earlier trades are left out."""
    left_out: int
    mode: Mode
    as_of: datetime
    seen_at: datetime | None


@query(audience=("trader", "coach"))
def position_size(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument you are about to trade."],
    direction: Annotated[Direction, "Which way."],
    strategy_name: Annotated[Name, "The strategy whose trades tell."],
    context_regime: Annotated[Regime | None, "The market's regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "ATR(14) on daily bars now, in price units."] = None,
    context: Annotated[ContextArgument | None, "The whole context vector now, as far as it is known."] = None,
    deployment: Annotated[
        Key | None, "Whose risk appetite, by name or id; the strategy's only one if left out."
    ] = None,
    mode: Annotated[Mode | None, "Evidence from which accounts; the deployment's, else live."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> SizeAdvice:
    """Get the share of equity to risk on a trade: a quarter of Kelly on a cautious mean outcome in R, often 0.

    It rests on all closed trades of the strategy with a result in R, and is multiplied by the risk appetite. Risk is
    what a loss at the stop costs: divide it by the distance to the stop to get the size.
    """
    from backsight.core.sizing import position_size as sized

    horizon = ctx.horizon(as_of, seen_at)
    asked = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.reading() as connection:
        named, within = mode_asked(connection, ctx.owner, deployment, mode)
        home = named or _only_home(connection, ctx.owner, strategy_name, within, horizon)
        trades = stored.trades_taught(connection, ctx.owner, horizon, mode=within, strategy_name=strategy_name)
        rows = habits_at(connection, ctx.owner, within, horizon, strategy=strategy_name, symbol=symbol)
        appetite = 1.0 if home is None else mood_then(connection, home, horizon).risk_appetite
    since = falling_since(rows, now=horizon.as_of)
    counted = [each for each in trades if since is None or each.symbol != symbol or each.first_known_at >= since]
    in_r = [each for each in counted if each.outcome is not None and each.outcome.unit == "R"]
    if counted and not in_r:
        told = f"none of the {len(counted)} closed trades of {strategy_name!r} has a result in R"
        raise Invalid(f"{told}; tell risk, stop_price and size, or pnl_r with trades", field="strategy_name")
    wanted = Asked(
        direction=direction,
        symbol=symbol,
        regime=asked.regime,
        volatility_regime=asked.volatility_regime,
        session=asked.session,
    )
    return SizeAdvice(
        size=sized([_sized(each) for each in in_r], wanted, risk_appetite=appetite),
        deployment=None if home is None else home.name,
        since=since,
        left_out=len(trades) - len(counted),
        mode=within,
        as_of=horizon.as_of,
        seen_at=horizon.seen_at,
    )


def _only_home(
    connection: Connection, owner: str, strategy_name: str, mode: Mode, horizon: Horizon
) -> Deployment | None:
    """The one deployment of a strategy in a mode that was known then, if there was no other."""
    there = stored_strategies.deployments(connection, owner, horizon)
    own = [each for each in there if (each.strategy_name, each.mode) == (strategy_name, mode)]
    return own[0] if len(own) == 1 else None


def _sized(episode: Episode) -> SizedTrade:
    context = episode.context
    return SizedTrade(
        outcome_r=0.0 if episode.outcome is None else episode.outcome.value,
        day=day_of(episode),
        direction=episode.direction,
        symbol=episode.symbol,
        regime=context.regime,
        volatility_regime=context.volatility_regime,
        session=context.session,
    )


def _message(shown: int, scored: int, symbol: str, mode: ModeAsked) -> str:
    if scored == 0:
        return f"Nothing remembered of {symbol} ({mode} accounts) that fits."
    return f"{shown} of {scored} episodes, selected by outcome: winners score higher whatever the truth."
