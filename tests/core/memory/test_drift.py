"""Drift: few false alarms, and a change is detected soon."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from backsight.core.errors import Invalid
from backsight.core.memory.drift import (
    Alarm,
    Detector,
    DriftUpdate,
    detectable_change,
    settle,
    standardised,
    watch,
)
from backsight.core.recommended_size import SizedTrade, SizingQuery
from backsight.core.sizing import position_size, trade_columns
from backsight.core.statistics import Moments, moments_of, rate_bounds
from noise import SHAPES, START, noise

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
Floats = NDArray[np.float64]
Path = Callable[[random.Random, int], list[float]]


def student_3(rng: random.Random) -> float:
    return rng.gauss(0, 1) / math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)) / 3)


def independent(draw: Callable[[random.Random], float]) -> Path:
    return lambda rng, n: [draw(rng) for _ in range(n)]


def autocorrelated(r: float) -> Path:
    """A normal autoregression of deviation 1, from its stationary distribution on."""

    def path(rng: random.Random, n: int) -> list[float]:
        values = [rng.gauss(0, 1)]
        while len(values) < n:
            values.append(r * values[-1] + math.sqrt(1 - r * r) * rng.gauss(0, 1))
        return values

    return path


INDEPENDENT: dict[str, tuple[Path, float]] = {
    "normal": (independent(lambda rng: rng.gauss(0, 1)), 1.0),
    "Student t3": (independent(student_3), math.sqrt(3)),
    "2R or -1R, fair": (independent(lambda rng: 2.0 if rng.random() < 1 / 3 else -1.0), math.sqrt(2)),
    "5% winners of 20R": (
        independent(lambda rng: 20.0 if rng.random() < 0.05 else -1.0),
        21 * math.sqrt(0.05 * 0.95),
    ),
}
SERIES: dict[str, tuple[Path, float]] = INDEPENDENT | {
    "days autocorrelated .3": (autocorrelated(0.3), 1.0),
    "days autocorrelated .6": (autocorrelated(0.6), 1.0),
}


def shape(name: str) -> Path:
    """The outcomes in R of a market without an edge, by day, of a strategy as a whole."""

    def path(rng: random.Random, n: int) -> list[float]:
        days: dict[int, list[float]] = {}
        for trade in noise(name, rng.randrange(1 << 30), n):
            if trade.in_r:
                days.setdefault((trade.closed_at - START).days, []).append(trade.outcome)
        return [sum(values) / len(values) for values in days.values()]

    return path


NOISE = {name: shape(name) for name in SHAPES}


def daily(values: Iterable[float]) -> list[tuple[datetime, float]]:
    return [(T0 + number * DAY, value) for number, value in enumerate(values)]


def watch_all(values: Iterable[tuple[datetime, float]], *, detector: Detector | None = None) -> DriftUpdate:
    """The detector after instants and values, and all alarms."""
    detector, alarms = detector or Detector(), list[Alarm]()
    for at, value in values:
        update = watch(detector, value, at=at)
        detector = update.detector
        alarms += update.alarms
    return DriftUpdate(detector=detector, alarms=tuple(alarms))


def watched(*values: float) -> DriftUpdate:
    """The detector after one value a day, with all days over."""
    update = watch_all(daily(values))
    settled = settle(update.detector, now=T0 + len(values) * DAY)
    return DriftUpdate(detector=settled.detector, alarms=update.alarms + settled.alarms)


STEADY = (1.0, -1.0) * 50


def test_an_alarm_has_the_direction_size_and_beginning_of_a_fall() -> None:
    alarm, *more = watched(*STEADY, *[-3.0] * 9).alarms
    assert not more
    assert alarm.turn == "down"
    assert T0 + 99 * DAY <= alarm.since <= T0 + 100 * DAY < alarm.at
    assert alarm.before.mean == pytest.approx(0.0, abs=0.02)
    assert alarm.magnitude == pytest.approx((alarm.after.mean - alarm.before.mean) / (alarm.before.deviation or 0))
    assert alarm.magnitude < -2


def test_a_rise_is_no_degrading() -> None:
    update = watched(*STEADY, *[3.0] * 9)
    assert [alarm.turn for alarm in update.alarms] == ["up"]
    assert not update.detector.degrading


def test_quiet_does_not_end_degrading() -> None:
    assert watched(*STEADY, *[-3.0] * 9, *(-2.0, -4.0) * 200).detector.degrading


def test_degrading_ends_when_later_values_are_clearly_above_zero() -> None:
    """A fall from 5 to 2 leaves a mean that is above 0 by itself; a fall from 5 to 0.1 does not."""
    before, below, above = (6.0, 4.0) * 50, (1.1, -0.9) * 30, (3.0, 1.0) * 30
    assert watched(*before, *below).detector.degrading
    fallen = watched(*before, *above)
    assert [alarm.turn for alarm in fallen.alarms] == ["down"]
    assert not fallen.detector.degrading


def test_degrading_ends_with_a_rise() -> None:
    fall = (*STEADY, *[-3.0] * 9, *(-2.0, -4.0) * 40)
    assert watched(*fall).detector.degrading
    risen = watched(*fall, *[3.0] * 8)
    assert [alarm.turn for alarm in risen.alarms] == ["down", "up"]
    assert not risen.detector.degrading


def test_after_an_alarm_the_past_begins_where_the_change_did() -> None:
    update = watched(*STEADY, *[-3.0] * 9)
    alarm = update.alarms[0]
    since = (alarm.at - alarm.since).days + 1
    assert alarm.after.n == since
    later = (T0 + 109 * DAY - alarm.at).days - 1
    assert update.detector.past.n == since + later
    sums = (update.detector.fast, update.detector.slow)
    assert all(side.total == 0.0 for each in sums for side in (each.up, each.down))


def test_the_first_thirty_values_raise_nothing() -> None:
    assert watched(*STEADY[:15], *[-50.0] * 15).alarms == ()
    assert watched(*STEADY[:30], *[-50.0] * 20).alarms


def test_one_wild_value_is_clipped() -> None:
    assert standardised(1e9, moments_of(STEADY)) == 2.5
    assert watched(*STEADY, -1e9).alarms == ()


def test_a_rounding_difference_in_constant_sizes_raises_no_alarm() -> None:
    assert watched(*[0.02] * 60, *[0.02 + 1e-9] * 60).alarms == ()
    assert [alarm.turn for alarm in watched(*[0.02] * 60, *[0.03] * 6).alarms] == ["up"]
    assert standardised(1.0, moments_of([0.0] * 40)) == 2.5
    assert standardised(0.0, moments_of([0.0] * 40)) == 0.0


def test_the_values_of_a_day_count_as_their_mean() -> None:
    hourly = [(at + hour * timedelta(hours=1), value + hour - 1) for at, value in daily(STEADY) for hour in range(3)]
    thrice, once = watch_all(hourly).detector, watch_all(daily(STEADY)).detector
    assert thrice.past == once.past
    assert thrice.past.n == len(STEADY) - 1


def test_a_day_counts_once_it_is_over() -> None:
    detector = watch_all(daily([*STEADY, *[-3.0] * 8])).detector
    evening = T0 + (len(STEADY) + 7) * DAY + timedelta(hours=23)
    assert settle(detector, now=evening).detector == detector
    assert settle(detector, now=evening + timedelta(hours=1)).detector.past.n != detector.past.n


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(Invalid, match="finite"):
        watch(Detector(), value, at=T0)


def test_a_value_that_comes_late_is_refused() -> None:
    with pytest.raises(Invalid, match="in order"):
        watch_all([(T0 + DAY, 1.0), (T0, 1.0)])


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(-5, 5)), max_size=120), st.integers(0, 120))
def test_reading_in_between_changes_nothing(rows: list[Any], cut: int) -> None:
    rows.sort(key=lambda row: row[0])
    values = [(T0 + hours * timedelta(hours=9), value) for hours, value in rows]
    at_once = watch_all(values)
    first = watch_all(values[:cut])
    now = values[cut][0] if cut < len(values) else T0
    read = settle(first.detector, now=now)
    then = watch_all(values[cut:], detector=read.detector)
    assert then.detector == at_once.detector
    assert first.alarms + read.alarms + then.alarms == at_once.alarms


@pytest.mark.parametrize("turn", [-1.0, 1.0])
def test_the_slow_detector_finds_what_the_fast_one_misses(turn: float) -> None:
    """Values of deviation 1 whose mean moves by .6: the fast sum never grows, the slow one does."""
    steady, moved = (1.0, -1.0) * 100, (1.0 + 0.6 * turn, -1.0 + 0.6 * turn) * 100
    alarm, *more = watched(*steady, *moved).alarms
    assert not more
    assert (alarm.detector, alarm.turn) == ("slow", "up" if turn > 0 else "down")
    assert T0 + 195 * DAY <= alarm.since <= T0 + 205 * DAY
    assert alarm.magnitude == pytest.approx(0.6 * turn, abs=0.1)


def test_a_large_fall_is_found_by_the_fast_detector() -> None:
    assert [alarm.detector for alarm in watched(*STEADY, *[-3.0] * 9).alarms] == ["fast"]


def test_no_change_is_detectable_before_a_hundred_and_fifty_days() -> None:
    assert detectable_change(watched(*STEADY, *STEADY[:49]).detector) is None
    assert detectable_change(watched(*STEADY, *STEADY[:50]).detector) is not None
    assert detectable_change(watched(*[1.0] * 200).detector) is None, "a constant has no deviation to compare with"


def test_more_days_make_a_smaller_change_detectable() -> None:
    sizes = [detectable_change(watched(*STEADY * 4).detector), detectable_change(watched(*STEADY * 2).detector)]
    assert [each.days for each in sizes if each] == [200, 100]
    assert [round(each.deviations, 2) for each in sizes if each] == [0.44, 1.08]
    in_spells = detectable_change(watched(*([1.0] * 10 + [-1.0] * 10) * 20).detector)
    assert in_spells is not None
    assert in_spells.deviations > 1.5


def false_alarms(path: Path, runs: int) -> int:
    """Of so many runs of 1,000 values that do not change, those with an alarm of either detector."""
    return sum(bool(watched(*path(random.Random(seed), 1000)).alarms) for seed in range(runs))


def found_falls(path: Path, fall: float, runs: int, *, within: int, before: int = 200) -> int:
    """Of so many falls after stationary values, those found within some values."""

    def is_found(rng: random.Random) -> bool:
        values = path(rng, before + within)
        alarms = watched(*values[:before], *(value - fall for value in values[before:])).alarms
        return any(alarm.turn == "down" and alarm.at >= T0 + before * DAY for alarm in alarms)

    return sum(is_found(random.Random(seed)) for seed in range(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What memory made of an edge that died."""

    is_found: bool
    """Whether the alarm came within 150 trades of the death."""
    is_refused: bool
    """Whether nothing was risked any more at some time within 100 trades after the alarm."""
    is_bet_on_again: bool
    """Whether something was risked at a later time, up to 400 trades after the alarm."""


def normal_trade(rng: random.Random, mean: float) -> float:
    return rng.gauss(mean, 1.0)


def even_trade(rng: random.Random, mean: float) -> float:
    return 1.0 if rng.random() < (1.0 + mean) / 2.0 else -1.0


def large_winner(rng: random.Random, mean: float) -> float:
    return 3.0 if rng.random() < (1.0 + mean) / 4.0 else -1.0


EDGES = {"normal": normal_trade, "1R or -1R": even_trade, "few large winners": large_winner}


def life_of_an_edge(trade: Callable[[random.Random, float], float], rng: random.Random) -> Life:
    """Two trades a day: 400 with a mean of .35R, then −.25R; sizes every tenth trade after the alarm."""
    detector, fallen_at, sizes = Detector(), None, list[float]()
    trades: list[tuple[datetime, float]] = []
    for number in range(400 + 150 + 400):
        at = T0 + number * DAY / 2
        value = trade(rng, 0.35 if number < 400 else -0.25)
        trades.append((at, value))
        detector = watch(detector, value, at=at).detector
        if fallen_at is None and number >= 400 and detector.degrading:
            fallen_at = number
        if fallen_at is not None and (number - fallen_at) % 10 == 0:
            sizes.append(recommended(trades, detector))
    found = fallen_at is not None and fallen_at < 400 + 150
    zero = next((place for place, size in enumerate(sizes) if size == 0.0), len(sizes))
    return Life(is_found=found, is_refused=found and zero <= 10, is_bet_on_again=found and max(sizes[zero:]) > 0.0)


def recommended(trades: Sequence[tuple[datetime, float]], detector: Detector) -> float:
    """The size that follows from the trades since outcomes fell, or from all if they have not."""
    since = detector.latest.since if detector.degrading and detector.latest is not None else T0
    evidence = [
        SizedTrade(outcome_r=r, day=at.date(), direction="long", symbol="BTC") for at, r in trades if at >= since
    ]
    return position_size(trade_columns(evidence), SizingQuery(direction="long", symbol="BTC")).uncapped


def bounds(count: int, of: int) -> str:
    """A share of runs in percent, with its two-sided 95% bounds."""
    low, high = rate_bounds(count, of, confidence=0.975)
    return f"{count / of:.1%} ({low:.1%} to {high:.1%})"


def at_most(count: int, runs: int, rate: float) -> None:
    assert rate_bounds(count, runs)[1] <= rate, f"{count} of {runs}"


def at_least(count: int, runs: int, rate: float) -> None:
    assert rate_bounds(count, runs)[0] >= rate, f"{count} of {runs}"


@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_few_falls_are_found(name: str) -> None:
    path, deviation = INDEPENDENT[name]
    assert found_falls(path, deviation, runs=5, within=60) >= 4
    assert found_falls(path, deviation / 2, runs=5, within=200) >= 3


@pytest.mark.parametrize("name", SERIES)
def test_a_few_runs_without_a_change_raise_no_alarm(name: str) -> None:
    assert false_alarms(SERIES[name][0], runs=6) <= 1


@pytest.mark.parametrize("name", ["regimes in spells", "autocorrelated days"])
def test_a_few_markets_whose_days_resemble_each_other_raise_no_alarm(name: str) -> None:
    assert false_alarms(NOISE[name], runs=6) <= 1


@pytest.mark.parametrize("name", ["normal", "1R or -1R"])
def test_a_few_dead_edges_are_found_and_not_bet_on_again(name: str) -> None:
    lives = [life_of_an_edge(EDGES[name], random.Random(seed)) for seed in range(4)]
    assert sum(life.is_found for life in lives) >= 2
    assert all(life.is_refused for life in lives if life.is_found)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISE)
def test_markets_without_an_edge_seldom_alarm_in_a_thousand_trades(name: str) -> None:
    runs = 1000 if name == "regimes in spells" else 300
    count = false_alarms(NOISE[name], runs=runs)
    print(f"| {name} | {runs} | {bounds(count, runs)} |")  # noqa: T201
    at_most(count, runs, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", EDGES)
def test_a_dead_edge_is_found_and_stays_dead(name: str) -> None:
    """An edge of .35R for 400 trades that turns to −.25R: alarm within 150 trades, size 0 within 100 after it.

    With winners of 3R the fall is a third of the deviation of a trade, and an oracle finds half of them.
    """
    runs = 200
    lives = [life_of_an_edge(EDGES[name], random.Random(seed)) for seed in range(runs)]
    found = sum(life.is_found for life in lives)
    refused = sum(life.is_refused for life in lives)
    bet_again = sum(life.is_bet_on_again for life in lives)
    print(f"| {name} | {bounds(found, runs)} | {bounds(refused, found)} | {bounds(bet_again, found)} |")  # noqa: T201
    assert (refused, bet_again) == (found, 0)
    at_least(found, runs, 0.2 if name == "few large winners" else 0.6)


def large_winner_days(rng: np.random.Generator, mean: float, days: int, *, runs: int = 2000) -> Floats:
    """The daily means of two trades of 3R or −1R a day, for each run."""
    won = rng.random((runs, days, 2)) < (1.0 + mean) / 4.0
    return np.asarray(np.where(won, 3.0, -1.0).mean(axis=2), np.float64)


def standardised_days(days: Floats, *, known: bool) -> Floats:
    """z of each day: by the true mean and deviation of the edge, or by those of the days before it, after 30 days."""
    if known:
        won = (1.0 + 0.35) / 4.0
        return (days - 0.35) / (4.0 * math.sqrt(won * (1.0 - won) / 2.0))
    count = np.arange(1.0, days.shape[1] + 1.0)
    means = np.cumsum(days, axis=1) / count
    variances = (np.cumsum(days * days, axis=1) - count * means * means) / np.maximum(count - 1.0, 1.0)
    z = np.zeros_like(days)
    z[:, 30:] = (days[:, 30:] - means[:, 29:-1]) / np.sqrt(variances[:, 29:-1])
    return np.clip(z, -2.5, 2.5)


def largest_falls(z: Floats, allowance: float) -> Floats:
    """The largest downward sum of each run up to each day."""
    total, largest = np.zeros(len(z)), np.zeros_like(z)
    for day in range(z.shape[1]):
        total = np.maximum(0.0, total - z[:, day] - allowance)
        largest[:, day] = np.maximum(largest[:, day - 1] if day else 0.0, total)
    return largest


@pytest.mark.slow
@pytest.mark.parametrize(("known", "low", "high"), [(True, 0.65, 0.8), (False, 0.45, 0.6)], ids=["known", "learned"])
def test_the_most_that_a_sum_could_find_of_a_dead_edge(known: bool, low: float, high: float) -> None:
    """An oracle that is told that days are independent, with the best allowance and the exact threshold.

    A fall may alarm in 2.5% of 1,000 values, as may a rise: together 5%.
    """
    rng, found = np.random.default_rng(1), list[float]()
    steady = standardised_days(large_winner_days(rng, 0.35, 1000), known=known)
    died = np.hstack([large_winner_days(rng, 0.35, 200), large_winner_days(rng, -0.25, 75)])
    falls = standardised_days(died, known=known)
    for allowance in (0.15, 0.2, 0.25):
        threshold = float(np.quantile(largest_falls(steady, allowance)[:, -1], 0.975))
        sums = largest_falls(falls, allowance)
        found.append(float(np.mean((sums[:, -1] > threshold) & (sums[:, 199] <= threshold))))
    print(f"oracle, edge {'known' if known else 'learned'}, 5% in 1,000 values: {max(found):.2f}")  # noqa: T201
    assert low <= max(found) <= high


@pytest.mark.slow
@pytest.mark.parametrize("name", SERIES)
def test_what_does_not_change_seldom_alarms(name: str) -> None:
    at_most(false_alarms(SERIES[name][0], runs=2000), 2000, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_fall_by_one_deviation_is_found_within_sixty_values(name: str) -> None:
    at_least(found_falls(*INDEPENDENT[name], runs=1000, within=60), 1000, 0.85)


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_fall_by_half_a_deviation_is_found_within_two_hundred_values(name: str) -> None:
    path, deviation = INDEPENDENT[name]
    at_least(found_falls(path, deviation / 2, runs=1000, within=200), 1000, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("days", [200, 400, 1000])
@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_detectable_change_is_found_in_half_of_the_runs(name: str, days: int) -> None:
    path, deviation = INDEPENDENT[name]
    change = detectable_change(Detector(past=Moments(n=days, squares=float(days - 1))))
    assert change is not None
    before = days - change.days
    falls = found_falls(path, change.deviations * deviation, runs=400, within=change.days, before=before)
    at_least(falls, 400, 0.5)
