"""Processes that reindex and search are killed: searches never see an empty index, and the final index is complete."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backsight.importers.workspace import Workspace
from backsight.memory import Memory, open_memory
from backsight.settings import Settings

REINDEX = """
import sys
from backsight.core.errors import BacksightError
from backsight.memory import open_memory
from backsight.settings import Settings
with open_memory(settings=Settings(url=sys.argv[1], owner="ana", workspace=sys.argv[2])) as memory:
    while True:
        memory.reindex()
        memory.append_note(text="beat", agent="soak", path="journal/beats.md")
"""
SEARCH = """
import sys
from backsight.memory import open_memory
from backsight.settings import Settings
with open_memory(settings=Settings(url=sys.argv[1], owner="ana", workspace=sys.argv[2])) as memory:
    while True:
        print(len(memory.search_memory(query="anchorword").citations), flush=True)
"""


def write(folder: Path, rng: random.Random) -> None:
    """Write or delete one file."""
    file = folder / f"journal/n{rng.randrange(30)}.md"
    if rng.random() < 0.25:
        file.unlink(missing_ok=True)
    else:
        file.write_text(f"# Note\n\nword{rng.randrange(50)} and word{rng.randrange(50)}\n" * rng.randrange(1, 40))


def answers(memory: Memory) -> dict[str, list[tuple[str, int, int, float]]]:
    return {
        word: [
            (cited.path, cited.start_line, cited.end_line, round(cited.score, 6))
            for cited in memory.search_memory(query=word, limit=50).citations
        ]
        for word in [*(f"word{number}" for number in range(50)), "anchorword"]
    }


@pytest.mark.slow
def test_after_kills_the_index_equals_one_built_at_once(url: str, tmp_path: Path) -> None:
    rng = random.Random(3)
    folder = tmp_path / "workspace"
    Workspace(folder).lay_out()
    (folder / "TRADING_MANUAL.md").write_text("# Manual\n\nanchorword holds\n")
    settings = Settings(url=url, owner="ana", workspace=str(folder))
    with open_memory(settings=settings) as memory:
        memory.reindex()

    def started(program: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, url, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    searching = started(SEARCH)
    kills = 0
    for _ in range(8):
        writers = [started(REINDEX) for _ in range(2)]
        ends = time.monotonic() + 1.5 + rng.random() * 2
        while time.monotonic() < ends:
            write(folder, rng)
            time.sleep(0.01)
        for writer in writers:
            assert writer.poll() is None, writer.communicate()[1]
            writer.kill()
            writer.communicate()
            kills += 1
    searching.kill()
    counted = searching.communicate()[0].splitlines()[:-1]  # the last may be cut off
    assert kills == 16
    assert len(counted) > 20
    assert set(counted) == {"1"}

    with open_memory(settings=settings) as memory:
        memory.reindex()
        health, citations = memory.index_health(), answers(memory)
        notes = [each.status for each in memory.list_edits().edits]
        assert memory.verify_audit().intact
    assert set(notes) == {"written"}
    assert (folder / "journal/beats.md").read_text().count("<!-- agent: soak -->") == len(notes)
    with open_memory(settings=Settings(url="sqlite://", owner="ana", workspace=str(folder))) as once:
        once.reindex()
        rebuilt = once.index_health()
        assert (health.documents, health.chunks) == (rebuilt.documents, rebuilt.chunks)
        if url.startswith("sqlite"):
            assert citations == answers(once)
        else:
            assert {word: {place[:3] for place in places} for word, places in citations.items()} == {
                word: {place[:3] for place in places} for word, places in answers(once).items()
            }
