"""Exchange rates from the prices of currency pairs, however a broker spells the pair."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

RateSource = Literal["reported", "mark", "bar"]
"""Source of an exchange rate: the broker's fill, the price of a currency pair in the snapshot, or a stored bar."""

SEPARATORS = ("", "/", "-", "_", ".")
PAIR_SUFFIXES = ("", "=X")
SUFFIXES = (*PAIR_SUFFIXES, "_PERP", "-PERP", "-SWAP")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRate:
    """Units of an account's currency for one unit of another."""

    value: float
    source: RateSource


def spellings(currency: str, account_currency: str, *, suffixes: tuple[str, ...] = SUFFIXES) -> dict[str, bool]:
    """The symbols of a currency pair; the value says whether the price must be inverted to give the rate.

    >>> pair = spellings("JPY", "USD")
    >>> pair["JPYUSD"], pair["USD/JPY"], pair["USDJPY=X"], "EURUSD" in pair
    (False, True, True, False)
    """
    return dict(_spelled(currency.upper(), account_currency.upper(), suffixes))


def _spelled(currency: str, account_currency: str, suffixes: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    for first, second, inverted in ((currency, account_currency, False), (account_currency, currency, True)):
        for separator in SEPARATORS:
            for suffix in suffixes:
                yield f"{first}{separator}{second}{suffix}", inverted


def rate_in(prices: Mapping[str, float], currency: str, account_currency: str) -> float | None:
    """Units of the account's currency for one unit of another, if a price of the pair is among the prices; else None.

    >>> rate_in({"USDJPY": 160.0, "BTC": 60_000.0}, "JPY", "USD")
    0.00625
    >>> rate_in({"BTC/USD": 60_000.0}, "BTC", "USD"), rate_in({"EURUSD": 1.1}, "JPY", "USD")
    (60000.0, None)
    """
    if currency.upper() == account_currency.upper():
        return 1.0
    for symbol, inverted in spellings(currency, account_currency).items():
        price = prices.get(symbol)
        if price is not None and price > 0:
            return 1.0 / price if inverted else price
    return None
