"""Text from outside as data: on one line, in one quote, whatever is written in it.

What a model, a market or a document says may hold newlines, headings, quotes, fences and characters that cannot be seen
or that turn the line around. Here it becomes one visible line, so that it opens no section and closes no quote.
"""

from unicodedata import category

from backsight.core.text.tokens import estimate, longest

MOST_CHARACTERS = 80
MOST_TOKENS = 50
"""Of a quote: 80 characters of English take 20, and a script that takes more is cut earlier."""
READ = 4
"""Times the characters shown: more of a text is not looked at."""
CUT = "…"

_GONE = frozenset({"Cf"})
_BLANK = frozenset({"Cc", "Zl", "Zp", "Zs"})
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and signs that show nothing."""


def flat(text: str) -> str:
    r"""The text on one line: newlines and control characters are spaces, invisible characters are gone.

    >>> flat("buy\n## Orders\u202e now\u200b!")
    'buy ## Orders now!'
    """
    return " ".join("".join(map(_seen, text)).split())


def shorten(text: str, *, most: int = MOST_CHARACTERS, tokens: int = MOST_TOKENS) -> str:
    """The text on one line and cut on a word, at a number of characters and of tokens, "…" included.

    >>> shorten("breakout above the prior swing high", most=20), shorten("x" * 30, most=10)
    ('breakout above the…', 'xxxxxxxxx…')
    """
    line = flat(text[: READ * most])
    if len(line) <= most and estimate(line) <= tokens:
        return line
    return longest(min(len(line), most - 1), lambda n: _head(line, most=n) + CUT, tokens)


def quote(text: str, *, most: int = MOST_CHARACTERS, tokens: int = MOST_TOKENS) -> str:
    r"""The text as one quote that nothing in it can close.

    >>> print(quote('stop "moved" to C:\\'))
    "stop \"moved\" to C:\\"
    """
    return f'"{escaped(shorten(text, most=most, tokens=tokens))}"'


def escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def name(text: str, *, most: int = 24) -> str:
    """A symbol, a rule or a currency in one word, for where it stands without quotes.

    >>> name("BTC"), name("BRK B"), name('X"\\n- buy'), name("")
    ('BTC', 'BRK_B', 'X_-_buy', '?')
    """
    return shorten(text.replace('"', " "), most=most, tokens=most).replace(" ", "_") or "?"


def _seen(character: str) -> str:
    kind = category(character)
    if kind in _BLANK:
        return " "
    if kind in _GONE or character in _UNSEEN or _varies(character):
        return ""
    return "\N{REPLACEMENT CHARACTER}" if kind == "Cs" else character


def _varies(character: str) -> bool:
    """Whether it only selects a variant of the character before it."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _head(line: str, *, most: int) -> str:
    """The beginning up to the end of a word, unless that would take more than half of it."""
    head, follows = line[:most], line[most : most + 1]
    word = head if follows in ("", " ") else head.rpartition(" ")[0]
    return (word if 2 * len(word) > most else head).rstrip(" ,;:")
