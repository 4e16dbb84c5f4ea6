"""How many tokens a text takes, told without a tokenizer and never too low for cl100k and o200k.

Both vocabularies split a text before they merge anything in it: digits by threes, a run of letters with the one space
or mark before it, a run of marks with the space before and the newlines after. So pieces can be counted one by one.
Three facts bound a piece:

- It takes no more tokens than it has UTF-8 bytes. Whatever is not plain text is counted so.
- A piece that is itself a token is one. The words, symbols and marks that trading texts are made of are listed.
- When merging ends, no two neighbours together are a token (Sennrich, Haddow & Birch 2016). So a word that is not
  listed takes at most as many tokens as the finest way to cut it that leaves no listed pair or triple of letters to two
  neighbours.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from backsight.core.text.vocabulary import COSTS, GRAMS, LONGEST_GRAM, MARKS, SAVING

LONGEST_WORD = 40
"""Letters; a longer run is counted by its bytes."""
LONGEST_PART = 2 * LONGEST_GRAM - 1
"""A longer part of a finest cut could be cut once more."""
OTHER = "\0"
"""Stands for a character that is in no gram."""

_SPACE = r" \t\n\r\f\v"
_MARK = rf"[^{_SPACE}0-9A-Za-z]"
_TAME = rf"!-\x7f\x00-\x08\x0e-\x1f{MARKS}"
_REST = rf"[^{_SPACE}]*+(?:[{_SPACE}]*[\r\n](?:/[^{_SPACE}]*+)?)*+"
"""Of a run between spaces, and the newlines after it; o200k counts a slash after them to it."""
_PIECE = re.compile(
    rf"""
    (?P<bytes>   (?:(?<![^{_SPACE}])|[ ])[{_TAME}]*+[^{_SPACE}{_TAME}]{_REST}
                 | [ ]?{_MARK}+[\r\n]+/{_REST} | '[A-Za-z]+ )
  | (?P<digits>  [0-9]{{1,3}} )
  | (?P<word>    (?:[ ]|(?P<joint>{_MARK}|[\t\f\v]))?[A-Za-z]+ ) (?P<apostrophe>(?='[A-Za-z]))?
  | (?P<marks>   [ ]?{_MARK}+[\r\n]* | \n\n(?=[!-~]|\Z) )
  | (?P<spaces>  [{_SPACE}]+(?=[ ][^{_SPACE}0-9]|[\t\f\v][A-Za-z]) | [{_SPACE}]+ )
    """,
    re.VERBOSE,
)
"""What is surely split from what is around it in both vocabularies. Where that is not sure, for a character that may be
a letter, a digit or a space in one of them, or a contraction, all that it may touch is counted by its bytes."""
_SAVING = re.compile(f"[{SAVING}]")


@lru_cache(maxsize=2_048)
def estimate(text: str) -> int:
    """No fewer tokens than the text takes in cl100k and in o200k; most texts are asked about more than once.

    >>> estimate("- ETH long $2,000 @ 3,410"), estimate("Breakout above the prior high."), estimate("限额")
    (12, 7, 4)
    """
    return sum(map(_piece, _PIECE.finditer(text)))


def cut(text: str, ceiling: int) -> str:
    """The beginning of a text within a number of tokens: whole lines, or the first line up to a word and "…".

    >>> cut("one two\\nthree four", 4), cut("one two, three four", 4), cut("one two", 0)
    ('one two', 'one two…', '')
    """
    if estimate(text) <= ceiling:
        return text
    lines = text.split("\n")
    whole = longest(len(lines) - 1, lambda n: "\n".join(lines[:n]), ceiling)
    if whole:
        return whole
    words = lines[0].split(" ")
    return longest(len(words) - 1, lambda n: " ".join(words[:n]).rstrip(_STOPS) + "…", ceiling)


_STOPS = " ,;:.–—-"


def longest(count: int, taken: Callable[[int], str], ceiling: int) -> str:
    """The longest of the texts taken from 1 to `count` that was found to fit; empty where not even the first does."""
    found, low, high = "", 1, count
    while low <= high:
        middle = (low + high) // 2
        if estimate(text := taken(middle)) <= ceiling:
            found, low = text, middle + 1
        else:
            high = middle - 1
    return found


def _piece(found: re.Match[str]) -> int:
    piece = found.group()
    match found.lastgroup:
        case "digits":
            return 1
        case "bytes" | "spaces":
            return size(piece)
        case "marks":
            return COSTS.get(piece) or size(piece)
    return _word(piece, joint=found["joint"], apostrophe=found["apostrophe"] is not None)


def size(text: str) -> int:
    """UTF-8 bytes, less one for a character of three whose first two are a token: these cannot both stay alone.

    >>> size("abc"), size("é"), size("限"), size("\\ud800")
    (3, 2, 2, 3)
    """
    return len(text.encode(errors="surrogatepass")) - len(_SAVING.findall(text))


@lru_cache(maxsize=16_384)
def _word(piece: str, *, joint: str | None, apostrophe: bool) -> int:
    """A run of letters with the space or mark before it.

    An apostrophe and letters after it may become a part of it or not: it is cut as if they did.
    """
    if len(piece) > LONGEST_WORD:
        return size(piece)
    if not apostrophe and piece in COSTS:
        return COSTS[piece]
    letters = OTHER + piece[1:] if joint else piece
    parts = finest(letters + OTHER) - 1 if apostrophe else finest(letters)
    return parts + (size(joint) - 1 if joint else 0)


def finest(letters: str) -> int:
    """Into how many parts a word can be cut so that no two neighbours together are a gram.

    >>> finest("we"), finest("qz"), finest("pullback")
    (1, 2, 4)
    """
    best: list[dict[int, int]] = [{0: 0}]
    for end in range(1, len(letters) + 1):
        best.append({})
        for start in range(max(0, end - LONGEST_PART), end):
            parts = [n for before, n in best[start].items() if start == 0 or letters[before:end] not in GRAMS]
            if parts:
                best[end][start] = 1 + max(parts)
    return max(best[-1].values())
