"""The paper broker fills, liquidates and charges like a broker, and the ledger agrees with it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.adapters.brokers.paper import PaperBroker, PaperTerms
from backsight.core.errors import Invalid
from backsight.core.fills import Fill
from backsight.core.ids import derive_id
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Executed, Order, OrderResult, Rejected, ReportedFill, as_fill
from backsight.core.portfolio import Position
from backsight.core.trades.fold import RoundTrip, fold, open_trips
from backsight.core.trades.infer import FillStamp, infer_fills
from backsight.ports import Broker
from backsight.testing import T0, an_account

HOUR = timedelta(hours=1)


def a_bar(number: int, *prices: float, symbol: str = "BTC") -> Bar:
    """The hour from T0 + `number` on: open, high, low and close, or one price for all."""
    opened, high, low, close = prices if len(prices) == 4 else prices * 4
    at = T0 + number * HOUR
    return Bar(symbol=symbol, interval_seconds=3600, opened_at=at, open=opened, high=high, low=low, close=close)


def a_broker(*, cash: float = 10_000.0, **terms: Any) -> PaperBroker:
    """A broker that has seen BTC at 100 and ETH at 10, at T0."""
    broker = PaperBroker("paper", at=T0 - HOUR, cash=cash, terms=PaperTerms(**terms))
    broker.advance([a_bar(-1, 100.0), a_bar(-1, 10.0, symbol="ETH")])
    return broker


def order(quantity: float, symbol: str = "BTC", **more: Any) -> Order:
    return Order(symbol=symbol, quantity=quantity, **more)


def executed(result: OrderResult) -> ReportedFill:
    assert isinstance(result, Executed)
    (fill,) = result.fills
    return fill


def rejected(result: OrderResult) -> tuple[str, str]:
    assert isinstance(result, Rejected)
    return result.rule, result.detail


def holdings(broker: PaperBroker) -> list[tuple[str, str, float, float | None]]:
    positions = broker.snapshot().portfolio.positions
    return [(each.position_key, each.direction, each.size, each.average_price) for each in positions]


def test_a_paper_broker_satisfies_the_broker_protocol() -> None:
    broker: Broker = a_broker()
    snapshot = broker.snapshot()
    assert (snapshot.portfolio.at, snapshot.portfolio.equity, snapshot.portfolio.positions) == (T0, 10_000.0, ())
    assert (snapshot.fills, snapshot.marks) == ((), {"BTC": 100.0, "ETH": 10.0})


def test_an_order_fills_at_the_mark_and_worse_by_the_slippage_and_pays_the_fee() -> None:
    broker = a_broker(slippage=0.01, fee_rate=0.001)
    bought = executed(broker.submit(order(2.0)))
    assert (bought.price, bought.fee, bought.at, bought.reason) == (101.0, 0.202, T0, None)
    sold = executed(broker.submit(order(-4.0)))
    assert (sold.price, sold.fee, sold.realized_pnl) == (99.0, 0.396, -4.0)
    assert holdings(broker) == [("BTC", "short", 2.0, 99.0)]


def test_a_long_and_a_short_are_marked_at_the_close() -> None:
    broker = a_broker()
    broker.submit(order(2.0))
    broker.submit(order(-10.0, "ETH"))
    broker.advance([a_bar(0, 110.0), a_bar(0, 9.0, symbol="ETH")])
    portfolio = broker.snapshot().portfolio
    assert (portfolio.cash, portfolio.equity, portfolio.at) == (10_000.0, 10_030.0, T0 + HOUR)
    assert [position.mark for position in portfolio.positions] == [110.0, 9.0]


def test_an_increase_moves_the_average_and_a_reduction_realises_its_part() -> None:
    broker = a_broker()
    broker.submit(order(1.0))
    broker.advance([a_bar(0, 120.0)])
    assert executed(broker.submit(order(3.0))).realized_pnl is None
    assert holdings(broker) == [("BTC", "long", 4.0, 115.0)]
    assert executed(broker.submit(order(-1.0))).realized_pnl == 5.0
    assert holdings(broker) == [("BTC", "long", 3.0, 115.0)]
    assert broker.snapshot().portfolio.cash == 10_005.0


def test_a_flip_closes_and_opens_in_one_fill_and_leaves_the_old_levels_behind() -> None:
    broker = a_broker()
    broker.submit(order(1.0, stop_price=90.0, target_price=150.0))
    broker.advance([a_bar(0, 110.0)])
    assert executed(broker.submit(order(-3.0, stop_price=120.0))).realized_pnl == 10.0
    (position,) = broker.snapshot().portfolio.positions
    assert (position.signed_size, position.average_price) == (-2.0, 110.0)
    assert (position.stop_price, position.target_price) == (120.0, None)


def test_an_order_that_would_leave_dust_closes_the_position() -> None:
    broker = a_broker()
    broker.submit(order(0.1))
    broker.submit(order(0.2))
    broker.submit(order(-0.3))
    assert holdings(broker) == []
    broker.submit(order(0.3))
    broker.submit(order(-0.1 - 0.2))
    assert holdings(broker) == []


def test_an_order_without_levels_keeps_the_levels_in_force() -> None:
    broker = a_broker()
    broker.submit(order(1.0, stop_price=90.0, target_price=120.0))
    broker.submit(order(1.0, stop_price=95.0))
    (position,) = broker.snapshot().portfolio.positions
    assert (position.stop_price, position.target_price) == (95.0, 120.0)


def test_an_order_for_nothing_moves_the_levels_and_fills_and_costs_nothing() -> None:
    broker = a_broker(fee_rate=0.001, slippage=0.01)
    broker.submit(order(-2.0, stop_price=110.0, target_price=90.0))
    before = broker.snapshot()
    moved = broker.submit(order(0.0, stop_price=105.0))
    assert moved == Executed(order=order(0.0, stop_price=105.0), position_key="BTC", fills=())
    broker.submit(order(-0.0, target_price=80.0, reduce_only=True))
    snapshot = broker.snapshot()
    (position,), (was,) = snapshot.portfolio.positions, before.portfolio.positions
    assert position == replace(was, stop_price=105.0, target_price=80.0)
    assert snapshot == replace(before, fills=(), portfolio=replace(before.portfolio, positions=(position,)))


def test_moved_levels_use_no_fill_number() -> None:
    moved, unmoved = a_broker(), a_broker()
    for broker in (moved, unmoved):
        broker.submit(order(1.0, stop_price=90.0))
    moved.submit(order(0.0, stop_price=95.0))
    assert executed(moved.submit(order(1.0))) == executed(unmoved.submit(order(1.0)))


def test_a_moved_level_is_the_one_that_fills() -> None:
    broker = a_broker()
    broker.submit(order(1.0, stop_price=90.0))
    broker.submit(order(0.0, stop_price=97.0, target_price=108.0))
    broker.advance([a_bar(0, 100.0, 104.0, 96.0, 99.0)])
    closed = broker.snapshot().fills[-1]
    assert (closed.price, closed.reason) == (97.0, "stop_loss")


@pytest.mark.parametrize(
    ("bad_order", "rule"),
    [
        (order(0.0, stop_price=100.0), "STOP_REACHED"),
        (order(0.0, stop_price=95.0, target_price=99.0), "TARGET_REACHED"),
        (order(0.0, "ETH", stop_price=9.0), "NO_POSITION"),
        (order(0.0, "ETH", target_price=11.0, reduce_only=True), "NO_POSITION"),
    ],
)
def test_levels_that_cannot_be_moved_stay_where_they_are(bad_order: Order, rule: str) -> None:
    broker = a_broker()
    broker.submit(order(1.0, stop_price=90.0, target_price=120.0))
    before = replace(broker.snapshot(), fills=())
    assert rejected(broker.submit(bad_order))[0] == rule
    assert broker.snapshot() == before


def test_on_a_hedging_account_levels_are_moved_by_key() -> None:
    broker = a_broker(position_mode="hedging")
    broker.submit(order(1.0, position_key="p1"))
    broker.submit(order(2.0, position_key="p2"))
    broker.submit(order(0.0, stop_price=95.0, position_key="p2"))
    assert [each.stop_price for each in broker.snapshot().portfolio.positions] == [None, 95.0]
    rule, detail = rejected(broker.submit(order(0.0, stop_price=95.0, position_key="p3")))
    assert (rule, detail) == ("NO_POSITION", "position 'p3' is flat; open one before its levels are moved")


@pytest.mark.parametrize(
    ("quantity", "bar", "price", "reason"),
    [
        (1.0, (100.0, 101.0, 94.0, 99.0), 95.0, "stop_loss"),
        (1.0, (100.0, 101.0, 95.0, 99.0), 95.0, "stop_loss"),
        (1.0, (93.0, 96.0, 92.0, 94.0), 93.0, "stop_loss"),
        (1.0, (100.0, 110.0, 99.0, 108.0), 105.0, "take_profit"),
        (1.0, (107.0, 110.0, 106.0, 108.0), 107.0, "take_profit"),
        (1.0, (100.0, 110.0, 90.0, 108.0), 95.0, "stop_loss"),
        (1.0, (107.0, 110.0, 90.0, 108.0), 95.0, "stop_loss"),
        (-1.0, (100.0, 106.0, 99.0, 100.0), 105.0, "stop_loss"),
        (-1.0, (107.0, 108.0, 100.0, 100.0), 107.0, "stop_loss"),
        (-1.0, (100.0, 101.0, 94.0, 99.0), 95.0, "take_profit"),
        (-1.0, (93.0, 101.0, 92.0, 99.0), 93.0, "take_profit"),
        (-1.0, (100.0, 106.0, 90.0, 99.0), 105.0, "stop_loss"),
    ],
)
def test_stops_and_targets_fill_on_the_extremes(
    quantity: float, bar: tuple[float, ...], price: float, reason: str
) -> None:
    broker = a_broker(slippage=0.01, fee_rate=0.001)
    stop, target = (95.0, 105.0) if quantity > 0 else (105.0, 95.0)
    broker.submit(order(quantity, stop_price=stop, target_price=target))
    broker.snapshot()
    broker.advance([a_bar(0, *bar)])
    (closed,) = broker.snapshot().fills
    assert (closed.quantity, closed.price, closed.reason, closed.fee) == (-quantity, price, reason, price * 0.001)
    assert closed.at == T0 + HOUR


def test_a_level_out_of_reach_does_nothing() -> None:
    broker = a_broker()
    broker.submit(order(1.0, stop_price=95.0, target_price=105.0))
    broker.advance([a_bar(0, 100.0, 104.9, 95.1, 100.0), a_bar(0, 1.0, symbol="ETH")])
    assert holdings(broker) == [("BTC", "long", 1.0, 100.0)]


@pytest.mark.parametrize(
    ("bad_order", "rule"),
    [
        (order(1.0, stop_price=100.0), "STOP_REACHED"),
        (order(-1.0, stop_price=99.0), "STOP_REACHED"),
        (order(1.0, target_price=100.0), "TARGET_REACHED"),
        (order(-1.0, target_price=101.0), "TARGET_REACHED"),
        (order(1.0, reduce_only=True), "REDUCE_ONLY"),
        (order(1000.1), "MAX_LEVERAGE"),
        (order(-1000.1), "MAX_LEVERAGE"),
        (order(1e308), "MAX_LEVERAGE"),
    ],
)
def test_a_rejected_order_names_the_rule_and_changes_nothing(bad_order: Order, rule: str) -> None:
    broker = a_broker()
    before = broker.snapshot()
    assert rejected(broker.submit(bad_order))[0] == rule
    assert broker.snapshot() == before


def test_the_leverage_cap_counts_all_positions_against_equity_after_costs() -> None:
    broker = a_broker(max_leverage=2.0, slippage=0.01)
    executed(broker.submit(order(-1000.0, "ETH")))
    rule, detail = rejected(broker.submit(order(99.0)))
    assert (rule, detail) == (
        "MAX_LEVERAGE",
        "notional 19900.0 would be more than 2.0 times equity 9801.0; order less",
    )
    executed(broker.submit(order(95.0)))


def test_a_reduction_is_never_too_large() -> None:
    broker = a_broker(cash=100.0, max_leverage=2.0)
    broker.submit(order(2.0))
    broker.advance([a_bar(0, 70.0)])
    assert rejected(broker.submit(order(0.1)))[0] == "MAX_LEVERAGE"
    assert executed(broker.submit(order(-0.5))).realized_pnl == -15.0
    assert rejected(broker.submit(order(-3.0)))[0] == "MAX_LEVERAGE"


def test_reduce_only_stops_at_flat() -> None:
    broker = a_broker()
    broker.submit(order(-2.0))
    assert rejected(broker.submit(order(-1.0, reduce_only=True)))[0] == "REDUCE_ONLY"
    assert executed(broker.submit(order(5.0, reduce_only=True))).quantity == 2.0
    assert holdings(broker) == []


def test_a_hedging_account_has_one_position_for_each_key() -> None:
    broker = a_broker(position_mode="hedging")
    broker.submit(order(2.0, position_key="p1"))
    broker.submit(order(-1.0, position_key="p2"))
    assert holdings(broker) == [("p1", "long", 2.0, 100.0), ("p2", "short", 1.0, 100.0)]
    broker.submit(order(-2.0, position_key="p1"))
    assert holdings(broker) == [("p2", "short", 1.0, 100.0)]


def test_without_a_key_a_hedging_account_opens_another_position() -> None:
    broker = a_broker(position_mode="hedging")
    results = [broker.submit(order(1.0)) for _ in range(2)]
    keys = [result.position_key for result in results if isinstance(result, Executed)]
    assert sorted(keys) == [key for key, *_ in holdings(broker)]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("bad_order", "mode", "field"),
    [
        (order(0.0), "netting", "quantity"),
        (order(math.nan), "netting", "quantity"),
        (order(math.inf), "netting", "quantity"),
        (order(1.0, "SOL"), "netting", "symbol"),
        (order(1.0, ""), "netting", "symbol"),
        (order(1.0, stop_price=math.nan), "netting", "stop_price"),
        (order(1.0, target_price=math.inf), "netting", "target_price"),
        (order(1.0, position_key="p1"), "netting", "position_key"),
        (order(1.0, position_key=""), "hedging", "position_key"),
        (order(1.0, reduce_only=True), "hedging", "position_key"),
        (order(0.0, stop_price=95.0), "hedging", "position_key"),
        (order(0.0, stop_price=95.0, position_key="p1"), "netting", "position_key"),
        (order(0.0, stop_price=95.0, position_key="eth"), "hedging", "position_key"),
        (order(0.0, stop_price=math.nan), "netting", "stop_price"),
        (order(1.0, position_key="eth"), "hedging", "position_key"),
    ],
)
def test_an_invalid_order_is_refused_by_field(bad_order: Order, mode: str, field: str) -> None:
    broker = a_broker(position_mode=mode)
    broker.submit(order(1.0, "ETH", position_key="eth" if mode == "hedging" else None))
    before = holdings(broker)
    with pytest.raises(Invalid) as error:
        broker.submit(bad_order)
    assert error.value.field == field
    assert holdings(broker) == before


def test_longs_pay_a_positive_funding_rate_and_shorts_receive_it() -> None:
    broker = a_broker(funding_rate=0.001, funding_interval_seconds=7200)
    broker.submit(order(2.0))
    broker.submit(order(-10.0, "ETH"))
    broker.snapshot()
    broker.advance([a_bar(0, 110.0), a_bar(0, 9.0, symbol="ETH")])  # closes at 11:00: nothing is due
    broker.advance([a_bar(1, 120.0), a_bar(1, 8.0, symbol="ETH")])
    paid, received = broker.snapshot().fills
    assert (paid.kind, paid.amount, paid.symbol, paid.at) == ("funding", -0.24, "BTC", T0 + 2 * HOUR)
    assert (received.amount, received.symbol) == (0.08, "ETH")


def test_funding_counts_every_interval_that_passed() -> None:
    broker = a_broker(funding_rate=0.001, funding_interval_seconds=3600)
    broker.submit(order(1.0))
    broker.advance([a_bar(3, 100.0)])
    assert broker.snapshot().portfolio.cash == pytest.approx(10_000.0 - 4 * 0.1)


def test_a_position_that_was_stopped_pays_no_funding_on_that_bar() -> None:
    broker = a_broker(funding_rate=0.001, funding_interval_seconds=3600)
    broker.submit(order(1.0, stop_price=95.0))
    broker.advance([a_bar(0, 100.0, 100.0, 90.0, 100.0)])
    assert [fill.kind for fill in broker.snapshot().fills] == ["trade", "trade"]


def test_at_the_maintenance_margin_everything_is_closed_at_the_worst_prices() -> None:
    broker = a_broker(cash=1000.0, maintenance=0.05)
    broker.submit(order(50.0))
    broker.submit(order(-100.0, "ETH"))
    broker.snapshot()
    broker.advance([a_bar(0, 100.0, 110.0, 86.0, 105.0), a_bar(0, 10.0, 11.0, 9.0, 9.0, symbol="ETH")])
    fills = broker.snapshot().fills
    assert [(fill.symbol, fill.price, fill.reason) for fill in fills] == [
        ("BTC", 86.0, "liquidated"),
        ("ETH", 11.0, "liquidated"),
    ]
    assert broker.snapshot().portfolio.equity == 1000.0 - 700.0 - 100.0


@pytest.mark.parametrize(("low", "closed"), [(84.211, False), (84.21, True)])
def test_a_position_is_liquidated_at_the_liquidation_price_reported(low: float, closed: bool) -> None:
    broker = a_broker(cash=1000.0, maintenance=0.05)
    broker.submit(order(50.0))
    (position,) = broker.snapshot().portfolio.positions
    assert position.liquidation_price == pytest.approx(80 / 0.95)  # 1000 + 50 (p - 100) = 0.05 * 50 p
    broker.advance([a_bar(0, 100.0, 100.0, low, 100.0)])
    assert (holdings(broker) == []) == closed


def test_equity_at_the_maintenance_margin_is_not_enough() -> None:
    broker = a_broker(cash=100.0, maintenance=0.5, max_leverage=1.5)
    broker.submit(order(1.25))
    broker.advance([a_bar(0, 40.0)])  # equity 25, notional 50
    assert broker.snapshot().fills[-1].reason == "liquidated"


def test_a_short_has_its_liquidation_price_above_and_a_hedged_pair_none_within_reach() -> None:
    broker = a_broker(cash=1000.0, maintenance=0.05, position_mode="hedging")
    broker.submit(order(-50.0, position_key="short"))
    (short,) = broker.snapshot().portfolio.positions
    assert short.liquidation_price == pytest.approx(120 / 1.05)
    broker.submit(order(50.0, position_key="long"))
    broker.advance([a_bar(0, 100.0, 150.0, 50.0, 100.0)])
    assert [key for key, *_ in holdings(broker)] == ["long", "short"]


def test_a_stop_comes_before_liquidation_and_liquidation_before_a_target() -> None:
    stopped, liquidated = a_broker(cash=1000.0), a_broker(cash=1000.0)
    stopped.submit(order(50.0, stop_price=95.0))
    liquidated.submit(order(50.0, target_price=101.0))
    for broker, reason in ((stopped, "stop_loss"), (liquidated, "liquidated")):
        broker.advance([a_bar(0, 100.0, 102.0, 70.0, 100.0)])
        assert broker.snapshot().fills[-1].reason == reason


def test_a_debt_after_a_gap_remains_and_stops_trading() -> None:
    broker = a_broker(cash=1000.0)
    broker.submit(order(50.0))
    broker.advance([a_bar(0, 50.0)])
    assert broker.snapshot().portfolio.equity == -1500.0
    assert rejected(broker.submit(order(0.001)))[0] == "MAX_LEVERAGE"


def test_funding_that_eats_the_margin_liquidates() -> None:
    broker = a_broker(cash=1000.0, funding_rate=0.07, funding_interval_seconds=3600)
    broker.submit(order(90.0))
    broker.advance([a_bar(0, 100.0)])
    assert [(fill.kind, fill.reason) for fill in broker.snapshot().fills[1:]] == [
        ("funding", None),
        ("trade", "liquidated"),
    ]


def test_deposits_and_withdrawals_are_transfers() -> None:
    broker = a_broker()
    broker.submit(order(500.0))
    broker.snapshot()
    broker.deposit(250.0, at=T0)
    broker.withdraw(100.0, at=T0 + HOUR)
    moved = broker.snapshot()
    assert [(fill.kind, fill.amount, fill.at) for fill in moved.fills] == [
        ("transfer", 250.0, T0),
        ("transfer", -100.0, T0 + HOUR),
    ]
    assert (moved.portfolio.equity, moved.portfolio.at) == (10_150.0, T0 + HOUR)


@pytest.mark.parametrize("amount", [0.0, -1.0, math.nan, math.inf, 5000.01])
def test_a_withdrawal_beyond_the_free_margin_changes_nothing(amount: float) -> None:
    broker = a_broker(max_leverage=2.0)
    broker.submit(order(100.0))
    before = replace(broker.snapshot(), fills=())
    with pytest.raises(Invalid, match="amount"):
        broker.withdraw(amount, at=T0 + HOUR)
    assert broker.snapshot() == before


def test_time_does_not_go_back() -> None:
    broker = a_broker()
    with pytest.raises(Invalid, match="before"):
        broker.deposit(1.0, at=T0 - HOUR)
    with pytest.raises(Invalid, match=r"bars\[0\].closes_at"):
        broker.advance([a_bar(-1, 100.0)])
    with pytest.raises(Invalid, match=r"bars\[1\].closes_at"):
        broker.advance([a_bar(1, 100.0), a_bar(0, 10.0, symbol="ETH")])
    with pytest.raises(Invalid, match="no time zone"):
        broker.deposit(1.0, at=T0.replace(tzinfo=None))


def test_a_bad_bar_is_refused_before_anything_happens() -> None:
    broker = a_broker()
    before = broker.snapshot()
    with pytest.raises(Invalid, match=r"BTC\[1\].close"):
        broker.advance([a_bar(0, 100.0), a_bar(1, 100.0, 101.0, 99.0, math.nan)])
    assert broker.snapshot() == before


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"fee_rate": -0.1}, "fee_rate"),
        ({"slippage": math.nan}, "slippage"),
        ({"maintenance": 1.0}, "maintenance"),
        ({"funding_rate": math.inf}, "funding_rate"),
        ({"funding_interval_seconds": 0}, "funding_interval_seconds"),
        ({"max_leverage": 0.0}, "max_leverage"),
        ({"max_leverage": 20.0, "maintenance": 0.05}, "max_leverage"),
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as error:
        PaperTerms(**terms)
    assert error.value.field == field


def test_a_snapshot_reports_every_fill_once_and_ids_follow_from_the_account() -> None:
    broker = a_broker()
    first, second = executed(broker.submit(order(1.0))), executed(broker.submit(order(1.0)))
    assert broker.snapshot().fills == (first, second)
    assert broker.snapshot().fills == ()
    assert [first.id, second.id] == [derive_id("fill", "paper", number) for number in range(2)]
    assert [first.sequence, second.sequence] == [0, 1]
    broker.advance([a_bar(0, 100.0)])
    assert executed(broker.submit(order(1.0))).sequence == 0


def test_a_broker_that_reports_no_fills_reports_positions_only() -> None:
    broker = a_broker(reports_fills=False)
    result = broker.submit(order(1.0, stop_price=95.0))
    assert result == Executed(order=order(1.0, stop_price=95.0), position_key="BTC", fills=())
    assert (broker.snapshot().fills, len(holdings(broker))) == ((), 1)
    broker.advance([a_bar(0, 94.0)])
    snapshot = broker.snapshot()
    assert (snapshot.fills, snapshot.portfolio.positions, snapshot.portfolio.equity) == ((), (), 9994.0)


def test_the_brokers_reason_overrides_the_agents() -> None:
    report = ReportedFill(id="1", at=T0, sequence=0, kind="trade", symbol="BTC", quantity=1.0, price=100.0)
    assert ledger_fill(report, reason="breakout").reason == "breakout"
    assert ledger_fill(replace(report, reason="stop_loss"), reason="breakout").reason == "stop_loss"
    assert ledger_fill(report).position_key == "BTC"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"price": math.nan}, "price"),
        ({"price": None}, "quantity"),
        ({"quantity": 0.0}, "quantity"),
        ({"fee": math.inf}, "fee"),
        ({"at": T0.replace(tzinfo=None)}, "at"),
    ],
)
def test_an_invalid_fill_report_is_refused(changes: dict[str, Any], field: str) -> None:
    report = ReportedFill(id="1", at=T0, sequence=0, kind="trade", symbol="BTC", quantity=1.0, price=100.0)
    with pytest.raises(Invalid) as error:
        ledger_fill(replace(report, **changes))
    assert error.value.field == field


def ledger_fill(reported: ReportedFill, **more: Any) -> Fill:
    return as_fill(
        reported,
        an_account(id="paper"),
        known_at=reported.at,
        recorded_at=reported.at,
        **({"decision_id": None} | more),
    )


# Laws that hold for any orders and any bars.


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """An order whose levels are fractions of the mark away from the mark; a quantity of -0.0 is a short."""

    symbol: str
    quantity: float
    stop: float | None
    target: float | None
    reduce_only: bool
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """An hour of bars: for each symbol, prices as multiples of the last mark."""

    moves: dict[str, tuple[float, float, float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A deposit, or a withdrawal if the amount is negative."""

    amount: float


Action = Ask | Hour | Move

CASH = 3000.0
MOVES = st.tuples(*[st.floats(0.8, 1.25)] * 4)
LEVELS = st.sampled_from([None, None, 0.02, 0.1])
ASKS = st.builds(
    Ask,
    symbol=st.sampled_from(["BTC", "ETH"]),
    quantity=st.floats(-300, 300).filter(lambda q: abs(q) > 1e-3) | st.integers(-40, 40).filter(bool).map(float),
    stop=LEVELS,
    target=LEVELS,
    reduce_only=st.sampled_from([False, False, False, True]),
    key=st.sampled_from([None, "1", "2"]),
)
SHIFTS = st.builds(
    Ask,
    symbol=st.sampled_from(["BTC", "ETH"]),
    quantity=st.sampled_from([0.0, -0.0]),
    stop=st.sampled_from([0.02, 0.1]),
    target=LEVELS,
    reduce_only=st.booleans(),
    key=st.sampled_from(["1", "2"]),
)
HOURS = st.builds(Hour, moves=st.dictionaries(st.sampled_from(["BTC", "ETH"]), MOVES, min_size=1))
TRANSFERS = st.builds(Move, amount=st.floats(-500, 500))
ACTIONS = st.lists(ASKS | ASKS | SHIFTS | HOURS | HOURS | TRANSFERS, min_size=4, max_size=20)
TERMS = st.builds(
    PaperTerms,
    position_mode=st.sampled_from(["netting", "hedging"]),
    fee_rate=st.sampled_from([0.0, 0.001]),
    slippage=st.sampled_from([0.0, 0.002]),
    funding_rate=st.sampled_from([0.0, 0.001, -0.002]),
    funding_interval_seconds=st.sampled_from([3600, 28_800]),
)
LAW = settings(max_examples=150, deadline=None)


class Session:
    """A broker that performs actions, the snapshot after the last action, and the bars that closed in it."""

    def __init__(self, terms: PaperTerms) -> None:
        self.broker = PaperBroker("paper", at=T0 - HOUR, cash=CASH, terms=terms)
        self.hedging = terms.position_mode == "hedging"
        self.hours = count(-1)
        self.marks = {"BTC": 100.0, "ETH": 10.0}
        self.bars = self.closed(dict.fromkeys(self.marks, (1.0, 1.0, 1.0, 1.0)))
        self.snapshot = self.broker.snapshot()

    def act(self, action: Action) -> BrokerSnapshot:
        self.bars = []
        match action:
            case Ask():
                self.broker.submit(self.order(action))
            case Hour():
                self.bars = self.closed(action.moves)
            case Move():
                self.move(action.amount)
        self.snapshot = self.broker.snapshot()
        self.marks = dict(self.snapshot.marks)
        return self.snapshot

    def closed(self, moves: dict[str, tuple[float, float, float, float]]) -> list[Bar]:
        number = next(self.hours)
        bars = []
        for symbol, move in moves.items():
            opened, inner, outer, close = (self.marks[symbol] * each for each in move)
            prices = (opened, inner, outer, close)
            bars.append(a_bar(number, opened, max(prices), min(prices), close, symbol=symbol))
        self.broker.advance(bars)
        return bars

    def order(self, ask: Ask) -> Order:
        mark, way = self.marks[ask.symbol], math.copysign(1.0, ask.quantity)
        key = f"{ask.symbol}-{ask.key}" if self.hedging and (ask.key or ask.reduce_only) else None
        return Order(
            symbol=ask.symbol,
            quantity=ask.quantity,
            stop_price=None if ask.stop is None else mark * (1 - way * ask.stop),
            target_price=None if ask.target is None else mark * (1 + way * ask.target),
            reduce_only=ask.reduce_only,
            position_key=key,
        )

    def move(self, amount: float) -> None:
        at, before = self.snapshot.portfolio.at, self.snapshot.portfolio.equity
        if amount > 0:
            self.broker.deposit(amount, at=at)
        elif amount < 0 and -amount <= before / 2 - self.notional() / 10:
            self.broker.withdraw(-amount, at=at)

    def notional(self) -> float:
        return sum(each.size * each.mark for each in self.snapshot.portfolio.positions)


def positions_of(snapshot: BrokerSnapshot) -> dict[str, Position]:
    return snapshot.portfolio.by_key()


def worth(trips: Iterable[RoundTrip], snapshot: BrokerSnapshot) -> float:
    return math.fsum(trip.realized_pnl + trip.unrealized(snapshot.marks[trip.symbol]) for trip in trips)


@LAW
@given(TERMS, ACTIONS)
def test_the_folded_fills_agree_with_the_broker_in_money_and_in_positions(
    terms: PaperTerms, actions: list[Action]
) -> None:
    session, fills = Session(terms), []
    for action in actions:
        snapshot = session.act(action)
        fills += [ledger_fill(reported) for reported in snapshot.fills]
        beside = math.fsum(fill.amount - fill.fee for fill in fills)
        trips = fold(fills)
        assert worth(trips, snapshot) == pytest.approx(snapshot.portfolio.equity - CASH - beside, rel=0, abs=1e-6)
        ours = {key: (trip.signed_size, trip.average_cost) for key, trip in open_trips(trips).items()}
        theirs = {key: (each.signed_size, each.average_price) for key, each in positions_of(snapshot).items()}
        assert ours == theirs


@LAW
@given(TERMS, ACTIONS)
def test_the_brokers_realized_profit_is_ours(terms: PaperTerms, actions: list[Action]) -> None:
    session = Session(terms)
    fills = [ledger_fill(reported) for action in actions for reported in session.act(action).fills]
    for trip in fold(fills):
        assert trip.left == 0 or trip.broker_pnl == pytest.approx(trip.realized_pnl, rel=1e-9, abs=1e-9)


@LAW
@given(TERMS, ACTIONS, st.integers(1, 4))
def test_with_no_fill_reported_the_ledger_agrees_with_the_broker_at_every_snapshot(
    terms: PaperTerms, actions: list[Action], every: int
) -> None:
    session, fills = Session(replace(terms, reports_fills=False)), list[Fill]()
    for number in range(0, len(actions), every):
        before, bars = positions_of(session.snapshot), list[Bar]()
        for action in actions[number : number + every]:
            assert session.act(action).fills == ()
            bars += session.bars
        fills += inferred(fills, session.snapshot, number=number, before=before, bars=bars)
        ledger, positions = open_trips(fold(fills)), positions_of(session.snapshot)
        assert ledger.keys() == positions.keys()
        for key, trip in ledger.items():
            assert trip.direction == positions[key].direction
            assert trip.size == pytest.approx(positions[key].size, rel=1e-9)


def inferred(
    fills: Sequence[Fill], snapshot: BrokerSnapshot, *, number: int, before: dict[str, Position], bars: Sequence[Bar]
) -> list[Fill]:
    at = snapshot.portfolio.at
    return infer_fills(
        open_trips(fold(fills)),
        snapshot,
        stamp=FillStamp(owner_id="ana", account_id="paper", tick_id=f"t{number}", phase="since", at=at, recorded_at=at),
        last_seen=before,
        bars={symbol: [bar for bar in bars if bar.symbol == symbol] for symbol in snapshot.marks},
    )


@LAW
@given(TERMS, ACTIONS)
def test_the_same_calls_give_the_same_snapshots(terms: PaperTerms, actions: list[Action]) -> None:
    first, second = Session(terms), Session(terms)
    assert [repr(first.act(action)) for action in actions] == [repr(second.act(action)) for action in actions]


@LAW
@given(TERMS, ACTIONS, st.floats(0.01, 1e6))
def test_a_deposit_moves_equity_by_its_amount_and_nothing_else(
    terms: PaperTerms, actions: list[Action], amount: float
) -> None:
    session = Session(terms)
    for action in actions:
        session.act(action)
    before = session.snapshot
    after = session.act(Move(amount=amount))
    assert after.portfolio.equity == pytest.approx(before.portfolio.equity + amount, rel=1e-12, abs=1e-9)
    assert [each.signed_size for each in after.portfolio.positions] == [
        each.signed_size for each in before.portfolio.positions
    ]


@LAW
@given(TERMS, ACTIONS, SHIFTS)
def test_an_order_for_nothing_changes_levels_and_nothing_else(
    terms: PaperTerms, actions: list[Action], shift: Ask
) -> None:
    session = Session(terms)
    for action in actions:
        session.act(action)
    before = session.snapshot
    after = session.act(shift)
    assert without_levels(after) == without_levels(replace(before, fills=()))


def without_levels(snapshot: BrokerSnapshot) -> BrokerSnapshot:
    bare = tuple(replace(each, stop_price=None, target_price=None) for each in snapshot.portfolio.positions)
    return replace(snapshot, portfolio=replace(snapshot.portfolio, positions=bare))
