"""Checks a model's bullets against the evidence: the patterns they cite, their numbers, and their advice."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from backsight.core.memory.advice import advice_in
from backsight.core.reflection.lessons import Bullet
from backsight.core.reflection.patterns import Pattern
from backsight.core.reflection.wording import facts
from backsight.core.strategies import Slot

_UNITS = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred"
NUMBER_WORDS: Mapping[str, str] = {
    **{word: str(value) for value, word in enumerate(f"{_UNITS} eighteen nineteen".split(), start=2)},
    **{word: str(10 * tens) for tens, word in enumerate(_TENS.split(), start=2)},
    "thousand": "1000",
    "million": "1000000",
    "dozen": "12",
    "half": "0.5",
    "twice": "2 times",
    "thrice": "3 times",
}
"""English number words. `one`, `double`, `third` and `quarter` are left out because they are ambiguous."""

_NUMBER = re.compile(r"(?:(?<![\w.,])[+-])?(?:(?<!\d)\.)?\d(?:[\d.,:/^eE]*\d)?")
_PLAIN = re.compile(r"([+-]?)(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)")
_WORD = re.compile(r"[^\W\d_]+")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedBullet:
    """A bullet as a model writes it."""

    slot: Slot
    text: str
    cites: tuple[str, ...]
    """Keys of the patterns that support it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedBullet:
    """A bullet that was not accepted, and the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulletCheck:
    """The accepted and the dropped bullets of a model."""

    bullets: tuple[Bullet, ...]
    dropped: tuple[DroppedBullet, ...]


def check_bullets(proposed: Iterable[ProposedBullet], *, patterns: Sequence[Pattern]) -> BulletCheck:
    """Accept the bullets that rest on the given patterns; drop the others, with the reason."""
    by_key = {pattern.key: pattern for pattern in patterns}
    bullets, dropped = list[Bullet](), list[DroppedBullet]()
    for each in proposed:
        reason = _objection(each, by_key)
        if reason is not None:
            dropped.append(DroppedBullet(text=each.text, reason=reason))
            continue
        cited = [by_key[key] for key in dict.fromkeys(each.cites)]
        ids = dict.fromkeys(trade_id for pattern in cited for trade_id in pattern.trade_ids)
        keys = tuple(pattern.key for pattern in cited)
        bullets.append(Bullet(slot=each.slot, text=each.text, evidence=keys, trade_ids=tuple(ids)))
    return BulletCheck(bullets=tuple(bullets), dropped=tuple(dropped))


def numbers_in(text: str) -> list[str]:
    """The numbers in a text in a normal form: digits of any script, and English number words.

    A written sign is kept. A token that is not a plain number, such as a time or a fraction, is returned unchanged.

    >>> numbers_in("−0.70R over 1,067 trades, +12% from 14:00; eight of ½")
    ['-0.7', '1067', '+12', '14:00', '1/2', '8']
    """
    folded = _folded(text)
    digits = [_normal_number(match[0]) for match in _NUMBER.finditer(folded)]
    symbols = [c for c in folded if unicodedata.category(c) in ("No", "Nl")]
    words = [NUMBER_WORDS[word] for match in _WORD.finditer(folded) if (word := match[0].casefold()) in NUMBER_WORDS]
    return digits + symbols + words


def _objection(bullet: ProposedBullet, by_key: Mapping[str, Pattern]) -> str | None:
    """Why a bullet is dropped; None if it is accepted."""
    if not bullet.text.strip():
        return "it says nothing"
    if not bullet.cites:
        return "it cites no evidence"
    if unknown := [key for key in bullet.cites if key not in by_key]:
        return f"it cites {unknown[0]!r}, which was not given"
    cited = [by_key[key] for key in bullet.cites]
    allowed = _allowed_numbers(cited)
    invented = [number for number in numbers_in(_without_names(bullet.text, cited)) if number not in allowed]
    if invented:
        return f"its number {invented[0]} is none of the evidence's"
    advice = advice_in(bullet.text)
    unsupported = [pattern for pattern in cited if pattern.measure == "outcome" and pattern.supports != advice]
    if advice is not None and unsupported:
        how = "less" if advice == "trade_less" else "more"
        return f"it advises to trade {how}, which the mean outcome of {unsupported[0].key!r} does not support"
    return None


def _allowed_numbers(cited: Sequence[Pattern]) -> set[str]:
    """The numbers of the cited patterns as the model was given them, with and without their signs."""
    numbers = {number for pattern in cited for number in numbers_in(_without_names(facts(pattern), [pattern]))}
    numbers |= {number for pattern in cited for number in numbers_in(_numeric_name(pattern))}
    return numbers | {number.lstrip("+-") for number in numbers}


def _numeric_name(pattern: Pattern) -> str:
    """The part of a pattern's name that is a number: an hour, the bounds of a size band, a numeric symbol."""
    if pattern.dimension in ("hour", "size"):
        return f"{pattern.label} {pattern.value}"
    return "" if _LETTER.search(pattern.value) else pattern.value


def _without_names(text: str, cited: Iterable[Pattern]) -> str:
    """The text without the keys and names of the cited patterns: the digits in US30 are not a number."""
    for pattern in cited:
        for name in (pattern.key, pattern.label, pattern.value):
            if _LETTER.search(name):
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text, flags=re.IGNORECASE)
    return text


def _normal_number(token: str) -> str:
    """A plain number without redundant characters; any other token unchanged.

    >>> [_normal_number(token) for token in ("0.70", ".7", "-1,200.0", "+0.0", "007", "14:00", "1e5", "1,20")]
    ['0.7', '0.7', '-1200', '0', '7', '14:00', '1e5', '1,20']
    """
    plain = _PLAIN.fullmatch(token)
    if plain is None:
        return token
    whole, _, part = plain[2].replace(",", "").partition(".")
    value = f"{whole.lstrip('0') or '0'}.{part.rstrip('0')}".rstrip(".")
    return value if value == "0" else f"{plain[1]}{value}"


def _folded(text: str) -> str:
    """The text with ASCII digits, minus signs and fraction slashes.

    >>> _folded("−½ ٩")
    '-1/2 9'
    """
    plain = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-").replace("\N{FRACTION SLASH}", "/")
    return "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in plain)
