"""Queries: how texts and query strings are split into words, and the terms that a query string searches for.

Texts and queries are split in the same way: lower case, without accents, at every character that is neither a letter
nor a digit. So `R3_POSITION_CAP` is three consecutive words: the phrase finds the whole name, and each word finds a
part. A number sign belongs to the word after it: `#406` is the word 406 and a second word that only `#406` has.
Chinese, Japanese and Korean have no spaces between words: a run of such characters is split into overlapping pairs.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backsight.core.text.stems import STOPS

MAX_TERMS = 64
"""Later terms of a query are ignored."""
LONGEST_PHRASE = 8
"""Words of a phrase; a longer phrase is searched by its words only."""
LONGEST_WORD = 64
SHORTEST_PREFIX = 2

_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"#?[^\W_]+")
_NUMBER_SIGN = "\u2d4c"
"""A letter (Tifinagh Tuareg yazh) in place of the number sign, because databases drop the sign itself."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(f"[{_CJK}]+|[^{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")
_QUOTED = re.compile(r'"([^"]*)"|\u201c([^\u201c\u201d]*)\u201d')
_PREFIX = re.compile(r"(?<![^\W_])([^\W_]+)\*(?!\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word, or a phrase of consecutive words; with `prefix`, the last word is the beginning of a word."""

    words: tuple[str, ...]
    prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQuery:
    """The terms that a query string searches for: a text with any term matches, and more terms rank higher."""

    text: str
    terms: tuple[Term, ...]

    @property
    def words(self) -> frozenset[str]:
        """All words of all terms, with number signs as the user writes them."""
        return frozenset(word.replace(_NUMBER_SIGN, "#") for term in self.terms for word in term.words)


def normalised(text: str) -> str:
    """A text for comparison: lower case, without accents, in one Unicode form.

    >>> normalised("Café Ｒ３"), normalised("STRASSE") == normalised("straße")
    ('cafe r3', True)
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold()))


def words_of(text: str) -> Iterator[str]:
    """The words that a text is indexed by, in order.

    >>> list(words_of("R3_POSITION_CAP: BTC/USDT, #406")), list(words_of("仓位上限"))
    (['r3', 'position', 'cap', 'btc', 'usdt', '406', 'ⵌ406'], ['仓位', '位上', '上限', '限'])
    """
    for token in _WORD.findall(normalised(text)):
        word = token.removeprefix("#")
        for run in _RUN.findall(word) if _IS_CJK.search(word) else (word,):
            if _IS_CJK.match(run):
                yield from (run[start : start + 2] for start in range(len(run)))
            else:
                yield run[:LONGEST_WORD]
        if word != token:
            yield _NUMBER_SIGN + word[:LONGEST_WORD]


def read_query(text: str) -> DocumentQuery:
    """The terms of any query string; a string without words has no terms.

    >>> [" ".join(term.words) for term in read_query("what is the cap of BTC/USDT?").terms]
    ['cap', 'btc usdt', 'btc', 'usdt']
    >>> read_query("liqui*").terms, read_query('"').terms, read_query("to be").terms[0].words
    ((Term(words=('liqui',), prefix=True),), (), ('to',))
    """
    terms = list(dict.fromkeys(_terms(text)))
    without_stops = [term for term in terms if not STOPS.issuperset(term.words)]
    return DocumentQuery(text=text, terms=tuple((without_stops or terms)[:MAX_TERMS]))


def _terms(text: str) -> Iterator[Term]:
    for quoted in _QUOTED.finditer(text):
        yield from _phrase(_query_words(quoted[1] or quoted[2] or ""))
    prefixes = {word for star in _PREFIX.finditer(text) for word in words_of(star[1]) if len(word) >= SHORTEST_PREFIX}
    for part in text.split():
        words = _query_words(part)
        yield from _phrase(words)
        for word in words:
            is_single_cjk = len(word) == 1 and _IS_CJK.match(word) is not None
            yield Term(words=(word,), prefix=is_single_cjk or word in prefixes)


def _query_words(part: str) -> list[str]:
    """The words of a part of a query, without the last single CJK character of a run: the pair before it has it."""
    words = list(words_of(part))
    return [
        word
        for place, word in enumerate(words)
        if not (place and len(word) == 1 and _IS_CJK.match(word) and words[place - 1].endswith(word))
    ]


def _phrase(words: list[str]) -> Iterable[Term]:
    return [Term(words=tuple(words))] if 1 < len(words) <= LONGEST_PHRASE else []
