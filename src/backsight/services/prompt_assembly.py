"""How what an agent is shown is put together: the same for a tick and for one who wants to see it beforehand."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from backsight.core.context import ContextVector
from backsight.core.decision import MEMORY, SYSTEM, Decision, Segment, SegmentTokens, Shown
from backsight.core.errors import BacksightError
from backsight.core.holdout import MemoryArm
from backsight.core.instants import Horizon
from backsight.core.memory.conditions import condition_values
from backsight.core.memory.prospective import check_plans
from backsight.core.portfolio import Account, Portfolio
from backsight.core.prompts.account import Cap, last_decision, last_line, portfolio_and_caps
from backsight.core.prompts.amounts import instant
from backsight.core.prompts.budget import Budgeted, Part, tokens_of, within
from backsight.core.prompts.lessons import lessons, read_lessons
from backsight.core.prompts.plans import PlanLine, plan_lines, plans_that_apply
from backsight.core.prompts.sections import Section
from backsight.core.prompts.symbol_memory import Here, here_of, what_usually_happens
from backsight.core.prompts.system import Identity, system_segments
from backsight.core.prompts.trades import closed_line, open_line, open_positions, recent_trades
from backsight.core.recall.record import RecallAsked
from backsight.core.reflection.lessons import parse_note, render_lessons
from backsight.core.risk_state import HOUR, Attempt, Close, RiskState, render_risk_state, risk_state
from backsight.core.strategies import Deployment
from backsight.services.context import Context
from backsight.services.deployments import deployed_strategy, unsaved_strategy
from backsight.services.mood import mood_at
from backsight.services.plans import open_plans
from backsight.services.protocol import Protocol, protocol_for
from backsight.services.recall import bring_to_mind, handle_of, look
from backsight.store import decisions as stored_decisions
from backsight.store import notes as stored_notes
from backsight.store import trades as stored_trades
from backsight.store.database import Connection

LOG = logging.getLogger("backsight")
RECALLED = 3
"""How many memories come to mind of a symbol, each way."""
MOST_SYMBOLS = 8
"""Symbols of which is told what usually happens: more would not fit."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A deployment that is about to decide, and what its caller has to say."""

    home: Deployment
    account: Account
    at: datetime
    horizon: Horizon
    """What memory may know."""
    arm: MemoryArm
    portfolio: Portfolio | None
    """None where the broker was never asked."""
    day_start_equity: float | None
    contexts: Sequence[ContextVector]
    """Of the symbols that may be decided on."""
    market: Sequence[Segment] = ()
    caps: Sequence[Cap] = ()
    tools: Sequence[str] = ()
    budget: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recalled:
    """What memory says of the symbols, and the recalls that told."""

    places: tuple[Here, ...] = ()
    handles: tuple[str, ...] = ()


def show(ctx: Context, connection: Connection, asking: Asking) -> Shown:
    """What the agent is shown, within every ceiling and the caller's budget."""
    home, horizon = asking.home, asking.horizon
    note = stored_notes.active_note(connection, ctx.owner, home.id, horizon) if asking.arm == "shown" else None
    told = None if note is None else lessons(read_lessons(_lessons_shown(note.lessons_text, home)))
    recalled = _recalled(ctx, connection, asking) if asking.arm == "shown" else _Recalled()
    strategy = deployed_strategy(connection, home) or unsaved_strategy(home)
    identity = Identity(money=home.mode, tools=tuple(asking.tools))
    system = system_segments(identity, strategy, lessons=told)
    parts: list[Part] = [_budgeted(segment, told) for segment in system]
    parts += _message(connection, asking, recalled)
    protocol = None
    if asking.arm != "off":
        protocol = protocol_for(ctx, connection, home, tuple(asking.contexts), horizon)
    if protocol is not None:
        parts.append(protocol.section)
    budgeted = within(parts, budget=asking.budget)
    text = budgeted.text
    lines = [line for here in recalled.places for line in (*here.nearest, *here.warnings)]
    return Shown(
        system=tuple(each for each in budgeted.segments if each.name in SYSTEM),
        segments=tuple(each for each in budgeted.segments if each.name not in SYSTEM),
        tokens=tuple(SegmentTokens(name=each.name, tokens=tokens_of([each])) for each in budgeted.segments),
        total_tokens=budgeted.tokens,
        memory_tokens=tokens_of(each for each in budgeted.segments if each.name in MEMORY),
        cuts=budgeted.cuts,
        fits=budgeted.fits,
        recalled=tuple(dict.fromkeys(line.id for line in lines if line.text in text)),
        recalls=recalled.handles,
        citations=() if protocol is None else _places(protocol, budgeted),
        lessons_hash=note.content_hash if note is not None and _has_lessons(budgeted) else None,
    )


def recent_state(
    connection: Connection, home: Deployment, horizon: Horizon, *, now: datetime, day_start_equity: float | None
) -> RiskState:
    """The risk state; a part that fails is logged and left empty, since it must not take a tick down."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = min(midnight, now - HOUR)
    attempts: list[Attempt] = _or_empty(
        "attempts",
        lambda: stored_decisions.attempts_since(connection, home.owner_id, home.id, horizon, since=since),
    )
    closes: list[Close] = _or_empty(
        "closes", lambda: stored_trades.closes(connection, home.owner_id, home.id, horizon, since=midnight)
    )
    return risk_state(attempts, closes, now=now, day_start_equity=day_start_equity)


def _or_empty(part: str, read: Callable[[], list[T]]) -> list[T]:
    try:
        return read()
    except (BacksightError, ValueError, TypeError, ArithmeticError):
        LOG.exception("recent activity: %s could not be read and is left out", part)
        return []


def _lessons_shown(text: str, home: Deployment) -> str:
    """The lessons without the slots that the deployment suppresses."""
    return render_lessons(parse_note(text), suppressed=home.memory.suppressed)


def _has_lessons(budgeted: Budgeted) -> bool:
    return any(segment.name == "lessons" for segment in budgeted.segments)


def _places(protocol: Protocol, budgeted: Budgeted) -> tuple[str, ...]:
    """Where what is shown of rules and incidents stands."""
    lines = [line for each in budgeted.segments if each.name == protocol.section.name for line in each.text.split("\n")]
    return tuple(dict.fromkeys(protocol.places[line] for line in lines if line in protocol.places))


def _budgeted(segment: Segment, told: Section | None) -> Part:
    """A segment as it may give way: lessons row by row."""
    return told if told is not None and segment.name == "lessons" else segment


def _message(connection: Connection, asking: Asking, recalled: _Recalled) -> Iterator[Part]:
    """The parts of the message in their order."""
    yield Segment(name="time", text=f"Time: {instant(asking.at)} UTC, {asking.at:%A}")
    yield from asking.market
    if asking.portfolio is not None:
        yield portfolio_and_caps(asking.portfolio, currency=asking.account.currency, caps=tuple(asking.caps))
    yield _last_decision(connection, asking)
    if asking.arm == "off":
        return
    state = recent_state(
        connection, asking.home, asking.horizon, now=asking.at, day_start_equity=asking.day_start_equity
    )
    yield Segment(name="recent_activity", text=render_risk_state(state))
    if asking.arm == "shown":
        yield _recent_trades(connection, asking)
    yield _open_positions(connection, asking)
    if any(here.is_known for here in recalled.places):
        yield what_usually_happens(recalled.places)
    yield plans_that_apply(_plans(connection, asking))


def _last_decision(connection: Connection, asking: Asking) -> Section:
    home = asking.home
    last = stored_decisions.last_of_deployment(connection, home.owner_id, home.id, asking.horizon)
    decision: Decision | None = None
    if last is not None:
        decision = stored_decisions.decision(connection, home.owner_id, last.id)
    return last_decision(None if decision is None else last_line(decision))


def _recent_trades(connection: Connection, asking: Asking) -> Section:
    home, most = asking.home, asking.home.memory.recent_trades_k
    found = stored_trades.recent_closed(connection, home.owner_id, home.id, asking.horizon, most=most)
    return recent_trades((closed_line(trade, currency=asking.account.currency) for trade in found), k=most)


def _open_positions(connection: Connection, asking: Asking) -> Section:
    home, horizon = asking.home, asking.horizon
    trades = stored_trades.open_then(connection, home.owner_id, home.account_id, horizon)
    return open_positions(
        open_line(
            trade,
            stored_trades.last_mark(connection, home.owner_id, trade.id, horizon),
            now=asking.at,
            currency=asking.account.currency,
        )
        for trade in trades
        if trade.deployment_id == home.id
    )


def _plans(connection: Connection, asking: Asking) -> list[PlanLine]:
    """The plans that hold in any of the symbols, the most urgent first; looking does not trigger them."""
    home = asking.home
    plans, _ = open_plans(connection, home, asking.horizon)
    if not plans:
        return []
    mood = mood_at(connection, home, asking.horizon.as_of)
    found: dict[str, tuple[float, PlanLine]] = {}
    for context in asking.contexts or [ContextVector()]:
        values = condition_values(
            now=asking.at,
            context=context,
            mood=mood,
            strategy=home.strategy_name,
            symbol=context.symbol,
            direction=None,
        )
        checked = check_plans(plans, values, now=asking.at)
        for plan, line in zip(checked.applying, plan_lines(checked), strict=True):
            found.setdefault(plan.id, (plan.priority, line))
    return [line for _, line in sorted(found.values(), key=lambda each: -each[0])]


def _recalled(ctx: Context, connection: Connection, asking: Asking) -> _Recalled:
    """What usually happens in the symbols that are held and that may be decided on, by this strategy's episodes."""
    held = {position.symbol for position in asking.portfolio.positions} if asking.portfolio else set()
    order = sorted(asking.contexts, key=lambda context: context.symbol not in held)
    places: list[Here] = []
    handles: list[str] = []
    for context in order[:MOST_SYMBOLS]:
        asked = RecallAsked(
            symbol=context.symbol or "",
            context=context,
            strategy_name=asking.home.strategy_name,
            mode=asking.home.mode,
            memory_types=("episodic",),
            limit=RECALLED,
            as_of=asking.horizon.as_of,
            seen_at=asking.horizon.seen_at,
        )
        found = bring_to_mind(ctx, connection, look(ctx, connection, asked))
        places.append(here_of(asked.symbol, found.base_rate, found.nearest, found.warnings))
        handles.append(handle_of(asked, now=ctx.now))
    return _Recalled(places=tuple(places), handles=tuple(handles))
