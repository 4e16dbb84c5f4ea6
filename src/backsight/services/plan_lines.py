"""The plans that apply to any of the symbols of a prompt. Reading a plan does not trigger it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.memory.affective import Mood
from backsight.core.memory.plan_check import check_plans
from backsight.core.portfolio import DIRECTIONS, Direction
from backsight.core.prompts.plans import PlanLine
from backsight.core.strategies import Deployment
from backsight.services.plan_checks import former_values
from backsight.services.plan_evidence import present_evidence
from backsight.services.plan_values import PlanSubject, fields_of, plan_values
from backsight.services.plans import open_plans
from backsight.store.view import View


def applying_plans(
    view: View,
    deployment: Deployment,
    contexts: Sequence[ContextVector],
    *,
    now: datetime,
    mood: Mood,
    former_at: datetime | None,
) -> list[PlanLine]:
    """The plans that apply now, the most urgent first, each with the symbols to which it applies.

    `former_at` is the tick before, with which crossings compare. A plan for one direction applies to a symbol if it
    holds for a trade in that direction.
    """
    plans = open_plans(view, deployment).plans
    if not plans:
        return []
    fields, crosses = fields_of(plans), any(state.plan.crosses for state in plans)
    directions: Sequence[Direction | None] = DIRECTIONS if "direction" in fields else (None,)
    lines: dict[str, PlanLine] = {}
    for context in contexts or [ContextVector()]:
        former: Mapping[str, object] | None = None
        if crosses and former_at is not None:
            former = former_values(view.connection, deployment, context.symbol, at=former_at, fields=fields)
        for direction in directions:
            subject = PlanSubject(context=context, symbol=context.symbol, direction=direction)
            values = plan_values(view, deployment, subject, mood=mood, fields=fields, now=now)
            checked = check_plans(plans, values, now=now, former_values=former)
            contradicted = {pair.second for pair in checked.contradictions}
            symbols = () if context.symbol is None else (context.symbol,)
            for plan in checked.applying:
                line = lines.get(plan.id)
                if line is None:
                    evidence = present_evidence(view, plan, deployment.mode)
                    line = PlanLine(plan=plan, now=now, values=values, evidence=evidence)
                lines[plan.id] = replace(
                    line,
                    symbols=tuple(dict.fromkeys((*line.symbols, *symbols))),
                    contradicted=line.contradicted or plan.id in contradicted,
                )
    return sorted(lines.values(), key=lambda line: (-line.plan.priority, line.plan.known_at, line.plan.id))
