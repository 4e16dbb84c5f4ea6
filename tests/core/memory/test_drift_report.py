"""Drift in sentences: what was found, and what would have been found."""

from datetime import UTC, datetime, timedelta

import pytest

from backsight.core.memory.drift import Detector, watch
from backsight.core.memory.drift_report import drift_report

T0 = datetime(2026, 1, 1, tzinfo=UTC)
STEADY = (1.0, -1.0) * 50


def watched(*values: float) -> Detector:
    detector = Detector()
    for day, value in enumerate(values):
        detector = watch(detector, value, at=T0 + timedelta(days=day)).detector
    return detector


def test_a_fall_is_reported_with_its_means_its_beginning_and_its_detector() -> None:
    drift = drift_report("R", watched(*STEADY, *[-3.0] * 8), now=T0 + timedelta(days=200))
    assert (drift.turn, drift.detector, drift.degrading) == ("down", "fast", True)
    assert drift.message.startswith("The mean outcome fell from +0.0")
    assert "standard deviations of a day) on about 2026-04-" in drift.message
    assert "; fast detector. What could be found is reported from 150 days on; there are " in drift.message


def test_sizes_are_never_degrading() -> None:
    drift = drift_report("size", watched(*[0.02] * 60, *[0.01] * 8), now=T0 + timedelta(days=200))
    assert (drift.turn, drift.degrading) == ("down", False)
    assert drift.message.startswith("Size fell from 2% of equity to 1% of equity")


@pytest.mark.parametrize(("series", "size"), [("R", "1.08R"), ("vol", "1.08 daily ATR"), ("pct", "108.")])
def test_without_a_change_the_detectable_change_is_named(series: str, size: str) -> None:
    drift = drift_report(series, watched(*STEADY * 2), now=T0 + timedelta(days=300))
    assert drift.detectable is not None
    assert drift.message.startswith(f"The mean outcome: no change found in 200 days. A change of {size}")
    assert drift.message.endswith("over the last 100 days would be found in at least half of the cases.")


def test_values_that_do_not_vary_say_that_nothing_could_be_found() -> None:
    drift = drift_report("R", watched(*[1.0] * 200), now=T0 + timedelta(days=300))
    assert drift.detectable is None
    assert "No change could have been found since" in drift.message
