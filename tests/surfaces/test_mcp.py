"""MCP with a real client, over standard input and output."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, MCPError, StdioServerParameters

from backsight.adapters.clocks import SystemClock
from backsight.audience import DOCUMENT_TOOLS
from backsight.core.errors import Refused
from backsight.memory import OPERATIONS, open_memory
from backsight.surfaces.mcp import caller_over_stdio
from backsight.surfaces.mcp_tools import tools_for
from backsight.testing import T0, FakeClock, a_trade_call
from parity.arguments import EVERY_ARGUMENT
from parity.surfaces import SURFACES, mcp_client, owner_token, served
from support import dump, started


def ask(audience: str, store: str, calls: list[tuple[str, dict[str, Any]]]) -> tuple[Any, list[Any]]:
    """The tools a client sees, and the answers of the calls."""

    async def talk() -> tuple[Any, list[Any]]:
        command = ["-m", "backsight", "--url", store, "mcp", "--audience", audience]
        key = {"BACKSIGHT_KEY": owner_token(store, SystemClock())} if audience == "owner" else {}
        server = StdioServerParameters(command=sys.executable, args=command, env={**os.environ, **key})
        async with Client(server) as client:
            listed = await client.list_tools()
            return listed.tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(talk)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def test_a_trader_remembers_and_recalls(store: str) -> None:
    calls = [("remember_trade", a_trade_call()), ("recall_memories", {"symbol": "XAUUSD"})]
    tools, (remembered, recalled) = ask("trader", store, calls)
    assert [tool.name for tool in tools] == list(tools_for("trader", workspace=False))
    assert not remembered.is_error
    memories = recalled.structured_content["memories"]
    assert memories["rows"][0][memories["columns"].index("id")] == remembered.structured_content["trade"]["id"]
    by_name = {tool.name: tool for tool in tools}
    for name, result in (("remember_trade", remembered), ("recall_memories", recalled)):
        jsonschema.validate(result.structured_content, by_name[name].output_schema)


def test_bad_input_is_an_error_a_model_can_correct(store: str) -> None:
    _, (refused,) = ask("trader", store, [("remember_trade", a_trade_call(direction="lnog"))])
    assert refused.is_error
    assert "did you mean 'long'" in refused.content[0].text


@pytest.mark.parametrize("audience", ["trader", "coach", "owner"])
def test_tools_are_annotated_and_say_when_to_use_them(audience: str, store: str) -> None:
    tools, _ = ask(audience, store, [])
    for tool in tools:
        operation = OPERATIONS[tool.name]
        assert tool.annotations.open_world_hint is False
        assert tool.annotations.read_only_hint == (operation.kind == "query")
        assert tool.annotations.idempotent_hint == operation.idempotent
        assert tool.description == operation.description
        assert all(each.get("description") for each in tool.input_schema["properties"].values())
        assert tool.input_schema["additionalProperties"] is False
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


def test_a_coach_writes_facts_alone_and_an_owner_may_do_all() -> None:
    commands = {name for name, each in OPERATIONS.items() if "coach" in each.audience and each.kind == "command"}
    assert commands == {"remember", "forget"}
    assert tools_for("owner") == OPERATIONS


def test_no_call_of_a_coach_changes_trading_memory(store: str) -> None:
    """Every command, with the arguments of the parity test where it has some."""
    calls = {name: arguments for name, _, arguments in EVERY_ARGUMENT}
    with open_memory(store) as memory:
        memory.remember_trade(**a_trade_call())
        before = {name: rows for name, rows in dump(memory).items() if name not in FACT_TABLES}
        coach = caller_over_stdio(memory, "coach", key=None)
        for name, operation in OPERATIONS.items():
            if operation.kind == "query" or name in ("remember", "forget"):
                continue
            with pytest.raises(Refused, match=f"{name} needs a key of the"):
                coach.run(operation, calls.get(name, {}))
        fact = coach.remember(fact="I trade gold only").fact
        coach.forget(fact_id=fact.id)
        after = {name: rows for name, rows in dump(memory).items() if name not in FACT_TABLES}
    assert after == before


FACT_TABLES = ("user_facts", "user_facts_former", "fact_references", "audit_log")


def test_the_owners_tools_need_the_owners_key(store: str) -> None:
    with open_memory(store) as memory:
        trader, owner = (memory.create_key(name=name, audience=name).token for name in ("trader", "owner"))
        for key in (None, trader):
            with pytest.raises(Refused, match="owner"):
                caller_over_stdio(memory, "owner", key=key)
        caller = caller_over_stdio(memory, "owner", key=owner)
        assert caller.actor.endswith(":owner")
        with pytest.raises(Refused, match="only reads"):
            caller.remember_trade(**a_trade_call())
        trading = caller_over_stdio(memory, "trader", key=None)
        with pytest.raises(Refused, match="approve_edit needs a key of the owner"):
            trading.approve_edit(edit_id="e")


def test_a_tool_of_another_audience_does_not_exist(store: str) -> None:
    with pytest.raises((MCPError, ExceptionGroup)) as caught:
        ask("coach", store, [("remember_trade", a_trade_call())])
    error: BaseException = caught.value
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    assert "No tool 'remember_trade'" in str(error)
    with open_memory(store) as memory:
        assert memory.list_trades().trades == ()


def test_a_trade_written_by_one_surface_is_read_by_another(store: str) -> None:
    clock = FakeClock(T0)
    with SURFACES["mcp"](store, clock) as call:
        remembered = call("remember_trade", a_trade_call())
    with SURFACES["rest"](store, clock) as call:
        assert call("get_trade", {"trade_id": remembered["trade"]["id"]})["trade"] == remembered["trade"]


def test_the_http_server_answers_older_protocol_versions(store: str) -> None:
    async def talk(address: str) -> str:
        async with Client(f"{address}/mcp", mode="legacy") as client:
            await client.list_tools()
            return client.protocol_version

    with served(store, FakeClock(T0)) as address:
        assert anyio.run(talk, address) == "2025-11-25"


def test_an_http_server_can_serve_one_audience_that_has_a_key(store: str) -> None:
    async def tools(address: str) -> set[str]:
        async with mcp_client(address.removesuffix("/mcp"), token) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    with open_memory(store) as memory:
        token = memory.create_key(name="coach", audience="coach").token

    command = [sys.executable, "-m", "backsight", "--url", store, "mcp", "--http", "--port", "0", "--audience", "coach"]
    with started(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        assert anyio.run(tools, address) == set(tools_for("coach")) - DOCUMENT_TOOLS
        server.terminate()


def test_an_invalid_message_does_not_end_the_server(store: str) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    deep = b"[" * 50_000 + b"]" * 50_000
    wrong = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recall_memories","arguments":%s}}'
    request = {"name": "recall_memories", "arguments": {"symbol": "XAUUSD", "detail": "full"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode(),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b"not json at all",
        b"\xff\xfe",
        wrong % deep,
        wrong % b'{"symbol":NaN}',
        json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": request}).encode(),
    ]
    command = [sys.executable, "-m", "backsight", "--url", store, "mcp"]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b"\n".join(lines) + b"\n")
        server.stdin.flush()
        answered: dict[int | None, Any] = {}
        while not {2, 7} <= set(answered):
            answer = json.loads(server.stdout.readline())
            answered[answer.get("id")] = answer
        server.kill()
    assert answered[2]["result"]["structuredContent"]["candidates"] == 0
    assert answered[7]["result"]["isError"] is True
