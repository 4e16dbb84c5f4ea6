"""Work in the background: one thread, repeated on demand, with its last error."""

from threading import Event

from backsight.core.errors import Unavailable
from backsight.services.background import BackgroundWorker

PATIENCE = 30.0


def test_work_that_is_asked_for_again_while_it_runs_is_repeated_once() -> None:
    worker, begun, go_on = BackgroundWorker(), Event(), Event()
    runs: list[bool] = []

    def work(stop: Event) -> None:
        runs.append(stop.is_set())
        begun.set()
        go_on.wait(PATIENCE)

    worker.start(work)
    assert begun.wait(PATIENCE)
    for _ in range(3):
        worker.start(work)
    go_on.set()
    worker.wait(PATIENCE)
    assert (runs, worker.is_running, worker.last_error) == ([False, False], False, None)


def test_an_error_is_remembered_until_work_succeeds() -> None:
    worker = BackgroundWorker()

    def fail(_stop: Event) -> None:
        raise Unavailable("the embedder does not answer")

    worker.start(fail)
    worker.wait(PATIENCE)
    assert worker.last_error == "the embedder does not answer"
    worker.start(lambda _stop: None)
    worker.wait(PATIENCE)
    assert worker.last_error is None


def test_work_is_told_to_stop_and_nothing_starts_afterwards() -> None:
    worker, begun = BackgroundWorker(), Event()

    def work(stop: Event) -> None:
        begun.set()
        stop.wait(PATIENCE)

    worker.start(work)
    assert begun.wait(PATIENCE)
    worker.stop()
    worker.start(work)
    assert not worker.is_running
