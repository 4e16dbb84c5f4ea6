"""Evidence as a person reads it: every group that was looked at, and what it lacks to become a lesson."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.reflection.alpha_spending import FIRST_TEST, significance_level
from backsight.core.reflection.patterns import Measure, Pattern, TradeEvidence
from backsight.core.strategies import Slot
from backsight.core.trades.trade import OutcomeUnit

MIN_TRADES_AND_DAYS = 8
"""Trades, and days of them, in a group and besides it: as `evidence` has it, which needs NumPy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group of trades beside the rest of them."""

    key: str
    """What lessons cite."""
    slot: Slot
    label: str
    measure: Measure
    unit: OutcomeUnit | None
    n: int
    days: int
    mean: float
    interval: tuple[float, float] | None
    """Holds the true mean with 90 %."""
    win_rate: float | None
    rest_n: int
    rest_mean: float
    rest_win_rate: float | None
    difference: float
    difference_interval: tuple[float, float] | None
    found_at: datetime | None
    """Since when lessons may rest on it; None: they may not."""
    p: float | None
    """How often chance alone makes as much of any group, when it was found."""
    missing: str | None
    """What it lacks to be a lesson; None where it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """What a strategy's last closed trades show."""

    as_of: datetime
    closed: int
    """All that were closed by then."""
    considered: int
    """Those that were looked at, at most 500."""
    days: int
    unit: OutcomeUnit | None
    level: float
    """At which new patterns were tested for; 0 where this was no time to test."""
    next_test_at: int
    """With how many trades closed the next test is."""
    groups: tuple[GroupView, ...]
    """Those that are large enough, what lessons may rest on first, then by how far they differ."""
    lost: tuple[str, ...]
    """Keys of patterns that no longer stand out."""
    missing: str | None
    """What all of them lack; None where there is a pattern."""


def describe_evidence(evidence: TradeEvidence) -> EvidenceView:
    """The evidence with every group, each saying what it lacks."""
    found = {pattern.key: place for place, pattern in enumerate(evidence.patterns)}
    groups = sorted(evidence.groups, key=lambda each: (found.get(each.key, len(found)), -_strength(each), each.key))
    return EvidenceView(
        as_of=evidence.as_of,
        closed=evidence.closed,
        considered=evidence.n,
        days=evidence.days,
        unit=evidence.unit,
        level=evidence.level,
        next_test_at=next_test(evidence),
        groups=tuple(_group(each, evidence) for each in groups),
        lost=evidence.lost,
        missing=None if evidence.patterns else _nothing(evidence),
    )


def next_test(evidence: TradeEvidence) -> int:
    """With how many trades closed new patterns are tested for again."""
    looks = evidence.carried.looks
    tested_at, closed = looks[-1].closed if looks else 0, max(evidence.closed + 1, FIRST_TEST)
    while not significance_level(closed, tested_at=tested_at):
        closed += 1
    return closed


def _group(pattern: Pattern, evidence: TradeEvidence) -> GroupView:
    found = next((each for each in evidence.carried.found if each.key == pattern.key), None)
    return GroupView(
        key=pattern.key,
        slot=pattern.slot,
        label=pattern.label,
        measure=pattern.measure,
        unit=pattern.unit,
        n=pattern.n,
        days=pattern.days,
        mean=pattern.mean,
        interval=pattern.interval,
        win_rate=pattern.win_rate,
        rest_n=pattern.rest_n,
        rest_mean=pattern.rest_mean,
        rest_win_rate=pattern.rest_win_rate,
        difference=pattern.difference,
        difference_interval=pattern.difference_interval,
        found_at=None if found is None else found.since,
        p=None if found is None else found.p,
        missing=None if found is not None else _lacks(pattern, evidence),
    )


def _lacks(pattern: Pattern, evidence: TradeEvidence) -> str:
    """Why a group that is large enough is no pattern."""
    if not pattern.stands_out:
        return "its interval reaches the mean of the rest"
    if not evidence.level:
        return f"not tested now; the next test is at {next_test(evidence)} closed trades"
    return f"chance and what was found already make as much too often (level {evidence.level:.4f})"


def _nothing(evidence: TradeEvidence) -> str:
    """Why there is no pattern at all."""
    if evidence.closed < FIRST_TEST:
        return f"{evidence.closed} closed trades; the first test is at {FIRST_TEST}"
    if not evidence.groups:
        return f"no group has {MIN_TRADES_AND_DAYS} trades on {MIN_TRADES_AND_DAYS} days with as many besides it"
    if not evidence.level:
        return f"nothing was tested now; the next test is at {next_test(evidence)} closed trades"
    return f"no group differs from the rest by more than chance makes of so many (level {evidence.level:.4f})"


def _strength(pattern: Pattern) -> float:
    return abs(pattern.difference) / pattern.half if pattern.half else 0.0
