"""A fill belongs to the decision that placed its order, also ticks later, in parts, or if it is never reported."""

from dataclasses import replace
from typing import Any

import pytest

from backsight.core.decision import Verdict
from backsight.core.portfolio import OpenOrder, Position
from backsight.core.trades.trade import Trade
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.testing import FakeClock, a_position, a_snapshot
from ops.test_ticks import DEPLOYMENT, Desk, a_report, an_order, at

WAITING = OpenOrder(id="77", symbol="BTC", quantity=2.0, price=95.0)


@pytest.fixture
def desk(memory: Memory, clock: FakeClock) -> Desk:
    return Desk(memory, clock)


def place(desk: Desk, hours: float, order: OpenOrder, *positions: Position, **proposal: Any) -> ClosedTick:
    """Close a tick in which the agent places a limit order that waits at the broker."""
    desk.clock.at = at(hours)
    before = a_snapshot(*positions, at=at(hours))
    after = replace(before, portfolio=replace(before.portfolio, open_orders=(order,)))
    return desk.memory.close_tick(
        deployment=DEPLOYMENT,
        at=at(hours),
        before=before,
        after=after,
        proposal=an_order(order.quantity, reason="buy the dip" if order.quantity > 0 else "take it off", **proposal),
        verdict=Verdict(kind="executed"),
    )


def entry_of(trade: Trade) -> tuple[str | None, str | None]:
    return trade.entry.reason, trade.entry.snapshot_id


@pytest.mark.parametrize("reported", ["with its order", "without its order", "never"])
def test_a_limit_order_that_fills_between_ticks_has_its_decision(desk: Desk, reported: str) -> None:
    placed = place(desk, 0, WAITING)
    order_id = {"with its order": {"order_id": "77"}}.get(reported, {})
    fills = [] if reported == "never" else [a_report("f", at(0.5), 2.0, 95.0, **order_id)]
    closed = desk.tick(1, [a_position(2.0, average_price=95.0)], fills=fills)
    assert [entry_of(trade) for trade in closed.opened] == [("buy the dip", placed.decision.id)]


def test_the_id_of_an_order_is_enough_also_ticks_later(desk: Desk) -> None:
    placed = place(desk, 0, replace(WAITING, id="other", symbol="ETH"), order_id="9")
    desk.tick(1)
    desk.tick(2)
    closed = desk.tick(3, [a_position(2.0)], fills=[a_report("f", at(2.5), 2.0, 95.0, order_id="9")])
    assert [entry_of(trade) for trade in closed.opened] == [("buy the dip", placed.decision.id)]


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize(
    ("waiting", "size", "reason"),
    [
        ({"1": 2.0}, 1.0, "second"),
        ({"2": 1.0}, 2.0, "first"),
        ({"1": 1.0, "2": 1.0}, 1.0, "first"),  # one part of it
        ({}, 1.0, "second"),  # the other one was cancelled
        ({"1": 2.0, "2": 1.0}, 1.0, "second"),  # the broker is late to take it off its list
    ],
)
def test_of_two_waiting_orders_the_one_that_has_gone_made_the_fill(
    desk: Desk, waiting: dict[str, float], size: float, reason: str, reported: bool
) -> None:
    orders = [replace(WAITING, id="1"), replace(WAITING, id="2", quantity=1.0, price=90.0)]
    for hours, name in enumerate(["first", "second"]):
        snapshots = [a_snapshot(at=at(hours)), a_snapshot(at=at(hours))]
        before, after = (
            replace(each, portfolio=replace(each.portfolio, open_orders=tuple(orders[: hours + place])))
            for place, each in enumerate(snapshots)
        )
        desk.clock.at = at(hours)
        order = an_order(orders[hours].quantity, reason=name)
        call: dict[str, Any] = {"deployment": DEPLOYMENT, "at": at(hours), "before": before, "after": after}
        desk.memory.close_tick(**call, proposal=order, verdict=Verdict(kind="executed"))
    fills = [a_report("f", at(1.5), size, 90.0)] if reported else []
    snapshot = a_snapshot(a_position(size, average_price=90.0), at=at(2), fills=fills)
    left = tuple(replace(order, quantity=waiting[order.id]) for order in orders if order.id in waiting)
    snapshot = replace(snapshot, portfolio=replace(snapshot.portfolio, open_orders=left))
    desk.clock.at = at(2)
    verdict = Verdict(kind="noop")
    closed = desk.memory.close_tick(deployment=DEPLOYMENT, at=at(2), before=snapshot, verdict=verdict)
    assert [trade.entry.reason for trade in closed.opened] == [reason]


def test_an_exit_in_parts_over_several_ticks_has_the_reason_of_its_decision(desk: Desk) -> None:
    position = desk.enter(size=2.0)
    sale = OpenOrder(id="88", symbol="BTC", quantity=-2.0, price=105.0)
    placed = place(desk, 1, sale, position)
    parts = [a_report(f"p{n}", at(n + 1.5), -1.0, 105.0, order_id="88") for n in range(2)]
    desk.tick(2, [replace(position, size=1.0, mark=105.0)], fills=parts[:1], mark=105.0)
    closed = desk.tick(3, [], fills=parts[1:], mark=105.0)
    (trade,) = closed.closed
    assert (trade.exit_reason, trade.exit_snapshot_id) == ("take it off", placed.decision.id)


def test_a_sale_is_not_given_to_a_waiting_order_to_buy(desk: Desk) -> None:
    position = desk.enter(size=2.0)
    place(desk, 1, WAITING, position)
    closed = desk.tick(2, [], fills=[a_report("o", at(1.5), -2.0, 101.0)])
    assert [trade.exit_reason for trade in closed.closed] == ["unexplained"]


def test_an_order_of_a_decision_that_is_no_longer_waiting_explains_nothing(desk: Desk) -> None:
    place(desk, 0, WAITING)
    desk.tick(1)
    closed = desk.tick(2, [a_position(2.0, average_price=95.0)])
    assert [entry_of(trade) for trade in closed.opened] == [(None, None)]


def test_the_brokers_reason_comes_before_that_of_the_order(memory: Memory, clock: FakeClock) -> None:
    desk = Desk(memory, clock)
    position = desk.enter(size=2.0)
    placed = place(desk, 1, OpenOrder(id="88", symbol="BTC", quantity=-2.0, price=95.0), position)
    stopped = a_report("o", at(1.5), -2.0, 95.0, order_id="88", reason="stop_loss")
    (trade,) = desk.tick(2, [], fills=[stopped]).closed
    assert (trade.exit_reason, trade.exit_snapshot_id) == ("stop_loss", placed.decision.id)


def test_a_late_report_of_another_order_corrects_the_decision_of_the_entry(desk: Desk) -> None:
    placed, position = place(desk, 0, WAITING), a_position(2.0, average_price=95.0)
    desk.tick(1, [position])
    assert entry_of(desk.trade()) == ("buy the dip", placed.decision.id)
    desk.tick(2, [position], fills=[a_report("f", at(0.5), 2.0, 95.0, order_id="by hand")])
    assert (entry_of(desk.trade()), desk.trade().memory_arm) == ((None, None), "off")


def test_a_fill_of_another_order_after_the_decision_is_not_the_decisions(desk: Desk) -> None:
    done = [a_report("f", at(1), 2.0, 100.0, order_id="by hand")]
    closed = desk.tick(1, [], [a_position(2.0)], done=done, order=an_order(2.0, order_id="12"))
    assert [entry_of(trade) for trade in closed.opened] == [(None, None)]


def test_an_expiry_is_not_given_to_a_waiting_order(desk: Desk) -> None:
    position = desk.enter(size=2.0)
    place(desk, 1, OpenOrder(id="88", symbol="BTC", quantity=-2.0, price=105.0), position)
    closed = desk.tick(2, [], fills=[a_report("e", at(1.5), -2.0, 101.0, kind="expiry")])
    assert [trade.exit_snapshot_id for trade in closed.closed] == [None]
