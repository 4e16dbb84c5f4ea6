"""Citations: where something is written, to the line."""

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
"""What kind of document it is: a file of the workspace, or what the store tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What a score is made of; None where that half did not find it."""

    keyword: float | None = None
    """0 to 1; the better the words match, the larger."""
    vector: float | None = None
    """Cosine of the meaning."""
    recency: float = 1.0
    """What is left of it by its age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """Lines of a document that answer a query; the lines are the snippet."""

    path: str
    start_line: int
    end_line: int
    score: float
    """0 to 1; the larger, the better."""
    snippet: str
    source: Source
    heading: tuple[str, ...] = ()
    """The headings above the lines, the outermost first."""
    factors: Factors = Factors()
    shortened: bool = False
    """Whether the snippet is only the beginning of the lines, since they are very long."""

    @property
    def place(self) -> str:
        """Where it is, as text.

        >>> Citation(path="journal/a.md", start_line=4, end_line=9, score=0.5, snippet="…", source="journal").place
        'journal/a.md:4-9'
        """
        return place_of(self.path, self.start_line, self.end_line)


def place_of(path: str, start_line: int, end_line: int) -> str:
    """Lines of a document as text; one line is named once.

    >>> place_of("SOUL.md", 3, 3)
    'SOUL.md:3'
    """
    return f"{path}:{start_line}" if start_line == end_line else f"{path}:{start_line}-{end_line}"


def read_place(text: str, *, field: str = "citation") -> tuple[str, int, int]:
    """The path and the lines that a text names.

    >>> read_place("journal/a.md:4-9"), read_place("SOUL.md:3")
    (('journal/a.md', 4, 9), ('SOUL.md', 3, 3))
    """
    path, _, lines = text.rpartition(":")
    first, _, last = lines.partition("-")
    if path and _is_line(first) and (not last or _is_line(last)):
        start, end = int(first), int(last or first)
        if 1 <= start <= end:
            return path, start, end
    raise Invalid(f"{text[:40]!r} names no lines; give them like 'journal/2026-06-04.md:4-9'", field=field)


def _is_line(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9
