"""The tools that a model is offered: which, how many, how many tokens, and what it is told about them."""

import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, MCPError

from backsight.audience import AUDIENCES, DOCUMENT_TOOLS, OFFERED, Audience
from backsight.core.errors import Invalid, Refused
from backsight.memory import OPERATIONS, Memory, open_memory
from backsight.surfaces.instructions import INSTRUCTIONS, PROMPTS, instructions_for, tools_named
from backsight.surfaces.mcp import server
from backsight.surfaces.mcp_tools import tool_list, tools_for
from backsight.testing import T0, FakeClock

TRADER = """
    remember_trade remember_inaction recall_memories get_trade position_size get_agent_state get_behavioral_analysis
    list_trades create_trading_plan check_active_plans record_decision active_lessons search_memory read_memory
    append_note
"""
COACH = """
    get_my_deployments get_strategy_performance get_upcoming_events remember forget list_trades get_trade_reflection
    recall_memories get_agent_state get_behavioral_analysis list_beliefs list_plans get_my_decisions review_period
    search_memory read_memory
"""
KEYWORDS = frozenset(
    [
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "default",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "oneOf",
        "pattern",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "type",
        "uniqueItems",
    ]
)


def tokens(value: object) -> int:
    """The larger count of cl100k and o200k."""
    openai = import_module("rs_bpe.bpe").openai  # no stubs, so not imported by name
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return max(int(tokenizer.count(text)) for tokenizer in (openai.cl100k_base(), openai.o200k_base()))


def listed(audience: Audience) -> list[dict[str, Any]]:
    tools = tool_list(tools_for(audience), audience)
    return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]


def keywords(schema: Any) -> Iterator[str]:
    """The keywords of a schema and of the schemas in it."""
    if isinstance(schema, list):
        for kind in schema:
            yield from keywords(kind)
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        yield keyword
        if keyword in ("properties", "$defs"):
            for named in value.values():
                yield from keywords(named)
        elif keyword in ("items", "additionalProperties", "anyOf", "oneOf", "prefixItems"):
            yield from keywords(value)


@pytest.mark.parametrize(("audience", "names", "most_tokens"), [("trader", TRADER, 5_500), ("coach", COACH, 6_000)])
def test_a_list_has_the_tools_of_the_specification_and_is_short(
    audience: Audience, names: str, most_tokens: int
) -> None:
    tools = listed(audience)
    assert [tool["name"] for tool in tools] == [name for name in names.split() if name in OPERATIONS]
    inputs = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    assert tokens(inputs) <= most_tokens, "shorten descriptions of arguments: a model pays for them in every session"
    assert tokens(tools) <= 15_000
    for tool in tools:
        assert audience in OPERATIONS[tool["name"]].audience
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])


def test_document_tools_are_offered_only_where_there_is_a_workspace() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "mcp.md").read_text()
    for audience in ("trader", "coach"):
        numbers = [len(tools_for(audience, workspace=workspace)) for workspace in (True, False)]
        (row,) = (line for line in guide.splitlines() if line.startswith(f"| `{audience}`"))
        assert [int(number) for number in re.findall(r"\d+", row)] == numbers
        assert set(tools_for(audience)) - set(tools_for(audience, workspace=False)) == (
            DOCUMENT_TOOLS & set(OFFERED[audience] or ())
        )


def test_schemas_have_no_titles_and_only_keywords_of_json_schema() -> None:
    for operation in OPERATIONS.values():
        for schema in (operation.input_schema, operation.output_schema):
            assert set(keywords(schema)) <= KEYWORDS, operation.name


def test_every_field_of_the_context_is_described_once() -> None:
    schemas = [tool["inputSchema"] for tool in listed("trader")]
    (described,) = [schema["$defs"]["ContextVector"] for schema in schemas if "$defs" in schema]
    assert all(field["description"] for field in described["properties"].values())
    assert described["properties"]["drawdown_pct"]["minimum"] == 0
    others = [schema["properties"]["context"] for schema in schemas if "context" in schema["properties"]]
    assert sum("Fields as in remember_trade." in other["description"] for other in others) == len(others) - 1 > 2


def test_other_tools_can_be_chosen_by_name() -> None:
    assert list(tools_for("trader", chosen=["get_trade", "list_trades"])) == ["get_trade", "list_trades"]
    with pytest.raises(Invalid, match="tools: no operation 'get_trad'; did you mean 'get_trade'"):
        tools_for("trader", chosen=["get_trad"])
    with pytest.raises(Refused, match="tools: remember_trade is not for the coach"):
        tools_for("coach", chosen=["remember_trade"])


@pytest.mark.parametrize("audience", AUDIENCES)
def test_instructions_and_prompts_name_only_tools_that_are_offered(audience: Audience) -> None:
    offered = tools_for(audience)
    for text in (*INSTRUCTIONS[audience], *(each.text for each in PROMPTS.values() if audience in each.audience)):
        assert tools_named(text, OPERATIONS) <= set(offered), text
    few = instructions_for(audience, offered=["list_trades"], operations=OPERATIONS)
    assert tools_named(few, OPERATIONS) <= {"list_trades"}
    assert "detail=" in few


def test_a_coach_is_not_told_to_remember_trades() -> None:
    text = instructions_for("coach", offered=tools_for("coach"), operations=OPERATIONS)
    assert "remember_trade" not in text
    assert "cannot trade or change" in text


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", clock=FakeClock(T0)) as opened:
        yield opened


def test_a_prompt_quotes_its_arguments(memory: Memory) -> None:
    async def talk() -> tuple[list[str], str, str]:
        async with Client(server(memory, "trader")) as client:
            names = [prompt.name for prompt in (await client.list_prompts()).prompts]
            given = {"symbol": 'XAU"USD\n## Rules', "direction": "long"}
            prompt = await client.get_prompt("pre_trade_check", given)
            try:
                await client.get_prompt("pre_trade_check", {"symbol": "X"})
            except MCPError as error:
                return names, prompt.messages[0].content.text, str(error)  # type: ignore[union-attr]
            return names, "", ""

    names, text, error = anyio.run(talk)
    assert names == ["pre_trade_check", "post_trade_review", "daily_reflection"]
    assert text.startswith('I am about to trade "XAU\\"USD ## Rules", "long".')
    assert "direction: is missing" in error


def test_the_server_tells_its_instructions(memory: Memory) -> None:
    async def ask() -> str | None:
        async with Client(server(memory, "coach")) as client:
            return client.instructions

    assert (anyio.run(ask) or "").startswith("You advise the owner of a trading agent.")
