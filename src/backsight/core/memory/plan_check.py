"""Check plans against the values of one instant: which apply, which began or ceased to hold, which contradict.

`check_plans` is pure. It returns the events of the check; the caller decides whether to record them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from backsight.core.memory.conditions import ConditionResult, evaluate_condition
from backsight.core.memory.planned_action import contradiction_of
from backsight.core.memory.prospective import Plan, PlanEvent, PlanState, event_order, make_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two plans that apply at the same time and contradict each other."""

    first: str
    """The id of the plan with the higher priority."""
    second: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """The result of checking plans at one instant."""

    applying: tuple[Plan, ...]
    """Highest priority first; of equal priority, the oldest first."""
    rising: tuple[PlanEvent, ...]
    """One for each plan whose condition holds now and did not hold at the last check."""
    falling: tuple[PlanEvent, ...]
    """One for each plan whose condition held at the last check and is false now; an unknown condition does not fall."""
    expired: tuple[PlanEvent, ...]
    contradictions: tuple[Contradiction, ...]
    missing: Mapping[str, tuple[str, ...]]
    """By plan id: the condition fields whose values were not known; plans with all values are left out."""
    holding: frozenset[str]
    """The ids of the plans whose condition holds; the next check takes them as `holding`."""


def plans_holding(
    events: Iterable[PlanEvent], *, symbol: str | None, deployment_id: str | None = None
) -> frozenset[str]:
    """The ids of the plans whose condition held at the last check of a symbol: their last edge was rising."""
    edges = (event for event in events if event.kind in ("rising", "falling"))
    own = (event for event in edges if (event.symbol, event.deployment_id) == (symbol, deployment_id))
    last = {event.plan_id: event.kind for event in sorted(own, key=event_order)}
    return frozenset(plan_id for plan_id, kind in last.items() if kind == "rising")


def evaluate_expiry(
    plan: Plan, values: Mapping[str, object], *, now: datetime, former_values: Mapping[str, object] | None = None
) -> ConditionResult:
    """Whether an active plan has expired: its instant has come, or its expiry condition holds."""
    if plan.expires_at is not None and now >= plan.expires_at:
        return ConditionResult(holds=True)
    if plan.expires_when is None:
        return ConditionResult(holds=False)
    return evaluate_condition(plan.expires_when, values, former_values=former_values)


def check_plans(
    states: Iterable[PlanState],
    values: Mapping[str, object],
    *,
    now: datetime,
    former_values: Mapping[str, object] | None = None,
    holding: Collection[str] = (),
    recorded_at: datetime | None = None,
) -> PlanCheck:
    """Check plans at `now`; `condition_values` makes `values` and `former_values`, those of the tick before.

    `holding` are the plans whose condition held at the last check. A `while_true` plan applies as long as its condition
    holds. A `once` plan applies on its first rising edge and never again. Plans that are not active, or not known yet,
    are ignored. To check several symbols at one tick, check them one after the other, each with the `holding` of that
    symbol, and apply the events of each check to the states (`apply_events`) so that a `once` plan fires once.
    """
    known = (state for state in states if state.plan.known_at <= now)
    active = sorted((state.plan for state in known if state.status == "active"), key=_rank)
    ends = {plan.id: evaluate_expiry(plan, values, now=now, former_values=former_values) for plan in active}
    left = [plan for plan in active if not ends[plan.id].holds]
    results = {plan.id: evaluate_condition(plan.condition, values, former_values=former_values) for plan in left}
    holds = [plan for plan in left if results[plan.id].holds]
    begun = [plan for plan in holds if plan.id not in holding]
    ceased = [plan for plan in left if plan.id in holding and not (results[plan.id].holds or results[plan.id].unknown)]
    applying = tuple(plan for plan in holds if plan.mode == "while_true" or plan.id not in holding)
    missing = {plan.id: _once_each(results[plan.id].missing, ends[plan.id].missing) for plan in left}
    expired = [plan for plan in active if ends[plan.id].holds]
    symbol = _symbol(values)
    return PlanCheck(
        applying=applying,
        rising=tuple(make_event(plan, "rising", now=now, symbol=symbol, recorded_at=recorded_at) for plan in begun),
        falling=tuple(make_event(plan, "falling", now=now, symbol=symbol, recorded_at=recorded_at) for plan in ceased),
        expired=tuple(make_event(plan, "expired", now=now, recorded_at=recorded_at) for plan in expired),
        contradictions=contradictions(applying),
        missing={plan_id: names for plan_id, names in missing.items() if names},
        holding=frozenset(plan.id for plan in holds),
    )


def join_checks(first: PlanCheck, second: PlanCheck) -> PlanCheck:
    """The result of checking two sets of plans as one."""
    applying = tuple(sorted((*first.applying, *second.applying), key=_rank))
    return PlanCheck(
        applying=applying,
        rising=(*first.rising, *second.rising),
        falling=(*first.falling, *second.falling),
        expired=(*first.expired, *second.expired),
        contradictions=contradictions(applying),
        missing={**first.missing, **second.missing},
        holding=first.holding | second.holding,
    )


def join_deployments(checks: Iterable[PlanCheck]) -> PlanCheck:
    """The results of checking several deployments as one: a plan that applies to two of them is listed once.

    Plans that apply to different deployments do not contradict each other.
    """
    results = tuple(checks)
    applying = {plan.id: plan for check in results for plan in check.applying}
    pairs = {(pair.first, pair.second): pair for check in results for pair in check.contradictions}
    missing: dict[str, tuple[str, ...]] = {}
    for check in results:
        for plan_id, names in check.missing.items():
            missing[plan_id] = _once_each(missing.get(plan_id, ()), names)
    return PlanCheck(
        applying=tuple(sorted(applying.values(), key=_rank)),
        rising=tuple(event for check in results for event in check.rising),
        falling=tuple(event for check in results for event in check.falling),
        expired=tuple(event for check in results for event in check.expired),
        contradictions=tuple(pairs.values()),
        missing=missing,
        holding=frozenset(plan_id for check in results for plan_id in check.holding),
    )


def contradictions(applying: Sequence[Plan]) -> tuple[Contradiction, ...]:
    """The pairs of plans that contradict each other, in the order of the plans.

    | | adjust_param up | adjust_param down | skip_trade | force_exit | alert |
    |---|---|---|---|---|---|
    | adjust_param up | – | the same parameter | yes | yes | – |
    | adjust_param down | the same parameter | – | – | – | – |
    | skip_trade | yes | – | – | – | – |
    | force_exit | yes | – | – | – | – |

    "Up" is a factor above 1. Skipping a trade and closing a position agree: both reduce exposure.
    """
    pairs = []
    for first, second in combinations(applying, 2):
        reason = contradiction_of(first.action, second.action)
        if reason:
            pairs.append(Contradiction(first=first.id, second=second.id, reason=reason))
    return tuple(pairs)


def _rank(plan: Plan) -> tuple[float, datetime, str]:
    return -plan.priority, plan.known_at, plan.id


def _once_each(*names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in names for name in each))


def _symbol(values: Mapping[str, object]) -> str | None:
    symbol = values.get("symbol")
    return symbol if isinstance(symbol, str) else None
