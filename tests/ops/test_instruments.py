"""Positions, money and risk on markets where one unit is not one unit of money: spot, futures, other currencies."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.core.portfolio import Position
from backsight.core.trades.trade import Outcome
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.store.instruments import underlyings
from backsight.testing import FakeClock, a_position
from ops.test_ticks import DEPLOYMENT, Desk, a_bar, a_report, an_order, at

about: Any = pytest.approx
"""A number up to rounding."""


def test_an_instrument_is_saved_once_and_its_history_is_kept(memory: Memory, clock: FakeClock) -> None:
    first = memory.save_instrument(symbol="ES", multiplier=50.0, kind="future", currency="USD", tick_size=0.25)
    assert not first.replayed
    assert memory.save_instrument(symbol="ES", multiplier=50.0, kind="future", currency="USD", tick_size=0.25).replayed
    then = clock.now()
    clock.advance(hours=1)
    memory.save_instrument(symbol="ES", multiplier=5.0, underlying="SPX")
    (saved,) = memory.list_instruments().instruments
    assert (saved.multiplier, saved.underlying) == (5.0, "SPX")
    assert (saved.kind, saved.tick_size) == ("future", 0.25), "what is left out stays"
    assert [each.multiplier for each in memory.list_instruments(as_of=then).instruments] == [50.0]
    assert memory.list_instruments(underlying="NDX").message.startswith("None is saved")


def test_underlyings_are_those_known_at_an_instant_also_where_one_was_replaced(
    memory: Memory, clock: FakeClock
) -> None:
    expected: list[tuple[datetime, dict[str, str]]] = []
    for symbol, underlying in [("BTC-PERP", "BTC"), ("ETH-PERP", "ETH"), ("BTC-PERP", "XBT"), ("SOL-PERP", "SOL")]:
        memory.save_instrument(symbol=symbol, underlying=underlying)
        expected.append((clock.now(), dict(expected[-1][1] if expected else {}) | {symbol: underlying}))
        clock.advance(hours=1)
    with memory.reading() as connection:
        for then, known in [*expected, *expected]:
            assert underlyings(memory.view(connection, then)).by_symbol == known


def test_a_multiplier_counts_in_result_risk_excursions_and_notional(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="BTC", multiplier=50.0)
    position = a_position(2.0, stop_price=98.0)
    bought = a_report("i", at(0.5), 2.0, 100.0)
    desk.tick(1, [position], fills=[bought], mark=100.0)
    desk.tick(2, [replace(position, mark=99.0)], mark=99.0)
    so_far = memory.get_trade(trade_id=desk.trade().id).so_far
    assert so_far is not None
    assert (so_far.unrealized_pnl, so_far.risk) == (-100.0, 200.0)
    desk.tick(3, [], fills=[a_report("o", at(2.5), -2.0, 101.0)], mark=101.0)
    trade = desk.trade()
    assert (trade.pnl, trade.risk, trade.mae, trade.point_value) == (100.0, 200.0, -100.0, 50.0)
    assert trade.outcome is not None
    assert (trade.outcome.value, trade.entry.size_usd) == (0.5, 10_000.0)


def test_an_inferred_entry_has_the_multiplier_too(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    memory.save_instrument(symbol="BTC", multiplier=10.0)
    desk.enter(size=1.0)
    desk.tick(1, [a_position(1.0)], [], mark=103.0, order=an_order(-1.0))
    assert desk.trade().pnl == 30.0


def test_a_rate_converts_money_into_the_accounts_currency(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    desk.tick(
        1, [a_position(1_000.0, average_price=150.0)], fills=[a_report("i", at(0.5), 1_000.0, 150.0, rate=0.0067)]
    )
    desk.tick(2, [], fills=[a_report("o", at(1.5), -1_000.0, 151.0, rate=0.0066)])
    assert desk.trade().pnl == about(1_000.0 * 0.0066)


def round_trips(desk: Desk, times: int, *, sold: float, left: float) -> list[ClosedTick]:
    """Buy 1.0 with a fee of .001 in coin and sell what lot steps allow; the broker keeps the rest."""
    held, answers = 0.0, list[ClosedTick]()
    for number in range(times):
        hours = 2 * number
        bought = a_report(f"i{number}", at(hours + 0.5), 1.0, 100.0, fee=0.001, fee_currency="BTC")
        held += 0.999
        desk.tick(hours + 1, [a_position(held)], fills=[bought])
        out = a_report(f"o{number}", at(hours + 1.5), -sold, 110.0)
        held -= sold
        answers.append(desk.tick(hours + 2, [a_position(held, mark=110.0)], fills=[out], mark=110.0))
    assert held == about(times * left)
    return answers


def test_spot_round_trips_close_although_a_lot_step_leaves_a_rest(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    memory.save_instrument(symbol="BTC", lot_step=0.1, kind="spot")
    round_trips(desk, 5, sold=0.99, left=0.009)
    trades = desk.trades()
    assert [trade.status for trade in trades] == ["closed"] * 5
    assert [trade.pnl for trade in trades] == about([9.9 - 0.1] * 5)
    assert [trade.rest for trade in trades] == about([0.009] * 5)
    assert not any(trade.inferred for trade in trades)


def test_spot_round_trips_close_where_the_account_names_its_dust(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, dust=5.0)
    round_trips(desk, 3, sold=0.99, left=0.009)
    assert [trade.status for trade in desk.trades()] == ["closed"] * 3


def test_rests_that_add_up_to_more_than_a_lot_step_need_dust(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, dust=5.0)
    memory.save_instrument(symbol="BTC", lot_step=0.01, kind="spot")
    round_trips(desk, 4, sold=0.99, left=0.009)
    assert [(trade.status, trade.inferred) for trade in desk.trades()] == [("closed", False)] * 4


REST = "is left, so the trade is open. If that is too little to sell, save_instrument with lot_step."


def test_without_a_lot_step_or_dust_a_rest_stays_open_and_is_named(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    (answer,) = round_trips(desk, 1, sold=0.99, left=0.009)
    assert (desk.trade().status, answer.notes[0]) == ("open", f"BTC: 0.009 of 0.999 {REST}")
    out, mark = a_report("o0", at(1.5), -0.99, 110.0), a_position(0.999 - 0.99, mark=110.0)
    again = desk.tick(2, [mark], fills=[out], mark=110.0)
    assert (again.replayed, again.notes) == (True, answer.notes)
    assert not any(REST in note for note in desk.tick(3, [mark], mark=110.0).notes), "it is named once"


def test_a_lot_step_that_is_saved_later_closes_what_was_sold_before(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    round_trips(desk, 2, sold=0.995, left=0.004)
    assert [trade.status for trade in desk.trades()] == ["open"]
    clock.advance(hours=1)
    memory.save_instrument(symbol="BTC", lot_step=0.01)
    answer = desk.tick(5, [a_position(0.008, mark=110.0)], mark=110.0)
    assert [trade.status for trade in desk.trades()] == ["closed"] * 2
    assert [trade.rest for trade in answer.closed] == about([0.004] * 2)
    assert [trade.pnl for trade in answer.closed] == about([9.95 - 0.1] * 2)
    assert len(answer.learned) == 2
    assert memory.verify_audit().intact


def test_a_fee_in_coin_comes_off_the_position_and_counts_in_money(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    bought = a_report("i", at(0.5), 1.0, 100.0, fee=0.01, fee_currency="BTC")
    desk.tick(1, [a_position(0.99)], fills=[bought])
    assert (desk.trade().open_size, desk.trade().fees, desk.trade().inferred) == (0.99, 1.0, False)
    desk.tick(2, [], fills=[a_report("o", at(1.5), -0.99, 110.0)])
    assert desk.trade().pnl == about(0.99 * 10.0 - 1.0)


def test_a_fee_in_a_third_currency_is_named_and_not_counted_as_money(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    bought = a_report("i", at(0.5), 1.0, 100.0, fee=0.01, fee_currency="BNB")
    closed = desk.tick(1, [a_position(1.0)], fills=[bought])
    assert desk.trade().fees == 0.0
    assert closed.notes == ("BTC: the fee of 0.01 BNB is not counted, because its worth in EUR is not known.",)


def test_a_fee_in_coin_larger_than_the_execution_is_refused(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    with pytest.raises(Invalid, match="more than the execution"):
        desk.tick(1, [], fills=[a_report("i", at(0.5), 1.0, 100.0, fee=1.5, fee_currency="BTC")])
    assert desk.trades() == []


# The broker's word against the ledger's.


def remarks_of(memory: Memory) -> list[str]:
    """What the doctor remarks about the ledger."""
    return [remark for remark in memory.doctor().remarks if "SQL" not in remark]


def test_a_result_that_the_broker_contradicts_is_said_aloud_and_teaches_nothing(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock)
    desk.tick(1, [a_position(1.0)], fills=[a_report("i", at(0.5), 1.0, 100.0)])
    closed = desk.tick(2, [], fills=[a_report("o", at(1.5), -1.0, 101.0, realized_pnl=50.0)], equity=10_050.0)
    trade = desk.trade()
    assert (trade.realized_pnl, trade.broker_pnl, trade.contradiction) == (1.0, 50.0, 49.0)
    result, equity = closed.notes
    assert result.startswith("BTC: the broker realised 50 EUR, the ledger 1; nothing is learned from this trade.")
    assert equity.startswith("Equity changed by +49 EUR beyond what fills and marks explain")
    assert closed.learned == ()
    assert memory.get_trade(trade_id=trade.id).episode is None
    about_trade, about_equity = remarks_of(memory)
    assert about_trade.startswith("BTC: the broker's result differs from the ledger's in 1 trade,")
    assert "at 1 tick, last at" in about_equity
    again = desk.tick(2, [], fills=[a_report("o", at(1.5), -1.0, 101.0, realized_pnl=50.0)], equity=10_050.0)
    assert (again.replayed, again.notes) == (True, closed.notes)


def test_a_multiplier_ends_the_contradiction(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    memory.save_instrument(symbol="BTC", multiplier=50.0)
    desk.tick(1, [a_position(1.0)], fills=[a_report("i", at(0.5), 1.0, 100.0)])
    closed = desk.tick(2, [], fills=[a_report("o", at(1.5), -1.0, 101.0, realized_pnl=50.0)], equity=10_050.0)
    assert (closed.notes, len(closed.learned), remarks_of(memory)) == ((), 1, [])


def test_a_transfer_that_is_reported_is_no_contradiction(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    position = a_position(1.0)
    desk.tick(1, [position], fills=[a_report("i", at(0.5), 1.0, 100.0)])
    paid_in = a_report("t", at(1.5), 0.0, None, kind="transfer", symbol="", amount=500.0)
    assert desk.tick(2, [position], fills=[paid_in], equity=10_500.0).notes == ()
    (note,) = desk.tick(3, [position], equity=11_000.0).notes
    assert note.startswith("Equity changed by +500 EUR")


def test_no_claim_about_equity_is_made_where_fills_are_inferred(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    position = desk.enter(size=1.0)
    assert desk.tick(1, [position], [], mark=120.0, order=an_order(-1.0), equity=20_000.0).notes == ()


def test_an_average_price_alone_proves_no_round_trip(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    position = desk.enter(size=3.0)
    # A broker that counts first in, first out tells another average after a sale; one fill is never reported.
    desk.tick(1, [replace(position, size=2.0, average_price=104.0, mark=110.0)], mark=110.0)
    desk.tick(2, [replace(position, size=2.0, average_price=105.0, mark=110.0)], mark=110.0, lag=timedelta(0))
    (trade,) = desk.trades()
    assert (trade.status, trade.open_size, trade.realized_pnl) == ("open", 2.0, 10.0)


# Corporate actions and moves of assets.


def held_stock(desk: Desk, **details: Any) -> Position:
    """Ten shares bought at 100, reported."""
    position = a_position(10.0, stop_price=90.0, **details)
    desk.tick(1, [position], fills=[a_report("i", at(0.5), 10.0, 100.0)])
    desk.tick(2, [position])
    return position


@pytest.mark.parametrize("reported", ["in time", "late", "never"])
def test_a_split_realises_nothing_whether_it_is_reported_or_not(
    memory: Memory, clock: FakeClock, reported: str
) -> None:
    desk = Desk(memory, clock)
    held_stock(desk)
    split = a_report("s", at(2.5), 0.0, None, kind="split", ratio=10.0)
    after = a_position(100.0, average_price=10.0, mark=10.1, stop_price=9.0)
    desk.tick(3, [after], fills=[split] if reported == "in time" else [], mark=10.1)
    desk.tick(4, [after], fills=[split] if reported == "late" else [], mark=10.1)
    trade = desk.trade()
    assert (trade.open_size, trade.average_cost, trade.realized_pnl) == (100.0, 10.0, 0.0)
    desk.tick(5, [], fills=[a_report("o", at(4.5), -100.0, 11.0)], mark=11.0)
    trade = desk.trade()
    assert (trade.status, trade.pnl, trade.exit_price, trade.inferred) == ("closed", 100.0, 11.0, False)


def test_a_reverse_split_and_three_for_two_are_splits_too(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    held_stock(desk)
    desk.tick(3, [a_position(15.0, average_price=66.6667, mark=67.0)], mark=67.0)
    desk.tick(4, [a_position(5.0, average_price=200.0, mark=201.0)], mark=201.0)
    assert desk.trade().open_size == about(5.0)
    assert desk.trade().realized_pnl == 0.0


def test_a_trade_that_a_reversal_opened_keeps_its_part_after_a_split(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    fills = [a_report("a", at(0.1), -1.0, 100.0), a_report("b", at(0.2), 3.0, 100.0)]
    desk.tick(1, [a_position(2.0)], fills=fills)
    after = a_position(4.0, average_price=50.0, mark=50.0)
    desk.tick(2, [after], fills=[a_report("s", at(1.5), 0.0, None, kind="split", ratio=2.0)], mark=50.0)
    closed = desk.tick(3, [], fills=[a_report("o", at(2.5), -4.0, 51.0)], mark=51.0)
    assert [(trade.pnl, trade.size, trade.inferred) for trade in closed.closed] == [(4.0, 4.0, False)]


def test_what_is_inferred_at_the_instant_of_a_split_comes_after_it(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    held_stock(desk)
    split = a_report("s", at(3), 0.0, None, kind="split", ratio=10.0)
    desk.tick(3, [a_position(60.0, average_price=10.0, mark=10.0)], fills=[split], mark=10.0)
    trade = desk.trade()
    assert (trade.status, trade.open_size, trade.realized_pnl) == ("open", 60.0, 0.0)


def test_a_withdrawal_of_coins_realises_nothing(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    position = held_stock(desk)
    gone = a_report("w", at(2.5), -4.0, None, kind="asset_transfer")
    # Ten shares earned 500, then four left the account with their worth of 600.
    closed = desk.tick(3, [replace(position, size=6.0, mark=150.0)], fills=[gone], mark=150.0, equity=9_900.0)
    assert (desk.trade().open_size, desk.trade().realized_pnl, closed.notes) == (6.0, 0.0, ())
    desk.tick(4, [], fills=[a_report("o", at(3.5), -6.0, 150.0)], mark=150.0)
    assert desk.trade().pnl == 300.0


def test_a_withdrawal_that_is_reported_late_takes_back_the_sale_that_was_inferred(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock)
    position = held_stock(desk)
    less = replace(position, size=6.0, mark=150.0)
    desk.tick(3, [less], mark=150.0)
    assert desk.trade().realized_pnl == 200.0
    desk.tick(4, [less], fills=[a_report("w", at(2.5), -4.0, None, kind="asset_transfer")], mark=150.0)
    assert (desk.trade().open_size, desk.trade().realized_pnl, desk.trade().inferred) == (6.0, 0.0, False)


def test_a_dividend_counts_and_an_expiry_closes_at_its_price(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    position = held_stock(desk)
    desk.tick(3, [position], fills=[a_report("d", at(2.5), 0.0, None, kind="dividend", amount=7.0)])
    desk.tick(4, [], fills=[a_report("x", at(3.5), -10.0, 99.0, kind="expiry")], mark=99.0)
    assert (desk.trade().funding, desk.trade().pnl, desk.trade().status) == (7.0, -3.0, "closed")


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"kind": "split"}, "ratio: None splits nothing"),
        ({"kind": "split", "ratio": -2.0}, "ratio: -2.0 splits nothing"),
        ({"kind": "asset_transfer"}, "quantity: 0 units are moved"),
        ({"kind": "expiry", "quantity": -1.0}, "is not an execution"),
    ],
)
def test_a_corporate_action_without_its_numbers_is_refused(
    memory: Memory, clock: FakeClock, report: dict[str, Any], message: str
) -> None:
    desk = Desk(memory, clock)
    held_stock(desk)
    with pytest.raises(Invalid, match=message):
        desk.tick(3, [], fills=[a_report("s", at(2.5), **({"quantity": 0.0, "price": None} | report))])


# Instruments that pay in another currency than the account's.


def bought_in_yen(desk: Desk, *, entry: float | None = None, leave: float | None = None, **marks: float) -> ClosedTick:
    """Buy 1,000 at 150 and sell at 151 on an account in dollars; `entry` and `leave` are the rates of the fills."""
    desk.memory.save_instrument(symbol="BTC", currency="JPY")
    position = a_position(1_000.0, average_price=150.0, mark=150.0, stop_price=149.0)
    bought = a_report("i", at(0.5), 1_000.0, 150.0, rate=entry)
    desk.tick(1, [position], fills=[bought], mark=150.0, marks=marks)
    desk.tick(2, [position], mark=150.0, marks=marks)
    sold = a_report("o", at(2.5), -1_000.0, 151.0, rate=leave)
    return desk.tick(3, [], fills=[sold], mark=151.0, marks=marks, equity=10_010.0)


@pytest.mark.parametrize("source", ["fill", "mark", "inverse mark", "bar"])
def test_money_is_converted_at_the_rate_of_the_fill_the_tick_or_a_bar(
    memory: Memory, clock: FakeClock, source: str
) -> None:
    desk = Desk(memory, clock, currency="USD")
    if source == "bar":
        clock.at = at(3)
        memory.record_bars(bars=[a_bar(-1, 200.0, symbol="USD/JPY"), a_bar(1, 100.0, symbol="USD/JPY")])
    rates = {"entry": 0.005, "leave": 0.01} if source == "fill" else {}
    marks = {"mark": {"JPYUSD": 0.01}, "inverse mark": {"USDJPY": 100.0}}.get(source, {})
    closed = bought_in_yen(desk, **rates, **marks)
    trade = desk.trade()
    assert (trade.pnl, trade.currency, trade.realized_pnl_usd) == (about(10.0), None, about(10.0))
    at_entry = {"fill": 0.005, "bar": 0.005}.get(source, 0.01)
    assert trade.entry.size_usd == about(150_000.0 * at_entry)
    assert trade.outcome == Outcome(value=about(1.0), unit="R")
    assert closed.notes == ()


def test_a_currency_pair_is_its_own_rate(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="USDJPY", currency="JPY", kind="fx")
    held = a_position(1_000.0, symbol="USDJPY", average_price=150.0, mark=150.0)
    desk.tick(1, [held], fills=[a_report("i", at(0.5), 1_000.0, 150.0, symbol="USDJPY")])
    desk.tick(2, [], fills=[a_report("o", at(1.5), -1_000.0, 160.0, symbol="USDJPY")])
    assert desk.trade().pnl == about(1_000.0 * 10.0 / 160.0)


def test_without_a_rate_the_result_keeps_its_currency_and_is_in_no_sum(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD", risk_per_trade=0.01)
    closed = bought_in_yen(desk)
    trade = desk.trade()
    assert (trade.pnl, trade.currency, trade.risk, trade.realized_pnl_usd) == (1_000.0, "JPY", 1_000.0, None)
    (note,) = closed.notes
    assert note.startswith("BTC: the result is kept in JPY and is in no sum, because no rate from JPY to USD is known.")
    (tally,) = [each.tally for each in memory.get_my_deployments().deployments]
    assert (tally.trades, tally.wins, tally.pnl, tally.unconverted) == (1, 1, 0.0, 1)
    assert memory.get_recent_activity(deployment=DEPLOYMENT).state.realized_share_today in (None, 0.0)
    (remark,) = remarks_of(memory)
    assert remark.startswith("BTC: the money of 1 trade is in JPY and in no sum")


def test_a_payment_that_cannot_be_converted_is_named(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="BTC", currency="JPY")
    held = a_position(1.0)
    desk.tick(1, [held], fills=[a_report("i", at(0.5), 1.0, 100.0)])
    paid = replace(a_report("f", at(1.5), 0.0, None), kind="funding", amount=-3.0)
    notes = [desk.tick(2, [held], fills=[paid]).notes for _ in range(2)]
    assert notes[0] == notes[1], "a tick that is run again says the same"
    assert notes[0][-1] == (
        "BTC: the funding of -3 USD is not counted, because its trade is kept in a currency of unknown rate."
    )


def test_a_ratio_within_one_currency_teaches_and_a_share_of_equity_does_not(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD", risk_per_trade=0.01)
    bought_in_yen(desk)
    episode = memory.get_trade(trade_id=desk.trade().id).episode
    assert episode is not None
    assert episode.outcome == Outcome(value=1.0, unit="R")
    assert (episode.size_share, episode.risk_share) == (None, None)


def test_without_a_stop_a_risk_in_the_accounts_currency_is_not_taken(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD", risk_per_trade=0.01)
    memory.save_instrument(symbol="BTC", currency="JPY")
    desk.tick(1, [a_position(1.0)], fills=[a_report("i", at(0.5), 1.0, 100.0)])
    desk.tick(2, [], fills=[a_report("o", at(1.5), -1.0, 110.0)])
    assert desk.trade().risk is None
    assert desk.trade().outcome == Outcome(value=0.1, unit="pct")


def test_an_entry_without_a_rate_counts_at_that_of_the_exit(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    bought_in_yen(desk, leave=0.01)
    trade = desk.trade()
    assert (trade.pnl, trade.risk, trade.currency) == (about(10.0), about(10.0), None)


def test_an_exit_without_a_rate_leaves_the_whole_trade_unconverted(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    bought_in_yen(desk, entry=0.01)
    trade = desk.trade()
    assert (trade.pnl, trade.risk, trade.currency) == (1_000.0, about(1_000.0), "JPY")


def test_an_inferred_exit_takes_the_rate_of_the_tick(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="BTC", currency="JPY")
    desk.tick(0, [], [a_position(2.0)], order=an_order(2.0), marks={"USDJPY": 200.0})
    desk.tick(1, [a_position(2.0)], [], mark=150.0, order=an_order(-2.0), marks={"USDJPY": 100.0})
    assert (desk.trade().pnl, desk.trade().inferred) == (about(1.0), True)


@pytest.mark.parametrize(
    ("fee_currency", "marks", "fees"),
    [
        ("JPY", {"USDJPY": 100.0}, 0.5),
        ("BNB", {"USDJPY": 100.0, "BNB/USD": 0.2}, 10.0),
        ("USD", {"USDJPY": 100.0}, 50.0),
    ],
)
def test_fees_are_converted_too(
    memory: Memory, clock: FakeClock, fee_currency: str, marks: dict[str, float], fees: float
) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="BTC", currency="JPY")
    bought = a_report("i", at(0.5), 1_000.0, 150.0, fee=50.0, fee_currency=fee_currency)
    closed = desk.tick(1, [a_position(1_000.0, average_price=150.0)], fills=[bought], marks=marks)
    assert (desk.trade().fees, closed.notes) == (about(fees), ())
    # Reported again at another rate, it is the same fill.
    desk.tick(2, [a_position(1_000.0, average_price=150.0)], fills=[bought], marks={"USDJPY": 50.0, "BNB/USD": 0.1})
    assert desk.trade().fees == about(fees)


def test_a_fee_in_the_accounts_currency_is_named_where_the_money_is_in_another(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="BTC", currency="JPY")
    closed = desk.tick(1, [a_position(1.0)], fills=[a_report("i", at(0.5), 1.0, 100.0, fee=2.0)])
    assert closed.notes == ("BTC: the fee of 2 USD is not counted, because its worth in JPY is not known.",)
    assert desk.trade().fees == 0.0


# Inverse contracts: a face value in dollars, paid in coin.


def test_an_inverse_contract_is_right_in_coin(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="BTC")
    memory.save_instrument(symbol="BTCUSD_PERP", multiplier=100.0, inverse=True, currency="BTC", kind="perpetual")
    report: dict[str, Any] = {"symbol": "BTCUSD_PERP"}
    one = a_position(100.0, **report, average_price=50_000.0, mark=50_000.0, stop_price=40_000.0)
    desk.tick(
        1, [one], fills=[a_report("i", at(0.5), 100.0, 50_000.0, fee=0.0001, fee_currency="BTC", **report)], equity=1.0
    )
    desk.tick(2, [replace(one, mark=40_000.0)], equity=0.95 - 0.0001)
    so_far = memory.get_trade(trade_id=desk.trade().id).so_far
    assert so_far is not None
    assert (so_far.unrealized_pnl, so_far.risk) == (about(-0.05), about(0.05))
    two = replace(one, size=200.0, average_price=2 / (1 / 50_000 + 1 / 40_000), mark=40_000.0)
    desk.tick(3, [two], fills=[a_report("j", at(2.5), 100.0, 40_000.0, **report)], equity=0.95 - 0.0001)
    sold = a_report("o", at(3.5), -200.0, 50_000.0, realized_pnl=0.05, **report)
    closed = desk.tick(4, [], fills=[sold], equity=1.05 - 0.0001)
    trade = desk.trade()
    assert trade.realized_pnl == about(100 * 100 * (1 / 40_000 - 1 / 50_000))
    assert (trade.average_cost, trade.contradiction) == (about(44_444.44, abs=0.01), None)
    assert (trade.mae, trade.notional(trade.size)) == (about(-0.05), about(0.45))
    assert (closed.notes, len(closed.learned)) == ((), 1)


def test_an_inverse_contract_is_converted_by_its_own_price(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="BTCUSD", multiplier=1.0, inverse=True, currency="BTC")
    held = a_position(-10_000.0, symbol="BTCUSD", average_price=50_000.0, mark=50_000.0)
    desk.tick(1, [held], fills=[a_report("i", at(0.5), -10_000.0, 50_000.0, symbol="BTCUSD")])
    desk.tick(2, [], fills=[a_report("o", at(1.5), 10_000.0, 40_000.0, symbol="BTCUSD")])
    assert desk.trade().pnl == about(0.05 * 40_000.0)


def test_an_inferred_addition_moves_the_harmonic_average(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="BTC")
    memory.save_instrument(symbol="BTC", multiplier=100.0, inverse=True)
    desk.enter(size=1.0)
    both = a_position(2.0, average_price=400 / 3, mark=200.0)
    desk.tick(1, [both], mark=200.0)
    trade = desk.trade()
    assert (trade.average_cost, trade.open_size) == (about(400 / 3), 2.0)


def test_an_inverse_contract_has_a_price_above_zero(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="BTC")
    memory.save_instrument(symbol="BTC", multiplier=100.0, inverse=True)
    with pytest.raises(Invalid, match="is no price of an inverse contract"):
        desk.tick(1, [], fills=[a_report("i", at(0.5), 1.0, -100.0)])


# Renamed and expired symbols.


@pytest.mark.parametrize("source", ["reported", "inferred", "late"])
def test_a_renamed_position_goes_on_and_realises_nothing(memory: Memory, clock: FakeClock, source: str) -> None:
    desk = Desk(memory, clock, currency="USD")
    memory.save_instrument(symbol="FB", multiplier=10.0, underlying="META")
    if source != "reported":
        memory.save_instrument(symbol="META", multiplier=10.0, underlying="META")
    old, new = (a_position(2.0, symbol=symbol, stop_price=95.0) for symbol in ("FB", "META"))
    desk.tick(1, [old], fills=[a_report("i", at(0.5), 2.0, 100.0, symbol="FB")])
    desk.tick(2, [old])
    rename = a_report("r", at(2.5), kind="rename", position_key="FB", symbol="META")
    desk.tick(3, [new], fills=[rename] if source == "reported" else [])
    desk.tick(4, [new], fills=[rename] if source == "late" else [])
    trade = desk.trade()
    assert (trade.symbol, trade.status, trade.open_size, trade.realized_pnl) == ("META", "open", 2.0, 0.0)
    closed = desk.tick(5, [], fills=[a_report("o", at(4.5), -2.0, 110.0, symbol="META")])
    trade = desk.trade()
    assert (trade.status, trade.pnl, trade.inferred, trade.risk) == ("closed", 200.0, False, 100.0)
    assert [each.id for each in closed.closed] == [trade.id]
    assert closed.decision.before.portfolio.positions == ()
    assert (memory.doctor().healthy, memory.verify_audit().intact) == (True, True)


@pytest.mark.parametrize("named", [True, False])
def test_a_position_that_is_reduced_after_its_rename_in_one_tick_goes_on(
    memory: Memory, clock: FakeClock, named: bool
) -> None:
    desk = Desk(memory, clock)
    for symbol in ("FB", "META"):
        memory.save_instrument(symbol=symbol, underlying="Meta Platforms" if named else None)
    bought = a_report("i", at(0.5), 2.0, 90.0, symbol="FB")
    sold = a_report("o", at(1.8), -1.0, 95.0, symbol="META")
    desk.tick(1, [a_position(2.0, symbol="FB", average_price=90.0)], fills=[bought])
    desk.tick(2, [a_position(1.0, symbol="META", average_price=90.0, mark=95.0)], fills=[sold])
    desk.tick(3, [], fills=[a_report("p", at(2.8), -1.0, 96.0, symbol="META")], marks={"META": 96.0})
    if named:
        trade = desk.trade()
        assert (trade.symbol, trade.direction, trade.size, trade.pnl, trade.inferred) == (
            "META",
            "long",
            2.0,
            11.0,
            False,
        )
    else:
        assert all(trade.inferred for trade in desk.trades())


def test_a_late_rename_without_averages_joins_what_was_taken_for_two_trades(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    old, new = (a_position(2.0, symbol=symbol, average_price=None) for symbol in ("FB", "META"))
    desk.tick(1, [old], fills=[a_report("i", at(0.5), 2.0, 100.0, symbol="FB")])
    desk.tick(2, [new])
    assert {(each.symbol, each.status) for each in desk.trades()} == {("FB", "closed"), ("META", "open")}
    desk.tick(3, [new], fills=[a_report("r", at(1.5), kind="rename", position_key="FB", symbol="META")])
    trade = desk.trade()
    assert (trade.symbol, trade.status, trade.open_size, trade.inferred) == ("META", "open", 2.0, False)
    sale = a_report("o", at(3.5), -2.0, 110.0, symbol="META")
    desk.tick(4, [], fills=[sale])
    desk.tick(5, [], fills=[sale])  # reported again after the close
    assert (desk.trade().pnl, desk.trade().position_key) == (20.0, "FB")
    assert (memory.doctor().healthy, memory.verify_audit().intact) == (True, True)


def test_a_late_entry_before_a_split_of_its_interval_counts_in_the_units_of_then(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock, currency="USD")
    split = a_report("s", at(0.7), kind="split", symbol="AAPL", ratio=10.0)
    desk.tick(1, [a_position(20.0, symbol="AAPL", average_price=8.0)], fills=[split])
    desk.tick(
        2,
        [a_position(20.0, symbol="AAPL", average_price=8.0)],
        fills=[a_report("i", at(0.5), 2.0, 80.0, symbol="AAPL")],
    )
    trade = desk.trade()
    assert (trade.open_size, trade.entry_price, trade.inferred) == (20.0, 8.0, False)


def test_a_rename_with_the_same_position_id_is_inferred_and_the_decision_keeps_the_brokers_words(
    memory: Memory, clock: FakeClock
) -> None:
    desk = Desk(memory, clock, position_mode="hedging")
    for symbol in ("FB", "META"):
        memory.save_instrument(symbol=symbol, underlying="META")
    position = a_position(2.0, symbol="FB", position_key="17")
    desk.tick(1, [], [position], order=an_order(2.0, symbol="FB"))
    desk.tick(2, [replace(position, symbol="META")])
    assert (desk.trade().symbol, desk.trade().status, desk.trade().realized_pnl) == ("META", "open", 0.0)


def test_without_a_common_underlying_another_symbol_is_another_trade(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    desk.tick(1, [a_position(2.0, symbol="FB")])
    desk.tick(2, [a_position(2.0, symbol="META")])
    assert sorted((trade.symbol, trade.status) for trade in desk.trades()) == [("FB", "closed"), ("META", "open")]


def test_a_rename_without_its_position_is_refused(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    with pytest.raises(Invalid, match="names no position under another symbol"):
        desk.tick(1, [], fills=[a_report("r", at(0.5), kind="rename", symbol="META")])


def test_an_expired_symbol_without_a_mark_closes_and_refuses_no_tick(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    desk.tick(1, [a_position(2.0, symbol="ESZ6", mark=90.0)])
    closed = desk.tick(2, [])
    assert [trade.exit_price for trade in closed.closed] == [90.0]
    assert closed.notes[0].startswith("ESZ6: the position is gone and has no mark; it is closed at 90")
    desk.tick(3, [])
