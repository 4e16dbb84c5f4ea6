"""What a pattern proposes: a belief about where trades are won, and a plan where they lose.

A belief is about a win rate, a pattern about a mean outcome: where the two do not point the same way, there is none.
A plan is proposed where trades lose: to leave them out where even the upper end of the mean's 90 % interval is below
zero, to halve their size where only the mean is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from backsight.core.memory.semantic import Claim
from backsight.core.portfolio import Mode
from backsight.core.reflection.notes import ProposalKind, proposal_id
from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.wording import bullet_text

BELIEF_DIMENSIONS = frozenset({"regime", "volatility_regime", "session", "symbol", "direction"})
"""Dimensions that the domain of a belief has."""
PLAN_DIMENSIONS = BELIEF_DIMENSIONS | {"hour"}
"""Dimensions that a condition can ask about at a tick."""
HALF_SIZE = 0.5
DIGITS = 4
"""Of the win rate that a belief is held against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What `add_belief` or `create_trading_plan` would be told."""

    id: str
    kind: ProposalKind
    content: Mapping[str, object]


def suggest(pattern: Pattern, *, strategy_name: str, deployment_id: str, mode: Mode) -> Iterator[Suggestion]:
    """The belief and the plan that a pattern proposes, as far as they can say what it is about."""
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
        named = proposal_id(deployment_id, "plan", pattern.key)
        yield Suggestion(
            id=named,
            kind="plan",
            content={
                "trigger_condition": {"field": pattern.dimension, "op": "==", "value": _value(pattern)},
                "planned_action": _action(pattern),
                "reasoning": bullet_text(pattern),
                "deployment": deployment_id,
                "idempotency_key": named,
            },
        )


def _claims(pattern: Pattern) -> Claim | None:
    """Whether trades there are won more or less often than elsewhere; None where that is not what differs."""
    if pattern.dimension not in BELIEF_DIMENSIONS or pattern.win_rate is None or pattern.rest_win_rate is None:
        return None
    more = pattern.win_rate - pattern.rest_win_rate
    if more * pattern.difference <= 0.0 or not 0.0 < round(pattern.rest_win_rate, DIGITS) < 1.0:
        return None
    return "above" if more > 0.0 else "below"


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
