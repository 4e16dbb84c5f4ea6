"""The list of operations by name. The module of an operation is imported when the operation is first needed."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, wraps
from importlib import import_module
from pkgutil import iter_modules
from types import MethodType
from typing import TYPE_CHECKING, Any

import backsight.ops
from backsight.audience import noun_of

if TYPE_CHECKING:
    from backsight.operation import Operation


class ListedOperation:
    """The place of an operation in the list: a method that checks its arguments first."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    @property
    def noun(self) -> str:
        return noun_of(self.module)

    @cached_property
    def operation(self) -> "Operation":
        """The operation, of the function with this name in the module."""
        from backsight.operation import operation_of  # imports pydantic

        operation = operation_of(getattr(import_module(f"backsight.ops.{self.module}"), self.name))
        if operation is None:
            raise TypeError(f"{self.module}.{self.name} is not an operation; mark it with @query or @command")
        return operation

    @cached_property
    def method(self) -> Any:
        operation = self.operation

        @wraps(operation.function)
        def run(memory: Any, /, **arguments: Any) -> Any:
            return memory.run(operation, arguments)

        return run

    def __get__(self, memory: object | None, _owner: type) -> Any:
        return self.method if memory is None else MethodType(self.method, memory)


class ListedModule:
    """A module of operations that is not imported yet: its attributes are places in the list."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> ListedOperation:
        return ListedOperation(self._module, name)


def listed_modules() -> dict[str, ListedModule]:
    """The modules of `ops` by name."""
    return {module.name: ListedModule(module.name) for module in iter_modules(backsight.ops.__path__)}


def operations_of(cls: type) -> "Operations":
    """The operations that a class lists."""
    return Operations({name: place for name, place in vars(cls).items() if isinstance(place, ListedOperation)})


class Operations(Mapping[str, "Operation"]):
    """Operations by name; an operation is imported when it is looked up."""

    def __init__(self, places: Mapping[str, ListedOperation]) -> None:
        self._listed = places

    def __getitem__(self, name: str) -> "Operation":
        return self._listed[name].operation

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __contains__(self, name: object) -> bool:
        return name in self._listed

    def only(self, names: Iterable[str]) -> "Operations":
        """The operations with these names, in this order."""
        return Operations({name: self._listed[name] for name in names})

    def of_noun(self, noun: str) -> list[str]:
        """The names of the operations of a noun."""
        return [name for name, place in self._listed.items() if place.noun == noun]
