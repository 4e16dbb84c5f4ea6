"""The values that conditions compare: what no plan needs is not read, and the caller's calendar wins."""

from backsight.core.memory.affective import Mood
from backsight.memory import Memory
from backsight.services.deployments import deployment_named
from backsight.services.plan_values import PlanSubject, fields_of, plan_values
from backsight.testing import T0, FakeClock, a_trade_call
from services.test_plans import DEPLOYMENT, Desk, create_plan
from support import deployed


def test_the_fields_of_plans_are_those_of_their_conditions_and_ends(desk: Desk) -> None:
    create_plan(desk.memory, {"hour": 9}, expires_when={"regime": "ranging"})
    assert fields_of(desk.memory.list_plans().plans) == {"hour", "regime"}


def test_time_since_the_last_entry_is_read_only_where_a_plan_needs_it(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    clock.advance(hours=30)

    def values(*fields: str) -> dict[str, object]:
        with memory.reading() as connection:
            deployment = deployment_named(connection, memory.owner, DEPLOYMENT)
            view = memory.view(connection)
            return dict(plan_values(view, deployment, PlanSubject(), mood=Mood(), fields=fields, now=clock.now()))

    assert "hours_since_last_trade" not in values("hour")
    assert (values("hours_since_last_trade")["hours_since_last_trade"]) == 30.0
    memory.remember_trade(**a_trade_call(deployment=DEPLOYMENT, opened_at=T0, closed_at=clock.now()))
    clock.advance(hours=18)
    memory.remember_trade(**a_trade_call(deployment=DEPLOYMENT, closed_at=clock.now(), idempotency_key="2"))
    assert values("days_since_last_trade")["days_since_last_trade"] == 0.0
    clock.advance(hours=36)
    assert values("days_since_last_trade")["days_since_last_trade"] == 1.5


def test_the_callers_event_is_the_next_one(desk: Desk) -> None:
    memory = desk.memory
    with memory.reading() as connection:
        subject = PlanSubject(event_kind="nfp", hours_to_event=2.0)
        values = plan_values(memory.view(connection), None, subject, mood=None, fields=("event.kind",), now=None)
    assert values == {"event.kind": "nfp", "hours_to_event": 2.0}
