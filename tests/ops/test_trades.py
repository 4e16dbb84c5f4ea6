"""Remembering trades and inactions, and reading them back."""

import math
from datetime import timedelta
from typing import Any

import pytest

from backsight import ContextVector
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.memory import Memory, open_memory
from backsight.testing import T0, FakeClock, a_trade_call

SEED_CALL = a_trade_call(reflection="Entered late, still paid.", max_adverse_excursion=210.0)
"""Exactly the arguments that outcome-weighted memory was first described with, no more and no fewer."""


def test_a_rebate_is_a_negative_fee(memory: Memory) -> None:
    trade = memory.remember_trade(**a_trade_call(pnl=10.0, fees=-0.5)).trade
    assert (trade.fees, trade.realized_pnl, trade.pnl) == (-0.5, 9.5, 10.0)


def test_a_call_with_exactly_the_seeds_arguments_works(memory: Memory) -> None:
    trade = memory.remember_trade(**SEED_CALL).trade
    assert (trade.pnl, trade.outcome and trade.outcome.value, trade.outcome and trade.outcome.unit) == (
        1175.0,
        3.0,
        "R",
    )
    assert trade.mae == -210.0
    assert trade.context == ContextVector(symbol="XAUUSD", price=5175.0, regime="trending_up", atr_d1=95.0)
    assert (trade.closed_at, trade.known_at, trade.recorded_at, trade.opened_at) == (T0, T0, T0, None)
    assert memory.get_my_deployments().deployments[0].deployment.name == "manual:VolBreakout"


def test_a_trade_leaves_an_episode_in_the_same_transaction(memory: Memory) -> None:
    remembered = memory.remember_trade(**SEED_CALL)
    read = memory.get_trade(trade_id=remembered.trade.id)
    assert read.trade == remembered.trade
    assert read.episode is not None
    assert read.episode.id == remembered.episode_id
    assert (read.episode.outcome, read.episode.context) == (read.trade.outcome, read.trade.context)
    assert memory.verify_audit().links == 1


def test_context_that_follows_from_the_entry_is_filled_in(memory: Memory) -> None:
    call = a_trade_call(opened_at=T0 - timedelta(hours=2), context={"atr_h1": 19.0})
    context = memory.remember_trade(**call).trade.context
    assert (context.session, context.hour_utc, context.day_of_week) == ("london", 8, 3)
    assert context.atr_ratio_h1_d1 == 19.0 / 95.0


@pytest.mark.parametrize(
    ("changes", "value", "unit"),
    [
        ({"pnl_r": None, "risk": 391.0}, 1175.0 / 391.0, "R"),
        ({"pnl_r": None, "size": 75.0, "stop_price": 5170.0}, 1175.0 / 375.0, "R"),
        ({"pnl_r": None, "size": 75.0, "stop_price": 5180.0}, 1175.0 / (75.0 * 95.0), "vol"),
        ({"pnl_r": None, "size": 75.0, "context_atr_d1": None}, 1175.0 / (75.0 * 5175.0), "pct"),
    ],
)
def test_the_outcome_is_in_the_best_unit_known(
    memory: Memory, changes: dict[str, Any], value: float, unit: str
) -> None:
    outcome = memory.remember_trade(**a_trade_call(**changes)).trade.outcome
    assert outcome is not None
    assert math.isclose(outcome.value, value)
    assert outcome.unit == unit


def test_without_risk_and_size_there_is_no_outcome_but_a_result(memory: Memory) -> None:
    trade = memory.remember_trade(**a_trade_call(pnl_r=None)).trade
    assert (trade.outcome, trade.pnl, trade.won) == (None, 1175.0, True)


def test_numbers_too_small_to_divide_by_give_no_outcome(memory: Memory) -> None:
    call = a_trade_call(pnl_r=None, size=1e-322, entry_price=1e-10, context_atr_d1=1e-300, context={"atr_h1": 1e300})
    trade = memory.remember_trade(**call).trade
    assert (trade.outcome, trade.context.atr_ratio_h1_d1) == (None, None)


def test_pnl_is_net_of_fees(memory: Memory) -> None:
    trade = memory.remember_trade(**a_trade_call(pnl=1170.0, fees=5.0)).trade
    assert (trade.pnl, trade.fees, trade.realized_pnl) == (1170.0, 5.0, 1175.0)


def test_the_same_key_is_the_same_trade(memory: Memory, clock: FakeClock) -> None:
    first = memory.remember_trade(**a_trade_call(idempotency_key="k"))
    clock.advance(days=30)
    again = memory.remember_trade(**a_trade_call(idempotency_key="k"))
    assert (first.replayed, again.replayed, again.trade) == (False, True, first.trade)
    assert memory.verify_audit().links == 1


def test_the_same_key_with_other_content_is_a_conflict(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call(idempotency_key="k"))
    for other in ({"pnl": 1.0}, {"strategy_name": "Other"}, {"tags": ["x"]}):
        with pytest.raises(Conflict, match="idempotency_key: already used for another trade"):
            memory.remember_trade(**a_trade_call(idempotency_key="k", **other))
    assert len(memory.list_trades().trades) == 1


def test_an_equal_call_within_a_minute_is_a_replay_and_says_so(memory: Memory, clock: FakeClock) -> None:
    first = memory.remember_trade(**a_trade_call())
    clock.advance(seconds=60)
    again = memory.remember_trade(**a_trade_call())
    assert again.replayed
    assert again.trade == first.trade
    assert "replay" in again.message
    clock.advance(seconds=0.000001)
    assert not memory.remember_trade(**a_trade_call()).replayed
    assert len(memory.list_trades().trades) == 2


def test_another_call_within_a_minute_is_another_trade(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    assert not memory.remember_trade(**a_trade_call(exit_price=5190.6)).replayed


def test_an_equal_call_with_its_closing_time_is_a_replay_at_any_time(memory: Memory, clock: FakeClock) -> None:
    call = a_trade_call(closed_at=T0 - timedelta(days=1))
    first = memory.remember_trade(**call)
    clock.advance(days=90)
    assert memory.remember_trade(**call).trade == first.trade
    assert memory.remember_trade(**call).replayed


def test_a_late_trade_changes_no_answer_asked_with_the_old_seen_at(memory: Memory, clock: FakeClock) -> None:
    memory.remember_trade(**a_trade_call(closed_at=T0 - timedelta(days=5)))
    before = memory.list_trades(as_of=T0, seen_at=T0).trades
    clock.advance(days=1)
    memory.remember_trade(**a_trade_call(closed_at=T0 - timedelta(days=9), symbol="EURUSD"))
    assert memory.list_trades(as_of=T0, seen_at=T0).trades == before
    assert len(memory.list_trades(as_of=T0).trades) == 2


def test_a_trade_is_known_from_the_instant_it_closed(memory: Memory) -> None:
    closed = T0 - timedelta(days=5)
    trade = memory.remember_trade(**a_trade_call(closed_at=closed)).trade
    assert memory.list_trades(as_of=closed).trades == (trade,)
    assert memory.list_trades(as_of=closed - timedelta(microseconds=1)).trades == ()
    assert memory.get_trade(trade_id=trade.id, as_of=closed).trade == trade
    with pytest.raises(NotFound):
        memory.get_trade(trade_id=trade.id, as_of=closed - timedelta(microseconds=1))


def test_trades_belong_to_the_deployment_named(memory: Memory) -> None:
    memory.open_account(venue="binance", name="main", mode="paper")
    memory.save_strategy(name="VolBreakout")
    memory.deploy(strategy_name="VolBreakout", account="main")
    trade = memory.remember_trade(**a_trade_call(deployment="VolBreakout@main")).trade
    assert (trade.mode, trade.strategy_version) == ("paper", 1)
    assert memory.list_trades(deployment="VolBreakout@main").trades == (trade,)
    with pytest.raises(Invalid, match=r"strategy_name: deployment 'VolBreakout@main' runs 'VolBreakout', not 'Other'"):
        memory.remember_trade(**a_trade_call(deployment="VolBreakout@main", strategy_name="Other"))


def test_a_call_that_was_refused_leaves_no_implicit_deployment(memory: Memory) -> None:
    with pytest.raises(Invalid):
        memory.remember_trade(**a_trade_call(pnl=-1.0))
    assert memory.get_my_deployments().deployments == ()


def test_the_clock_is_read_once(url: str) -> None:
    class Running(FakeClock):
        def now(self) -> Any:
            self.advance(seconds=1)
            return self.at

    with open_memory(url, clock=Running(T0)) as memory:
        trade = memory.remember_trade(**a_trade_call()).trade
        links = memory.export_audit().links
    assert trade.known_at == trade.recorded_at == links[0].at
