"""Every shell block of the README and the guides runs, in the order in which a reader meets it, in one folder."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import pytest

from backsight.surfaces.import_file import file_command
from backsight.surfaces.main import program
from support import run_here

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
GUIDES = sorted((ROOT / "docs" / "guides").rglob("*.md"))
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ERROR = re.compile(r"(Invalid|NotFound|Conflict|Refused|Unavailable): ")
EXPORT = re.compile(r"export((?: \w+=\S+)+)")
SIMPLE = re.compile(r"backsight [^|<>$;&()\n]*")
ENDLESS = re.compile(r" (watch|serve|mcp|schedule)\b")
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
make() {{
  case "$1" in
    demo) backsight demo --no-serve --days 14 ;;
    *) command make --dry-run --directory '{ROOT}' "$@" > make.txt ;;
  esac
}}
python() {{
  mkdir -p "$3/bin"
  printf '#!/bin/sh\ntest -f "$1"\n' > "$3/bin/python"
  printf '#!/bin/sh\n' > "$3/bin/pip"
  chmod +x "$3/bin/python" "$3/bin/pip"
}}
"""
"""What stands for programs that take long. One that runs until it is stopped is ended as soon as it prints something;
`mcp` ends with its empty input. The demo is shorter, other targets of make must exist, and environments are not filled:
`tests/examples/test_agents.py` and `tests/test_packaging.py` do what these do."""


def pages_in_order() -> list[Path]:
    """The README, the guides in the order in which it links to them, then those that other guides link to."""
    links = re.findall(r"\]\((docs/guides/[^)#]+\.md)\)", README.read_text().partition("## Where to go next")[2])
    linked = [ROOT / link for link in links]
    return [README, *linked, *(page for page in GUIDES if page not in linked)]


def blocks(page: Path) -> Iterator[str]:
    """The commands of each shell block of a page; a command that is shown with its error may fail."""
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "sh":
            yield text
            continue
        lines = text.splitlines()
        yield "".join(
            line.removeprefix("$ ") + (" || true" if ERROR.match(following) else "") + "\n"
            for line, following in zip(lines, [*lines[1:], ""], strict=True)
            if line.startswith("$ ")
        )


class Shell:
    """A shell of a reader: a folder, a home, and the variables that were exported in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {"HOME": str(folder / "home"), "COLUMNS": "80"}

    def run(self, block: str) -> str:
        """What a block prints; a command that fails fails the test."""
        if "$" in block or "\\\n" in block:  # its lines belong together
            printed = self._run_in_bash(block)
            for line in block.splitlines():
                self._export(line)
            return printed
        return "".join(self._run_line(line.partition("  #")[0].strip()) for line in block.splitlines())

    def _run_line(self, line: str) -> str:
        if self._export(line):
            return ""
        if SIMPLE.fullmatch(line) and not ENDLESS.search(line):
            return self._run_here(line)
        return self._run_in_bash(line)

    def _export(self, line: str) -> bool:
        """Whether a line exports variables, which are then set."""
        match = EXPORT.fullmatch(line)
        if match:
            self.variables |= dict(word.split("=", 1) for word in match[1].split())
        return match is not None

    def _run_here(self, line: str) -> str:
        """Run a command in this process, because a new one takes over a second to start."""
        ran = run_here(*shlex.split(line)[1:], environment=self.variables)
        assert ran.returncode == 0, f"{line}\n{ran.stdout[-1000:]}\n{ran.stderr}"
        return ran.stdout

    def _run_in_bash(self, block: str) -> str:
        ran = subprocess.run(
            ["bash", "-c", PROGRAM + block],
            cwd=self.folder,
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert ran.returncode == 0, f"{block}\n{ran.stdout[-2000:]}\n{ran.stderr}"
        assert "Traceback" not in ran.stderr
        return ran.stdout


def test_a_reader_can_run_every_shell_block_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README in one shell, every guide in a new one: what one page exports is not there in the next."""
    (tmp_path / "home").mkdir()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    screens = {}
    for page in pages_in_order():
        shell = Shell(tmp_path)
        screens[page] = "".join(map(shell.run, blocks(page)))
    for text in ("sim: ", "TRADING_MANUAL.md:", "fills imported", "Answer   backsight "):
        assert text in screens[README], screens[README]


def unknown_word(words: list[str]) -> str:
    """The first command or option of a command line that the program does not know; empty if it knows all."""
    command: click.Command = program
    for option_before, word in pairwise(["", *words]):
        if option_before in ("--url", "--owner"):
            continue
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


@pytest.mark.parametrize("page", [README, *GUIDES], ids=lambda page: page.stem)
def test_a_command_within_a_sentence_exists(page: Path) -> None:
    commands = re.findall(r"`backsight ([^`\n]*)`", page.read_text())
    assert [command for command in commands if unknown_word(shlex.split(command))] == []
