"""Plans that memory suggests from a credible belief, and the one that it makes itself from a deep drawdown."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant
from backsight.core.memory.advice import Advice, DomainOutcome, outcome_text
from backsight.core.memory.affective import MAX_DRAWDOWN, Mood
from backsight.core.memory.conditions import Condition, condition_json, parse_condition
from backsight.core.memory.plan_words import percentage
from backsight.core.memory.prospective import LONGEST_REASONING, Plan, PlanDraft, PlanSource, make_plan
from backsight.core.memory.semantic import DIMENSIONS, Belief, Standing

MOOD_BEGINS, MOOD_ENDS = 0.75, 0.5
"""The drawdown state from which a mood makes a plan, and the one below which the plan ends."""
MOOD_FACTOR = 0.5
MOOD_PRIORITY = 0.9
BELIEF_CREDIBILITY = 0.9
BELIEF_EPISODES = 20
ADVISED_ACTIONS: Mapping[Advice, Mapping[str, object]] = {
    "trade_less": {"type": "skip_trade"},
    "trade_more": {"type": "adjust_param", "parameter": "confidence", "magnitude": 1.2},
}
"""What a plan does where trades lose, and where they earn more than elsewhere."""


def may_suggest_plan(standing: Standing, *, credibility: float) -> bool:
    """Whether a belief may suggest a plan: in force, established at its last look, and credible.

    Its credibility is at least .9, on at least 20 episodes that it was not induced from.

    Whether to trade less or more is decided by the outcomes in its domain alone: a belief that trades there win more
    often suggests to skip them if they lose money.
    """
    is_tested = standing.established and standing.tested.n >= BELIEF_EPISODES
    return standing.belief.retired_at is None and is_tested and credibility >= BELIEF_CREDIBILITY


def condition_of_belief(belief: Belief) -> Condition | None:
    """Where a belief holds, as the condition of a plan for one strategy; None where no valid condition expresses it."""
    domain = {name: value for name in DIMENSIONS if (value := getattr(belief.domain, name)) is not None}
    conditions = None if belief.conditions is None else condition_json(belief.conditions)
    parts = [part for part in (domain, conditions) if part]
    try:
        return parse_condition(parts[0] if len(parts) == 1 else {"all": parts})
    except Invalid:  # both are empty, or the conditions already have the greatest depth
        return None


def advised_plan(
    belief: Belief, condition: Condition, advice: Advice, outcome: DomainOutcome, *, deployment_id: str
) -> dict[str, object]:
    """The plan that a belief suggests, as the arguments of `create_trading_plan`."""
    mean = outcome_text(outcome.mean, outcome.interval, unit=outcome.unit, n=outcome.n, unknown=outcome.unknown)
    elsewhere = (
        "" if outcome.elsewhere is None else f" against {outcome_text(outcome.elsewhere, None, unit=outcome.unit)}"
    )
    return {
        "trigger_condition": condition_json(condition),
        "planned_action": ADVISED_ACTIONS[advice],
        "reasoning": f"Trades there earn {mean}{elsewhere} elsewhere. Belief: {belief.proposition}"[:LONGEST_REASONING],
        "deployment": deployment_id,
    }


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
    used = f"{percentage(mood.drawdown / MAX_DRAWDOWN or mood.drawdown_state)} of the accepted drawdown was used"
    draft = PlanDraft(
        condition={"field": "drawdown_state", "op": ">=", "value": MOOD_ENDS},
        action={"type": "adjust_param", "parameter": "size", "magnitude": MOOD_FACTOR},
        reasoning=f"On {now:%Y-%m-%d} {used}: half the size until it is below {MOOD_ENDS:.0%}.",
        deployment_id=deployment_id,
        priority=MOOD_PRIORITY,
        expires_when={"field": "drawdown_state", "op": "<", "value": MOOD_ENDS},
        sources=(PlanSource(kind="affective", id=format_instant(mood.known_at or now)),),
    )
    return make_plan(draft, owner_id=owner_id, now=now)


def comes_from_mood(plan: Plan, deployment_id: str | None) -> bool:
    """Whether a plan came from the mood of a deployment."""
    return plan.deployment_id == deployment_id and is_from_mood(plan)


def is_from_mood(plan: Plan) -> bool:
    """Whether a plan came from a mood, and not from a person, an agent or a belief."""
    return any(source.kind == "affective" for source in plan.sources)
