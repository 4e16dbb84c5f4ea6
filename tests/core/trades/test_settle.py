"""Late reports take the place of what was inferred, and the ledger ends where the broker is."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backsight.core.fills import Fill
from backsight.core.portfolio import Position
from backsight.core.trades.fold import fold, open_trips
from backsight.core.trades.infer import FillStamp
from backsight.core.trades.settle import LedgerChange, Phase, explain_inferred, from_first, settle
from backsight.testing import T0, a_fill, a_position, a_snapshot

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def a_guess(quantity: float = 2.0, price: float = 100.0, **changes: Any) -> Fill:
    """An inferred fill of the hour from T0 on."""
    made: dict[str, Any] = {
        "id": "guess",
        "kind": "inferred",
        "price_source": "average",
        "at": T0 + HOUR,
        "sequence": 0,
    }
    window = {"earliest_at": T0, "latest_at": T0 + HOUR, "reason": "in", "decision_id": "d"}
    return a_fill(0, quantity=quantity, price=price, **(made | window | changes))


def a_report(number: int, quantity: float, price: float | None = 100.0, **changes: Any) -> Fill:
    """A reported fill, minutes after T0."""
    return a_fill(number, quantity=quantity, price=price, **changes)


def tick(
    held: Sequence[Fill],
    before: Sequence[Position],
    after: Sequence[Position] | None = None,
    *,
    hour: int = 1,
    reported: Sequence[Fill] = (),
    done: Sequence[Fill] = (),
) -> LedgerChange:
    """The ledger after the tick of an hour."""
    at = T0 + hour * HOUR
    since = FillStamp(
        owner_id="ana", account_id="account", tick_id=f"t{hour}", phase="since", at=at, since=at - HOUR, recorded_at=at
    )
    now = replace(since, phase="now", since=at, decision_id="d", proposal_symbol="BTC", proposal_reason="words")
    looks = a_snapshot(*before, at=at), a_snapshot(*(before if after is None else after), at=at)
    return settle(
        held,
        Phase(stamp=since, snapshot=looks[0], reported=tuple(reported)),
        Phase(stamp=now, snapshot=looks[1], reported=tuple(done)),
        last_seen={},
        bars={},
    )


def kept(held: Sequence[Fill], settled: LedgerChange) -> list[Fill]:
    """The fills that are stored after a tick."""
    gone = {fill.id for fill in (*settled.withdrawn, *settled.restated)}
    return [*(fill for fill in held if fill.id not in gone), *settled.restated, *settled.added]


def test_a_report_takes_the_place_of_the_whole_guess() -> None:
    told = explain_inferred([a_guess()], [a_report(30, 2.0, 99.0)])
    (report,) = told.reported
    assert (report.replaces, report.name, report.reason, report.decision_id) == ("guess", "guess", "in", "d")
    assert ([fill.id for fill in told.withdrawn], told.restated) == (["guess"], ())


@pytest.mark.parametrize("decision", [None, "e"])
def test_the_brokers_own_reason_stands_before_the_one_that_was_inferred(decision: str | None) -> None:
    (report,) = explain_inferred([a_guess()], [a_report(30, 2.0, reason="liquidated", decision_id=decision)]).reported
    assert (report.reason, report.decision_id) == ("liquidated", decision or "d")


def test_a_part_leaves_a_rest_at_the_price_that_keeps_the_whole_cost() -> None:
    told = explain_inferred([a_guess(2.0, 100.0)], [a_report(30, 0.5, 94.0)])
    (rest,) = told.restated
    assert (rest.quantity, rest.price, told.withdrawn) == (1.5, 102.0, ())
    cost = 0.5 * 94.0 + 1.5 * 102.0
    assert cost == 2.0 * 100.0


def test_a_rest_whose_price_would_be_below_zero_keeps_that_of_the_guess() -> None:
    (rest,) = explain_inferred([a_guess(2.0, 100.0)], [a_report(30, 1.5, 400.0)]).restated
    assert (rest.quantity, rest.price) == (0.5, 100.0)


def test_of_several_partial_reports_one_carries_the_name() -> None:
    told = explain_inferred([a_guess()], [a_report(20, 0.5), a_report(10, 0.5), a_report(30, 1.0)])
    assert [fill.replaces for fill in told.reported] == ["guess", None, None]
    assert [fill.at for fill in told.reported] == [T0 + n * MINUTE for n in (10, 20, 30)]
    assert {fill.decision_id for fill in told.reported} == {"d"}


@pytest.mark.parametrize(
    "report",
    [
        a_report(30, -2.0),
        a_report(30, 2.0, position_key="ETH"),
        a_report(61, 2.0),
        a_report(-1, 2.0),
        a_report(30, 0.0, None, kind="fee", fee=1.0),
    ],
)
def test_another_side_position_time_or_kind_explains_nothing(report: Fill) -> None:
    told = explain_inferred([a_guess()], [report])
    assert (told.reported, told.restated, told.withdrawn) == ((report,), (), ())


def test_a_report_at_the_very_instant_of_the_look_explains_what_it_showed() -> None:
    instant = a_guess(earliest_at=T0 + HOUR)
    assert explain_inferred([instant], [a_report(60, 2.0)]).withdrawn == (instant,)


def test_a_report_at_the_very_instant_of_the_look_before_explains_what_nothing_else_does() -> None:
    assert explain_inferred([a_guess()], [a_report(0, 2.0)]).withdrawn == (a_guess(),)


def test_the_second_part_that_comes_a_tick_later_leaves_the_trade_its_name() -> None:
    first = tick([a_guess()], [a_position(2.0)], reported=[a_report(20, 0.5)], hour=2)
    held = kept([a_guess()], first)
    second = tick(held, [a_position(2.0)], reported=[a_report(10, 1.5)], hour=3)
    (trip,) = second.trips
    assert (trip.first_fill_id, trip.size, trip.inferred) == ("guess", 2.0, False)


def test_a_flip_that_is_reported_as_one_fill_names_the_trade_that_it_opened() -> None:
    entry = a_report(0, 1.0)
    close, turn = a_guess(-1.0, id="close", sequence=0), a_guess(-2.0, id="turn", sequence=1)
    settled = tick([entry, close, turn], [a_position(-2.0)], reported=[a_report(30, -3.0)], hour=2)
    assert [trip.first_fill_id for trip in settled.trips] == ["fill-000000", "turn"]


def test_what_was_reported_in_time_leaves_nothing_to_infer() -> None:
    settled = tick([], [a_position(2.0)], reported=[a_report(30, 2.0)])
    assert ([fill.kind for fill in settled.added], settled.withdrawn) == (["trade"], ())


def test_a_late_report_among_those_of_the_look_after_is_explained_too() -> None:
    settled = tick([a_guess()], [a_position(2.0)], hour=2, done=[a_report(30, 2.0)])
    (trip,) = settled.trips
    assert (trip.size, trip.peak_size, trip.first_fill_id) == (2.0, 2.0, "guess")


def test_a_report_of_the_ticks_instant_comes_before_what_is_inferred_beside_it() -> None:
    again = a_position(1.0, average_price=90.0, mark=90.0)
    settled = tick([a_report(0, 1.0)], [again], reported=[a_report(60, -1.0, 95.0)])
    assert [(trip.entry_price, trip.exit_price) for trip in settled.trips] == [(100.0, 95.0), (90.0, None)]


def test_from_a_fill_that_turned_the_position_only_its_part_is_read() -> None:
    fills = [a_report(0, 1.0), a_report(1, -3.0, fee=3.0), a_report(2, 1.0)]
    read = from_first(fills, first_fill_id="fill-000001", size=2.0)
    assert [(fill.quantity, fill.fee) for fill in read] == [(-2.0, 2.0), (1.0, 0.0)]


QUANTITIES = st.sampled_from([-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0])
PRICES = st.floats(50.0, 150.0).map(lambda price: round(price, 2))
FILLS = st.lists(st.tuples(QUANTITIES, PRICES, st.integers(0, 2)), min_size=1, max_size=12)


def held_by(fills: Sequence[Fill]) -> list[Position]:
    trips = open_trips(fold(fills)).values()
    return [a_position(trip.signed_size, average_price=trip.average_cost) for trip in trips]


@settings(max_examples=100)
@given(FILLS)
def test_however_late_its_reports_are_the_ledger_ends_every_tick_where_the_broker_is(
    told: list[tuple[float, float, int]],
) -> None:
    """Fills happen one a half-hour; each is reported in time, one tick late or never."""
    fills = [a_fill(30 * n + 15, quantity=q, price=p, sequence=0) for n, (q, p, _) in enumerate(told)]
    due = {fill.id: n // 2 + 1 + late for n, (fill, (_, _, late)) in enumerate(zip(fills, told, strict=True))}
    ledger: list[Fill] = []
    for hour in range(1, len(fills) // 2 + 4):
        happened = [fill for fill in fills if fill.at <= T0 + hour * HOUR]
        reported = [fill for fill in happened if due[fill.id] == hour and told[fills.index(fill)][2] < 2]
        positions = held_by(happened)
        ledger = kept(ledger, tick(ledger, positions, hour=hour, reported=reported))
        ours = {key: trip.signed_size for key, trip in open_trips(fold(ledger)).items()}
        assert ours == pytest.approx({each.position_key: each.signed_size for each in positions})
        assert len({fill.id for fill in ledger}) == len(ledger)


@settings(max_examples=100)
@given(st.lists(st.tuples(QUANTITIES, PRICES), min_size=1, max_size=8))
def test_reported_one_tick_late_all_is_as_if_it_had_been_reported_in_time(told: list[tuple[float, float]]) -> None:
    """One fill a tick, at its instant: what is inferred at first gives way to the report."""
    fills = [a_fill(60 * n + 60, quantity=q, price=p, sequence=0) for n, (q, p) in enumerate(told)]
    ledger: list[Fill] = []
    for number in range(len(fills) + 1):
        before, now = held_by(fills[:number]), held_by(fills[: number + 1])
        late = fills[number - 1 : number] if number else []
        ledger = kept(ledger, tick(ledger, before, now, hour=number + 1, reported=late))
    assert not [fill for fill in ledger if fill.kind == "inferred"]
    assert [money(trip) for trip in fold(ledger)] == [money(trip) for trip in fold(fills)]


def money(trip: Any) -> tuple[Any, ...]:
    return trip.direction, trip.opened_at, trip.closed_at, trip.size, trip.entry_price, trip.exit_price, trip.net
