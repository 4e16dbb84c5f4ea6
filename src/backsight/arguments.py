"""The argument types of operations: they refuse NaN, times without a zone, unknown labels and oversized input."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails, core_schema

from backsight.argument_words import argument_for
from backsight.core.agents.card import LONGEST_RESULT, checked_result
from backsight.core.context import ContextVector, PlanContext
from backsight.core.errors import Invalid, did_you_mean, nearest
from backsight.core.instants import parse_instant, to_utc
from backsight.core.market import Bar
from backsight.core.numbers import positive_zero
from backsight.core.secret_text import refuse_secrets, without_secrets
from backsight.core.text.symbols import LONGEST_SYMBOL, symbol_problem
from backsight.json_schemas import LARGEST_WHOLE


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("contains a NUL character; remove it")
    return text


def _not_blank(text: str) -> str:
    if not _without_nul(text).strip():
        raise ValueError("is blank; give some text")
    return text


def _without_secrets(text: str, info: ValidationInfo) -> str:
    refuse_secrets(text, field=info.field_name or "text")
    return text


def _object_without_secrets(value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    refuse_secrets(json.dumps(value, ensure_ascii=False, default=str), field=info.field_name or "object")
    return value


def _card_object(value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    field = info.field_name or "result"
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        raise Invalid("is nested too deeply; give a flat object", field=field) from None
    if len(text) > LONGEST_RESULT:
        raise Invalid(f"has {len(text):,} characters as JSON; give at most {LONGEST_RESULT:,}", field=field)
    refuse_secrets(text, field=field)
    return dict(checked_result(value, field=field))


class ProofMark:
    """Marks the type of a saved proof: an empty one is refused, because it must not pass for one that is left out."""


class NameMark:
    """Marks the type of a name or key, around which blanks mean nothing."""


def _one_line(text: str) -> str:
    if text != text.strip() or not _without_nul(text).isprintable():
        raise ValueError("has spaces around it or control characters; give one clean line")
    return text


def _symbol(text: str) -> str:
    problem = symbol_problem(_one_line(text))
    if problem is not None:
        raise ValueError(problem)
    return text


def _instant(value: Any, info: ValidationInfo) -> Any:
    field = info.field_name or "time"
    if isinstance(value, str):
        return parse_instant(value, field=field)
    if isinstance(value, datetime):
        return to_utc(value, field=field)
    raise Invalid(f"{_excerpt(value)} is not a time; give an instant like 2026-06-04T10:00:00Z", field=field)


def _as_flag(value: Any) -> Any:
    return bool(value) if type(value).__name__ in ("bool", "bool_") else value


Fields = Mapping[str, Any]
"""An object by the names of its fields, as in JSON: an argument that is an object may be given as a dict."""
T = TypeVar("T")


def as_object(value: object, kind: type[T]) -> T:
    """A checked argument as its class, for the type checker: to it, a caller may have given the fields."""
    if not isinstance(value, kind):
        raise AssertionError(f"{kind.__name__} was not made from its fields")
    return value


def as_optional_object(value: object, kind: type[T]) -> T | None:
    """The same for an argument that may be left out."""
    return None if value is None else as_object(value, kind)


def as_objects(values: Iterable[object], kind: type[T]) -> list[T]:
    """The same for a list."""
    return [as_object(value, kind) for value in values]


def as_context(context: ContextVector | Fields | None) -> ContextVector | None:
    """A checked context, if there is one."""
    return as_optional_object(context, ContextVector)


class FileMark:
    """Marks the type of an argument that names a file or folder."""


NoFlag = BeforeValidator(_as_flag)
"""A number at the door: a truth value of NumPy converts to a number, but is none."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False), NoFlag, AfterValidator(positive_zero)]
Positive = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0), NoFlag, AfterValidator(positive_zero)]
NotNegative = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0), NoFlag, AfterValidator(positive_zero)]
Share = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1), NoFlag, AfterValidator(positive_zero)]
Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True, ge=0, le=LARGEST_WHOLE)]
Limit = Annotated[int, Field(strict=True, ge=1, le=100)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
AsOf = Annotated[Instant | None, "What was known at this instant; default now."]
SeenAt = Annotated[Instant | None, "And recorded in this store by this instant."]
NoSecret = AfterValidator(_without_secrets)
"""Text at the door: what looks like a key, a password or a seed phrase is refused."""
Name = Annotated[str, Field(strict=True, min_length=1, max_length=100), AfterValidator(_one_line), NameMark(), NoSecret]
Symbol = Annotated[
    str, Field(strict=True, min_length=1, max_length=LONGEST_SYMBOL), AfterValidator(_symbol), NameMark()
]
Key = Annotated[str, Field(strict=True, min_length=1, max_length=250), AfterValidator(_one_line), NameMark()]
ChainHead = Annotated[Key, ProofMark()]
FilePath = Annotated[Key, FileMark()]
"""A file or folder where the store is; a caller over MCP or REST may name those below some folders only."""
Prose = Annotated[str, Field(strict=True, max_length=10_000), AfterValidator(_without_nul), NoSecret]
AnyText = Annotated[str, Field(strict=True, max_length=10_000)]
Reason = Annotated[str, Field(strict=True, min_length=1, max_length=1_000), AfterValidator(_not_blank), NoSecret]
Cursor = Annotated[str, Field(strict=True, max_length=1_000), AfterValidator(_without_nul)]
Handle = Annotated[str, Field(strict=True, min_length=1, max_length=20_000), AfterValidator(_one_line), NameMark()]
Handles = Annotated[list[Handle], Field(max_length=20)]
Tags = Annotated[list[Annotated[Name, Field(max_length=64)]], Field(max_length=32)]
Rule = Annotated[str, Field(strict=True, min_length=1, max_length=500), AfterValidator(_not_blank), NoSecret]
Rules = Annotated[list[Rule], Field(max_length=50)]
Keys = Annotated[list[Key], Field(max_length=1_000)]
Citations = Annotated[list[Annotated[Key, AfterValidator(without_secrets)]], Field(max_length=1_000)]
"""References that a model wrote: one that looks like a secret is replaced."""
JsonObject = Annotated[dict[str, Any], Field(max_length=100), AfterValidator(_object_without_secrets)]
CardObject = Annotated[dict[str, Any], Field(max_length=100), AfterValidator(_card_object)]
"""The result of a run: it is recorded as it is, unless it is too large or has a number that is not finite."""
ColumnNames = Annotated[dict[Key, Key], Field(max_length=100)]
Loose = Annotated[str, Field(strict=True, max_length=250), AfterValidator(_one_line), NameMark()]
LONG_PROSE = 100_000
LongProse = Annotated[str, Field(strict=True, max_length=LONG_PROSE), AfterValidator(_without_nul), NoSecret]
Question = Annotated[str, Field(strict=True, min_length=1, max_length=LONG_PROSE), AfterValidator(_not_blank), NoSecret]
"""What an agent is asked."""
RecordedText = Annotated[
    str, Field(strict=True, max_length=LONG_PROSE), AfterValidator(_without_nul), AfterValidator(without_secrets)
]
"""Text about something that happened, which must be recorded: a line that looks like a secret is replaced."""
RecordedReason = Annotated[
    str, Field(strict=True, min_length=1, max_length=1_000), AfterValidator(_not_blank), AfterValidator(without_secrets)
]


_SYMBOL: TypeAdapter[str] = TypeAdapter(Symbol)


def list_of(item: Any, most: int) -> Any:
    return Annotated[list[item], Field(max_length=most)]


def or_left_out(argument_type: Any, default: Any) -> Any:
    """The type of an argument that may be left out: it also accepts null, which stands for the default.

    >>> adapter = TypeAdapter(or_left_out(Limit, 20))
    >>> adapter.validate_python(None), adapter.validate_python(5)
    (20, 5)
    """
    if default is None:
        return argument_type | None
    return Annotated[argument_type | None, AfterValidator(lambda value: copy(default) if value is None else value)]


def is_file_argument(hint: Any) -> bool:
    """Whether an argument names a file or folder."""
    parts = (*getattr(hint, "__metadata__", ()), *get_args(hint))
    return any(isinstance(part, FileMark) or is_file_argument(part) for part in parts)


class Border:
    """Validates a dataclass argument field by field, given as JSON or as an instance.

    `bounds` maps a field name to its argument type; other fields are validated by their annotation. A tuple is given as
    a list. With `trusted`, an instance is accepted without validation, because the operation validates it itself.
    `meanings` are the descriptions of fields in the JSON schema, which leaves out the fields in `unlisted`.
    """

    def __init__(
        self,
        of: type[Any],
        bounds: Mapping[str, Any] | None = None,
        *,
        trusted: bool = False,
        meanings: Mapping[str, str] | None = None,
        unlisted: Collection[str] = (),
        name: str | None = None,
    ) -> None:
        self.of = of
        self.bounds = bounds or {}
        self.trusted = trusted
        self.meanings = meanings or {}
        self.unlisted = unlisted
        self.name = name or of.__name__

    def __get_pydantic_core_schema__(self, _source: Any, handler: Any) -> core_schema.CoreSchema:
        tuples = {name for name, hint in get_type_hints(self.of).items() if get_origin(hint) is tuple}

        def to_dataclass(model: BaseModel) -> Any:
            return self.of(**{**vars(model), **{name: tuple(getattr(model, name)) for name in tuples}})

        validated = core_schema.no_info_after_validator_function(to_dataclass, handler.generate_schema(self._model()))
        schema = core_schema.no_info_before_validator_function(self.fields_of, validated)
        return core_schema.no_info_wrap_validator_function(self._accept_instance, schema) if self.trusted else schema

    def fields_of(self, value: Any) -> Any:
        """The fields of an instance of the dataclass, or of a class that it extends; another value as it is."""
        if isinstance(value, self.of) or (is_dataclass(value) and issubclass(self.of, type(value))):
            return {field.name: getattr(value, field.name) for field in fields(value) if field.name in self.field_types}
        return value

    @cached_property
    def field_types(self) -> Mapping[str, Any]:
        """The argument types of the fields."""
        hints = get_type_hints(self.of)
        return {field.name: self._argument_type(field.name, hints[field.name]) for field in fields(self.of)}

    @cached_property
    def optional_fields(self) -> frozenset[str]:
        """The fields that may be left out."""
        return frozenset(field.name for field in fields(self.of) if field.default is not MISSING)

    def _accept_instance(self, value: Any, check: Callable[[Any], Any]) -> Any:
        return value if isinstance(value, self.of) else check(value)

    def _model(self) -> type[BaseModel]:
        model_fields: dict[str, Any] = {}
        for field in fields(self.of):
            argument_type = self.field_types[field.name]
            meaning = self.meanings.get(field.name)
            if field.default is MISSING:
                model_fields[field.name] = (argument_type, Field(description=meaning))
            else:
                optional = or_left_out(argument_type, field.default)
                if field.name in self.unlisted:
                    optional = Annotated[optional, SkipJsonSchema()]  # type: ignore[type-arg]
                model_fields[field.name] = (optional, Field(field.default, description=meaning))
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **model_fields)

    def _argument_type(self, name: str, hint: Any) -> Any:
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        if get_origin(hint) in (UnionType, Union) and len(inner) == 1:
            return self._argument_type(name, inner[0]) | None
        if name in self.bounds:
            return self.bounds[name]
        if get_origin(hint) is tuple:
            return list[self._argument_type(name, inner[0])]  # type: ignore[misc]
        return _BY_TYPE.get(hint, hint)


_BY_TYPE: Mapping[Any, Any] = {float: Number, int: Whole, bool: Flag, str: Key, datetime: Instant}

_CONTEXT_BOUNDS = {
    **{field.name: NotNegative for field in fields(ContextVector) if "float" in str(field.type)},
    "symbol": Symbol,
    "price": Number,
    "hour_utc": Annotated[Whole, Field(le=23)],
    "day_of_week": Annotated[Whole, Field(le=6)],
    "drawdown_pct": Share,
    "confidence": Share,
}
_CONTEXT_MEANINGS = {
    "symbol": "The instrument.",
    "price": "Its price.",
    "atr_d1": "ATR(14) of daily bars, in price units.",
    "atr_h1": "ATR(14) of hourly bars.",
    "atr_m5": "ATR(14) of 5-minute bars.",
    "atr_ratio_h1_d1": "atr_h1 / atr_d1.",
    "regime": "The market's regime.",
    "volatility_regime": "Volatility against its usual level.",
    "session": "Trading session.",
    "hour_utc": "Hour of the day in UTC.",
    "day_of_week": "0 is Monday.",
    "spread_points": "Spread, in price units.",
    "spread_as_atr_pct": "Spread / atr_m5.",
    "drawdown_pct": "Loss from the account's peak, as a share.",
    "consecutive_losses": "Losses in a row.",
    "confidence": "Confidence of your mood.",
}
ContextArgument = Annotated[ContextVector | Fields, Border(ContextVector, _CONTEXT_BOUNDS, meanings=_CONTEXT_MEANINGS)]

PlanContextArgument = Annotated[
    ContextVector | Fields,
    Border(
        PlanContext,
        {**_CONTEXT_BOUNDS, "strategy": Name},
        meanings=_CONTEXT_MEANINGS,
        unlisted=("strategy",),
        name=ContextVector.__name__,
    ),
]
"""A context that may name the strategy too; its schema is that of a context, which a list of tools prints once."""


def names_at(location: Sequence[int | str], types: Mapping[str, Any]) -> list[str]:
    """The names of arguments, or of the fields of an argument that is an object, at the place of a wrong name.

    >>> names_at(("context", "rgime"), {"context": ContextArgument | None})[:3]
    ['symbol', 'price', 'atr_d1']
    """
    for name in location[:-1]:
        if isinstance(name, int):
            continue
        border = _border_of(types.get(name))
        if border is None:
            return []
        types = {field: hint for field, hint in border.field_types.items() if field not in border.unlisted}
    return list(types)


def _border_of(hint: Any) -> Border | None:
    parts = (*getattr(hint, "__metadata__", ()), *get_args(hint))
    borders = (part if isinstance(part, Border) else _border_of(part) for part in parts)
    return next((border for border in borders if border is not None), None)


def invalid_from(details: Sequence[ErrorDetails], *, types: Mapping[str, Any]) -> Invalid:
    """One error for a failed validation: the first wrong field with its remedy, and the other missing fields.

    A name that is not known comes first: where a required field is missing too, it is most often that one, misspelt.
    """
    first, *others = sorted(details, key=lambda detail: detail["type"] != "extra_forbidden")
    field = _field(first)
    if not field:
        return Invalid("give an object with the arguments by name", field="arguments")
    missing = [_field(detail) for detail in others if first["type"] == detail["type"] == "missing"]
    also = f", and so {'is' if len(missing) == 1 else 'are'} {', '.join(missing)}" if missing else ""
    more = f" (and {len(others) - len(missing)} more)" if len(others) > len(missing) else ""
    return Invalid(_message(first, types) + also + more, field=field)


def _field(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"])


_MESSAGES = {
    "missing": "missing; it is required",
    "float_type": "{value} is {kind}; give a number",
    "bool_type": "{value} is {kind}; give true or false",
    "int_type": "{value} is {kind}; give a whole number",
    "int_from_float": "{value} is not whole; give a whole number",
    "finite_number": "{value} is not a finite number; give one, or leave it out if it is not known",
    "string_type": "{value} is {kind}; give text",
    "string_unicode": "contains half a surrogate pair; give valid Unicode",
    "string_too_short": "is empty; give some text",
    "string_too_long": "is longer than {max_length} characters; shorten it",
    "too_short": "is empty; give at least one",
    "too_long": "has more than {max_length} items; give fewer",
    "list_type": "{value} is {kind}; give a list",
    "dict_type": "{value} is {kind}; give an object with named fields",
    "model_type": "{value} is {kind}; give an object with named fields",
    "model_attributes_type": "{value} is {kind}; give an object with named fields",
    "greater_than": "{value} is out of range; give a value above {gt:g}",
    "greater_than_equal": "{value} is out of range; give {ge:g} or more",
    "less_than_equal": "{value} is out of range; give {le:g} or less",
    "value_error": "{error}",
}


def _message(detail: ErrorDetails, types: Mapping[str, Any]) -> str:
    kind, value, limits = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_argument(str(detail["loc"][-1]), names_at(detail["loc"], types))
    if kind == "literal_error":
        labels = re.findall(r"'([^']*)'", limits["expected"])
        return f"{_excerpt(value)} is not known; {did_you_mean(str(value), labels)}"
    return _MESSAGES.get(kind, detail["msg"]).format(value=_excerpt(value), kind=_kind_of(value), **limits)


def _unknown_argument(argument: str, known: list[str]) -> str:
    if not known:
        return "unknown field; leave it out"
    match = argument_for(argument, known) or nearest(argument, known)
    return f"unknown argument; did you mean '{match}'?" if match else f"unknown argument; known: {', '.join(known)}"


_KINDS = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


def _kind_of(value: Any) -> str:
    if type(value) is int and abs(value) > LARGEST_WHOLE:
        return "too large"
    return "null" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")


def _excerpt(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool | None) else "this"
    return text if len(text) <= 40 else text[:39] + "…"


def check_symbols(bars: Iterable[Bar], *, field: str = "bars.symbol") -> None:
    """Refuse bars whose symbol is empty, too long or not one clean line."""
    for symbol in sorted({bar.symbol for bar in bars}):
        check_symbol(symbol, field=field)


def check_symbol(symbol: str, *, field: str) -> None:
    """Refuse a symbol that is empty, too long or not one clean line."""
    try:
        _SYMBOL.validate_python(symbol)
    except ValidationError as error:
        raise Invalid(_message(error.errors(include_url=False)[0], {}), field=field) from None
