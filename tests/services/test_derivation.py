"""Rows that follow from facts: they are the same in whatever order the facts came."""

import random
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.memory.experience import BeliefRecord
from backsight.memory import Memory, open_memory
from backsight.services.derivation import derive_rows
from backsight.store.experience import BELIEFS
from backsight.store.mapping import Noun
from backsight.testing import T0, FakeClock
from services.test_learning import DEPLOYMENTS, healthy, settle_in, trade_call


def rows(memory: Memory) -> dict[Noun[Any], list[Any]]:
    with memory.reading() as connection:
        return {noun: sorted(values, key=repr) for noun, values in derive_rows(connection, memory.owner).items()}


def years_trades(seed: int) -> list[dict[str, Any]]:
    """Trades with an edge in one regime only, each at its own instant."""
    rng, calls = random.Random(seed), []
    for number in range(140):
        trending = rng.random() < 0.5
        r = 1.5 if rng.random() < (0.95 if trending else 0.2) else -1.0
        at = T0 + timedelta(hours=number * 9 + rng.random())
        regime = "trending_up" if trending else "ranging"
        deployment, symbol = rng.choice(DEPLOYMENTS), rng.choice(["BTC", "ETH"])
        calls.append(trade_call(number, at, deployment=deployment, r=r, symbol=symbol, context_regime=regime))
    return calls


@pytest.mark.parametrize("seed", [1, 2])
def test_late_trades_teach_the_same_as_trades_in_time(seed: int) -> None:
    trades = years_trades(seed)
    end = T0 + timedelta(days=60)
    in_time, late = (settle_in(open_memory("sqlite://", clock=FakeClock(end))) for _ in range(2))
    for call in trades:
        in_time.remember_trade(**call)
    shuffled = trades[::2] + random.Random(seed).sample(trades[1::2], len(trades[1::2]))
    for call in shuffled:
        late.remember_trade(**call)
    assert healthy(late)
    assert healthy(in_time)
    derived = rows(late)
    assert derived == rows(in_time)
    beliefs: list[BeliefRecord] = derived[BELIEFS]
    assert any(each.standing.belief.source == "induced" for each in beliefs)


def test_trades_of_one_instant_teach_in_the_order_in_which_they_came(memory: Memory, clock: FakeClock) -> None:
    settle_in(memory)
    for number, r in enumerate([1.0, -1.0, 1.0, -1.0, -1.0]):
        memory.remember_trade(**trade_call(number, T0, deployment=("A@main", "B@main")[number % 2], r=r))
    assert healthy(memory)
    assert memory.get_agent_state(deployment="A@main").mood.consecutive_losses == 1
    assert memory.get_agent_state(deployment="B@main").mood.consecutive_losses == 2
