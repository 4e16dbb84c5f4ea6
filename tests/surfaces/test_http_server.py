"""How the server starts, reports, survives bad connections and stops, as a real process or on a real socket."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from backsight.memory import OPERATIONS
from backsight.surfaces import http_server
from backsight.surfaces.rest import path_of
from backsight.testing import T0, FakeClock, a_trade_call
from parity.surfaces import owner_token, served
from support import started


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


UPLOAD = b"POST /api/v1/trades/list_trades HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BEGINNINGS = [b"", b"POST /api/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", UPLOAD + b"Content-Length: 9\r\n\r\n{"]
"""What clients send that then say nothing: no byte, a part of the head, a part of the body."""


@pytest.mark.parametrize("beginning", BEGINNINGS, ids=["nothing", "head", "body"])
def test_connections_without_a_request_lock_nobody_out(
    store: str, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(http_server, "MOST_WAITING", 10)
    with ExitStack() as stack:
        address = stack.enter_context(served(store, FakeClock(T0)))
        parts = urlsplit(address)
        silent = []
        for number in range(30):
            silent.append(stack.enter_context(socket.create_connection((parts.hostname, parts.port))))
            silent[-1].sendall(beginning)
            if number % 20 == 0:  # the server has seen what was sent before it answers
                assert httpx.get(f"{address}/health", timeout=30).json() == {"status": "ok"}
        assert is_closed(silent[0])
        assert httpx.get(f"{address}/health", timeout=30).json() == {"status": "ok"}


def test_a_connection_without_a_request_is_closed_in_time(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.05)
    with served(store, FakeClock(T0)) as address:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\n")
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""


def test_a_connection_whose_client_does_not_read_is_closed_in_time(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "READING_SECONDS", 0.05)
    with served(store, FakeClock(T0)) as address, socket.socket() as connection:
        parts = urlsplit(address)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((parts.hostname, parts.port))
        connection.settimeout(30)
        request = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        with pytest.raises(ConnectionError):
            connection.sendall(request * 1_000_000)  # more than the system buffers, and no answer is read


def is_closed(connection: socket.socket) -> bool:
    """Whether the server ends a connection within half a minute."""
    connection.settimeout(30)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def test_metrics_count_requests_by_operation_and_status(store: str) -> None:
    with served(store, FakeClock(T0)) as address:
        path = address + path_of(OPERATIONS["list_trades"])
        for arguments in ({}, {}, {"limit": 0}):
            httpx.post(path, json=arguments, timeout=30)
        httpx.get(f"{address}/nothing/at/all", timeout=30)
        lines = httpx.get(f"{address}/metrics", timeout=30).text.splitlines()
    assert 'backsight_requests_total{route="list_trades",status="200"} 2' in lines
    assert 'backsight_requests_total{route="list_trades",status="422"} 1' in lines
    assert 'backsight_requests_total{route="other",status="404"} 1' in lines


def test_the_log_has_neither_keys_nor_arguments(store: str) -> None:
    lines: list[str] = []
    token = owner_token(store, FakeClock(T0))
    with served(store, FakeClock(T0), write_log=lines.append) as address:
        headers = {"Authorization": f"Bearer {token}"}
        call = a_trade_call(reflection="a private thought", direction="lnog")
        httpx.post(address + path_of(OPERATIONS["remember_trade"]), json=call, headers=headers, timeout=30)
    (line,) = map(json.loads, lines)
    assert {name: line[name] for name in ("method", "route", "status", "owner")} == {
        "method": "POST",
        "route": "remember_trade",
        "status": 422,
        "owner": "ana",
    }
    assert line["actor"].endswith(":parity")
    assert not any(secret in lines[0] for secret in (token, "private thought", "lnog"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_server_stops_on_a_signal(store: str, number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-m", "backsight", "--url", store, "serve", "--port", "0"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[1].partition("/sign-in")[0]
        transport = httpx.HTTPTransport(retries=20)
        with httpx.Client(transport=transport, timeout=30) as client:
            assert client.get(f"{address}/health").status_code == 200
            server.send_signal(number)  # while a connection is open
            assert server.wait(timeout=60) == code
        assert server.stderr is not None
        line = json.loads(server.stderr.readline())
    assert line["route"] == "health"
