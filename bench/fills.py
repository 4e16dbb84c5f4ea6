"""The number of fills that an import turns into trades in a second, with all memories, and the memory that it needs.

The file is generated: a CSV table of fills in forty symbols, newest first, four fills a trade on average, with fees and
with the exchange's result at each exit. The import runs in a process of its own, into a new SQLite file; the peak is
the largest resident memory of that process. A second import of the same file finds everything stored.
Then a tenth of the fills is imported for each of six agents over one period, into one store.
"""

import argparse
import csv
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backsight.memory import open_memory
from backsight.surfaces.progress import peak_memory

START = datetime(2024, 1, 1, tzinfo=UTC)
SYMBOLS = [f"COIN{number}" for number in range(40)]
HEADER = ("time", "symbol", "side", "quantity", "price", "fee", "realized pnl", "id", "order id")


def a_history(count: int) -> Iterator[list[str]]:
    """The rows of a file of fills, oldest first; the same count gives the same rows."""
    rng = random.Random(18)
    prices = {symbol: rng.uniform(1.0, 1_000.0) for symbol in SYMBOLS}
    open_positions: dict[str, tuple[float, float]] = {}
    for number in range(count):
        at = START + timedelta(seconds=60 * number)
        symbol = rng.choice(SYMBOLS)
        price = prices[symbol] = round(prices[symbol] * (1.0 + rng.gauss(0.0, 0.002)), 6)
        size, cost = open_positions.get(symbol, (0.0, 0.0))
        way = 1.0 if size > 0 or (size == 0 and rng.random() < 0.5) else -1.0
        pnl = ""
        if size == 0 or rng.random() < 0.4:  # enter or add
            quantity = way * rng.randint(1, 50)
            open_positions[symbol] = (
                size + quantity,
                (cost * abs(size) + price * abs(quantity)) / (abs(size + quantity)),
            )
        else:  # leave a part or all
            quantity = -size if rng.random() < 0.6 else -way * rng.randint(1, int(abs(size)))
            pnl = f"{way * abs(quantity) * (price - cost):.8f}"
            open_positions[symbol] = (size + quantity, cost)
        fee = abs(quantity) * price * 0.0004
        side = "buy" if quantity > 0 else "sell"
        yield [
            at.isoformat(),
            symbol,
            side,
            str(abs(quantity)),
            repr(price),
            f"{fee:.8f}",
            pnl,
            str(number),
            str(number),
        ]


def write_file(path: Path, count: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(reversed(list(a_history(count))))


def measure(path: Path, store: Path) -> None:
    """Import a file twice and print the figures."""
    with open_memory(f"sqlite:///{store}") as memory:
        for _ in range(2):
            started, processor = time.perf_counter(), time.process_time()
            answer = memory.import_fills(path=str(path), mode="paper")
            seconds, processor = time.perf_counter() - started, time.process_time() - processor
            closed = 0 if answer.trades is None else answer.trades.closed
            agree = "" if answer.trades is None else f", results agree {answer.trades.comparison.agreeing}"
            figures = f"{answer.fills} fills, {answer.added} new, {closed} trades closed{agree}"
            rates = f"{answer.fills / seconds:,.0f} | {answer.fills / processor:,.0f}"
            print(f"| {figures} | {seconds:.1f} s | {rates} | {peak_memory():.0f} MB |", flush=True)


def measure_agents(path: Path, store: Path, agents: int) -> None:
    """Import one period for several agents into one store, and print the processor time of each against the first."""
    first = 0.0
    with open_memory(f"sqlite:///{store}") as memory:
        for number in range(1, agents + 1):
            started = time.process_time()
            answer = memory.import_fills(path=str(path), mode="paper", account=f"agent {number}")
            seconds = time.process_time() - started
            first = first or seconds
            print(f"| {number} | {answer.added} | {seconds:.2f} s | {seconds / first:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fills", type=int, default=200_000)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--agents", type=int, help="import a tenth of the fills once for each of so many agents")
    options = parser.parse_args()
    if options.file is not None and options.agents:
        measure_agents(options.file, options.store, options.agents)
        return
    if options.file is not None:
        measure(options.file, options.store)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fills.csv"
        write_file(file, options.fills)
        print("| import of a file | time | fills a second | a processor's second | peak memory |")
        print("|---|---|---|---|---|", flush=True)
        words = [sys.executable, __file__, "--file", str(file), "--store", str(Path(folder) / "memory.db")]
        subprocess.run(words, check=True)
        write_file(file, options.fills // 10)
        print("\n| agent | fills | processor time | times the first |")
        print("|---|---|---|---|", flush=True)
        words = [*words[:-1], str(Path(folder) / "agents.db"), "--agents", str(options.agents or 6)]
        subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
