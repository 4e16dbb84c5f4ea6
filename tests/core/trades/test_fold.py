"""Fills become round trips."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.fills import Fill
from backsight.core.instruments import Flatness
from backsight.core.trades.fold import RoundTrip, fold, open_trips, unmatched_size
from backsight.testing import T0, a_fill

SIZES = st.integers(-8, 8).filter(bool).map(lambda n: n / 4)
PRICES = st.floats(1.0, 1000.0)
PATHS = st.lists(st.tuples(SIZES, PRICES, st.floats(0, 2), st.sampled_from(["A", "B"])), min_size=1, max_size=25)


MINUTE = timedelta(minutes=1)
about: Any = pytest.approx
"""A number up to rounding."""


def path(*executions: tuple[float, float], **same: Any) -> list[RoundTrip]:
    """The round trips of (quantity, price) pairs, a minute apart."""
    return fold(a_fill(number, quantity=q, price=p, **same) for number, (q, p) in enumerate(executions))


def drawn(executions: list[tuple[float, float, float, str]]) -> list[Fill]:
    return [
        a_fill(number, quantity=q, price=p, fee=fee, position_key=key, symbol=key)
        for number, (q, p, fee, key) in enumerate(executions)
    ]


def test_from_flat_to_flat_is_one_trade() -> None:
    (trip,) = path((2, 100.0), (-2, 110.0))
    assert (trip.direction, trip.status, trip.realized_pnl) == ("long", "closed", 20.0)
    assert (trip.entry_price, trip.exit_price, trip.peak_size) == (100.0, 110.0, 2.0)
    assert (trip.opened_at, trip.closed_at) == (T0, T0 + timedelta(minutes=1))


def test_a_short_earns_when_the_price_falls() -> None:
    (trip,) = path((-2, 100.0), (2, 90.0))
    assert (trip.direction, trip.realized_pnl) == ("short", 20.0)


def test_a_reduction_realises_its_part_and_leaves_the_cost() -> None:
    (trip,) = path((4, 100.0), (-1, 110.0))
    assert (trip.status, trip.size, trip.average_cost, trip.realized_pnl) == ("open", 3.0, 100.0, 10.0)
    assert trip.unrealized(120.0) == 60.0


def test_an_addition_moves_the_average_cost() -> None:
    (trip,) = path((1, 100.0), (3, 120.0), (-4, 130.0))
    assert (trip.entry_price, trip.realized_pnl, trip.peak_size) == (115.0, 60.0, 4.0)
    assert trip.peak_notional == 460.0


def test_a_holding_counts_only_where_the_fills_lead_to_another_size() -> None:
    holding = a_fill(1, quantity=2, price=100.0, kind="holding")
    sale = a_fill(2, quantity=-2, price=110.0)
    (trip,) = fold([holding, sale])
    assert (trip.direction, trip.status, trip.realized_pnl, trip.inferred) == ("long", "closed", 20.0, True)
    (trip,) = fold([a_fill(0, quantity=2, price=90.0), holding, sale])
    assert (trip.entry_price, trip.realized_pnl, trip.inferred) == (90.0, 40.0, False)
    (trip,) = fold([a_fill(0, quantity=1, price=90.0), holding, sale])
    assert (trip.entry_price, trip.realized_pnl, trip.inferred) == (100.0, 20.0, True)


def test_a_holding_of_less_or_of_the_other_side_moves_the_rest_out_at_cost() -> None:
    bought = a_fill(0, quantity=4, price=90.0)
    (trip,) = fold([bought, a_fill(1, quantity=1, price=None, kind="holding")])
    assert (trip.status, trip.size, trip.realized_pnl) == ("open", 1.0, 0.0)
    (trip,) = fold([bought, a_fill(1, quantity=0, price=None, kind="holding")])
    assert (trip.status, trip.realized_pnl) == ("closed", 0.0)
    long, short = fold([bought, a_fill(1, quantity=-3, price=80.0, kind="holding")])
    assert (long.status, long.realized_pnl) == ("closed", 0.0)
    assert (short.direction, short.size, short.average_cost) == ("short", 3.0, 80.0)


def test_a_flip_is_two_trades_and_shares_the_fee_by_quantity() -> None:
    first, second = fold([a_fill(0, quantity=1, price=100.0), a_fill(1, quantity=-4, price=90.0, fee=8.0)])
    assert (first.direction, first.status, first.realized_pnl, first.fees) == ("long", "closed", -10.0, 2.0)
    assert (second.direction, second.size, second.average_cost, second.fees) == ("short", 3.0, 90.0, 6.0)
    assert first.closed_at == second.opened_at


def test_net_is_realised_plus_funding_less_fees() -> None:
    (trip,) = fold(
        [
            a_fill(0, quantity=1, price=100.0, fee=1.0),
            a_fill(1, kind="funding", quantity=0, price=None, amount=-0.5),
            a_fill(2, kind="fee", quantity=0, price=None, fee=0.25),
            a_fill(3, quantity=-1, price=103.0, fee=1.0),
        ]
    )
    assert (trip.realized_pnl, trip.fees, trip.funding, trip.net) == (3.0, 2.25, -0.5, 0.25)


def test_a_late_fee_corrects_the_last_trade_from_when_it_arrived() -> None:
    fills = [a_fill(0, quantity=1, price=100.0), a_fill(1, quantity=-1, price=103.0)]
    arrived = T0 + timedelta(days=3)
    late = a_fill(2, kind="fee", quantity=0, price=None, fee=5.0, known_at=arrived)
    assert fold(fills)[0].net == 3.0
    corrected = fold([*fills, late])[0]
    assert (corrected.net, corrected.known_at, corrected.closed_at) == (-2.0, arrived, T0 + timedelta(minutes=1))


def test_a_transfer_belongs_to_no_trade() -> None:
    transfer = a_fill(1, kind="transfer", quantity=0, price=None, amount=1000.0)
    assert fold([a_fill(0, quantity=1, price=100.0), transfer]) == fold([a_fill(0, quantity=1, price=100.0)])


def test_two_positions_in_one_symbol_are_two_trades() -> None:
    trips = fold(
        [
            a_fill(0, quantity=1, price=100.0, position_key="p1"),
            a_fill(1, quantity=-1, price=101.0, position_key="p2"),
        ]
    )
    assert {key: trip.direction for key, trip in open_trips(trips).items()} == {"p1": "long", "p2": "short"}


def test_dust_is_flat() -> None:
    (trip,) = path((0.3, 100.0), (-0.1, 101.0), (-0.1, 101.0), (-0.1, 101.0))
    assert (trip.status, trip.size) == ("closed", 0.0)


STEP = Flatness(lot_steps={"BTC": 0.01})


def test_less_than_a_lot_is_flat_and_a_lot_is_not() -> None:
    fills = [a_fill(0, quantity=1.0, price=100.0), a_fill(1, quantity=-0.995, price=100.0)]
    assert fold(fills, flatness=STEP)[0].status == "closed"
    assert fold([fills[0], a_fill(1, quantity=-0.99, price=100.0)], flatness=STEP)[0].status == "open"


def test_reasons_are_those_of_the_first_and_the_last_fill() -> None:
    (trip,) = fold(
        [
            a_fill(0, quantity=2, price=100.0, reason="breakout", decision_id="d1"),
            a_fill(1, quantity=-1, price=101.0, reason="half off", decision_id="d2"),
            a_fill(2, quantity=-1, price=99.0, reason="stop_loss", decision_id="d3"),
        ]
    )
    assert (trip.entry_reason, trip.exit_reason) == ("breakout", "stop_loss")
    assert (trip.entry_decision_id, trip.exit_decision_id) == ("d1", "d3")


def test_the_profit_of_the_broker_is_kept_if_every_exit_has_one() -> None:
    entry = a_fill(0, quantity=2, price=100.0)
    both = [a_fill(n, quantity=-1, price=105.0, realized_pnl=4.5) for n in (1, 2)]
    one = [a_fill(1, quantity=-1, price=105.0, realized_pnl=4.5), a_fill(2, quantity=-1, price=105.0)]
    assert fold([entry, *both])[0].broker_pnl == 9.0
    assert fold([entry, *one])[0].broker_pnl is None


def test_an_inferred_price_marks_the_trade() -> None:
    assert not path((1, 100.0), (-1, 101.0))[0].inferred
    assert fold([a_fill(0, quantity=1, price=100.0), a_fill(1, kind="inferred", quantity=-1, price=101.0)])[0].inferred


@given(PATHS, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(executions: list[Any], rng: Any) -> None:
    fills = drawn(executions)
    shuffled = list(fills)
    rng.shuffle(shuffled)
    assert fold(shuffled) == fold(fills)


@given(PATHS, st.dictionaries(st.sampled_from(["A", "B"]), PRICES, min_size=2))
def test_realised_plus_unrealised_is_what_the_account_gained(executions: list[Any], marks: dict[str, float]) -> None:
    trips = fold(drawn(executions))
    cash = -math.fsum(q * p for q, p, _, _ in executions)
    worth = math.fsum(q * marks[key] for q, _, _, key in executions)
    ours = math.fsum(t.realized_pnl + t.unrealized(marks[t.symbol]) for t in trips)
    assert math.isclose(ours, cash + worth, rel_tol=1e-9, abs_tol=1e-6)


@given(PATHS, PRICES)
def test_an_inverse_contract_pays_one_over_each_price(executions: list[Any], mark: float) -> None:
    fills = [replace(fill, inverse=True, point_value=100.0, position_key="A") for fill in drawn(executions)]
    trips = fold(fills)
    coins = 100.0 * math.fsum(fill.quantity * (1 / (fill.price or 1.0) - 1 / mark) for fill in fills)
    ours = math.fsum(trip.realized_pnl + trip.unrealized(mark) for trip in trips)
    assert math.isclose(ours, coins, rel_tol=1e-9, abs_tol=1e-6)


def test_the_average_cost_of_an_inverse_contract_is_harmonic() -> None:
    (trip,) = path((1.0, 100.0), (1.0, 200.0), (-2.0, 150.0), inverse=True, point_value=100.0)
    assert (trip.average_cost, trip.entry_price) == (about(400 / 3), about(400 / 3))
    assert trip.realized_pnl == about(1.0 + 0.5 - 2 * 100 / 150)
    assert trip.peak_notional == about(1.5)


@given(PATHS, st.lists(st.sampled_from([None, 0.5, 2.0]), min_size=25, max_size=25), st.integers(1, 24))
def test_a_round_trip_goes_on_in_the_currency_it_was_left_in(
    executions: list[Any], rates: list[float | None], cut: int
) -> None:
    """Folding all fills is folding the first, and then the others from there, whatever rates are known."""
    fills = [
        replace(fill, currency="JPY", rate=rate, point_value=rate or 1.0)
        for fill, rate in zip(drawn(executions), rates, strict=False)
    ]
    early = fold(fills[:cut])
    left_open = [trip for trip in early if trip.status == "open"]
    late = fold(fills[cut:], continued=left_open)
    assert [_money(trip) for trip in fold(fills) if trip.status == "open" or trip.closed_at not in _closes(early)] == [
        _money(trip) for trip in sorted(late, key=lambda each: (each.opened_at, each.first_fill_id))
    ]


def _closes(trips: list[RoundTrip]) -> set[Any]:
    return {trip.closed_at for trip in trips if trip.status == "closed"}


def _money(trip: RoundTrip) -> tuple[object, ...]:
    return trip.first_fill_id, trip.currency, trip.realized_pnl, trip.fees, trip.rate, trip.steps[-1].realized_pnl


def test_money_is_in_the_currency_of_the_last_fill() -> None:
    jpy: dict[str, Any] = {"currency": "JPY"}
    entry = a_fill(0, quantity=2.0, fee=10.0, **jpy)
    half = a_fill(1, quantity=-1.0, price=110.0, **jpy)
    converted = a_fill(2, quantity=-1.0, price=120.0, rate=0.5, point_value=0.5, **jpy)
    (kept,) = fold([entry, half])
    assert (kept.currency, kept.realized_pnl, kept.fees) == ("JPY", 10.0, 10.0)
    (trip,) = fold([entry, half, converted])
    assert (trip.currency, trip.realized_pnl, trip.fees) == (None, 15.0, 5.0)
    assert [step.realized_pnl for step in trip.steps] == [0.0, 5.0, 15.0]


def test_a_payment_that_no_rate_converts_is_left_out() -> None:
    paid = a_fill(1, kind="funding", quantity=0.0, price=None, amount=3.0)
    (unknown,) = fold([a_fill(0, currency="JPY"), paid])
    assert unknown.funding == 0.0
    later = replace(paid, at=T0 + timedelta(minutes=3))
    (known,) = fold([a_fill(0, currency="JPY", rate=0.5, point_value=0.5), a_fill(2, currency="JPY"), later])
    assert (known.currency, known.funding) == ("JPY", 6.0)


@given(PATHS)
def test_round_trips_keep_all_fees_and_quantities(executions: list[Any]) -> None:
    trips = fold(drawn(executions))
    assert math.isclose(math.fsum(t.fees for t in trips), math.fsum(fee for _, _, fee, _ in executions), abs_tol=1e-9)
    for key in ("A", "B"):
        expected = math.fsum(q for q, _, _, each in executions if each == key)
        ours = math.fsum(t.signed_size for t in trips if t.position_key == key)
        assert math.isclose(ours, expected, abs_tol=1e-9)
        assert sum(t.status == "open" for t in trips if t.position_key == key) <= 1


@given(PATHS)
def test_a_closed_trade_is_its_average_prices_times_its_size(executions: list[Any]) -> None:
    for trip in (trip for trip in fold(drawn(executions)) if trip.status == "closed"):
        assert trip.exit_price is not None
        way = 1 if trip.direction == "long" else -1
        assert math.isclose(trip.entered, trip.left, rel_tol=1e-9)
        expected = way * (trip.exit_price - trip.entry_price) * trip.entered
        assert math.isclose(trip.realized_pnl, expected, rel_tol=1e-9, abs_tol=1e-6)
        assert trip.steps[-1].realized_pnl == trip.realized_pnl


@given(PATHS, st.integers(0, 25))
def test_later_fills_do_not_change_closed_trips(executions: list[Any], cut: int) -> None:
    fills = drawn(executions)
    then = T0 + timedelta(minutes=cut)
    early = fold(fill for fill in fills if fill.known_at <= then)
    again = [trip for trip in fold(fills) if trip.closed_at is not None and trip.closed_at <= then]
    assert [trip for trip in early if trip.status == "closed"] == again


def marked_as_closing(executions: list[tuple[float, float, float, str]]) -> list[Fill]:
    """Fills of one position that never reverse it at once; those that reduce it say so."""
    fills: list[Fill] = []
    position = 0.0
    for quantity, price, fee, _ in executions:
        reduces = position * quantity < 0
        if reduces and abs(quantity) > abs(position):
            quantity = -position
        closes = "all" if reduces else None
        fills.append(a_fill(len(fills), quantity=quantity, price=price, fee=fee, closes=closes))
        position += quantity
    return fills


@given(PATHS, st.integers(0, 25))
def test_a_history_that_begins_within_a_position_makes_no_false_trade(
    executions: list[tuple[float, float, float, str]], cut: int
) -> None:
    fills = marked_as_closing(executions)
    whole, part = fold(fills), fold(fills[cut:])
    flat = next((trip.closed_at for trip in whole if trip.closed_at and trip.closed_at >= T0 + cut * MINUTE), None)
    opened = {trip.first_fill_id: trip for trip in whole}
    for trip in part:
        if trip.first_fill_id in opened and trip.opened_at >= T0 + cut * MINUTE:
            assert trip == opened[trip.first_fill_id]
        else:  # entered while the unknown position was there, on the same side, and closed with it at the latest
            held = next(
                each for each in whole if each.opened_at <= trip.opened_at <= (each.closed_at or trip.opened_at)
            )
            assert trip.direction == held.direction
            assert trip.closed_at is None or flat is None or trip.closed_at <= flat


def test_a_profit_shows_how_much_of_a_fill_closes() -> None:
    entry = a_fill(0, quantity=1.0, price=100.0)
    for profit, unmatched in ((10.0, 0.0), (60.0, 2.0)):
        turned = a_fill(1, quantity=-3.0, price=110.0, realized_pnl=profit, closes="measured")
        assert unmatched_size(fold([entry])[0], turned, Flatness()) == unmatched
        assert len(fold([entry, turned])) == (1 if unmatched else 2)
    assert fold([a_fill(0, realized_pnl=5.0, closes="some")]) == []
