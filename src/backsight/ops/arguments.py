"""The types of arguments, strict at the door: a NaN, a naive time or a misspelt label goes no further."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
)
from pydantic_core import ErrorDetails, core_schema

from backsight.core.context import ContextVector
from backsight.core.errors import Invalid, did_you_mean, nearest
from backsight.core.instants import parse_instant, to_utc
from backsight.core.numbers import positive_zero

LARGEST_WHOLE = 2**53
CONTEXT_FIELDS = [field.name for field in fields(ContextVector)]


def _plain(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character; remove it")
    return text


def _one_line(text: str) -> str:
    if text != text.strip() or not _plain(text).isprintable():
        raise ValueError("has spaces around it or control characters; give one clean line")
    return text


def _instant(value: Any, info: ValidationInfo) -> Any:
    field = info.field_name or "time"
    if isinstance(value, str):
        return parse_instant(value, field=field)
    if isinstance(value, datetime):
        return to_utc(value, field=field)
    raise Invalid(f"{_shown(value)} is not a time; give an instant like 2026-06-04T10:00:00Z", field=field)


Number = Annotated[float, Field(strict=True, allow_inf_nan=False), AfterValidator(positive_zero)]
Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Whole = Annotated[int, Field(strict=True, ge=0, le=LARGEST_WHOLE)]
Limit = Annotated[int, Field(strict=True, ge=1, le=100)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
AsOf = Annotated[Instant | None, "What was known at this instant; now if left out."]
SeenAt = Annotated[Instant | None, "Of that, what this store had recorded by this instant."]
Name = Annotated[str, Field(strict=True, min_length=1, max_length=100), AfterValidator(_one_line)]
Symbol = Annotated[str, Field(strict=True, min_length=1, max_length=64), AfterValidator(_one_line)]
Key = Annotated[str, Field(strict=True, min_length=1, max_length=250), AfterValidator(_one_line)]
Prose = Annotated[str, Field(strict=True, max_length=10_000), AfterValidator(_plain)]
Reason = Annotated[str, Field(strict=True, min_length=1, max_length=1_000), AfterValidator(_plain)]
Cursor = Annotated[str, Field(strict=True, max_length=1_000), AfterValidator(_plain)]
Tags = Annotated[list[Annotated[Name, Field(max_length=64)]], Field(max_length=32)]
Lines = Annotated[list[Prose], Field(max_length=100)]

_BOUNDED: Mapping[str, Any] = {
    "symbol": Symbol,
    "price": Number,
    "hour_utc": Annotated[Whole, Field(le=23)],
    "day_of_week": Annotated[Whole, Field(le=6)],
    "drawdown_pct": Share,
    "confidence": Share,
    "consecutive_losses": Whole,
}


def _border_model() -> type[BaseModel]:
    hints = get_type_hints(ContextVector)
    made: dict[str, Any] = {}
    for field in fields(ContextVector):
        inner = next(arg for arg in get_args(hints[field.name]) if arg is not type(None))
        made[field.name] = (_BOUNDED.get(field.name, NotNegative if inner is float else inner) | None, None)
    return create_model("ContextVector", __config__=ConfigDict(extra="forbid"), **made)


class _ContextBorder:
    """Checks a context vector field by field, whether it comes as JSON or as a ContextVector."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        def open_up(value: Any) -> Any:
            return asdict(value) if isinstance(value, ContextVector) else value

        def close(model: BaseModel) -> ContextVector:
            return ContextVector(**model.model_dump())

        checked = core_schema.no_info_after_validator_function(close, handler.generate_schema(_border_model()))
        return core_schema.no_info_before_validator_function(open_up, checked)


ContextArgument = Annotated[ContextVector, _ContextBorder]


def invalid_from(details: Sequence[ErrorDetails], *, known: Iterable[str]) -> Invalid:
    """The first thing that is wrong, in one line: the field, what it is, and the remedy; and what else is missing."""
    first, *others = details
    field = _field(first)
    if not field:
        return Invalid("give an object with the arguments by name", field="arguments")
    lacking = [_field(each) for each in others if first["type"] == each["type"] == "missing"]
    also = f", and so {'is' if len(lacking) == 1 else 'are'} {', '.join(lacking)}" if lacking else ""
    more = f" (and {len(others) - len(lacking)} more)" if len(others) > len(lacking) else ""
    return Invalid(_said(first, list(known)) + also + more, field=field)


def _field(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"])


_SAID = {
    "missing": "missing; it is required",
    "float_type": "{given} is {kind}; give a number",
    "int_type": "{given} is {kind}; give a whole number",
    "int_from_float": "{given} is not whole; give a whole number",
    "finite_number": "{given} is not a finite number; give one, or leave it out if it is not known",
    "string_type": "{given} is {kind}; give text",
    "string_unicode": "holds half a surrogate pair; give valid Unicode",
    "string_too_short": "is empty; give some text",
    "string_too_long": "is longer than {max_length} characters; shorten it",
    "too_short": "is empty; give at least one",
    "too_long": "holds more than {max_length} items; give fewer",
    "list_type": "{given} is {kind}; give a list",
    "model_type": "{given} is {kind}; give an object with named fields",
    "model_attributes_type": "{given} is {kind}; give an object with named fields",
    "greater_than": "{given} is out of range; give a value above {gt:g}",
    "greater_than_equal": "{given} is out of range; give {ge:g} or more",
    "less_than_equal": "{given} is out of range; give {le:g} or less",
    "value_error": "{error}",
}


def _said(detail: ErrorDetails, known: list[str]) -> str:
    kind, given, limits = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(str(detail["loc"][-1]), known if len(detail["loc"]) == 1 else CONTEXT_FIELDS)
    if kind == "literal_error":
        labels = re.findall(r"'([^']*)'", limits["expected"])
        return f"{_shown(given)} is not known; {did_you_mean(str(given), labels)}"
    return _SAID.get(kind, detail["msg"]).format(given=_shown(given), kind=_kind_of(given), **limits)


def _unknown(argument: str, known: list[str]) -> str:
    match = nearest(argument, known)
    return f"unknown argument; did you mean '{match}'?" if match else f"unknown argument; known: {', '.join(known)}"


_KINDS = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


def _kind_of(value: Any) -> str:
    if type(value) is int and abs(value) > LARGEST_WHOLE:
        return "too large"
    return "null" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else "this"
    return text if len(text) <= 40 else text[:39] + "…"
