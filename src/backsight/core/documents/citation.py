"""Citations: lines of a document that answer a query."""

from dataclasses import dataclass
from typing import Literal, get_args

from backsight.core.errors import Invalid

Source = Literal[
    "soul",
    "manual",
    "journal",
    "memory",
    "strategy",
    "artifact",
    "incident",
    "global",
    "run",
    "decision",
    "review",
]
SOURCES: tuple[Source, ...] = get_args(Source)
"""Kinds of documents: files of the workspace, and documents written from rows of the store (run, decision, review)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchFactors:
    """The parts of a citation's score; None if that search method did not find the chunk."""

    keyword: float | None = None
    """The share of the query's words in the chunk, 0 to 1, weighed by their rarity."""
    vector: float | None = None
    """Cosine similarity of the embeddings."""
    recency: float = 1.0
    """Factor for the age of the document: 1 is new or does not age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Lines of a document that answer a query."""

    path: str
    start_line: int
    end_line: int
    score: float
    """How likely the lines answer the query, 0 to 1; comparable between queries. The order of citations also weighs
    what distinguishes the candidates of one query."""
    snippet: str
    """The text of the lines."""
    source: Source
    heading: tuple[str, ...] = ()
    """The headings above the lines, outermost first."""
    factors: MatchFactors = MatchFactors()
    shortened: bool = False
    """Whether the snippet is only the beginning of very long lines."""

    @property
    def place(self) -> str:
        """Path and lines as text.

        >>> Citation(path="journal/a.md", start_line=4, end_line=9, score=0.5, snippet="…", source="journal").place
        'journal/a.md:4-9'
        """
        return place_of(self.path, self.start_line, self.end_line)


def place_of(path: str, start_line: int, end_line: int) -> str:
    """Path and lines as text; a single line is given once.

    >>> place_of("SOUL.md", 3, 3)
    'SOUL.md:3'
    """
    return f"{path}:{start_line}" if start_line == end_line else f"{path}:{start_line}-{end_line}"


def read_place(text: str, *, field: str = "citation") -> tuple[str, int, int]:
    """The path, first line and last line of a citation written as text.

    >>> read_place("journal/a.md:4-9"), read_place("SOUL.md:3")
    (('journal/a.md', 4, 9), ('SOUL.md', 3, 3))
    """
    path, _, lines = text.rpartition(":")
    first, _, last = lines.partition("-")
    if path and _is_line_number(first) and (not last or _is_line_number(last)):
        start, end = int(first), int(last or first)
        if 1 <= start <= end:
            return path, start, end
    raise Invalid(
        f"{text[:40]!r} is not a citation; write path and lines, as in 'journal/2026-06-04.md:4-9'", field=field
    )


def _is_line_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9
