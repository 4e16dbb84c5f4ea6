"""Chunks: a document is cut at its headings and paragraphs into parts that can be cited to the line.

A line ends with a newline, as editors count lines; a carriage return before the newline belongs to the line. No line is
ever cut. Therefore the text of a chunk is exactly the text of its lines, and all chunks joined are the document.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from backsight.core.text.tokens import estimate

MIN_TOKENS, MAX_TOKENS = 400, 800
"""A chunk below the minimum is joined with its neighbour if both fit; only a single line exceeds the maximum."""
COUNTED_CHARACTERS = 20_000
"""Tokens are counted in this many characters of a line; a longer line is a chunk of its own in any case."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")
HEADING = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
TABLE = re.compile(r" {0,3}\|")
FRONT_MATTER = "---"
LONGEST_HEADING = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Consecutive lines of a document, with the headings above them."""

    start_line: int
    """The first line, counted from 1."""
    end_line: int
    """The last line, inclusive."""
    text: str
    """The lines unchanged, including their line ends."""
    heading: tuple[str, ...] = ()
    """The headings above the lines, outermost first; for several small sections, the headings they share."""


@dataclass(slots=True)
class TextBlock:
    """Lines that belong together: a heading, a paragraph, a table or a fenced code block."""

    first: int
    """Index of the first line, counted from 0."""
    lines: list[str]
    heading: tuple[str, ...]
    is_heading: bool = False
    tokens: int = 0


def lines_of(text: str) -> list[str]:
    """The lines of a text, including their line ends.

    >>> lines_of("a\\r\\n\\nb"), lines_of("a\\n"), lines_of("")
    (['a\\r\\n', '\\n', 'b'], ['a\\n'], [])
    """
    return LINE.findall(text)


def chunks_of(text: str, *, markdown: bool = True) -> tuple[Chunk, ...]:
    """The chunks of a document, in order and without gaps; headings, fences and tables count in Markdown only.

    >>> for chunk in chunks_of("# Rules\\n\\n## Cap\\nNever above 2%.\\n"):
    ...     chunk.start_line, chunk.end_line, chunk.heading
    (1, 4, ('Rules',))
    """
    lines = lines_of(text)
    blocks = _blocks(lines) if markdown else _paragraphs(lines)
    return tuple(_chunk(group) for group in _join_small(_split_large(blocks)))


def blocks_of(text: str) -> list[TextBlock]:
    """The headings, paragraphs, tables and fenced code blocks of a Markdown text, in order."""
    return list(_blocks(lines_of(text)))


def is_front_matter(block: TextBlock) -> bool:
    """Whether a block is the front matter of a file: data about the file between two lines of dashes."""
    return block.first == 0 and _strip_line_end(block.lines[0]) == FRONT_MATTER


def _chunk(blocks: list[TextBlock]) -> Chunk:
    lines = [line for block in blocks for line in block.lines]
    first = blocks[0].first
    return Chunk(
        start_line=first + 1,
        end_line=first + len(lines),
        text="".join(lines),
        heading=_common_headings([block.heading for block in blocks]),
    )


def _common_headings(headings: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The longest common prefix of several heading paths; the first path if nothing is common."""
    first, last = min(headings), max(headings)  # paths between the two share at least what these two share
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return tuple(name for name, _ in shared) or headings[0]


def tokens_of(line: str) -> int:
    """Estimated tokens of a line.

    >>> tokens_of("Never above 2%.")
    5
    """
    return estimate(line[:COUNTED_CHARACTERS])


# Joining


def _split_large(blocks: Iterable[TextBlock]) -> Iterator[TextBlock]:
    """Cut each block that exceeds a chunk between its lines."""
    for block in blocks:
        counts = [tokens_of(line) for line in block.lines]
        block.tokens = sum(counts)
        if block.tokens <= MAX_TOKENS:
            yield block
            continue
        start = tokens = 0
        for line, count in enumerate(counts):
            if line > start and tokens + count > MAX_TOKENS:
                yield _part(block, start, line, tokens)
                start, tokens = line, 0
            tokens += count
        yield _part(block, start, len(counts), tokens)


def _part(block: TextBlock, start: int, end: int, tokens: int) -> TextBlock:
    lines = block.lines[start:end]
    return TextBlock(block.first + start, lines, block.heading, block.is_heading and start == 0, tokens)


def _join_small(blocks: Iterable[TextBlock]) -> list[list[TextBlock]]:
    """Join neighbours up to the maximum; a heading starts a new chunk once the current chunk has the minimum.

    Entries of different days are not joined, so that a chunk has one date.
    """
    groups: list[list[TextBlock]] = []
    tokens = 0
    for block in blocks:
        is_other_day = bool(groups) and _is_other_day(groups[-1], block)
        starts_chunk = is_other_day or (block.is_heading and tokens >= MIN_TOKENS)
        if groups and not starts_chunk and tokens + block.tokens <= MAX_TOKENS:
            groups[-1].append(block)
            tokens += block.tokens
        else:
            groups.append([block])
            tokens = block.tokens
    return _join_small_last(_move_trailing_headings(groups))


def _move_trailing_headings(groups: list[list[TextBlock]]) -> list[list[TextBlock]]:
    """Move a heading from the end of a chunk to the next chunk, which has its text, if the heading fits there."""
    for before, after in pairwise(groups):
        last = before[-1]
        if (
            len(before) > 1
            and last.is_heading
            and not after[0].is_heading
            and last.tokens + _tokens(after) <= MAX_TOKENS
        ):
            after.insert(0, before.pop())
    return groups


def _join_small_last(groups: list[list[TextBlock]]) -> list[list[TextBlock]]:
    if len(groups) < 2 or _is_other_day(groups[-2], groups[-1][0]):
        return groups
    if _tokens(groups[-1]) < MIN_TOKENS and _tokens(groups[-2]) + _tokens(groups[-1]) <= MAX_TOKENS:
        groups[-2].extend(groups.pop())
    return groups


def _is_other_day(group: list[TextBlock], block: TextBlock) -> bool:
    """Whether a block begins the entry of another day than the last entry of a group."""
    day = _day(block)
    last = next((earlier for each in reversed(group) if (earlier := _day(each))), None)
    return day is not None and last is not None and day != last


def _day(block: TextBlock) -> str | None:
    """The day that a heading begins with; None for other blocks."""
    day = DAY.match(block.heading[-1]) if block.is_heading and block.heading else None
    return None if day is None else day[0]


def _tokens(group: list[TextBlock]) -> int:
    return sum(block.tokens for block in group)


# Blocks


def _paragraphs(lines: list[str]) -> Iterator[TextBlock]:
    """Paragraphs of plain text, each with the blank lines after it."""
    start = 0
    for end in range(1, len(lines) + 1):
        is_end = end == len(lines) or (_is_blank(lines[end - 1]) and not _is_blank(lines[end]))
        if is_end and start < end:
            yield TextBlock(start, lines[start:end], ())
            start = end


def _blocks(lines: list[str]) -> Iterator[TextBlock]:
    """Blocks of Markdown, each with the blank lines after it and the path of headings above it."""
    path: list[tuple[int, str]] = []
    start = 0
    while start < len(lines):
        end, level, title = _block(lines, start)
        while end < len(lines) and _is_blank(lines[end]):
            end += 1
        if level:
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, title[:LONGEST_HEADING]))
        yield TextBlock(start, lines[start:end], tuple(name for _, name in path), is_heading=level > 0)
        start = end


def _block(lines: list[str], start: int) -> tuple[int, int, str]:
    """The line after the block that starts at `start`, and the heading level and title; level 0 is no heading."""
    line = _strip_line_end(lines[start])
    if start == 0 and line == FRONT_MATTER:
        return _after_closing_line(lines, start, lambda bare: bare == FRONT_MATTER), 0, ""
    if FENCE.match(line):
        return after_fence(lines, start), 0, ""
    if heading := HEADING.match(line):
        return start + 1, len(heading[1]), _title(line[heading.end() :])
    if TABLE.match(line):
        end = start + 1
        while end < len(lines) and TABLE.match(lines[end]):
            end += 1
        return end, 0, ""
    return _paragraph(lines, start)


def after_fence(lines: list[str], start: int) -> int:
    """The line after the fenced code that begins at `start`; the end of the text if the fence is not closed."""
    fence = FENCE.match(_strip_line_end(lines[start]))
    if fence is None:
        return start + 1
    closes = re.compile(rf" {{0,3}}{re.escape(fence[1])}{re.escape(fence[1][0])}*[ \t]*$")
    return _after_closing_line(lines, start, lambda bare: closes.match(bare) is not None)


def _title(text: str) -> str:
    """The title of a heading without the number signs that may close it.

    >>> _title(" Stops ##"), _title(" C#"), _title(" #")
    ('Stops', 'C#', '')
    """
    title = text.strip()
    bare = title.rstrip("#")
    return title if bare and not bare[-1].isspace() else bare.rstrip()


def _after_closing_line(lines: list[str], start: int, closes: Callable[[str], bool]) -> int:
    """The line after the first closing line below `start`; the end of the text if no line closes."""
    for line in range(start + 1, len(lines)):
        if closes(_strip_line_end(lines[line])):
            return line + 1
    return len(lines)


def _paragraph(lines: list[str], start: int) -> tuple[int, int, str]:
    """A paragraph ends at a blank line or at another block; a single underlined line is a heading."""
    end = start + 1
    while end < len(lines):
        line = _strip_line_end(lines[end])
        under = UNDERLINE.match(line)
        if under and end == start + 1 and not _is_blank(lines[start]):
            return end + 1, 1 if under[1][0] == "=" else 2, _strip_line_end(lines[start]).strip()
        if _is_blank(line) or FENCE.match(line) or HEADING.match(line) or TABLE.match(line):
            return end, 0, ""
        end += 1
    return end, 0, ""


def _strip_line_end(line: str) -> str:
    return line.rstrip("\r\n")


def _is_blank(line: str) -> bool:
    return not line.strip()
