"""Instruments from the symbols of exchanges and brokers."""

import pytest

from backsight.importers.market_symbols import base_and_quote, inverse_instrument, pair_instrument, stock_or_option


@pytest.mark.parametrize(
    ("symbol", "assets"),
    [
        ("BTCFDUSD", ("BTC", "FDUSD")),
        ("ETHBTC", ("ETH", "BTC")),
        ("USDCUSDT", ("USDC", "USDT")),
        ("BTC/USD", ("BTC", "USD")),
        ("USDT", None),
        ("BTC-USDT-SWAP", None),
        ("", None),
    ],
)
def test_base_and_quote(symbol: str, assets: tuple[str, str] | None) -> None:
    assert base_and_quote(symbol) == assets


def test_an_inverse_contract_pays_in_its_base() -> None:
    perpetual = inverse_instrument("BTCUSD_PERP", "BTC", face_value=100.0)
    assert (perpetual.kind, perpetual.multiplier, perpetual.currency, perpetual.inverse) == (
        "perpetual",
        100.0,
        "BTC",
        True,
    )
    assert inverse_instrument("BTC-USD-240329", "BTC", face_value=100.0).kind == "future"


def test_a_pair_is_priced_in_its_quote() -> None:
    assert pair_instrument("ETHBTC", "ETHBTC", "spot").currency == "BTC"
    assert pair_instrument("PURR", "PURR", None).currency is None


def test_an_option_has_a_multiplier() -> None:
    assert stock_or_option("BRK.B260717C00312500", "USD").underlying == "BRK.B"
    assert stock_or_option("AAPL", "USD").multiplier == 1.0
