"""Errors, named by what the caller can do about them, with their HTTP status.

    BacksightError
    ├── Invalid      the request is wrong: change it                          422
    ├── NotFound     no such thing exists: check the name or id               404
    ├── Conflict     the request contradicts stored data: read first          409
    ├── Refused      the request is not allowed: ask the owner                403
    └── Unavailable  the store or a provider does not respond: try later      503

Every surface shows the same kind, field and message.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar

LONGEST_MESSAGE, LONGEST_FIELD = 4_000, 200
"""Characters of an error: the request may have quoted names of any length."""


def shortened(text: str, longest: int) -> str:
    """A text, cut off if it is longer.

    >>> shortened("abcdef", 4), shortened("abc", 4)
    ('abc…', 'abc')
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


def printable(text: str) -> str:
    r"""A text on one line, with escapes in place of control characters: a terminal shows it as it is.

    >>> printable("a\nb\x1b[2J")
    'a\\nb\\x1b[2J'
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class BacksightError(Exception):
    """A request that failed; nothing was written."""

    status: ClassVar[int] = 500

    def __init__(self, message: str, *, field: str | None = None) -> None:
        self.field = field if field is None else shortened(printable(field), LONGEST_FIELD)
        self.message = shortened(f"{self.field}: {message}" if field else message, LONGEST_MESSAGE)
        super().__init__(self.message)

    @property
    def kind(self) -> str:
        return type(self).__name__

    def as_json(self) -> dict[str, str | None]:
        """The error as every surface shows it.

        >>> Invalid("give a number", field="pnl").as_json()
        {'error': 'Invalid', 'field': 'pnl', 'message': 'pnl: give a number'}
        """
        return {"error": self.kind, "field": self.field, "message": self.message}


class Invalid(BacksightError):
    """The request is wrong: change it."""

    status = 422


class NotFound(BacksightError):
    """No such thing exists: check the name or id."""

    status = 404


class Conflict(BacksightError):
    """The request contradicts stored data: read first."""

    status = 409


class Refused(BacksightError):
    """The request is not allowed: ask the owner."""

    status = 403


class Unavailable(BacksightError):
    """The store or a provider does not respond: try later."""

    status = 503


KINDS: tuple[type[BacksightError], ...] = (Invalid, NotFound, Conflict, Refused, Unavailable)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most similar to a misspelt one; None if no word is similar.

    >>> nearest("trend_up", ["trending_up", "ranging"])
    'trending_up'
    >>> nearest("sideways", ["trending_up", "ranging"]) is None
    True
    """
    by_lower_case = {name.lower(): name for name in known}
    matches = get_close_matches(word[:80].lower(), list(by_lower_case), n=1, cutoff=0.6)
    return by_lower_case[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The remedy for an unknown word: the most similar known word, and all known words.

    >>> did_you_mean("lnog", ["long", "short"])
    "did you mean 'long'? Known: long, short"
    >>> did_you_mean("up", ["long", "short"])
    'known: long, short'
    """
    known = list(known)
    match = nearest(word, known)
    known_words = ", ".join(known)
    return f"did you mean '{match}'? Known: {known_words}" if match else f"known: {known_words}"


UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError)
"""What decoding a cell that was spoilt outside Backsight raises, at once or where its value is used."""
