"""The time of a write while the store grows, and the number of trades that an import stores in a second.

A write is remember_trade, with all five memories and the audit chain, into SQLite files that hold 0, 10,000 and 100,000
trades; the stores take turns, so that the ratio can be compared between machines. An import is import_trades of a file
of 10,000 trades, into new stores and, one after the other, into one that holds 100,000 older ones. Trades are of three
strategies in six symbols, half an hour apart, each with its context; in one regime one of the strategies wins more
often, so that beliefs are induced. With --trades, only one file of so many trades is imported, with the peak of memory.
Writes are measured in wall time, imports in processor time.
"""

import argparse
import json
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from backsight.memory import Memory, open_memory
from backsight.runtime.clock import SimulatedClock
from backsight.surfaces.progress import peak_memory

START = datetime(2019, 1, 7, tzinfo=UTC)
INTERVAL, DURATION = timedelta(minutes=30), timedelta(minutes=100)
STRATEGIES = ("VolBreakout", "IntradayMomentum", "MeanReversion")
PRICES = {"BTC": 98_000.0, "ETH": 3_400.0, "SOL": 190.0, "XAUUSD": 2_650.0, "EURUSD": 1.05, "SPX": 5_900.0}
REGIMES = ("trending_up", "trending_down", "ranging", "volatile")
VOLATILITY = ("low", "normal", "high", "extreme")
IMPORTED = 10_000
SIZES = (0, 10_000, 100_000)


def closed_at(number: int) -> datetime:
    return START + number * INTERVAL + DURATION


def a_trade(number: int) -> dict[str, Any]:
    """The arguments of remember_trade for the trade of a number; the same number gives the same trade."""
    rng = random.Random(number)
    symbol, strategy, regime = rng.choice(list(PRICES)), rng.choice(STRATEGIES), rng.choice(REGIMES)
    price = PRICES[symbol] * rng.uniform(0.8, 1.2)
    atr, risk = 0.03 * price, rng.uniform(50.0, 150.0)
    edge = 0.15 if (strategy, regime) == (STRATEGIES[0], "trending_up") else 0.0
    r = rng.uniform(0.5, 3.0) if rng.random() < 0.4 + edge else rng.uniform(-1.2, -0.5)
    return {
        "symbol": symbol,
        "direction": rng.choice(["long", "short"]),
        "strategy_name": strategy,
        "entry_price": price,
        "exit_price": price * (1.0 + 0.01 * r),
        "pnl": r * risk,
        "risk": risk,
        "size": 100.0 * risk / price,
        "fees": 0.01 * risk,
        "confidence": round(rng.random(), 2),
        "market_context": "closed above the range of the last four hours on twice the usual volume",
        "reflection": "held it as planned" if r > 0 else "entered late",
        "tags": [rng.choice(["open", "news", "retest"])],
        "context": {
            "regime": regime,
            "volatility_regime": rng.choice(VOLATILITY),
            "atr_d1": atr,
            "atr_h1": atr * rng.uniform(0.1, 0.4),
            "spread_points": 0.0001 * price,
            "drawdown_pct": rng.uniform(0.0, 0.1),
        },
        "opened_at": (closed_at(number) - DURATION).isoformat(),
        "closed_at": closed_at(number).isoformat(),
    }


def a_file(path: Path, first: int, count: int) -> str:
    """The path of a new file with `count` trades, from the number `first` on."""
    with path.open("w") as file:
        for number in range(first, first + count):
            file.write(json.dumps({**a_trade(number), "idempotency_key": f"bench {number}"}) + "\n")
    return str(path)


class Store:
    """A store with `stored` trades, and its simulated clock."""

    def __init__(self, folder: Path, name: str, stored: int) -> None:
        self.clock, self.next = SimulatedClock(START), 0
        self.memory: Memory = open_memory(f"sqlite:///{folder}/{name}.db", owner="bench", clock=self.clock)
        for strategy in STRATEGIES:  # so that their account is there, and trades have a size
            self.memory.remember_inaction(symbol="BTC", strategy_name=strategy, reason="bench")
        self.memory.record_equity(account="manual", equity=100_000.0)
        while self.next < stored:
            self.bring_in_next(folder)

    def bring_in_next(self, folder: Path, count: int = IMPORTED) -> float:
        """Seconds of processor time that the import of the next trades takes."""
        path = a_file(folder / "trades.jsonl", self.next, count)
        self.next += count
        self.clock.at = closed_at(self.next) + timedelta(days=2)
        started = time.process_time()
        self.memory.import_trades(path=path)
        return time.process_time() - started

    def write(self) -> float:
        """Seconds that the next write takes."""
        self.clock.at = max(self.clock.at, closed_at(self.next))
        arguments = a_trade(self.next)
        self.next += 1
        started = time.perf_counter()
        self.memory.remember_trade(**arguments)
        return time.perf_counter() - started


def growth(folder: Path, writes: int) -> Iterator[tuple[int, list[float]]]:
    """The seconds of each write, for each number of stored trades."""
    stores = {count: Store(folder, f"grown-{count}", count) for count in SIZES}
    times: dict[int, list[float]] = {count: [] for count in stores}
    for _ in range(writes):
        for count, store in stores.items():
            times[count].append(store.write())
    for store in stores.values():
        store.memory.close()
    yield from times.items()


def imports(folder: Path, runs: int) -> Iterator[tuple[int, list[float]]]:
    """The processor time of each import of 10,000 trades: into new stores, and one after the other into a large one."""
    empty = [Store(folder, f"new-{run}", 0) for run in range(runs)]
    yield 0, [store.bring_in_next(folder) for store in empty]
    large = Store(folder, "large", SIZES[-1])
    yield SIZES[-1], [large.bring_in_next(folder) for _ in range(runs)]
    for store in (*empty, large):
        store.memory.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--trades", type=int, help="only import one file of so many trades into an empty store")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.trades:
            time_taken = Store(Path(folder), "file", 0).bring_in_next(Path(folder), options.trades)
            rate = f"{options.trades / time_taken:,.0f} a second"
            print(f"{options.trades:,} trades in {time_taken:.1f} s of processor time: {rate}, {peak_memory():.0f} MB")
            return
        print(f"{platform.python_implementation()} {platform.python_version()}, {options.writes} writes each\n")
        print("| stored trades | a write, median | all writes | times an empty store |\n|---|---|---|---|")
        base = 0.0
        for count, seconds in growth(Path(folder), options.writes):
            whole = sum(seconds)
            base = base or whole
            median = 1e3 * statistics.median(seconds)
            print(f"| {count:,} | {median:.2f} ms | {whole:.2f} s | {whole / base:.2f} |")
        print(f"\n| import of {IMPORTED:,} trades into | processor time, median | fastest | slowest | a second |")
        print("|---|---|---|---|---|")
        for stored, seconds in imports(Path(folder), options.runs):
            median = statistics.median(seconds)
            ends = f"{min(seconds):.2f} | {max(seconds):.2f}"
            print(f"| {stored:,} stored | {median:.2f} | {ends} | {IMPORTED / median:,.0f} |")


if __name__ == "__main__":
    main()
