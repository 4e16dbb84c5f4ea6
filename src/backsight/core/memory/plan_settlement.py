"""Settle a plan: which outcomes followed it, and whether following it helped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from backsight.core.memory.planned_action import PlannedAction
from backsight.core.memory.prospective import Plan, PlanEvent
from backsight.core.statistics import moments_of
from backsight.core.trades.trade import Outcome, OutcomeUnit

FEWEST_OUTCOMES = 10
"""With fewer outcomes, a settlement does not say whether the plan helped."""


LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitResult:
    """The outcomes that followed a plan, in one unit."""

    unit: OutcomeUnit
    n: int
    mean: float
    low: float | None
    """With `high`: the 95% confidence interval of the mean; None below two outcomes."""
    high: float | None
    helped: bool | None
    """None where the outcomes do not show it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Whether a plan was followed, and whether following it helped."""

    plan_id: str
    followed: bool
    results: tuple[UnitResult, ...]
    without_outcome: int = 0
    """How many trades or calls that followed the plan have no outcome."""


def settle(plan: Plan, *, followed: bool, outcomes: Iterable[Outcome | None]) -> Settlement:
    """Whether following a plan helped, for each unit of outcome.

    The outcomes are those of trades made under the plan. For a plan to skip trades they are those of calls that were
    not traded, or, if the plan was not followed, of the trades made nevertheless. An action that reduces exposure
    helped where the outcomes were losses; any other action helped where they were wins. `helped` is None unless there
    are ten outcomes and the 95% confidence interval of their mean (Student's t) excludes zero. For a plan that was
    not followed it is None unless the action would have reduced exposure.

    >>> from datetime import UTC, datetime
    >>> from backsight.core.memory.prospective import PlanDraft, make_plan
    >>> draft = PlanDraft(condition={"regime": "ranging"}, action={"type": "skip_trade"}, reasoning="three losses")
    >>> skip = make_plan(draft, owner_id="ana", now=datetime(2026, 6, 4, tzinfo=UTC))
    >>> skipped = [Outcome(value=r, unit="R") for r in (-1, -1, -1, 0.5, -1, -1, -1, -1, 0.5, -1)]
    >>> settle(skip, followed=True, outcomes=skipped).results[0].helped
    True
    """
    values: dict[OutcomeUnit, list[float]] = {}
    without_outcome = 0
    for outcome in outcomes:
        if outcome is None:
            without_outcome += 1
        else:
            values.setdefault(outcome.unit, []).append(outcome.value)
    results = tuple(_result(plan.action, unit, values[unit], followed=followed) for unit in sorted(values))
    return Settlement(plan_id=plan.id, followed=followed, results=results, without_outcome=without_outcome)


def compute_settlement(
    plan: Plan, events: Iterable[PlanEvent], episodes: Mapping[str, Outcome | None], *, followed: bool
) -> Settlement:
    """The settlement of a plan by its outcome events; `episodes` maps episode ids to their current outcomes.

    Episodes that were withdrawn are not in `episodes` and do not count. For a plan to skip trades, calls count if it
    was followed, and trades if it was not.
    """
    own = (event for event in events if event.plan_id == plan.id and event.kind == "outcome")
    ids = dict.fromkeys(event.episode_id or "" for event in own if event.followed in (None, followed))
    outcomes = [episodes[episode_id] for episode_id in ids if episode_id in episodes]
    return settle(plan, followed=followed, outcomes=outcomes)


def _result(action: PlannedAction, unit: OutcomeUnit, values: list[float], *, followed: bool) -> UnitResult:
    moments = moments_of(values)
    low, high = moments.interval(level=LEVEL) or (None, None)
    helped = _helped(action, low, high, followed=followed) if len(values) >= FEWEST_OUTCOMES else None
    return UnitResult(unit=unit, n=len(values), mean=moments.mean, low=low, high=high, helped=helped)


def _helped(action: PlannedAction, low: float | None, high: float | None, *, followed: bool) -> bool | None:
    if low is None or high is None or not (followed or action.lowers_exposure) or low <= 0 <= high:
        return None
    return (high < 0) == action.lowers_exposure
