"""Under which spelling of its market the bars of a symbol are stored."""

from backsight.store import bars as stored
from backsight.store.instruments import underlyings
from backsight.store.view import View


def symbol_of_bars(view: View, symbol: str) -> str:
    """The symbol, if it has bars, else the first spelling of its market of which a bar was known then, else itself.

    Bars of two spellings are never mixed: each series may be of another exchange.
    """
    if stored.intervals(view.connection, view.owner, symbol):
        return symbol
    others = stored.symbols(view.connection, view.owner)
    if not others:
        return symbol
    markets = underlyings(view).markets
    market = markets.of(symbol)
    alike = (other for other in others if markets.of(other) == market and stored.intervals_then(view, other))
    return next(alike, symbol)
