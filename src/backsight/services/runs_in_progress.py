"""The runs of agents that this process has started: one thread each, cancelled when the memory is closed.

Others wait for an event that a run sets at its end, and not for its thread: an interrupted `Thread.join` marks a thread
as stopped that still runs (CPython issue 90882), and the run would not be cancelled.
"""

from collections.abc import Callable
from threading import Event, RLock, Thread

Work = Callable[[Callable[[], bool]], None]
"""Carries out a run; it is given a function that says whether the run is cancelled."""
LONGEST_STOP = 15.0
"""Seconds that a cancelled run has to record its end."""


class RunsInProgress:
    """The events that runs set when they have ended, by the id of the run."""

    def __init__(self) -> None:
        self._lock = RLock()  # a signal handler stops the runs, too
        self._ends: dict[str, Event] = {}
        self._stop = Event()

    def start(self, run_id: str, work: Work) -> None:
        """Carry out a run in a thread of its own."""

        end = Event()

        def carry_out() -> None:
            try:
                work(self._stop.is_set)
            finally:
                with self._lock:
                    self._ends.pop(run_id, None)
                end.set()

        with self._lock:
            self._ends[run_id] = end
        Thread(target=carry_out, name=f"backsight-run-{run_id[:8]}", daemon=True).start()

    def wait(self, run_id: str, seconds: float) -> bool:
        """Wait until a run has ended, at most `seconds`; whether it has."""
        with self._lock:
            end = self._ends.get(run_id)
        return end is None or end.wait(seconds)

    def stop(self) -> None:
        """Cancel all runs, and wait until they have recorded it."""
        self._stop.set()
        with self._lock:
            ends = list(self._ends.values())
        for end in ends:
            end.wait(LONGEST_STOP)
