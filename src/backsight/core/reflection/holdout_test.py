"""The holdout test of memory: a confidence sequence for days with memory shown against days with memory withheld.

The unit is the day of one deployment, because that is what is randomised; its value is what the trades opened on it
brought, 0 if there were none. A trade counts as it stands at the end of the second day after its entry, closed or open:
closed trades alone flatter whoever holds losers open, and results that stay open for long would move together. A
confidence sequence is valid at all times at once, so the result may be read every day without correction.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Literal, assert_never

from backsight.core.holdout import MemoryArm
from backsight.core.reflection.patterns import most_common_unit
from backsight.core.reflection.wording import amount
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import Outcome, OutcomeUnit

MIN_DAYS = 5
ALPHA = 0.1
"""The probability that the interval ever misses the true difference."""
TUNED_TO_DAYS = 60.0
"""The number of balanced days for which the interval is tuned to be narrowest."""
MAX_DAYS_AHEAD = 3_650
DAYS_HELD = 2
"""Days after the day of the entry at whose end an open trade is counted as it stands."""
LAGS = 2 * DAYS_HELD
"""Days over which results may move together, because trades were open at the same time."""
FIRST_PLAN = 10
"""Days from which the deviation of a day is known well enough to plan with."""
USUAL_HOLDOUT = 0.2
"""The share of withheld days that a plan assumes while none was withheld."""
POWER_QUANTILE = 0.8416
"""The 80% quantile of the normal distribution."""
PLANNED_R = (0.1, 0.2)
"""Differences a day, in R, for which the necessary days are computed."""

HoldoutVerdict = Literal["yes", "no", "not yet", "silent"]
"""`yes`: the interval is above zero, `no`: below zero, `not yet`: it includes zero, `silent`: there is no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutTrade:
    """A trade and the arm in which it was opened, as it stood at `counted_until` its day, or now if that is earlier."""

    arm: MemoryArm
    day: date
    """The UTC day of the entry, which decides the arm."""
    deployment_id: str
    outcome: Outcome
    pnl: float | None = None
    """In the currency of the account."""
    is_open: bool = False
    """Whether it was still open then, so that its mark counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutDay:
    """A day on which a deployment decided, whether or not it traded."""

    arm: MemoryArm
    day: date
    deployment_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSummary:
    """The days and trades of one arm in figures."""

    trades: int
    open: int
    """Those of the trades that count as they stood while they were open."""
    days: int
    """Days on which the agent decided, with or without a trade."""
    mean: float | None
    """Mean outcome of a trade; None without trades."""
    mean_day: float | None
    """Mean outcome of a day; None without days."""
    money_day: float | None
    """Mean net result of a day in the currency of the accounts; None without days, or if a result is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DaysNeeded:
    """How many days a difference would take to find."""

    difference: float
    """A day."""
    days: int | None
    """In both arms together; None if more than ten years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableDifference:
    """What the comparison can find with a probability of 80%, given how much the days vary."""

    deviation: float
    """Standard deviation of a day's outcome."""
    withheld_share: float
    """The share of withheld days that this rests on: that so far, a fifth while there is none."""
    difference: float | None
    """The smallest difference a day that the days so far would show; None with fewer than five in an arm."""
    needed: tuple[DaysNeeded, ...]
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldoutResult:
    """Whether memory helps: the difference between the arms and its confidence interval."""

    unit: OutcomeUnit | None
    shown: ArmSummary
    withheld: ArmSummary
    left_out: int
    """Trades with outcomes in other units, and trades opened while memory was off."""
    recalled_days: int
    """Days that do not count, because a decision rests on a recall although memory was withheld."""
    difference: float | None
    """Mean outcome of a day with memory minus that of a day without; None if an arm has no days."""
    interval: tuple[float, float] | None
    """90% confidence sequence, valid at all times at once; None with fewer than five days in an arm."""
    money_difference: float | None
    """The same difference in the currency of the accounts."""
    money_interval: tuple[float, float] | None
    verdict: HoldoutVerdict
    """By the interval of outcomes; that of money is shown beside it."""
    days_to_settle: int | None
    """Days until the interval excludes zero if the difference stays: 0 if it does already, None if over ten years."""
    detectable: DetectableDifference | None
    """What the comparison could find; None before ten days."""
    sentence: str
    """The result in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _DayTotals:
    """The days of one arm, each with its total."""

    totals: Mapping[tuple[date, str], float]

    @property
    def n(self) -> int:
        return len(self.totals)

    @property
    def mean(self) -> float:
        return math.fsum(self.totals.values()) / self.n

    @property
    def squares(self) -> float:
        """Squared deviations of the daily totals from their mean."""
        mean = self.mean
        return math.fsum((total - mean) ** 2 for total in self.totals.values())


def counted_until(day: date) -> datetime:
    """The instant at which a trade that was opened on a UTC day is counted as it stands.

    >>> counted_until(date(2026, 6, 4)).isoformat()
    '2026-06-07T00:00:00+00:00'
    """
    return datetime.combine(day, time(), tzinfo=UTC) + timedelta(days=1 + DAYS_HELD)


def analyse_holdout(
    trades: Iterable[HoldoutTrade], days: Iterable[HoldoutDay] = (), *, recalled_days: int = 0
) -> HoldoutResult:
    """Compare the two arms, in the unit of most outcomes; the order of trades and days does not matter.

    A day of a trade counts also if it is not among `days`.
    """
    all_trades = list(trades)
    in_arms = [trade for trade in all_trades if trade.arm != "off"]
    unit = most_common_unit(trade.outcome for trade in in_arms)
    compared = [trade for trade in in_arms if trade.outcome.unit == unit]
    decided = {(day.arm, day.day, day.deployment_id) for day in days}
    decided |= {(trade.arm, trade.day, trade.deployment_id) for trade in compared}
    outcomes = _totals(decided, ((each, each.outcome.value) for each in compared))
    difference, interval = _compare(*outcomes)
    money: tuple[float | None, tuple[float, float] | None] = (None, None)
    money_totals: tuple[_DayTotals, _DayTotals] | None = None
    if all(trade.pnl is not None for trade in in_arms):
        money_totals = _totals(decided, ((each, each.pnl or 0.0) for each in in_arms))
        money = _compare(*money_totals)
    verdict = _verdict(interval)
    days_to_settle = None
    if difference is not None and interval is not None:
        days_to_settle = 0 if verdict in ("yes", "no") else _days_to_settle(difference, *outcomes)
    shown, withheld = (
        _arm_summary(
            [trade for trade in compared if trade.arm == arm],
            outcomes[place],
            None if money_totals is None else money_totals[place],
        )
        for place, arm in enumerate(("shown", "withheld"))
    )
    result = HoldoutResult(
        unit=unit,
        shown=shown,
        withheld=withheld,
        left_out=len(all_trades) - len(compared),
        recalled_days=recalled_days,
        difference=difference,
        interval=interval,
        money_difference=money[0],
        money_interval=money[1],
        verdict=verdict,
        days_to_settle=days_to_settle,
        detectable=None if unit is None else _detectable(unit, *outcomes),
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


def _totals(
    decided: Iterable[tuple[MemoryArm, date, str]], values: Iterable[tuple[HoldoutTrade, float]]
) -> tuple[_DayTotals, _DayTotals]:
    """The totals of the days with memory shown and of those with memory withheld; 0 on a day without trades."""
    by_day: dict[tuple[MemoryArm, date, str], list[float]] = {key: [] for key in decided}
    for trade, value in values:
        by_day.setdefault((trade.arm, trade.day, trade.deployment_id), []).append(value)
    shown, withheld = (
        _DayTotals(totals={key[1:]: math.fsum(values) for key, values in sorted(by_day.items()) if key[0] == arm})
        for arm in ("shown", "withheld")
    )
    return shown, withheld


def _compare(with_memory: _DayTotals, without_memory: _DayTotals) -> tuple[float | None, tuple[float, float] | None]:
    """The difference of the means of a day, and its interval; no interval if the days do not vary at all."""
    if not (with_memory.n and without_memory.n):
        return None, None
    difference = with_memory.mean - without_memory.mean
    if min(with_memory.n, without_memory.n) < MIN_DAYS:
        return difference, None
    half_width = _spread(with_memory, without_memory).half_width()
    return difference, None if half_width is None else (difference - half_width, difference + half_width)


def _arm_summary(trades: Sequence[HoldoutTrade], totals: _DayTotals, money: _DayTotals | None) -> ArmSummary:
    return ArmSummary(
        trades=len(trades),
        open=sum(trade.is_open for trade in trades),
        days=totals.n,
        mean=math.fsum(trade.outcome.value for trade in trades) / len(trades) if trades else None,
        mean_day=totals.mean if totals.n else None,
        money_day=money.mean if money is not None and money.n else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """How much the days of both arms vary."""

    days: tuple[int, int]
    squares: tuple[float, float]
    """Squared deviations from the mean of each arm."""
    dependence: float
    """By how much days that move together raise the variance of the difference."""

    def half_width(self, *, times: float = 1.0) -> float | None:
        """Half the width of the interval with `times` as many days like these; None if the days do not vary.

        The larger of two: with a variance for each arm (degrees of freedom: Welch 1947), and with a pooled variance.
        The second guards against a few days that happen to be alike.
        """
        days = [times * n for n in self.days]
        errors = boundary(_balanced_days(*days))
        # The variance of each arm's mean, by itself and from the pooled variance.
        variances = [squares / (n - 1) / n / times for n, squares in zip(self.days, self.squares, strict=True)]
        pooled = math.fsum(self.squares) / (sum(self.days) - 2)
        common = math.fsum(pooled / n for n in self.days) / times
        if common <= 0.0:
            return None
        # Welch-Satterthwaite degrees of freedom: (Σ v)² / Σ v²/(d − 1).
        separate = math.fsum(variances)
        total = math.fsum(v * v / (d - 1.0) for v, d in zip(variances, days, strict=True))
        widest = max(
            _t_boundary(errors, separate * separate / total) * math.sqrt(separate) if total > 0.0 else 0.0,
            _t_boundary(errors, sum(days) - 2.0) * math.sqrt(common),
        )
        return widest * math.sqrt(self.dependence)


def _spread(with_memory: _DayTotals, without_memory: _DayTotals) -> _Spread:
    return _Spread(
        days=(with_memory.n, without_memory.n),
        squares=(with_memory.squares, without_memory.squares),
        dependence=_dependence(with_memory, without_memory),
    )


def _dependence(with_memory: _DayTotals, without_memory: _DayTotals) -> float:
    """By how much days that move together raise the variance of the difference: 1 or more.

    Arms are drawn day by day, so days that resemble each other do no harm by themselves. Positions that were taken in
    one arm and are open together do: their results move together and count in one arm. The variance by Newey & West
    (1987) over the contributions of calendar days, against that of independent days.
    """
    contributions: dict[date, float] = {}
    independent = 0.0
    for arm, sign in ((with_memory, 1.0), (without_memory, -1.0)):
        mean, n = arm.mean, arm.n
        for (day, _), total in arm.totals.items():
            contribution = sign * (total - mean) / n
            independent += contribution * contribution
            contributions[day] = contributions.get(day, 0.0) + contribution
    variance = math.fsum(each * each for each in contributions.values())
    for lag in range(1, LAGS + 1):
        step = timedelta(days=lag)
        products = math.fsum(each * contributions.get(day + step, 0.0) for day, each in contributions.items())
        variance += 2.0 * (1.0 - lag / (LAGS + 1.0)) * products
    return max(1.0, variance / independent) if independent > 0.0 else 1.0


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
    spread = _spread(with_memory, without_memory)
    days = sum(spread.days)

    def settled(more: int) -> bool:
        half_width = spread.half_width(times=1.0 + more / days)
        return half_width is not None and half_width < abs(difference)

    return _first(settled)


def _detectable(unit: OutcomeUnit, with_memory: _DayTotals, without_memory: _DayTotals) -> DetectableDifference | None:
    """What could be found with a probability of 80%, by the deviation of all days so far; None before ten days."""
    arms = [arm for arm in (with_memory, without_memory) if arm.n]
    days = sum(arm.n for arm in arms)
    squares = math.fsum(arm.squares for arm in arms)
    if days < FIRST_PLAN or squares <= 0.0:
        return None
    deviation = math.sqrt(squares / (days - len(arms)))
    if len(arms) > 1:
        deviation *= math.sqrt(_dependence(with_memory, without_memory))
    share = without_memory.n / days if len(arms) > 1 else USUAL_HOLDOUT

    def smallest(total: float) -> float | None:
        """The smallest difference that so many days show with a probability of 80%."""
        shown, withheld = (1.0 - share) * total, share * total
        if min(shown, withheld) < MIN_DAYS - 1e-9:
            return None
        errors = _t_boundary(boundary(_balanced_days(shown, withheld)), total - 2.0)
        return (errors + POWER_QUANTILE) * deviation * math.sqrt(1.0 / shown + 1.0 / withheld)

    def days_for(difference: float) -> int | None:
        def suffices(total: int) -> bool:
            found_then = smallest(float(total))
            return found_then is not None and found_then <= difference

        return _first(suffices)

    differences = PLANNED_R if unit == "R" else ()
    needed = tuple(DaysNeeded(difference=each, days=days_for(each)) for each in differences)
    now = smallest(float(days)) if len(arms) > 1 else None
    sentence = _detectable_sentence(unit, now, needed, share=share, is_assumed=len(arms) == 1)
    return DetectableDifference(
        deviation=deviation, withheld_share=share, difference=now, needed=needed, sentence=sentence
    )


def _first(holds: Callable[[int], bool]) -> int | None:
    """The smallest number, at most ten years of days, from which something holds; None if it never does."""
    if not holds(MAX_DAYS_AHEAD):
        return None
    low, high = 0, MAX_DAYS_AHEAD
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _detectable_sentence(
    unit: OutcomeUnit, now: float | None, needed: Sequence[DaysNeeded], *, share: float, is_assumed: bool
) -> str:
    parts = []
    if now is not None:
        parts.append(f"With the days so far, a difference of {amount(now, unit)} a day is found in 80% of cases")
    for each in needed:
        days = "more than ten years" if each.days is None else f"about {count_of(each.days, 'day')}"
        parts.append(f"{amount(each.difference, unit)} a day takes {days}")
    condition = f" if {100.0 * share:.0f}% of days are withheld" if is_assumed else ""
    return f"{'; '.join(parts)}{condition}." if parts else ""


def _sentence(result: HoldoutResult) -> str:
    """The result in words."""
    with_memory, without_memory = result.shown, result.withheld
    sample = f"{count_of(with_memory.days, 'day')} with memory, {without_memory.days:,} without"
    if result.difference is None or result.interval is None or result.unit is None:
        return _why_silent(result, sample)
    low, high = (amount(end, result.unit) for end in result.interval)
    estimate = f"{amount(result.difference, result.unit)} a day (90%: {low} to {high}; {sample})"
    match result.verdict:
        case "yes":
            return f"Yes: with memory the agent made {estimate} compared with days without."
        case "no":
            return (
                f"No: with memory the agent made {estimate} compared with days without. It costs more than it brings."
            )
        case "not yet" | "silent":
            days = result.days_to_settle
            more = "more than ten years of such days" if days is None else f"about {days:,} more days like these"
            return f"Whether memory helps is not known yet: the difference is {estimate}; {more} would settle it."
    assert_never(result.verdict)


def _why_silent(result: HoldoutResult, sample: str) -> str:
    if not result.withheld.days and not result.shown.days:
        return "Nothing to compare: no decision was made with memory shown or withheld."
    if not result.withheld.days:
        return "Nothing to compare: memory was never withheld. Deploy with a memory holdout, like .2, to find out."
    if result.unit is None:
        return f"Nothing to compare: no trade was opened ({sample})."
    if min(result.shown.days, result.withheld.days) < MIN_DAYS:
        return f"Too early to say: {sample}; at least {MIN_DAYS} of each are needed."
    return f"Nothing to compare: the outcomes do not vary ({sample})."
