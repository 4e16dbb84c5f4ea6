"""All that a program needs comes from `backsight`, is imported on first use, and is known to type checkers."""

import ast
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import backsight
from backsight import (
    Bar,
    BrokerSnapshot,
    ClosedTick,
    ContextVector,
    Invalid,
    Memory,
    MemoryOverrides,
    OpenedTick,
    Order,
    OrderResult,
    Portfolio,
    Recall,
    Segment,
    Verdict,
    notes_of,
)

ROOT = Path(__file__).parents[1]
NOW = datetime(2026, 6, 4, 10, tzinfo=UTC)


def test_objects_and_dicts_are_arguments_and_type_checkers_know_both(memory: Memory) -> None:
    """The type checker that checks the tests reads this program: it fails where a dict or an object is refused."""
    memory.open_account(venue="paper", name="a", mode="sim")
    memory.save_strategy(name="s", memory={"holdout": 0.0})
    memory.deploy(strategy_name="s", account="a", name="d", memory=MemoryOverrides(holdout=0.5))
    portfolio = Portfolio(at=NOW, equity=1000.0, cash=1000.0)
    before = BrokerSnapshot(portfolio=portfolio, marks={"BTC": 100.0})
    fields = {"portfolio": {"at": NOW, "equity": 1000.0, "cash": 1000.0}, "marks": {"BTC": 100.0}}
    bar = Bar(symbol="BTC", interval_seconds=60, opened_at=NOW, open=1.0, high=1.0, low=1.0, close=1.0)
    segment = Segment(name="news", text="None.")
    opened: OpenedTick = memory.open_tick(deployment="d", at=NOW, before=before, market=[segment])
    same = memory.open_tick(deployment="d", at=NOW, before=fields, market=[{"name": "news", "text": "None."}])
    assert opened == same
    closed: ClosedTick = memory.close_tick(
        deployment="d",
        at=NOW,
        before=fields,
        verdict={"kind": "noop"},
        shown=[*opened.segments, {"name": "more", "text": "Text."}],
    )
    assert closed.decision.verdict == Verdict(kind="noop")
    recall: Recall = memory.recall_memories(symbol="BTC", context={"regime": "ranging"})
    exact = memory.recall_memories(symbol="BTC", context=ContextVector(regime="ranging"))
    assert recall.memories == exact.memories
    assert notes_of(recall) == ()
    order: OrderResult | Order = Order(symbol="BTC", quantity=1.0)
    assert isinstance(order, Order)
    with pytest.raises(Invalid, match="sort the bars"):
        memory.record_bars(bars=[bar, {name: getattr(bar, name) for name in bar.__slots__}])
    with pytest.raises(Invalid, match="before: 'none' is text"):
        memory.open_tick(deployment="d", at=NOW, before="none")  # type: ignore[arg-type]


def test_every_public_name_is_listed_once_and_found() -> None:
    listed = [name for names in backsight.MODULES.values() for name in names.split()]
    assert sorted([*listed, "__version__"]) == sorted(backsight.__all__)
    for name in backsight.__all__:
        assert getattr(backsight, name) is not None
    tree = ast.parse((ROOT / "src" / "backsight" / "__init__.py").read_text(encoding="utf-8"))
    checked = {
        (node.module.removeprefix("backsight."), alias.name)
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    assert checked == {(module, name) for module, names in backsight.MODULES.items() for name in names.split()}
    assert set(backsight.__all__) <= set(dir(backsight))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        backsight.nothing  # noqa: B018


def test_importing_backsight_imports_nothing_else() -> None:
    code = "import sys; import backsight; print(*[name for name in sys.modules if name.startswith('backsight.')])"
    code += "; print('numpy' in sys.modules, 'pydantic' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["False", "False"]


def test_the_examples_import_from_backsight_only() -> None:
    wrong = [
        f"{path.name}: {node.module}"
        for path in (ROOT / "examples").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("backsight.")
    ]
    assert wrong == []
