"""What a base rate says: levels from broad to narrow, each with its sample and its doubt, in figures and in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from backsight.core.context import ContextVector
from backsight.core.numbers import signed
from backsight.core.portfolio import Direction
from backsight.core.trades.trade import Outcome, OutcomeUnit

LevelName = Literal["strategy", "direction", "symbol", "regime", "volatility_regime", "session"]

ENOUGH = 20.0
"""The effective n from which a level tells enough to be the headline."""
TOO_LITTLE = 5.0
ROUNDING = 1e-9
IN_REGIME: Mapping[str, str] = {
    "trending_up": "in markets trending up",
    "trending_down": "in markets trending down",
    "ranging": "in ranging markets",
    "volatile": "in volatile markets",
}
IN_SESSION: Mapping[str, str] = {
    "asia": "in the Asian session",
    "london": "in the London session",
    "overlap": "in the London and New York overlap",
    "newyork": "in the New York session",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTrade:
    """A trade that is still open, at its last mark known by the instant asked."""

    id: str
    symbol: str
    direction: Direction | None
    context: ContextVector
    outcome: Outcome | None
    """None where no mark is known: it is named and counts in no mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOutcome:
    """How much the trades of a level brought, in one unit: closed ones, and open ones at their last mark."""

    unit: OutcomeUnit
    n: int
    open: int
    mean: float
    interval: tuple[float, float] | None
    """Holds the true mean with 90 %; None where all of it is of one day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRateLevel:
    """The trades that match all categories up to one, and what became of them."""

    name: LevelName
    value: str | None
    """What was asked for in the category; None for the strategy."""
    n: int
    days: int
    """UTC days on which trades of any weight were closed."""
    effective_n: float
    """How many independent trades would say as much."""
    win_rate: float | None
    win_rate_interval: tuple[float, float] | None
    """Holds the true win rate with 90 %."""
    outcomes: tuple[LevelOutcome, ...]
    open: int
    open_ids: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRate:
    """What usually happens here, from broad to narrow, and the level that says it best."""

    levels: tuple[BaseRateLevel, ...]
    headline: BaseRateLevel
    """The narrowest level with an effective n of 20, else the broadest."""
    too_little: bool
    """Whether even the headline has an effective n under 5."""
    sentence: str
    left_out: int = 0
    """Trades that ended before their results began to fall: they are no part of any level."""


def reaches(effective_n: float, threshold: float) -> bool:
    """Whether it is at least that, rounding aside."""
    return effective_n >= threshold * (1.0 - ROUNDING)


def sentence(level: BaseRateLevel, asked: Mapping[LevelName, str | None]) -> str:
    """What a level says, in one line."""
    if level.win_rate is None or level.win_rate_interval is None or not reaches(level.effective_n, TOO_LITTLE):
        few = "" if level.n < TOO_LITTLE else f", effective {level.effective_n:.0f}"
        return f"too little to say (n={level.n}{few})"
    low, high = (f"{100.0 * end:.0f}" for end in level.win_rate_interval)
    rate = f"{100.0 * level.win_rate:.0f} % of {level.n} {_which(asked)} were won (90 %: {low} to {high} %)"
    brought = ", ".join(_brought(mean) for mean in level.outcomes)
    still = f"{level.open} open at the last mark" if level.open else ""
    return f"{rate}, effective {level.effective_n:.0f}" + "".join(f"; {part}" for part in (brought, still) if part)


def _which(asked: Mapping[LevelName, str | None]) -> str:
    """The trades of a level in a trader's words.

    >>> _which({"direction": "long", "symbol": "BTC", "regime": "trending_up", "volatility_regime": "low"})
    'long BTC trades in markets trending up at low volatility'
    >>> _which({"session": "overlap"})
    'trades in the London and New York overlap'
    """
    words = [asked.get("direction"), asked.get("symbol"), "trades"]
    if (regime := asked.get("regime")) is not None:
        words.append(IN_REGIME[regime])
    if (volatility := asked.get("volatility_regime")) is not None:
        words.append(f"at {volatility} volatility")
    if (session := asked.get("session")) is not None:
        words.append(IN_SESSION[session])
    return " ".join(word for word in words if word)


def _brought(mean: LevelOutcome) -> str:
    """A mean outcome with how far it may be off.

    >>> _brought(LevelOutcome(unit="R", n=63, open=0, mean=0.21, interval=(0.03, 0.39)))
    '+0.21 ± 0.18R'
    >>> _brought(LevelOutcome(unit="pct", n=3, open=0, mean=-0.0123, interval=None))
    '-1.23%'
    """
    share = 100.0 if mean.unit == "pct" else 1.0
    off = "" if mean.interval is None else f" ± {share * (mean.interval[1] - mean.interval[0]) / 2.0:.2f}"
    return f"{signed(share * mean.mean, 2)}{off}{_unit(mean.unit)}"


def _unit(unit: OutcomeUnit) -> str:
    match unit:
        case "R":
            return "R"
        case "vol":
            return " daily ATR"
        case "pct":
            return "%"
    assert_never(unit)
