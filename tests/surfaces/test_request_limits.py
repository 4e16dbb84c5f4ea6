"""The limits of requests: through a real server where it matters, else with the middleware alone."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import anyio
import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from backsight.memory import OPERATIONS
from backsight.surfaces.access import MCP_PATH
from backsight.surfaces.request_limits import MAX_NAMES, BodyMiddleware, LoadMiddleware
from backsight.surfaces.rest import path_of
from backsight.testing import T0, FakeClock
from parity.surfaces import served

RECALL = path_of(OPERATIONS["recall_memories"])
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    url = f"sqlite:///{tmp_path_factory.mktemp('limits')}/store.db"
    with served(url, FakeClock(T0)) as address, httpx.Client(base_url=address, timeout=30) as made:
        yield made


def test_a_body_that_is_too_large_is_refused_unread(client: httpx.Client) -> None:
    head = f"POST {RECALL} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: 1000000000\r\n\r\n".encode())
        assert b" 413 " in connection.recv(1000)


def test_a_body_without_a_stated_length_is_read_up_to_the_limit() -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the body is too large")

    part = {"type": "http.request", "body": b" " * 100, "more_body": True}
    talk = Talk(*[part] * 11)
    anyio.run(BodyMiddleware(application, max_bytes=1000), talk.scope, talk.receive, talk.send)
    assert talk.status == 413


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({f"name{number}": 1 for number in range(MAX_NAMES + 1)}).encode(),
        json.dumps({"symbol": "X", "context": {f"name{number}": 1 for number in range(MAX_NAMES + 1)}}).encode(),
        b'{"symbol": ' + b"[" * 50 + b"]" * 50 + b"}",
    ],
)
@pytest.mark.parametrize("path", [RECALL, MCP_PATH])
def test_a_body_that_is_too_wide_or_too_deep_is_refused(client: httpx.Client, body: bytes, path: str) -> None:
    refused = client.post(path, content=body, headers=JSON)
    assert (refused.status_code, refused.json()["field"]) == (422, "arguments")


def test_an_error_does_not_repeat_what_was_sent(client: httpx.Client) -> None:
    for arguments in ({"x" * 1_000_000: 1}, {"symbol": "y" * 1_000_000}, {"symbol": "X", "direction": "z" * 1_000_000}):
        refused = client.post(RECALL, json=arguments)
        assert refused.status_code == 422
        assert len(refused.content) < 10_000


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_site_can_send_nothing(client: httpx.Client, headers: dict[str, str]) -> None:
    for path in (RECALL, "/mcp"):
        assert client.post(path, json={"symbol": "X"}, headers=headers).status_code == 403


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_post_is_json_also_without_a_body(client: httpx.Client, content_type: str) -> None:
    headers = {"content-type": content_type} if content_type else {}
    assert client.post(path_of(OPERATIONS["list_trades"]), headers=headers).status_code == 415


def test_the_servers_own_page_and_programs_can_send(client: httpx.Client) -> None:
    own = {"origin": f"http://{client.base_url.netloc.decode()}", "sec-fetch-site": "same-origin"}
    assert client.post(RECALL, json={"symbol": "X"}, headers=own).status_code == 200


class Talk:
    """One request to an application, and the status of its answer."""

    def __init__(self, *messages: Message, caller: str = "a") -> None:
        self._messages = list(messages) or [{"type": "http.request", "body": b"{}", "more_body": False}]
        self.scope: Scope = {"type": "http", "method": "POST", "path": "/x", "client": (caller, 1), "headers": []}
        self.status = 0

    async def receive(self) -> Message:
        if not self._messages:
            await anyio.sleep_forever()
        return self._messages.pop(0)

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)


def test_a_client_that_does_not_send_its_body_is_given_up() -> None:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the body is not complete")

    talk = Talk({"type": "http.request", "body": b"{", "more_body": True})
    anyio.run(BodyMiddleware(application, seconds=0.01), talk.scope, talk.receive, talk.send)
    assert talk.status == 408


def test_requests_beyond_the_limit_are_told_to_come_again() -> None:
    async def run() -> list[int]:
        finish = anyio.Event()

        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await finish.wait()
            await PlainTextResponse("done")(scope, receive, send)

        load = LoadMiddleware(application, most=3, most_of_one=2)
        talks = [Talk(caller=name) for name in ("a", "a", "a", "b", "c")]
        async with anyio.create_task_group() as group:
            for talk in talks:
                group.start_soon(load, talk.scope, talk.receive, talk.send)
            await anyio.wait_all_tasks_blocked()
            finish.set()
        last = Talk()
        await load(last.scope, last.receive, last.send)
        return [talk.status for talk in [*talks, last]]

    assert anyio.run(run) == [200, 200, 429, 200, 503, 200]


def test_a_client_that_does_not_read_holds_up_nobody() -> None:
    async def run() -> int:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            await PlainTextResponse("done")(scope, receive, send)

        async def never_sent(_message: Message) -> None:
            await anyio.sleep_forever()

        load = LoadMiddleware(application, most=1, most_of_one=1)
        stuck, next_one = Talk(), Talk()
        async with anyio.create_task_group() as group:
            group.start_soon(load, stuck.scope, stuck.receive, never_sent)
            await anyio.wait_all_tasks_blocked()
            await load(next_one.scope, next_one.receive, next_one.send)
            group.cancel_scope.cancel()
        return next_one.status

    assert anyio.run(run) == 200


def test_an_operation_that_takes_too_long_is_answered() -> None:
    async def application(*_: Any) -> None:
        await anyio.sleep_forever()

    talk = Talk()
    anyio.run(LoadMiddleware(application, seconds=0.01), talk.scope, talk.receive, talk.send)
    assert talk.status == 503
