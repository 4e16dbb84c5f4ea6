"""A change in the workspace is soon in the index, and an error does not end the watching."""

import sys
import threading
from pathlib import Path

import pytest

from backsight.core.errors import BacksightError, NotFound
from backsight.importers.workspace import Workspace
from backsight.memory import Memory, open_memory
from backsight.ops.documents import ReindexResult
from backsight.runtime.watcher import changes, intervals, keep_indexed, kept_indexed, watch_documents
from backsight.settings import Settings
from backsight.testing import FakeClock

Results = list[ReindexResult | BacksightError]


def a_memory(tmp_path: Path, clock: FakeClock) -> Memory:
    url, workspace = f"sqlite:///{tmp_path}/store.db", str(tmp_path / "workspace")
    return open_memory(settings=Settings(url=url, workspace=workspace), clock=clock)


def test_each_trigger_reindexes_and_an_error_does_not_end_the_loop(tmp_path: Path, clock: FakeClock) -> None:
    results: Results = []
    with a_memory(tmp_path, clock) as memory:
        workspace = Workspace(tmp_path / "workspace")
        triggers = (workspace.lay_out() and None for _ in range(2))
        keep_indexed(memory, triggers, results.append)
    assert isinstance(results[0], NotFound)
    assert [result.read for result in results[1:] if isinstance(result, ReindexResult)] == [8, 0]


def test_the_clock_ticks_until_it_is_stopped() -> None:
    stop = threading.Event()
    counted = 0
    for _ in intervals(stop, every_seconds=0.001):
        counted += 1
        if counted == 3:
            stop.set()
    assert counted == 3


def test_a_change_of_a_file_is_noticed(tmp_path: Path) -> None:
    stop, noticed = threading.Event(), threading.Event()

    def look() -> None:
        for _ in changes(tmp_path, stop, debounce=50):
            noticed.set()

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(200):
        (tmp_path / "a.md").write_text(str(number))
        if noticed.wait(0.05):
            break
    stop.set()
    thread.join()
    assert noticed.is_set()


def test_a_program_that_serves_keeps_the_index_up_to_date(tmp_path: Path, clock: FakeClock) -> None:
    Workspace(tmp_path / "workspace").lay_out()
    with a_memory(tmp_path, clock) as memory:
        with kept_indexed(memory):
            for _ in range(600):
                if memory.index_health().documents:
                    break
                threading.Event().wait(0.05)
        assert memory.index_health().documents == 8
        with open_memory(f"sqlite:///{tmp_path}/other.db") as other, kept_indexed(other):
            pass  # without a workspace there is nothing to do


def test_a_workspace_is_watched_from_the_start(tmp_path: Path, clock: FakeClock) -> None:
    Workspace(tmp_path / "workspace").lay_out()
    results: Results = []
    stop = threading.Event()

    def report(result: ReindexResult | BacksightError) -> None:
        results.append(result)
        stop.set()

    with a_memory(tmp_path, clock) as memory:
        watch_documents(memory, report, stop, every_seconds=60.0)
    assert isinstance(results[0], ReindexResult)
    assert results[0].documents == 8


def test_without_the_package_that_watches_files_the_clock_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    (tmp_path / "TRADING_MANUAL.md").write_text("# Manual\n\nRisk 1%.\n")
    reports: Results = []
    stop = threading.Event()

    def report(result: ReindexResult | BacksightError) -> None:
        reports.append(result)
        if len(reports) == 3:
            stop.set()

    with open_memory(settings=Settings(url="sqlite://", workspace=str(tmp_path))) as memory:
        watch_documents(memory, report, stop, every_seconds=0.01)
    (error,) = [each for each in reports if isinstance(each, BacksightError)]
    assert "scanned every 0.01 s" in error.message
    assert sum(isinstance(each, ReindexResult) for each in reports) >= 2
