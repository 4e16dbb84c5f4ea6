"""The prompt section with the plans whose condition holds now."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from backsight.core.memory.plan_check import PlanCheck
from backsight.core.memory.planned_action import PlannedAction
from backsight.core.prompts.amounts import instant, price
from backsight.core.prompts.sections import Section, section_of
from backsight.core.text.untrusted_text import name, quote

HEADING = "## Plans that apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLine:
    """A plan's instruction, its reason and its expiry."""

    id: str
    action: PlannedAction
    reasoning: str
    expires_at: datetime | None
    contradicted: bool = False
    """True if a plan of higher priority asks for the opposite."""

    @property
    def text(self) -> str:
        until = "" if self.expires_at is None else f" until {instant(self.expires_at)}"
        against = " (against a plan above)" if self.contradicted else ""
        return f"- {instruction(self.action)}{until}{against}: {quote(self.reasoning)}"


def plan_lines(checked: PlanCheck) -> tuple[PlanLine, ...]:
    """The lines of the plans that apply, most urgent first."""
    contradicted = {pair.second for pair in checked.contradictions}
    return tuple(
        PlanLine(
            id=plan.id,
            action=plan.action,
            reasoning=plan.reasoning,
            expires_at=plan.expires_at,
            contradicted=plan.id in contradicted,
        )
        for plan in checked.applying
    )


def plans_that_apply(lines: Iterable[PlanLine]) -> Section:
    """As many plans as fit, in the order given."""
    return section_of("plans", HEADING, (line.text for line in lines))


def instruction(action: PlannedAction) -> str:
    """A planned action in words.

    >>> instruction(PlannedAction(kind="adjust_param", parameter="size", magnitude=0.5))
    'size × 0.5'
    >>> instruction(PlannedAction(kind="force_exit", magnitude=0.25)), instruction(PlannedAction(kind="skip_trade"))
    ('close 25% of the position', 'skip the trade')
    >>> instruction(PlannedAction(kind="force_exit")), instruction(PlannedAction(kind="alert"))
    ('close the position', 'take note')
    """
    match action.kind:
        case "adjust_param":
            return f"{name(action.parameter or '')} × {price(action.magnitude)}"
        case "skip_trade":
            return "skip the trade"
        case "force_exit":
            return f"close {_share_of(action.magnitude)}the position"
        case "alert":
            return "take note"
    assert_never(action.kind)


def _share_of(share: float | None) -> str:
    return "" if share is None or share >= 1 else f"{price(share * 100)}% of "
