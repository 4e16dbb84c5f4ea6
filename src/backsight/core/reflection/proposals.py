"""The belief and the plan that a pattern suggests.

A belief is about a win rate, a pattern about a mean outcome: a belief is suggested only if both differ in the same
direction. A plan is suggested for a group that loses: skip such trades if the whole 90 % interval of the mean is below
zero, halve their size if only the mean is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from backsight.core.memory.semantic import Claim
from backsight.core.portfolio import Mode
from backsight.core.reflection.notes import ProposalKind, proposal_id
from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.wording import bullet_text

BELIEF_DIMENSIONS = frozenset({"regime", "volatility_regime", "session", "symbol", "direction"})
"""Dimensions that a belief's domain can express."""
PLAN_DIMENSIONS = BELIEF_DIMENSIONS | {"hour"}
"""Dimensions that a plan's condition can test at a tick."""
HALF_SIZE = 0.5
DIGITS = 4
"""Of the reference win rate of a belief."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A suggested belief or plan."""

    id: str
    kind: ProposalKind
    content: Mapping[str, object]
    """The arguments of `add_belief` or `create_trading_plan`."""


def suggest(pattern: Pattern, *, strategy_name: str, deployment_id: str, mode: Mode) -> Iterator[Suggestion]:
    """The belief and the plan that a pattern suggests, if they can express its dimension."""
    if pattern.measure != "outcome":
        return
    if (claims := _claims(pattern)) is not None:
        yield Suggestion(
            id=proposal_id(deployment_id, "belief", pattern.key),
            kind="belief",
            content={
                "proposition": _proposition(pattern, strategy_name, claims),
                "strategy_name": strategy_name,
                pattern.dimension: pattern.value,
                "claims": claims,
                "reference": round(pattern.rest_win_rate or 0.0, DIGITS),
                "mode": mode,
            },
        )
    if pattern.dimension in PLAN_DIMENSIONS and pattern.mean < 0.0:
        plan_id = proposal_id(deployment_id, "plan", pattern.key)
        yield Suggestion(
            id=plan_id,
            kind="plan",
            content={
                "trigger_condition": {"field": pattern.dimension, "op": "==", "value": _value(pattern)},
                "planned_action": _action(pattern),
                "reasoning": bullet_text(pattern),
                "deployment": deployment_id,
                "idempotency_key": plan_id,
            },
        )


def _claims(pattern: Pattern) -> Claim | None:
    """Whether the win rate is above or below that of the rest; None if it does not differ as the mean does."""
    if pattern.dimension not in BELIEF_DIMENSIONS or pattern.win_rate is None or pattern.rest_win_rate is None:
        return None
    excess = pattern.win_rate - pattern.rest_win_rate
    if excess * pattern.difference <= 0.0 or not 0.0 < round(pattern.rest_win_rate, DIGITS) < 1.0:
        return None
    return "above" if excess > 0.0 else "below"


def _proposition(pattern: Pattern, strategy_name: str, claims: Claim) -> str:
    often = "more often" if claims == "above" else "less often"
    where = f"with {pattern.label}" if pattern.dimension == "direction" else f"in {pattern.label}"
    return f"{strategy_name} wins {often} {where} than elsewhere"


def _value(pattern: Pattern) -> str | int:
    return int(pattern.value) if pattern.dimension == "hour" else pattern.value


def _action(pattern: Pattern) -> dict[str, object]:
    if pattern.interval is not None and pattern.interval[1] < 0.0:
        return {"type": "skip_trade"}
    return {"type": "adjust_param", "parameter": "size", "magnitude": HALF_SIZE}
