"""The time of a tick while the ledger grows, and the speed of backtests of the example strategies.

A tick is open_tick and close_tick on a SQLite file, with 0, 10,000 and 100,000 closed trades of the deployment stored
beside it (each with its fills, its former version, its episode and its two decisions). The stores take turns, so that
the ratio can be compared between machines. A tick that changes nothing is also measured with 10, 1,000 and 10,000
fills in the open position.
"""

import argparse
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine, event, insert

from backsight.core.decision import Verdict
from backsight.core.memory.episodic import episode_of_trade
from backsight.core.orders import BrokerSnapshot, Order, ReportedFill
from backsight.core.simulated_market import simulated_bars
from backsight.memory import Memory, PaperBroker, PaperTerms, open_memory, open_simulation
from backsight.runtime.backtest import record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.load import EXAMPLES, example, load_agent, memory_for
from backsight.store.decisions import DECISIONS
from backsight.store.mapping import REPLACED_KNOWN, REPLACED_RECORDED
from backsight.store.memories import EPISODES
from backsight.store.trades import FILLS, TRADES, fills_of_position
from backsight.store.view import everything
from backsight.testing import a_position, a_snapshot

START = datetime(2025, 1, 6, tzinfo=UTC)
DEPLOYMENT = "VolBreakout@bench"
HOLD = timedelta(minutes=30)
CHUNK = 2_000


class Bench:
    """A store with closed trades, and ticks in it that repeat: flat, enter, hold, exit."""

    def __init__(self, url: str, stored: int) -> None:
        self.clock = SimulatedClock(START)
        self.memory = open_memory(url, owner="bench", clock=self.clock)
        self.memory.open_account(venue="bench", name="bench", mode="sim")
        self.memory.save_strategy(name="VolBreakout")
        self.memory.deploy(strategy_name="VolBreakout", account="bench")
        self.number = 0
        for _ in range(4):
            self.tick()
        if stored:
            fill(self.memory, stored)
        self.clock.at = START + stored * HOLD + timedelta(days=1)

    def tick(self) -> tuple[float, float]:
        """Seconds of CPU that opening and closing the next tick take."""
        self.clock.advance(hours=1)
        at, step = self.clock.now(), self.number % 4
        self.number += 1
        flat, in_position = a_snapshot(at=at), a_snapshot(a_position(stop_price=95.0), at=at)
        before, after = {0: (flat, None), 1: (flat, in_position), 2: (in_position, None), 3: (in_position, flat)}[step]
        order = None if after is None else Order(symbol="BTC", quantity=1.0 if step == 1 else -1.0, reason="bench")
        return tick(self.memory, DEPLOYMENT, before=before, after=after, order=order)


def tick(
    memory: Memory,
    deployment: str,
    *,
    before: BrokerSnapshot,
    after: BrokerSnapshot | None,
    order: Order | None,
    citations: Sequence[str] = (),
) -> tuple[float, float]:
    """Open a tick in BTC and close it with what its recall showed; an order was executed. Seconds of CPU of both."""
    at, started = before.portfolio.at, time.process_time()
    opened = memory.open_tick(deployment=deployment, at=at, before=before, symbols=["BTC"])
    opened_at = time.process_time()
    memory.close_tick(
        deployment=deployment,
        at=at,
        before=before,
        after=after,
        proposal=order,
        verdict=Verdict(kind="noop" if order is None else "executed"),
        shown=list(opened.memory),
        recalled=list(opened.recalled),
        recalls=list(opened.recalls),
        citations=list(citations),
    )
    return opened_at - started, time.process_time() - opened_at


def fill(memory: Memory, count: int) -> None:
    """Fill the store with closed trades like the first, one after the other."""
    (trade,) = memory.list_trades(deployment=DEPLOYMENT).trades
    decisions = memory.list_decisions(deployment=DEPLOYMENT, kind="executed").decisions
    with memory.database.writing("bench") as connection:
        fills = fills_of_position(everything(connection, "bench"), trade.account_id, "BTC", since=None)
        for first in range(0, count, CHUNK):
            rows: dict[str, list[dict[str, object]]] = {"trades": [], "former": [], "fills": [], "decisions": []}
            episodes = []
            for number in range(first, min(count, first + CHUNK)):
                at = START + timedelta(hours=5) + number * HOLD
                own = replace(
                    trade, id=f"t{number}", opened_at=at, closed_at=at + HOLD, known_at=at + HOLD, recorded_at=at + HOLD
                )
                own = replace(own, first_fill_id=f"f{number}-0", pnl=(-1.0) ** number * 10.0)
                was = replace(own, status="open", closed_at=None, pnl=None, known_at=at, recorded_at=at)
                rows["trades"].append(TRADES.to_row(own))
                replaced = {REPLACED_KNOWN: at + HOLD, REPLACED_RECORDED: at + HOLD}
                rows["former"].append(TRADES.to_row(was) | replaced)
                episodes.append(EPISODES.to_row(episode_of_trade(own)))
                for step, fact in enumerate(fills):
                    moved = replace(fact, id=f"f{number}-{step}", at=at + step * HOLD, known_at=at, recorded_at=at)
                    rows["fills"].append(FILLS.to_row(moved))
                for step, decision in enumerate(decisions):
                    moment = at + step * HOLD
                    moved_to = replace(decision, id=f"d{number}-{step}", at=moment, known_at=moment, recorded_at=moment)
                    rows["decisions"].append(DECISIONS.to_row(replace(moved_to, sequence=step)))
            connection.execute(insert(TRADES.table), rows["trades"])
            connection.execute(insert(EPISODES.table), episodes)
            connection.execute(insert(FILLS.table), rows["fills"])
            connection.execute(insert(DECISIONS.table), rows["decisions"])
            assert TRADES.former is not None
            connection.execute(insert(TRADES.former.table), rows["former"])


def growth(ticks: int) -> Iterator[tuple[int, float]]:
    """Median milliseconds of a tick for each number of stored trades."""
    with tempfile.TemporaryDirectory() as folder:
        stores = {count: Bench(f"sqlite:///{Path(folder)}/{count}.db", count) for count in (0, 10_000, 100_000)}
        times: dict[int, list[float]] = {count: [] for count in stores}
        for _ in range(ticks):
            for count, bench in stores.items():
                started = time.perf_counter()
                bench.tick()
                times[count].append(time.perf_counter() - started)
        for bench in stores.values():
            bench.memory.close()
    for count, seconds in times.items():
        yield count, 1e3 * statistics.median(seconds)


KINDS = ("flat", "enter", "hold", "exit, with all that it teaches")


def by_kind(ticks: int) -> Iterator[tuple[str, float, float, float]]:
    """For each kind of tick: its statements, and the milliseconds of CPU that the tenth fastest in a hundred took.

    The milliseconds of opening it, and of all of it.
    """
    statements: list[str] = []
    counts: dict[str, list[int]] = {kind: [] for kind in KINDS}
    times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}

    def count(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(f"sqlite:///{folder}/kinds.db", 0)
        event.listen(Engine, "before_cursor_execute", count)
        try:
            for number in range(8 + 4 * ticks):  # the first two rounds read what later ones reuse
                statements.clear()
                opening, closing = bench.tick()
                if number >= 8:
                    times[KINDS[number % 4]].append((opening, opening + closing))
                    counts[KINDS[number % 4]].append(len(statements))
        finally:
            event.remove(Engine, "before_cursor_execute", count)
            bench.memory.close()
    for kind in KINDS:
        opening, whole = (sorted(column)[len(column) // 10] for column in zip(*times[kind], strict=True))
        yield kind, statistics.mean(counts[kind]), 1e3 * opening, 1e3 * whole


def many_fills(ticks: int) -> Iterator[tuple[int, float]]:
    """Median milliseconds of closing a tick that changes nothing, for each number of fills in the open position."""
    for count in (10, 1_000, 10_000):
        clock = SimulatedClock(START)
        with open_simulation(clock) as memory:
            memory.open_account(venue="bench", name="bench", mode="sim")
            memory.save_strategy(name="VolBreakout")
            memory.deploy(strategy_name="VolBreakout", account="bench")
            fills = [
                ReportedFill(id=f"{n}", at=START, sequence=n, kind="trade", symbol="BTC", quantity=1.0, price=100.0)
                for n in range(count)
            ]
            position, verdict, times = a_position(float(count)), Verdict(kind="noop"), []
            for number in range(2 + ticks):
                clock.advance(hours=1)
                before = a_snapshot(position, at=clock.now(), fills=[] if number else fills)
                started = time.perf_counter()
                memory.close_tick(deployment=DEPLOYMENT, at=clock.now(), before=before, verdict=verdict)
                times.append(time.perf_counter() - started)
        yield count, 1e3 * statistics.median(times[2:])  # the first two ticks of a trade read its fills


def speed(days: int) -> Iterator[tuple[str, int, float]]:
    """Name, ticks and CPU seconds of each example's backtest, after one that does what a process does once."""
    rng = random.Random(7)
    bars = {"BTC": simulated_bars(rng, symbol="BTC", start=START, days=days, price=98_000.0, daily_atr=3_100.0)}
    for number, file in enumerate((EXAMPLES[0], *EXAMPLES)):
        agent = load_agent(f"{example(file)}:{''.join(word.title() for word in Path(file).stem.split('_'))}")
        clock = SimulatedClock(START)
        with open_simulation(clock) as memory:
            record_history(memory, clock, bars)
            clock.at = START
            account = memory.open_account(venue="simulated", name="bench", mode="sim").account
            memory.save_strategy(name=agent.name)
            deployment = memory.deploy(strategy_name=agent.name, account="bench", memory=memory_for(agent)).deployment
            broker = PaperBroker(account.id, at=START, cash=10_000.0, terms=PaperTerms(fee_rate=0.0005))
            started = time.process_time()
            run = run_backtest(memory, clock, agent, broker, deployment=deployment.id, bars=bars)
            if number:
                yield agent.name, run.ticks, time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ticks", type=int, default=200)
    parser.add_argument("--days", type=int, default=30)
    options = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, {options.ticks} ticks each\n")
    print("| stored trades | a tick, median | times an empty store |\n|---|---|---|")
    base = 0.0
    for count, milliseconds in growth(options.ticks):
        base = base or milliseconds
        print(f"| {count:,} | {milliseconds:.2f} ms | {milliseconds / base:.2f} |")
    print("\nCPU of the tenth fastest in a hundred\n")
    print("| tick on an empty store | statements | open_tick | with close_tick |\n|---|---|---|---|")
    rows = list(by_kind(options.ticks // 4))
    for kind, statements, opening, whole in rows:
        print(f"| {kind} | {statements:.1f} | {opening:.2f} ms | {whole:.2f} ms |")
    means = [statistics.mean(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    print(f"| mean | {means[0]:.1f} | {means[1]:.2f} ms | {means[2]:.2f} ms |")
    print("\n| fills in the open position | a tick without news, median | times 10 fills |\n|---|---|---|")
    base = 0.0
    for count, milliseconds in many_fills(options.ticks):
        base = base or milliseconds
        print(f"| {count:,} | {milliseconds:.2f} ms | {milliseconds / base:.2f} |")
    print(f"\n| example, {options.days} days of 5-minute bars | ticks | CPU seconds | ticks a CPU second |")
    print("|---|---|---|---|")
    for name, ticks, seconds in speed(options.days):
        print(f"| {name} | {ticks} | {seconds:.1f} | {ticks / seconds:.0f} |")


if __name__ == "__main__":
    main()
