"""Deployments with their results."""

from backsight.memory import Memory
from backsight.testing import FakeClock, a_trade_call


def test_deployments_come_with_their_tally(memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call())
    clock.advance(minutes=2)
    memory.remember_trade(**a_trade_call(pnl=-100.0, pnl_r=-1.0))
    (summary,) = memory.get_my_deployments(detail="trades").deployments
    assert (summary.tally.trades, summary.tally.wins, summary.tally.pnl) == (2, 1, 1075.0)
    assert [trade.pnl for trade in summary.recent_trades] == [-100.0, 1175.0]
    assert memory.get_my_deployments().deployments[0].recent_trades == ()


def test_deployments_are_listed_as_of_an_instant(memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call())
    then = clock.at
    clock.advance(days=1)
    memory.remember_trade(**a_trade_call(strategy_name="Other"))
    assert [each.deployment.name for each in memory.get_my_deployments(as_of=then).deployments] == [
        "manual:VolBreakout"
    ]
    assert len(memory.get_my_deployments().deployments) == 2
