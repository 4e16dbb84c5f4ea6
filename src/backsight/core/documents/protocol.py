"""Protocol: the single rules of a trading manual, and which of them apply to a decision."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from backsight.core.documents.chunk import TextBlock, blocks_of
from backsight.core.documents.citation import place_of
from backsight.core.documents.query import words_of

BULLETS = ("- ", "* ", "+ ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A paragraph or a bullet of a manual, with the headings above it."""

    path: str
    start_line: int
    end_line: int
    text: str
    heading: tuple[str, ...]
    words: frozenset[str]
    """The words of the text and of its headings."""

    @property
    def place(self) -> str:
        return place_of(self.path, self.start_line, self.end_line)


@lru_cache(maxsize=64)
def rules_in(path: str, text: str) -> tuple[Rule, ...]:
    """The rules of a document, in order: each bullet and each paragraph without bullets is a rule.

    >>> manual = "# Rules\\n\\n## R3_CAP\\nNever above 2 %\\nof equity.\\n\\n- BTC: no Sundays\\n- stop first\\n"
    >>> for rule in rules_in("M.md", manual):
    ...     rule.place, rule.heading[-1], rule.text
    ('M.md:4-5', 'R3_CAP', 'Never above 2 % of equity.')
    ('M.md:7', 'R3_CAP', 'BTC: no Sundays')
    ('M.md:8', 'R3_CAP', 'stop first')
    """
    return tuple(
        _rule(path, block, first, lines)
        for block in blocks_of(text)
        if not block.is_heading
        for first, lines in _items(block)
    )


def rules_about(rules: Iterable[Rule], names: Iterable[str]) -> list[Rule]:
    """The rules that mention any of the names, word for word; rules that mention more names come first."""
    names_words = [frozenset(words_of(name)) for name in dict.fromkeys(names)]
    counted = [(sum(bool(words) and words <= rule.words for words in names_words), rule) for rule in rules]
    return [rule for count, rule in sorted(counted, key=lambda pair: -pair[0]) if count]


def _items(block: TextBlock) -> list[tuple[int, list[str]]]:
    """The bullets of a block, each with its first line number; the whole block if it has no bullets."""
    items: list[tuple[int, list[str]]] = []
    for number, line in enumerate(block.lines, start=block.first + 1):
        content = line.strip()
        if not content:
            continue
        if not items or content.startswith(BULLETS):
            items.append((number, []))
        items[-1][1].append(content)
    return items


def _rule(path: str, block: TextBlock, first: int, lines: Sequence[str]) -> Rule:
    text = " ".join(lines)
    for mark in BULLETS:
        text = text.removeprefix(mark)
    return Rule(
        path=path,
        start_line=first,
        end_line=first + len(lines) - 1,
        text=text,
        heading=block.heading,
        words=frozenset(words_of(" ".join([*block.heading, text]))),
    )
