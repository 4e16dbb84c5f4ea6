"""Inferred fills bring the ledger to the positions of the broker."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.fills import Fill
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.portfolio import Portfolio, Position
from backsight.core.trades.fold import fold, open_trips
from backsight.core.trades.infer import FillStamp, PhaseName, infer_fills
from backsight.testing import T0, a_fill

LONG = Position(position_key="BTC", symbol="BTC", direction="long", size=2.0, mark=100.0, average_price=100.0)
SHORT = replace(LONG, direction="short")
STAMP = FillStamp(owner_id="ana", account_id="a", tick_id="t1", phase="since", at=T0, recorded_at=T0)


def a_bar(low: float, high: float, opened: float | None = None) -> Bar:
    start = T0 - timedelta(hours=1)
    price = min(max(100.0, low), high) if opened is None else opened
    return Bar(
        symbol="BTC", interval_seconds=300, opened_at=start, open=price, high=high, low=low, close=price, volume=None
    )


def a_portfolio(*positions: Position) -> Portfolio:
    return Portfolio(at=T0, equity=1000.0, cash=1000.0, positions=positions)


def a_snapshot(*positions: Position, mark: float) -> BrokerSnapshot:
    return BrokerSnapshot(portfolio=a_portfolio(*positions), marks={"BTC": mark})


def ledger_of(*positions: Position) -> list[Fill]:
    return [
        a_fill(
            n - 9999,
            quantity=p.signed_size,
            price=p.average_price,
            position_key=p.position_key,
            symbol=p.symbol,
            sequence=0,
            kind="inferred",
        )
        for n, p in enumerate(positions)
    ]


def infer(
    before: Sequence[Position],
    after: Sequence[Position],
    *,
    bars: Sequence[Bar] = (),
    mark: float = 104.0,
    **stamp: Any,
) -> list[Fill]:
    return infer_fills(
        open_trips(fold(ledger_of(*before))),
        a_snapshot(*after, mark=mark),
        stamp=replace(STAMP, **stamp),
        last_seen={position.position_key: position for position in before},
        bars={"BTC": bars},
    )


def summary(fills: Sequence[Fill]) -> list[tuple[float, float | None, str, str | None]]:
    return [(fill.quantity, fill.price, fill.price_source, fill.reason) for fill in fills]


def test_flat_to_open_opens_at_the_brokers_average() -> None:
    assert summary(infer([], [LONG])) == [(2.0, 100.0, "average", None)]


def test_without_an_average_price_it_opens_at_the_mark() -> None:
    assert summary(infer([], [replace(LONG, average_price=None, mark=101.0)])) == [(2.0, 101.0, "mark", None)]


def test_open_to_flat_closes_at_the_mark_and_is_unexplained() -> None:
    assert summary(infer([LONG], [])) == [(-2.0, 104.0, "mark", "unexplained")]


def test_an_unchanged_position_needs_no_fill() -> None:
    assert infer([LONG], [replace(LONG, mark=120.0)]) == []


def test_an_addition_moves_the_cost_to_the_average_of_the_broker() -> None:
    (added,) = infer([LONG], [replace(LONG, size=3.0, average_price=104.0)])
    assert (added.quantity, added.price, added.price_source) == (1.0, 112.0, "average")
    (trip,) = fold([*ledger_of(LONG), added])
    assert trip.average_cost == 104.0


def test_a_reduction_is_at_the_mark() -> None:
    assert summary(infer([LONG], [replace(LONG, size=0.5, mark=104.0)])) == [(-1.5, 104.0, "mark", "unexplained")]


def test_a_flip_is_a_close_and_an_open() -> None:
    flipped = replace(SHORT, size=1.0, mark=104.0, average_price=103.0)
    assert summary(infer([LONG], [flipped])) == [
        (-2.0, 104.0, "mark", "unexplained"),
        (-1.0, 103.0, "average", None),
    ]


@pytest.mark.parametrize(
    ("position", "bar", "price", "reason"),
    [
        (replace(LONG, stop_price=95.0), a_bar(94.0, 101.0), 95.0, "stop_loss"),
        (replace(LONG, stop_price=95.0), a_bar(90.0, 93.0, opened=92.0), 92.0, "stop_loss"),
        (replace(LONG, target_price=110.0), a_bar(100.0, 110.0), 110.0, "take_profit"),
        (replace(LONG, stop_price=95.0, target_price=110.0), a_bar(94.0, 111.0), 95.0, "stop_loss"),
        (replace(LONG, liquidation_price=80.0), a_bar(79.0, 101.0), 80.0, "liquidated"),
        (replace(LONG, stop_price=95.0, liquidation_price=80.0), a_bar(79.0, 101.0), 95.0, "stop_loss"),
        (replace(SHORT, stop_price=105.0), a_bar(99.0, 105.0), 105.0, "stop_loss"),
        (replace(SHORT, target_price=90.0), a_bar(89.0, 99.0), 90.0, "take_profit"),
        (replace(LONG, stop_price=95.0), a_bar(96.0, 101.0), 104.0, "unexplained"),
    ],
)
def test_bars_between_ticks_explain_a_close(position: Position, bar: Bar, price: float, reason: str) -> None:
    (closed,) = infer([position], [], bars=[bar])
    assert (closed.price, closed.reason) == (price, reason)
    assert closed.at == (T0 - timedelta(microseconds=1) if reason == "unexplained" else bar.closes_at)


def test_stopped_out_and_re_entered_at_the_same_size_is_two_trades() -> None:
    stopped = replace(LONG, stop_price=95.0)
    fills = infer([stopped], [replace(LONG, average_price=97.0, mark=98.0)], bars=[a_bar(94.0, 101.0)])
    assert summary(fills) == [(-2.0, 95.0, "stop", "stop_loss"), (2.0, 97.0, "average", None)]
    first, second = fold([*ledger_of(LONG), *fills])
    assert (first.exit_reason, first.realized_pnl, second.average_cost) == ("stop_loss", -10.0, 97.0)


def test_if_every_fill_was_reported_another_average_price_is_no_new_entry() -> None:
    reported = [replace(fill, kind="trade") for fill in ledger_of(LONG)]
    snapshot = a_snapshot(replace(LONG, average_price=97.0), mark=98.0)
    ledger = open_trips(fold(reported))
    assert infer_fills(ledger, snapshot, stamp=STAMP, last_seen={}, bars={}) == []


def test_a_position_with_a_new_key_is_another_position() -> None:
    fills = infer([replace(LONG, position_key="p1")], [replace(LONG, position_key="p2")])
    assert [(fill.position_key, fill.quantity) for fill in fills] == [("p1", -2.0), ("p2", 2.0)]


def test_a_flatten_command_explains_a_close() -> None:
    assert summary(infer([LONG], [], flattened=True))[0][3] == "external_flatten"


def test_the_proposal_of_the_agent_explains_a_close_of_its_symbol_in_its_tick() -> None:
    proposed: dict[str, Any] = {
        "phase": "now",
        "proposals": (Order(symbol="BTC", quantity=-2.0, reason="trend is over"),),
        "decision_id": "d",
    }
    (closed,) = infer([LONG], [], **proposed)
    assert (closed.reason, closed.decision_id) == ("trend is over", "d")
    for order in (Order(symbol="ETH", quantity=-2.0), Order(symbol="BTC", quantity=1.0, reason="add")):
        (other,) = infer([LONG], [], **proposed | {"proposals": (order,)})
        assert (other.reason, other.decision_id) == ("unexplained", None)
    (earlier,) = infer([LONG], [], **proposed | {"phase": "since"})
    assert (earlier.reason, earlier.decision_id) == ("unexplained", None)


def test_a_replayed_tick_names_the_same_fills() -> None:
    assert infer([LONG], [SHORT]) == infer([LONG], [SHORT])
    ids = {fill.id for tick in ("t1", "t2") for fill in infer([LONG], [SHORT], tick_id=tick)}
    assert len(ids) == 4


@pytest.mark.parametrize("tick", range(20))
@pytest.mark.parametrize("sequence", [0, 1])
def test_fills_since_the_last_tick_precede_those_of_the_tick(tick: int, sequence: int) -> None:
    fills = ledger_of(LONG)
    entered = replace(LONG, size=3.0, average_price=90.0, mark=90.0)
    phases: list[tuple[PhaseName, BrokerSnapshot, dict[str, Position]]] = [
        ("since", a_snapshot(mark=90.0), {"BTC": LONG}),
        ("now", a_snapshot(entered, mark=90.0), {}),
    ]
    for phase, snapshot, last_seen in phases:
        stamp = replace(STAMP, tick_id=f"t{tick}", phase=phase, sequence=sequence)
        fills += infer_fills(
            open_trips(fold(fills)),
            snapshot,
            stamp=stamp,
            last_seen=last_seen,
            bars={},
            known=fills,
        )
    first, second = fold(fills)
    assert (first.status, first.realized_pnl) == ("closed", -20.0)
    assert (second.size, second.average_cost) == (3.0, 90.0)


def test_a_bar_from_before_the_entry_explains_nothing() -> None:
    stopped = replace(LONG, stop_price=95.0)
    early = replace(a_bar(94.0, 101.0), opened_at=T0 - timedelta(days=30))
    assert summary(infer([stopped], [], bars=[early])) == [(-2.0, 104.0, "mark", "unexplained")]


@pytest.mark.parametrize(
    ("last_seen", "bars", "price"),
    [
        ({}, {}, 100.0),
        ({"BTC": replace(LONG, mark=97.0)}, {}, 97.0),
        ({"BTC": replace(LONG, mark=97.0)}, {"BTC": [a_bar(90.0, 99.0)]}, a_bar(90.0, 99.0).close),
    ],
)
def test_a_position_that_vanished_without_a_mark_is_closed_at_the_last_price_known(
    last_seen: dict[str, Position], bars: dict[str, list[Bar]], price: float
) -> None:
    ledger = open_trips(fold(ledger_of(LONG)))
    flat = BrokerSnapshot(portfolio=a_portfolio(), marks={"ETH": 1.0})
    fills = infer_fills(ledger, flat, stamp=STAMP, last_seen=last_seen, bars=bars, known=ledger_of(LONG))
    assert summary(fills) == [(-2.0, price, "last_known", "unexplained")]


POSITIONS = st.none() | st.builds(
    Position,
    position_key=st.just("BTC"),
    symbol=st.just("BTC"),
    direction=st.sampled_from(["long", "short"]),
    size=st.integers(1, 40).map(lambda n: n / 8),
    mark=st.floats(1, 1000),
    average_price=st.none() | st.floats(1, 1000),
)


@given(st.lists(POSITIONS, max_size=15))
def test_without_reports_the_ledger_matches_the_broker_after_every_tick(path: list[Position | None]) -> None:
    fills: list[Fill] = []
    last_seen: dict[str, Position] = {}
    for number, position in enumerate(path):
        at = T0 + timedelta(hours=number)
        inferred = infer_fills(
            open_trips(fold(fills)),
            a_snapshot(*([position] if position else []), mark=50.0),
            stamp=replace(STAMP, at=at, tick_id=f"t{number}"),
            last_seen=last_seen,
            bars={},
        )
        fills += inferred
        last_seen = {"BTC": position} if position else {}
        trip = open_trips(fold(fills)).get("BTC")
        assert (trip is None) == (position is None)
        if trip is not None and position is not None:
            assert math.isclose(trip.signed_size, position.signed_size, rel_tol=1e-9)
            assert trip.direction == position.direction
        again = infer_fills(
            open_trips(fold(fills)),
            a_snapshot(*([position] if position else []), mark=50.0),
            stamp=replace(STAMP, at=at, tick_id="again"),
            last_seen=last_seen,
            bars={},
        )
        assert [fill for fill in again if not math.isclose(fill.quantity, 0, abs_tol=1e-9)] == []
