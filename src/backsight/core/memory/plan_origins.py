"""Plans that memory makes itself: from a credible belief, and from a deep drawdown."""

from collections.abc import Iterable
from datetime import datetime

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import condition_json, parse_condition
from backsight.core.memory.prospective import LONGEST_REASONING, Plan, PlanDraft, PlanSource, make_plan
from backsight.core.memory.semantic import DIMENSIONS, Belief
from backsight.core.numbers import short

MOOD_BEGINS, MOOD_ENDS = 0.75, 0.5
"""The drawdown state from which a mood makes a plan, and the one below which the plan ends."""
BELIEF_CREDIBILITY = 0.9


BELIEF_EPISODES = 20


BELIEF_BOOST = 1.2


MOOD_FACTOR = 0.5


MOOD_PRIORITY = 0.9


def plan_from_belief(
    belief: Belief,
    *,
    credibility: float,
    n: int,
    now: datetime,
    deployment_id: str | None = None,
    existing: Iterable[Plan] = (),
) -> Plan | None:
    """The plan from a belief with a credibility of at least .9 on at least 20 episodes; None for any other belief.

    For a belief that claims a lower win rate, the plan skips trades in its domain. For a higher win rate, the plan
    raises confidence by a fifth. None also if one of the `existing` plans comes from the same belief.
    """
    if credibility < BELIEF_CREDIBILITY or n < BELIEF_EPISODES or belief.retired_at is not None:
        return None
    source = PlanSource(kind="semantic", id=belief.id)
    if any(source in plan.sources for plan in existing):
        return None
    condition = _condition_of(belief)
    if condition is None:
        return None
    worse = {"type": "skip_trade"}
    better = {"type": "adjust_param", "parameter": "confidence", "magnitude": BELIEF_BOOST}
    draft = PlanDraft(
        condition=condition,
        action=worse if belief.claims == "below" else better,
        reasoning=f"{belief.proposition} (credibility {short(credibility)}, {n} episodes)"[:LONGEST_REASONING],
        deployment_id=deployment_id,
        strategy_name=belief.domain.strategy,
        priority=min(1.0, credibility),
        sources=(source,),
    )
    return make_plan(draft, owner_id=belief.owner_id, now=now)


def plan_from_mood(
    mood: Mood, *, owner_id: str, deployment_id: str | None, now: datetime, existing: Iterable[Plan] = ()
) -> Plan | None:
    """The plan from a drawdown state of .75 or more: half the size until the state is below .5.

    None for a smaller drawdown state, and if one of the `existing` plans comes from the mood of this deployment.

    >>> from datetime import UTC
    >>> from backsight.core.memory.conditions import condition_text
    >>> now = datetime(2026, 6, 4, tzinfo=UTC)
    >>> plan = plan_from_mood(Mood(drawdown_state=0.75), owner_id="ana", deployment_id="d", now=now)
    >>> condition_text(plan.expires_when), plan.action.magnitude
    ('{"field":"drawdown_state","op":"<","value":0.5}', 0.5)
    >>> plan_from_mood(Mood(drawdown_state=0.74), owner_id="ana", deployment_id="d", now=now) is None
    True
    """
    if mood.drawdown_state < MOOD_BEGINS:
        return None
    if any(comes_from_mood(plan, deployment_id) for plan in existing):
        return None
    used = f"{mood.drawdown_state:.0%} of the accepted drawdown is used up"
    draft = PlanDraft(
        condition={"field": "drawdown_state", "op": ">=", "value": MOOD_ENDS},
        action={"type": "adjust_param", "parameter": "size", "magnitude": MOOD_FACTOR},
        reasoning=f"{used}: half the size until it is below {MOOD_ENDS:.0%}.",
        deployment_id=deployment_id,
        priority=MOOD_PRIORITY,
        expires_when={"field": "drawdown_state", "op": "<", "value": MOOD_ENDS},
        sources=(PlanSource(kind="affective", id=format_instant(mood.known_at or now)),),
    )
    return make_plan(draft, owner_id=owner_id, now=now)


def comes_from_mood(plan: Plan, deployment_id: str | None) -> bool:
    """Whether a plan came from the mood of a deployment."""
    return plan.deployment_id == deployment_id and any(source.kind == "affective" for source in plan.sources)


def _condition_of(belief: Belief) -> object | None:
    """A belief's domain and conditions as one JSON condition; None where no valid condition expresses both."""
    values = {name: getattr(belief.domain, name) for name in ("strategy", *DIMENSIONS)}
    domain = {name: value for name, value in values.items() if value is not None}
    conditions = None if belief.conditions is None else condition_json(belief.conditions)
    parts = [part for part in (domain, conditions) if part]
    joined = parts[0] if len(parts) == 1 else {"all": parts}
    try:
        parse_condition(joined)
    except Invalid:  # both are empty, or the conditions already have the greatest depth
        return None
    return joined
