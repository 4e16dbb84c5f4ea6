"""Every shell block of the README and the guides runs in order, in the folder of a demo."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from backsight.surfaces.import_file import file_command
from backsight.surfaces.main import program
from support import fresh_postgres

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").rglob("*.md"))
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"^(TESTS=\S* )?(make|pip|python|docker|source) ", re.MULTILINE)
"""Commands that install or build; `tests/examples/test_agents.py` and `tests/test_packaging.py` run what they run."""
PROGRAM = f"""
set -e
backsight() {{
  case " $* " in
    *" watch "* | *" serve "*) end_when_ready "$@" ;;
    *) '{sys.executable}' -m backsight "$@" ;;
  esac
}}
end_when_ready() {{
  '{sys.executable}' -m backsight "$@" > ready.txt 2>&1 &
  while [ ! -s ready.txt ]; do sleep 0.1; done
  kill -TERM $!
  wait $!
}}
"""
"""A program that runs until it is stopped is ended as soon as it prints something; `mcp` ends with its empty input."""


def blocks(page: Path) -> list[str]:
    return [text for text in BLOCK.findall(page.read_text()) if not ELSEWHERE.search(text)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after `make demo`, which is shorter here, and after the shell blocks of the README."""
    folder = tmp_path_factory.mktemp("shell")
    command = [sys.executable, "-m", "backsight", "demo", "--no-serve", "--days", "14"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    (folder / "examples").symlink_to(ROOT / "examples")
    ran = run(folder, f"export BACKSIGHT_URL=sqlite:///own.db\n{''.join(blocks(ROOT / 'README.md'))}")
    (folder / "screen.txt").write_text(ran)
    return folder


def run(folder: Path, script: str) -> str:
    """What a script prints in a folder; a command that fails ends it."""
    ran = subprocess.run(
        ["bash", "-c", PROGRAM + script],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.returncode == 0, f"{ran.stdout[-2000:]}\n{ran.stderr}"
    assert "Traceback" not in ran.stderr
    return ran.stdout


def test_the_readme_runs_after_the_demo(demo: Path) -> None:
    screen = (demo / "screen.txt").read_text()
    for text in ("sim: ", "TRADING_MANUAL.md:", "fills imported"):
        assert text in screen, screen


@pytest.mark.parametrize("page", [page for page in GUIDES if blocks(page)], ids=lambda page: page.stem)
def test_a_guide_runs_after_the_readme(page: Path, demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(demo, folder, symlinks=True)
    script = "".join(blocks(page))
    if "postgresql://" in script:
        database = fresh_postgres().replace("postgresql+psycopg://", "postgresql://")
        script = re.sub(r"postgresql://\S+", f"'{database}'", script)
        script = script.replace("--role backsight", f"--role guide_{os.getpid()}")
    exports = "export BACKSIGHT_URL=sqlite:///backsight-demo/store.db BACKSIGHT_WORKSPACE=backsight-demo/workspace\n"
    assert run(folder, exports + script)


def unknown_word(words: list[str]) -> str:
    """The first command or option of a command line that the program does not know; empty if it knows all."""
    command: click.Command = program
    for word in words:
        if isinstance(command, click.Group) and not word.startswith("-"):
            found = command.get_command(click.Context(command), word)
            if found is None and command.name != "import":
                return word
            command = found or file_command()
        option = word.partition("=")[0]
        known = {"--help"}.union(*((*each.opts, *each.secondary_opts) for each in command.params))
        if word.startswith("--") and option not in known:
            return word
    return ""


@pytest.mark.parametrize("page", [ROOT / "README.md", *GUIDES], ids=lambda page: page.stem)
def test_a_command_within_a_sentence_exists(page: Path) -> None:
    commands = re.findall(r"`backsight ([^`\n]*)`", page.read_text())
    assert [command for command in commands if unknown_word(shlex.split(command))] == []
