"""Protocol: the single rules of a trading manual, and which of them apply to a decision."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from backsight.core.documents.chunk import TextBlock, blocks_of
from backsight.core.documents.citation import place_of
from backsight.core.documents.query import words_of

ITEM = re.compile(r"^(?:[-*+]|\d{1,4}[.)])\s+")
"""The mark of a list item, numbered or not."""
TABLE_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A paragraph, a list item or a table row of a manual, with the headings above it."""

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
    """The rules of a document, in order: each list item, each table row and each paragraph without items is a rule.

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
    """The rules that mention any of the names, word for word; rules that mention more names come first.

    >>> [rule.text for rule in rules_about(rules_in("M.md", "1. EUR/USD: no news\\n2. EURUSD: half\\n"), ["EURUSD"])]
    ['EUR/USD: no news', 'EURUSD: half']
    """
    wanted = list(dict.fromkeys(names))
    counted = [(_mentioned(rule.words, wanted), rule) for rule in rules]
    return [rule for count, rule in sorted(counted, key=lambda pair: -pair[0]) if count]


def mentions(text: str, names: Iterable[str]) -> bool:
    """Whether a text mentions any of the names, word for word."""
    return _mentioned(frozenset(words_of(text)), names) > 0


def rule_lines(block: TextBlock) -> list[tuple[int, int]]:
    """The first line and the line after the last of each list item or table row of a block, counted from 0."""
    return [(first - 1, first - 1 + len(lines)) for first, lines in _items(block)]


def _mentioned(words: frozenset[str], names: Iterable[str]) -> int:
    """How many of the names are among the words: all words of a name, or a pair like `EUR/USD` as one word."""
    return sum(any(spelling and spelling <= words for spelling in _spellings(name)) for name in names)


def _spellings(name: str) -> tuple[frozenset[str], ...]:
    """The words of a name; of a pair like `EUR/USD` the parts, or the pair as one word."""
    words = list(words_of(name))
    joined = words[0] if len(words) == 3 and words[0] == words[1] + words[2] else None
    return (frozenset(words), frozenset()) if joined is None else (frozenset(words[1:]), frozenset([joined]))


def _items(block: TextBlock) -> list[tuple[int, list[str]]]:
    """The list items or table rows of a block, each with its first line number; else the whole block.

    An indented item belongs to the item above it.
    """
    numbered = [(number, line) for number, line in enumerate(block.lines, start=block.first + 1) if line.strip()]
    if rows := _table_rows(numbered):
        return rows
    items: list[tuple[int, list[str]]] = []
    outermost = min((_indent(line) for _, line in numbered if ITEM.match(line.strip())), default=0)
    for number, line in numbered:
        starts = ITEM.match(line.strip()) is not None and _indent(line) <= outermost
        if not items or starts:
            items.append((number, []))
        items[-1][1].append(line.strip())
    return items


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _table_rows(lines: Sequence[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """The rows of a table, each cell with the name of its column; empty if the lines are no table with a heading.

    >>> _table_rows([(1, "| symbol | cap |"), (2, "|---|---|"), (3, "| BTC | 2 % |")])
    [(3, ['symbol: BTC; cap: 2 %'])]
    """
    if len(lines) < 3 or not TABLE_RULE.fullmatch(lines[1][1].strip()):
        return []
    columns = _cells(lines[0][1])
    return [(number, ["; ".join(_named(columns, _cells(line)))]) for number, line in lines[2:]]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _named(columns: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    for column, cell in zip_longest(columns, cells, fillvalue=""):
        if cell:
            yield f"{column}: {cell}" if column else cell


def _rule(path: str, block: TextBlock, first: int, lines: Sequence[str]) -> Rule:
    text = ITEM.sub("", " ".join(lines), count=1)
    return Rule(
        path=path,
        start_line=first,
        end_line=first + len(lines) - 1,
        text=text,
        heading=block.heading,
        words=frozenset(words_of(" ".join([*block.heading, text]))),
    )
