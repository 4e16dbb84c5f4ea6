"""Work in the background of this process: one thread, started on demand and stopped with the memory."""

from collections.abc import Callable
from threading import Event, Lock, Thread, current_thread

from backsight.core.errors import BacksightError

Work = Callable[[Event], object]
"""A piece of work; it ends early when the event is set."""


class BackgroundWorker:
    """One thread of this process that does a piece of work, and does it again if it is asked to meanwhile."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._stop = Event()
        self._again = False
        self._thread: Thread | None = None
        self.trouble: str | None = None
        """Why the last piece of work failed; None if it did not."""

    @property
    def works(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None

    def start(self, work: Work) -> None:
        """Do the work in the background; if the thread is running, do it once more afterwards."""
        with self._turn:
            self._again = True
            if not self.works and not self._stop.is_set():
                self._thread = Thread(target=self._run, args=(work,), name="backsight-background", daemon=True)
                self._thread.start()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the work is done, or so many seconds."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def stop(self) -> None:
        """Tell the work to stop, and wait until it has."""
        self._stop.set()
        self.wait()

    def _run(self, work: Work) -> None:
        try:
            while self._goes_on():
                work(self._stop)
                self.trouble = None
        except BacksightError as error:
            self.trouble = error.message
        finally:
            with self._turn:
                if self._thread is current_thread():  # cut short by an error: the next start begins a new thread
                    self._thread = None

    def _goes_on(self) -> bool:
        with self._turn:
            again, self._again = self._again and not self._stop.is_set(), False
            if not again:
                self._thread = None
            return again
