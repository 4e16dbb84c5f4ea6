"""The number of bars that an import stores in a second, and the memory that it needs.

The files are generated: minute bars of one symbol as CSV, and the same number of bars of four symbols in one file.
Each import runs in a process of its own, into a new SQLite file; with `--again` the file is imported twice. The peak
is the largest resident memory of the process. The rate is by processor time.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backsight.memory import open_memory
from backsight.surfaces.progress import peak_memory

START = datetime(2024, 1, 1, tzinfo=UTC)
HEADER = "time,symbol,open,high,low,close,volume"


def write_file(path: Path, count: int, symbols: int) -> None:
    """A file of minute bars, a random walk for each symbol; the same arguments give the same file."""
    rng = random.Random(19)
    prices = [rng.uniform(10.0, 1_000.0) for _ in range(symbols)]
    with path.open("w") as file:
        file.write(HEADER + "\n")
        for number in range(count):
            which, at = number % symbols, START + timedelta(minutes=number // symbols)
            opened = prices[which]
            closed = prices[which] = round(opened * (1.0 + rng.gauss(0.0, 0.001)), 4)
            low, high = min(opened, closed) * 0.9995, max(opened, closed) * 1.0005
            prices_text = f"{opened:.4f},{high:.4f},{low:.4f},{closed:.4f}"
            file.write(f"{at.isoformat()},COIN{which},{prices_text},{rng.randint(0, 100_000) / 100}\n")


def measure(path: Path, store: Path, runs: int) -> None:
    """Import a file and print the figures."""
    with open_memory(f"sqlite:///{store}") as memory:
        for _ in range(runs):
            started = time.process_time()
            answer = memory.import_bars(path=str(path))
            seconds = time.process_time() - started
            added, rows = sum(each.added for each in answer.symbols), answer.report.rows
            what = f"{rows:,} bars of {len(answer.symbols)} symbols, {added:,} new"
            print(f"| {what} | {seconds:.1f} s | {rows / seconds:,.0f} | {peak_memory():.0f} MB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bars", type=int, default=625_516)
    parser.add_argument("--symbols", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--again", action="store_true", help="import each file a second time")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    if options.file is not None:
        measure(options.file, options.store, 2 if options.again else 1)
        return
    print("| import of a file | processor time | bars a second | peak memory |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for symbols in options.symbols:
            file, store = Path(folder) / f"{symbols}.csv", Path(folder) / f"{symbols}.db"
            write_file(file, options.bars, symbols)
            words = [sys.executable, __file__, "--file", str(file), "--store", str(store)]
            subprocess.run([*words, *(["--again"] if options.again else [])], check=True)


if __name__ == "__main__":
    main()
