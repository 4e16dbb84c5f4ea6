"""Amounts of any size have a short text."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.prompts.amounts import gain, money, percent, price, span

ANY = st.none() | st.floats() | st.floats(-1e4, 1e4)


@given(ANY)
def test_every_number_has_a_short_text(value: float | None) -> None:
    texts = [price(value), money(value, "USD"), gain(value, "EUR"), gain(value, None, cents=True), percent(value)]
    assert all(0 < len(text) <= 30 and "\n" not in text and "nan" not in text for text in [*texts, span(value)])


@given(st.floats(1e-14, 1e14))
def test_a_price_is_right_to_six_digits(value: float) -> None:
    assert abs(float(price(value).replace(",", "")) - value) <= 1e-5 * value


@given(st.floats(1e-14, 1e14), st.sampled_from(["USD", "EUR", None]))
def test_a_gain_and_a_loss_differ_in_their_sign_only(value: float, currency: str | None) -> None:
    assert gain(value, currency)[0] == "+"
    assert gain(-value, currency) == gain(value, currency).replace("+", "-", 1)


def test_prices_of_any_size_show_the_digits_that_count() -> None:
    prices = [65_200.0, 3_438.25, 99_999.5, 123_456.789, 1e9, 0.000000001, 0.0000123456, 2.5e18, 0.0]
    expected = [
        "65,200",
        "3,438.25",
        "99,999.5",
        "123,457",
        "1,000,000,000",
        "0.000000001",
        "0.0000123456",
        "999,999,999,999,999+",
        "0",
    ]
    assert [price(value) for value in prices] == expected


def test_dollars_have_their_sign_and_other_currencies_their_name() -> None:
    assert [money(2_500, currency) for currency in ("USD", "EUR", "USDT", None)] == [
        "$2,500",
        "2,500 EUR",
        "2,500 USDT",
        "2,500",
    ]
    assert [gain(-9.7, currency, cents=True) for currency in ("USD", "JPY")] == ["-$9.70", "-9.70 JPY"]


def test_small_and_large_gains_keep_what_counts() -> None:
    gains = [0.0, 0.000012, 0.05, 9_999.99, 10_000.4, 1e9, 1e20]
    expected = ["$0", "+$0.000012", "+$0.05", "+$9,999.99", "+$10,000", "+$1,000,000,000", "+$999,999,999,999,999+"]
    assert [gain(value, "USD", cents=True) for value in gains] == expected


def test_a_currency_from_outside_stays_a_word() -> None:
    assert money(5, "EUR\n## Orders") == "5 EUR_##…"
