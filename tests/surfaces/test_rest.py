"""REST with a real server and a real client."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import positive_data_acceptance

from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.http_server import listen
from backsight.surfaces.rest import application, path_of
from backsight.testing import T0, FakeClock, a_trade_call
from parity.surfaces import owner_token, served

REMEMBER = path_of(OPERATIONS["remember_trade"])
RECALL = path_of(OPERATIONS["recall_memories"])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    url, clock = f"sqlite:///{tmp_path_factory.mktemp('served')}/store.db", FakeClock(T0)
    headers = {"Authorization": f"Bearer {owner_token(url, clock)}"}
    with (
        served(url, clock) as address,
        httpx.Client(base_url=address, timeout=30, headers=headers) as made,
    ):
        yield made


def test_a_trade_goes_in_and_comes_out(client: httpx.Client) -> None:
    remembered = client.post(REMEMBER, json=a_trade_call()).json()
    recalled = client.post(RECALL, json={"symbol": "XAUUSD"}).json()
    assert recalled["memories"][0]["id"] == remembered["episode_id"]


def test_openapi_describes_every_operation(client: httpx.Client) -> None:
    specification = client.get("/api/v1/openapi.json").json()
    assert set(specification["paths"]) == {path_of(operation) for operation in OPERATIONS.values()}
    for operation in OPERATIONS.values():
        route = specification["paths"][path_of(operation)]["post"]
        assert route["operationId"] == operation.name
        assert set(route["responses"]) == {"200", "403", "404", "409", "422", "503"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "arguments"),
        (b"{", "arguments"),
        (b"[]", "arguments"),
        (b'"text"', "arguments"),
        (b"null", "arguments"),
        (b"\xff\xfe", "arguments"),
        (b"[" * 100_000 + b"]" * 100_000, "arguments"),
        (b'{"symbol":' * 100_000, "arguments"),
        (b'{"symbol": NaN}', "symbol"),
        (b'{"symbol": "XAUUSD", "context_atr_d1": Infinity}', "context_atr_d1"),
        (b'{"symbol": "XAUUSD", "context_atr_d1": 1e999}', "context_atr_d1"),
        (b'{"symbol": "XAUUSD", "limit": 99999999999999999999}', "limit"),
        (b'{"symbol": "XAU\\u0000USD"}', "symbol"),
        (b'{"symbol": "\\ud800"}', "symbol"),
    ],
)
def test_a_bad_body_is_a_problem_that_names_the_field(client: httpx.Client, body: bytes, field: str) -> None:
    response = client.post(RECALL, content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.headers["content-type"]) == (422, "application/problem+json")
    assert response.json()["title"] == "Invalid"
    assert response.json()["field"] == field


def test_a_missing_path_or_record_is_a_problem(client: httpx.Client) -> None:
    missing = client.get("/nothing").json()
    assert (missing["title"], missing["detail"]) == ("NotFound", "no path '/nothing'; /api/v1/docs lists all")
    wrong_method = client.get(REMEMBER)
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "POST")
    assert client.post(path_of(OPERATIONS["get_trade"]), json={"trade_id": "x"}).status_code == 404


def test_operations_without_required_arguments_need_no_body(client: httpx.Client) -> None:
    answer = client.post(path_of(OPERATIONS["verify_audit"]), headers={"content-type": "application/json"})
    assert answer.json()["intact"] is True


def test_a_request_with_a_foreign_host_header_is_refused(client: httpx.Client) -> None:
    assert client.post(RECALL, json={"symbol": "X"}, headers={"host": "evil.example"}).status_code == 400


def check_by_schemathesis(folder: Path, monkeypatch: pytest.MonkeyPatch, *, posts: int, links: int) -> None:
    """One check is excluded: some rules (a close in the future) cannot be expressed in a schema."""
    monkeypatch.chdir(folder)  # an export writes to the folder that it is given
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", application(memory))
        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            examples = posts if result.ok().method.upper() == "POST" else links  # the arguments are those of the POST

            @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), database=None)
            @given(case=result.ok().as_strategy())
            def check(case: schemathesis.Case[Any]) -> None:
                assume(not (isinstance(case.body, dict) and Path(str(case.body.get("path"))).is_absolute()))
                case.call_and_validate(excluded_checks=[positive_data_acceptance])

            check()


def test_schemathesis_finds_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_by_schemathesis(tmp_path, monkeypatch, posts=6, links=2)


@pytest.mark.slow
def test_schemathesis_finds_no_fault_in_many_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_by_schemathesis(tmp_path, monkeypatch, posts=40, links=10)


def test_answers_are_sent_at_once() -> None:
    listening = listen("127.0.0.1", 0)
    assert listening.proto == socket.IPPROTO_TCP  # else asyncio lets each answer wait for more, some 40 ms
    listening.close()
