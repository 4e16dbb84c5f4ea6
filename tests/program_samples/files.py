"""Small files of every program, by the name of their format."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from program_samples import ai_hedge_fund, freqtrade, metatrader5, nautilus, nofx, pyfolio

Writer = Callable[[Path], Path]


def text_file(text: str) -> Writer:
    """A writer of a file with this text."""

    def write(folder: Path) -> Path:
        (folder / "file.txt").write_text(text)
        return folder / "file.txt"

    return write


def _zipped_result(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "backtest.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("backtest-result.json", freqtrade.a_result(freqtrade.TRADE))
    return folder / "backtest.zip"


DEALS = metatrader5.a_table(metatrader5.BALANCE, metatrader5.ENTRY, metatrader5.EXIT)
PROGRAM_FILES: dict[str, list[Writer]] = {
    "ai-hedge-fund": [text_file(json.dumps(ai_hedge_fund.RECORDS))],
    "freqtrade-backtest": [text_file(freqtrade.a_result(freqtrade.TRADE)), _zipped_result],
    "freqtrade": [lambda folder: freqtrade.a_database(folder / "a.sqlite", freqtrade.OLD, freqtrade.OLD_TRADE)],
    "metatrader5": [
        text_file(metatrader5.as_html(DEALS)),
        lambda folder: metatrader5.as_xlsx(folder / "report.xlsx", DEALS),
    ],
    "nautilus-positions": [lambda folder: nautilus.a_report(folder, nautilus.POSITION)],
    "nautilus-fills": [
        lambda folder: nautilus.a_report(folder, nautilus.FILL),
        lambda folder: nautilus.a_report(folder, nautilus.ORDER),
    ],
    "nofx": [lambda folder: nofx.a_database(folder / "n.db", "trader_positions", nofx.POSITION)],
    "nofx-decisions": [text_file(json.dumps(nofx.a_record(nofx.OPEN)))],
    "pyfolio": [text_file(pyfolio.HEADER + pyfolio.LINES)],
}
