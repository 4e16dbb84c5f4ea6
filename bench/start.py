"""The start time of `backsight`: until the help is printed, and until the first MCP answer.

Each time is the median of several runs in fresh processes, beside that of an empty Python started in between,
so that the ratio can be compared between machines. It is processor time, since wall time depends on what else runs. The
store has a thousand trades. Bytecode is compiled beforehand, also where the environment says that none is written.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

PYTHON = sys.executable
BACKSIGHT = str(Path(PYTHON).with_name("backsight"))
PROTOCOL = "2025-11-25"


def seconds(work: Callable[[], None]) -> float:
    """The processor time of the processes that the work starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def a_file(path: Path) -> str:
    """The path of a new file with a thousand trades."""
    header = "symbol,direction,strategy_name,entry_price,exit_price,pnl,risk,closed_at"
    closes = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number) for number in range(1_000)]
    rows = [
        f"XAUUSD,long,bench,2650,{2650 + number % 7 - 3},{100 * (number % 7 - 3)},100,{closed_at.isoformat()}"
        for number, closed_at in enumerate(closes)
    ]
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def first_answer(url: str) -> None:
    """Start the server, shake hands, call a tool and read its answer."""
    client = {"name": "bench", "version": "1"}
    messages = [
        ("initialize", 1, {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client}),
        ("notifications/initialized", None, {}),
        ("tools/call", 2, {"name": "recall_memories", "arguments": {"symbol": "XAUUSD"}}),
    ]
    with subprocess.Popen([BACKSIGHT, "--url", url, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for method, number, params in messages:
            message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": number} if number else {})
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            if number:
                answer = json.loads(server.stdout.readline())
                assert "result" in answer, answer
        assert "XAUUSD" in json.dumps(answer["result"]["structuredContent"])
        server.kill()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        url = f"sqlite:///{folder}/store.db"
        run(BACKSIGHT, "--url", url, "import", "trades", a_file(Path(folder) / "trades.csv"))
        subjects: dict[str, Callable[[], None]] = {
            "an empty Python": lambda: run(PYTHON, "-c", "pass"),
            "import of the MCP SDK alone": lambda: run(PYTHON, "-c", "import mcp.server.lowlevel"),
            "backsight --help": lambda: run(BACKSIGHT, "--help"),
            "backsight trades list --json": lambda: run(BACKSIGHT, "--url", url, "trades", "list", "--json"),
            "import of backsight.memory": lambda: run(PYTHON, "-c", "import backsight.memory"),
            "import of SQLAlchemy alone": lambda: run(PYTHON, "-c", "import sqlalchemy"),
            "backsight mcp, first tool call answered": lambda: first_answer(url),
        }
        for work in subjects.values():
            work()
        timings: dict[str, list[float]] = {name: [] for name in subjects}
        for _ in range(runs):
            for name, work in subjects.items():
                timings[name].append(seconds(work))
    base = statistics.median(timings["an empty Python"])
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores, {runs} runs each\n")
    print("| what | median | fastest | slowest | times an empty Python |")
    print("|---|---|---|---|---|")
    for name, times in timings.items():
        middle = statistics.median(times)
        print(f"| {name} | {middle:.2f} s | {min(times):.2f} s | {max(times):.2f} s | {middle / base:.1f} |")


if __name__ == "__main__":
    main()
