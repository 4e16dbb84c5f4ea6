"""Plans: what to do if something comes to hold, until when, and whether doing it helped.

A plan is a fact. Its events say what became of it: `apply_event` applies one, `apply_events` applies all of them.
`check_plans` is pure: it says which plans apply, which have just begun to (a rising edge), which are over, and which
contradict each other; whoever calls it decides whether to record that.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations
from typing import Any, Literal, TypeVar, assert_never, get_args

from backsight.core.errors import Conflict, Invalid, did_you_mean
from backsight.core.ids import canonical_json, derive_id
from backsight.core.instants import format_instant, to_utc
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import (
    TRIGGER_TYPES,
    Condition,
    ConditionResult,
    TriggerType,
    comparisons_in,
    condition_from_text,
    condition_text,
    evaluate_condition,
    fields_in,
    finite_number,
    parse_condition,
    stated_trigger,
    trigger_type_of,
)
from backsight.core.memory.kind import MemoryKind
from backsight.core.memory.semantic import DIMENSIONS, Belief
from backsight.core.numbers import short
from backsight.core.statistics import moments_of
from backsight.core.trades.trade import Outcome, OutcomeUnit

ActionKind = Literal["adjust_param", "skip_trade", "force_exit", "alert"]
PlanMode = Literal["while_true", "once"]
PlanStatus = Literal["active", "fired", "expired", "cancelled", "settled"]
PlanEventKind = Literal["rising", "falling", "expired", "cancelled", "settled", "outcome"]

ACTIONS: tuple[ActionKind, ...] = get_args(ActionKind)
MODES: tuple[PlanMode, ...] = get_args(PlanMode)
EXPIRES_AFTER = timedelta(days=30)
MARKET_FIELDS = frozenset(
    {
        "price",
        "atr_d1",
        "atr_h1",
        "atr_m5",
        "atr_ratio_h1_d1",
        "regime",
        "volatility_regime",
        "spread_points",
        "spread_as_atr_pct",
    }
)
"""What only the bars and quotes of an instrument tell."""
OF_MARKET = MARKET_FIELDS | {"symbol", "direction"}
EXPOSURE = frozenset({"size", "lot_size", "position_size", "leverage", "risk", "risk_per_trade"})
"""Parameters of which less means less at stake."""
LONGEST_NAME = 100
LONGEST_REASONING = 10_000
FEWEST_OUTCOMES = 10
"""Below this many, nothing is said about whether a plan helped."""
LEVEL = 0.95

BELIEF_CREDIBILITY = 0.9
BELIEF_EPISODES = 20
BELIEF_BOOST = 1.2
MOOD_BEGINS, MOOD_ENDS = 0.75, 0.5
MOOD_FACTOR = 0.5
MOOD_PRIORITY = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """What a plan would have done."""

    kind: ActionKind
    parameter: str | None = None
    """Of `adjust_param`: what is changed."""
    magnitude: float | None = None
    """Of `adjust_param`: what the parameter is multiplied by, so that .5 halves it. Of `force_exit`: the share of the
    position that is closed; None is all of it."""

    @property
    def raises(self) -> bool:
        """Whether it makes a parameter larger."""
        return self.kind == "adjust_param" and (self.magnitude or 0.0) > 1

    @property
    def lowers_exposure(self) -> bool:
        """Whether it puts less at stake, so that it helps where what was left out would have lost."""
        if self.kind == "adjust_param":
            return (self.parameter or "").lower() in EXPOSURE and not self.raises
        return self.kind == "skip_trade"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """A memory that a plan came from."""

    kind: MemoryKind
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """If the condition holds, then the action, until it expires; and what has become of it."""

    owner_id: str
    id: str
    deployment_id: str | None
    """Whose plan it is; None: every deployment's that the strategy leaves."""
    strategy_name: str | None
    """None: any strategy's."""
    trigger_type: TriggerType
    condition: Condition
    action: PlannedAction
    reasoning: str
    priority: float
    """0 to 1, the larger the earlier."""
    expires_at: datetime | None
    """From this instant on it does not apply; None where only a condition ends it."""
    expires_when: Condition | None
    sources: tuple[PlanSource, ...]
    mode: PlanMode
    known_at: datetime
    recorded_at: datetime
    status: PlanStatus = "active"
    times_fired: int = 0
    """Rising edges so far."""
    fired_at: datetime | None = None
    """The first of them."""
    last_fired_at: datetime | None = None
    expired_at: datetime | None = None
    cancelled_at: datetime | None = None
    settled_at: datetime | None = None

    @property
    def asks(self) -> frozenset[str]:
        """The fields that its conditions are about."""
        ends = () if self.expires_when is None else fields_in(self.expires_when)
        return frozenset((*fields_in(self.condition), *ends))

    @property
    def crosses(self) -> bool:
        """Whether it asks for a crossing, and so for the tick before."""
        asked = (self.condition,) if self.expires_when is None else (self.condition, self.expires_when)
        return any(each.op.startswith("crosses") for part in asked for each in comparisons_in(part))

    @property
    def is_of_market(self) -> bool:
        """Whether it depends on the instrument that one looks at; if not, it holds for all of them or for none."""
        return not OF_MARKET.isdisjoint(self.asks)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A plan as it was made, its conditions as canonical JSON; what became of it is told by its events."""

    owner_id: str
    id: str
    deployment_id: str | None
    strategy_name: str | None
    trigger_type: TriggerType
    condition: str
    action: PlannedAction
    reasoning: str
    priority: float
    expires_at: datetime | None
    expires_when: str | None
    sources: tuple[str, ...]
    mode: PlanMode
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEvent:
    """Something that happened to a plan."""

    owner_id: str
    id: str
    plan_id: str
    kind: PlanEventKind
    symbol: str | None
    """The instrument that the values were of, where they were of one."""
    deployment_id: str | None = None
    """Whose look it was."""
    sequence: int = 0
    """Order among the plan's events of one instant."""
    known_at: datetime
    recorded_at: datetime
    episode_id: str | None = None
    """Of an outcome: the trade made under the plan, or the call not made."""
    outcome: Outcome | None = None
    followed: bool | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two plans that apply at once and cannot both be followed."""

    first: str
    """The id of the one with the higher priority."""
    second: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """What plans say at one tick."""

    applying: tuple[Plan, ...]
    """By priority, the highest first; then the oldest."""
    rising: tuple[PlanEvent, ...]
    falling: tuple[PlanEvent, ...]
    """Of conditions that held at the last check and surely no longer do; what is not known ends nothing."""
    """One for each plan whose condition holds now and did not at the last check."""
    expired: tuple[PlanEvent, ...]
    contradictions: tuple[Contradiction, ...]
    missing: Mapping[str, tuple[str, ...]]
    """By plan: the fields that were not known; plans that lack none are left out."""
    holding: frozenset[str]
    """The ids of plans whose condition holds: what the next check is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitResult:
    """What followed a plan, in one unit of outcome."""

    unit: OutcomeUnit
    n: int
    mean: float
    low: float | None
    """Ends of the 95 % interval of the mean; None below two outcomes."""
    high: float | None
    helped: bool | None
    """None where it cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Whether a plan was followed, and whether that helped."""

    plan_id: str
    followed: bool
    results: tuple[UnitResult, ...]
    without_outcome: int = 0
    """Trades or calls that followed and whose outcome has no unit."""


def parse_action(value: object, *, field: str = "action") -> PlannedAction:
    """The action that JSON spells, or `Invalid` naming what is wrong with it.

    >>> parse_action({"type": "adjust_param", "parameter": "size", "magnitude": 0.5})
    PlannedAction(kind='adjust_param', parameter='size', magnitude=0.5)
    >>> parse_action({"type": "skip_trades"})
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: action.type: 'skip_trades' is not an action; did you mean 'skip_trade'? Known: ...
    """
    if not isinstance(value, Mapping):
        raise Invalid('is not an object; give one like {"type": "skip_trade"}', field=field)
    for name in value:
        if name not in ("type", "parameter", "magnitude"):
            raise Invalid(f"{name!r:.40} is not known; give type, parameter, magnitude", field=field)
    return make_action(value.get("type"), value.get("parameter"), value.get("magnitude"), field=field)


def make_action(
    kind: object, parameter: object = None, magnitude: object = None, *, field: str = "action"
) -> PlannedAction:
    """The action of this kind, if it has what the kind needs and nothing else."""
    named = one_of(kind, ACTIONS, noun="an action", field=f"{field}.type")
    if named != "adjust_param" and parameter is not None:
        raise Invalid(f"{named} changes no parameter; leave it out, or use adjust_param", field=f"{field}.parameter")
    size = None if magnitude is None else _number(magnitude, field=f"{field}.magnitude")
    match named:
        case "adjust_param":
            name = _line(parameter, field=f"{field}.parameter")
            if size is None or size <= 0 or size == 1:
                message = "give what the parameter is multiplied by: above 0 and not 1, like 0.5 to halve it"
                raise Invalid(message, field=f"{field}.magnitude")
            return PlannedAction(kind=named, parameter=name, magnitude=size)
        case "force_exit":
            if size is not None and not 0 < size <= 1:
                raise Invalid(
                    f"{size} is no share of a position; give one above 0, up to 1", field=f"{field}.magnitude"
                )
            return PlannedAction(kind=named, magnitude=size)
        case "skip_trade" | "alert":
            if size is not None:
                raise Invalid(f"{named} has no magnitude; leave it out", field=f"{field}.magnitude")
            return PlannedAction(kind=named)
    assert_never(named)


def action_json(action: PlannedAction) -> dict[str, Any]:
    """The action as JSON, which reads back as the same action.

    >>> action_json(PlannedAction(kind="skip_trade"))
    {'type': 'skip_trade'}
    """
    given = {"type": action.kind, "parameter": action.parameter, "magnitude": action.magnitude}
    return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDraft:
    """A plan that is to be made; condition and action are JSON that `make_plan` checks."""

    condition: object
    action: object
    reasoning: str
    deployment_id: str | None = None
    strategy_name: str | None = None
    trigger_type: str | None = None
    priority: float = 0.5
    expires_at: datetime | None = None
    expires_when: object | None = None
    sources: tuple[PlanSource, ...] = ()
    mode: str = "while_true"


def make_plan(
    draft: PlanDraft, *, owner_id: str, now: datetime, key: str | None = None, recorded_at: datetime | None = None
) -> Plan:
    """The plan that a draft describes; raises `Invalid` for any error in the draft, so that no later check can fail.

    Without an expiry the plan ends after 30 days. With only an expiry condition it ends when that condition holds. The
    id derives from `key`, or else from the content and the instant, so that repeating a call names the same plan.

    >>> from datetime import UTC
    >>> draft = PlanDraft(condition={"regime": "ranging", "strategy": "IM"}, action={"type": "skip_trade"},
    ...                   reasoning="IM lost three times in a row here")
    >>> plan = make_plan(draft, owner_id="ana", now=datetime(2026, 6, 4, tzinfo=UTC))
    >>> plan.trigger_type, plan.mode, plan.expires_at.isoformat()
    ('market_condition', 'while_true', '2026-07-04T00:00:00+00:00')
    """
    now = to_utc(now, field="now")
    condition = parse_condition(draft.condition, field="trigger_condition")
    stated_type = stated_trigger(draft.condition, field="trigger_condition")
    ends_by_condition = draft.expires_when is not None
    plan = Plan(
        owner_id=owner_id,
        id="",
        deployment_id=draft.deployment_id,
        strategy_name=draft.strategy_name,
        trigger_type=_trigger_type(draft.trigger_type, stated_type, condition),
        condition=condition,
        action=parse_action(draft.action, field="planned_action"),
        reasoning=_reasoning(draft.reasoning),
        priority=_priority(draft.priority),
        expires_at=_expiry(draft.expires_at, now=now, has_condition=ends_by_condition),
        expires_when=parse_condition(draft.expires_when, field="expires_when") if ends_by_condition else None,
        sources=draft.sources,
        mode=one_of(draft.mode, MODES, noun="a mode", field="mode"),
        known_at=now,
        recorded_at=now if recorded_at is None else to_utc(recorded_at, field="recorded_at"),
    )
    seed = (key,) if key else (format_instant(now), _content(plan))
    return replace(plan, id=derive_id("plan", owner_id, *seed))


def plan_record(plan: Plan) -> PlanRecord:
    """A plan as it is kept."""
    return PlanRecord(
        owner_id=plan.owner_id,
        id=plan.id,
        deployment_id=plan.deployment_id,
        strategy_name=plan.strategy_name,
        trigger_type=plan.trigger_type,
        condition=condition_text(plan.condition),
        action=plan.action,
        reasoning=plan.reasoning,
        priority=plan.priority,
        expires_at=plan.expires_at,
        expires_when=None if plan.expires_when is None else condition_text(plan.expires_when),
        sources=tuple(canonical_json([source.kind, source.id]) for source in plan.sources),
        mode=plan.mode,
        known_at=plan.known_at,
        recorded_at=plan.recorded_at,
    )


def plan_from_record(row: PlanRecord) -> Plan:
    """The plan that was kept, before anything became of it: `read_plan(kept(plan)) == plan` for a new one."""
    told = [json.loads(source) for source in row.sources]
    return Plan(
        owner_id=row.owner_id,
        id=row.id,
        deployment_id=row.deployment_id,
        strategy_name=row.strategy_name,
        trigger_type=row.trigger_type,
        condition=condition_from_text(row.condition),
        action=row.action,
        reasoning=row.reasoning,
        priority=row.priority,
        expires_at=row.expires_at,
        expires_when=None if row.expires_when is None else condition_from_text(row.expires_when),
        sources=tuple(PlanSource(kind=kind, id=memory_id) for kind, memory_id in told),
        mode=row.mode,
        known_at=row.known_at,
        recorded_at=row.recorded_at,
    )


def plans_holding(
    events: Iterable[PlanEvent], *, symbol: str | None, deployment_id: str | None = None
) -> frozenset[str]:
    """The plans whose condition held when a deployment last looked at a symbol: their last edge was a rise."""
    edges = (event for event in events if event.kind in ("rising", "falling"))
    own = (event for event in edges if (event.symbol, event.deployment_id) == (symbol, deployment_id))
    last = {event.plan_id: event.kind for event in sorted(own, key=_order)}
    return frozenset(plan_id for plan_id, kind in last.items() if kind == "rising")


def is_in_scope(plan: Plan | PlanRecord, *, deployment_id: str | None, strategy_name: str | None) -> bool:
    """Whether a plan speaks about this deployment of this strategy."""
    return plan.deployment_id in (None, deployment_id) and plan.strategy_name in (None, strategy_name)


def evaluate_expiry(
    plan: Plan, values: Mapping[str, object], *, now: datetime, former_values: Mapping[str, object] | None = None
) -> ConditionResult:
    """Whether an active plan is over: its instant has come, or its expiry condition holds."""
    if plan.expires_at is not None and now >= plan.expires_at:
        return ConditionResult(holds=True)
    if plan.expires_when is None:
        return ConditionResult(holds=False)
    return evaluate_condition(plan.expires_when, values, former_values=former_values)


def check_plans(
    plans: Iterable[Plan],
    values: Mapping[str, object],
    *,
    now: datetime,
    former_values: Mapping[str, object] | None = None,
    holding: Collection[str] = (),
    recorded_at: datetime | None = None,
) -> PlanCheck:
    """What the plans say at `now`: `values` and those of the tick before are as `conditions.values_of` makes them.

    `holding` are the plans whose condition held at the last check. A `while_true` plan applies as long as its condition
    holds; a `once` plan on its first rising edge and never again. Plans that are not active, or not yet known, say
    nothing. Where a tick looks at several symbols, check once for each, with the `holding` of that symbol, and fold the
    events of one into the plans (`apply_events`) before the next, so that a `once` plan fires once.
    """
    known = sorted((plan for plan in plans if plan.status == "active" and plan.known_at <= now), key=_rank)
    ends = {plan.id: evaluate_expiry(plan, values, now=now, former_values=former_values) for plan in known}
    left = [plan for plan in known if not ends[plan.id].holds]
    verdicts = {plan.id: evaluate_condition(plan.condition, values, former_values=former_values) for plan in left}
    holds = [plan for plan in left if verdicts[plan.id].holds]
    begun = [plan for plan in holds if plan.id not in holding]
    ended = [plan for plan in left if plan.id in holding and not (verdicts[plan.id].holds or verdicts[plan.id].unknown)]
    applying = tuple(plan for plan in holds if plan.mode == "while_true" or plan.id not in holding)
    missing = {plan.id: _once_each(verdicts[plan.id].missing, ends[plan.id].missing) for plan in left}
    over = [plan for plan in known if ends[plan.id].holds]
    symbol = _symbol(values)
    return PlanCheck(
        applying=applying,
        rising=tuple(make_event(plan, "rising", now=now, symbol=symbol, recorded_at=recorded_at) for plan in begun),
        falling=tuple(make_event(plan, "falling", now=now, symbol=symbol, recorded_at=recorded_at) for plan in ended),
        expired=tuple(make_event(plan, "expired", now=now, recorded_at=recorded_at) for plan in over),
        contradictions=contradictions(applying),
        missing={plan_id: names for plan_id, names in missing.items() if names},
        holding=frozenset(plan.id for plan in holds),
    )


def join_checks(one: PlanCheck, other: PlanCheck) -> PlanCheck:
    """What two sets of plans say, looked at together."""
    applying = tuple(sorted((*one.applying, *other.applying), key=_rank))
    return PlanCheck(
        applying=applying,
        rising=(*one.rising, *other.rising),
        falling=(*one.falling, *other.falling),
        expired=(*one.expired, *other.expired),
        contradictions=contradictions(applying),
        missing={**one.missing, **other.missing},
        holding=one.holding | other.holding,
    )


def contradictions(applying: Sequence[Plan]) -> tuple[Contradiction, ...]:
    """The pairs of plans that cannot both be followed, in the order of the plans.

    | | adjust_param up | adjust_param down | skip_trade | force_exit | alert |
    |---|---|---|---|---|---|
    | adjust_param up | – | the same parameter | yes | yes | – |
    | adjust_param down | the same parameter | – | – | – | – |
    | skip_trade | yes | – | – | – | – |
    | force_exit | yes | – | – | – | – |

    Up is a factor above 1. To skip a trade is not to enter, to exit is to leave: both at once agree.
    """
    found = []
    for one, other in combinations(applying, 2):
        reason = contradiction_of(one.action, other.action)
        if reason:
            found.append(Contradiction(first=one.id, second=other.id, reason=reason))
    return tuple(found)


def contradiction_of(one: PlannedAction, other: PlannedAction) -> str | None:
    """Why two actions cannot both be done; None where they can.

    >>> halve, double = (PlannedAction(kind="adjust_param", parameter="size", magnitude=by) for by in (0.5, 2.0))
    >>> contradiction_of(halve, double)
    'one lowers size and the other raises it'
    >>> contradiction_of(double, PlannedAction(kind="skip_trade"))
    'skip_trade stays out, and the other raises size'
    >>> contradiction_of(halve, PlannedAction(kind="skip_trade")) is None
    True
    """
    if one.kind == other.kind == "adjust_param":
        same = (one.parameter or "").lower() == (other.parameter or "").lower()
        return f"one lowers {one.parameter} and the other raises it" if same and one.raises != other.raises else None
    for quiet, loud in ((one, other), (other, one)):
        if loud.raises and quiet.kind in ("skip_trade", "force_exit"):
            does = "stays out" if quiet.kind == "skip_trade" else "gets out"
            return f"{quiet.kind} {does}, and the other raises {loud.parameter}"
    return None


def apply_event(plan: Plan, event: PlanEvent) -> Plan:
    """The plan after one more event; what can no longer happen to it changes nothing."""
    at, active = event.known_at, plan.status == "active"
    match event.kind:
        case "rising":
            return _fired(plan, at) if active else plan
        case "expired":
            return replace(plan, status="expired", expired_at=at) if active else plan
        case "cancelled":
            return replace(plan, status="cancelled", cancelled_at=at) if active else plan
        case "settled":
            return plan if plan.status == "settled" else replace(plan, status="settled", settled_at=at)
        case "falling" | "outcome":
            return plan
    assert_never(event.kind)


def plans_after_events(rows: Iterable[PlanRecord], events: Iterable[PlanEvent]) -> list[Plan]:
    """The plans that were kept, each after all of its events."""
    told: dict[str, list[PlanEvent]] = {}
    for event in events:
        told.setdefault(event.plan_id, []).append(event)
    return [apply_events(plan_from_record(row), told.get(row.id, ())) for row in rows]


def apply_events(plan: Plan, events: Iterable[PlanEvent]) -> Plan:
    """The plan after all of its events, in whatever order they come; events of other plans do not count."""
    for event in sorted(events, key=_order):
        if event.plan_id == plan.id:
            plan = apply_event(plan, event)
    return plan


def _order(event: PlanEvent) -> tuple[datetime, int, datetime, str]:
    return event.known_at, event.sequence, event.recorded_at, event.id


def number_event(event: PlanEvent, *, sequence: int, deployment_id: str | None = None) -> PlanEvent:
    """An event in its place among those of its plan, and whose look it was; its id derives from all of that."""
    about = event.symbol or event.episode_id
    named = (event.plan_id, event.kind, format_instant(event.known_at), about, deployment_id, sequence)
    return replace(event, id=derive_id("plan_event", *named), sequence=sequence, deployment_id=deployment_id)


def make_event(
    plan: Plan,
    kind: PlanEventKind,
    *,
    now: datetime,
    symbol: str | None = None,
    recorded_at: datetime | None = None,
    **told: Any,
) -> PlanEvent:
    """An event of a plan; its id derives from plan, kind, instant and what it is about."""
    about = symbol or told.get("episode_id")
    return PlanEvent(
        owner_id=plan.owner_id,
        id=derive_id("plan_event", plan.id, kind, format_instant(now), about),
        plan_id=plan.id,
        kind=kind,
        symbol=symbol,
        known_at=now,
        recorded_at=recorded_at or now,
        **told,
    )


def make_cancelled_event(plan: Plan, *, now: datetime, note: str | None = None) -> PlanEvent:
    """The event that ends a plan before its time."""
    if plan.status != "active":
        raise Conflict(f"Plan {plan.id!r} is {plan.status}; only active plans can be cancelled")
    return make_event(plan, "cancelled", now=now, note=note)


def make_settled_event(plan: Plan, *, followed: bool, now: datetime, note: str | None = None) -> PlanEvent:
    """The event that closes the account of a plan."""
    if plan.status == "settled":
        raise Conflict(f"Plan {plan.id!r} is settled; a plan is settled once")
    return make_event(plan, "settled", now=now, followed=followed, note=note)


def settle(plan: Plan, *, followed: bool, outcomes: Iterable[Outcome | None]) -> Settlement:
    """What followed a plan, and whether following it helped, per unit of outcome.

    The outcomes are those of trades made under the plan or, for a skip, of calls not made (of trades made nevertheless,
    where it was not followed). A skip, or less at stake, helped where they lost; anything else where they won. It is
    said only where the 95 % interval of the mean (Student's t) leaves zero out and there are 10 outcomes; and of a plan
    that was not followed only where it would have put less at stake.

    >>> from datetime import UTC
    >>> draft = PlanDraft(condition={"regime": "ranging"}, action={"type": "skip_trade"}, reasoning="three losses")
    >>> skip = make_plan(draft, owner_id="ana", now=datetime(2026, 6, 4, tzinfo=UTC))
    >>> not_made = [Outcome(value=r, unit="R") for r in (-1, -1, -1, 0.5, -1, -1, -1, -1, 0.5, -1)]
    >>> settle(skip, followed=True, outcomes=not_made).results[0].helped
    True
    """
    given = list(outcomes)
    held: dict[OutcomeUnit, list[float]] = {}
    for outcome in given:
        if outcome is not None:
            held.setdefault(outcome.unit, []).append(outcome.value)
    results = [_result(plan.action, unit, held[unit], followed=followed) for unit in sorted(held)]
    without = sum(outcome is None for outcome in given)
    return Settlement(plan_id=plan.id, followed=followed, results=tuple(results), without_outcome=without)


def compute_settlement(
    plan: Plan, events: Iterable[PlanEvent], episodes: Mapping[str, Outcome | None], *, followed: bool
) -> Settlement:
    """The settlement that a plan's outcome events lead to, by the outcomes of their episodes as they stand.

    An episode that was taken back is not among them. Of a skip that was followed, what counts are the calls not made;
    of one that was not, the trades made nevertheless.
    """
    told = (event for event in events if event.plan_id == plan.id and event.kind == "outcome")
    under = dict.fromkeys(event.episode_id or "" for event in told if event.followed in (None, followed))
    return settle(plan, followed=followed, outcomes=[episodes[each] for each in under if each in episodes])


def plan_from_belief(
    belief: Belief,
    *,
    credibility: float,
    n: int,
    now: datetime,
    deployment_id: str | None = None,
    existing: Iterable[Plan] = (),
) -> Plan | None:
    """The plan that a belief makes, once credible (≥ .9) on enough episodes (≥ 20); None where it makes none.

    Where it claims a worse rate, trades in its domain are skipped; where a better one, confidence is raised by a
    fifth. `existing` are the plans that bar another one from the same belief.
    """
    if credibility < BELIEF_CREDIBILITY or n < BELIEF_EPISODES or belief.retired_at is not None:
        return None
    source = PlanSource(kind="semantic", id=belief.id)
    if any(source in plan.sources for plan in existing):
        return None
    condition = _condition_of(belief)
    if condition is None:
        return None
    worse = {"type": "skip_trade"}
    better = {"type": "adjust_param", "parameter": "confidence", "magnitude": BELIEF_BOOST}
    draft = PlanDraft(
        condition=condition,
        action=worse if belief.claims == "below" else better,
        reasoning=f"{belief.proposition} (credibility {short(credibility)}, {n} episodes)"[:LONGEST_REASONING],
        deployment_id=deployment_id,
        strategy_name=belief.domain.strategy,
        priority=min(1.0, credibility),
        sources=(source,),
    )
    return make_plan(draft, owner_id=belief.owner_id, now=now)


def plan_from_mood(
    mood: Mood, *, owner_id: str, deployment_id: str | None, now: datetime, existing: Iterable[Plan] = ()
) -> Plan | None:
    """The plan that a deep drawdown makes: from a drawdown state of .75 on half the size, until it is below .5.

    None above that, and where one of the `existing` plans is from the mood of this deployment.

    >>> from datetime import UTC
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
    used = f"{mood.drawdown_state:.0%} of the accepted drawdown is used up"
    draft = PlanDraft(
        condition={"field": "drawdown_state", "op": ">=", "value": MOOD_ENDS},
        action={"type": "adjust_param", "parameter": "size", "magnitude": MOOD_FACTOR},
        reasoning=f"{used}: half the size until it is below {MOOD_ENDS:.0%}.",
        deployment_id=deployment_id,
        priority=MOOD_PRIORITY,
        expires_when={"field": "drawdown_state", "op": "<", "value": MOOD_ENDS},
        sources=(PlanSource(kind="affective", id=format_instant(mood.known_at or now)),),
    )
    return make_plan(draft, owner_id=owner_id, now=now)


def comes_from_mood(plan: Plan, deployment_id: str | None) -> bool:
    """Whether a plan came from the mood of a deployment."""
    return plan.deployment_id == deployment_id and any(source.kind == "affective" for source in plan.sources)


def _condition_of(belief: Belief) -> object | None:
    """The belief's domain and its validity conditions as one JSON condition; None where no condition can say both."""
    named = {name: getattr(belief.domain, name) for name in ("strategy", *DIMENSIONS)}
    domain = {name: value for name, value in named.items() if value is not None}
    parts = [part for part in (domain, json.loads(belief.conditions or "null")) if part]
    joined = parts[0] if len(parts) == 1 else {"all": parts}
    try:
        parse_condition(joined)
    except Invalid:  # neither of the two, or conditions as deep as a condition may be
        return None
    return joined


_Word = TypeVar("_Word", bound=str)


def _rank(plan: Plan) -> tuple[float, datetime, str]:
    return -plan.priority, plan.known_at, plan.id


def _once_each(*names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in names for name in each))


def _symbol(values: Mapping[str, object]) -> str | None:
    symbol = values.get("symbol")
    return symbol if isinstance(symbol, str) else None


def _fired(plan: Plan, at: datetime) -> Plan:
    status: PlanStatus = "fired" if plan.mode == "once" else plan.status
    first = at if plan.fired_at is None else plan.fired_at
    return replace(plan, status=status, times_fired=plan.times_fired + 1, fired_at=first, last_fired_at=at)


def _result(action: PlannedAction, unit: OutcomeUnit, values: list[float], *, followed: bool) -> UnitResult:
    moments = moments_of(values)
    ends = moments.interval(level=LEVEL)
    low, high = ends or (None, None)
    helped = _helped(action, low, high, followed=followed) if len(values) >= FEWEST_OUTCOMES else None
    return UnitResult(unit=unit, n=len(values), mean=moments.mean, low=low, high=high, helped=helped)


def _helped(action: PlannedAction, low: float | None, high: float | None, *, followed: bool) -> bool | None:
    if low is None or high is None or not (followed or action.lowers_exposure) or low <= 0 <= high:
        return None
    return (high < 0) == action.lowers_exposure


def _trigger_type(requested: str | None, stated: TriggerType | None, condition: Condition) -> TriggerType:
    """The trigger type as asked for or as stated inside the condition; else as its fields tell."""
    if requested is None:
        return stated or trigger_type_of(condition)
    named = one_of(requested, TRIGGER_TYPES, noun="a trigger type", field="trigger_type")
    if stated not in (None, named):
        raise Invalid(f"{named} here, and {stated} in the condition; give one", field="trigger_type")
    return named


def _expiry(at: datetime | None, *, now: datetime, has_condition: bool) -> datetime | None:
    if at is None:
        return None if has_condition else now + EXPIRES_AFTER
    at = to_utc(at, field="expires_at")
    if at <= now:
        raise Invalid(
            f"{format_instant(at)} is not after now, {format_instant(now)}; give a later one", field="expires_at"
        )
    return at


def _content(plan: Plan) -> str:
    """What tells plans made at one instant apart."""
    return canonical_json(
        [
            plan.deployment_id,
            plan.strategy_name,
            condition_text(plan.condition),
            action_json(plan.action),
            plan.reasoning,
            plan.priority,
            plan.mode,
            None if plan.expires_at is None else format_instant(plan.expires_at),
            None if plan.expires_when is None else condition_text(plan.expires_when),
        ]
    )


def one_of(value: object, known: tuple[_Word, ...], *, noun: str, field: str) -> _Word:
    for word in known:
        if value == word:
            return word
    raise Invalid(f"{value!r:.40} is not {noun}; {did_you_mean(str(value), known)}", field=field)


def _number(value: object, *, field: str) -> float:
    number = finite_number(value)
    if number is None:
        raise Invalid(f"{value!r:.40} is not a finite number; give one", field=field)
    return number


def _priority(value: object) -> float:
    number = _number(value, field="priority")
    if not 0 <= number <= 1:
        raise Invalid(f"{number} is out of range; give 0 to 1", field="priority")
    return number


def _line(value: object, *, field: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise Invalid(f"{value!r:.40} names no parameter; give one, like size", field=field)
    return value


def _reasoning(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_REASONING:
        raise Invalid(f"give why, in 1 to {LONGEST_REASONING} characters", field="reasoning")
    return value
