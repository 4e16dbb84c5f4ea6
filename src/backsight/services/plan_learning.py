"""What learning does to plans: the mood makes one, and the outcomes that followed plans are recorded with them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from backsight.core.instants import Horizon
from backsight.core.memory.affective import Mood
from backsight.core.memory.episodic import Episode
from backsight.core.memory.plan_origins import (
    MOOD_BEGINS,
    MOOD_ENDS,
    comes_from_mood,
    plan_from_mood,
)
from backsight.core.memory.prospective import (
    Plan,
    make_event,
    number_event,
    plans_after_events,
)
from backsight.core.strategies import Deployment
from backsight.services.plans import plans_holding_at
from backsight.store import experience as stored_experience
from backsight.store import plans as stored
from backsight.store.transaction import Transaction
from backsight.store.view import View


def make_mood_plan(transaction: Transaction, deployment: Deployment, mood: Mood, *, now: datetime) -> tuple[str, ...]:
    """Make the plan that a deep drawdown calls for; return its id if it is new.

    A plan from the mood of the same deployment prevents another one until it expires.
    """
    if mood.drawdown_state < MOOD_BEGINS:
        return ()
    connection, owner = transaction.connection, deployment.owner_id
    view = View(connection, owner, Horizon(as_of=now))
    plans = stored.unexpired_plans(view, deployment_id=deployment.id, strategy_name=deployment.strategy_name)
    preventing = _mood_plans_before_recovery(view, deployment, plans)
    plan = plan_from_mood(mood, owner_id=owner, deployment_id=deployment.id, now=now, existing=preventing)
    if plan is None or stored.plan(connection, owner, plan.id) is not None:
        return ()
    transaction.add(stored.PLANS, plan)
    return (plan.id,)


def _mood_plans_before_recovery(view: View, deployment: Deployment, plans: Iterable[Plan]) -> list[Plan]:
    """The mood plans of a deployment that are active, or whose drawdown the account has not come out of since."""
    own = [plan for plan in plans if comes_from_mood(plan, deployment.id)]
    events = stored.events_of(view, [plan.id for plan in own])
    return [
        state.plan
        for state in plans_after_events(own, events)
        if state.status == "active" or not _has_recovered(view, deployment, state.plan)
    ]


def _has_recovered(view: View, deployment: Deployment, plan: Plan) -> bool:
    """Whether the account has come out of the drawdown in which a plan was made."""
    return stored_experience.was_below_drawdown_state(
        view.connection, view.owner, deployment.account_id, since=plan.known_at, below=MOOD_ENDS
    )


def record_outcome(
    transaction: Transaction, deployment: Deployment, episode: Episode, *, recorded_at: datetime
) -> None:
    """Record how a trade or a call ended with the plans that held when it began.

    A call counts only for a plan to skip trades, as what the plan left out.
    """
    connection = transaction.connection
    if episode.opened_at is None:
        return
    for plan in plans_holding_at(connection, deployment, episode.symbol, episode.opened_at):
        is_skip = plan.action.kind == "skip_trade"
        if episode.kind == "call" and not is_skip:
            continue
        events = stored.events_of(View(connection, deployment.owner_id, Horizon(as_of=episode.known_at)), [plan.id])
        if any(event.kind == "outcome" and event.episode_id == episode.id for event in events):
            continue
        event = make_event(
            plan,
            "outcome",
            now=episode.known_at,
            recorded_at=recorded_at,
            episode_id=episode.id,
            outcome=episode.outcome,
            followed=episode.kind == "call" if is_skip else None,
        )
        event = number_event(event, sequence=len(events), deployment_id=deployment.id)
        transaction.add(stored.PLAN_EVENTS, event)


def record_outcomes(
    transaction: Transaction, deployments: Mapping[str, Deployment], episodes: Sequence[Episode]
) -> None:
    """Record how many trades ended; `deployments` are theirs, by id. Trades before the first plan are skipped."""
    if not episodes:
        return
    first = stored.first_plan_known_at(transaction.connection, episodes[0].owner_id)
    for episode in episodes:
        if first is not None and episode.opened_at is not None and episode.opened_at >= first:
            record_outcome(transaction, deployments[episode.deployment_id], episode, recorded_at=episode.recorded_at)
