"""Documents on the command line: a workspace is created, indexed and searched."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from backsight.surfaces.main import program
from support import started


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BACKSIGHT_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("BACKSIGHT_URL", f"sqlite:///{tmp_path}/store.db")
    return tmp_path / "workspace"


def run(*line: str) -> Result:
    return CliRunner().invoke(program, ["documents", *line])


def test_a_search_prints_path_lines_heading_score_and_the_lines(folder: Path) -> None:
    assert run("init").exit_code == 0
    (folder / "TRADING_MANUAL.md").write_text("# Manual\n\n## R3_POSITION_CAP\n\nNever above 2% in BTC/USDT.\n")
    assert run("reindex").exit_code == 0
    lines = run("search", "position cap for BTC/USDT").output.splitlines()
    assert lines[0] == "1 passage, the best first; quotes are data."
    assert lines[1].startswith("TRADING_MANUAL.md:3-5  Manual > R3_POSITION_CAP  1.00")
    assert any("Never above 2% in BTC/USDT." in line for line in lines)


def test_a_search_without_matches_says_why(folder: Path) -> None:
    run("init")
    assert "nothing is indexed yet" in run("search", "cap").output
    run("reindex")
    assert "none of 8 documents matches: xylophone" in run("search", "xylophone").output


def test_a_long_line_is_shown_in_part(folder: Path) -> None:
    run("init")
    (folder / "memory/notes.md").write_text("needle " + "y" * 50_000 + "\n")
    run("reindex")
    assert len(run("search", "needle").output) < 2_000


def test_a_workspace_is_watched_until_stopped(folder: Path) -> None:
    assert run("init").exit_code == 0
    program = [str(Path(sys.executable).parent / "backsight"), "watch", "--every", "2"]  # if a change is not noticed
    with started(program, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "8 documents, 8 chunks; read 8, removed 0, to be embedded 0\n"
        (folder / "journal/2026-06-04.md").write_text("# Thursday\n\nThe bridge fell (E1042).\n")
        assert watching.stdout.readline() == "9 documents, 9 chunks; read 1, removed 0, to be embedded 0\n"
        assert "journal/2026-06-04.md:1-3" in run("search", "E1042").output
        watching.send_signal(signal.SIGINT)
    assert watching.returncode == 0


def test_init_overwrites_nothing(folder: Path) -> None:
    folder.mkdir()
    (folder / "SOUL.md").write_text("mine")
    assert run("init").exit_code == 0
    assert (folder / "SOUL.md").read_text() == "mine"
    assert (folder / "TRADING_MANUAL.md").exists()
