"""Does memory help? Days on which a coin withheld it beside days on which it was shown.

The unit is the day of one deployment, since that is what the coin is thrown for. The interval may be looked at every
day: it holds at all looks together, so nobody has to decide beforehand when to look.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Literal, assert_never

from backsight.core.holdout import MemoryArm
from backsight.core.reflection.patterns import most_common_unit
from backsight.core.reflection.wording import amount
from backsight.core.trades.trade import Outcome, OutcomeUnit

MIN_DAYS = 5
ALPHA = 0.1
"""How often the interval may ever miss the true difference."""
TUNED_TO_DAYS = 60.0
"""Balanced days at which the interval is narrowest for its kind."""
MAX_DAYS_AHEAD = 3_650

HoldoutVerdict = Literal["yes", "no", "not yet", "silent"]
"""`yes`: the interval lies above zero, `no`: below; `silent`: too few days in an arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutTrade:
    """A closed trade, and whether memory was shown when it was opened."""

    arm: MemoryArm
    day: date
    """The UTC day of its entry: that whose coin decided."""
    deployment_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """The trades of one arm."""

    trades: int
    days: int
    mean: float | None
    """None without trades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutResult:
    """Whether memory helps, as far as one can tell."""

    unit: OutcomeUnit | None
    shown: ArmSummary
    withheld: ArmSummary
    left_out: int
    """Trades of other units, and those of days when memory was off."""
    difference: float | None
    """Mean outcome with memory less that without; None where an arm has no trades."""
    interval: tuple[float, float] | None
    """Holds the true difference with 90 %, at all looks together; None before five days in each arm."""
    verdict: HoldoutVerdict
    days_to_settle: int | None
    """How many more days would put zero outside, if the difference stays as it is; 0 once it is, None out of sight."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _DayTotals:
    """An arm's days: how many trades each had, and what they brought together."""

    days: tuple[tuple[int, float], ...]

    @property
    def n(self) -> int:
        return sum(n for n, _ in self.days)

    @property
    def mean(self) -> float:
        return math.fsum(total for _, total in self.days) / self.n

    @property
    def squares(self) -> float:
        """Σ_g (S_g − m·n_g)²: how far the days are off what their trades would bring at the mean."""
        mean = self.mean
        return math.fsum((total - mean * n) ** 2 for n, total in self.days)


def analyse_holdout(trades: Iterable[HoldoutTrade]) -> HoldoutResult:
    """The difference that memory makes, in the unit that most trades have; the order of trades does not matter."""
    given = list(trades)
    told = [trade for trade in given if trade.arm != "off"]
    unit = most_common_unit(trade.outcome for trade in told)
    held = [trade for trade in told if trade.outcome.unit == unit]
    shown, withheld = (_day_totals([each for each in held if each.arm == arm]) for arm in ("shown", "withheld"))
    difference = shown.mean - withheld.mean if shown.days and withheld.days else None
    interval = ahead = None
    if difference is not None and min(len(shown.days), len(withheld.days)) >= MIN_DAYS:
        interval = _interval(difference, shown, withheld)
    answer = _verdict(interval)
    if difference is not None and interval is not None:
        ahead = 0 if answer in ("yes", "no") else _days_to_settle(difference, shown, withheld)
    helped = HoldoutResult(
        unit=unit,
        shown=_arm(shown),
        withheld=_arm(withheld),
        left_out=len(given) - len(held),
        difference=difference,
        interval=interval,
        verdict=answer,
        days_to_settle=ahead,
        sentence="",
    )
    return _with_sentence(helped)


def boundary(balanced_days: float) -> float:
    """How many standard errors the difference may be off, at all looks together, after so many balanced days.

    √((1 + 1/v) · ln((1 + v)/α²)), v = ρ²·t: the normal mixture of Robbins (1970) as an asymptotic confidence sequence
    (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024); ρ² makes it narrowest at 60 days.

    >>> [round(boundary(days), 2) for days in (10.0, 60.0, 120.0)]
    [3.15, 2.76, 2.8]
    """
    growth = _mixture_variance() * balanced_days
    return math.sqrt((1.0 + 1.0 / growth) * (math.log1p(growth) - 2.0 * math.log(ALPHA)))


@lru_cache(maxsize=1)
def _mixture_variance() -> float:
    """ρ² for an interval about as narrow as can be at 60 days: (−2 ln α + ln(−2 ln α) + 1) / 60."""
    tight = -2.0 * math.log(ALPHA)
    return (tight + math.log(tight) + 1.0) / TUNED_TO_DAYS


def _balanced_days(shown: float, withheld: float) -> float:
    """How many days split evenly tell as much: 4ab/(a + b)."""
    return 4.0 * shown * withheld / (shown + withheld)


def _day_totals(trades: Sequence[HoldoutTrade]) -> _DayTotals:
    by_day: dict[tuple[date, str], list[float]] = {}
    for trade in trades:
        by_day.setdefault((trade.day, trade.deployment_id), []).append(trade.outcome.value)
    return _DayTotals(days=tuple((len(values), math.fsum(values)) for _, values in sorted(by_day.items())))


def _arm(sums: _DayTotals) -> ArmSummary:
    return ArmSummary(trades=sums.n, days=len(sums.days), mean=sums.mean if sums.days else None)


def _interval(difference: float, shown: _DayTotals, withheld: _DayTotals) -> tuple[float, float] | None:
    """The difference and how far it may be off; None where nothing varies, since then nothing can be told."""
    reach = _half_width(shown, withheld, times=1.0)
    return None if reach is None else (difference - reach, difference + reach)


def _half_width(shown: _DayTotals, withheld: _DayTotals, *, times: float) -> float | None:
    """Half of the interval with `times` as many days like these, errors by days: the larger of two.

    Each arm with its own deviation, degrees of freedom by Welch (1947); or both with a common one, so that a few days
    that happen to be alike do not pass for certainty.
    """
    arms = (shown, withheld)
    days = [times * len(arm.days) for arm in arms]
    standard = boundary(_balanced_days(*days))
    own = [arm.squares * len(arm.days) / (len(arm.days) - 1) / arm.n**2 / times for arm in arms]
    pooled = math.fsum(arm.squares for arm in arms) / (sum(len(arm.days) for arm in arms) - 2)
    common = math.fsum(pooled * len(arm.days) / arm.n**2 for arm in arms) / times
    if common <= 0.0:
        return None
    apart, total = math.fsum(own), math.fsum(v * v / (d - 1.0) for v, d in zip(own, days, strict=True))
    return max(
        _t_boundary(standard, apart * apart / total) * math.sqrt(apart) if total > 0.0 else 0.0,
        _t_boundary(standard, sum(days) - 2.0) * math.sqrt(common),
    )


def _t_boundary(standard: float, freedom: float) -> float:
    """As many errors as leave the same tail of Student's t, the error being estimated from few days (Wallace 1959).

    >>> [round(_t_boundary(3.0, freedom), 2) for freedom in (4.0, 30.0, 1000.0)]
    [6.8, 3.27, 3.01]
    """
    reached = standard * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0)
    return math.sqrt(freedom * math.expm1(reached * reached / freedom))


def _verdict(interval: tuple[float, float] | None) -> HoldoutVerdict:
    if interval is None:
        return "silent"
    if interval[0] > 0.0:
        return "yes"
    return "no" if interval[1] < 0.0 else "not yet"


def _days_to_settle(difference: float, shown: _DayTotals, withheld: _DayTotals) -> int | None:
    """How many more days like these until zero is outside, the difference staying; None where that is out of sight."""
    held = len(shown.days) + len(withheld.days)

    def settled(more: int) -> bool:
        reach = _half_width(shown, withheld, times=1.0 + more / held)
        return reach is not None and reach < abs(difference)

    if not settled(MAX_DAYS_AHEAD):
        return None
    low, high = 0, MAX_DAYS_AHEAD
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


def _with_sentence(helped: HoldoutResult) -> HoldoutResult:
    return replace(helped, sentence=_sentence(helped))


def _sentence(helped: HoldoutResult) -> str:
    """The answer in words, plainly."""
    shown, withheld = helped.shown, helped.withheld
    sample = f"{shown.days} days with memory, {withheld.days} without"
    if helped.difference is None or helped.interval is None or helped.unit is None:
        return _silence(helped, sample)
    low, high = (amount(end, helped.unit) for end in helped.interval)
    doubt = f"{amount(helped.difference, helped.unit)} a trade (90 %: {low} to {high}; {sample})"
    match helped.verdict:
        case "yes":
            return f"Yes: with memory trades brought {doubt}."
        case "no":
            return f"No: with memory trades brought {doubt}. It costs more than it brings."
        case "not yet" | "silent":
            ahead = helped.days_to_settle
            more = "no number of days in sight" if ahead is None else f"about {ahead} more days like these"
            return f"Not yet: the difference is {doubt}; {more} would settle it."
    assert_never(helped.verdict)


def _silence(helped: HoldoutResult, sample: str) -> str:
    if not helped.withheld.days and not helped.shown.days:
        return "Nothing to compare: no trade was opened with memory shown or withheld."
    if not helped.withheld.days:
        return "Nothing to compare: memory was never withheld. Deploy with a memory holdout, like .2, to find out."
    if min(helped.shown.days, helped.withheld.days) < MIN_DAYS:
        return f"Too early to say: {sample}; {MIN_DAYS} of each are needed."
    return f"Nothing to tell: outcomes do not vary ({sample})."
