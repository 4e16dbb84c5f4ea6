"""A replayed session is the recorded one."""

import pytest

from backsight.core.errors import Conflict, NotFound
from backsight.core.orders import Order
from backsight.memory import Memory, RecordedTick, ReplayBroker, open_memory
from backsight.runtime.replay import recorded_responses, recorded_session, replay
from backsight.testing import T0, FakeClock
from runtime.test_live import BARS, START, Doubling, Turning, deployed, run_session
from support import dump, fresh_postgres


@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
def test_a_replayed_session_leaves_the_same_rows_and_prompts(
    memory: Memory, clock: FakeClock, target: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run_session(memory, clock, Turning())
    session = recorded_session(memory, "Turning@live")
    folder = tmp_path_factory.mktemp("replayed")
    url = f"sqlite:///{folder}/again.db" if target == "sqlite" else fresh_postgres()
    later = FakeClock(T0)
    with open_memory(url, owner="ana", actor="test", clock=later) as again:
        deployed(again)
        later.at = START
        replay(again, later, session, deployment="Turning@live", bars={"BTC": BARS})
        assert [each.shown_hash for each in recorded_session(again, "Turning@live")] == [
            each.shown_hash for each in session
        ]
        assert dump(again) == dump(memory)


def test_a_session_with_several_orders_and_answers_is_replayed(memory: Memory, clock: FakeClock) -> None:
    run_session(memory, clock, Doubling(), ticks=4)
    session = recorded_session(memory, "Turning@live")
    responses = recorded_responses(memory, session)
    later = FakeClock(T0)
    with open_memory("sqlite://", owner="ana", actor="test", clock=later) as again:
        deployed(again)
        later.at = START
        with pytest.raises(NotFound, match="pass the answers of recorded_responses"):
            replay(again, later, session, deployment="Turning@live", bars={"BTC": BARS})
        replay(again, later, session, deployment="Turning@live", bars={"BTC": BARS}, responses=responses)
        assert dump(again) == dump(memory)


def test_a_replay_with_another_decision_is_a_conflict_that_names_the_tick(memory: Memory, clock: FakeClock) -> None:
    run_session(memory, clock, Turning())
    decision = recorded_session(memory, "Turning@live")[1]
    tick = RecordedTick(
        at=decision.at,
        sequence=0,
        before=decision.before,
        after=decision.after,
        proposals=decision.proposals,
    )
    broker = ReplayBroker([tick])
    broker.turn_to_next()
    assert broker.snapshot() == decision.before
    with pytest.raises(Conflict, match="replay with the agent that was recorded"):
        broker.submit(Order(symbol="BTC", quantity=1.0))
    with pytest.raises(Conflict, match="the recording has ended"):
        broker.turn_to_next()
