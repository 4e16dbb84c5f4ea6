"""Behavior by strategy and symbol: the same rows for an analysis and a recall, each with the versions it pools."""

from datetime import timedelta

from backsight.memory import Memory
from backsight.services.behavior import VersionShare, behaviors_at, strategy_drifts_at
from backsight.testing import T0, FakeClock, a_trade_call


def remember(memory: Memory, clock: FakeClock, symbol: str, strategy_name: str = "S") -> None:
    clock.advance(hours=1)
    memory.remember_trade(**a_trade_call(symbol=symbol, strategy_name=strategy_name))


def test_a_strategy_and_a_symbol_choose_the_rows_and_their_versions(memory: Memory, clock: FakeClock) -> None:
    for symbol, strategy_name in (("BTC", "S"), ("BTC", "S"), ("ETH", "S"), ("BTC", "T")):
        remember(memory, clock, symbol, strategy_name)
    with memory.reading() as connection:
        view = memory.view(connection)
        every = behaviors_at(memory, view, "live", strategy_name=None, symbol=None)
        (own,) = behaviors_at(memory, view, "live", strategy_name="S", symbol="BTC")
    assert [(each.strategy_name, each.symbol) for each in every] == [("S", "BTC"), ("S", "ETH"), ("T", "BTC")]
    assert own == every[0]
    assert (own.habits.n, own.versions) == (2, (VersionShare(version=None, trades=2),))


def test_the_drift_of_a_strategy_as_a_whole_is_that_of_the_view(memory: Memory, clock: FakeClock) -> None:
    for symbol in ("BTC", "ETH", "BTC"):
        clock.advance(days=1)
        remember(memory, clock, symbol)
    with memory.reading() as connection:
        now, again = memory.view(connection), memory.view(connection, seen_at=memory.now)
        (whole,) = strategy_drifts_at(now, "live", ["S", "S", "another"])
        assert strategy_drifts_at(again, "live", ["S"]) == (whole,)
    assert [(each.series, each.values, each.degrading) for each in whole.drift] == [("R", 2, False)]


def test_other_modes_and_earlier_instants_have_no_rows(memory: Memory, clock: FakeClock) -> None:
    remember(memory, clock, "BTC")
    with memory.reading() as connection:
        assert behaviors_at(memory, memory.view(connection), "sim", strategy_name=None, symbol=None) == ()
        before = memory.view(connection, T0 - timedelta(days=1))
        assert behaviors_at(memory, before, "live", strategy_name=None, symbol=None) == ()
