"""The direction of imports holds, and each contract turns red when it is violated."""

import ast
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS = {
    contract["id"]: contract["name"]
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}

PLANTED = [
    ("layers", "core/ids.py", "import backsight.store.mapping"),
    ("layers", "store/trades.py", "import backsight.services.context"),
    ("layers", "services/ledger.py", "import backsight.ops.ticks"),
    ("core-order", "core/trades/fold.py", "import backsight.core.memory.episodic"),
    ("core-order", "core/newcomer.py", ""),
    ("ops-apart", "ops/trades.py", "import backsight.ops.ticks"),
    ("services-order", "services/plans.py", "import backsight.services.learning"),
    ("layers", "ops/trades.py", "import backsight.memory"),
    ("layers", "memory.py", "import backsight.runtime.clock"),
    ("layers", "runtime/demo.py", "import backsight.surfaces.cli"),
    ("layers", "newcomer.py", ""),
    ("pure-core", "core/numbers.py", "import pydantic"),
    ("pure-core", "core/numbers.py", "import sqlalchemy"),
    ("sql-in-store", "ops/recall.py", "from sqlalchemy import select"),
    ("sql-in-store", "surfaces/cli.py", "import sqlalchemy"),
    ("layers", "runtime/demo.py", "import backsight.lab.run"),
    ("lab-statistics", "lab/metrics.py", "import backsight.memory"),
    ("adapters-behind-ports", "adapters/clocks.py", "import backsight.store.database"),
    ("wiring-in-memory", "services/context.py", "from backsight.adapters.clocks import SystemClock"),
    ("wiring-in-memory", "runtime/demo.py", "from backsight.adapters.clocks import SystemClock"),
    ("loops-apart", "runtime/live.py", "import backsight.runtime.backtest"),
    ("surfaces-apart", "surfaces/rest.py", "import backsight.surfaces.mcp"),
    ("surfaces-apart", "surfaces/cli.py", "import backsight.surfaces.rest"),
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "COLUMNS": "200", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold(copy: Path) -> None:
    ran = lint(copy)
    assert ran.returncode == 0, ran.stdout
    assert all(f"{name} KEPT" in ran.stdout for name in CONTRACTS.values())


@pytest.mark.parametrize(("contract", "file", "line"), PLANTED, ids=lambda value: str(value)[:60])
def test_a_planted_violation_turns_its_contract_red(copy: Path, contract: str, file: str, line: str) -> None:
    planted = copy / "src" / "backsight" / file
    planted.write_text((planted.read_text() if planted.exists() else "") + f"\n{line}\n")
    ran = lint(copy)
    assert ran.returncode == 1, ran.stdout
    assert f"{CONTRACTS[contract]} BROKEN" in ran.stdout


def test_every_contract_has_a_planted_violation() -> None:
    assert {contract for contract, _, _ in PLANTED} == set(CONTRACTS)


@pytest.mark.parametrize("path", sorted((ROOT / "src/backsight/core").rglob("*.py")), ids=lambda path: path.stem)
def test_core_needs_nothing_that_has_to_be_installed_but_numpy(path: Path) -> None:
    known = sys.stdlib_module_names | {"numpy"}
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.startswith("backsight.core") or name.partition(".")[0] in known, name
