"""CPU time of the server and size of every page, fragment and step of the slider, at 100,000 trades.

The store is that of `bench.time_travel`, imported trades in a SQLite file, and after them a deployment that ticks every
quarter of an hour: each tick has its recall and the memory that was shown, a position is entered or left every twelfth,
one in five days is without memory, and 5-minute bars cover the ticks and as many days before them. A library has a
manual and a journal. `--folder` keeps the store for another run. Each address is asked once to warm up, then `--runs`
times; the table has the median of the CPU time of this process, in which the application runs without a network. The
instants of the slider are 1, 10, 50, 90 and 99% of the way through the trades, and 50% of the way through the ticks.
Pages that differ by deployment are measured for that of the ticks and for one of the imported trades.
Run it as `python -m bench.pages`.
"""

import argparse
import platform
import random
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from starlette.testclient import TestClient

from backsight.core.orders import BrokerSnapshot, Order
from backsight.core.simulated_market import simulated_bars
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory
from backsight.runtime.demo import write_workspace
from backsight.services.library import Library
from backsight.surfaces.http_server import HttpOptions, http_application
from backsight.testing import a_position, a_snapshot
from bench.tick import tick
from bench.time_travel import Store
from bench.write import STRATEGIES, closed_at

DEPLOYMENT, IMPORTED = f"{STRATEGIES[0]}@bench", f"deployment=manual:{STRATEGIES[0]}"
EVERY = timedelta(minutes=15)
HOLD = 12
"""Ticks in a position, and as many flat."""
HOLDOUT = 0.2
PAGES = (
    "/",
    f"/?{IMPORTED}",
    "/trades",
    "/trades?order=worst&since=2020-01-01",
    "/trades?deployment=*&mode=live&by=month",
    "/trades/TRADE",
    "/prompt",
    f"/prompt?{IMPORTED}",
    "/prompt?other=MIDDLE",
    "/recall?symbol=BTC&direction=long&regime=ranging",
    f"/recall?symbol=BTC&direction=long&regime=ranging&{IMPORTED}",
    "/decisions",
    "/decisions?kind=executed",
    "/decisions/DECISION",
    "/lessons",
    f"/lessons?{IMPORTED}",
    "/mind",
    f"/mind?{IMPORTED}",
    "/documents?q=daily+loss&path=TRADING_MANUAL.md",
    "/facts",
    "/status",
)
FRAGMENTS = (
    "/trades?fragment=table&result=lost",
    "/trades/TRADE?fragment=chart",
    "/recall?fragment=results&symbol=BTC&direction=long",
    "/status?fragment=verification",
    "/instants",
)
SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)


def measured(client: TestClient, path: str, runs: int) -> tuple[float, int]:
    """The median CPU time of a request in milliseconds, and the bytes of its answer."""
    answer = client.get(path)
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:300]}")
    times = []
    for _ in range(runs):
        start = time.process_time()
        answer = client.get(path)
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times), len(answer.content)


def addresses(store: Store, ticks: int, client: TestClient) -> Iterator[tuple[str, str]]:
    """What is measured: its kind and its address."""
    middle = f"{last_tick(store, ticks) - (ticks // 2) * EVERY:%Y-%m-%dT%H:%M:%SZ}"
    ids = {
        "MIDDLE": middle,
        "TRADE": first_id(client, f"/trades?deployment={DEPLOYMENT}", "trades"),
        "DECISION": first_id(client, f"/decisions?deployment={DEPLOYMENT}&kind=executed", "decisions"),
    }
    for kind, paths in (("page", PAGES), ("fragment", FRAGMENTS)):
        for path in paths:
            yield kind, re.sub("MIDDLE|TRADE|DECISION", lambda name: ids[name[0]], path)
    for path in ("/", "/trades", "/prompt", "/mind"):
        for share in SHARES:
            at = closed_at(int(share * store.count))
            yield f"slider, {share:.0%}", f"{path}?as_of={at:%Y-%m-%dT%H:%M:%SZ}"
    for path in ("/", "/trades", "/prompt", "/recall", "/decisions", "/lessons", "/mind", "/status"):
        yield "slider, ticks", f"{path}?as_of={middle}"


def first_id(client: TestClient, path: str, noun: str) -> str:
    """The first id of a list."""
    found = re.search(rf"/{noun}/([0-9a-f-]{{36}})", client.get(path).text)
    if found is None:
        raise RuntimeError(f"{path} lists nothing")
    return found.group(1)


def last_tick(store: Store, ticks: int) -> datetime:
    return first_tick(store) + ticks * EVERY


def first_tick(store: Store) -> datetime:
    """The midnight after the last imported trade."""
    return (closed_at(store.count) + timedelta(days=3)).replace(hour=0, minute=0)


def add_ticks(store: Store, ticks: int) -> None:
    """Add bars and a deployment that ticks after all imported trades, unless it is there."""
    memory = store.memory
    if any(each.deployment.name == DEPLOYMENT for each in memory.get_my_deployments().deployments):
        return
    start, days = first_tick(store), int(ticks * EVERY / timedelta(days=1)) + 1
    first = start - timedelta(days=days)
    rng = random.Random(7)
    bars = simulated_bars(rng, symbol="BTC", start=first, days=2 * days, price=100.0, daily_atr=3.0, rests=False)
    memory.open_account(venue="bench", name="bench", mode="live")
    memory.save_strategy(name=STRATEGIES[0], thesis="Breaks carry.", rules=["enter on a close"])
    memory.deploy(strategy_name=STRATEGIES[0], account="bench", memory=MemoryOverrides(holdout=HOLDOUT))
    closes = {bar.closes_at: bar.close for bar in bars}
    store.clock.at = last_tick(store, ticks)
    for place in range(0, len(bars), 1_000):
        memory.record_bars(bars=[bar for bar in bars[place : place + 1_000] if bar.closes_at <= store.clock.at])
    store.clock.at, price, entry = start, bars[0].open, None
    for number in range(ticks):
        store.clock.at += EVERY
        price = closes.get(store.clock.at, price)  # an outage has no bars
        entry = trade(memory, store.clock.at, price, number, entry)


def trade(memory: Memory, at: datetime, price: float, number: int, entry: float | None) -> float | None:
    """One tick of the deployment; the entry price of its position after it."""

    def snapshot(average: float | None) -> BrokerSnapshot:
        if average is None:
            return a_snapshot(at=at, marks={"BTC": price})
        position = a_position(stop_price=0.97 * average, mark=price, average_price=average)
        return a_snapshot(position, at=at, marks={"BTC": price})

    before, order, after = snapshot(entry), None, None
    if number % HOLD == HOLD - 1:
        reason = "closed above the range of the last four hours" if entry is None else "four hours are over"
        order = Order(symbol="BTC", quantity=1.0 if entry is None else -1.0, reason=reason)
        entry = price if entry is None else None
        after = snapshot(entry)
    citations = [] if order is None else ["TRADING_MANUAL.md:10"]
    tick(memory, DEPLOYMENT, before=before, after=after, order=order, citations=citations)
    return entry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=100_000)
    parser.add_argument("--ticks", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        store = Store(folder, options.trades)
        add_ticks(store, options.ticks)
        store.clock.at = last_tick(store, options.ticks)
        write_workspace(folder / "library")
        store.memory.library = Library(folder=str(folder / "library"))
        store.memory.reindex()
        app = http_application(store.memory, HttpOptions(pages_token="bench"))
        client = TestClient(app, base_url="http://127.0.0.1:8765")
        client.get("/sign-in?token=bench")
        print(f"{options.trades:,} trades, {options.ticks:,} ticks; Python {platform.python_version()}")
        print("| what | address | CPU of the server | size |\n|---|---|---|---|")
        for kind, path in addresses(store, options.ticks, client):
            milliseconds, size = measured(client, path, options.runs)
            shown = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", path)
            print(f"| {kind} | `{shown}` | {milliseconds:.0f} ms | {size / 1000:.0f} kB |", flush=True)
        store.memory.close()


if __name__ == "__main__":
    main()
