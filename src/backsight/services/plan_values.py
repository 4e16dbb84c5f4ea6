"""The values that the conditions of plans compare: market, mood, calendar, and the trades of the deployment."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from backsight.core.context import ContextVector
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import OUTCOME_FIELDS, Scalar, condition_values
from backsight.core.memory.prospective import PlanState
from backsight.core.portfolio import Direction
from backsight.core.strategies import Deployment
from backsight.services.events import last_outcomes, next_event
from backsight.store.trades import last_entry_at
from backsight.store.view import View

EVENT_FIELDS = frozenset({"event.kind", "hours_to_event"})
SINCE_TRADE = frozenset({"hours_since_last_trade", "days_since_last_trade"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSubject:
    """What is about to be decided, as far as the caller knows it."""

    context: ContextVector | None = None
    symbol: str | None = None
    direction: Direction | None = None
    strategy: str | None = None
    event_kind: str | None = None
    """The next event by the caller's own calendar."""
    hours_to_event: float | None = None


def fields_of(plans: Iterable[PlanState]) -> frozenset[str]:
    """The fields that some plans compare."""
    return frozenset(field for state in plans for field in state.plan.asks)


def plan_values(
    view: View,
    deployment: Deployment | None,
    subject: PlanSubject,
    *,
    mood: Mood | None,
    fields: Collection[str],
    now: datetime | None,
) -> dict[str, Scalar]:
    """The values as of a view; what none of the `fields` needs is not read. Without `now` no time of day is known."""
    facts: dict[str, Scalar | None] = {}
    if subject.event_kind is not None or subject.hours_to_event is not None:
        facts = {"event.kind": subject.event_kind, "hours_to_event": subject.hours_to_event}
    elif not EVENT_FIELDS.isdisjoint(fields) and (event := next_event(view, subject.symbol)) is not None:
        facts = {"event.kind": event[0], "hours_to_event": event[1]}
    if not set(OUTCOME_FIELDS).isdisjoint(fields):
        facts |= last_outcomes(view, subject.symbol)
    if deployment is not None and not SINCE_TRADE.isdisjoint(fields):
        facts |= _since_last_trade(view, deployment)
    return condition_values(
        now=now,
        context=subject.context,
        mood=mood,
        strategy=subject.strategy if deployment is None else deployment.strategy_name,
        symbol=subject.symbol,
        direction=subject.direction,
        facts=facts,
    )


def _since_last_trade(view: View, deployment: Deployment) -> dict[str, Scalar | None]:
    """Hours and days since the last entry of a deployment or, before its first trade, since it was made."""
    last = last_entry_at(view, deployment.id) or deployment.known_at
    hours = max(0.0, _hours(view.as_of, last))
    return {"hours_since_last_trade": hours, "days_since_last_trade": hours / 24.0}


def _hours(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds() / 3_600.0
