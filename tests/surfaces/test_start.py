"""Commands start quickly because they import only the libraries they need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backsight.memory import open_memory

DATABASE = {"sqlalchemy", "alembic", "psycopg"}
SERVERS = {"fastapi", "mcp", "mcp_types", "starlette", "uvicorn", "httpx"}
OTHERS = {"numpy", "pydantic", "rich"}

PROGRAM = """
import sys
from backsight.surfaces.main import main
sys.argv = ["backsight", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


def modules_after(words: str, url: str) -> list[str]:
    """The modules that are imported when a command has run in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words.split()],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "BACKSIGHT_URL": url},
        check=True,
    )
    return ran.stderr.split("\n")[-2].split()


@pytest.mark.parametrize(
    ("words", "not_imported"),
    [
        ("--help", DATABASE | SERVERS | OTHERS),
        ("--version", DATABASE | SERVERS | OTHERS),
        ("trades --help", SERVERS | {"alembic", "psycopg", "rich", "numpy"}),
        ("trades list --json", SERVERS | {"alembic", "psycopg", "rich", "numpy"}),
        ("mcp", {"alembic", "psycopg", "fastapi", "rich", "numpy"}),
    ],
)
def test_a_command_imports_only_what_it_needs(words: str, not_imported: set[str], tmp_path: Path) -> None:
    imported = {name.partition(".")[0] for name in modules_after(words, f"sqlite:///{tmp_path}/store.db")}
    assert "backsight" in imported
    assert imported & not_imported == set()


def test_importing_backsight_opens_nothing() -> None:
    program = "import sys, backsight; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & (DATABASE | SERVERS | OTHERS) == set()


OPENING = """
    adapters.clocks adapters.randomness services.background services.context services.file_access services.library
    services.query_vectors services.runs_in_progress
    store.audit store.compression store.database store.mapping store.reading store.recent_recalls
    store.row_security store.schema store.search store.search.slot store.transaction store.transaction_state
    store.heads_file store.view
"""
READING_TRADES = """
    ops.trades_pages services.deployments services.id_prefixes services.names services.paging store.decisions
    store.instruments store.memories store.strategies store.symbols store.trades store.unchanged
"""
RECALLING = """
    ops.recall services.behavior services.belief_learning services.beliefs services.deployments
    services.habit_learning services.id_prefixes services.mood services.names services.outlook services.paging
    services.plans services.recall services.recall_hashes services.withheld_memory
    store.bars store.codecs store.columns store.columns_file store.decisions store.images
    store.experience store.memories store.plans store.recalls store.state store.strategies store.trades
    store.columns_build store.instruments store.symbols store.unchanged
"""
LAYERS = ("ops.", "services.", "store.", "adapters.", "importers.", "runtime.", "lab.")


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("--help", ""),
        ("mcp", OPENING + "services.keys store.keys"),
        ("trades list --json", OPENING + READING_TRADES),
        ("recall memories XAUUSD --json", OPENING + RECALLING),
    ],
)
def test_a_start_imports_the_modules_that_it_needs_and_no_others(words: str, allowed: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    open_memory(url).close()  # creating a store imports the modules of all tables
    every = modules_after(words, url)
    modules = [name.removeprefix("backsight.") for name in every if name.startswith("backsight.")]
    assert {name for name in modules if name.startswith(LAYERS)} <= set(allowed.split())
    assert not any(name.startswith("sqlalchemy.dialects.postgresql") for name in every)
