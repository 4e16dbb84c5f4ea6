"""Spelling: words within one typing error of a word, and other spellings of its umlauts.

All words at one edit are listed (Norvig 2007), and the keyword index says which of them exist. A name, a code or a
number is never corrected: E1042 and E1043 are different errors.
"""

import unicodedata
from collections.abc import Iterator

SHORTEST_CORRECTED = 5
"""Shorter words have too many neighbours."""
LONGEST_CORRECTED = 24
_ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω")
_UMLAUTS = {"ae": "a", "oe": "o", "ue": "u"}
_SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


def spellings(word: str) -> tuple[str, ...]:
    """Other spellings under which a word may be indexed; empty for words that are not corrected.

    >>> "slippage" in spellings("slipage"), "gebuhren" in spellings("gebuehren"), spellings("e1042"), spellings("sol")
    (True, True, (), ())
    """
    alphabet = next((letters for letters in _ALPHABETS if set(word) <= set(letters)), None)
    if alphabet is None or not SHORTEST_CORRECTED <= len(word) <= LONGEST_CORRECTED:
        return ()
    return tuple(dict.fromkeys(each for each in (without_umlauts(word), *_edits(word, alphabet)) if each != word))


def umlaut_spellings(text: str, word: str) -> tuple[str, ...]:
    """Other ways to write the umlauts of a word, which are no error; `text` is the word as it was written.

    >>> umlaut_spellings("Gebuehren", "gebuehren"), umlaut_spellings("Gebühren", "gebuhren"), umlaut_spellings("a", "a")
    (('gebuhren',), ('gebuehren',), ())
    """
    spelled_out = unicodedata.normalize("NFC", text).lower().translate(_SPELLED_OUT)
    others = (without_umlauts(word), spelled_out if spelled_out.isalnum() else word)
    return tuple(dict.fromkeys(each for each in others if each != word))


def without_umlauts(word: str) -> str:
    """A word with the letters that stand for umlauts as they are indexed, without accents.

    >>> without_umlauts("ueberschuesse"), without_umlauts("gold")
    ('uberschusse', 'gold')
    """
    for pair, letter in _UMLAUTS.items():
        word = word.replace(pair, letter)
    return word


def _edits(word: str, alphabet: str) -> Iterator[str]:
    """Words at one deletion, transposition, substitution or insertion."""
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in alphabet)
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        yield from (before + letter + after for letter in alphabet)
