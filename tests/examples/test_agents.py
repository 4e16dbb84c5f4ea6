"""The examples of agent frameworks, each with a stand-in model against a real memory over MCP.

The frameworks are in an environment of their own, since some need an older MCP SDK; `make agents` makes it.
"""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

from backsight import open_memory

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-agents" / "bin" / "python"
PROGRAMS = sorted((ROOT / "examples" / "agents").glob("*_agent.py"))


@pytest.mark.skipif(not PYTHON.exists(), reason="the agent frameworks are not installed; run `make agents`")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_an_agent_recalls_trades_and_remembers(program: Path, tmp_path: Path) -> None:
    store = tmp_path / "agent.db"
    command: list[str | Path] = [
        PYTHON,
        program,
        "--store",
        store,
        "--backsight",
        Path(sys.executable).parent / "backsight",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert "Nothing is remembered about BTC/USDT" in run.stdout
    assert run.stdout.endswith("remembered the result.\n")
    with open_memory(f"sqlite:///{store}") as memory:
        (trade,) = memory.list_trades().trades
        assert (trade.symbol, trade.outcome.value if trade.outcome else None) == ("BTC/USDT", 1.1)
        assert memory.verify_audit().intact


def test_the_configuration_of_claude_code_starts_a_server(tmp_path: Path) -> None:
    settings = json.loads((ROOT / "examples" / "agents" / "claude-code" / ".mcp.json").read_text())
    server = settings["mcpServers"]["backsight"]
    assert server["command"] == "backsight"

    async def tools() -> set[str]:
        program = str(Path(sys.executable).parent / "backsight")
        parameters = StdioServerParameters(command=program, args=server["args"], cwd=tmp_path)
        async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return {tool.name for tool in (await session.list_tools()).tools}

    assert {"recall_memories", "position_size", "remember_trade"} <= anyio.run(tools)
