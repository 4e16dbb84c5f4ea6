"""Without the MCP SDK, REST is served alone, and both programs say how to install it."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from backsight.core.errors import Unavailable
from backsight.surfaces import extras
from backsight.surfaces.http_server import http_application
from backsight.testing import T0, FakeClock, open_memory

PROGRAM = """
import sys
sys.modules["mcp"] = sys.modules["mcp_types"] = None  # as if neither were installed
from backsight.surfaces.main import main
sys.argv = ["backsight", *sys.argv[1:]]
main()
"""


def run_without_mcp(folder: Path, *words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "BACKSIGHT_URL": f"sqlite:///{folder}/store.db", "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize("words", [("mcp",), ("mcp", "--http", "--port", "0")])
def test_mcp_says_how_to_install_its_package(tmp_path: Path, words: tuple[str, ...]) -> None:
    with run_without_mcp(tmp_path, *words) as process:
        printed, errors = process.communicate(timeout=60)
    message = "Unavailable: mcp: MCP needs a package that is not installed; pip install 'backsight[mcp]'\n"
    assert (process.returncode, printed, errors) == (1, "", message)
    assert not (tmp_path / "store.db").exists()


def test_serve_serves_rest_alone_and_says_so(tmp_path: Path) -> None:
    with run_without_mcp(tmp_path, "serve", "--port", "0") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        process.terminate()
        process.communicate(timeout=60)
    assert re.match(r"Pages http://127.0.0.1:\d+/sign-in\?token=\w+$", lines[0])
    assert re.match(r"REST  http://127.0.0.1:\d+/api/v1/docs$", lines[1])
    assert lines[2].startswith("MCP   not served: MCP needs a package that is not installed; pip install")


def an_older_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if an agent framework had installed the SDK that it needs."""
    monkeypatch.setattr(extras, "version", lambda _package: "1.30.0")


def no_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)


def test_an_older_sdk_is_named_and_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    an_older_sdk(monkeypatch)
    with pytest.raises(Unavailable, match=r"version 2 of the package mcp, and 1\.30\.0 is installed; .* of its own$"):
        extras.require_mcp()


@pytest.mark.parametrize("environment", [no_sdk, an_older_sdk])
def test_an_application_without_mcp_answers_rest(
    monkeypatch: pytest.MonkeyPatch, environment: Callable[[pytest.MonkeyPatch], None]
) -> None:
    environment(monkeypatch)
    with (
        open_memory("sqlite://", clock=FakeClock(T0)) as memory,
        TestClient(http_application(memory), base_url="http://127.0.0.1") as client,
    ):
        assert client.post("/api/v1/trades/list_trades", json={}).status_code == 200
        assert client.post("/mcp", json={}).status_code == 404
