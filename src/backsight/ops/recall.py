"""Recall: the memories that matter for the decision at hand, and why they matter."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

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
    as_context,
)
from backsight.core.context import merged_context
from backsight.core.errors import Invalid, NotFound, Refused
from backsight.core.instruments import spelling_of
from backsight.core.memory.affective import Mood
from backsight.core.memory.episodic import Episode
from backsight.core.memory.kind import MemoryKind
from backsight.core.memory.plan_check import check_plans
from backsight.core.memory.prospective import Plan
from backsight.core.portfolio import Direction, Mode, ModeChoice
from backsight.core.recall.base_rate import BaseRate, with_joined
from backsight.core.recall.explanation import Explanation, not_a_candidate
from backsight.core.recall.rank import RecalledMemory
from backsight.core.recall.record import RecallQuery, RecallResult
from backsight.core.recommended_size import PositionSize
from backsight.core.regime import Regime
from backsight.core.scope import AnswerScope
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import Outcome
from backsight.operation import query
from backsight.services.behavior import Behavior, behaviors_at
from backsight.services.beliefs import BeliefView, DecisionSubject, beliefs_about
from backsight.services.context import Context
from backsight.services.deployments import hint_where_trades_are, resolve_scope
from backsight.services.habit_learning import evidence_filter
from backsight.services.id_prefixes import whole_episode_id, whole_id
from backsight.services.mood import mood_in
from backsight.services.outlook import open_in, open_risk, recommended_size, sizing_query
from backsight.services.paging import cursor_after, read_cursor
from backsight.services.plans import open_plans
from backsight.services.recall import (
    EMPTY_ANSWER,
    RecallAnswer,
    RecallSession,
    answer_recall,
    decode_recall,
    encode_recall,
    inactions_of,
    open_recall,
)
from backsight.services.recall_hashes import named_recall, remember_recall
from backsight.services.withheld_memory import READ_ANYWAY, WITHHELD, withholds_from_queries
from backsight.store import audit
from backsight.store import decisions as stored_decisions
from backsight.store import memories as stored
from backsight.store.database import Connection
from backsight.store.instruments import underlyings
from backsight.store.recalls import recalls_of
from backsight.store.view import View

Kinds = Annotated[list[MemoryKind], Field(min_length=1, max_length=5)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """The base rate, the nearest episodes, the warnings and the memories, to be read in this order."""

    base_rate: BaseRate | None
    """What trades of the strategy (of all strategies if none is named) brought so far; None without trades."""
    nearest: tuple[RecalledMemory, ...]
    """The most similar and most recent episodes, whatever their outcome."""
    warnings: tuple[RecalledMemory, ...]
    """Losses in similar contexts."""
    memories: tuple[RecalledMemory, ...]
    """The episodes with the highest scores: their outcome counts, so winners rank higher."""
    inactions: tuple[Episode, ...]
    """What was deliberately not traded lately, newest first; of a series with one reason, the last, with its count."""
    next_cursor: str | None
    """The cursor of the next page of memories; None on the last page."""
    beliefs: tuple[BeliefView, ...]
    """Beliefs that apply here, the most credible first."""
    habits: tuple[Behavior, ...]
    """How the strategy (each strategy if none is named) is traded in the symbol, if `procedural` is asked for."""
    plans: tuple[Plan, ...]
    """Plans whose condition holds now; reading them does not trigger them."""
    mood: Mood | None
    """The mood of the deployment, which sets the factor Aff; None if there is none yet, or several and none named."""
    candidates: int
    """The number of episodes that were scored."""
    joined: tuple[str, ...]
    """Other symbols with the same underlying, whose episodes count as those of the symbol."""
    message: str
    recall: str
    """The handle of this recall: pass it to explain_recall, or to the decision that is based on this recall."""
    recall_hash: str
    """A short name of this recall, which may be passed instead: known to this process, and to all once recorded."""
    mode: ModeChoice
    as_of: datetime
    seen_at: datetime | None


WITHHELD_RECALL = f"{WITHHELD} Mood and plans are in the answer. {READ_ANYWAY}"
WITHHELD_SIZE = f"{WITHHELD} Size the trade by the strategy's own rules. {READ_ANYWAY}"


@query(audience=("trader", "coach"))
def recall_memories(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument."],
    market_context: Annotated[Prose | None, "The market now, in your own words."] = None,
    context_regime: Annotated[Regime | None, "The regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "Daily ATR(14) now, in price units."] = None,
    strategy_name: Annotated[Name | None, "Only memories of this strategy."] = None,
    memory_types: Annotated[Kinds, "Which kinds to search; mood and plans are always there."] = [  # noqa: B006
        "episodic",
        "semantic",
    ],
    limit: Annotated[Limit, "The maximum number of memories."] = 10,
    direction: Annotated[Direction | None, "Only memories in this direction."] = None,
    context: Annotated[ContextArgument | None, "The context now."] = None,
    deployment: Annotated[Key | None, "Only memories of this deployment; else the only one."] = None,
    mode: Annotated[ModeChoice | None, "By default the deployment's, or the only one with trades."] = None,
    tags: Annotated[Tags, "Only memories with all of these labels."] = [],  # noqa: B006
    since: Annotated[Instant | None, "Only memories that ended at or after this instant."] = None,
    until: Annotated[Instant | None, "Only memories that ended before this instant."] = None,
    period_weight: Annotated[Flag, "Weight memories by their strategy's last 30 days."] = False,
    with_calls: Annotated[Flag, "Count judged calls too."] = False,
    cursor: Annotated[Cursor | None, "The next_cursor of the previous answer."] = None,
    detail: Annotated[
        Literal["brief", "full"] | None, "How much of the answer a surface shows; the answer itself is the same."
    ] = None,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> Recall:
    """Recall past trades in similar contexts, ranked by similarity, recency and outcome.

    Call it before you decide on a trade, and read the base rate and the warnings first: the memories are selected by
    outcome, so they look better than the average trade.
    """
    if since is not None and until is not None and until <= since:
        raise Invalid("must be after since; give a later instant", field="until")
    arguments = ctx.arguments(without=("cursor", "limit", "detail"))
    horizon, after = ctx.horizon(as_of, seen_at), None
    if cursor is not None:
        after, horizon = read_cursor(cursor, _score_and_id, query=arguments)
    with ctx.reading() as connection:
        view = View(connection, ctx.owner, horizon)
        scope = resolve_scope(
            view,
            deployment=deployment,
            strategy_name=strategy_name,
            mode=None if mode == "all" else mode,
            all_modes=mode == "all",
            symbol=symbol,
        )
        target = scope.deployment
        is_withheld = as_of is None and cursor is None and withholds_from_queries(view, target)
        kinds: tuple[MemoryKind, ...] = () if is_withheld else tuple(memory_types)
        recall_query = RecallQuery(
            symbol=symbol,
            context=merged_context(as_context(context), symbol=symbol, regime=context_regime, atr_d1=context_atr_d1),
            market_context=market_context,
            direction=direction,
            strategy_name=strategy_name or scope.strategy_name,
            deployment_id=None if scope.evidence_of is None else scope.evidence_of.id,
            mood_of=None if target is None or scope.evidence_of is not None else target.id,
            mode="all" if mode == "all" else scope.mode,
            memory_types=kinds,
            tags=tuple(tags),
            since=since,
            until=until,
            limit=limit,
            period_weight=period_weight,
            with_calls=with_calls,
            as_of=horizon.as_of,
            seen_at=horizon.seen_at,
        )
        session = open_recall(ctx, connection, recall_query)
        about = DecisionSubject(
            symbol=symbol, direction=direction, strategy_name=session.strategy_name, context=recall_query.context
        )
        answer = answer_recall(ctx, session, after=after) if "episodic" in kinds else EMPTY_ANSWER
        inactions = inactions_of(session, scope.deployments) if "episodic" in kinds and cursor is None else ()
        one_mode = recall_query.mode_filter
        beliefs: tuple[BeliefView, ...] = ()
        if "semantic" in kinds and one_mode is not None:
            beliefs = beliefs_about(view, one_mode, about)
        habits: tuple[Behavior, ...] = ()
        if "procedural" in kinds and one_mode is not None:
            habits = behaviors_at(ctx, view, one_mode, strategy_name=session.strategy_name, symbol=symbol)
        plans = _plans(view, target, about, session.mood)
        hint = ""
        searched = "episodic" in kinds or ("procedural" in kinds and one_mode is not None)
        if searched and not (answer.candidates or habits or inactions):
            hint = hint_where_trades_are(view, mode=one_mode, strategy_name=session.strategy_name, symbol=symbol)
    handle = encode_recall(recall_query, now=ctx.now)
    others = {"inaction": len(inactions), "belief": len(beliefs), "habit": len(habits), "plan": len(plans)}
    last = answer.memories[-1] if len(answer.memories) == limit and answer.candidates > limit else None
    return Recall(
        base_rate=answer.base_rate,
        nearest=answer.nearest,
        warnings=answer.warnings,
        memories=answer.memories,
        inactions=inactions,
        next_cursor=None
        if last is None
        else cursor_after([last.score, last.id], horizon, now=ctx.now, query=arguments),
        beliefs=beliefs,
        habits=habits,
        plans=plans,
        mood=session.mood,
        candidates=answer.candidates,
        joined=session.joined,
        message=f"{_message(scope, answer, session, others)} {hint}".strip() if not is_withheld else WITHHELD_RECALL,
        recall=handle,
        recall_hash=remember_recall(ctx, handle, (*answer.nearest, *answer.warnings)),
        mode=recall_query.mode,
        as_of=recall_query.as_of,
        seen_at=recall_query.seen_at,
    )


def _score_and_id(score: float, last: str) -> tuple[float, str]:
    """The position of a memory in a recall."""
    return float(score), str(last)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalledEpisode:
    """What a recalled episode is about and how it ended, so that nobody has to look up its id."""

    id: str
    trade_id: str | None
    symbol: str
    direction: Direction | None
    ended_at: datetime
    outcome: Outcome | None
    pnl: float | None


def _recalled_episodes(view: View, ids: Collection[str]) -> tuple[RecalledEpisode, ...]:
    """The episodes with these ids, the latest first."""
    episodes = sorted(stored.episodes_by_id(view, ids).values(), key=lambda each: (each.ended_at, each.id))
    return tuple(
        RecalledEpisode(
            id=each.id,
            trade_id=each.trade_id,
            symbol=each.symbol,
            direction=each.direction,
            ended_at=each.ended_at,
            outcome=each.outcome,
            pnl=each.pnl,
        )
        for each in reversed(episodes)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallExplained:
    """The reasons for the rank of a memory, or why it was not a candidate."""

    explanation: Explanation
    query: RecallQuery
    episodes: tuple[RecalledEpisode, ...]
    """The memory, and those ahead of it, the latest first."""


@query(audience=("trader",))
def explain_recall(
    ctx: Context,
    *,
    memory_id: Annotated[Key, "The id of a memory, whether the recall returned it or not."],
    recall: Annotated[Handle, "The `recall` of the answer to explain."],
) -> RecallExplained:
    """Explain why a memory ranked where it did in a recall, and what would have ranked it higher."""
    from backsight.core.recall.arrays.explain import explain

    recall_query = decode_recall(named_recall(ctx, recall, field="recall"), field="recall")
    with ctx.reading() as connection:
        session = open_recall(ctx, connection, recall_query)
        memory_id = whole_episode_id(connection, ctx.owner, memory_id, field="memory_id")
        explanation = explain(
            session.columns,
            memory_id,
            session.situation,
            session.filters,
            horizon=recall_query.horizon,
            limit=recall_query.limit,
            mood=session.recall_mood,
            period_weight=recall_query.period_weight,
        )
        if explanation is None:
            episode = stored.current_episode(connection, ctx.owner, memory_id)
            if episode is None:
                raise NotFound(f"no memory {memory_id[:40]!r}; give the id of an episode", field="memory_id")
            explanation = not_a_candidate(memory_id, ["it has no outcome"], session.scan().candidates)
        view = ctx.view(connection, recall_query.as_of, recall_query.seen_at)
        episodes = _recalled_episodes(view, {memory_id, *(each.id for each in explanation.ahead)})
    return RecallExplained(explanation=explanation, query=recall_query, episodes=episodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecall:
    """A recall that a decision was based on."""

    result: RecallResult
    recall: str
    """The handle of the recall: pass it to explain_recall."""
    known_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecalls:
    """The recalls that a decision was based on, with their answers at that time."""

    decision_id: str
    recalls: tuple[DecisionRecall, ...]
    episodes: tuple[RecalledEpisode, ...]
    """The episodes of the answers, the latest first; episodes that were erased since are left out."""
    thinned_before: datetime | None
    """Recalls of before this instant were removed by `retention`; None if there are recalls, or none was removed."""


@query(audience=("trader",))
def list_recalls(
    ctx: Context,
    *,
    decision_id: Annotated[Key, "The id of a decision, or of a call."],
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> DecisionRecalls:
    """List the recalls of a decision: each query with its instants, its answer, and the episodes in the answers."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        decision_id = _whole_decision_id(connection, ctx.owner, decision_id)
        recalls = recalls_of(view, decision_id)
        if not recalls and not _is_decision(view, decision_id):
            raise NotFound(f"no decision {decision_id[:40]!r}; list_decisions lists them", field="decision_id")
        thinned_before = None if recalls else audit.thinned_before(connection, ctx.owner)
        ids = {each.id for result, _ in recalls for ranked in result.found.values() for each in ranked}
        episodes = _recalled_episodes(view, ids)
    return DecisionRecalls(
        decision_id=decision_id,
        episodes=episodes,
        recalls=tuple(
            DecisionRecall(result=result, recall=encode_recall(result.asked, now=result.asked.as_of), known_at=known_at)
            for result, known_at in recalls
        ),
        thinned_before=thinned_before,
    )


def _whole_decision_id(connection: Connection, owner: str, key: str) -> str:
    """The id of a decision or of a call, from its beginning."""
    decision = whole_id(connection, owner, stored_decisions.DECISIONS, key, field="decision_id")
    return decision if decision != key else whole_id(connection, owner, stored.EPISODES, key, field="decision_id")


def _is_decision(view: View, decision_id: str) -> bool:
    """Whether there was a decision or a call with this id by then."""
    decision = stored_decisions.decision(view.connection, view.owner, decision_id)
    if decision is not None:
        return view.horizon.holds(decision.known_at, decision.recorded_at)
    call = stored.episode(view, decision_id)
    return call is not None and call.kind == "call"


def _plans(view: View, deployment: Deployment | None, about: DecisionSubject, mood: Mood | None) -> tuple[Plan, ...]:
    """The plans whose condition holds now, the most urgent first; without a deployment, those for every deployment."""
    plans = open_plans(view, deployment, strategy_name=about.strategy_name).plans
    if not plans:
        return ()
    from backsight.services.plan_values import PlanSubject, fields_of, plan_values  # imports the calendar

    subject = PlanSubject(
        context=about.context, symbol=about.symbol, direction=about.direction, strategy=about.strategy_name
    )
    values = plan_values(view, deployment, subject, mood=mood, fields=fields_of(plans), now=view.as_of)
    return check_plans(plans, values, now=view.as_of).applying


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAdvice:
    """The share of equity to risk, its kind and the reasons; 0 is advice, None is none."""

    size: PositionSize
    deployment: str | None
    """The deployment whose risk appetite scales the size; None if it is unknown, and the appetite counts as 1."""
    since: datetime | None
    """The start of a decline of the results, in this symbol or of the whole strategy; earlier trades are left out. None
    without a decline."""
    left_out: int
    """The number of trades left out because of a decline."""
    joined: tuple[str, ...]
    """Other symbols with the same underlying, whose trades count as those of the symbol."""
    message: str
    mode: Mode
    as_of: datetime
    seen_at: datetime | None


@query(audience=("trader",))
def position_size(
    ctx: Context,
    *,
    symbol: Annotated[Symbol, "The instrument."],
    direction: Annotated[Direction, "The direction of the trade."],
    strategy_name: Annotated[Name, "The strategy whose closed trades are the evidence."],
    context_regime: Annotated[Regime | None, "The regime now."] = None,
    context_atr_d1: Annotated[NotNegative | None, "Daily ATR(14) now, in price units."] = None,
    context: Annotated[ContextArgument | None, "The context now."] = None,
    deployment: Annotated[
        Key | None,
        "Whose risk appetite applies; else the strategy's only one.",
    ] = None,
    mode: Annotated[Mode | None, "By default the deployment's, or the only one with trades."] = None,
    with_calls: Annotated[Flag, "Count judged calls too."] = False,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> SizeAdvice:
    """Get the share of equity to risk on a trade: a quarter of Kelly on a cautious mean outcome in R.

    With no recommendation the strategy's own risk applies. The evidence is its closed trades with a result in R; the
    risk appetite multiplies the share. Many strategies tried, unknown results, copies and open trades on the same
    signal lower it. Divide by the distance to the stop to get the size.
    """
    from backsight.core.sizing import closed_trades

    current = merged_context(as_context(context), symbol=symbol, regime=context_regime, atr_d1=context_atr_d1)
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        scope = resolve_scope(view, deployment=deployment, strategy_name=strategy_name, mode=mode)
        target, evidence_mode = scope.deployment, scope.mode
        if as_of is None and withholds_from_queries(view, target):
            raise Refused(WITHHELD_SIZE)
        columns = ctx.database.images.at(view)
        appetite = 1.0 if target is None else mood_in(view, target).risk_appetite
        known = underlyings(view)
        joined = known.joined(symbol)
        trade_filter = evidence_filter(view, evidence_mode, strategy_name=strategy_name, symbols=(symbol, *joined))
        trade_filter = replace(trade_filter, with_calls=with_calls)
        closed = closed_trades(columns, trade_filter, view.horizon, underlyings=known)
        open_trades = open_in(view, target, evidence_mode)
        sentences = [*scope.notes, scope.neutral_because, _joined_in_words(symbol, joined)]
        if not closed.n:
            sentences.append(hint_where_trades_are(view, mode=evidence_mode, strategy_name=strategy_name))
    if closed.n and not len(closed.in_r.day):
        raise Invalid(
            f"none of the {closed.n} closed trades of {strategy_name!r} has a result in R; "
            "give risk, or stop_price and size, or pnl_r with each trade",
            field="strategy_name",
        )
    profile = sizing_query(direction, replace(current, symbol=symbol), known)
    return SizeAdvice(
        size=recommended_size(
            closed,
            profile,
            risk_appetite=appetite,
            open_risk=open_risk(open_trades, strategy_name, (symbol, *joined), direction),
        ),
        deployment=None if target is None else target.name,
        since=max(trade_filter.falling_since.values(), default=None),
        left_out=closed.left_out,
        joined=joined,
        message=" ".join(filter(None, sentences)),
        mode=evidence_mode,
        as_of=view.as_of,
        seen_at=view.seen_at,
    )


def _message(scope: AnswerScope, answer: RecallAnswer, session: RecallSession, others: Mapping[str, int]) -> str:
    """What the answer holds, after the defaults that were taken; `others` counts what is no episode."""
    recall_query, neutral = session.query, scope.neutral_because if scope.deployments else None
    sentences = [*scope.notes, neutral, _joined_in_words(recall_query.symbol, session.joined)]
    where = "" if recall_query.mode == "all" else f" in {recall_query.mode} accounts"
    if answer.candidates:
        count = f"The best {len(answer.memories)} of {count_of(answer.candidates, 'episode')}"
        sentences.append(f"{count}, selected by outcome: winners rank higher than they deserve.")
    elif scope.deployment is None and not any(others.values()):
        sentences.append(f"Nothing is remembered about {recall_query.symbol}{where}.")
    elif "episodic" in recall_query.memory_types:
        side = "" if recall_query.direction is None else f"{recall_query.direction} "
        sentences.append(f"No {side}episodes of {recall_query.symbol}{where} match.")
    listed = [count_of(number, noun) for noun, number in others.items() if number]
    if listed:
        sentences.append(f"Also {', '.join(listed)}.")
    if recall_query.mode == "all" and {"semantic", "procedural"} & set(recall_query.memory_types):
        sentences.append("Beliefs and habits are of one mode: name it to get them.")
    return " ".join(filter(None, sentences))


def _joined_in_words(symbol: str, joined: tuple[str, ...]) -> str | None:
    """Which symbols count as the symbol, and why; None if it stands alone."""
    if not joined:
        return None
    is_spelling = all(spelling_of(each) == spelling_of(symbol) for each in joined)
    reason = "they are one market" if is_spelling else "they have the same underlying"
    return f"Trades of {with_joined(symbol, joined)} count as one: {reason}."
