"""Pauses of Python's search for reference cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the search for reference cycles while many objects are made that stay, or that belong to no cycle.

    The search would take up to a third of that time and find nothing. It is paused for the whole process.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
