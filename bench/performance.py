"""Processor time of performance answers beside many trades, against reading the same trades row by row.

The store has `--trades` closed trades of two strategies on one account with a known equity. The first call of a process
builds the columns and is not counted; the others are medians.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from backsight.memory import Memory, open_memory
from backsight.store import trades as stored
from backsight.testing import T0, FakeClock

RESULTS = (1.5, -1.0, 0.5, -1.0, 2.0, -0.4, 0.1)


def fill(memory: Memory, folder: Path, count: int) -> None:
    memory.record_equity(equity=1_000_000.0, at=T0 - timedelta(minutes=5 * count + 1))
    rows = ["symbol,direction,entry_price,exit_price,pnl,pnl_r,strategy_name,context_regime,opened_at,closed_at"]
    for number in range(count):
        closed = T0 - timedelta(minutes=5 * (count - number))
        r = RESULTS[number % 7]
        rows.append(
            f"{('BTC', 'ETH', 'SOL', 'XRP')[number % 4]},{('long', 'short')[number % 2]},100,101,{100 * r},{r},"
            f"S{number % 2},{('ranging', 'trending_up', 'volatile')[number % 3]},"
            f"{(closed - timedelta(minutes=3)).isoformat()},{closed.isoformat()}"
        )
    path = folder / "trades.csv"
    path.write_text("\n".join(rows))
    memory.import_trades(path=str(path))


def processor_ms(call: Callable[[], object], runs: int) -> float:
    """The median processor time of a call."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        call()
        times.append((time.process_time() - start) * 1_000.0)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        open_memory(f"sqlite:///{folder}/store.db", clock=FakeClock(T0)) as memory,
    ):
        fill(memory, Path(folder), options.trades)

        def rows() -> None:
            with memory.reading() as connection:
                stored.trades(memory.view(connection), limit=options.trades, strategy_name="S0")

        past = T0 - timedelta(minutes=5 * options.trades // 2)
        calls: dict[str, Callable[[], object]] = {
            "get_strategy_performance": lambda: memory.get_strategy_performance(strategy="S0"),
            "get_strategy_performance as of half the time": lambda: memory.get_strategy_performance(
                strategy="S0", as_of=past
            ),
            "get_my_deployments": lambda: memory.get_my_deployments(),
            "break_down by symbol": lambda: memory.break_down(by="symbol"),
            "break_down by weekday": lambda: memory.break_down(by="weekday"),
            "get_equity": lambda: memory.get_equity(deployment="manual:S0"),
        }
        for call in calls.values():
            call()
        baseline = processor_ms(rows, 1)
        print(f"| {options.trades:,} trades | processor time | times reading the rows of one strategy |\n|---|---|---|")
        print(f"| rows of one strategy | {baseline:,.0f} ms | 1 |")
        for name, call in calls.items():
            taken = processor_ms(call, options.runs)
            print(f"| {name} | {taken:,.0f} ms | {taken / baseline:.3f} |")


if __name__ == "__main__":
    main()
