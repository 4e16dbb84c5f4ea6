"""Rates from the prices of currency pairs."""

import pytest

from backsight.core.rates import rate_in


@pytest.mark.parametrize(
    ("symbol", "price", "rate"),
    [("USDJPY", 160.0, 1 / 160), ("JPYUSD", 0.006, 0.006), ("USD.JPY", 160.0, 1 / 160), ("JPY/USD", 0.006, 0.006)],
)
def test_a_pair_is_a_rate_in_either_direction(symbol: str, price: float, rate: float) -> None:
    assert rate_in({symbol: price}, "jpy", "USD") == rate


def test_a_price_of_zero_or_of_another_pair_is_no_rate() -> None:
    assert rate_in({"USDJPY": 0.0, "EURJPY": 160.0, "JPY": 3.0}, "JPY", "USD") is None


def test_a_currency_is_worth_one_of_itself() -> None:
    assert rate_in({}, "usd", "USD") == 1.0
