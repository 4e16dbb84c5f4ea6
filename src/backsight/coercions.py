"""Sloppy calls with one meaning: values that the strict types refuse, read as what they can only mean.

The layer stands before the strict validation and changes only calls that it refuses, so an exact call is taken as it
is. The rule of a value follows from the type of its argument, never from the call. Whatever has two meanings is left to
the validation, which refuses it. Each reading is a note on the answer.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from os import PathLike, fspath
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from backsight.arguments import Border, FileMark, NameMark, ProofMark
from backsight.core.errors import printable, shortened
from backsight.core.instants import PLAIN_DATE, format_instant
from backsight.core.instruments import INSTRUMENT_KIND_WORDS, InstrumentKind
from backsight.core.memory.kind import MEMORY_KIND_WORDS, MemoryKind
from backsight.core.portfolio import (
    DIRECTION_WORDS,
    MODE_CHOICE_WORDS,
    MODE_WORDS,
    POSITION_MODE_WORDS,
    Direction,
    Mode,
    ModeChoice,
    PositionMode,
)
from backsight.core.reflection.periods import PERIOD_WORDS, Period
from backsight.core.regime import (
    REGIME_WORDS,
    SESSION_WORDS,
    VOLATILITY_WORDS,
    Regime,
    Session,
    VolatilityRegime,
)
from backsight.core.trades.choices import ORDER_WORDS, RESULT_WORDS, TradeOrder, TradeResult
from backsight.json_schemas import LARGEST_WHOLE

WORDS: Mapping[Any, Mapping[str, str]] = {
    Direction: DIRECTION_WORDS,
    Mode: MODE_WORDS,
    ModeChoice: MODE_CHOICE_WORDS,
    PositionMode: POSITION_MODE_WORDS,
    Regime: REGIME_WORDS,
    VolatilityRegime: VOLATILITY_WORDS,
    Session: SESSION_WORDS,
    MemoryKind: MEMORY_KIND_WORDS,
    TradeOrder: ORDER_WORDS,
    TradeResult: RESULT_WORDS,
    InstrumentKind: INSTRUMENT_KIND_WORDS,
    Period: PERIOD_WORDS,
}
"""Common words for the labels of a closed choice, beside its upper and lower case, blanks, `-` and `_`."""

RULES: tuple[tuple[str, str, str], ...] = (
    ("a closed choice", "any case; blanks, `-` and `_`; the words below", "a word that may mean two choices"),
    (
        "a number",
        "text; `5,175.50` and `1,234,567`; `Decimal`, `Fraction`, NumPy",
        "`1,234`, `$5`, NaN, infinity, true",
    ),
    ("a share", "also `80%`", "80"),
    ("a whole number", "also `5.0`", "`5.5`"),
    ("true or false", "`yes`, `no`, 1, 0, as text too", "other text"),
    (
        "an instant",
        "a date: its midnight in UTC; ` UTC` after a time; a Timestamp of pandas",
        "a time without a zone; a number",
    ),
    (
        "a name or key",
        "blanks around it; a whole number; a UUID; a path of a file as `Path`",
        "text that is too long, or has control characters",
    ),
    ("a list", "JSON as text; a single value; an array; choices with commas between", "other text with commas"),
    ("an object", "JSON as text; names in any case and as `entryPrice`", "text that is not JSON"),
    (
        "any optional argument",
        '`""` and blanks mean left out, and so does `null` or `none` as text, but for text',
        "`nan`",
    ),
    ("a member of an enum", "its value, else its name where that is a choice", "another one"),
)
"""How values are read by the kind of their argument: what is read, and what stays refused."""

LEFT_OUT = frozenset({"null", "none"})
"""Texts that models write for null, where the argument is no text."""
FLAGS: Mapping[Any, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
MOST_NOTES = 20
LONGEST_NUMBER = LONGEST_EXCERPT = 40
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++|[0-9]{1,3}(?:,[0-9]{3})++\.[0-9]++|[0-9]{1,3}(?:,[0-9]{3}){2,}+)(?:[eE][+-]?[0-9]++)?"
)
"""A number as text. `1,234` is none: it may be 1234, and 1.234 where a comma is the decimal sign."""


@dataclass(slots=True)
class CallNotes:
    """What was read from another form in a call, in the order of its arguments."""

    texts: list[str] = field(default_factory=list)

    def add(self, path: str, value: object, meaning: str) -> None:
        self.texts.append(f"{printable(shortened(path, 80))}: {_written(value)} read as {meaning}")

    def shown(self) -> tuple[str, ...]:
        more = len(self.texts) - MOST_NOTES
        return (*self.texts[:MOST_NOTES], *([f"and {more} more values"] if more > 0 else []))


@dataclass(frozen=True, slots=True)
class ArgumentKind:
    """The type of an argument without `Annotated` and null."""

    base: Any
    marks: tuple[Any, ...]
    optional: bool

    def border(self) -> Border | None:
        return next((mark for mark in self.marks if isinstance(mark, Border)), None)

    def has_mark(self, mark: type) -> bool:
        return any(isinstance(each, mark) for each in self.marks)

    def is_share(self) -> bool:
        return bool(self._limit("le") == 1)

    def refuses_empty_text(self) -> bool:
        return bool(self._limit("min_length") == 1)

    def _limit(self, name: str) -> Any:
        limits = (getattr(limit, name, None) for mark in self.marks for limit in getattr(mark, "metadata", ()))
        return next((limit for limit in limits if limit is not None), None)


def kind_of(hint: Any) -> ArgumentKind:
    """The kind of a type.

    >>> kind_of(Annotated[float, "Money."] | None)
    ArgumentKind(base=<class 'float'>, marks=('Money.',), optional=True)
    """
    if get_origin(hint) is Annotated:
        inner = kind_of(get_args(hint)[0])
        return ArgumentKind(inner.base, (*inner.marks, *hint.__metadata__), inner.optional)
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind_of(alternative) for alternative in get_args(hint) if alternative is not type(None)]
        if len(kinds) == 1 and len(get_args(hint)) == 2:
            return ArgumentKind(kinds[0].base, kinds[0].marks, optional=True)
    return ArgumentKind(hint, (), optional=False)


def read_call(
    arguments: Mapping[str, Any], types: Mapping[str, Any], optional: frozenset[str]
) -> tuple[dict[str, Any], CallNotes]:
    """The arguments of a call as their types mean them, and notes on those that were written in another form."""
    notes = CallNotes()
    return _read_fields(arguments, types, optional, "", notes), notes


def read_value(value: Any, hint: Any, path: str, notes: CallNotes, *, optional: bool = False) -> Any:
    """A value as its type means it; a value that has no meaning, or two, is left as it is.

    >>> notes = CallNotes()
    >>> read_value("Trending Up", Regime, "regime", notes), read_value("1,234", float, "pnl", notes)
    ('trending_up', '1,234')
    >>> notes.shown()
    ("regime: 'Trending Up' read as 'trending_up'",)
    """
    kind = kind_of(hint)
    plain = _plain_object(value, kind)
    if isinstance(plain, str) and (optional or kind.optional) and _is_left_out(plain, kind):
        notes.add(path, value, "left out")
        return None
    border = kind.border()
    if border is not None:
        return _read_object(plain, border, path, notes)
    if get_origin(kind.base) in (list, Sequence):
        return _read_list(plain, kind, path, notes)
    if kind.base is dict or get_origin(kind.base) is dict:
        return _read_mapping(plain, kind, path, notes)
    meaning = _read_scalar(plain, kind)
    if type(meaning) is not type(value) or meaning != value:
        notes.add(path, value, _as_text(meaning))
    return meaning


def _plain_object(value: Any, kind: ArgumentKind) -> Any:
    """The plain value of an enum member, a NumPy scalar or array, a decimal, an identifier or a path."""
    if isinstance(value, Enum):
        labels = [label for label in get_args(kind.base) if isinstance(label, str)]
        by_name = labels and choice_of(value.value, kind.base) not in labels
        return value.name if by_name else value.value
    if hasattr(value, "tolist") and not isinstance(
        value, float | str
    ):  # NumPy's scalars and arrays, without importing it
        return value.tolist()
    if isinstance(value, Decimal | Fraction) and kind.base in (float, int):
        return _number_of(value)
    if isinstance(value, UUID) and kind.has_mark(NameMark):
        return str(value)
    if isinstance(value, PathLike) and kind.has_mark(FileMark):
        return fspath(value)
    return value


def _number_of(value: Decimal | Fraction) -> Any:
    try:
        number = float(value)
    except (OverflowError, ValueError):  # too large for a float, or a signalling NaN
        return value
    return int(number) if number.is_integer() and abs(number) <= LARGEST_WHOLE else number


def _is_left_out(text: str, kind: ArgumentKind) -> bool:
    """Whether a text stands for an argument that is left out; prose may be empty, and a name may be `none`."""
    word = text.strip().lower()
    if kind.base is str:
        return not word and kind.refuses_empty_text() and not kind.has_mark(ProofMark)
    return not word or (word in LEFT_OUT and choice_of(text, kind.base) not in get_args(kind.base))


def _read_scalar(value: Any, kind: ArgumentKind) -> Any:
    base = kind.base
    if get_origin(base) is Literal:
        return choice_of(value, base)
    if base is str:
        return _name_of(value) if kind.has_mark(NameMark) else value
    if isinstance(value, bool) and base is not bool:
        return value
    if base is bool:
        return _flag_of(value)
    if base is datetime:
        return _instant_of(value)
    if base is int:
        number = _number_in(value) if isinstance(value, str) else value
        return int(number) if isinstance(number, float) and number.is_integer() else number
    if base is float and isinstance(value, str):
        return _share_in(value) if kind.is_share() else _number_in(value)
    return value


@cache
def _labels_of(choice: Any) -> Mapping[str, str]:
    """The labels of a closed choice by their normal form, and by that of common words for them."""
    labels = [label for label in get_args(choice) if isinstance(label, str)]
    forms = [_normal(label) for label in labels]
    by_form = {form: label for form, label in zip(forms, labels, strict=True) if forms.count(form) == 1}
    words = WORDS.get(choice, {})
    return {_normal(word): label for word, label in words.items()} | by_form


def choice_of(value: Any, choice: Any) -> Any:
    """The label of a closed choice that a text means, whatever its case and blanks.

    >>> choice_of(" BUY ", Direction), choice_of("Paper-Trading", Mode), choice_of("trending", Regime)
    ('long', 'paper', 'trending')
    """
    if not isinstance(value, str) or get_origin(choice) is not Literal or value in get_args(choice):
        return value
    return _labels_of(choice).get(_normal(value), value)


def _normal(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text).casefold() or text


def _name_of(value: Any) -> Any:
    """A name without blanks around it; a whole number is a name too, as brokers number their orders."""
    if isinstance(value, str):
        return value.strip()
    return str(value) if type(value) is int else value


def _flag_of(value: Any) -> Any:
    if isinstance(value, str):
        return FLAGS.get(value.strip().lower(), value)
    return bool(value) if type(value) is int and value in (0, 1) else value


def _number_in(text: str) -> Any:
    """The number that a text means; the text if it means none, or two.

    >>> _number_in(" 5 "), _number_in("1,234.5"), _number_in("1,234"), _number_in("nan")
    (5, 1234.5, '1,234', 'nan')
    """
    slim = text.strip().replace("\N{MINUS SIGN}", "-")
    if len(slim) > LONGEST_NUMBER or not _NUMBER.fullmatch(slim):
        return text
    digits = slim.replace(",", "")
    return int(digits) if digits.lstrip("+-").isdigit() else float(digits)


def _share_in(text: str) -> Any:
    """A share; `80%` is one too.

    >>> _share_in("80%"), _share_in("0.8"), _share_in("much")
    (0.8, 0.8, 'much')
    """
    slim = text.strip()
    number = _number_in(slim.removesuffix("%"))
    if isinstance(number, str):
        return text
    return number / 100 if slim.endswith("%") else number


def _instant_of(value: Any) -> Any:
    """An instant: a date is its midnight in UTC; a time without a zone stays as it is, because it names no instant."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, str):
        return value
    text = value.strip()
    candidate = f"{text}T00:00:00Z" if PLAIN_DATE.fullmatch(text) else _with_z(text.upper())
    if candidate == value or (_aware(value) and text == value):
        return value
    return candidate if _aware(candidate) else value


def _with_z(text: str) -> str:
    """The text of a time whose zone is spelt `UTC` or `GMT`, with a `Z` instead.

    >>> _with_z("2026-06-04 10:00 UTC"), _with_z("2026-06-04T10:00Z")
    ('2026-06-04 10:00Z', '2026-06-04T10:00Z')
    """
    for zone in ("UTC", "GMT"):
        if text.endswith(zone):
            return text.removesuffix(zone).rstrip() + "Z"
    return text


def _aware(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _read_list(value: Any, kind: ArgumentKind, path: str, notes: CallNotes) -> Any:
    """A list, also from JSON text or from a single value; a text with commas may be one value or several."""
    (item,) = get_args(kind.base)
    if isinstance(value, list | tuple):
        return [read_value(each, item, f"{path}.{index}", notes) for index, each in enumerate(value)]
    inner = kind_of(item)
    items = _items_of(value, inner)
    if items is None:
        return value
    meaning = [read_value(each, item, f"{path}.{index}", CallNotes()) for index, each in enumerate(items)]
    notes.add(path, value, _as_text(meaning))
    return meaning


def _items_of(value: Any, item: ArgumentKind) -> list[Any] | None:
    """The items that a value means where a list is wanted; None if it means no list, or two."""
    is_object = item.border() is not None or item.base is dict or get_origin(item.base) is dict
    if isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip()[:1] in ("[", "{")):
        read = _json_in(value) if isinstance(value, str) else value
        if isinstance(read, list):
            return read
        return [read] if is_object and isinstance(read, Mapping) else None
    if is_object or value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        return [value] if isinstance(value, int | float) and item.base in (int, float) else None
    if get_origin(item.base) is Literal:
        return value.split(",")  # no label has a comma
    separators = ",;|\n" if item.has_mark(NameMark) else "\n"
    return None if any(sign in value for sign in separators) else [value]


def _read_object(value: Any, border: Border, path: str, notes: CallNotes) -> Any:
    if isinstance(value, str):
        value = _object_in(value, path, notes)
    fields = value if border.trusted else border.fields_of(value)
    if not isinstance(fields, Mapping):
        return value
    inner = CallNotes()
    meaning = _read_fields(fields, border.field_types, border.optional_fields, f"{path}.", inner)
    notes.texts += inner.texts
    return meaning if inner.texts else value


def _read_mapping(value: Any, kind: ArgumentKind, path: str, notes: CallNotes) -> Any:
    """An object with any names, also from JSON text; names and values are read by their types, if they have any."""
    if isinstance(value, str):
        value = _object_in(value, path, notes)
    if not isinstance(value, Mapping) or not get_args(kind.base):
        return value
    name_type, value_type = get_args(kind.base)
    if value_type is Any:
        return value
    return {
        read_value(name, name_type, f"{path}.{name}", notes): read_value(each, value_type, f"{path}.{name}", notes)
        for name, each in value.items()
    }


def _read_fields(
    values: Mapping[str, Any], types: Mapping[str, Any], optional: frozenset[str], prefix: str, notes: CallNotes
) -> dict[str, Any]:
    """Fields by name; a name is found whatever its case and separators, as `entryPrice` for `entry_price`."""
    by_form = {_normal(name): name for name in types}
    read: dict[str, Any] = {}
    for written, value in values.items():
        name = written
        if isinstance(written, str) and written not in types:
            name = by_form.get(_normal(written), written)
            if name in values or name in read:
                name = written
        if name != written:
            notes.add(prefix + name, written, f"the name {name!r}")
        if name in types and value is not None:
            value = read_value(value, types[name], prefix + name, notes, optional=name in optional)
        read[name] = value
    return read


def _object_in(text: str, path: str, notes: CallNotes) -> Any:
    read = _json_in(text) if text.lstrip().startswith("{") else text
    if isinstance(read, dict):
        notes.add(path, text, "an object")
        return read
    return text


def _json_in(text: str) -> Any:
    """The value of JSON text; the text if it is none. NaN and infinity are not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _as_text(meaning: Any) -> str:
    """What a value was read as, for a note.

    >>> _as_text(["trending_up"]), _as_text(5), _as_text({"limit": 5})
    ("['trending_up']", '5', 'an object')
    """
    if isinstance(meaning, datetime):
        return format_instant(meaning)
    if isinstance(meaning, Mapping):
        return "an object"
    return _written(meaning)


def _written(value: Any) -> str:
    """The beginning of a value as it was written, on one line."""
    return shortened(printable(repr(value)), LONGEST_EXCERPT)
