"""Work in the background of this process: one thread, started on demand and stopped with the memory."""

from collections.abc import Callable
from threading import Event, Lock, Thread, current_thread

from backsight.core.errors import BacksightError

Work = Callable[[Event], object]
"""A piece of work; it stops early when the event is set."""


class BackgroundWorker:
    """A single thread that does a piece of work, and repeats it if `start` was called meanwhile."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._stop = Event()
        self._again = False
        self._thread: Thread | None = None
        self.last_error: str | None = None
        """Why the last piece of work failed; None if it succeeded."""

    @property
    def is_running(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None

    def start(self, work: Work) -> None:
        """Do the work in the background; if the thread is running, repeat its work once more."""
        with self._turn:
            self._again = True
            if not self.is_running and not self._stop.is_set():
                self._thread = Thread(target=self._run, args=(work,), name="backsight-background", daemon=True)
                self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the work is done, at most `seconds`."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def stop(self) -> None:
        """Tell the work to stop, and wait until it has."""
        self._stop.set()
        self.wait()

    def _run(self, work: Work) -> None:
        try:
            while self._take_turn():
                work(self._stop)
                self.last_error = None
        except BacksightError as error:
            self.last_error = error.message
        finally:
            with self._turn:
                if (
                    self._thread is current_thread()
                ):  # an error ended the work; the next call of `start` starts a new thread
                    self._thread = None

    def _take_turn(self) -> bool:
        """Whether to do the work (again); if not, the thread gives up its place."""
        with self._turn:
            again, self._again = self._again and not self._stop.is_set(), False
            if not again:
                self._thread = None
            return again
