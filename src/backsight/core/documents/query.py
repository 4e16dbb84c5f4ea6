"""Queries: how texts and query strings are split into words, and the terms that a query string searches for.

Texts and queries are split in the same way: lower case, without accents, at every character that is neither a letter
nor a digit. So `R3_POSITION_CAP` is three consecutive words: the phrase finds the whole name, and each word finds a
part. The two sides of a pair like `EUR/USD` are also one word, as others write it: `EURUSD` finds it, and is found. A
number sign belongs to the word after it: `#406` is the word 406 and a second word that only `#406` has. Chinese,
Japanese and Korean have no spaces between words: a run of such characters is split into overlapping pairs.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from backsight.core.documents.spelling import umlaut_spellings
from backsight.core.documents.stop_words import language_of, stop_words

MAX_TERMS = 64
"""Later terms of a query are ignored."""
LONGEST_PHRASE = 8
"""Words of a phrase; a longer phrase is searched by its words only."""
LONGEST_WORD = 64
SHORTEST_PREFIX = 2
OTHER_SCRIPT = "other"
_LAST_LATIN = "\u024f"
_PUNCTUATION = "\"'.,;:!?¿¡()[]{}<>*“”„«»…"

_ACCENTS = re.compile("[\u0300-\u036f]")
_WORD = re.compile(r"#?[^\W_]+")
_PAIR = re.compile(r"(?<![^\W_])([^\W\d_]{2,6})[/-](?=([^\W\d_]{2,6})(?![^\W_]))")
_NAME = re.compile("[A-Za-z0-9]+")
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
    spellings: tuple[str, ...] = ()
    """Words that are searched instead of a single word that no text has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A word that a query asks for."""

    text: str
    """As the query writes it."""
    is_name: bool
    """Whether it is a ticker, a code or a number, which only matches itself."""
    wholes: tuple[Term, ...] = ()
    """Phrases and joined words that contain the word: a text that has one of them has the word."""
    umlauts: tuple[str, ...] = ()
    """The word with its umlauts written otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentQuery:
    """The terms that a query string searches for: a text with any term matches, and more terms rank higher."""

    text: str
    terms: tuple[Term, ...]
    query_words: Mapping[Term, QueryWord]
    """The words that the query asks for, by the term that searches for each."""
    language: str | None = None
    """The language of the query, such as 'de'; OTHER_SCRIPT if most letters are not Latin; None if nothing shows it."""

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
    (['r3', 'position', 'cap', 'btcusdt', 'btc', 'usdt', '406', 'ⵌ406'], ['仓位', '位上', '上限', '限'])
    """
    plain = normalised(text)
    joined = {pair.start(1): pair[1] + pair[2] for pair in _PAIR.finditer(plain)}
    for match in _WORD.finditer(plain):
        token = match[0]
        word = token.removeprefix("#")
        if match.start() in joined:
            yield joined[match.start()]
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
    ['cap', 'btcusdt btc usdt', 'btcusdt', 'btc', 'usdt']
    >>> read_query("liqui*").terms[0].prefix, read_query('"').terms, read_query("to be").terms[0].words
    (True, (), ('to',))
    """
    parts = list(_parts(text))
    words = [word for part in parts for term in part.terms for word in term.words]
    stops = stop_words(words)
    terms = list(dict.fromkeys(term for part in parts for term in part.terms))
    wanted = ([term for term in terms if not stops.issuperset(term.words)] or terms)[:MAX_TERMS]
    return DocumentQuery(
        text=text,
        terms=tuple(wanted),
        query_words=_by_term(parts, frozenset(wanted)),
        language=OTHER_SCRIPT if _is_other_script(text) else language_of(words),
    )


def _is_other_script(text: str) -> bool:
    """Whether most letters of a text are not Latin.

    >>> _is_other_script("仓位 BTC 上限"), _is_other_script("β of the book"), _is_other_script("Übernahme")
    (True, False, False)
    """
    letters = [letter for letter in normalised(text) if letter.isalpha()]
    return 2 * sum(letter > _LAST_LATIN for letter in letters) > len(letters)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a query between spaces, or a quoted phrase: its terms, and the words and joined words among them."""

    text: str
    terms: list[Term]
    single: list[Term]
    joined: list[Term]


def _by_term(parts: Iterable[_Part], wanted: Set[Term]) -> dict[Term, QueryWord]:
    """The words that the terms of a search stand for."""
    by_term: dict[Term, QueryWord] = {}
    for part in parts:
        wholes = tuple(term for term in part.terms if term in wanted and (len(term.words) > 1 or term in part.joined))
        names = [name for name in _NAME.findall(part.text) if _is_name(name)]
        named = {word for name in names for word in words_of(name)}
        for term in part.single:
            if term in wanted and term not in by_term:
                is_whole_text = len(part.single) == 1
                shown = part.text.strip(_PUNCTUATION) if is_whole_text else term.words[0].replace(_NUMBER_SIGN, "#")
                by_term[term] = QueryWord(
                    text=shown,
                    is_name=term.words[0] in named,
                    wholes=wholes,
                    umlauts=umlaut_spellings(shown, term.words[0]),
                )
    return by_term


def _parts(text: str) -> Iterator[_Part]:
    for quoted in _QUOTED.finditer(text):
        phrase = list(_phrase(_query_words(quoted[1] or quoted[2] or "")))
        yield _Part(quoted[0], phrase, [], [])
    prefixes = {word for star in _PREFIX.finditer(text) for word in words_of(star[1]) if len(word) >= SHORTEST_PREFIX}
    for part in text.split():
        words = _query_words(part)
        pairs = {pair[1] + pair[2] for pair in _PAIR.finditer(normalised(part))}
        terms = {word: Term(words=(word,), prefix=_is_single_cjk(word) or word in prefixes) for word in words}
        joined = [term for word, term in terms.items() if word in pairs]
        single = [term for word, term in terms.items() if word not in pairs]
        yield _Part(part, [*_phrase(words), *terms.values()], single, joined)


def _is_name(text: str) -> bool:
    """Whether letters and digits are a ticker, a code or a number, and not an ordinary word.

    >>> [text for text in ("SOL", "E1042", "64", "Gold", "I") if _is_name(text)]
    ['SOL', 'E1042', '64']
    """
    return (len(text) > 1 and text.isupper()) or any(map(str.isdigit, text))


def _is_single_cjk(word: str) -> bool:
    return len(word) == 1 and _IS_CJK.match(word) is not None


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
