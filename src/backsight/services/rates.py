"""Exchange rates into an account's currency: from the prices of a snapshot, else from stored bars of currency pairs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from backsight.core.instants import Horizon
from backsight.core.instruments import Instrument, SymbolRules, UnitWorth, symbol_rules, unit_worth
from backsight.core.market import Bar
from backsight.core.orders import ReportedFill
from backsight.core.portfolio import Account
from backsight.core.rates import PAIR_SUFFIXES, ExchangeRate, rate_in, spellings
from backsight.store import bars as stored_bars
from backsight.store.database import Connection
from backsight.store.view import View

RATE_GOOD_FOR = timedelta(days=7)
"""A bar that closed longer ago gives no rate; weekends and holidays are shorter."""


class Rates:
    """What currencies were worth in an account's currency; each pair of currencies is looked up once."""

    def __init__(self, connection: Connection, account: Account, *, unstored: Sequence[Sequence[Bar]] = ()) -> None:
        self.connection = connection
        self.account = account
        self._unstored = {bars[0].symbol: bars for bars in unstored if bars}
        self._pairs: dict[str, list[tuple[str, bool]]] = {}

    def at(self, currency: str, instant: datetime, prices: Mapping[str, float]) -> ExchangeRate | None:
        """The rate of a currency at an instant: among the prices, else of the last bar closed by then; else None."""
        rate = rate_in(prices, currency, self.account.currency)
        if rate is not None:
            return ExchangeRate(value=rate, source="mark")
        bars = [
            (bar, inverted)
            for symbol, inverted in self._pairs_with_bars(currency)
            if (bar := self._last_bar(symbol, instant)) is not None
        ]
        bar, inverted = max(bars, key=lambda each: each[0].closes_at, default=(None, False))
        if bar is None or bar.close <= 0 or instant - bar.closes_at > RATE_GOOD_FOR:
            return None
        return ExchangeRate(value=1.0 / bar.close if inverted else bar.close, source="bar")

    def worth_of(self, reported: ReportedFill, instrument: Instrument | None, prices: Mapping[str, float]) -> UnitWorth:
        """What one unit of a reported fill is worth, at the rate of its instant; a rate of its own takes precedence.

        The price of a currency pair that is traded is itself a rate.
        """
        if instrument is None:
            return UnitWorth()
        worth = unit_worth(instrument, self.account.currency)
        if worth.currency is None or reported.rate is not None:
            return worth
        return worth.at_rate(self.at(worth.currency, reported.at, _with_own(prices, reported)))

    def fee_rate(self, reported: ReportedFill, prices: Mapping[str, float]) -> float | None:
        """The account's money for one unit of the currency of a fee; None if that is not known or there is no fee."""
        if not reported.fee or reported.fee_currency is None:
            return None
        rate = self.at(reported.fee_currency, reported.at, _with_own(prices, reported))
        return None if rate is None else rate.value

    def rules(self, instruments: Iterable[Instrument], instant: datetime, prices: Mapping[str, float]) -> SymbolRules:
        """What is known of symbols at an instant."""
        known, account = list(instruments), self.account
        foreign = {unit_worth(each, account.currency).currency for each in known} - {None}
        rates = {currency: self.at(currency, instant, prices) for currency in foreign if currency is not None}
        at_rates = {currency: rate for currency, rate in rates.items() if rate is not None}
        return symbol_rules(known, currency=account.currency, dust=account.dust, rates=at_rates)

    def _pairs_with_bars(self, currency: str) -> list[tuple[str, bool]]:
        """The symbols of a currency pair of which there are bars."""
        if currency not in self._pairs:
            owner = self.account.owner_id
            self._pairs[currency] = [
                (symbol, inverted)
                for symbol, inverted in spellings(currency, self.account.currency, suffixes=PAIR_SUFFIXES).items()
                if symbol in self._unstored or stored_bars.finest_interval(self.connection, owner, symbol) is not None
            ]
        return self._pairs[currency]

    def _last_bar(self, symbol: str, instant: datetime) -> Bar | None:
        """The last bar of a symbol, of any length, that was closed at an instant."""
        view = View(self.connection, self.account.owner_id, Horizon(as_of=instant))
        lengths = stored_bars.intervals(self.connection, view.owner, symbol)
        series = stored_bars.last_bars(view, symbol=symbol, counts=dict.fromkeys(lengths, 1))
        new = [bar for bar in self._unstored.get(symbol, ()) if bar.closes_at <= instant]
        bars = (bar for bars in (*series.values(), new) for bar in bars)
        return max(bars, key=lambda bar: bar.closes_at, default=None)


def _with_own(prices: Mapping[str, float], reported: ReportedFill) -> Mapping[str, float]:
    """The prices with that of the fill itself."""
    return prices if reported.price is None else {**prices, reported.symbol: reported.price}
