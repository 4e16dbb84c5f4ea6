"""After a kill or concurrent writes, acknowledged rows exist, and other rows are written wholly or not at all."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from backsight.memory import open_memory

WRITER = """
import sys
from backsight import open_memory
from backsight.testing import a_trade_call

url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open_memory(url, owner="ana") as memory:
    for number in range(count):
        key = f"{name}-{number}"
        memory.remember_trade(**a_trade_call(idempotency_key=key, strategy_name=f"S{number % 3}", tags=[key]))
        print(key, flush=True)
"""


MIXED_WRITER = """
import sys
from datetime import timedelta
from backsight import open_memory
from backsight.core.decision import Verdict
from backsight.testing import a_snapshot, a_trade_call

url, name, count, others = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
with open_memory(url, owner="ana") as memory:
    for number in range(count):
        at, equity = memory.now, 10_000.0 - 100.0 * number
        neighbour = others[number % len(others)]
        memory.record_equity(account=neighbour, equity=9_000.0 + number)
        memory.close_tick(
            deployment=f"S@{name}", at=at, before=a_snapshot(at=at, equity=equity), verdict=Verdict(kind="noop")
        )
        memory.remember_trade(**a_trade_call(mode="paper", strategy_name=name, idempotency_key=f"{name}-{number}"))
        memory.get_agent_state(deployment=f"S@{neighbour}")
"""


@contextmanager
def writer(url: str, name: str, count: int) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    command = [sys.executable, "-c", WRITER, url, name, str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout


def stored_keys(url: str) -> list[str]:
    """The key of every trade in the store, after checking each against its episode and the chain."""
    with open_memory(url, owner="ana") as memory:
        assert memory.verify_audit().intact
        keys: list[str] = []
        cursor: str | None = None
        while True:
            page = memory.list_trades(limit=100, cursor=cursor)
            keys += [trade.tags[0] for trade in page.trades]
            for trade in page.trades:
                episode = memory.get_trade(trade_id=trade.id).episode
                assert episode is not None
                assert (episode.pnl, episode.tags) == (trade.pnl, trade.tags)
            cursor = page.next_cursor
            if cursor is None:
                return keys


@pytest.mark.slow
def test_killed_at_any_moment_nothing_acknowledged_is_lost(url: str) -> None:
    open_memory(url).close()
    rng = random.Random(20261115)
    acknowledged: list[str] = []
    for turn in range(200):
        with writer(url, f"turn{turn}", 1000) as (process, output):
            acknowledged.append(output.readline().strip())
            time.sleep(rng.uniform(0, 0.05))
            os.kill(process.pid, signal.SIGKILL)
            acknowledged += [line.strip() for line in output if line.endswith("\n")]
    keys = stored_keys(url)
    assert len(keys) == len(set(keys))
    assert set(acknowledged) <= set(keys)
    assert len(keys) - len(acknowledged) <= 200  # written, killed before it could say so
    with writer(url, "turn7", 5) as (process, output):  # again, harmlessly
        assert output.read().split()[:1] == ["turn7-0"]
    assert len(stored_keys(url)) - len(keys) <= 4


@pytest.mark.slow
def test_sixteen_processes_lose_nothing_and_write_nothing_twice(url: str) -> None:
    command = [sys.executable, "-c", WRITER, url]
    running = [subprocess.Popen([*command, f"p{number}", "25"], stdout=subprocess.DEVNULL) for number in range(16)]
    assert [process.wait() for process in running] == [0] * 16
    keys = stored_keys(url)
    assert sorted(keys) == sorted(f"p{process}-{number}" for process in range(16) for number in range(25))


@pytest.mark.slow
def test_sixteen_processes_that_write_ticks_equity_and_trades_leave_an_intact_store(url: str) -> None:
    names = [f"p{number}" for number in range(16)]
    with open_memory(url, owner="ana") as memory:
        memory.save_strategy(name="S")
        for name in names:
            memory.open_account(venue="x", name=name, currency="EUR", mode="paper")
            memory.deploy(strategy_name="S", account=name)
    command = [sys.executable, "-c", MIXED_WRITER, url]
    running = [subprocess.Popen([*command, name, "6", ",".join(names)]) for name in names]
    assert [process.wait() for process in running] == [0] * 16
    with open_memory(url, owner="ana") as memory:
        assert memory.verify_audit().findings == ()
        assert len(memory.list_trades(limit=100, mode="paper").trades) == 16 * 6
        for name in names:
            assert len(memory.list_decisions(deployment=f"S@{name}").decisions) == 6
