"""The runs of agents that this process has started: one thread each, cancelled when the memory is closed."""

from collections.abc import Callable
from threading import Event, Lock, Thread

Work = Callable[[Callable[[], bool]], None]
"""Carries out a run; it is given a function that says whether the run is cancelled."""
LONGEST_STOP = 15.0
"""Seconds that a cancelled run has to record its end."""


class RunsInProgress:
    """Threads by the id of their run."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._threads: dict[str, Thread] = {}
        self._stop = Event()

    def start(self, run_id: str, work: Work) -> None:
        """Carry out a run in a thread of its own."""

        def carry_out() -> None:
            try:
                work(self._stop.is_set)
            finally:
                with self._lock:
                    self._threads.pop(run_id, None)

        thread = Thread(target=carry_out, name=f"backsight-run-{run_id[:8]}", daemon=True)
        with self._lock:
            self._threads[run_id] = thread
        thread.start()

    def wait(self, run_id: str, seconds: float) -> bool:
        """Wait until a run has ended, at most `seconds`; whether it has."""
        with self._lock:
            thread = self._threads.get(run_id)
        if thread is None:
            return True
        thread.join(seconds)
        return not thread.is_alive()

    def stop(self) -> None:
        """Cancel all runs, and wait until they have recorded it."""
        self._stop.set()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(LONGEST_STOP)
