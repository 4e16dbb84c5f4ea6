"""The simulated broker: its own books agree with each other, and it reports what it is told to."""

import random
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.core.orders import BEGINNING, BrokerSnapshot, FillMark, Order, last_mark
from backsight.memory import PaperBroker
from backsight.testing import T0, a_bar
from backsight.testing.broker import BrokerSimulator, ReportTerms, SimulatedInstrument, check_fills_since

BTC = SimulatedInstrument(symbol="BTC", fee_rate=0.001)


def a_broker(*instruments: SimulatedInstrument, price: float = 100.0, **terms: Any) -> BrokerSimulator:
    broker = BrokerSimulator(instruments or (BTC,), reports=ReportTerms(**terms))
    for each in instruments or (BTC,):
        broker.move(each.symbol, price)
    return broker


def worth(broker: BrokerSimulator) -> float:
    """What the trades of a broker have earned so far, realised and at the mark, after fees and with funding."""
    closed = sum(trade.realized_pnl + trade.funding - trade.fees for trade in broker.trades())
    return closed + broker.unrealized


def test_a_reversal_ends_one_trade_and_opens_another_with_its_share_of_the_fee() -> None:
    broker = a_broker()
    broker.market_order("BTC", 1.0, decision="in")
    broker.move("BTC", 110.0)
    broker.market_order("BTC", -3.0, decision="turn")
    long, short = broker.trades()
    assert (long.realized_pnl, round(long.fees, 9), long.exit_decision) == (10.0, 0.21, "turn")
    assert (short.direction, short.open_size, round(short.fees, 9)) == ("short", 2.0, 0.22)


def test_a_limit_order_waits_and_is_executed_in_parts() -> None:
    broker = a_broker()
    order = broker.limit_order("BTC", 2.0, 95.0, parts=2)
    assert [each.id for each in broker.snapshot().portfolio.open_orders] == [order]
    for price in (96.0, 94.0, 93.0):
        broker.move("BTC", price)
    fills = broker.snapshot().fills
    assert [(fill.quantity, fill.price, fill.order_id) for fill in fills] == [(1.0, 95.0, order)] * 2


def test_a_fee_in_coin_leaves_less_than_was_bought_and_a_rest_after_the_sale() -> None:
    broker = a_broker(SimulatedInstrument(symbol="BTC/USDT", lot_step=0.01, fee_rate=0.005, fee_coin="BTC"))
    broker.market_order("BTC/USDT", 1.0)
    assert broker.sizes() == {"BTC/USDT": 0.995}
    broker.market_order("BTC/USDT", -0.99)
    (trade,) = broker.trades()
    assert (trade.rest, round(trade.fees, 9), trade.closed_at) == (0.005, 0.995, broker.at)
    assert broker.sizes() == {"BTC/USDT": 0.005}


def test_an_inverse_contract_earns_coin_and_has_a_harmonic_average() -> None:
    broker = a_broker(SimulatedInstrument(symbol="XBT", multiplier=100.0, inverse=True, currency="BTC"), price=50.0)
    broker.set_rate("BTC", 50.0)
    broker.market_order("XBT", 1.0)
    broker.move("XBT", 100.0)
    broker.market_order("XBT", 1.0)
    (position,) = broker.snapshot().portfolio.positions
    assert position.average_price == pytest.approx(2.0 / (1.0 / 50.0 + 1.0 / 100.0))
    broker.set_rate("BTC", 100.0)
    broker.market_order("XBT", -2.0)
    (trade,) = broker.trades()
    assert trade.realized_pnl == pytest.approx(100.0 * (1.0 / 50.0 - 1.0 / 100.0) * 100.0)


def test_a_quote_in_yen_is_converted_at_the_rate_of_the_exit() -> None:
    broker = a_broker(SimulatedInstrument(symbol="USDJPY", currency="JPY"), price=150.0)
    broker.set_rate("JPY", 0.01)
    broker.market_order("USDJPY", 100.0)
    broker.move("USDJPY", 152.0)
    broker.set_rate("JPY", 0.02)
    broker.market_order("USDJPY", -100.0)
    assert [trade.realized_pnl for trade in broker.trades()] == [4.0]
    assert [fill.rate for fill in broker.snapshot().fills] == [0.01, 0.02]


def test_splits_dividends_funding_withdrawals_and_expiries_are_reported_and_realise_no_more_than_they_should() -> None:
    broker = a_broker(SimulatedInstrument(symbol="AAPL"))
    broker.market_order("AAPL", 10.0)
    broker.split("AAPL", 4.0)
    broker.pay_dividend("AAPL", 0.5)
    broker.pay_funding("AAPL", 0.01)
    broker.withdraw_units("AAPL", 8.0)
    broker.expire("AAPL", 26.0)
    (trade,) = broker.trades()
    assert (trade.size, trade.realized_pnl, trade.funding) == (40.0, 32.0, 10.0)
    snapshot = broker.snapshot()
    kinds = [fill.kind for fill in snapshot.fills]
    assert kinds == ["trade", "split", "dividend", "funding", "asset_transfer", "expiry"]
    assert (snapshot.portfolio.positions, dict(snapshot.marks)) == ((), {})


def test_a_hedging_account_has_several_positions_in_one_symbol() -> None:
    broker = BrokerSimulator([BTC], hedging=True)
    broker.move("BTC", 100.0)
    broker.market_order("BTC", 1.0)
    broker.market_order("BTC", -2.0)
    broker.market_order("BTC", -1.0, position_key="P1")
    assert broker.sizes() == {"P2": -2.0}


def test_reports_come_late_twice_or_not_before_they_are_released() -> None:
    delays = {"fill-00000": 1, "fill-00001": None, "fill-00002": 0}
    broker = a_broker(delay=lambda fill: delays[fill.id], repeated=lambda fill: fill.id == "fill-00002")
    for _ in delays:
        broker.market_order("BTC", 1.0)
    reported = [[fill.id for fill in broker.snapshot().fills] for _ in range(3)]
    assert reported == [["fill-00002"], ["fill-00000", "fill-00002"], []]
    broker.release()
    assert [fill.id for fill in broker.snapshot().fills] == ["fill-00001"]


def test_equity_is_what_was_paid_in_and_what_the_trades_earned() -> None:
    """Two ways to count the same money, over a random day without rests."""
    rng = random.Random(5)
    inverse = SimulatedInstrument(symbol="XBT", multiplier=100.0, inverse=True, fee_rate=0.0005)
    broker = a_broker(BTC, SimulatedInstrument(symbol="ES", multiplier=50.0, fee_rate=-0.0001), inverse)
    for _ in range(200):
        symbol = rng.choice(["BTC", "ES", "XBT"])
        broker.wait(1)
        broker.move(symbol, round(broker.marks[symbol] * rng.uniform(0.98, 1.02), 2))
        broker.market_order(symbol, rng.choice([-3.0, -1.0, 1.0, 2.0]), parts=rng.choice([1, 3]))
        broker.pay_funding(symbol, 0.0001)
    broker.deposit(500.0)
    assert len(broker.trades()) > 20
    assert broker.equity == pytest.approx(10_500.0 + worth(broker), abs=1e-6)


def test_a_symbol_without_a_price_is_refused() -> None:
    with pytest.raises(Invalid, match="GOLD has no price yet; call move first"):
        BrokerSimulator([SimulatedInstrument(symbol="GOLD")]).market_order("GOLD", 1.0)


class DrainingBroker(PaperBroker):
    """Reports every fill once, whatever is recorded."""

    def snapshot(self, *, since: FillMark | None = None) -> BrokerSnapshot:
        return super().snapshot()


def test_the_check_of_fills_accepts_our_brokers_and_finds_one_that_drains_its_fills() -> None:
    order = Order(symbol="BTC", quantity=1.0)
    for kind in (PaperBroker, DrainingBroker):
        paper = kind("account", at=T0, cash=10_000.0)
        paper.advance([a_bar("BTC", at=T0)])
        if kind is PaperBroker:
            check_fills_since(paper, order)
        else:
            with pytest.raises(AssertionError, match="a fill is reported only once, and is lost if its answer is"):
                check_fills_since(paper, order)


def test_the_simulator_repeats_reports_until_they_are_recorded() -> None:
    broker = BrokerSimulator([SimulatedInstrument(symbol="ES")], at=T0)
    broker.move("ES", 10.0)
    broker.market_order("ES", 1.0)
    (first,) = broker.snapshot(since=BEGINNING).fills
    broker.market_order("ES", 1.0)
    mark = last_mark([first], BEGINNING)
    assert len(broker.snapshot(since=BEGINNING).fills) == 2
    assert [fill.id for fill in broker.snapshot(since=mark).fills] == ["fill-00001"]
