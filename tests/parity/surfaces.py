"""One function per surface that calls an operation and returns the answer as JSON."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import httpx2
from anyio.from_thread import start_blocking_portal
from click.testing import CliRunner
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from backsight.answers.detail import DETAILS
from backsight.answers.layouts import brief_of
from backsight.core.errors import BacksightError
from backsight.core.keys import SECRET_BYTES, token_of
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.operation import Operation
from backsight.ports import Clock
from backsight.surfaces.cli import command_name
from backsight.surfaces.http_server import HttpOptions, base_url, http_application, http_server, listen
from backsight.surfaces.main import program
from backsight.surfaces.rest import path_of
from backsight.testing import FakeClock, FakeRandomness

Call = Callable[[str, dict[str, Any]], Any]
"""Operation and arguments to JSON: the result, or the error with its kind, field and message."""


def owner_token(url: str, clock: Clock) -> str:
    """The token of Ana's key as the owner, the same in every store; the key is created if there is none."""
    with open_memory(url, owner="ana", clock=clock, randomness=FakeRandomness("owner")) as memory:
        if not memory.list_keys().keys:
            return memory.create_key(name="parity", audience="owner", scope="write").token
    return token_of("ana", FakeRandomness("owner").random_bytes(SECRET_BYTES))


@asynccontextmanager
async def mcp_client(address: str, token: str | None = None) -> AsyncIterator[Client]:
    """A client of the MCP endpoint of a server, with a key or without."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http)) as client,
    ):
        yield client


@contextmanager
def python(url: str, clock: FakeClock) -> Iterator[Call]:
    owner_token(url, clock)
    with open_memory(url, owner="ana", clock=clock, randomness=FakeRandomness()) as memory:

        def call(name: str, arguments: dict[str, Any]) -> Any:
            try:
                return OPERATIONS[name].as_json(getattr(memory, name)(**arguments))
            except BacksightError as error:
                return error.as_json()

        yield call


@contextmanager
def command_line(url: str, clock: FakeClock) -> Iterator[Call]:
    owner_token(url, clock)
    randomness = FakeRandomness()

    def opening(**options: Any) -> Memory:
        return open_memory(clock=clock, randomness=randomness, **options)

    def call(name: str, arguments: dict[str, Any]) -> Any:
        operation = OPERATIONS[name]
        command = [
            operation.noun,
            command_name(operation.noun, operation.name),
            "--json",
            *as_options(arguments),
        ]  # in full
        line = ["--url", url, "--owner", "ana", *command]
        ran = CliRunner().invoke(program, line, obj=opening)
        if ran.exit_code in (0, 3):  # 3: an answer that a scheduled check should notice, as that of a run that failed
            return json.loads(ran.stdout)
        assert ran.exit_code == 1, (ran.output, ran.exception)
        return json.loads(ran.stderr)

    yield call


def as_options(arguments: dict[str, Any]) -> Iterator[str]:
    """Arguments as command-line options."""
    for name, value in arguments.items():
        if value is None:
            continue  # an option has no null; the argument is left out
        words = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{words}" if value else f"--no-{words}"
            continue
        for each in value if isinstance(value, list) else [value]:
            yield f"--{words}"
            yield json.dumps(each) if isinstance(each, dict) else str(each)


@contextmanager
def served(url: str, clock: Clock, **options: Any) -> Iterator[str]:
    """A real server on loopback."""
    listening = listen("127.0.0.1", 0)
    with open_memory(url, owner="ana", clock=clock, randomness=FakeRandomness()) as memory:
        server = http_server(http_application(memory, HttpOptions(**options)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield base_url(listening)
        finally:  # a failed test must not leave the thread behind: the process would never end
            server.should_exit = True
            thread.join()


@contextmanager
def rest(url: str, clock: FakeClock) -> Iterator[Call]:
    headers = {"Authorization": f"Bearer {owner_token(url, clock)}"}
    with served(url, clock) as address, httpx.Client(base_url=address, timeout=30, headers=headers) as client:

        def call(name: str, arguments: dict[str, Any]) -> Any:
            response = client.post(path_of(OPERATIONS[name]), json=arguments)
            body = response.json()
            if response.status_code == 200:
                return body
            assert response.headers["content-type"] == "application/problem+json"
            assert body["status"] == response.status_code
            return {"error": body["title"], "field": body["field"], "message": body["detail"]}

        yield call


def nulls(name: str) -> dict[str, None]:
    """Every optional argument of an operation as null, as clients of language models send it."""
    fields = OPERATIONS[name].arguments.model_fields
    return {argument: None for argument, field in fields.items() if not field.is_required()}


def is_always_brief(operation: Operation) -> bool:
    """Whether `detail` is an argument of the operation without the value brief, so that MCP always answers in brief."""
    choices = json.dumps(operation.input_schema["properties"].get("detail", {"enum": DETAILS}))
    return '"brief"' not in choices


def in_full(url: str, clock: FakeClock, operation: Operation, arguments: dict[str, Any], *, brief: Any) -> Any:
    """The full answer of a query that MCP answers in brief only, after a comparison of the two."""
    with open_memory(url, owner="ana", clock=clock) as memory:
        answer = memory.run(operation, arguments)
    assert brief == brief_of(answer).as_json()
    return operation.as_json(answer)


@contextmanager
def mcp(url: str, clock: FakeClock) -> Iterator[Call]:
    token = owner_token(url, clock)
    with (
        served(url, clock, mcp_audience="owner") as address,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(mcp_client(address, token)) as client,
    ):

        def call(name: str, arguments: dict[str, Any]) -> Any:
            operation = OPERATIONS[name]
            detail = {} if is_always_brief(operation) else {"detail": "full"}
            result = portal.call(client.call_tool, name, {**nulls(name), **detail, **arguments})
            if is_always_brief(operation) and not result.is_error:
                return in_full(url, clock, operation, arguments, brief=result.structured_content)
            text = json.loads(result.content[0].text)
            assert result.is_error or result.structured_content == text
            return text

        yield call


SURFACES = {"python": python, "command line": command_line, "rest": rest, "mcp": mcp}
