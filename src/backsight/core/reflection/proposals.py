"""The belief and the plan that a pattern suggests.

Both are about the mean outcome, as the pattern is. A belief claims that it lies above or below the mean elsewhere. A
plan skips trades of a group, and only if the whole 90% interval of the group's mean is below 0: trades that earn less
than others still earn.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.plan_origins import ADVISED_ACTIONS
from backsight.core.memory.semantic import Claim
from backsight.core.portfolio import Mode
from backsight.core.reflection.notes import ProposalKind, plan_subject, proposal_id
from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.wording import amount, bullet_text

BELIEF_DIMENSIONS = frozenset({"regime", "volatility_regime", "session", "symbol", "direction"})
"""Dimensions that a belief's domain can express, alone or in pairs."""
PLAN_DIMENSIONS = BELIEF_DIMENSIONS | {"hour", "weekday"}
"""Dimensions that a plan's condition can test at a tick, and that another tick can change. A plan to skip trades after
a loss would skip all later ones, since no other trade would come between."""
NUMBERS = frozenset({"hour", "weekday"})
DIGITS = 4
"""Of the reference of a belief."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A suggested belief or plan."""

    id: str
    kind: ProposalKind
    content: Mapping[str, object]
    """The arguments of `add_belief` or `create_trading_plan`."""


def suggest(pattern: Pattern, *, strategy_name: str, deployment_id: str, mode: Mode) -> Iterator[Suggestion]:
    """The belief and the plan that a pattern suggests, if they can express its dimension."""
    if pattern.measure != "outcome" or pattern.unit is None:
        return
    if (claim := _claim(pattern)) is not None:
        claims, reference = claim
        yield Suggestion(
            id=proposal_id(deployment_id, "belief", pattern.key),
            kind="belief",
            content={
                "proposition": _proposition(pattern, strategy_name, claims),
                "strategy_name": strategy_name,
                **pattern.domain,
                "about": "mean_outcome",
                "claims": claims,
                "reference": reference,
                "mode": mode,
            },
        )
    if PLAN_DIMENSIONS.issuperset(pattern.domain) and pattern.supports == "trade_less":
        condition = _condition(pattern)
        action = ADVISED_ACTIONS["trade_less"]
        yield Suggestion(
            id=proposal_id(deployment_id, "plan", plan_subject(parse_condition(condition), action)),
            kind="plan",
            content={
                "trigger_condition": condition,
                "planned_action": action,
                "reasoning": bullet_text(pattern),
                "deployment": deployment_id,
            },
        )


def _claim(pattern: Pattern) -> tuple[Claim, float] | None:
    """The claim and the reference of a belief: the mean elsewhere in R; 0 in another unit, where the mean is not 0."""
    if not BELIEF_DIMENSIONS.issuperset(pattern.domain):
        return None
    if pattern.unit == "R":
        return "above" if pattern.difference > 0.0 else "below", round(pattern.rest_mean, DIGITS)
    low, high = pattern.interval or (0.0, 0.0)
    return ("above", 0.0) if low > 0.0 else ("below", 0.0) if high < 0.0 else None


def _proposition(pattern: Pattern, strategy_name: str, claims: Claim) -> str:
    """The belief in words, with both means, since trades that earn less than others may still earn."""
    where = f"with {pattern.label}" if "direction" in pattern.domain else f"in {pattern.label}"
    more = "more" if claims == "above" else "less"
    means = [amount(mean, pattern.unit or "R") for mean in (pattern.mean, pattern.rest_mean)]
    return f"{strategy_name} earns {more} {where} than elsewhere: {' against '.join(means)}"


def _condition(pattern: Pattern) -> dict[str, object]:
    """When a plan applies: all dimensions of a pair, so that the half that earns is not skipped."""
    parts: list[dict[str, object]] = [
        {"field": name, "op": "==", "value": int(value) if name in NUMBERS else value}
        for name, value in pattern.domain.items()
    ]
    return parts[0] if len(parts) == 1 else {"all": parts}
