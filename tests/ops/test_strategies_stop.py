"""A stopped deployment begins nothing new; what has happened is still recorded."""

from typing import Any

import pytest

from backsight.core.decision import Segment, Verdict
from backsight.core.errors import Conflict, NotFound
from backsight.core.orders import Order
from backsight.memory import Memory
from backsight.testing import FakeClock, a_position, a_snapshot
from backsight.testing.runners import FakeRunner
from support import deployed

STOPPED: dict[str, Any] = {"deployment": "VolBreakout@main"}


@pytest.fixture
def desk(memory: Memory) -> Memory:
    deployed(memory)
    return memory


def opened(memory: Memory) -> tuple[Segment, ...]:
    at = memory.clock.now()
    return memory.open_tick(**STOPPED, at=at, before=a_snapshot(at=at)).segments


def test_a_stopped_deployment_opens_no_tick_until_it_is_resumed(desk: Memory, clock: FakeClock) -> None:
    before_the_stop = clock.now()
    earlier = opened(desk)
    clock.advance(hours=1)
    answer = desk.stop_deployment(**STOPPED, reason="it bled in chop")
    assert (answer.stopped_at, answer.replayed, answer.message) == (clock.now(), False, "Stopped VolBreakout@main.")
    clock.advance(hours=1)
    refusal = r"'VolBreakout@main' was stopped at 2026-06-04T11:00:00.* \(it bled in chop\); configure_deployment with"
    with pytest.raises(Conflict, match=refusal):
        opened(desk)
    with pytest.raises(Conflict, match=refusal):
        desk.claim_tick(**STOPPED, at=clock.now(), holder="loop")
    at = before_the_stop
    assert desk.open_tick(**STOPPED, at=at, before=a_snapshot(at=at)).segments == earlier
    resumed = desk.configure_deployment(**STOPPED, resume=True)
    assert (resumed.message, resumed.settings.stopped_at) == ("Resumed VolBreakout@main.", None)
    clock.advance(seconds=1)
    assert opened(desk)
    assert desk.claim_tick(**STOPPED, at=clock.now(), holder="loop").sequence == 0


def test_the_list_of_deployments_says_which_are_stopped_and_since_when(desk: Memory, clock: FakeClock) -> None:
    running = clock.now()
    clock.advance(hours=1)
    desk.stop_deployment(**STOPPED, reason="it bled in chop")
    (now,) = desk.get_my_deployments().deployments
    (then,) = desk.get_my_deployments(as_of=running).deployments
    assert (now.stopped_at, now.stop_reason, then.stopped_at) == (clock.now(), "it bled in chop", None)
    clock.advance(hours=1)
    again = desk.stop_deployment(**STOPPED, reason="another reason")
    assert (again.replayed, again.reason) == (True, "it bled in chop")
    assert again.message == "VolBreakout@main was already stopped at 2026-06-04 11:00."
    assert desk.verify_audit().intact


def test_a_tick_that_was_claimed_before_the_stop_is_closed(desk: Memory, clock: FakeClock) -> None:
    at = clock.now()
    desk.claim_tick(**STOPPED, at=at, holder="loop")
    desk.record_intent(**STOPPED, at=at, sequence=0, holder="loop", intent="{}")
    answer = desk.stop_deployment(**STOPPED)
    assert answer.unfinished == ("the loop 'loop' holds the account until 2026-06-04 10:02:00",)
    assert desk.claim_tick(**STOPPED, at=at, holder="loop").unfinished == "{}"
    bought = Order(symbol="BTC", quantity=1.0)
    desk.close_tick(
        **STOPPED,
        at=at,
        before=a_snapshot(at=at),
        proposal=bought,
        verdict=Verdict(kind="executed"),
        after=a_snapshot(a_position(), at=at),
    )
    again = desk.stop_deployment(**STOPPED)
    assert again.open_trades == ("BTC long",)
    assert "1 trade is still open and must be closed at the broker: BTC long." in again.message


def test_the_agent_of_a_stopped_deployment_is_not_run(desk: Memory) -> None:
    desk.runners = lambda _settings: FakeRunner()
    desk.configure_deployment(**STOPPED, runner="claude", default_prompt="Look.", schedule="@hourly")
    desk.stop_deployment(**STOPPED)
    with pytest.raises(Conflict, match="was stopped at"):
        desk.run_agent(**STOPPED)
    with pytest.raises(Conflict, match="was stopped at"):
        desk.chat_with_agent(**STOPPED, text="How are you?")
    assert desk.record_run(**STOPPED, prompt="Look.", output="Flat.").run.status == "succeeded"
    assert desk.configure_deployment(**STOPPED, resume=True).settings.schedule == "@hourly"
    assert desk.run_agent(**STOPPED, wait_seconds=30.0).run.status == "succeeded"


def test_what_cannot_be_stopped_is_named(desk: Memory) -> None:
    with pytest.raises(NotFound, match="deployment: no deployment 'VolBreakou'; get_my_deployments lists them"):
        desk.stop_deployment(deployment="VolBreakou")
    assert desk.configure_deployment(**STOPPED, resume=True).message == "It was not stopped."
