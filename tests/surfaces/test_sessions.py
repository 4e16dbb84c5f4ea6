"""Sessions of MCP that were opened and dropped without a goodbye end by themselves and leave nothing."""

import time

import httpx
import pytest

from backsight.surfaces import http_server
from backsight.testing import T0, FakeClock
from parity.surfaces import served

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "dropped", "version": "1"}},
}
HEADERS = {"Accept": "application/json, text/event-stream"}
AT_ONCE = 30
LONGEST_WAIT = 20.0


@pytest.mark.parametrize("count", [60, pytest.param(1_200, marks=pytest.mark.slow)])
def test_dropped_sessions_make_room_for_new_ones(url: str, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(http_server, "MAX_SESSIONS", AT_ONCE)
    monkeypatch.setattr(http_server, "SESSION_SECONDS", 0.3)
    refused = opened = 0
    with served(url, FakeClock(T0)) as address, httpx.Client(base_url=address, headers=HEADERS, timeout=30) as client:
        until = time.monotonic() + LONGEST_WAIT + count / 20
        while opened < count and time.monotonic() < until:
            answer = client.post("/mcp", json=INITIALIZE)
            assert answer.status_code in (200, 503), answer.text
            opened += answer.status_code == 200
            refused += answer.status_code == 503
            if answer.status_code == 503:
                time.sleep(0.1)
        assert opened == count  # more than there is room for at once, so that dropped sessions have ended
        assert "mcp-session-id" in client.post("/mcp", json=INITIALIZE).headers or refused
