"""WordPiece: a text as the numbers that BERT and its children were trained on (Devlin et al. 2019, uncased).

The vocabulary is Google's, published under the Apache licence 2.0. To carry it here spares an installation of several
hundred megabytes that would be used for this file alone.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("uncased.txt")
UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100
"""Characters; a longer word is unknown."""
_SIGNS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_ASCII_MARKS = ((33, 47), (58, 64), (91, 96), (123, 126))


@cache
def vocabulary() -> dict[str, int]:
    """The number of each piece."""
    with FILE.open(encoding="utf-8") as lines:
        return {line.rstrip("\n"): number for number, line in enumerate(lines)}


def pieces(text: str) -> list[int]:
    """The numbers of a text's pieces, without the marks of its beginning and end.

    >>> pieces("Stop-loss at Café"), pieces("")
    ([2644, 1011, 3279, 2012, 7668], [])
    """
    return [number for word in _words(text) for number in _cut(word)]


def _words(text: str) -> Iterator[str]:
    """Words and single marks, in lower case and without accents."""
    spaced = "".join(map(_spaced, text))
    bare = "".join(each for each in unicodedata.normalize("NFD", spaced) if unicodedata.category(each) != "Mn")
    for word in bare.lower().split():
        begun = 0
        for place, each in enumerate(word):
            if _is_mark(each):
                if begun < place:
                    yield word[begun:place]
                yield each
                begun = place + 1
        if begun < len(word):
            yield word[begun:]


@lru_cache(maxsize=4_096)
def _spaced(each: str) -> str:
    """A character as it counts: signs stand alone, white space is a space, what is not seen is nothing."""
    if each in "\t\n\r" or unicodedata.category(each) == "Zs":
        return " "
    if each == "\ufffd" or unicodedata.category(each) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    code = ord(each)
    return f" {each} " if any(low <= code <= high for low, high in _SIGNS) else each


@lru_cache(maxsize=4_096)
def _is_mark(each: str) -> bool:
    code = ord(each)
    return any(low <= code <= high for low, high in _ASCII_MARKS) or unicodedata.category(each).startswith("P")


@lru_cache(maxsize=65_536)
def _cut(word: str) -> tuple[int, ...]:
    """The longest pieces from the left; a word that cannot be cut so is unknown."""
    known = vocabulary()
    found: list[int] = []
    begun = 0
    while begun < len(word) <= LONGEST_WORD:
        end = len(word)
        while end > begun and ("##" if begun else "") + word[begun:end] not in known:
            end -= 1
        if end == begun:
            return (known[UNKNOWN],)
        found.append(known[("##" if begun else "") + word[begun:end]])
        begun = end
    return tuple(found) or (known[UNKNOWN],)
