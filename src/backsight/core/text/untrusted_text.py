"""Make untrusted text safe for a prompt: one visible line, in one quote.

Text from a model, a market or a document may contain newlines, headings, quotes, fences, invisible characters and
characters that reverse the direction of a line. Flattened and quoted, it can neither open a section nor close a quote.
"""

import re
from unicodedata import category

from backsight.core.text.tokens import estimate, longest

MOST_CHARACTERS = 80
MOST_TOKENS = 50
"""The most tokens of a quote: 80 characters of English take 20; scripts that take more are cut earlier."""
READ = 4
"""At most this many times the shown characters are read of a text."""
CUT = "…"
MOST_OF_A_TOKEN = 6
"""Characters that a token of prose has at most, on average."""
_CLAUSE_END = re.compile(r"[.,;:!?](?=\s)|\s[–—-](?=\s)")

_REMOVED = frozenset({"Cf"})
_BLANK = frozenset({"Cc", "Zl", "Zp", "Zs"})
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and signs that are invisible."""


def flat(text: str) -> str:
    r"""The text on one line: newlines and control characters become spaces, invisible characters are removed.

    >>> flat("buy\n## Orders\u202e now\u200b!")
    'buy ## Orders now!'
    """
    visible = text if text.isascii() and text.isprintable() else "".join(map(_visible, text))
    return " ".join(visible.split())


def shorten(text: str, *, most: int = MOST_CHARACTERS, tokens: int = MOST_TOKENS) -> str:
    """The text on one line, cut at a word to a number of characters and tokens, including the "…".

    >>> shorten("breakout above the prior swing high", most=20), shorten("x" * 30, most=10)
    ('breakout above the…', 'xxxxxxxxx…')
    """
    line = flat(text[: READ * most])
    if len(line) <= most and estimate(line) <= tokens:
        return line
    return longest(min(len(line), most - 1), lambda n: _head(line, most=n) + CUT, tokens)


def clause(text: str, tokens: int) -> str:
    """The text on one line within a number of tokens: whole, else up to the end of a clause or of a word, with "…".

    >>> clause("Sold too early, in doubt. Next time wait for the close.", 11), clause("Sold too early, in doubt.", 20)
    ('Sold too early, in doubt…', 'Sold too early, in doubt.')
    """
    line = shorten(text, most=MOST_OF_A_TOKEN * tokens, tokens=tokens)
    if not line.endswith(CUT):
        return line
    *_, end = (0, *(match.start() for match in _CLAUSE_END.finditer(line[:-1])))
    return line[:end] + CUT if 2 * end > len(line) else line


def quote(text: str, *, most: int = MOST_CHARACTERS, tokens: int = MOST_TOKENS) -> str:
    r"""The text as one quote, escaped so that nothing in it can close the quote.

    >>> print(quote('stop "moved" to C:\\'))
    "stop \"moved\" to C:\\"
    """
    return f'"{escaped(shorten(text, most=most, tokens=tokens))}"'


def escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def name(text: str, *, most: int = 24, tokens: int | None = None) -> str:
    """A symbol, a rule or a currency as one word, for use without quotes.

    >>> name("BTC"), name("BRK B"), name('X"\\n- buy'), name("")
    ('BTC', 'BRK_B', 'X_-_buy', '?')
    """
    return shorten(text.replace('"', " "), most=most, tokens=tokens or most).replace(" ", "_") or "?"


def _visible(character: str) -> str:
    kind = category(character)
    if kind in _BLANK:
        return " "
    if kind in _REMOVED or character in _INVISIBLE or _selects_variant(character):
        return ""
    return "\N{REPLACEMENT CHARACTER}" if kind == "Cs" else character


def _selects_variant(character: str) -> bool:
    """Whether the character only selects a variant of the character before it."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _head(line: str, *, most: int) -> str:
    """The beginning up to the end of a word, unless that would drop more than half of it."""
    head, follows = line[:most], line[most : most + 1]
    word = head if follows in ("", " ") else head.rpartition(" ")[0]
    return (word if 2 * len(word) > most else head).rstrip(" ,;:")
