"""Groups of trades: by every known value of every dimension, and by thirds of size."""

from datetime import timedelta
from typing import Any

import pytest

from backsight.core.reflection.groups import SizeBands, group_trades, results_before, size_bands
from backsight.core.reflection.patterns import ClosedTrade
from backsight.testing import T0


def a_trade(number: int, **changes: Any) -> ClosedTrade:
    at = T0 + timedelta(hours=number)
    values: dict[str, Any] = {"id": f"t{number}", "ended_at": at, "known_at": at, "symbol": "BTC"}
    return ClosedTrade(**(values | changes))


def members(*trades: ClosedTrade) -> dict[tuple[str, str], tuple[int, ...]]:
    return {(group.dimension, group.value): group.members for group in group_trades(trades)}


def test_an_unknown_value_is_in_no_group() -> None:
    groups = members(a_trade(0, regime="ranging"), a_trade(1), a_trade(2, regime="unknown"))
    assert groups[("regime", "ranging")] == (0,)
    assert [value for dimension, value in groups if dimension == "regime"] == ["ranging"]
    assert groups[("symbol", "BTC")] == (0, 1, 2)


def test_hours_have_two_digits_and_come_in_order() -> None:
    trades = [a_trade(0, hour=13), a_trade(1, hour=9)]
    assert [group.value for group in group_trades(trades) if group.dimension == "hour"] == ["09", "13"]


def test_sizes_are_grouped_by_thirds() -> None:
    groups = members(*(a_trade(number, size_share=share / 100) for number, share in enumerate((1, 2, 3, 4, 5, 6))))
    assert {value: groups[("size", value)] for value in ("small", "medium", "large")} == {
        "small": (0, 1),
        "medium": (2, 3),
        "large": (4, 5),
    }


@pytest.mark.parametrize("small", [1, 3, 5, 6, 7, 9, 11])
def test_two_sizes_are_two_bands_however_often_each_was_traded(small: int) -> None:
    shares = [0.01] * small + [0.02] * (12 - small)
    groups = members(*(a_trade(number, size_share=share) for number, share in enumerate(shares)))
    sizes = [indexes for (dimension, _), indexes in sorted(groups.items()) if dimension == "size"]
    assert sorted(sizes) == [tuple(range(small)), tuple(range(small, 12))]


def test_equal_sizes_are_all_medium() -> None:
    bands = size_bands([0.02] * 9)
    assert bands == SizeBands(small_below=0.02, large_above=0.02)
    assert bands.band(0.02) == "medium"
    assert size_bands([]) is None


def test_a_symbol_cannot_break_a_line() -> None:
    (group,) = [
        group for group in group_trades([a_trade(0, symbol="B\nTC" + "x" * 500)]) if group.dimension == "symbol"
    ]
    assert "\n" not in group.label
    assert len(group.label) < 200


def test_weekdays_are_groups_of_entry_timing() -> None:
    trades = [a_trade(0, weekday=0), a_trade(1, weekday=6), a_trade(2)]
    weekdays = {group.label: group.members for group in group_trades(trades) if group.dimension == "weekday"}
    assert weekdays == {"Mondays": (0,), "Sundays": (1,)}


def test_a_pair_has_the_trades_of_both_parts() -> None:
    trades = [
        a_trade(0, regime="ranging", direction="short"),
        a_trade(1, regime="ranging", direction="long"),
        a_trade(2, regime="volatile", direction="short"),
        a_trade(3, direction="short"),
    ]
    pairs = {group.label: group.members for group in group_trades(trades) if group.dimension == "regime_and_direction"}
    assert pairs == {"shorts in ranging markets": (0,)}, "longs and volatile markets have one trade: the same groups"


def closed(number: int, *, opened: int, won: bool | None, **changes: Any) -> ClosedTrade:
    return a_trade(number, opened_at=T0 + timedelta(hours=opened), won=won, **changes)


def test_the_result_before_is_that_of_the_agents_last_closed_trade_of_any_symbol() -> None:
    trades = [
        closed(2, opened=0, won=True),
        closed(3, opened=1, won=False, symbol="ETH"),
        closed(5, opened=2, won=True),  # opened in the instant in which the first was closed
        closed(6, opened=4, won=True),  # after the loss in another symbol
        closed(7, opened=5, won=False, deployment_id="another"),
        closed(8, opened=8, won=True),  # closed in the instant in which it was opened
    ]
    assert results_before(trades) == [None, None, "win", "loss", None, "win"]


def test_an_unknown_result_or_entry_is_no_result_before() -> None:
    assert results_before([closed(1, opened=0, won=None), closed(3, opened=2, won=True), a_trade(9)]) == [None] * 3
