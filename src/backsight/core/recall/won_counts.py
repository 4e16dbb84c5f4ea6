"""Whole counts: how many trades of a strategy won in a symbol and direction, and in ever narrower situations."""

from collections.abc import Mapping
from dataclasses import dataclass

from backsight.core.recall.base_rate import LevelName, trades_in_words


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
