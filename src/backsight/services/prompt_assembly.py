"""Assemble the prompt of an agent: `open_tick` and `preview_context` both use it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from backsight.core.context import ContextVector
from backsight.core.decision import MEMORY, SYSTEM, Prompt, Segment, SegmentTokens
from backsight.core.errors import BacksightError
from backsight.core.holdout import MemoryArm
from backsight.core.memory.conditions import condition_values
from backsight.core.memory.plan_check import check_plans
from backsight.core.portfolio import Account, Portfolio
from backsight.core.prompts.account import Cap, last_decision, last_line, portfolio_and_caps
from backsight.core.prompts.amounts import instant
from backsight.core.prompts.budget import FittedPrompt, Part, fit_to_budget, tokens_of
from backsight.core.prompts.lessons import lessons_section, read_lessons
from backsight.core.prompts.plans import PlanLine, plan_lines, plans_that_apply
from backsight.core.prompts.sections import Section
from backsight.core.prompts.symbol_memory import SymbolMemory, symbol_memory_of, what_usually_happens
from backsight.core.prompts.system import Identity, system_segments
from backsight.core.prompts.trades import closed_line, open_line, open_positions, recent_trades
from backsight.core.recall.record import RecallQuery
from backsight.core.reflection.lessons import parse_note, render_lessons
from backsight.core.risk_state import HOUR, Attempt, Close, RiskState, render_risk_state, risk_state
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.deployments import deployed_strategy, unsaved_strategy
from backsight.services.mood import mood_at
from backsight.services.plans import open_plans
from backsight.services.protocol import Protocol, protocol_for
from backsight.services.recall import answer_recall, encode_recall, open_recall
from backsight.store import decisions as stored_decisions
from backsight.store import notes as stored_notes
from backsight.store import trades as stored_trades
from backsight.store.view import View

LOG = logging.getLogger("backsight")
RECALLED = 3
"""How many episodes are recalled for a symbol."""
MOST_SYMBOLS = 8
"""The most symbols in "What usually happens here"; more would not fit."""
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


def assemble_prompt(ctx: Context, request: PromptRequest) -> Prompt:
    """The whole prompt, within the ceiling of every section and the caller's budget."""
    deployment, view = request.deployment, request.view
    with_memory = request.arm == "shown"
    note = stored_notes.active_text(view, deployment.id) if with_memory else None
    lessons = None if note is None else _lessons(note.lessons_text, deployment)
    recalls = _recall_symbols(ctx, request) if with_memory else _SymbolRecalls()
    strategy = deployed_strategy(view.connection, deployment) or unsaved_strategy(deployment)
    identity = Identity(money=deployment.mode, tools=tuple(request.tools))
    system = system_segments(identity, strategy, lessons=lessons)
    # Lessons take part as a section rather than as a segment, so that a small budget cuts them row by row.
    parts: list[Part] = [
        lessons if lessons is not None and segment.name == "lessons" else segment for segment in system
    ]
    parts += _message(request, recalls)
    protocol = None
    if request.arm != "off":
        protocol = protocol_for(ctx, view, deployment, tuple(request.contexts))
    if protocol is not None:
        parts.append(protocol.section)
    prompt = fit_to_budget(parts, budget=request.budget)
    text = prompt.text
    lines = [line for memory in recalls.memories for line in (*memory.nearest, *memory.warnings)]
    has_lessons = any(segment.name == "lessons" for segment in prompt.segments)
    return Prompt(
        system=tuple(segment for segment in prompt.segments if segment.name in SYSTEM),
        segments=tuple(segment for segment in prompt.segments if segment.name not in SYSTEM),
        tokens=tuple(SegmentTokens(name=segment.name, tokens=tokens_of([segment])) for segment in prompt.segments),
        total_tokens=prompt.tokens,
        memory_tokens=tokens_of(segment for segment in prompt.segments if segment.name in MEMORY),
        cuts=prompt.cuts,
        fits=prompt.fits,
        recalled=tuple(dict.fromkeys(line.id for line in lines if line.text in text)),
        recalls=recalls.handles,
        citations=() if protocol is None else _citations(protocol, prompt),
        lessons_hash=note.content_hash if note is not None and has_lessons else None,
    )


def recent_state(view: View, deployment: Deployment, *, now: datetime, day_start_equity: float | None) -> RiskState:
    """The risk state of a deployment. A part that cannot be read is logged and left empty, so that the tick goes on."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = min(midnight, now - HOUR)
    attempts: list[Attempt] = _or_empty(
        "attempts",
        lambda: stored_decisions.attempts_since(view, deployment.id, since=since),
    )
    closes: list[Close] = _or_empty(
        "closes",
        lambda: stored_trades.closes(view, deployment.id, since=midnight),
    )
    return risk_state(attempts, closes, now=now, day_start_equity=day_start_equity)


def _or_empty(part: str, read: Callable[[], list[T]]) -> list[T]:
    try:
        return read()
    except (BacksightError, ValueError, TypeError, ArithmeticError):
        LOG.exception("recent activity: %s could not be read and is left out", part)
        return []


def _lessons(note_text: str, deployment: Deployment) -> Section:
    """The lessons of a note, without the slots that the deployment suppresses."""
    return lessons_section(read_lessons(render_lessons(parse_note(note_text), suppressed=deployment.memory.suppressed)))


def _citations(protocol: Protocol, prompt: FittedPrompt) -> tuple[str, ...]:
    """File and lines of each rule and incident that the prompt shows."""
    segments = [segment for segment in prompt.segments if segment.name == protocol.section.name]
    lines = [line for segment in segments for line in segment.text.split("\n")]
    return tuple(dict.fromkeys(protocol.places[line] for line in lines if line in protocol.places))


def _message(request: PromptRequest, recalls: _SymbolRecalls) -> Iterator[Part]:
    """The parts of the user message in reading order."""
    yield Segment(name="time", text=f"Time: {instant(request.at)} UTC, {request.at:%A}")
    yield from request.market
    if request.portfolio is not None:
        yield portfolio_and_caps(request.portfolio, currency=request.account.currency, caps=tuple(request.caps))
    yield _last_decision(request)
    if request.arm == "off":
        return
    state = recent_state(request.view, request.deployment, now=request.at, day_start_equity=request.day_start_equity)
    yield Segment(name="recent_activity", text=render_risk_state(state))
    if request.arm == "shown":
        yield _recent_trades(request)
    yield _open_positions(request)
    if any(memory.is_known for memory in recalls.memories):
        yield what_usually_happens(recalls.memories)
    yield plans_that_apply(_plan_lines(request))


def _last_decision(request: PromptRequest) -> Section:
    last = stored_decisions.last_of_deployment(request.view, request.deployment.id)
    return last_decision(None if last is None else last_line(last))


def _recent_trades(request: PromptRequest) -> Section:
    view, deployment = request.view, request.deployment
    most = deployment.memory.recent_trades_k
    trades = stored_trades.recent_closed(view, deployment.id, most=most)
    return recent_trades((closed_line(trade, currency=request.account.currency) for trade in trades), k=most)


def _open_positions(request: PromptRequest) -> Section:
    view, deployment = request.view, request.deployment
    trades = stored_trades.open_then(view, deployment.account_id)
    return open_positions(
        open_line(
            trade,
            stored_trades.last_mark(view, trade.id),
            now=request.at,
            currency=request.account.currency,
        )
        for trade in trades
        if trade.deployment_id == deployment.id
    )


def _plan_lines(request: PromptRequest) -> list[PlanLine]:
    """The plans that apply to any of the symbols, most urgent first. Reading a plan does not trigger it."""
    view, deployment = request.view, request.deployment
    plans = open_plans(view, deployment).plans
    if not plans:
        return []
    mood = mood_at(view.connection, deployment, view.as_of)
    lines: dict[str, tuple[float, PlanLine]] = {}
    for context in request.contexts or [ContextVector()]:
        values = condition_values(
            now=request.at,
            context=context,
            mood=mood,
            strategy=deployment.strategy_name,
            symbol=context.symbol,
            direction=None,
        )
        checked = check_plans(plans, values, now=request.at)
        for plan, line in zip(checked.applying, plan_lines(checked), strict=True):
            lines.setdefault(plan.id, (plan.priority, line))
    return [line for _, line in sorted(lines.values(), key=lambda pair: -pair[0])]


def _recall_symbols(ctx: Context, request: PromptRequest) -> _SymbolRecalls:
    """Recall this strategy's episodes for each symbol that may be traded, symbols with an open position first."""
    view, deployment = request.view, request.deployment
    open_symbols = {position.symbol for position in request.portfolio.positions} if request.portfolio else set()
    contexts = sorted(request.contexts, key=lambda context: context.symbol not in open_symbols)
    memories: list[SymbolMemory] = []
    handles: list[str] = []
    for context in contexts[:MOST_SYMBOLS]:
        query = RecallQuery(
            symbol=context.symbol or "",
            context=context,
            strategy_name=deployment.strategy_name,
            mode=deployment.mode,
            memory_types=("episodic",),
            limit=RECALLED,
            as_of=view.as_of,
            seen_at=view.seen_at,
        )
        recall = answer_recall(ctx, open_recall(ctx, view.connection, query))
        memories.append(symbol_memory_of(query.symbol, recall.base_rate, recall.nearest, recall.warnings))
        handles.append(encode_recall(query, now=ctx.now))
    return _SymbolRecalls(memories=tuple(memories), handles=tuple(handles))
