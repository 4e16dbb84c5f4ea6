"""Commands start quickly because they import only the libraries they need."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


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
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words.split()],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "BACKSIGHT_URL": f"sqlite:///{tmp_path}/store.db"},
        check=True,
    )
    imported = set(ran.stderr.split("\n")[-2].split())
    assert "backsight" in imported
    assert imported & not_imported == set()


def test_importing_backsight_opens_nothing() -> None:
    program = "import sys, backsight; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & (DATABASE | SERVERS | OTHERS) == set()


def test_formats_of_files_are_imported_only_to_read_a_file() -> None:
    program = "import sys, backsight.memory; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "backsight.importers.registry" not in ran.stdout.split()
