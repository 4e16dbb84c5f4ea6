"""Tokens of the MCP tool lists and of every tool's answer on the demo's store, by the tokenizers cl100k and o200k.

Of each count the larger of the two tokenizers is printed. A client gives a model either the text of an answer or its
structured content, so they are counted apart. Without `--store` the demo's year is traded first, which takes a minute.
"""

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from backsight.audience import AUDIENCES
from backsight.memory import OPERATIONS, Memory, open_memory, open_simulation
from backsight.runtime import demo
from backsight.runtime.clock import SimulatedClock
from backsight.surfaces.mcp import answer, server

STRATEGY = {"strategy_name": demo.STRATEGY}
DEPLOYED = {"deployment": demo.DEPLOYMENT}
SYMBOL = {"symbol": demo.SYMBOL}
TRADE = {**SYMBOL, **STRATEGY, "direction": "long", "entry_price": 2650.0, "exit_price": 2660.0, "pnl": 95.0}
PLAN = {
    "trigger_condition": {"regime": "ranging"},
    "planned_action": {"type": "skip_trade"},
    "reasoning": "Breakouts fail in ranges.",
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("recall_memories", {**SYMBOL, "mode": "all"}),
    ("recall_memories", {**SYMBOL, **DEPLOYED, "direction": "long", "context_regime": "trending_up"}),
    ("list_trades", {}),
    ("position_size", {**SYMBOL, **STRATEGY, "direction": "long", **DEPLOYED}),
    ("get_agent_state", DEPLOYED),
    ("get_behavioral_analysis", DEPLOYED),
    ("check_active_plans", {**DEPLOYED, **SYMBOL, "current_context": {"regime": "ranging"}}),
    ("active_lessons", DEPLOYED),
    ("list_beliefs", DEPLOYED),
    ("list_plans", DEPLOYED),
    ("list_decisions", DEPLOYED),
    ("list_lessons", DEPLOYED),
    ("list_proposals", DEPLOYED),
    ("get_my_deployments", {}),
    ("get_my_deployments", {"detail": "full"}),
    ("get_strategy_performance", {}),
    ("get_strategy_performance", {"detail": "full"}),
    ("break_down", {"by": "weekday"}),
    ("get_equity", DEPLOYED),
    ("get_recent_activity", DEPLOYED),
    ("preview_context", DEPLOYED),
    ("review_period", DEPLOYED),
    ("compare_lessons", {**STRATEGY, "mode": "sim"}),
    ("does_memory_help", {**STRATEGY, "mode": "sim"}),
    ("reflect", {**DEPLOYED, "dry_run": True}),
    ("verify_audit", {}),
    ("export_audit", {}),
    ("doctor", {}),
    ("remember_trade", TRADE),
    ("remember_inaction", {**SYMBOL, **STRATEGY, "reason": "The range is too narrow."}),
    (
        "record_decision",
        {**SYMBOL, **STRATEGY, "direction": "long", "horizon_hours": 4.0, "reasoning": "It broke out."},
    ),
    ("create_trading_plan", {**PLAN, **DEPLOYED}),
    ("init_documents", {}),
    ("reindex", {}),
    ("search_memory", {"query": "risk per trade"}),
    ("read_memory", {"path": "TRADING_MANUAL.md"}),
    ("index_health", {}),
]
"""One call of each kind of answer, at default limits."""
OF_A_TRADE = ("get_trade", "get_trade_reflection")


def tokens(text: str) -> int:
    """The larger count of cl100k and o200k."""
    openai = import_module("rs_bpe.bpe").openai
    return max(int(tokenizer.count(text)) for tokenizer in (openai.cl100k_base(), openai.o200k_base()))


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def demo_store(path: Path) -> None:
    """Trade the demo's year and save its store."""
    clock = SimulatedClock(demo.START)
    with open_simulation(clock, actor="demo") as memory:
        demo.fill(memory, clock, progress=lambda *_: None)
        memory.save(path)


def listed(memory: Memory, audience: Any) -> list[dict[str, Any]]:
    """The tools that a client of an audience is shown."""
    import anyio
    from mcp import Client

    async def ask() -> list[dict[str, Any]]:
        async with Client(server(memory, audience)) as client:
            tools = (await client.list_tools()).tools
        return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]

    return anyio.run(ask)


def answers(memory: Memory) -> Iterator[tuple[str, int, int]]:
    """Each call with the tokens of its text and of its structured content."""
    trade = OPERATIONS["list_trades"].as_json(memory.list_trades(limit=1))["trades"][0]["id"]
    note = ("append_note", {"text": "Stopped out too early.", "agent": "demo", "run": trade})
    for name, arguments in [*CALLS, note, *((name, {"trade_id": trade}) for name in OF_A_TRADE)]:
        result = answer(memory, OPERATIONS[name], arguments)
        text = result.content[0].text  # type: ignore[union-attr]
        assert not result.is_error, (name, text)
        label = f"`{name}`" + (f" {compact(arguments)}" if arguments else "")
        yield label, tokens(text), tokens(compact(result.structured_content))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="The demo's store, as `backsight demo --store` saves it.")
    parser.add_argument("--owner", default="me")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BACKSIGHT_WORKSPACE"] = folder + "/workspace"
        store = Path(folder) / "store.db"
        if options.store is None:
            demo_store(store)
        else:
            shutil.copy(options.store, store)
        with open_memory(f"sqlite:///{store}", owner=options.owner) as memory:
            print("| audience | tools | tokens of names, descriptions and inputs | tokens of the whole list |")
            print("|---|---|---|---|")
            for audience in AUDIENCES:
                tools = listed(memory, audience)
                inputs = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
                print(f"| {audience} | {len(tools)} | {tokens(compact(inputs)):,} | {tokens(compact(tools)):,} |")
            print("\n| call | tokens of the text | tokens of the structured content |\n|---|---|---|")
            for label, text, structured in answers(memory):
                print(f"| {label} | {text:,} | {structured:,} |")


if __name__ == "__main__":
    main()
