"""Frozen dataclasses that are made and copied in a fraction of the usual time, for rows that come by the ten thousand.

The `__init__` of a frozen dataclass calls `object.__setattr__` for each field, which took a fifth of the time of an
import. `quick_init` replaces it by one that fills the same slots by plain assignments, while the new instance is of a
class with the same slots that is not frozen. Nobody else has the instance by then. Copies are made in the same way.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")
_quick: set[type[Any]] = set()
"""The classes that are made by `quick_init`; their subclasses are not."""
_set_class = object.__dict__["__class__"].__set__


def quick_init(of: type[T]) -> type[T]:
    """A dataclass with slots and keyword-only fields that is made faster; nothing else about it differs.

    >>> from dataclasses import dataclass
    >>> @quick_init
    ... @dataclass(frozen=True, slots=True, kw_only=True)
    ... class Point:
    ...     x: float
    ...     y: float = 0.0
    >>> Point(x=1.0)
    Point(x=1.0, y=0.0)
    """
    own: tuple[Field[Any], ...] = fields(of)  # type: ignore[arg-type, unused-ignore]
    if not all(field.init and field.kw_only for field in own) or hasattr(of, "__post_init__"):
        raise TypeError(f"{of.__name__} does more in __init__ than set keyword-only fields")

    made: Any = of
    defaults: Mapping[str, object] = made.__init__.__kwdefaults__ or {}

    @wraps(made.__init__)
    def init_at_first(self: T, **values: Any) -> None:
        # Compiled for the first instance and not at import: most programs make instances of few classes.
        made.__init__ = _init(own, defaults)
        made.__init__(self, **values)

    made.__init__ = init_at_first
    _quick.add(of)
    return of


def quick_copier(of: type[Any]) -> Callable[[Any, dict[str, object]], Any] | None:
    """The function that copies an instance of a class with other values in some fields; None without `quick_init`."""
    if of not in _quick:
        return None
    names = [field.name for field in fields(of)]
    scope: dict[str, Any] = {"_set_class": _set_class, "_class": of, "_Draft": _draft(names)}
    source = [
        "def copy(value, changes):",
        "  copy = _Draft()",
        *(f"  copy.{name} = value.{name}" for name in names),
        "  try:",
        "    for name, changed in changes.items():",
        "      setattr(copy, name, changed)",
        "  except AttributeError:",
        "    raise TypeError(f'{_class.__name__} has no field {name!r}') from None",
        "  _set_class(copy, _class)",
        "  return copy",
    ]
    return compiled("copy", source, scope)


def _draft(names: Iterable[str]) -> type[Any]:
    """A class that is not frozen, with the slots of a dataclass."""
    return type("Draft", (), {"__slots__": tuple(names)})


def _init(own: tuple[Field[Any], ...], defaults: Mapping[str, object]) -> Callable[..., None]:
    """`defaults` are those in the signature of the dataclass, which has a placeholder for a value that is made."""
    scope: dict[str, Any] = {
        "_set_class": _set_class,
        "_Draft": _draft(field.name for field in own),
    }
    parameters, assignments = list[str](), list[str]()
    for field in own:
        name, value = field.name, field.name
        if field.default_factory is not MISSING:
            scope[f"_make_{name}"] = field.default_factory
            scope[f"_missing_{name}"] = defaults[name]
            parameters.append(f"{name}=_missing_{name}")
            value = f"_make_{name}() if {name} is _missing_{name} else {name}"
        elif field.default is not MISSING:
            scope[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        assignments.append(f"  self.{name} = {value}")
    source = [
        f"def __init__(self, *, {', '.join(parameters)}):",
        "  _class = self.__class__",
        "  _set_class(self, _Draft)",
        *assignments,
        "  self.__class__ = _class",
    ]
    return compiled("__init__", source, scope)


def compiled(name: str, source: Iterable[str], scope: dict[str, Any]) -> Callable[..., Any]:
    """The function of a name in some lines of source, as the standard library compiles the methods of dataclasses."""
    exec("\n".join(source), scope)  # noqa: S102 - nothing but names of fields is filled into the lines
    function: Callable[..., Any] = scope[name]
    return function
