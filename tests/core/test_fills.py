"""Fills: the order in which they apply, and the id that the trade they open derives from."""

from datetime import timedelta

from backsight.testing import T0, a_fill


def test_fills_of_one_instant_apply_in_the_brokers_order() -> None:
    later = a_fill(1, at=T0 + timedelta(seconds=1), sequence=0)
    second, first = a_fill(2, at=T0, sequence=2), a_fill(3, at=T0, sequence=1)
    assert sorted([later, second, first], key=lambda fill: fill.order) == [first, second, later]


def test_a_late_report_keeps_the_name_of_the_fill_that_it_explains() -> None:
    assert a_fill(1).name == a_fill(1).id
    assert a_fill(2, replaces="inferred-1").name == "inferred-1"


def test_only_executions_are_executed() -> None:
    executed = {kind for kind in ("trade", "inferred", "funding", "fee", "transfer") if a_fill(kind=kind).executed}
    assert executed == {"trade", "inferred"}
