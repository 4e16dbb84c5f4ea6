"""What changes in the workspace is soon in the index, and an error ends nothing."""

import threading
from pathlib import Path

from backsight.core.errors import BacksightError, NotFound
from backsight.importers.workspace import Workspace
from backsight.memory import Memory, open_memory
from backsight.ops.documents import Reindexed
from backsight.runtime.watcher import changes, keep_indexed, ticks, watch_documents
from backsight.settings import Settings
from backsight.testing import FakeClock

Told = list[Reindexed | BacksightError]


def a_memory(tmp_path: Path, clock: FakeClock) -> Memory:
    url, workspace = f"sqlite:///{tmp_path}/store.db", str(tmp_path / "workspace")
    return open_memory(settings=Settings(url=url, workspace=workspace), clock=clock)


def test_each_trigger_reindexes_and_an_error_ends_nothing(tmp_path: Path, clock: FakeClock) -> None:
    told: Told = []
    with a_memory(tmp_path, clock) as memory:
        workspace = Workspace(tmp_path / "workspace")
        triggers = (workspace.lay_out() and None for _ in range(2))
        keep_indexed(memory, triggers, told.append)
    assert isinstance(told[0], NotFound)
    assert [each.read for each in told[1:] if isinstance(each, Reindexed)] == [8, 0]


def test_the_clock_ticks_until_it_is_stopped() -> None:
    stop = threading.Event()
    counted = 0
    for _ in ticks(stop, every_seconds=0.001):
        counted += 1
        if counted == 3:
            stop.set()
    assert counted == 3


def test_a_change_of_a_file_is_noticed(tmp_path: Path) -> None:
    stop, seen = threading.Event(), threading.Event()

    def look() -> None:
        for _ in changes(tmp_path, stop, debounce=50):
            seen.set()

    thread = threading.Thread(target=look)
    thread.start()
    for number in range(200):
        (tmp_path / "a.md").write_text(str(number))
        if seen.wait(0.05):
            break
    stop.set()
    thread.join()
    assert seen.is_set()


def test_a_workspace_is_watched_from_the_start(tmp_path: Path, clock: FakeClock) -> None:
    Workspace(tmp_path / "workspace").lay_out()
    told: Told = []
    stop = threading.Event()

    def tell(result: Reindexed | BacksightError) -> None:
        told.append(result)
        stop.set()

    with a_memory(tmp_path, clock) as memory:
        watch_documents(memory, tell, stop, every_seconds=60.0)
    assert isinstance(told[0], Reindexed)
    assert told[0].documents == 8
