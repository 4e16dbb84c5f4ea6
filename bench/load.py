"""A server under load: clients over REST and MCP that recall, ask and write at once; errors, latencies and memory.

`backsight serve` runs as a process of its own on a SQLite store, or on the PostgreSQL of `--url`. Half of the clients
speak REST and half MCP, each with the next call as soon as the last one is answered; ten clients share a key. One call
in five writes a trade. Memory is read after every round: it must not grow from the second round on. Then MCP sessions
are opened and dropped without a goodbye, and memory is read again: the server ends them after ten minutes
(`tests/surfaces/test_sessions.py` waits for that, with a shorter limit).
"""

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from backsight.adapters.clocks import SystemClock
from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.rest import path_of
from bench.write import PRICES, STRATEGIES, a_file, a_trade

CLIENTS_PER_KEY = 10
WRITES = 0.2
"""Share of the calls that write."""
STARTED = SystemClock().now()
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


@dataclass
class Measurements:
    """Latencies in seconds by surface and operation, and errors by their text."""

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)


def a_call(rng: random.Random, number: int) -> tuple[str, dict[str, Any]]:
    """The next call of a client: its operation and arguments."""
    symbol, strategy = rng.choice(list(PRICES)), rng.choice(STRATEGIES)
    if rng.random() < WRITES:
        closed = STARTED + timedelta(microseconds=number)
        times = {"opened_at": (closed - timedelta(hours=1)).isoformat(), "closed_at": closed.isoformat()}
        return "remember_trade", {**a_trade(number), **times, "idempotency_key": f"load {number}"}
    return rng.choice(
        [
            ("recall_memories", {"symbol": symbol, "strategy_name": strategy}),
            ("position_size", {"symbol": symbol, "direction": "long", "strategy_name": strategy}),
            ("get_agent_state", {}),
        ]
    )


class RestCaller:
    """Calls operations over REST."""

    name = "REST"

    def __init__(self, web: httpx.AsyncClient) -> None:
        self._web = web

    async def call(self, operation: str, arguments: dict[str, Any]) -> str | None:
        """The error of a call; None if there was none."""
        answer = await self._web.post(path_of(OPERATIONS[operation]), json=arguments)
        return None if answer.status_code == 200 else f"{answer.status_code} {answer.text[:120]}"


class McpCaller:
    """Calls tools in one session of MCP."""

    name = "MCP"

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, operation: str, arguments: dict[str, Any]) -> str | None:
        """The error of a call; None if there was none."""
        answer = await self._client.call_tool(operation, arguments)
        return str(answer.content)[:120] if answer.is_error else None


async def work(caller: RestCaller | McpCaller, seed: int, until: float, measured: Measurements) -> None:
    """Call one operation after the other until the time is over."""
    rng, number = random.Random(seed), seed * 100_000
    while time.perf_counter() < until:
        number += 1
        operation, arguments = a_call(rng, number)
        started = time.perf_counter()
        try:
            error = await caller.call(operation, arguments)
        except (httpx.HTTPError, httpx2.HTTPError) as lost:
            error = repr(lost)
        measured.seconds[caller.name, operation].append(time.perf_counter() - started)
        if error is not None:
            measured.errors[f"{caller.name} {operation}: {error}"] += 1


async def load(base: str, tokens: list[str], clients: int, seconds: float, *, first_seed: int) -> Measurements:
    measured = Measurements()
    async with AsyncExitStack() as stack:
        callers: list[RestCaller | McpCaller] = []
        for number in range(clients):
            headers = {"Authorization": f"Bearer {tokens[number // CLIENTS_PER_KEY]}"}
            if number % 2:
                web = httpx2.AsyncClient(headers=headers, timeout=120)
                transport = streamable_http_client(f"{base}/mcp", http_client=await stack.enter_async_context(web))
                callers.append(McpCaller(await stack.enter_async_context(Client(transport))))
            else:
                rest = httpx.AsyncClient(base_url=base, headers=headers, timeout=120)
                callers.append(RestCaller(await stack.enter_async_context(rest)))
        until = time.perf_counter() + seconds
        await asyncio.gather(*(work(caller, seed, until, measured) for seed, caller in enumerate(callers, first_seed)))
    return measured


async def drop_sessions(base: str, token: str, count: int) -> int:
    """Open sessions of MCP and leave them; how many were opened."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    opened = 0
    async with httpx.AsyncClient(headers=headers, timeout=120) as web:
        for _ in range(count):
            answer = await web.post(f"{base}/mcp", json=INITIALIZE)
            opened += answer.status_code == 200 and "mcp-session-id" in answer.headers
    return opened


def megabytes(process: int) -> float:
    """Resident memory of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def prepare(url: str, folder: Path, trades: int, keys: int) -> list[str]:
    """Import trades into a new store, and create keys."""
    with open_memory(url) as memory:
        for first in range(0, trades, 10_000):
            memory.import_trades(path=a_file(folder / "trades.jsonl", first, min(10_000, trades - first)))
        return [memory.create_key(name=f"load-{number}", scope="write").token for number in range(keys)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0, help="of a round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--trades", type=int, default=20_000)
    parser.add_argument("--sessions", type=int, default=1_200)
    parser.add_argument("--url", help="an empty store; a new SQLite file if left out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{folder}/store.db"
        tokens = prepare(url, Path(folder), options.trades, -(-options.clients // CLIENTS_PER_KEY))
        program = [str(Path(sys.executable).with_name("backsight")), "--url", url, "serve", "--port", "0", "--no-log"]
        with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            base = server.stdout.readline().split()[1].partition("/sign-in")[0]
            with httpx.Client(base_url=base, timeout=120, transport=httpx.HTTPTransport(retries=20)) as web:
                web.get("/health").raise_for_status()
            print(
                f"{options.clients} clients, rounds of {options.seconds:g} s, {options.trades:,} trades; before:",
                end=" ",
            )
            print(f"{megabytes(server.pid):.0f} MB", flush=True)
            for number in range(options.rounds):
                first_seed = 1 + number * options.clients
                measured = asyncio.run(load(base, tokens, options.clients, options.seconds, first_seed=first_seed))
                print(f"after round {number + 1}: {megabytes(server.pid):.0f} MB", flush=True)
                report(measured)
            opened = asyncio.run(drop_sessions(base, tokens[0], options.sessions))
            print(f"{opened:,} sessions opened and dropped: {megabytes(server.pid):.0f} MB")
            server.terminate()
            print(f"server ended with {server.wait(timeout=60)}")
        with open_memory(url) as memory:
            print(f"audit chain intact: {memory.verify_audit().intact}, healthy: {memory.doctor().healthy}")


def report(measured: Measurements) -> None:
    print("| surface | operation | calls | p50 | p99 |\n|---|---|---|---|---|")
    for (surface, operation), seconds in sorted(measured.seconds.items()):
        hundredths = statistics.quantiles(seconds, n=100) if len(seconds) > 1 else seconds * 99
        times = f"{1e3 * hundredths[49]:.0f} ms | {1e3 * hundredths[98]:.0f} ms"
        print(f"| {surface} | {operation} | {len(seconds):,} | {times} |")
    print(f"errors: {measured.errors.total()}", *measured.errors.most_common(3), sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
