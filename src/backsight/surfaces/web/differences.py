"""Two texts line by line: what only one of them has, and what both have."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

_PART = re.compile(r"@@ -(\d+)")
Side = Literal["same", "gone", "new", "place"]
MOST_LINES = 2_000


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """One line, and whether both texts have it."""

    side: Side
    text: str

    @property
    def sign(self) -> str:
        return {"same": " ", "gone": "−", "new": "+", "place": "·"}[self.side]


def differences(before: str, after: str) -> list[DifferenceLine]:
    """The lines of both texts in order.

    >>> [line.sign + line.text for line in differences("a\\nb", "a\\nc")]
    [' a', '−b', '+c']
    """
    return list(_lines(before.splitlines()[:MOST_LINES], after.splitlines()[:MOST_LINES]))


def _lines(before: list[str], after: list[str]) -> Iterator[DifferenceLine]:
    for kind, first, end, start, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (DifferenceLine("same", text) for text in before[first:end])
        else:
            yield from (DifferenceLine("gone", text) for text in before[first:end])
            yield from (DifferenceLine("new", text) for text in after[start:stop])


def diff_lines(unified: str) -> list[DifferenceLine]:
    """The lines of a unified diff of one file; the head of a part becomes the number of its first line.

    >>> [line.sign + line.text for line in diff_lines("--- a\\n+++ b\\n@@ -2,3 +2,3 @@\\n x\\n-y\\n+z")]
    ['·line 2', ' x', '−y', '+z']
    """
    sides: dict[str, Side] = {"+": "new", "-": "gone"}
    lines = unified.splitlines()[:MOST_LINES]
    head = next((number for number, line in enumerate(lines) if line.startswith("@@")), 0)
    return [
        DifferenceLine("place", f"line {part[1]}")
        if (part := _PART.match(line))
        else DifferenceLine(sides.get(line[:1], "same"), line[1:])
        for line in lines[head:]
    ]
