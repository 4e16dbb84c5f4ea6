"""An operation: one function, from which all surfaces derive their command, tool or route."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeVar, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails

from backsight.arguments import invalid_from, is_file_argument, or_left_out
from backsight.audience import Audience, noun_of
from backsight.coercions import read_call
from backsight.core.call_notes import FIELD, notes_of
from backsight.core.errors import Invalid, Refused
from backsight.core.keys import Authority
from backsight.json_schemas import without_titles

Kind = Literal["query", "command"]
F = TypeVar("F", bound=Callable[..., Any])

MARK = "__operation__"
CALL_NOTES_SCHEMA = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Values of the call that were read from another form; left out if there are none.",
}


class CheckedArguments(dict[str, Any]):
    """Arguments as a function takes them, and notes on those that were read from another form."""

    notes: tuple[str, ...] = ()


class Arguments(BaseModel):
    """The base of the arguments of an operation: what the strict types refuse is read as what it can only mean."""

    model_config = ConfigDict(extra="forbid")
    types: ClassVar[Mapping[str, Any]] = {}
    optional: ClassVar[frozenset[str]] = frozenset()
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return validate(values)
        except (ValidationError, Invalid):
            if not isinstance(values, Mapping):
                raise
            read, notes = read_call(values, cls.types, cls.optional)
            if not notes.texts:
                raise
        model = validate(read)
        model._notes = notes.shown()
        return model


class Operation:
    """A function with its name, noun, arguments and result, and the audiences that may call it."""

    def __init__(
        self, function: Callable[..., Any], kind: Kind, audience: frozenset[Audience], idempotent: bool
    ) -> None:
        self.function = function
        self.kind = kind
        self.audience = audience
        self.idempotent = idempotent

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def noun(self) -> str:
        return noun_of(self.function.__module__.rpartition(".")[2])

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        return self.description.partition("\n")[0]

    @property
    def description(self) -> str:
        return inspect.getdoc(self.function) or ""

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.function, include_extras=True)

    @cached_property
    def arguments(self) -> type[Arguments]:
        """The pydantic model of the arguments, made from the signature."""
        fields: dict[str, Any] = {}
        for p in list(inspect.signature(self.function).parameters.values())[1:]:
            hint = self._hints[p.name]
            description = next(text for text in hint.__metadata__ if isinstance(text, str))
            if p.default is p.empty:
                fields[p.name] = (hint, Field(description=description))
            else:
                fields[p.name] = (or_left_out(hint, p.default), Field(p.default, description=description))
        title = "".join(word.capitalize() for word in self.name.split("_"))
        model = create_model(title + "Arguments", __base__=Arguments, **fields)
        model.types = {name: self._hints[name] for name in fields}
        model.optional = frozenset(name for name, field in model.model_fields.items() if not field.is_required())
        return model

    @cached_property
    def file_arguments(self) -> frozenset[str]:
        """The arguments that name a file or folder where the store is."""
        return frozenset(name for name, hint in self._hints.items() if name != "return" and is_file_argument(hint))

    @property
    def returns(self) -> Any:
        """The type of the answer."""
        return self._hints["return"]

    @cached_property
    def result(self) -> TypeAdapter[Any]:
        """The adapter that converts the answer to JSON and gives its schema."""
        return TypeAdapter(self.returns)

    def check(self, arguments: object) -> CheckedArguments:
        """Validate arguments; raises `Invalid` with the field and the remedy."""
        try:
            return self.values(self.arguments.model_validate(arguments))
        except ValidationError as error:
            raise self.invalid(error.errors(include_url=False)) from None

    def refuse_beyond(self, authority: Authority) -> None:
        """Refuse a caller whose key does not allow this operation."""
        if authority.audience not in self.audience and not (authority.may_read_all and self.kind == "query"):
            needed = " or ".join(sorted(self.audience))
            raise Refused(
                f"{self.name} needs a key of the {needed}; create one with `backsight keys create --audience {needed}`",
                field="authorization",
            )
        if self.kind == "command" and not authority.may_write:
            raise Refused(
                f"{self.name} writes, and this key only reads; create one with --scope write", field="authorization"
            )

    def values(self, model: Arguments) -> CheckedArguments:
        """The arguments in a validated model, as the function takes them."""
        checked = CheckedArguments({name: getattr(model, name) for name in self.arguments.model_fields})
        checked.notes = model._notes
        return checked

    def invalid(self, details: Sequence[ErrorDetails]) -> Invalid:
        """The error that every surface shows for arguments that fail validation."""
        return invalid_from(details, types=self.arguments.types)

    def as_json(self, result: object) -> Any:
        """The answer as the JSON that every surface shows; with notes on the call, if there are any."""
        content = self.result.dump_python(result, mode="json")
        notes = notes_of(result)
        return {**content, FIELD: list(notes)} if notes else content

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments; built once, since it is slow to build."""
        return without_titles(self.arguments.model_json_schema())

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The JSON schema of the answer."""
        schema = without_titles(self.result.json_schema(mode="serialization"))
        return {**schema, "properties": {**schema["properties"], FIELD: CALL_NOTES_SCHEMA}}


def query(*, audience: Iterable[Audience] = ()) -> Callable[[F], F]:
    """Mark a function as a query: it writes nothing. The owner may call every query."""
    return _marked("query", audience, idempotent=True)


def command(*, audience: Iterable[Audience] = (), idempotent: bool = True) -> Callable[[F], F]:
    """Mark a function as a command: it writes in one transaction, which adds one link to the audit chain."""
    return _marked("command", audience, idempotent)


def operation_of(function: object) -> Operation | None:
    """The operation of a marked function; None if it is not marked."""
    return getattr(function, MARK, None)


def _marked(kind: Kind, audience: Iterable[Audience], idempotent: bool) -> Callable[[F], F]:
    def mark(function: F) -> F:
        setattr(function, MARK, Operation(function, kind, frozenset({"owner", *audience}), idempotent))
        return function

    return mark
