"""What a tick costs: bytes on disk by table, memory of the process, and the time of verifying what was written.

A deployment in one symbol ticks every minute on a SQLite file. The price moves at every tick. A position is entered and
left every two hours. Each tick has its recall, and the memory that it was shown is stored with the decision. Memory and
processor time are printed after every tenth part of the ticks: both must become flat. Then everything is verified, and
what the last hundredth of the ticks wrote.
"""

import argparse
import random
import sqlite3
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from backsight.core.decision import Verdict
from backsight.core.orders import BrokerSnapshot, Order
from backsight.memory import Memory, open_memory
from backsight.runtime.clock import SimulatedClock
from backsight.testing import a_position, a_snapshot
from bench.server_memory import resident

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


def run(path: Path, ticks: int) -> float:
    """Tick on a new store, printing the memory of the process, and verify; the processor seconds of all ticks."""
    clock, market = SimulatedClock(START), Market()
    part, last_hundredth, checkpoint = ticks // 10, ticks - ticks // 100, None
    with open_memory(f"sqlite:///{path}", owner="bench", clock=clock) as memory:
        memory.open_account(venue="bench", name="bench", mode="sim")
        memory.save_strategy(name="VolBreakout", thesis="Breaks carry.", rules=["enter on a close"])
        memory.deploy(strategy_name="VolBreakout", account="bench")
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
            clock.advance(minutes=1)
            market.price = round(market.price * (1 + market.random.gauss(0, 0.0005)), 2)
            before, order, after = market.snapshot(clock.now()), None, None
            if number % HOLD == HOLD - 1:
                order = Order(symbol="BTC", quantity=-1.0 if market.entry else 1.0, reason=f"bench {number}")
                market.entry = 0.0 if market.entry else market.price
                after = market.snapshot(clock.now())
            opened = memory.open_tick(deployment=DEPLOYMENT, at=clock.now(), before=before, symbols=["BTC"])
            memory.close_tick(
                deployment=DEPLOYMENT,
                at=clock.now(),
                before=before,
                after=after,
                proposal=order,
                verdict=Verdict(kind="noop" if order is None else "executed"),
                shown=list(opened.memory),
                recalled=list(opened.recalled),
                recalls=list(opened.recalls),
            )
        seconds = time.process_time() - started - verifying
        if checkpoint is not None:
            verified(memory, f"the last {ticks - last_hundredth:,} ticks", since=checkpoint)
            verified(memory, "everything")
        print(f"  resident at the end: {resident():.0f} MB")
        return seconds


def verified(memory: Memory, what: str, *, since: str | None = None) -> tuple[float, str | None]:
    """Verify, print the time, and return it with the checkpoint."""
    started = time.process_time()
    answer = memory.verify_audit(since=since)
    seconds = time.process_time() - started
    print(f"  verification of {what}: {seconds:.2f} s, {answer.rows:,} rows, intact: {answer.intact}")
    return seconds, answer.checkpoint


def sizes(path: Path) -> dict[str, int]:
    """Bytes of the rows of each table, from the lengths of their columns; indexes and pages are in the total only."""
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {}
        for name in names:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            lengths = " + ".join(f'coalesce(length(CAST("{column}" AS BLOB)), 0)' for column in columns)
            found[name] = int(connection.execute(f"SELECT coalesce(sum({lengths}), 0) FROM {name}").fetchone()[0])
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=10_000)
    ticks = parser.parse_args().ticks
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        seconds = run(path, ticks)
        total = path.stat().st_size
        print(f"{ticks:,} ticks: {total / ticks:,.0f} bytes a tick, {1e3 * seconds / ticks:.1f} ms of processor time")
        print(f"a year of one-minute ticks: {total / ticks * YEAR / 1e9:.2f} GB")
        for name, size in sizes(path).items():
            if size / ticks >= 1:
                print(f"  {name:28} {size / ticks:8,.0f} bytes a tick")


if __name__ == "__main__":
    main()
