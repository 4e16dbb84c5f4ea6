"""Several orders of one decision: each keeps its reason, its verdict and its fills; the model's answer is stored."""

from dataclasses import replace
from typing import Any

import pytest

from backsight.answers.layouts import brief
from backsight.core.decision import ProposedOrder, Verdict
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.orders import Order
from backsight.core.portfolio import OpenOrder
from backsight.memory import Memory
from backsight.ops.ticks import ClosedTick
from backsight.testing import FakeClock, a_position, a_snapshot
from ops.test_ticks import DEPLOYMENT, Desk, a_report, at

EXECUTED, REJECTED = Verdict(kind="executed"), Verdict(kind="rejected", rule="R3_POSITION_CAP")
MARKS = {"BTC": 100.0, "ETH": 10.0}
BTC = Order(symbol="BTC", quantity=2.0, reason="break of the range", order_id="1")
ETH = Order(symbol="ETH", quantity=-5.0, reason="hedge", order_id="2")
BOTH = [ProposedOrder(order=BTC), ProposedOrder(order=ETH)]
POSITIONS = [a_position(2.0), a_position(-5.0, symbol="ETH", position_key="ETH", average_price=10.0, mark=10.0)]


@pytest.fixture
def desk(memory: Memory, clock: FakeClock) -> Desk:
    return Desk(memory, clock)


def decide(desk: Desk, hours: float, before: list[Any], after: list[Any], fills: Any = (), **more: Any) -> ClosedTick:
    """Close a tick with snapshots of some positions."""
    desk.clock.at = at(hours)
    return desk.memory.close_tick(
        deployment=DEPLOYMENT,
        at=at(hours),
        before=a_snapshot(*before, at=at(hours), marks=MARKS),
        after=a_snapshot(*after, at=at(hours), marks=MARKS, fills=fills),
        **{"verdict": EXECUTED, **more},
    )


@pytest.mark.parametrize("reported", [True, False])
def test_every_trade_has_the_reason_and_the_decision_of_its_order(desk: Desk, reported: bool) -> None:
    fills = [
        a_report("f2", at(0), -5.0, 10.0, symbol="ETH", position_key="ETH", order_id="2"),
        a_report("f1", at(0), 2.0, 100.0, order_id="1"),
    ]
    closed = decide(desk, 0, [], POSITIONS, fills if reported else [], proposals=BOTH)
    entries = {trade.symbol: (trade.entry.reason, trade.entry.snapshot_id) for trade in closed.opened}
    decision = closed.decision
    assert entries == {"BTC": ("break of the range", decision.id), "ETH": ("hedge", decision.id)}
    assert decision.proposals == desk.memory.get_decision(decision_id=decision.id[:8]).decision.proposals
    assert [each.order for each in decision.proposals] == [BTC, ETH]


def test_a_fill_belongs_to_the_order_that_it_names_among_orders_of_one_symbol(desk: Desk) -> None:
    small = Order(symbol="BTC", quantity=1.0, reason="starter", order_id="1")
    full = Order(symbol="BTC", quantity=1.0, reason="confirmed", order_id="2")
    fills = [a_report("f", at(0), 1.0, 100.0, order_id="2")]
    closed = decide(
        desk, 0, [], [a_position(1.0)], fills, proposals=[ProposedOrder(order=small), ProposedOrder(order=full)]
    )
    assert [trade.entry.reason for trade in closed.opened] == ["confirmed"]


def test_limit_orders_that_fill_later_keep_their_own_reasons(desk: Desk) -> None:
    desk.clock.at = at(0)
    before = a_snapshot(at=at(0), marks=MARKS)
    waiting = (
        OpenOrder(id="77", symbol="BTC", quantity=2.0, price=95.0),
        OpenOrder(id="78", symbol="BTC", quantity=1.0, price=90.0),
    )
    near = Order(symbol="BTC", quantity=1.0, reason="deep dip")
    far = Order(symbol="BTC", quantity=2.0, reason="shallow dip")
    desk.memory.close_tick(
        deployment=DEPLOYMENT,
        at=at(0),
        before=before,
        after=replace(before, portfolio=replace(before.portfolio, open_orders=waiting)),
        proposals=[ProposedOrder(order=near), ProposedOrder(order=far)],
        verdict=EXECUTED,
    )
    filled = [a_report("f", at(0.5), 2.0, 95.0, order_id="77")]
    closed = desk.tick(1, [a_position(2.0, average_price=95.0)], fills=filled)
    assert [trade.entry.reason for trade in closed.opened] == ["shallow dip"]


def test_each_order_has_its_own_verdict_and_counts_as_an_attempt(desk: Desk) -> None:
    proposals = [ProposedOrder(order=ETH, verdict=REJECTED), ProposedOrder(order=BTC, verdict=EXECUTED)]
    closed = decide(desk, 0, [], POSITIONS[:1], proposals=proposals, verdict=None)
    assert (closed.decision.proposal, closed.decision.verdict) == (BTC, EXECUTED)
    assert [each.verdict for each in closed.decision.proposals] == [EXECUTED, REJECTED]
    state = desk.memory.get_recent_activity(deployment=DEPLOYMENT).state
    assert state.executed_today == 1
    assert [(each.rule, each.count) for each in state.rejections] == [("R3_POSITION_CAP", 1)]
    listed = desk.memory.list_decisions(deployment=DEPLOYMENT, kind="executed").decisions
    assert [each.id for each in listed] == [closed.decision.id]
    (line,) = (each for each in desk.memory.preview_context(deployment=DEPLOYMENT).segments if "last" in each.name)
    assert "executed: buy 2 BTC" in line.text
    assert "rejected by R3_POSITION_CAP: sell 5 ETH" in line.text


def test_a_rejected_order_explains_no_fill(desk: Desk) -> None:
    proposals = [ProposedOrder(order=BTC, verdict=EXECUTED), ProposedOrder(order=ETH, verdict=REJECTED)]
    closed = decide(desk, 0, [], POSITIONS, proposals=proposals)
    assert {trade.symbol: trade.entry.reason for trade in closed.opened} == {"BTC": "break of the range", "ETH": None}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"proposals": BOTH, "proposal": BTC}, "proposals"),
        ({"proposals": BOTH, "verdict": None}, "verdict"),
        ({"verdict": None}, "verdict"),
        ({"proposals": [ProposedOrder(order=BTC, verdict=Verdict(kind="rejected"))]}, "proposals.0.verdict.rule"),
        ({"verdict": EXECUTED}, "proposal"),
    ],
)
def test_contradictory_proposals_are_refused(desk: Desk, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        decide(desk, 0, [], [], **arguments)
    assert refused.value.field == field
    assert desk.memory.list_decisions(deployment=DEPLOYMENT).decisions == ()


def test_a_tick_with_other_orders_or_another_answer_is_not_the_same(desk: Desk) -> None:
    closed = decide(desk, 0, [], POSITIONS, proposals=BOTH, response="buy and hedge")
    again = decide(desk, 0, [], POSITIONS, proposals=BOTH, response="buy and hedge")
    assert (again.replayed, again.decision) == (True, closed.decision)
    with pytest.raises(Conflict, match="further_proposals"):
        decide(desk, 0, [], POSITIONS, proposals=BOTH[:1], response="buy and hedge")
    with pytest.raises(Conflict, match="response_hash"):
        decide(desk, 0, [], POSITIONS, proposals=BOTH, response="buy")


def test_the_answer_of_the_model_is_stored_once_and_shown_in_full_only(desk: Desk) -> None:
    answer = '{"action": "hold", "thinking": "' + "x" * 5_000 + '"}'
    noop = Verdict(kind="noop")
    first = decide(desk, 0, [], [], verdict=noop, response=answer)
    decide(desk, 1, [], [], verdict=noop, response=answer)
    detail = desk.memory.get_decision(decision_id=first.decision.id)
    assert detail.response == answer
    assert "5,034 characters" in brief(detail)
    assert "xxxx" not in brief(detail)
    with pytest.raises(NotFound, match="no decision"):
        desk.memory.get_decision(decision_id=first.decision.id, as_of=at(-1))
    with pytest.raises(Invalid, match="longer than 100000 characters"):
        decide(desk, 2, [], [], verdict=noop, response="x" * 100_001)


def test_recommended_shares_are_those_of_each_order(desk: Desk) -> None:
    closed = decide(desk, 0, [], POSITIONS, proposals=BOTH)
    shares = {each.order.symbol: each.recommended_share for each in closed.decision.proposals}
    assert {trade.symbol: trade.entry.recommended_share for trade in closed.opened} == shares
