"""What a belief that made a plan knows now: the figures in the plan's reason are those of the day it was made."""

from backsight.core.memory.advice import outcome_text
from backsight.core.memory.prospective import Plan
from backsight.core.memory.semantic import main_outcome
from backsight.core.portfolio import Mode
from backsight.services.belief_learning import current_beliefs
from backsight.store.view import View


def present_evidence(view: View, plan: Plan, mode: Mode) -> str | None:
    """What trades earn where the belief behind a plan holds, as of a view; None if no belief made the plan."""
    source = next((source.id for source in plan.sources if source.kind == "semantic"), None)
    if source is None:
        return None
    for record in current_beliefs(view, mode, concerns=lambda belief: belief.id == source):
        unit, moments = main_outcome(record.standing.outcomes)
        if moments.n:
            unknown = record.standing.n - moments.n
            mean = outcome_text(moments.mean, moments.interval(), unit=unit, n=moments.n, unknown=unknown)
            return f"trades there earn {mean}"
    return None
