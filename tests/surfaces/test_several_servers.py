"""Several server processes on one PostgreSQL: nothing is lost, every process sees it, and the chain stays whole."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.rest import path_of
from backsight.testing import a_trade_call
from store.test_row_security import application_url
from support import fresh_postgres, started

TRADES = 60


@contextmanager
def serving(url: str) -> Iterator[httpx.Client]:
    command = [sys.executable, "-m", "backsight", "--url", url, "serve", "--port", "0", "--no-log"]
    with started(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[1].partition("/sign-in")[0]
        with httpx.Client(base_url=address, timeout=120, transport=httpx.HTTPTransport(retries=20)) as client:
            yield client
        server.terminate()
        assert server.wait(timeout=60) == 0


@pytest.mark.slow
def test_three_processes_share_one_store() -> None:
    url = application_url(fresh_postgres())
    with ExitStack() as stack:
        clients = [stack.enter_context(serving(url)) for _ in range(3)]

        def write(number: int) -> int:
            client = clients[number % 3]
            call = a_trade_call(idempotency_key=str(number), pnl=float(number + 1), pnl_r=1.0)
            written = client.post(path_of(OPERATIONS["remember_trade"]), json=call)
            read = clients[(number + 1) % 3].post(path_of(OPERATIONS["recall_memories"]), json={"symbol": "XAUUSD"})
            return max(written.status_code, read.status_code)

        with ThreadPoolExecutor(9) as pool:
            assert set(pool.map(write, range(TRADES))) == {200}
        answers = [client.post(path_of(OPERATIONS["recall_memories"]), json={"symbol": "XAUUSD"}) for client in clients]
        assert {answer.json()["candidates"] for answer in answers} == {TRADES}
    with open_memory(url) as memory:
        assert memory.verify_audit().intact
        assert len(memory.export_audit().links) == TRADES
        assert memory.doctor().healthy
