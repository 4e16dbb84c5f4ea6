"""Inactions: in a row for one reason they are one episode."""

from typing import Any

import pytest

from backsight.core.errors import Conflict
from backsight.memory import Memory
from backsight.testing import FakeClock, a_trade_call


def test_inactions_in_a_row_for_one_reason_are_counted(memory: Memory, clock: FakeClock) -> None:
    answers = []
    for reason in ("narrow", "narrow", "news", "narrow", "narrow"):
        answers.append(memory.remember_inaction(symbol="XAUUSD", strategy_name="VolBreakout", reason=reason))
        clock.advance(hours=1)
    assert [each.count for each in answers] == [1, 2, 1, 1, 2]
    assert answers[0].episode_id == answers[1].episode_id != answers[3].episode_id == answers[4].episode_id


def test_a_trade_ends_a_row_of_inactions(memory: Memory, clock: FakeClock) -> None:
    quiet: dict[str, Any] = {"symbol": "XAUUSD", "strategy_name": "VolBreakout", "reason": "narrow"}
    memory.remember_inaction(**quiet)
    clock.advance(hours=1)
    memory.remember_trade(**a_trade_call())
    clock.advance(hours=1)
    assert memory.remember_inaction(**quiet).count == 1


def test_an_inaction_recorded_twice_with_one_key_is_one(memory: Memory, clock: FakeClock) -> None:
    quiet: dict[str, Any] = {
        "symbol": "XAUUSD",
        "strategy_name": "VolBreakout",
        "reason": "narrow",
        "idempotency_key": "k",
    }
    first = memory.remember_inaction(**quiet)
    clock.advance(hours=1)
    again = memory.remember_inaction(**quiet)
    assert (again.replayed, again.count, again.known_at) == (True, 1, first.known_at)
    for other in ({"reason": "news"}, {"context": {"atr_h1": 3.0}}, {"context_regime": "ranging"}, {"tags": ["x"]}):
        with pytest.raises(Conflict, match="idempotency_key: already used for another inaction"):
            memory.remember_inaction(**quiet | other)
