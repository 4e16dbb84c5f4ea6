"""Drift: few false alarms, and a change is detected soon."""

import math
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.errors import Invalid
from backsight.core.memory.drift import Alarm, Detector, DriftUpdate, settle, standardised, watch
from backsight.core.statistics import moments_of, rate_bounds

T0 = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
Draw = Callable[[random.Random], float]


def student_3(rng: random.Random) -> float:
    return rng.gauss(0, 1) / math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)) / 3)


SERIES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng: rng.gauss(0, 1), 1.0),
    "Student t3": (student_3, math.sqrt(3)),
    "2R or -1R, fair": (lambda rng: 2.0 if rng.random() < 1 / 3 else -1.0, math.sqrt(2)),
    "5 % winners of 20R": (lambda rng: 20.0 if rng.random() < 0.05 else -1.0, 21 * math.sqrt(0.05 * 0.95)),
}


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
    alarm, *more = watched(*STEADY, *[-3.0] * 6).alarms
    assert not more
    assert alarm.turn == "down"
    assert T0 + 99 * DAY <= alarm.since <= T0 + 100 * DAY < alarm.at
    assert alarm.before.mean == pytest.approx(0.0, abs=0.02)
    assert alarm.magnitude == pytest.approx((alarm.after.mean - alarm.before.mean) / (alarm.before.deviation or 0))
    assert alarm.magnitude < -2


def test_a_rise_is_no_degrading() -> None:
    update = watched(*STEADY, *[3.0] * 6)
    assert [alarm.turn for alarm in update.alarms] == ["up"]
    assert not update.detector.degrading


def test_degrading_lasts_for_a_hundred_quiet_values() -> None:
    fall, quiet = (*STEADY, *[-3.0] * 6), (-2.0, -4.0) * 50
    already = watched(*fall).detector.quiet
    assert watched(*fall, *quiet[: 99 - already]).detector.degrading
    assert not watched(*fall, *quiet[: 100 - already]).detector.degrading


def test_degrading_ends_with_a_rise() -> None:
    fallen = watched(*STEADY, *[-3.0] * 6, *(-2.0, -4.0) * 20)
    assert fallen.detector.degrading
    risen = watched(*STEADY, *[-3.0] * 6, *(-2.0, -4.0) * 20, *[3.0] * 6)
    assert [alarm.turn for alarm in risen.alarms] == ["down", "up"]
    assert not risen.detector.degrading


def test_after_an_alarm_the_past_begins_where_the_change_did() -> None:
    update = watched(*STEADY, *[-3.0] * 6)
    alarm = update.alarms[0]
    since = (alarm.at - alarm.since).days + 1
    assert alarm.after.n == since
    assert update.detector.past.n == since + update.detector.quiet
    assert (update.detector.up.total, update.detector.down.total) == (0.0, 0.0)


def test_the_first_thirty_values_raise_nothing() -> None:
    assert watched(*STEADY[:15], *[-50.0] * 15).alarms == ()
    assert watched(*STEADY[:30], *[-50.0] * 6).alarms


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
    detector = watch_all(daily([*STEADY, *[-3.0] * 5])).detector
    evening = T0 + (len(STEADY) + 4) * DAY + timedelta(hours=23)
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


def false_alarms(draw: Draw, runs: int) -> int:
    """Of so many runs of 1,000 values that do not change, those with an alarm."""

    def alarmed(rng: random.Random) -> bool:
        return bool(watched(*(draw(rng) for _ in range(1000))).alarms)

    return sum(alarmed(random.Random(seed)) for seed in range(runs))


def found_falls(draw: Draw, deviation: float, runs: int) -> int:
    """Of so many falls by one standard deviation after 200 values, those found within 60."""

    def is_found(rng: random.Random) -> bool:
        alarms = watched(*(draw(rng) - (deviation if n >= 200 else 0.0) for n in range(260))).alarms
        return any(alarm.turn == "down" and alarm.at >= T0 + 200 * DAY for alarm in alarms)

    return sum(is_found(random.Random(seed)) for seed in range(runs))


@pytest.mark.parametrize("name", SERIES)
def test_a_few_falls_are_found(name: str) -> None:
    assert found_falls(*SERIES[name], runs=5) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("name", SERIES)
def test_what_does_not_change_seldom_alarms(name: str) -> None:
    alarmed = false_alarms(SERIES[name][0], runs=600)
    assert rate_bounds(alarmed, 600)[1] <= 0.05, f"{alarmed} of 600"


@pytest.mark.slow
@pytest.mark.parametrize("name", SERIES)
def test_a_fall_by_one_deviation_is_found_within_sixty_values(name: str) -> None:
    falls = found_falls(*SERIES[name], runs=300)
    assert rate_bounds(falls, 300)[0] >= 0.85, f"{falls} of 300"
