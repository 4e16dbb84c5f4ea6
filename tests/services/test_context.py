"""The context of an operation: one instant, and one link of the audit chain for what it changed."""

from datetime import timedelta

import pytest

from backsight.core.errors import Unavailable
from backsight.memory import Memory
from backsight.services.context import no_reflectors
from backsight.store import audit
from backsight.testing import T0, FakeClock, a_trade_call


def test_a_context_of_one_operation_has_one_instant(memory: Memory, clock: FakeClock) -> None:
    context = memory.at_one_instant(operation="x", request={})
    clock.advance(hours=1)
    assert (context.now, memory.now) == (T0, T0 + timedelta(hours=1))
    assert context.horizon(None, None).as_of == T0
    assert context.horizon(T0 - timedelta(days=1), T0).seen_at == T0


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
