"""Kill a live loop and other writers again and again, then compare the ledger with what the broker executed.

    python tests/kill_rounds.py sqlite:////tmp/kills/store.db /tmp/kills/broker.jsonl --rounds 1000 --seed 7

Every round forks a process that trades live, records equity, remembers trades and recalls, and kills it at a random
moment with SIGKILL. The broker is a file that outlives the processes. At the end a last process runs undisturbed; then
every executed order must be in the ledger with the decision that placed it. Prints a line of JSON with the counts.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import select

from backsight.adapters.clocks import SystemClock
from backsight.core.decision import AgentDecision, AgentInput
from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot, Executed, FillMark, Order, OrderResult, ReportedFill, fills_after
from backsight.core.portfolio import Portfolio, Position
from backsight.core.trades.trade import TradeStatus
from backsight.memory import Memory, open_memory
from backsight.runtime.live import LiveLoop, LiveSettings
from backsight.store.trades import FILLS
from backsight.testing import a_trade_call

DEPLOYMENT = "S@live"
CASH = 100_000.0
SETTINGS = LiveSettings(deployment=DEPLOYMENT, symbols=[], every=timedelta(minutes=1), holder="loop")
NOTHING_LEFT = 1e-9


class FileBroker:
    """A broker whose executions are lines of a file: an order is executed once its line is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        self.fills = [self._fill(number, json.loads(line)) for number, line in enumerate(lines) if line.endswith(b"\n")]
        if lines and not lines[-1].endswith(b"\n"):  # killed within the line: the order was not executed
            path.write_bytes(b"".join(lines[:-1]))

    @staticmethod
    def _fill(number: int, line: dict[str, Any]) -> ReportedFill:
        at = datetime.fromisoformat(line["at"])
        order_id, quantity, price = f"order-{number}", line["quantity"], line["price"]
        return ReportedFill(
            id=f"fill-{number:06d}",
            at=at,
            sequence=number,
            kind="trade",
            symbol="BTC",
            quantity=quantity,
            price=price,
            order_id=order_id,
        )

    @property
    def mark(self) -> float:
        return 100.0 + len(self.fills) % 7

    def holding(self) -> tuple[float, float, float]:
        """The size, the average price and what was realised so far."""
        size = average = realized = 0.0
        for fill in self.fills:
            price = fill.price or 0.0
            if size * fill.quantity >= 0:
                average = (average * size + price * fill.quantity) / (size + fill.quantity)
                size += fill.quantity
                continue
            closing = min(abs(size), abs(fill.quantity))
            realized += closing * (price - average) * (1 if size > 0 else -1)
            size += fill.quantity
            average = price if closing < abs(fill.quantity) else average
        return size, average, realized

    def snapshot(self, *, since: FillMark | None = None) -> BrokerSnapshot:
        size, average, realized = self.holding()
        position = Position(
            position_key="BTC",
            symbol="BTC",
            direction="long" if size > 0 else "short",
            size=abs(size),
            mark=self.mark,
            average_price=average,
        )
        equity = CASH + realized + size * (self.mark - average)
        positions = (position,) if abs(size) > NOTHING_LEFT else ()
        portfolio = Portfolio(at=SystemClock().now(), equity=equity, cash=CASH + realized, positions=positions)
        fills = () if since is None else fills_after(self.fills, since)
        return BrokerSnapshot(portfolio=portfolio, fills=fills, marks={"BTC": self.mark})

    def submit(self, order: Order) -> OrderResult:
        line = {
            "at": SystemClock().now().isoformat(),
            "quantity": order.quantity,
            "price": self.mark,
            "reason": order.reason,
        }
        with self._path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fill = self._fill(len(self.fills), line)
        self.fills.append(fill)
        return Executed(order=replace(order, order_id=fill.order_id), position_key="BTC", fills=(fill,))


class RandomAgent:
    """Buys, sells, turns around, or waits."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self._rng = rng
        self._name = name
        self._number = 0

    def decide(self, agent_input: AgentInput) -> AgentDecision:
        self._number += 1
        sizes = {each.symbol: each.signed_size for each in agent_input.portfolio.positions}
        quantity = self._rng.choice([0.0, 1.0, -1.0, 2.0, -sizes.get("BTC", 1.0), -2 * sizes.get("BTC", 1.0)])
        if quantity == 0:
            return AgentDecision(reason="wait")
        return AgentDecision(order=Order(symbol="BTC", quantity=quantity, reason=f"{self._name}/{self._number}"))


class NoBars:
    def closed_bars(self, symbol: str, *, until: datetime) -> Sequence[Bar]:
        return ()


def work(url: str, broker_file: Path, seed: int, name: str, *, started: int, ticks: int | None = None) -> None:
    """Trade live, with other writes and reads in between, until killed or for a number of ticks."""
    rng = random.Random(seed)
    with open_memory(url, owner="ana") as memory:
        broker = FileBroker(broker_file)
        loop = LiveLoop(memory, broker, RandomAgent(rng, name), NoBars(), SETTINGS)
        number = 0
        os.write(started, b".")
        while ticks is None or number < ticks:
            number += 1
            loop.run(memory.now)
            other = rng.randrange(4)
            if other == 0:
                memory.record_equity(account="live", equity=broker.snapshot().portfolio.equity)
            elif other == 1:
                memory.remember_trade(**a_trade_call(idempotency_key=f"{name}/{number}", strategy_name="Other"))
            elif other == 2:
                memory.recall_memories(symbol="BTC", deployment=DEPLOYMENT)


def run_round(url: str, broker_file: Path, seed: int, name: str, seconds: float | None) -> int:
    """Fork a working process, and kill it some seconds after its start; None lets it finish. Returns its status."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(url, broker_file, seed, name, started=writing, ticks=3 if seconds is None else None)
            status = 0
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def prepare(url: str) -> None:
    """Open the account and the deployment."""
    with open_memory(url, owner="ana") as memory:
        memory.open_account(venue="file", name="live", currency="EUR", mode="paper")
        memory.save_strategy(name="S")
        memory.deploy(strategy_name="S", account="live")


def import_everything(folder: Path) -> None:
    """Do every kind of work once, so that forked processes need not import and compile what it uses."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        url = f"sqlite:///{scratch}/store.db"
        prepare(url)
        for seed in range(3):
            work(
                url, Path(scratch) / "broker.jsonl", seed, f"w{seed}", started=os.open(os.devnull, os.O_WRONLY), ticks=4
            )


def compare(url: str, broker_file: Path) -> dict[str, Any]:
    """What the broker executed and the ledger does not have, or has without its decision."""
    executed = {
        f"fill-{number:06d}": json.loads(line) for number, line in enumerate(broker_file.read_bytes().splitlines())
    }
    with open_memory(url, owner="ana") as memory:
        reasons = {each.id: [order.order.reason for order in each.proposals] for each in decisions(memory)}
        c = FILLS.table.c
        with memory.reading() as connection:
            rows = connection.execute(select(c.id, c.decision_id).where(c.owner_id == "ana", c.kind == "trade")).all()
        ledger = {row.id: row.decision_id for row in rows}
        unlinked = [
            fill_id
            for fill_id, line in executed.items()
            if fill_id in ledger and line["reason"] not in reasons.get(ledger[fill_id], [])
        ]
        realized = sum(trade.realized_pnl or 0.0 for trade in (*trades(memory, "closed"), *trades(memory, "open")))
        return {
            "executed": len(executed),
            "missing": sorted(executed.keys() - ledger.keys()),
            "without_their_decision": unlinked,
            "decisions": len(reasons),
            "realized_differs_by": round(realized - FileBroker(broker_file).holding()[2], 6) + 0.0,
            "intact": memory.verify_audit().intact,
            "healthy": memory.doctor().healthy,
        }


def decisions(memory: Memory) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = memory.list_decisions(deployment=DEPLOYMENT, limit=100, cursor=cursor)
        found += page.decisions
        cursor = page.next_cursor
        if cursor is None:
            return found


def trades(memory: Memory, status: TradeStatus) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = memory.list_trades(deployment=DEPLOYMENT, status=status, limit=100, cursor=cursor)
        found += page.trades
        cursor = page.next_cursor
        if cursor is None:
            return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("broker", type=Path)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--longest", type=float, default=3.0, help="seconds until the kill, at most")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    import_everything(arguments.broker.parent)
    prepare(arguments.url)
    for number in range(arguments.rounds):
        seconds = rng.uniform(0.0, arguments.longest)
        run_round(arguments.url, arguments.broker, rng.randrange(10**9), f"r{number}", seconds)
    last = run_round(arguments.url, arguments.broker, arguments.seed, "last", None)
    result = {"rounds": arguments.rounds, "last_status": last, **compare(arguments.url, arguments.broker)}
    print(json.dumps(result))  # noqa: T201


if __name__ == "__main__":
    main()
