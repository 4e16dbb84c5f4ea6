"""What the symbols of exchanges and brokers say of an instrument: base and quote, inverse contracts, options."""

import re
from functools import lru_cache

from backsight.core.instruments import QUOTES, InstrumentKind
from backsight.importers.formats import InstrumentRow

OCC_OPTION = re.compile(r"([A-Z.]{1,6}) *[0-9]{6}[CP][0-9]{8}")
"""An option as the Options Clearing Corporation writes it: root, date, call or put, strike in thousandths."""
DOLLARS = frozenset({"USD", "USDT", "USDC", "BUSD", "FDUSD", "TUSD"})
"""The dollar and tokens that follow it, in which accounts are kept."""
DATED = re.compile(r"[-_][0-9]{6,8}$")


@lru_cache(maxsize=4096)
def base_and_quote(symbol: str) -> tuple[str, str] | None:
    """The base asset and the quote of a pair; None if the symbol does not tell them.

    >>> base_and_quote("BTCUSDT"), base_and_quote("ETH-BTC"), base_and_quote("1000SHIBUSDC"), base_and_quote("AAPL")
    (('BTC', 'USDT'), ('ETH', 'BTC'), ('1000SHIB', 'USDC'), None)
    """
    for separator in "/-_":
        base, cut, quote = symbol.partition(separator)
        if cut and base and quote and separator not in quote:
            return base, quote
    quotes = (quote for quote in sorted(QUOTES, key=len, reverse=True) if symbol.endswith(quote))
    quote = next(quotes, "")
    return (symbol.removesuffix(quote), quote) if quote and symbol != quote else None


def pair_instrument(symbol: str, pair: str, kind: InstrumentKind | None) -> InstrumentRow:
    """The instrument of a pair, priced and settled in its quote."""
    assets = base_and_quote(pair)
    if assets is None:
        return InstrumentRow(symbol=symbol, kind=kind)
    return InstrumentRow(symbol=symbol, kind=kind, currency=assets[1], underlying=assets[0])


def inverse_instrument(symbol: str, base: str, *, face_value: float) -> InstrumentRow:
    """A contract that is priced in dollars and settled in its base asset; one is worth `face_value` dollars."""
    kind: InstrumentKind = "future" if DATED.search(symbol) else "perpetual"
    return InstrumentRow(symbol=symbol, kind=kind, multiplier=face_value, currency=base, underlying=base, inverse=True)


def stock_or_option(symbol: str, currency: str | None = None) -> InstrumentRow:
    """The instrument of a symbol at a broker of stocks and options.

    >>> row = stock_or_option("MDB260717P00312500")
    >>> row.kind, row.multiplier, row.underlying, stock_or_option("MDB").kind
    ('option', 100.0, 'MDB', 'stock')
    """
    option = OCC_OPTION.fullmatch(symbol)
    if option is None:
        return InstrumentRow(symbol=symbol, kind="stock", multiplier=1.0, currency=currency)
    return InstrumentRow(symbol=symbol, kind="option", multiplier=100.0, currency=currency, underlying=option[1])
