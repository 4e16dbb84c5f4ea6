"""The word stems of a text. Other texts play no part, so nothing leaks from the future or from other owners."""

import re
from collections.abc import Collection, Sequence, Set
from functools import lru_cache

TEXT_WEIGHT = 0.10
"""Weight of the text in Sim, beside the fields of the context."""

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
STOP_WORDS = """
    a about after again all also am an and any are as at be because been before being both but by can could did do does
    doing during each few for from further had has have having he her here hers him his how i if in into is it its
    itself just me more most my myself of on once only or other our ours own same she should so some such than that
    the their theirs them then there these they this those through to too until very was we were what when where which
    while who whom why will with would you your yours
"""
STOPS = frozenset(STOP_WORDS.split())
"""Stop words. Up, down, above, below, out, over, under and no are not included: they describe where a market goes."""
VOWELS = frozenset("aeiouy")
SINGULAR_ENDINGS = ("ss", "us", "is", "ias")
"""Words with these endings are not plurals."""
FINAL_DOUBLES = frozenset("lsz")


def stems(text: str | None) -> frozenset[str]:
    """The distinct stems of a text without stop words; words consist of letters and digits of any script.

    >>> sorted(stems("London opened; the range broke out on rising volumes, it's the trader's 2nd try"))
    ['2nd', 'brok', 'london', 'open', 'out', 'rang', 'ris', 'trader', 'try', 'volum']
    >>> stems("it was what it is"), stems(None)
    (frozenset(), frozenset())
    """
    lower = (text or "").lower().replace("’", "'")
    words = set(WORD.findall(lower))
    if "'" not in lower:
        return frozenset(map(stem, words - STOPS))
    contractions = {word for word in words if "'" in word}
    heads = {word.partition("'")[0] for word in contractions if not word.endswith("n't")}
    return frozenset(map(stem, (words - contractions | heads) - STOPS))


TEXT_END = "\0"
"""Stands after the words of each text in `words_of_texts`; no word contains it."""


def words_of_texts(texts: Sequence[str | None]) -> tuple[list[str], list[int]]:
    """The lower-case words of all texts, `TEXT_END` after each text, and the numbers of texts that are left out.

    Only texts in plain ASCII without an apostrophe are split in bulk; `stems` splits the others.

    >>> words_of_texts(["Ranges broke.", None, "it's the ’24 high"])
    (['ranges', 'broke', '\\x00', '\\x00', '\\x00'], [2])
    """
    plain, others = list[str](), list[int]()
    for number, text in enumerate(texts):
        if text and (not text.isascii() or "'" in text):
            others.append(number)
            text = ""
        plain.append(text.replace("\n", " ") if text else "")
    return "\n".join([*plain, ""]).lower().translate(_SPACES).replace("\n", f" {TEXT_END} ").split(), others


_SPACES = {code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != "\n"}
"""Every character that is in no word becomes a space, except the ends of texts."""


def text_likeness(query_words: Set[str], episode_words: Collection[str]) -> float:
    """The fraction of the query's words that occur in the episode.

    >>> query = stems("breaking the London range")
    >>> text_likeness(query, stems("London ranges")), text_likeness(query, stems("nothing")), text_likeness(query, ())
    (0.6666666666666666, 0.0, 0.0)
    """
    return sum(word in episode_words for word in query_words) / len(query_words) if query_words else 0.0


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """An English word without plural, -ed, -ing, -ly and silent e; words of other scripts are unchanged.

    >>> [stem(word) for word in ("ranges", "ranged", "ranging", "range")]
    ['rang', 'rang', 'rang', 'rang']
    >>> [stem(word) for word in ("rallies", "rallied", "rallying", "stopped", "losses", "speed", "sharply", "über")]
    ['rally', 'rally', 'rally', 'stop', 'loss', 'speed', 'sharp', 'über']
    """
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    word = _without_tense(_without_plural(word))
    if len(word) > 5 and word.endswith("ly"):
        word = word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@lru_cache(maxsize=65_536)
def distinct_stem(word: str) -> str:
    """The stem of a word; a short word keeps its silent e, so that no ticker is the stem of another word.

    >>> [distinct_stem(word) for word in ("files", "filing", "fil", "rune", "runs", "running", "eased", "ranges")]
    ['file', 'file', 'fil', 'rune', 'run', 'run', 'ease', 'rang']
    """
    root = stem(word)
    singular = _without_plural(word)
    if len(root) > 3 or root in (word, singular):
        return root
    # An ending after one consonant was written without the e: "filing", but "running".
    closed = root[0] not in VOWELS and root[1] in VOWELS and root[2] not in VOWELS and root[2] not in "wx"
    is_short = singular.endswith("e") or ((closed or root[2] in "csvz") and not word.startswith(root + root[2]))
    return f"{root}e" if is_short else root


def _without_plural(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word if not word.endswith("s") or word.endswith(SINGULAR_ENDINGS) else word[:-1]


def _without_tense(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    ending = next((end for end in ("ing", "ed") if word.endswith(end) and not word.endswith("eed")), "")
    root = word.removesuffix(ending)
    if not ending or len(root) < 3 or VOWELS.isdisjoint(root):
        return word
    doubled = len(root) > 3 and root[-1] == root[-2] and root[-1] not in FINAL_DOUBLES and root[-1] not in VOWELS
    return root[:-1] if doubled else root
