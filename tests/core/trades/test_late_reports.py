"""Late reports take the place of inferred fills, and what they do beyond them is offset until it is reported too."""

import pytest

from backsight.core.fills import Fill
from backsight.core.instruments import Flatness
from backsight.core.trades.late_reports import explain_inferred
from backsight.testing import T0
from core.trades.test_settle import HOUR, HOURS, MINUTE, a_guess, a_report


def test_a_report_replaces_an_inferred_fill() -> None:
    change = explain_inferred([a_guess()], [a_report(30, 2.0, 99.0)])
    (report,) = change.reported
    assert (report.replaces, report.name, report.reason, report.decision_id) == ("guess", "guess", "in", "d")
    assert ([fill.id for fill in change.withdrawn], change.restated) == (["guess"], ())


@pytest.mark.parametrize("decision", [None, "e"])
def test_the_reason_of_the_broker_precedes_the_inferred_reason(decision: str | None) -> None:
    (report,) = explain_inferred([a_guess()], [a_report(30, 2.0, reason="liquidated", decision_id=decision)]).reported
    assert (report.reason, report.decision_id) == ("liquidated", decision or "d")


def test_a_partial_report_leaves_a_rest_at_the_price_that_keeps_the_total_cost() -> None:
    change = explain_inferred([a_guess(2.0, 100.0)], [a_report(30, 0.5, 94.0)])
    (rest,) = change.restated
    assert (rest.quantity, rest.price, change.withdrawn) == (1.5, 102.0, ())
    cost = 0.5 * 94.0 + 1.5 * 102.0
    assert cost == 2.0 * 100.0


def test_a_rest_keeps_the_inferred_price_if_its_own_would_be_below_zero() -> None:
    (rest,) = explain_inferred([a_guess(2.0, 100.0)], [a_report(30, 1.5, 400.0)]).restated
    assert (rest.quantity, rest.price) == (0.5, 100.0)


def test_one_of_several_partial_reports_takes_the_id_of_the_inferred_fill() -> None:
    change = explain_inferred([a_guess()], [a_report(20, 0.5), a_report(10, 0.5), a_report(30, 1.0)])
    assert [fill.replaces for fill in change.reported] == ["guess", None, None]
    assert [fill.at for fill in change.reported] == [T0 + n * MINUTE for n in (10, 20, 30)]
    assert {fill.decision_id for fill in change.reported} == {"d"}


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
def test_a_report_of_another_side_position_time_or_kind_explains_nothing(report: Fill) -> None:
    change = explain_inferred([a_guess()], [report])
    assert (change.reported, change.restated, change.withdrawn) == ((report,), (), ())


def test_a_report_at_the_instant_of_the_snapshot_explains_its_fill() -> None:
    instant = a_guess(earliest_at=T0 + HOUR)
    assert explain_inferred([instant], [a_report(60, 2.0)]).withdrawn == (instant,)


def test_a_report_at_the_instant_of_the_snapshot_before_explains_the_fill_if_no_other_report_does() -> None:
    assert explain_inferred([a_guess()], [a_report(0, 2.0)]).withdrawn == (a_guess(),)


def test_half_of_a_round_trip_is_offset_between_the_same_snapshots() -> None:
    (offset,) = explain_inferred([a_report(-30, 1.0)], [a_report(30, -1.0, 103.0)], snapshots=HOURS).offset
    assert (offset.kind, offset.quantity, offset.price, offset.price_source) == ("inferred", 1.0, 103.0, "offset")
    assert (offset.earliest_at, offset.latest_at, offset.decision_id) == (HOURS[0], HOURS[1], None)


def test_the_report_of_the_other_half_takes_the_offset_back() -> None:
    entry, sale, purchase = a_report(-30, 1.0), a_report(30, -1.0, 103.0), a_report(40, 1.0, 102.0)
    (offset,) = explain_inferred([entry], [sale], snapshots=HOURS).offset
    change = explain_inferred([entry, sale, offset], [purchase], snapshots=HOURS)
    assert (change.withdrawn, change.offset, change.restated) == ((offset,), (), ())


def test_both_halves_in_one_snapshot_need_no_offset() -> None:
    change = explain_inferred([a_report(-30, 1.0)], [a_report(30, -1.0), a_report(40, 1.0)], snapshots=HOURS)
    assert (change.offset, len(change.reported)) == ((), 2)


def test_a_report_beyond_an_inferred_fill_is_offset_by_the_difference() -> None:
    change = explain_inferred([a_guess(2.0)], [a_report(30, 5.0)], snapshots=HOURS)
    assert ([fill.id for fill in change.withdrawn], [fill.quantity for fill in change.offset]) == (["guess"], [-3.0])


def test_after_the_last_snapshot_nothing_is_offset() -> None:
    assert explain_inferred([], [a_report(30, -1.0)], snapshots=HOURS[:1]).offset == ()


def test_a_fill_at_the_instant_of_a_snapshot_joins_the_intervals_around_it() -> None:
    """A purchase before the snapshot and a sale at its instant leave the size unchanged on both sides."""
    sale, purchase = a_report(60, -1.0), a_report(30, 1.0)
    (offset,) = explain_inferred([], [sale], snapshots=HOURS).offset
    assert (offset.earliest_at, offset.latest_at) == (HOURS[0], HOURS[2])
    assert explain_inferred([sale, offset], [purchase], snapshots=HOURS).withdrawn == (offset,)


def test_a_late_split_explains_the_units_that_were_inferred_as_bought() -> None:
    bought = a_guess(9.0, earliest_at=T0, latest_at=HOURS[1])
    split = a_report(30, 0.0, None, kind="split", ratio=10.0)
    change = explain_inferred([a_report(-30, 1.0), bought], [split], snapshots=HOURS)
    assert (change.withdrawn, change.offset) == ((bought,), ())


def test_a_report_of_before_a_split_counts_in_the_units_after_it() -> None:
    split = a_report(40, 0.0, None, kind="split", ratio=10.0)
    sold = a_guess(-5.0)
    change = explain_inferred([a_report(-30, 1.0), split, sold], [a_report(30, -0.5)], snapshots=HOURS)
    assert (change.withdrawn, change.offset, change.restated) == ((sold,), (), ())


def test_a_move_of_units_explains_no_more_than_its_size() -> None:
    moved = a_report(30, -0.5, None, kind="asset_transfer")
    (rest,) = explain_inferred([a_report(-30, 3.0), a_guess(-2.0)], [moved], snapshots=HOURS).restated
    assert (rest.quantity, rest.price) == (-1.5, 100.0)


def test_a_rest_below_a_lot_step_is_dropped() -> None:
    lots = Flatness(lot_steps={"BTC": 0.001})
    change = explain_inferred([a_guess(0.9994)], [a_report(30, 0.999)], snapshots=HOURS, flatness=lots)
    assert ([fill.id for fill in change.withdrawn], change.restated, change.offset) == (["guess"], (), ())


def test_the_fill_of_another_order_does_not_get_the_decision_of_the_inferred_one() -> None:
    guess = a_guess(order_id="7")
    (own,) = explain_inferred([guess], [a_report(30, 2.0, order_id="7")]).reported
    (other,) = explain_inferred([guess], [a_report(30, 2.0, order_id="8")]).reported
    assert ((own.decision_id, own.reason), (other.decision_id, other.reason)) == (("d", "in"), (None, None))
    assert other.replaces == "guess"


def test_a_late_expiry_does_not_get_the_decision_of_the_inferred_exit() -> None:
    (expiry,) = explain_inferred([a_guess(-2.0)], [a_report(30, -2.0, kind="expiry")]).reported
    assert (expiry.decision_id, expiry.reason, expiry.replaces) == (None, None, "guess")
