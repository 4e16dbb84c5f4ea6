"""Protocol: the single rules of a trading manual, and which of them apply to a decision."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest

from backsight.core.documents.chunk import TextBlock, blocks_of, is_front_matter
from backsight.core.documents.citation import place_of
from backsight.core.documents.query import words_of

ITEM = re.compile(r"^(?:[-*+•‣◦▪]|\d{1,4}[.)])\s+")
"""The mark of a list item, numbered or not."""
OTHER_ITEM = re.compile(
    r"^(?:\d{1,3}(?:\.\d{1,3}){1,5}[.)]?\s|\(?(?:[a-zA-Z]|[ivx]{2,4})[.)]\s|\(\d{1,3}\)\s|[–—]\s|[①-⑳]|\d{1,3}、)"
)
"""Marks that Markdown does not know, as in 1.2, (a) or 1、. They stay in the text of the rule.

Two of them make a list, and one after a line that introduces a list: a line of prose may begin like that.
"""
CELL_END = re.compile(r"(?<!\\)\|")
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
    """The words of the text, of its introduction and of its headings."""
    introduction: str = ""
    """The line above a list that ends with a colon: its items cannot be understood without it."""

    @property
    def place(self) -> str:
        return place_of(self.path, self.start_line, self.end_line)


@lru_cache(maxsize=64)
def rules_in(path: str, text: str) -> tuple[Rule, ...]:
    """The rules of a document, in order: see `rule_spans`.

    >>> manual = "# Rules\\n\\n## R3_CAP\\nNever above 2%\\nof equity.\\n\\n- BTC: no Sundays\\n- stop first\\n"
    >>> for rule in rules_in("M.md", manual):
    ...     rule.place, rule.heading[-1], rule.text
    ('M.md:4-5', 'R3_CAP', 'Never above 2% of equity.')
    ('M.md:7', 'R3_CAP', 'BTC: no Sundays')
    ('M.md:8', 'R3_CAP', 'stop first')
    """
    return tuple(
        Rule(
            path=path,
            start_line=span.first + 1,
            end_line=span.end,
            text=span.text,
            introduction=span.introduction,
            heading=span.heading,
            words=frozenset(words_of(" ".join([*span.heading, span.introduction, span.text]))),
        )
        for span in rule_spans(blocks_of(text))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpan:
    """The lines of one rule."""

    first: int
    """Index of the first line, counted from 0."""
    end: int
    """Index of the line after the last."""
    text: str
    """On one line, without the mark of a list item; a table row has the names of its columns."""
    heading: tuple[str, ...]
    introduction: str = ""
    """The line above a list that ends with a colon: its items cannot be understood without it."""
    introduced_at: int
    """Index of the introduction's line; of the first line if there is no introduction."""


def rule_spans(blocks: Sequence[TextBlock]) -> list[RuleSpan]:
    """Each list item, table row and other paragraph of a document, in order; a heading without a text is one as well.

    What is indented below a list item belongs to the item.

    >>> for span in rule_spans(blocks_of("Never buy:\\n\\n1. BTC\\n\\n   unless approved\\n2. DAX\\n")):
    ...     span.first, span.end, span.introduction, span.text
    (0, 1, '', 'Never buy:')
    (2, 5, 'Never buy:', 'BTC unless approved')
    (5, 6, 'Never buy:', 'DAX')
    """
    spans: list[RuleSpan] = []
    introduction, introduced_at = "", 0
    item_indent: int | None = None  # of the list item above, if there is one
    for number, block in enumerate(blocks):
        if is_front_matter(block):
            continue
        if block.is_heading:
            introduction, item_indent = "", None
            if number and _has_no_text(block, blocks[number + 1 :]):
                span = _span(block, block.first, [line for line in block.lines if line.strip()])
                spans.append(replace(span, text=block.heading[-1], heading=block.heading[:-1]))
            continue
        mark = _list_mark([line.strip() for line in block.lines], is_introduced=bool(introduction))
        for first, lines in _items(block, mark):
            indent = _indent(block.lines[first - 1 - block.first])
            span = _span(block, first - 1, lines)
            if item_indent is not None and indent > item_indent + 1:
                spans[-1] = replace(spans[-1], text=" ".join([spans[-1].text, *lines]), end=span.end)
                continue
            is_item = mark.match(lines[0]) is not None
            item_indent = indent if is_item else None
            if not is_item:
                introduction, introduced_at = lines[-1] if lines[-1].endswith(":") else "", span.end - 1
            elif introduction:
                span = replace(span, introduction=introduction, introduced_at=introduced_at)
            spans.append(span)
    return spans


def _span(block: TextBlock, first: int, lines: Sequence[str]) -> RuleSpan:
    text = ITEM.sub("", " ".join(lines), count=1)
    return RuleSpan(first=first, end=first + len(lines), text=text, heading=block.heading, introduced_at=first)


def _has_no_text(heading: TextBlock, following: Sequence[TextBlock]) -> bool:
    """Whether nothing is below a heading, neither a text nor a smaller heading."""
    return not following or (following[0].is_heading and len(following[0].heading) <= len(heading.heading))


def _mentioned(words: frozenset[str], names: Iterable[str]) -> int:
    """How many of the names are among the words: all words of a name, or a pair like `EUR/USD` as one word."""
    return sum(any(spelling and spelling <= words for spelling in _spellings(name)) for name in names)


def _spellings(name: str) -> tuple[frozenset[str], ...]:
    """The words of a name; of a pair like `EUR/USD` the parts, or the pair as one word."""
    words = list(words_of(name))
    joined = words[0] if len(words) == 3 and words[0] == words[1] + words[2] else None
    return (frozenset(words), frozenset()) if joined is None else (frozenset(words[1:]), frozenset([joined]))


def _items(block: TextBlock, mark: re.Pattern[str]) -> list[tuple[int, list[str]]]:
    """The list items or table rows of a block, each with its first line number; else the whole block.

    An indented item belongs to the item above it.
    """
    numbered = [(number, line) for number, line in enumerate(block.lines, start=block.first + 1) if line.strip()]
    if rows := _table_rows(numbered):
        return rows
    items: list[tuple[int, list[str]]] = []
    outermost = min((_indent(line) for _, line in numbered if mark.match(line.strip())), default=0)
    for number, line in numbered:
        starts = mark.match(line.strip()) is not None and _indent(line) <= outermost
        if not items or starts:
            items.append((number, []))
        items[-1][1].append(line.strip())
    return items


def _list_mark(lines: Sequence[str], *, is_introduced: bool) -> re.Pattern[str]:
    """The pattern of the marks that begin the items of a block; `is_introduced` after a line that ends with a colon."""
    others = [number for number, line in enumerate(lines) if OTHER_ITEM.match(line)]
    if not others or (len(others) == 1 and not is_introduced):
        return ITEM
    is_first = others[0] == 0 or (others[0] == 1 and lines[0].endswith(":"))
    return OTHER_ITEM if is_first else ITEM


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _table_rows(lines: Sequence[tuple[int, str]]) -> list[tuple[int, list[str]]]:
    """The rows of a table, each cell with the name of its column; empty if the lines are no table with a heading.

    >>> _table_rows([(1, "| symbol | cap |"), (2, "|---|---|"), (3, "| BTC | 2% |")])
    [(3, ['symbol: BTC; cap: 2%'])]
    """
    if len(lines) < 3 or not TABLE_RULE.fullmatch(lines[1][1].strip()):
        return []
    columns = _cells(lines[0][1])
    return [(number, ["; ".join(_named(columns, _cells(line)))]) for number, line in lines[2:]]


def _cells(line: str) -> list[str]:
    """The cells of a table row; a pipe after a backslash belongs to its cell.

    >>> _cells(r"| BTC | long \\| short |")
    ['BTC', 'long | short']
    """
    bare = line.strip().removeprefix("|")
    bare = bare if bare.endswith("\\|") else bare.removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in CELL_END.split(bare)]


def _named(columns: Sequence[str], cells: Sequence[str]) -> Iterator[str]:
    for column, cell in zip_longest(columns, cells, fillvalue=""):
        if cell:
            yield f"{column}: {cell}" if column else cell
