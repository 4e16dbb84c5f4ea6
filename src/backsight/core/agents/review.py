"""The review of previous decisions: one short line each, equal no-ops folded, and how often they were right."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backsight.core.agents.resolution import ResolutionStatus
from backsight.core.quantiles import jeffreys
from backsight.core.text.untrusted_text import shorten

SUMMARY, SUMMARY_TOKENS = 60, 24
WORD = 40
"""Characters of a symbol or an action, which are as the agent wrote them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedDecision:
    """A decision of a run or a tick, and what became of it as far as it is known."""

    run_id: str
    at: datetime
    symbol: str | None
    action: str
    """What was decided, like LONG, WAIT or noop."""
    summary: str | None
    takes_position: bool
    status: ResolutionStatus | None = None
    outcome_r: float | None = None
    """The result in R, if the decision is resolved."""
    marked_r: float | None = None
    """The result so far of an active decision."""
    reason: str | None = None
    """Why a decision for a position, or one that does not fit its card type, has no result."""
    conviction: int | None = None
    """The score of the latest re-examination."""
    suggested_action: str | None = None
    count: int = 1
    """How many consecutive equal decisions without a position the line stands for."""
    first_at: datetime | None = None
    """When the first of them was made, if there are several."""
    is_cut: bool = False
    """Whether there may be more of them: no earlier decision was looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTally:
    """How the decisions with a result ended."""

    resolved: int
    won: int
    mean_r: float | None
    hit_rate: float | None
    low: float | None
    """Of the 90% interval of the hit rate."""
    high: float | None

    @property
    def sentence(self) -> str:
        if self.hit_rate is None or self.low is None or self.high is None:
            return "no decision has a result yet"
        mean = "" if self.mean_r is None else f", mean {self.mean_r:+.2f}R"
        interval = f"90%: {100 * self.low:.0f} to {100 * self.high:.0f}%"
        return f"{self.won} of {self.resolved} right, {100 * self.hit_rate:.0f}% ({interval}){mean}"


def tally_of(outcomes: Iterable[float]) -> DecisionTally:
    """The tally of results in R.

    >>> tally_of([2.0, -1.0]).sentence
    '1 of 2 right, 50% (90%: 10 to 90%), mean +0.50R'
    >>> tally_of([]).sentence
    'no decision has a result yet'
    """
    results = list(outcomes)
    if not results:
        return DecisionTally(resolved=0, won=0, mean_r=None, hit_rate=None, low=None, high=None)
    won = sum(result > 0 for result in results)
    rate = won / len(results)
    low, high = jeffreys(rate, len(results))
    mean = sum(results) / len(results)
    return DecisionTally(resolved=len(results), won=won, mean_r=mean, hit_rate=rate, low=low, high=high)


def folded(decisions: Iterable[ReviewedDecision], *, most: int) -> list[ReviewedDecision]:
    """The first lines of decisions, newest first; consecutive equal ones that take no position are one line.

    No more decisions are taken from the iterable than the lines need.
    """
    lines: list[ReviewedDecision] = []
    for decision in decisions:
        last = lines[-1] if lines else None
        if last is not None and _is_repeat(last, decision):
            lines[-1] = replace(last, count=last.count + 1, first_at=decision.at)
        elif len(lines) == most:
            break
        else:
            lines.append(decision)
    return lines


def _is_repeat(newer: ReviewedDecision, older: ReviewedDecision) -> bool:
    contents = [(each.symbol, each.action, each.summary, each.conviction) for each in (newer, older)]
    return not newer.takes_position and not older.takes_position and contents[0] == contents[1]


def ago(at: datetime, now: datetime) -> str:
    """How long ago an instant was, in one unit.

    >>> t0 = datetime(2026, 6, 4)
    >>> [ago(t0 - timedelta(hours=h), t0) for h in (0, 0.5, 5, 49)]
    ['0m ago', '30m ago', '5h ago', '2d ago']
    """
    minutes = max(0, int((now - at) / timedelta(minutes=1)))
    if minutes < 60:
        return f"{minutes}m ago"
    return f"{minutes // 60}h ago" if minutes < 48 * 60 else f"{minutes // 1440}d ago"


def line_of(decision: ReviewedDecision, *, now: datetime) -> str:
    """A decision in one line, like `2d ago · WAIT · range unresolved`."""
    action = shorten(decision.action, most=WORD, tokens=WORD)
    times = f"{action} ×{decision.count}{' or more' if decision.is_cut else ''}" if decision.count > 1 else action
    symbol = shorten(decision.symbol or "", most=WORD, tokens=WORD)
    summary = shorten(decision.summary or "", most=SUMMARY, tokens=SUMMARY_TOKENS)
    parts = [ago(decision.at, now), symbol, times, summary, _became(decision)]
    if decision.conviction is not None:
        advice = f" {decision.suggested_action}" if decision.suggested_action else ""
        parts.append(f"conviction {decision.conviction}{advice}")
    return " · ".join(part for part in parts if part)


def _became(decision: ReviewedDecision) -> str:
    match decision.status:
        case "resolved":
            return "resolved" if decision.outcome_r is None else f"{decision.outcome_r:+.2f}R"
        case "active":
            return "open" if decision.marked_r is None else f"open at {decision.marked_r:+.2f}R"
        case "expired":
            return "never filled"
        case "pending" if not decision.reason:
            return "not filled yet"
        case "pending" | "not_applicable" if decision.reason:
            return shorten(f"not judged: {decision.reason}", most=SUMMARY, tokens=SUMMARY_TOKENS)
        case "pending" | "not_applicable" | None:
            return ""
