"""`backsight import WHAT FILE`, as a person types it."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from backsight.memory import Memory, open_memory
from backsight.surfaces.main import program
from backsight.testing import T0, FakeClock

PARITY = Path(__file__).parents[1] / "parity"
LOG, BARS = str(PARITY / "positions.jsonl"), str(PARITY / "positions_bars.jsonl")


def run(folder: Path, *words: str) -> Result:
    def opening(**options: Any) -> Memory:
        return open_memory(clock=FakeClock(T0), **options)

    return CliRunner().invoke(program, ["--url", f"sqlite:///{folder}/store.db", "import", *words], obj=opening)


def test_an_import_of_positions_is_summarised_in_a_few_lines(tmp_path: Path) -> None:
    words = "positions", LOG, "--bars", BARS, "--timezone", "UTC"
    printed = [line.rstrip() for line in run(tmp_path, *words).stdout.splitlines()]
    assert printed == [
        "Imported the position log as parity@parity.",
        "deployment      parity@parity (paper)",
        "rows            4 at 3 instants, 2026-06-04 04:00 to 2026-06-04 06:00",
        "trades          2 opened, 2 closed",
        "changes         1 opens, 2 closes, 1 held at start",
        "cash            2 of 3 changes with a bar were paid at its open",
        "bars            3 of 2 symbols, 3 of them new; 0 missing",
        "contradictions  1 repeated id, 1 not the action, 1 price off open",
        "line 3: id 1 is that of line 2",
        "line 3: sell_crypto 2 ÉTÉ is stated, but ÉTÉ -1 changed",
        "line 3: ÉTÉ cost 10.5, and the bar opened at 11.0",
    ]
    assert run(tmp_path, *words).stdout.startswith("Already known: nothing was changed.\n")


def test_an_import_of_bars_prints_the_count_of_each_symbol(tmp_path: Path) -> None:
    printed = run(tmp_path, "bars", str(PARITY / "bars.csv"), "--symbol", "XAUUSD").stdout
    assert ["XAUUSD", "3", "3"] in [line.split()[:3] for line in printed.splitlines()]


def test_a_missing_or_unknown_argument_is_named(tmp_path: Path) -> None:
    missing = run(tmp_path, "positions")
    assert str(missing.exception) == "path: missing; it is required, and so is timezone"
    unknown = run(tmp_path, "positions", LOG, "--nonsense", "1")
    assert (unknown.exit_code, "No such option '--nonsense'" in unknown.stderr) == (2, True)
    assert run(tmp_path, "nonsense", LOG).exit_code == 2
    assert "positions [OPTIONS] FILE" in run(tmp_path, "positions", "--help").stdout
