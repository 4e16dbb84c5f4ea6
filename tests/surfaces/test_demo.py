"""The demonstration prints a recall, and its server answers."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from backsight.memory import open_memory

DEMO = [sys.executable, "-m", "backsight", "demo"]


SHORT = ["--days", "21"]


def test_the_demo_prints_one_screen_with_a_recall_and_its_factors(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*DEMO, *SHORT, "--no-serve", "--store", str(tmp_path / "demo.db")], capture_output=True, text=True, check=True
    )
    for text in ("equity   ▅", "(n=13)", "356 ticks in", "MB", "Q   Sim   Rec  Conf   Aff", "match the 360 links"):
        assert text in ran.stdout, ran.stdout
    assert len(ran.stdout.splitlines()) < 30
    with open_memory(f"sqlite:///{tmp_path}/demo.db", owner="demo") as memory:
        assert memory.get_my_deployments().deployments[0].tally.trades == 13
        assert memory.verify_audit().intact


def test_the_same_seed_makes_the_same_store(tmp_path: Path) -> None:
    heads = []
    for name in ("one", "two"):
        store = tmp_path / f"{name}.db"
        command = [*DEMO, "--days", "7", "--no-serve", "--seed", "3", "--store", str(store)]
        subprocess.run(command, capture_output=True, check=True)
        with open_memory(f"sqlite:///{store}", owner="demo") as memory:
            heads.append(memory.export_audit().head)
    assert heads[0] == heads[1]


@pytest.mark.slow
def test_a_year_fits_into_a_hundred_megabytes_and_reports_its_time_and_size(tmp_path: Path) -> None:
    store = tmp_path / "demo.db"
    ran = subprocess.run([*DEMO, "--no-serve", "--store", str(store)], capture_output=True, text=True, check=True)
    assert re.search(r"6,2\d\d ticks in \d+\.\d s \(\d+ a second\), store \d+ MB, peak memory \d+ MB", ran.stdout)
    assert store.stat().st_size < 100e6


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.db").write_text("mine")
    ran = subprocess.run([*DEMO, "--store", str(tmp_path / "mine.db")], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Conflict: store: ")
    assert (tmp_path / "mine.db").read_text() == "mine"


def test_the_demo_server_answers_and_stops_on_request() -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*DEMO, *SHORT, "--port", "0"], stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        output = ""
        while "Stop with Ctrl-C" not in output:
            line = process.stdout.readline()
            assert line, output
            output += line
        address = re.search(r"REST\s+(http://127\.0\.0\.1:\d+)", output)
        assert address is not None
        with httpx.Client(base_url=address[1], timeout=30) as client:
            answer = client.post("/api/v1/recall/recall_memories", json={"symbol": "XAUUSD", "mode": "sim"}).json()
            assert len(answer["memories"]) == 10
            assert client.get("/api/v1/docs").status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) in (0, 130, -signal.SIGINT)
