"""Claude Code, as npm has it, connects to the server that `backsight connect` enters."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backsight.memory import open_memory
from backsight.testing import a_trade_call

NPM = shutil.which("npm")
PACKAGE = "@anthropic-ai/claude-code"


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of Claude Code in a folder of its own."""
    if NPM is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    install = [NPM, "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE]
    installed = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if installed.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: {installed.stderr[-200:]}")
    script = folder / "node_modules" / PACKAGE / "install.cjs"
    if script.exists():  # npm may leave out the scripts of packages
        subprocess.run(["node", script], check=True, capture_output=True, timeout=120)
    return folder / "node_modules" / ".bin" / "claude"


def run(command: list[str | Path], home: Path) -> str:
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "DISABLE_AUTOUPDATER": "1"}
    env |= {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    ran = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, timeout=120, check=False)
    return ran.stdout + ran.stderr


@pytest.mark.slow
def test_claude_code_from_npm_connects_and_forgets(claude: Path, tmp_path: Path) -> None:
    with open_memory(f"sqlite:///{tmp_path}/agent.db") as memory:
        memory.remember_trade(**a_trade_call())
    backsight: list[str | Path] = [sys.executable, "-m", "backsight", "--url", "sqlite:///agent.db", "connect"]
    run([claude, "mcp", "add", "--scope", "user", "other", "--", "other-program"], tmp_path)
    connected = run([*backsight, "claude-code"], tmp_path)
    assert "live: 1 trade" in connected, connected
    listed = run([claude, "mcp", "list"], tmp_path)
    assert "backsight: " in listed
    assert next(line for line in listed.splitlines() if line.startswith("backsight: ")).endswith("✔ Connected")
    described = run([claude, "mcp", "get", "backsight"], tmp_path)
    assert "User config" in described
    assert f"BACKSIGHT_URL=sqlite:///{tmp_path}/agent.db" in described
    assert "Already connected" in run([*backsight, "claude-code"], tmp_path)
    assert "Taken out" in run([*backsight, "claude-code", "--undo"], tmp_path)
    after = run([claude, "mcp", "list"], tmp_path)
    assert "backsight" not in after
    assert "other: other-program" in after
