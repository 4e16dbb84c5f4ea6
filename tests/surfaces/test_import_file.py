"""`backsight import FILE`, as a person types it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from backsight.memory import Memory, open_memory
from backsight.surfaces import import_file
from backsight.surfaces.main import program
from backsight.testing import T0, FakeClock

FILLS = str(Path(__file__).parents[1] / "parity" / "fills.csv")
TRADES = "symbol,side,entry price,exit price,pnl,exit time,strategy\nSPY,long,500,510,10,2026-06-03 15:00,Dip\n"
MAP = ("--map", "Ausgeführt=quantity")


def run(folder: Path, *words: str, typed: str | None = None) -> Result:
    def opening(**options: Any) -> Memory:
        return open_memory(clock=FakeClock(T0), **options)

    url = f"sqlite:///{folder}/store.db"
    return CliRunner().invoke(program, ["--url", url, "import", *words], obj=opening, input=typed)


def test_a_dry_run_shows_the_rows_and_writes_nothing(tmp_path: Path) -> None:
    printed = run(tmp_path, FILLS, *MAP, "--mode", "paper", "--dry-run")
    assert printed.exit_code == 0, printed.output
    assert "3 fills would be imported." in printed.stdout
    assert "Ausgeführt as quantity" in " ".join(printed.stdout.split())
    assert ["BTC", "1", "70,000.5"] in [line.split()[-4:-1] for line in printed.stdout.splitlines() if "BTC" in line]
    assert "3 fills imported." in run(tmp_path, FILLS, *MAP, "--mode", "paper").stdout
    assert "nothing was changed" in run(tmp_path, FILLS, *MAP, "--mode", "paper").stdout


def test_closed_trades_go_to_the_other_operation(tmp_path: Path) -> None:
    path = tmp_path / "journal.csv"
    path.write_text(TRADES)
    answer = json.loads(run(tmp_path, str(path), "--mode", "live", "--json").stdout)
    assert (answer["format"], answer["added"]) == ("trades-table", 1)
    refused = run(tmp_path, str(path), "--account", "x", "--mode", "live")
    assert "account" in str(refused.exception)


def test_standard_input_is_read(tmp_path: Path) -> None:
    typed = Path(FILLS).read_text(encoding="utf-8")
    printed = run(tmp_path, "-", *MAP, "--mode", "sim", typed=typed)
    assert "stdin@stdin (sim)" in printed.stdout, printed.output


def test_what_is_missing_is_said_or_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "give live, paper or sim" in str(run(tmp_path, FILLS, *MAP).exception)
    monkeypatch.setattr(import_file, "_is_terminal", lambda: True)
    printed = run(tmp_path, FILLS, *MAP, typed="paper\n")
    assert "Are these trades of real money" in printed.stdout
    assert "fills@fills (paper)" in printed.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--map", "Ausgeführt"), "is not COLUMN=FIELD"),
        (("--map", "Menge=quantity"), "there is no column 'Menge'; the file has"),
        (("--format", "fills-tabel"), "did you mean 'fills-table'"),
        ((), "fits no format that is known"),
        ((), "`backsight import bars` reads bars"),
    ],
)
def test_errors_name_the_remedy(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    assert message in str(run(tmp_path, FILLS, *words).exception)


def test_the_help_lists_every_format(tmp_path: Path) -> None:
    printed = run(tmp_path, "anything", "--help").stdout
    assert "--map COLUMN=FIELD" in printed
    assert "fills-table" in printed
    assert "backsight import FILE" in " ".join(run(tmp_path, "--help").stdout.split())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "trades.csv",
            "symbol,direction,entry_price,exit_price,pnl,closed_at,strategy_name\n"
            "XAU,upwards,1,2,1,2026-01-01T00:00:00Z,S\n",
        ),
        ("fills.csv", "time,symbol,side,quantity,price,fee,fill_id\nnever,XAU,buy,1,2,0,1\n"),
    ],
)
def test_an_import_that_imported_nothing_ends_with_1_and_a_repeated_one_with_0(
    tmp_path: Path, name: str, text: str
) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    line = (str(file), "--mode", "live", "--skip-broken")
    ran = run(tmp_path, *line)
    assert (ran.exit_code, "nothing was changed" in ran.stdout) == (1, True)
    file.write_text(text.replace("upwards", "long").replace("never", "2026-01-01T00:00:00Z"), encoding="utf-8")
    assert [run(tmp_path, *line).exit_code, run(tmp_path, *line).exit_code] == [0, 0]
