"""Runs over the wire answer at once and are followed; MCP reports their progress; the shell waits and streams."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client

from backsight.adapters.clocks import SystemClock
from backsight.memory import Memory, open_memory
from backsight.settings import Settings
from backsight.surfaces.mcp import server
from backsight.testing.claude_stand_in import stand_in
from parity.surfaces import owner_token, served
from support import deployed, run_here

AGENT: dict[str, Any] = {"deployment": "VolBreakout@main"}
CARD: dict[str, Any] = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}


def an_agent(folder: Path) -> tuple[str, str]:
    """A store with an agent that the stand-in runs: its URL, and the stand-in."""
    url, program = f"sqlite:///{folder}/store.db", stand_in(folder / "claude")
    with open_memory(settings=Settings(url=url, owner="ana", claude_program=program)) as memory:
        deployed(memory)
        memory.configure_deployment(**AGENT, runner="claude", default_prompt="Look.")
    return url, program


def test_a_run_over_rest_answers_at_once_and_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, program = an_agent(tmp_path)
    monkeypatch.setenv("BACKSIGHT_CLAUDE_PROGRAM", program)
    clock = SystemClock()
    headers = {"Authorization": f"Bearer {owner_token(url, clock)}"}
    with served(url, clock) as address, httpx.Client(base_url=f"{address}/api/v1", headers=headers) as client:
        started = client.post("/agents/run_agent", json={**AGENT, "prompt": "behave: pause"}).json()
        assert started["run"]["status"] == "running"
        for _ in range(100):
            followed = client.post("/agents/get_run", json={"run": started["run"]["id"]}).json()
            if followed["run"]["status"] != "running":
                break
            time.sleep(0.1)
        assert followed["run"]["status"] == "succeeded"


def test_mcp_reports_the_progress_of_a_run(tmp_path: Path) -> None:
    url, program = an_agent(tmp_path)
    reports: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert message == "running"
        reports.append((progress, total))

    async def call(memory: Memory) -> Any:
        async with Client(server(memory, "owner")) as client:
            arguments = {**AGENT, "prompt": "behave: long pause", "wait_seconds": 30.0}
            return await client.call_tool("run_agent", arguments, progress_callback=on_progress)

    with open_memory(settings=Settings(url=url, owner="ana", claude_program=program)) as memory:
        result = anyio.run(call, memory)
    assert "Succeeded." in result.content[0].text
    assert reports
    assert reports[0] == (1.0, 30.0)


def test_the_shell_waits_for_a_run_and_chats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, program = an_agent(tmp_path)
    environment = {"BACKSIGHT_URL": url, "BACKSIGHT_OWNER": "ana", "BACKSIGHT_CLAUDE_PROGRAM": program}
    shown = run_here("agents", "run", "VolBreakout@main", "--prompt", "hello", environment=environment)
    assert (shown.returncode, shown.stdout.splitlines()[:2]) == (0, ["turn 1: hello", "Succeeded."])
    failed = run_here("agents", "run", "VolBreakout@main", "--prompt", "behave: error", environment=environment)
    assert failed.returncode == 3
    assert failed.stdout.startswith("Failed: the agent failed (exit 1): the credit balance is too low.\n")
    with open_memory(settings=Settings(url=url, owner="ana", claude_program=program)) as memory:
        memory.share_session(**AGENT)
        parent = memory.record_run(**AGENT, prompt="p", card_type="trade_decision", result=CARD).run
    monkeypatch.setattr("sys.stdin", StringIO("one\ntwo\n"))
    chat = run_here("agents", "chat", "VolBreakout@main", environment=environment)
    assert chat.stdout.splitlines() == ["turn 1: one", "turn 2: one / two"]
    examined = run_here("agents", "re-examine", parent.id[:8], environment=environment)
    assert "malformed" in examined.stdout
    refused = run_here("agents", "re-examine", "nothing", environment=environment)
    assert (refused.returncode, "no run" in refused.stderr) == (1, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_run_and_ends_its_program(tmp_path: Path, number: signal.Signals) -> None:
    url, program = an_agent(tmp_path)
    environment = {**os.environ, "BACKSIGHT_URL": url, "BACKSIGHT_OWNER": "ana", "BACKSIGHT_CLAUDE_PROGRAM": program}
    command = [sys.executable, "-m", "backsight", "agents", "run", "VolBreakout@main", "--prompt", "behave: slow"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        wait_for((tmp_path / "claude" / "calls.jsonl").exists)
        process.send_signal(number)
        assert process.wait(30) == 130
    with open_memory(url, owner="ana") as memory:
        (run,) = memory.list_runs().runs
    assert run.status == "cancelled"


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30.0
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)
