"""A live loop that is killed at any moment loses no order that the broker executed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "kill_rounds.py"


@pytest.mark.slow
def test_every_order_that_the_broker_executed_is_in_the_ledger_with_its_decision(url: str, tmp_path: Path) -> None:
    rounds, seed = os.environ.get("KILL_ROUNDS", "100"), os.environ.get("KILL_SEED", "7")
    arguments = [url, str(tmp_path / "broker.jsonl"), "--rounds", rounds, "--seed", seed, "--longest", "3.0"]
    run = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=True)
    result = json.loads(run.stdout)
    print(result)  # noqa: T201 (shown with -s)
    assert (result["missing"], result["without_their_decision"]) == ([], [])
    assert (result["last_status"], result["intact"], result["healthy"]) == (0, True, True)
    assert result["realized_differs_by"] == 0.0
    assert result["executed"] > int(rounds) / 4  # otherwise the processes were killed before they did anything
