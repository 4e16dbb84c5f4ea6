"""Saving an instrument values the fills again that were there before it, and their trades teach if they agree."""

from dataclasses import replace
from typing import Any

import pytest

from backsight.core.trades.trade import Outcome
from backsight.memory import Memory
from backsight.testing import FakeClock, a_position
from ops.test_ticks import Desk, a_bar, a_report, an_order, at, dump

about: Any = pytest.approx
"""A number up to rounding."""


def contradicted(memory: Memory, clock: FakeClock) -> Desk:
    """One contract of 50 that gained a point: the broker realised 50, the ledger 1."""
    desk = Desk(memory, clock, currency="USD")
    desk.tick(1, [a_position(1.0, stop_price=99.0)], fills=[a_report("i", at(0.5), 1.0, 100.0)])
    desk.tick(2, [], fills=[a_report("o", at(1.5), -1.0, 101.0, realized_pnl=50.0)], equity=10_050.0)
    clock.at = at(3)
    return desk


def test_the_right_multiplier_settles_a_contradiction_and_the_trade_teaches(memory: Memory, clock: FakeClock) -> None:
    desk = contradicted(memory, clock)
    saved = memory.save_instrument(symbol="BTC", multiplier=50.0)
    assert saved.message == (
        "2 fills and 1 trade were valued again. 1 result that the broker contradicted now agree and are learned."
    )
    trade = desk.trade()
    assert (trade.pnl, trade.risk, trade.mfe, trade.entry.size_usd) == (50.0, 50.0, 50.0, 5_000.0)
    assert (trade.outcome, trade.contradiction) == (Outcome(value=1.0, unit="R"), None)
    assert memory.get_trade(trade_id=trade.id).episode is not None
    remarks = [each for each in memory.doctor().remarks if "SQL" not in each]
    assert remarks == [
        "Equity changed beyond what fills and marks explain at 1 tick, last at 2026-06-04T12:00:00.000000Z:"
        " none since an instrument was saved."
    ]


def test_before_it_was_saved_the_former_value_was_known(memory: Memory, clock: FakeClock) -> None:
    desk = contradicted(memory, clock)
    memory.save_instrument(symbol="BTC", multiplier=50.0)
    answer = memory.get_trade(trade_id=desk.trade().id, as_of=at(2.5))
    assert (answer.trade.pnl, answer.trade.contradiction, answer.episode) == (1.0, 49.0, None)  # type: ignore[union-attr]
    diagnosis = memory.doctor()
    assert (diagnosis.healthy, memory.verify_audit().intact) == (True, True)


def test_saving_twice_changes_nothing(memory: Memory, clock: FakeClock) -> None:
    desk = contradicted(memory, clock)
    memory.save_instrument(symbol="BTC", multiplier=50.0)
    before = dump(desk.memory)
    clock.at = at(4)
    again = memory.save_instrument(symbol="BTC", multiplier=50.0)
    assert (again.replayed, again.message) == (True, "No earlier fill changes.")
    assert dump(desk.memory) == before


def test_a_wrong_multiplier_silences_a_trade_and_the_right_one_lets_it_speak(memory: Memory, clock: FakeClock) -> None:
    desk = contradicted(memory, clock)
    memory.save_instrument(symbol="BTC", multiplier=50.0)
    wrong = memory.save_instrument(symbol="BTC", multiplier=10.0)
    assert wrong.revaluation.contradicted == 1
    assert memory.get_trade(trade_id=desk.trade().id).episode is None
    assert memory.save_instrument(symbol="BTC", multiplier=50.0).revaluation.settled == 1
    assert memory.get_trade(trade_id=desk.trade().id).episode is not None
    assert (memory.doctor().healthy, memory.verify_audit().intact) == (True, True)


@pytest.mark.parametrize("ticks", [1, 3])
def test_an_open_position_goes_on_with_its_new_value(memory: Memory, clock: FakeClock, ticks: int) -> None:
    desk = Desk(memory, clock, currency="USD")
    position = a_position(2.0, stop_price=98.0)
    for hours in range(1, ticks + 1):
        mark = 99.0 if hours == ticks else 100.0
        bought = [a_report("i", at(0.5), 2.0, 100.0)] if hours == 1 else []
        desk.tick(hours, [replace(position, mark=mark)], fills=bought, mark=mark)
    memory.save_instrument(symbol="BTC", multiplier=50.0)
    half = [replace(position, size=1.0)]
    desk.tick(5, half, fills=[a_report("h", at(4.5), -1.0, 101.0)])
    desk.tick(6, [], fills=[a_report("o", at(5.5), -1.0, 102.0)])
    trade = desk.trade()
    assert (trade.pnl, trade.risk, trade.mae, trade.outcome) == (150.0, 200.0, -100.0, Outcome(value=0.75, unit="R"))


def test_an_inverse_contract_that_was_taken_for_a_linear_one_is_mended(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="BTC")
    desk.tick(1, [a_position(100.0, average_price=50_000.0)], fills=[a_report("i", at(0.5), 100.0, 50_000.0)])
    desk.tick(2, [], fills=[a_report("o", at(1.5), -100.0, 40_000.0, realized_pnl=-0.05)])
    assert (desk.trade().pnl, desk.trade().contradiction is None) == (-1_000_000.0, False)
    assert memory.save_instrument(symbol="BTC", multiplier=100.0, inverse=True).revaluation.settled == 1
    assert (desk.trade().pnl, desk.trade().contradiction) == (about(-0.05), None)


def test_rates_that_come_later_convert_a_trade_when_the_instrument_is_saved_again(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="BTC", currency="JPY")
    desk.tick(1, [a_position(1.0)], fills=[a_report("i", at(0.5), 1.0, 100.0, fee=2.0)])
    desk.tick(2, [], fills=[a_report("o", at(1.5), -1.0, 1_100.0, fee=200.0, fee_currency="JPY")])
    assert (desk.trade().pnl, desk.trade().currency) == (800.0, "JPY")
    memory.record_bars(bars=[a_bar(-1, 100.0, symbol="USDJPY"), a_bar(0, 100.0, symbol="USDJPY")])
    saved = memory.save_instrument(symbol="BTC", currency="JPY")
    assert (saved.replayed, saved.revaluation.fills) == (False, 2)
    assert (desk.trade().pnl, desk.trade().fees, desk.trade().currency) == (about(6.0), 4.0, None)
    assert memory.save_instrument(symbol="BTC", currency="JPY").replayed


def test_the_marks_of_the_tick_give_the_rate_and_a_reported_rate_stays(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    marks = {"USDJPY": 100.0}
    desk.tick(1, [a_position(1.0)], fills=[a_report("i", at(0.5), 1.0, 100.0, rate=0.02)], marks=marks)
    desk.tick(2, [a_position(1.0)], [], order=an_order(-1.0), mark=200.0, marks=marks)
    assert desk.trade().pnl == 2.0
    memory.save_instrument(symbol="BTC", currency="JPY", multiplier=10.0)
    assert desk.trade().pnl == about(10.0 * 100.0 * 0.01)


def test_a_contract_takes_no_fee_off_the_position(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    fee: dict[str, Any] = {"fee": 0.5, "fee_currency": "BTC"}
    desk.tick(1, [a_position(9.5)], fills=[a_report("i", at(0.5), 10.0, 100.0, **fee)])
    assert (desk.trade().open_size, desk.trade().fees) == (9.5, 50.0)
    memory.save_instrument(symbol="BTC", kind="perpetual")
    assert (desk.trade().open_size, desk.trade().fees) == (10.0, 50.0)


def test_trades_of_other_symbols_and_owners_stay(memory: Memory, clock: FakeClock) -> None:
    desk = contradicted(memory, clock)
    before = dump(desk.memory)["trade_history"]
    assert memory.save_instrument(symbol="ES", multiplier=50.0).message == "No earlier fill changes."
    assert dump(desk.memory)["trade_history"] == before


def test_positions_whose_trades_would_be_others_are_named_and_left(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD", dust=5.0)
    desk.tick(1, [a_position(1.0)], fills=[a_report("i", at(0.5), 1.0, 100.0)])
    desk.tick(2, [a_position(0.04)], fills=[a_report("o", at(1.5), -0.96, 100.0)])
    assert desk.trade().status == "closed"
    saved = memory.save_instrument(symbol="BTC", multiplier=50.0)
    assert saved.message == "Not valued again, because rests would count differently and make other trades: BTC."
    assert desk.trade().point_value == 1.0
