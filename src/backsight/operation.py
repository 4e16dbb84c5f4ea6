"""An operation: one function from which every surface is made."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic_core import ErrorDetails

from backsight.arguments import invalid_from
from backsight.core.errors import Invalid

Kind = Literal["query", "command"]
Audience = Literal["trader", "coach", "owner"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)
F = TypeVar("F", bound=Callable[..., Any])

MARK = "__operation__"


class Operation:
    """What a signature says: name, noun, arguments, result; and who may call it."""

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
        return self.function.__module__.rpartition(".")[2]

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
    def arguments(self) -> type[BaseModel]:
        """The input model, made from the signature."""
        fields: dict[str, Any] = {}
        for p in list(inspect.signature(self.function).parameters.values())[1:]:
            hint = self._hints[p.name]
            told = next(text for text in hint.__metadata__ if isinstance(text, str))
            default = ... if p.default is p.empty else p.default
            fields[p.name] = (hint, Field(default, description=told))
        title = "".join(word.capitalize() for word in self.name.split("_"))
        return create_model(title + "Arguments", __config__=ConfigDict(extra="forbid"), **fields)

    @property
    def returns(self) -> Any:
        """The type of the result."""
        return self._hints["return"]

    @cached_property
    def result(self) -> TypeAdapter[Any]:
        """What turns the result into JSON, and describes it."""
        return TypeAdapter(self.returns)

    def check(self, arguments: object) -> dict[str, Any]:
        """The arguments as the function takes them, or `Invalid` with the field and the remedy."""
        try:
            return self.values(self.arguments.model_validate(arguments))
        except ValidationError as error:
            raise self.invalid(error.errors(include_url=False)) from None

    def values(self, model: BaseModel) -> dict[str, Any]:
        """The arguments of a checked input model."""
        return {name: getattr(model, name) for name in self.arguments.model_fields}

    def invalid(self, details: Sequence[ErrorDetails]) -> Invalid:
        """The error that every surface shows for arguments that do not fit."""
        return invalid_from(details, known=self.arguments.model_fields)

    def as_json(self, result: object) -> Any:
        """The result as every surface shows it."""
        return self.result.dump_python(result, mode="json")

    def input_schema(self) -> dict[str, Any]:
        return self.arguments.model_json_schema()

    def output_schema(self) -> dict[str, Any]:
        return self.result.json_schema(mode="serialization")


def query(*, audience: Iterable[Audience] = ()) -> Callable[[F], F]:
    """Mark a function as a question: it writes nothing. The owner may always ask."""
    return _marked("query", audience, idempotent=True)


def command(*, audience: Iterable[Audience] = (), idempotent: bool = True) -> Callable[[F], F]:
    """Mark a function as a command: one transaction, one link in the audit chain."""
    return _marked("command", audience, idempotent)


def operation_of(function: object) -> Operation | None:
    """The operation that a function was marked as."""
    return getattr(function, MARK, None)


def _marked(kind: Kind, audience: Iterable[Audience], idempotent: bool) -> Callable[[F], F]:
    def mark(function: F) -> F:
        setattr(function, MARK, Operation(function, kind, frozenset({"owner", *audience}), idempotent))
        return function

    return mark
