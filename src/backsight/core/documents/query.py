"""Words: what a text is indexed by, and what any string asks for.

Both sides are cut alike: lower case, without accents, at everything that is neither letter nor digit. So
`R3_POSITION_CAP` is three words in a row, found whole as a phrase and in part as words. A number sign belongs to what
follows: `#406` is the word 406 and, beside it, a word that only `#406` has. Chinese, Japanese and Korean have no spaces
to cut at: a run of them is read as its overlapping pairs.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from backsight.core.text.stems import STOPS

MOST_TERMS = 64
"""What a query is looked up by; what comes after says little that was not said."""
LONGEST_PHRASE = 8
"""Words; a longer row of words hardly stands anywhere as it is."""
LONGEST_WORD = 64
SHORTEST_PREFIX = 2

_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"#?[^\W_]+")
_SIGN = "\u2d4c"
"""A letter, the Tifinagh azh, that stands for a number sign: databases drop the sign itself."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(f"[{_CJK}]+|[^{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")
_QUOTED = re.compile(r'"([^"]*)"|\u201c([^\u201d]*)\u201d')
_PREFIX = re.compile(r"([^\W_]+)\*(?!\S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A word, or several in a row; with `prefix` the last may go on."""

    words: tuple[str, ...]
    prefix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a string asks for: a text that has any of the terms is found, and the more the better."""

    text: str
    terms: tuple[Term, ...]

    @property
    def words(self) -> frozenset[str]:
        """All words of all terms, as they are written."""
        return frozenset(word.replace(_SIGN, "#") for term in self.terms for word in term.words)


def folded(text: str) -> str:
    """A text as it is compared: lower case, no accents, one form of each character.

    >>> folded("Café Ｒ３"), folded("STRASSE") == folded("straße")
    ('cafe r3', True)
    """
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold()))


def words_of(text: str) -> Iterator[str]:
    """The words of a text in their order, as it is indexed.

    >>> list(words_of("R3_POSITION_CAP: BTC/USDT, #406")), list(words_of("仓位上限"))
    (['r3', 'position', 'cap', 'btc', 'usdt', '406', 'ⵌ406'], ['仓位', '位上', '上限', '限'])
    """
    for found in _WORD.findall(folded(text)):
        word = found.removeprefix("#")
        for run in _RUN.findall(word) if _IS_CJK.search(word) else (word,):
            if _IS_CJK.match(run):
                yield from (run[place : place + 2] for place in range(len(run)))
            else:
                yield run[:LONGEST_WORD]
        if word != found:
            yield _SIGN + word[:LONGEST_WORD]


def read_query(text: str) -> Query:
    """What a string asks for; any string does, if only for nothing.

    >>> [" ".join(term.words) for term in read_query("what is the cap of BTC/USDT?").terms]
    ['cap', 'btc usdt', 'btc', 'usdt']
    >>> read_query("liqui*").terms, read_query('"').terms, read_query("to be").terms[0].words
    ((Term(words=('liqui',), prefix=True),), (), ('to',))
    """
    terms = list(dict.fromkeys(_terms(text)))
    telling = [term for term in terms if not STOPS.issuperset(term.words)]
    return Query(text=text, terms=tuple((telling or terms)[:MOST_TERMS]))


def _terms(text: str) -> Iterator[Term]:
    for found in _QUOTED.finditer(text):
        yield from _phrase(_asked(found[1] or found[2] or ""))
    begun = {word for found in _PREFIX.finditer(text) for word in words_of(found[1]) if len(word) >= SHORTEST_PREFIX}
    for piece in text.split():
        words = _asked(piece)
        yield from _phrase(words)
        for word in words:
            single_sign = len(word) == 1 and _IS_CJK.match(word) is not None
            yield Term(words=(word,), prefix=single_sign or word in begun)


def _asked(piece: str) -> list[str]:
    """The words of a piece of a query; the end of a run of signs that stands in a pair already is left out."""
    words = list(words_of(piece))
    return [
        word
        for place, word in enumerate(words)
        if not (place and len(word) == 1 and _IS_CJK.match(word) and words[place - 1].endswith(word))
    ]


def _phrase(words: list[str]) -> Iterable[Term]:
    return [Term(words=tuple(words))] if 1 < len(words) <= LONGEST_PHRASE else []
