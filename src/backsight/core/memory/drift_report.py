"""Drift for people: what a detector found, or the smallest change that it would have found by now."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.memory.drift import (
    FIRST_DETECTABLE,
    DetectableChange,
    Detector,
    Speed,
    Turn,
    detectable_change,
    settle,
)
from backsight.core.numbers import signed
from backsight.core.trades.trade import unit_suffix

SIZE = "size"
"""The name of the series of sizes; a series of outcomes has the name of its unit."""
PERCENT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether the level of a series has changed, and how; if not, what change would have been found."""

    series: str
    """`size` (as a share of equity), or the unit of a series of outcomes: `R`, `vol` or `pct`."""
    values: int
    """How many days the test has seen since it last began."""
    degrading: bool
    """Whether outcomes have fallen and not recovered; always false for sizes."""
    turn: Turn | None
    """The direction of the latest alarm; None where there was no alarm."""
    detector: Speed | None
    """Which detector raised the latest alarm: fast for large changes, slow for small ones."""
    at: datetime | None
    since: datetime | None
    magnitude: float | None
    """By how many standard deviations the mean moved."""
    detectable: DetectableChange | None
    """The smallest change that would have been found by now in at least half of the cases; None before 150 days."""
    message: str


def drift_report(series: str, detector: Detector, *, now: datetime) -> Drift:
    """The state of a series at an instant, in figures and in a sentence."""
    settled = settle(detector, now=now).detector
    latest, detectable = settled.latest, detectable_change(settled)
    return Drift(
        series=series,
        values=settled.past.n,
        degrading=settled.degrading and series != SIZE,
        turn=None if latest is None else latest.turn,
        detector=None if latest is None else latest.detector,
        at=None if latest is None else latest.at,
        since=None if latest is None else latest.since,
        magnitude=None if latest is None else latest.magnitude,
        detectable=detectable,
        message=f"{_change_sentence(series, settled)} {_detectable_sentence(series, settled, detectable)}",
    )


def _change_sentence(series: str, detector: Detector) -> str:
    name, latest = "Size" if series == SIZE else "The mean outcome", detector.latest
    if latest is None:
        return f"{name}: no change found in {detector.past.n} days."
    way = "rose" if latest.turn == "up" else "fell"
    means = f"{amount_of(series, latest.before.mean)} to {amount_of(series, latest.after.mean)}"
    change = f"{abs(latest.magnitude):.1f} standard deviations of a day"
    return f"{name} {way} from {means} ({change}) on about {latest.since:%Y-%m-%d}; {latest.detector} detector."


def _detectable_sentence(series: str, detector: Detector, detectable: DetectableChange | None) -> str:
    if detectable is None:
        if detector.past.n >= FIRST_DETECTABLE:
            return "No change could have been found since: the values do not vary, or follow each other too closely."
        return f"What could be found is reported from {FIRST_DETECTABLE} days on; there are {detector.past.n}."
    size = amount_of(series, detectable.size).lstrip("+")
    change = f"{size} ({detectable.deviations:.2f} standard deviations)"
    return f"A change of {change} over the last {detectable.days} days would be found in at least half of the cases."


def amount_of(series: str, value: float) -> str:
    """A value of a series with its unit.

    >>> amount_of("R", -0.25), amount_of("pct", 0.0123), amount_of("vol", 0.5), amount_of("size", 0.025)
    ('-0.25R', '+1.23%', '+0.50 daily ATR', '2.5% of equity')
    """
    match series:
        case "size":
            return f"{PERCENT * value:.2g}% of equity"
        case "pct":
            return f"{signed(PERCENT * value, 2)}{unit_suffix('pct')}"
        case "vol":
            return f"{signed(value, 2)}{unit_suffix('vol')}"
        case _:
            return f"{signed(value, 2)}{unit_suffix('R')}"
