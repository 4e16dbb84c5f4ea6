"""The example `own_loop.py` runs, and prints the prompt of the agent."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_own_loop_trades_a_day_and_prints_the_prompt() -> None:
    program = [sys.executable, str(ROOT / "examples" / "own_loop.py")]
    printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("Time: 2026-06-01T23:00 UTC, Monday\n\n## Portfolio\n")
    assert "## Recent activity (this session)\n" in printed
    assert "## Recent trades on this strategy (closed)\n" in printed
    assert "## What usually happens here\n" in printed
    assert "- executed orders today (UTC): " in printed
    assert "trades closed" in printed.splitlines()[-1]
