"""MCP resources and prompts, with a real client over HTTP."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from backsight.audience import AUDIENCES
from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.mcp_resources import RESOURCES, resources_for
from backsight.testing import T0, FakeClock, a_trade_call
from parity.surfaces import served


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def read(store: str, *uris: str) -> tuple[list[str], list[str], list[str]]:
    """The addresses and templates that a client sees, and the texts of some resources."""

    async def talk(address: str) -> Any:
        async with Client(f"{address}/mcp") as client:
            listed = [str(each.uri) for each in (await client.list_resources()).resources]
            templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
            texts = [(await client.read_resource(uri)).contents[0].text for uri in uris]  # type: ignore[union-attr]
            return listed, templates, texts

    with served(store, FakeClock(T0)) as address:
        answer: tuple[list[str], list[str], list[str]] = anyio.run(talk, address)
        return answer


def test_a_trader_reads_a_trade_its_lessons_and_the_audit_head(store: str) -> None:
    with open_memory(store, owner="ana", clock=FakeClock(T0)) as memory:
        trade = memory.remember_trade(**a_trade_call()).trade
        head = memory.status().head
    listed, templates, texts = read(
        store,
        f"trade://{trade.id[:8]}",
        "lessons://active",
        "lessons://active/manual%3AVolBreakout",
        "audit://head",
    )
    assert listed == ["lessons://active", "audit://head"]
    assert templates == ["trade://{trade_id}", "lessons://active/{deployment}"]
    assert "XAUUSD" in texts[0]
    assert "lessons" in texts[1]
    assert "manual:VolBreakout" in texts[2]
    assert texts[3] == head


@pytest.mark.parametrize(
    ("uri", "message"),
    [("trade://abc", "no trade"), ("weather://today", "no resource"), ("lessons://active", "deployment")],
)
def test_a_resource_that_cannot_be_read_says_why(store: str, uri: str, message: str) -> None:
    with pytest.raises((MCPError, ExceptionGroup)) as caught:
        read(store, uri)
    error: BaseException = caught.value
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert message in str(error).lower()


@pytest.mark.parametrize("audience", AUDIENCES)
def test_a_resource_is_offered_to_those_who_may_call_its_query(audience: Any) -> None:
    for uri, resource in RESOURCES.items():
        operation = OPERATIONS[resource.operation]
        assert resource.read is not None or operation.kind == "query"
        assert (uri in resources_for(audience)) == (audience in operation.audience)


def test_prompts_are_listed_and_filled_with_quoted_arguments(store: str) -> None:
    async def talk(address: str) -> tuple[list[str], str]:
        async with Client(f"{address}/mcp") as client:
            names = [prompt.name for prompt in (await client.list_prompts()).prompts]
            filled = await client.get_prompt("pre_trade_check", {"symbol": "XAUUSD", "direction": "long"})
            return names, filled.messages[0].content.text  # type: ignore[union-attr]

    with served(store, FakeClock(T0)) as address:
        names, text = anyio.run(talk, address)
    assert names == ["pre_trade_check", "post_trade_review", "daily_reflection"]
    assert "XAUUSD" in text
    assert "recall_memories" in text
