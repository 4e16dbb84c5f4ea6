"""Chunks: a document cut at its headings and paragraphs into pieces that can be cited to the line.

A line ends with a newline, as editors count them; a carriage return before it belongs to it. No line is ever cut, so a
chunk's text is what its lines say, and the chunks of a document one after the other are the document.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from backsight.core.text.tokens import estimate

LEAST, MOST = 400, 800
"""Tokens: a smaller chunk is joined with its neighbour where both fit; a larger one is a single line."""
COUNTED = 20_000
"""Characters; a longer line is a chunk of its own anyway."""

LINE = re.compile(r"[^\n]*\n|[^\n]+")
HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
TABLE = re.compile(r" {0,3}\|")
MATTER = "---"
LONGEST_HEADING = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some lines of a document, and the headings they are under."""

    start_line: int
    """The first line, counted from 1."""
    end_line: int
    """The last line; it belongs to the chunk."""
    text: str
    """The lines as they stand, with their ends."""
    heading: tuple[str, ...] = ()
    """The headings above, the outermost first; of several small sections, those they share."""


@dataclass(slots=True)
class Block:
    """Lines that belong together: a heading, a paragraph, a table, a fenced block."""

    first: int
    lines: list[str]
    heading: tuple[str, ...]
    opens: bool = False
    """Whether a section begins with it."""
    tokens: int = 0


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends; together they are the text.

    >>> lines_of("a\\r\\n\\nb"), lines_of("a\\n"), lines_of("")
    (['a\\r\\n', '\\n', 'b'], ['a\\n'], [])
    """
    return LINE.findall(text)


def chunks_of(text: str, *, markdown: bool = True) -> tuple[Chunk, ...]:
    """The chunks of a document, in order and without a gap; headings, fences and tables are read in Markdown only.

    >>> for chunk in chunks_of("# Rules\\n\\n## Cap\\nNever above 2 %.\\n"):
    ...     chunk.start_line, chunk.end_line, chunk.heading
    (1, 4, ('Rules',))
    """
    lines = lines_of(text)
    blocks = _blocks(lines) if markdown else _paragraphs(lines)
    return tuple(_chunk(group) for group in _joined(_fitting(blocks)))


def blocks_of(text: str) -> list[Block]:
    """The headings, paragraphs, tables and fenced blocks of a Markdown text, in its order."""
    return list(_blocks(lines_of(text)))


def _chunk(blocks: list[Block]) -> Chunk:
    lines = [line for block in blocks for line in block.lines]
    first = blocks[0].first
    return Chunk(
        start_line=first + 1,
        end_line=first + len(lines),
        text="".join(lines),
        heading=_shared([block.heading for block in blocks]),
    )


def _shared(headings: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The headings that all have, or those of the first where they have none in common."""
    common = headings[0]
    for heading in headings[1:]:
        same = 0
        while same < min(len(common), len(heading)) and common[same] == heading[same]:
            same += 1
        common = common[:same]
    return common or headings[0]


def tokens_of(line: str) -> int:
    """How many tokens a line takes at most, as far as it is counted.

    >>> tokens_of("Never above 2 %.")
    7
    """
    return estimate(line[:COUNTED])


# Joining


def _fitting(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks that fit a chunk; one that does not is cut between its lines."""
    for block in blocks:
        counts = [tokens_of(line) for line in block.lines]
        block.tokens = sum(counts)
        if block.tokens <= MOST:
            yield block
            continue
        begun = held = 0
        for place, count in enumerate(counts):
            if place > begun and held + count > MOST:
                yield _part(block, begun, place, held)
                begun, held = place, 0
            held += count
        yield _part(block, begun, len(counts), held)


def _part(block: Block, begun: int, end: int, tokens: int) -> Block:
    lines = block.lines[begun:end]
    return Block(block.first + begun, lines, block.heading, block.opens and begun == 0, tokens)


def _joined(blocks: Iterable[Block]) -> list[list[Block]]:
    """Neighbours joined up to the most a chunk may hold; a section begins a new one if there is enough before it."""
    groups: list[list[Block]] = []
    held = 0
    for block in blocks:
        enough = held >= LEAST and block.opens
        if groups and not enough and held + block.tokens <= MOST:
            groups[-1].append(block)
            held += block.tokens
        else:
            groups.append([block])
            held = block.tokens
    return _without_small_end(_headings_with_what_follows(groups))


def _headings_with_what_follows(groups: list[list[Block]]) -> list[list[Block]]:
    """A heading that ends a chunk goes to the next, where what it announces is, if it fits there."""
    for before, after in pairwise(groups):
        last = before[-1]
        if len(before) > 1 and last.opens and not after[0].opens and last.tokens + _tokens(after) <= MOST:
            after.insert(0, before.pop())
    return groups


def _without_small_end(groups: list[list[Block]]) -> list[list[Block]]:
    if len(groups) > 1 and _tokens(groups[-1]) < LEAST and _tokens(groups[-2]) + _tokens(groups[-1]) <= MOST:
        groups[-2].extend(groups.pop())
    return groups


def _tokens(group: list[Block]) -> int:
    return sum(block.tokens for block in group)


# Blocks


def _paragraphs(lines: list[str]) -> Iterator[Block]:
    """Lines up to and with the blank ones after them."""
    begun = 0
    for place in range(1, len(lines) + 1):
        ended = place == len(lines) or (_is_blank(lines[place - 1]) and not _is_blank(lines[place]))
        if ended and begun < place:
            yield Block(begun, lines[begun:place], ())
            begun = place


def _blocks(lines: list[str]) -> Iterator[Block]:
    path: list[tuple[int, str]] = []
    place = 0
    while place < len(lines):
        end, level, title = _block(lines, place)
        while end < len(lines) and _is_blank(lines[end]):
            end += 1
        if level:
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, title[:LONGEST_HEADING]))
        yield Block(place, lines[place:end], tuple(name for _, name in path), opens=level > 0)
        place = end


def _block(lines: list[str], place: int) -> tuple[int, int, str]:
    """Where the block that begins here ends, and the level and words of a heading; level 0 is none."""
    line = _bare(lines[place])
    if place == 0 and line == MATTER:
        return _after(lines, place, lambda bare: bare == MATTER), 0, ""
    if fence := FENCE.match(line):
        closes = re.compile(rf" {{0,3}}{re.escape(fence[1])}{re.escape(fence[1][0])}*[ \t]*$")
        return _after(lines, place, lambda bare: closes.match(bare) is not None), 0, ""
    if heading := HEADING.match(line):
        return place + 1, len(heading[1]), (heading[2] or "").strip()
    if TABLE.match(line):
        end = place + 1
        while end < len(lines) and TABLE.match(lines[end]):
            end += 1
        return end, 0, ""
    return _paragraph(lines, place)


def _after(lines: list[str], place: int, closes: Callable[[str], bool]) -> int:
    """The line after the one that closes what begins here, or the end."""
    for at in range(place + 1, len(lines)):
        if closes(_bare(lines[at])):
            return at + 1
    return len(lines)


def _paragraph(lines: list[str], place: int) -> tuple[int, int, str]:
    """Up to a blank line or another block; a single line that is underlined is a heading."""
    end = place + 1
    while end < len(lines):
        line = _bare(lines[end])
        under = UNDERLINE.match(line)
        if under and end == place + 1 and not _is_blank(lines[place]):
            return end + 1, 1 if under[1][0] == "=" else 2, _bare(lines[place]).strip()
        if _is_blank(line) or FENCE.match(line) or HEADING.match(line) or TABLE.match(line):
            return end, 0, ""
        end += 1
    return end, 0, ""


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _is_blank(line: str) -> bool:
    return not line.strip()
