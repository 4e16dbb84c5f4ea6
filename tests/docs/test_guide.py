"""The guides work as printed."""

import json
import random
import re
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.core.memory.conditions import parse_condition
from backsight.core.memory.loose_actions import loosen_action
from backsight.core.memory.loose_conditions import loosen_condition
from backsight.core.memory.plan_words import action_in_words, condition_in_words
from backsight.core.memory.planned_action import parse_action
from backsight.core.simulated_market import simulated_bars
from backsight.memory import Memory, PaperBroker, open_simulation
from backsight.operation_list import listed_modules, operations_of
from backsight.runtime.backtest import record_history, run_backtest
from backsight.runtime.clock import SimulatedClock
from backsight.runtime.load import load_agent
from backsight.testing import T0, FakeClock, a_trade_call, open_memory
from parity.arguments import THEN

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/guides/add-an-operation.md"


def test_one_function_and_one_line_make_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        remembered = memory.remember_trade(**a_trade_call()).trade  # before its module is replaced
        function, line, call, _ = (part.partition("```")[0] for part in GUIDE.read_text().split("```python\n")[1:])
        module: Any = types.ModuleType("backsight.ops.trades")
        monkeypatch.setitem(sys.modules, "backsight.ops.trades", module)
        exec(function, vars(module))
        listed: dict[str, Any] = {}
        exec(line, listed_modules(), listed)
        longer: Any = type("Longer", (Memory,), listed)
        operation = operations_of(longer)["last_trade"]
        assert (operation.noun, operation.input_schema["required"]) == ("trades", ["symbol"])
        (step,) = eval(f"[{call}]", {"THEN": THEN})
        assert (step[0], set(step[2])) == ("last_trade", set(operation.arguments.model_fields))
        extended = longer(database=memory.database, clock=memory.clock, owner="me", actor="test")
        answer = operation.as_json(extended.last_trade(symbol="XAUUSD"))
        assert (answer["symbol"], answer["trade"]["id"]) == ("XAUUSD", remembered.id)
        assert extended.last_trade(symbol="EURUSD").trade is None
        with pytest.raises(Invalid, match="symbol: is empty"):
            extended.last_trade(symbol="")


def test_the_strategy_of_the_guide_runs(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "run-an-agent.md").read_text()
    (tmp_path / "dip.py").write_text(guide.partition("```python\n")[2].partition("```")[0])
    agent = load_agent(f"{tmp_path}/dip.py:BuyTheDip")
    start = datetime(2025, 1, 6, tzinfo=UTC)
    bars = {"X": simulated_bars(random.Random(5), symbol="X", start=start, days=12, price=100.0, daily_atr=5.0)}
    clock = SimulatedClock(start)
    with open_simulation(clock) as memory:
        account = memory.open_account(venue="simulated", name="a", mode="sim").account
        memory.save_strategy(name=agent.name, thesis=agent.thesis)
        memory.deploy(strategy_name=agent.name, account="a")
        record_history(memory, clock, bars)
        broker = PaperBroker(account.id, at=start, cash=10_000.0)
        assert run_backtest(memory, clock, agent, broker, deployment="BuyTheDip@a", bars=bars).opened > 0


@pytest.mark.parametrize("name", ["lessons.md", "documents.md", "import-your-history.md", "test-a-broker.md"])
def test_the_first_example_of_a_guide_prints_its_documented_output(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    guide = (ROOT / "docs" / "guides" / name).read_text()
    program, printed = guide.partition("```python\n")[2].split("```")[0:3:2]
    exec(program, {})
    assert capsys.readouterr().out == printed.lstrip("\n")


def test_the_tick_of_the_guide_takes_dicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    section = (ROOT / "docs" / "guides" / "run-an-agent.md").read_text().partition("### The types, or dicts")[2]
    monkeypatch.chdir(tmp_path)
    exec(section.partition("```python\n")[2].partition("```")[0], {})
    assert capsys.readouterr().out == section.partition("```text\n")[2].partition("```")[0]


def test_the_plans_of_the_guide_are_read_as_it_says() -> None:
    guide = (ROOT / "docs/guides/plans.md").read_text()
    conditions, actions = guide.partition("## Actions")[::2]
    rows = re.findall(r"^\| `(\{.*?\})` \| (.*) \|$", conditions, re.MULTILINE)
    assert len(rows) >= 10
    for written, words in rows:
        condition, _ = loosen_condition(json.loads(written), field="trigger_condition")
        assert condition_in_words(parse_condition(condition)) == words
    for written, words in re.findall(r"^\| `(\{.*?\})` \| (.*) \|$", actions, re.MULTILINE):
        if words.startswith("refused"):
            with pytest.raises(Invalid):
                loosen_action(json.loads(written), field="planned_action")
        else:
            action, _ = loosen_action(json.loads(written), field="planned_action")
            assert action_in_words(parse_action(action)) == words
    (example,) = re.findall(r"```json\n(.*?)```", guide, re.DOTALL)
    assert condition_in_words(parse_condition(json.loads(example))) == "XAUUSD not in the Asian session"
