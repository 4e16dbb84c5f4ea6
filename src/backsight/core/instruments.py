"""Instruments: what one unit of a symbol is worth, in which steps it trades, and when a position in it is flat."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from backsight.core.rates import ExchangeRate, RateSource

InstrumentKind = Literal["spot", "perpetual", "future", "option", "stock", "fx"]

FLAT_SHARE = 1e-9
"""A position below this share of its peak size is flat, whatever else is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """What is known of a symbol. Without an instrument one unit of size earns one unit of money for each point."""

    owner_id: str
    symbol: str
    kind: InstrumentKind | None
    multiplier: float
    """Money, in the instrument's currency, that one unit of size earns for one point of price: 50 for ES. Of an inverse
    contract its face value in the currency of the price: 100 for one of BTCUSD that is 100 dollars."""
    inverse: bool = False
    """Whether the contract is worth a fixed amount of the price's currency and pays in the coin: COIN-M."""
    lot_step: float | None
    """The smallest step of the size; less than one step is no position."""
    tick_size: float | None
    """The smallest step of the price."""
    currency: str | None
    """The currency in which it pays: that of its prices, of an inverse contract the coin. None if the account's."""
    underlying: str | None
    """What several symbols have in common, like BTC for BTC/USDT and BTC-PERP."""
    known_at: datetime
    recorded_at: datetime


def unknown_instrument(owner: str, symbol: str, *, at: datetime) -> Instrument:
    """What a symbol is as long as nothing is known of it."""
    return Instrument(
        owner_id=owner,
        symbol=symbol,
        kind=None,
        multiplier=1.0,
        lot_step=None,
        tick_size=None,
        currency=None,
        underlying=None,
        known_at=at,
        recorded_at=at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flatness:
    """When the rest of a position counts as nothing."""

    lot_steps: Mapping[str, float] = field(default_factory=dict)
    """By symbol."""
    dust: float = 0.0
    """What is worth no more than this, in the account's currency, is no position."""

    def below(self, symbol: str, *, peak: float, point_price: float) -> float:
        """The largest size that is flat; `point_price` is what one unit of size is worth.

        >>> rules = Flatness(lot_steps={"BTC": 0.001}, dust=1.0)
        >>> rules.below("BTC", peak=2.0, point_price=100_000.0) < 0.001, rules.below("DOGE", peak=9.0, point_price=0.25)
        (True, 4.0)
        >>> rules.below("BTC", peak=2.0, point_price=100_000.0) > 0.000999
        True
        """
        step = self.lot_steps.get(symbol, 0.0) * (1.0 - FLAT_SHARE)
        worthless = self.dust / abs(point_price) if self.dust and point_price else 0.0
        return max(FLAT_SHARE * peak, step, worthless)


EXACT = Flatness()
"""Only what rounding leaves is flat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitWorth:
    """How sizes and prices of a symbol become money on an account."""

    multiplier: float = 1.0
    inverse: bool = False
    currency: str | None = None
    """The currency of its money, if it is another than the account's."""
    rate: float | None = None
    """Units of the account's currency for one unit of it; None if it is not known, or is the account's."""
    rate_source: RateSource | None = None
    is_contract: bool = False
    """Whether a contract is traded and not the asset itself: then no fee comes off the position."""

    @property
    def point_value(self) -> float:
        """Money that one unit of size earns for one point of price, at the rate if there is one."""
        return self.multiplier * (self.rate or 1.0)

    def at_rate(self, rate: ExchangeRate | None) -> "UnitWorth":
        """The worth at a rate into the account's currency; None if no rate is known."""
        if rate is None:
            return replace(self, rate=None, rate_source=None)
        return replace(self, rate=rate.value, rate_source=rate.source)

    @property
    def unconverted(self) -> str | None:
        """The currency that its money stays in, because no rate to the account's is known; else None."""
        return self.currency if self.rate is None else None


ONE_TO_ONE = UnitWorth()
"""One point of one unit is one unit of the account's money."""
CONTRACTS: frozenset[InstrumentKind] = frozenset(["perpetual", "future", "option"])


def valued(price: float, *, inverse: bool) -> float:
    """A price on the scale whose points are money: itself, of an inverse contract −1/price.

    The result of a long position is size × point value × (valued(exit) − valued(entry)), so that of an inverse contract
    is size × (1/entry − 1/exit), and the average cost is the average on this scale: harmonic for an inverse contract.

    >>> valued(100.0, inverse=False), valued(50.0, inverse=True)
    (100.0, -0.02)
    """
    if not inverse:
        return price
    return -1.0 / price if price > 0 else -math.inf


def price_at(value: float, *, inverse: bool) -> float:
    """The price that has a value on that scale; 0 if there is none above 0.

    >>> price_at(valued(80.0, inverse=True), inverse=True)
    80.0
    """
    if not inverse:
        return value
    return -1.0 / value if value < 0 else 0.0


def average_price(price: float, size: float, other: float, added: float, *, inverse: bool) -> float:
    """The average of two prices with their sizes: of an inverse contract the harmonic one.

    >>> [round(average_price(100.0, 1.0, 200.0, 1.0, inverse=inverse), 2) for inverse in (False, True)]
    [150.0, 133.33]
    """
    total = valued(price, inverse=inverse) * size + valued(other, inverse=inverse) * added
    return price_at(total / (size + added), inverse=inverse)


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolRules:
    """What the ledger of an account must know of its symbols."""

    flatness: Flatness = EXACT
    worths: Mapping[str, UnitWorth] = field(default_factory=dict)
    """By symbol, where there is an instrument."""
    underlyings: Mapping[str, str] = field(default_factory=dict)
    """By symbol, where it is known."""
    tick_sizes: Mapping[str, float] = field(default_factory=dict)
    """By symbol, where it is known."""

    def share_underlying(self, symbol: str, other: str) -> bool:
        """Whether two symbols are known to have the same underlying."""
        return symbol in self.underlyings and self.underlyings[symbol] == self.underlyings.get(other)

    def worth(self, symbol: str) -> UnitWorth:
        """What one unit of a symbol is worth; without an instrument one point is one unit of the account's money."""
        return self.worths.get(symbol, ONE_TO_ONE)


PLAIN = SymbolRules()
"""Symbols of which nothing is known."""


def symbol_rules(
    instruments: Iterable[Instrument],
    *,
    currency: str,
    dust: float | None,
    rates: Mapping[str, ExchangeRate] | None = None,
) -> SymbolRules:
    """The rules that instruments make on an account; `currency` and `dust` are the account's.

    `rates` are units of the account's currency for one unit of another, by the instruments' currencies.
    """
    known = list(instruments)
    worths = {each.symbol: unit_worth(each, currency) for each in known}
    at_rates = rates or {}
    return SymbolRules(
        flatness=Flatness(
            lot_steps={each.symbol: each.lot_step for each in known if each.lot_step is not None}, dust=dust or 0.0
        ),
        worths={symbol: worth.at_rate(at_rates.get(worth.currency or "")) for symbol, worth in worths.items()},
        tick_sizes={each.symbol: each.tick_size for each in known if each.tick_size is not None},
        underlyings={each.symbol: each.underlying for each in known if each.underlying is not None},
    )


@dataclass(frozen=True, slots=True)
class Underlyings:
    """What symbols have in common. A symbol without a saved underlying is its own, so BTC belongs to BTC-PERP.

    >>> known = Underlyings({"BTC/USDT": "BTC", "BTC-PERP": "BTC", "ES": "S&P 500"})
    >>> known.of("BTC/USDT"), known.of("BTC"), known.of("ETH")
    ('BTC', 'BTC', 'ETH')
    >>> known.joined("BTC/USDT"), known.joined("BTC"), known.joined("ES"), known.joined("ETH")
    (('BTC', 'BTC-PERP'), ('BTC-PERP', 'BTC/USDT'), ('S&P 500',), ())
    """

    by_symbol: Mapping[str, str] = field(default_factory=dict)
    """By symbol, where an instrument says so."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The symbols with their underlyings, in alphabetical order."""
        return tuple(sorted(self.by_symbol.items()))

    def of(self, symbol: str) -> str:
        """The underlying of a symbol."""
        return self.by_symbol.get(symbol, symbol)

    def joined(self, symbol: str) -> tuple[str, ...]:
        """The other symbols with the same underlying, in alphabetical order."""
        underlying = self.of(symbol)
        others = {other for other, its in self.by_symbol.items() if its == underlying}
        if self.of(underlying) == underlying:
            others.add(underlying)
        return tuple(sorted(others - {symbol}))


NO_UNDERLYINGS = Underlyings()
"""Every symbol is its own underlying."""


def unit_worth(instrument: Instrument, account_currency: str) -> UnitWorth:
    """What one unit of an instrument is worth on an account, before any rate is known."""
    currency = instrument.currency
    is_foreign = currency is not None and currency.upper() != account_currency.upper()
    return UnitWorth(
        multiplier=instrument.multiplier,
        inverse=instrument.inverse,
        currency=currency if is_foreign else None,
        is_contract=instrument.inverse or instrument.kind in CONTRACTS,
    )


def lacks_lot_step(instrument: Instrument | None) -> bool:
    """Whether a rest cannot be told from a position: a symbol, not of contracts, whose lot step is not known."""
    if instrument is None:
        return True
    return instrument.lot_step is None and not instrument.inverse and instrument.kind not in CONTRACTS


def is_base_asset(currency: str, symbol: str) -> bool:
    """Whether a currency is what a symbol trades, rather than what it is priced in.

    >>> [is_base_asset("BTC", symbol) for symbol in ("BTC", "BTC/USDT", "BTCUSDT", "BTC-USD", "ETHBTC", "WBTC")]
    [True, True, True, True, False, False]
    """
    code, name = currency.upper(), symbol.upper()
    if not code or not name.startswith(code):
        return False
    rest = name[len(code) :]
    return not rest or not rest[0].isalnum() or rest in QUOTES


QUOTES = frozenset(
    ["USD", "USDT", "USDC", "BUSD", "FDUSD", "TUSD", "DAI", "EUR", "GBP", "JPY", "TRY", "BRL", "BTC", "ETH", "BNB"]
)
"""Currencies that exchanges write right after the base asset."""
_CODES = "USD EUR GBP JPY CHF AUD NZD CAD SEK NOK DKK PLN CZK HUF TRY ZAR MXN SGD HKD CNH CNY ILS THB RUB INR BRL"
NATIONAL_CURRENCIES = frozenset(_CODES.split())
"""Currencies that people also write of money: alone they name no instrument."""
