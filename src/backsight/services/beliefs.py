"""Beliefs: stating one, and reading those that concern a decision."""

from dataclasses import dataclass, fields
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.errors import Conflict, Invalid
from backsight.core.instants import format_instant
from backsight.core.memory.conditions import (
    MOOD_AT_ENTRY,
    OF_TWO_TICKS,
    Condition,
    comparisons_in,
    condition_values,
    evaluate_condition,
    parse_condition,
)
from backsight.core.memory.daily_moments import DailyMoments
from backsight.core.memory.experience import BeliefRecord, belief_record, statement_of
from backsight.core.memory.semantic import (
    About,
    Belief,
    BeliefDraft,
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
from backsight.core.regime import Regime
from backsight.core.trades.trade import OutcomeUnit
from backsight.services.belief_learning import current_beliefs, rebuild_beliefs
from backsight.services.context import Context
from backsight.store import experience as stored
from backsight.store import memories as stored_memories
from backsight.store.transaction import Transaction
from backsight.store.view import View

LEVEL = 0.9
"""The level of the intervals of win rates and mean outcomes."""
ENTRY_FIELDS = frozenset(
    {*(field.name for field in fields(ContextVector)), *MOOD_AT_ENTRY}
    | {"strategy", "direction", "now", "weekday", "hour"}
)
"""The condition fields whose values are known when a trade is entered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefOutcome:
    """The mean outcome in one unit over all evidence of a belief, with its 90% confidence interval by days."""

    unit: OutcomeUnit
    n: int
    unknown: int
    """The number of further episodes of the evidence, whose outcome is not known in the unit."""
    mean: float
    low: float | None
    """The lower end of the interval; None if all trades closed on one day."""
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefView:
    """A belief, and how well its evidence supports it now."""

    belief: Belief
    posterior: Posterior
    win_rate_low: float
    """With `win_rate_high`: the 90% credible interval of the win rate, by days and blocks of days."""
    win_rate_high: float
    without_founding: Posterior
    """The posterior from the evidence after induction, since founding evidence does not test the belief."""
    founding: int
    """How many of the n episodes are founding evidence."""
    outcomes: tuple[BeliefOutcome, ...]
    strength: float
    """How much of the belief is left: it fades with time since the last evidence, and counts .3 in another regime."""
    established: bool
    """Whether the last look, at 10, 20, 40 … episodes after those it was induced from, established the claim."""
    worth_testing: bool
    """Whether the belief is neither likely nor unlikely after ten episodes."""
    last_evidence_at: datetime


def make_stated_belief(
    ctx: Context,
    *,
    proposition: str,
    domain: Domain,
    conditions: object = None,
    about: About = "mean_outcome",
    claims: Claim = "above",
    reference: float | None = None,
    mode: Mode = "live",
) -> Belief:
    """The belief that somebody states now; conditions that no trade can meet are refused."""
    condition = None if conditions is None else parse_condition(conditions, field="conditions")
    if condition is not None:
        _check_known_at_entry(condition)
    draft = BeliefDraft(
        proposition=proposition.strip(),
        domain=domain,
        conditions=condition,
        about=about,
        claims=claims,
        reference=reference,
        mode=mode,
    )
    return seed_belief(draft, owner_id=ctx.owner, known_at=ctx.now)


def _check_known_at_entry(condition: Condition) -> None:
    """Refuse comparisons that the context at entry can never satisfy."""
    for comparison in comparisons_in(condition):
        if comparison.field not in ENTRY_FIELDS:
            known = ", ".join(sorted(ENTRY_FIELDS))
            message = f"{comparison.field!r} is not known when a trade is entered; use one of {known}"
            raise Invalid(message, field="conditions")
        if comparison.op in OF_TWO_TICKS:
            message = f"{comparison.op} compares two ticks, and an entry is one tick; use another operator"
            raise Invalid(message, field="conditions")


def state_belief(transaction: Transaction, belief: Belief, *, recorded_at: datetime) -> bool:
    """Store a stated belief with the evidence known after it; return whether it was already stored."""
    connection, owner = transaction.connection, belief.owner_id
    former = stored.stated_belief(connection, owner, belief.id)
    if former is not None and (former.about, former.reference) != (belief.about, belief.reference):
        compared = f"{former.about} with {former.reference:g}"
        since = f"this belief compares its {compared} since {format_instant(former.known_at)}"
        raise Conflict(f"{since}; change the proposition to compare otherwise", field="reference")
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


def beliefs_about(view: View, mode: Mode, subject: DecisionSubject) -> tuple[BeliefView, ...]:
    """The beliefs whose domain and conditions hold for a decision, most credible first; retired ones are left out."""
    now, regime = view.as_of, subject.context.regime
    about = current_beliefs(view, mode, concerns=lambda belief: _is_about(belief, subject, now))
    records = [record for record in about if not _is_retired(record.standing.belief, now)]
    records.sort(key=lambda record: (-record.posterior.credibility, record.standing.belief.id))
    return tuple(belief_view(record, now=now, regime=regime) for record in records)


def _is_retired(belief: Belief, now: datetime) -> bool:
    return belief.retired_at is not None and belief.retired_at <= now


def _is_about(belief: Belief, subject: DecisionSubject, now: datetime) -> bool:
    """Whether a belief concerns a decision; a domain never matches a dimension that the decision leaves open."""
    domain, context = belief.domain, subject.context
    dimensions = {
        "strategy": subject.strategy_name,
        "symbol": subject.symbol,
        "direction": subject.direction,
        "regime": context.regime,
        "volatility_regime": context.volatility_regime,
        "session": context.session,
    }
    if any(getattr(domain, name) not in (None, value) for name, value in dimensions.items()):
        return False
    if belief.conditions is None:
        return True
    values = condition_values(
        now=now,
        context=context,
        strategy=subject.strategy_name,
        symbol=subject.symbol,
        direction=subject.direction,
    )
    return evaluate_condition(belief.conditions, values).holds


def belief_view(record: BeliefRecord, *, now: datetime, regime: Regime | None = None) -> BeliefView:
    """A belief with its posterior, intervals and strength as of now."""
    standing, belief = record.standing, record.standing.belief
    low, high = win_rate_interval(standing, level=LEVEL)
    return BeliefView(
        belief=belief,
        posterior=record.posterior,
        win_rate_low=low,
        win_rate_high=high,
        without_founding=posterior(standing, with_founding=False) if standing.founding.n else record.posterior,
        founding=standing.founding.n,
        outcomes=tuple(
            _belief_outcome(unit, moments, of=standing.n) for unit, moments in sorted(standing.outcomes.items())
        ),
        strength=strength(standing, now=now, regime=regime or belief.domain.regime),
        established=standing.established,
        worth_testing=worth_testing(standing),
        last_evidence_at=standing.last_evidence_at,
    )


def _belief_outcome(unit: OutcomeUnit, moments: DailyMoments, *, of: int) -> BeliefOutcome:
    low, high = moments.interval(level=LEVEL) or (None, None)
    return BeliefOutcome(unit=unit, n=moments.n, unknown=of - moments.n, mean=moments.mean, low=low, high=high)
