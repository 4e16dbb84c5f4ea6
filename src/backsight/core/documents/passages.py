"""Passages: the parts of a chunk that are embedded one by one.

A long chunk is about several things, and the mean of its meanings resembles no question about one of them. So each
paragraph of a long chunk has a vector, and the chunk is as near to a query as its nearest passage, less a little for
the number of passages: the more there are, the nearer is the nearest one by chance.
"""

import re
from collections.abc import Iterator

from backsight.core.documents.chunk import lines_of

WHOLE_CHARACTERS = 1_500
"""A chunk up to this length is one passage."""
MAX_CHARACTERS = 600
"""A longer paragraph is cut between its lines, a longer line between its sentences."""
MIN_CHARACTERS = 100
"""A shorter paragraph, as a heading, is joined with the next."""
COSINE_PER_DOUBLING = 0.03
"""How much larger the cosine of the nearest passage is by chance when there are twice as many passages."""
MAX_PASSAGES = 64
"""The rest of a chunk is not embedded; only a chunk of one very long line has more passages."""

_SENTENCE = re.compile(r".+?(?:[.!?;]\s+|[。！？；]|\Z)", re.DOTALL)


def passages_of(text: str) -> list[str]:
    """The passages of a chunk, in order.

    >>> passages_of("# Risk\\n\\nNever above 2%.\\n")
    ['# Risk\\n\\nNever above 2%.\\n']
    >>> [len(passage) for passage in passages_of(f"# Risk\\n\\n{'Stop. ' * 80}\\n\\n{'Exit. ' * 180}\\n")]
    [490, 600, 481]
    """
    if len(text) <= WHOLE_CHARACTERS:
        return [text]
    passages: list[str] = []
    passage = ""
    is_after_blank = False
    for line in lines_of(text):
        if not line.strip():
            passage, is_after_blank = passage + line, True
            continue
        for part in _parts(line):
            is_complete = is_after_blank and len(passage) >= MIN_CHARACTERS
            if passage.strip() and (is_complete or len(passage) + len(part) > MAX_CHARACTERS):
                passages.append(passage)
                passage = ""
            passage, is_after_blank = passage + part, False
    return [*passages, passage][:MAX_PASSAGES] if passage.strip() or not passages else passages[:MAX_PASSAGES]


def _parts(line: str) -> Iterator[str]:
    """A line whole or, if it is too long for a passage, its sentences; a longer sentence is cut at spaces."""
    if len(line) <= MAX_CHARACTERS:
        yield line
        return
    for sentence in _SENTENCE.findall(line):
        rest = sentence
        while len(rest) > MAX_CHARACTERS:
            end = rest.rfind(" ", MAX_CHARACTERS // 2, MAX_CHARACTERS) + 1 or MAX_CHARACTERS
            yield rest[:end]
            rest = rest[end:]
        yield rest
