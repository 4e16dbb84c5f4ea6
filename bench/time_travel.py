"""The time of an answer as of a past instant against the same answer now, and of a late trade against one in order.

Stores of 1,000, 10,000 and 100,000 trades are imported into SQLite files (`--sizes 1000000` for more). The past is the
instant at which half of the trades were known. A late trade closed some trades before the last one. All times are CPU
times of this process, so that other processes disturb them little. The exponent is that of the fitted power law: 0 is a
time that does not grow, 1 a time that grows with the number of trades. `--folder` keeps the stores for another run.
Run it as `python -m bench.time_travel`.
"""

import argparse
import math
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from backsight.memory import Memory, open_memory
from backsight.runtime.clock import SimulatedClock
from backsight.services.trade_reports import revise_trade
from backsight.store import trades as stored_trades
from bench.write import DURATION, IMPORTED, INTERVAL, START, STRATEGIES, a_file, a_trade, closed_at

SIZES = (1_000, 10_000, 100_000)
LATE_BY = (1, 5, 50)
"""How many trades closed after the late one."""
CORRECTED = (1, 10, 50)
"""The first of the last trades that is corrected; a run later, the one before it."""
SITUATION: Mapping[str, Any] = {
    "symbol": "BTC",
    "direction": "long",
    "strategy_name": STRATEGIES[0],
    "context": {"regime": "ranging"},
    "mode": "live",
}


class Store:
    """A store with `count` trades, and its simulated clock."""

    def __init__(self, folder: Path, count: int) -> None:
        path = folder / f"time-travel-{count}.db"
        is_new = not path.exists()
        self.clock, self.count = SimulatedClock(START), count
        self.memory: Memory = open_memory(f"sqlite:///{path}", owner="bench", clock=self.clock)
        if is_new:
            self._fill(folder)
        self.clock.at = closed_at(count) + timedelta(days=2)
        self.next = count

    def _fill(self, folder: Path) -> None:
        for strategy in STRATEGIES:
            self.memory.remember_inaction(symbol="BTC", strategy_name=strategy, reason="bench")
        self.memory.record_equity(account="manual", equity=100_000.0)
        for first in range(0, self.count, IMPORTED):
            size = min(IMPORTED, self.count - first)
            self.clock.at = closed_at(first + size) + timedelta(days=2)
            self.memory.import_trades(path=a_file(folder / "trades.jsonl", first, size))

    @property
    def past(self) -> datetime:
        return closed_at(self.count // 2) + timedelta(seconds=1)

    def reads(self) -> dict[str, Callable[..., object]]:
        memory = self.memory
        deployments = [row.deployment for row in memory.get_my_deployments().deployments]
        own = next(each.id for each in deployments if each.strategy_name == STRATEGIES[0])
        return {
            "recall_memories": partial(memory.recall_memories, **SITUATION),
            "recall_memories, seen_at now": partial(memory.recall_memories, **SITUATION, seen_at=self.clock.at),
            "recall_memories, episodes only": partial(memory.recall_memories, **SITUATION, memory_types=["episodic"]),
            "preview_context": partial(memory.preview_context, deployment=own),
            "list_beliefs": partial(memory.list_beliefs, mode="live", retired=True),
            "get_behavioral_analysis": partial(memory.get_behavioral_analysis, mode="live"),
            "get_my_deployments": memory.get_my_deployments,
            "compare_lessons": partial(memory.compare_lessons, strategy_name=STRATEGIES[0], mode="live"),
        }

    def write(self) -> float:
        """Milliseconds of a trade that follows all others."""
        number = self.next
        self.next += 1
        self.clock.at = max(self.clock.at, closed_at(number))
        return cpu_ms(partial(self.memory.remember_trade, **a_trade(number)))

    def write_late(self, trades: int, run: int) -> float:
        """Milliseconds of a trade that closed so many trades before the last one."""
        at = closed_at(self.next - 1) - (trades - 0.5) * INTERVAL + timedelta(seconds=run)
        times = {"closed_at": at.isoformat(), "opened_at": (at - DURATION).isoformat()}
        return cpu_ms(partial(self.memory.remember_trade, **{**a_trade(10**8 + 1_000 * trades + run), **times}))

    def correct(self, trades: int) -> float:
        """Milliseconds of a correction of the result of the trade that closed so many trades before the last one."""
        trade = self.memory.list_trades(limit=trades).trades[-1]
        self.clock.at += timedelta(minutes=1)
        return cpu_ms(partial(self._correct, trade.id))

    def _correct(self, trade_id: str) -> None:
        with self.memory.writing() as transaction:
            trade = stored_trades.trade(transaction.connection, self.memory.owner, trade_id)
            if trade is None or trade.pnl is None or trade.outcome is None:
                raise LookupError(f"trade {trade_id!r} has no result")
            revised = replace(
                trade, pnl=trade.pnl + 1.0, outcome=replace(trade.outcome, value=trade.outcome.value + 0.01)
            )
            revise_trade(transaction, replace(revised, known_at=self.memory.now, recorded_at=self.memory.now))


def cpu_ms(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return 1e3 * (time.process_time() - started)


def exponent(sizes: Sequence[int], times: Sequence[float]) -> str:
    """The slope of log time over log size, by least squares."""
    if len(sizes) < 2:
        return ""
    slope = statistics.linear_regression([math.log(size) for size in sizes], [math.log(each) for each in times]).slope
    return f"{slope:.2f}"


def print_reads(stores: Sequence[Store], runs: int) -> None:
    print("\n| as of a past instant | trades | now | past | past ÷ now | exponent of past |\n|---|---|---|---|---|---|")
    names, reads = list(stores[0].reads()), [store.reads() for store in stores]
    for name in names:
        times = []
        for store, own in zip(stores, reads, strict=True):
            own[name](), own[name](as_of=store.past)  # reads pages and statements once
            now = statistics.median(cpu_ms(own[name]) for _ in range(runs))
            past = statistics.median(cpu_ms(partial(own[name], as_of=store.past)) for _ in range(runs))
            times.append(past)
            fitted = exponent([each.count for each in stores], times) if store is stores[-1] else ""
            print(
                f"| `{name}` | {store.count:,} | {now:.1f} ms | {past:.1f} ms | {past / now:.1f} | {fitted} |",
                flush=True,
            )


def print_writes(stores: Sequence[Store], runs: int) -> None:
    heads = " | ".join(f"{trades} late | times in order" for trades in LATE_BY)
    print(f"\n| stored trades | in order | {heads} |\n|{'---|' * (2 + 2 * len(LATE_BY))}")
    for store in stores:
        in_order = statistics.median([store.write() for _ in range(100)])
        late = [statistics.median(store.write_late(trades, run) for run in range(runs)) for trades in LATE_BY]
        cells = " | ".join(f"{each:.0f} ms | {each / in_order:.0f}" for each in late)
        print(f"| {store.count:,} | {in_order:.1f} ms | {cells} |", flush=True)


def print_corrections(stores: Sequence[Store], runs: int) -> None:
    heads = " | ".join(f"of the last {trades} trades | times in order" for trades in CORRECTED)
    print(f"\n| stored trades | in order | a correction {heads} |\n|{'---|' * (2 + 2 * len(CORRECTED))}")
    for store in stores:
        in_order = statistics.median([store.write() for _ in range(100)])
        store.clock.at += timedelta(days=2)
        times = []
        for trades in CORRECTED:
            times.append(statistics.median(store.correct(trades + run) for run in range(runs)))
        cells = " | ".join(f"{each:.0f} ms | {each / in_order:.0f}" for each in times)
        print(f"| {store.count:,} | {in_order:.1f} ms | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="how many trades")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the stores are kept; by default they are deleted")
    parser.add_argument("--reads-only", action="store_true", help="leave the stores as they are")
    options = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, CPU times, medians of {options.runs}")
    with tempfile.TemporaryDirectory() as temporary:
        stores = [Store(options.folder or Path(temporary), size) for size in options.sizes]
        print_reads(stores, options.runs)
        if not options.reads_only:
            print_writes(stores, options.runs)
            print_corrections(stores, options.runs)
        for store in stores:
            store.memory.close()


if __name__ == "__main__":
    main()
