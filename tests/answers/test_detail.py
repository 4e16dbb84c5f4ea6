"""`detail` on every surface: brief or full, with one result behind both."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from fastapi.testclient import TestClient

from backsight import brief
from backsight.core.errors import Invalid
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.surfaces.main import program
from backsight.surfaces.mcp import answer
from backsight.surfaces.rest import application, path_of
from backsight.testing import T0, FakeClock, a_trade_call

LIST = OPERATIONS["list_trades"]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def memory(store: str) -> Iterator[Memory]:
    with open_memory(store, clock=FakeClock(T0)) as opened:
        opened.remember_trade(**a_trade_call())
        yield opened


def run(store: str, *words: str) -> Result:
    return CliRunner().invoke(program, ["--url", store, *words])


def test_mcp_is_brief_unless_full_is_asked_for(memory: Memory) -> None:
    page = memory.list_trades()
    by_default = answer(memory, LIST, {})
    assert by_default.content[0].text == brief(page)  # type: ignore[union-attr]
    assert answer(memory, LIST, {"detail": None}) == answer(memory, LIST, {"detail": "brief"}) == by_default
    full = answer(memory, LIST, {"detail": "full"})
    assert full.structured_content == LIST.as_json(page)
    wrong = answer(memory, LIST, {"detail": "ful"})
    assert wrong.is_error
    assert "did you mean 'full'" in wrong.content[0].text  # type: ignore[union-attr]


def test_the_shell_is_brief_and_json_is_full(store: str, memory: Memory) -> None:
    table = run(store, "trades", "list").stdout
    assert table.startswith("For 'manual:VolBreakout' (live), the only deployment. 1 closed trade, newest first.\n")
    assert "request_digest" not in table
    assert json.loads(run(store, "trades", "list", "--json").stdout)["trades"][0]["position_key"]
    rows = json.loads(run(store, "trades", "list", "--json", "--detail", "brief").stdout)
    assert rows["message"] == "For 'manual:VolBreakout' (live), the only deployment. 1 closed trade, newest first."
    assert "position key" in run(store, "trades", "list", "--detail", "full").stdout
    assert memory.list_trades().trades


def test_an_unknown_detail_is_one_error(store: str, memory: Memory) -> None:
    ran = run(store, "trades", "list", "--detail", "short", "--json")
    assert ran.exit_code == 1
    assert json.loads(ran.stderr)["message"].startswith("detail: 'short' is not known; known: brief, full")
    with TestClient(application(memory)) as client:
        response = client.post(path_of(LIST), params={"detail": "short"})
        assert (response.status_code, response.json()["field"]) == (422, "detail")


def test_rest_answers_brief_with_text(memory: Memory) -> None:
    with TestClient(application(memory)) as client:
        assert client.post(path_of(LIST)).json() == LIST.as_json(memory.list_trades())
        response = client.post(path_of(LIST), params={"detail": "brief"})
        assert response.headers["content-type"].startswith("text/plain")
        assert response.text == brief(memory.list_trades())
        recall = client.post(path_of(OPERATIONS["recall_memories"]), json={"symbol": "XAUUSD", "detail": "brief"})
        assert recall.text.splitlines()[1].startswith("Usually: ")


def test_python_accepts_the_detail_of_a_recall_and_answers_the_same(memory: Memory) -> None:
    first: Any = memory.recall_memories(symbol="XAUUSD")
    assert memory.recall_memories(symbol="XAUUSD", detail="brief") == first
    with pytest.raises(Invalid, match="detail: 'short' is not known"):
        memory.recall_memories(symbol="XAUUSD", detail="short")  # type: ignore[arg-type]
