"""WordPiece: the tokenizer of BERT and the models derived from it (Devlin et al. 2019, uncased).

The vocabulary is Google's, published under the Apache licence 2.0. It is included here because the package that
contains it installs several hundred megabytes.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("uncased.txt")
UNKNOWN, CLS, SEP = "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100
"""A word of more characters is unknown."""
_CJK_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_ASCII_PUNCTUATION = ((33, 47), (58, 64), (91, 96), (123, 126))


@cache
def vocabulary() -> dict[str, int]:
    """The id of each token."""
    with FILE.open(encoding="utf-8") as lines:
        return {line.rstrip("\n"): number for number, line in enumerate(lines)}


def token_ids(text: str) -> list[int]:
    """The token ids of a text, without the markers [CLS] and [SEP].

    >>> token_ids("Stop-loss at Café"), token_ids("")
    ([2644, 1011, 3279, 2012, 7668], [])
    """
    return [token_id for word in _words(text) for token_id in _split_word(word)]


def _words(text: str) -> Iterator[str]:
    """Words and single punctuation marks, in lower case and without accents."""
    cleaned = unicodedata.normalize("NFD", "".join(map(_clean, text)))
    without_accents = "".join(character for character in cleaned if unicodedata.category(character) != "Mn")
    for word in without_accents.lower().split():
        start = 0
        for place, character in enumerate(word):
            if _is_punctuation(character):
                if start < place:
                    yield word[start:place]
                yield character
                start = place + 1
        if start < len(word):
            yield word[start:]


@lru_cache(maxsize=4_096)
def _clean(character: str) -> str:
    """White space becomes a space, CJK characters become separate words, and invisible characters are removed."""
    if character in "\t\n\r" or unicodedata.category(character) == "Zs":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    code = ord(character)
    return f" {character} " if any(low <= code <= high for low, high in _CJK_RANGES) else character


@lru_cache(maxsize=4_096)
def _is_punctuation(character: str) -> bool:
    code = ord(character)
    return any(low <= code <= high for low, high in _ASCII_PUNCTUATION) or unicodedata.category(character).startswith(
        "P"
    )


@lru_cache(maxsize=65_536)
def _split_word(word: str) -> tuple[int, ...]:
    """The ids of the longest known tokens from left to right; the unknown token if some part is not known."""
    known = vocabulary()
    ids: list[int] = []
    start = 0
    while start < len(word) <= LONGEST_WORD:
        continued = "##" if start else ""
        end = len(word)
        while end > start and continued + word[start:end] not in known:
            end -= 1
        if end == start:
            return (known[UNKNOWN],)
        ids.append(known[continued + word[start:end]])
        start = end
    return tuple(ids) or (known[UNKNOWN],)
