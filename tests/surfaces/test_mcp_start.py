"""What a model and a client's log read when a server starts with a new store, a relative URL or no folder."""

import os
import subprocess
import sys
from pathlib import Path

from backsight.memory import open_memory
from backsight.surfaces.connect.server_check import ServerAnswer, ask_server
from backsight.testing import a_trade_call


def answer(url: str) -> ServerAnswer:
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    return ask_server(sys.executable, ["-m", "backsight", "--url", url, "mcp"], environment)


def test_a_model_whose_memory_is_empty_is_told_which_store_that_is(tmp_path: Path) -> None:
    instructions = answer("sqlite:///new.db").instructions
    assert instructions.startswith("This is your memory as a trading agent.")
    assert "Nothing is stored yet for the owner 'me' in sqlite:////" in instructions
    assert "/new.db. If the user expects trades" in instructions
    url = f"sqlite:///{tmp_path}/store.db"
    with open_memory(url) as memory:
        memory.remember_trade(**a_trade_call())
    assert "Nothing is stored" not in answer(url).instructions


def test_a_log_names_a_store_that_depends_on_the_folder_and_a_workspace_that_is_not_there(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "backsight", "--url", "sqlite:///new.db", "mcp"],
        cwd=tmp_path,
        env={**os.environ, "BACKSIGHT_WORKSPACE": "nowhere"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [
        f"The store is sqlite:///{tmp_path}/new.db: sqlite:///new.db depends on the folder, which the client chose. "
        "`backsight connect` writes the whole path.",
        f"There is no folder {tmp_path}/nowhere for documents.",
    ]
