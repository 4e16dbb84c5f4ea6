"""CPU time of verify_audit: of a whole store, and of what one trade added since a checkpoint.

The stores are SQLite files with the trades of `bench/write.py`, imported in parts.
"""

import argparse
import platform
import tempfile
import time
from pathlib import Path

from bench.write import Store


def measure(folder: Path, stored: int) -> tuple[float, float]:
    """CPU seconds of a whole verification, and of one since a checkpoint."""
    store = Store(folder, f"verify-{stored}", stored)
    with store.memory as memory:
        started = time.process_time()
        whole = memory.verify_audit()
        between = time.process_time()
        assert whole.intact, whole
        store.write()
        resumed = time.process_time()
        later = memory.verify_audit(since=whole.checkpoint)
        assert later.intact, later
        return between - started, time.process_time() - resumed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, nargs="*", default=[10_000, 100_000])
    options = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}\n")
    print("| stored trades | everything | since a checkpoint, one trade later | times |\n|---|---|---|---|")
    for trades in options.trades:
        with tempfile.TemporaryDirectory() as folder:
            whole, later = measure(Path(folder), trades)
            print(f"| {trades:,} | {whole:.1f} s | {later:.3f} s | {whole / later:,.0f} |")


if __name__ == "__main__":
    main()
