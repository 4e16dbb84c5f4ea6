"""The demonstration trades with memory, keeps its store, prints what to try next, and its server answers."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from backsight.memory import open_memory
from backsight.runtime.demo import DEPLOYMENT
from backsight.surfaces.cli import program_name
from support import started

DEMO = [sys.executable, "-m", "backsight", "demo"]
SHORT = ["--days", "35", "--no-serve"]
END = "2025-02-10T00:00:00Z"
"""When the short demo ends: the real day may be one on which memory is withheld."""


def run_demo(folder: Path, *arguments: str) -> str:
    command = [*DEMO, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo was run; its screen is in `screen.txt`."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "screen.txt").write_text(run_demo(folder, *SHORT))
    return folder


def test_the_demo_prints_a_run_a_recall_a_prompt_and_the_audit(folder: Path) -> None:
    screen = (folder / "screen.txt").read_text()
    for text in (
        "equity   ▃",
        "155 ticks in",
        " USD (",
        "lessons  no reflection yet",
        "Q   Sim   Rec  Conf   Aff",
        "## What usually happens here",
        "tokens are memory",
        "Intact: ",
    ):
        assert text in screen, screen
    assert len(screen.splitlines()) < 60


def test_the_demo_trades_with_memory_and_a_holdout_under_the_default_owner(folder: Path) -> None:
    with open_memory(f"sqlite:///{folder}/backsight-demo/store.db") as memory:
        (deployed,) = memory.get_my_deployments().deployments
        settings = deployed.deployment.memory
        assert (settings.enabled, settings.holdout, settings.every_n_trades) == (True, 0.2, 10)
        decisions = memory.list_decisions(deployment=DEPLOYMENT, limit=100).decisions
        assert {each.memory_arm for each in decisions} == {"shown", "withheld"}
        last_shown = next(each.id for each in decisions if each.memory_arm == "shown")
        assert memory.list_recalls(decision_id=last_shown).recalls
        assert memory.verify_audit().intact


def test_the_commands_of_the_demo_work_as_printed(folder: Path) -> None:
    listed = (folder / "screen.txt").read_text().partition("Try next:\n")[2].partition("\n\n")[0]
    commands = re.findall(r"^  (\S(?:\\\n|[^\n])*)$", listed, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        ran = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, ""), command
        assert len(ran.stdout.splitlines()) > 3, command
        assert not ran.stdout.startswith("No "), command


def test_a_demo_that_exists_is_shown_as_it_is(folder: Path) -> None:
    store = folder / "backsight-demo" / "store.db"
    content = store.read_bytes()
    screen = run_demo(folder, *SHORT, "--seed", "8")
    assert screen.startswith("backsight-demo has a demo already, shown as it is.")
    assert "rm -r backsight-demo" in screen
    assert store.read_bytes() == content
    described = json.loads(run_demo(folder, *SHORT, "--json"))
    assert (described["existed"], described["backtest"], described["deployment"]) == (True, None, DEPLOYMENT)


def test_the_same_seed_makes_the_same_store(tmp_path: Path) -> None:
    heads = []
    for name in ("one", "two"):
        arguments = ("--days", "10", "--no-serve", "--seed", "3", "--folder", name, "--json")
        described = json.loads(run_demo(tmp_path, *arguments))
        assert (described["existed"], described["backtest"]["ticks"]) == (False, 49)
        with open_memory(f"sqlite:///{tmp_path}/{name}/store.db") as memory:
            heads.append(memory.export_audit().head)
    assert heads[0] == heads[1]


@pytest.mark.slow
def test_a_year_fits_into_a_hundred_megabytes_and_reports_its_time_and_size(tmp_path: Path) -> None:
    screen = run_demo(tmp_path, "--no-serve")
    assert re.search(r"1,6\d\d ticks in \d+\.\d s \(\d+ a second\), store \d+ MB, peak memory \d+ MB", screen)
    assert (tmp_path / "backsight-demo" / "store.db").stat().st_size < 100e6


def test_the_demo_server_answers_and_stops_with_one_line(folder: Path) -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    command = [*DEMO, "--port", "0"]
    with started(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        output = ""
        while "Stop with Ctrl-C" not in output:
            line = process.stdout.readline()
            assert line, output
            output += line
        address = re.search(r"REST\s+(http://127\.0\.0\.1:\d+)", output)
        assert address is not None
        with httpx.Client(base_url=address[1], timeout=30) as client:
            answer = client.post("/api/v1/recall/recall_memories", json={"symbol": "XAUUSD", "as_of": END}).json()
            assert answer["memories"]
            assert client.get("/api/v1/docs").status_code == 200
            pages = re.search(r"/sign-in\?token=\S+", output)
            assert pages is not None
            overview = client.get(pages[0], follow_redirects=True).text
            assert "VolBreakout@demo" in overview
            assert "Sign out" in overview
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=20)
        assert (process.returncode, rest.strip(), errors) == (0, "Stopped. The demo is in backsight-demo.", "")


def test_a_program_that_the_shell_does_not_find_is_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "backsight"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    assert program_name(str(program)) == "bin/backsight"
    monkeypatch.setenv("PATH", str(program.parent))
    assert program_name(str(program)) == "backsight"
