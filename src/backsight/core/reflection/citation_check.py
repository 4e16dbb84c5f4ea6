"""What a model writes, held against the evidence that it was given: no pattern and no number of its own."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
"""What number words stand for. `one` is no number here, nor are `double`, `third` and `quarter`: they mean too much."""

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
    """Keys of the evidence that it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedBullet:
    """A bullet that was not taken, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulletCheck:
    """What is left of a model's bullets."""

    bullets: tuple[Bullet, ...]
    dropped: tuple[DroppedBullet, ...]


def check_bullets(proposed: Iterable[ProposedBullet], *, given: Sequence[Pattern]) -> BulletCheck:
    """The bullets that cite evidence given and use no numbers but its own as shown; the others, and why not."""
    by_key = {pattern.key: pattern for pattern in given}
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
    """The numbers in a text, one spelling each: digits of any script, and English number words.

    A sign counts where one is written; what is no plain number, such as a time or a fraction, is taken as it stands.

    >>> numbers_in("−0.70R over 1,067 trades, +12 % from 14:00; eight of ½")
    ['-0.7', '1067', '+12', '14:00', '1/2', '8']
    """
    folded = _folded(text)
    digits = [_normal_number(found[0]) for found in _NUMBER.finditer(folded)]
    other = [c for c in folded if unicodedata.category(c) in ("No", "Nl")]
    words = [NUMBER_WORDS[word] for found in _WORD.finditer(folded) if (word := found[0].casefold()) in NUMBER_WORDS]
    return digits + other + words


def _objection(bullet: ProposedBullet, by_key: Mapping[str, Pattern]) -> str | None:
    """Why a bullet is not taken; None where it is."""
    if not bullet.text.strip():
        return "it says nothing"
    if not bullet.cites:
        return "it cites no evidence"
    if unknown := [key for key in bullet.cites if key not in by_key]:
        return f"it cites {unknown[0]!r}, which was not given"
    cited = [by_key[key] for key in bullet.cites]
    allowed = _allowed_numbers(cited)
    invented = [number for number in numbers_in(_without_names(bullet.text, cited)) if number not in allowed]
    return f"its number {invented[0]} is none of the evidence's" if invented else None


def _allowed_numbers(cited: Sequence[Pattern]) -> set[str]:
    """The numbers shown, with their sign and without."""
    shown = {number for pattern in cited for number in numbers_in(_without_names(facts(pattern), [pattern]))}
    shown |= {number for pattern in cited for number in numbers_in(_numeric_name(pattern))}
    return shown | {number.lstrip("+-") for number in shown}


def _numeric_name(pattern: Pattern) -> str:
    """What is a number in the name of a pattern: an hour, the ends of a size band, a symbol that is one."""
    if pattern.dimension in ("hour", "size"):
        return f"{pattern.label} {pattern.value}"
    return "" if _LETTER.search(pattern.value) else pattern.value


def _without_names(text: str, cited: Iterable[Pattern]) -> str:
    """The text without the keys and names of what it is about: the digits of US30 are no number."""
    for pattern in cited:
        for name in (pattern.key, pattern.label, pattern.value):
            if _LETTER.search(name):
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", " ", text, flags=re.IGNORECASE)
    return text


def _normal_number(token: str) -> str:
    """A plain number without what does not change it; anything else as it stands.

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
    """The text with one spelling of digits, minus and fractions.

    >>> _folded("−½ ٩")
    '-1/2 9'
    """
    plain = unicodedata.normalize("NFKC", text).replace("\N{MINUS SIGN}", "-").replace("\N{FRACTION SLASH}", "/")
    return "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in plain)
