"""The OpenAPI document: names, examples, keywords, links, and a Python client that is generated from it."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.api_page import api_page
from backsight.surfaces.call_examples import example_call
from backsight.surfaces.html_page import POLICY
from backsight.surfaces.openapi import path_of
from backsight.surfaces.rest import application
from backsight.testing import T0, FakeClock, a_trade_call
from parity.surfaces import served

QUERIES = {name: operation for name, operation in OPERATIONS.items() if operation.kind == "query"}
PYTHON_KEYWORDS = {"ge", "gt", "le", "lt", "min_length", "max_length"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        return application(memory).openapi()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    url, clock = f"sqlite:///{tmp_path_factory.mktemp('served')}/store.db", FakeClock(T0)
    with open_memory(url, owner="ana", clock=clock) as memory:
        memory.remember_trade(**a_trade_call(tags=["a", "b"]))
    with served(url, clock) as address, httpx.Client(base_url=address, timeout=30) as made:
        yield made


def each_key(part: Any) -> Iterator[str]:
    for value in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from each_key(value)
    if isinstance(part, dict):
        yield from part


def test_names_are_plain_and_keywords_are_those_of_json_schema(document: dict[str, Any]) -> None:
    names = list(document["components"]["schemas"])
    assert all(name.isidentifier() and "__" not in name for name in names)
    assert len({name.lower() for name in names}) == len(names)
    routes = [route for path in document["paths"].values() for route in path.values()]
    assert len({route["operationId"] for route in routes}) == len(routes) == len(OPERATIONS) + len(QUERIES)
    assert not {"$defs", "prefixItems"} & set(each_key(document))
    for name, operation in OPERATIONS.items():
        assert not PYTHON_KEYWORDS & set(each_key(operation.input_schema)), name


def test_references_have_targets(document: dict[str, Any]) -> None:
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert names <= set(document["components"]["schemas"])


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_has_an_example_that_its_check_accepts(name: str, document: dict[str, Any]) -> None:
    operation = OPERATIONS[name]
    example = example_call(operation)
    assert example is not None, f"add an example of each required argument of {name} to call_examples.VALUES"
    operation.check(example)
    body = document["paths"][path_of(operation)]["post"]["requestBody"]["content"]["application/json"]
    assert body["example"] == example


def test_a_query_answers_a_link_as_it_answers_a_post(client: httpx.Client) -> None:
    arguments: dict[str, Any] = {
        "symbol": "XAUUSD",
        "tags": ["a", "b"],
        "limit": 5,
        "period_weight": True,
        "since": "2026-01-01",
        "context": json.dumps({"regime": "trending_up"}),
    }
    linked = client.get(path_of(OPERATIONS["recall_memories"]), params=arguments)
    posted = client.post(
        path_of(OPERATIONS["recall_memories"]),
        json={**arguments, "context": {"regime": "trending_up"}},
    )
    assert linked.json() == posted.json()
    assert len(linked.json()["memories"]) == 1
    assert linked.headers["cache-control"] == "no-store"
    brief = client.get(path_of(OPERATIONS["list_trades"]), params={"detail": "brief"})
    assert (brief.headers["content-type"], "XAUUSD" in brief.text) == ("text/plain; charset=utf-8", True)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "symbol"),
        ("symbol=X&limit=many", "limit"),
        ("symbol=X&symbol=Y", "symbol"),
        ("symbol=X&colour=red", "colour"),
    ],
)
def test_a_bad_link_is_a_problem_that_names_the_field(client: httpx.Client, query: str, field: str) -> None:
    response = client.get(f"{path_of(OPERATIONS['recall_memories'])}?{query}")
    assert (response.status_code, response.json()["field"]) == (422, field)


def test_another_method_is_refused_with_those_that_are_allowed(client: httpx.Client) -> None:
    for name, allowed in (("remember_trade", "POST"), ("list_trades", "GET, HEAD, POST")):
        response = client.delete(path_of(OPERATIONS[name]))
        assert (response.status_code, response.headers["allow"]) == (405, allowed)
    assert client.get(path_of(OPERATIONS["remember_trade"])).headers["allow"] == "POST"


def test_a_page_of_another_site_may_link_to_an_answer_and_not_embed_it(client: httpx.Client) -> None:
    path = path_of(OPERATIONS["list_trades"])
    foreign = {"sec-fetch-site": "cross-site"}
    assert client.get(path, headers={**foreign, "sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.get(path, headers={**foreign, "sec-fetch-mode": "navigate"}).status_code == 200


def test_the_page_of_the_api_loads_nothing_and_names_everything(client: httpx.Client) -> None:
    page = client.get("/api/v1/docs")
    assert (page.status_code, page.headers["content-security-policy"]) == (200, POLICY)
    assert not re.search(r"<script|<link|<img|src=|url\(|@import|https?://", page.text)
    for name in OPERATIONS:
        assert f'id="{name}"' in api_page()


def test_a_generated_client_keeps_every_response_type(
    client: httpx.Client, document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openapi_python_client")
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "options.json").write_text('{"post_hooks": []}')
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", "openapi.json", "--meta", "none"]
    options = ["--output-path", "backsight_client", "--config", "options.json", "--fail-on-warning"]
    ran = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, operation in OPERATIONS.items():
        module = importlib.import_module(f"backsight_client.api.{operation.noun}.{name}")
        assert operation.returns.__name__ in str(module.sync.__annotations__["return"]), name
    list_trades = importlib.import_module("backsight_client.api.trades.list_trades_by_url").sync
    with importlib.import_module("backsight_client.client").Client(base_url=str(client.base_url)) as connection:
        listed = list_trades(client=connection, limit=1)
    assert (type(listed).__name__, listed.trades[0].symbol) == ("TradePage", "XAUUSD")
