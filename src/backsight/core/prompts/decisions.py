"""The section of the prompt that shows an agent its previous decisions."""

from collections.abc import Sequence

from backsight.core.prompts.sections import Section, section_of
from backsight.core.text.untrusted_text import shorten

HEADING = "## Your last decisions"
LINE, LINE_TOKENS = 110, 34


def decisions_under_review(lines: Sequence[str], *, tally: str = "") -> Section:
    """The last decisions, newest first, and how often they were right; cut to the ceiling of the section.

    >>> print(decisions_under_review(["2d ago · WAIT · range unresolved"]).text)
    ## Your last decisions
    - 2d ago · WAIT · range unresolved
    """
    rows = [f"- {shorten(line, most=LINE, tokens=LINE_TOKENS)}" for line in lines]
    return section_of("decisions_under_review", HEADING, rows, after=f"Results: {tally}." if tally else "")
