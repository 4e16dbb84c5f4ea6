"""Decisions as documents: what was proposed, why, and what became of it, one document a deployment and day."""

from collections.abc import Iterable

from backsight.core.decision import Decision
from backsight.core.instants import format_instant

FOLDER = "decisions"
"""No file of a workspace is in it."""


def path_of(deployment_id: str, day: str) -> str:
    """The path of the decisions of a deployment on a day.

    >>> path_of("d1", "2026-06-04")
    'decisions/d1/2026-06-04.md'
    """
    return f"{FOLDER}/{deployment_id}/{day}.md"


def trace_of(decisions: Iterable[Decision], day: str) -> str:
    """The decisions of a day as a text, a heading each, oldest first."""
    return f"# Decisions of {day}\n\n" + "\n".join(map(_entry, decisions))


def _entry(decision: Decision) -> str:
    verdict = decision.verdict
    told = {
        "symbol": decision.symbol,
        "strategy": decision.strategy_id,
        "reason": decision.reason,
        "confidence": None if decision.confidence is None else f"{decision.confidence:g}",
        "rule": verdict.rule,
        "detail": verdict.detail,
        "proposal": decision.proposal,
    }
    lines = [f"- {name}: {_one_line(value)}" for name, value in told.items() if value]
    about = f" {decision.symbol}" if decision.symbol else ""
    return "\n".join([f"## {format_instant(decision.at)} {verdict.kind}{about}", "", *lines, ""])


def _one_line(text: str) -> str:
    return " ".join(text.split())
