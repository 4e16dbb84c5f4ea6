"""Beliefs: what has held, where, against what, and how sure one may be of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Annotated, Any

from backsight.core.conditions import Condition, as_text, comparisons, evaluate, parse, values_of
from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.instants import Horizon, format_instant
from backsight.core.memory.experience import KeptBelief, Retirement, kept_belief, stated_of
from backsight.core.memory.semantic import (
    Belief,
    Claim,
    Domain,
    Posterior,
    Standing,
    Weighting,
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
from backsight.ops.arguments import AsOf, Flag, JsonObject, Key, Name, Reason, SeenAt, Share, Symbol
from backsight.ops.context import Context
from backsight.ops.experience import beliefs_at, is_current, mode_asked, remake_beliefs
from backsight.ops.operation import command, query
from backsight.ops.planning import drop_plans
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.database import Connection
from backsight.store.transaction import Transaction

LEVEL = 0.9
AT_ENTRY = frozenset(
    {*(field.name for field in fields(ContextVector)), "strategy", "direction", "now", "weekday", "hour"}
)
"""The fields of conditions that an entry has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOutcome:
    """The mean outcome in one unit over all evidence, and the ends between which it lies with 90 %."""

    unit: OutcomeUnit
    n: int
    mean: float
    low: float | None
    """None below two outcomes."""
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefSeen:
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
    outcomes: tuple[MeanOutcome, ...]
    strength: float
    """What is left of it: it fades since the last evidence, and counts .3 where the regime is not its own."""
    worth_testing: bool
    """Neither likely nor unlikely after ten episodes."""
    last_evidence_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedBelief:
    """The belief, and whether it was there before."""

    belief: BeliefSeen
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefList:
    """Beliefs, the most credible first."""

    beliefs: tuple[BeliefSeen, ...]
    mode: Mode
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredBelief:
    """The belief as it stands, and whether it was retired before."""

    belief: BeliefSeen
    replayed: bool


@command(audience=("trader",))
def add_belief(
    ctx: Context,
    *,
    proposition: Annotated[Reason, "What holds, in one sentence."],
    strategy_name: Annotated[Name | None, "Of which strategy; of any if left out."] = None,
    symbol: Annotated[Symbol | None, "In which instrument."] = None,
    direction: Annotated[Direction | None, "Trading which way."] = None,
    regime: Annotated[Regime | None, "In which regime."] = None,
    volatility_regime: Annotated[VolatilityRegime | None, "In which volatility."] = None,
    session: Annotated[Session | None, "In which session."] = None,
    conditions: Annotated[JsonObject | None, 'When it holds, like {"field", "op", "value"}, as in plans.'] = None,
    claims: Annotated[Claim, "Whether the win rate there is above or below the reference."] = "above",
    reference: Annotated[Share, "The win rate it is held against."] = 0.5,
    mode: Annotated[Mode, "Of trades with real money, on paper or simulated; the three never blend."] = "live",
) -> AddedBelief:
    """Add a belief about where trades are won more or less often, to be tested by every trade from now on.

    Say where it holds: a belief about everything is refused. The same belief again changes nothing.
    """
    stated = belief_stated(
        ctx,
        proposition=proposition,
        strategy_name=strategy_name,
        symbol=symbol,
        direction=direction,
        regime=regime,
        volatility_regime=volatility_regime,
        session=session,
        conditions=conditions,
        claims=claims,
        reference=reference,
        mode=mode,
    )
    with ctx.writing() as transaction:
        replayed = state_belief(transaction, stated, recorded_at=ctx.now)
        held = _held(transaction.connection, stated, now=ctx.now)
    return AddedBelief(belief=seen(held, now=ctx.now), replayed=replayed)


def belief_stated(
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
    held_to = None if conditions is None else parse(conditions, field="conditions")
    if held_to is not None:
        _check_conditions(held_to)
    return seed_belief(
        proposition.strip(),
        owner_id=ctx.owner,
        mode=mode,
        domain=domain,
        known_at=ctx.now,
        conditions=None if held_to is None else as_text(held_to),
        claims=claims,
        reference=reference,
    )


def _held(connection: Connection, belief: Belief, *, now: datetime) -> KeptBelief:
    """A belief as it stands now, whatever future the store may hold."""
    if is_current(connection, belief.owner_id, Horizon(as_of=now)):
        found = stored.belief(connection, belief.owner_id, belief.id)
    else:
        then = beliefs_at(connection, belief.owner_id, belief.mode, Horizon(as_of=now)).beliefs
        found = next((each for each in then if each.standing.belief.id == belief.id), None)
    return found or kept_belief(Standing(belief=belief))


def _check_conditions(conditions: Condition) -> None:
    """Refuse what no trade could meet: conditions are held against the context at entry."""
    for comparison in comparisons(conditions):
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
        transaction.add(stored.STATED, stated_of(belief, recorded_at=recorded_at))
        last = stored_memories.last_place(connection, owner, belief.mode)
        if last is not None and last[0] > belief.known_at:
            remake_beliefs(transaction, owner, belief.mode)
        else:
            transaction.derive(stored.BELIEFS, [kept_belief(Standing(belief=belief))])
    return former is not None


@query(audience=("trader", "coach"))
def list_beliefs(
    ctx: Context,
    *,
    strategy_name: Annotated[Name | None, "Only beliefs that speak of this strategy."] = None,
    deployment: Annotated[Key | None, "Only beliefs that speak of this deployment's strategy, by name or id."] = None,
    mode: Annotated[Mode | None, "Beliefs from which accounts; the deployment's, else live."] = None,
    regime: Annotated[Regime | None, "The regime now: beliefs about another one count less."] = None,
    worth_testing: Annotated[
        Flag | None, "Only those that are still open after ten episodes, or only the others."
    ] = None,
    retired: Annotated[Flag, "Also those that were refuted or retired."] = False,
    weighting: Annotated[
        Weighting, "How episodes count: 1 each, or by min(2, |R|), which misleads and is there to compare."
    ] = "count",
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> BeliefList:
    """List beliefs with their evidence: how often they held, how credible they are, and what they rest on."""
    horizon = ctx.horizon(as_of, seen_at)
    with ctx.reading() as connection:
        home, within = mode_asked(connection, ctx.owner, deployment, mode)
        if weighting == "count" and is_current(connection, ctx.owner, horizon):
            held = stored.beliefs(connection, ctx.owner, within)
        else:
            held = list(beliefs_at(connection, ctx.owner, within, horizon, weighting=weighting).beliefs)
    strategy = strategy_name or (None if home is None else home.strategy_name)
    shown = [
        each
        for each in (seen(belief, now=horizon.as_of, regime=regime) for belief in held)
        if strategy is None or each.belief.domain.strategy in (None, strategy)
        if retired or each.belief.retired_at is None or each.belief.retired_at > horizon.as_of
        if worth_testing in (None, each.worth_testing)
    ]
    shown.sort(key=lambda each: (-each.posterior.credibility, each.belief.known_at, each.belief.id))
    return BeliefList(beliefs=tuple(shown), mode=within, as_of=horizon.as_of)


@command()
def retire_belief(
    ctx: Context,
    *,
    belief_id: Annotated[Key, "The belief, as list_beliefs names it."],
    reason: Annotated[Reason | None, "Why it is no longer held."] = None,
) -> RetiredBelief:
    """Retire a belief: it is neither shown nor acted on from now on, and its evidence is still counted."""
    with ctx.writing() as transaction:
        connection = transaction.connection
        held = stored.belief(connection, ctx.owner, belief_id)
        if held is None or held.standing.belief.known_at > ctx.now:
            raise NotFound(f"no belief {belief_id!r}; list_beliefs shows them", field="belief_id")
        belief = held.standing.belief
        if belief.retired_at is not None:
            return RetiredBelief(belief=seen(_held(connection, belief, now=ctx.now), now=ctx.now), replayed=True)
        fact = Retirement(owner_id=ctx.owner, belief_id=belief_id, reason=reason, known_at=ctx.now, recorded_at=ctx.now)
        transaction.add(stored.RETIREMENTS, fact)
        last = stored_memories.last_place(connection, ctx.owner, belief.mode)
        if last is not None and last[0] > ctx.now:
            remake_beliefs(transaction, ctx.owner, belief.mode)
        else:
            gone = replace(held.standing, belief=replace(belief, retired_at=ctx.now))
            transaction.derive(stored.BELIEFS, [kept_belief(gone)])
        drop_plans(transaction, ctx.owner, [belief_id], now=ctx.now)
        after = _held(connection, held.standing.belief, now=ctx.now)
    return RetiredBelief(belief=seen(after, now=ctx.now), replayed=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is being decided on."""

    symbol: str
    direction: Direction | None
    strategy_name: str | None
    context: ContextVector


def beliefs_about(
    connection: Connection, owner: str, mode: Mode, horizon: Horizon, about: About
) -> tuple[BeliefSeen, ...]:
    """The beliefs held then whose domain and conditions hold for what is being decided on, most credible first."""
    if is_current(connection, owner, horizon):
        held = stored.beliefs(connection, owner, mode)
    else:
        held = list(beliefs_at(connection, owner, mode, horizon).beliefs)
    now, regime = horizon.as_of, about.context.regime
    live = [each for each in held if not _is_retired(each, now) and _speaks_of(each.standing.belief, about, now)]
    live.sort(key=lambda each: (-each.posterior.credibility, each.standing.belief.id))
    return tuple(seen(each, now=now, regime=regime) for each in live)


def _is_retired(held: KeptBelief, now: datetime) -> bool:
    retired_at = held.standing.belief.retired_at
    return retired_at is not None and retired_at <= now


def _speaks_of(belief: Belief, about: About, now: datetime) -> bool:
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
    values = values_of(
        now=now, context=context, strategy=about.strategy_name, symbol=about.symbol, direction=about.direction
    )
    return evaluate(parse(json.loads(belief.conditions)), values).holds


def seen(held: KeptBelief, *, now: datetime, regime: Regime | None = None) -> BeliefSeen:
    """A belief as it is shown."""
    standing, belief = held.standing, held.standing.belief
    low, high = win_rate_interval(held.posterior, claims=belief.claims)
    return BeliefSeen(
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


def _mean(unit: OutcomeUnit, moments: Moments) -> MeanOutcome:
    low, high = moments.interval(level=LEVEL) or (None, None)
    return MeanOutcome(unit=unit, n=moments.n, mean=moments.mean, low=low, high=high)
