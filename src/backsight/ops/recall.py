"""Recall: which memories matter here and now, and why."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from backsight.arguments import (
    AsOf,
    ContextArgument,
    Cursor,
    Flag,
    Handle,
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
from backsight.core.errors import Invalid, NotFound
from backsight.core.instants import Horizon, format_instant, parse_instant
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import condition_values
from backsight.core.memory.kind import MemoryKind
from backsight.core.memory.prospective import PlanRecord, check_plans, plan_record
from backsight.core.portfolio import Direction, Mode
from backsight.core.recall.base_rate import BaseRate
from backsight.core.recall.explanation import Explanation
from backsight.core.recall.rank import RecalledMemory
from backsight.core.recall.record import ModeAsked, RecallAsked, RecallMade
from backsight.core.recommended_size import Asked, PositionSize
from backsight.core.regime import Regime
from backsight.core.strategies import Deployment
from backsight.operation import query
from backsight.services.beliefs import BeliefView, DecisionSubject, beliefs_about
from backsight.services.context import Context
from backsight.services.deployments import deployment_named
from backsight.services.learning import deployment_and_mode
from backsight.services.mood import falling_outcomes_since, mood_then
from backsight.services.paging import opened, sealed
from backsight.services.plans import open_plans
from backsight.services.recall import MADE, NOTHING_FOUND, bring_to_mind, handle_of, look, read_handle
from backsight.services.trade_reports import merged_context
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored
from backsight.store import strategies as stored_strategies
from backsight.store.database import Connection

if TYPE_CHECKING:
    pass

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
    next_cursor: str | None
    """Where the next memories are; None: there are no more."""
    beliefs: tuple[BeliefView, ...]
    """Beliefs that speak of this, the most credible first."""
    plans: tuple[PlanRecord, ...]
    """Plans whose condition holds now; reading does not trigger them."""
    mood: Mood | None
    """Of the deployment that is named; it colours the factor Aff."""
    candidates: int
    """How many episodes were scored."""
    message: str
    recall: str
    """Stands for this recall: give it to explain_recall, or with the decision that was made on it."""
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
    period_weight: Annotated[Flag, "Weigh memories by how well the 30 days up to each went."] = False,
    cursor: Annotated[Cursor | None, "The next_cursor of the answer before, for the memories after it."] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Recall:
    """Recall past trades in contexts like this one, weighted by how they ended.

    Call it before you decide on a trade, and read the base rate and the warnings first: memories are selected by
    outcome, so they flatter.
    """
    if since is not None and until is not None and until <= since:
        raise Invalid("is not after since; give a later instant", field="until")
    repeated = ctx.arguments(without=("cursor", "limit"))
    horizon, after = ctx.horizon(as_of, seen_at), None
    if cursor is not None:
        horizon, after = _continued(cursor, repeated)
    with ctx.reading() as connection:
        home = None if deployment is None else deployment_named(connection, ctx.owner, deployment)
        asked = RecallAsked(
            symbol=symbol,
            context=merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1),
            market_context=market_context,
            direction=direction,
            strategy_name=strategy_name,
            deployment_id=None if home is None else home.id,
            mode=mode or (home.mode if home is not None else "live"),
            memory_types=tuple(memory_types),
            tags=tuple(tags),
            since=since,
            until=until,
            limit=limit,
            period_weight=period_weight,
            as_of=horizon.as_of,
            seen_at=horizon.seen_at,
        )
        looked = look(ctx, connection, asked)
        about = DecisionSubject(symbol=symbol, direction=direction, strategy_name=strategy_name, context=asked.context)
        beliefs: tuple[BeliefView, ...] = ()
        if "semantic" in memory_types and asked.one_mode is not None:
            beliefs = beliefs_about(connection, ctx.owner, asked.one_mode, horizon, about)
        plans = () if home is None else _plans(connection, home, about, looked.mood, horizon)
        found = bring_to_mind(ctx, connection, looked, after=after) if "episodic" in memory_types else NOTHING_FOUND
    last = found.memories[-1] if len(found.memories) == limit and found.candidates > limit else None
    return Recall(
        base_rate=found.base_rate,
        nearest=found.nearest,
        warnings=found.warnings,
        memories=found.memories,
        next_cursor=None if last is None else _after(last, asked, repeated, now=ctx.now),
        beliefs=beliefs,
        plans=plans,
        mood=looked.mood,
        candidates=found.candidates,
        message=_message(len(found.memories), found.candidates, symbol, asked.mode),
        recall=handle_of(asked, now=ctx.now),
        mode=asked.mode,
        as_of=asked.as_of,
        seen_at=asked.seen_at,
    )


def _after(last: RecalledMemory, asked: RecallAsked, repeated: dict[str, object], *, now: datetime) -> str:
    """The cursor after a memory; what is recorded from now on does not move what comes next."""
    instants = [format_instant(asked.as_of), format_instant(asked.seen_at or now)]
    return sealed([last.score, last.id, *instants], query=repeated)


def _continued(cursor: str, repeated: dict[str, object]) -> tuple[Horizon, tuple[float, str]]:
    """The horizon of the first page, and the score and id with which the page before ended."""
    position = opened(cursor, query=repeated)
    try:
        score, last, as_of, seen_at = position
        horizon = Horizon(as_of=parse_instant(as_of, field="cursor"), seen_at=parse_instant(seen_at, field="cursor"))
        return horizon, (float(score), str(last))
    except (ValueError, TypeError, AttributeError, Invalid):
        raise Invalid("not a cursor of a recall; give the next_cursor of the page before", field="cursor") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallExplained:
    """Why a memory ranked where it did, or was no candidate."""

    explanation: Explanation
    asked: RecallAsked


@query(audience=("trader",))
def explain_recall(
    ctx: Context,
    *,
    memory_id: Annotated[Key, "The id of a memory, among those recalled or not."],
    recall: Annotated[Handle, "The `recall` of the answer that is to be explained."],
) -> RecallExplained:
    """Explain why a memory ranked where it did in a recall, and what would have ranked it higher."""
    from backsight.core.recall.arrays.explain import explain

    asked = read_handle(recall, field="recall")
    with ctx.reading() as connection:
        looked = look(ctx, connection, asked)
        found = explain(
            looked.columns,
            memory_id,
            looked.query,
            looked.filters,
            as_of=asked.as_of,
            seen_at=asked.seen_at,
            limit=asked.limit,
            temper=looked.temper,
            period_weight=asked.period_weight,
        )
        if found is None:
            episode = stored.episode(connection, ctx.owner, memory_id)
            if episode is None:
                raise NotFound(f"no memory {memory_id[:40]!r}; give the id of an episode", field="memory_id")
            told, others = "it has no outcome", looked.scan().candidates
            found = Explanation(id=memory_id, sentence=f"Not a candidate: {told}", candidates=others, excluded=told)
    return RecallExplained(explanation=found, asked=asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallKept:
    """A recall that was made for a decision."""

    made: RecallMade
    recall: str
    """Stands for it: give it to explain_recall."""
    known_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecalls:
    """What was recalled for a decision, as it came to mind."""

    decision_id: str
    recalls: tuple[RecallKept, ...]


@query(audience=("trader",))
def list_recalls(
    ctx: Context,
    *,
    decision_id: Annotated[Key, "The id of a decision, or of a call."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> DecisionRecalls:
    """List what was recalled for a decision: each query with its instants, and the ids and factors it found."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        kept = stored.recalls(connection, ctx.owner, decision_id, horizon)
        if not kept and not _is_decision(connection, ctx.owner, decision_id):
            raise NotFound(f"no decision {decision_id[:40]!r}; list_decisions names them", field="decision_id")
    made = [(MADE.validate_json(each.made), each.known_at) for each in kept]
    return DecisionRecalls(
        decision_id=decision_id,
        recalls=tuple(
            RecallKept(made=each, recall=handle_of(each.asked, now=each.asked.as_of), known_at=known_at)
            for each, known_at in made
        ),
    )


def _is_decision(connection: Connection, owner: str, decision_id: str) -> bool:
    if stored_decisions.decision(connection, owner, decision_id) is not None:
        return True
    call = stored.episode(connection, owner, decision_id)
    return call is not None and call.kind == "call"


def _plans(
    connection: Connection, home: Deployment, about: DecisionSubject, mood: Mood | None, horizon: Horizon
) -> tuple[PlanRecord, ...]:
    """The plans of a deployment that hold now, the most urgent first."""
    plans, _ = open_plans(connection, home, horizon)
    values = condition_values(
        now=horizon.as_of,
        context=about.context,
        mood=mood,
        strategy=home.strategy_name,
        symbol=about.symbol,
        direction=about.direction,
    )
    return tuple(plan_record(plan) for plan in check_plans(plans, values, now=horizon.as_of).applying)


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
    from backsight.core.sizing import trades_in

    horizon = ctx.horizon(as_of, seen_at)
    asked = merged_context(context, symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.reading() as connection:
        named, within = deployment_and_mode(connection, ctx.owner, deployment, mode)
        home = named or _only_home(connection, ctx.owner, strategy_name, within, horizon)
        columns = ctx.database.images.at(connection, ctx.owner, horizon)
        since = falling_outcomes_since(
            connection, ctx.owner, within, horizon, strategy_name=strategy_name, symbol=symbol
        )
        appetite = 1.0 if home is None else mood_then(connection, home, horizon).risk_appetite
    closed = trades_in(
        columns,
        strategy_name=strategy_name,
        mode=within,
        as_of=horizon.as_of,
        seen_at=seen_at,
        fallen=None if since is None else (symbol, since),
    )
    if closed.n and not len(closed.in_r.day):
        told = f"none of the {closed.n} closed trades of {strategy_name!r} has a result in R"
        raise Invalid(f"{told}; tell risk, stop_price and size, or pnl_r with trades", field="strategy_name")
    wanted = Asked(
        direction=direction,
        symbol=symbol,
        regime=asked.regime,
        volatility_regime=asked.volatility_regime,
        session=asked.session,
    )
    return SizeAdvice(
        size=sized(closed.in_r, wanted, risk_appetite=appetite),
        deployment=None if home is None else home.name,
        since=since,
        left_out=closed.left_out,
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


def _message(shown: int, scored: int, symbol: str, mode: ModeAsked) -> str:
    if scored == 0:
        return f"Nothing remembered of {symbol} ({mode} accounts) that fits."
    return f"{shown} of {scored} episodes, selected by outcome: winners score higher whatever the truth."
