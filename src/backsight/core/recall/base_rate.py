"""A base rate: levels from broad to narrow, each with its sample size and its intervals, in figures and in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from backsight.core.context import ContextVector
from backsight.core.numbers import half_width, signed, with_margin
from backsight.core.portfolio import Direction
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import Outcome, OutcomeUnit, unit_suffix

LevelName = Literal["strategy", "direction", "symbol", "regime", "volatility_regime", "session"]

ENOUGH = 20.0
"""The effective n from which a level can be the headline."""
TOO_LITTLE = 5.0
"""The effective n below which a level makes no statement."""
MOST_NAMED = 3
"""How many joined symbols a sentence names."""
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
    """An open trade, with its outcome at the last known mark."""

    id: str
    symbol: str
    direction: Direction | None
    context: ContextVector
    outcome: Outcome | None
    """None if no mark is known: the trade is then listed, but counts in no mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOutcome:
    """The mean outcome of the trades of a level in one unit; open trades count at their last mark."""

    unit: OutcomeUnit
    n: int
    open: int
    mean: float
    interval: tuple[float, float] | None
    """The 90% confidence interval of the mean; None if all trades ended on one day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRateLevel:
    """The trades that match all categories up to this one, and their results."""

    name: LevelName
    value: str | None
    """The value of the category; None for the strategy."""
    n: int
    days: int
    """The number of UTC days on which trades with a weight above 0 closed."""
    effective_n: float
    """The number of independent trades that would give the same precision."""
    win_rate: float | None
    win_rate_interval: tuple[float, float] | None
    """The 90% interval of the win rate."""
    outcomes: tuple[LevelOutcome, ...]
    """Empty where R is missing more often among losers than among winners: the mean of the others would flatter."""
    withheld: str | None = None
    """How often R is unknown, where no mean is given for that reason."""
    open: int
    open_ids: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRate:
    """The levels from broad to narrow, and the level to read first."""

    levels: tuple[BaseRateLevel, ...]
    headline: BaseRateLevel
    """The narrowest level with an effective n of 20, else the broadest."""
    too_little: bool
    """Whether the headline has an effective n under 5."""
    sentence: str
    left_out: int = 0
    """The number of trades that no level includes because they ended before a decline of results."""
    in_symbol: int = 0
    """The number of trades in the symbol of the query, in any direction; of all trades if the query has no symbol."""
    joined: tuple[str, ...] = ()
    """Other symbols with the same underlying, whose trades count as those of the symbol."""


def reaches(effective_n: float, threshold: float) -> bool:
    """Whether an effective n is at least a threshold, rounding aside."""
    return effective_n >= threshold * (1.0 - ROUNDING)


def sentence(level: BaseRateLevel, categories: Mapping[LevelName, str | None], joined: tuple[str, ...] = ()) -> str:
    """The win rate and the outcomes of a level in one line; `joined` are symbols that count as the level's."""
    if level.win_rate is None or level.win_rate_interval is None or not reaches(level.effective_n, TOO_LITTLE):
        effective = "" if level.n < TOO_LITTLE else f", {_independent(level.effective_n)}"
        return f"too little to say (n={level.n}{effective})"
    low, high = (f"{100.0 * end:.0f}" for end in level.win_rate_interval)
    trades = f"{level.n} {trades_in_words(categories, joined)}"
    rate = f"{100.0 * level.win_rate:.0f}% of {trades} were won (90%: {low} to {high}%)"
    outcomes = ", ".join(_mean_in_words(mean, level.n) for mean in level.outcomes)
    if level.withheld is not None:
        outcomes = f"no mean is given: {level.withheld}"
    open_trades = f"{level.open} open at the last mark" if level.open else ""
    rest = "".join(f"; {part}" for part in (outcomes, open_trades) if part)
    return f"{rate}, {_independent(level.effective_n)}{rest}"


def _independent(effective_n: float) -> str:
    """What trades that resemble each other, or differ from the query, are worth as evidence."""
    return f"worth about {count_of(round(effective_n), 'independent trade')}"


def trades_in_words(categories: Mapping[LevelName, str | None], joined: tuple[str, ...] = ()) -> str:
    """The trades of a level in a trader's words; `joined` are symbols that count as the level's.

    >>> trades_in_words({"direction": "long", "symbol": "BTC", "regime": "trending_up", "volatility_regime": "low"})
    'long BTC trades in markets trending up at low volatility'
    >>> trades_in_words({"session": "overlap"})
    'trades in the London and New York overlap'
    >>> trades_in_words({"symbol": "BTC"}, ("BTC-PERP",))
    'BTC (with BTC-PERP) trades'
    """
    symbol = categories.get("symbol")
    words = [categories.get("direction"), None if symbol is None else with_joined(symbol, joined), "trades"]
    if (regime := categories.get("regime")) is not None:
        words.append(IN_REGIME[regime])
    if (volatility := categories.get("volatility_regime")) is not None:
        words.append(f"at {volatility} volatility")
    if (session := categories.get("session")) is not None:
        words.append(IN_SESSION[session])
    return " ".join(word for word in words if word)


def with_joined(symbol: str, joined: tuple[str, ...]) -> str:
    """A symbol and those joined with it, which are named if they are few.

    >>> with_joined("BTC", ()), with_joined("BTC", ("BTC-PERP", "BTC/USDT")), with_joined("ES", tuple("ABCD"))
    ('BTC', 'BTC (with BTC-PERP, BTC/USDT)', 'ES (with 4 symbols of the same underlying)')
    """
    if not joined:
        return symbol
    others = ", ".join(joined) if len(joined) <= MOST_NAMED else f"{len(joined)} symbols of the same underlying"
    return f"{symbol} (with {others})"


def breadth(rate: BaseRate) -> str:
    """How the headline is broader than the query, as the beginning of a sentence; empty if it is not."""
    headline = rate.levels.index(rate.headline)
    narrower = next((each for each in rate.levels[headline:] if each.n < rate.headline.n), None)
    if narrower is None or not rate.headline.n:
        return ""
    values = {level.name: level.value for level in rate.levels[: rate.levels.index(narrower) + 1]}
    symbol = next((level.value for level in rate.levels if level.name == "symbol"), None)
    if symbol is not None and rate.in_symbol == 0 and not rate.left_out:
        return f"{symbol} never traded; the strategy elsewhere: "
    if rate.too_little:
        return ""
    words = trades_in_words(values, rate.joined)
    if narrower.n == 0:
        return f"no {words} {'since results fall' if rate.left_out else 'yet'}; elsewhere: "
    one = words.replace("trades", "trade", 1)
    return f"only {narrower.n} {words if narrower.n != 1 else one}; more broadly: "


def _coverage_in_words(mean: LevelOutcome, trades: int) -> str:
    """Over how many of the closed trades a mean is, if not over all.

    >>> _coverage_in_words(LevelOutcome(unit="R", n=40, open=0, mean=0.2, interval=None), 52)
    ' over 40 of 52 trades (R is unknown for 12)'
    >>> _coverage_in_words(LevelOutcome(unit="R", n=52, open=0, mean=0.2, interval=None), 52)
    ''
    """
    if mean.n >= trades:
        return ""
    unknown = f" (R is unknown for {trades - mean.n})" if mean.unit == "R" else ""
    return f" over {mean.n} of {trades} trades{unknown}"


def _mean_in_words(mean: LevelOutcome, trades: int) -> str:
    """A mean outcome, with half the width of its interval.

    >>> _mean_in_words(LevelOutcome(unit="R", n=63, open=0, mean=0.21, interval=(0.03, 0.39)), 63)
    '+0.21 ± 0.18R'
    >>> _mean_in_words(LevelOutcome(unit="pct", n=3, open=0, mean=-0.0123, interval=None), 4)
    '-1.23% over 3 of 4 trades'
    """
    scale = 100.0 if mean.unit == "pct" else 1.0
    margin = half_width(mean.interval, scale=scale)
    text = with_margin(signed(scale * mean.mean, 2), margin, suffix=unit_suffix(mean.unit))
    return f"{text}{_coverage_in_words(mean, trades)}"
