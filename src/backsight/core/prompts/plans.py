"""Plans that apply: what was decided beforehand for when this holds."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from backsight.core.memory.prospective import PlanCheck, PlannedAction
from backsight.core.prompts.amounts import instant, price
from backsight.core.prompts.sections import Section, section_of
from backsight.core.text.untrusted_text import name, quote

HEADING = "## Plans that apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """What a plan asks for, why, and until when."""

    id: str
    action: PlannedAction
    reasoning: str
    expires_at: datetime | None
    contradicted: bool = False
    """Whether one of a higher priority cannot be followed together with it."""

    @property
    def text(self) -> str:
        until = "" if self.expires_at is None else f" until {instant(self.expires_at)}"
        against = " (against a plan above)" if self.contradicted else ""
        return f"- {asked(self.action)}{until}{against}: {quote(self.reasoning)}"


def plan_lines(checked: PlanCheck) -> tuple[PlanLine, ...]:
    """The plans that apply, in their order."""
    yielding = {each.second for each in checked.contradictions}
    return tuple(
        PlanLine(
            id=plan.id,
            action=plan.action,
            reasoning=plan.reasoning,
            expires_at=plan.expires_at,
            contradicted=plan.id in yielding,
        )
        for plan in checked.applying
    )


def plans_that_apply(lines: Iterable[PlanLine]) -> Section:
    """The plans in the order given, as many of them as fit."""
    return section_of("plans", HEADING, (line.text for line in lines))


def asked(action: PlannedAction) -> str:
    """What an action asks for, in words.

    >>> halve = PlannedAction(kind="adjust_param", parameter="size", magnitude=0.5)
    >>> asked(halve), asked(PlannedAction(kind="skip_trade"))
    ('size × 0.5', 'skip the trade')
    >>> asked(PlannedAction(kind="force_exit", magnitude=0.25)), asked(PlannedAction(kind="force_exit"))
    ('close 25% of the position', 'close the position')
    >>> asked(PlannedAction(kind="alert"))
    'take note'
    """
    match action.kind:
        case "adjust_param":
            return f"{name(action.parameter or '')} × {price(action.magnitude)}"
        case "skip_trade":
            return "skip the trade"
        case "force_exit":
            return f"close {_part(action.magnitude)}the position"
        case "alert":
            return "take note"
    assert_never(action.kind)


def _part(share: float | None) -> str:
    return "" if share is None or share >= 1 else f"{price(share * 100)}% of "
