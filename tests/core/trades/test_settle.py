"""Late reports replace inferred fills, and the ledger matches the positions of the broker."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.fills import Fill
from backsight.core.orders import Order
from backsight.core.portfolio import Position
from backsight.core.trades.fold import fold, open_trips
from backsight.core.trades.infer import FillStamp
from backsight.core.trades.settle import LedgerChange, Phase, from_first, settle
from backsight.testing import T0, a_fill, a_position, a_snapshot

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
HOURS = [T0 + number * HOUR for number in range(8)]


def a_guess(quantity: float = 2.0, price: float = 100.0, **changes: Any) -> Fill:
    """An inferred fill within the hour after T0."""
    defaults: dict[str, Any] = {
        "id": "guess",
        "kind": "inferred",
        "price_source": "average",
        "at": T0 + HOUR,
        "sequence": 0,
    }
    window = {"earliest_at": T0, "latest_at": T0 + HOUR, "reason": "in", "decision_id": "d"}
    return a_fill(0, quantity=quantity, price=price, **(defaults | window | changes))


def a_report(number: int, quantity: float, price: float | None = 100.0, **changes: Any) -> Fill:
    """A reported fill, `number` minutes after T0."""
    return a_fill(number, quantity=quantity, price=price, **changes)


def tick(
    ledger: Sequence[Fill],
    before: Sequence[Position],
    after: Sequence[Position] | None = None,
    *,
    hour: int = 1,
    reported: Sequence[Fill] = (),
    done: Sequence[Fill] = (),
    snapshots: Sequence[datetime] = (),
) -> LedgerChange:
    """The change of the ledger by the tick at `hour` hours after T0."""
    at = T0 + hour * HOUR
    since = FillStamp(
        owner_id="ana", account_id="account", tick_id=f"t{hour}", phase="since", at=at, since=at - HOUR, recorded_at=at
    )
    since = replace(since, snapshots=tuple(snapshots))
    afterwards = before if after is None else after
    change = sum(each.signed_size for each in afterwards) - sum(each.signed_size for each in before)
    order = Order(symbol="BTC", quantity=change, reason="words")
    now = replace(since, phase="now", since=at, decision_id="d", proposals=(order,))
    first, second = a_snapshot(*before, at=at), a_snapshot(*afterwards, at=at)
    return settle(
        ledger,
        Phase(stamp=since, snapshot=first, reported=tuple(reported)),
        Phase(stamp=now, snapshot=second, reported=tuple(done)),
        last_seen={},
        bars={},
    )


def ledger_after(ledger: Sequence[Fill], settled: LedgerChange) -> list[Fill]:
    """The fills of the ledger after a change."""
    replaced = {fill.id for fill in (*settled.withdrawn, *settled.restated)}
    return [*(fill for fill in ledger if fill.id not in replaced), *settled.restated, *settled.added]


def test_a_second_partial_report_a_tick_later_keeps_the_first_fill_id_of_the_trade() -> None:
    first = tick([a_guess()], [a_position(2.0)], reported=[a_report(20, 0.5)], hour=2)
    ledger = ledger_after([a_guess()], first)
    second = tick(ledger, [a_position(2.0)], reported=[a_report(10, 1.5)], hour=3)
    (trip,) = second.trips
    assert (trip.first_fill_id, trip.size, trip.inferred) == ("guess", 2.0, False)


def test_a_flip_reported_as_one_fill_keeps_the_first_fill_id_of_the_trade_it_opened() -> None:
    entry = a_report(0, 1.0)
    close, turn = a_guess(-1.0, id="close", sequence=0), a_guess(-2.0, id="turn", sequence=1)
    settled = tick([entry, close, turn], [a_position(-2.0)], reported=[a_report(30, -3.0)], hour=2)
    assert [trip.first_fill_id for trip in settled.trips] == ["fill-000000", "turn"]


def test_a_fill_reported_in_time_leaves_nothing_to_infer() -> None:
    settled = tick([], [a_position(2.0)], reported=[a_report(30, 2.0)])
    assert ([fill.kind for fill in settled.added], settled.withdrawn) == (["trade"], ())


def test_a_late_report_after_the_decision_also_replaces_an_inferred_fill() -> None:
    settled = tick([a_guess()], [a_position(2.0)], hour=2, done=[a_report(30, 2.0)])
    (trip,) = settled.trips
    assert (trip.size, trip.peak_size, trip.first_fill_id) == (2.0, 2.0, "guess")


def test_a_report_at_the_instant_of_the_tick_precedes_the_fills_inferred_then() -> None:
    again = a_position(1.0, average_price=90.0, mark=90.0)
    settled = tick([a_report(0, 1.0)], [again], reported=[a_report(60, -1.0, 95.0)])
    assert [(trip.entry_price, trip.exit_price) for trip in settled.trips] == [(100.0, 95.0), (90.0, None)]


def test_of_a_fill_that_flipped_the_position_only_the_opening_part_is_read() -> None:
    fills = [a_report(0, 1.0), a_report(1, -3.0, fee=3.0), a_report(2, 1.0)]
    read = from_first(fills, first_fill_id="fill-000001", size=2.0)
    assert [(fill.quantity, fill.fee) for fill in read] == [(-2.0, 2.0), (1.0, 0.0)]


def test_both_halves_of_a_round_trip_reported_late_leave_nothing_inferred() -> None:
    """Long at 100, sold at 101 and bought at 102 within the first hour; the reports come one and two ticks later."""
    again, halves = a_position(1.0, average_price=102.0), [a_report(30, -1.0, 101.0), a_report(40, 1.0, 102.0)]
    for order in (halves, halves[::-1]):
        ledger = [a_report(0, 1.0, 100.0)]
        for hour, late in enumerate([[], *([half] for half in order)], start=1):
            ledger = ledger_after(ledger, tick(ledger, [again], hour=hour, reported=late, snapshots=HOURS[:hour]))
        assert [fill.kind for fill in ledger] == ["trade"] * 3
        assert [(trip.entry_price, trip.exit_price, trip.net) for trip in fold(ledger)] == [
            (100.0, 101.0, 1.0),
            (102.0, None, 0.0),
        ]


def test_a_report_of_the_instant_of_the_snapshot_that_comes_after_the_decision_may_be_late() -> None:
    late = a_report(60, 2.0, 99.0, decision_id="earlier")
    settled = tick([a_guess()], [a_position(2.0)], hour=1, done=[late])
    (trip,) = settled.trips
    assert (trip.size, trip.entry_price, trip.entry_decision_id, trip.inferred) == (2.0, 99.0, "earlier", False)


def test_of_a_fill_that_flipped_the_position_before_a_split_the_same_part_is_read() -> None:
    fills = [a_report(1, -3.0), a_report(2, 0.0, None, kind="split", ratio=2.0)]
    (first, _) = from_first(fills, first_fill_id="fill-000001", size=4.0)
    assert first.quantity == -2.0


@pytest.mark.parametrize(("numbers", "quantity"), [((1, 2, 3), -2.0), ((1, 3, 2), -1.0)])
def test_a_split_at_the_instant_of_the_close_counts_if_the_close_follows_it(
    numbers: tuple[int, int, int], quantity: float
) -> None:
    first, split, close = numbers
    fills = [
        a_report(first, -3.0),
        replace(a_report(split, 0.0, None, kind="split", ratio=0.5), at=T0 + HOUR),
        replace(a_report(close, 1.0), at=T0 + HOUR),
    ]
    read = from_first(fills, first_fill_id="fill-000001", size=1.0, closed_at=T0 + HOUR)
    assert read[0].quantity == quantity


QUANTITIES = st.sampled_from([-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0])
PRICES = st.floats(50.0, 150.0).map(lambda price: round(price, 2))
FILLS = st.lists(st.tuples(QUANTITIES, PRICES, st.integers(0, 2)), min_size=1, max_size=12)


def positions_of(fills: Sequence[Fill]) -> list[Position]:
    trips = open_trips(fold(fills)).values()
    return [a_position(trip.signed_size, average_price=trip.average_cost) for trip in trips]


@settings(max_examples=100)
@given(FILLS)
def test_the_ledger_matches_the_broker_after_every_tick_however_late_the_reports(
    executions: list[tuple[float, float, int]],
) -> None:
    """A fill happens every half hour; each is reported in time, one tick late or never."""
    fills = [a_fill(30 * n + 15, quantity=q, price=p, sequence=0) for n, (q, p, _) in enumerate(executions)]
    due = {fill.id: n // 2 + 1 + late for n, (fill, (_, _, late)) in enumerate(zip(fills, executions, strict=True))}
    ledger: list[Fill] = []
    for hour in range(1, len(fills) // 2 + 4):
        happened = [fill for fill in fills if fill.at <= T0 + hour * HOUR]
        reported = [fill for fill in happened if due[fill.id] == hour and executions[fills.index(fill)][2] < 2]
        positions = positions_of(happened)
        ledger = ledger_after(ledger, tick(ledger, positions, hour=hour, reported=reported))
        ours = {key: trip.signed_size for key, trip in open_trips(fold(ledger)).items()}
        assert ours == pytest.approx({position.position_key: position.signed_size for position in positions})
        assert len({fill.id for fill in ledger}) == len(ledger)


@settings(max_examples=100)
@given(st.lists(st.tuples(QUANTITIES, PRICES), min_size=1, max_size=8))
def test_reports_one_tick_late_give_the_same_trades_as_reports_in_time(executions: list[tuple[float, float]]) -> None:
    """Each tick has one fill at its instant: the fill is inferred first, and its report replaces it."""
    fills = [a_fill(60 * n + 60, quantity=q, price=p, sequence=0) for n, (q, p) in enumerate(executions)]
    ledger: list[Fill] = []
    for number in range(len(fills) + 1):
        before, now = positions_of(fills[:number]), positions_of(fills[: number + 1])
        late = fills[number - 1 : number] if number else []
        ledger = ledger_after(ledger, tick(ledger, before, now, hour=number + 1, reported=late))
    assert not [fill for fill in ledger if fill.kind == "inferred"]
    assert [money(trip) for trip in fold(ledger)] == [money(trip) for trip in fold(fills)]


def money(trip: Any) -> tuple[Any, ...]:
    return trip.direction, trip.opened_at, trip.closed_at, trip.size, trip.entry_price, trip.exit_price, trip.net
