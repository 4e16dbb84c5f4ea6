"""Notes on an answer: which values of the call were read from another form. Any answer can carry them."""

from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, TypeVar

FIELD = "call_notes"
Answer = TypeVar("Answer")


def with_notes(answer: Answer, notes: tuple[str, ...]) -> Answer:
    """The answer with notes on its call; without notes it is the answer itself.

    >>> from backsight.core.memory.kind import MemoryKind
    >>> from backsight.core.instants import EPOCH, Horizon
    >>> answer = with_notes(Horizon(as_of=EPOCH), ("limit: '5' read as 5",))
    >>> isinstance(answer, Horizon), notes_of(answer), notes_of(Horizon(as_of=EPOCH))
    (True, ("limit: '5' read as 5",), ())
    """
    if not notes:
        return answer
    kind: Any = type(answer)
    noted: Answer = _noted(kind)(**{**_fields_of(answer), FIELD: notes})
    return noted


def notes_of(answer: object) -> tuple[str, ...]:
    """Which values of the call were read from another form, like `direction: 'BUY' read as 'long'`."""
    notes: tuple[str, ...] = getattr(answer, FIELD, ())
    return notes


def _fields_of(answer: Any) -> dict[str, Any]:
    return {field.name: getattr(answer, field.name) for field in fields(answer) if field.name != FIELD}


@cache
def _noted(kind: Any) -> Any:
    """A class of answers with notes: it extends a class of answers, and has its name."""

    def reduce(answer: Any) -> Any:
        return with_notes, (kind(**_fields_of(answer)), notes_of(answer))

    options: dict[str, Any] = {"frozen": True, "slots": True, "kw_only": True}
    namespace = {"__reduce__": reduce, "__doc__": kind.__doc__, "__module__": kind.__module__}
    return make_dataclass(kind.__name__, [(FIELD, tuple[str, ...], ())], bases=(kind,), namespace=namespace, **options)
