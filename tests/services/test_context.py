"""The context of an operation: one instant, and one link of the audit chain for what it changed."""

from datetime import datetime, timedelta

import pytest

from backsight.adapters.clocks import SystemClock
from backsight.core.errors import Unavailable
from backsight.memory import Memory, open_memory, open_simulation
from backsight.services.context import no_reflectors
from backsight.store import audit
from backsight.testing import T0, FakeClock, a_trade_call


def test_a_context_of_one_operation_has_one_instant(memory: Memory, clock: FakeClock) -> None:
    context = memory.at_one_instant(operation="x", request={})
    clock.advance(hours=1)
    assert (context.now, memory.now) == (T0, T0 + timedelta(hours=1))
    assert context.horizon(None, None).as_of == T0
    assert context.horizon(T0 - timedelta(days=1), T0).seen_at == T0


def test_a_command_has_the_instant_at_which_it_acquired_the_lock(memory: Memory, clock: FakeClock) -> None:
    waiting = memory.at_one_instant(operation="x", request={})
    clock.advance(hours=1)
    with waiting.writing():
        clock.advance(hours=1)
        assert waiting.now == T0 + timedelta(hours=1)
    clock.at = T0
    with waiting.writing():
        assert waiting.now == T0 + timedelta(hours=1)  # a clock that is set back does not take the operation back


def test_a_trade_that_waited_for_the_lock_is_not_late(memory: Memory, clock: FakeClock) -> None:
    class Waiting(FakeClock):
        """Shows an earlier time to the first reading than to all others: the command waits in between."""

        def now(self) -> datetime:
            self.at, before = T0 + timedelta(minutes=1), self.at
            return before

    slow = Memory(database=memory.database, clock=Waiting(T0), owner=memory.owner, actor="slow")
    clock.at = T0 + timedelta(seconds=30)
    memory.remember_trade(**a_trade_call())
    waited = slow.remember_trade(**a_trade_call(pnl=5.0, pnl_r=None)).trade
    assert waited.closed_at == waited.recorded_at == T0 + timedelta(minutes=1)


def test_a_clock_that_was_set_back_hides_nothing_and_the_answer_says_so(url: str) -> None:
    ahead = FakeClock(SystemClock().now() + timedelta(hours=1))
    with open_memory(url, owner="ana", clock=ahead) as memory:
        for number in range(6):
            ahead.advance(seconds=1)
            memory.remember_trade(**a_trade_call(idempotency_key=str(number)))
    with open_memory(url, owner="ana") as memory:
        recall = memory.recall_memories(symbol="XAUUSD")
        assert (recall.candidates, recall.as_of) == (6, ahead.at)
        assert recall.message.startswith("Check the clock: this machine's is 3,")
        assert len(memory.list_trades().trades) == 6
        then = memory.recall_memories(symbol="XAUUSD", as_of=ahead.at - timedelta(seconds=4))
        assert (then.candidates, "clock" in then.message) == (2, False)


def test_a_simulation_never_sees_past_its_clock(clock: FakeClock) -> None:
    with open_simulation(clock) as memory:
        memory.remember_trade(**a_trade_call())
        clock.at = T0 - timedelta(hours=1)
        assert memory.recall_memories(symbol="XAUUSD").candidates == 0


def test_equal_requests_have_equal_digests_whatever_their_key(memory: Memory) -> None:
    requests: list[dict[str, object]] = [
        {"symbol": "BTC", "at": T0, "idempotency_key": "a"},
        {"at": T0, "symbol": "BTC", "idempotency_key": "b"},
        {"symbol": "ETH", "at": T0, "idempotency_key": "a"},
    ]
    contexts = [memory.at_one_instant(operation="x", request=request) for request in requests]
    digests = [context.request_digest for context in contexts]
    assert digests[0] == digests[1] != digests[2]
    assert contexts[0].arguments(without=("at", "idempotency_key")) == {"symbol": "BTC"}


def test_a_command_that_changed_nothing_leaves_no_link(memory: Memory) -> None:
    with memory.writing():
        pass
    with memory.reading() as connection:
        assert audit.head(connection, memory.owner).sequence == 0
    memory.remember_trade(**a_trade_call())
    with memory.reading() as connection:
        assert audit.head(connection, memory.owner).sequence == 1


def test_without_language_models_none_can_be_asked() -> None:
    with pytest.raises(Unavailable, match="'small' cannot be asked; open the memory with reflectors"):
        no_reflectors("small")
