"""Instruments: what one unit of a symbol is worth, in which steps it trades, and when a position in it is flat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

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
    """Money, in the instrument's currency, that one unit of size earns for one point of price: 50 for ES."""
    lot_step: float | None
    """The smallest step of the size; less than one step is no position."""
    tick_size: float | None
    """The smallest step of the price."""
    currency: str | None
    """The currency of its prices; None if it is that of the account."""
    underlying: str | None
    """What several symbols have in common, like BTC for BTC/USDT and BTC-PERP."""
    known_at: datetime
    recorded_at: datetime


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
class SymbolRules:
    """What the ledger of an account must know of its symbols."""

    flatness: Flatness = EXACT
    multipliers: Mapping[str, float] = field(default_factory=dict)
    """By symbol, where it is not 1."""

    def point_value(self, symbol: str) -> float:
        """Money that one unit of a symbol earns for one point of price, if it is priced in the account's currency."""
        return self.multipliers.get(symbol, 1.0)


PLAIN = SymbolRules()
"""Symbols of which nothing is known."""


def symbol_rules(instruments: Iterable[Instrument], *, dust: float | None) -> SymbolRules:
    """The rules that instruments make on an account; `dust` is the account's."""
    known = list(instruments)
    return SymbolRules(
        flatness=Flatness(
            lot_steps={each.symbol: each.lot_step for each in known if each.lot_step is not None}, dust=dust or 0.0
        ),
        multipliers={each.symbol: each.multiplier for each in known},
    )


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
