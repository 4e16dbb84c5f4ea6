"""Plans: if a condition holds, then an action, until the plan expires.

A plan is a fact that does not change. Its events say what became of it: `apply_event` applies one event to a plan,
`apply_events` applies all of them.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, assert_never, get_args

from backsight.core.errors import Conflict, Invalid
from backsight.core.ids import canonical_json, derive_id
from backsight.core.instants import format_instant, to_utc
from backsight.core.memory.conditions import (
    TRIGGER_TYPES,
    Condition,
    TriggerType,
    comparisons_in,
    condition_from_text,
    condition_text,
    fields_in,
    parse_condition,
    stated_trigger,
    trigger_type_of,
)
from backsight.core.memory.kind import MemoryKind
from backsight.core.memory.planned_action import PlannedAction, action_json, checked_number, one_of, parse_action
from backsight.core.trades.trade import Outcome

PlanMode = Literal["while_true", "once"]
PlanStatus = Literal["active", "fired", "expired", "cancelled", "settled"]
PlanEventKind = Literal["rising", "falling", "expired", "cancelled", "settled", "outcome"]

MODES: tuple[PlanMode, ...] = get_args(PlanMode)
EXPIRES_AFTER = timedelta(days=30)
"""When a plan without an expiry ends."""
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
"""Condition fields that are read from the bars and quotes of an instrument."""
INSTRUMENT_FIELDS = MARKET_FIELDS | {"symbol", "direction"}
LONGEST_REASONING = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSource:
    """A memory that a plan was made from."""

    kind: MemoryKind
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """If the condition holds, then the action, until the plan expires; with what has become of the plan."""

    owner_id: str
    id: str
    deployment_id: str | None
    """The deployment the plan is for; None is every deployment of `strategy_name`."""
    strategy_name: str | None
    """The strategy the plan is for; None is every strategy."""
    trigger_type: TriggerType
    condition: Condition
    action: PlannedAction
    reasoning: str
    priority: float
    """0 to 1; a plan with a larger priority comes first."""
    expires_at: datetime | None
    """From this instant on the plan does not apply; None where only `expires_when` ends it."""
    expires_when: Condition | None
    sources: tuple[PlanSource, ...]
    mode: PlanMode
    known_at: datetime
    recorded_at: datetime
    status: PlanStatus = "active"
    times_fired: int = 0
    """How often the condition began to hold."""
    fired_at: datetime | None = None
    """When the condition first began to hold."""
    last_fired_at: datetime | None = None
    expired_at: datetime | None = None
    cancelled_at: datetime | None = None
    settled_at: datetime | None = None

    @property
    def asks(self) -> frozenset[str]:
        """The fields that the plan's conditions compare."""
        return frozenset(field for condition in self._conditions for field in fields_in(condition))

    @property
    def crosses(self) -> bool:
        """Whether the plan compares with the tick before."""
        comparisons = (each for condition in self._conditions for each in comparisons_in(condition))
        return any(each.op.startswith("crosses") for each in comparisons)

    @property
    def is_of_market(self) -> bool:
        """Whether the plan depends on the instrument; if not, it holds for all instruments or for none."""
        return not INSTRUMENT_FIELDS.isdisjoint(self.asks)

    @property
    def _conditions(self) -> tuple[Condition, ...]:
        return (self.condition,) if self.expires_when is None else (self.condition, self.expires_when)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """The row of a plan as it was made; conditions are canonical JSON, sources are JSON arrays of kind and id."""

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
    """An event in the life of a plan."""

    owner_id: str
    id: str
    plan_id: str
    kind: PlanEventKind
    symbol: str | None
    """The instrument that was checked, if the plan depends on one."""
    deployment_id: str | None = None
    """The deployment whose check recorded the event."""
    sequence: int = 0
    """Order among the events of the plan."""
    known_at: datetime
    recorded_at: datetime
    episode_id: str | None = None
    """Of an outcome: the episode of the trade made under the plan, or of the call that was not traded."""
    outcome: Outcome | None = None
    followed: bool | None = None
    note: str | None = None


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
    """The row of a plan."""
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
    """The plan of a row, before its events: `plan_from_record(plan_record(plan)) == plan` for a new plan."""
    sources = [json.loads(source) for source in row.sources]
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
        sources=tuple(PlanSource(kind=kind, id=memory_id) for kind, memory_id in sources),
        mode=row.mode,
        known_at=row.known_at,
        recorded_at=row.recorded_at,
    )


def is_in_scope(plan: Plan | PlanRecord, *, deployment_id: str | None, strategy_name: str | None) -> bool:
    """Whether a plan is for this deployment of this strategy."""
    return plan.deployment_id in (None, deployment_id) and plan.strategy_name in (None, strategy_name)


def apply_event(plan: Plan, event: PlanEvent) -> Plan:
    """The plan after one more event; an event that is no longer possible changes nothing."""
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
    """The plans of some rows, each after all of its events."""
    by_plan: dict[str, list[PlanEvent]] = {}
    for event in events:
        by_plan.setdefault(event.plan_id, []).append(event)
    return [apply_events(plan_from_record(row), by_plan.get(row.id, ())) for row in rows]


def apply_events(plan: Plan, events: Iterable[PlanEvent]) -> Plan:
    """The plan after all of its events, given in any order; events of other plans are ignored."""
    for event in sorted(events, key=event_order):
        if event.plan_id == plan.id:
            plan = apply_event(plan, event)
    return plan


def event_order(event: PlanEvent) -> tuple[datetime, int, datetime, str]:
    """The key by which the events of a plan are sorted."""
    return event.known_at, event.sequence, event.recorded_at, event.id


def number_event(event: PlanEvent, *, sequence: int, deployment_id: str | None = None) -> PlanEvent:
    """An event with its number among the events of its plan and its deployment; the id derives from both."""
    subject = event.symbol or event.episode_id
    seed = (event.plan_id, event.kind, format_instant(event.known_at), subject, deployment_id, sequence)
    return replace(event, id=derive_id("plan_event", *seed), sequence=sequence, deployment_id=deployment_id)


def make_event(
    plan: Plan,
    kind: PlanEventKind,
    *,
    now: datetime,
    symbol: str | None = None,
    recorded_at: datetime | None = None,
    **fields: Any,
) -> PlanEvent:
    """An event of a plan; the id derives from plan, kind, instant, and symbol or episode."""
    subject = symbol or fields.get("episode_id")
    return PlanEvent(
        owner_id=plan.owner_id,
        id=derive_id("plan_event", plan.id, kind, format_instant(now), subject),
        plan_id=plan.id,
        kind=kind,
        symbol=symbol,
        known_at=now,
        recorded_at=recorded_at or now,
        **fields,
    )


def make_cancelled_event(plan: Plan, *, now: datetime, note: str | None = None) -> PlanEvent:
    """The event that cancels an active plan."""
    if plan.status != "active":
        raise Conflict(f"Plan {plan.id!r} is {plan.status}; only active plans can be cancelled")
    return make_event(plan, "cancelled", now=now, note=note)


def make_settled_event(plan: Plan, *, followed: bool, now: datetime, note: str | None = None) -> PlanEvent:
    """The event that settles a plan."""
    if plan.status == "settled":
        raise Conflict(f"Plan {plan.id!r} is settled; a plan is settled once")
    return make_event(plan, "settled", now=now, followed=followed, note=note)


def _fired(plan: Plan, at: datetime) -> Plan:
    status: PlanStatus = "fired" if plan.mode == "once" else plan.status
    first = at if plan.fired_at is None else plan.fired_at
    return replace(plan, status=status, times_fired=plan.times_fired + 1, fired_at=first, last_fired_at=at)


def _trigger_type(requested: str | None, stated: TriggerType | None, condition: Condition) -> TriggerType:
    """The trigger type as requested, else as stated in the condition, else derived from the condition's fields."""
    if requested is None:
        return stated or trigger_type_of(condition)
    trigger_type = one_of(requested, TRIGGER_TYPES, noun="a trigger type", field="trigger_type")
    if stated not in (None, trigger_type):
        message = f"the trigger type is {trigger_type}, and the condition states {stated}; give one of the two"
        raise Invalid(message, field="trigger_type")
    return trigger_type


def _expiry(at: datetime | None, *, now: datetime, has_condition: bool) -> datetime | None:
    if at is None:
        return None if has_condition else now + EXPIRES_AFTER
    at = to_utc(at, field="expires_at")
    if at <= now:
        raise Invalid(
            f"{format_instant(at)} is not after now, {format_instant(now)}; give a later instant", field="expires_at"
        )
    return at


def _content(plan: Plan) -> str:
    """The content of a plan, which distinguishes plans made at one instant."""
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


def _priority(value: object) -> float:
    number = checked_number(value, field="priority")
    if not 0 <= number <= 1:
        raise Invalid(f"{number} is not a priority; give a number from 0 to 1", field="priority")
    return number


def _reasoning(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_REASONING:
        raise Invalid(
            f"the reasoning has no text or is too long; give 1 to {LONGEST_REASONING} characters", field="reasoning"
        )
    return value
