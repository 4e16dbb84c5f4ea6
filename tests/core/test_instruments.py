"""When a position is flat, what a point is worth, and which currency a symbol trades."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.instruments import EXACT, PLAIN, Flatness, Instrument, is_base_asset, symbol_rules
from backsight.testing import T0


def an_instrument(symbol: str, *, multiplier: float = 1.0, lot_step: float | None = None) -> Instrument:
    return Instrument(
        owner_id="ana",
        symbol=symbol,
        kind=None,
        multiplier=multiplier,
        lot_step=lot_step,
        tick_size=None,
        currency=None,
        underlying=None,
        known_at=T0,
        recorded_at=T0,
    )


def test_rules_hold_for_the_symbols_of_the_instruments_only() -> None:
    rules = symbol_rules(
        [an_instrument("ES", multiplier=50.0), an_instrument("BTC", lot_step=0.001)], currency="USD", dust=None
    )
    assert [rules.worth(symbol).point_value for symbol in ("ES", "BTC", "ETH")] == [50.0, 1.0, 1.0]
    assert rules.flatness.lot_steps == {"BTC": 0.001}
    assert PLAIN.worth("ES").point_value == 1.0


def test_a_whole_lot_is_never_flat_and_less_is() -> None:
    steps = Flatness(lot_steps={"BTC": 0.01})
    assert steps.below("BTC", peak=1.0, point_price=100.0) < 0.01
    assert steps.below("BTC", peak=1.0, point_price=100.0) > 0.0099999
    assert steps.below("ETH", peak=1.0, point_price=100.0) == 1e-9


def test_dust_is_a_value_and_does_not_depend_on_the_sign_of_a_price() -> None:
    dust = Flatness(dust=5.0)
    assert dust.below("CL", peak=1.0, point_price=-50.0) == dust.below("CL", peak=1.0, point_price=50.0) == 0.1
    assert dust.below("CL", peak=1.0, point_price=0.0) == 1e-9


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_rounding_alone_is_always_flat(peak: float, price: float) -> None:
    assert EXACT.below("BTC", peak=peak, point_price=price) == 1e-9 * peak


@pytest.mark.parametrize(
    ("currency", "symbol", "is_base"),
    [("btc", "BTC-PERP", True), ("USDT", "BTCUSDT", False), ("BNB", "ETHUSDT", False), ("", "BTC", False)],
)
def test_the_base_asset_is_what_a_symbol_begins_with(currency: str, symbol: str, is_base: bool) -> None:
    assert is_base_asset(currency, symbol) is is_base
