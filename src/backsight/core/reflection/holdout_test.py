"""The holdout test of memory: a confidence sequence for days with memory shown against days with memory withheld.

The unit is the day of one deployment, because that is what is randomised. A confidence sequence is valid at all times
at once, so the result may be read every day without correction.
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
"""The probability that the interval ever misses the true difference."""
TUNED_TO_DAYS = 60.0
"""The number of balanced days for which the interval is tuned to be narrowest."""
MAX_DAYS_AHEAD = 3_650

HoldoutVerdict = Literal["yes", "no", "not yet", "silent"]
"""`yes`: the interval is above zero, `no`: below zero, `not yet`: it includes zero, `silent`: there is no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutTrade:
    """A closed trade and the arm in which it was opened."""

    arm: MemoryArm
    day: date
    """The UTC day of the entry, which decides the arm."""
    deployment_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """The trades of one arm in figures."""

    trades: int
    days: int
    mean: float | None
    """Mean outcome; None without trades."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutResult:
    """Whether memory helps: the difference between the arms and its confidence interval."""

    unit: OutcomeUnit | None
    shown: ArmSummary
    withheld: ArmSummary
    left_out: int
    """Trades with outcomes in other units, and trades opened while memory was off."""
    difference: float | None
    """Mean outcome with memory minus mean outcome without; None if an arm has no trades."""
    interval: tuple[float, float] | None
    """90 % confidence sequence, valid at all times at once; None with fewer than five days in an arm."""
    verdict: HoldoutVerdict
    days_to_settle: int | None
    """Days until the interval excludes zero if the difference stays: 0 if it does already, None if over ten years."""
    sentence: str
    """The result in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _DayTotals:
    """The days of one arm, as pairs of the number of trades and their total outcome."""

    days: tuple[tuple[int, float], ...]

    @property
    def n(self) -> int:
        return sum(n for n, _ in self.days)

    @property
    def mean(self) -> float:
        return math.fsum(total for _, total in self.days) / self.n

    @property
    def squares(self) -> float:
        """Σ_g (S_g − m·n_g)²: the squared deviations of the daily totals from the mean, clustered by day."""
        mean = self.mean
        return math.fsum((total - mean * n) ** 2 for n, total in self.days)


def analyse_holdout(trades: Iterable[HoldoutTrade]) -> HoldoutResult:
    """Compare the two arms, in the unit of most outcomes; the order of the trades does not matter."""
    all_trades = list(trades)
    in_arms = [trade for trade in all_trades if trade.arm != "off"]
    unit = most_common_unit(trade.outcome for trade in in_arms)
    compared = [trade for trade in in_arms if trade.outcome.unit == unit]
    with_memory, without_memory = (
        _day_totals([each for each in compared if each.arm == arm]) for arm in ("shown", "withheld")
    )
    difference = with_memory.mean - without_memory.mean if with_memory.days and without_memory.days else None
    interval = days_to_settle = None
    if difference is not None and min(len(with_memory.days), len(without_memory.days)) >= MIN_DAYS:
        interval = _interval(difference, with_memory, without_memory)
    verdict = _verdict(interval)
    if difference is not None and interval is not None:
        days_to_settle = 0 if verdict in ("yes", "no") else _days_to_settle(difference, with_memory, without_memory)
    result = HoldoutResult(
        unit=unit,
        shown=_arm_summary(with_memory),
        withheld=_arm_summary(without_memory),
        left_out=len(all_trades) - len(compared),
        difference=difference,
        interval=interval,
        verdict=verdict,
        days_to_settle=days_to_settle,
        sentence="",
    )
    return replace(result, sentence=_sentence(result))


def boundary(balanced_days: float) -> float:
    """The half width of the confidence sequence in standard errors, after a number of balanced days t.

    √((1 + 1/v) · ln((1 + v)/α²)), v = ρ²·t: the normal mixture of Robbins (1970) as an asymptotic confidence sequence
    (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024). ρ² is chosen so that it is narrowest at 60 days.

    >>> [round(boundary(days), 2) for days in (10.0, 60.0, 120.0)]
    [3.15, 2.76, 2.8]
    """
    v = _mixture_variance() * balanced_days
    return math.sqrt((1.0 + 1.0 / v) * (math.log1p(v) - 2.0 * math.log(ALPHA)))


@lru_cache(maxsize=1)
def _mixture_variance() -> float:
    """ρ² for a nearly optimal interval at 60 days: (−2 ln α + ln(−2 ln α) + 1) / 60."""
    log_term = -2.0 * math.log(ALPHA)
    return (log_term + math.log(log_term) + 1.0) / TUNED_TO_DAYS


def _balanced_days(with_memory: float, without_memory: float) -> float:
    """The number of evenly split days with the same information: 4ab/(a + b)."""
    return 4.0 * with_memory * without_memory / (with_memory + without_memory)


def _day_totals(trades: Sequence[HoldoutTrade]) -> _DayTotals:
    by_day: dict[tuple[date, str], list[float]] = {}
    for trade in trades:
        by_day.setdefault((trade.day, trade.deployment_id), []).append(trade.outcome.value)
    return _DayTotals(days=tuple((len(values), math.fsum(values)) for _, values in sorted(by_day.items())))


def _arm_summary(totals: _DayTotals) -> ArmSummary:
    return ArmSummary(trades=totals.n, days=len(totals.days), mean=totals.mean if totals.days else None)


def _interval(difference: float, with_memory: _DayTotals, without_memory: _DayTotals) -> tuple[float, float] | None:
    """The interval around the difference; None if the outcomes do not vary at all."""
    half_width = _half_width(with_memory, without_memory, times=1.0)
    return None if half_width is None else (difference - half_width, difference + half_width)


def _half_width(with_memory: _DayTotals, without_memory: _DayTotals, *, times: float) -> float | None:
    """Half the width of the interval with `times` as many days like these, from standard errors clustered by day.

    The larger of two: with a variance for each arm (degrees of freedom: Welch 1947), and with a pooled variance. The
    second guards against a few days that happen to be alike.
    """
    arms = (with_memory, without_memory)
    days = [times * len(arm.days) for arm in arms]
    errors = boundary(_balanced_days(*days))
    # The variance of each arm's mean, by itself and from the pooled variance.
    variances = [arm.squares * len(arm.days) / (len(arm.days) - 1) / arm.n**2 / times for arm in arms]
    pooled = math.fsum(arm.squares for arm in arms) / (sum(len(arm.days) for arm in arms) - 2)
    common = math.fsum(pooled * len(arm.days) / arm.n**2 for arm in arms) / times
    if common <= 0.0:
        return None
    # Welch-Satterthwaite degrees of freedom: (Σ v)² / Σ v²/(d − 1).
    separate, total = math.fsum(variances), math.fsum(v * v / (d - 1.0) for v, d in zip(variances, days, strict=True))
    return max(
        _t_boundary(errors, separate * separate / total) * math.sqrt(separate) if total > 0.0 else 0.0,
        _t_boundary(errors, sum(days) - 2.0) * math.sqrt(common),
    )


def _t_boundary(normal: float, freedom: float) -> float:
    """The quantile of Student's t with the same tail probability as a normal quantile (Wallace 1959).

    >>> [round(_t_boundary(3.0, freedom), 2) for freedom in (4.0, 30.0, 1000.0)]
    [6.8, 3.27, 3.01]
    """
    adjusted = normal * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0)
    return math.sqrt(freedom * math.expm1(adjusted * adjusted / freedom))


def _verdict(interval: tuple[float, float] | None) -> HoldoutVerdict:
    if interval is None:
        return "silent"
    if interval[0] > 0.0:
        return "yes"
    return "no" if interval[1] < 0.0 else "not yet"


def _days_to_settle(difference: float, with_memory: _DayTotals, without_memory: _DayTotals) -> int | None:
    """How many more days like these until the interval excludes zero; None if more than ten years."""
    days = len(with_memory.days) + len(without_memory.days)

    def settled(more: int) -> bool:
        half_width = _half_width(with_memory, without_memory, times=1.0 + more / days)
        return half_width is not None and half_width < abs(difference)

    if not settled(MAX_DAYS_AHEAD):
        return None
    low, high = 0, MAX_DAYS_AHEAD
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


def _sentence(result: HoldoutResult) -> str:
    """The result in words."""
    with_memory, without_memory = result.shown, result.withheld
    sample = f"{with_memory.days} days with memory, {without_memory.days} without"
    if result.difference is None or result.interval is None or result.unit is None:
        return _why_silent(result, sample)
    low, high = (amount(end, result.unit) for end in result.interval)
    estimate = f"{amount(result.difference, result.unit)} a trade (90 %: {low} to {high}; {sample})"
    match result.verdict:
        case "yes":
            return f"Yes: with memory trades brought {estimate}."
        case "no":
            return f"No: with memory trades brought {estimate}. Memory costs more than it brings."
        case "not yet" | "silent":
            days = result.days_to_settle
            more = "more than ten years of such days" if days is None else f"about {days} more days like these"
            return f"Not yet: the difference is {estimate}; {more} would settle it."
    assert_never(result.verdict)


def _why_silent(result: HoldoutResult, sample: str) -> str:
    if not result.withheld.days and not result.shown.days:
        return "Nothing to compare: no trade was opened with memory shown or withheld."
    if not result.withheld.days:
        return "Nothing to compare: memory was never withheld. Deploy with a memory holdout, like .2, to find out."
    if min(result.shown.days, result.withheld.days) < MIN_DAYS:
        return f"Too early to say: {sample}; at least {MIN_DAYS} of each are needed."
    return f"Nothing to compare: the outcomes do not vary ({sample})."
