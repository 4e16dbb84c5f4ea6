"""The overhead of each surface: the same operations on one store through Python, REST and MCP, taken in turn.

The server is a separate process, as in production, and both clients keep their connection.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal
from mcp import Client

from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.rest import path_of
from backsight.testing import a_trade_call

QUESTIONS: dict[str, dict[str, Any]] = {
    "list_trades": {},
    "recall_memories": {"symbol": "XAUUSD"},
    "position_size": {"symbol": "XAUUSD", "direction": "long", "strategy_name": "VolBreakout"},
}
Call = Callable[[str, dict[str, Any]], object]


def through_all(url: str, stack: ExitStack) -> dict[str, Call]:
    """The surfaces to measure."""
    memory = stack.enter_context(open_memory(url))
    program = [str(Path(sys.executable).with_name("backsight")), "--url", url, "serve", "--port", "0", "--no-log"]
    server = stack.enter_context(subprocess.Popen(program, stdout=subprocess.PIPE, text=True))
    stack.callback(server.terminate)
    assert server.stdout is not None
    base = server.stdout.readline().split()[1].partition("/sign-in")[0]
    web = stack.enter_context(httpx.Client(base_url=base, timeout=30))
    portal = stack.enter_context(start_blocking_portal())
    client = stack.enter_context(portal.wrap_async_context_manager(Client(f"{base}/mcp")))
    while True:
        try:
            web.get("/api/v1/docs")
            break
        except httpx.TransportError:
            time.sleep(0.05)
    return {
        "Python": lambda name, arguments: memory.run(OPERATIONS[name], arguments),
        "REST": lambda name, arguments: web.post(path_of(OPERATIONS[name]), json=arguments).raise_for_status(),
        "MCP": lambda name, arguments: portal.call(client.call_tool, name, arguments),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url = f"sqlite:///{folder}/store.db"
        with open_memory(url) as memory:
            for number in range(20):
                memory.remember_trade(**a_trade_call(idempotency_key=str(number)))
        surfaces = through_all(url, stack)
        print("| operation | " + " | ".join(surfaces) + " | times Python |\n" + "|---" * (len(surfaces) + 2) + "|")
        for name, arguments in QUESTIONS.items():
            timings: dict[str, list[float]] = {surface: [] for surface in surfaces}
            for _ in range(runs + 1):
                for surface, call in surfaces.items():
                    began = time.perf_counter()
                    call(name, arguments)
                    timings[surface].append((time.perf_counter() - began) * 1000)
            medians = {surface: statistics.median(each[1:]) for surface, each in timings.items()}
            ratios = ", ".join(
                f"{medians[surface] / medians['Python']:.1f}" for surface in surfaces if surface != "Python"
            )
            print(f"| {name} | {' | '.join(f'{ms:.1f} ms' for ms in medians.values())} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
