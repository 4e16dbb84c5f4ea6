"""Check plans at an instant: which conditions begin to hold, cease to hold, and which plans expire; and record it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from backsight.core.decision import Decision, LastTick
from backsight.core.instants import JUST_BEFORE, Horizon
from backsight.core.memory.affective import Mood
from backsight.core.memory.conditions import STATE_FIELDS, Scalar
from backsight.core.memory.plan_check import PlanCheck, check_plans, join_checks, plans_holding
from backsight.core.memory.prospective import MARKET_FIELDS, PlanEvent, number_event
from backsight.core.orders import entry_direction
from backsight.core.portfolio import Direction
from backsight.core.strategies import Deployment
from backsight.services.deployments import account_of
from backsight.services.market import context_at, recent_bars
from backsight.services.mood import mood_at, mood_in
from backsight.services.plan_values import PlanSubject, fields_of, plan_values
from backsight.services.plans import OpenPlans, count_events, open_plans
from backsight.services.present_state import state_at_tick
from backsight.store import plans as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInputs:
    """What the conditions of plans are checked against at one instant."""

    values: Mapping[str, object]
    """By field name, as `condition_values` makes them."""
    former_values: Mapping[str, object] | None
    """The values at the tick before, for crossings."""
    symbol: str | None
    now: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheckResult:
    """The result of a check, the events that it makes, and the open plans after these events."""

    check: PlanCheck
    values: Mapping[str, object]
    """The values that the conditions were checked against."""
    new_events: tuple[PlanEvent, ...]
    open: OpenPlans

    def record(self, transaction: Transaction) -> None:
        """Store the events; a check that is repeated makes none."""
        for event in self.new_events:
            transaction.add(stored.PLAN_EVENTS, event)


def check_open_plans(deployment: Deployment | None, candidates: OpenPlans, inputs: CheckInputs) -> PlanCheckResult:
    """Check open plans: what begins, ends and expires now. Before the first deployment, the events belong to none."""
    events, deployment_id = candidates.events, None if deployment is None else deployment.id
    check = partial(check_plans, now=inputs.now, former_values=inputs.former_values, recorded_at=inputs.recorded_at)
    # A plan that does not depend on the instrument is checked once for all symbols.
    values_without_symbol = {name: value for name, value in inputs.values.items() if name != "symbol"}
    joined = join_checks(
        check(
            [state for state in candidates.plans if not state.plan.is_of_market],
            values_without_symbol,
            holding=plans_holding(events, symbol=None, deployment_id=deployment_id),
        ),
        check(
            [state for state in candidates.plans if state.plan.is_of_market],
            inputs.values,
            holding=plans_holding(events, symbol=inputs.symbol, deployment_id=deployment_id),
        ),
    )
    new_events = tuple(
        number_event(event, sequence=count_events(events, event.plan_id), deployment_id=deployment_id)
        for event in (*joined.rising, *joined.falling, *joined.expired)
    )
    return PlanCheckResult(check=joined, values=inputs.values, new_events=new_events, open=candidates.after(new_events))


def check_plans_at_tick(
    transaction: Transaction,
    deployment: Deployment,
    decision: Decision,
    last: LastTick | None,
) -> list[PlanCheck]:
    """Check the plans of a deployment at a tick, in every symbol that it holds or decides on."""
    connection = transaction.connection
    candidates = open_plans(View(connection, deployment.owner_id, Horizon(as_of=decision.at)), deployment)
    if not candidates.plans:
        return []
    orders, before = [each.order for each in decision.proposals], decision.before
    symbols: list[str | None] = [order.symbol for order in orders]
    symbols += [position.symbol for position in before.portfolio.positions]
    fields, mood = fields_of(candidates.plans), _mood_shown(connection, deployment, decision, candidates)
    needs_former = last is not None and any(state.plan.crosses for state in candidates.plans)
    checks: list[PlanCheck] = []
    for symbol in dict.fromkeys(symbols or [None]):
        directions = (entry_direction(order, before) for order in orders if order.symbol == symbol)
        direction = next((each for each in directions if each is not None), None)
        inputs = CheckInputs(
            values=values_at_tick(connection, deployment, symbol, direction, at=decision.at, fields=fields, mood=mood),
            former_values=former_values(connection, deployment, symbol, at=last.at, fields=fields)
            if last is not None and needs_former
            else None,
            symbol=symbol,
            now=decision.at,
            recorded_at=decision.recorded_at,
        )
        result = check_open_plans(deployment, candidates, inputs)
        result.record(transaction)
        candidates = result.open
        checks.append(result.check)
    return checks


def _mood_shown(connection: Connection, deployment: Deployment, decision: Decision, plans: OpenPlans) -> Mood:
    """The mood that the prompt of a tick shows: before the decision, after what the snapshot tells."""
    at, view = decision.at, View(connection, deployment.owner_id, Horizon(as_of=decision.at - JUST_BEFORE))
    if STATE_FIELDS.isdisjoint(fields_of(plans.plans)):
        return mood_in(view, deployment)
    account, sequence, recorded_at = account_of(connection, deployment), decision.sequence, decision.recorded_at
    return state_at_tick(
        view, deployment, account, decision.before, at=at, sequence=sequence, unstored=(), recorded_at=recorded_at
    ).mood


def former_values(
    connection: Connection, deployment: Deployment, symbol: str | None, *, at: datetime, fields: frozenset[str]
) -> dict[str, Scalar]:
    """The values at the tick before, with which crossings compare; the mood is the one that this tick left."""
    mood = mood_at(connection, deployment, at)
    return values_at_tick(connection, deployment, symbol, None, at=at, fields=fields, mood=mood)


def values_at_tick(
    connection: Connection,
    deployment: Deployment,
    symbol: str | None,
    direction: Direction | None,
    *,
    at: datetime,
    fields: frozenset[str],
    mood: Mood,
) -> dict[str, Scalar]:
    """The values that conditions may compare at a tick, with the market by its stored bars."""
    view = View(connection, deployment.owner_id, Horizon(as_of=at))
    context = None
    if symbol is not None and not MARKET_FIELDS.isdisjoint(fields):
        context = context_at(symbol, at, recent_bars(view, symbol))
    subject = PlanSubject(context=context, symbol=symbol, direction=direction)
    return plan_values(view, deployment, subject, mood=mood, fields=fields, now=at)
