"""Rules and incidents: what the owner's manual says of this and what went wrong before, with where it stands."""

from collections.abc import Iterable, Sequence

from backsight.core.documents.citation import Citation
from backsight.core.documents.protocol import Rule
from backsight.core.prompts.sections import Row, Section, section_of
from backsight.core.text.untrusted_text import quote, shorten

HEADING = "## Rules and incidents (from the workspace)"
MOST = 160
"""Characters of a rule."""


def rules_and_incidents(
    told: Sequence[Rule], others: Sequence[Rule] = (), incidents: Iterable[Citation] = ()
) -> Section:
    """Rules that speak of this first, then incidents, then the other rules, as many of them as fit."""
    rows = [Row(rule_line(rule), 0) for rule in told]
    rows += [Row(incident_line(each), 1) for each in incidents]
    rows += [Row(rule_line(rule), 2) for rule in others]
    return section_of("rules_and_incidents", HEADING, rows)


def rule_line(rule: Rule) -> str:
    """A rule on one line, under its name, with where it stands; the owner's words are no quote."""
    named = f"{shorten(rule.heading[-1], most=40, tokens=20)}: " if rule.heading else ""
    return f"- {named}{shorten(rule.text, most=MOST, tokens=60)} ({shorten(rule.place, most=80, tokens=40)})"


def incident_line(citation: Citation) -> str:
    """What is written of an incident, as a quote, with where it stands."""
    said = " ".join(line for line in citation.snippet.splitlines() if line.strip() and not line.startswith("#"))
    return f"- incident: {quote(said, most=MOST, tokens=60)} ({shorten(citation.place, most=80, tokens=40)})"
