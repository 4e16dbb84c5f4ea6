"""Backsight: the memory of AI trading agents."""

from typing import TYPE_CHECKING, Any

from backsight.core.call_notes import notes_of
from backsight.core.context import ContextVector
from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.settings import Settings

if TYPE_CHECKING:
    from backsight.answers.layouts import brief
    from backsight.memory import Memory, open_memory

__version__ = "0.1.0"

__all__ = [
    "BacksightError",
    "Conflict",
    "ContextVector",
    "Invalid",
    "Memory",
    "NotFound",
    "Refused",
    "Settings",
    "Unavailable",
    "__version__",
    "brief",
    "notes_of",
    "open_memory",
]


def __getattr__(name: str) -> Any:
    """Import the modules that need a database on first use, so that `backsight --help` starts quickly."""
    if name in ("Memory", "open_memory"):
        from backsight import memory

        return getattr(memory, name)
    if name == "brief":
        from backsight.answers.layouts import brief

        return brief
    raise AttributeError(f"module 'backsight' has no attribute {name!r}")
