"""A recommended size: how much of the equity to risk on a trade, and what that rests on."""

from dataclasses import dataclass
from datetime import date
from typing import Literal, get_args

from backsight.core.portfolio import Direction
from backsight.core.regime import Regime, Session, VolatilityRegime

Category = Literal["direction", "symbol", "regime", "volatility_regime", "session"]
CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTrade:
    """A closed trade with an outcome in R; a category that is not known is None."""

    outcome_r: float
    day: date
    """The UTC day on which it closed."""
    direction: Direction | None = None
    symbol: str | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingQuery:
    """The categories of the trade to be sized; None is not asked for."""

    direction: Direction | None = None
    symbol: str | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None


ANY_TRADE = SizingQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLevel:
    """What the strategy, or one category that is asked for, adds to the expected outcome."""

    name: Literal["strategy"] | Category
    value: str | None
    """The value asked for; None for the strategy."""
    n: int
    """Trades with this value."""
    difference: float
    """Their mean outcome in R, less 0R for the strategy and less the strategy's for a category; 0 without trades."""
    error: float | None
    """The standard error of the difference, by days; None without trades."""
    spread: float
    """The standard deviation that differences have before a trade is seen: that of ten trades for the strategy, how
    far the values of a category differ beyond their errors for a category."""
    shrinkage: float
    """The share of the difference that is kept: 1 all of it, 0 nothing, where the values do not differ."""
    effect: float
    """What is kept, in R; less where another category asked for tells the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSize:
    """The fraction of equity to risk on a trade, and why."""

    recommended: float
    """After the cap."""
    uncapped: float
    reason: str
    n: int
    effective_n: float
    """How many independent trades the strategy's are worth, by days."""
    win_rate: float | None
    """p: the share that ended above 0R; None without trades."""
    mean_win: float | None
    """In R; None without wins."""
    mean_loss: float | None
    """In R, of those that ended at or below 0R, without the sign; None without losses."""
    kelly: float | None
    """Plain Kelly, p / mean loss − (1 − p) / mean win, to compare with; None without wins or losses."""
    levels: tuple[SizeLevel, ...]
    """The strategy, then each category asked for."""
    mean: float
    """The expected outcome in R: the sum of the levels' effects."""
    deviation: float
    """The standard deviation of what the mean may be."""
    cautious_mean: float
    """μ: the mean is above this with 85 %."""
    mean_square: float
    """E[R²], one loss not seen yet included."""
    risk_appetite: float
    cap: float
