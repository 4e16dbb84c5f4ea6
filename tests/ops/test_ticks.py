"""A tick brings the ledger in line with the broker, records why trades ended, and copes with repeats and delays."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from backsight.core.decision import Segment, Verdict, shown_hash
from backsight.core.errors import BacksightError, Conflict, Invalid
from backsight.core.fills import Fill
from backsight.core.holdout import memory_arm
from backsight.core.instants import JUST_BEFORE
from backsight.core.market import Bar
from backsight.core.orders import Order, ReportedFill
from backsight.core.portfolio import Position
from backsight.core.trades.trade import Outcome, Trade
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.store import trades as stored_trades
from backsight.store.audit import AUDIT
from backsight.store.reading import fetch, owned
from backsight.store.tables import AUDITED
from backsight.store.trades import MARKS, TRADES
from backsight.testing import T0, FakeClock, a_position, a_snapshot, a_trade_call

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
NOOP = Verdict(kind="noop")
EXECUTED = Verdict(kind="executed")
DEPLOYMENT = "S@main"


def at(hours: float) -> datetime:
    return T0 + hours * HOUR


def a_report(name: str, when: datetime, quantity: float = 0.0, price: float | None = None, **more: Any) -> ReportedFill:
    """A fill of BTC that the broker reports: an execution, unless a kind is given."""
    fields: dict[str, Any] = {"id": name, "at": when, "sequence": 0, "kind": "trade", "symbol": "BTC"}
    return ReportedFill(**(fields | {"quantity": quantity, "price": price} | more))


def a_bar(hours: float, *prices: float, symbol: str = "BTC", seconds: int = 3600) -> Bar:
    """The bar that opens at this hour; `prices` are open, high, low and close, or one price for all four."""
    opened, high, low, close = prices if len(prices) == 4 else prices * 4
    return Bar(
        symbol=symbol, interval_seconds=seconds, opened_at=at(hours), open=opened, high=high, low=low, close=close
    )


def an_order(quantity: float, **more: Any) -> Order:
    fields: dict[str, Any] = {"symbol": "BTC", "quantity": quantity, "reason": "the agent's words"}
    return Order(**(fields | more))


class Desk:
    """A strategy deployed on an account, and the ticks it closes."""

    def __init__(
        self, memory: Memory, clock: FakeClock, *, deployed: dict[str, Any] | None = None, **account: Any
    ) -> None:
        self.memory, self.clock = memory, clock
        risk = account.pop("risk_per_trade", None)
        clock.at = T0
        memory.open_account(**({"venue": "x", "name": "main", "currency": "EUR"} | account))
        memory.save_strategy(name="S", risk_per_trade=risk)
        memory.deploy(strategy_name="S", account="main", **(deployed or {}))

    def tick(
        self,
        hours: float,
        before: Sequence[Position] = (),
        after: Sequence[Position] | None = None,
        *,
        fills: Iterable[ReportedFill] = (),
        done: Iterable[ReportedFill] = (),
        mark: float = 100.0,
        marks: Mapping[str, float] | None = None,
        equity: float = 10_000.0,
        order: Order | None = None,
        lag: timedelta = timedelta(0),
        **more: Any,
    ) -> ClosedTick:
        """Close the tick of an hour: `fills` are reported before the decision, `done` after it, `lag` later."""
        self.clock.at = max(self.clock.at, at(hours) + lag)
        market: dict[str, Any] = {"marks": {"BTC": mark, **(marks or {})}, "equity": equity}
        snapshot = a_snapshot(*before, at=at(hours), fills=tuple(fills), **market)
        after_snapshot = None if after is None else a_snapshot(*after, at=at(hours) + lag, fills=tuple(done), **market)
        verdict = NOOP if order is None else EXECUTED
        call: dict[str, Any] = {"deployment": DEPLOYMENT, "at": at(hours), "before": snapshot, "after": after_snapshot}
        return self.memory.close_tick(**(call | {"verdict": verdict, "proposal": order} | more))

    def trades(self) -> list[Trade]:
        """The latest version of every trade, in the order of their entries."""
        c = TRADES.table.c
        with self.memory.reading() as connection:
            statement = owned(TRADES, self.memory.owner).order_by(c.entry_tick_at, c.exit_tick_at)
            return fetch(connection, TRADES, statement)

    def trade(self) -> Trade:
        (only,) = self.trades()
        return only

    def enter(self, hours: float = 0.0, size: float = 2.0, **details: Any) -> Position:
        """Close a tick in which the agent enters a position and the broker reports no fill."""
        position = a_position(size, **details)
        self.tick(hours, [], [position], order=an_order(size))
        return position


Dump = dict[str, list[tuple[Any, ...]]]


def dump(memory: Memory) -> Dump:
    """Every row of every table."""
    tables = [noun.table for noun in (*AUDITED, AUDIT)]
    with memory.reading() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(select(*table.c))), key=repr)
            for table in tables
        }


@pytest.fixture
def desk(memory: Memory, clock: FakeClock) -> Desk:
    return Desk(memory, clock)


# The two snapshots of a tick: before and after the decision.


def test_flat_to_open_opens_a_trade(desk: Desk) -> None:
    closed = desk.tick(0, [], [a_position(2.0)], order=an_order(2.0, reason="break of the range"))
    (trade,) = closed.opened
    assert (trade.status, trade.direction, trade.open_size, trade.entry_price) == ("open", "long", 2.0, 100.0)
    assert (trade.entry.reason, trade.entry.snapshot_id) == ("break of the range", closed.decision.id)
    assert (trade.pnl, trade.outcome, trade.exit_reason, trade.inferred) == (None, None, None, True)


def test_open_to_flat_closes_the_trade_with_the_agents_reason(desk: Desk) -> None:
    position = desk.enter(size=-2.0)
    closed = desk.tick(1, [position], [], mark=90.0, order=an_order(2.0, reason="target met"))
    (trade,) = closed.closed
    assert (trade.pnl, trade.exit_reason, trade.exit_snapshot_id) == (20.0, "target met", closed.decision.id)
    assert (trade.holding_minutes, trade.open_size, trade.closed_at) == (60.0, 0.0, at(1))
    episode = desk.memory.get_trade(trade_id=trade.id).episode
    assert episode is not None
    assert (episode.pnl, episode.ended_at) == (20.0, at(1))


def test_an_unchanged_size_is_only_marked_and_its_excursions_are_recorded(desk: Desk) -> None:
    position = desk.enter()
    for hours, mark in ((1, 110.0), (2, 85.0)):
        closed = desk.tick(hours, [replace(position, mark=mark)])
        assert (closed.opened, closed.closed) == ((), ())
    desk.tick(3, [position], [], order=an_order(-2.0))
    trade = desk.trade()
    assert (trade.mfe, trade.mfe_at, trade.mae, trade.mae_at) == (20.0, at(1), -30.0, at(2))
    assert (trade.excursion_source, trade.excursion_interval_seconds) == ("marks", None)


def test_an_open_trade_has_its_mark_its_result_and_its_excursions_so_far(desk: Desk) -> None:
    position = desk.enter(stop_price=95.0)
    for hours, mark in ((1, 110.0), (2, 85.0), (3, 104.0)):
        desk.tick(hours, [replace(position, mark=mark)])
    trade_id = desk.trade().id
    so_far = desk.memory.get_trade(trade_id=trade_id).so_far
    assert so_far is not None
    assert so_far.excursions is not None
    assert (so_far.mark, so_far.at, so_far.unrealized_pnl, so_far.pnl) == (104.0, at(3), 8.0, 8.0)
    assert (so_far.excursions.mfe, so_far.excursions.mae, so_far.mfe_r, so_far.mae_r) == (20.0, -30.0, 2.0, -3.0)
    assert (so_far.outcome, so_far.risk) == (Outcome(value=0.8, unit="R"), 10.0)
    earlier = desk.memory.get_trade(trade_id=trade_id, as_of=at(1)).so_far
    assert earlier is not None
    assert earlier.mark == 110.0
    desk.tick(4, [position], [], order=an_order(-2.0))
    assert desk.memory.get_trade(trade_id=trade_id).so_far is None


def test_an_addition_moves_the_cost_and_a_reduction_realises_its_part(desk: Desk) -> None:
    position = desk.enter()
    more = replace(position, size=4.0, average_price=105.0, mark=110.0)
    desk.tick(1, [replace(position, mark=110.0)], [more], mark=110.0, order=an_order(2.0))
    less = replace(more, size=1.0, mark=115.0)
    desk.tick(2, [replace(more, mark=115.0)], [less], mark=115.0, order=an_order(-3.0))
    trade = desk.trade()
    assert (trade.average_cost, trade.size, trade.open_size, trade.realized_pnl) == (105.0, 4.0, 1.0, 30.0)
    desk.tick(3, [less], [], mark=105.0, order=an_order(-1.0))
    assert (desk.trade().pnl, desk.trade().entry_price, desk.trade().exit_price) == (30.0, 105.0, 112.5)


def test_a_flip_is_two_trades_in_one_transaction_and_shares_its_fee_by_quantity(desk: Desk) -> None:
    position = desk.enter(size=1.0)
    links = desk.memory.verify_audit().links
    turned = a_position(-2.0, mark=110.0, average_price=110.0)
    report = a_report("f", at(1), -3.0, 110.0, fee=3.0, realized_pnl=10.0)
    closed = desk.tick(1, [replace(position, mark=110.0)], [turned], done=[report], mark=110.0, order=an_order(-3.0))
    long, short = desk.trades()
    assert (closed.closed, closed.opened) == ((long,), (short,))
    assert (long.status, long.pnl, long.fees, long.broker_pnl) == ("closed", 9.0, 1.0, 10.0)
    assert (short.direction, short.open_size, short.fees, short.broker_pnl) == ("short", 2.0, 2.0, None)
    assert desk.memory.verify_audit().links == links + 1


def test_a_trade_opened_by_a_flip_is_folded_again_from_its_part(desk: Desk) -> None:
    position = desk.enter(size=1.0)
    turned = a_position(-2.0)
    desk.tick(1, [position], [turned], done=[a_report("f", at(1), -3.0, 100.0, fee=3.0)], order=an_order(-3.0))
    desk.tick(2, [turned], [], done=[a_report("g", at(2), 2.0, 90.0, fee=1.0)], mark=90.0, order=an_order(2.0))
    assert [(trade.pnl, trade.fees) for trade in desk.trades()] == [(-1.0, 1.0), (17.0, 3.0)]


def test_funding_and_the_brokers_pnl_are_recorded_and_a_transfer_leaves_the_result_alone(desk: Desk) -> None:
    desk.tick(0, [a_position(2.0)], fills=[a_report("a", at(0), 2.0, 100.0, fee=0.5)])
    desk.tick(
        1,
        [a_position(2.0)],
        fills=[
            a_report("b", at(0.5), kind="funding", amount=-3.0),
            ReportedFill(id="c", at=at(0.5), sequence=1, kind="transfer", amount=500.0),
        ],
    )
    desk.tick(2, [], fills=[a_report("d", at(2), -2.0, 110.0, fee=0.5, realized_pnl=19.5)], mark=110.0)
    trade = desk.trade()
    assert (trade.realized_pnl, trade.funding, trade.fees, trade.pnl) == (20.0, -3.0, 1.0, 16.0)
    assert (trade.broker_pnl, trade.inferred, trade.won) == (19.5, False, True)


@pytest.mark.parametrize("reports_in", ["fills", "done"])
def test_a_transfer_belongs_to_the_tick_of_an_instant_that_reported_it(desk: Desk, reports_in: str) -> None:
    desk.tick(0)
    desk.tick(1, equity=9_000.0)
    deposit = ReportedFill(id="c", at=at(0.5), sequence=0, kind="transfer", amount=1_000.0)
    more: dict[str, Any] = {reports_in: [deposit], "after": ()}
    desk.tick(1, **more, sequence=1)
    drawdown = desk.memory.get_agent_state(deployment=DEPLOYMENT).mood.drawdown
    assert drawdown == pytest.approx(0.1)
    assert desk.memory.verify_audit().findings == ()
    assert desk.memory.doctor().healthy


def test_a_fee_after_the_close_corrects_the_trade_and_earlier_as_of_reads_the_former_version(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [position], [], mark=101.0, order=an_order(-2.0))
    desk.tick(2, fills=[a_report("late", at(1.5), kind="fee", fee=2.5)])
    trade = desk.trade()
    assert (trade.pnl, trade.fees, trade.won, trade.closed_at, trade.known_at) == (-0.5, 2.5, False, at(1), at(2))
    for as_of, pnl in ((at(2) - JUST_BEFORE, 2.0), (at(2), -0.5)):
        read = desk.memory.get_trade(trade_id=trade.id, as_of=as_of)
        assert read.episode is not None
        assert (read.trade.pnl, read.episode.pnl) == (pnl, pnl)  # type: ignore[union-attr]


def test_a_fee_after_the_close_changes_neither_risk_nor_excursions(desk: Desk) -> None:
    position = desk.enter(stop_price=95.0)
    desk.tick(1, [replace(position, mark=110.0)])
    desk.tick(2, [position], [], order=an_order(-2.0))
    before = desk.trade()
    desk.tick(3, fills=[a_report("late", at(2.5), kind="fee", fee=2.5)])
    after = desk.trade()
    assert (after.risk, after.initial_risk, after.stop_price, after.mfe) == (10.0, 10.0, 95.0, before.mfe)
    assert after.outcome is not None
    assert (after.outcome.value, after.outcome.unit) == (-0.25, "R")


def test_a_fee_after_the_close_brings_no_bar_that_was_not_closed_at_the_exit(desk: Desk) -> None:
    position = a_position(1.0)
    desk.tick(0, [], [position], order=an_order(1.0), bars=[a_bar(-1, 100.0)])
    desk.tick(1, [position], bars=[a_bar(0, 100.0, 105.0, 99.0, 100.0)])
    desk.tick(1.5, [position], [], order=an_order(-1.0))
    before = desk.trade()
    fee = a_report("late", at(1.75), kind="fee", fee=1.0)
    desk.tick(2, fills=[fee], bars=[a_bar(1, 100.0, 190.0, 10.0, 100.0)])
    assert (desk.trade().mfe, desk.trade().mae) == (before.mfe, before.mae) == (5.0, -1.0)


# Exit and entry reasons.


def test_a_close_that_nobody_explains_is_unexplained(desk: Desk) -> None:
    desk.enter()
    desk.tick(1, mark=104.0)
    trade = desk.trade()
    assert (trade.exit_reason, trade.exit_price, trade.exit_snapshot_id) == ("unexplained", 104.0, None)
    assert trade.closed_at == at(1) - JUST_BEFORE


@pytest.mark.parametrize("reported", [False, True])
def test_a_flatten_command_is_an_external_flatten(desk: Desk, reported: bool) -> None:
    position = desk.enter()
    done = [a_report("f", at(1), -2.0, 100.0)] if reported else []
    desk.tick(1, [position], [], done=done, flatten=True)
    assert desk.trade().exit_reason == "external_flatten"


def test_a_proposal_that_was_not_executed_explains_nothing(desk: Desk) -> None:
    position = desk.enter()
    refused = Verdict(kind="rejected", rule="R3_POSITION_CAP")
    desk.tick(1, [position], [], order=an_order(-2.0), verdict=refused)
    assert desk.trade().exit_reason == "unexplained"


@pytest.mark.parametrize("reported", [False, True])
def test_an_exit_in_the_tick_of_an_order_to_add_is_not_labelled_by_that_order(desk: Desk, reported: bool) -> None:
    position = desk.enter()
    done = [a_report("f", at(1), -2.0, 95.0)] if reported else []
    desk.tick(1, [position], [], done=done, mark=95.0, order=an_order(1.0, reason="add"))
    trade = desk.trade()
    assert (trade.exit_reason, trade.exit_snapshot_id) == ("unexplained", None)


def test_growth_in_the_tick_of_an_order_to_sell_is_not_that_orders(desk: Desk) -> None:
    desk.tick(0, [], [a_position(2.0)], order=an_order(-1.0, reason="go short"))
    trade = desk.trade()
    assert (trade.direction, trade.entry.reason, trade.entry.snapshot_id) == ("long", None, None)


def test_a_proposal_in_another_symbol_explains_nothing(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [position], [], order=an_order(1.0, symbol="ETH"))
    assert desk.trade().exit_reason == "unexplained"


LEVELS: list[tuple[dict[str, Any], tuple[float, ...], float, str]] = [
    ({"stop_price": 95.0}, (100.0, 101.0, 94.0, 96.0), 95.0, "stop_loss"),
    ({"stop_price": 95.0}, (93.0, 94.0, 92.0, 93.0), 93.0, "stop_loss"),
    ({"target_price": 110.0}, (100.0, 111.0, 99.0, 108.0), 110.0, "take_profit"),
    ({"stop_price": 95.0, "target_price": 110.0}, (100.0, 111.0, 94.0, 108.0), 95.0, "stop_loss"),
    ({"liquidation_price": 60.0}, (100.0, 101.0, 59.0, 61.0), 60.0, "liquidated"),
    ({"stop_price": 95.0, "target_price": 110.0}, (100.0, 105.0, 96.0, 100.0), 99.0, "unexplained"),
]


@pytest.mark.parametrize(("levels", "prices", "price", "reason"), LEVELS)
def test_bars_show_which_level_closed_the_trade(
    desk: Desk, levels: dict[str, Any], prices: tuple[float, ...], price: float, reason: str
) -> None:
    desk.enter(**levels)
    desk.tick(1, mark=99.0, bars=[a_bar(0, *prices)])
    trade = desk.trade()
    assert (trade.exit_price, trade.exit_reason, trade.inferred) == (price, reason, True)


@pytest.mark.parametrize(("levels", "prices", "price", "reason"), LEVELS)
def test_a_reported_close_at_a_level_that_the_bars_reached_has_that_levels_reason(
    desk: Desk, levels: dict[str, Any], prices: tuple[float, ...], price: float, reason: str
) -> None:
    desk.enter(**levels)
    report = a_report("f", at(0.5), -2.0, price)
    desk.tick(1, fills=[report], bars=[a_bar(0, *prices)])
    trade = desk.trade()
    assert (trade.exit_price, trade.exit_reason, trade.closed_at) == (price, reason, at(0.5))


AT_LEVELS: list[tuple[float, dict[str, Any], float, str]] = [
    (2.0, {"stop_price": 95.0}, 95.0, "stop_loss"),
    (2.0, {"stop_price": 95.0}, 95.0 * 1.0002, "stop_loss"),
    (2.0, {"stop_price": 95.0}, 95.0 * 1.0003, "unexplained"),
    (2.0, {"stop_price": 95.0}, 90.0, "stop_loss"),
    (2.0, {"target_price": 110.0}, 110.0 * 0.9998, "take_profit"),
    (2.0, {"target_price": 110.0}, 110.0 * 0.9997, "unexplained"),
    (2.0, {"stop_price": 95.0, "target_price": 110.0}, 100.0, "unexplained"),
    (-2.0, {"stop_price": 105.0}, 106.0, "stop_loss"),
    (-2.0, {"stop_price": 105.0, "target_price": 90.0}, 90.0, "take_profit"),
    (-2.0, {"stop_price": 105.0, "target_price": 90.0}, 95.0, "unexplained"),
]


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize("with_bars", [True, False])
@pytest.mark.parametrize(("size", "levels", "price", "reason"), AT_LEVELS)
def test_a_close_at_a_level_has_its_reason_with_and_without_bars(
    desk: Desk, size: float, levels: dict[str, Any], price: float, reason: str, with_bars: bool, reported: bool
) -> None:
    desk.enter(size=size, **levels)
    report = a_report("f", at(0.5), -size, price)
    bars = [a_bar(0, 100.0, max(price, 100.0), min(price, 100.0), price)] if with_bars else []
    desk.tick(1, fills=[report] if reported else [], mark=price, bars=bars)
    assert desk.trade().exit_reason == reason


@pytest.mark.parametrize(("price", "reason"), [(95.5, "stop_loss"), (95.51, "unexplained")])
def test_a_tick_size_says_how_near_a_level_is(desk: Desk, price: float, reason: str) -> None:
    desk.memory.save_instrument(symbol="BTC", tick_size=0.5)
    desk.enter(stop_price=95.0)
    desk.tick(1, fills=[a_report("f", at(0.5), -2.0, price)])
    assert desk.trade().exit_reason == reason


def test_a_stop_between_the_two_snapshots_of_a_tick_is_the_stop(desk: Desk) -> None:
    position = desk.enter(stop_price=95.0)
    desk.tick(1, [position], [], done=[a_report("f", at(1), -2.0, 95.0)])
    assert desk.trade().exit_reason == "stop_loss"


@pytest.mark.parametrize("reported", [True, False])
def test_the_agents_own_exit_at_its_stop_keeps_its_reason(desk: Desk, reported: bool) -> None:
    position = desk.enter(stop_price=95.0)
    done = [a_report("f", at(1), -2.0, 95.0)] if reported else []
    desk.tick(1, [position], [], done=done, mark=95.0, order=an_order(-2.0, reason="enough"))
    assert desk.trade().exit_reason == "enough"


def test_a_flatten_command_at_the_stop_is_an_external_flatten(desk: Desk) -> None:
    desk.enter(stop_price=95.0)
    desk.tick(1, mark=94.0, flatten=True)
    assert desk.trade().exit_reason == "external_flatten"


def test_a_manual_sale_well_above_a_stop_that_was_reached_is_not_the_stop(desk: Desk) -> None:
    desk.enter(stop_price=95.0)
    desk.tick(1, fills=[a_report("f", at(0.5), -2.0, 99.0)], bars=[a_bar(0, 100.0, 101.0, 94.0, 96.0)])
    assert desk.trade().exit_reason == "unexplained"


@pytest.mark.parametrize("reason", ["stop_loss", "take_profit", "liquidated"])
def test_the_brokers_exit_reason_overrides_the_bars(desk: Desk, reason: str) -> None:
    desk.enter(stop_price=95.0)
    desk.tick(1, fills=[a_report("f", at(0.5), -2.0, 99.0, reason=reason)], bars=[a_bar(0, 100.0, 101.0, 94.0, 96.0)])
    assert desk.trade().exit_reason == reason


@pytest.mark.parametrize("reported", [False, True])
def test_an_entry_during_a_flatten_command_does_not_have_it_as_its_reason(desk: Desk, reported: bool) -> None:
    fills = [a_report("f", at(0), 2.0, 100.0)] if reported else []
    desk.tick(0, [a_position(2.0)], fills=fills, flatten=True)
    assert desk.trade().entry.reason is None


# Changes between ticks.


@pytest.mark.parametrize("reported", [False, True])
def test_stopped_out_and_in_again_at_the_same_size_is_two_trades(desk: Desk, reported: bool) -> None:
    desk.enter(stop_price=95.0)
    again = a_position(2.0, average_price=97.0, mark=98.0)
    out, back = a_report("o", at(0.5), -2.0, 95.0), a_report("i", at(0.75), 2.0, 97.0)
    fills = [out, back] if reported else []
    desk.tick(1, [again], fills=fills, mark=98.0, bars=[a_bar(0, 100.0, 101.0, 94.0, 98.0)])
    first, second = desk.trades()
    assert (first.exit_reason, first.exit_price, first.pnl) == ("stop_loss", 95.0, -10.0)
    assert (second.entry_price, second.open_size, second.entry.reason) == (97.0, 2.0, None)
    assert (first.closed_at or at(9)) <= (second.opened_at or at(0)) < at(1)


def test_a_round_trip_between_ticks_is_a_trade_where_its_fills_are_reported(desk: Desk) -> None:
    desk.tick(0)
    fills = [a_report("i", at(0.25), 1.0, 100.0), a_report("o", at(0.5), -1.0, 103.0)]
    closed = desk.tick(1, fills=fills)
    assert [trade.id for trade in closed.opened] == [trade.id for trade in closed.closed] == [desk.trade().id]
    assert (desk.trade().pnl, desk.trade().entry.snapshot_id, desk.trade().memory_arm) == (3.0, None, "off")


def no_fills(*_: object, **__: object) -> list[Fill]:
    raise AssertionError("the fills of a position are read again")


def test_a_tick_reads_the_fills_of_an_open_position_only_in_its_first_ticks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    fills = [a_report(f"i{n}", at(0.5) + timedelta(seconds=n), 1.0, 100.0) for n in range(5)]
    position = a_position(5.0)
    desk.tick(1, [position], fills=fills)
    desk.tick(2, [position])
    for hours in (3, 4):
        added = a_report(f"a{hours}", at(hours - 0.5), 1.0, 106.0)
        position = replace(position, size=position.size + 1.0, average_price=None)
        with monkeypatch.context() as patch:
            patch.setattr(stored_trades, "fills_of_position", no_fills)
            desk.tick(hours, [position], fills=[added])
    assert (desk.trade().open_size, desk.trade().entry_price) == (7.0, (5 * 100.0 + 2 * 106.0) / 7.0)


def test_a_position_closed_twice_in_one_tick_is_two_trades_and_one_mark(desk: Desk) -> None:
    position = desk.enter()
    out, back, out_again = (
        a_report("o", at(1.1), -2.0, 101.0),
        a_report("i", at(1.2), 2.0, 99.0),
        a_report("x", at(1.3), -2.0, 102.0),
    )
    order, lag = an_order(-2.0), timedelta(minutes=30)
    desk.tick(1, [position], [], done=[out, back, out_again], order=order, lag=lag)
    first, second = desk.trades()
    assert (first.pnl, second.pnl) == (2.0, 6.0)
    with desk.memory.reading() as connection:
        marks = fetch(connection, MARKS, owned(MARKS, desk.memory.owner, MARKS.table.c.look == "before"))
    assert [mark.trade_id for mark in marks] == [first.id]


def test_a_manual_addition_and_a_manual_reduction_stay_in_one_trade(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [replace(position, size=4.0, average_price=101.0, mark=102.0)])
    desk.tick(2, [replace(position, size=2.0, average_price=101.0, mark=104.0)])
    trade = desk.trade()
    assert (trade.size, trade.open_size, trade.average_cost, trade.realized_pnl) == (4.0, 2.0, 101.0, 6.0)


def test_the_next_tick_makes_up_for_a_missed_one(desk: Desk) -> None:
    desk.enter(stop_price=95.0)
    bars = [a_bar(0, 100.0, 104.0, 99.0, 103.0), a_bar(1, 103.0, 103.0, 94.0, 95.0), a_bar(2, 95.0)]
    desk.tick(3, mark=95.0, bars=bars)
    trade = desk.trade()
    assert (trade.exit_reason, trade.closed_at, trade.mfe, trade.mae) == ("stop_loss", at(2), 8.0, -12.0)


def test_a_position_that_was_there_before_the_first_tick_is_a_trade_without_a_decision(desk: Desk) -> None:
    desk.tick(0, [a_position(2.0)])
    trade = desk.trade()
    assert (trade.entry.reason, trade.entry.snapshot_id, trade.memory_arm) == (None, None, "off")
    assert trade.opened_at == at(0) - JUST_BEFORE


# Fields stamped at entry, risk and outcome.


def test_fields_stamped_at_entry_never_change(desk: Desk) -> None:
    bars = [a_bar(n, 100.0 + n % 3, 104.0, 98.0, 100.0 + (n + 1) % 3) for n in range(-30, 0)]
    segments = [Segment(name="recent_activity", text="## Recent activity")]
    desk.tick(
        0,
        [],
        [a_position(2.0, leverage=3.0)],
        order=an_order(2.0, reason="in"),
        bars=bars,
        shown=segments,
        model="m-1",
        confidence=0.7,
        lessons_hash="abc",
    )
    first = desk.trade()
    assert (first.entry.regime_tag, first.entry.model, first.entry.leverage) == ("chop_lowvol", "m-1", 3.0)
    assert (first.entry.lessons_hash, first.memory_arm, first.confidence) == ("abc", "shown", 0.7)
    assert first.entry.shown_hash == shown_hash(segments)
    desk.tick(1, [a_position(3.0, leverage=9.0)], model="m-2", bars=[a_bar(0, 100.0, 300.0, 50.0, 290.0)])
    desk.tick(2, [], fills=[a_report("f", at(1.5), kind="fee", fee=1.0)], model="m-3")
    last = desk.trade()
    assert (last.entry, last.context, last.memory_arm, last.confidence) == (first.entry, first.context, "shown", 0.7)


@pytest.mark.parametrize("reported", [False, True])
def test_an_entry_that_the_agent_did_not_propose_is_not_its_decision(desk: Desk, reported: bool) -> None:
    done = [a_report("f", at(0), 1.0, 100.0, symbol="ETH")] if reported else []
    desk.tick(0, [], [a_position(1.0, symbol="ETH")], done=done, shown=[], model="m-1")
    trade = desk.trade()
    assert (trade.entry.snapshot_id, trade.entry.model, trade.memory_arm) == (None, None, "off")


def test_without_bars_there_is_no_regime_and_no_context(desk: Desk) -> None:
    desk.enter()
    trade = desk.trade()
    assert (trade.entry.regime_tag, trade.entry.regime_interval_seconds, trade.context.atr_d1) == (None, None, None)
    assert (trade.context.symbol, trade.context.hour_utc, trade.entry.shown_hash) == ("BTC", 10, None)


@pytest.mark.parametrize(("first", "second", "expected"), [(95.0, 97.0, 95.0), (None, 97.0, 97.0)])
def test_the_first_stop_is_the_one_seen_by_the_next_tick(
    desk: Desk, first: float | None, second: float | None, expected: float | None
) -> None:
    position = desk.enter(stop_price=first)
    desk.tick(1, [replace(position, stop_price=second)])
    desk.tick(2, [replace(position, stop_price=second)], [], order=an_order(-2.0))
    trade = desk.trade()
    assert (trade.stop_price, trade.initial_risk) == (expected, None if expected is None else 2 * (100.0 - expected))


def test_a_stop_seen_two_ticks_later_is_a_risk_but_not_the_first(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [position])
    desk.tick(2, [replace(position, stop_price=96.0)])
    desk.tick(3, [], mark=100.0)
    trade = desk.trade()
    assert (trade.stop_price, trade.initial_risk, trade.risk) == (None, None, 8.0)


def test_the_risk_is_the_largest_and_trailing_never_lowers_it(desk: Desk) -> None:
    position = desk.enter(stop_price=95.0)
    for hours, stop, size in ((1, 94.0, 2.0), (2, 94.0, 3.0), (3, 99.0, 3.0), (4, 101.0, 3.0)):
        desk.tick(hours, [replace(position, stop_price=stop, size=size)])
    desk.tick(5, [], mark=109.0)
    trade = desk.trade()
    assert (trade.initial_risk, trade.risk) == (10.0, 18.0)
    assert trade.outcome is not None
    assert (trade.outcome.value, trade.outcome.unit) == (27.0 / 18.0, "R")


def test_without_a_stop_the_configured_risk_counts_at_the_equity_of_the_entry(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, risk_per_trade=0.01)
    desk.enter()
    desk.tick(1, [], mark=110.0)
    trade = desk.trade()
    assert (trade.entry.configured_risk, trade.risk, trade.initial_risk) == (100.0, 100.0, None)
    assert trade.outcome is not None
    assert (trade.outcome.value, trade.outcome.unit) == (0.2, "R")


def test_without_risk_the_unit_is_the_daily_range_and_without_that_the_notional(desk: Desk) -> None:
    days = [a_bar(24 * n - 10, 100.0, 105.0, 95.0, 100.0, seconds=86_400) for n in range(-16, 0)]
    desk.tick(0, [], [a_position(2.0), a_position(1.0, symbol="ETH")], order=an_order(2.0), bars=days)
    desk.tick(1, [], marks={"BTC": 110.0, "ETH": 103.0})
    outcomes = {trade.symbol: trade.outcome for trade in desk.trades()}
    assert {symbol: each and (each.value, each.unit) for symbol, each in outcomes.items()} == {
        "BTC": (1.0, "vol"),
        "ETH": (0.03, "pct"),
    }


def test_money_in_dollars_is_at_the_rate_of_the_close_and_null_without_one(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [position], [], mark=110.0, order=an_order(-2.0))
    desk.tick(2, [], [position], order=an_order(2.0), usd_rate=2.0)
    desk.tick(3, [position], [], mark=110.0, order=an_order(-2.0), usd_rate=1.5)
    without, with_rate = desk.trades()
    assert (without.realized_pnl_usd, without.fees_usd, without.mfe_usd) == (None, None, None)
    assert (with_rate.entry.size_usd, with_rate.realized_pnl_usd, with_rate.fees_usd) == (400.0, 30.0, 0.0)


@pytest.mark.parametrize(("rate", "mark"), [(None, 110.0), (1.0, 100.0)])
def test_a_later_rate_does_not_change_dollars_of_an_earlier_close(desk: Desk, rate: float | None, mark: float) -> None:
    position = desk.enter()
    closing = a_report("f", at(1), -2.0, mark, fee=1.0)
    desk.tick(1, [position], [], done=[closing], mark=mark, order=an_order(-2.0), usd_rate=rate)
    desk.tick(2, fills=[a_report("late", at(1.5), kind="fee", fee=1.5)], usd_rate=2.0)
    assert desk.trade().fees == 2.5
    assert desk.trade().fees_usd == (None if rate is None else 2.5 * rate)


def test_a_dollar_account_needs_no_rate(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, currency="USD")
    desk.enter()
    desk.tick(1, [], mark=90.0)
    assert (desk.trade().entry.size_usd, desk.trade().realized_pnl_usd) == (200.0, -20.0)


@pytest.mark.parametrize(
    ("deployed", "segments", "arm"),
    [
        ({}, [], "shown"),
        ({}, None, "off"),
        ({"memory": {"enabled": False}}, [], "off"),
        ({"memory": {"holdout": 1.0}}, [], "withheld"),
    ],
)
def test_the_memory_arm_is_stamped_on_decision_and_trade(
    memory: Memory, clock: FakeClock, deployed: dict[str, Any], segments: list[Segment] | None, arm: str
) -> None:
    desk = Desk(memory, clock, deployed=deployed)
    closed = desk.tick(0, [], [a_position(2.0)], order=an_order(2.0), shown=segments)
    assert (closed.decision.memory_arm, desk.trade().memory_arm) == (arm, arm)
    opened = memory.open_tick(deployment=DEPLOYMENT, at=at(0), before=a_snapshot())
    assert opened.memory_arm == memory_arm(
        opened.deployment_id,
        at(0),
        holdout=deployed.get("memory", {}).get("holdout", 0.0),
        enabled=deployed.get("memory", {}).get("enabled", True),
    )


# The prompt of a tick.


def test_recent_activity_is_in_the_prompt_of_the_next_tick_and_not_of_one_at_the_same_instant(desk: Desk) -> None:
    refused = Verdict(kind="rejected", rule="R3_POSITION_CAP")
    for hours in (0, 0.25, 0.5):
        desk.tick(hours, order=an_order(1.0), verdict=refused)
    same = desk.memory.open_tick(deployment=DEPLOYMENT, at=at(0.5), sequence=1, before=a_snapshot(at=at(0.5)))
    then = desk.memory.open_tick(deployment=DEPLOYMENT, at=at(0.5) + JUST_BEFORE, before=a_snapshot(at=at(0.5)))
    assert "R3_POSITION_CAP=2" in same.text
    assert "R3_POSITION_CAP=3" in then.text
    assert "same code in the last 3+" in then.text
    assert desk.memory.get_recent_activity(deployment=DEPLOYMENT, as_of=at(0.5)).text in then.text


def test_todays_result_is_measured_from_the_equity_at_the_first_tick_of_the_utc_day(desk: Desk) -> None:
    position = a_position(2.0)
    for hours, equity in ((0, 9_000.0), (13.75, 9_500.0), (14.25, 8_000.0)):
        desk.tick(hours, [position], equity=equity)
    closed = desk.tick(15, equity=7_900.0, mark=60.0)
    assert closed.decision.day_start_equity == 8_000.0
    assert "-1.00%" in desk.memory.get_recent_activity(deployment=DEPLOYMENT, as_of=at(15)).text


def test_opening_a_tick_writes_nothing(desk: Desk) -> None:
    desk.enter()
    desk.clock.at = at(1)
    before, bars = dump(desk.memory), [a_bar(0, 100.0)]
    opened = desk.memory.open_tick(
        deployment=DEPLOYMENT, at=at(1), before=a_snapshot(at=at(1)), symbols=["BTC"], bars=bars
    )
    assert opened.contexts[0].price == 100.0
    assert dump(desk.memory) == before


# Accounts and markets.


def test_a_hedging_account_holds_two_positions_in_one_symbol(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, position_mode="hedging")
    long, short = a_position(2.0, position_key="p1"), a_position(-1.0, position_key="p2")
    desk.tick(0, [long, short])
    desk.tick(1, [short], fills=[a_report("f", at(0.5), -2.0, 103.0, position_key="p1")])
    desk.tick(2, [], mark=95.0)
    assert [(trade.position_key, trade.pnl) for trade in desk.trades()] == [("p1", 6.0), ("p2", 5.0)]


@pytest.mark.parametrize("symbol", ["BTC/USDT:USDT-260626", "ES=F", "Æ é 日経", "x" * 64])
def test_a_symbol_may_contain_letters_digits_and_the_signs_of_tickers(desk: Desk, symbol: str) -> None:
    position = a_position(2.0, symbol=symbol)
    desk.tick(0, [], [position], order=an_order(2.0, symbol=symbol))
    desk.tick(1, marks={symbol: 101.0})
    assert (desk.trade().symbol, desk.trade().pnl) == (symbol, 2.0)
    assert desk.memory.list_trades(symbol=symbol).trades == (desk.trade(),)


def test_a_market_closed_for_days_leaves_the_trade_open(desk: Desk) -> None:
    position = a_position(2.0, stop_price=95.0)
    desk.tick(0, [], [position], order=an_order(2.0), bars=[a_bar(-1, 100.0)])
    for hours in (24, 48, 65):
        desk.tick(hours, [position])
    desk.tick(66, [], mark=90.0, bars=[a_bar(65, 91.0, 92.0, 89.0, 90.0)])
    trade = desk.trade()
    assert (trade.exit_price, trade.exit_reason, trade.closed_at) == (91.0, "stop_loss", at(66) - JUST_BEFORE)
    assert (trade.mae, trade.excursion_source) == (-22.0, "bars")


def test_the_holding_time_counts_the_extra_hour_when_clocks_change(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    opened = datetime.fromisoformat("2026-10-24T22:00:00+02:00")
    closed = datetime.fromisoformat("2026-10-25T22:00:00+01:00")
    clock.at = closed
    memory.close_tick(deployment=DEPLOYMENT, at=opened, before=a_snapshot(a_position(2.0), at=opened), verdict=NOOP)
    memory.close_tick(
        deployment=DEPLOYMENT,
        at=closed,
        before=a_snapshot(a_position(2.0), at=closed),
        after=a_snapshot(at=closed),
        verdict=EXECUTED,
        proposal=an_order(-2.0),
    )
    assert desk.trade().holding_minutes == pytest.approx(25 * 60)


def test_two_deployments_share_an_account_in_the_order_of_their_ticks(desk: Desk) -> None:
    desk.memory.deploy(strategy_name="S", account="main", name="other")
    position = desk.enter()
    with pytest.raises(Conflict, match="sequence"):
        desk.tick(0, [position], deployment="other")
    desk.tick(0, [position], deployment="other", sequence=1)
    desk.tick(1, [position], [], deployment="other", order=an_order(-2.0, reason="other's"))
    trade = desk.trade()
    owner = desk.memory.get_my_deployments().deployments
    assert {each.deployment.name for each in owner if each.deployment.id == trade.deployment_id} == {DEPLOYMENT}
    assert trade.exit_reason == "other's"


# Late reports.

ENTRY = a_report("in", at(0) + SECOND, 2.0, 99.0, fee=1.0)


def entered_unreported(desk: Desk, *, lag: timedelta = 3 * SECOND, **details: Any) -> tuple[Position, Trade]:
    """A position that the agent entered and no fill explains yet, and its trade; the second snapshot is `lag` later."""
    position = a_position(2.0, average_price=99.0, **details)
    desk.tick(0, [], [position], order=an_order(2.0, reason="in"), lag=lag)
    return position, desk.trade()


def test_a_late_report_gives_the_trade_its_price_and_leaves_its_id_decision_and_reason(desk: Desk) -> None:
    position, inferred = entered_unreported(desk)
    desk.tick(1, [position], fills=[ENTRY])
    trade = desk.trade()
    assert (trade.id, trade.entry, trade.created_at) == (inferred.id, inferred.entry, inferred.created_at)
    assert (trade.opened_at, trade.entry_price, trade.fees, trade.inferred) == (ENTRY.at, 99.0, 1.0, False)
    former = desk.memory.get_trade(trade_id=trade.id, as_of=at(1) - JUST_BEFORE).trade
    assert (former.opened_at, former.fees, former.inferred) == (at(0), 0.0, True)  # type: ignore[union-attr]


def test_partial_fills_that_come_late_in_several_ticks_are_one_trade(desk: Desk) -> None:
    position, inferred = entered_unreported(desk)
    desk.tick(1, [position], fills=[replace(ENTRY, id="1", quantity=0.5, price=98.0)])
    assert desk.trade().entry_price == pytest.approx(99.0)
    desk.tick(2, [position], fills=[replace(ENTRY, id="2", quantity=1.0, price=99.0)])
    desk.tick(3, [position], fills=[replace(ENTRY, id="3", quantity=0.5, price=100.0)])
    trade = desk.trade()
    assert (trade.id, trade.entry_price, trade.size, trade.inferred) == (inferred.id, 99.0, 2.0, False)
    assert trade.fees == 3.0


def test_a_late_report_of_a_close_gives_its_price_and_the_episode_is_revised(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [position], [], mark=110.0, order=an_order(-2.0, reason="out"), lag=3 * SECOND)
    desk.tick(2, fills=[a_report("out", at(1) + SECOND, -2.0, 108.0, realized_pnl=16.0)])
    trade = desk.trade()
    assert (trade.pnl, trade.exit_reason, trade.closed_at) == (16.0, "out", at(1) + SECOND)
    assert trade.exit_snapshot_id is not None
    for as_of, pnl in ((at(2) - JUST_BEFORE, 20.0), (at(2), 16.0)):
        assert [each.pnl for each in desk.memory.list_trades(as_of=as_of).trades] == [pnl]


def test_a_late_report_of_a_stop_keeps_the_reason_inferred_from_bars(desk: Desk) -> None:
    desk.enter(stop_price=95.0)
    desk.tick(1, mark=96.0, bars=[a_bar(0, 100.0, 101.0, 94.0, 96.0)])
    desk.tick(2, fills=[a_report("out", at(0.5), -2.0, 94.8)])
    assert (desk.trade().exit_reason, desk.trade().exit_price, desk.trade().closed_at) == ("stop_loss", 94.8, at(0.5))


def test_a_late_report_of_a_flip_leaves_both_trades_their_ids(desk: Desk) -> None:
    position = desk.enter(size=1.0)
    turned = a_position(-2.0, average_price=111.0, mark=110.0)
    desk.tick(1, [replace(position, mark=110.0)], [turned], mark=110.0, order=an_order(-3.0, reason="turn"))
    names = [trade.id for trade in desk.trades()]
    desk.tick(2, [turned], fills=[a_report("f", at(1), -3.0, 111.0, fee=3.0)])
    long, short = desk.trades()
    assert (long.pnl, long.fees, short.entry_price, short.fees) == (10.0, 1.0, 111.0, 2.0)
    assert (long.exit_reason, short.entry.reason) == ("turn", "turn")
    assert [long.id, short.id] == names


def test_a_late_report_in_the_snapshot_after_the_decision_is_not_counted_twice(desk: Desk) -> None:
    position, inferred = entered_unreported(desk)
    moved = replace(position, stop_price=90.0)
    desk.tick(1, [position], [moved], done=[ENTRY], order=an_order(0.0, stop_price=90.0, reason="protect"))
    trade = desk.trade()
    assert (trade.id, trade.open_size, trade.size, trade.realized_pnl) == (inferred.id, 2.0, 2.0, 0.0)
    assert trade.entry == inferred.entry


def test_an_execution_seen_before_the_decision_and_reported_after_it_is_not_counted_twice(desk: Desk) -> None:
    position = a_position(2.0)
    before = a_snapshot(position, at=at(0) + SECOND)
    after = a_snapshot(position, at=at(0) + 3 * SECOND, fills=[a_report("f", at(0) + 0.5 * SECOND, 2.0, 100.0)])
    desk.memory.close_tick(deployment=DEPLOYMENT, at=at(0), before=before, after=after, verdict=NOOP)
    assert (desk.trade().open_size, desk.trade().size) == (2.0, 2.0)


def test_a_late_report_stamped_with_the_second_of_the_snapshot_before_the_decision_is_not_counted_twice(
    desk: Desk,
) -> None:
    position, inferred = entered_unreported(desk)
    desk.tick(1, [position], fills=[replace(ENTRY, at=at(0))])
    assert (desk.trade().id, desk.trade().size, desk.trade().open_size) == (inferred.id, 2.0, 2.0)


def test_a_late_report_stamped_with_the_instant_of_the_previous_snapshot_is_not_counted_twice(desk: Desk) -> None:
    desk.tick(0)
    desk.tick(1, [a_position(2.0)])
    desk.tick(2, [a_position(2.0)], fills=[a_report("f", at(0), 2.0, 100.0)])
    assert (desk.trade().open_size, desk.trade().size) == (2.0, 2.0)


def test_a_late_report_of_the_entry_keeps_the_risk_of_the_first_stop(desk: Desk) -> None:
    position, _ = entered_unreported(desk, stop_price=95.0)
    trailed = replace(position, stop_price=97.0)
    desk.tick(1, [position], [trailed], fills=[ENTRY], order=an_order(0.0, stop_price=97.0))
    desk.tick(2, [trailed], [], order=an_order(-2.0))
    assert (desk.trade().stop_price, desk.trade().initial_risk, desk.trade().risk) == (95.0, 8.0, 8.0)


def test_a_late_report_of_the_entry_does_not_bring_back_a_stop_that_was_taken_away(desk: Desk) -> None:
    position, _ = entered_unreported(desk, lag=0 * SECOND, stop_price=95.0)
    bare = replace(position, stop_price=None)
    desk.tick(1, [bare])
    desk.tick(2, [replace(bare, size=4.0)])
    desk.tick(3, [replace(bare, size=4.0)], fills=[replace(ENTRY, at=at(0))])
    desk.tick(4, [], mark=99.0)
    assert (desk.trade().initial_risk, desk.trade().risk) == (8.0, 8.0)


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_late_report_of_the_entry_leaves_a_first_stop_that_the_next_tick_set(desk: Desk, seconds: int) -> None:
    position, _ = entered_unreported(desk, lag=seconds * SECOND)
    report = replace(ENTRY, at=at(0) + seconds * SECOND)
    protected = replace(position, stop_price=97.0)
    desk.tick(1, [position], [protected], fills=[report], order=an_order(0.0, stop_price=97.0))
    desk.tick(2, [protected], [], order=an_order(-2.0))
    assert (desk.trade().stop_price, desk.trade().initial_risk) == (97.0, 4.0)


@pytest.mark.parametrize(
    "reported",
    [
        "never",
        "in time",
        "late",
    ],
)
def test_the_snapshot_right_before_the_exit_counts_whenever_the_exit_is_reported(desk: Desk, reported: str) -> None:
    position = desk.enter()
    report = a_report("out", at(1) + SECOND, -2.0, 118.0)
    done = [report] if reported == "in time" else []
    desk.tick(1, [replace(position, mark=120.0)], [], done=done, mark=118.0, order=an_order(-2.0), lag=3 * SECOND)
    desk.tick(2, fills=[report] if reported == "late" else [])
    assert (desk.trade().mfe, desk.trade().realized_pnl) == (40.0, 36.0)


def test_a_late_report_also_brings_its_reason_and_the_brokers_pnl(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [position], [])
    desk.tick(2, fills=[a_report("out", at(1), -2.0, 100.0, reason="liquidated", realized_pnl=0.0)])
    assert (desk.trade().exit_reason, desk.trade().broker_pnl) == ("liquidated", 0.0)


def test_a_trade_that_a_late_report_reopens_has_no_result(desk: Desk) -> None:
    desk.tick(0, [a_position(2.0)], fills=[a_report("a", at(0), 2.0, 100.0)])
    desk.tick(1, fills=[a_report("b", at(1), -2.0, 100.0)])
    desk.tick(2, [a_position(1.0)], fills=[a_report("c", at(0.5), 1.0, 100.0)])
    trade = desk.trade()
    assert (trade.status, trade.open_size, trade.size) == ("open", 1.0, 3.0)
    assert desk.memory.get_trade(trade_id=trade.id).episode is None
    assert (trade.pnl, trade.outcome, trade.mfe, trade.exit_reason) == (None, None, None, None)


def test_a_report_that_comes_months_late_refolds_the_ledger_from_its_time(desk: Desk) -> None:
    for day in range(3):
        position = desk.enter(24 * day)
        desk.tick(24 * day + 1, [position], [], mark=101.0, order=an_order(-2.0))
    fills = [a_report("i", at(12), 1.0, 100.0), a_report("o", at(13), -1.0, 90.0)]
    closed = desk.tick(2000, fills=fills)
    assert [trade.pnl for trade in desk.trades()] == [2.0, -10.0, 2.0, 2.0]
    assert [trade.pnl for trade in closed.opened] == [-10.0]
    assert [trade.pnl for trade in desk.memory.list_trades(as_of=at(1999)).trades] == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_trades_of_one_instant_keep_their_ids_when_their_position_gets_another_fill(desk: Desk, name: str) -> None:
    quantities = (1.0, -1.0, 1.0)
    fills = [a_report(f"{name}{n}", at(0), each, 100.0, sequence=n) for n, each in enumerate(quantities)]
    desk.tick(0, [a_position(1.0)], fills=fills)
    names = {trade.id for trade in desk.trades()}
    desk.tick(1, fills=[a_report(f"{name}3", at(1), -1.0, 100.0)])
    assert {trade.id for trade in desk.trades()} == names


def test_fills_inferred_since_the_last_tick_come_after_those_reported(desk: Desk) -> None:
    desk.tick(0, [a_position(1.0)], fills=[a_report("a", at(0), 1.0, 100.0)])
    again = a_position(1.0, average_price=90.0, mark=90.0)
    desk.tick(1, [again], fills=[a_report("b", at(1), -1.0, 95.0, reason="stop_loss")])
    first, second = desk.trades()
    assert (first.exit_reason, first.exit_price, first.entry_price) == ("stop_loss", 95.0, 100.0)
    assert (second.entry_price, second.open_size) == (90.0, 1.0)


def test_fills_inferred_from_the_decision_come_after_those_reported_before_it(desk: Desk) -> None:
    desk.tick(0, [a_position(1.0)], fills=[a_report("a", at(0), 1.0, 100.0)])
    stopped = a_report("b", at(1), -1.0, 95.0, reason="stop_loss", sequence=5_000_000_000)
    again = a_position(1.0, average_price=95.0, mark=95.0)
    desk.tick(1, [], [again], fills=[stopped], mark=95.0, order=an_order(1.0))
    assert [trade.status for trade in desk.trades()] == ["closed", "open"]


def test_a_level_reached_before_the_last_addition_did_not_close_the_trade(desk: Desk) -> None:
    desk.tick(0, [a_position(1.0, stop_price=95.0)], fills=[a_report("a", at(0), 1.0, 100.0)])
    bars = [a_bar(0, 100.0, 101.0, 94.0, 97.0), a_bar(1, 97.0, 99.0, 96.0, 98.0)]
    desk.tick(2, mark=98.0, fills=[a_report("b", at(1.5), 1.0, 98.0)], bars=bars)
    trade = desk.trade()
    assert (trade.direction, trade.size, trade.pnl, trade.exit_reason) == ("long", 2.0, -2.0, "unexplained")


def test_an_average_price_rounded_to_the_tick_size_is_no_new_entry(desk: Desk) -> None:
    fills = [a_report("a", at(0), 1.0, 1.08345), a_report("b", at(0), 2.0, 1.08346, sequence=1)]
    position = a_position(3.0, average_price=1.08346, mark=1.0835)
    desk.tick(0, [position], fills=fills, mark=1.0835)
    assert (desk.trade().status, desk.trade().open_size, desk.trade().inferred) == ("open", 3.0, False)


def test_a_reported_reduction_at_a_first_in_first_out_broker_is_no_new_entry(desk: Desk) -> None:
    fills = [a_report("a", at(0), 1.0, 100.0), a_report("b", at(0), 1.0, 110.0, sequence=1)]
    desk.tick(0, [a_position(2.0, average_price=105.0)], fills=fills)
    desk.tick(1, [a_position(1.0, average_price=110.0)], fills=[a_report("c", at(1), -1.0, 110.0)])
    assert (desk.trade().status, desk.trade().open_size, desk.trade().realized_pnl) == ("open", 1.0, 5.0)


def test_funding_before_a_position_is_observed_belongs_to_it_and_not_to_the_trade_before(desk: Desk) -> None:
    position = desk.enter()
    desk.tick(1, [position], [], order=an_order(-2.0))
    desk.tick(2, [position], fills=[a_report("f", at(1.5), kind="funding", amount=-3.0)])
    assert [trade.funding for trade in desk.trades()] == [0.0, -3.0]


def test_a_key_that_names_another_symbol_is_another_position(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock, position_mode="hedging")
    desk.tick(0, [a_position(1.0, position_key="1")])
    desk.tick(1, [a_position(1.0, position_key="1", symbol="ETH")], mark=103.0)
    assert [(trade.symbol, trade.pnl) for trade in desk.trades()] == [("BTC", 3.0), ("ETH", None)]


@pytest.mark.parametrize("reported", [False, True])
def test_an_exit_between_ticks_is_within_the_excursions_without_bars(desk: Desk, reported: bool) -> None:
    desk.enter()
    desk.tick(1, fills=[a_report("f", at(0.5), -2.0, 80.0)] if reported else [], mark=80.0)
    assert (desk.trade().realized_pnl, desk.trade().mae) == (-40.0, -40.0)


def test_the_realised_result_is_within_the_excursions_also_between_bars(desk: Desk) -> None:
    position = a_position(1.0)
    desk.tick(0, [], [position], order=an_order(1.0), bars=[a_bar(-1, 100.0)])
    desk.tick(1, [position], bars=[a_bar(0, 100.0, 105.0, 99.0, 100.0)])
    desk.tick(1.5, [replace(position, mark=120.0)], [], mark=120.0, order=an_order(-1.0))
    assert (desk.trade().realized_pnl, desk.trade().mfe, desk.trade().mae) == (20.0, 20.0, -1.0)


# Repeated ticks and fills.


def test_a_tick_closed_twice_changes_nothing_and_says_so(desk: Desk) -> None:
    first = desk.tick(0, [], [a_position(2.0)], order=an_order(2.0), bars=[a_bar(-1, 100.0)], shown=[])
    before = dump(desk.memory)
    again = desk.tick(0, [], [a_position(2.0)], order=an_order(2.0), bars=[a_bar(-1, 100.0)], shown=[])
    assert (first.replayed, again) == (False, replace(first, replayed=True))
    assert dump(desk.memory) == before


def test_a_tick_closed_again_under_the_deployments_id_is_the_same_tick(desk: Desk) -> None:
    first = desk.tick(0, [a_position(2.0)])
    assert desk.tick(0, [a_position(2.0)], deployment=first.decision.deployment_id).replayed


def test_an_old_tick_closed_again_is_answered_too(desk: Desk) -> None:
    desk.tick(0, [], [a_position(2.0)], order=an_order(2.0))
    desk.tick(1, [a_position(2.0)], [], order=an_order(-2.0))
    before = dump(desk.memory)
    again = desk.tick(0, [], [a_position(2.0)], order=an_order(2.0))
    assert (again.replayed, [trade.status for trade in again.opened]) == (True, ["open"])
    assert dump(desk.memory) == before


def test_a_tick_run_again_after_a_crash_is_the_same_tick(desk: Desk) -> None:
    """The process ended right after close_tick; the whole tick is run again, an hour later by the clock."""
    bars = [a_bar(n, 100.0) for n in range(-20, 0)]
    position = desk.enter(-2)
    desk.tick(-1, [position], [], order=an_order(-2.0))
    answers = []
    for hours in (0.0, 1.0):
        desk.clock.at = at(hours)
        opened = desk.memory.open_tick(
            deployment=DEPLOYMENT, at=at(0), before=a_snapshot(at=at(0)), symbols=["BTC"], bars=bars
        )
        prompt: dict[str, Any] = {"shown": list(opened.memory), "recalled": list(opened.recalled)}
        prompt |= {"recalls": list(opened.recalls), "seen_at": opened.seen_at, "lessons_hash": opened.lessons_hash}
        answers.append(desk.tick(0, [], [a_position(2.0)], order=an_order(2.0), bars=bars, **prompt))
    first, again = answers
    assert (first.decision.seen_at, len(first.decision.shown) > 0) == (at(0), True)
    assert again == replace(first, replayed=True, plans=(), contradictions=())


def test_a_recall_that_the_record_lacks_is_a_difference(desk: Desk) -> None:
    recall = desk.memory.recall_memories(symbol="BTC", as_of=at(-1)).recall
    desk.tick(0)
    with pytest.raises(Conflict, match="other content in recalls;"):
        desk.tick(0, recalls=[recall])


def test_a_tick_with_the_hash_of_an_unknown_recall_is_recorded_with_a_note(desk: Desk) -> None:
    recall = desk.memory.recall_memories(symbol="BTC", as_of=at(-1))
    unknown = "r" + 18 * "0"
    closed = desk.tick(0, recalls=[unknown, recall.recall_hash])
    assert closed.notes[0].startswith(f"Recorded without the recall {unknown}, whose memories are not known")
    (recorded,) = desk.memory.list_recalls(decision_id=closed.decision.id).recalls
    assert recorded.recall == recall.recall
    for recalls in ([recall.recall], [recall.recall_hash, unknown], [unknown]):
        assert desk.tick(0, recalls=recalls).replayed  # what another process knew is no other content


@pytest.mark.parametrize(
    ("hours", "more", "message"),
    [
        (0, {"confidence": 0.5}, "recorded with other content in confidence; a decision does not change"),
        (0, {"mark": 101.0, "model": "m-2"}, "recorded with other content in before, model;"),
        (0, {"shown": []}, "recorded with other content in shown;"),
        (0, {"bars": [a_bar(-1, 100.0)]}, "recorded with other content in bars;"),
        (-1, {}, "not after the account's last one"),
        (-0.001, {"sequence": 5}, "not after the account's last one"),
    ],
)
def test_a_tick_with_other_content_and_an_older_one_are_conflicts(
    desk: Desk, hours: float, more: dict[str, Any], message: str
) -> None:
    desk.tick(0, [a_position(2.0)])
    before = dump(desk.memory)
    with pytest.raises(Conflict, match=message):
        desk.tick(hours, [a_position(2.0)], **more)
    assert dump(desk.memory) == before


def test_several_ticks_of_one_instant_are_applied_in_their_sequence(desk: Desk) -> None:
    desk.tick(0, [], [a_position(2.0)], order=an_order(2.0))
    desk.tick(0, [a_position(2.0)], [], sequence=1, mark=101.0, order=an_order(-2.0))
    desk.tick(0, [], [a_position(-1.0)], sequence=2, order=an_order(-1.0))
    first, second = sorted(desk.trades(), key=lambda trade: trade.status)
    assert (first.pnl, first.opened_at, first.closed_at) == (2.0, at(0), at(0))
    assert (second.direction, second.opened_at) == ("short", at(0))
    with pytest.raises(Conflict):
        desk.tick(0, [], sequence=1)


def test_a_fill_reported_again_is_ignored_and_one_with_other_content_refused(desk: Desk) -> None:
    report = a_report("f", at(0), 2.0, 100.0)
    desk.tick(0, [a_position(2.0)], [a_position(2.0)], fills=[report, report], done=[report])
    desk.tick(1, [a_position(2.0)], [a_position(2.0)], fills=[report], done=[report])
    assert (desk.trade().open_size, desk.trade().fees) == (2.0, 0.0)
    before = dump(desk.memory)
    for other in (replace(report, price=101.0), replace(report, quantity=3.0), replace(report, at=at(0.5))):
        with pytest.raises(Conflict, match="fill 'f' is known with other content"):
            desk.tick(2, [a_position(2.0)], fills=[other])
    with pytest.raises(Conflict, match="fill 'g' is known with other content"):
        desk.tick(2, [a_position(2.0)], fills=[a_report("g", at(2), 1.0, 1.0), a_report("g", at(2), 2.0, 1.0)])
    assert dump(desk.memory) == before


def test_a_venue_may_number_the_fills_of_each_symbol(desk: Desk) -> None:
    positions = [a_position(2.0), a_position(5.0, symbol="ETH")]
    reports = [a_report("1", at(0.5), 2.0, 100.0), a_report("1", at(0.5), 5.0, 100.0, symbol="ETH")]
    desk.tick(1, positions, fills=reports)
    desk.tick(2, positions, fills=reports)
    assert sorted((trade.symbol, trade.open_size, trade.inferred) for trade in desk.trades()) == [
        ("BTC", 2.0, False),
        ("ETH", 5.0, False),
    ]


@pytest.mark.parametrize("which", ["entry", "exit"])
def test_a_restated_fee_corrects_the_trade_from_when_it_arrived(desk: Desk, clock: FakeClock, which: str) -> None:
    entry, leave = a_report("i", at(0.5), 2.0, 100.0, fee=1.0), a_report("o", at(1.5), -2.0, 110.0, fee=1.0)
    desk.tick(1, [a_position(2.0, stop_price=95.0)], fills=[entry])
    desk.tick(2, [], fills=[leave])
    former = desk.trade()
    restated = replace(entry if which == "entry" else leave, fee=3.0)
    assert len(desk.tick(3, [], fills=[restated]).learned) == 1
    trade = desk.trade()
    assert (former.pnl, trade.pnl, trade.fees, trade.outcome) == (18.0, 16.0, 4.0, Outcome(value=1.6, unit="R"))
    assert desk.memory.get_trade(trade_id=trade.id, as_of=at(2.5)).trade.pnl == 18.0  # type: ignore[union-attr]
    before = dump(desk.memory)["trade_history"]
    desk.tick(4, [], fills=[restated])
    assert dump(desk.memory)["trade_history"] == before
    assert desk.memory.verify_audit().intact
    assert desk.memory.doctor().healthy


def test_a_restated_fee_of_an_open_position_counts_once(desk: Desk) -> None:
    entry = a_report("i", at(0.5), 2.0, 100.0, fee=1.0)
    for hours in (1, 2, 3):
        desk.tick(hours, [a_position(2.0)], fills=[entry])
    desk.tick(4, [a_position(2.0)], [a_position(2.0)], fills=[replace(entry, fee=2.0)], done=[replace(entry, fee=1.5)])
    assert desk.trade().fees == 1.5
    desk.tick(5, [], fills=[a_report("o", at(4.5), -2.0, 110.0)])
    assert (desk.trade().fees, desk.trade().pnl) == (1.5, 18.5)


# Positions of size 0.


def test_a_position_of_size_0_is_no_position(desk: Desk) -> None:
    empty = replace(a_position(2.0), size=0.0, mark=103.0)
    desk.tick(0, [empty], [empty])
    assert not desk.trades()
    desk.enter(1)
    desk.clock.at = at(2)
    snapshot = replace(a_snapshot(empty, at=at(2)), marks={})
    closed = desk.memory.close_tick(deployment=DEPLOYMENT, at=at(2), before=snapshot, verdict=NOOP)
    assert [(trade.status, trade.exit_price) for trade in closed.closed] == [("closed", 103.0)]
    assert not closed.decision.before.portfolio.positions


def test_a_tick_is_the_same_with_and_without_a_position_of_size_0(desk: Desk) -> None:
    assert not desk.tick(0).replayed
    assert desk.tick(0, [replace(a_position(2.0), size=0.0)]).replayed


# Bad input.

NAN_BAR = a_bar(0, 100.0, math.nan, 99.0, 100.0)
BAD: list[tuple[dict[str, Any], str]] = [
    ({"before": [replace(a_position(2.0), size=-2.0)]}, "before.portfolio.positions.0.size"),
    ({"before": [a_position(2.0, mark=math.nan)]}, "before.portfolio.positions.0.mark"),
    ({"after": [a_position(2.0, stop_price=math.inf)]}, "after.portfolio.positions.0.stop_price"),
    ({"before": [a_position(1.0), a_position(2.0, position_key="x")]}, "before.portfolio.positions.0.symbol"),
    ({"after": [a_position(1.0), a_position(1.0)]}, "after.portfolio.positions.0.symbol"),
    ({"marks": {"BTC": math.nan}}, "before.marks.BTC"),
    ({"equity": math.nan}, "before.portfolio.equity"),
    ({"fills": [a_report("x", at(1), math.nan, 1.0)]}, "before.fills.0.quantity"),
    ({"fills": [a_report("x", at(1), 1.0, math.inf)]}, "before.fills.0.price"),
    ({"fills": [a_report("x", at(1), 1.0, None)]}, "quantity"),
    ({"fills": [a_report("x", at(1.1), 1.0, 100.0)]}, "fills"),
    ({"fills": [a_report("", at(1), 1.0, 100.0)]}, "before.fills.0.id"),
    ({"fills": [a_report("x", T0.replace(tzinfo=None), 1.0, 100.0)]}, "at"),
    ({"bars": [a_bar(0, 100.0), a_bar(-1, 100.0)]}, "bars[1].opened_at"),
    ({"bars": [a_bar(-0.5, 100.0), a_bar(0, 100.0)]}, "bars[1].opened_at"),
    ({"bars": [NAN_BAR]}, "bars[0].high"),
    ({"bars": [replace(NAN_BAR, high=100.0, volume=math.inf)]}, "bars[0].volume"),
    ({"usd_rate": math.inf}, "usd_rate"),
    ({"usd_rate": 0.0}, "usd_rate"),
    ({"confidence": math.nan}, "confidence"),
    ({"cost": -1.0}, "cost"),
    ({"sequence": -1}, "sequence"),
    ({"at": at(3)}, "at"),
    ({"order": an_order(math.nan)}, "proposal.quantity"),
    ({"order": an_order(1.0), "verdict": Verdict(kind="rejected")}, "verdict.rule"),
    ({"verdict": EXECUTED}, "proposal"),
]


def test_bad_input_is_refused_by_name_and_nothing_is_written(desk: Desk) -> None:
    desk.enter()
    before = dump(desk.memory)
    for wrong, field in BAD:
        with pytest.raises(Invalid) as caught:
            desk.tick(1, **({"before": [a_position(2.0)]} | wrong))
        assert caught.value.field == field
    assert dump(desk.memory) == before


def test_a_delisted_symbol_is_closed_at_its_last_mark_and_the_answer_says_so(desk: Desk) -> None:
    desk.tick(0, [a_position(2.0, symbol="ETH", mark=90.0)])
    closed = desk.tick(1)
    (trade,) = closed.closed
    assert (trade.exit_price, trade.exit_reason, trade.inferred, trade.pnl) == (90.0, "unexplained", True, -20.0)
    assert closed.notes[0].startswith("ETH: the position is gone and has no mark; it is closed at 90, the last price")
    assert desk.tick(1) == replace(closed, learned=(), replayed=True)
    desk.tick(2, fills=[a_report("f", at(0.5), -2.0, 20.0, symbol="ETH")])
    assert (desk.trade().id, desk.trade().pnl, desk.trade().exit_price) == (trade.id, -160.0, 20.0)


def test_a_delisted_symbol_is_closed_at_the_last_bar_where_there_is_one(desk: Desk) -> None:
    desk.tick(0, [a_position(2.0, symbol="ETH", mark=90.0)])
    closed = desk.tick(2, bars=[a_bar(0, 80.0, symbol="ETH"), a_bar(1, 70.0, symbol="ETH")])
    assert (closed.closed[0].exit_price, closed.closed[0].mae) == (70.0, -60.0)


def test_an_exit_inferred_between_ticks_reads_as_of_the_minute_of_the_tick(desk: Desk) -> None:
    desk.enter()
    desk.tick(1)
    assert desk.trade().closed_at == at(1) - JUST_BEFORE
    shown = desk.memory.preview_context(deployment=DEPLOYMENT, as_of=at(2)).segments
    (row,) = [each.text for each in shown if each.name == "recent_trades"]
    assert (" 1h " in row, " 59m " in row) == (True, False)


def test_a_portfolio_of_another_account_is_refused(desk: Desk) -> None:
    snapshot = a_snapshot(a_position(2.0))
    others = replace(snapshot, portfolio=replace(snapshot.portfolio, account="other"))
    for before, after in ((others, None), (a_snapshot(), others)):
        with pytest.raises(Invalid, match="'other' is not the account of this deployment"):
            desk.memory.close_tick(deployment=DEPLOYMENT, at=at(0), verdict=NOOP, before=before, after=after)
    assert desk.trades() == []


def test_bars_that_contradict_those_that_are_stored_are_a_conflict(desk: Desk) -> None:
    desk.tick(0, bars=[a_bar(-1, 100.0)])
    with pytest.raises(Conflict, match="differs from the stored bar"):
        desk.tick(1, bars=[a_bar(-1, 101.0), a_bar(0, 101.0)])


def test_bars_that_overlap_those_that_are_stored_are_refused(desk: Desk) -> None:
    desk.tick(0, bars=[a_bar(-1, 100.0)])
    with pytest.raises(BacksightError):
        desk.tick(1, bars=[a_bar(-0.5, 100.0)])


OVERFLOWING: list[dict[str, Any]] = [
    {"before": [a_position(1e307, stop_price=1.0)]},
    {"before": [a_position(1e307)], "usd_rate": 100.0},
    {"before": [a_position(1e200, average_price=1e200, stop_price=1.0)]},
    {
        "before": [a_position(1.0), a_position(1e300, symbol="ETH")],
        "bars": [a_bar(0, 1.0, 1e300, 1.0, 1.0, symbol="ETH")],
    },
]


def test_numbers_whose_products_overflow_are_refused_and_nothing_is_written(desk: Desk) -> None:
    desk.tick(0, [a_position(1.0), a_position(1e300, symbol="ETH")])
    before = dump(desk.memory)
    for wrong in OVERFLOWING:
        with pytest.raises(Invalid, match="too large or too small"):
            desk.tick(1, **({"marks": {"ETH": 100.0}} | wrong))
    assert dump(desk.memory) == before


def test_the_largest_sequence_is_a_sequence_like_any_other(desk: Desk) -> None:
    desk.tick(0, [a_position(1.0)], sequence=2**53)
    assert desk.trade().open_size == 1.0


def test_the_earliest_possible_instant_is_refused_with_a_named_error(desk: Desk) -> None:
    first = datetime.fromisoformat("0001-01-01T00:00:00+00:00")
    with pytest.raises(BacksightError):
        desk.memory.open_tick(deployment=DEPLOYMENT, at=first, before=a_snapshot(at=first), symbols=["BTC"])


def test_whole_numbers_and_minus_zero_in_bars_are_stored_as_the_audit_hashes_them(desk: Desk) -> None:
    desk.tick(0, bars=[replace(a_bar(-3, 100.0), volume=-0.0), a_bar(-2, 100), a_bar(-1, -0.0)])
    assert desk.memory.verify_audit().intact


def test_a_bar_with_an_invalid_symbol_is_refused(desk: Desk) -> None:
    for symbol in ("B\0TC", "", " BTC", "\ud800"):
        with pytest.raises(Invalid):
            desk.tick(0, bars=[a_bar(-1, 100.0, symbol=symbol)])


def test_a_trade_remembered_by_hand_in_the_same_position_is_left_alone(desk: Desk) -> None:
    call = a_trade_call(symbol="BTC", strategy_name="S", deployment=DEPLOYMENT, position_key="BTC", pnl=7.0, pnl_r=None)
    remembered = desk.memory.remember_trade(**call).trade
    desk.tick(1, [a_position(2.0)], fills=[a_report("a", at(0.5), 2.0, 100.0)])
    desk.tick(2, fills=[a_report("b", at(1.5), -2.0, 101.0), a_report("c", at(1.5), kind="fee", fee=1.0)])
    assert remembered in desk.trades()
    assert sorted(trade.pnl or 0.0 for trade in desk.trades()) == [1.0, 7.0]


@pytest.mark.parametrize("sizes", [(1.0, 0.0, 2.0, 0.0), (1.0, 2.0, 0.0, 1.0, 0.0)])
def test_a_position_closed_and_entered_again_at_one_instant_is_two_trades(desk: Desk, sizes: Sequence[float]) -> None:
    for number, size in enumerate(sizes):
        mark = 110.0 + 10 * number
        positions = [a_position(size, average_price=None, mark=mark)] if size else []
        desk.tick(0, positions, mark=mark, sequence=number)
    assert [trade.status for trade in desk.trades()] == ["closed", "closed"]
    closes = {2: [10.0, 20.0], 3: [30.0, 10.0]}[sizes.index(0.0) + 1]
    assert [trade.pnl for trade in desk.trades()] == closes


def test_a_rounding_remainder_of_a_position_is_no_new_position(desk: Desk) -> None:
    dust = a_position(5e-17)
    desk.tick(0, [a_position(0.3)])
    desk.tick(1, [dust])
    desk.tick(2, [dust])
    assert desk.trade().status == "closed"


def test_a_snapshot_older_than_the_last_one_is_refused(desk: Desk) -> None:
    position = desk.enter()
    stale = a_snapshot(position, at=at(0) - SECOND)
    desk.clock.at = at(1)
    with pytest.raises(Conflict, match=r"before\.portfolio\.at: .* ask the broker again"):
        desk.memory.close_tick(deployment=DEPLOYMENT, at=at(1), before=stale, verdict=NOOP)


def test_open_trades_are_listed_as_they_were_at_the_instant(desk: Desk) -> None:
    position = desk.enter()
    other = a_position(1.0, symbol="ETH")
    desk.tick(1, [position, other])
    desk.tick(2, [other])
    listed = desk.memory.list_trades
    assert [(trade.symbol, trade.open_size) for trade in listed(status="open").trades] == [("ETH", 1.0)]
    assert [trade.symbol for trade in listed(status="open", as_of=at(1)).trades] == ["ETH", "BTC"]
    first = listed(status="open", as_of=at(1), limit=1)
    rest = listed(status="open", as_of=at(1), limit=1, cursor=first.next_cursor)
    assert [trade.symbol for trade in rest.trades] == ["BTC"]
    assert [trade.symbol for trade in listed().trades] == ["BTC"]


def test_the_stop_of_a_closed_trade_is_not_that_of_a_trade_entered_at_the_same_instant(desk: Desk) -> None:
    first = desk.enter(stop_price=95.0)
    desk.tick(1, [first], [], order=an_order(-2.0))
    again = a_position(2.0, stop_price=90.0)
    desk.tick(2, [again], [], fills=[a_report("in", at(1), 2.0, 100.0)], order=an_order(-2.0))
    earlier, later = desk.trades()
    assert (earlier.stop_price, earlier.risk) == (95.0, 10.0)
    assert (later.stop_price, later.initial_risk, later.risk) == (90.0, 20.0, 20.0)
