"""Estimate the number of tokens of a text without a tokenizer; the estimate is never too low for cl100k and o200k.

Both tokenizers split a text into pieces before they merge bytes: up to three digits; a run of letters with the one
space or mark before it; a run of marks with the space before and the newlines after it. So pieces can be counted one
by one. Three facts bound the tokens of a piece:

- A piece has at most as many tokens as UTF-8 bytes. Pieces that are not plain text are counted this way.
- A piece that is itself a token counts as one. `vocabulary.py` lists the words, symbols and marks of trading texts.
- After merging, no two neighbouring tokens together form a token (Sennrich, Haddow & Birch 2016). So a word that is not
  listed has at most as many tokens as its finest cut in which no two neighbours form a listed pair or triple.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from backsight.core.text.vocabulary import LONGEST_GRAM, MARKS, SAVING, costs, grams

LONGEST_WORD = 40
"""A longer run of letters is counted by its bytes."""
LONGEST_PART = 2 * LONGEST_GRAM - 1
"""The longest part of a finest cut; a longer part could be cut again."""
OTHER = "\0"
"""Placeholder for a character that is in no gram."""

_SPACE = r" \t\n\r\f\v"
_MARK = rf"[^{_SPACE}0-9A-Za-z]"
_TAME = rf"!-\x7f\x00-\x08\x0e-\x1f{MARKS}"
_REST = rf"[^{_SPACE}]*+(?:[{_SPACE}]*[\r\n](?:/[^{_SPACE}]*+)?)*+"
"""The rest of a run between spaces and the newlines after it; o200k adds a slash that follows the newlines."""
_PIECE = re.compile(
    rf"""
    (?P<bytes>   (?:(?<![^{_SPACE}])|[ ])[{_TAME}]*+[^{_SPACE}{_TAME}]{_REST}
                 | [ ]?{_MARK}+[\r\n]+/{_REST} | '[A-Za-z]+ )
  | (?P<digits>  [0-9]{{1,3}} )
  | (?P<word>    (?:[ ]|(?P<joint>{_MARK}|[\t\f\v]))?[A-Za-z]+ ) (?:(?=(?P<apostrophe>')[A-Za-z]))?
  | (?P<marks>   [ ]?{_MARK}+[\r\n]* | \n\n(?=[!-~]|\Z) )
  | (?P<spaces>  [{_SPACE}]+(?=[ ][^{_SPACE}0-9]|[\t\f\v][A-Za-z]) | [{_SPACE}]+ )
    """,
    re.VERBOSE,
)
"""Pieces that both tokenizers split from their surroundings. Where a split is uncertain (a contraction, or a character
that one of them may treat as a letter, a digit or a space), everything it may touch is counted by bytes."""
_SAVING = re.compile(f"[{SAVING}]")


@lru_cache(maxsize=2_048)
def estimate(text: str) -> int:
    """An upper bound of the tokens of a text in cl100k and in o200k; cached, since most texts are counted repeatedly.

    >>> estimate("- ETH long $2,000 @ 3,410"), estimate("Breakout above the prior high."), estimate("限额")
    (12, 7, 4)
    """
    return sum(map(_TOKENS.__getitem__, _PIECE.findall(text)))


def cut(text: str, ceiling: int) -> str:
    """The beginning of a text within a number of tokens: whole lines, else the first line up to a word and "…".

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


def longest(count: int, prefix: Callable[[int], str], ceiling: int) -> str:
    """The longest prefix of 1 to `count` units that fits, by binary search; empty if not even the first fits."""
    best, low, high = "", 1, count
    while low <= high:
        middle = (low + high) // 2
        if estimate(text := prefix(middle)) <= ceiling:
            best, low = text, middle + 1
        else:
            high = middle - 1
    return best


class _PieceTokens(dict[tuple[str, ...], int]):
    """The tokens of a piece by its groups in `_PIECE`; a prompt repeats most pieces, so they are counted once."""

    def __missing__(self, groups: tuple[str, ...]) -> int:
        tokens = _piece(*groups)
        if max(map(len, groups)) <= LONGEST_WORD:
            if len(self) >= MOST_PIECES:
                self.clear()
            self[groups] = tokens
        return tokens


MOST_PIECES = 16_384
_TOKENS = _PieceTokens()


def _piece(uncertain: str, digits: str, word: str, joint: str, apostrophe: str, marks: str, spaces: str) -> int:
    """The most tokens of a piece, of which all groups but those of its kind are empty."""
    if digits:
        return 1
    if word:
        return _word(word, joint=joint or None, apostrophe=bool(apostrophe))
    if marks:
        return costs().get(marks) or size(marks)
    return size(uncertain or spaces)


def size(text: str) -> int:
    """The UTF-8 bytes of a text, less one for each three-byte character whose first two bytes are a token.

    >>> size("abc"), size("é"), size("限"), size("\\ud800")
    (3, 2, 2, 3)
    """
    return len(text.encode(errors="surrogatepass")) - len(_SAVING.findall(text))


def _word(piece: str, *, joint: str | None, apostrophe: bool) -> int:
    """The most tokens of a run of letters with the space or mark before it.

    An apostrophe with letters may or may not join the word; the word is cut as if they did.
    """
    if len(piece) > LONGEST_WORD:
        return size(piece)
    if not apostrophe and piece in costs():
        return costs()[piece]
    letters = OTHER + piece[1:] if joint else piece
    parts = finest(letters + OTHER) - 1 if apostrophe else finest(letters)
    return parts + (size(joint) - 1 if joint else 0)


def finest(letters: str) -> int:
    """The most parts of a word such that no two neighbours together form a gram (dynamic programming over cut points).

    >>> finest("we"), finest("qz"), finest("pullback")
    (1, 2, 4)
    """
    best: list[dict[int, int]] = [{0: 0}]
    single = grams()
    for end in range(1, len(letters) + 1):
        best.append({})
        for start in range(max(0, end - LONGEST_PART), end):
            parts = [n for before, n in best[start].items() if start == 0 or letters[before:end] not in single]
            if parts:
                best[end][start] = 1 + max(parts)
    return max(best[-1].values())
