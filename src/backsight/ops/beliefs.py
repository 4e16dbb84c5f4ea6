"""Beliefs: what has held, where, against what, and how sure one may be of it."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Flag, JsonObject, Key, Name, Reason, SeenAt, Share, Symbol
from backsight.core.errors import NotFound
from backsight.core.instants import Horizon
from backsight.core.memory.experience import BeliefRecord, Retirement, belief_record
from backsight.core.memory.semantic import (
    Belief,
    Claim,
    Standing,
    Weighting,
)
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.operation import command, query
from backsight.services.beliefs import BeliefView, belief_view, make_stated_belief, state_belief
from backsight.services.context import Context
from backsight.services.learning import beliefs_at, deployment_and_mode, rebuild_beliefs
from backsight.services.mood import is_current
from backsight.services.plans import cancel_plans_from_beliefs
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedBelief:
    """The belief, and whether it was there before."""

    belief: BeliefView
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefList:
    """Beliefs, the most credible first."""

    beliefs: tuple[BeliefView, ...]
    mode: Mode
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredBelief:
    """The belief as it stands, and whether it was retired before."""

    belief: BeliefView
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
    stated = make_stated_belief(
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
    return AddedBelief(belief=belief_view(held, now=ctx.now), replayed=replayed)


def _held(connection: Connection, belief: Belief, *, now: datetime) -> BeliefRecord:
    """A belief as it stands now, whatever future the store may hold."""
    if is_current(connection, belief.owner_id, Horizon(as_of=now)):
        found = stored.belief(connection, belief.owner_id, belief.id)
    else:
        then = beliefs_at(connection, belief.owner_id, belief.mode, Horizon(as_of=now)).beliefs
        found = next((each for each in then if each.standing.belief.id == belief.id), None)
    return found or belief_record(Standing(belief=belief))


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
        home, within = deployment_and_mode(connection, ctx.owner, deployment, mode)
        if weighting == "count" and is_current(connection, ctx.owner, horizon):
            held = stored.beliefs(connection, ctx.owner, within)
        else:
            held = list(beliefs_at(connection, ctx.owner, within, horizon, weighting=weighting).beliefs)
    strategy = strategy_name or (None if home is None else home.strategy_name)
    shown = [
        each
        for each in (belief_view(belief, now=horizon.as_of, regime=regime) for belief in held)
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
            return RetiredBelief(belief=belief_view(_held(connection, belief, now=ctx.now), now=ctx.now), replayed=True)
        fact = Retirement(owner_id=ctx.owner, belief_id=belief_id, reason=reason, known_at=ctx.now, recorded_at=ctx.now)
        transaction.add(stored.RETIREMENTS, fact)
        last = stored_memories.last_teaching_place(connection, ctx.owner, belief.mode)
        if last is not None and last[0] > ctx.now:
            rebuild_beliefs(transaction, ctx.owner, belief.mode)
        else:
            gone = replace(held.standing, belief=replace(belief, retired_at=ctx.now))
            transaction.derive(stored.BELIEFS, [belief_record(gone)])
        cancel_plans_from_beliefs(transaction, ctx.owner, [belief_id], now=ctx.now)
        after = _held(connection, held.standing.belief, now=ctx.now)
    return RetiredBelief(belief=belief_view(after, now=ctx.now), replayed=False)
