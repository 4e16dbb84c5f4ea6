"""Patterns: groups of trades that differ from the rest, and the state of the search for them between reflections."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Literal, get_args

from backsight.core.memory.advice import Advice, DomainOutcome, direction_of
from backsight.core.portfolio import Direction
from backsight.core.regime import Regime, RegimeTag, Session, VolatilityRegime
from backsight.core.strategies import Slot
from backsight.core.trades.trade import Outcome, OutcomeUnit

Dimension = Literal[
    "regime_tag",
    "regime",
    "volatility_regime",
    "session",
    "hour",
    "weekday",
    "after",
    "symbol",
    "direction",
    "size",
    "regime_and_direction",
    "volatility_regime_and_direction",
    "session_and_direction",
    "symbol_and_direction",
]
"""The property that the trades of a group share, or two of them; `after` is the result of the trade before."""
Measure = Literal["outcome", "captured"]
"""The compared quantity: the outcome, or the share of the maximum profit that the exit captured."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
PAIRED_WITH_DIRECTION: Mapping[Dimension, Dimension] = {
    "regime_and_direction": "regime",
    "volatility_regime_and_direction": "volatility_regime",
    "session_and_direction": "session",
    "symbol_and_direction": "symbol",
}
"""The pairs of dimensions, and the first part of each; the second is the direction."""
AND = "_and_"
"""Joins the values of a pair."""
SLOT_OF: Mapping[Dimension, Slot] = {
    "regime_tag": "regime_fit",
    "regime": "regime_fit",
    "volatility_regime": "regime_fit",
    "session": "entry_timing",
    "hour": "entry_timing",
    "weekday": "entry_timing",
    "after": "entry_timing",
    "symbol": "symbol_selection",
    "direction": "symbol_selection",
    "size": "sizing",
    "regime_and_direction": "regime_fit",
    "volatility_regime_and_direction": "regime_fit",
    "session_and_direction": "entry_timing",
    "symbol_and_direction": "symbol_selection",
}
"""The lessons slot for a difference in outcome. A difference in `captured` always belongs to `exit_timing`."""
UNITS: tuple[OutcomeUnit, ...] = get_args(OutcomeUnit)
WINDOW = 500
"""The number of latest closed trades that evidence is computed from."""


def pair_parts(dimension: Dimension, value: str) -> Mapping[Dimension, str]:
    """The dimensions of a group with their values: two for a pair, whose second part is the direction.

    >>> dict(pair_parts("symbol_and_direction", "X_and_Y_and_long")), dict(pair_parts("session", "asia"))
    ({'symbol': 'X_and_Y', 'direction': 'long'}, {'session': 'asia'})
    """
    if dimension not in PAIRED_WITH_DIRECTION:
        return {dimension: value}
    first, direction = value.rsplit(AND, 1)
    return {PAIRED_WITH_DIRECTION[dimension]: first, "direction": direction}


def most_common_unit(outcomes: Iterable[Outcome | None]) -> OutcomeUnit | None:
    """The unit of most outcomes, R before daily ATR before percent on a tie; None without outcomes.

    >>> most_common_unit([Outcome(value=1.0, unit="pct"), Outcome(value=1.0, unit="R"), None])
    'R'
    """
    counts = Counter(outcome.unit for outcome in outcomes if outcome is not None)
    unit: OutcomeUnit = max(UNITS, key=lambda each: counts[each])
    return unit if counts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedTrade:
    """A closed trade as the search for evidence needs it; None means unknown."""

    id: str
    ended_at: datetime
    known_at: datetime
    symbol: str
    outcome: Outcome | None = None
    won: bool | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    regime_tag: RegimeTag | None = None
    """Trend and volatility in one word, as in the agent's prompt."""
    session: Session | None = None
    hour: int | None = None
    """Of the entry, in UTC."""
    weekday: int | None = None
    """Of the entry, in UTC; 0 is Monday."""
    opened_at: datetime | None = None
    deployment_id: str | None = None
    """The agent that traded; what it closed last before the entry is looked up among its own trades."""
    direction: Direction | None = None
    size_share: float | None = None
    """Notional value as a share of the equity at entry."""
    captured: float | None = None
    """Realised profit as a share of the maximum favourable excursion, 0 to 1."""
    hold_seconds: float | None = None

    @property
    def day(self) -> date:
        """The UTC day of the close. Trades of one day are not independent of each other."""
        return self.ended_at.astimezone(UTC).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One group of trades compared with the rest, in one measure."""

    slot: Slot
    measure: Measure
    dimension: Dimension
    value: str
    """The shared value of the dimension; `small`, `medium` or `large` for a size; both values of a pair."""
    label: str
    """The name of the group in a trader's words."""
    unit: OutcomeUnit | None
    """Of the means; None for the measure `captured`, which is a share."""
    n: int
    days: int
    mean: float
    interval: tuple[float, float] | None
    """90% confidence interval of the mean; None where all trades are of one day, or none differs from another."""
    win_rate: float | None
    rest_n: int
    rest_days: int
    rest_mean: float
    rest_win_rate: float | None
    difference: float
    """Mean of the group minus mean of the rest."""
    difference_interval: tuple[float, float] | None
    """90% confidence interval of the difference; None as for the mean."""
    captured: float | None
    """Mean share of the maximum favourable excursion that was realised."""
    rest_captured: float | None
    hold_seconds: float | None
    rest_hold_seconds: float | None
    runs: int
    """How many separate runs of trades the group has, or the rest if it has fewer; of a pair, also of each part."""
    trade_ids: tuple[str, ...]
    unknown: int = 0
    """The number of further trades of the group, whose outcome is not known in the unit."""
    biased: str | None = None
    """Why the trades with a known outcome do not speak for the others, in one clause; None if they do."""

    @property
    def domain(self) -> Mapping[str, str]:
        """The value of each dimension that the trades share: two for a pair.

        >>> from backsight.testing.reflection import a_pattern
        >>> dict(a_pattern(dimension="regime_and_direction", value="ranging_and_short").domain)
        {'regime': 'ranging', 'direction': 'short'}
        """
        return {str(dimension): value for dimension, value in pair_parts(self.dimension, self.value).items()}

    @property
    def key(self) -> str:
        """The key that lessons cite."""
        return f"{self.slot}/{self.dimension}={self.value}"

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval of the mean."""
        return None if self.interval is None else (self.interval[1] - self.interval[0]) / 2.0

    @property
    def supports(self) -> Advice | None:
        """The advice that the mean outcome supports, before recommended sizes are looked at."""
        if self.unit is None:
            return None
        return direction_of(
            DomainOutcome(unit=self.unit, n=self.n, mean=self.mean, interval=self.interval, elsewhere=self.rest_mean)
        )

    @property
    def stands_out(self) -> bool:
        """Whether the interval of the mean excludes the mean of the rest."""
        return self.interval is not None and not self.interval[0] <= self.rest_mean <= self.interval[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignificantPattern:
    """A pattern that passed the significance test, and when it did."""

    key: str
    since: datetime
    closed: int
    """The number of trades closed by then."""
    p: float
    """The p-value, corrected for all groups that were compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimLook:
    """A test for new patterns, at one of the interim looks of the sequential design."""

    at: datetime
    closed: int
    """The number of trades closed by then."""
    level: float
    """The significance level that the test spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchState:
    """The state of the sequential search for patterns that one reflection hands to the next."""

    looks: tuple[InterimLook, ...] = ()
    """Tests since the number of closed trades last doubled, oldest first."""
    found: tuple[SignificantPattern, ...] = ()
    """Patterns that are significant and still stand out."""


NEW_SEARCH = SearchState()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPattern:
    """A group on the watch list: it differs from the rest, but chance may still explain the difference."""

    key: str
    slot: Slot
    label: str
    measure: Measure
    unit: OutcomeUnit | None
    n: int
    days: int
    mean: float
    interval: tuple[float, float] | None
    """90% confidence interval of the mean."""
    rest_n: int
    rest_mean: float
    difference: float
    """The effect: mean of the group minus mean of the rest."""
    difference_interval: tuple[float, float] | None
    """90% confidence interval of the effect, not corrected for the number of groups compared."""
    p: float
    """The p-value, corrected for all groups that were compared."""
    more_trades: int | None
    """About how many more closed trades of the strategy would prove the pattern, if the effect stays as it is; None if
    more than the 500 trades that are analysed would be needed."""
    text: str
    """The group in words, marked as unproven, as an agent may be shown it."""
    sentence: str
    """The same with the p-value and the trades that would prove it, for the owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeEvidence:
    """What a strategy's latest closed trades show, as of an instant."""

    as_of: datetime
    closed: int
    """The number of all trades closed by then."""
    n: int
    """The number of trades analysed, at most 500."""
    days: int
    unit: OutcomeUnit | None
    """The unit of most outcomes; outcomes in other units are left out. None without outcomes."""
    groups: tuple[Pattern, ...]
    """All groups that are large enough, significant or not."""
    patterns: tuple[Pattern, ...]
    """The significant patterns that lessons may cite, the longest known first."""
    lost: tuple[str, ...]
    """Keys of formerly significant patterns that no longer stand out."""
    level: float
    """The significance level of the test for new patterns; 0 if no test was due."""
    search_state: SearchState
    """For the next reflection."""
    p_values: Mapping[str, float] = field(default_factory=dict)
    """P-values of the groups that are not significant, by key, corrected for all comparisons."""
    watched: tuple[WatchedPattern, ...] = ()
    """The strongest groups that are not significant yet, the strongest first."""
    passed_over: Mapping[str, str] = field(default_factory=dict)
    """Why groups cannot be proven now, whatever their p-value, by key."""
