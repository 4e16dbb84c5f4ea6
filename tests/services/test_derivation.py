"""Rows that follow from facts: they are the same in whatever order the facts came."""

import random
from datetime import timedelta
from typing import Any

import pytest

from backsight.core.memory import checkpoints
from backsight.core.memory.experience import BeliefRecord, learn_habits
from backsight.memory import Memory, open_memory
from backsight.services.belief_learning import beliefs_at, beliefs_changed_by, current_beliefs, shows_current_trades
from backsight.services.derivation import derive_rows
from backsight.services.habit_learning import episodes_by_strategy, habits_at, record_at, strategy_drift_at
from backsight.store.experience import BELIEFS, CELL_CHECKPOINTS
from backsight.store.mapping import Noun
from backsight.store.memories import teaching_trades
from backsight.store.view import View
from backsight.testing import T0, FakeClock
from services.test_learning import DEPLOYMENTS, healthy, settle_in, trade_call


def rows(memory: Memory) -> dict[Noun[Any], list[Any]]:
    """The derived rows, except checkpoints of cells: their places depend on when the trades arrived."""
    with memory.reading() as connection:
        derived = derive_rows(connection, memory.owner)
    return {noun: sorted(values, key=repr) for noun, values in derived.items() if noun is not CELL_CHECKPOINTS}


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
def test_late_trades_teach_the_same_as_trades_in_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "INTERVAL", 5 * seed)
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


def test_memory_as_of_an_instant_is_what_the_trades_known_then_teach(
    memory: Memory, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints and the trades since end in the same rows as all trades from the beginning."""
    monkeypatch.setattr(checkpoints, "INTERVAL", 5)
    settle_in(memory)
    memory.add_belief(proposition="BTC trends", symbol="BTC", mode="live")
    trades = years_trades(1)
    for call in trades:
        clock.at = max(clock.at, call["closed_at"])
        memory.remember_trade(**call)
    induced = [each.belief for each in memory.list_beliefs(mode="live").beliefs if each.belief.source == "induced"]
    memory.retire_belief(belief_id=induced[0].id)
    clock.advance(days=1)
    with memory.reading() as connection:
        instants = [call["closed_at"] for call in trades[::9]]
        for view in (memory.view(connection, at, seen_at) for at in instants for seen_at in (None, memory.now)):
            assert shows_current_trades(view, "live")
            assert same_as_learned(view)


def same_as_learned(view: View) -> bool:
    """Whether beliefs, habits, drift and record as of a view are those that its episodes teach."""
    beliefs = beliefs_at(view, "live")
    assert sorted(current_beliefs(view, "live"), key=repr) == sorted(beliefs.beliefs, key=repr)
    episodes = teaching_trades(view, mode="live")
    for strategy, own in episodes_by_strategy(episodes).items():
        habits = learn_habits(own, owner_id=view.owner, mode="live", strategy_name=strategy)
        rows = habits_at(view, "live", strategy_name=strategy, symbol=None)
        assert rows == sorted(habits.habits, key=lambda row: row.symbol)
        assert strategy_drift_at(view, "live", strategy) == habits.strategies[0]
        assert record_at(view, "live", strategy) == habits.trades[-1].earlier.add(habits.trades[-1].trade)
    ids = {record.evidence.episode_id for record in beliefs.evidence}
    changed = {episode.id for episode in episodes if beliefs_changed_by(view, "live", episode.id)}
    return changed == ids


def test_trades_of_one_instant_teach_in_the_order_in_which_they_came(memory: Memory, clock: FakeClock) -> None:
    settle_in(memory)
    for number, r in enumerate([1.0, -1.0, 1.0, -1.0, -1.0]):
        memory.remember_trade(**trade_call(number, T0, deployment=("A@main", "B@main")[number % 2], r=r))
    assert healthy(memory)
    assert memory.get_agent_state(deployment="A@main").mood.consecutive_losses == 1
    assert memory.get_agent_state(deployment="B@main").mood.consecutive_losses == 2
