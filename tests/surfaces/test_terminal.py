"""Terminals of any encoding, and systems without the modules that only POSIX has."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from backsight.memory import open_memory
from backsight.surfaces.terminal import AsciiOutput, plain_sign, prepare_output, tolerant
from backsight.testing import a_trade_call

COMMANDS = """
--help
status
trades list
trades list --detail full --limit 2
trades list --json
recall XAUUSD
recall XAUUSD --direction LONG
state
state get-behavioral-analysis
performance break-down symbol
lessons active
beliefs list
plans list
deployments
ticks list
doctor
admin verify-audit
recall --help
nonsense
trades list --limit many
trades get 0123
import missing.csv
"""
"""The commands of a first hour, and some that are refused."""

LOOP = """
import sys
from backsight.surfaces.main import main
for line in sys.stdin.read().strip().splitlines():
    sys.argv = ["backsight", *line.split()]
    try:
        main()
    except SystemExit:
        pass
"""
"""Runs many commands in one process, as main does."""

POSIX_ONLY = ("resource", "fcntl", "termios", "grp", "pwd", "pty", "tty", "readline", "curses", "syslog")
BLOCK = f"""
import sys

class Blocked:
    "Refuses the modules that Windows does not have; installed packages, which ask for the platform, may import them."

    def find_spec(self, name, path=None, target=None):
        if name not in {POSIX_ONLY!r}:
            return None
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if "site-packages" not in frame.f_code.co_filename:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
for name in {POSIX_ONLY!r}:
    sys.modules.pop(name, None)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short demonstration."""
    folder = tmp_path_factory.mktemp("terminal")
    run(folder, "demo", "--days", "40", "--no-serve")
    return folder


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The store of a trade whose words only UTF-8 can show."""
    store = f"sqlite:///{tmp_path_factory.mktemp('words')}/store.db"
    with open_memory(store) as memory:
        memory.remember_trade(**a_trade_call(reflection="Überkauft — π ≈ 3 → 雪 “quoted” −5"))
    return store


def store_of(folder: Path) -> str:
    return f"sqlite:///{folder}/backsight-demo/store.db"


def run(folder: Path, *words: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return program(folder, ["-m", "backsight", *words], given, environment)


def program(
    folder: Path, words: list[str], given: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("BACKSIGHT_")} | environment
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder, env=env, input=given.encode(), capture_output=True, timeout=300, check=False
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_every_command_writes_what_the_encoding_can_show(demo: Path, encoding: str) -> None:
    environment = {"PYTHONIOENCODING": encoding, "BACKSIGHT_URL": store_of(demo), "FORCE_COLOR": "1"}
    ran = program(demo, ["-c", LOOP], COMMANDS, environment)
    assert b"Traceback" not in ran.stderr + ran.stdout, ran.stderr.decode("latin-1")[-2_000:]
    assert ran.returncode == 0
    text = ran.stdout.decode(encoding)
    assert "XAUUSD" in text
    assert ("±" in text, "+/-" in text) == (encoding != "ascii", encoding == "ascii")
    assert "no command 'nonsense'" in ran.stderr.decode(encoding)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_progress_bars_and_the_demo_write_what_the_encoding_can_show(tmp_path: Path, encoding: str) -> None:
    environment = {"PYTHONIOENCODING": encoding, "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}
    ran = run(tmp_path, "demo", "--days", "10", "--no-serve", **environment)
    assert ran.returncode == 0, ran.stderr.decode("latin-1")[-2_000:]
    assert "Try next" in ran.stdout.decode(encoding)
    assert ran.stderr.decode(encoding)


def test_json_loses_nothing_whatever_the_encoding(words: str, tmp_path: Path) -> None:
    command = ("--url", words, "trades", "list", "--json")
    shown = [run(tmp_path, *command, PYTHONIOENCODING=encoding).stdout for encoding in ("ascii", "utf-8")]
    answers: list[Any] = [json.loads(text.decode("utf-8")) for text in shown]
    assert shown[0].isascii()
    assert not shown[1].isascii()
    assert answers[0]["trades"] == answers[1]["trades"]


def test_mcp_speaks_utf_8_whatever_the_encoding(words: str) -> None:
    async def talk() -> str:
        command = ["-m", "backsight", "--url", words, "mcp"]
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        async with Client(StdioServerParameters(command=sys.executable, args=command, env=environment)) as client:
            answer = await client.call_tool("list_trades", {"detail": "full"})
            return str(answer.structured_content)

    assert "雪" in anyio.run(talk)


def test_a_first_hour_works_without_the_modules_that_only_posix_has(demo: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCK, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {"PYTHONPATH": path, "BACKSIGHT_URL": store_of(demo)}
    blocked = program(demo, ["-c", "import resource"], "", environment)
    assert b"No module named 'resource'" in blocked.stderr
    hour = ["samples files", f"--url sqlite:///{tmp_path}/new.db import files/fills.csv --mode paper"]
    bars = "--bars files/bars.csv --every 1440"
    strategy = Path(__file__).parents[2] / "examples" / "volatility_breakout.py"
    hour.append(f"backtest {strategy}:VolatilityBreakout {bars}")
    ran = program(demo, ["-c", LOOP], "\n".join([*hour, COMMANDS]), environment)
    assert b"Traceback" not in ran.stderr + ran.stdout, ran.stderr.decode()[-2_000:]
    assert b"opened" in ran.stdout
    assert b"speed" in ran.stdout
    assert b"peak memory" not in ran.stdout
    served = program(demo, ["-m", "backsight", "mcp"], "", environment)
    assert (served.returncode, served.stderr) == (0, b"")
    imports = "import backsight.surfaces.http_server, backsight.surfaces.rest, backsight.adapters.runners.claude"
    assert program(demo, ["-c", imports], "", environment).returncode == 0


def test_signs_read_like_what_they_replace() -> None:
    shown = "".join(plain_sign(sign) for sign in "−5 … 2× a·b “x” ‘y’ → ≤ ± é ñ 雪")
    assert shown == "-5 ... 2x a-b \"x\" 'y' -> <= +/- e n ?"


def test_a_stream_that_is_no_file_and_one_that_is_ready_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    assert tolerant(text) is text
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    prepare_output()
    stream = tolerant(io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert isinstance(stream, AsciiOutput)
    assert tolerant(stream) is stream
    stream.write("−")
    stream.flush()
    assert stream.buffer.getvalue() == b"-"  # type: ignore[attr-defined]
