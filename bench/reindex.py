"""A reindex beside writers: how long notes take while an index of 4,000 trades and 60 files is made.

One process makes the index. Two other processes each add a note every second, from before the reindex starts until
after it has ended. Reported are the CPU and wall time of the reindex, the time of the slowest note, how many notes
are in their files, and whether the index equals one that is made alone afterwards. Every database is measured.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from backsight.importers.workspace import Workspace
from backsight.memory import Memory, open_memory
from backsight.settings import Settings
from bench.search import fresh_stores
from bench.write import a_trade

START, BETWEEN, DURATION = datetime(2025, 1, 6, tzinfo=UTC), timedelta(minutes=145), timedelta(minutes=100)
PARAGRAPHS = (
    "The spread of gold widens before the fixing; place orders outside of it.",
    "Die Gebühren im Terminhandel sind seit Mai höher; der Rabatt gilt ab 50 Geschäften.",
    "Le stop doit être placé avant l'entrée, jamais après l'annonce.",
    "Después de tres pérdidas seguidas se reduce el tamaño a la mitad.",
    "仓位上限为净值的百分之二，周末不持仓。",
)
REINDEX = """
import resource, sys, time
from backsight.memory import open_memory
from backsight.settings import Settings
with open_memory(settings=Settings(url=sys.argv[1], owner="ana", workspace=sys.argv[2])) as memory:
    used, start = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]), time.perf_counter()
    result = memory.reindex()
    cpu = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - used
    print(cpu, time.perf_counter() - start, result.documents, result.chunks)
"""
WRITE = """
import sys, time
from pathlib import Path
from backsight.memory import open_memory
from backsight.settings import Settings
url, folder, agent, stop, run = sys.argv[1:]
with open_memory(settings=Settings(url=url, owner="ana", workspace=folder)) as memory:
    number = 0
    while not Path(stop).exists():
        start = time.perf_counter()
        memory.append_note(text=f"beat {number} of {agent}", agent=agent, run=run, path="journal/beats.md")
        seconds = time.perf_counter() - start
        print(seconds, flush=True)
        number += 1
        time.sleep(max(0.0, 1.0 - seconds))
"""


def write_workspace(folder: Path, files: int) -> None:
    """A workspace of files in five languages."""
    Workspace(folder).lay_out()
    for number in range(files - len(list(folder.rglob("*.md")))):
        text = "\n\n".join(f"## Point {part}\n\n{PARAGRAPHS[(number + part) % 5]}" for part in range(1 + number % 9))
        (folder / f"memory/topic{number}.md").write_text(f"# Topic {number}\n\n{text}\n")


def trades(count: int) -> list[dict[str, Any]]:
    """Trades of three strategies, ten a day."""
    rows = []
    for number in range(count):
        closed = START + number * BETWEEN
        instants = {"opened_at": (closed - DURATION).isoformat(), "closed_at": closed.isoformat()}
        rows.append({**a_trade(number), **instants, "idempotency_key": f"soak {number}"})
    return rows


def prepare(url: str, folder: Path, *, count: int, files: int) -> str:
    """A store with trades, and a workspace that is not indexed yet; returns the id of a trade."""
    write_workspace(folder, files)
    file = folder.parent / f"{folder.name}-trades.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in trades(count)))
    with open_memory(settings=Settings(url=url, owner="ana", workspace=str(folder))) as memory:
        memory.import_trades(path=str(file))
        return memory.list_trades(limit=1).trades[0].id


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


def contents(memory: Memory) -> Mapping[str, str]:
    """The text of every indexed document that is not a journal, by path."""
    from backsight.store import documents as stored

    with memory.reading() as connection:
        paths = list(stored.documents(connection, "ana"))
        return stored.document_texts(connection, "ana", paths)


def soak(url: str, alone: str, folder: Path, run: str) -> dict[str, Any]:
    """Reindex beside two writers, and compare the index with one that is made alone in another store."""
    stop = folder.parent / f"{folder.name}.stop"
    writers = {agent: started(WRITE, url, str(folder), agent, str(stop), run) for agent in ("a", "b")}
    for writer in writers.values():
        assert writer.stdout is not None
        writer.stdout.readline()  # the first note is written
    reindexing = started(REINDEX, url, str(folder))
    cpu, wall, documents, chunks = map(float, reindexing.communicate()[0].split())
    stop.touch()
    seconds = {agent: list(map(float, writer.communicate()[0].split())) for agent, writer in writers.items()}
    text = (folder / "journal/beats.md").read_text()
    written = {agent: len(times) + 1 for agent, times in seconds.items()}
    once = all(text.count(f"\nbeat {n} of {agent}\n") == 1 for agent, count in written.items() for n in range(count))
    with open_memory(settings=Settings(url=url, owner="ana", workspace=str(folder))) as memory:
        memory.reindex()
        beside = contents(memory)
    with open_memory(settings=Settings(url=alone, owner="ana", workspace=str(folder))) as memory:
        memory.reindex()
        equal = beside == contents(memory)
    every = sorted(each for times in seconds.values() for each in times)
    return {
        "cpu": cpu,
        "wall": wall,
        "documents": int(documents),
        "chunks": int(chunks),
        "notes": sum(written.values()),
        "slowest": every[-1] if every else 0.0,
        "median": every[len(every) // 2] if every else 0.0,
        "once": once and text.count("<!-- agent:") == sum(written.values()),
        "equal": equal,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=4_000)
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--no-postgres", action="store_true", help="measure on SQLite only")
    options = parser.parse_args()
    print(
        "| database | documents, chunks | CPU | wall | notes | median | slowest | each once | equal to one made alone |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    with fresh_stores(not options.no_postgres) as urls, tempfile.TemporaryDirectory() as parent:
        for name, url in urls.items():
            folder = Path(parent) / name
            store, alone = url(), url()
            for each in (store, alone):
                run = prepare(each, folder, count=options.trades, files=options.files)
            time.sleep(1)
            result = soak(store, alone, folder, run)
            size = f"{result['documents']:,}, {result['chunks']:,}"
            figures = f"{result['cpu']:.1f} s | {result['wall']:.1f} s | {result['notes']} | {result['median']:.2f} s"
            answers = " | ".join("yes" if result[key] else "no" for key in ("once", "equal"))
            print(f"| {name} | {size} | {figures} | {result['slowest']:.2f} s | {answers} |", flush=True)


if __name__ == "__main__":
    main()
