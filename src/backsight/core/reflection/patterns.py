"""Patterns: what lessons may rest on, in which slot, and what is carried from one reflection to the next."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal, get_args

from backsight.core.portfolio import Direction
from backsight.core.regime import Regime, RegimeTag, Session, VolatilityRegime
from backsight.core.strategies import Slot
from backsight.core.trades.trade import Outcome, OutcomeUnit

Dimension = Literal["regime_tag", "regime", "volatility_regime", "session", "hour", "symbol", "direction", "size"]
Measure = Literal["outcome", "captured"]
"""What is compared: the outcome, or the share of the best price that was kept, which is about exits."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
SLOT_OF: Mapping[Dimension, Slot] = {
    "regime_tag": "regime_fit",
    "regime": "regime_fit",
    "volatility_regime": "regime_fit",
    "session": "entry_timing",
    "hour": "entry_timing",
    "symbol": "symbol_selection",
    "direction": "symbol_selection",
    "size": "sizing",
}
"""Where a difference in outcome belongs; one in what is kept of the best price is about exits, whatever the group."""
UNITS: tuple[OutcomeUnit, ...] = get_args(OutcomeUnit)
WINDOW = 500
"""How many closed trades evidence is computed over."""


def most_common_unit(outcomes: Iterable[Outcome | None]) -> OutcomeUnit | None:
    """The unit that most outcomes have; R before daily ATRs before shares where as many have either; None of none.

    >>> most_common_unit([Outcome(value=1.0, unit="pct"), Outcome(value=1.0, unit="R"), None])
    'R'
    """
    counts = Counter(outcome.unit for outcome in outcomes if outcome is not None)
    usual: OutcomeUnit = max(UNITS, key=lambda unit: counts[unit])
    return usual if counts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTrade:
    """What evidence needs of a closed trade; None is not known."""

    id: str
    ended_at: datetime
    known_at: datetime
    symbol: str
    outcome: Outcome | None = None
    won: bool | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    regime_tag: RegimeTag | None = None
    """Trend and volatility in one word, as agents see it."""
    session: Session | None = None
    hour: int | None = None
    """UTC, of the entry."""
    direction: Direction | None = None
    size_share: float | None = None
    """Of the equity at entry."""
    captured: float | None = None
    """What was realised as a share of the best there was to realise, 0 to 1."""
    hold_seconds: float | None = None

    @property
    def day(self) -> date:
        """The UTC day of its end: trades of one day are not independent of each other."""
        return self.ended_at.astimezone(UTC).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One group of trades beside the rest of them, in one measure."""

    slot: Slot
    measure: Measure
    dimension: Dimension
    value: str
    """As the trades have it; `small`, `medium` or `large` for a size."""
    label: str
    """The group in a trader's words."""
    unit: OutcomeUnit | None
    """Of the means; None where a share of the best price is measured."""
    n: int
    days: int
    mean: float
    interval: tuple[float, float] | None
    """Holds the true mean with 90 %, by days; None on one day."""
    win_rate: float | None
    rest_n: int
    rest_days: int
    rest_mean: float
    rest_win_rate: float | None
    difference: float
    """Its mean less that of the rest."""
    difference_interval: tuple[float, float] | None
    """Holds the true difference with 90 %, by days that both may share; None on one day."""
    captured: float | None
    """Mean share of the best price that was kept, as is `rest_captured`."""
    rest_captured: float | None
    hold_seconds: float | None
    rest_hold_seconds: float | None
    trade_ids: tuple[str, ...]

    @property
    def key(self) -> str:
        """What it is cited by."""
        return f"{self.slot}/{self.dimension}={self.value}"

    @property
    def half(self) -> float | None:
        """Half of its interval."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2.0

    @property
    def stands_out(self) -> bool:
        """Whether its interval does not reach the mean of the rest."""
        return self.interval is not None and not self.interval[0] <= self.rest_mean <= self.interval[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignificantPattern:
    """A pattern that passed the test, and when."""

    key: str
    since: datetime
    closed: int
    """How many trades were closed then."""
    p: float
    """How often chance alone makes as much of any pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimLook:
    """That new patterns were tested for."""

    at: datetime
    closed: int
    """How many trades were closed then."""
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """What one reflection hands to the next."""

    looks: tuple[InterimLook, ...] = ()
    """Those since trades closed last doubled, in their order."""
    found: tuple[SignificantPattern, ...] = ()


NEW_SEARCH = SearchState()


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeEvidence:
    """What a strategy's last closed trades show, as of an instant."""

    as_of: datetime
    closed: int
    """All that were closed by then."""
    n: int
    """Those that were looked at, at most 500."""
    days: int
    unit: OutcomeUnit | None
    """The one most of them have: outcomes in another are left out of means; None without any."""
    groups: tuple[Pattern, ...]
    """All groups large enough, whether or not they mean anything."""
    patterns: tuple[Pattern, ...]
    """Those that a lesson may rest on, the longest known first."""
    lost: tuple[str, ...]
    """Keys of those that no longer stand out."""
    level: float
    """At which new patterns were tested for; 0 where this was no time to test."""
    carried: SearchState
    """For the next reflection."""
