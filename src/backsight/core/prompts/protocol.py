"""The prompt section with rules of the owner's manual and past incidents, each with its file and lines."""

from collections.abc import Iterable, Sequence

from backsight.core.documents.citation import Citation
from backsight.core.documents.protocol import Rule
from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.text.untrusted_text import quote, shorten

HEADING = "## Rules and incidents (from the workspace)"
MOST = 160
"""Characters of a rule or an incident."""


def rules_and_incidents(
    applying: Sequence[Rule], others: Sequence[Rule] = (), incidents: Iterable[Citation] = ()
) -> Section:
    """Rules that apply to the decision first, then incidents, then the other rules; as many as fit."""
    rows = [Row(rule_line(rule), 0) for rule in applying]
    rows += [Row(incident_line(incident), 1) for incident in incidents]
    rows += [Row(rule_line(rule), 2) for rule in others]
    return section_of("rules_and_incidents", HEADING, rows)


def rule_line(rule: Rule) -> str:
    """A rule on one line with its heading and its place; not quoted, since the owner wrote it."""
    heading = f"{shorten(rule.heading[-1], most=40, tokens=20)}: " if rule.heading else ""
    return f"- {heading}{shorten(rule.text, most=MOST, tokens=60)} ({shorten(rule.place, most=80, tokens=40)})"


def incident_line(citation: Citation) -> str:
    """The text of an incident as a quote, with its place."""
    report = " ".join(line for line in citation.snippet.splitlines() if line.strip() and not line.startswith("#"))
    return f"- incident: {quote(report, most=MOST, tokens=60)} ({shorten(citation.place, most=80, tokens=40)})"
