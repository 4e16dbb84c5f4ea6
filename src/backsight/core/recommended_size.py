"""A recommended size: the share of equity to risk on a trade, and the evidence for it."""

from dataclasses import dataclass
from datetime import date
from typing import Literal, assert_never, get_args

from backsight.core.portfolio import Direction
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.core.statistics import NORMAL_95

Category = Literal["direction", "symbol", "regime", "volatility_regime", "session"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

FEWEST_TRADES = 10
"""Trades with a result in R below which there is no recommendation."""
SizeKind = Literal["sized", "no_recommendation", "no_edge", "not_now"]
"""What a recommendation says: a share to risk; nothing, since too little is known, so that the strategy's own risk
applies; that the expected outcome is very likely below 0; or that the risk is used up at present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTrade:
    """A closed trade with an outcome in R; None is an unknown category."""

    outcome_r: float
    day: date
    """The UTC day on which the trade closed."""
    direction: Direction | None = None
    symbol: str | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingQuery:
    """The categories of the trade to be sized; a category of None is not used."""

    direction: Direction | None = None
    symbol: str | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None


ANY_TRADE = SizingQuery()


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLevel:
    """The part of the expected outcome that comes from the strategy, or from one category of the query."""

    name: Literal["strategy"] | Category
    value: str | None
    """The query's value of the category, of a symbol its underlying; None for the strategy."""
    n: int
    """The number of trades with this value."""
    difference: float
    """The mean outcome in R: of the strategy, or of the value less the strategy's; 0 without trades."""
    error: float | None
    """The standard error of the difference, by days or longer waves; None without trades."""
    spread: float
    """The standard deviation of the prior: for the strategy that of the mean of ten trades, for a category that between
    its values, without their errors."""
    shrinkage: float
    """The share of the difference that enters the effect: from 0, if the values do not differ, to 1."""
    effect: float
    """The effect on the expected outcome in R; less if another category of the query has the same information, or if
    the strategy has not lost yet: one loss is then counted that has not happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRisk:
    """The open trades on the same signal: in the same direction, of the same strategy or underlying."""

    share: float = 0.0
    """The share of equity that is at risk in them; trades whose risk is unknown are not in it."""
    trades: int = 0
    unknown: int = 0
    """The number of these trades whose risk is unknown."""


NOTHING_OPEN = OpenRisk()


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSize:
    """The fraction of equity to risk on a trade, and the evidence for it."""

    kind: SizeKind
    recommended: float | None
    """After the cap, and less what is already at risk on the same signal. None is no recommendation: the strategy's own
    risk applies. 0 is a recommendation: there is no edge, or nothing is left to risk now."""
    uncapped: float
    """The share by the formula alone; 0 where it gives none."""
    reason: str
    n: int
    """The number of trades with an outcome in R."""
    unknown: int
    """The number of closed trades whose outcome in R is unknown; they lower the size in proportion."""
    strategies: int
    """The number of strategies with enough trades in this mode: the best of many is likely to be lucky."""
    copies: float
    """How many trades of a day count as one, since they end alike: the size is divided by it."""
    open_risk: OpenRisk
    effective_n: float
    """The number of independent trades with the same precision as the strategy's, by days or longer waves."""
    win_rate: float | None
    """p: the share of trades above 0R; None without trades."""
    mean_win: float | None
    """In R; None without wins."""
    mean_loss: float | None
    """The mean of the trades at or below 0R, in R and without the sign; None without losses."""
    no_loss_yet: bool
    """Whether all losses together are below 1R: one larger loss is then counted in the mean that has not happened."""
    kelly: float | None
    """Plain Kelly, p / mean loss − (1 − p) / mean win, for comparison; None without wins or losses."""
    levels: tuple[SizeLevel, ...]
    """The strategy, then each category of the query; empty where R is missing more often among losers."""
    mean: float | None
    """The expected outcome in R: the sum of the levels' effects; None where R is missing more often among losers."""
    deviation: float | None
    """The standard deviation of the expected outcome."""
    p_above_zero: float | None
    """The probability that the true mean is above 0; None without a mean."""
    cautious_mean: float | None
    """μ: the true mean is above this with a probability of 85%, or more if several strategies were tried."""
    mean_square: float
    """E[R²], including one loss that has not happened yet."""
    risk_appetite: float
    cap: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 90% interval of the expected outcome in R; None without a mean."""
        if self.mean is None or self.deviation is None:
            return None
        return self.mean - NORMAL_95 * self.deviation, self.mean + NORMAL_95 * self.deviation

    @property
    def answer(self) -> str:
        """What to do, in one clause; the reason is a sentence of its own."""
        match self.kind:
            case "sized":
                return f"Risk {self.recommended or 0.0:.2%} of equity"
            case "no_recommendation":
                return "No recommendation: the strategy's own risk applies"
            case "no_edge":
                return "No edge seen here: risk nothing"
            case "not_now":
                return "Not now: risk nothing more"
        assert_never(self.kind)
