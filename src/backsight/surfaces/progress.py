"""Long work on a terminal: a bar while it runs, and what it took."""

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

BLOCKS = "▁▂▃▄▅▆▇█"


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Where to tell how far each part of the work is; it is shown on a terminal, beside what is printed."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    to = Console(stderr=True)
    bar = Progress(*columns, TimeRemainingColumn(), console=to, disable=not to.is_terminal)
    tasks: dict[str, TaskID] = {}

    def tell(part: str, done: int, total: int) -> None:
        if not tasks:
            bar.start()
        if part not in tasks:
            tasks[part] = bar.add_task(part, total=total)
        bar.update(tasks[part], completed=done, total=total)

    try:
        yield tell
    finally:
        bar.stop()


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start


def peak_memory() -> float:
    """The most memory that this process has held, in megabytes."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes / (1024 * 1024 if sys.platform == "darwin" else 1024)


def sparkline(values: Sequence[float], *, width: int = 60) -> str:
    """A curve in one line of text.

    >>> sparkline([1.0, 2.0, 3.0, 2.0], width=4)
    '▁▅█▅'
    """
    if not values:
        return ""
    count = min(width, len(values))
    shown = [values[round(at * (len(values) - 1) / max(1, count - 1))] for at in range(count)]
    low, high = min(shown), max(shown)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in shown)
