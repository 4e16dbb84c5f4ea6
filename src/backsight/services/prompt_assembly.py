"""Assemble the prompt of an agent: `open_tick` and `preview_context` both use it."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from backsight.core.agents.review import line_of
from backsight.core.context import ContextVector
from backsight.core.decision import MEMORY, SYSTEM, Decision, Prompt, Segment, SegmentTokens
from backsight.core.errors import BacksightError
from backsight.core.holdout import MemoryArm
from backsight.core.memory.affective import Mood, without_agent_state
from backsight.core.portfolio import Account, Direction, Portfolio
from backsight.core.prompts.account import Cap, last_decision, last_lines, portfolio_and_caps
from backsight.core.prompts.amounts import instant
from backsight.core.prompts.budget import FittedPrompt, Part, fit_to_budget, tokens_of
from backsight.core.prompts.decisions import decisions_under_review
from backsight.core.prompts.lessons import lessons_section, read_lessons
from backsight.core.prompts.plans import PlanLine, plans_that_apply
from backsight.core.prompts.sections import MOST_SYMBOLS, Section
from backsight.core.prompts.state import your_state
from backsight.core.prompts.symbol_memory import (
    RecalledLine,
    SymbolMemory,
    chosen_episodes,
    recalled_line,
    uncounted_trades,
    what_usually_happens,
)
from backsight.core.prompts.system import Identity, system_segments
from backsight.core.prompts.trades import (
    closed_line,
    open_line,
    open_positions,
    recent_trades,
    row_numbers,
)
from backsight.core.recall.rank import RecalledMemory
from backsight.core.recall.record import RecallQuery
from backsight.core.reflection.lessons import LessonsNote, parse_note, render_lessons, shown_lessons_hash
from backsight.core.risk_state import (
    HOUR,
    LOSING_STREAK,
    Attempt,
    Close,
    RiskState,
    render_risk_state,
    risk_state,
    with_win_rate,
)
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Trade
from backsight.services.context import Context
from backsight.services.deployments import deployed_strategy, unsaved_strategy
from backsight.services.habit_learning import record_at
from backsight.services.outlook import SymbolOutlook, symbol_outlook
from backsight.services.own_trading import own_trading
from backsight.services.plan_lines import applying_plans
from backsight.services.present_state import PresentState
from backsight.services.protocol import Protocol, protocol_for
from backsight.services.recall import (
    RecallSession,
    encode_recall,
    keep_answer,
)
from backsight.store import decisions as stored_decisions
from backsight.store import notes as stored_notes
from backsight.store import trades as stored_trades
from backsight.store.agent_sessions import agent_settings
from backsight.store.instruments import underlyings
from backsight.store.view import View

LOG = logging.getLogger("backsight")
REVIEWED = 5
"""How many previous decisions are reviewed."""
RECALLED = 3
"""How many episodes are recalled for a symbol."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest:
    """A deployment that is about to decide, and the parts of the prompt that its caller supplies."""

    deployment: Deployment
    account: Account
    at: datetime
    view: View
    """The rows that memory may use."""
    arm: MemoryArm
    portfolio: Portfolio | None
    """None if no tick has recorded the account yet."""
    last: Decision | None
    """The deployment's last decision as of the view."""
    mood: Mood
    """The deployment's mood as of the view."""
    present: PresentState
    """The ledger and the mood at the instant of the prompt."""
    day_start_equity: float | None
    contexts: Sequence[ContextVector]
    """One for each symbol that may be traded."""
    market: Sequence[Segment] = ()
    caps: Sequence[Cap] = ()
    tools: Sequence[str] = ()
    budget: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SymbolRecalls:
    """The memory of each symbol, and the handles of the recalls that found it."""

    memories: tuple[SymbolMemory, ...] = ()
    handles: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Symbols that may be traded, too, and are only named."""
    outlooks: tuple[SymbolOutlook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """What memory holds for a prompt: read once, shown in several sections."""

    closed: Mapping[str, Trade]
    """The recent closed trades by id; empty if they are withheld."""
    recent: Section
    """The section of the recent trades."""
    numbers: Mapping[str, int]
    """The row of each recent trade that is shown, by the id of the trade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lessons:
    """The section of the lessons, and the hash that trades carry of them."""

    section: Section
    hash: str | None


def assemble_prompt(ctx: Context, request: PromptRequest) -> Prompt:
    """The whole prompt, within the ceiling of every section and the caller's budget."""
    deployment, view = request.deployment, request.view
    is_shown = request.arm == "shown"
    note = stored_notes.active_text(view, deployment.id) if is_shown else None
    lessons = _lessons(view, note, deployment) if is_shown else None
    strategy = deployed_strategy(view.connection, deployment) or unsaved_strategy(deployment)
    memory = None if request.arm == "off" else _read_memory(request)
    recalls = _SymbolRecalls()
    if is_shown and memory is not None:
        recalls = _recall_symbols(ctx, request, memory, strategy.guidance.directions)
    with_incidents = request.arm != "off"
    protocol = protocol_for(ctx, view, deployment, tuple(request.contexts), with_incidents=with_incidents)
    identity = Identity(money=deployment.mode, tools=tuple(request.tools), has_memory=memory is not None)
    rules = "" if protocol is None else protocol.text.text
    section = None if lessons is None else lessons.section
    system = system_segments(identity, strategy, protocol=rules, lessons=section)
    # Lessons take part as a section rather than as a segment, so that a small budget cuts them row by row.
    parts: list[Part] = [
        section if section is not None and segment.name == "lessons" else segment for segment in system
    ]
    parts += _message(request, memory, recalls)
    if is_shown:
        parts += _reviewed(request)
    if protocol is not None:
        parts.append(protocol.section)
    prompt = fit_to_budget(parts, budget=request.budget)
    has_lessons = any(segment.name == "lessons" for segment in prompt.segments)
    return Prompt(
        system=tuple(segment for segment in prompt.segments if segment.name in SYSTEM),
        segments=tuple(segment for segment in prompt.segments if segment.name not in SYSTEM),
        tokens=tuple(SegmentTokens(name=segment.name, tokens=tokens_of([segment])) for segment in prompt.segments),
        total_tokens=prompt.tokens,
        memory_tokens=tokens_of(segment for segment in prompt.segments if segment.name in MEMORY),
        cuts=prompt.cuts,
        fits=prompt.fits,
        recalled=_recalled(parts, prompt),
        recalls=recalls.handles,
        citations=() if protocol is None else _citations(protocol, prompt),
        lessons_hash=lessons.hash if lessons is not None and has_lessons else None,
    )


def _recalled(parts: Iterable[Part], prompt: FittedPrompt) -> tuple[str, ...]:
    """The ids of the episodes that the prompt shows."""
    rows = [row for part in parts if isinstance(part, Section) for row in part.rows if row.id is not None]
    lines = {line for segment in prompt.segments for line in segment.text.split("\n")} if rows else set()
    return tuple(dict.fromkeys(row.id for row in rows if row.id is not None and row.text in lines))


def _reviewed(request: PromptRequest) -> list[Part]:
    """The review of previous decisions, if the deployment's owner switched it on."""
    view, deployment = request.view, request.deployment
    settings = agent_settings(view, deployment.id)
    if settings is None or not settings.review_decisions:
        return []
    from backsight.services.decision_review import review_decisions  # few deployments review their decisions

    review = review_decisions(view, deployment, limit=REVIEWED)
    lines = [line_of(each, now=request.at) for each in review.decisions]
    return [decisions_under_review(lines, tally=review.tally.sentence if review.tally.resolved else "")]


def recent_state(
    view: View,
    deployment: Deployment,
    *,
    now: datetime,
    day_start_equity: float | None,
    present: PresentState | None = None,
) -> RiskState:
    """The risk state of a deployment, with the closes of `present` that are not stored yet.

    A part that cannot be read is logged and left empty, so that the tick goes on.
    """
    changes = stored_trades.NO_CHANGES if present is None else present.changes
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = min(midnight, now - HOUR)
    attempts: list[Attempt] = _or_empty(
        "attempts",
        lambda: stored_decisions.attempts_since(view, deployment, since=since),
    )
    closes: list[Close] = _or_empty(
        "closes",
        lambda: stored_trades.closes(view, deployment.id, since=midnight, changes=changes),
    )
    state = risk_state(attempts, closes, now=now, day_start_equity=day_start_equity)
    if state.losing_streak < LOSING_STREAK:
        return state
    record = _or_empty("win rate", lambda: [record_at(view, deployment.mode, deployment.strategy_name)])
    if not record:
        return state
    new = [] if present is None else present.uncounted(deployment)
    wins = sum(bool(trade.won) for trade in new)
    return with_win_rate(state, trades=record[0].n + len(new), wins=record[0].wins + wins)


def _or_empty(part: str, read: Callable[[], list[T]]) -> list[T]:
    try:
        return read()
    except (BacksightError, ValueError, TypeError, ArithmeticError):
        LOG.exception("recent activity: %s could not be read and is left out", part)
        return []


def _lessons(view: View, note: stored_notes.LessonsText | None, deployment: Deployment) -> "_Lessons | None":
    """The lessons that the deployment shows, without the slots that it suppresses; None without any."""
    memory = deployment.memory
    watched = stored_notes.watched_patterns(view, deployment) if memory.lessons == "proven_and_watched" else ()
    if note is None and not watched:
        return None
    lessons = LessonsNote() if note is None else parse_note(note.lessons_text)
    text = render_lessons(lessons, suppressed=memory.suppressed, watched=watched)
    hash_of_note = None if note is None else note.content_hash
    return _Lessons(section=lessons_section(read_lessons(text)), hash=shown_lessons_hash(text, note_hash=hash_of_note))


def _citations(protocol: Protocol, prompt: FittedPrompt) -> tuple[str, ...]:
    """File and lines of each rule and incident that the prompt shows."""
    segments = [segment for segment in prompt.segments if segment.name == protocol.section.name]
    lines = [line for segment in segments for line in segment.text.split("\n")]
    return tuple(dict.fromkeys(protocol.places[line] for line in lines if line in protocol.places))


def _read_memory(request: PromptRequest) -> _Memory:
    view, deployment = request.view, request.deployment
    trades: list[Trade] = []
    if request.arm == "shown":
        trades = stored_trades.recent_closed(
            view, deployment.id, most=deployment.memory.recent_trades_k, changes=request.present.changes
        )
    lines = [closed_line(trade, currency=request.account.currency) for trade in trades]
    recent = recent_trades(lines, now=request.at, k=deployment.memory.recent_trades_k)
    return _Memory(
        closed={trade.id: trade for trade in trades},
        recent=recent,
        numbers=row_numbers(recent, lines),
    )


def _message(request: PromptRequest, memory: _Memory | None, recalls: _SymbolRecalls) -> Iterator[Part]:
    """The parts of the user message in reading order."""
    yield Segment(name="time", text=f"Time: {instant(request.at)} UTC, {request.at:%A}")
    yield from request.market
    if request.portfolio is not None:
        yield portfolio_and_caps(request.portfolio, currency=request.account.currency, caps=tuple(request.caps))
    yield last_decision([] if request.last is None else last_lines(request.last))
    if memory is None:
        return
    state = recent_state(
        request.view,
        request.deployment,
        now=request.at,
        day_start_equity=request.day_start_equity,
        present=request.present,
    )
    yield Segment(name="recent_activity", text=render_risk_state(state))
    yield memory.recent
    yield _open_positions(request)
    uncounted = uncounted_trades(request.present.uncounted(request.deployment))
    yield what_usually_happens(recalls.memories, others=recalls.others, uncounted=uncounted)
    yield your_state(request.present.mood)
    yield plans_that_apply(_plans(request))
    if request.arm == "shown":
        yield own_trading(request.view, request.deployment, request.account, recalls.outlooks)


def _plans(request: PromptRequest) -> list[PlanLine]:
    """The plans that apply to any of the symbols, the most urgent first; the agent's state is that of the instant."""
    return applying_plans(
        request.view,
        request.deployment,
        [without_agent_state(context) for context in request.contexts],
        now=request.at,
        mood=request.present.mood,
        former_at=None if request.last is None else request.last.at,
    )


def _open_positions(request: PromptRequest) -> Section:
    return open_positions(
        open_line(trade, mark, now=request.at, currency=request.account.currency)
        for trade, mark in request.present.open_trades
        if trade.deployment_id == request.deployment.id
    )


def _recall_symbols(
    ctx: Context, request: PromptRequest, memory: _Memory, directions: Sequence[Direction]
) -> _SymbolRecalls:
    """Recall this strategy's episodes for each symbol that may be traded; beyond six, the others are named."""
    view, deployment = request.view, request.deployment
    ordered = _by_urgency(request)
    contexts, others = ordered[:MOST_SYMBOLS], ordered[MOST_SYMBOLS:]
    if not contexts:
        return _SymbolRecalls()
    columns, known = ctx.database.images.at(view), underlyings(view)
    queries = [
        RecallQuery(
            symbol=context.symbol or "",
            context=context,
            strategy_name=deployment.strategy_name,
            mode=deployment.mode,
            memory_types=("episodic",),
            limit=RECALLED,
            as_of=view.as_of,
            seen_at=view.seen_at,
        )
        for context in contexts
    ]
    sessions = [RecallSession(query, view, columns, None, None, known.joined(query.symbol)) for query in queries]
    outlooks = [
        symbol_outlook(
            ctx,
            session,
            directions,
            account_trades=request.present.open_trades,
            risk_appetite=request.present.mood.risk_appetite,
            underlyings=known,
        )
        for session in sessions
    ]
    handles = tuple(encode_recall(query, now=ctx.now) for query in queries)
    for session, outlook, handle in zip(sessions, outlooks, handles, strict=True):
        keep_answer(session, handle, outlook.scan, now=ctx.now)
    trades = _trades_of(view, outlooks, memory.closed)
    return _SymbolRecalls(
        memories=tuple(
            _symbol_memory(query, known.joined(query.symbol), outlook, trades, memory.numbers)
            for query, outlook in zip(queries, outlooks, strict=True)
        ),
        handles=handles,
        others=tuple(context.symbol or "" for context in others),
        outlooks=tuple(outlooks),
    )


def _by_urgency(request: PromptRequest) -> list[ContextVector]:
    """The contexts in the caller's order, those of symbols with a position or a plan that applies first."""
    urgent = {position.symbol for position in request.portfolio.positions} if request.portfolio else set()
    urgent |= {trade.symbol for trade, _ in request.present.open_trades}
    contexts = request.contexts
    if len(contexts) > MOST_SYMBOLS:  # in shorter lists the order does not decide what is shown
        urgent |= {symbol for line in _plans(request) for symbol in line.symbols}
    return sorted(contexts, key=lambda context: context.symbol not in urgent)


def _trades_of(view: View, outlooks: Iterable[SymbolOutlook], closed: Mapping[str, Trade]) -> dict[str, Trade]:
    """The trades of the similar episodes by id, as they were known then; recent ones are in `closed` already."""
    memories = (memory for outlook in outlooks for memory in (*outlook.nearest, *outlook.warnings))
    ids = {memory.episode.trade_id for memory in memories if memory.episode.trade_id is not None}
    return {**closed, **stored_trades.trades_then(view, ids - closed.keys())}


def _symbol_memory(
    query: RecallQuery,
    joined: tuple[str, ...],
    outlook: SymbolOutlook,
    trades: Mapping[str, Trade],
    numbers: Mapping[str, int],
) -> SymbolMemory:
    def lines(memories: Sequence[RecalledMemory]) -> tuple[RecalledLine, ...]:
        ids = [memory.episode.trade_id or "" for memory in memories]
        return tuple(
            recalled_line(memory, trades.get(trade_id), row=numbers.get(trade_id))
            for memory, trade_id in zip(memories, ids, strict=True)
        )

    nearest, warnings = chosen_episodes(outlook.nearest, outlook.warnings)
    return SymbolMemory(
        symbol=query.symbol,
        joined=joined,
        context=query.context,
        trades=outlook.trades,
        outlooks=outlook.directions,
        nearest=lines(nearest),
        warnings=lines(warnings),
    )
