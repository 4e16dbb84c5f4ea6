"""Positions: a short has a negative size; they are named by their key."""

from backsight.core.portfolio import Portfolio
from backsight.testing import T0, a_position


def test_the_size_of_a_short_is_negative() -> None:
    assert a_position(2.0, direction="long").signed_size == 2.0
    assert a_position(2.0, direction="short").signed_size == -2.0


def test_two_positions_in_one_symbol_have_two_keys() -> None:
    legs = (a_position(position_key="1", symbol="BTC"), a_position(position_key="2", symbol="BTC"))
    assert Portfolio(at=T0, equity=1.0, cash=1.0, positions=legs).by_key() == {"1": legs[0], "2": legs[1]}
