"""Try the first hour of a new user: clone this checkout, install, `make demo`, then every command of README and guides.

Usage: python tools/first_hour.py                    # a table of commands with their times, and sizes
       python tools/first_hour.py --screens FOLDER   # also what the README's commands print on terminals of two sizes

It ends with 1 if a command fails. The clone, the cache of pip and the home folder are new. Seconds of the
processor are printed beside those of the clock, because they differ where other programs run.
"""

import argparse
import fcntl
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"^(TESTS=(\"[^\"]*\"|\S*) )?(make|pip|python|docker|source|\.venv-agents/\S+) ")
"""Commands that install or build. The tests run them; so does this program, first of all."""
ENDLESS = re.compile(r" (watch|serve|mcp)\b")
DEMO_SECONDS, PAGE_SECONDS, SERVED_SECONDS = 900, 600, 10
TIMES = "TIMEFORMAT='%R %U %S'"
SIZES = ((80, 24), (120, 40))
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BAR = "━"


class Outcome(NamedTuple):
    """A command with its exit code and its seconds, on the clock and of the processor."""

    command: str
    code: int
    seconds: float
    processor: float


def commands_of(page: Path) -> list[str]:
    """The commands of the shell blocks of a page, without those that install or build."""
    commands: list[str] = []
    for kind, text in BLOCK.findall(page.read_text()):
        lines = [line for line in text.splitlines() if kind == "sh" or line.startswith("$ ")]
        unfinished = ""
        for line in lines:
            unfinished += line.removeprefix("$ ") + "\n"
            if is_whole(unfinished):
                commands.append(unfinished.strip())
                unfinished = ""
    return [command for command in commands if not ELSEWHERE.match(command) and not command.startswith("#")]


def is_whole(text: str) -> bool:
    """Whether a shell would run a text, instead of waiting for another line."""
    if not text.strip() or text.rstrip().endswith("\\"):
        return False
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, timeout=60, check=False).returncode == 0


def install(clone: Path, environment: dict[str, str]) -> Outcome:
    """Make the environment that `make demo` makes first."""
    start, before = time.perf_counter(), processor_seconds()
    ran = subprocess.run(
        ["make", ".venv/.program"],
        cwd=clone,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS,
        check=False,
    )
    if ran.returncode != 0:
        sys.stderr.write(ran.stdout[-2000:] + ran.stderr)
    seconds, processor = time.perf_counter() - start, processor_seconds() - before
    return Outcome("make demo: installation", ran.returncode, seconds, processor)


def make_demo(clone: Path, environment: dict[str, str]) -> Outcome:
    """Run `make demo` until it serves, then press Ctrl-C, which must end it with one line."""
    start, before = time.perf_counter(), processor_seconds()
    with subprocess.Popen(
        ["make", "demo"],
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    ) as demo:
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(demo.pid, signal.SIGKILL))
        signal.alarm(DEMO_SECONDS)
        lines, seconds = [], 0.0
        for line in demo.stdout or ():
            lines.append(line)
            if "Stop with Ctrl-C" in line:
                seconds = time.perf_counter() - start
                time.sleep(1.0)  # as a reader would; the server starts meanwhile
                os.killpg(demo.pid, signal.SIGINT)
        signal.alarm(0)
        demo.wait(timeout=60)
    stopped = any("Stopped. The demo is in" in line for line in lines[-5:])
    if not stopped:
        sys.stderr.writelines(lines[-20:])
    return Outcome("make demo: until it serves", 0 if stopped else 1, seconds, processor_seconds() - before)


def run_page(commands: list[str], clone: Path, environment: dict[str, str]) -> list[Outcome]:
    """Run the commands of a page in one shell, in order; variables live on, a failure does not end the shell."""
    reports = clone.parent / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    script = [TIMES]
    for number, command in enumerate(commands):
        limit = f"timeout --preserve-status --signal=TERM {SERVED_SECONDS} " if ENDLESS.search(command) else ""
        text, times, code = (f"'{reports / name}.{number}'" for name in ("text", "times", "code"))
        script.append(f"{{ time {{\n{limit}{command}\n}} > {text} 2>&1 < /dev/null; }} 2> {times}; echo $? > {code}")
    try:
        subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=clone,
            env=environment,
            timeout=PAGE_SECONDS,
            check=True,
            capture_output=True,
        )
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"A page took more than {PAGE_SECONDS} s; its last commands have no report.\n")
    return [outcome_of(number, command, reports) for number, command in enumerate(commands)]


def outcome_of(number: int, command: str, reports: Path) -> Outcome:
    """The report of one command of a page; what a failed one printed goes to standard error."""
    code = reports / f"code.{number}"
    if not code.exists():
        return Outcome(command, 124, 0.0, 0.0)
    expected = 1 if "--direction up" in command else 0  # the README shows what a mistake is answered with
    failed = int(code.read_text()) != expected
    if failed:
        sys.stderr.write(f"{command}\n{(reports / f'text.{number}').read_text()[-1000:]}\n")
    real, user, system = map(float, (reports / f"times.{number}").read_text().split()[-3:])
    return Outcome(command, (int(code.read_text()) or 1) if failed else 0, real, user + system)


def screens_of(commands: list[str], clone: Path, environment: dict[str, str], *, columns: int, lines: int) -> str:
    """What commands print on a terminal, each after the line that a user types; progress bars as they end."""
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    script = "\n".join(f"cat <<'COMMAND'\n$ {command}\nCOMMAND\n{command}" for command in commands)
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=clone,
        env={**environment, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    ):
        os.close(terminal)
        printed = b""
        while part := _read_terminal(master):
            printed += part
    os.close(master)
    shown = [line for line in CONTROL.sub("", printed.decode()).replace("\r", "\n").splitlines() if line]
    labels = [line.partition(BAR)[0].strip() for line in shown]
    last = {label: number for number, label in enumerate(labels)}
    rows = (line for number, line in enumerate(shown) if BAR not in line or last[labels[number]] == number)
    return "\n".join(rows) + "\n"


def _read_terminal(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # every program that had the terminal has ended
        return b""


def processor_seconds() -> float:
    """Seconds of the processor that the programs started from here have used."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def size_of(folder: Path) -> float:
    """Megabytes of the files below a folder."""
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file() and not each.is_symlink()) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description="Try the first hour of a new user.")
    parser.add_argument("--screens", type=Path, metavar="FOLDER", help="Folder for what a terminal shows.")
    screens: Path | None = parser.parse_args().screens
    folder = Path(tempfile.mkdtemp(prefix="backsight-first-hour-"))
    clone, start = folder / "backsight", time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BACKSIGHT_", "VIRTUAL_"))}
    environment |= {"PIP_CACHE_DIR": str(folder / "cache"), "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    environment["PATH"] = f"{clone / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=300)
    print_row("page", "command", "seconds", "of the processor", "")
    print_row("---", "---", "---:", "---:", "---")
    failures = report("README.md", [install(clone, environment)])
    print_row("size", "`.venv`", f"{size_of(clone / '.venv'):.0f} MB", "", "")
    failures += report("README.md", [make_demo(clone, environment)])
    print_row("size", "`backsight-demo`", f"{size_of(clone / 'backsight-demo'):.0f} MB", "", "")
    for page in (clone / "README.md", *sorted((clone / "docs" / "guides").rglob("*.md"))):
        if commands := commands_of(page):
            failures += report(page.name, run_page(commands, clone, environment))
    if screens is not None:
        screens.mkdir(parents=True, exist_ok=True)
        for columns, lines in SIZES:
            for left in (clone / "samples", clone / "run.db", clone / "shell.db"):
                shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
            text = screens_of(commands_of(clone / "README.md"), clone, environment, columns=columns, lines=lines)
            (screens / f"readme-{columns}x{lines}.txt").write_text(text)
    print_row("all", f"{failures} failed", f"{time.perf_counter() - start:.0f}", f"{processor_seconds():.0f}", "")
    shutil.rmtree(folder)
    return 1 if failures else 0


def report(page: str, outcomes: list[Outcome]) -> int:
    """Print the rows of commands; how many failed."""
    for command, code, seconds, processor in outcomes:
        text = " ".join(command.partition("  #")[0].split()).replace("|", "\\|")
        print_row(page, f"`{text}`", f"{seconds:.1f}", f"{processor:.1f}", "ok" if code == 0 else f"exit {code}")
    return sum(outcome.code != 0 for outcome in outcomes)


def print_row(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
