"""Operations on beliefs: what trades earn in a domain, or how often they win there, and how credible that is."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from backsight.arguments import AsOf, Flag, JsonObject, Key, Name, Number, Reason, SeenAt, Symbol
from backsight.core.errors import NotFound
from backsight.core.memory.experience import BeliefRecord, Retirement, belief_record
from backsight.core.memory.loose_conditions import loosen_condition
from backsight.core.memory.semantic import About, Belief, Claim, Domain, Standing, Weighting
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.core.text.counts import count_of
from backsight.operation import command, query
from backsight.services.belief_learning import beliefs_at, current_beliefs, rebuild_beliefs
from backsight.services.beliefs import BeliefView, belief_view, make_stated_belief, state_belief
from backsight.services.context import Context
from backsight.services.deployments import resolve_scope
from backsight.services.id_prefixes import whole_id
from backsight.services.proposals import end_advice_of_beliefs
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedBelief:
    """The belief, and whether it was already stored."""

    belief: BeliefView
    replayed: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefList:
    """Beliefs, most credible first."""

    beliefs: tuple[BeliefView, ...]
    mode: Mode
    message: str
    as_of: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredBelief:
    """The belief, and whether it was already retired."""

    belief: BeliefView
    replayed: bool


@command(audience=("trader",))
def add_belief(
    ctx: Context,
    *,
    proposition: Annotated[Reason, "The belief in one sentence."],
    strategy_name: Annotated[Name | None, "The strategy the belief is about; any strategy if left out."] = None,
    symbol: Annotated[Symbol | None, "The instrument in which it holds."] = None,
    direction: Annotated[Direction | None, "The direction of the trades for which it holds."] = None,
    regime: Annotated[Regime | None, "The market regime in which it holds."] = None,
    volatility_regime: Annotated[VolatilityRegime | None, "The volatility regime in which it holds."] = None,
    session: Annotated[Session | None, "The trading session in which it holds."] = None,
    conditions: Annotated[
        JsonObject | None, 'A condition on the context at entry, like {"field", "op", "value"}, written as in plans.'
    ] = None,
    about: Annotated[
        About, "What the belief compares: the mean outcome of the trades there, or their win rate."
    ] = "mean_outcome",
    claims: Annotated[Claim, "Whether it is above or below the reference."] = "above",
    reference: Annotated[
        Number | None, "The mean outcome in R, or the win rate, to compare with; by default 0R, or .5 for a win rate."
    ] = None,
    mode: Annotated[
        Mode | None,
        "Whether the belief is about live, paper or simulated trades, which are never mixed; by default the mode of "
        "the strategy's deployment or the only one with trades.",
    ] = None,
) -> AddedBelief:
    """Add a belief about where trades earn or lose money; every later trade in its domain tests it.

    Name at least one dimension or condition: a belief about all trades is refused. Repeating the call changes nothing.
    """
    read, notes = loosen_condition(conditions, field="conditions")
    with ctx.writing() as transaction:
        view = ctx.view(transaction.connection)
        scope = resolve_scope(view, strategy_name=strategy_name, mode=mode)
        stated = make_stated_belief(
            ctx,
            proposition=proposition,
            domain=Domain(
                strategy=strategy_name,
                symbol=symbol,
                direction=direction,
                regime=regime,
                volatility_regime=volatility_regime,
                session=session,
            ),
            conditions=read,
            about=about,
            claims=claims,
            reference=reference,
            mode=scope.mode,
        )
        replayed = state_belief(transaction, stated, recorded_at=ctx.now)
        record = _read_belief(view, stated)
    message = " ".join(
        [
            *scope.notes,
            *(f"{note}." for note in notes),
            f"Every later {scope.mode} trade in its domain tests the belief.",
        ]
    )
    return AddedBelief(belief=belief_view(record, now=ctx.now), replayed=replayed, message=message)


def _read_belief(view: View, belief: Belief) -> BeliefRecord:
    """A belief with its evidence as of a view, even if the store holds later evidence."""
    if stored.is_current(view):
        record = stored.belief(view.connection, view.owner, belief.id)
    else:
        record = next(iter(current_beliefs(view, belief.mode, concerns=lambda each: each.id == belief.id)), None)
    return record or belief_record(Standing(belief=belief))


@query(audience=("trader", "coach"))
def list_beliefs(
    ctx: Context,
    *,
    strategy_name: Annotated[Name | None, "Only beliefs about this strategy or about any strategy."] = None,
    deployment: Annotated[
        Key | None, "Only beliefs about the strategy of this deployment, given by name or id, or about any strategy."
    ] = None,
    mode: Annotated[
        Mode | None,
        "Whether beliefs about live, paper or simulated trades; by default the deployment's mode or the only one with "
        "trades.",
    ] = None,
    regime: Annotated[Regime | None, "The current regime: beliefs about another regime have less strength."] = None,
    worth_testing: Annotated[
        Flag | None, "True: only beliefs that are still undecided after ten episodes. False: only the others."
    ] = None,
    retired: Annotated[Flag, "Whether to include beliefs that were refuted or retired."] = False,
    weighting: Annotated[
        Weighting, "How episodes count: 1 each, or min(2, |R|), which biases the posterior and is for comparison only."
    ] = "count",
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> BeliefList:
    """List beliefs with their evidence: how often they held, how credible they are, and what they rest on."""
    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        scope = resolve_scope(view, deployment=deployment, strategy_name=strategy_name, mode=mode)
        if weighting == "count":
            records = current_beliefs(view, scope.mode)
        else:
            records = list(beliefs_at(view, scope.mode, weighting=weighting).beliefs)
    strategy = strategy_name or (None if deployment is None else scope.strategy_name)
    beliefs = [
        each
        for each in (belief_view(record, now=view.as_of, regime=regime) for record in records)
        if strategy is None or each.belief.domain.strategy in (None, strategy)
        if retired or each.belief.retired_at is None or each.belief.retired_at > view.as_of
        if worth_testing in (None, each.worth_testing)
    ]
    beliefs.sort(key=lambda each: (-each.posterior.credibility, each.belief.known_at, each.belief.id))
    message = " ".join([*scope.notes, _summary(len(beliefs), len(records), scope.mode)])
    return BeliefList(beliefs=tuple(beliefs), mode=scope.mode, message=message, as_of=view.as_of)


def _summary(listed: int, known: int, mode: Mode) -> str:
    """How many beliefs are listed, or how there come to be any."""
    if not known:
        return (
            f"No beliefs from {mode} trades yet: trades that are won more or less often than the rest make one, and"
            " add_belief states one."
        )
    return f"{listed} of {count_of(known, 'belief')} from {mode} trades, the most credible first."


@command()
def retire_belief(
    ctx: Context,
    *,
    belief_id: Annotated[Key, "The id of the belief, from list_beliefs."],
    reason: Annotated[Reason | None, "Why the belief is retired."] = None,
) -> RetiredBelief:
    """Retire a belief: from now on it is neither shown nor acted on; its evidence is still counted."""
    with ctx.writing() as transaction:
        connection = transaction.connection
        view = ctx.view(connection)
        belief_id = whole_id(connection, ctx.owner, stored.BELIEFS, belief_id, field="belief_id")
        record = stored.belief(connection, ctx.owner, belief_id)
        if record is None or record.standing.belief.known_at > ctx.now:
            raise NotFound(f"no belief {belief_id!r}; list_beliefs lists them", field="belief_id")
        belief = record.standing.belief
        if belief.retired_at is not None:
            return RetiredBelief(belief=belief_view(_read_belief(view, belief), now=ctx.now), replayed=True)
        fact = Retirement(owner_id=ctx.owner, belief_id=belief_id, reason=reason, known_at=ctx.now, recorded_at=ctx.now)
        transaction.add(stored.RETIREMENTS, fact)
        last = stored_memories.last_teaching_place(connection, ctx.owner, belief.mode)
        if last is not None and last[0] > ctx.now:
            rebuild_beliefs(transaction, ctx.owner, belief.mode)
        else:
            retired = replace(record.standing, belief=replace(belief, retired_at=ctx.now))
            transaction.derive(stored.BELIEFS, [belief_record(retired)])
        end_advice_of_beliefs(transaction, ctx.owner, [belief_id], now=ctx.now)
        after = _read_belief(view, belief)
    return RetiredBelief(belief=belief_view(after, now=ctx.now), replayed=False)
