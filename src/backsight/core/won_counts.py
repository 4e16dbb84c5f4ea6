"""Whole counts: how many trades of a strategy won in a symbol and direction, and in ever narrower situations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backsight.core.recall.base_rate import LevelName, trades_in_words
from backsight.core.recommended_size import Category, SizingQuery

if TYPE_CHECKING:
    from backsight.core.recall.arrays.columns import Booleans
    from backsight.core.sizing import ClosedTrades, TradeColumns

NARROWER: tuple[Category, ...] = ("regime", "volatility_regime", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class WonCount:
    """How many of the trades in a situation won; the categories beside direction and symbol name it."""

    won: int
    n: int
    categories: Mapping[LevelName, str | None]

    @property
    def text(self) -> str:
        """The count in words, after the direction and the symbol.

        >>> WonCount(won=1, n=9, categories={"regime": "ranging"}).text, WonCount(won=0, n=0, categories={}).text
        ('1 of 9 in ranging markets', 'never traded')
        """
        where = trades_in_words(self.categories).removeprefix("trades")
        if not self.n:
            return f"none{where}" if where else "never traded"
        return f"{self.won} of {self.n}{where or ' won'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllTrades:
    """The closed trades of a strategy that expectations and sizes rest on."""

    won: int = 0
    n: int = 0
    """The number of trades with a result in R."""
    unknown: int = 0
    """The number of further trades, whose result in R is unknown."""
    left_out: int = 0
    """The number of trades left out because results fell after them."""


def all_trades(closed: "ClosedTrades") -> AllTrades:
    """The numbers of the trades behind a size."""
    known = closed.in_r.known
    return AllTrades(won=known.known_won, n=known.known, unknown=known.unknown, left_out=closed.left_out)


def won_counts(trades: "TradeColumns", query: SizingQuery) -> tuple[WonCount, ...]:
    """The trades with a result in R of the query's direction and symbol, then with one category of the query more each.

    >>> from datetime import date
    >>> from backsight.core.recommended_size import SizedTrade
    >>> from backsight.core.sizing import trade_columns
    >>> traded = trade_columns(
    ...     SizedTrade(outcome_r=1.0 if n < 4 else -1.0, day=date(2026, 1, 5), direction="long", symbol="BTC",
    ...                regime="ranging" if n % 2 else "volatile") for n in range(9))
    >>> [count.text for count in won_counts(traded, SizingQuery(direction="long", symbol="BTC", regime="ranging"))]
    ['4 of 9 won', '2 of 4 in ranging markets']
    """
    here = _with_value(trades, "direction", query.direction) & _with_value(trades, "symbol", query.symbol)
    categories: dict[LevelName, str | None] = {}
    counts = [_count(trades, here, categories)]
    for category in NARROWER:
        value = getattr(query, category)
        if value is not None:
            here, categories = here & _with_value(trades, category, value), {**categories, category: value}
            counts.append(_count(trades, here, categories))
    return tuple(counts)


def _count(trades: "TradeColumns", here: "Booleans", categories: Mapping[LevelName, str | None]) -> WonCount:
    won = int((here & (trades.outcome_r > 0.0)).sum())
    return WonCount(won=won, n=int(here.sum()), categories=categories)


def _with_value(trades: "TradeColumns", category: Category, value: str | None) -> "Booleans":
    """Whether each trade has a value of a category; all have that of None."""
    import numpy as np

    column = trades.categories[category]
    if value is None:
        return np.full(len(column.codes), True)
    index = column.values.index(value) if value in column.values else -1
    return np.equal(column.codes, index)
