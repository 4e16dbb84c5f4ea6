"""Beliefs: stating one, and reading those that concern a question."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, Invalid
from backsight.core.instants import Horizon, format_instant
from backsight.core.memory.conditions import (
    Condition,
    comparisons_in,
    condition_text,
    condition_values,
    evaluate_condition,
    parse_condition,
)
from backsight.core.memory.experience import BeliefRecord, belief_record, statement_of
from backsight.core.memory.semantic import (
    Belief,
    Claim,
    Domain,
    Posterior,
    Standing,
    posterior,
    seed_belief,
    strength,
    win_rate_interval,
    worth_testing,
)
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.core.statistics import Moments
from backsight.core.trades.trade import OutcomeUnit
from backsight.services.context import Context
from backsight.services.learning import beliefs_at, rebuild_beliefs
from backsight.services.mood import is_current
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.database import Connection
from backsight.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefOutcome:
    """The mean outcome in one unit over all evidence, and the ends between which it lies with 90 %."""

    unit: OutcomeUnit
    n: int
    mean: float
    low: float | None
    """None below two outcomes."""
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefView:
    """A belief and how sure one may be of it now."""

    belief: Belief
    posterior: Posterior
    win_rate_low: float
    """With `win_rate_high`: the true win rate lies between them with 90 %."""
    win_rate_high: float
    without_founding: Posterior
    """From the evidence since it was induced: what founded it says nothing new."""
    founding: int
    """How many of the n episodes founded it."""
    outcomes: tuple[BeliefOutcome, ...]
    strength: float
    """What is left of it: it fades since the last evidence, and counts .3 where the regime is not its own."""
    worth_testing: bool
    """Neither likely nor unlikely after ten episodes."""
    last_evidence_at: datetime


def make_stated_belief(
    ctx: Context,
    *,
    proposition: str,
    strategy_name: str | None = None,
    symbol: str | None = None,
    direction: Direction | None = None,
    regime: Regime | None = None,
    volatility_regime: VolatilityRegime | None = None,
    session: Session | None = None,
    conditions: Mapping[str, Any] | None = None,
    claims: Claim = "above",
    reference: float = 0.5,
    mode: Mode = "live",
) -> Belief:
    """The belief that somebody states now; what no trade could meet is refused."""
    domain = Domain(
        strategy=strategy_name,
        symbol=symbol,
        direction=direction,
        regime=regime,
        volatility_regime=volatility_regime,
        session=session,
    )
    held_to = None if conditions is None else parse_condition(conditions, field="conditions")
    if held_to is not None:
        _check_conditions(held_to)
    return seed_belief(
        proposition.strip(),
        owner_id=ctx.owner,
        mode=mode,
        domain=domain,
        known_at=ctx.now,
        conditions=None if held_to is None else condition_text(held_to),
        claims=claims,
        reference=reference,
    )


def _check_conditions(conditions: Condition) -> None:
    """Refuse what no trade could meet: conditions are held against the context at entry."""
    for comparison in comparisons_in(conditions):
        if comparison.field not in AT_ENTRY:
            told = f"{comparison.field!r} is not part of the context in which a trade is entered"
            raise Invalid(f"{told}; known there: {', '.join(sorted(AT_ENTRY))}", field="conditions")
        if comparison.op.startswith("crosses"):
            raise Invalid(
                "a crossing is between two ticks, and an entry is at one; compare instead", field="conditions"
            )


def state_belief(transaction: Transaction, belief: Belief, *, recorded_at: datetime) -> bool:
    """Keep a belief that somebody states, with the evidence known after it; whether it was there before."""
    connection, owner = transaction.connection, belief.owner_id
    former = stored.stated_belief(connection, owner, belief.id)
    if former is not None and former.reference != belief.reference:
        told = f"this belief is kept against {former.reference}, since {format_instant(former.known_at)}"
        raise Conflict(f"{told}; word it otherwise to hold it against another rate", field="reference")
    if former is None:
        transaction.add(stored.STATED, statement_of(belief, recorded_at=recorded_at))
        last = stored_memories.last_teaching_place(connection, owner, belief.mode)
        if last is not None and last[0] > belief.known_at:
            rebuild_beliefs(transaction, owner, belief.mode)
        else:
            transaction.derive(stored.BELIEFS, [belief_record(Standing(belief=belief))])
    return former is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSubject:
    """What is being decided on."""

    symbol: str
    direction: Direction | None
    strategy_name: str | None
    context: ContextVector


def beliefs_about(
    connection: Connection, owner: str, mode: Mode, horizon: Horizon, about: DecisionSubject
) -> tuple[BeliefView, ...]:
    """The beliefs held then whose domain and conditions hold for what is being decided on, most credible first."""
    if is_current(connection, owner, horizon):
        held = stored.beliefs(connection, owner, mode)
    else:
        held = list(beliefs_at(connection, owner, mode, horizon).beliefs)
    now, regime = horizon.as_of, about.context.regime
    live = [each for each in held if not _is_retired(each, now) and _speaks_of(each.standing.belief, about, now)]
    live.sort(key=lambda each: (-each.posterior.credibility, each.standing.belief.id))
    return tuple(belief_view(each, now=now, regime=regime) for each in live)


def _is_retired(held: BeliefRecord, now: datetime) -> bool:
    retired_at = held.standing.belief.retired_at
    return retired_at is not None and retired_at <= now


def _speaks_of(belief: Belief, about: DecisionSubject, now: datetime) -> bool:
    """Whether a belief is about this; what is not told of it, a belief that names it is not about."""
    domain, context = belief.domain, about.context
    told = {
        "strategy": about.strategy_name,
        "symbol": about.symbol,
        "direction": about.direction,
        "regime": context.regime,
        "volatility_regime": context.volatility_regime,
        "session": context.session,
    }
    if any(getattr(domain, name) not in (None, value) for name, value in told.items()):
        return False
    if belief.conditions is None:
        return True
    values = condition_values(
        now=now, context=context, strategy=about.strategy_name, symbol=about.symbol, direction=about.direction
    )
    return evaluate_condition(parse_condition(json.loads(belief.conditions)), values).holds


def belief_view(held: BeliefRecord, *, now: datetime, regime: Regime | None = None) -> BeliefView:
    """A belief as it is shown."""
    standing, belief = held.standing, held.standing.belief
    low, high = win_rate_interval(held.posterior, claims=belief.claims)
    return BeliefView(
        belief=belief,
        posterior=held.posterior,
        win_rate_low=low,
        win_rate_high=high,
        without_founding=posterior(standing, with_founding=False) if standing.founding.n else held.posterior,
        founding=standing.founding.n,
        outcomes=tuple(_mean(unit, moments) for unit, moments in sorted(standing.outcomes.items())),
        strength=strength(standing, now=now, regime=regime or belief.domain.regime),
        worth_testing=worth_testing(standing),
        last_evidence_at=standing.last_evidence_at,
    )


def _mean(unit: OutcomeUnit, moments: Moments) -> BeliefOutcome:
    low, high = moments.interval(level=LEVEL) or (None, None)
    return BeliefOutcome(unit=unit, n=moments.n, mean=moments.mean, low=low, high=high)


LEVEL = 0.9


AT_ENTRY = frozenset(
    {*(field.name for field in fields(ContextVector)), "strategy", "direction", "now", "weekday", "hour"}
)
"""The fields of conditions that an entry has."""
