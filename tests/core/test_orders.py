"""Orders: their direction, whether they enter a position, and which of them are refused."""

from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.core.orders import Order, check_order, entry_direction
from backsight.testing import a_position, a_snapshot


def test_an_order_that_moves_levels_has_no_direction() -> None:
    directions = [Order(symbol="BTC", quantity=quantity).direction for quantity in (1.0, -1.0, 0.0)]
    assert directions == ["long", "short", None]


@pytest.mark.parametrize(
    ("quantity", "changes", "direction"),
    [(1.0, {}, "long"), (-1.0, {}, None), (-2.5, {}, "short"), (1.0, {"reduce_only": True}, None)],
)
def test_an_order_enters_unless_it_only_reduces(quantity: float, changes: dict[str, Any], direction: str) -> None:
    before = a_snapshot(a_position(2.0, symbol="BTC", position_key="BTC"))
    assert entry_direction(Order(symbol="BTC", quantity=quantity, **changes), before) == direction


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"symbol": ""}, "symbol"),
        ({"quantity": float("nan")}, "quantity"),
        ({"position_key": ""}, "position_key"),
        ({"stop_price": float("inf")}, "stop_price"),
        ({"target_price": float("nan")}, "target_price"),
    ],
)
def test_a_bad_order_is_refused_by_field(changes: dict[str, Any], field: str) -> None:
    order: dict[str, Any] = {"symbol": "BTC", "quantity": 1.0} | changes
    with pytest.raises(Invalid, match=f"^{field}: "):
        check_order(Order(**order))
    check_order(Order(symbol="BTC", quantity=0.0, stop_price=90.0))
