"""What a tick costs: bytes on disk by table, memory of the process, and the time of verifying what was written.

A deployment in one symbol ticks every minute on a SQLite file. The price moves at every tick. A position is entered and
left every two hours. Each tick has its recall, and the memory that it was shown is stored with the decision. Memory and
processor time are printed after every tenth part of the ticks: both must become flat. Then everything is verified, and
what the last hundredth of the ticks wrote. With `--trades` the ticks run beside earlier trades, whose bytes do not
count: as in a store in use, each tick then recalls as many episodes as a recall returns.
"""

import argparse
import random
import sqlite3
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from backsight.core.orders import BrokerSnapshot, Order
from backsight.memory import Memory, open_memory
from backsight.runtime.clock import SimulatedClock
from backsight.testing import a_position, a_snapshot
from bench.server_memory import resident
from bench.tick import tick

START = datetime(2025, 1, 6, tzinfo=UTC)
DEPLOYMENT = "VolBreakout@bench"
YEAR = 525_600
"""One-minute ticks in a year."""
HOLD = 60
"""Ticks in a position, and as many flat."""


class Market:
    """One account in a market whose price moves at every tick."""

    def __init__(self) -> None:
        self.price, self.entry, self.random = 100.0, 0.0, random.Random(7)

    def snapshot(self, at: datetime) -> BrokerSnapshot:
        positions = [a_position(stop_price=95.0, mark=self.price)] if self.entry else []
        return a_snapshot(*positions, at=at, marks={"BTC": self.price})


class Desk:
    """A deployment that ticks in the market, in a store of its own."""

    def __init__(self, memory: Memory, clock: SimulatedClock) -> None:
        self.memory, self.clock, self.market = memory, clock, Market()
        memory.open_account(venue="bench", name="bench", mode="sim")
        memory.save_strategy(name="VolBreakout", thesis="Breaks carry.", rules=["enter on a close"])
        memory.deploy(strategy_name="VolBreakout", account="bench")

    def tick(self, number: int, *, ordering: bool) -> None:
        """A tick one minute later, with its recall and prompt; with an order it enters or leaves the position."""
        memory, clock, market = self.memory, self.clock, self.market
        clock.advance(minutes=1)
        market.price = round(market.price * (1 + market.random.gauss(0, 0.0005)), 2)
        before, order, after = market.snapshot(clock.now()), None, None
        if ordering:
            order = Order(symbol="BTC", quantity=-1.0 if market.entry else 1.0, reason=f"bench {number}")
            market.entry = 0.0 if market.entry else market.price
            after = market.snapshot(clock.now())
        tick(memory, DEPLOYMENT, before=before, after=after, order=order)

    def trade(self, trades: int) -> None:
        """Enter and leave a position for each trade, with an hour between the ticks."""
        for number in range(2 * trades):
            self.clock.advance(minutes=59)
            self.tick(number, ordering=True)


def run(path: Path, ticks: int, *, trades: int) -> tuple[float, dict[str, int]]:
    """Tick on a new store with some trades, printing the memory of the process, and verify.

    The processor seconds of all ticks, and the sizes of tables and indexes before the first of them.
    """
    part, last_hundredth, checkpoint = ticks // 10, ticks - ticks // 100, None
    clock = SimulatedClock(START)
    with open_memory(f"sqlite:///{path}", owner="bench", clock=clock) as memory:
        desk = Desk(memory, clock)
        desk.trade(trades)
        sizes_before = sizes(path)
        started = part_started = time.process_time()
        verifying = 0.0
        for number in range(ticks):
            if number == last_hundredth:
                verifying, checkpoint = verified(memory, "everything so far")
                part_started += verifying
            if part and number % part == 0 and number:
                now = time.process_time()
                milliseconds = 1e3 * (now - part_started) / part
                print(f"  {number:9,} ticks: {resident():6.0f} MB, {milliseconds:.1f} ms of processor time a tick")
                part_started = now
            desk.tick(number, ordering=number % HOLD == HOLD - 1)
        seconds = time.process_time() - started - verifying
        if checkpoint is not None:
            verified(memory, f"the last {ticks - last_hundredth:,} ticks", since=checkpoint)
            verified(memory, "everything")
        print(f"  resident at the end: {resident():.0f} MB")
        return seconds, sizes_before


def verified(memory: Memory, what: str, *, since: str | None = None) -> tuple[float, str | None]:
    """Verify, print the time, and return it with the checkpoint."""
    started = time.process_time()
    answer = memory.verify_audit(since=since)
    seconds = time.process_time() - started
    print(f"  verification of {what}: {seconds:.2f} s, {answer.rows:,} rows, intact: {answer.intact}")
    return seconds, answer.checkpoint


def sizes(path: Path) -> dict[str, int]:
    """Bytes of the pages of each table and index."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=10_000)
    parser.add_argument(
        "--trades", type=int, default=0, help="closed trades before the ticks, whose bytes do not count"
    )
    arguments = parser.parse_args()
    ticks = arguments.ticks
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        seconds, before = run(path, ticks, trades=arguments.trades)
        grown = {name: size - before.get(name, 0) for name, size in sizes(path).items()}
        total = sum(grown.values())
        print(f"{ticks:,} ticks: {total / ticks:,.0f} bytes a tick, {1e3 * seconds / ticks:.1f} ms of processor time")
        print(f"a year of one-minute ticks: {total / ticks * YEAR / 1e9:.2f} GB")
        for name, size in sorted(grown.items(), key=lambda item: -item[1]):
            if size / ticks >= 5:
                print(f"  {name:52} {size / ticks:8,.0f} bytes a tick")


if __name__ == "__main__":
    main()
