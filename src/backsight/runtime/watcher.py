"""Keeping the index up to date: reindex when files change, and at regular intervals."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from backsight.core.errors import BacksightError, Unavailable
from backsight.memory import Memory
from backsight.ops.documents import ReindexResult

LOG = logging.getLogger("backsight")
DEBOUNCE_MILLISECONDS = 1_600
"""Changes within this time count as one: editors write a file in several steps."""
EVERY_SECONDS = 300.0

Report = Callable[[ReindexResult | BacksightError], None]
"""Called with the result or the error of each reindexing."""


def changes(folder: Path, stop: threading.Event, *, debounce: int = DEBOUNCE_MILLISECONDS) -> Iterator[None]:
    """Yield each time after files of a folder have changed, until `stop` is set."""
    try:
        from watchfiles import watch
    except ImportError:
        raise Unavailable(
            "watching files needs the package watchfiles; pip install 'backsight[watch]'", field="watch"
        ) from None
    for _ in watch(folder, debounce=debounce, stop_event=stop, raise_interrupt=False, ignore_permission_denied=True):
        yield None


def intervals(stop: threading.Event, *, every_seconds: float = EVERY_SECONDS) -> Iterator[None]:
    """Yield at regular intervals, until `stop` is set."""
    while not stop.wait(every_seconds):
        yield None


def keep_indexed(memory: Memory, triggers: Iterator[None], report: Report) -> None:
    """Reindex now and at each trigger, and report each result; an error is reported and does not end the loop."""
    _reindex(memory, report)
    for _ in triggers:
        _reindex(memory, report)


def watch_documents(
    memory: Memory, report: Report, stop: threading.Event, *, every_seconds: float = EVERY_SECONDS
) -> None:
    """Reindex when files change and at regular intervals, until `stop` is set."""
    folder = None if memory.library is None else memory.library.folder
    if folder is None or not Path(folder).is_dir():
        memory.reindex()  # raises the error that says what is wrong with the workspace
        return
    lock = threading.Lock()

    def report_in_turn(result: ReindexResult | BacksightError) -> None:
        with lock:
            report(result)

    clock = threading.Thread(
        target=keep_indexed, args=(memory, intervals(stop, every_seconds=every_seconds), report_in_turn), daemon=True
    )
    clock.start()
    try:
        for _ in changes(Path(folder), stop):
            _reindex(memory, report_in_turn)
    except Unavailable as error:  # without the package that watches files, the clock alone is followed
        scans = f"until then the folder is scanned every {every_seconds:g} s"
        report_in_turn(Unavailable(f"{error.message.removeprefix('watch: ')}; {scans}", field="watch"))
        stop.wait()
    finally:
        stop.set()
        clock.join()


@contextmanager
def kept_indexed(memory: Memory, *, every_seconds: float = EVERY_SECONDS) -> Iterator[None]:
    """Keep the index up to date in the background, for a program that serves the memory meanwhile.

    Without a workspace nothing is done. Errors are logged.
    """
    folder = None if memory.library is None else memory.library.folder
    if folder is None or not Path(folder).is_dir():
        yield
        return
    stop = threading.Event()

    def keep() -> None:
        watch_documents(memory, _log_error, stop, every_seconds=every_seconds)

    thread = threading.Thread(target=keep, name="backsight-documents", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _log_error(result: ReindexResult | BacksightError) -> None:
    if isinstance(result, BacksightError):
        LOG.warning("documents: %s", result.message)


def _reindex(memory: Memory, report: Report) -> None:
    try:
        report(memory.reindex(background=True))
    except BacksightError as error:
        report(error)
