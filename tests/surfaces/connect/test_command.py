"""The command `backsight connect`, with a server that is really started."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backsight.memory import open_memory
from backsight.testing import a_trade_call


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder below a home of its own."""
    env = {**os.environ, "HOME": str(folder), "APPDATA": "", **environment}
    command = [sys.executable, "-m", "backsight", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A home with a store of one trade."""
    with open_memory(f"sqlite:///{tmp_path}/agent.db") as memory:
        memory.remember_trade(**a_trade_call())
    return tmp_path


def test_a_client_is_connected_a_second_time_and_disconnected(folder: Path) -> None:
    words = ("--url", "sqlite:///agent.db", "connect", "claude-code")
    first = run(folder, *words)
    assert first.returncode == 0, first.stderr
    for text in (
        " mcp\n",
        f"Store    sqlite:///{folder}/agent.db: Owner 'me'. live: 1 trade, 0 decisions.",
        "Answer   backsight 0.1.0 after ",
        "tools for a trader. “This is your memory as a trading agent.",
        f"Written  {folder}/.claude.json",
        f"Written  {folder}/.claude/skills/backsight/SKILL.md",
        "connect claude-code --undo",
    ):
        assert text in first.stdout, first.stdout
    entry = json.loads((folder / ".claude.json").read_text())["mcpServers"]["backsight"]
    assert entry["env"] == {"BACKSIGHT_URL": f"sqlite:///{folder}/agent.db"}
    assert "Already connected" in run(folder, *words).stdout
    undone = run(folder, *words, "--undo")
    assert undone.stdout.startswith("Taken out: ")
    assert sorted(path.name for path in folder.iterdir()) == ["agent.db"]


def test_a_dry_run_makes_neither_store_nor_file(tmp_path: Path) -> None:
    ran = run(tmp_path, "--url", "sqlite:///new.db", "connect", "codex", "--dry-run")
    assert f"+++ {tmp_path}/.codex/config.toml" in ran.stdout
    assert f'+env = {{ BACKSIGHT_URL = "sqlite:///{tmp_path}/new.db" }}' in ran.stdout
    assert ran.stdout.endswith("Nothing was written: this was a dry run, and the server was not started.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_cannot_start_is_told_in_its_own_words(folder: Path) -> None:
    ran = run(folder, "--url", "sqlite:///agent.db", "connect", "cursor", "--tools", "no_such_tool")
    assert ran.returncode == 1
    assert ran.stderr.startswith("Unavailable: server: the server does not start: ")
    assert "no_such_tool" in ran.stderr
    assert not (folder / ".cursor").exists()


def test_the_list_and_the_answer_are_json_too(folder: Path) -> None:
    answer = json.loads(run(folder, "--url", "sqlite:///agent.db", "connect", "vscode", "--json").stdout)
    assert answer["server"]["name"] == "backsight"
    assert "remember_trade" in answer["server"]["tools"]
    assert answer["written"] is True
    rows = {row["client"]: row["state"] for row in json.loads(run(folder, "connect", "--list", "--json").stdout)}
    assert rows["vscode"] == "connected as backsight"
    assert "connected as backsight" in run(folder, "connect").stdout


def test_a_mistyped_client_is_named() -> None:
    ran = run(Path.cwd(), "connect", "cursr")
    assert ran.returncode == 1
    assert "did you mean 'cursor'?" in ran.stderr
