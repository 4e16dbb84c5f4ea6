"""Reported trades: each mode has its own account; on a deployment that runs by ticks they belong to its ledger."""

from datetime import timedelta

import pytest

from backsight.core.errors import Conflict, Invalid
from backsight.core.portfolio import Mode
from backsight.memory import Memory
from backsight.testing import T0, FakeClock, a_trade_call
from support import deployed, ticked


def test_trades_of_each_mode_are_remembered_apart(memory: Memory, clock: FakeClock) -> None:
    names: dict[Mode, str] = {"live": "manual:S", "paper": "manual-paper:S", "sim": "manual-sim:S"}
    accounts = set()
    for mode, name in names.items():
        clock.advance(hours=1)
        answer = memory.remember_trade(**a_trade_call(strategy_name="S", mode=mode, equity=10_000.0))
        assert (answer.trade.mode, answer.message) == (mode, f"Remembered. For '{name}' ({mode}).")
        assert memory.list_trades(mode=mode).trades == (answer.trade,)
        assert memory.get_agent_state(deployment=name).equity_seen == 1
        accounts.add(answer.trade.account_id)
    assert len(accounts) == 3
    assert memory.remember_trade(**a_trade_call(strategy_name="S", idempotency_key="new")).trade.mode == "live"
    assert memory.verify_audit().intact


def test_a_mode_that_the_deployment_does_not_have_is_refused(memory: Memory) -> None:
    deployed(memory)
    rows = memory.verify_audit().rows
    with pytest.raises(Invalid, match="mode: deployment 'VolBreakout@main' is live, not paper; leave out the mode or"):
        memory.remember_trade(**a_trade_call(deployment="VolBreakout@main", mode="paper"))
    assert memory.verify_audit().rows == rows
    assert memory.remember_trade(**a_trade_call(deployment="VolBreakout@main", mode="live")).trade.mode == "live"


def test_on_a_deployment_that_runs_by_ticks_a_remembered_trade_adds_words_to_the_ledgers_trade(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    (ledger,) = memory.list_trades(deployment="VolBreakout@main").trades
    assert ledger.pnl == -1.5  # half in at 99, half at 101, out at 100, and a fee that came later
    call = a_trade_call(
        deployment="VolBreakout@main", symbol="BTC", pnl=ledger.pnl, pnl_r=None, reflection="Too early.", tags=["a"]
    )
    clock.advance(minutes=1)
    answer = memory.remember_trade(**call)
    assert (answer.trade.id, answer.trade.reflection, answer.trade.tags) == (ledger.id, "Too early.", ("a",))
    assert answer.trade.entry_price == ledger.entry_price
    assert memory.remember_trade(**call).replayed
    before = memory.get_trade(trade_id=ledger.id, as_of=clock.now() - timedelta(minutes=1))
    assert before.trade.reflection is None  # type: ignore[union-attr]
    assert memory.get_trade(trade_id=ledger.id).episode.reflection == "Too early."  # type: ignore[union-attr]
    assert memory.verify_audit().intact


def test_on_a_deployment_that_runs_by_ticks_a_trade_that_the_ledger_lacks_is_a_conflict(
    memory: Memory, clock: FakeClock
) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    rows = memory.verify_audit().rows
    for wrong in ({"pnl": -99.0}, {"symbol": "ETH"}, {"direction": "short"}, {"closed_at": T0}, {"position_key": "x"}):
        call = a_trade_call(deployment="VolBreakout@main", symbol="BTC", pnl_r=None, pnl=-1.5) | wrong
        with pytest.raises(Conflict, match="deployment: 'VolBreakout@main' runs by ticks"):
            memory.remember_trade(**call)
    assert memory.verify_audit().rows == rows


def test_a_trade_that_the_ledger_closes_only_later_is_not_matched(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    clock.advance(hours=-1.5)  # before the close: a store that holds the future
    with pytest.raises(Conflict, match="runs by ticks"):
        memory.remember_trade(**a_trade_call(deployment="VolBreakout@main", symbol="BTC", pnl=-1.5, pnl_r=None))
