"""Try the first hour of a new user: clone this checkout, `make demo`, then every shell block of the README and guides.

Usage: python tools/first_hour.py   # prints a table of commands with their times, and sizes; ends with 1 if one fails
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALLS = ("make ", "pip ", "python ", "docker ", "TESTS=", "source ")
ENDLESS = re.compile(r" (watch|serve|mcp)\b")
DEMO_SECONDS, COMMAND_SECONDS, SERVED_SECONDS = 900, 300, 5


def commands_of(page: Path) -> list[str]:
    """The commands of the shell blocks of a page, without those that install or build."""
    commands = []
    for kind, text in BLOCK.findall(page.read_text()):
        lines = [line for line in text.splitlines() if kind == "sh" or line.startswith("$ ")]
        commands += [line.removeprefix("$ ").partition("  #")[0].strip() for line in lines]
    return [command for command in commands if command and not command.startswith((*INSTALLS, "#"))]


def make_demo(clone: Path, environment: dict[str, str]) -> int:
    """Run `make demo` until it serves, then press Ctrl-C; its exit code."""
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
        lines = []
        for line in demo.stdout or ():
            lines.append(line)
            if "Stop with Ctrl-C" in line:
                break
        else:
            sys.stderr.writelines(lines[-20:])
            return 1
        os.killpg(demo.pid, signal.SIGINT)
        rest = demo.stdout.read() if demo.stdout else ""
        signal.alarm(0)
        demo.wait(timeout=60)
    return 0 if "Stopped. The demo is in" in rest else 1


def run(command: str, clone: Path, environment: dict[str, str], exports: list[str]) -> int:
    """Run one command of a page in the shell of that page; its exit code."""
    limit = f"timeout --preserve-status --signal=TERM {SERVED_SECONDS} " if ENDLESS.search(command) else ""
    script = "\n".join([*exports, limit + command])
    shell = ["bash", "-c", script]
    ran = subprocess.run(
        shell, cwd=clone, env=environment, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    expected = 1 if "--direction up" in command else 0  # the README shows what a mistake is answered with
    if ran.returncode != expected:
        sys.stderr.write(f"{command}\n{ran.stdout[-500:]}{ran.stderr}\n")
    return 0 if ran.returncode == expected else ran.returncode or 1


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="backsight-first-hour-"))
    clone, failures = folder / "backsight", 0
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BACKSIGHT_", "VIRTUAL_"))}
    environment |= {"PIP_CACHE_DIR": str(folder / "cache"), "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    environment["PATH"] = f"{clone / '.venv' / 'bin'}{os.pathsep}{environment['PATH']}"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=COMMAND_SECONDS)
    print_row("page", "command", "seconds", "")
    print_row("---", "---", "---:", "---")
    start = time.perf_counter()
    failures += report("README.md", "make demo", start, make_demo(clone, environment))
    for page in (clone / "README.md", *sorted((clone / "docs" / "guides").rglob("*.md"))):
        exports = []
        if page.name != "README.md":
            demo = "backsight-demo"
            exports = [f"export BACKSIGHT_URL=sqlite:///{demo}/store.db BACKSIGHT_WORKSPACE={demo}/workspace"]
        for command in commands_of(page):
            if "postgresql://" in command:
                continue  # it needs a server; tests/docs/test_shell_blocks.py runs it
            if command.startswith("export "):
                exports.append(command)
                continue
            start = time.perf_counter()
            failures += report(page.name, command, start, run(command, clone, environment, exports))
    for name in (".venv", "backsight-demo"):
        size = sum(
            file.stat().st_size for file in (clone / name).rglob("*") if file.is_file() and not file.is_symlink()
        )
        print_row("size", f"`{name}`", f"{size / 1e6:.0f} MB", "")
    shutil.rmtree(folder)
    return 1 if failures else 0


def report(page: str, command: str, start: float, code: int) -> int:
    """Print the row of a command; 1 if it failed."""
    escaped = command.replace("|", "\\|")
    print_row(page, f"`{escaped}`", f"{time.perf_counter() - start:.1f}", "ok" if code == 0 else f"exit {code}")
    return int(code != 0)


def print_row(*cells: str) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
