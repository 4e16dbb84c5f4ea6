"""Evidence for people: every group that was compared, and why it is not a lesson."""

from dataclasses import dataclass
from datetime import datetime

from backsight.core.reflection.alpha_spending import FIRST_TEST, next_test
from backsight.core.reflection.patterns import Measure, Pattern, TradeEvidence, WatchedPattern
from backsight.core.strategies import Slot
from backsight.core.text.counts import count_of
from backsight.core.trades.trade import OutcomeUnit

MIN_TRADES_AND_DAYS = 8
"""As in `evidence`, which is not imported here because it needs NumPy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group of trades compared with the rest."""

    key: str
    """The key that lessons cite."""
    slot: Slot
    label: str
    measure: Measure
    unit: OutcomeUnit | None
    n: int
    unknown: int
    """The number of further trades of the group, whose outcome is not known in the unit."""
    days: int
    mean: float
    interval: tuple[float, float] | None
    """90% confidence interval of the mean."""
    win_rate: float | None
    rest_n: int
    rest_mean: float
    rest_win_rate: float | None
    difference: float
    difference_interval: tuple[float, float] | None
    found_at: datetime | None
    """Since when the group is a significant pattern that lessons may cite; None if it is not."""
    p: float | None
    """The p-value, corrected for all groups compared: when the pattern was found, or now if it is not one."""
    missing: str | None
    """Why the group is not a lesson; None if it is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """What a strategy's latest closed trades show."""

    as_of: datetime
    closed: int
    """The number of all trades closed by then."""
    considered: int
    """The number of trades analysed, at most 500."""
    days: int
    unit: OutcomeUnit | None
    level: float
    """The significance level of the test for new patterns; 0 if no test was due."""
    next_test_at: int
    """The number of closed trades at which the next test is due."""
    watched: tuple[WatchedPattern, ...]
    """The watch list: the strongest groups that are not proven yet, at most five."""
    groups: tuple[GroupView, ...]
    """All groups that are large enough: significant patterns first, then by the size of the difference."""
    lost: tuple[str, ...]
    """Keys of formerly significant patterns that no longer stand out."""
    missing: str | None
    """Why there is no pattern at all; None if there is one."""


def describe_evidence(evidence: TradeEvidence) -> EvidenceView:
    """The evidence with every group, and the reason why a group is not a lesson."""
    rank = {pattern.key: index for index, pattern in enumerate(evidence.patterns)}
    groups = sorted(evidence.groups, key=lambda group: (rank.get(group.key, len(rank)), -_strength(group), group.key))
    return EvidenceView(
        as_of=evidence.as_of,
        closed=evidence.closed,
        considered=evidence.n,
        days=evidence.days,
        unit=evidence.unit,
        level=evidence.level,
        next_test_at=_next_test(evidence),
        watched=evidence.watched,
        groups=tuple(_group_view(group, evidence) for group in groups),
        lost=evidence.lost,
        missing=None if evidence.patterns else _why_no_pattern(evidence),
    )


def watch_message(evidence: TradeEvidence) -> str:
    """What the watch list means, or why it is empty."""
    if evidence.watched:
        return "Not proven: chance may still explain these patterns. They are no lessons, and propose nothing."
    if evidence.groups:
        return f"Nothing is watched: no other group comes near significance {_correction(evidence)}."
    return f"Nothing is watched: {_why_no_pattern(evidence)}."


def _group_view(group: Pattern, evidence: TradeEvidence) -> GroupView:
    significant = next((each for each in evidence.search_state.found if each.key == group.key), None)
    return GroupView(
        key=group.key,
        slot=group.slot,
        label=group.label,
        measure=group.measure,
        unit=group.unit,
        n=group.n,
        unknown=group.unknown,
        days=group.days,
        mean=group.mean,
        interval=group.interval,
        win_rate=group.win_rate,
        rest_n=group.rest_n,
        rest_mean=group.rest_mean,
        rest_win_rate=group.rest_win_rate,
        difference=group.difference,
        difference_interval=group.difference_interval,
        found_at=None if significant is None else significant.since,
        p=evidence.p_values.get(group.key) if significant is None else significant.p,
        missing=None if significant is not None else _why_no_lesson(group, evidence),
    )


def _why_no_lesson(group: Pattern, evidence: TradeEvidence) -> str:
    """Why a group that is large enough is not a pattern."""
    if not group.stands_out:
        return "the 90% interval of its mean includes the mean of the rest"
    if group.key in evidence.passed_over:
        return evidence.passed_over[group.key]
    if not evidence.level:
        return f"not tested now; the next test is at {_next_test(evidence)} closed trades"
    p = evidence.p_values.get(group.key, 1.0)
    return f"not significant (p = {p:.2g}, level {evidence.level:.2g}) {_correction(evidence)}"


def _why_no_pattern(evidence: TradeEvidence) -> str:
    """Why there is no pattern at all."""
    if evidence.closed < FIRST_TEST:
        return f"{count_of(evidence.closed, 'closed trade')}; the first test is at {FIRST_TEST}"
    if not evidence.groups:
        return f"no group has {MIN_TRADES_AND_DAYS} trades on {MIN_TRADES_AND_DAYS} days with as many besides it"
    if not evidence.level:
        return f"nothing was tested now; the next test is at {_next_test(evidence)} closed trades"
    return f"no group differs significantly from the rest {_correction(evidence)} (level {evidence.level:.4f})"


def _next_test(evidence: TradeEvidence) -> int:
    looks = evidence.search_state.looks
    return next_test(evidence.closed, tested_at=looks[-1].closed if looks else 0)


def _correction(evidence: TradeEvidence) -> str:
    groups = len(evidence.groups)
    known_patterns = " and for the patterns found" if evidence.patterns else ""
    return f"after correction for {groups} comparison{'' if groups == 1 else 's'}{known_patterns}"


def _strength(group: Pattern) -> float:
    return abs(group.difference) / group.half_width if group.half_width else 0.0
