"""A verification that runs in the background, with its progress: one at a time for each owner."""

import threading
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backsight.core.errors import BacksightError, Conflict

if TYPE_CHECKING:
    from backsight.memory import Memory


@dataclass(slots=True)
class VerificationRun:
    """How far a verification is; `error` says why it failed."""

    part: str = "starting"
    done: int = 0
    total: int = 0
    is_over: bool = False
    error: str | None = None
    thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        if self.error is not None:
            return f"Failed: {self.error}"
        if self.is_over:
            return "Done."
        return f"Verifying: {self.part}, {self.done:,} of {self.total:,}." if self.total else f"Verifying: {self.part}."


_RUNS: dict[tuple[int, str], VerificationRun] = {}
_LOCK = threading.Lock()


def run_of(memory: "Memory") -> VerificationRun | None:
    """The last run of this process for an owner."""
    return _RUNS.get((id(memory.database), memory.owner))


def start(memory: "Memory", *, everything: bool) -> VerificationRun:
    """Start a verification; `Conflict` if one is running."""
    key = id(memory.database), memory.owner
    with _LOCK:
        running = _RUNS.get(key)
        if running is not None and not running.is_over:
            raise Conflict("a verification is running; wait for its end")
        run = _RUNS[key] = VerificationRun()
    verifier = copy(memory)

    def note(part: str, done: int, total: int) -> None:
        run.part, run.done, run.total = part, done, total

    verifier.progress = note

    def work() -> None:
        try:
            verifier.record_verification(everything=everything)
        except BacksightError as error:
            run.error = error.message
        finally:
            run.is_over = True

    run.thread = threading.Thread(target=work, name="verification", daemon=True)
    run.thread.start()
    return run
