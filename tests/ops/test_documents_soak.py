"""Processes that reindex and search are killed: searches never see an empty index, and the final index is complete."""

import json
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.importers.workspace import Workspace
from backsight.memory import Memory, open_memory
from backsight.settings import Settings
from backsight.store import documents as stored

REINDEX = """
import sys
from backsight.core.errors import BacksightError
from backsight.memory import open_memory
from backsight.settings import Settings
with open_memory(settings=Settings(url=sys.argv[1], owner="ana", workspace=sys.argv[2])) as memory:
    while True:
        memory.reindex()
        memory.append_note(text="beat", agent="soak", run=sys.argv[3], path="journal/beats.md")
        print("beat", flush=True)
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
    call: dict[str, Any] = {"symbol": "BTC", "direction": "long", "strategy_name": "S", "horizon_hours": 1.0}
    call |= {"reasoning": "waits", "price": 1.0}
    with open_memory(settings=settings) as memory:
        memory.reindex()
        run = memory.record_decision(**call).episode.id

    def started(program: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, url, str(folder), run],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    searching = started(SEARCH)
    kills = 0
    for _ in range(8):
        writers = [started(REINDEX) for _ in range(2)]
        assert writers[0].stdout is not None
        assert writers[0].stdout.readline() == "beat\n", writers[0].communicate()[1]  # a busy machine starts it late
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
        notes, written = memory.list_edits().total, memory.list_edits(status="written").total
        assert memory.verify_audit().intact
    assert notes == written > 0
    assert (folder / "journal/beats.md").read_text().count("<!-- agent: soak") == notes
    with open_memory(settings=Settings(url="sqlite://", owner="ana", workspace=str(folder))) as once:
        once.record_decision(**call)  # the decision is a document, too
        once.reindex()
        rebuilt = once.index_health()
        assert (health.documents, health.chunks) == (rebuilt.documents, rebuilt.chunks)
        if url.startswith("sqlite"):
            assert citations == answers(once)
        else:
            assert {word: {place[:3] for place in places} for word, places in citations.items()} == {
                word: {place[:3] for place in places} for word, places in answers(once).items()
            }


NOTES = """
import sys
from pathlib import Path
from backsight.memory import open_memory
from backsight.settings import Settings
url, folder, run, agent = sys.argv[1:]
with open_memory(settings=Settings(url=url, owner="ana", workspace=folder)) as memory:
    number = 0
    while not Path(folder, "stop").exists():
        memory.append_note(text=f"beat {number} of {agent}", agent=agent, run=run, path="journal/beats.md")
        print(number, flush=True)
        number += 1
"""


def texts(memory: Memory) -> dict[str, str]:
    with memory.reading() as connection:
        return stored.document_texts(connection, "ana", list(stored.documents(connection, "ana")))


@pytest.mark.slow
def test_notes_beside_a_reindex_are_neither_lost_nor_doubled(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    Workspace(folder).lay_out()
    for number in range(52):
        (folder / f"memory/topic{number}.md").write_text(f"# Topic {number}\n\nword{number} is known\n")
    rows = [soak_trade(number) for number in range(4_000)]
    (tmp_path / "trades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = Settings(url=url, owner="ana", workspace=str(folder))
    with open_memory(settings=settings) as memory:
        memory.import_trades(path=str(tmp_path / "trades.jsonl"))
        run = memory.list_trades(limit=1).trades[0].id
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", NOTES, url, str(folder), run, agent], stdout=subprocess.PIPE, text=True
            )
            for agent in ("a", "b")
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        memory.reindex()
        (folder / "stop").touch()
        counts = [len(writer.communicate()[0].split()) + 1 for writer in writers]
        memory.reindex()
        beside = texts(memory)
    beats = (folder / "journal/beats.md").read_text()
    for agent, count in zip(("a", "b"), counts, strict=True):
        assert all(beats.count(f"\nbeat {number} of {agent}\n") == 1 for number in range(count))
    assert beats.count("<!-- agent:") == sum(counts)
    with open_memory(settings=Settings(url="sqlite://", owner="ana", workspace=str(folder))) as alone:
        alone.import_trades(path=str(tmp_path / "trades.jsonl"))
        alone.reindex()
        assert beside == texts(alone)


def soak_trade(number: int) -> dict[str, Any]:
    closed = datetime(2025, 1, 6, tzinfo=UTC) + number * timedelta(minutes=145)
    return {
        "symbol": ("BTC", "ETH", "XAUUSD")[number % 3],
        "direction": "long",
        "strategy_name": ("Fade", "Trend", "Carry")[number % 3],
        "entry_price": 100.0,
        "exit_price": 101.0 - number % 5 / 2,
        "pnl": 1.0 - number % 5 / 2,
        "risk": 1.0,
        "size": 1.0,
        "opened_at": (closed - timedelta(hours=1)).isoformat(),
        "closed_at": closed.isoformat(),
        "idempotency_key": f"soak {number}",
    }
