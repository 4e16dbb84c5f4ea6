"""The guide to adding an operation works as printed."""

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import Invalid
from backsight.memory import Memory, checked
from backsight.ops.operation import operation_of
from backsight.testing import T0, FakeClock, a_trade_call, open_memory

GUIDE = Path(__file__).parents[2] / "docs/guides/add-an-operation.md"


def test_one_function_and_one_line_make_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    function, line = (part.partition("```")[0] for part in GUIDE.read_text().split("```python\n")[1:])
    trades: Any = types.ModuleType("guide.trades")
    monkeypatch.setitem(sys.modules, "guide.trades", trades)
    exec(function, vars(trades))
    listed: dict[str, Any] = {}
    exec(line, {"trades": trades}, listed)
    longer: Any = checked(type("Longer", (Memory,), listed))
    operation = operation_of(longer.count_trades)
    assert operation is not None
    assert (operation.noun, operation.input_schema()["required"]) == ("trades", ["symbol"])
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        memory.remember_trade(**a_trade_call())
        extended = longer(database=memory.database, clock=memory.clock, owner="me", actor="test")
        assert operation.as_json(extended.count_trades(symbol="XAUUSD")) == {"symbol": "XAUUSD", "trades": 1}
        with pytest.raises(Invalid, match="symbol: is empty"):
            extended.count_trades(symbol="")
