"""Plans: if a condition holds, then an action, until the plan expires.

A plan is a fact that does not change. Its events say what became of it: `plan_state` applies them to the plan.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, assert_never, get_args

from backsight.core.errors import Conflict, Invalid
from backsight.core.ids import ShownAsJson, canonical_json, derive_id
from backsight.core.instants import format_instant, to_utc
from backsight.core.memory.conditions import (
    OF_TWO_TICKS,
    TRIGGER_TYPES,
    Condition,
    TriggerType,
    comparisons_in,
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

    def text(self) -> str:
        """Kind and id as a JSON array, as the store and answers have them."""
        return canonical_json([self.kind, self.id])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """If the condition holds, then the action, until the plan expires."""

    owner_id: str
    id: str
    deployment_id: str | None
    """The deployment the plan is for; None is every deployment of `strategy_name`."""
    strategy_name: str | None
    """The strategy the plan is for; None is every strategy."""
    trigger_type: TriggerType
    condition: Annotated[Condition, ShownAsJson(encode=condition_text)]
    action: PlannedAction
    reasoning: str
    priority: float
    """0 to 1; a plan with a larger priority comes first."""
    expires_at: datetime | None
    """From this instant on the plan does not apply; None where only `expires_when` ends it."""
    expires_when: Annotated[Condition | None, ShownAsJson(encode=condition_text)]
    sources: tuple[Annotated[PlanSource, ShownAsJson(encode=PlanSource.text)], ...]
    mode: PlanMode
    known_at: datetime
    recorded_at: datetime

    @property
    def asks(self) -> frozenset[str]:
        """The fields that the plan's conditions compare."""
        return frozenset(field for condition in self._conditions for field in fields_in(condition))

    @property
    def crosses(self) -> bool:
        """Whether the plan compares with the tick before."""
        comparisons = (each for condition in self._conditions for each in comparisons_in(condition))
        return any(each.op in OF_TWO_TICKS for each in comparisons)

    @property
    def is_of_market(self) -> bool:
        """Whether the plan depends on the instrument; if not, it holds for all instruments or for none."""
        return not INSTRUMENT_FIELDS.isdisjoint(self.asks)

    @property
    def _conditions(self) -> tuple[Condition, ...]:
        return (self.condition,) if self.expires_when is None else (self.condition, self.expires_when)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanState:
    """A plan as it was made, and what has become of it."""

    plan: Plan
    status: PlanStatus
    times_fired: int
    """How often the plan's condition began to hold."""
    fired_at: datetime | None
    """When the condition first began to hold."""
    last_fired_at: datetime | None
    ended_at: datetime | None
    """When the plan expired, was cancelled or was settled."""


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


def is_in_scope(plan: Plan, *, deployment_id: str | None, strategy_name: str | None) -> bool:
    """Whether a plan is for this deployment of this strategy."""
    return plan.deployment_id in (None, deployment_id) and plan.strategy_name in (None, strategy_name)


def plan_state(plan: Plan, events: Iterable[PlanEvent] = (), *, now: datetime | None = None) -> PlanState:
    """What has become of a plan by its events, given in any order; events of other plans are ignored.

    A plan past its expiry at `now` is over even if no check recorded that.
    """
    new = PlanState(plan=plan, status="active", times_fired=0, fired_at=None, last_fired_at=None, ended_at=None)
    state = apply_events(new, events)
    if state.status == "active" and now is not None and plan.expires_at is not None and now >= plan.expires_at:
        return replace(state, status="expired", ended_at=plan.expires_at)
    return state


def plans_after_events(plans: Iterable[Plan], events: Iterable[PlanEvent]) -> list[PlanState]:
    """Some plans, each after all of its events."""
    by_plan: dict[str, list[PlanEvent]] = {}
    for event in events:
        by_plan.setdefault(event.plan_id, []).append(event)
    return [plan_state(plan, by_plan.get(plan.id, ())) for plan in plans]


def apply_events(state: PlanState, events: Iterable[PlanEvent]) -> PlanState:
    """The state of a plan after more events, given in any order; events of other plans are ignored."""
    for event in sorted(events, key=event_order):
        if event.plan_id == state.plan.id:
            state = apply_event(state, event)
    return state


def apply_event(state: PlanState, event: PlanEvent) -> PlanState:
    """The state of a plan after one more event; an event that is no longer possible changes nothing."""
    at, active = event.known_at, state.status == "active"
    match event.kind:
        case "rising":
            return _fired(state, at) if active else state
        case "expired":
            # A plan that expired ended at its expiry, even if a check noticed it later.
            ended_at = at if state.plan.expires_at is None else min(at, state.plan.expires_at)
            return replace(state, status="expired", ended_at=ended_at) if active else state
        case "cancelled":
            return replace(state, status="cancelled", ended_at=at) if active else state
        case "settled":
            is_settled = state.status == "settled"
            return state if is_settled else replace(state, status="settled", ended_at=state.ended_at or at)
        case "falling" | "outcome":
            return state
    assert_never(event.kind)


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


def make_cancelled_event(state: PlanState, *, now: datetime, note: str | None = None) -> PlanEvent:
    """The event that cancels an active plan."""
    if state.status != "active":
        raise Conflict(f"Plan {state.plan.id!r} is {state.status}; only active plans can be cancelled")
    return make_event(state.plan, "cancelled", now=now, note=note)


def make_settled_event(state: PlanState, *, followed: bool, now: datetime, note: str | None = None) -> PlanEvent:
    """The event that settles a plan."""
    if state.status == "settled":
        raise Conflict(f"Plan {state.plan.id!r} is settled; a plan is settled once")
    return make_event(state.plan, "settled", now=now, followed=followed, note=note)


def _fired(state: PlanState, at: datetime) -> PlanState:
    status: PlanStatus = "fired" if state.plan.mode == "once" else state.status
    first = at if state.fired_at is None else state.fired_at
    return replace(state, status=status, times_fired=state.times_fired + 1, fired_at=first, last_fired_at=at)


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
