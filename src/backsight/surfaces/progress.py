"""Progress bars, timing and sparklines for long work on a terminal."""

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
    """A function that reports how far each part of the work is; the bars are shown on a terminal, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    terminal = Console(stderr=True)
    bar = Progress(*columns, TimeRemainingColumn(), console=terminal, disable=not terminal.is_terminal)
    tasks: dict[str, TaskID] = {}

    def report(part: str, done: int, total: int) -> None:
        if not tasks:
            bar.start()
        if part not in tasks:
            tasks[part] = bar.add_task(part, total=total)
        bar.update(tasks[part], completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()


class Stopwatch:
    """The seconds since its creation."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start


def peak_memory() -> float | None:
    """The peak memory of this process, in megabytes; None on Windows, which has no `resource`."""
    try:
        import resource
    except ImportError:
        return None
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
    points = [values[round(at * (len(values) - 1) / max(1, count - 1))] for at in range(count)]
    low, high = min(points), max(points)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in points)
