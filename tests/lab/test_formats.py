"""Every format that can be imported can be replayed, as the guide "Does memory help you?" promises."""

from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from backsight.core.errors import Invalid
from backsight.importers.registry import FORMATS
from backsight.lab.load import LabFiles, load
from backsight.lab.planted import START
from backsight.surfaces.main import program
from export_samples import SAMPLES
from program_samples import pyfolio
from program_samples.files import PROGRAM_FILES, Writer, text_file

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "formats"


FILES = {**{name: [text_file(text) for text in texts] for name, texts in SAMPLES.items()}, **PROGRAM_FILES}
NOT_CLOSED = {
    ("hyperliquid", 1),  # funding only
    ("binance", 1),
    ("binance", 3),
    ("binance-transactions", 0),
    ("alpaca", 0),
    ("nautilus-fills", 0),
    ("nautilus-fills", 1),
    ("nofx-decisions", 0),
}
"""Samples whose positions are not closed in the file."""
CASES = [
    pytest.param((name, number), write, id=f"{name}-{number}")
    for name, files in FILES.items()
    for number, write in enumerate(files)
]


def test_every_format_has_a_file_here() -> None:
    assert set(FILES) == {each.name for each in FORMATS if not each.generic}


@pytest.mark.parametrize(("sample", "write"), CASES)
def test_the_closed_trades_of_every_format_are_replayed(tmp_path: Path, sample: tuple[str, int], write: Writer) -> None:
    files = LabFiles(trades=(write(tmp_path),), timezone="UTC")
    if sample in NOT_CLOSED:
        with pytest.raises(Invalid, match=r"no closed trade with prices in the files; .* [1-9] fills? imported"):
            load(files)
    else:
        assert load(files).trades.trades


def _transactions(count: int) -> str:
    """Purchases and sales in turn, as pyfolio writes them."""
    lines = []
    for number in range(count):
        at = (START + timedelta(hours=9 * number)).strftime("%Y-%m-%d %H:%M:%S+00:00")
        amount, price = (10, 100.0) if number % 2 == 0 else (-10, 100.0 + number * 7 % 11 - 5)
        lines.append(f"{at},{amount},{price},0,AAPL,{-amount * price}")
    return pyfolio.HEADER + "\n".join(lines) + "\n"


def test_the_command_of_the_guide_answers_from_an_export(tmp_path: Path) -> None:
    export, out = tmp_path / "my-trades.csv", tmp_path / "report"
    export.write_text(_transactions(160))
    result = CliRunner().invoke(program, ["lab", "run", "--trades", str(export), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "none of 4 arms is better" in result.stdout or "Better than the recorded sizes" in result.stdout
    assert "80 trades were replayed" in (out / "report.md").read_text()
    assert len((out / "decisions.csv").read_text().splitlines()) == 81


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not here")
def test_real_fills_of_an_exchange_are_replayed() -> None:
    path = SHARED / "hyperliquid_user_fills_sdk_cassette.json"
    assert len(load(LabFiles(trades=(path,))).trades.trades) == 37
