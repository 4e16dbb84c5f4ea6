"""Card types: which fields the result of a run has, what the fields mean, and whether a result fits."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from backsight.core.errors import Conflict, Invalid, did_you_mean
from backsight.core.ids import canonical_json
from backsight.core.portfolio import Direction

FieldType = Literal["text", "number", "flag", "list"]
"""`list` is a list of texts."""
CardRole = Literal["symbol", "direction", "entry", "target", "stop", "confidence", "timeframe", "watch_for", "summary"]
"""What a field means: the resolver and the lists read fields by their role."""
ReExaminable = Literal["never", "always", "until_resolved"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)
ROLES: tuple[CardRole, ...] = get_args(CardRole)
TYPE_OF_ROLE: Mapping[CardRole, FieldType] = {
    **dict.fromkeys(("symbol", "direction", "timeframe", "summary"), "text"),
    **dict.fromkeys(("entry", "target", "stop", "confidence"), "number"),
    "watch_for": "list",
}
RE_EXAMINATION = "re_examination"
"""The name of the card type of the answers of re-examinations."""
MOST_FIELDS = 50
LONGEST_RESULT = 100_000
"""Characters of a result as JSON."""
LONGEST_ACTION = 20
DEEPEST = 20
"""Levels of nested values in a result."""
LONG, SHORT = frozenset({"long", "buy", "bullish"}), frozenset({"short", "sell", "bearish"})
MOST_BITS = 1_023
"""Of a whole number, so that it is a finite number as a float as well."""
SURROGATE = re.compile("[\ud800-\udfff]")
FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ -]{0,49}")
ACTION = re.compile(rf"[A-Z][A-Z_]{{0,{LONGEST_ACTION - 1}}}")
TIMEFRAME = re.compile(r"(?:(\d{1,4})\s*([smhdw])|([smhdw])(\d{1,4}))", re.IGNORECASE)
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardField:
    """A field of a card: its name, its type, whether it must be given, and what it means."""

    name: str
    type: FieldType
    required: bool = False
    role: CardRole | None = None
    """What the field means to Backsight; None if nothing."""
    choices: tuple[str, ...] = ()
    """The values that a text may have; empty: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardType:
    """The shape of a result: its fields, and whether and with which advice a decision may be re-examined."""

    owner_id: str
    name: str
    fields: tuple[CardField, ...]
    re_examinable: ReExaminable
    actions: tuple[str, ...]
    """The words that a re-examination may advise; empty: any short word in capitals."""
    known_at: datetime
    recorded_at: datetime

    def field_of(self, role: CardRole) -> CardField | None:
        """The field with a role."""
        return next((field for field in self.fields if field.role == role), None)

    def value_of(self, result: Mapping[str, Any], role: CardRole) -> Any:
        """The value of the field with a role in a result; None if there is none."""
        field = self.field_of(role)
        return None if field is None else result.get(field.name)


LEVELS = tuple(CardField(name=name, type="number", role=name) for name in ("entry", "target", "stop"))


def shipped_types(owner: str) -> tuple[CardType, ...]:
    """The card types that every owner has."""
    since = datetime(1970, 1, 1, tzinfo=UTC)
    return (
        CardType(
            owner_id=owner,
            name="trade_decision",
            fields=(
                CardField(name="symbol", type="text", required=True, role="symbol"),
                CardField(
                    name="decision", type="text", required=True, role="direction", choices=("LONG", "SHORT", "WAIT")
                ),
                *LEVELS,
                CardField(name="confidence", type="number", role="confidence"),
                CardField(name="timeframe", type="text", role="timeframe"),
                CardField(name="summary", type="text", role="summary"),
                CardField(name="watch_for", type="list", role="watch_for"),
            ),
            re_examinable="until_resolved",
            actions=("HOLD", "CLOSE", "SCALE"),
            known_at=since,
            recorded_at=since,
        ),
        CardType(
            owner_id=owner,
            name="research_thesis",
            fields=(
                CardField(name="thesis", type="text", required=True, role="summary"),
                CardField(name="symbol", type="text", role="symbol"),
                CardField(name="stance", type="text", choices=("BULLISH", "BEARISH", "NEUTRAL")),
                CardField(name="confidence", type="number", role="confidence"),
                CardField(name="timeframe", type="text", role="timeframe"),
                CardField(name="watch_for", type="list", role="watch_for"),
            ),
            re_examinable="always",
            actions=(),
            known_at=since,
            recorded_at=since,
        ),
    )


SHIPPED = tuple(each.name for each in shipped_types(""))


def checked_type(card_type: CardType) -> CardType:
    """A card type whose definition makes sense; `Invalid` names the field that does not."""
    if card_type.name in (*SHIPPED, RE_EXAMINATION):
        raise Conflict(f"{card_type.name!r} is a shipped card type; choose another name", field="name")
    if not card_type.fields:
        raise Invalid("a card type without fields; give at least one", field="fields")
    names: set[str] = set()
    roles: set[CardRole] = set()
    for number, field in enumerate(card_type.fields):
        place = f"fields.{number}"
        if not FIELD_NAME.fullmatch(field.name):
            raise Invalid(f"{field.name[:40]!r} is no field name; give letters, digits and _", field=f"{place}.name")
        if field.name in names:
            raise Invalid(f"the field {field.name!r} is there twice; give each field once", field=f"{place}.name")
        names.add(field.name)
        if field.choices and field.type != "text":
            raise Invalid(f"{field.name!r} is no text, and only a text has choices", field=f"{place}.choices")
        if field.role is None:
            continue
        if field.role in roles:
            raise Invalid(f"two fields mean {field.role!r}; give the role to one", field=f"{place}.role")
        roles.add(field.role)
        if field.type != TYPE_OF_ROLE[field.role]:
            wanted = TYPE_OF_ROLE[field.role]
            raise Invalid(f"{field.role!r} is a {wanted}, not a {field.type}; change one", field=f"{place}.type")
    for number, action in enumerate(card_type.actions):
        if not ACTION.fullmatch(action):
            raise Invalid(
                f"{action[:40]!r} is no action; give at most {LONGEST_ACTION} capital letters",
                field=f"actions.{number}",
            )
    return card_type


def checked_result(result: Mapping[str, Any], *, field: str = "result") -> Mapping[str, Any]:
    """A result that can be stored: finite numbers, valid Unicode, not nested too deeply, not too long."""
    for path, value, depth in _values(result, (), 0):
        if depth > DEEPEST:
            raise Invalid(f"{'.'.join(path[:3])}… is nested too deeply; give a flat object", field=field)
        wrong = _unstorable(value) or _unstorable("".join(path[-1:]))
        if wrong:
            name = ".".join((field, *path)).encode("ascii", "backslashreplace").decode()[:200]
            raise Invalid(wrong, field=name)
    length = len(canonical_json(result))
    if length > LONGEST_RESULT:
        raise Invalid(f"has {length:,} characters as JSON; give at most {LONGEST_RESULT:,}", field=field)
    return result


def _unstorable(value: Any) -> str | None:
    """Why a value of a result cannot be stored; None if it can."""
    if isinstance(value, str) and ("\0" in value or SURROGATE.search(value)):
        return "contains a NUL or half a surrogate pair; give valid text"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a finite number; give one, or leave it out if it is not known"
    if isinstance(value, int) and value.bit_length() >= MOST_BITS:
        return "is beyond every finite number; give one, or leave it out if it is not known"
    return None


def _values(value: Any, path: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    yield path, value, depth
    if depth > DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _values(item, (*path, str(name)), depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _values(item, (*path, str(number)), depth + 1)


def misfit(card_type: CardType, result: Mapping[str, Any]) -> str | None:
    """Why a result does not fit its card type; None if it fits. Fields that the type does not know do no harm.

    >>> trade = shipped_types("me")[0]
    >>> misfit(trade, {"symbol": "BTC", "decision": "WAIT"}) is None
    True
    >>> misfit(trade, {"decision": "MAYBE", "entry": "100"})
    'symbol is missing; decision is none of LONG, SHORT, WAIT; entry is not a number'
    """
    reasons = [reason for field in card_type.fields if (reason := _field_misfit(field, result.get(field.name)))]
    return "; ".join(reasons) or None


def _field_misfit(field: CardField, value: Any) -> str | None:
    if value is None or value == "":
        return f"{field.name} is missing" if field.required else None
    match field.type:
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case "flag":
            fits = isinstance(value, bool)
        case "list":
            fits = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        case "text":
            fits = isinstance(value, str)
    if not fits:
        wanted = {"number": "a number", "flag": "true or false", "list": "a list of texts", "text": "a text"}
        return f"{field.name} is not {wanted[field.type]}"
    if field.choices and str(value).strip().upper() not in {choice.upper() for choice in field.choices}:
        return f"{field.name} is none of {', '.join(field.choices)}"
    return None


def direction_of(value: Any) -> Direction | None:
    """The direction of a decision; None if it takes no position.

    >>> direction_of("LONG"), direction_of("sell"), direction_of("WAIT")
    ('long', 'short', None)
    """
    word = str(value).strip().lower()
    return "long" if word in LONG else "short" if word in SHORT else None


def seconds_of(timeframe: Any) -> int | None:
    """The length of a bar of a timeframe; None if it cannot be read.

    >>> [seconds_of(text) for text in ("5m", "4h", "1D", "H1", "soon", None)]
    [300, 14400, 86400, 3600, None, None]
    """
    match = TIMEFRAME.fullmatch(str(timeframe).strip())
    if match is None:
        return None
    number, unit = (match[1], match[2]) if match[1] else (match[4], match[3])
    return int(number) * SECONDS[unit.lower()] or None


def share_of(confidence: Any) -> float | None:
    """A confidence as a share; one above 1 is a percentage.

    >>> share_of(0.7), share_of(70), share_of(-1), share_of("high")
    (0.7, 0.7, None, None)
    """
    if isinstance(confidence, bool) or not isinstance(confidence, int | float):
        return None
    share = confidence / 100 if confidence > 1 else float(confidence)
    return share if 0 <= share <= 1 else None


def texts_of(value: Any) -> tuple[str, ...]:
    """A list of texts, without empty ones; a single text is a list of one."""
    items: Sequence[Any] = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return tuple(text for item in items if isinstance(item, str) and (text := item.strip()))


def card_type_named(name: str, types: Sequence[CardType], *, field: str = "card_type") -> CardType:
    """The card type with a name; `Invalid` with the nearest name if there is none."""
    match = next((each for each in types if each.name == name), None)
    if match is None:
        remedy = did_you_mean(name, [each.name for each in types])
        raise Invalid(f"no card type {name!r}; {remedy}; save_card_type adds one", field=field)
    return match
