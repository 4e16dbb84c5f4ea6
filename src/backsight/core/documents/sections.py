"""Sections: the lines of a chunk that answer a query, so that a rule is cited alone and not with its neighbours."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from backsight.core.documents.chunk import TextBlock, blocks_of
from backsight.core.documents.citation import Source
from backsight.core.documents.protocol import rule_spans
from backsight.core.documents.query import Term, words_of
from backsight.core.text.stems import distinct_stem

MOST_OF = 0.75
"""A section is cited alone if it has at least this share of what the chunk has of the query."""
RULE_SOURCES: frozenset[Source] = frozenset({"soul", "manual"})
"""Sources in which a list item or a table row is cited alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSection:
    """Consecutive lines of a chunk, with the headings above them."""

    first: int
    """Index of the first line in the chunk, counted from 0."""
    lines: tuple[str, ...]
    heading: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.lines)


def answering_section(
    text: str, heading: tuple[str, ...], weights: Mapping[Term, float], *, source: Source
) -> ChunkSection | None:
    """The section of a chunk that has most of the query's words; None if no single section has.

    `heading` is what all sections of the chunk share, and `weights` are the words of the query.

    >>> rules = "# Rules\\n\\n## Cap\\nNever above 2%.\\n\\n## Stops\\nStop first.\\n"
    >>> section = answering_section(rules, ("Rules",), {Term(words=("stops",)): 1.0}, source="manual")
    >>> section.first, section.text, section.heading
    (5, '## Stops\\nStop first.\\n', ('Rules', 'Stops'))
    """
    blocks = blocks_of(text)
    sections = list(_sections(blocks, heading))
    whole = _weight(text, heading, weights)
    best = max(sections, key=lambda section: _weight(section.text, section.heading, weights), default=None)
    if best is None or not whole or _weight(best.text, best.heading, weights) < MOST_OF * whole:
        return None
    reached = _weight(best.text, best.heading, weights)
    rules = list(_rules(blocks, best)) if source in RULE_SOURCES else []
    alone = [section for section, words in rules if _weight(words, best.heading, weights) >= reached]
    return alone[0] if len(alone) == 1 < len(rules) else best


def _sections(blocks: Collection[TextBlock], shared: tuple[str, ...]) -> Iterator[ChunkSection]:
    """Each heading with the text below it, up to the next heading."""
    first, lines, path = 0, list[str](), tuple[str, ...]()
    for block in blocks:
        if block.is_heading and lines:
            yield _section(first, lines, path, shared)
            lines = []
        if not lines:
            first, path = block.first, block.heading
        lines += block.lines
    if lines:
        yield _section(first, lines, path, shared)


def _section(first: int, lines: Collection[str], path: tuple[str, ...], shared: tuple[str, ...]) -> ChunkSection:
    """A section without the blank lines at its end; `shared` are headings that may stand above the chunk."""
    trimmed = list(lines)
    while len(trimmed) > 1 and not trimmed[-1].strip():
        trimmed.pop()
    heading = path if path[: len(shared)] == shared else shared + path
    return ChunkSection(first=first, lines=tuple(trimmed), heading=heading)


def _rules(blocks: Sequence[TextBlock], section: ChunkSection) -> Iterator[tuple[ChunkSection, str]]:
    """The list items and table rows of a section, each with its text, which has the names of a table's columns.

    The lines of an item begin with the line that introduces its list: without "Never:" it could mean the opposite.
    """
    last = section.first + len(section.lines)
    for span in rule_spans(blocks):
        if section.first <= span.first < last:
            first = max(span.introduced_at, section.first)
            lines = section.lines[first - section.first : span.end - section.first]
            text = f"{span.introduction} {span.text}"
            yield ChunkSection(first=first, lines=lines, heading=section.heading), text


def _weight(text: str, heading: Collection[str], weights: Mapping[Term, float]) -> float:
    """The weight of the query's words that a text or its headings contain."""
    words = {*words_of(text), *words_of(" ".join(heading))}
    stems = {distinct_stem(word) for word in words}
    return sum(weight for term, weight in weights.items() if _has(term, words, stems))


def _has(term: Term, words: Collection[str], stems: Collection[str]) -> bool:
    if term.spellings:
        return any(word in words for word in term.spellings)
    if term.prefix:
        return any(word.startswith(term.words[-1]) for word in words)
    return all(distinct_stem(word) in stems for word in term.words)
