"""Heartbeats fire when they are due, once, by one process; missed ones do not pile up; SIGTERM ends the loop."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event

import pytest

from backsight.core.errors import Conflict, Unavailable
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory, open_memory
from backsight.runtime.scheduler import Scheduler
from backsight.services.schedule_lease import release_lease, take_lease
from backsight.settings import Settings
from backsight.testing import FakeClock, a_trade_call
from backsight.testing.claude_stand_in import stand_in
from backsight.testing.runners import FakeRunner
from support import deployed


@pytest.fixture
def agent(url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Memory]:
    settings = Settings(url=url, owner="ana", claude_program=stand_in(tmp_path / "claude"))
    with open_memory(settings=settings, clock=clock) as memory:
        deployed(memory)
        memory.configure_deployment(
            deployment="VolBreakout@main", runner="claude", default_prompt="Look.", schedule="*/15 * * * *"
        )
        yield memory


def heartbeats(memory: Memory) -> int:
    return len(memory.list_runs(kind="heartbeat").runs)


def test_heartbeats_fire_when_they_are_due_and_missed_ones_do_not_pile_up(agent: Memory, clock: FakeClock) -> None:
    lines: list[str] = []
    scheduler = Scheduler(agent, "one", lines.append)
    scheduler.fire(clock.now())
    assert heartbeats(agent) == 0
    clock.advance(minutes=15)
    scheduler.fire(clock.now())
    scheduler.fire(clock.now())
    assert heartbeats(agent) == 1
    agent.in_progress.wait(agent.list_runs().runs[0].id, 30)
    clock.advance(hours=5)
    scheduler.fire(clock.now())
    scheduler.fire(clock.now())
    assert heartbeats(agent) == 2
    assert lines[0].startswith("heartbeat of VolBreakout@main: run ")


def test_a_heartbeat_of_an_agent_that_is_running_is_skipped(agent: Memory, clock: FakeClock) -> None:
    lines: list[str] = []
    scheduler = Scheduler(agent, "one", lines.append)
    scheduler.fire(clock.now())
    busy = agent.run_agent(deployment="VolBreakout@main", prompt="behave: pause").run
    clock.advance(minutes=15)
    scheduler.fire(clock.now())
    assert any(line.startswith("heartbeat skipped") for line in lines)
    agent.in_progress.wait(busy.id, 30)


class BrokenRunner(FakeRunner):
    """A runner with a bug."""

    def check(self) -> None:
        raise RuntimeError("a bug")


def test_an_agent_that_breaks_does_not_stop_the_scheduler(agent: Memory, clock: FakeClock) -> None:
    lines: list[str] = []
    scheduler = Scheduler(agent, "one", lines.append)
    scheduler.fire(clock.now())
    agent.runners = lambda _: BrokenRunner()
    clock.advance(minutes=15)
    scheduler.fire(clock.now())
    assert "heartbeat failed; the log has the traceback" in lines


def test_a_store_that_cannot_be_used_for_a_while_is_waited_for(agent: Memory) -> None:
    lines: list[str] = []
    stop = Event()

    class Interrupted(Scheduler):
        def fire(self, now: datetime) -> None:
            if lines:
                stop.set()
                return
            raise Unavailable("the server restarts")

    Interrupted(agent, "one", lines.append).run(stop, pause_seconds=0.001)
    assert lines == ["waiting for the store: the server restarts"]


def test_one_process_fires_the_heartbeats_of_a_store(agent: Memory, clock: FakeClock) -> None:
    take_lease(agent, "one", now=clock.now())
    with pytest.raises(Conflict, match="'one' fires the heartbeats"):
        Scheduler(agent, "two", print).run(Event())
    take_lease(agent, "one", now=clock.now())
    clock.advance(minutes=2)
    take_lease(agent, "two", now=clock.now())
    release_lease(agent, "one")
    with pytest.raises(Conflict):
        take_lease(agent, "one", now=clock.now() + timedelta(seconds=1))
    release_lease(agent, "two")
    take_lease(agent, "one", now=clock.now())


def test_every_cadence_reflects_between_ticks_when_it_is_due(memory: Memory, clock: FakeClock) -> None:
    cadences = {
        "off": MemoryOverrides(cadence="off"),
        "two": MemoryOverrides(cadence="per_n_trades", every_n_trades=2),
        "daily": MemoryOverrides(cadence="daily"),
    }
    for name, overrides in cadences.items():
        memory.open_account(venue="binance", name=name, mode="paper")
        memory.save_strategy(name=f"On {name}")
        memory.deploy(strategy_name=f"On {name}", account=name, memory=overrides)
    lines: list[str] = []
    scheduler = Scheduler(memory, "one", lines.append)
    scheduler.fire(clock.now())

    def reflected(trades: int) -> set[str]:
        """The accounts whose deployment reflects after so many more trades of each, an hour later."""
        for name in cadences:
            for number in range(trades):
                clock.advance(seconds=1)
                call = a_trade_call(strategy_name=f"On {name}", deployment=f"On {name}@{name}", symbol=f"X{number}")
                memory.remember_trade(**call)
        lines.clear()
        clock.advance(hours=1)
        scheduler.fire(clock.now())
        return {line.split("@")[1].split(":")[0] for line in lines if line.startswith("reflection of ")}

    assert reflected(0) == set()
    assert reflected(1) == {"daily"}
    assert reflected(1) == {"two"}
    assert reflected(0) == set()
    assert reflected(2) == {"two"}
    clock.advance(days=1)
    assert reflected(0) == {"daily"}


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_the_program_ends_cleanly_on_a_signal(tmp_path: Path, signum: signal.Signals) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with open_memory(url) as memory:
        deployed(memory)
    environment = {**os.environ, "BACKSIGHT_URL": url}
    command = [sys.executable, "-m", "backsight", "schedule"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "Firing" in process.stderr.readline()
    time.sleep(0.5)
    process.send_signal(signum)
    assert process.wait(30) == 0
    process.stderr.close()
    with open_memory(url) as memory:
        take_lease(memory, "another", now=memory.clock.now())
