"""Resident memory of a process that searches many documents and opens many stores, as a server does for months.

The first part searches 200 documents of a workspace again and again. The second part opens stores one after the other,
recalls from each and closes it. Memory is read after every round: it must become flat.
"""

import argparse
import gc
import platform
import random
import resource
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from backsight.memory import Memory, open_memory
from backsight.runtime.clock import SimulatedClock
from backsight.settings import settings_from
from bench.write import Store, a_trade, closed_at

DOCUMENTS = 200
WORDS = ("breakout", "range", "stop", "volume", "funding", "liquidity", "session", "reversal", "spread", "drawdown")


def resident() -> float:
    """Resident memory in megabytes; the peak where the system does not say how much is resident now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


def searches(folder: Path, rounds: int) -> Iterator[float]:
    """Megabytes after each round of searches for every document."""
    workspace = folder / "workspace"
    workspace.mkdir()
    rng = random.Random(7)
    texts = [" ".join(rng.choices(WORDS, k=120)) + f" case {number}" for number in range(DOCUMENTS)]
    for number, text in enumerate(texts):
        (workspace / f"note-{number}.md").write_text(f"# Note {number}\n\n{text}.\n")
    clock = SimulatedClock(datetime(2026, 1, 5, tzinfo=UTC))
    settings = settings_from({"BACKSIGHT_WORKSPACE": str(workspace), "BACKSIGHT_SEARCH": "hybrid_embeddings"})
    with open_memory(f"sqlite:///{folder}/documents.db", owner="bench", clock=clock, settings=settings) as memory:
        memory.reindex()
        for _ in range(rounds):
            for number, text in enumerate(texts):
                memory.search_memory(query=f"{text[:60]} {number} {rng.random()}")
            yield resident()


def stores(folder: Path, rounds: int, trades: int) -> Iterator[float]:
    """Megabytes after each store that was opened, asked and closed."""
    Store(folder, "one", trades).memory.close()
    for number in range(rounds):
        clock = SimulatedClock(closed_at(trades + 100))
        with open_memory(f"sqlite:///{folder}/one.db", owner="bench", clock=clock) as memory:
            ask(memory, number)
        yield resident()


def ask(memory: Memory, number: int) -> None:
    memory.recall_memories(symbol="BTC", strategy_name="VolBreakout")
    memory.position_size(symbol="BTC", direction="long", strategy_name="VolBreakout")
    memory.list_trades(limit=100)
    memory.remember_trade(**{**a_trade(number), "idempotency_key": f"memory {number}"})


def table(title: str, values: Iterator[float]) -> None:
    print(f"| {title} | megabytes | more than the round before |\n|---|---|---|")
    before = resident()
    for number, megabytes in enumerate(values, start=1):
        print(f"| {number} | {megabytes:.0f} | {megabytes - before:+.1f} |")
        before = megabytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--trades", type=int, default=20_000)
    options = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, collection {gc.get_threshold()}\n")
    with tempfile.TemporaryDirectory() as folder:
        table(f"round of {DOCUMENTS} searches", searches(Path(folder), options.rounds))
    print()
    with tempfile.TemporaryDirectory() as folder:
        table(
            f"store of {options.trades:,} trades opened and closed",
            stores(Path(folder), options.rounds, options.trades),
        )


if __name__ == "__main__":
    main()
