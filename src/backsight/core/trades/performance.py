"""The performance of trades, in words: what each figure means. `figures.py` and `daily_returns.py` compute them."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, get_args

Category = Literal[
    "symbol",
    "direction",
    "regime",
    "volatility",
    "session",
    "hour",
    "weekday",
    "month",
    "strategy",
    "version",
    "deployment",
    "mode",
    "lessons",
    "memory",
    "model",
    "tag",
]
"""What trades can be grouped by. Hour and weekday are those of the entry in UTC, the month is that of the close."""
CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanFigure:
    """A mean, the number of values, and its 90% interval by Student's t, None below two values."""

    n: int
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFigures:
    """The results of some closed trades. Money is net, in the account's currency."""

    trades: int
    wins: int
    win_rate: float | None
    """None without trades."""
    win_rate_low: float | None
    """The 90% interval of the win rate (Clopper & Pearson)."""
    win_rate_high: float | None
    net: float
    profit_factor: float | None
    """Sum of wins over sum of losses; None without a loss."""
    r: MeanFigure | None
    """Expectancy in R, over the trades whose R is known."""
    r_missing: str | None
    """Why there is no expectancy in R, or for how many trades R is not known."""
    money: MeanFigure | None
    """Expectancy in money."""
    average_minutes: float | None
    median_minutes: float | None
    best: float | None
    worst: float | None
    unconverted: int
    """Trades that are in no sum, because no rate of their currency is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresOfGroup:
    """The figures of the trades with one label of a category."""

    label: str
    figures: ResultFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class EquityDay:
    """One UTC day of the equity of accounts, from closed trades."""

    day: date
    start: float
    """The equity at the start, deposits of the day included."""
    net: float
    """The net result of the trades closed on the day."""
    transfers: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawdown:
    """The largest loss from a peak, as a share of the peak."""

    share: float
    peak_on: date
    """The day at whose end the peak was reached; the day before the first return for a loss from the start."""
    trough_on: date
    recovered_on: date | None
    """None if the peak has not been reached again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnFigures:
    """Figures of daily returns on equity, from the first to the last UTC day with a close.

    The return of a day is the net result of the trades closed on it over the equity at its start; open positions do not
    count. Where no trade is ever closed at a weekend, Saturdays and Sundays are not days.
    """

    days: int
    days_per_year: int | None
    """365 for accounts that trade at weekends, else 252."""
    sharpe: float | None
    """Annual; None below 20 days."""
    sortino: float | None
    deflated_sharpe: float | None
    """The probability that the Sharpe ratio is not the luck of the best of the owner's strategies; None for one."""
    drawdown: Drawdown | None
    """The largest drawdown; None without a loss."""
    currency: str | None
    missing: str | None
    """Why there are no returns, or no ratios."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """The results of some trades, as a whole and by regime, symbol and direction."""

    figures: ResultFigures
    returns: ReturnFigures
    by_regime: tuple[FiguresOfGroup, ...]
    """Most trades first, at most five, as in the other two."""
    by_symbol: tuple[FiguresOfGroup, ...]
    by_direction: tuple[FiguresOfGroup, ...]
    first_closed_at: datetime | None
    last_closed_at: datetime | None
