"""Programs end on SIGTERM as on Ctrl-C, and on an output that is closed or full, without a traceback."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backsight.memory import open_memory
from backsight.testing import a_trade_call
from support import started

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
PROGRAM = [sys.executable, "-m", "backsight"]


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/store.db"
    with open_memory(url) as memory:
        memory.remember_trade(**a_trade_call())
    return url


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_mcp_over_standard_input_ends_while_its_client_is_connected(
    store: str, number: signal.Signals, code: int
) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with started([*PROGRAM, "--url", store, "mcp"], **pipes, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(json.dumps(HELLO) + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "backsight"
        server.send_signal(number)
        assert server.wait(timeout=60) == code
        assert server.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "number", "code"),
    [
        (["serve"], signal.SIGINT, 130),
        (["serve"], signal.SIGTERM, 0),
        (["mcp", "--http"], signal.SIGINT, 130),
        (["demo", "--days", "3"], signal.SIGINT, 0),
    ],
)
def test_a_server_ends_on_a_signal_from_when_it_prints_its_address(
    tmp_path: Path, store: str, words: list[str], number: signal.Signals, code: int
) -> None:
    command = ["bash", "-c", 'trap "" INT; exec "$@"', "bash", *PROGRAM, "--url", store, *words, "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with started(command, **pipes, env=environment, cwd=tmp_path, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        while "http://" not in server.stdout.readline():
            assert server.poll() is None
        server.send_signal(number)
        assert server.wait(timeout=60) == code
        assert "Traceback" not in server.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_watch_ends_on_a_signal(store: str, tmp_path: Path, number: signal.Signals) -> None:
    pytest.importorskip("watchfiles")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "TRADING_MANUAL.md").write_text("# Manual\n\nRisk 1%.\n")
    environment = {**os.environ, "BACKSIGHT_WORKSPACE": str(tmp_path / "documents"), "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [*PROGRAM, "--url", store, "watch"]
    with started(command, **pipes, env=environment, text=True) as watcher:
        assert watcher.stdout is not None
        assert watcher.stderr is not None
        assert watcher.stdout.readline().startswith("1 document, 1 chunk;")
        watcher.send_signal(number)
        assert watcher.wait(timeout=60) in (0, 130)
        assert "Traceback" not in watcher.stderr.read()


@pytest.mark.parametrize(
    ("redirection", "codes", "error"),
    [
        (">/dev/full", [1], "Unavailable: the answer cannot be written: No space left on device\n"),
        (">&-", [0], ""),
        ("| true", [0, 1], ""),
    ],
)
@pytest.mark.parametrize("words", ["trades list", "trades list --json", "--help"])
def test_an_output_that_cannot_be_written_is_no_traceback(
    store: str, words: str, redirection: str, codes: list[int], error: str
) -> None:
    script = f"set -o pipefail; '{sys.executable}' -m backsight --url '{store}' {words} {redirection}"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode in codes
    assert ran.stderr == error
