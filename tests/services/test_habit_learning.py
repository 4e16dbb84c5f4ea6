"""Stored habits equal those that are learned again, and are those of one strategy and symbol."""

from backsight.memory import Memory
from backsight.services.habit_learning import (
    SkillKey,
    episodes_by_strategy,
    falling_outcomes_since,
    habits_at,
    rebuild_habits,
    record_at,
    skill_key,
    strategy_drift_at,
)
from backsight.store.memories import current_teaching_trades
from backsight.testing import FakeClock, a_trade_call, an_episode


def traded(memory: Memory, clock: FakeClock, results: list[float]) -> None:
    for r in results:
        clock.advance(days=1)
        memory.remember_trade(**a_trade_call(pnl=100 * r, pnl_r=r))


def test_stored_habits_are_those_that_are_learned_again(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, [1.0, -1.0, 2.0] * 5)
    with memory.writing() as transaction:
        now = memory.view(transaction.connection)
        stored_rows = habits_at(now, "live", strategy_name=None, symbol=None)
        again = memory.view(transaction.connection, seen_at=memory.now)
        assert habits_at(again, "live", strategy_name=None, symbol=None) == stored_rows
        (row,) = stored_rows
        trades = current_teaching_trades(transaction.connection, memory.owner, mode="live")
        rebuild_habits(transaction, SkillKey(memory.owner, "live", row.strategy_name), trades)
        assert habits_at(now, "live", strategy_name=None, symbol=None) == [row]
        assert habits_at(now, "live", strategy_name="another", symbol=None) == []


def test_the_record_of_a_strategy_is_that_of_the_view(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, [1.0, -1.0, 2.0])
    then = memory.now
    traded(memory, clock, [-1.0] * 4)
    with memory.reading() as connection:
        views = (memory.view(connection), memory.view(connection, seen_at=memory.now), memory.view(connection, then))
        records = [record_at(view, "live", "VolBreakout") for view in views]
        assert records[0] == records[1]
        assert [(record.n, record.wins) for record in records] == [(7, 2), (7, 2), (3, 2)]
        assert record_at(views[0], "live", "another").n == 0


def test_outcomes_fall_since_about_the_turn(memory: Memory, clock: FakeClock) -> None:
    traded(memory, clock, [0.9, 1.1] * 30)
    with memory.reading() as connection:
        view = memory.view(connection)
        (row,) = habits_at(view, "live", strategy_name=None, symbol=None)
        assert falling_outcomes_since(view, "live", strategy_name=row.strategy_name, symbols=[row.symbol]) == {}
    turn = memory.now
    traded(memory, clock, [-0.9, -1.1] * 10)
    with memory.reading() as connection:
        view, again = memory.view(connection), memory.view(connection, seen_at=memory.now)
        declines = falling_outcomes_since(view, "live", strategy_name=row.strategy_name, symbols=[row.symbol])
        assert set(declines) == {(row.strategy_name, row.symbol), (row.strategy_name, None)}
        assert all(abs((since - turn).days) <= 3 for since in declines.values())
        assert declines == falling_outcomes_since(again, "live", strategy_name=row.strategy_name, symbols=[row.symbol])


def test_a_fall_of_the_whole_strategy_excludes_earlier_trades_in_every_symbol(memory: Memory, clock: FakeClock) -> None:
    """Twenty symbols, each with too few days for a detector of its own."""
    symbols = [f"S{number}" for number in range(20)]
    for day, r in enumerate([0.9, 1.1] * 40 + [-0.9, -1.1] * 10):
        clock.advance(days=1)
        memory.remember_trade(**a_trade_call(pnl=100 * r, pnl_r=r, symbol=symbols[day % 20]))
    name = str(a_trade_call()["strategy_name"])
    with memory.reading() as connection:
        view, again = memory.view(connection), memory.view(connection, seen_at=memory.now)
        declines = falling_outcomes_since(view, "live", strategy_name=name, symbols=["S3"])
        assert set(declines) == {(name, None)}
        assert declines == falling_outcomes_since(again, "live", strategy_name=name, symbols=["S3"])
        assert strategy_drift_at(view, "live", name) == strategy_drift_at(again, "live", name)
    advice = memory.position_size(symbol="S3", direction="long", strategy_name=name)
    assert (advice.since, advice.left_out) == (declines[name, None], 80)
    assert advice.size.recommended == 0.0
    assert memory.verify_audit().findings == ()


def test_episodes_are_grouped_by_strategy_in_alphabetical_order() -> None:
    episodes = [an_episode(number, strategy_name=name) for number, name in enumerate("bab")]
    assert episodes_by_strategy(episodes) == {"a": [episodes[1]], "b": [episodes[0], episodes[2]]}
    assert skill_key(episodes[0]) == SkillKey("ana", "live", "b")
