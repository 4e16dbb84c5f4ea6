"""Keeping the index up to date: when files change, and every so often whatever the file system says."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from backsight.core.errors import BacksightError, Unavailable
from backsight.memory import Memory
from backsight.ops.documents import Reindexed

DEBOUNCE_MILLISECONDS = 1_600
"""Changes that come so close to each other are one: editors write a file in several steps."""
EVERY_SECONDS = 300.0

Told = Callable[[Reindexed | BacksightError], None]


def changes(folder: Path, stop: threading.Event, *, debounce: int = DEBOUNCE_MILLISECONDS) -> Iterator[None]:
    """Something each time files of a folder have changed and come to rest, until told to stop."""
    try:
        from watchfiles import watch
    except ImportError:
        raise Unavailable("watching files needs a library; pip install 'backsight[watch]'", field="watch") from None
    for _ in watch(folder, debounce=debounce, stop_event=stop, raise_interrupt=False, ignore_permission_denied=True):
        yield None


def ticks(stop: threading.Event, *, every_seconds: float = EVERY_SECONDS) -> Iterator[None]:
    """Something every so often, until told to stop."""
    while not stop.wait(every_seconds):
        yield None


def keep_indexed(memory: Memory, triggers: Iterator[None], told: Told) -> None:
    """Reindex now and at each trigger, and tell what came of it; an error that may pass ends nothing."""
    _reindex(memory, told)
    for _ in triggers:
        _reindex(memory, told)


def watch_documents(memory: Memory, told: Told, stop: threading.Event, *, every_seconds: float = EVERY_SECONDS) -> None:
    """Keep the index up to date by both until told to stop: by what the file system tells, and by the clock."""
    folder = None if memory.library is None else memory.library.folder
    if folder is None or not Path(folder).is_dir():
        memory.reindex()  # says what is wrong with it
        return
    one_at_a_time = threading.Lock()

    def tell_in_turn(result: Reindexed | BacksightError) -> None:
        with one_at_a_time:
            told(result)

    clock = threading.Thread(
        target=keep_indexed, args=(memory, ticks(stop, every_seconds=every_seconds), tell_in_turn), daemon=True
    )
    clock.start()
    try:
        for _ in changes(Path(folder), stop):
            _reindex(memory, tell_in_turn)
    finally:
        stop.set()
        clock.join()


def _reindex(memory: Memory, told: Told) -> None:
    try:
        told(memory.reindex(background=True))
    except BacksightError as error:
        told(error)
